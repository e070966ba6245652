//! Compares a file with the store's composite checksum. Laneway combines the CRCs of the claims in the file's
//! journal. If a part begins or ends inside a claim, Laneway reads these bytes back from the file. For digests
//! that can't be combined, such as MD5s, it reads each part back, as soon as all bytes of the part have arrived.
//! With two cores, reading a GiB back after the last byte would take about a second.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, TryStreamExt};
use laneway_store::{Composite, ObjectMeta, PartsAlgorithm, Store};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::Error;
use crate::content::checksum::{Crc, RangeChecksums};
use crate::event::Verified;
use crate::job::running::JobState;
use crate::local::folder::{Claim, StagedFile};
use crate::plan::boundaries::{PartArrivals, RangeSection, cover};
use crate::transfer::composite::{CompositeVerdict, judge, layout};

/// The number of bytes that a file thread reads back at a time. One core computes the MD5 of this number of
/// bytes in some 7 ms.
const STEP: u64 = 4 << 20;

/// Compares the file with the composite checksum. `claimed` yields the ranges that are written, and ends when
/// the file is complete.
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
    mut claimed: UnboundedReceiver<Range<u64>>,
) -> Result<Verified, Error> {
    let Some(mut layout) = layout(job, store, meta, &stored).await? else { return Ok(Verified::Unverified) };
    let algorithm = stored.digest.algorithm();
    loop {
        let digests = match Crc::of_parts(algorithm) {
            Some(crc) => combined(job, staged, &layout.parts, crc, &mut claimed).await?,
            None => read_back(job, staged, &layout.parts, algorithm, &mut claimed).await?,
        };
        let Some(ours) = algorithm.over(&digests.concat()) else { return Ok(Verified::Unverified) };
        match judge(job, store, meta, &stored, &layout, ours).await? {
            CompositeVerdict::Settled(verified) => return Ok(verified),
            CompositeVerdict::Elsewhere(found) => layout = found,
        }
    }
}

async fn claims(job: &JobState, staged: &Arc<StagedFile>) -> Result<Vec<Claim>, Error> {
    let staged = Arc::clone(staged);
    job.engine.files.run(move || staged.claims()).await
}

/// Returns the CRC of each part. Combines the CRCs of the journal's ranges if there is a journal. Several file threads read different parts in
/// parallel, because without a journal the whole file must be read.
async fn combined(
    job: &JobState,
    staged: &Arc<StagedFile>,
    parts: &[Range<u64>],
    crc: Crc,
    claimed: &mut UnboundedReceiver<Range<u64>>,
) -> Result<Vec<Vec<u8>>, Error> {
    while claimed.recv().await.is_some() {}
    let claims = claims(job, staged).await?;
    let ranges: Vec<_> = claims.iter().map(Claim::range).collect();
    let claims = Arc::new((claims, ranges));
    futures_util::stream::iter(parts.to_vec())
        .map(|part| {
            let (staged, claims, cancel) = (Arc::clone(staged), Arc::clone(&claims), job.cancel.clone());
            let compute =
                move || crc_of_part(&staged, (&claims.0, &claims.1), &part, crc, &|| cancel.is_set());
            async move { job.engine.files.run(compute).await? }
        })
        .buffered(job.engine.cores.max(1))
        .try_collect()
        .await
}

fn crc_of_part(
    staged: &StagedFile,
    (claims, ranges): (&[Claim], &[Range<u64>]),
    part: &Range<u64>,
    crc: Crc,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Vec<u8>, Error> {
    let mut whole = RangeChecksums::of(b"", crc.wanted());
    for stretch in cover(part, ranges) {
        whole = whole.then(match stretch {
            RangeSection::Claim(i) => claims[i].run(crc),
            RangeSection::Bytes(bytes) => staged.read_back(bytes, crc.wanted(), is_cancelled)?,
        });
    }
    Ok((whole.value(crc).unwrap_or_default() as u32).to_be_bytes().to_vec())
}

/// Returns the digest of each part. Reads a part back from the file when all its bytes have arrived. Several
/// file threads read different parts in parallel, because a single thread may compute MD5s more slowly than
/// the network delivers bytes.
async fn read_back(
    job: &JobState,
    staged: &Arc<StagedFile>,
    parts: &[Range<u64>],
    algorithm: PartsAlgorithm,
    claimed: &mut UnboundedReceiver<Range<u64>>,
) -> Result<Vec<Vec<u8>>, Error> {
    let mut arrivals = PartArrivals::new(parts.to_vec());
    let earlier = claims(job, staged).await?;
    let mut waiting: VecDeque<usize> =
        earlier.iter().flat_map(|claim| arrivals.add(&claim.range())).collect();
    let (mut under_way, mut has_all) = (FuturesUnordered::new(), false);
    let mut digests = vec![Vec::new(); parts.len()];
    loop {
        while under_way.len() < job.engine.cores.max(1)
            && let Some(i) = waiting.pop_front()
        {
            let part = parts[i].clone();
            under_way.push(async move { Ok::<_, Error>((i, digest(job, staged, part, algorithm).await?)) });
        }
        if has_all && under_way.is_empty() {
            return Ok(digests);
        }
        tokio::select! {
            Some(ended) = under_way.next(), if !under_way.is_empty() => {
                let (i, digest) = ended?;
                digests[i] = digest;
            }
            range = claimed.recv(), if !has_all => {
                has_all = range.is_none();
                waiting.extend(match range {
                    Some(range) => arrivals.add(&range),
                    None => arrivals.missing(),
                });
            }
        }
    }
}

/// Reads one part back, and returns its digest. Between two steps, file threads can do other work.
async fn digest(
    job: &JobState,
    staged: &Arc<StagedFile>,
    part: Range<u64>,
    algorithm: PartsAlgorithm,
) -> Result<Vec<u8>, Error> {
    let mut hasher = algorithm.part();
    let mut at = part.start;
    while at < part.end {
        let step = at..part.end.min(at + STEP);
        at = step.end;
        let (staged, cancel) = (Arc::clone(staged), job.cancel.clone());
        let read = move || {
            staged.read_through(step, &|| cancel.is_set(), &mut |bytes| hasher.update(bytes))?;
            Ok::<_, Error>(hasher)
        };
        hasher = job.engine.files.run(read).await??;
    }
    Ok(hasher.finish())
}
