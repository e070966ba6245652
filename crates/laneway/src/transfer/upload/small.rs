//! Uploads small files. File threads read the files in groups. Each file takes one request, and all requests
//! of a group run concurrently.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use laneway_lanes::attempts::counted;
use laneway_store::{Checksums, Store};

use super::source::{self, FileSource};
use super::{UploadItem, large, put_verified, remove_moved};
use crate::content::checksum::{ChecksumSet, RangeChecksums};
use crate::content::gzip;
use crate::job::existing;
use crate::job::running::{JobState, TransferOutcome};
use crate::local::preserve::PosixAttributes;
use crate::location::identity::FileIdentity;
use crate::plan::SMALL_UPLOAD_MAX;
use crate::{CopyRequest, Error};

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
    let read = job.engine.files.run(move || read.iter().map(|item| load(item, &on)).collect::<Vec<_>>());
    let read = read.await;
    // The file thread has dropped its reference to the items, even if it failed, so this reference is the
    // only one.
    let items = Arc::into_inner(those).unwrap_or_default();
    let loaded = read.unwrap_or_else(|error| for_each(&items, &error));
    let mut puts: FuturesUnordered<_> = loaded
        .into_iter()
        .zip(items)
        .map(|(loaded, item)| counted(upload(&job, &request, &store, item, loaded)))
        .collect();
    while puts.next().await.is_some() {}
}

/// Returns the failure of a whole group as the error of each of its files.
fn for_each<T>(items: &[UploadItem], error: &Error) -> Vec<Result<T, Error>> {
    items.iter().map(|item| Err(error.again(item.path.display().to_string()))).collect()
}

async fn upload(
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
            put(job, request, store, &item, loaded).await.map(|moved| (moved, identity))
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

async fn put(
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
fn load(item: &UploadItem, request: &CopyRequest) -> Result<Option<LoadedFile>, Error> {
    let source = FileSource::open(&item.path)?;
    let (identity, attributes) = (source.identity(), source.attributes());
    if source.size() > SMALL_UPLOAD_MAX.min(item.size.max(4096) * 2) {
        return Ok(None);
    }
    let bytes = match request.gzip.takes(&item.path) {
        true => gzip::compress(source.stream()).map_err(|e| source::unwrapped(&item.path, e))?,
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
        let results: Vec<Result<(), Error>> = for_each(&[item("d/1"), item("d/2")], &error);
        let errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
        assert_eq!(errors.iter().filter_map(Error::url).collect::<Vec<_>>(), ["d/1", "d/2"]);
        assert!(errors.iter().all(|e| e.kind() == ErrorKind::Local), "{errors:?}");
        assert_eq!(errors[0].to_string(), "d/1: a file thread: can't be started: no memory");
    }
}
