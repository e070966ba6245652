//! A running job: its owner's handle, the searches that find its items, and the counts of their outcomes.

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

/// Number of events that may wait for a job's owner. Beyond this number, the job waits.
const EVENTS_WAITING_MAX: usize = 1024;

/// A running job: a stream of its events. The job waits if its owner doesn't take its events. Dropping it cancels the job. In the
/// child of a `fork`, a job of the parent has no more events and can't be cancelled.
#[derive(Debug)]
pub struct Job {
    /// `None` for a job without events.
    events: Option<OfProcess<mpsc::Receiver<Event>>>,
    progress: Arc<Progress>,
    canceller: Canceller,
}

/// Cancels a job, from any thread.
#[derive(Clone, Debug)]
pub struct Canceller(Arc<OfProcess<watch::Sender<bool>>>);

/// The job's side of the channels of a [`Job`].
#[derive(Debug)]
pub(crate) struct JobEnds {
    pub(crate) events: Option<mpsc::Sender<Event>>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) cancel: Cancel,
    pub(crate) canceller: Canceller,
}

/// Tells the tasks of a job whether the job was cancelled.
#[derive(Clone, Debug)]
pub(crate) struct Cancel(watch::Receiver<bool>);

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
        (job, JobEnds { events: None, progress, cancel: Cancel(cancelled), canceller })
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

    /// Returns a handle that cancels the job. After that, no item begins, and items under way are abandoned.
    /// Temporary files are removed and unfinished uploads aborted (see
    /// [`CopyRequest::keep_partial`](crate::CopyRequest::keep_partial)). The last event is [`Event::Done`]
    /// with [`interrupted`](crate::Summary::interrupted).
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

impl Canceller {
    /// Cancels the job and returns at once. The job's last event reports when it has ended.
    pub fn cancel(&self) {
        if let Some(cancel) = self.0.get() {
            cancel.send_replace(true);
        }
    }
}

impl JobEnds {
    /// Ends a job that could not begin.
    pub(crate) fn fail(self, op: Op, error: Error) {
        let Some(events) = self.events else { return };
        let item = Item { attempts: 0, ..Item::new(op, "", Outcome::Failed(error)) };
        // The channel has room for both.
        let _ = events.try_send(Event::Item(item));
        let _ = events.try_send(Event::Done(Summary { failed: 1, ..Summary::default() }));
    }
}

impl Cancel {
    pub(crate) fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once the job is cancelled.
    pub(crate) async fn wait(&self) {
        // If the sender is gone, the job was dropped, which cancels it. So returning is right then too.
        let _ = self.0.clone().wait_for(|cancelled| *cancelled).await;
    }
}
