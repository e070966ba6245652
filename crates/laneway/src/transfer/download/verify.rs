//! Compares the received bytes with the store's checksums, before a file is moved to its final path.

use std::collections::BTreeMap;
use std::sync::Arc;

use laneway_store::{Composite, ObjectMeta, Store};

use super::FileCommit;
use super::sliced::LargeDownload;
use crate::Error;
use crate::content::checksum::{ChecksumSet, Crc, RangeChecksums};
use crate::event::Verified;
use crate::job::running::{JobState, ResultObject, TransferOutcome};
use crate::local::folder::FilePlace;
use crate::location::url;
use crate::transfer::composite::one_part;
use crate::transfer::upload::verify::name_plain_crc32;

/// Returns the store's composite checksum if the object's file must be compared with it. This is the case if
/// the checksums of the received bytes can't be combined into another checksum of the store's.
pub(super) fn composite_of(large: &LargeDownload) -> Option<Composite> {
    let stored = &large.meta.checksums;
    stored.parts.filter(|_| Crc::given_in(stored).is_none() && !large.wanted.md5)
}

/// Compares a complete file with the store's checksum. For this, combines the checksums of the file's `runs`.
/// If they can't be combined into a checksum of the store's kind, awaits `composite` (the comparison with the
/// digest of the uploaded parts), or reads the file back.
///
/// # Errors
/// `ErrorKind::Integrity` if bytes are missing or differ.
pub(super) async fn verify_file(
    job: &JobState,
    store: &Store,
    large: &LargeDownload,
    runs: &BTreeMap<u64, RangeChecksums>,
    is_move: bool,
    composite: impl Future<Output = Result<Option<Verified>, Error>>,
) -> Result<Verified, Error> {
    let (source, meta) = (url(store.provider(), &large.meta.id), &large.meta);
    let verified = verify(&source, meta, runs, large.wanted)?;
    if verified != Verified::Unverified {
        return Ok(verified);
    }
    match composite.await? {
        Some(verified) => Ok(verified),
        // A move must compare a checksum before it removes the source. Several streams fetched this object,
        // so read the file back to compute its MD5.
        None if large.wanted.md5 || (is_move && meta.checksums.md5.is_some()) => {
            read_back(job, source, large).await
        }
        None => Ok(verified),
    }
}

/// Reads a file back and compares its MD5. This is needed if no single stream brought the whole file.
async fn read_back(job: &JobState, source: String, large: &LargeDownload) -> Result<Verified, Error> {
    let (staged, meta) = (Arc::clone(&large.staged), Arc::clone(&large.meta));
    let wanted = ChecksumSet::to_compare_with(&meta.checksums, true);
    let cancel = job.cancel.clone();
    let compare = move || {
        let run = staged.read_back(0..meta.size, wanted, &|| cancel.is_set())?;
        run.verify(&meta.checksums).map_err(|difference| Error::mismatch(source, difference))
    };
    job.engine.files.run(compare).await?
}

/// Compares the received bytes with the store's checksum of the whole object.
fn verify(
    source: &str,
    meta: &ObjectMeta,
    runs: &BTreeMap<u64, RangeChecksums>,
    wanted: ChecksumSet,
) -> Result<Verified, Error> {
    let mut whole = RangeChecksums::of(b"", wanted);
    for (start, run) in runs {
        if *start != whole.len {
            return Err(Error::integrity(source, format!("bytes from {} to {start} are missing", whole.len)));
        }
        whole = whole.then(*run);
    }
    if whole.len != meta.size {
        return Err(Error::integrity(source, format!("{} of {} bytes arrived", whole.len, meta.size)));
    }
    whole.verify(&meta.checksums).map_err(|difference| Error::mismatch(source, difference))
}

/// Compares a small object with the store's checksum, and writes it to its file. Blocks the thread.
pub(crate) fn store_small(
    store: &Store,
    meta: &ObjectMeta,
    bytes: &[u8],
    place: &FilePlace,
    placing: &FileCommit,
) -> Result<TransferOutcome, Error> {
    let mut runs = BTreeMap::new();
    let wanted = ChecksumSet::to_compare_with(&meta.checksums, true);
    if !bytes.is_empty() {
        runs.insert(0, RangeChecksums::of(bytes, wanted));
    }
    let verified = verify(&url(store.provider(), &meta.id), meta, &runs, wanted)
        .map_err(|error| name_plain_crc32(error, meta, bytes))?;
    let verified = match verified {
        Verified::Unverified => one_part(store, meta, bytes)?,
        verified => verified,
    };
    let staged = place.stage(0)?;
    staged.write_at(bytes, 0)?;
    placing.commit(&staged)?;
    Ok(TransferOutcome { bytes: meta.size, verified, atomic: true, made: ResultObject::of(meta) })
}
