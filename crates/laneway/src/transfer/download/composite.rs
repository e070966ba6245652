//! Compares a complete file with the store's composite checksum. Laneway combines the CRCs of the claims in
//! the file's journal. If a part begins or ends inside a claim, Laneway reads these bytes back from the file.
//! For digests that can't be combined, such as MD5s, it reads the whole file back.

use std::ops::Range;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use laneway_store::{Composite, ObjectMeta, PartsAlgorithm, PartsDigest, Store};

use crate::Error;
use crate::content::checksum::{Crc, RangeChecksums};
use crate::event::Verified;
use crate::job::running::JobState;
use crate::local::folder::{Claim, StagedFile};
use crate::plan::boundaries::{RangeSection, cover};
use crate::transfer::composite::{CompositeVerdict, judge, layout};

/// Compares the file with the composite checksum.
///
/// # Errors
/// If the digests differ. If the store doesn't report the parts' lengths, the result is `Unverified` instead
/// of an error.
pub(super) async fn verify(
    job: &JobState,
    store: &Store,
    meta: &ObjectMeta,
    staged: &Arc<StagedFile>,
    stored: Composite,
) -> Result<Verified, Error> {
    let Some(mut layout) = layout(job, store, meta, &stored).await? else { return Ok(Verified::Unverified) };
    loop {
        let ours = digest(job, staged, &layout.parts, stored.digest.algorithm()).await?;
        let Some(ours) = ours else { return Ok(Verified::Unverified) };
        match judge(job, store, meta, &stored, &layout, ours).await? {
            CompositeVerdict::Settled(verified) => return Ok(verified),
            CompositeVerdict::Elsewhere(found) => layout = found,
        }
    }
}

/// Returns the digest of these parts of a file. Several file threads each read another part at the same time,
/// because one thread computes MD5s more slowly than the network delivers bytes.
async fn digest(
    job: &JobState,
    staged: &Arc<StagedFile>,
    parts: &[Range<u64>],
    algorithm: PartsAlgorithm,
) -> Result<Option<PartsDigest>, Error> {
    let read = Arc::clone(staged);
    let claimed = move || {
        let claims = read.claims();
        let ranges: Vec<_> = claims.iter().map(Claim::range).collect();
        (claims, ranges)
    };
    let claims = Arc::new(job.engine.files.run(claimed).await?);
    let digests: Vec<Vec<u8>> = futures_util::stream::iter(parts.to_vec())
        .map(|part| {
            let (staged, claims, cancel) = (Arc::clone(staged), Arc::clone(&claims), job.cancel.clone());
            let compute = move || of_part(&staged, &claims, part, algorithm, &|| cancel.is_set());
            async move { job.engine.files.run(compute).await? }
        })
        .buffered(job.engine.cores.max(1))
        .try_collect()
        .await?;
    Ok(algorithm.over(&digests.concat()))
}

fn of_part(
    staged: &StagedFile,
    (claims, ranges): &(Vec<Claim>, Vec<Range<u64>>),
    part: Range<u64>,
    algorithm: PartsAlgorithm,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Vec<u8>, Error> {
    let Some(crc) = Crc::of_parts(algorithm) else {
        let mut hasher = algorithm.part();
        staged.read_through(part, is_cancelled, &mut |bytes| hasher.update(bytes))?;
        return Ok(hasher.finish());
    };
    let mut whole = RangeChecksums::of(b"", crc.wanted());
    for stretch in cover(&part, ranges) {
        whole = whole.then(match stretch {
            RangeSection::Claim(i) => claims[i].run(crc),
            RangeSection::Bytes(bytes) => staged.read_back(bytes, crc.wanted(), is_cancelled)?,
        });
    }
    Ok((whole.value(crc).unwrap_or_default() as u32).to_be_bytes().to_vec())
}
