//! Downloads a large object into a file, in parallel slices. If the size was unknown, one of the streams is
//! the opening stream, which began without a range.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, Fuse};
use futures_util::stream::FuturesUnordered;
use laneway_lanes::SpareClaim;
use laneway_lanes::attempts::note_another;
use laneway_store::{Got, ObjectId, ObjectMeta, Route, Store};

use super::opening::{OpenerResult, OpenerWriter};
use super::{DownloadOutcome, composite, composite_of, verify_file};
use crate::content::checksum::{ChecksumHasher, ChecksumSet, Crc, RangeChecksums};
use crate::content::range_writer::{ObjectPin, Output, RangeWriter};
use crate::job::running::{JobState, ResultObject, TransferOutcome};
use crate::local::folder::{DownloadSubject, FilePlace, PartialRequest, StagedFile};
use crate::local::platform::boot;
use crate::location::url;
use crate::plan::slices::{
    CLAIM_LEN, SEGMENT_LEN, Slices, SplitChoice, StreamProgress, is_sliced, missing_ranges, split_at,
};
use crate::{CopyRequest, Error, Progress};

/// Up to this size in bytes, an object is fetched in one stream if the store has only its MD5, because the
/// MD5s of slices can't be combined.
const MD5_IN_ORDER_MAX: u64 = 64 << 20;

#[derive(Clone, Debug)]
pub(crate) struct DownloadTarget {
    pub(crate) place: FilePlace,
    /// The URL of the object.
    pub(crate) source: String,
}

/// A large object that is being fetched, with everything that further streams need.
#[derive(Clone, Debug)]
pub(crate) struct LargeDownload {
    pub(crate) meta: Arc<ObjectMeta>,
    pub(crate) staged: Arc<StagedFile>,
    pub(crate) slices: Arc<Mutex<Slices>>,
    /// The ranges of bytes that an earlier run of the job fetched. Each has the offset of its first byte and
    /// the checksums of its bytes.
    pub(crate) done: Vec<(u64, RangeChecksums)>,
    pub(crate) wanted: ChecksumSet,
    /// True if several streams may fetch the object.
    pub(crate) is_shared: bool,
}

impl LargeDownload {
    /// Prepares the file and the slices of an object whose first bytes have arrived in answer to a GET
    /// without a range.
    ///
    /// # Errors
    /// The file system's error.
    pub(crate) fn opened(meta: Box<ObjectMeta>, destination: &DownloadTarget) -> Result<Self, Error> {
        Self::prepare(meta, destination, &|| false, true, |_: &[_], size| Slices::opened(size))
    }

    /// Prepares the file and the slices of an object whose version, size and checksum are known. Blocks the
    /// thread. If an earlier run wrote the file before the machine's last boot, some of its writes may be
    /// lost. In this case, reads the file back to check it, but stops once `is_cancelled` returns true.
    ///
    /// # Errors
    /// The file system's error.
    pub(crate) fn planned(
        meta: Box<ObjectMeta>,
        destination: &DownloadTarget,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        Self::prepare(meta, destination, is_cancelled, false, |done: &[(u64, RangeChecksums)], size| {
            let done = done.iter().map(|(start, run)| *start..*start + run.len);
            Slices::planned(missing_ranges(done, size))
        })
    }

    fn prepare(
        meta: Box<ObjectMeta>,
        destination: &DownloadTarget,
        is_cancelled: &dyn Fn() -> bool,
        fresh: bool,
        slices: impl FnOnce(&[(u64, RangeChecksums)], u64) -> Slices,
    ) -> Result<Self, Error> {
        let DownloadTarget { place, source } = destination;
        let size = meta.size;
        let stored = &meta.checksums;
        let is_md5_only = Crc::given_in(stored).is_none() && stored.md5.is_some();
        let in_order = is_md5_only && size <= MD5_IN_ORDER_MAX;
        let wanted = ChecksumSet::to_compare_with(stored, in_order);
        // Without a version, slices could come from different versions of the object.
        let is_shared = is_sliced(size) && !in_order && meta.version.is_some();
        let (staged, done) = match (&meta.version, Crc::of(wanted)) {
            (Some(version), Some(crc)) if is_shared => {
                let subject = DownloadSubject { url: source.clone(), version: version.clone(), size, crc };
                place.resume(&PartialRequest { subject: &subject, fresh, boot: boot(), is_cancelled })?
            }
            _ => {
                if !fresh {
                    place.forget(source);
                }
                (place.stage(size)?, Vec::new())
            }
        };
        Ok(Self {
            wanted,
            staged: Arc::new(staged),
            slices: Arc::new(Mutex::new(slices(&done, size))),
            meta: Arc::from(meta),
            done,
            is_shared,
        })
    }

    pub(crate) fn slices(&self) -> MutexGuard<'_, Slices> {
        self.slices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The download of the bytes that the opening stream doesn't fetch.
pub(super) struct RestDownload<'a> {
    pub(super) job: &'a JobState,
    pub(super) request: &'a CopyRequest,
    pub(super) store: &'a Store,
    pub(super) id: &'a ObjectId,
    /// The ranges of bytes that have arrived, with their checksums, by the offset of their first byte.
    pub(super) runs: BTreeMap<u64, RangeChecksums>,
}

type OpenerStream<'s> = Fuse<BoxFuture<'s, Result<Got, laneway_store::Error>>>;

impl RestDownload<'_> {
    /// Fetches an object whose version, size and checksum are known.
    pub(super) async fn fetch_planned(
        self,
        meta: Box<ObjectMeta>,
        to: DownloadTarget,
    ) -> Result<DownloadOutcome, Error> {
        let cancel = self.job.cancel.clone();
        let prepare = move || LargeDownload::planned(meta, &to, &|| cancel.is_set());
        let large = self.job.engine.files.run(prepare).await??;
        self.fetch(large, None).await
    }

    /// Fetches slices until every byte has arrived. An opening stream may still run at the same time.
    pub(super) async fn fetch(
        self,
        large: LargeDownload,
        opener: Option<(OpenerStream<'_>, &Arc<OpenerWriter>)>,
    ) -> Result<DownloadOutcome, Error> {
        let (job, request, staged) = (self.job, self.request, Arc::clone(&large.staged));
        let _unfinished = PartialGuard { job, request, staged: Arc::clone(&staged) };
        self.bring(large, opener).await.map_err(|error| keep(job, &staged, request, error))
    }

    async fn bring(
        mut self,
        large: LargeDownload,
        opener: Option<(OpenerStream<'_>, &Arc<OpenerWriter>)>,
    ) -> Result<DownloadOutcome, Error> {
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
        let writer = |range: Range<u64>, pinned: ObjectPin| {
            let staged = Arc::clone(&large.staged);
            SliceWriter::new(range, pinned, large.wanted, staged, Arc::clone(&job.progress))
        };
        let bring = |start: u64, writer: Arc<SliceWriter>| async move {
            writer.bring(store, id).await?;
            Ok::<_, Error>((start, writer.finish()))
        };
        let mut under_way: BTreeMap<u64, RangeStream> = BTreeMap::new();
        let mut split = StreamSplit::new(store.path(&id.bucket).await.round_trip.unwrap_or_default());
        let mut spare = store.spare(&id.bucket).await;
        let mut cancelled = std::pin::pin!(job.cancel.wait());
        let meta = Arc::clone(&large.meta);
        let claimed = large.staged.watch();
        let compare = async {
            match composite_of(&large) {
                Some(stored) => {
                    composite::verify(job, store, &meta, &large.staged, stored, claimed).await.map(Some)
                }
                None => Ok(None),
            }
        };
        // The comparison begins now, so that it can end soon after the last bytes.
        let mut compare = std::pin::pin!(compare);
        let mut compared = None;
        loop {
            // One stream runs as long as there is work. Further streams start when lanes are free.
            loop {
                let lane = if large.is_shared { spare.claim() } else { None };
                if lane.is_none() && (is_opening || !slices.is_empty()) {
                    break;
                }
                let left = large.slices().claim();
                let more = usize::from(lane.is_some()) + spare.lanes();
                let is_open = lane.as_ref().is_some_and(SpareClaim::is_open);
                let range = left.or_else(|| end_of_running(&mut split, &large, &under_way, (more, is_open)));
                let Some(range) = range else { break };
                let (start, writer) = (range.start, writer(range, self.pinned(&large.meta)?));
                let stream = RangeStream { writer: Arc::clone(&writer), start, began: Instant::now() };
                under_way.insert(start, stream);
                slices.push(SpareClaim::scope(lane, bring(start, writer)));
            }
            if !is_opening && slices.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                () = &mut cancelled => return Err(Error::cancelled(url(store.provider(), id))),
                ended = &mut stream, if is_opening => {
                    is_opening = false;
                    if let Some(OpenerResult::Head(_, run)) = opening.and_then(|opening| opening.opened()) {
                        self.opener_ended(ended, run)?;
                    }
                }
                Some(slice) = slices.next(), if !slices.is_empty() => {
                    let (start, run) = slice?;
                    under_way.remove(&start);
                    self.runs.insert(start, run);
                }
                () = spare.changed(), if large.is_shared => {}
                result = &mut compare, if compared.is_none() => compared = Some(result?),
            }
        }
        drop(slices);
        large.staged.end_watch();
        let compare = async {
            match compared {
                Some(verified) => Ok(verified),
                None => compare.await,
            }
        };
        let verified =
            verify_file(job, store, &large, &self.runs, self.request.remove_source, compare).await?;
        drop(stream);
        // All attempts have ended. So even a sink that still runs can't write to the file any more.
        let staged = Arc::clone(&large.staged);
        let placing =
            self.request.placing(job, self.request.preserves(store.capabilities()), [Some(&meta), None]);
        job.engine.files.run(move || placing.commit(&staged)).await??;
        let moved =
            TransferOutcome { bytes: meta.size, verified, atomic: true, made: ResultObject::of(&meta) };
        Ok(DownloadOutcome { moved, version: meta.version.clone() })
    }

    pub(super) fn opener_ended(
        &mut self,
        ended: Result<Got, laneway_store::Error>,
        run: RangeChecksums,
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

    /// Returns the version that the download must continue with. Returns an error if the version is unknown,
    /// because the other bytes could come from another version.
    pub(super) fn pinned(&self, meta: &ObjectMeta) -> Result<ObjectPin, Error> {
        if meta.version.is_none() {
            let message = "the connection broke, and the store reports no version of the object, so the rest could be bytes of another version";
            return Err(Error::integrity(url(self.store.provider(), self.id), message));
        }
        Ok(ObjectPin::of(meta))
    }
}

/// A range that is being fetched.
struct RangeStream {
    writer: Arc<SliceWriter>,
    start: u64,
    began: Instant,
}

impl RangeStream {
    fn progress(&self, now: Instant) -> StreamProgress {
        let (at, end) = self.writer.position();
        StreamProgress {
            left: end - at,
            fetched: at - self.start,
            age: now.saturating_duration_since(self.began),
        }
    }
}

/// Takes over the ends of running streams' ranges for further streams.
pub(super) struct StreamSplit {
    round_trip: Duration,
    /// The number of bytes in all ranges that were taken over so far.
    taken_over: u64,
    /// The time when the opener's first bytes had arrived.
    opened: Instant,
}

impl StreamSplit {
    pub(super) fn new(round_trip: Duration) -> Self {
        Self { round_trip, taken_over: 0, opened: Instant::now() }
    }

    /// Takes the end of a stream's range for one of `more` further streams, by [`SplitChoice`]. `fetched` is the
    /// number of bytes that the whole download has fetched. `split` takes over at most so many bytes from the
    /// stream of this index. If a range can't be split, tries the next one.
    pub(super) fn end_of<T>(
        &mut self,
        streams: &[StreamProgress],
        fetched: u64,
        (more, is_open): (usize, bool),
        mut split: impl FnMut(usize, u64) -> Option<(Range<u64>, T)>,
    ) -> Option<(Range<u64>, T)> {
        let Self { round_trip, taken_over, opened } = *self;
        let choice = SplitChoice { round_trip, taken_over, more, is_open };
        let candidates = choice.candidates(streams, fetched, opened.elapsed());
        let (range, end) = candidates.into_iter().find_map(|(stream, most)| split(stream, most))?;
        self.taken_over += range.end - range.start;
        Some((range, end))
    }
}

/// Takes the end of a running stream's range, or of the opener's, for a further stream.
fn end_of_running(
    by: &mut StreamSplit,
    large: &LargeDownload,
    under_way: &BTreeMap<u64, RangeStream>,
    lanes: (usize, bool),
) -> Option<Range<u64>> {
    let now = Instant::now();
    let mut slices = large.slices();
    let (mut progress, mut splits): (Vec<_>, Vec<_>) =
        under_way.values().map(|stream| (stream.progress(now), Some(&stream.writer))).unzip();
    let before = slices.before_opener();
    if before > 0 {
        let fetched = slices.opener_end().unwrap_or_default() - before;
        let age = now.saturating_duration_since(by.opened);
        progress.push(StreamProgress { left: before, fetched, age });
        splits.push(None);
    }
    let done: u64 = large.done.iter().map(|(_, run)| run.len).sum();
    let left: u64 = progress.iter().map(|stream| stream.left).sum();
    let fetched = large.meta.size.saturating_sub(left + done);
    let end = by.end_of(&progress, fetched, lanes, |stream, most| {
        let end = match splits[stream] {
            Some(writer) => writer.split(most),
            None => slices.split_opener(most),
        };
        end.map(|range| (range, ()))
    });
    end.map(|(range, ())| range)
}

/// Keeps the temporary file if the same request may succeed later, so that a later run can continue with its
/// bytes. After a cancellation, keeps the file only if the request says so. Returns the error, with the
/// number of kept bytes.
pub(super) fn keep(job: &JobState, staged: &StagedFile, request: &CopyRequest, error: Error) -> Error {
    let is_kept = error.is_passing() || (error.is_cancelled() && request.keep_partial);
    match is_kept.then(|| staged.keep()).flatten() {
        Some(bytes) => {
            job.kept(bytes);
            error.keeping(bytes)
        }
        None => error,
    }
}

/// Handles the temporary file of a download that is dropped before it commits or keeps the file, as in a
/// cancelled job. Keeps the file if the request says so, or else removes it.
pub(super) struct PartialGuard<'a> {
    pub(super) job: &'a JobState,
    pub(super) request: &'a CopyRequest,
    pub(super) staged: Arc<StagedFile>,
}

impl Drop for PartialGuard<'_> {
    fn drop(&mut self) {
        let is_kept = self.request.keep_partial && self.job.cancel.is_set();
        match is_kept.then(|| self.staged.keep()).flatten() {
            Some(bytes) => self.job.kept(bytes),
            None => self.staged.abandon(),
        }
    }
}

/// A slice that is being fetched.
type SliceWriter = RangeWriter<Slice>;

#[derive(Debug)]
pub(crate) struct Slice {
    end: u64,
    claims: Claims,
    staged: Arc<StagedFile>,
}

impl Output for Slice {
    fn route(&self, _at: u64) -> Route {
        Route::Freight
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<u64, Error> {
        let own = (bytes.len() as u64).min(self.end - at);
        let bytes = &bytes[..own as usize];
        self.staged.write_at(bytes, at)?;
        self.claims.update(bytes, &self.staged);
        Ok(own)
    }

    fn expect_checks(&mut self) {
        self.claims.expect_checks();
    }

    fn checked(&mut self, to: u64) {
        self.claims.checked(to, &self.staged);
    }

    fn give_up_checks(&mut self) {
        self.claims.give_up_checks(&self.staged);
    }
}

impl SliceWriter {
    pub(crate) fn new(
        range: Range<u64>,
        of: ObjectPin,
        wanted: ChecksumSet,
        staged: Arc<StagedFile>,
        progress: Arc<Progress>,
    ) -> Arc<Self> {
        let slice = Slice { end: range.end, claims: Claims::new(range.start, wanted), staged };
        Self::pinned(range.start, of, slice, progress)
    }

    /// Cuts at most `most` bytes from the end of the range, and returns them for another stream.
    pub(crate) fn split(&self, most: u64) -> Option<Range<u64>> {
        self.cut(|at, slice| {
            let mut left = at..slice.end;
            let unit = if slice.claims.unchecked.is_some() { SEGMENT_LEN } else { CLAIM_LEN };
            let end = split_at(&mut left, most, unit);
            slice.end = left.end;
            end
        })
    }

    /// Returns the checksums of the written bytes.
    pub(crate) fn finish(&self) -> RangeChecksums {
        self.end_checked(|slice, is_checked| slice.claims.finish(&slice.staged, is_checked))
    }
}

/// The checksums of a stream so far. As soon as a MiB is written to the file, the file's journal records it
/// with its checksum (a claim), so that a later run needn't fetch it again.
#[derive(Debug)]
pub(crate) struct Claims {
    wanted: ChecksumSet,
    /// The checksums of all claimed ranges together.
    ended: RangeChecksums,
    /// The start of the next claim.
    start: u64,
    under_way: ChecksumHasher,
    /// The claims whose bytes the store's checksums haven't confirmed yet, with the offsets of their first
    /// bytes. `None` if the answers have no such checksums. The journal gets these claims later, because a later
    /// run couldn't check their bytes any more.
    unchecked: Option<VecDeque<(u64, RangeChecksums)>>,
}

impl Claims {
    /// Returns the checksums of a stream that begins at the object's offset `start`.
    pub(crate) fn new(start: u64, wanted: ChecksumSet) -> Self {
        let (ended, under_way) = (RangeChecksums::of(b"", wanted), ChecksumHasher::new(wanted));
        Self { wanted, ended, start, under_way, unchecked: None }
    }

    /// Lets claims wait until [`checked`](Self::checked) confirms their bytes.
    pub(crate) fn expect_checks(&mut self) {
        self.unchecked.get_or_insert_default();
    }

    /// Records the claims of bytes before the offset `to`, which the store's checksums have confirmed.
    pub(crate) fn checked(&mut self, to: u64, staged: &StagedFile) {
        let Some(unchecked) = &mut self.unchecked else { return };
        while unchecked.front().is_some_and(|(start, run)| *start + run.len <= to)
            && let Some((start, run)) = unchecked.pop_front()
        {
            staged.claim(start, &run.checked(true));
        }
    }

    /// Records the claims that wait. Their bytes stay unchecked.
    pub(crate) fn give_up_checks(&mut self, staged: &StagedFile) {
        for (start, run) in self.unchecked.take().into_iter().flatten() {
            staged.claim(start, &run);
        }
    }

    /// Adds the next bytes. The caller must first write them to the file, because this function may record
    /// them in the file's journal.
    pub(crate) fn update(&mut self, mut bytes: &[u8], staged: &StagedFile) {
        if !staged.is_journaled() {
            return self.under_way.update(bytes);
        }
        while !bytes.is_empty() {
            let at = self.start + self.under_way.len();
            let room = (CLAIM_LEN - at % CLAIM_LEN) as usize;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.under_way.update(now);
            if now.len() == room {
                self.claim(staged);
            }
            bytes = later;
        }
    }

    /// Ends the stream, and returns the checksums of all its bytes. `is_checked` is true if the store's checksums
    /// have confirmed them.
    pub(crate) fn finish(&mut self, staged: &StagedFile, is_checked: bool) -> RangeChecksums {
        self.claim(staged);
        for (start, run) in self.unchecked.take().into_iter().flatten() {
            staged.claim(start, &run.checked(is_checked));
        }
        std::mem::replace(&mut self.ended, RangeChecksums::of(b"", self.wanted)).checked(is_checked)
    }

    fn claim(&mut self, staged: &StagedFile) {
        let run = std::mem::replace(&mut self.under_way, ChecksumHasher::new(self.wanted)).finish();
        match &mut self.unchecked {
            Some(unchecked) => unchecked.push_back((self.start, run)),
            None => staged.claim(self.start, &run),
        }
        self.start += run.len;
        self.ended = self.ended.then(run);
    }
}

#[cfg(test)]
mod tests {
    use laneway_store::{GetSink as _, ObjectId, ObjectMeta};

    use super::*;
    use crate::local::folder::Folder;
    use crate::location::relative::RelativePath;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_slice_that_is_split_stops_where_the_other_begins() {
        let (dir, size) = (tempfile::tempdir().unwrap(), 6 * MIB);
        let place = Folder::new(dir.path()).place(&RelativePath::new("f".into()).unwrap());
        let staged = Arc::new(place.stage(size).unwrap());
        let meta = ObjectMeta::new(ObjectId::new("b", "k"), size);
        let of = ObjectPin::of(&meta);
        let writer = SliceWriter::new(0..size, of, ChecksumSet::CRC32C, staged, Arc::default());
        let mut sink = writer.sink();
        sink.begin(&meta, 0..size).unwrap();
        assert_eq!(sink.write(&[7; 1000]).unwrap(), Route::Stay);
        assert_eq!(writer.split(size), Some(4 * MIB..size));
        assert_eq!(writer.split(MIB), None, "the end would be a small request");
        assert_eq!(sink.write(&[7; 6 << 20]).unwrap(), Route::Stop);
        assert_eq!(writer.finish(), RangeChecksums::of(&[7; 4 << 20], ChecksumSet::CRC32C));
    }
}
