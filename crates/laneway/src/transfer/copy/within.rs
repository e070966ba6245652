//! Copies objects inside one store. The store copies the bytes itself, so none pass through this machine.

use std::ops::Range;
use std::sync::Arc;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt, TryStreamExt};
use laneway_lanes::attempts::{counted, most};
use laneway_store::{
    Capabilities, Checksums, Condition, Deletion, Multipart, ObjectId, ObjectMeta, Operation, Part,
    PutOptions, Store,
};

use super::across::{CopyOutcome, FinishedCopy};
use super::{CopyEnds, CopyItem, across};
use crate::Error;
use crate::content::checksum::written;
use crate::event::Verified;
use crate::job::running::{JobState, ResultObject, TransferOutcome};
use crate::location::url;
use crate::plan::parts::CopySizes;
use crate::plan::requests_at_once;
use crate::transfer::upload::{CONFLICTS_MAX, PutOutcome, StoreUpload, begun};
use crate::transfer::{copy, moved};

/// Returns whether an object is known to be too large to copy in one request.
pub(super) fn is_large(item: &CopyItem, sizes: CopySizes, can: &Capabilities) -> bool {
    item.from.meta.as_ref().is_some_and(|meta| sizes.is_large(meta.size, can))
}

/// Copies a group of objects concurrently.
pub(super) async fn copy_group(job: Arc<JobState>, ends: CopyEnds, items: Vec<CopyItem>) {
    if ends.request.remove_source && ends.from.capabilities().delete_many_keeps_conditions && items.len() > 1
    {
        return move_group(&job, &ends, items).await;
    }
    let mut copies: FuturesUnordered<_> =
        items.into_iter().map(|item| counted(copy_one(Arc::clone(&job), ends.clone(), item))).collect();
    while copies.next().await.is_some() {}
}

/// Moves a group of objects of one bucket inside a store. One request removes the copied sources, each only
/// in the version that was copied.
async fn move_group(job: &JobState, ends: &CopyEnds, items: Vec<CopyItem>) {
    let copy_one = |item: CopyItem| async move {
        let mut begun = ends.begin(job, &item);
        let result = copy(job, ends, &item).await;
        if let Ok(FinishedCopy { sent, .. }) = &result {
            job.progress.moved(sent.moved.bytes);
        }
        begun.attempts = most();
        (item, begun, result)
    };
    let mut copies: FuturesUnordered<_> = items.into_iter().map(|item| counted(copy_one(item))).collect();
    let (mut copied, mut sources) = (Vec::new(), Vec::new());
    while let Some((item, begun, result)) = copies.next().await {
        match result {
            // If the user named a version of the source, Laneway must look up that version before removing
            // it. So don't remove it in this batch.
            Ok(FinishedCopy { sent, version, is_moved: false })
                if ends.request.is_enough(sent.moved.verified) && item.from.id.version.is_none() =>
            {
                let ObjectId { key, version: id, .. } = item.from.id.clone();
                sources.push(Deletion { key, version, id });
                copied.push((item, begun, sent.moved));
            }
            result => ends.finish(job, &item, begun, result).await,
        }
    }
    let Some((first, ..)) = copied.first() else { return };
    let removed = ends.from.delete_many(&first.from.id.bucket, &sources).await;
    for ((item, begun, moved), removed) in copied.into_iter().zip(removed) {
        let result = moved::removed_object(&ends.from, &item.from.id, removed).map(|()| moved);
        ends.end(job, &item, begun, result).await;
    }
}

/// Lets the store copy a large object part by part. If the store refuses to copy parts, as MinIO does in an
/// upload with checksums, Laneway downloads and uploads the bytes instead.
async fn copy_large(job: &JobState, ends: &CopyEnds, item: &CopyItem) -> CopyOutcome {
    let options = &ends.request.put;
    let mut copied = copy_parts(job, ends, item, options).await;
    for _ in 0..CONFLICTS_MAX {
        if !copied.as_ref().is_err_and(Error::is_conflict) {
            break;
        }
        copied = copy_parts(job, ends, item, options).await;
    }
    match copied {
        Err(e) if e.as_store().is_some_and(|e| e.is_invalid() || e.is_unsupported()) => {
            across::any(job, ends, item).await
        }
        copied => copied,
    }
}

pub(super) async fn copy_one(job: Arc<JobState>, ends: CopyEnds, item: CopyItem) {
    let begun = ends.begin(&job, &item);
    let result = copy(&job, &ends, &item).await;
    if let Ok(FinishedCopy { sent, .. }) = &result {
        job.progress.moved(sent.moved.bytes);
    }
    ends.finish(&job, &item, begun, result).await;
}

pub(super) async fn copy(job: &JobState, ends: &CopyEnds, item: &CopyItem) -> CopyOutcome {
    match whole(job, ends, item).await? {
        Some(copied) => Ok(copied),
        None => Box::pin(copy_large(job, ends, item)).await,
    }
}

/// Does the same as [`copy`] for a library call. If the call is cancelled, a copy in a single request is
/// abandoned at once, because it leaves nothing to clean up.
pub(super) async fn copy_for_call(job: &JobState, ends: &CopyEnds, item: &CopyItem) -> CopyOutcome {
    match job.unless_cancelled(whole(job, ends, item)).await?? {
        Some(copied) => Ok(copied),
        None => Box::pin(copy_large(job, ends, item)).await,
    }
}

/// Copies one object with one request. In a move, first lets the store rename the object, if the store can.
/// Returns `None` if the object is too large for one request.
async fn whole(job: &JobState, ends: &CopyEnds, item: &CopyItem) -> Result<Option<FinishedCopy>, Error> {
    let options = &ends.request.put;
    let (from, to) = (&item.from.id, &item.to);
    let mut known = item.from.meta.as_deref().cloned();
    // A move removes only the version that it copied, so it must know that version.
    if known.is_none() && ends.request.remove_source {
        known = Some(ends.from.head(from, None).await?);
    }
    if let Some(source) = known.as_ref().filter(|_| ends.request.is_rename())
        && let Some(renamed) = rename(ends, item, source).await?
    {
        return Ok(Some(renamed));
    }
    let is_large = |meta: &ObjectMeta| job.engine.copy_sizes.is_large(meta.size, ends.from.capabilities());
    if known.as_ref().is_some_and(is_large) {
        return Ok(None);
    }
    let pinned = known.as_ref().and_then(|meta| meta.version.clone()).filter(|_| ends.request.remove_source);
    let condition = pinned.map_or(Condition::None, Condition::Matches);
    let copied = match ends.from.copy_known(from, known.as_ref(), to, options, &condition).await {
        // The object's size was unknown, so the store may have refused the copy because the object is too
        // large for one request. Request its size.
        Err(e) if known.is_none() && e.is_invalid() && ends.from.capabilities().copy_bytes_max.is_some() => {
            let meta = ends.from.head(from, None).await?;
            if !is_large(&meta) {
                return Err(e.into());
            }
            return Ok(None);
        }
        copied => copied?,
    };
    let verified = match compare(ends, known.as_ref(), &copied) {
        // The object may have been replaced after the listing, and the store has then copied the new version.
        // If so, compare the copy with the new version.
        Err(error) if condition.is_none() => {
            // If the new version can't be looked up, return the first error.
            let Ok(now) = ends.from.head(from, None).await else { return Err(error) };
            if known.as_ref().is_some_and(|listed| listed.version == now.version) {
                return Err(error);
            }
            let verified = compare(ends, Some(&now), &copied)?;
            known = Some(now);
            verified
        }
        compared => compared?,
    };
    let bytes = known.as_ref().map_or(copied.size, |meta| meta.size);
    let atomic = ends.to.keeps(Operation::Copy, &options.condition);
    let sent = PutOutcome {
        moved: TransferOutcome { bytes, verified, atomic, made: ResultObject::of(&copied) },
        meta: copied,
    };
    Ok(Some(FinishedCopy::of(sent, known.and_then(|meta| meta.version))))
}

/// Lets the store rename an object. Returns `None` if the store can't, or if a version of the source was
/// named.
async fn rename(
    ends: &CopyEnds,
    item: &CopyItem,
    source: &ObjectMeta,
) -> Result<Option<FinishedCopy>, Error> {
    if item.from.id.version.is_some() {
        return Ok(None);
    }
    let condition = &ends.request.put.condition;
    let from = url(ends.from.provider(), &item.from.id);
    let meta = match ends.from.rename(source, &item.to, condition).await {
        Err(error) if error.is_precondition() && error.target() == from => return Err(Error::replaced(from)),
        renamed => renamed?,
    };
    let Some(meta) = meta else { return Ok(None) };
    let verified = compare(ends, Some(source), &meta)?;
    let atomic = ends.to.keeps(Operation::Copy, condition);
    let moved = TransferOutcome { bytes: source.size, verified, atomic, made: ResultObject::of(&meta) };
    let sent = PutOutcome { moved, meta };
    Ok(Some(FinishedCopy { sent, version: source.version.clone(), is_moved: true }))
}

/// Compares the checksums of source and copy. If the store doesn't report both checksums, Laneway trusts that
/// the store has copied the bytes correctly.
fn compare(ends: &CopyEnds, source: Option<&ObjectMeta>, copied: &ObjectMeta) -> Result<Verified, Error> {
    let Some(source) = source else { return Ok(Verified::NotApplicable) };
    match (source.checksums.crc32c, copied.checksums.crc32c) {
        (Some(a), Some(b)) if a == b => Ok(Verified::Crc32c),
        (Some(a), Some(b)) => {
            let (a, b) = (written(&a.to_be_bytes()), written(&b.to_be_bytes()));
            let message = format!("the crc32c of the copy is {b}, but that of its source is {a}");
            Err(Error::integrity(url(ends.to.provider(), &copied.id), message))
        }
        _ => Ok(Verified::NotApplicable),
    }
}

async fn copy_parts(job: &JobState, ends: &CopyEnds, item: &CopyItem, options: &PutOptions) -> CopyOutcome {
    let meta = job.unless_cancelled(ends.from.head(&item.from.id, None)).await??;
    let mut options = ends.request.options_of_copy(&meta, options);
    options.tags = copy::kept_tags(job, ends, item, &meta).await?;
    let upload = begun(job, &ends.to, ends.to.begin(&item.to, &options), StoreUpload::Multipart).await??;
    let parts = job.engine.copy_sizes.parts(meta.size, ends.to.capabilities().parts);
    let ranges = parts.map(|(_, range)| (&item.from.id, &meta, range)).collect();
    let copied = fill(job, &ends.to, ranges, &upload, meta.checksums.crc32c, &options.condition).await?;
    let verified = compare(ends, Some(&meta), &copied)?;
    let atomic = ends.to.keeps(Operation::Complete, &options.condition);
    let moved = TransferOutcome { bytes: meta.size, verified, atomic, made: ResultObject::of(&copied) };
    Ok(FinishedCopy::of(PutOutcome { moved, meta: copied }, meta.version))
}

/// Lets the store copy ranges of objects into the parts of an upload. The store reads each object in the
/// version that its metadata names. Then completes the upload under `condition`. `crc32c` is the CRC32C of
/// all bytes, if it is known. If any of these steps fails, aborts the upload.
///
/// # Errors
/// The stores' errors.
pub(crate) async fn fill(
    job: &JobState,
    to: &Store,
    ranges: Vec<(&ObjectId, &ObjectMeta, Range<u64>)>,
    upload: &Multipart,
    crc32c: Option<u32>,
    condition: &Condition,
) -> Result<ObjectMeta, Error> {
    // Box and collect the futures. The compiler can't prove that the futures of a lazy iterator are `Send`.
    let mut copies = Vec::with_capacity(ranges.len());
    for (number, (source, meta, range)) in (1..).zip(ranges) {
        copies.push(to.part_copy(upload, number, source, meta.version.as_ref(), range).boxed());
    }
    let sent = async {
        let mut parts: Vec<Part> = futures_util::stream::iter(copies)
            .buffer_unordered(requests_at_once(job.engine.cores))
            .try_collect()
            .await?;
        parts.sort_by_key(|part| part.number);
        let whole = crc32c.map(Checksums::crc32c).unwrap_or_default();
        Ok::<_, Error>(to.complete(upload, &parts, &whole, condition).await?)
    };
    let sent = job.unless_cancelled(sent).await.and_then(|sent| sent);
    if sent.is_err()
        && let Err(e) = to.abort(upload).await
    {
        tracing::warn!(error = %e, "a failed multipart upload could not be aborted and stays in the store");
    }
    sent
}
