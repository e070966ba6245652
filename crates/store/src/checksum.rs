//! Checksums, and their text formats in the stores' headers and documents. Composite checksums are digests over the
//! digests of an object's parts, as S3 stores them for multipart uploads.

use std::os::unix::fs::FileExt as _;
use std::{fmt, thread};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc_fast::CrcAlgorithm;
use laneway_lanes::{Body, Segment};
use md5::{Digest as _, Md5};
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// The number of bytes that are read from a file at a time to compute a checksum.
const READ: usize = 256 << 10;

/// Checksums of a whole object; any of them may be missing.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Checksums {
    /// CRC32C (Castagnoli).
    pub crc32c: Option<u32>,
    /// CRC64/NVME, which S3 computes by default.
    pub crc64nvme: Option<u64>,
    /// CRC32 (ISO-HDLC, as in gzip), which most AWS SDKs send.
    pub crc32: Option<u32>,
    /// MD5.
    pub md5: Option<[u8; 16]>,
    /// S3's digest of the digests of a multipart upload's parts. It can be checked only if the parts' sizes are known.
    pub parts: Option<Composite>,
}

impl Checksums {
    /// Returns checksums that hold only a CRC32C.
    pub fn crc32c(value: u32) -> Self {
        Self { crc32c: Some(value), ..Self::default() }
    }

    /// Returns true if no checksum is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The result of comparing two sets of checksums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comparison {
    /// Both sides know at least one algorithm, and all values that both know are equal.
    Equal,
    /// Both sides know this algorithm, and its values differ.
    Different(&'static str),
    /// There is no algorithm that both sides know.
    Unknown,
}

impl Checksums {
    /// Compares the algorithms that both sides know. Composite values are compared only with composite values.
    pub(crate) fn compare(&self, other: &Self) -> Comparison {
        fn pair<T: PartialEq>(a: Option<T>, b: Option<T>) -> Option<bool> {
            Some(a? == b?)
        }
        let parts = |sums: &Self| match sums.parts?.digest {
            PartsDigest::Crc32c(crc) => Some(crc),
            _ => None,
        };
        let pairs = [
            ("crc32c", pair(self.crc32c, other.crc32c)),
            ("crc64nvme", pair(self.crc64nvme, other.crc64nvme)),
            ("crc32", pair(self.crc32, other.crc32)),
            ("md5", pair(self.md5, other.md5)),
            ("composite crc32c", pair(parts(self), parts(other))),
        ];
        if let Some((name, _)) = pairs.iter().find(|(_, equal)| *equal == Some(false)) {
            return Comparison::Different(name);
        }
        if pairs.iter().any(|(_, equal)| *equal == Some(true)) {
            Comparison::Equal
        } else {
            Comparison::Unknown
        }
    }
}

/// Writes the four big-endian bytes in base64, as stores write CRC32Cs and CRC32s.
pub(crate) fn encode_crc32c(value: u32) -> String {
    STANDARD.encode(value.to_be_bytes())
}

/// Parses the format that [`encode_crc32c`] writes.
pub(crate) fn decode_crc32c(text: &str) -> Option<u32> {
    Some(u32::from_be_bytes(decode(text)?))
}

/// Reads base64 of eight big-endian bytes.
pub(crate) fn decode_crc64(text: &str) -> Option<u64> {
    Some(u64::from_be_bytes(decode(text)?))
}

/// Writes an MD5 in base64.
pub(crate) fn encode_md5(value: [u8; 16]) -> String {
    STANDARD.encode(value)
}

/// Returns the MD5 of a body, or `None` if the body's file can't be read. The request that sends the body then reports
/// the cause.
pub(crate) fn md5_of(body: &Body) -> Option<[u8; 16]> {
    let mut md5 = Md5::new();
    each_segment(body, |bytes| md5.update(bytes))?;
    Some(md5.finalize().into())
}

/// Passes the bytes of a body to `take`, piece by piece and in order. Returns `None` if the body's file can't be read.
pub(crate) fn each_segment(body: &Body, mut take: impl FnMut(&[u8])) -> Option<()> {
    for segment in body.segments() {
        match segment {
            Segment::Memory(bytes) => take(bytes),
            Segment::File { file, offset, len } => {
                let mut buffer = vec![0; READ.min(usize::try_from(*len).unwrap_or(READ))];
                let mut at = 0;
                while at < *len {
                    let want = buffer.len().min(usize::try_from(*len - at).unwrap_or(READ));
                    file.read_exact_at(&mut buffer[..want], offset + at).ok()?;
                    take(&buffer[..want]);
                    at += want as u64;
                }
            }
        }
    }
    Some(())
}

/// Computes a part's MD5 on a new thread.
pub(crate) async fn md5_of_part(body: Body) -> Option<[u8; 16]> {
    on_a_thread(move || md5_of(&body)).await
}

/// Runs `compute` on a new thread. A part may be gigabytes large, and computing its digest here would delay the answers
/// to other requests. The thread can't come from an async runtime's pool, because the caller may run without a runtime.
pub(crate) async fn on_a_thread<T: Send + 'static>(
    compute: impl FnOnce() -> Option<T> + Send + 'static,
) -> Option<T> {
    let (done, computed) = oneshot::channel();
    thread::Builder::new()
        .spawn(move || {
            let _ = done.send(compute());
        })
        .ok()?;
    computed.await.ok().flatten()
}

/// Reads an MD5 in base64.
pub(crate) fn decode_md5(text: &str) -> Option<[u8; 16]> {
    decode(text)
}

/// CRC32C of bytes in memory.
pub(crate) fn crc32c_of(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    STANDARD.decode(text.trim()).ok()?.try_into().ok()
}

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
    let digest = PartsDigest::Crc32c(crc32c_of(&bytes));
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
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn the_crc32c_of_nothing_is_four_zero_bytes() {
        assert_eq!(encode_crc32c(crc32c_of(b"")), "AAAAAA==");
    }

    #[test]
    fn the_md5_of_a_part_needs_no_runtime() {
        let body = || Body::from("123456789");
        let mut waiting = std::pin::pin!(md5_of_part(body()));
        let md5 = loop {
            match waiting.as_mut().now_or_never() {
                Some(md5) => break md5,
                None => thread::yield_now(),
            }
        };
        assert!(md5.is_some() && md5 == md5_of(&body()));
    }

    #[test]
    fn the_check_value_of_castagnoli_survives_the_round_trip() {
        assert_eq!(crc32c_of(b"123456789"), 0xe306_9283);
        assert_eq!(decode_crc32c(&encode_crc32c(0xe306_9283)), Some(0xe306_9283));
    }

    #[test]
    fn checksums_that_share_no_algorithm_say_nothing() {
        let crc = Checksums::crc32c(1);
        let md5 = Checksums { md5: Some([0; 16]), ..Checksums::default() };
        assert_eq!(crc.compare(&md5), Comparison::Unknown);
    }

    #[test]
    fn one_difference_outweighs_equal_ones() {
        let a = Checksums { crc32c: Some(1), crc64nvme: Some(2), ..Checksums::default() };
        let b = Checksums { crc32c: Some(1), crc64nvme: Some(3), ..Checksums::default() };
        assert_eq!(a.compare(&b), Comparison::Different("crc64nvme"));
        assert_eq!(a.compare(&Checksums::crc32c(1)), Comparison::Equal);
    }

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
