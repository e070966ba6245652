//! Downloads one object into a file, and decides which request to send first. An opening stream that breaks
//! isn't continued by itself, because several streams can fetch its rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::FutureExt;
use laneway_lanes::attempts::{note, note_another};
use laneway_store::{Get, Got, ObjectId, ObjectMeta, Store};

use super::opening::{OpenerResult, OpenerWriter};
use super::sliced::{DownloadTarget, PartialGuard, RestDownload, keep};
use super::{DownloadOutcome, store_small};
use crate::content::checksum::{ChecksumSet, Crc};
use crate::content::read::read_range;
use crate::job::running::JobState;
use crate::local::folder::FilePlace;
use crate::location::url;
use crate::plan::slices::is_sliced;
use crate::transfer::log_second_try;
use crate::{CopyRequest, Error};

/// Downloads an object into a file at `place`. If the object has at most `collect_max` bytes, Laneway first
/// collects it in memory, which the caller has reserved. It fetches a larger object slice by slice, and
/// continues where an interrupted earlier run stopped.
///
/// # Errors
/// The store's or the file system's error. After an error, the destination is unchanged.
pub(crate) async fn fetch(
    job: &JobState,
    request: &CopyRequest,
    store: &Store,
    id: &ObjectId,
    known: Option<Box<ObjectMeta>>,
    place: FilePlace,
    collect_max: u64,
) -> Result<DownloadOutcome, Error> {
    match fetch_once(job, request, store, id, known.clone(), place.clone(), collect_max).await {
        Err(error) if error.is_mismatch() => {
            log_second_try(&error);
            // The second try counts the same bytes as moved again, so subtract them once. But if the size was
            // unknown, each try also adds the size to the bytes found. Then both totals still match, so
            // subtract nothing.
            job.progress.taken_back(known.as_ref().map_or(0, |meta| meta.size));
            note_another();
            let again = Box::pin(fetch_once(job, request, store, id, known, place, collect_max));
            again.await.map_err(Error::for_good)
        }
        fetched => fetched,
    }
}

async fn fetch_once(
    job: &JobState,
    request: &CopyRequest,
    store: &Store,
    id: &ObjectId,
    known: Option<Box<ObjectMeta>>,
    place: FilePlace,
    collect_max: u64,
) -> Result<DownloadOutcome, Error> {
    let destination = DownloadTarget { place, source: url(store.provider(), id) };
    let rest = RestDownload { job, request, store, id, runs: BTreeMap::new() };
    // If the version and a checksum are known, request the slices at once, without a request for the
    // metadata.
    let is_planned = !request.is_undescribed()
        && known
            .as_ref()
            .is_some_and(|meta| meta.version.is_some() && Crc::given_in(&meta.checksums).is_some());
    if let Some(meta) = known.clone().filter(|_| is_planned) {
        return rest.fetch_planned(meta, destination).await;
    }
    let at = destination.clone();
    // A large object in a listing is probably one of many. So send a HEAD: it returns the same metadata as a
    // GET without a range, and doesn't wait behind the bodies of the other objects. If Laneway sent a GET
    // instead, it would have to stop the GET at the first byte that another request fetches. In HTTP/1.1,
    // that closes the connection.
    let is_listed = known.as_ref().is_some_and(|meta| is_sliced(meta.size) || request.is_undescribed());
    if is_listed || job.engine.files.run(move || at.place.is_begun(&at.source)).await? {
        // A GET without a range would also bring the bytes that an earlier run has already stored.
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
        OpenerWriter::open(destination.clone(), collect_max, memory, is_size_known, progress);
    let size = known.as_ref().map(|meta| meta.size);
    let version = known.as_ref().and_then(|meta| meta.version.as_ref());
    let get = Get { version, expected: size, size, ..Get::new(id) };
    let _unfinished = EndOnDrop { job, request, opening: Arc::clone(&opening) };
    let stream = async {
        let got = opening.attempt(store, get).await;
        // If the stream ended within a segment, no other stream brings the checksum of its last bytes.
        if got.as_ref().map_or_else(laneway_store::Error::is_interrupted, |_| true) {
            opening.check_rest(store, id).await?;
        }
        got
    };
    let mut stream = stream.boxed().fuse();
    let cancelled = job.cancel.wait();
    let ended = tokio::select! {
        biased;
        () = cancelled => return Err(Error::cancelled(url(store.provider(), id))),
        Ok(large) = &mut announced => return rest.fetch(large, Some((stream, &opening))).await,
        ended = &mut stream => ended,
    };
    match opening.opened() {
        Some(OpenerResult::Described(meta)) if ended.is_ok() => rest.fetch_described(meta, destination).await,
        opened => rest.finish_opening(ended, opened, destination.place).await,
    }
}

impl RestDownload<'_> {
    /// Handles an opening stream that ended before it announced a large object.
    async fn finish_opening(
        mut self,
        ended: Result<Got, laneway_store::Error>,
        opened: Option<OpenerResult>,
        place: FilePlace,
    ) -> Result<DownloadOutcome, Error> {
        match opened {
            Some(OpenerResult::Collected(meta, bytes, is_checked)) => {
                match ended {
                    Err(e) if e.is_interrupted() => note(e.attempts() + 1),
                    ended => drop(ended?),
                }
                let (bytes, is_checked) = self.complete(&meta, bytes, is_checked).await?;
                let (version, store) = (meta.version.clone(), self.store.clone());
                let preserve = self.request.preserves(self.store.capabilities());
                let (permit, placing) =
                    (self.job.writing().await, self.request.placing(self.job, preserve, [Some(&meta), None]));
                let write = move || {
                    let _permit = permit;
                    store_small(&store, &meta, &bytes, is_checked, &place, &placing)
                };
                let moved = self.job.engine.files.run(write).await??;
                Ok(DownloadOutcome { moved, version })
            }
            Some(OpenerResult::Head(large, run)) => {
                let staged = Arc::clone(&large.staged);
                match self.opener_ended(ended, run) {
                    Ok(()) => self.fetch(large, None).await,
                    Err(error) => Err(keep(self.job, &staged, self.request, error)),
                }
            }
            Some(OpenerResult::Described(_)) | None => match ended {
                Err(e) => Err(e.into()),
                Ok(_) => Err(Error::integrity(url(self.store.provider(), self.id), "the answer has no body")),
            },
        }
    }

    /// Fetches the missing bytes of a small object whose stream broke. Also returns true if the store's checksums have
    /// confirmed all bytes. `is_checked` says this of the bytes that have arrived.
    async fn complete(
        &self,
        meta: &ObjectMeta,
        mut bytes: Vec<u8>,
        mut is_checked: bool,
    ) -> Result<(Vec<u8>, bool), Error> {
        let have = bytes.len() as u64;
        if have < meta.size {
            let (rest, progress) = ((have..meta.size, self.pinned(meta)?), Arc::clone(&self.job.progress));
            let (run, mut rest) =
                read_range(self.store, self.id, rest, ChecksumSet::default(), progress).await?;
            is_checked &= run.is_checked;
            bytes.append(&mut rest);
        }
        Ok((bytes, is_checked))
    }

    /// Fetches an object whose opening stream brought only the metadata.
    async fn fetch_described(
        self,
        meta: Box<ObjectMeta>,
        to: DownloadTarget,
    ) -> Result<DownloadOutcome, Error> {
        if meta.version.is_some() {
            return self.fetch_planned(meta, to).await;
        }
        // Without a version, Laneway must fetch the whole object with one request. The size is known now, so
        // the dispatcher sends this request on a freight lane from the start.
        let size = Some(Box::new(ObjectMeta::new(self.id.clone(), meta.size)));
        Box::pin(fetch_once(self.job, self.request, self.store, self.id, size, to.place, 0)).await
    }
}

/// Ends the stream of a download's first request when the download ends, whether it succeeded, failed or was
/// dropped. A sink of the stream may still run on its lane at this time, and must not write any more.
struct EndOnDrop<'a> {
    job: &'a JobState,
    request: &'a CopyRequest,
    opening: Arc<OpenerWriter>,
}

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(OpenerResult::Head(large, _)) = self.opening.opened() {
            drop(PartialGuard { job: self.job, request: self.request, staged: large.staged });
        }
    }
}
