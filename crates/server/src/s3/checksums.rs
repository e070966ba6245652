//! Reads and writes checksums: `x-amz-checksum-*` in headers and trailers, and `Content-MD5`.

use http::HeaderMap;
use s3s::{S3Error, S3ErrorCode, S3Result, s3_error};

use crate::checksum::{Algorithm, ComputedChecksums, WantedChecksums, base64, from_base64};
use crate::objects::Object;
use crate::objects::object::StoredChecksum;

pub(super) const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::Crc32, Algorithm::Crc32c, Algorithm::Crc64Nvme, Algorithm::Sha1, Algorithm::Sha256];

/// The checksums that an upload announces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AnnouncedChecksums {
    /// The algorithm, and the checksum. It is `None` if a trailer will contain it.
    pub(super) checksum: Option<(Algorithm, Option<String>)>,
    pub(super) md5: Option<[u8; 16]>,
}

impl AnnouncedChecksums {
    pub(super) fn in_headers(headers: &HeaderMap) -> S3Result<AnnouncedChecksums> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let in_header = ALGORITHMS
            .into_iter()
            .find_map(|algorithm| text(header(algorithm)).map(|value| (algorithm, Some(value.to_owned()))));
        let in_trailer = || {
            let trailer = text("x-amz-trailer")?.trim().to_ascii_lowercase();
            ALGORITHMS
                .into_iter()
                .find(|algorithm| header(*algorithm) == trailer)
                .map(|algorithm| (algorithm, None))
        };
        let md5 =
            match text("content-md5") {
                Some(value) => {
                    let md5 = from_base64(value).and_then(|md5| md5.try_into().ok());
                    Some(md5.ok_or_else(|| {
                        s3_error!(InvalidDigest, "The Content-MD5 you specified is not valid.")
                    })?)
                }
                None => None,
            };
        Ok(AnnouncedChecksums { checksum: in_header.or_else(in_trailer), md5 })
    }

    /// Returns the checksums to compute. If the client chose no algorithm, `otherwise` is used.
    pub(super) fn wanted(&self, otherwise: Option<Algorithm>, md5_etags: bool) -> WantedChecksums {
        let md5_bytes_max = if md5_etags || self.md5.is_some() { u64::MAX } else { 0 };
        let extra = self.checksum.as_ref().map(|(algorithm, _)| *algorithm).or(otherwise);
        WantedChecksums { md5_bytes_max, crc64nvme: true, extra }
    }

    /// Compares the checksums that a header or trailer announced with those of the received bytes.
    pub(super) fn check(&self, sums: &ComputedChecksums, trailers: Option<&HeaderMap>) -> S3Result<()> {
        if self.md5.is_some_and(|md5| sums.md5.is_some_and(|computed| computed != md5)) {
            return Err(s3_error!(
                BadDigest,
                "The Content-MD5 you specified did not match what we received."
            ));
        }
        let Some((algorithm, value)) = &self.checksum else { return Ok(()) };
        let in_trailer = || Some(trailers?.get(header(*algorithm))?.to_str().ok()?.to_owned());
        let value = value.clone().or_else(in_trailer);
        let value = value
            .ok_or_else(|| S3Error::with_message(S3ErrorCode::InvalidRequest, "a trailer is missing"))?;
        if sums.of(*algorithm).map(|sum| base64(&sum)).as_deref() == Some(value.trim()) {
            return Ok(());
        }
        let name = name(*algorithm);
        Err(S3Error::with_message(
            S3ErrorCode::BadDigest,
            format!("The {name} you specified did not match the calculated checksum."),
        ))
    }
}

/// Returns the header of an algorithm.
pub(super) fn header(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Crc32 => "x-amz-checksum-crc32",
        Algorithm::Crc32c => "x-amz-checksum-crc32c",
        Algorithm::Crc64Nvme => "x-amz-checksum-crc64nvme",
        Algorithm::Sha1 => "x-amz-checksum-sha1",
        Algorithm::Sha256 => "x-amz-checksum-sha256",
    }
}

/// Returns the algorithm's name in `x-amz-checksum-algorithm`.
pub(super) fn name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Crc32 => "CRC32",
        Algorithm::Crc32c => "CRC32C",
        Algorithm::Crc64Nvme => "CRC64NVME",
        Algorithm::Sha1 => "SHA1",
        Algorithm::Sha256 => "SHA256",
    }
}

pub(super) fn named(word: &str) -> S3Result<Algorithm> {
    let found = ALGORITHMS.into_iter().find(|algorithm| name(*algorithm).eq_ignore_ascii_case(word));
    found.ok_or_else(|| s3_error!(InvalidRequest, "Checksum algorithm provided is unsupported."))
}

/// Returns the checksum that S3 returns for an object: the one that its writer chose, or the CRC32C for objects of the
/// other dialect.
pub(super) fn of(object: &Object) -> StoredChecksum {
    object.checksum.clone().unwrap_or_else(|| StoredChecksum {
        algorithm: Algorithm::Crc32c,
        value: object.crc32c_base64(),
        composite: false,
    })
}

/// Returns the checksum of an object that was written in one request.
pub(super) fn stored(sums: &ComputedChecksums, announced: &AnnouncedChecksums) -> Option<StoredChecksum> {
    // If the client chose none, S3 computes CRC64NVME.
    let algorithm = announced.checksum.as_ref().map_or(Algorithm::Crc64Nvme, |(algorithm, _)| *algorithm);
    sums.of(algorithm).map(|sum| StoredChecksum { algorithm, value: base64(&sum), composite: false })
}

/// Sets the checksum field of an operation's output. It is a macro because the outputs have the same field names but
/// different types.
macro_rules! set_checksum {
    ($output:expr, $algorithm:expr, $value:expr) => {{
        let value = Some($value);
        match $algorithm {
            $crate::checksum::Algorithm::Crc32 => $output.checksum_crc32 = value,
            $crate::checksum::Algorithm::Crc32c => $output.checksum_crc32c = value,
            $crate::checksum::Algorithm::Crc64Nvme => $output.checksum_crc64nvme = value,
            $crate::checksum::Algorithm::Sha1 => $output.checksum_sha1 = value,
            $crate::checksum::Algorithm::Sha256 => $output.checksum_sha256 = value,
        }
    }};
}
pub(super) use set_checksum;

/// Returns `COMPOSITE` or `FULL_OBJECT`.
pub(super) fn kind(composite: bool) -> s3s::dto::ChecksumType {
    use s3s::dto::ChecksumType;
    ChecksumType::from_static(if composite { ChecksumType::COMPOSITE } else { ChecksumType::FULL_OBJECT })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_announced_by_header_or_trailer() {
        let mut headers = HeaderMap::new();
        assert_eq!(
            AnnouncedChecksums::in_headers(&headers).unwrap(),
            AnnouncedChecksums { checksum: None, md5: None }
        );
        headers.insert("x-amz-trailer", "x-amz-checksum-crc32".parse().unwrap());
        assert_eq!(
            AnnouncedChecksums::in_headers(&headers).unwrap().checksum,
            Some((Algorithm::Crc32, None))
        );
        headers.insert("x-amz-checksum-sha256", "abc=".parse().unwrap());
        let checksum = AnnouncedChecksums::in_headers(&headers).unwrap().checksum;
        assert_eq!(checksum, Some((Algorithm::Sha256, Some("abc=".to_owned()))));
        headers.insert("content-md5", "no md5".parse().unwrap());
        assert!(AnnouncedChecksums::in_headers(&headers).is_err());
    }

    #[test]
    fn what_does_not_match_is_a_bad_digest() {
        let sums = ComputedChecksums { crc32c: 7, ..Default::default() };
        let announced = |value: &str| AnnouncedChecksums {
            checksum: Some((Algorithm::Crc32c, Some(value.to_owned()))),
            md5: None,
        };
        assert!(announced("AAAABw==").check(&sums, None).is_ok());
        assert_eq!(announced("AAAACA==").check(&sums, None).unwrap_err().code(), &S3ErrorCode::BadDigest);
    }
}
