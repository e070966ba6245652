//! Copies objects between different stores. Laneway downloads and uploads at the same time, in bounded
//! memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use laneway_lanes::attempts::counted;
use laneway_store::{
    Body, Checksums, Composite, Get, ObjectMeta, PartHasher, PartRules, PutOptions, Version,
};

use super::{CopyEnds, CopyItem};
use crate::Error;
use crate::content::checksum::{ChecksumSet, Crc, RangeChecksums};
use crate::content::range_writer::ObjectPin;
use crate::content::read::read_range;
use crate::event::Verified;
use crate::job::pump::{CancelledJob, ITEM_COST, Units};
use crate::job::running::{JobState, TransferOutcome};
use crate::location::url;
use crate::plan::SMALL_UPLOAD_MAX;
use crate::plan::parts::{PART_USUAL, part_len};
use crate::transfer::composite::{CompositeLayout, CompositeVerdict, in_memory, judge, layout};
use crate::transfer::upload::{Input, PartsUpload, PutOutcome, ReadyPart, put_verified};
use crate::transfer::{copy, log_second_try};

/// Starts the copy of one object.
///
/// # Errors
/// If the job was cancelled.
pub(super) async fn send(
    units: &Units,
    job: &Arc<JobState>,
    ends: &CopyEnds,
    item: CopyItem,
) -> Result<(), CancelledJob> {
    let size = item.from.meta.as_ref().map(|meta| meta.size);
    let run = counted(copy_one(Arc::clone(job), ends.clone(), item));
    match size {
        Some(size) if size <= SMALL_UPLOAD_MAX => units.small(ITEM_COST + size as usize, run).await,
        _ => units.large(run).await,
    }
}

/// Copies one object. If the object is known to be small, the caller has reserved memory for it.
pub(super) async fn copy_one(job: Arc<JobState>, ends: CopyEnds, item: CopyItem) {
    let begun = ends.begin(&job, &item);
    let result = match item.from.meta.as_deref() {
        Some(meta) if meta.size <= SMALL_UPLOAD_MAX => small(&job, &ends, &item, meta.size, Some(meta)).await,
        _ => any(&job, &ends, &item).await,
    };
    ends.finish(&job, &item, begun, result).await;
}

/// A copy, with the facts about its source that a move needs.
pub(super) struct FinishedCopy {
    pub(super) sent: PutOutcome,
    /// The version of the source that was copied.
    pub(super) version: Option<Version>,
    /// True if the store has moved the object, so there is no source to remove.
    pub(super) is_moved: bool,
}

impl FinishedCopy {
    pub(super) fn of(sent: PutOutcome, version: Option<Version>) -> Self {
        Self { sent, version, is_moved: false }
    }
}

/// The copy, or the error.
pub(super) type CopyOutcome = Result<FinishedCopy, Error>;

/// Copies a small object with a GET and a PUT. `known` is the metadata from a listing or a HEAD.
async fn small(
    job: &JobState,
    ends: &CopyEnds,
    item: &CopyItem,
    expected: u64,
    known: Option<&ObjectMeta>,
) -> CopyOutcome {
    let read = || async {
        let get = Get { expected: Some(expected), size: Some(expected), ..Get::new(&item.from.id) };
        let got = ends.from.get(get).await?;
        let run = RangeChecksums::of(&got.body, both(&got.meta.checksums)).checked(got.checked);
        let read = check(ends, &got.meta, &run)?;
        Ok::<_, Error>((got, run, read))
    };
    let (got, run, mut read) = match read().await {
        Err(error) if error.is_mismatch() => {
            log_second_try(&error);
            read().await?
        }
        read => read?,
    };
    if read == Verified::Unverified {
        read = in_memory(job, &ends.from, &got.meta, &got.body).await?;
    }
    let sums = run.crc32c.map(Checksums::crc32c).unwrap_or_default();
    let known = known.filter(|known| known.version == got.meta.version);
    // S3 sends all metadata with the bytes. GCS doesn't, so use the metadata that is known, or request it.
    let described = match [Some(&got.meta), known].into_iter().flatten().find(|meta| meta.metadata.is_some())
    {
        Some(meta) => Cow::Borrowed(meta),
        None => Cow::Owned(ends.from.head(&item.from.id, got.meta.version.as_ref()).await?),
    };
    let mut options = ends.request.options_of_copy(&described, &ends.request.options(&item.to.key));
    options.tags = copy::kept_tags(job, ends, item, &got.meta).await?;
    let sent = put_verified(&job.engine.files, &ends.to, &item.to, got.body, &sums, &options).await?;
    job.progress.moved(run.len);
    let verified = weaker(read, sent.moved.verified);
    let moved = TransferOutcome { verified, ..sent.moved };
    Ok(FinishedCopy::of(PutOutcome { moved, meta: sent.meta }, got.meta.version))
}

/// Requests an object's metadata, then copies the object: a small object as a whole, and a larger one in
/// slices.
pub(super) async fn any(job: &JobState, ends: &CopyEnds, item: &CopyItem) -> CopyOutcome {
    let meta = job.unless_cancelled(ends.from.head(&item.from.id, None)).await??;
    if item.from.meta.is_none() {
        job.progress.sized(meta.size);
    }
    if meta.size <= SMALL_UPLOAD_MAX {
        let memory = job.engine.lanes.memory();
        let small = async {
            let _held = memory.reserve(meta.size as usize).await;
            small(job, ends, item, meta.size, Some(&meta)).await
        };
        return job.unless_cancelled(small).await?;
    }
    if meta.version.is_none() {
        let message =
            "the store reports no version of the object, so Laneway could mix bytes of different versions";
        return Err(Error::integrity(url(ends.from.provider(), &item.from.id), message));
    }
    let mut options = ends.request.options_of_copy(&meta, &ends.request.options(&item.to.key));
    options.tags = copy::kept_tags(job, ends, item, &meta).await?;
    let once = || streamed(job, ends, item, &meta, &options);
    let sent = match once().await {
        Err(error) if error.is_mismatch() => {
            log_second_try(&error);
            job.progress.taken_back(meta.size);
            once().await?
        }
        sent => sent?,
    };
    Ok(FinishedCopy::of(sent, meta.version))
}

/// Copies an object slice by slice.
async fn streamed(
    job: &JobState,
    ends: &CopyEnds,
    item: &CopyItem,
    meta: &ObjectMeta,
    options: &PutOptions,
) -> Result<PutOutcome, Error> {
    let cuts = match Crc::given_in(&meta.checksums) {
        Some(_) => None,
        None => CopyParts::of_source(job, ends, meta).await?,
    };
    let input = StoreInput {
        job,
        ends,
        item,
        cuts,
        pinned: ObjectPin::of(meta),
        wanted: both(&meta.checksums),
        part: part_len(meta.size, ends.to.capabilities().parts),
        meta: meta.clone(),
        next: AtomicU64::new(0),
        is_checked: AtomicBool::new(false),
        progress: Arc::default(),
    };
    let parts = PartsUpload::new(job, &ends.to, &item.to, options, None);
    let mut sent = parts.send(Some(input.meta.size), &input).await?;
    if Crc::given_in(&input.meta.checksums).is_none() {
        let read = match &input.cuts {
            Some(cuts) => cuts.verified(),
            None if input.is_checked.load(Ordering::Acquire) => Verified::InTransit,
            None => Verified::Unverified,
        };
        sent.moved.verified = weaker(read, sent.moved.verified);
    }
    Ok(sent)
}

/// The parts of the source's upload, if the copy can have the same parts. Laneway reads each part as a whole
/// and computes its digest. From the digests of all parts, it computes a composite checksum, which must equal
/// the source's.
struct CopyParts {
    stored: Composite,
    layout: CompositeLayout,
    /// The parts' digests, by the start offsets of the parts.
    digests: Mutex<BTreeMap<u64, Vec<u8>>>,
    verified: Mutex<Verified>,
}

impl CopyParts {
    async fn of_source(job: &JobState, ends: &CopyEnds, meta: &ObjectMeta) -> Result<Option<Self>, Error> {
        let Some(stored) = meta.checksums.parts else { return Ok(None) };
        let layout = layout(job, &ends.from, meta, &stored).await?;
        let (rules, unequal) = (ends.to.capabilities().parts, ends.to.takes_unequal_parts());
        let layout = layout.filter(|layout| can_be_parts(&layout.parts, rules, unequal));
        let (digests, verified) = (Mutex::default(), Mutex::new(Verified::Unverified));
        Ok(layout.map(|layout| Self { stored, layout, digests, verified }))
    }

    fn verified(&self) -> Verified {
        *self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn part(&self) -> PartHasher {
        self.stored.digest.algorithm().part()
    }

    fn came(&self, start: u64, digest: Vec<u8>) {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner).insert(start, digest);
    }

    /// Compares the digests of all parts with the source's composite checksum. All parts must have been read.
    async fn check(&self, job: &JobState, ends: &CopyEnds, meta: &ObjectMeta) -> Result<(), Error> {
        let digests: Vec<u8> = {
            let digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
            digests.values().flatten().copied().collect()
        };
        let Some(ours) = self.stored.digest.algorithm().over(&digests) else { return Ok(()) };
        let judged = judge(job, &ends.from, meta, &self.stored, &self.layout, ours).await?;
        if let CompositeVerdict::Settled(verified) = judged {
            *self.verified.lock().unwrap_or_else(PoisonError::into_inner) = verified;
        }
        Ok(())
    }
}

/// Returns whether the destination's store accepts these parts in an upload.
fn can_be_parts(parts: &[Range<u64>], rules: PartRules, unequal: bool) -> bool {
    let Some((last, others)) = parts.split_last() else { return false };
    let len = |part: &Range<u64>| part.end - part.start;
    let first = parts.first().map_or(0, len);
    let fits = |part: &Range<u64>| {
        let len = len(part);
        len >= rules.bytes_min && len.is_multiple_of(SESSION_UNIT) && (unequal || len == first)
    };
    parts.len() as u64 <= rules.count_max
        && parts.iter().all(|part| len(part) <= rules.bytes_max)
        && others.iter().all(fits)
        && len(last) > 0
        && (unequal || len(last) <= first)
}

/// The size of a chunk in a resumable session must be a multiple of this number of bytes.
/// <https://cloud.google.com/storage/docs/performing-resumable-uploads#chunked-upload>
const SESSION_UNIT: u64 = 256 << 10;

/// Downloads slices of an object, each of which becomes a part of its copy.
struct StoreInput<'a> {
    /// The parts of the source's upload, if the copy is to have the same parts.
    cuts: Option<CopyParts>,
    job: &'a JobState,
    ends: &'a CopyEnds,
    item: &'a CopyItem,
    meta: ObjectMeta,
    pinned: ObjectPin,
    wanted: ChecksumSet,
    part: u64,
    /// The offset of the next part.
    next: AtomicU64,
    /// True after the store's checksums of the sent bytes have confirmed all of them.
    is_checked: AtomicBool,
    /// Counts the downloaded bytes. The count isn't shown, because the job's progress counts a copy's
    /// uploaded bytes.
    progress: Arc<crate::Progress>,
}

impl StoreInput<'_> {
    async fn slice(
        &self,
        start: u64,
        end: u64,
        wanted: ChecksumSet,
    ) -> Result<(RangeChecksums, Vec<u8>), Error> {
        let (range, progress) = ((start..end, self.pinned.clone()), Arc::clone(&self.progress));
        read_range(&self.ends.from, &self.item.from.id, range, wanted, progress).await
    }

    /// Reads a part that is too large for the memory budget into a temporary file without a name.
    async fn in_file(&self, start: u64, end: u64, wanted: ChecksumSet) -> Result<ReadyPart, Error> {
        let files = &self.job.engine.files;
        let failed = |e| Error::local("a temporary file", "can't be used", e);
        let file = Arc::new(files.run(tempfile::tempfile).await?.map_err(failed)?);
        let mut run = RangeChecksums::of(b"", wanted);
        let mut hasher = self.cuts.as_ref().map(CopyParts::part);
        while run.len < end - start {
            let at = start + run.len;
            let to = end.min(at + PART_USUAL);
            let held = self.job.engine.lanes.memory().reserve((to - at) as usize).await;
            let (slice, bytes) = self.slice(at, to, wanted).await?;
            let (spool, offset) = (Arc::clone(&file), run.len);
            let write = move || {
                if let Some(hasher) = &mut hasher {
                    hasher.update(&bytes);
                }
                (hasher, spool.write_all_at(&bytes, offset))
            };
            let (goes_on, written) = files.run(write).await?;
            written.map_err(failed)?;
            hasher = goes_on;
            drop(held);
            run = run.then(slice);
        }
        if let (Some(cuts), Some(hasher)) = (&self.cuts, hasher) {
            cuts.came(start, hasher.finish());
        }
        Ok(ReadyPart { body: Body::file(file, 0, run.len), run, is_last: end == self.meta.size, held: None })
    }
}

impl Input for StoreInput<'_> {
    type Begun = (u64, u64);

    async fn next(&self) -> Result<Option<(u64, u64)>, Error> {
        if let Some(cuts) = &self.cuts {
            let index = self.next.fetch_add(1, Ordering::Relaxed) as usize;
            return Ok(cuts.layout.parts.get(index).map(|part| (part.start, part.end)));
        }
        let at = self.next.fetch_add(self.part, Ordering::Relaxed);
        let end = self.meta.size.min(at + self.part);
        Ok((at < end).then_some((at, end)))
    }

    async fn prepare(&self, (start, end): (u64, u64), wanted: ChecksumSet) -> Result<ReadyPart, Error> {
        let wanted = wanted.and(self.wanted);
        if end - start > PART_USUAL {
            return self.in_file(start, end, wanted).await;
        }
        let held = self.job.engine.lanes.memory().reserve((end - start) as usize).await;
        let (run, mut bytes) = self.slice(start, end, wanted).await?;
        if let Some(cuts) = &self.cuts {
            let mut hasher = cuts.part();
            let digest = move || {
                hasher.update(&bytes);
                (bytes, hasher.finish())
            };
            let (back, digest) = self.job.engine.files.run(digest).await?;
            bytes = back;
            cuts.came(start, digest);
        }
        let is_last = end == self.meta.size;
        Ok(ReadyPart { body: Body::from(bytes), run, is_last, held: Some(Arc::new(held)) })
    }

    async fn check(&self, whole: &RangeChecksums) -> Result<(), Error> {
        check(self.ends, &self.meta, whole)?;
        self.is_checked.store(whole.is_checked, Ordering::Release);
        match &self.cuts {
            Some(cuts) => cuts.check(self.job, self.ends, &self.meta).await,
            None => Ok(()),
        }
    }

    fn rewind(&self) -> bool {
        self.next.store(0, Ordering::Relaxed);
        true
    }
}

/// Returns the checksums to compute: CRC32C for the upload, and the kind that the source's store reports.
fn both(stored: &Checksums) -> ChecksumSet {
    ChecksumSet { crc32c: true, ..ChecksumSet::to_compare_with(stored, true) }
}

fn check(ends: &CopyEnds, meta: &ObjectMeta, run: &RangeChecksums) -> Result<Verified, Error> {
    run.verify(&meta.checksums).map_err(|e| Error::mismatch(url(ends.from.provider(), &meta.id), e))
}

/// Returns `Unverified` if the bytes that were read were not verified. Otherwise returns the verification of
/// the written bytes.
fn weaker(read: Verified, written: Verified) -> Verified {
    if read == Verified::Unverified { read } else { written }
}
