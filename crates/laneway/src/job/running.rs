//! The state that the tasks of a running job share. Its methods report how the items and the job have ended.
//! [`Job`](crate::Job) is the caller's handle.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use laneway_lanes::attempts::most;
use laneway_store::{Checksums, List, ObjectMeta, Provider, Store, Version};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::engine::settings::ClientState;
use crate::job::{CancelFlag, Canceller, CommonBuckets, JobEnds, Remarks};
use crate::manifest::{JobManifest, Manifest, ManifestRecord, ManifestSubject, Targets};
use crate::{Error, Event, Filter, Item, Location, Op, Outcome, Progress, Summary, Verified, Warning};

/// The number of permits for groups of files that are being written. This number is never reached, because
/// the memory limit allows fewer groups. To wait for all groups, the job acquires all permits.
const WRITES_MAX: u32 = 1 << 16;

/// The maximum number of requests that a job sends to find out why objects are missing.
const EXPLAINED_MAX: u64 = 16;

/// The warning if the filters exclude every item.
pub(crate) const FILTERED: &str = "nothing passes the filters";

/// The reason with which a job skips an item that the manifest lists as done.
const DONE_BEFORE: &str = "it is done, according to the manifest";

/// The state that the tasks of a job share.
#[derive(Debug)]
pub(crate) struct JobState {
    pub(crate) engine: Arc<ClientState>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) cancel: CancelFlag,
    purpose: Purpose,
    common: CommonBuckets,
    /// Set when the job has ended early, because of an error that affects all items or the manifest.
    stopped: AtomicBool,
    /// True if the removal of an object that doesn't exist counts as done (`rm -f`).
    takes_missing: AtomicBool,
    canceller: Canceller,
    /// Each group of files that is being written holds one of these permits. So the job can wait for the last
    /// group before it ends.
    writes: Arc<Semaphore>,
    events: Option<mpsc::Sender<Event>>,
    outcomes: Outcomes,
    started: Instant,
    /// The manifest that records each item's outcome, if the request names one.
    manifest: OnceLock<JobManifest>,
}

/// The purpose of a job. It determines the operation under which the job's items are reported, and the totals
/// that count them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    Plain,
    /// Each item is copied, then removed at its source.
    Move,
    /// Items are copied or removed. The summary counts copies and removals separately.
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
    /// The number of missing objects so far. The job looks for the reason only for the first
    /// [`EXPLAINED_MAX`] of them.
    explained: AtomicU64,
    kept: AtomicU64,
    remarks: Mutex<Remarks>,
}

#[derive(Debug)]
pub(crate) struct ActiveItem {
    pub(crate) op: Op,
    pub(crate) source: String,
    pub(crate) destination: Option<String>,
    pub(crate) start: Duration,
    /// True if there is no precondition, or if the store itself enforces it.
    pub(crate) atomic: bool,
    /// The number of attempts that earlier futures of this item counted. `laneway_lanes::attempts` counts
    /// only the attempts of the future that ends the item.
    pub(crate) attempts: u32,
    /// The version or modification time that the source had when the search found it, if the job writes a
    /// manifest.
    pub(crate) state: Option<SourceState>,
    /// If a file lists the item, the position of its line, as `FILE:LINE`.
    pub(crate) line: Option<Box<str>>,
}

/// The state of a source. A later run compares it, to detect that the source has changed. It consists of the
/// size and either an object's version or a file's modification time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SourceState {
    text: String,
    size: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TransferOutcome {
    pub(crate) bytes: u64,
    pub(crate) verified: Verified,
    /// True if the store itself enforced the precondition, or if there was none.
    pub(crate) atomic: bool,
    pub(crate) made: ResultObject,
}

/// The version and checksums of the object that an item wrote, or that it downloaded to a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct ResultObject {
    pub(crate) version: Option<Version>,
    pub(crate) checksums: Checksums,
    /// The version of the item's source, if the source is in a store.
    pub(crate) source: Option<Version>,
}

impl ResultObject {
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        Self { version: meta.version.clone(), checksums: meta.checksums.clone(), source: None }
    }
}

impl JobState {
    /// Returns the state of a new job. All of the job's items use the buckets in `common`.
    pub(crate) fn new(
        engine: Arc<ClientState>,
        ends: JobEnds,
        purpose: Purpose,
        common: CommonBuckets,
    ) -> Arc<Self> {
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
            takes_missing: AtomicBool::new(false),
            canceller,
            writes,
            events,
            outcomes,
            started,
            manifest: OnceLock::new(),
        })
    }

    pub(crate) fn store(&self, provider: Provider) -> Result<&Store, Error> {
        self.engine.store(provider)
    }

    /// Begins an item. In a move, copies and removals are reported with the operation `move`.
    pub(crate) fn begin(&self, op: Op, source: String, destination: Option<String>) -> ActiveItem {
        let op = if self.purpose == Purpose::Move { Op::Move } else { op };
        ActiveItem {
            op,
            source,
            destination,
            start: self.engine.now(),
            atomic: true,
            attempts: 0,
            state: None,
            line: None,
        }
    }

    /// Returns a digest of the settings that determine properties of new objects, such as their encryption
    /// key. For a local destination, the digest is empty.
    pub(crate) fn added_at(&self, destination: &Location) -> String {
        match destination {
            Location::Object { provider, .. } => {
                self.store(*provider).map(Store::fingerprint).unwrap_or_default()
            }
            Location::Local(_) | Location::Version { .. } | Location::Standard => String::new(),
        }
    }

    /// Opens the manifest. From then on, the job records each item's outcome in it, and skips items that the
    /// manifest lists as done.
    ///
    /// # Errors
    /// If the file isn't a manifest of this job.
    pub(crate) async fn keep_manifest(
        &self,
        manifest: Option<&Manifest>,
        subject: ManifestSubject,
        dry_run: bool,
    ) -> Result<(), Error> {
        self.keep_manifest_taking(Targets::default(), manifest, subject, dry_run).await
    }

    /// Does the same as [`keep_manifest`](Self::keep_manifest) for a job that moves or removes the objects or
    /// files at these targets.
    ///
    /// # Errors
    /// Fails as [`keep_manifest`](Self::keep_manifest) does.
    pub(crate) async fn keep_manifest_taking(
        &self,
        targets: Targets,
        manifest: Option<&Manifest>,
        subject: ManifestSubject,
        dry_run: bool,
    ) -> Result<(), Error> {
        let Some(manifest) = manifest.cloned() else { return Ok(()) };
        let target = match &manifest {
            Manifest::File(path) => path.display().to_string(),
            Manifest::Run(_) => String::new(),
        };
        let subject = subject.at(self.engine.providers(), |provider| {
            self.store(provider).map(Store::endpoint).unwrap_or_default()
        });
        let (kept, warning) =
            JobManifest::begin(manifest, subject, targets, dry_run, &self.engine.files).await?;
        // This can't fail, because a job opens at most one manifest.
        let _ = self.manifest.set(kept);
        if let Some(message) = warning {
            self.warn(Warning { target, message }).await;
        }
        Ok(())
    }

    pub(crate) fn has_manifest(&self) -> bool {
        self.manifest.get().is_some()
    }

    /// Returns the state of a listed object, or `None` if the job has no manifest to record it.
    pub(crate) fn state_of(&self, version: Option<&Version>, size: u64) -> Option<SourceState> {
        self.manifest.get()?;
        Some(SourceState { text: version?.to_string(), size })
    }

    /// Returns the state of a file that the search found, or `None` if the job has no manifest to record it.
    pub(crate) fn state_of_file(&self, modified: Option<SystemTime>, size: u64) -> Option<SourceState> {
        self.manifest.get()?;
        // A file from before 1970 gets no state, so a later run always sends it again.
        let since = modified?.duration_since(UNIX_EPOCH).ok()?;
        Some(SourceState { text: format!("modified {}.{:09}", since.as_secs(), since.subsec_nanos()), size })
    }

    /// Returns the item for [`skip_done`](Self::skip_done), if the manifest lists it as done and its source
    /// hasn't changed since. Only plain copies and removals use the manifest in this way. A sync compares
    /// source and destination instead. A move has removed the source of each finished item, so a source that
    /// exists is a new one.
    pub(crate) fn done_before(&self, begin: impl FnOnce() -> ActiveItem) -> Option<ActiveItem> {
        let manifest = self.manifest.get().filter(|_| self.purpose == Purpose::Plain)?;
        let begun = begin();
        let SourceState { text, size } = begun.state.as_ref()?;
        let is_done = manifest.has_done((&begun.source, begun.destination.as_deref()), (text, *size));
        is_done.then_some(begun)
    }

    /// Returns whether the manifest records that this version of the destination was written from the source
    /// in its current state.
    pub(crate) fn has_made(&self, begun: &ActiveItem, version: Option<&Version>) -> bool {
        let (Some(manifest), Some(state), Some(version)) = (self.manifest.get(), &begun.state, version)
        else {
            return false;
        };
        let ends = (begun.source.as_str(), begun.destination.as_deref());
        manifest.has_made(ends, (&state.text, state.size), version)
    }

    /// Returns whether the manifest has an entry for a source that the request names. If it has one, the
    /// caller requests the source's current state.
    pub(crate) fn is_known(&self, source: &str) -> bool {
        self.purpose == Purpose::Plain && self.manifest.get().is_some_and(|manifest| manifest.has(source))
    }

    /// Reports an item as skipped, because the manifest lists it as done.
    pub(crate) async fn skip_done(&self, begun: ActiveItem, bytes: u64) {
        self.skip(begun, bytes, DONE_BEFORE).await;
    }

    /// Returns whether the manifest explains why an object is missing: an earlier run removed or moved it.
    fn was_removed(&self, begun: &ActiveItem, error: &Error) -> bool {
        let removes = matches!(begun.op, Op::Move | Op::Remove);
        removes
            && error.is_not_found()
            && error.url().is_none_or(|about| about == begun.source)
            && self
                .manifest
                .get()
                .is_some_and(|manifest| manifest.has(&begun.source) || manifest.has_taken(&begun.source))
    }

    /// Makes the removal of an object that doesn't exist count as done.
    pub(crate) fn takes_missing(&self) {
        self.takes_missing.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_missing_fine(&self) -> bool {
        self.takes_missing.load(Ordering::Relaxed)
    }

    /// Returns whether a failed removal counts as done, because the object doesn't exist.
    fn is_fine(&self, begun: &ActiveItem, error: &Error) -> bool {
        let is_object = error.is_not_found() && !error.is_about_bucket();
        self.is_missing_fine() && begun.op == Op::Remove && is_object
    }

    /// If a named object is missing, looks for the reason and adds it to the error. The name may be a pattern
    /// without matches, or a prefix of other objects.
    async fn explained(&self, begun: &ActiveItem, error: Error) -> Error {
        let is_named =
            matches!(begun.op, Op::Download | Op::Copy | Op::Move | Op::Remove | Op::SetMeta | Op::Restore);
        let is_it = is_named && error.url() == Some(&*begun.source) && !error.is_about_bucket();
        if !error.is_not_found() || error.as_store().is_none() || !is_it {
            return error;
        }
        let Ok(at) = begun.source.parse::<Location>() else { return error };
        let Location::Object { provider, bucket, key } = &at else { return error };
        if at.is_pattern() {
            return Error::not_found("", format!("no objects match {}", begun.source))
                .after(error.attempts());
        }
        let Ok(store) = self.store(*provider) else { return error };
        if self.outcomes.explained.fetch_add(1, Ordering::Relaxed) >= EXPLAINED_MAX {
            return error;
        }
        let below = List { max: Some(1), ..List::new(bucket, format!("{}/", key.trim_end_matches('/'))) };
        match store.list(&below).await {
            Ok(page) if !page.objects.is_empty() => {
                let why = "is a prefix with objects below it; use -r";
                Error::not_found(begun.source.clone(), why).after(error.attempts())
            }
            _ => error,
        }
    }

    /// Reports the end of an item. If the item ended because the job was cancelled, reports nothing: the
    /// summary counts it as not done.
    pub(crate) async fn end(
        &self,
        mut begun: ActiveItem,
        bytes_known: u64,
        result: Result<TransferOutcome, Error>,
    ) {
        let mut made = ResultObject::default();
        let result = result.map_err(|error| error.of_line(begun.line.take()));
        let (bytes, attempts, outcome) = match result {
            Ok(moved) => {
                begun.atomic = moved.atomic;
                begun.state = begun.state.or_else(|| self.state_of(moved.made.source.as_ref(), moved.bytes));
                made = moved.made;
                (moved.bytes, begun.attempts.max(most()), Outcome::Done { verified: moved.verified })
            }
            Err(error) if self.was_removed(&begun, &error) => {
                return self.skip_done(begun, bytes_known).await;
            }
            Err(error) if self.is_fine(&begun, &error) => {
                (0, error.attempts(), Outcome::Done { verified: Verified::NotApplicable })
            }
            Err(error) if error.is_cancelled() && self.cancel.is_set() => return,
            Err(error) if self.common.is_met_by(&error) => {
                if self.stopped.swap(true, Ordering::Relaxed) {
                    return;
                }
                let attempts = error.attempts();
                // Report the error before cancelling the job. A cancelled job doesn't wait for the caller to
                // take events, so the error could be lost.
                self.tell(begun, bytes_known, attempts, Outcome::Failed(error), &made).await;
                return self.canceller.cancel();
            }
            Err(error) => {
                let error = self.explained(&begun, error).await;
                (bytes_known, error.attempts(), Outcome::Failed(error))
            }
        };
        self.tell(begun, bytes, attempts, outcome, &made).await;
    }

    /// Does the same as [`end`](Self::end) for an item that a listing found. If its object lies in an
    /// archive, reports it as skipped, not as failed.
    pub(crate) async fn end_listed(
        &self,
        begun: ActiveItem,
        bytes_known: u64,
        result: Result<TransferOutcome, Error>,
    ) {
        match result {
            Err(error) if error.is_archived() => self.skip_archived(begun, bytes_known).await,
            result => self.end(begun, bytes_known, result).await,
        }
    }

    /// Reports an item as skipped, because its object lies in an archive.
    pub(crate) async fn skip_archived(&self, begun: ActiveItem, bytes: u64) {
        self.remarks().archived(&begun.source);
        self.skip(begun, bytes, "it is archived; restore it first").await;
    }

    pub(crate) async fn skip(&self, begun: ActiveItem, bytes: u64, why: &'static str) {
        self.tell(begun, bytes, 0, Outcome::Skipped { why }, &ResultObject::default()).await;
    }

    /// Reports, in a dry run, an item that a real run would begin.
    pub(crate) async fn planned(&self, begun: ActiveItem, bytes: u64) {
        self.tell(begun, bytes, 0, Outcome::Planned, &ResultObject::default()).await;
    }

    /// Reports a failure that happened before an item could begin.
    pub(crate) async fn fail(&self, op: Op, source: String, destination: Option<String>, error: Error) {
        self.progress.found(1, 0);
        let begun = self.begin(op, source, destination);
        self.end(begun, 0, Err(error)).await;
    }

    /// Counts items that a sync found equal on both sides.
    pub(crate) fn unchanged(&self, n: u64) {
        self.outcomes.unchanged.fetch_add(n, Ordering::Relaxed);
    }

    /// Counts an object whose metadata a sync requested separately, because the listing wasn't enough.
    pub(crate) fn asked(&self) {
        self.outcomes.asked.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) async fn tell_where_nothing_is_left(&self, filter: &Filter, places: &[Location]) {
        if filter.is_empty() || self.progress.items_found() > 0 || self.cancel.is_set() {
            return;
        }
        let target = places.iter().map(Location::to_string).collect::<Vec<_>>().join(", ");
        self.warn(Warning { target, message: FILTERED.to_owned() }).await;
    }

    /// Returns how many items have failed so far.
    pub(crate) fn failed(&self) -> u64 {
        self.outcomes.failed.load(Ordering::Relaxed)
    }

    /// Counts the transferred bytes of a failed item that are kept for a later run.
    pub(crate) fn kept(&self, bytes: u64) {
        self.outcomes.kept.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) async fn warn(&self, warning: Warning) {
        self.send(Event::Warning(warning)).await;
    }

    async fn tell(
        &self,
        begun: ActiveItem,
        bytes: u64,
        attempts: u32,
        outcome: Outcome,
        made: &ResultObject,
    ) {
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
        let end = self.engine.now();
        self.record(&begun, (bytes, end), attempts, &outcome, made).await;
        let ActiveItem { op, source, destination, start, atomic, .. } = begun;
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

    /// Records an item's outcome in the manifest. If the manifest can't be written, stops the job.
    async fn record(
        &self,
        begun: &ActiveItem,
        (size, end): (u64, Duration),
        attempts: u32,
        outcome: &Outcome,
        made: &ResultObject,
    ) {
        let Some(manifest) = self.manifest.get() else { return };
        let record = ManifestRecord {
            command: None,
            op: begun.op.name(),
            source: &begun.source,
            destination: begun.destination.as_deref(),
            size,
            state: begun.state.as_ref().map(|state| state.text.as_str()),
            source_size: begun.state.as_ref().map_or(size, |state| state.size),
            version: made.version.as_ref(),
            checksums: &made.checksums,
            attempts,
            seconds: end.saturating_sub(begun.start).as_secs_f64(),
            outcome,
        };
        if let Err(error) = manifest.record(record).await {
            self.stop_by(error).await;
        }
    }

    /// Reports an error that concerns no single item, and stops the job.
    async fn stop_by(&self, error: Error) {
        if self.stopped.swap(true, Ordering::Relaxed) {
            return;
        }
        self.outcomes.failed.fetch_add(1, Ordering::Relaxed);
        let source = error.url().unwrap_or_default().to_owned();
        let item = Item { attempts: 0, ..Item::new(Op::Copy, source, Outcome::Failed(error)) };
        self.send(Event::Item(item)).await;
        self.canceller.cancel();
    }

    async fn send(&self, event: Event) {
        // Sending fails only if the job was dropped, which also cancels it.
        if let Some(events) = &self.events {
            let _ = events.send(event).await;
        }
    }

    /// Returns whether the job has ended early, because of an error that affects all items or the manifest.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Returns whether the caller still has the [`Job`](crate::Job) and can take its events.
    pub(crate) fn is_heard(&self) -> bool {
        self.events.as_ref().is_some_and(|events| !events.is_closed())
    }

    /// Returns a permit for an operation on a file thread. The operation continues even if the future that
    /// waits for it is dropped. So the job ends only after the permit is returned.
    pub(crate) async fn writing(&self) -> Option<OwnedSemaphorePermit> {
        // This can't fail, because the semaphore is never closed.
        Arc::clone(&self.writes).acquire_owned().await.ok()
    }

    /// Returns the items for the warnings that the job reports at its end.
    pub(crate) fn remarks(&self) -> MutexGuard<'_, Remarks> {
        self.outcomes.remarks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all files are written, and reports the job's end with its summary.
    pub(crate) async fn finish(&self) {
        let _all_written = self.writes.acquire_many(WRITES_MAX).await;
        if let Some(manifest) = self.manifest.get()
            && let Err(error) = manifest.end().await
        {
            self.stop_by(error).await;
        }
        let search_cut = !self.progress.scan_complete();
        self.progress.scanned();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let remarks = self.remarks().warnings();
        for warning in remarks {
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

    /// Waits for `future`, or drops it if the job is cancelled first.
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
