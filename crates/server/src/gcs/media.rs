//! Downloads in the JSON and the XML API: ranges, reads of a given generation, and decompression of gzip.

use std::ops::Range;

use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE,
    CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, LAST_MODIFIED, RANGE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Version};

use super::answer::{ApiError, ApiResult};
use super::{JsonCall, conditions, encryption};
use crate::body::ResponseBody;
use crate::gcs::GcsState;
use crate::objects::object::ObjectEncryption;
use crate::objects::precondition::Precondition;
use crate::objects::versions::VersionSelector;
use crate::objects::{Object, StoreError};

pub(super) fn get(call: &JsonCall<'_>) -> ApiResult {
    let precondition = conditions::in_query(&call.query)?;
    let generation = conditions::number("generation", call.query.value("generation"))?;
    let object = find(call.state, call.bucket, call.key, generation, &precondition)?;
    conditions::on_etag(&call.head.headers, &object.gcs_etag()).map_err(|failed| {
        ApiError::refused_to_read(StoreError::Precondition(failed), call.bucket, call.key)
    })?;
    encryption::admit(encryption::sent(&call.head.headers)?.as_ref(), &object)?;
    let mut answer = download(call.state, &call.head, &object, object.gcs_etag())?;
    join_hashes(answer.headers_mut());
    leave_out_attributes(answer.headers_mut());
    Ok(answer)
}

/// Finds the object, and checks the preconditions of the read.
pub(super) fn find(
    state: &GcsState,
    bucket: &str,
    key: &str,
    generation: Option<u64>,
    precondition: &Precondition,
) -> Result<std::sync::Arc<Object>, ApiError> {
    let refuse = |refused| ApiError::refused_to_read(refused, bucket, key);
    let which = generation.map_or(VersionSelector::Live, VersionSelector::Generation);
    let object = state.objects.find_version(bucket, key, which).map_err(refuse)?;
    precondition.check(Some(&object)).map_err(|failed| refuse(StoreError::Precondition(failed)))?;
    Ok(object)
}

/// Returns the answer to a download, with the range that the headers request.
pub(super) fn download(state: &GcsState, head: &Parts, object: &Object, etag: String) -> ApiResult {
    let headers = &head.headers;
    let transcodes = object.attributes.content_encoding.as_deref() == Some("gzip") && !accepts_gzip(headers);
    let wanted = headers.get(RANGE).and_then(|value| value.to_str().ok()).filter(|_| !transcodes);
    let range = match wanted.and_then(parse_range) {
        None => None,
        Some(asked) => match asked.within(object.size) {
            Some(range) => Some(range),
            None => {
                let mut answer = ApiError::not_satisfiable().json();
                insert(answer.headers_mut(), CONTENT_RANGE, &format!("bytes */{}", object.size));
                return Ok(answer);
            }
        },
    };
    let content = match &range {
        Some(range) => object.content.range(range.clone()),
        None => object.content.clone(),
    };
    let chunked = chunked(state, head, object);
    let body = if transcodes {
        ResponseBody::gunzipped(content.reader())
    } else if chunked {
        ResponseBody::chunked(content.reader())
    } else {
        ResponseBody::object(content.reader())
    };
    let mut answer = Response::new(body);
    describe(answer.headers_mut(), object, &etag);
    let headers = answer.headers_mut();
    if transcodes {
        headers.remove(CONTENT_ENCODING);
        headers.remove(ACCEPT_RANGES);
        insert(headers, HeaderName::from_static("warning"), "214 UploadServer gunzipped");
    } else if !chunked {
        let len = range.as_ref().map_or(object.size, |range| range.end - range.start);
        headers.insert(CONTENT_LENGTH, len.into());
    }
    if let Some(range) = range {
        insert(headers, CONTENT_RANGE, &format!("bytes {}-{}/{}", range.start, range.end - 1, object.size));
        *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(answer)
}

/// Returns true if the answer doesn't announce its length. GCS omits the length for large gzip objects on HTTP/1.1, but
/// never on HTTP/2.
fn chunked(state: &GcsState, head: &Parts, object: &Object) -> bool {
    object.attributes.content_encoding.as_deref() == Some("gzip")
        && head.version < Version::HTTP_2
        && state.habits.gzip_chunked_from.is_some_and(|from| object.size >= from)
}

/// Adds the headers that describe an object, for GET and HEAD.
pub(super) fn describe(headers: &mut HeaderMap, object: &Object, etag: &str) {
    let attributes = &object.attributes;
    let content_type = attributes.content_type.as_deref().unwrap_or("application/octet-stream");
    insert(headers, CONTENT_TYPE, content_type);
    for (name, value) in [
        (CONTENT_ENCODING, &attributes.content_encoding),
        (CACHE_CONTROL, &attributes.cache_control),
        (CONTENT_DISPOSITION, &attributes.content_disposition),
        (CONTENT_LANGUAGE, &attributes.content_language),
    ] {
        if let Some(value) = value {
            insert(headers, name, value);
        }
    }
    insert(headers, ETAG, etag);
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let updated = std::time::UNIX_EPOCH + std::time::Duration::from_micros(object.updated_us);
    insert(headers, LAST_MODIFIED, &httpdate::fmt_http_date(updated));
    headers.insert("x-goog-generation", object.generation.into());
    headers.insert("x-goog-metageneration", object.metageneration.into());
    insert(headers, HeaderName::from_static("x-goog-storage-class"), object.storage_class());
    headers.insert("x-goog-stored-content-length", object.size.into());
    let encoding = attributes.content_encoding.as_deref().unwrap_or("identity");
    insert(headers, HeaderName::from_static("x-goog-stored-content-encoding"), encoding);
    hashes(headers, object);
    if let Some(time) = &attributes.custom_time {
        insert(headers, HeaderName::from_static("x-goog-custom-time"), time);
    }
    if let Some(ObjectEncryption::Customer { sha256, .. }) = &attributes.options.encryption {
        insert(headers, HeaderName::from_static("x-goog-encryption-algorithm"), "AES256");
        insert(headers, HeaderName::from_static("x-goog-encryption-key-sha256"), sha256);
    }
    if let Some(components) = object.components {
        headers.insert("x-goog-component-count", components.into());
    }
    user_metadata(headers, object);
}

pub(super) fn user_metadata(headers: &mut HeaderMap, object: &Object) {
    for (name, value) in &object.attributes.metadata {
        if let Ok(name) = HeaderName::try_from(format!("x-goog-meta-{name}")) {
            insert(headers, name, value);
        }
    }
}

/// Adds one `x-goog-hash` header for each kind of checksum, as GCS does.
pub(super) fn hashes(headers: &mut HeaderMap, object: &Object) {
    let name = HeaderName::from_static("x-goog-hash");
    if let Ok(value) = HeaderValue::try_from(format!("crc32c={}", object.crc32c_base64())) {
        headers.append(name.clone(), value);
    }
    if let Some(md5) = object.md5_base64()
        && let Ok(value) = HeaderValue::try_from(format!("md5={md5}"))
    {
        headers.append(name, value);
    }
}

/// Joins both checksums in one header `x-goog-hash`, as the JSON API does. `gcsfs` would read only the first of two
/// headers.
fn join_hashes(headers: &mut HeaderMap) {
    let name = HeaderName::from_static("x-goog-hash");
    let values: Vec<&str> = headers.get_all(&name).iter().filter_map(|value| value.to_str().ok()).collect();
    if let Ok(joined) = HeaderValue::try_from(values.join(",")) {
        headers.insert(name, joined);
    }
}

/// Removes user metadata, as GCS does for media of the JSON API. It also sets `Cache-Control` for objects that aren't
/// public (<https://cloud.google.com/storage/docs/json_api/v1/parameters#cachecontrol>).
fn leave_out_attributes(headers: &mut HeaderMap) {
    let own: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("x-goog-meta-")).cloned().collect();
    for name in own {
        headers.remove(name);
    }
    insert(headers, CACHE_CONTROL, "no-cache, no-store, max-age=0, must-revalidate");
}

/// Inserts a header. If a value that the object's writer chose can't be sent in a header, the header is left out.
pub(super) fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
        headers.insert(name, value);
    }
}

pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    headers.get_all(ACCEPT_ENCODING).iter().any(|value| {
        let text = value.to_str().unwrap_or_default();
        text.split(',').any(|coding| coding.trim().split(';').next() == Some("gzip"))
    })
}

/// The range that a request asks for.
#[derive(Debug, PartialEq, Eq)]
enum RequestedRange {
    From(u64),
    Between(u64, u64),
    Last(u64),
}

/// Parses a `Range` header. If it has several ranges or another unit than bytes, it is ignored, as HTTP allows.
fn parse_range(text: &str) -> Option<RequestedRange> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    match (first.trim(), last.trim()) {
        ("", last) => last.parse().ok().map(RequestedRange::Last),
        (first, "") => first.parse().ok().map(RequestedRange::From),
        (first, last) => {
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last).then_some(RequestedRange::Between(first, last))
        }
    }
}

impl RequestedRange {
    /// Returns the range as byte positions in an object of this size, or `None` if the object has none of the bytes.
    fn within(&self, size: u64) -> Option<Range<u64>> {
        let range = match *self {
            RequestedRange::From(first) => first..size,
            RequestedRange::Between(first, last) => first..last.saturating_add(1).min(size),
            RequestedRange::Last(count) => size.saturating_sub(count)..size,
        };
        (range.start < range.end).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_off_at_the_end_of_the_object() {
        let range = |text: &str| parse_range(text).unwrap().within(10);
        assert_eq!(range("bytes=2-5"), Some(2..6));
        assert_eq!(range("bytes=2-"), Some(2..10));
        assert_eq!(range("bytes=8-99"), Some(8..10));
        assert_eq!(range("bytes=-3"), Some(7..10));
        assert_eq!(range("bytes=-30"), Some(0..10));
        assert_eq!(range("bytes=10-"), None);
        assert_eq!(range("bytes=-0"), None);
        assert_eq!(parse_range("bytes=0-").unwrap().within(0), None);
    }

    #[test]
    fn what_is_no_single_range_is_ignored() {
        for text in ["bytes=1-2,4-5", "items=1-2", "bytes=5-2", "bytes=x-"] {
            assert_eq!(parse_range(text), None, "{text}");
        }
    }
}
