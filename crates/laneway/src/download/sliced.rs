//! A large object into a file: slices in parallel, an opening stream among them where the store had to be asked first.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, Fuse};
use futures_util::stream::FuturesUnordered;
use laneway_lanes::attempts::note_another;
use laneway_store::{Got, ObjectId, ObjectMeta, Store};

use super::Fetched;
use super::opening::{Opened, Opening};
use super::range_writer::{Pinned, RangeWriter};
use super::slice::Into;
use super::verify::verify_file;
use crate::checksum::{Crc, Run, Wanted};
use crate::folder::{Place, Staged, Subject, TakeUp};
use crate::location::url;
use crate::plan::SLICES_AT_ONCE;
use crate::plan::resume::missing;
use crate::plan::slices::{Slices, is_sliced, slice_len};
use crate::platform::boot;
use crate::running::{Awaited, Made, Moved, Running};
use crate::{CopyRequest, Error};

/// An object whose checksum is only an MD5 is fetched by one stream up to this size, since MD5s can't be combined.
const MD5_IN_ORDER_MAX: u64 = 64 << 20;

/// Where a large object goes.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(crate) place: Place,
    /// The URL that the object comes from.
    pub(crate) source: String,
}

/// A large object of which the first bytes have come: what others need to help.
#[derive(Clone, Debug)]
pub(crate) struct Large {
    pub(crate) meta: Arc<ObjectMeta>,
    pub(crate) staged: Arc<Staged>,
    pub(crate) slices: Arc<Mutex<Slices>>,
    /// What an earlier run has brought, by its first byte.
    pub(crate) done: Vec<(u64, Run)>,
    pub(crate) wanted: Wanted,
    /// How many slices are fetched at once, an opener among them.
    pub(crate) at_once: usize,
}

impl Large {
    /// Prepares the file and the slices of an object whose first request is an unranged one that has begun to bring it.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) fn opened(meta: Box<ObjectMeta>, destination: &Destination) -> Result<Self, Error> {
        let slices = |_: &[_], size, slice, at_once| Slices::opened(size, slice, at_once);
        Self::prepare(meta, destination, &|| false, true, slices)
    }

    /// Prepares the file and the slices of an object of which everything is known that has to be. Blocks while a file
    /// from before the machine's last boot is read back, unless `is_cancelled`.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) fn planned(
        meta: Box<ObjectMeta>,
        destination: &Destination,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        Self::prepare(meta, destination, is_cancelled, false, |done: &[(u64, Run)], size, slice, at_once| {
            let done = done.iter().map(|(start, run)| *start..*start + run.len);
            Slices::planned(missing(done, size), slice, at_once)
        })
    }

    fn prepare(
        meta: Box<ObjectMeta>,
        destination: &Destination,
        is_cancelled: &dyn Fn() -> bool,
        fresh: bool,
        slices: impl FnOnce(&[(u64, Run)], u64, u64, usize) -> Slices,
    ) -> Result<Self, Error> {
        let Destination { place, source } = destination;
        let size = meta.size;
        let stored = &meta.checksums;
        let is_md5_only = Crc::given_in(stored).is_none() && stored.md5.is_some();
        let in_order = is_md5_only && size <= MD5_IN_ORDER_MAX;
        let wanted = Wanted::to_compare_with(stored, in_order);
        // Slices of an object whose state can't be pinned could be of two objects.
        let is_shared = is_sliced(size) && !in_order && meta.version.is_some();
        let (staged, done) = match (&meta.version, Crc::of(wanted)) {
            (Some(version), Some(crc)) if is_shared => {
                let subject = Subject { url: source.clone(), version: version.clone(), size, crc };
                place.resume(&TakeUp { subject: &subject, fresh, boot: boot(), is_cancelled })?
            }
            _ => {
                if !fresh {
                    place.forget(source);
                }
                (place.stage(size)?, Vec::new())
            }
        };
        let left = size - done.iter().map(|(_, run)| run.len).sum::<u64>();
        let at_once = if is_shared { SLICES_AT_ONCE } else { 1 };
        let slice = if in_order { size } else { slice_len(left, at_once / 2) };
        Ok(Self {
            wanted,
            staged: Arc::new(staged),
            slices: Arc::new(Mutex::new(slices(&done, size, slice, at_once))),
            meta: Arc::from(meta),
            done,
            at_once,
        })
    }

    /// The slices, locked.
    pub(crate) fn slices(&self) -> MutexGuard<'_, Slices> {
        self.slices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The download of what an opening stream doesn't bring.
pub(super) struct Rest<'a> {
    pub(super) job: &'a Running,
    pub(super) request: &'a CopyRequest,
    pub(super) store: &'a Store,
    pub(super) id: &'a ObjectId,
    /// What has come, by its first byte.
    pub(super) runs: BTreeMap<u64, Run>,
}

pub(super) type Stream<'s> = Fuse<BoxFuture<'s, Result<Got, laneway_store::Error>>>;

impl Rest<'_> {
    /// Fetches an object of which everything is known that has to be.
    pub(super) async fn fetch_planned(
        self,
        meta: Box<ObjectMeta>,
        to: Destination,
    ) -> Result<Fetched, Error> {
        let cancel = self.job.cancel.clone();
        let prepare = move || Large::planned(meta, &to, &|| cancel.is_set());
        let large = self.job.engine.files.run(prepare).await??;
        self.fetch(large, None).await
    }

    /// Fetches slices beside the opening stream, if that still runs, until every byte is there.
    pub(super) async fn fetch(
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
        let writer = |range: Range<u64>, pinned: Pinned, awaited: Option<Awaited>| {
            let into = Into::File(Arc::clone(&large.staged), awaited);
            RangeWriter::new(range, pinned, large.wanted, into, Arc::clone(&job.progress))
        };
        let bring = |start: u64, writer: Arc<RangeWriter>| async move {
            let (_, asked) = writer.position();
            writer.bring(store, id).await?;
            let (_, end) = writer.position();
            Ok::<_, Error>((start, writer.finish().0, end < asked))
        };
        let mut under_way: BTreeMap<u64, Arc<RangeWriter>> = BTreeMap::new();
        let mut is_lane_free = false;
        let mut cancelled = std::pin::pin!(job.cancel.wait());
        loop {
            while slices.len() + usize::from(is_opening) < large.at_once {
                let Some(range) = large.slices().claim() else { break };
                let (start, pinned) = (range.start, self.pinned(&large.meta)?);
                let writer = writer(range, pinned, Some(job.awaits()));
                under_way.insert(start, Arc::clone(&writer));
                slices.push(bring(start, writer));
                is_lane_free = false;
            }
            // Nothing is left, and the lane that has become free waits for nobody: it helps whoever would end last.
            if std::mem::take(&mut is_lane_free)
                && !job.is_awaiting()
                && let Some(range) = halve(&large, &under_way)
            {
                let (start, writer) = (range.start, writer(range, self.pinned(&large.meta)?, None));
                under_way.insert(start, Arc::clone(&writer));
                slices.push(bring(start, writer));
            }
            if !is_opening && slices.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                () = &mut cancelled => return Err(Error::cancelled(url(store.provider(), id))),
                ended = &mut stream, if is_opening => {
                    // One that was cut has closed its connection.
                    (is_opening, is_lane_free) = (false, ended.is_ok());
                    if let Some(Opened::Head(_, run)) = opening.and_then(|opening| opening.opened()) {
                        self.opener_ended(ended, run)?;
                    }
                }
                Some(slice) = slices.next(), if !slices.is_empty() => {
                    let (start, run, is_cut) = slice?;
                    under_way.remove(&start);
                    self.runs.insert(start, run);
                    is_lane_free = !is_cut;
                }
            }
        }
        drop(slices);
        let meta = Arc::clone(&large.meta);
        let verified = verify_file(job, store, &large, &self.runs).await?;
        drop(stream);
        // No sink that may still be running writes any more: the attempts they belong to have ended.
        let staged = Arc::clone(&large.staged);
        let placing = self.request.placing(store.provider(), [Some(&meta), None]);
        job.engine.files.run(move || staged.commit(placing)).await??;
        let moved = Moved { bytes: meta.size, verified, atomic: true, made: Made::of(&meta) };
        Ok(Fetched { moved, version: meta.version.clone() })
    }

    pub(super) fn opener_ended(
        &mut self,
        ended: Result<Got, laneway_store::Error>,
        run: Run,
    ) -> Result<(), Error> {
        match ended {
            Ok(_) => {}
            Err(e) if e.is_interrupted() => note_another(),
            Err(e) => return Err(e.into()),
        }
        if run.len > 0 {
            self.runs.insert(0, run);
        }
        Ok(())
    }

    /// Going on in the middle is safe only in the same state of the object.
    pub(super) fn pinned(&self, meta: &ObjectMeta) -> Result<Pinned, Error> {
        if meta.version.is_none() {
            let message = "the connection broke, and without a version the store can't be asked for the rest";
            return Err(Error::integrity(url(self.store.provider(), self.id), message));
        }
        Ok(Pinned::of(meta))
    }
}

/// Takes over the later half of what still comes on the stream that has most before it.
fn halve(large: &Large, under_way: &BTreeMap<u64, Arc<RangeWriter>>) -> Option<Range<u64>> {
    let left = |writer: &Arc<RangeWriter>| {
        let (at, end) = writer.position();
        end - at
    };
    let longest = under_way.values().map(|writer| (left(writer), writer)).max_by_key(|(left, _)| *left);
    let of_opener = large.slices().halve_opener(longest.map_or(0, |(left, _)| left));
    of_opener.or_else(|| longest?.1.halve())
}

/// Leaves what has come to a later run, where that can go on with it: the object is as it was, and it was nothing about
/// its bytes or this machine that went wrong.
pub(super) fn keep(job: &Running, staged: &Staged, request: &CopyRequest, error: Error) -> Error {
    let is_kept = error.is_passing() || (error.is_cancelled() && request.keep_partial);
    match is_kept.then(|| staged.keep()).flatten() {
        Some(bytes) => {
            job.kept(bytes);
            error.keeping(bytes)
        }
        None => error,
    }
}

/// Removes a temporary file when its download ends without having put it in its place or kept it. A cancelled job may
/// drop a download without another word.
pub(super) struct Unfinished<'a> {
    pub(super) job: &'a Running,
    pub(super) request: &'a CopyRequest,
    pub(super) staged: Arc<Staged>,
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
