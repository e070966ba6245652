//! A running job, as its owner sees it.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use crate::fork::OfProcess;
use crate::{Error, Event, Item, Op, Outcome, Progress, Summary};

/// How many events wait for a job's owner before the job does.
const EVENTS_WAITING_MAX: usize = 1024;

/// A job under way. Its events have to be taken, or it waits; dropping it cancels it. It belongs to its process: a child of a
/// `fork` has no more events of it, and can't cancel it.
#[derive(Debug)]
pub struct Job {
    /// `None` where nobody takes any.
    events: Option<OfProcess<mpsc::Receiver<Event>>>,
    progress: Arc<Progress>,
    canceller: Canceller,
}

/// Cancels a job, from any thread.
#[derive(Clone, Debug)]
pub struct Canceller(Arc<OfProcess<watch::Sender<bool>>>);

/// The job's own ends of a [`Job`].
#[derive(Debug)]
pub(crate) struct JobEnds {
    pub(crate) events: Option<mpsc::Sender<Event>>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) cancel: Cancel,
    pub(crate) canceller: Canceller,
}

/// What the parts of a job look at to see whether it was cancelled.
#[derive(Clone, Debug)]
pub(crate) struct Cancel(watch::Receiver<bool>);

impl Job {
    pub(crate) fn new() -> (Self, JobEnds) {
        let (sender, events) = mpsc::channel(EVENTS_WAITING_MAX);
        let (mut job, mut ends) = Self::unheard();
        (job.events, ends.events) = (Some(OfProcess::new(events)), Some(sender));
        (job, ends)
    }

    /// A job that tells no events, such as a single call. A channel for them would take 5 KB.
    pub(crate) fn unheard() -> (Self, JobEnds) {
        let (cancel, cancelled) = watch::channel(false);
        let progress = Arc::new(Progress::default());
        let canceller = Canceller(Arc::new(OfProcess::new(cancel)));
        let job = Self { events: None, progress: Arc::clone(&progress), canceller: canceller.clone() };
        (job, JobEnds { events: None, progress, cancel: Cancel(cancelled), canceller })
    }

    /// The next event; `None` after [`Event::Done`].
    pub async fn next(&mut self) -> Option<Event> {
        self.events.as_mut()?.get_mut()?.recv().await
    }

    /// Like [`next`](Self::next), blocking the thread. Not to be called on a thread that runs async tasks.
    pub fn next_blocking(&mut self) -> Option<Event> {
        self.events.as_mut()?.get_mut()?.blocking_recv()
    }

    /// How far the job is.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// What cancels the job: no new item begins, those under way are given up, temporary files are removed and unfinished
    /// uploads aborted (see [`CopyRequest::keep_partial`](crate::CopyRequest::keep_partial)); the last event is
    /// [`Event::Done`] with [`interrupted`](crate::Summary::interrupted).
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.canceller.cancel();
    }
}

impl Canceller {
    /// Cancels the job. Returns at once; the job's last event says when it has ended.
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
        // There is room for both.
        let _ = events.try_send(Event::Item(item));
        let _ = events.try_send(Event::Done(Summary { failed: 1, ..Summary::default() }));
    }
}

impl Cancel {
    /// Whether the job was cancelled.
    pub(crate) fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once the job is cancelled.
    pub(crate) async fn wait(&self) {
        // Without a sender nobody can cancel any more, which is what dropping the job does after cancelling.
        let _ = self.0.clone().wait_for(|cancelled| *cancelled).await;
    }
}
