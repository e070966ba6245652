//! Compares stored objects with the bytes that were sent.

use bytes::Bytes;
use laneway_store::{Body, Checksums, ObjectId, ObjectMeta, Operation, PartsDigest, PutOptions, Store};

use super::parts::PutOutcome;
use crate::Error;
use crate::content::checksum::{ChecksumSet, RangeChecksums, written};
use crate::engine::files::FileThreads;
use crate::event::Verified;
use crate::job::running::{ResultObject, TransferOutcome};
use crate::location::url;
use crate::transfer::log_second_try;

/// The checksum that the caller gave for the bytes, and the object's URL for the error.
#[derive(Clone, Default, Debug)]
pub(crate) struct ExpectedChecksum {
    pub(crate) url: String,
    pub(crate) crc32c: Option<u32>,
}

impl ExpectedChecksum {
    /// Compares the bytes with the caller's checksum, before they are stored.
    ///
    /// # Errors
    /// `ErrorKind::Integrity` if they differ.
    pub(crate) fn compare(&self, whole: &RangeChecksums) -> Result<(), Error> {
        match (self.crc32c, whole.crc32c) {
            (Some(given), Some(is)) if given != is => {
                let (given, is) = (written(&given.to_be_bytes()), written(&is.to_be_bytes()));
                Err(Error::integrity(
                    &self.url,
                    format!("the crc32c of the bytes is {is}, but the caller gave {given}"),
                ))
            }
            _ => Ok(()),
        }
    }
}

/// Compares a stored object with the bytes that were sent. Compares the sizes, and then the first checksum of
/// this list that both have: CRC32C, CRC64/NVME, CRC32, MD5, the CRC32C of the parts.
///
/// # Errors
/// `ErrorKind::Integrity` if the size or the checksum differs.
pub(crate) fn verify(
    store: &Store,
    meta: &ObjectMeta,
    size: u64,
    sums: &Checksums,
) -> Result<Verified, Error> {
    let wrong = |message: String| Error::mismatch(url(store.provider(), &meta.id), message);
    if meta.size != size {
        return Err(wrong(format!("{size} bytes were sent, but the store has {}", meta.size)));
    }
    let stored = &meta.checksums;
    let crc32 = |sum: Option<u32>| sum.map(|sum| written(&sum.to_be_bytes()));
    let crc64 = |sum: Option<u64>| sum.map(|sum| written(&sum.to_be_bytes()));
    let md5 = |sum: Option<[u8; 16]>| sum.map(|sum| written(&sum));
    // The CRC32C is the only digest of parts that an upload computes.
    let composite = |sums: &Checksums| match sums.parts?.digest {
        PartsDigest::Crc32c(crc) => crc32(Some(crc)),
        _ => None,
    };
    let pairs = [
        (Verified::Crc32c, "crc32c of the bytes", crc32(sums.crc32c), crc32(stored.crc32c)),
        (Verified::Crc64nvme, "crc64nvme of the bytes", crc64(sums.crc64nvme), crc64(stored.crc64nvme)),
        (Verified::Crc32, "crc32 of the bytes", crc32(sums.crc32), crc32(stored.crc32)),
        (Verified::Md5, "md5 of the bytes", md5(sums.md5), md5(stored.md5)),
        (Verified::Composite, "crc32c of the parts", composite(sums), composite(stored)),
    ];
    for (verified, name, ours, theirs) in pairs {
        match (ours, theirs) {
            (Some(ours), Some(theirs)) if ours == theirs => return Ok(verified),
            (Some(ours), Some(theirs)) => {
                return Err(wrong(format!("the {name} is {ours}, but the store reports {theirs}")));
            }
            _ => {}
        }
    }
    Ok(Verified::Unverified)
}

/// Sends bytes in one request, and compares the stored object with them. If they differ, sends the bytes once
/// more. If there is a condition, sends no second request, because the wrong object would make the condition
/// fail.
///
/// # Errors
/// The store's error, or `ErrorKind::Integrity` if the stored object differs both times.
pub(crate) async fn put(
    files: &FileThreads,
    store: &Store,
    id: &ObjectId,
    bytes: Bytes,
    sums: &Checksums,
    options: &PutOptions,
) -> Result<PutOutcome, Error> {
    let send = || async {
        let meta = store.put(id, Body::from(bytes.clone()), sums, options).await?;
        let sums = comparable(files, sums.clone(), &meta.checksums, bytes.clone()).await?;
        let verified = verify(store, &meta, bytes.len() as u64, &sums)
            .map_err(|error| name_plain_crc32(error, &meta, &bytes))?;
        let atomic = store.keeps(Operation::Put, &options.condition);
        Ok::<_, Error>(PutOutcome {
            moved: TransferOutcome {
                bytes: bytes.len() as u64,
                verified,
                atomic,
                made: ResultObject::of(&meta),
            },
            meta,
        })
    };
    match send().await {
        Err(error) if error.is_mismatch() && options.condition.is_none() => {
            log_second_try(&error);
            Box::pin(send()).await
        }
        sent => sent,
    }
}

/// If the store reports the CRC32 of the bytes as their CRC32C, returns an error that says so. In this case,
/// the stored bytes are correct. Otherwise returns `error` unchanged.
pub(crate) fn name_plain_crc32(error: Error, meta: &ObjectMeta, bytes: &[u8]) -> Error {
    let plain = ChecksumSet { crc32: true, ..ChecksumSet::default() };
    if !error.is_mismatch()
        || meta.size != bytes.len() as u64
        || meta.checksums.crc32c.is_none()
        || meta.checksums.crc32c != RangeChecksums::of(bytes, plain).crc32
    {
        return error;
    }
    let message = "the stored bytes are correct, but the store reports their CRC32 as their CRC32C, as moto does \
                   without its package `crc32c`";
    Error::integrity(error.url().unwrap_or_default(), message)
}

/// Returns the checksums of bytes that were sent in one request, including a kind that the store reports. A
/// store that doesn't accept CRC32C may report another checksum, or its ETag may be an MD5.
///
/// # Errors
/// If no thread can compute the checksum.
async fn comparable(
    files: &FileThreads,
    sums: Checksums,
    stored: &Checksums,
    bytes: Bytes,
) -> Result<Checksums, Error> {
    let wanted = ChecksumSet::to_compare_with(stored, true);
    if wanted == ChecksumSet::CRC32C {
        return Ok(sums);
    }
    let run = files.run(move || RangeChecksums::of(&bytes, wanted)).await?;
    let mut all = run.checksums();
    all.crc32c = sums.crc32c;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use laneway_store::{Composite, Provider, Settings};

    use super::*;

    fn compared(sums: &Checksums, stored: Checksums) -> Result<Verified, Error> {
        let lanes = laneway_lanes::Lanes::start(laneway_lanes::LanesConfig::default()).unwrap();
        let store = Store::new(Provider::S3, &Settings::default(), lanes).unwrap();
        let mut meta = ObjectMeta::new(ObjectId::new("b", "k"), 3);
        meta.checksums = stored;
        verify(&store, &meta, 3, sums)
    }

    #[test]
    fn the_first_checksum_that_both_know_decides() {
        fn sums(know: impl FnOnce(&mut Checksums)) -> Checksums {
            let mut sums = Checksums::default();
            know(&mut sums);
            sums
        }
        let parts = Some(Composite { digest: PartsDigest::Crc32c(4), parts: 2 });
        let etag = Some(Composite { digest: PartsDigest::Md5([4; 16]), parts: 2 });
        let ours = sums(|sums| {
            (sums.crc32c, sums.crc64nvme, sums.md5, sums.parts) = (Some(1), Some(2), Some([3; 16]), parts);
        });
        for (stored, verified) in [
            (sums(|sums| (sums.crc32c, sums.md5) = (Some(1), Some([9; 16]))), Verified::Crc32c),
            (sums(|sums| sums.crc64nvme = Some(2)), Verified::Crc64nvme),
            (sums(|sums| sums.md5 = Some([3; 16])), Verified::Md5),
            (sums(|sums| sums.parts = parts), Verified::Composite),
            (sums(|sums| sums.parts = etag), Verified::Unverified),
            (sums(|sums| sums.crc32 = Some(5)), Verified::Unverified),
            (sums(|_| ()), Verified::Unverified),
        ] {
            assert_eq!(compared(&ours, stored).unwrap(), verified);
        }
        let wrong = compared(&ours, sums(|sums| sums.crc64nvme = Some(9))).unwrap_err();
        let mut meta = ObjectMeta::new(ObjectId::new("b", "k"), 9);
        // The published check values of CRC32 and CRC32C are those of the text `123456789`.
        for (reported, is_plain) in [(0xcbf4_3926, true), (0xe306_9283, false), (7, false)] {
            meta.checksums.crc32c = Some(reported);
            let error = Error::mismatch("gs://b/k", "the crc32c differs");
            let named = name_plain_crc32(error, &meta, b"123456789").to_string();
            assert_eq!(named.contains("their CRC32 as their CRC32C"), is_plain, "{named}");
        }
        assert!(
            wrong.kind() == crate::ErrorKind::Integrity && wrong.to_string().contains("crc64nvme"),
            "{wrong}"
        );
    }
}
