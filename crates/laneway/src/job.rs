//! A running job: the caller's handle to it, the searches that find its items, and the counts of their
//! outcomes.

pub(crate) mod existing;
pub(crate) mod lookup;
pub(crate) mod pump;
mod remarks;
pub(crate) mod running;
pub(crate) mod search;
pub(crate) mod shared;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use tokio::sync::{mpsc, watch};

use crate::engine::fork::OfProcess;
use crate::{Error, Event, Item, Op, Outcome, Progress, Summary};

/// The maximum number of events that wait for the caller. At this number, the job pauses until the caller
/// takes one.
const EVENTS_WAITING_MAX: usize = 1024;

/// A running job: a stream of its events. The job pauses if the caller doesn't take its events. Dropping this
/// value cancels the job. In the child of a `fork`, a job of the parent yields no more events and can't be
/// cancelled.
#[derive(Debug)]
pub struct Job {
    /// `None` for a job without events.
    events: Option<OfProcess<mpsc::Receiver<Event>>>,
    progress: Arc<Progress>,
    canceller: Canceller,
}

/// Cancels a job, or a call such as `Client::compose_until`, from any thread.
#[derive(Clone, Debug)]
pub struct Canceller(Arc<OfProcess<watch::Sender<bool>>>);

/// The tasks' ends of the channels between a [`Job`] and its tasks.
#[derive(Debug)]
pub(crate) struct JobEnds {
    pub(crate) events: Option<mpsc::Sender<Event>>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) cancel: CancelFlag,
    pub(crate) canceller: Canceller,
}

/// A flag that shows a job's tasks whether the job was cancelled.
#[derive(Clone, Debug)]
pub(crate) struct CancelFlag(watch::Receiver<bool>);

impl Job {
    pub(crate) fn new() -> (Self, JobEnds) {
        let (sender, events) = mpsc::channel(EVENTS_WAITING_MAX);
        let (mut job, mut ends) = Self::unheard();
        (job.events, ends.events) = (Some(OfProcess::new(events)), Some(sender));
        (job, ends)
    }

    /// Makes a job without events, for a single call. A channel for events would take 5 KB of memory.
    pub(crate) fn unheard() -> (Self, JobEnds) {
        let (cancel, cancelled) = watch::channel(false);
        let progress = Arc::new(Progress::default());
        let canceller = Canceller(Arc::new(OfProcess::new(cancel)));
        let job = Self { events: None, progress: Arc::clone(&progress), canceller: canceller.clone() };
        (job, JobEnds { events: None, progress, cancel: CancelFlag(cancelled), canceller })
    }

    /// Returns the next event, or `None` after [`Event::Done`].
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Does the same as [`next`](Self::next), and blocks the thread. Don't call it on a thread that runs
    /// async tasks.
    pub fn next_blocking(&mut self) -> Option<Event> {
        self.events.as_mut()?.get_mut()?.blocking_recv()
    }

    /// Returns the progress of the job.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// Returns a handle that cancels the job. A cancelled job begins no further item, and abandons the items
    /// that are under way. The job removes temporary files and aborts unfinished uploads, unless
    /// [`CopyRequest::keep_partial`](crate::CopyRequest::keep_partial) is set. The last event is
    /// [`Event::Done`] with [`interrupted`](crate::Summary::interrupted).
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }
}

impl Stream for Job {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        match self.events.as_mut().and_then(OfProcess::get_mut) {
            Some(events) => events.poll_recv(context),
            None => Poll::Ready(None),
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.canceller.cancel();
    }
}

/// A canceller for a call that isn't a job.
impl Default for Canceller {
    fn default() -> Self {
        Self(Arc::new(OfProcess::new(watch::Sender::new(false))))
    }
}

impl Canceller {
    /// Cancels the job and returns at once. The job's last event reports when it has ended.
    pub fn cancel(&self) {
        if let Some(cancel) = self.0.get() {
            cancel.send_replace(true);
        }
    }
}

impl JobEnds {
    /// Returns the ends of a call that only this canceller cancels. The call has no events and no [`Job`].
    pub(crate) fn of_call(canceller: &Canceller) -> Self {
        // In a child of the process that made the canceller, the call counts as cancelled.
        let cancelled = canceller.0.get().map_or_else(|| watch::channel(true).1, watch::Sender::subscribe);
        let progress = Arc::new(Progress::default());
        Self { events: None, progress, cancel: CancelFlag(cancelled), canceller: canceller.clone() }
    }

    /// Reports the error of a job that could not begin, and ends it.
    pub(crate) fn fail(self, op: Op, error: Error) {
        let Some(events) = self.events else { return };
        let item = Item { attempts: 0, ..Item::new(op, "", Outcome::Failed(error)) };
        // These can't fail, because the channel is empty and has room for both events.
        let _ = events.try_send(Event::Item(item));
        let _ = events.try_send(Event::Done(Summary { failed: 1, ..Summary::default() }));
    }
}

impl CancelFlag {
    pub(crate) fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once the job is cancelled.
    pub(crate) async fn wait(&self) {
        // If the sender is gone, waiting fails. The job was then dropped, and so it counts as cancelled.
        let _ = self.0.clone().wait_for(|cancelled| *cancelled).await;
    }
}
