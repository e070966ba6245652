//! Uploads a large file in parallel parts, or in a resumable session if parts can't be used.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use laneway_store::{Body, Condition, ObjectId, ObjectMeta, PutOptions, Store};

use super::parts::{Input, PartsUpload, PutOutcome, ReadyPart};
use super::source::FileSource;
use super::unfinished::{self, UnfinishedUpload, UploadState};
use super::verify::ExpectedChecksum;
use super::{UploadItem, input, journal, put_verified};
use crate::content::checksum::{ChecksumSet, RangeChecksums};
use crate::content::encoding;
use crate::event::Verified;
use crate::job::running::{JobState, ResultObject, TransferOutcome};
use crate::location::{FileIdentity, url};
use crate::plan::parts::{PART_USUAL, part_len};
use crate::plan::{PARTS_AT_ONCE, SMALL_UPLOAD_MAX};
use crate::transfer::log_second_try;
use crate::{CopyRequest, Error, ErrorKind};

/// Uploads one file in parts, and returns the identity of the uploaded file. No part is held in memory. Each
/// part's CRC32C is computed just before the part is sent, so that sending finds its bytes in the page cache.
/// A file that is to be compressed is sent as a stream, because its compressed length is unknown.
///
/// # Errors
/// The store's error, or an error if the file changed. After an error, nothing of the upload is left in the
/// store, unless the error says so.
pub(crate) async fn upload(
    job: &JobState,
    request: &CopyRequest,
    store: &Store,
    item: &UploadItem,
) -> Result<(TransferOutcome, FileIdentity), Error> {
    let path = item.path.clone();
    let open = move || FileSource::open(&path).map(|source| (source.holes(), source));
    let (holes, source) = job.engine.files.run(open).await??;
    if let Some(holes) = holes {
        job.remarks().sparse(&item.path.display().to_string(), holes);
    }
    let identity = source.identity();
    Ok((send(job, request, store, item, source).await?, identity))
}

/// Uploads a file for a library call, in one request if the file is small. Writes no journal, so a later call
/// can't resume the upload.
///
/// # Errors
/// The store's error. Also an error if the file can't be read or changes meanwhile, or if its CRC32C isn't
/// the `given` one.
pub(crate) async fn file(
    job: &JobState,
    store: &Store,
    path: PathBuf,
    id: &ObjectId,
    options: &PutOptions,
    given: Option<u32>,
) -> Result<PutOutcome, Error> {
    let source = Arc::new(job.engine.files.run(move || FileSource::open(&path)).await??);
    let size = source.size();
    let given = ExpectedChecksum { url: url(store.provider(), id), crc32c: given };
    if size <= SMALL_UPLOAD_MAX {
        let read =
            move || source.read().map(|bytes| (RangeChecksums::of(&bytes, ChecksumSet::CRC32C), bytes));
        let (run, bytes) = job.engine.files.run(read).await??;
        given.compare(&run)?;
        let sums = run.checksums();
        let put = put_verified(&job.engine.files, store, id, bytes.into(), &sums, options);
        return job.unless_cancelled(put).await?;
    }
    let (mut is_second, part) = (false, part_len(size, store.capabilities().parts));
    loop {
        let source = Arc::clone(&source);
        let input = FileInput { job, source, next: AtomicU64::new(0), part, given: given.clone() };
        let sent = PartsUpload::new(job, store, id, options, None).send(Some(size), &input).await;
        match sent {
            Err(error) if error.is_mismatch() && !is_second => {
                log_second_try(&error);
                is_second = true;
            }
            sent => return sent,
        }
    }
}

async fn send(
    job: &JobState,
    request: &CopyRequest,
    store: &Store,
    item: &UploadItem,
    source: FileSource,
) -> Result<TransferOutcome, Error> {
    let options = request.options_of_file(
        store.capabilities().file_attributes,
        &item.id.key,
        &item.path,
        source.attributes(),
    );
    if request.gzip.takes(&item.path) {
        let stream = input::InputStream {
            name: item.path.display().to_string(),
            input: Box::new(encoding::compressed(source.stream())),
            found: item.size,
        };
        // gzip makes even incompressible data at most 1/512 larger.
        let expected = Some(item.size + item.size / 512);
        return input::upload(job, store, stream, &item.id, &options, expected).await;
    }
    let size = source.size();
    let size_max = store.capabilities().object_bytes_max;
    if size > size_max {
        let message = format!("is too large: it has {size} bytes, and an object may have at most {size_max}");
        return Err(Error::refused(item.path.display().to_string(), message));
    }
    let mut unfinished = unfinished(job, request, store, item, &source, &options).await?;
    let source = Arc::new(source);
    if let Some(unfinished) = &unfinished
        && let Some(UploadState::Finished(meta)) = &unfinished.there
    {
        if let Some(moved) = finished(job, store, &source, meta).await? {
            unfinished.forget(job).await;
            return Ok(moved);
        }
        unfinished.void();
    }
    let (mut is_second, part) = (false, part_len(size, store.capabilities().parts));
    loop {
        let (file, source) = (Arc::clone(&source), Arc::clone(&source));
        let input =
            FileInput { job, source, next: AtomicU64::new(0), part, given: ExpectedChecksum::default() };
        let parts = PartsUpload::new(job, store, &item.id, &options, unfinished.as_ref());
        match parts.send(Some(size), &input).await {
            Err(error) if error.is_mismatch() && !is_second => {
                file.check_unchanged()?;
                log_second_try(&error);
                job.progress.taken_back(size);
                if let Some(unfinished) = &mut unfinished {
                    unfinished.starts_over(job);
                    unfinished.there = None;
                }
                is_second = true;
            }
            Err(error) if error.kind() == ErrorKind::Integrity => {
                // The file may have changed after its checksum was computed, so that the store got other
                // bytes. If so, report the change as the cause.
                file.check_unchanged()?;
                return Err(error);
            }
            sent => return Ok(sent?.moved),
        }
    }
}

/// Compares the object that an earlier run's session completed with the file. If the two are equal, nothing
/// has to be sent, and this returns the upload's result.
async fn finished(
    job: &JobState,
    store: &Store,
    source: &Arc<FileSource>,
    meta: &ObjectMeta,
) -> Result<Option<TransferOutcome>, Error> {
    let is_there = store.head(&meta.id, meta.version.as_ref());
    match job.unless_cancelled(is_there).await? {
        Ok(now) if now.size == source.size() && now.checksums.crc32c.is_some() => {}
        _ => return Ok(None),
    }
    let mut whole = RangeChecksums::of(b"", ChecksumSet::CRC32C);
    while whole.len < source.size() {
        let (source, at) = (Arc::clone(source), whole.len);
        let len = PART_USUAL.min(source.size() - at);
        whole = whole.then(
            job.unless_cancelled(job.engine.files.run(move || source.hash(at, len, ChecksumSet::CRC32C)))
                .await???,
        );
    }
    let unchanged = Arc::clone(source);
    job.engine.files.run(move || unchanged.check_unchanged()).await??;
    if meta.checksums.crc32c != whole.crc32c {
        return Ok(None);
    }
    job.progress.there(whole.len);
    Ok(Some(TransferOutcome {
        bytes: whole.len,
        verified: Verified::Crc32c,
        atomic: true,
        made: ResultObject::of(meta),
    }))
}

/// Returns this upload's state after an earlier run, and the journal that lets a later run continue the
/// upload. Returns `None` if there can be no journal.
async fn unfinished(
    job: &JobState,
    request: &CopyRequest,
    store: &Store,
    item: &UploadItem,
    source: &FileSource,
    options: &PutOptions,
) -> Result<Option<UnfinishedUpload>, Error> {
    if job.engine.upload_journals.is_none() {
        return Ok(None);
    }
    let named = item.path.clone();
    // This fails only if the open file has just been renamed or removed. If so, upload it without a journal.
    let Ok(path) = job.engine.files.run(move || std::fs::canonicalize(named)).await? else {
        return Ok(None);
    };
    let identity = source.identity();
    // If the request that completes an upload carries the condition, the unfinished upload has none. A later
    // run may then continue it under another condition.
    let condition = match store.capabilities().multipart_takes_condition {
        true => Condition::None,
        false => options.condition.clone(),
    };
    let options = options.clone().condition(condition);
    let part_len = part_len(identity.size, store.capabilities().parts);
    let subject = journal::subject(&path, identity, store, &item.id, &options, part_len);
    let taken_up = unfinished::take_up(job, store, subject, request.keep_partial);
    job.unless_cancelled(taken_up).await?
}

struct FileInput<'a> {
    job: &'a JobState,
    source: Arc<FileSource>,
    /// The offset of the next part.
    next: AtomicU64,
    part: u64,
    given: ExpectedChecksum,
}

impl Input for FileInput<'_> {
    type Begun = (u64, u64);

    async fn next(&self) -> Result<Option<(u64, u64)>, Error> {
        let at = self.next.fetch_add(self.part, Ordering::Relaxed);
        let len = self.part.min(self.source.size().saturating_sub(at));
        // An empty file has one empty part.
        Ok((len > 0 || at == 0).then_some((at, len)))
    }

    async fn prepare(&self, (at, len): (u64, u64), wanted: ChecksumSet) -> Result<ReadyPart, Error> {
        let source = Arc::clone(&self.source);
        let run = self.job.engine.files.run(move || source.hash(at, len, wanted)).await??;
        let is_last = at + len == self.source.size();
        Ok(ReadyPart { body: Body::file(Arc::clone(&self.source.file), at, len), run, is_last, held: None })
    }

    async fn check(&self, whole: &RangeChecksums) -> Result<(), Error> {
        self.given.compare(whole)?;
        let source = Arc::clone(&self.source);
        self.job.engine.files.run(move || source.check_unchanged()).await?
    }

    fn rewind(&self) -> bool {
        self.next.store(0, Ordering::Relaxed);
        true
    }

    fn at_once(&self, _cores: usize) -> usize {
        PARTS_AT_ONCE
    }
}
