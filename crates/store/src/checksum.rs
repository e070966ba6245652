//! Checksums, and their text formats in the stores' headers and documents.

mod composite;

use std::os::unix::fs::FileExt as _;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use laneway_lanes::{Body, Segment};
use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

pub use composite::{Composite, PartHasher, PartsAlgorithm, PartsDigest};
pub(crate) use composite::{composite, of_etag};

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
}
