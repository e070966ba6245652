//! Compares the entries of a name on both sides.

use std::path::Path;
use std::sync::Arc;

use laneway_store::{Checksums, Version};

use crate::content::checksum::ChecksumSet;
use crate::event::Verified;
use crate::job::running::JobState;
use crate::transfer::sync::content::{asked, by_parts, is_comparable, listed_sums, md5};
use crate::transfer::sync::side::{EntryPlace, SideEntry};
use crate::transfer::upload::hashed_file_while;
use crate::{Error, Location};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::transfer::sync) enum Finding {
    /// Both sides have the name, with equal sizes. The checksums are equal too, unless this is `Unverified`:
    /// then the sides have no kind of checksum in common.
    Same(Verified),
    /// The destination lacks the name.
    Missing,
    /// The source lacks the name.
    Extra,
    /// The sizes differ. The first number is the source's size, the second the destination's.
    Size(u64, u64),
    /// The ETags differ. ETags are MD5s, unless a KMS or customer's key encrypts the object. Listings don't
    /// show such keys.
    Etag,
    /// This checksum differs.
    Checksum(&'static str),
    /// One of the sides can't be read, for this reason.
    Unreadable(String),
}

impl Finding {
    pub(in crate::transfer::sync) fn message(&self) -> String {
        match self {
            Self::Same(Verified::Unverified) => {
                "the sizes are equal, but source and destination have no kind of checksum in common".to_owned()
            }
            Self::Same(verified) => format!("size and {verified} are equal"),
            Self::Missing => "the source has it, but the destination doesn't".to_owned(),
            Self::Extra => "the destination has it, but the source doesn't".to_owned(),
            Self::Size(source, destination) => {
                format!("it has {destination} bytes at the destination, and {source} at the source")
            }
            Self::Etag => "its ETag differs from the source's, so the content differs, unless a KMS or customer key encrypts one of them".to_owned(),
            Self::Checksum(name) => format!("its {name} differs from the source's"),
            Self::Unreadable(why) => why.clone(),
        }
    }
}

pub(in crate::transfer::sync) fn finding(
    source: Option<&SideEntry>,
    destination: Option<&SideEntry>,
) -> Finding {
    let (source, destination) = match (source, destination) {
        (Some(source), Some(destination)) => (source, destination),
        (Some(_), None) => return Finding::Missing,
        (None, _) => return Finding::Extra,
    };
    if source.facts.size != destination.facts.size {
        return Finding::Size(source.facts.size, destination.facts.size);
    }
    let (EntryPlace::Object(source), EntryPlace::Object(destination)) = (&source.at, &destination.at) else {
        return Finding::Same(Verified::Unverified);
    };
    match contents(&source.checksums, &destination.checksums) {
        Finding::Same(Verified::Unverified) => {}
        finding => return finding,
    }
    match (md5(source), md5(destination)) {
        (Some(a), Some(b)) if a == b => Finding::Same(Verified::Md5),
        (Some(_), Some(_)) => Finding::Etag,
        _ if is_one_etag(&source.version, &destination.version) => Finding::Same(Verified::CompositeMd5),
        _ => Finding::Same(Verified::Unverified),
    }
}

/// Returns whether two ETags of the form `MD5-N` are equal. If so, the content is equal. Different ones prove
/// nothing, because the two objects may be divided into parts at other offsets.
fn is_one_etag(a: &Option<Version>, b: &Option<Version>) -> bool {
    match (a, b) {
        (Some(Version::ETag(a)), Some(Version::ETag(b))) => {
            let is_of_parts =
                a.split_once('-').is_some_and(|(md5, n)| md5.len() == 32 && n.parse::<u32>().is_ok());
            is_of_parts && a == b
        }
        _ => false,
    }
}

pub(super) fn contents(a: &Checksums, b: &Checksums) -> Finding {
    fn pair<T: PartialEq>(a: Option<T>, b: Option<T>) -> Option<bool> {
        Some(a? == b?)
    }
    let of_parts = a.parts.map_or(Verified::Composite, |sum| Verified::of_parts(sum.digest.algorithm()));
    let pairs = [
        (Verified::Crc32c, "crc32c", pair(a.crc32c, b.crc32c)),
        (Verified::Crc64nvme, "crc64nvme", pair(a.crc64nvme, b.crc64nvme)),
        (Verified::Crc32, "crc32", pair(a.crc32, b.crc32)),
        (Verified::Md5, "md5", pair(a.md5, b.md5)),
        // Different digests prove nothing, because the parts may end at other offsets.
        (of_parts, "digest of the parts", pair(a.parts, b.parts).filter(|equal| *equal)),
    ];
    let mut same = None;
    for (verified, name, equal) in pairs {
        match equal {
            Some(false) => return Finding::Checksum(name),
            Some(true) => same = same.or(Some(verified)),
            None => {}
        }
    }
    Finding::Same(same.unwrap_or(Verified::Unverified))
}

/// Compares two entries of equal size, at least one of which is a local file. If an object's listing shows no
/// checksum of all its bytes, requests the object's metadata.
///
/// # Errors
/// If a file can't be read, or changes meanwhile; a store's error.
pub(super) async fn content_finding(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_compared_by_what_both_listings_tell() {
        let md5 = |byte| {
            let mut sums = Checksums::default();
            sums.md5 = Some([byte; 16]);
            sums
        };
        assert_eq!(contents(&Checksums::crc32c(1), &Checksums::crc32c(1)), Finding::Same(Verified::Crc32c));
        assert_eq!(contents(&Checksums::crc32c(1), &Checksums::crc32c(2)), Finding::Checksum("crc32c"));
        assert_eq!(contents(&md5(1), &md5(2)), Finding::Checksum("md5"));
        assert_eq!(contents(&md5(1), &Checksums::crc32c(1)), Finding::Same(Verified::Unverified));
    }

    #[test]
    fn etags_of_parts_tell_only_where_they_are_equal() {
        let etag = |text: &str| Some(Version::ETag(text.to_owned()));
        let parts = "0123456789abcdef0123456789abcdef-3";
        assert!(is_one_etag(&etag(parts), &etag(parts)));
        assert!(!is_one_etag(&etag(parts), &etag("0123456789abcdef0123456789abcdef-4")));
        assert!(!is_one_etag(&etag("opaque-7"), &etag("opaque-7")), "an ETag of another form proves nothing");
        assert!(!is_one_etag(&Some(Version::Generation(1)), &Some(Version::Generation(1))));
    }
}
