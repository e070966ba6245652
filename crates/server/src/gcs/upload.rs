//! Uploads in one request: `uploadType=media` and `uploadType=multipart`.

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{ApiError, ApiResult, json};
use super::related::{RelatedError, RelatedHead, RelatedParser};
use super::resource::ObjectResource;
use super::{JsonCall, acl, check_name, conditions, describe, encryption};
use crate::checksum::{ComputedChecksums, WantedChecksums, base64, from_base64};
use crate::config::GcsConfig;
use crate::objects::object::ObjectOptions;
use crate::objects::precondition::Precondition;
use crate::objects::writer::{ContentWriter, WrittenContent};
use crate::objects::{Attributes, NewObject, Object};

impl From<RelatedError> for ApiError {
    fn from(malformed: RelatedError) -> ApiError {
        ApiError::invalid(format!("Malformed multipart body: {}", malformed.0))
    }
}

pub(super) async fn upload(call: JsonCall<'_>) -> ApiResult {
    match call.query.value("uploadType") {
        Some("media") => media(call).await,
        Some("multipart") => multipart(call).await,
        _ => Err(ApiError::invalid(
            "Upload requests must specify an uploadType: media, multipart or resumable.",
        )),
    }
}

async fn media(mut call: JsonCall<'_>) -> ApiResult {
    let key =
        call.query.value("name").ok_or_else(|| ApiError::required("Required parameter: name"))?.to_owned();
    check_name(&key)?;
    let precondition = conditions::in_query(&call.query)?;
    let expected = ExpectedChecksums::in_headers(&call.head.headers)?;
    check_bucket(&call)?;
    let mut writer = call.state.objects.writer(expected.wanted(&call.state.config), call.body.expected());
    while let Some(bytes) = call.body.next().await {
        let bytes = bytes.map_err(ApiError::interrupted)?;
        writer.write(&bytes).map_err(|error| ApiError::io(&error))?;
    }
    let written = writer.finish();
    expected.check(&written.sums)?;
    let header = |name| call.head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let attributes = Attributes {
        content_type: header(CONTENT_TYPE),
        content_encoding: call
            .query
            .value("contentEncoding")
            .map(str::to_owned)
            .or_else(|| header(CONTENT_ENCODING)),
        options: options(&call)?,
        ..Default::default()
    };
    finish(&call, &key, written, attributes, &precondition)
}

async fn multipart(mut call: JsonCall<'_>) -> ApiResult {
    let precondition = conditions::in_query(&call.query)?;
    let in_headers = ExpectedChecksums::in_headers(&call.head.headers)?;
    check_bucket(&call)?;
    let content_type =
        call.head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut related = RelatedParser::new(content_type)?;
    let size = call.body.expected();
    let mut upload: Option<(Value, ExpectedChecksums, ContentWriter)> = None;
    let mut take = |head: &RelatedHead, bytes: &[u8]| -> Result<(), ApiError> {
        let (_, _, writer) = match &mut upload {
            Some(upload) => upload,
            None => {
                let metadata = parse_metadata(&head.metadata)?;
                let expected = in_headers.clone().and_metadata(&metadata)?;
                let writer = call.state.objects.writer(expected.wanted(&call.state.config), size);
                upload.insert((metadata, expected, writer))
            }
        };
        writer.write(bytes).map_err(|error| ApiError::io(&error))
    };
    while let Some(bytes) = call.body.next().await {
        related.push(&bytes.map_err(ApiError::interrupted)?, &mut take)?;
    }
    let head = related.finish(&mut take)?;
    let (metadata, expected, writer) = upload.ok_or_else(|| ApiError::invalid("the body has no media"))?;
    let written = writer.finish();
    expected.check(&written.sums)?;
    let key = metadata["name"].as_str().or(call.query.value("name"));
    let key = key.ok_or_else(|| ApiError::required("Required parameter: name"))?.to_owned();
    check_name(&key)?;
    let mut attributes =
        Attributes { content_type: head.media_type, options: options(&call)?, ..Default::default() };
    describe(&call, &mut attributes, &metadata)?;
    finish(&call, &key, written, attributes, &precondition)
}

/// Reads the encryption and access settings of an upload from query and headers.
pub(super) fn options(call: &JsonCall<'_>) -> Result<ObjectOptions, ApiError> {
    let acl = acl::in_query(call, "predefinedAcl")?;
    let kms_key = call.query.value("kmsKeyName").map(str::to_owned);
    let encryption = encryption::sent(&call.head.headers)?.or(kms_key.map(encryption::managed));
    Ok(ObjectOptions { encryption, acl, ..ObjectOptions::default() })
}

fn finish(
    call: &JsonCall<'_>,
    key: &str,
    written: WrittenContent,
    attributes: Attributes,
    precondition: &Precondition,
) -> ApiResult {
    let new = NewObject { attributes, ..Default::default() };
    let stored_as = call.state.objects.commit(call.bucket, key, written, new, precondition);
    let object = stored_as.map_err(|refused| ApiError::refused(refused, call.bucket, key))?;
    Ok(stored(call, &object))
}

/// Returns an error if the bucket doesn't exist, so that the upload's body isn't read in vain.
pub(super) fn check_bucket(call: &JsonCall<'_>) -> Result<(), ApiError> {
    let found = call.state.objects.bucket_to_write(call.bucket);
    found.map(drop).map_err(|refused| ApiError::refused(refused, call.bucket, ""))
}

fn parse_metadata(bytes: &[u8]) -> Result<Value, ApiError> {
    let value: Value =
        serde_json::from_slice(bytes).map_err(|error| ApiError::parse(format!("Parse Error: {error}")))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(ApiError::parse("Parse Error: the metadata is not an object"))
    }
}

/// Returns the answer to a finished upload.
pub(super) fn stored(call: &JsonCall<'_>, object: &Object) -> http::Response<crate::body::ResponseBody> {
    json(StatusCode::OK, &ObjectResource::new(call, call.bucket, object))
}

/// The announced checksums of the content.
///
/// They come from `x-goog-hash`, `Content-MD5`, and the `crc32c` and `md5Hash` of JSON metadata.
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
