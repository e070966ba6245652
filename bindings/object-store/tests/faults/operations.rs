//! The operations on an object_store store, and their expected results.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use laneway::{Bucket, ErrorKind};
use laneway_testkit::inverted;

use super::LanewayStore;
use super::object_store::path::Path;
use super::object_store::{Error, MultipartUpload, ObjectStore as _, ObjectStoreExt as _};
use crate::matrix::{Ended, Operation};
use crate::rig::{LARGE_BYTES, RANGED_BYTES, RANGES, SMALL_BYTES};

/// Every part but the last has at least 5 MiB.
const PART: usize = 5 << 20;

/// Carries out an operation, and compares its result with the store's content.
pub(crate) fn carry_out(operation: Operation, bucket: Bucket) -> Result<(), Ended> {
    let store = LanewayStore::new(bucket);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(run(operation, &store))
}

async fn run(operation: Operation, store: &LanewayStore) -> Result<(), Ended> {
    let key = Path::from("k");
    match operation {
        Operation::Get => {
            let read = store.get(&key).await.map_err(ended)?.bytes().await.map_err(ended)?;
            same(&read, &SMALL_BYTES)
        }
        Operation::GetLarge => {
            let mut chunks = store.get(&key).await.map_err(ended)?.into_stream();
            let mut read = Vec::new();
            while let Some(chunk) = chunks.next().await {
                read.extend_from_slice(&chunk.map_err(ended)?);
            }
            same(&read, &LARGE_BYTES)
        }
        Operation::GetRanges => {
            let ranges = RANGES.map(|at| at as u64..at as u64 + 900);
            let read = store.get_ranges(&key, &ranges).await.map_err(ended)?;
            let there = RANGES.map(|at| RANGED_BYTES[at..at + 900].to_vec());
            same(&read.concat(), &there.concat())
        }
        Operation::Head => {
            let size = store.head(&key).await.map_err(ended)?.size;
            right(size == SMALL_BYTES.len() as u64, format!("{size} bytes are told"))
        }
        Operation::Put => store.put(&key, SMALL_BYTES.clone().into()).await.map(drop).map_err(ended),
        Operation::PutMultipart => {
            let mut upload = store.put_multipart(&key).await.map_err(ended)?;
            let sent = send(&mut *upload).await;
            if sent.is_err() {
                // Callers abort the upload if a write fails. The store may not receive the abort.
                let _ = upload.abort().await;
            }
            sent.map_err(ended)
        }
        Operation::List => {
            let mut found: Vec<_> = store.list(None).try_collect().await.map_err(ended)?;
            found.sort_by(|a, b| a.location.cmp(&b.location));
            let found: Vec<_> = found.iter().map(|meta| (meta.location.as_ref(), meta.size)).collect();
            right(found == [("k", 5000), ("t/0", 1), ("t/1", 1), ("u", 1)], format!("{found:?}"))
        }
        Operation::ListFolder => {
            let found = store.list_with_delimiter(None).await.map_err(ended)?;
            let objects: Vec<_> = found.objects.iter().map(|meta| meta.location.as_ref()).collect();
            let folders: Vec<_> = found.common_prefixes.iter().map(Path::as_ref).collect();
            right(objects == ["k", "u"] && folders == ["t"], format!("{objects:?} {folders:?}"))
        }
        Operation::Delete => store.delete(&key).await.map_err(ended),
        Operation::DeleteStream => {
            let keys = ["t/0", "t/1", "u"].map(|key| Ok(Path::from(key)));
            let ends: Vec<_> = store.delete_stream(stream::iter(keys).boxed()).collect().await;
            right(ends.len() == 3, format!("{} keys have ended", ends.len()))?;
            ends.into_iter().try_for_each(|end| end.map(drop)).map_err(ended)
        }
        Operation::Copy => store.copy(&key, &Path::from("copied")).await.map_err(ended),
    }
}

async fn send(upload: &mut dyn MultipartUpload) -> Result<(), Error> {
    let parts = LARGE_BYTES.chunks(PART).map(|part| upload.put_part(part.to_vec().into()));
    let parts: Vec<_> = parts.collect();
    futures_util::future::try_join_all(parts).await?;
    upload.complete().await.map(drop)
}

fn same(read: &[u8], bytes: &[u8]) -> Result<(), Ended> {
    let is_so = read == bytes || read == inverted(bytes);
    right(is_so, format!("{} other bytes instead of {}", read.len(), bytes.len()))
}

fn right(is_so: bool, otherwise: String) -> Result<(), Ended> {
    if is_so { Ok(()) } else { Err(Ended::Wrong(otherwise)) }
}

/// Returns the library's error kind, after checking that it matches object_store's.
fn ended(error: Error) -> Ended {
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<laneway::Error>());
    let Some(kind) = source.map(laneway::Error::kind) else {
        return Ended::Wrong(format!("not the library's: {error:?}"));
    };
    let is_its_own = match kind {
        ErrorKind::NotFound => matches!(error, Error::NotFound { .. }),
        ErrorKind::Precondition => matches!(error, Error::Precondition { .. }),
        ErrorKind::Permission => matches!(error, Error::PermissionDenied { .. }),
        ErrorKind::Unsupported => matches!(error, Error::NotSupported { .. }),
        _ => matches!(error, Error::Generic { .. }),
    };
    match is_its_own {
        true => Ended::Failed { kind: kind.name(), text: error.to_string() },
        false => Ended::Wrong(format!("{} is told as {error:?}", kind.name())),
    }
}
