//! The checksums that a client announces for an upload: `x-goog-hash`, `Content-MD5`, and the `crc32c` and `md5Hash` of
//! JSON metadata.

use http::HeaderMap;
use serde::{Deserialize, Serialize};

use super::answer::ApiError;
use crate::checksum::{ComputedChecksums, WantedChecksums, base64, from_base64};
use crate::config::GcsConfig;

/// The announced checksums of the content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExpectedChecksums {
    pub(crate) crc32c: Option<u32>,
    pub(crate) md5: Option<[u8; 16]>,
}

impl ExpectedChecksums {
    pub(crate) fn in_headers(headers: &HeaderMap) -> Result<ExpectedChecksums, ApiError> {
        let mut expected = ExpectedChecksums::default();
        for value in headers.get_all("x-goog-hash") {
            for pair in value.to_str().unwrap_or_default().split(',') {
                match pair.trim().split_once('=') {
                    Some(("crc32c", sum)) => expected.crc32c = Some(crc32c(sum)?),
                    Some(("md5", sum)) => expected.md5 = Some(md5(sum)?),
                    _ => return Err(ApiError::invalid(format!("Invalid x-goog-hash: '{}'", pair.trim()))),
                }
            }
        }
        if let Some(value) = headers.get("content-md5") {
            expected.md5 = Some(md5(value.to_str().unwrap_or_default())?);
        }
        Ok(expected)
    }

    /// Adds the checksums in the JSON metadata, which override those in the headers.
    pub(crate) fn and_metadata(
        mut self,
        metadata: &serde_json::Value,
    ) -> Result<ExpectedChecksums, ApiError> {
        if let Some(sum) = metadata["crc32c"].as_str() {
            self.crc32c = Some(crc32c(sum)?);
        }
        if let Some(sum) = metadata["md5Hash"].as_str() {
            self.md5 = Some(md5(sum)?);
        }
        Ok(self)
    }

    /// Returns the checksums that the server must compute to check the content.
    pub(crate) fn wanted(&self, config: &GcsConfig) -> WantedChecksums {
        let md5_bytes_max = if self.md5.is_some() { u64::MAX } else { config.md5_bytes_max };
        WantedChecksums { md5_bytes_max, crc64nvme: false, extra: None }
    }

    pub(crate) fn check(&self, sums: &ComputedChecksums) -> Result<(), ApiError> {
        if let Some(expected) = self.crc32c.filter(|expected| *expected != sums.crc32c) {
            let (expected, computed) = (base64(&expected.to_be_bytes()), base64(&sums.crc32c.to_be_bytes()));
            return Err(mismatch("CRC32C", &expected, &computed));
        }
        if let (Some(expected), Some(computed)) = (self.md5, sums.md5)
            && expected != computed
        {
            return Err(mismatch("MD5 hash", &base64(&expected), &base64(&computed)));
        }
        Ok(())
    }
}

fn mismatch(what: &str, expected: &str, computed: &str) -> ApiError {
    ApiError::invalid(format!(
        "Provided {what} \"{expected}\" doesn't match calculated {what} \"{computed}\"."
    ))
}

fn crc32c(text: &str) -> Result<u32, ApiError> {
    let bytes = from_base64(text).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u32::from_be_bytes).ok_or_else(|| ApiError::invalid(format!("Invalid CRC32C: '{text}'")))
}

fn md5(text: &str) -> Result<[u8; 16], ApiError> {
    let bytes = from_base64(text).and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| ApiError::invalid(format!("Invalid MD5 hash: '{text}'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_hashes_are_read_from_one_header_or_two() {
        let mut headers = HeaderMap::new();
        headers.append("x-goog-hash", "crc32c=4waSgw==,md5=JfnnlDI7RTiF9RgfG2JNCw==".parse().unwrap());
        let one = ExpectedChecksums::in_headers(&headers).unwrap();
        assert_eq!(one.crc32c, Some(0xE306_9283));
        assert!(one.md5.is_some());
        headers.clear();
        headers.append("x-goog-hash", "crc32c=4waSgw==".parse().unwrap());
        headers.append("x-goog-hash", "md5=JfnnlDI7RTiF9RgfG2JNCw==".parse().unwrap());
        assert_eq!(ExpectedChecksums::in_headers(&headers).unwrap(), one);
    }

    #[test]
    fn what_does_not_match_is_refused_with_both_values() {
        let expected = ExpectedChecksums { crc32c: Some(1), md5: None };
        let problem = expected.check(&ComputedChecksums { crc32c: 2, ..Default::default() }).unwrap_err();
        assert!(problem.message.contains("AAAAAQ==") && problem.message.contains("AAAAAg=="));
    }
}
