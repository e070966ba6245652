//! Composite checksums: digests over the digests of an object's parts, as S3 stores them for multipart uploads.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc_fast::CrcAlgorithm;
use md5::{Digest as _, Md5};
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use serde::{Deserialize, Serialize};

/// The digest of the concatenated digests of an object's parts. It can be checked only if the parts' sizes are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Composite {
    /// The digest over the concatenated digests of the parts.
    pub digest: PartsDigest,
    /// The number of parts, or 0 if the store doesn't send it.
    pub parts: u32,
}

/// A digest over the digests of parts. Both levels use the same algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum PartsDigest {
    /// The CRC32C of CRC32Cs.
    Crc32c(u32),
    /// The CRC32 of CRC32s. boto3 and the AWS CLI upload with this checksum.
    Crc32(u32),
    /// The SHA-256 of SHA-256s.
    Sha256([u8; 32]),
    /// The SHA-1 of SHA-1s.
    Sha1([u8; 20]),
    /// The MD5 of MD5s, which many stores use as the ETag.
    Md5([u8; 16]),
}

/// An algorithm that digests parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartsAlgorithm {
    /// CRC32C.
    Crc32c,
    /// CRC32.
    Crc32,
    /// SHA-256.
    Sha256,
    /// SHA-1.
    Sha1,
    /// MD5.
    Md5,
}

/// Computes the digest of one part from its bytes, which must be added in order.
pub struct PartHasher(PartDigest);

enum PartDigest {
    Crc(crc_fast::Digest),
    Sha(Context),
    Md5(Md5),
}

impl PartsDigest {
    /// Returns the algorithm of the digest.
    pub fn algorithm(&self) -> PartsAlgorithm {
        match self {
            Self::Crc32c(_) => PartsAlgorithm::Crc32c,
            Self::Crc32(_) => PartsAlgorithm::Crc32,
            Self::Sha256(_) => PartsAlgorithm::Sha256,
            Self::Sha1(_) => PartsAlgorithm::Sha1,
            Self::Md5(_) => PartsAlgorithm::Md5,
        }
    }

    /// Returns the digest's bytes in big-endian order.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Crc32c(crc) | Self::Crc32(crc) => crc.to_be_bytes().to_vec(),
            Self::Sha256(sha) => sha.to_vec(),
            Self::Sha1(sha) => sha.to_vec(),
            Self::Md5(md5) => md5.to_vec(),
        }
    }
}

impl PartsAlgorithm {
    /// All algorithms in the order of preference, the cheapest first.
    pub const ALL: [Self; 5] = [Self::Crc32c, Self::Crc32, Self::Sha256, Self::Sha1, Self::Md5];

    /// Begins the digest of a part.
    pub fn part(self) -> PartHasher {
        PartHasher(match self {
            Self::Crc32c => PartDigest::Crc(crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi)),
            Self::Crc32 => PartDigest::Crc(crc_fast::Digest::new(CrcAlgorithm::Crc32IsoHdlc)),
            Self::Sha256 => PartDigest::Sha(Context::new(&SHA256)),
            Self::Sha1 => PartDigest::Sha(Context::new(&SHA1_FOR_LEGACY_USE_ONLY)),
            Self::Md5 => PartDigest::Md5(Md5::new()),
        })
    }

    /// Returns the digest over the concatenated digests of parts.
    pub fn over(self, digests: &[u8]) -> Option<PartsDigest> {
        let mut hasher = self.part();
        hasher.update(digests);
        self.read(&hasher.finish())
    }

    fn read(self, bytes: &[u8]) -> Option<PartsDigest> {
        let crc = || Some(u32::from_be_bytes(bytes.try_into().ok()?));
        Some(match self {
            Self::Crc32c => PartsDigest::Crc32c(crc()?),
            Self::Crc32 => PartsDigest::Crc32(crc()?),
            Self::Sha256 => PartsDigest::Sha256(bytes.try_into().ok()?),
            Self::Sha1 => PartsDigest::Sha1(bytes.try_into().ok()?),
            Self::Md5 => PartsDigest::Md5(bytes.try_into().ok()?),
        })
    }

    /// Parses a composite checksum in S3's format: base64, then a dash and the number of parts (which some servers
    /// leave out).
    pub(crate) fn decode(self, text: &str) -> Option<Composite> {
        let (value, parts) = match text.split_once('-') {
            Some((value, parts)) => (value, parts.parse().ok()?),
            None => (text, 0),
        };
        Some(Composite { digest: self.read(&STANDARD.decode(value.trim()).ok()?)?, parts })
    }

    /// Returns the algorithm's name for messages and headers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crc32c => "crc32c",
            Self::Crc32 => "crc32",
            Self::Sha256 => "sha256",
            Self::Sha1 => "sha1",
            Self::Md5 => "md5",
        }
    }
}

impl PartHasher {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            PartDigest::Crc(crc) => crc.update(bytes),
            PartDigest::Sha(sha) => sha.update(bytes),
            PartDigest::Md5(md5) => md5.update(bytes),
        }
    }

    /// Returns the bytes of the part's digest, in big-endian order.
    pub fn finish(self) -> Vec<u8> {
        match self.0 {
            PartDigest::Crc(crc) => (crc.finalize() as u32).to_be_bytes().to_vec(),
            PartDigest::Sha(sha) => sha.finish().as_ref().to_vec(),
            PartDigest::Md5(md5) => md5.finalize().to_vec(),
        }
    }
}

impl fmt::Debug for PartHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartHasher").finish_non_exhaustive()
    }
}

/// Returns the composite checksum of parts, given their CRC32Cs in order.
pub(crate) fn composite(crcs: impl Iterator<Item = u32>) -> Composite {
    let bytes: Vec<u8> = crcs.flat_map(u32::to_be_bytes).collect();
    let digest = PartsDigest::Crc32c(super::crc32c_of(&bytes));
    Composite { digest, parts: (bytes.len() / 4) as u32 }
}

/// Parses the ETag of a multipart upload: the MD5 over the parts' MD5s, a dash, and the number of parts.
pub(crate) fn of_etag(etag: &str) -> Option<Composite> {
    let (digits, parts) = etag.split_once('-')?;
    let parts = parts.parse().ok().filter(|parts| *parts > 0)?;
    let is_md5 = digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let md5 = u128::from_str_radix(digits, 16).ok().filter(|_| is_md5)?;
    Some(Composite { digest: PartsDigest::Md5(md5.to_be_bytes()), parts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_composite_value_carries_its_number_of_parts() {
        let crc = |parts| Some(Composite { digest: PartsDigest::Crc32c(0), parts });
        assert_eq!(PartsAlgorithm::Crc32c.decode("AAAAAA==-3"), crc(3));
        assert_eq!(PartsAlgorithm::Crc32c.decode("AAAAAA=="), crc(0));
        assert_eq!(PartsAlgorithm::Crc32c.decode("AAAAAA==-x"), None);
        assert_eq!(PartsAlgorithm::Crc32c.decode("AAA"), None);
        assert_eq!(PartsAlgorithm::Sha1.decode("AAAAAA==-3"), None, "too short for a SHA-1");
    }

    /// Values of Python's hashlib and zlib.
    #[test]
    fn parts_are_digested_twice() {
        for (algorithm, expected) in [
            (PartsAlgorithm::Crc32, "7pJxdw==-2"),
            (PartsAlgorithm::Md5, "luAkuiB0/nfo6WW6Q6cEvg==-2"),
            (PartsAlgorithm::Sha1, "AFZUCsYjfQJj3Q+qRcccc7xIDzQ=-2"),
            (PartsAlgorithm::Sha256, "5aAf7hTg7VxIcU8iGA8lrYNltT+XefedxKPX6Tlj+Uo=-2"),
        ] {
            let mut digests = Vec::new();
            for part in [b"a", b"b"] {
                let mut hasher = algorithm.part();
                hasher.update(part);
                digests.extend(hasher.finish());
            }
            let stored = algorithm.decode(expected).expect(expected);
            assert_eq!(algorithm.over(&digests), Some(stored.digest), "{}", algorithm.name());
            assert_eq!(stored.digest.algorithm(), algorithm);
        }
    }

    #[test]
    fn an_etag_with_a_number_is_an_md5_of_parts() {
        let etag = "000000000000000000000000000000ff-2";
        let Some(Composite { digest: PartsDigest::Md5(md5), parts: 2 }) = of_etag(etag) else { panic!() };
        assert_eq!(md5[15], 255);
        for other in ["0000", "00000000000000000000000000000000", "000000000000000000000000000000ff-x"] {
            assert_eq!(of_etag(other), None, "{other}");
        }
        assert_eq!(of_etag("000000000000000000000000000000ff-0"), None);
    }
}
