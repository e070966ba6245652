//! Comparing by S3's composite CRC32C, the checksum of the parts' checksums of whoever uploaded the object. Where its
//! parts end has to be asked.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use laneway_store::{CompositeCrc32c, ObjectMeta, Store};

use crate::Error;
use crate::checksum::{Crc, Run, Wanted, composite_crc32c, written};
use crate::event::Verified;
use crate::folder::Staged;
use crate::location::url;
use crate::plan::boundaries::{Stretch, cover, even, of_lens};
use crate::plan::pieces_in_flight;
use crate::work::Work;

/// Compares a file, all of which has come, with the composite checksum that the store told. Usually the first part's
/// length tells all of them, in one request; only where that does not come out right each part is asked for.
///
/// # Errors
/// The checksum differs. A store that doesn't tell the parts' lengths is no error: the object is unverified then.
pub(super) async fn verify(
    work: &Work,
    store: &Store,
    meta: &ObjectMeta,
    staged: &Arc<Staged>,
    told: CompositeCrc32c,
) -> Result<Verified, Error> {
    let version = meta.version.as_ref();
    let len_of = |number| work.unless_cancelled(store.part_len(&meta.id, version, number));
    let Ok(Some(first)) = len_of(1).await? else { return Ok(Verified::Unverified) };
    let count = if told.parts > 0 { told.parts } else { meta.size.div_ceil(first.max(1)) as u32 };
    if let Some(parts) = even(meta.size, first, count)
        && value(work, staged, parts).await? == told.value
    {
        return Ok(Verified::Composite);
    }
    let lens: Vec<_> = futures_util::stream::iter(1..=count)
        .map(len_of)
        .buffered(pieces_in_flight(work.engine.cores))
        .try_collect()
        .await?;
    let lens: Option<Vec<u64>> = lens.into_iter().map(|len| len.ok().flatten()).collect();
    let Some(parts) = lens.and_then(|lens| of_lens(meta.size, &lens)) else {
        return Ok(Verified::Unverified);
    };
    let ours = value(work, staged, parts).await?;
    if ours != told.value {
        let message = format!(
            "the crc32c of the parts' bytes is {}, the store says {}",
            written(&ours.to_be_bytes()),
            written(&told.value.to_be_bytes())
        );
        return Err(Error::mismatch(url(store.provider(), &meta.id), message));
    }
    Ok(Verified::Composite)
}

/// The composite of these parts of a file: from what its journal claims, and from the file itself where a part ends
/// within a claim.
async fn value(work: &Work, staged: &Arc<Staged>, parts: Vec<std::ops::Range<u64>>) -> Result<u32, Error> {
    let (staged, cancel) = (Arc::clone(staged), work.cancel.clone());
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
    work.engine.files.run(compute).await?
}
