//! The checksums of objects and parts. The server computes them while the bytes arrive, combines them for joined parts,
//! and writes them in the formats of both dialects.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crc_fast::CrcAlgorithm;
use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};

/// The checksums that S3 supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Algorithm {
    Crc32,
    Crc32c,
    Crc64Nvme,
    Sha1,
    Sha256,
}

/// The checksums to compute in addition to CRC32C, which is always computed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WantedChecksums {
    /// The largest body, in bytes, whose MD5 is computed. An MD5 costs 1.6 CPU seconds per GiB, more than all other
    /// work for the body together.
    pub(crate) md5_bytes_max: u64,
    pub(crate) crc64nvme: bool,
    pub(crate) extra: Option<Algorithm>,
}

/// The computed checksums.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ComputedChecksums {
    pub(crate) size: u64,
    pub(crate) crc32c: u32,
    pub(crate) crc64nvme: Option<u64>,
    pub(crate) md5: Option<[u8; 16]>,
    /// The checksum that [`WantedChecksums::extra`] requested, in big-endian order.
    pub(crate) extra: Option<(Algorithm, Vec<u8>)>,
}

impl ComputedChecksums {
    /// Returns the checksum of one algorithm, if it is known.
    pub(crate) fn of(&self, algorithm: Algorithm) -> Option<Vec<u8>> {
        match algorithm {
            Algorithm::Crc32c => Some(self.crc32c.to_be_bytes().to_vec()),
            Algorithm::Crc64Nvme if self.crc64nvme.is_some() => {
                self.crc64nvme.map(|sum| sum.to_be_bytes().to_vec())
            }
            other => self.extra.as_ref().filter(|(known, _)| *known == other).map(|(_, sum)| sum.clone()),
        }
    }
}

/// Computes the checksums of a body from its chunks.
pub(crate) struct Hasher {
    size: u64,
    crc32c: crc_fast::Digest,
    crc64nvme: Option<crc_fast::Digest>,
    md5: Option<Md5>,
    md5_bytes_max: u64,
    extra: Option<(Algorithm, ExtraDigest)>,
}

enum ExtraDigest {
    Known,
    Crc(crc_fast::Digest),
    Sha(ring::digest::Context),
}

impl Hasher {
    pub(crate) fn new(wanted: WantedChecksums) -> Hasher {
        let extra = wanted.extra.map(|algorithm| {
            let running = match algorithm {
                Algorithm::Crc32 => ExtraDigest::Crc(crc_fast::Digest::new(CrcAlgorithm::Crc32IsoHdlc)),
                Algorithm::Crc32c | Algorithm::Crc64Nvme => ExtraDigest::Known,
                Algorithm::Sha1 => {
                    ExtraDigest::Sha(ring::digest::Context::new(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY))
                }
                Algorithm::Sha256 => ExtraDigest::Sha(ring::digest::Context::new(&ring::digest::SHA256)),
            };
            (algorithm, running)
        });
        let crc64nvme = wanted.crc64nvme || wanted.extra == Some(Algorithm::Crc64Nvme);
        Hasher {
            size: 0,
            crc32c: crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi),
            crc64nvme: crc64nvme.then(|| crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme)),
            md5: (wanted.md5_bytes_max > 0).then(Md5::new),
            md5_bytes_max: wanted.md5_bytes_max,
            extra,
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        self.crc32c.update(bytes);
        if let Some(crc64nvme) = &mut self.crc64nvme {
            crc64nvme.update(bytes);
        }
        if self.size > self.md5_bytes_max {
            self.md5 = None;
        } else if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        match &mut self.extra {
            Some((_, ExtraDigest::Crc(digest))) => digest.update(bytes),
            Some((_, ExtraDigest::Sha(context))) => context.update(bytes),
            Some((_, ExtraDigest::Known)) | None => {}
        }
    }

    pub(crate) fn finish(self) -> ComputedChecksums {
        let mut sums = ComputedChecksums {
            size: self.size,
            crc32c: self.crc32c.finalize() as u32,
            crc64nvme: self.crc64nvme.map(|digest| digest.finalize()),
            md5: self.md5.map(|md5| md5.finalize().into()),
            extra: None,
        };
        sums.extra = self.extra.and_then(|(algorithm, running)| {
            let bytes = match running {
                ExtraDigest::Known => sums.of(algorithm)?,
                ExtraDigest::Crc(digest) => (digest.finalize() as u32).to_be_bytes().to_vec(),
                ExtraDigest::Sha(context) => context.finish().as_ref().to_vec(),
            };
            Some((algorithm, bytes))
        });
        sums
    }
}

/// Returns the checksums of two byte sequences joined end to end. The result has only those checksums that can be
/// combined from both.
pub(crate) fn concatenated(first: &ComputedChecksums, second: &ComputedChecksums) -> ComputedChecksums {
    let crc = |algorithm, a: u64, b: u64| crc_fast::checksum_combine(algorithm, a, b, second.size);
    ComputedChecksums {
        size: first.size + second.size,
        crc32c: crc(CrcAlgorithm::Crc32Iscsi, first.crc32c.into(), second.crc32c.into()) as u32,
        crc64nvme: first.crc64nvme.zip(second.crc64nvme).map(|(a, b)| crc(CrcAlgorithm::Crc64Nvme, a, b)),
        md5: None,
        extra: match (&first.extra, &second.extra) {
            (Some((Algorithm::Crc32, a)), Some((Algorithm::Crc32, b))) => {
                let combined = crc(CrcAlgorithm::Crc32IsoHdlc, be32(a).into(), be32(b).into()) as u32;
                Some((Algorithm::Crc32, combined.to_be_bytes().to_vec()))
            }
            _ => None,
        },
    }
}

/// Returns the digest of `bytes`. S3's COMPOSITE checksums are digests of the parts' digests.
pub(crate) fn of_bytes(algorithm: Algorithm, bytes: &[u8]) -> Vec<u8> {
    let mut hasher =
        Hasher::new(WantedChecksums { md5_bytes_max: 0, crc64nvme: false, extra: Some(algorithm) });
    hasher.update(bytes);
    hasher.finish().extra.map(|(_, sum)| sum).unwrap_or_default()
}

/// Returns the MD5 of a few bytes. The ETags of multipart uploads are made with it.
pub(crate) fn md5(bytes: &[u8]) -> [u8; 16] {
    Md5::digest(bytes).into()
}

/// Returns base64 with padding, as in all checksum headers.
pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes [`base64()`], or returns `None` for any other text.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text.trim()).ok()
}

/// Returns lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|b| [DIGITS[(b >> 4) as usize] as char, DIGITS[(b & 15) as usize] as char])
        .collect()
}

fn be32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: WantedChecksums =
        WantedChecksums { md5_bytes_max: u64::MAX, crc64nvme: true, extra: Some(Algorithm::Crc32) };

    fn sums(bytes: &[u8]) -> ComputedChecksums {
        let mut hasher = Hasher::new(ALL);
        hasher.update(bytes);
        hasher.finish()
    }

    #[test]
    fn the_check_values_of_the_catalogue_come_out() {
        let sums = sums(b"123456789");
        assert_eq!(sums.crc32c, 0xE306_9283);
        assert_eq!(sums.crc64nvme, Some(0xAE8B_1486_0A79_9888));
        assert_eq!(sums.of(Algorithm::Crc32), Some(0xCBF4_3926u32.to_be_bytes().to_vec()));
        assert_eq!(hex(&sums.md5.unwrap()), "25f9e794323b453885f5181f1b624d0b");
        assert_eq!(base64(&of_bytes(Algorithm::Sha256, b"")), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }

    #[test]
    fn concatenated_sums_are_those_of_the_whole() {
        let whole = sums(b"hello, world");
        let joined = concatenated(&sums(b"hello"), &concatenated(&sums(b""), &sums(b", world")));
        assert_eq!((joined.size, joined.crc32c, joined.crc64nvme), (12, whole.crc32c, whole.crc64nvme));
        assert_eq!(joined.of(Algorithm::Crc32), whole.of(Algorithm::Crc32));
        assert_eq!(joined.md5, None);
    }

    #[test]
    fn md5_is_given_up_beyond_its_limit() {
        let mut hasher = Hasher::new(WantedChecksums { md5_bytes_max: 4, ..ALL });
        hasher.update(b"1234");
        hasher.update(b"5");
        assert_eq!(hasher.finish().md5, None);
    }
}
