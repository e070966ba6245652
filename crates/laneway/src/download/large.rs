//! A large object into a file: slices in parallel, an opening stream among them where the store has to be asked first.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, Fuse, FutureExt};
use futures_util::stream::FuturesUnordered;
use laneway_store::{Get, GetSink, Got, ObjectId, ObjectMeta, Store};

use super::composite;
use super::opening::{Destination, Large, Opened, Opening};
use super::range_writer::{Into, Pinned, RangeWriter};
use crate::checksum::{Crc, Run, Wanted};
use crate::event::Verified;
use crate::folder::{Place, Placing, Staged};
use crate::location::url;
use crate::plan::requests_at_once;
use crate::plan::slices::is_sliced;
use crate::running::{Moved, Running};
use crate::second_try::log_second_try;
use crate::{CopyRequest, Error, Version};

/// What an item's download left behind.
pub(crate) struct Fetched {
    pub(crate) moved: Moved,
    pub(crate) version: Option<Version>,
}

/// Fetches an object into a file at `place`: all of it into memory if it has at most `collect_max` bytes (which the
/// caller has reserved), else slice by slice, going on where an earlier run was interrupted.
///
/// # Errors
/// What the store or the file system says; the destination is as it was then.
pub(crate) async fn fetch(
    job: &Running,
    request: &CopyRequest,
    store: &Store,
    id: &ObjectId,
    known: Option<Box<ObjectMeta>>,
    place: Place,
    collect_max: u64,
) -> Result<Fetched, Error> {
    match fetch_once(job, request, store, id, known.clone(), place.clone(), collect_max).await {
        Err(error) if error.is_mismatch() => {
            log_second_try(&error);
            // Of an object whose size was not known before, the second try finds it once more.
            job.progress.taken_back(known.as_ref().map_or(0, |meta| meta.size));
            let again = Box::pin(fetch_once(job, request, store, id, known, place, collect_max));
            let Fetched { moved, version } = again.await.map_err(Error::for_good)?;
            Ok(Fetched { moved: Moved { attempts: moved.attempts + 1, ..moved }, version })
        }
        fetched => fetched,
    }
}

async fn fetch_once(
    job: &Running,
    request: &CopyRequest,
    store: &Store,
    id: &ObjectId,
    known: Option<Box<ObjectMeta>>,
    place: Place,
    collect_max: u64,
) -> Result<Fetched, Error> {
    let in_flight = requests_at_once(job.engine.cores);
    let destination = Destination { place, source: url(store.provider(), id), in_flight };
    let rest = Rest { job, request, store, id, runs: BTreeMap::new(), attempts: 1, in_flight };
    // With the state and a checksum known nothing has to be asked first.
    let is_planned =
        known.as_ref().is_some_and(|meta| meta.version.is_some() && Crc::given_in(&meta.checksums).is_some());
    if let Some(meta) = known.clone().filter(|_| is_planned) {
        return rest.fetch_planned(meta, destination).await;
    }
    let at = destination.clone();
    // Of an object that a listing has shown to be large others are likely to be under way: one more request, which waits
    // for none of them, tells what an unranged one would, and that one's connection would have to be closed where the
    // slices begin.
    let is_listed = known.as_ref().is_some_and(|meta| is_sliced(meta.size));
    if is_listed || job.engine.files.run(move || at.place.is_begun(&at.source)).await? {
        // An unranged first request would begin to bring again what is there.
        let version = known.as_ref().and_then(|meta| meta.version.as_ref());
        let meta = job.unless_cancelled(store.head(id, version)).await??;
        if known.is_none() {
            job.progress.sized(meta.size);
        }
        return rest.fetch_planned(Box::new(meta), destination).await;
    }
    let is_size_known = known.is_some();
    let progress = Arc::clone(&job.progress);
    let memory = job.engine.lanes.memory().clone();
    let (opening, mut announced) =
        Opening::new(destination.clone(), collect_max, memory, is_size_known, progress);
    let sink = || -> Box<dyn GetSink> { Box::new(opening.sink()) };
    let hedge = || opening.hedge();
    let get = Get {
        id,
        range: None,
        version: known.as_ref().and_then(|meta| meta.version.as_ref()),
        unless: None,
        expected: known.as_ref().map(|meta| meta.size),
        size: known.as_ref().map(|meta| meta.size),
        sink: Some(&sink),
        hedge: Some(&hedge),
        breaks: None,
    };
    let _unfinished = EndOnDrop { job, request, opening: Arc::clone(&opening) };
    let mut stream = store.get(get).boxed().fuse();
    let cancelled = job.cancel.wait();
    let ended = tokio::select! {
        biased;
        () = cancelled => return Err(Error::cancelled(url(store.provider(), id))),
        Ok(large) = &mut announced => return rest.fetch(large, Some((stream, &opening))).await,
        ended = &mut stream => ended,
    };
    match opening.end() {
        Some(Opened::Described(meta)) if ended.is_ok() => rest.fetch_described(meta, destination).await,
        opened => rest.finish_opening(ended, opened, destination.place).await,
    }
}

/// The download of what an opening stream doesn't bring.
struct Rest<'a> {
    job: &'a Running,
    request: &'a CopyRequest,
    store: &'a Store,
    id: &'a ObjectId,
    /// What has come, by its first byte.
    runs: BTreeMap<u64, Run>,
    attempts: u32,
    in_flight: usize,
}

type Stream<'s> = Fuse<BoxFuture<'s, Result<Got, laneway_store::Error>>>;

impl Rest<'_> {
    /// The opening stream ended before anybody heard of a large object.
    async fn finish_opening(
        mut self,
        ended: Result<Got, laneway_store::Error>,
        opened: Option<Opened>,
        place: Place,
    ) -> Result<Fetched, Error> {
        match opened {
            Some(Opened::Collected(meta, bytes)) => {
                let attempts = ended.map_or_else(
                    |e| if e.is_interrupted() { Ok(e.attempts() + 1) } else { Err(e) },
                    |got| Ok(got.attempts),
                )?;
                self.attempts = self.attempts.max(attempts);
                let bytes = self.complete(&meta, bytes).await?;
                let (version, attempts, provider) =
                    (meta.version.clone(), self.attempts, self.store.provider());
                let (permit, placing) = (self.job.writing().await, self.request.placing());
                let write = move || {
                    let _permit = permit;
                    store_small(&url(provider, &meta.id), &meta, &bytes, &place, placing)
                };
                let moved = self.job.engine.files.run(write).await??;
                Ok(Fetched { moved: Moved { attempts, ..moved }, version })
            }
            Some(Opened::Head(large, run)) => {
                let staged = Arc::clone(&large.staged);
                match self.opener_ended(ended, run) {
                    Ok(()) => self.fetch(large, None).await,
                    Err(error) => Err(keep(self.job, &staged, self.request, error)),
                }
            }
            Some(Opened::Described(_)) | None => match ended {
                Err(e) => Err(e.into()),
                Ok(_) => Err(Error::integrity(url(self.store.provider(), self.id), "the answer has no body")),
            },
        }
    }

    /// Fetches what is missing of a small object whose stream broke.
    async fn complete(&self, meta: &ObjectMeta, mut bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        let have = bytes.len() as u64;
        if have < meta.size {
            let rest = Vec::with_capacity((meta.size - have) as usize);
            let progress = Arc::clone(&self.job.progress);
            let writer = RangeWriter::new(
                have..meta.size,
                Pinned::of(meta),
                Wanted::default(),
                Into::Memory(rest),
                progress,
            );
            self.pinned(meta)?;
            writer.bring(self.store, self.id).await?;
            bytes.append(&mut writer.finish().1);
        }
        Ok(bytes)
    }

    /// Going on in the middle is safe only in the same state of the object.
    fn pinned(&self, meta: &ObjectMeta) -> Result<Pinned, Error> {
        if meta.version.is_none() {
            let message = "the connection broke, and without a version the store can't be asked for the rest";
            return Err(Error::integrity(url(self.store.provider(), self.id), message));
        }
        Ok(Pinned::of(meta))
    }

    fn opener_ended(&mut self, ended: Result<Got, laneway_store::Error>, run: Run) -> Result<(), Error> {
        match ended {
            Ok(got) => self.attempts = self.attempts.max(got.attempts),
            Err(e) if e.is_interrupted() => self.attempts += 1,
            Err(e) => return Err(e.into()),
        }
        if run.len > 0 {
            self.runs.insert(0, run);
        }
        Ok(())
    }

    /// Fetches an object of which everything is known that has to be.
    async fn fetch_planned(self, meta: Box<ObjectMeta>, to: Destination) -> Result<Fetched, Error> {
        let cancel = self.job.cancel.clone();
        let prepare = move || Large::planned(meta, &to, &|| cancel.is_set());
        let large = self.job.engine.files.run(prepare).await??;
        self.fetch(large, None).await
    }

    /// Fetches an object of which the opening stream has brought only the metadata.
    async fn fetch_described(self, meta: Box<ObjectMeta>, to: Destination) -> Result<Fetched, Error> {
        if meta.version.is_some() {
            return self.fetch_planned(meta, to).await;
        }
        // What can't be pinned comes in one answer; its size alone makes that bulk from the start.
        let size = Some(Box::new(ObjectMeta::new(self.id.clone(), meta.size)));
        Box::pin(fetch_once(self.job, self.request, self.store, self.id, size, to.place, 0)).await
    }

    /// Fetches slices beside the opening stream, if that still runs, until every byte is there.
    async fn fetch(
        self,
        large: Large,
        opener: Option<(Stream<'_>, &Arc<Opening>)>,
    ) -> Result<Fetched, Error> {
        let (job, request, staged) = (self.job, self.request, Arc::clone(&large.staged));
        let _unfinished = Unfinished { job, request, staged: Arc::clone(&staged) };
        self.bring(large, opener).await.map_err(|error| keep(job, &staged, request, error))
    }

    async fn bring(
        mut self,
        large: Large,
        opener: Option<(Stream<'_>, &Arc<Opening>)>,
    ) -> Result<Fetched, Error> {
        for (start, run) in &large.done {
            self.job.progress.there(run.len);
            self.runs.insert(*start, *run);
        }
        let mut slices = FuturesUnordered::new();
        let (mut stream, opening) = match opener {
            Some((stream, opening)) => (stream, Some(opening)),
            None => (Fuse::terminated(), None),
        };
        let mut is_opening = opening.is_some();
        let (job, store, id) = (self.job, self.store, self.id);
        let bring = |range: std::ops::Range<u64>, pinned: Pinned| {
            let into = Into::File(Arc::clone(&large.staged));
            let progress = Arc::clone(&job.progress);
            let writer = RangeWriter::new(range.clone(), pinned, large.wanted, into, progress);
            async move {
                let attempts = writer.bring(store, id).await?;
                Ok::<_, Error>((range.start, writer.finish().0, attempts))
            }
        };
        let mut cancelled = std::pin::pin!(job.cancel.wait());
        loop {
            let at_once = if large.is_shared { self.in_flight } else { 1 };
            while slices.len() + usize::from(is_opening) < at_once {
                let Some(range) = large.slices().claim() else { break };
                slices.push(bring(range, self.pinned(&large.meta)?));
            }
            if !is_opening && slices.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                () = &mut cancelled => return Err(Error::cancelled(url(store.provider(), id))),
                ended = &mut stream, if is_opening => {
                    is_opening = false;
                    if let Some(Opened::Head(_, run)) = opening.and_then(|opening| opening.end()) {
                        self.opener_ended(ended, run)?;
                    }
                }
                Some(slice) = slices.next(), if !slices.is_empty() => {
                    let (start, run, attempts) = slice?;
                    self.attempts = self.attempts.max(attempts);
                    self.runs.insert(start, run);
                }
            }
        }
        drop(slices);
        let (meta, attempts) = (Arc::clone(&large.meta), self.attempts);
        let source = url(store.provider(), id);
        let mut verified = verify(&source, &meta, &self.runs, large.wanted)?;
        drop(stream);
        if verified == Verified::Unverified {
            verified = match meta.checksums.parts {
                Some(stored) => composite::verify(job, store, &meta, &large.staged, stored).await?,
                None if large.wanted.md5 => self.read_back(&large).await?,
                None => verified,
            };
        }
        // No sink that may still be running writes any more: the attempts they belong to have ended.
        let staged = Arc::clone(&large.staged);
        let placing = self.request.placing();
        job.engine.files.run(move || staged.commit(placing)).await??;
        let moved = Moved { bytes: meta.size, attempts, verified, atomic: true };
        Ok(Fetched { moved, version: meta.version.clone() })
    }

    /// Compares by the MD5 of a file whose stream broke, so that none came out of it.
    async fn read_back(&self, large: &Large) -> Result<Verified, Error> {
        let (staged, meta, wanted) = (Arc::clone(&large.staged), Arc::clone(&large.meta), large.wanted);
        let (source, cancel) = (url(self.store.provider(), self.id), self.job.cancel.clone());
        let compare = move || {
            let run = staged.read_back(0..meta.size, wanted, &|| cancel.is_set())?;
            run.verify(&meta.checksums).map_err(|difference| Error::mismatch(source, difference))
        };
        self.job.engine.files.run(compare).await?
    }
}

/// Leaves what has come to a later run, where that can go on with it: the object is as it was, and it was nothing about
/// its bytes or this machine that went wrong.
fn keep(job: &Running, staged: &Staged, request: &CopyRequest, error: Error) -> Error {
    let is_kept = error.is_passing() || (error.is_cancelled() && request.keep_partial);
    match is_kept.then(|| staged.keep()).flatten() {
        Some(bytes) => {
            job.kept(bytes);
            error.keeping(bytes)
        }
        None => error,
    }
}

/// Ends an opening stream when its download ends however, so that a sink that is still on its lane writes nothing.
struct EndOnDrop<'a> {
    job: &'a Running,
    request: &'a CopyRequest,
    opening: Arc<Opening>,
}

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(Opened::Head(large, _)) = self.opening.end() {
            drop(Unfinished { job: self.job, request: self.request, staged: large.staged });
        }
    }
}

/// Removes a temporary file when its download ends without having put it in its place or kept it. A cancelled job may
/// drop a download without another word.
struct Unfinished<'a> {
    job: &'a Running,
    request: &'a CopyRequest,
    staged: Arc<Staged>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let is_kept = self.request.keep_partial && self.job.cancel.is_set();
        match is_kept.then(|| self.staged.keep()).flatten() {
            Some(bytes) => self.job.kept(bytes),
            None => self.staged.abandon(),
        }
    }
}

/// Compares what has come with what the store says of the whole.
fn verify(
    source: &str,
    meta: &ObjectMeta,
    runs: &BTreeMap<u64, Run>,
    wanted: Wanted,
) -> Result<Verified, Error> {
    let mut whole = Run::of(b"", wanted);
    for (start, run) in runs {
        if *start != whole.len {
            return Err(Error::integrity(source, format!("bytes from {} to {start} are missing", whole.len)));
        }
        whole = whole.then(*run);
    }
    if whole.len != meta.size {
        return Err(Error::integrity(source, format!("{} of {} bytes came", whole.len, meta.size)));
    }
    whole.verify(&meta.checksums).map_err(|difference| Error::mismatch(source, difference))
}

/// Verifies a small object and writes it. Blocks.
pub(crate) fn store_small(
    source: &str,
    meta: &ObjectMeta,
    bytes: &[u8],
    place: &Place,
    placing: Placing,
) -> Result<Moved, Error> {
    let mut runs = BTreeMap::new();
    let wanted = Wanted::to_compare_with(&meta.checksums, true);
    if !bytes.is_empty() {
        runs.insert(0, Run::of(bytes, wanted));
    }
    let verified = verify(source, meta, &runs, wanted)?;
    let staged = place.stage(0)?;
    staged.write_at(bytes, 0)?;
    staged.commit(placing)?;
    Ok(Moved { bytes: meta.size, attempts: 1, verified, atomic: true })
}
