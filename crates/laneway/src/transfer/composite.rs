//! Compares bytes with an S3 composite checksum, which is a digest of the digests of the object's parts. To
//! compute the same digest, Laneway must first find out where these parts end.

use std::ops::Range;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use laneway_store::{Composite, ObjectMeta, PartRules, PartsAlgorithm, PartsDigest, Store};

use crate::Error;
use crate::content::checksum::written;
use crate::event::Verified;
use crate::job::running::JobState;
use crate::location::url;
use crate::plan::boundaries::{even, of_lens};
use crate::plan::requests_at_once;

/// The ranges of an object's parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CompositeLayout {
    pub(crate) parts: Vec<Range<u64>>,
    /// True if the store reported the length of every part. False if it reported only the first and the last
    /// length, and Laneway assumed that the other parts are as long as the first.
    is_certain: bool,
}

/// The result of the comparison of our digest with the store's digest. Our digest was computed for an assumed
/// layout.
pub(crate) enum CompositeVerdict {
    /// The bytes are equal, or can't be compared.
    Settled(Verified),
    /// The parts end at other offsets than assumed. Compute the digest again for this layout, and compare it.
    Elsewhere(CompositeLayout),
}

impl CompositeLayout {
    fn certain(size: u64, lens: &[u64], stored: &Composite) -> Option<Self> {
        let is_count = stored.parts == 0 || stored.parts as usize == lens.len();
        let parts = of_lens(size, lens).filter(|_| is_count)?;
        Some(Self { parts, is_certain: true })
    }
}

/// Finds out the end offsets of an object's parts. If the parts have checksums, one request lists their
/// lengths. Otherwise Laneway requests the lengths of the first and the last part, and assumes that the other
/// parts are as long as the first. If parts of these lengths don't make up the object's size, Laneway
/// requests the length of each part. Returns `None` if the store doesn't report the lengths.
///
/// # Errors
/// If the job was cancelled.
pub(crate) async fn layout(
    job: &JobState,
    store: &Store,
    meta: &ObjectMeta,
    stored: &Composite,
) -> Result<Option<CompositeLayout>, Error> {
    if stored.parts == 1 {
        return Ok(CompositeLayout::certain(meta.size, &[meta.size], stored));
    }
    let version = meta.version.as_ref();
    if stored.digest.algorithm() != PartsAlgorithm::Md5 {
        // Listing the parts' lengths needs a permission of its own, and some stores don't support it. If it
        // fails, request the lengths of single parts instead.
        let listed = job.unless_cancelled(store.part_lens(&meta.id, version)).await?;
        let lens = listed.ok().flatten();
        if let Some(layout) = lens.and_then(|lens| CompositeLayout::certain(meta.size, &lens, stored)) {
            return Ok(Some(layout));
        }
    }
    let len_of = |number| job.unless_cancelled(store.part_len(&meta.id, version, number));
    let Ok(Some(first)) = len_of(1).await? else { return Ok(None) };
    let count = if stored.parts > 0 { stored.parts.into() } else { meta.size.div_ceil(first.max(1)) };
    // No store allows more parts than S3, so a larger count means that the answer was wrong.
    let Ok(count) = u32::try_from(count.min(PartRules::S3.count_max + 1)) else { return Ok(None) };
    if u64::from(count) > PartRules::S3.count_max {
        return Ok(None);
    }
    if let Some(parts) = even(meta.size, first, count)
        && let Some(end) = parts.last()
        && let Ok(Some(last)) = len_of(count).await?
        && last == end.end - end.start
    {
        return Ok(Some(CompositeLayout { parts, is_certain: false }));
    }
    each(job, store, meta, stored, count).await
}

async fn each(
    job: &JobState,
    store: &Store,
    meta: &ObjectMeta,
    stored: &Composite,
    count: u32,
) -> Result<Option<CompositeLayout>, Error> {
    let version = meta.version.as_ref();
    let asked = futures_util::stream::iter(1..=count)
        .map(|number| job.unless_cancelled(store.part_len(&meta.id, version, number)))
        .buffered(requests_at_once(job.engine.cores));
    let (mut asked, mut lens) = (std::pin::pin!(asked), Vec::new());
    while let Some(len) = asked.try_next().await? {
        // If one length is missing, the offsets of all later parts are unknown.
        let Ok(Some(len)) = len else { return Ok(None) };
        lens.push(len);
    }
    Ok(CompositeLayout::certain(meta.size, &lens, stored))
}

/// Compares the store's digest with our digest, which was computed for `layout`. Not every store computes
/// ETags from the MD5s of the parts. So if the store's digest is an ETag, a difference proves an error only
/// at Amazon, or once another ETag of this store has matched.
///
/// # Errors
/// `ErrorKind::Integrity` if the digests differ, provided that the store's digest can be trusted and the
/// store reported the length of every part.
pub(crate) async fn judge(
    job: &JobState,
    store: &Store,
    meta: &ObjectMeta,
    stored: &Composite,
    layout: &CompositeLayout,
    ours: PartsDigest,
) -> Result<CompositeVerdict, Error> {
    if ours != stored.digest && !layout.is_certain && is_trusted(store, stored) {
        return Ok(match each(job, store, meta, stored, layout.parts.len() as u32).await? {
            Some(found) if found.parts != layout.parts => CompositeVerdict::Elsewhere(found),
            Some(found) => CompositeVerdict::Settled(settle(store, meta, stored, &found, ours)?),
            None => CompositeVerdict::Settled(Verified::Unverified),
        });
    }
    settle(store, meta, stored, layout, ours).map(CompositeVerdict::Settled)
}

fn settle(
    store: &Store,
    meta: &ObjectMeta,
    stored: &Composite,
    layout: &CompositeLayout,
    ours: PartsDigest,
) -> Result<Verified, Error> {
    let algorithm = stored.digest.algorithm();
    if ours == stored.digest {
        if algorithm == PartsAlgorithm::Md5 {
            store.trust_md5s_of_parts();
        }
        return Ok(Verified::of_parts(algorithm));
    }
    if !layout.is_certain || !is_trusted(store, stored) {
        return Ok(Verified::Unverified);
    }
    let message = format!(
        "the {} of the parts' bytes is {}, but the store reports {}",
        algorithm.name(),
        written(&ours.bytes()),
        written(&stored.digest.bytes())
    );
    Err(Error::mismatch(url(store.provider(), &meta.id), message))
}

fn is_trusted(store: &Store, stored: &Composite) -> bool {
    stored.digest.algorithm() != PartsAlgorithm::Md5 || store.trusts_md5s_of_parts()
}

/// Compares an object in memory with the store's composite checksum if the object was uploaded as a single
/// part. With a single part, no request for the parts' lengths is needed.
///
/// # Errors
/// `ErrorKind::Integrity` if the digests differ.
pub(crate) fn one_part(store: &Store, meta: &ObjectMeta, bytes: &[u8]) -> Result<Verified, Error> {
    let Some(stored) = meta.checksums.parts.filter(|stored| stored.parts == 1) else {
        return Ok(Verified::Unverified);
    };
    let layout = CompositeLayout { parts: std::iter::once(0..meta.size).collect(), is_certain: true };
    match of_slices(&layout.parts, stored.digest.algorithm(), bytes) {
        Some(ours) => settle(store, meta, &stored, &layout, ours),
        None => Ok(Verified::Unverified),
    }
}

/// Compares a whole object in memory with the store's composite checksum, if there is one.
///
/// # Errors
/// `ErrorKind::Integrity` if the digests differ.
pub(crate) async fn in_memory(
    job: &JobState,
    store: &Store,
    meta: &ObjectMeta,
    bytes: &Bytes,
) -> Result<Verified, Error> {
    let Some(stored) = meta.checksums.parts else { return Ok(Verified::Unverified) };
    let Some(mut layout) = layout(job, store, meta, &stored).await? else { return Ok(Verified::Unverified) };
    loop {
        let (parts, bytes) = (layout.parts.clone(), bytes.clone());
        let ours = move || of_slices(&parts, stored.digest.algorithm(), &bytes);
        let Some(ours) = job.engine.files.run(ours).await? else { return Ok(Verified::Unverified) };
        match judge(job, store, meta, &stored, &layout, ours).await? {
            CompositeVerdict::Settled(verified) => return Ok(verified),
            CompositeVerdict::Elsewhere(found) => layout = found,
        }
    }
}

fn of_slices(parts: &[Range<u64>], algorithm: PartsAlgorithm, bytes: &[u8]) -> Option<PartsDigest> {
    let mut digests = Vec::new();
    for part in parts {
        let mut hasher = algorithm.part();
        hasher.update(bytes.get(part.start as usize..part.end as usize)?);
        digests.extend(hasher.finish());
    }
    algorithm.over(&digests)
}
