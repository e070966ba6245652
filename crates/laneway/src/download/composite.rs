//! Compares by S3's composite CRC32C, the checksum of the checksums of the uploaded parts. The store must be
//! asked for the parts' lengths.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use laneway_store::{CompositeCrc32c, ObjectMeta, Store};

use crate::Error;
use crate::checksum::{Crc, Run, Wanted, composite_crc32c, written};
use crate::event::Verified;
use crate::folder::Staged;
use crate::location::url;
use crate::plan::boundaries::{Stretch, cover, even, of_lens};
use crate::plan::requests_at_once;
use crate::running::Running;

/// Compares a complete file with the composite checksum that the store gave. Usually the first part's length
/// determines all others, which takes one request. Only if that doesn't match, each part is requested.
///
/// # Errors
/// If the checksum differs. A store that doesn't report the parts' lengths isn't an error: the object is
/// unverified then.
pub(super) async fn verify(
    job: &Running,
    store: &Store,
    meta: &ObjectMeta,
    staged: &Arc<Staged>,
    stored: CompositeCrc32c,
) -> Result<Verified, Error> {
    let version = meta.version.as_ref();
    let len_of = |number| job.unless_cancelled(store.part_len(&meta.id, version, number));
    let Ok(Some(first)) = len_of(1).await? else { return Ok(Verified::Unverified) };
    let count = if stored.parts > 0 { stored.parts } else { meta.size.div_ceil(first.max(1)) as u32 };
    if let Some(parts) = even(meta.size, first, count)
        && value(job, staged, parts).await? == stored.value
    {
        return Ok(Verified::Composite);
    }
    let lens: Vec<_> = futures_util::stream::iter(1..=count)
        .map(len_of)
        .buffered(requests_at_once(job.engine.cores))
        .try_collect()
        .await?;
    let lens: Option<Vec<u64>> = lens.into_iter().map(|len| len.ok().flatten()).collect();
    let Some(parts) = lens.and_then(|lens| of_lens(meta.size, &lens)) else {
        return Ok(Verified::Unverified);
    };
    let ours = value(job, staged, parts).await?;
    if ours != stored.value {
        let message = format!(
            "the crc32c of the parts' bytes is {}, the store says {}",
            written(&ours.to_be_bytes()),
            written(&stored.value.to_be_bytes())
        );
        return Err(Error::mismatch(url(store.provider(), &meta.id), message));
    }
    Ok(Verified::Composite)
}

/// Returns the composite checksum of these parts of a file. It uses the journal's claims, and the file itself
/// for parts that end within a claim.
async fn value(job: &Running, staged: &Arc<Staged>, parts: Vec<std::ops::Range<u64>>) -> Result<u32, Error> {
    let (staged, cancel) = (Arc::clone(staged), job.cancel.clone());
    let compute = move || {
        let claims = staged.claims();
        let ranges: Vec<_> = claims.iter().map(|claim| claim.range()).collect();
        let mut crcs = Vec::with_capacity(parts.len());
        for part in parts {
            let mut whole = Run::of(b"", Wanted::CRC32C);
            for stretch in cover(&part, &ranges) {
                whole = whole.then(match stretch {
                    Stretch::Claim(i) => claims[i].run(Crc::Crc32c),
                    Stretch::Bytes(bytes) => staged.read_back(bytes, Wanted::CRC32C, &|| cancel.is_set())?,
                });
            }
            crcs.push(whole.crc32c.unwrap_or_default());
        }
        Ok::<_, Error>(composite_crc32c(crcs))
    };
    job.engine.files.run(compute).await?
}
