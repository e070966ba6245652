//! Compares two items of equal size by a checksum that both sides have, or by the modification time in an
//! object's metadata.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use laneway_store::{Checksums, ObjectMeta, Store, Version};

use super::compare::{ComparisonMethod, SideFacts, is_as_new};
use super::side::EntryPlace;
use crate::content::checksum::ChecksumSet;
use crate::event::Verified;
use crate::job::running::JobState;
use crate::local::preserve::PosixAttributes;
use crate::transfer::composite::{CompositeVerdict, judge, layout};
use crate::transfer::upload::{hashed_file, hashed_parts_while};
use crate::{Error, SyncRequest, Warning};

/// Counts items whose two sides share no kind of checksum.
#[derive(Debug, Default)]
pub(super) struct IncomparableCount(AtomicU64);

impl IncomparableCount {
    /// Reports the count, if it isn't 0.
    pub(super) async fn tell(&self, job: &JobState, request: &SyncRequest) {
        let count = self.0.load(Ordering::Relaxed);
        if count > 0 {
            let message = format!(
                "{count} of the items had no checksum in common with their source, so their times were compared"
            );
            job.warn(Warning { target: request.destination.to_string(), message }).await;
        }
    }
}

pub(super) enum ContentSource {
    File(PathBuf),
    Object(Store, Box<ObjectMeta>),
}

impl ContentSource {
    /// Returns the content of the file or object at this place. Returns `None` for an object if `store` is missing.
    pub(super) fn of(at: EntryPlace, store: Option<Store>) -> Option<Self> {
        match at {
            EntryPlace::File(path) => Some(Self::File(path)),
            EntryPlace::Object(meta) => Some(Self::Object(store?, meta)),
        }
    }
}

/// Returns whether two contents of equal size are the same: by checksums, or by their times if they share no
/// kind of checksum. Laneway first uses the checksums in listings. The ETag of an object that a KMS key or a
/// customer's key encrypts isn't its MD5. So with [`ComparisonMethod::Checksum`], Laneway requests the metadata of an
/// object whose ETag differs or whose listing shows no checksum.
///
/// # Errors
/// The store's error, if metadata can't be requested.
pub(super) async fn is_same(
    job: &JobState,
    by: ComparisonMethod,
    unknown: &IncomparableCount,
    (source, there): (ContentSource, ContentSource),
    (source_facts, there_facts): (SideFacts, SideFacts),
) -> Result<bool, Error> {
    let asks = by == ComparisonMethod::Checksum;
    let same = match (source, there) {
        (ContentSource::File(path), ContentSource::Object(store, meta))
        | (ContentSource::Object(store, meta), ContentSource::File(path)) => {
            let listed = file_is(job, &path, listed_sums(&store, &meta)).await?;
            let is_certain = listed == Some(true) || is_comparable(&meta.checksums);
            match !is_certain && (asks || listed.is_none()) {
                true => {
                    let meta = asked(job, &store, &meta).await?;
                    match file_is(job, &path, meta.checksums.clone()).await? {
                        None => {
                            by_parts(job, &store, &meta, &path, |_| {}).await?.map(|equal| equal.is_some())
                        }
                        same => same,
                    }
                    .or(listed)
                }
                false => listed,
            }
        }
        (ContentSource::Object(from, a), ContentSource::Object(to, b)) => {
            let listed = compared(&listed_sums(&from, &a), &listed_sums(&to, &b));
            let is_certain = listed == Some(true) || compared(&a.checksums, &b.checksums).is_some();
            let (mut first, mut second, mut same) = (a.checksums.clone(), b.checksums.clone(), None);
            if asks && !is_certain && !is_comparable(&first) {
                first = asked(job, &from, &a).await?.checksums;
                same = compared(&first, &second);
            }
            if asks && !is_certain && same.is_none() && !is_comparable(&second) {
                second = asked(job, &to, &b).await?.checksums;
                same = compared(&first, &second);
            }
            same.or(listed)
        }
        (ContentSource::File(_), ContentSource::File(_)) => None,
    };
    Ok(same.unwrap_or_else(|| {
        if asks {
            unknown.0.fetch_add(1, Ordering::Relaxed);
        }
        is_as_new(&source_facts, &there_facts)
    }))
}

/// Returns whether the modification time in a source object's metadata equals the modification time of the
/// destination's file.
///
/// # Errors
/// The store's error.
pub(super) async fn is_of_time(
    job: &JobState,
    source: ContentSource,
    there: SideFacts,
) -> Result<bool, Error> {
    let ContentSource::Object(store, meta) = source else { return Ok(false) };
    let metadata = asked(job, &store, &meta).await?.metadata.unwrap_or_default();
    let kept = PosixAttributes::of_object(&metadata).mtime.map(|(s, _)| s);
    Ok(kept.is_some() && kept == there.mtime)
}

pub(super) async fn asked(job: &JobState, store: &Store, meta: &ObjectMeta) -> Result<ObjectMeta, Error> {
    job.asked();
    Ok(job.unless_cancelled(store.head(&meta.id, None)).await??)
}

pub(super) fn is_comparable(sums: &Checksums) -> bool {
    sums.crc32c.is_some() || sums.crc64nvme.is_some() || sums.crc32.is_some() || sums.md5.is_some()
}

/// Returns the checksums in an object's listing. The MD5 may come from the ETag, unless the store's ETags are known not
/// to be MD5s.
pub(super) fn listed_sums(store: &Store, meta: &ObjectMeta) -> Checksums {
    let mut sums = meta.checksums.clone();
    if !store.has_opaque_etags() {
        sums.md5 = md5(meta);
    }
    sums
}

/// Returns the MD5 in a listing, which may come from the ETag.
pub(super) fn md5(meta: &ObjectMeta) -> Option<[u8; 16]> {
    let of_etag = || match &meta.version {
        Some(Version::ETag(etag)) => md5_of(etag),
        _ => None,
    };
    meta.checksums.md5.or_else(of_etag)
}

/// Returns the MD5 in an ETag. Only an object that was not uploaded in parts has such an ETag.
fn md5_of(etag: &str) -> Option<[u8; 16]> {
    if etag.len() != 32 || !etag.is_ascii() {
        return None;
    }
    let mut md5 = [0; 16];
    for (at, byte) in md5.iter_mut().enumerate() {
        *byte = u8::from_str_radix(etag.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(md5)
}

/// Returns whether two sets of checksums are of the same content, or `None` if they share no kind. Different
/// composite checksums prove nothing, because the two objects may be divided into parts at other offsets.
pub(super) fn compared(a: &Checksums, b: &Checksums) -> Option<bool> {
    fn pair<T: PartialEq>(a: Option<T>, b: Option<T>) -> Option<bool> {
        Some(a? == b?)
    }
    let pairs = [
        pair(a.crc32c, b.crc32c),
        pair(a.crc64nvme, b.crc64nvme),
        pair(a.crc32, b.crc32),
        pair(a.md5, b.md5),
        pair(a.parts, b.parts).filter(|equal| *equal),
    ];
    let known: Vec<bool> = pairs.into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.into_iter().all(|equal| equal))
}

/// Returns whether a file has these checksums. An unreadable file counts as different, so that its copy fails
/// and reports the cause.
async fn file_is(job: &JobState, path: &Path, sums: Checksums) -> Result<Option<bool>, Error> {
    if !is_comparable(&sums) {
        return Ok(None);
    }
    let wanted = ChecksumSet::to_compare_with(&sums, true);
    let path = path.to_owned();
    let run = job.engine.files.run(move || hashed_file(&path, wanted));
    Ok(match job.unless_cancelled(run).await?? {
        Ok(run) => match run.verify(&sums) {
            Ok(Verified::Unverified) => None,
            verified => Some(verified.is_ok()),
        },
        Err(_) => Some(false),
    })
}

/// Compares a file with the digest of an object's parts. Returns the kind of digest if both are equal, and
/// `Some(None)` if they differ. Returns `None` if the two can't be compared.
///
/// # Errors
/// If the file can't be read, or the job is cancelled.
pub(super) async fn by_parts(
    job: &JobState,
    store: &Store,
    meta: &ObjectMeta,
    path: &Path,
    read: impl Fn(u64) + Clone + Send + 'static,
) -> Result<Option<Option<Verified>>, Error> {
    let Some(stored) = meta.checksums.parts else { return Ok(None) };
    let Some(mut layout) = layout(job, store, meta, &stored).await? else { return Ok(None) };
    loop {
        let (path, parts, read) = (path.to_owned(), layout.parts.clone(), read.clone());
        let cancel = job.cancel.clone();
        let hashed = move || {
            hashed_parts_while(&path, (&parts, stored.digest.algorithm()), |bytes| {
                read(bytes);
                match cancel.is_set() {
                    true => Err(Error::cancelled(path.display().to_string())),
                    false => Ok(()),
                }
            })
        };
        let Some(ours) = job.engine.files.run(hashed).await?? else { return Ok(None) };
        match judge(job, store, meta, &stored, &layout, ours).await {
            Ok(CompositeVerdict::Settled(Verified::Unverified)) => return Ok(None),
            Ok(CompositeVerdict::Settled(verified)) => return Ok(Some(Some(verified))),
            Ok(CompositeVerdict::Elsewhere(found)) => layout = found,
            Err(error) if error.is_mismatch() => return Ok(Some(None)),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use laneway_store::{Composite, PartsDigest};

    use super::*;

    #[test]
    fn contents_are_the_same_where_every_checksum_that_both_have_is() {
        let crc = Checksums::crc32c;
        let md5 = |byte| {
            let mut sums = Checksums::default();
            sums.md5 = Some([byte; 16]);
            sums
        };
        let both = |value, byte| {
            let mut sums = md5(byte);
            sums.crc32c = Some(value);
            sums
        };
        assert_eq!(compared(&crc(1), &crc(1)), Some(true));
        assert_eq!(compared(&crc(1), &crc(2)), Some(false));
        assert_eq!(compared(&crc(1), &md5(1)), None);
        assert_eq!(compared(&both(1, 1), &md5(1)), Some(true));
        assert_eq!(compared(&both(1, 1), &both(1, 2)), Some(false));
        assert_eq!(compared(&Checksums::default(), &Checksums::default()), None);
    }

    #[test]
    fn an_etag_of_one_part_is_an_md5() {
        assert_eq!(md5_of("000102030405060708090a0b0c0d0e0f").map(|md5| md5[15]), Some(15));
        assert_eq!((md5_of("0123456789abcdef0123456789abcdef-3"), md5_of("opaque")), (None, None));
    }

    #[test]
    fn composites_of_other_parts_say_nothing() {
        let of = |value| {
            let mut sums = Checksums::default();
            sums.parts = Some(Composite { digest: PartsDigest::Crc32c(value), parts: 2 });
            sums
        };
        assert_eq!(compared(&of(1), &of(1)), Some(true));
        assert_eq!(compared(&of(1), &of(2)), None);
    }
}
