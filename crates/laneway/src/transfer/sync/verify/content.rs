//! Compares a local file's bytes with the other side's checksums.

use std::path::Path;
use std::sync::Arc;

use laneway_store::Checksums;

use super::finding::{Finding, contents};
use crate::content::checksum::ChecksumSet;
use crate::event::Verified;
use crate::job::running::JobState;
use crate::transfer::sync::content::{asked, by_parts, is_comparable, listed_sums};
use crate::transfer::sync::side::{EntryPlace, SideEntry};
use crate::transfer::upload::hashed_file_while;
use crate::{Error, Location};

/// Compares two entries of equal size, at least one of which is a local file. If an object's listing shows no
/// checksum of all its bytes, requests the object's metadata.
///
/// # Errors
/// If a file can't be read, or changes meanwhile; a store's error.
pub(super) async fn finding(
    job: &Arc<JobState>,
    source: (&Location, &SideEntry),
    destination: (&Location, &SideEntry),
) -> Result<Finding, Error> {
    let (path, meta) = match (&source.1.at, &destination.1.at) {
        (EntryPlace::File(path), EntryPlace::File(other)) => {
            let (ours, theirs) =
                (hashed(job, path, ChecksumSet::CRC32C), hashed(job, other, ChecksumSet::CRC32C));
            return Ok(contents(&ours.await?, &theirs.await?));
        }
        (EntryPlace::File(path), EntryPlace::Object(meta))
        | (EntryPlace::Object(meta), EntryPlace::File(path)) => (path, meta),
        (EntryPlace::Object(_), EntryPlace::Object(_)) => return Ok(Finding::Same(Verified::Unverified)),
    };
    let place = if source.0.is_object() { source.0 } else { destination.0 };
    let Some((provider, _)) = place.as_object() else { return Ok(Finding::Same(Verified::Unverified)) };
    let store = job.store(provider)?;
    let listed = listed_sums(store, meta);
    let mut found = Finding::Same(Verified::Unverified);
    if is_comparable(&listed) {
        found = contents(&hashed(job, path, ChecksumSet::to_compare_with(&listed, true)).await?, &listed);
        // A different ETag proves nothing yet. If a KMS key or a customer's key encrypts the object, its ETag
        // isn't an MD5. The object's metadata shows how it is encrypted.
        if matches!(found, Finding::Same(_)) || is_comparable(&meta.checksums) {
            return Ok(found);
        }
        found = Finding::Etag;
    }
    let meta = asked(job, store, meta).await?;
    let sums = &meta.checksums;
    if is_comparable(sums) {
        return Ok(contents(&hashed(job, path, ChecksumSet::to_compare_with(sums, true)).await?, sums));
    }
    let (reading, size) = (Arc::clone(job), meta.size);
    job.progress.sized(size);
    Ok(match by_parts(job, store, &meta, path, move |bytes| reading.progress.moved(bytes)).await? {
        Some(Some(verified)) => Finding::Same(verified),
        Some(None) => Finding::Checksum("digest of the parts"),
        None => found,
    })
}

/// Returns the checksums of a file. While the file is read, the job's progress counts its bytes as moved.
async fn hashed(job: &Arc<JobState>, path: &Path, wanted: ChecksumSet) -> Result<Checksums, Error> {
    let (reading, path) = (Arc::clone(job), path.to_owned());
    let size = path.metadata().map_or(0, |metadata| metadata.len());
    job.progress.sized(size);
    let read = move || {
        hashed_file_while(&path, wanted, |bytes| {
            reading.progress.moved(bytes);
            match reading.cancel.is_set() {
                true => Err(Error::cancelled(path.display().to_string())),
                false => Ok(()),
            }
        })
    };
    Ok(job.engine.files.run(read).await??.checksums())
}
