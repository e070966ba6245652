//! The meaning of the endpoint's ETags. An ETag of 32 hexadecimal digits is an MD5 on Amazon S3 and on most other
//! services. On services that encrypt every object (Fastly), it only looks like one.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use laneway_lanes::{Body, Origin, ResponseHead};

use crate::checksum::{PartsAlgorithm, md5_of_part};
use crate::endpoint::Partition;
use crate::{Checksums, ObjectId, ObjectMeta};

/// The domain of Fastly's object storage, whose ETags aren't MD5s
/// (<https://docs.fastly.com/en/guides/working-with-object-storage>).
const FASTLY: &str = ".object.fastlystorage.app";

/// The first digits of those ETags that VAST doesn't compute from an object's bytes
/// (<https://kb.vastdata.com/documentation/docs/handling-object-etags-1>).
const VAST: &str = "48ed760a74";

const UNKNOWN: u8 = 0;
const MD5S: u8 = 1;
const OPAQUE: u8 = 2;

/// The known facts about the endpoint's ETags.
#[derive(Debug)]
pub(super) struct Etags {
    meaning: AtomicU8,
    /// True once Laneway has begun to compare the ETag of a put with the MD5 of the put's bytes.
    is_compared: AtomicBool,
}

impl Etags {
    /// Returns the state for an endpoint. Without an origin, requests go to Amazon's regions.
    pub(super) fn new(origin: Option<&Origin>) -> Self {
        let meaning = match origin {
            Some(at) if at.host.ends_with(FASTLY) => OPAQUE,
            Some(at) if !Partition::claims_host(&at.host) => UNKNOWN,
            _ => MD5S,
        };
        Self { meaning: AtomicU8::new(meaning), is_compared: AtomicBool::new(false) }
    }

    pub(super) fn are_opaque(&self) -> bool {
        self.meaning.load(Ordering::Relaxed) == OPAQUE
    }

    /// Learns from the answer to a put if the endpoint's ETags are MD5s. The stored CRC32C must be that of the sent
    /// bytes, which proves that the store holds these bytes. Only then does a different MD5 show that the ETag isn't an
    /// MD5. Laneway compares only one put, because computing an MD5 costs more than everything else in a put.
    pub(super) async fn learn(&self, stored: &Checksums, sent: &Checksums, body: Body) {
        let is_proven = stored.crc32c.is_some() && stored.crc32c == sent.crc32c;
        let (Some(named), true) = (stored.md5, is_proven) else { return };
        if self.meaning.load(Ordering::Relaxed) != UNKNOWN || self.is_compared.swap(true, Ordering::Relaxed) {
            return;
        }
        let Some(md5) = md5_of_part(body).await else { return };
        let meaning = if md5 == named { MD5S } else { OPAQUE };
        if meaning == OPAQUE {
            tracing::info!("the endpoint's ETags aren't MD5s");
        }
        self.meaning.store(meaning, Ordering::Relaxed);
    }

    /// Returns the metadata. If the endpoint's ETags aren't MD5s, the digests that were read from the ETag are left
    /// out.
    pub(super) fn read(&self, meta: ObjectMeta) -> ObjectMeta {
        if self.are_opaque() { without_digests(meta) } else { meta }
    }

    /// Returns the function that reads the metadata in an answer's head.
    pub(super) fn reader(&self) -> fn(&ObjectId, &ResponseHead) -> ObjectMeta {
        if self.are_opaque() { opaque } else { super::headers::meta }
    }
}

fn opaque(id: &ObjectId, head: &ResponseHead) -> ObjectMeta {
    without_digests(super::headers::meta(id, head))
}

fn without_digests(mut meta: ObjectMeta) -> ObjectMeta {
    meta.checksums.md5 = None;
    meta.checksums.parts =
        meta.checksums.parts.filter(|parts| parts.digest.algorithm() != PartsAlgorithm::Md5);
    meta
}

/// Returns true if an ETag of 32 digits is known not to be an MD5, at any endpoint.
pub(super) fn is_made_up(etag: &str) -> bool {
    etag.starts_with(VAST)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[tokio::test]
    async fn one_put_whose_bytes_are_proven_tells_what_etags_are() {
        let origin = |url: &str| Origin::parse(url).expect("an origin");
        assert!(!Etags::new(None).are_opaque());
        assert!(Etags::new(Some(&origin("https://us-east.object.fastlystorage.app"))).are_opaque());
        let body = || Body::from(Bytes::from_static(b"123456789"));
        let stored = |md5| Checksums { md5: Some(md5), ..Checksums::crc32c(7) };
        let md5 = 0x25f9_e794_323b_4538_85f5_181f_1b62_4d0b_u128.to_be_bytes();
        for (stored, sent, is_opaque) in [
            (stored([1; 16]), Checksums::crc32c(7), true),
            (stored([1; 16]), Checksums::crc32c(8), false),
            (Checksums { crc32c: None, ..stored([1; 16]) }, Checksums::crc32c(7), false),
            (stored(md5), Checksums::crc32c(7), false),
        ] {
            let etags = Etags::new(Some(&origin("http://store.test")));
            etags.learn(&stored, &sent, body()).await;
            assert_eq!(etags.are_opaque(), is_opaque, "{stored:?}");
        }
        assert!(is_made_up("48ed760a740102030405060708090a0b"));
    }
}
