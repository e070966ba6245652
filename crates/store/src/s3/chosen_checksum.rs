//! The checksum that the caller chose instead of CRC32C. The store computes it from the bytes that it receives,
//! compares it with the request's checksum, and keeps it. While Laneway computes the checksum, it also computes the
//! CRC32C of the same bytes and compares it with the caller's. So if the chosen checksum is right, the caller's CRC32C
//! is right too.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc_fast::{CrcAlgorithm, Digest};
use laneway_lanes::{Body, ResponseHead};
use ring::digest::{Context, SHA256};

use super::S3;
use crate::checksum::{PartsAlgorithm, each_segment, on_a_thread};
use crate::exchange::{Exchange, Outgoing, UnsendableHeader};
use crate::multipart::MultipartDialect as _;
use crate::{
    ChecksumAlgorithm, Checksums, Error, ErrorKind, Multipart, ObjectMeta, Operation, Part, PartChecksums,
    PartsDigest,
};

/// The digest of a body above this size is computed on a new thread.
const AT_ONCE_MAX: u64 = 1 << 20;

/// The digest of a body.
pub(super) struct ChosenDigest {
    header: &'static str,
    /// In base64.
    value: String,
    is_sha256: bool,
}

impl ChosenDigest {
    /// Adds the digest to the request that sends the body.
    pub(super) fn on(&self, outgoing: Outgoing) -> Result<Outgoing, UnsendableHeader> {
        outgoing.header(self.header, &self.value)
    }

    /// Returns true if the store's answer repeats this digest, and false if it contains another one. Returns `None` if
    /// it contains none.
    pub(super) fn is_repeated(&self, answer: &ResponseHead) -> Option<bool> {
        answer.header(self.header).map(|stored| stored.trim() == self.value)
    }

    /// Adds the CRC32C of the sent bytes to `meta` if the answer repeats their SHA-256, for which `meta` has no field.
    ///
    /// # Errors
    /// Returns `Integrity` if the store's digest differs.
    pub(super) fn prove(
        &self,
        exchange: &Exchange<'_, S3>,
        answer: &ResponseHead,
        meta: &mut ObjectMeta,
        sent: &Checksums,
    ) -> Result<(), Error> {
        match self.is_repeated(answer) {
            Some(true) if self.is_sha256 => meta.checksums.crc32c = sent.crc32c,
            Some(true) | None => {}
            Some(false) => {
                let message =
                    format!("the store's {} differs from that of the bytes that were sent", self.header);
                return Err(exchange.error(ErrorKind::Integrity, message));
            }
        }
        Ok(())
    }
}

/// The SHA-256s of an upload's parts in base64, by part number, and the digest that the whole object must have.
#[derive(Default)]
pub(super) struct PartSha256s {
    pub(super) by_number: BTreeMap<u32, String>,
    whole: Option<PartsDigest>,
}

impl PartSha256s {
    /// Adds the CRC32C of all bytes to an object's metadata, if the object's digest is that of these parts.
    pub(super) fn prove(&self, mut meta: ObjectMeta, sent: &Checksums) -> ObjectMeta {
        let stored = meta.checksums.parts.map(|parts| parts.digest);
        if stored.is_some() && stored == self.whole {
            meta.checksums.crc32c = sent.crc32c;
        }
        meta
    }

    /// Returns true if the object has a SHA-256 of its parts' SHA-256s, and this digest isn't that of these parts.
    pub(super) fn contradict(&self, meta: &ObjectMeta) -> bool {
        let stored = meta.checksums.parts.map(|parts| parts.digest);
        let stored = stored.filter(|digest| digest.algorithm() == PartsAlgorithm::Sha256);
        stored.zip(self.whole).is_some_and(|(stored, ours)| stored != ours)
    }
}

impl S3 {
    /// Returns a body's digest by the algorithm that the caller chose, or `None` if that is CRC32C.
    ///
    /// # Errors
    /// Returns `Integrity` if the body can't be read, or isn't the one whose CRC32C was computed.
    pub(super) async fn chosen_digest(
        &self,
        exchange: &Exchange<'_, Self>,
        body: &Body,
        crc32c: Option<u32>,
    ) -> Result<Option<ChosenDigest>, Error> {
        let (header, is_sha256) = match self.checksum_algorithm {
            ChecksumAlgorithm::Crc32c => return Ok(None),
            ChecksumAlgorithm::Crc64nvme => ("x-amz-checksum-crc64nvme", false),
            ChecksumAlgorithm::Sha256 => ("x-amz-checksum-sha256", true),
        };
        let computed = if body.len() <= AT_ONCE_MAX {
            digest(body, is_sha256)
        } else {
            let body = body.clone();
            on_a_thread(move || digest(&body, is_sha256)).await
        };
        match computed {
            Some((value, read)) if crc32c.is_none_or(|crc32c| crc32c == read) => {
                Ok(Some(ChosenDigest { header, value: STANDARD.encode(value), is_sha256 }))
            }
            Some(_) => Err(exchange.error(ErrorKind::Integrity, "the bytes changed before they were sent")),
            None => {
                let message = "the bytes can't be read to compute their checksum";
                Err(exchange.error(ErrorKind::Integrity, message))
            }
        }
    }

    /// Returns the SHA-256s of an upload's parts, which S3 demands when the upload is completed. They come from the
    /// store's list of the parts, which includes parts that an earlier run sent. Laneway compared each digest when it
    /// sent the part.
    ///
    /// # Errors
    /// Returns the error of the request for the list of parts.
    pub(super) async fn part_sha256s(
        &self,
        upload: &Multipart,
        parts: &[Part],
    ) -> Result<PartSha256s, Error> {
        if self.checksum_algorithm != ChecksumAlgorithm::Sha256 || upload.checksums != PartChecksums::None {
            return Ok(PartSha256s::default());
        }
        let listed = self.listed_parts(upload).await.map_err(|e| e.within(Operation::Complete))?;
        let bare = |etag: &str| etag.trim_matches('"').to_owned();
        let ours: BTreeMap<u32, String> = parts.iter().map(|part| (part.number, bare(&part.etag))).collect();
        let by_number: BTreeMap<u32, String> = listed
            .into_iter()
            .filter(|part| ours.get(&part.part_number) == Some(&bare(&part.etag)))
            .filter_map(|part| Some((part.part_number, part.sha256?)))
            .collect();
        let digests: Option<Vec<Vec<u8>>> =
            ours.keys().map(|number| STANDARD.decode(by_number.get(number)?).ok()).collect();
        let whole = digests.and_then(|digests| PartsAlgorithm::Sha256.over(&digests.concat()));
        Ok(PartSha256s { by_number, whole })
    }
}

/// Returns a body's SHA-256 or CRC64/NVME, and its CRC32C. Returns `None` if the body's file can't be read.
fn digest(body: &Body, is_sha256: bool) -> Option<(Vec<u8>, u32)> {
    let mut crc32c = Digest::new(CrcAlgorithm::Crc32Iscsi);
    let digest = if is_sha256 {
        let mut sha256 = Context::new(&SHA256);
        each_segment(body, |bytes| {
            crc32c.update(bytes);
            sha256.update(bytes);
        })?;
        sha256.finish().as_ref().to_vec()
    } else {
        let mut crc64 = Digest::new(CrcAlgorithm::Crc64Nvme);
        each_segment(body, |bytes| {
            crc32c.update(bytes);
            crc64.update(bytes);
        })?;
        crc64.finalize().to_be_bytes().to_vec()
    };
    Some((digest, crc32c.finalize() as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_digested_together_with_its_crc32c() {
        let body = Body::from("123456789");
        let (crc64, crc32c) = digest(&body, false).expect("a digest");
        assert_eq!((crc64, crc32c), (0xAE8B_1486_0A79_9888_u64.to_be_bytes().to_vec(), 0xe306_9283));
        let (sha256, crc32c) = digest(&body, true).expect("a digest");
        assert_eq!((sha256.len(), crc32c), (32, 0xe306_9283));
        let (empty, _) = digest(&Body::from(""), true).expect("a digest");
        assert_eq!(STANDARD.encode(empty), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }
}
