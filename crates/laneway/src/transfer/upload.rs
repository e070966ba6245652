//! Uploads, from this machine to a store.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod input;
mod journal;
mod large;
mod parts;
mod search;
mod session;
mod source;
mod unfinished;
pub(crate) mod verify;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use laneway_lanes::attempts::counted;
use laneway_store::{Checksums, ObjectId, Store};

use crate::content::checksum::{ChecksumSet, RangeChecksums};
use crate::content::encoding;
use crate::job::existing;
use crate::job::running::{ActiveItem, JobState, TransferOutcome};
use crate::local::preserve::PosixAttributes;
use crate::location::{FileIdentity, url};
use crate::plan::SMALL_UPLOAD_MAX;
use crate::transfer::moved;
use crate::{CopyRequest, Error, Op};
pub(crate) use journal::StoreUpload;
pub(crate) use large::file;
pub(crate) use parts::{CONFLICTS_MAX, Input, PartsUpload, PutOutcome, ReadyPart, wanted};
pub(crate) use search::{UploadSearch, WaitingUploads, one};
use source::FileSource;
pub(crate) use source::{hashed as hashed_file, hashed_parts_while, hashed_while as hashed_file_while};
pub(crate) use unfinished::begun;
pub(crate) use verify::{ExpectedChecksum, put as put_verified, verify};

#[derive(Debug)]
pub(crate) struct UploadItem {
    path: PathBuf,
    size: u64,
    /// The file's modification time when it was found.
    modified: Option<SystemTime>,
    id: ObjectId,
}

impl UploadItem {
    pub(crate) fn new(path: PathBuf, (size, modified): (u64, Option<SystemTime>), id: ObjectId) -> Self {
        Self { path, size, modified, id }
    }

    pub(crate) fn begin(&self, job: &JobState, store: &Store) -> ActiveItem {
        let source = self.path.display().to_string();
        let state = job.state_of_file(self.modified, self.size);
        ActiveItem { state, ..job.begin(Op::Upload, source, Some(url(store.provider(), &self.id))) }
    }
}

async fn upload_large(job: Arc<JobState>, request: Arc<CopyRequest>, store: Store, item: UploadItem) {
    let begun = item.begin(&job, &store);
    let result = large::upload(&job, &request, &store, &item).await;
    let result = remove_moved(&job, &request, item.path, result).await;
    existing::end(&job, &request, (begun, item.size), result, (&store, &item.id)).await;
}

/// In a move, removes the source file once its copy is verified. A file that has changed since it was copied
/// stays.
async fn remove_moved(
    job: &JobState,
    request: &CopyRequest,
    path: PathBuf,
    result: Result<(TransferOutcome, FileIdentity), Error>,
) -> Result<TransferOutcome, Error> {
    let (moved, copied) = result?;
    if !request.remove_source {
        return Ok(moved);
    }
    if !request.is_enough(moved.verified) {
        return Err(Error::unverified(path.display().to_string()));
    }
    job.engine.files.run(move || moved::remove_file(&path, copied)).await??;
    Ok(moved)
}

/// A file in memory, compressed if requested.
struct LoadedFile {
    bytes: Bytes,
    crc32c: Option<u32>,
    identity: FileIdentity,
    attributes: PosixAttributes,
}

/// Uploads a group of files of at most [`SMALL_UPLOAD_MAX`] bytes each, for which the caller has reserved
/// memory.
pub(crate) async fn upload_group(
    job: Arc<JobState>,
    request: Arc<CopyRequest>,
    store: Store,
    items: Vec<UploadItem>,
) {
    let (on, those) = (Arc::clone(&request), Arc::new(items));
    let read = Arc::clone(&those);
    let read = job.engine.files.run(move || read.iter().map(|item| load_file(item, &on)).collect::<Vec<_>>());
    let read = read.await;
    // The file thread has dropped its reference to the items, even if it failed, so this reference is the
    // only one.
    let items = Arc::into_inner(those).unwrap_or_default();
    let loaded = read.unwrap_or_else(|error| fail_each(&items, &error));
    let mut puts: FuturesUnordered<_> = loaded
        .into_iter()
        .zip(items)
        .map(|(loaded, item)| counted(upload_file(&job, &request, &store, item, loaded)))
        .collect();
    while puts.next().await.is_some() {}
}

/// Returns the failure of a whole group as the error of each of its files.
fn fail_each<T>(items: &[UploadItem], error: &Error) -> Vec<Result<T, Error>> {
    items.iter().map(|item| Err(error.again(item.path.display().to_string()))).collect()
}

async fn upload_file(
    job: &JobState,
    request: &CopyRequest,
    store: &Store,
    item: UploadItem,
    loaded: Result<Option<LoadedFile>, Error>,
) {
    let begun = item.begin(job, store);
    let result = match loaded {
        // The file was read, but the job was cancelled before it was sent.
        _ if job.cancel.is_set() => Err(Error::cancelled("")),
        Ok(Some(loaded)) => {
            let identity = loaded.identity;
            put_file(job, request, store, &item, loaded).await.map(|moved| (moved, identity))
        }
        // The file has grown since it was found. This is rare, so the future is boxed, which keeps the
        // futures of all other files small.
        Ok(None) => Box::pin(large::upload(job, request, store, &item)).await,
        Err(error) => Err(error),
    };
    let UploadItem { path, size, id, .. } = item;
    let result = match request.remove_source {
        true => remove_moved(job, request, path, result).await,
        false => result.map(|(moved, _)| moved),
    };
    existing::end(job, request, (begun, size), result, (store, &id)).await;
}

async fn put_file(
    job: &JobState,
    request: &CopyRequest,
    store: &Store,
    item: &UploadItem,
    loaded: LoadedFile,
) -> Result<TransferOutcome, Error> {
    let size = loaded.bytes.len() as u64;
    let sums = loaded.crc32c.map(Checksums::crc32c).unwrap_or_default();
    let options = request.options_of_file(
        store.capabilities().file_attributes,
        &item.id.key,
        &item.path,
        loaded.attributes,
    );
    let sent = put_verified(&job.engine.files, store, &item.id, loaded.bytes, &sums, &options).await?;
    // For a compressed file, count the size of the file as moved, not the compressed size.
    job.progress.moved(if request.gzip.takes(&item.path) { item.size } else { size });
    Ok(sent.moved)
}

/// Reads a file. Returns `None` if the file is too large for memory. Blocks the thread.
fn load_file(item: &UploadItem, request: &CopyRequest) -> Result<Option<LoadedFile>, Error> {
    let source = FileSource::open(&item.path)?;
    let (identity, attributes) = (source.identity(), source.attributes());
    if source.size() > SMALL_UPLOAD_MAX.min(item.size.max(4096) * 2) {
        return Ok(None);
    }
    let bytes = match request.gzip.takes(&item.path) {
        true => encoding::compress(source.stream()).map_err(|e| source::unwrapped(&item.path, e))?,
        false => source.read()?,
    };
    let crc32c = RangeChecksums::of(&bytes, ChecksumSet::CRC32C).crc32c;
    Ok(Some(LoadedFile { bytes: bytes.into(), crc32c, identity, attributes }))
}

#[cfg(test)]
mod tests {
    use laneway_store::ObjectId;

    use super::*;
    use crate::ErrorKind;

    #[test]
    fn what_a_whole_group_meets_is_each_files_failure_with_its_path_and_kind() {
        let item = |path: &str| UploadItem {
            path: path.into(),
            size: 1,
            modified: None,
            id: ObjectId::new("b", path),
        };
        let error = Error::local("a file thread", "can't be started", std::io::Error::other("no memory"));
        let results: Vec<Result<(), Error>> = fail_each(&[item("d/1"), item("d/2")], &error);
        let errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
        assert_eq!(errors.iter().filter_map(Error::url).collect::<Vec<_>>(), ["d/1", "d/2"]);
        assert!(errors.iter().all(|e| e.kind() == ErrorKind::Local), "{errors:?}");
        assert_eq!(errors[0].to_string(), "d/1: a file thread: can't be started: no memory");
    }
}
