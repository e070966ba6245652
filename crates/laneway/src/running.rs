//! A running job from inside: what its tasks share, and how it ends. [`Job`](crate::Job) is its owner's handle.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use laneway_lanes::attempts::most;
use laneway_store::{Provider, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::job::{Cancel, Canceller, JobEnds};
use crate::shared::Common;
use crate::state::State;
use crate::{Error, Event, Filter, Item, Location, Op, Outcome, Progress, Summary, Verified, Warning};

/// More groups than the memory budget ever lets be written at once.
const WRITES_MAX: u32 = 1 << 16;

/// What is said where a filter leaves nothing to do.
pub(crate) const FILTERED: &str = "the filters leave nothing of it";

/// What the parts of a job share.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) engine: Arc<State>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) cancel: Cancel,
    purpose: Purpose,
    common: Common,
    /// Set when a cause that all items share has ended the job.
    stopped: AtomicBool,
    canceller: Canceller,
    /// One permit for each group of files that is being written: the job ends only after the last of them.
    writes: Arc<Semaphore>,
    /// One reference for each slice that was asked for and of which nothing has come.
    awaited: Arc<()>,
    events: mpsc::Sender<Event>,
    outcomes: Outcomes,
    started: Instant,
}

/// A slice that was asked for: nothing of it has come until this is dropped.
#[derive(Debug)]
pub(crate) struct Awaited {
    _of_job: Arc<()>,
}

/// What a job is for, as far as what its items are called and counted as depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    Plain,
    /// What is copied is removed from where it was.
    Move,
    /// What is removed is counted apart from what is copied.
    Sync,
}

#[derive(Debug, Default)]
struct Outcomes {
    files: AtomicU64,
    removed: AtomicU64,
    unchanged: AtomicU64,
    asked: AtomicU64,
    failed: AtomicU64,
    skipped: AtomicU64,
    bytes: AtomicU64,
    unverified: AtomicU64,
    kept: AtomicU64,
    archived: Mutex<Archived>,
}

/// Objects that listings named and that lie in archives.
#[derive(Debug, Default)]
struct Archived {
    first: Option<String>,
    count: u64,
}

impl Archived {
    fn add(&mut self, source: &str) {
        self.first.get_or_insert_with(|| source.to_owned());
        self.count += 1;
    }

    /// One for all of them.
    fn warning(&self) -> Option<Warning> {
        let message = match self.count {
            1 => "left out: it lies in an archive and has to be restored first".to_owned(),
            n => format!("left out, one of {n} objects that lie in an archive and have to be restored first"),
        };
        Some(Warning { target: self.first.clone()?, message })
    }
}

/// An item that has begun.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) op: Op,
    pub(crate) source: String,
    pub(crate) destination: Option<String>,
    pub(crate) start: Duration,
    /// Whether the store itself keeps the precondition that was asked for.
    pub(crate) atomic: bool,
    /// Attempts that were counted before the item came to where it ends: `laneway_lanes::attempts` counts those of one
    /// future.
    pub(crate) attempts: u32,
}

/// What an item that ended well has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Moved {
    pub(crate) bytes: u64,
    pub(crate) verified: Verified,
    /// Whether the store itself kept the precondition that was asked for; true where none was.
    pub(crate) atomic: bool,
}

impl Running {
    /// A job in which every item is about what is `common`.
    pub(crate) fn new(engine: Arc<State>, ends: JobEnds, purpose: Purpose, common: Common) -> Arc<Self> {
        let JobEnds { events, progress, cancel, canceller } = ends;
        let stopped = AtomicBool::new(false);
        let (outcomes, started) = (Outcomes::default(), Instant::now());
        let writes = Arc::new(Semaphore::new(WRITES_MAX as usize));
        Arc::new(Self {
            engine,
            progress,
            cancel,
            purpose,
            common,
            stopped,
            canceller,
            writes,
            awaited: Arc::default(),
            events,
            outcomes,
            started,
        })
    }

    /// The store of a provider.
    pub(crate) fn store(&self, provider: Provider) -> Result<&Store, Error> {
        self.engine.store(provider)
    }

    /// Begins an item: of a move, whatever it takes is part of that.
    pub(crate) fn begin(&self, op: Op, source: String, destination: Option<String>) -> Begun {
        let op = if self.purpose == Purpose::Move { Op::Move } else { op };
        Begun { op, source, destination, start: self.engine.now(), atomic: true, attempts: 0 }
    }

    /// Tells an item's end. An item that ended because the job was cancelled is not reported: the summary says it.
    pub(crate) async fn end(&self, mut begun: Begun, bytes_known: u64, result: Result<Moved, Error>) {
        let (bytes, attempts, outcome) = match result {
            Ok(Moved { bytes, verified, atomic }) => {
                begun.atomic = atomic;
                (bytes, begun.attempts.max(most()), Outcome::Done { verified })
            }
            Err(error) if error.is_cancelled() && self.cancel.is_set() => return,
            Err(error) if self.common.is_met_by(&error) => {
                if self.stopped.swap(true, Ordering::Relaxed) {
                    return;
                }
                let attempts = error.attempts();
                // Reported first: who is cancelled while many events wait would not be heard.
                self.tell(begun, bytes_known, attempts, Outcome::Failed(error)).await;
                return self.canceller.cancel();
            }
            Err(error) => (bytes_known, error.attempts(), Outcome::Failed(error)),
        };
        self.tell(begun, bytes, attempts, outcome).await;
    }

    /// The same of an item that a listing named, and no user: one that lies in an archive is left out.
    pub(crate) async fn end_listed(&self, begun: Begun, bytes_known: u64, result: Result<Moved, Error>) {
        match result {
            Err(error) if error.is_archived() => self.skip_archived(begun, bytes_known).await,
            result => self.end(begun, bytes_known, result).await,
        }
    }

    /// Tells that an item was left alone because it lies in an archive.
    pub(crate) async fn skip_archived(&self, begun: Begun, bytes: u64) {
        self.outcomes.archived.lock().unwrap_or_else(|e| e.into_inner()).add(&begun.source);
        self.skip(begun, bytes, "it lies in an archive and has to be restored first").await;
    }

    /// Tells that an item was left alone.
    pub(crate) async fn skip(&self, begun: Begun, bytes: u64, why: &'static str) {
        self.tell(begun, bytes, 0, Outcome::Skipped { why }).await;
    }

    /// Tells what a dry run would have done.
    pub(crate) async fn planned(&self, begun: Begun, bytes: u64) {
        self.tell(begun, bytes, 0, Outcome::Planned).await;
    }

    /// Tells that something can't be done that never became an item.
    pub(crate) async fn fail(&self, op: Op, source: String, destination: Option<String>, error: Error) {
        self.progress.found(1, 0);
        let begun = self.begin(op, source, destination);
        self.end(begun, 0, Err(error)).await;
    }

    /// Counts what is the same on both sides of a sync.
    pub(crate) fn unchanged(&self, n: u64) {
        self.outcomes.unchanged.fetch_add(n, Ordering::Relaxed);
    }

    /// Counts an object that had to be asked for alone.
    pub(crate) fn asked(&self) {
        self.outcomes.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// Says so where a filter has left nothing to do.
    pub(crate) async fn tell_where_nothing_is_left(&self, filter: &Filter, places: &[Location]) {
        if filter.is_empty() || self.progress.items_found() > 0 || self.cancel.is_set() {
            return;
        }
        let target = places.iter().map(Location::to_string).collect::<Vec<_>>().join(", ");
        self.warn(Warning { target, message: FILTERED.to_owned() }).await;
    }

    /// How many items have failed so far.
    pub(crate) fn failed(&self) -> u64 {
        self.outcomes.failed.load(Ordering::Relaxed)
    }

    /// Counts bytes of an item that failed, which stay for a later run.
    pub(crate) fn kept(&self, bytes: u64) {
        self.outcomes.kept.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) async fn warn(&self, warning: Warning) {
        self.send(Event::Warning(warning)).await;
    }

    async fn tell(&self, begun: Begun, bytes: u64, attempts: u32, outcome: Outcome) {
        let outcomes = &self.outcomes;
        match &outcome {
            Outcome::Done { .. } | Outcome::Planned
                if self.purpose == Purpose::Sync && begun.op == Op::Remove =>
            {
                outcomes.removed.fetch_add(1, Ordering::Relaxed);
            }
            Outcome::Done { verified } => {
                outcomes.files.fetch_add(1, Ordering::Relaxed);
                outcomes.bytes.fetch_add(bytes, Ordering::Relaxed);
                if *verified == Verified::Unverified {
                    outcomes.unverified.fetch_add(1, Ordering::Relaxed);
                }
            }
            Outcome::Planned => {
                outcomes.files.fetch_add(1, Ordering::Relaxed);
                outcomes.bytes.fetch_add(bytes, Ordering::Relaxed);
            }
            Outcome::Skipped { .. } => drop(outcomes.skipped.fetch_add(1, Ordering::Relaxed)),
            Outcome::Failed(_) => drop(outcomes.failed.fetch_add(1, Ordering::Relaxed)),
        }
        self.progress.ended();
        let Begun { op, source, destination, start, atomic, .. } = begun;
        let end = self.engine.now();
        self.send(Event::Item(Item {
            op,
            source,
            destination,
            bytes,
            start,
            end,
            attempts,
            atomic,
            outcome,
        }))
        .await;
    }

    async fn send(&self, event: Event) {
        // Nobody listens once the job was dropped, which cancels it too.
        let _ = self.events.send(event).await;
    }

    /// Whether a cause that all items share has ended the job.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whether anybody still takes the job's events.
    pub(crate) fn is_heard(&self) -> bool {
        !self.events.is_closed()
    }

    /// To be held by an operation on a file thread, which goes on when the future that waits for it is dropped.
    pub(crate) async fn writing(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.writes).acquire_owned().await.ok()
    }

    /// Takes note of a slice that is asked for.
    pub(crate) fn awaits(&self) -> Awaited {
        Awaited { _of_job: Arc::clone(&self.awaited) }
    }

    /// Whether of some slice that was asked for nothing has come, since it waits for a lane or for its answer.
    pub(crate) fn is_awaiting(&self) -> bool {
        Arc::strong_count(&self.awaited) > 1
    }

    /// Tells the job's end.
    pub(crate) async fn finish(&self) {
        let _all_written = self.writes.acquire_many(WRITES_MAX).await;
        let search_cut = !self.progress.scan_complete();
        self.progress.scanned();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let archived = self.outcomes.archived.lock().unwrap_or_else(|e| e.into_inner()).warning();
        if let Some(warning) = archived {
            self.warn(warning).await;
        }
        let network = self.progress.tally();
        let summary = Summary {
            files: read(&self.outcomes.files),
            failed: read(&self.outcomes.failed),
            skipped: read(&self.outcomes.skipped),
            removed: read(&self.outcomes.removed),
            unchanged: read(&self.outcomes.unchanged),
            asked: read(&self.outcomes.asked),
            bytes: read(&self.outcomes.bytes),
            seconds: self.started.elapsed().as_secs_f64(),
            network_bytes: network.bytes_sent() + network.bytes_received(),
            connections: network.connections(),
            handshakes: network.handshakes(),
            requests: network.requests(),
            retries: network.retries(),
            hedges: network.hedges(),
            unverified: read(&self.outcomes.unverified),
            kept_bytes: read(&self.outcomes.kept),
            resumed_bytes: self.progress.bytes_there(),
            stopped: self.is_stopped(),
            not_done: self.progress.items_found().saturating_sub(self.progress.items_done()),
            search_cut,
            interrupted: self.cancel.is_set() && !self.is_stopped(),
        };
        self.send(Event::Done(summary)).await;
    }

    /// Waits for `future` unless the job is cancelled first; the future is dropped then.
    ///
    /// # Errors
    /// `ErrorKind::Cancelled`.
    pub(crate) async fn unless_cancelled<T>(&self, future: impl Future<Output = T>) -> Result<T, Error> {
        tokio::select! {
            biased;
            () = self.cancel.wait() => Err(Error::cancelled("")),
            done = future => Ok(done),
        }
    }
}
