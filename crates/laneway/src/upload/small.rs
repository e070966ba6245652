//! Small files: read in groups by the file threads, then one request each, all of a group at once.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use laneway_lanes::attempts::counted;
use laneway_store::{Checksums, Operation, Store};

use super::source::{self, Source};
use super::{Identity, Target, Terms, gzip, large, put_verified, remove_moved};
use crate::checksum::{Run, Wanted};
use crate::plan::SMALL_UPLOAD_MAX;
use crate::running::{Moved, Running};
use crate::{Error, Op};

/// A file in memory, compressed where that is asked for.
struct Loaded {
    bytes: Bytes,
    crc32c: Option<u32>,
    identity: Identity,
}

/// Uploads a group of files of at most [`SMALL_UPLOAD_MAX`] bytes each, for which memory is reserved.
pub(crate) async fn upload_group(job: Arc<Running>, store: Store, targets: Vec<Target>, terms: Arc<Terms>) {
    let items = targets.len();
    let on = Arc::clone(&terms);
    let read = job
        .engine
        .files
        .run(move || targets.into_iter().map(|target| (load(&target, &on), target)).collect::<Vec<_>>());
    let loaded = match read.await {
        Ok(loaded) => loaded,
        Err(error) => {
            job.fail_group(Op::Upload, items, error).await;
            return;
        }
    };
    let mut puts: FuturesUnordered<_> = loaded
        .into_iter()
        .map(|(loaded, target)| counted(upload(&job, &store, target, loaded, &terms)))
        .collect();
    while puts.next().await.is_some() {}
}

async fn upload(
    job: &Running,
    store: &Store,
    target: Target,
    loaded: Result<Option<Loaded>, Error>,
    terms: &Terms,
) {
    let begun = target.begin(job, store);
    let result = match loaded {
        // Read before the job was cancelled, and not yet on its way.
        _ if job.cancel.is_set() => Err(Error::cancelled("")),
        Ok(Some(loaded)) => {
            let identity = loaded.identity;
            put(job, store, &target, loaded, terms).await.map(|moved| (moved, identity))
        }
        // It has grown since it was found; boxed, because hardly any does.
        Ok(None) => Box::pin(large::upload(job, store, &target, terms)).await,
        Err(error) => Err(error),
    };
    let Target { path, size, id } = target;
    let result = match terms.remove_source {
        true => remove_moved(job, terms, path, result).await,
        false => result.map(|(moved, _)| moved),
    };
    terms.end(job, begun, size, result, (store, &id)).await;
}

async fn put(
    job: &Running,
    store: &Store,
    target: &Target,
    loaded: Loaded,
    terms: &Terms,
) -> Result<Moved, Error> {
    let size = loaded.bytes.len() as u64;
    let sums = Checksums { crc32c: loaded.crc32c, ..Checksums::default() };
    let options = terms.options_of_file(target);
    let verified = put_verified(job, store, &target.id, loaded.bytes, &sums, &options).await?;
    // Of a compressed file all that was found of it is done with.
    job.progress.moved(if terms.gzip.takes(&target.path) { target.size } else { size });
    let atomic = store.keeps(Operation::Put, &options.condition);
    Ok(Moved { bytes: size, attempts: 1, verified, atomic })
}

/// Reads a file; `None` when it is too large to be held. Blocks.
fn load(target: &Target, terms: &Terms) -> Result<Option<Loaded>, Error> {
    let source = Source::open(&target.path)?;
    let identity = source.identity();
    if source.size() > SMALL_UPLOAD_MAX.min(target.size.max(4096) * 2) {
        return Ok(None);
    }
    let bytes = match terms.gzip.takes(&target.path) {
        true => gzip::compress(source.stream()).map_err(|e| source::unwrapped(&target.path, e))?,
        false => source.read()?,
    };
    let crc32c = Run::of(&bytes, Wanted::CRC32C).crc32c;
    Ok(Some(Loaded { bytes: bytes.into(), crc32c, identity }))
}
