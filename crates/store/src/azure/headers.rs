//! Reads an object's metadata from the service's headers, and writes the headers of requests.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use laneway_lanes::ResponseHead;

use super::STRUCTURED_BODY;
use crate::checksum::decode_md5;
use crate::delivery::structured_body::FORMAT;
use crate::encode::{QueryString, component, path};
use crate::exchange::{Outgoing, UnsendableHeader};
use crate::unless::http_date;
use crate::{Condition, ObjectId, ObjectMeta, PutOptions, Unless, Version};

/// The tier from which blobs must be restored.
pub(super) const ARCHIVE: &str = "Archive";

/// The error for a condition on a generation, which exists only on GCS.
const NO_GENERATIONS: &str = "Azure compares ETags, not generations";

/// The prefix of the headers with user metadata.
const METADATA: &str = "x-ms-meta-";

/// Returns the target of a blob or of one of its versions. The query begins with `query`.
pub(super) fn blob_target(id: &ObjectId, query: QueryString) -> String {
    let query = query.and_some("versionid", id.version.as_deref());
    format!("/{}/{}{query}", container_of(&id.bucket), path(&id.key))
}

/// Checks that a target names the same object to every server. Web servers resolve the segments `.` and `..` of a path, also
/// percent-encoded ones, so such a request could concern another blob.
///
/// # Errors
/// Names the reason.
pub(super) fn check_target(target: &str) -> Result<(), String> {
    let path = target.split('?').next().unwrap_or_default();
    match path.split('/').any(|segment| matches!(segment, "." | "..")) {
        true => {
            Err("Azure can't have names with the segments . and .., because servers resolve them".to_owned())
        }
        false => Ok(()),
    }
}

/// Returns the container's name in a bucket's, which may also name the account.
pub(super) fn container_of(bucket: &str) -> &str {
    bucket.split_once('@').map_or(bucket, |(container, _)| container)
}

/// The header with the length of a structured body's content.
const STRUCTURED_LEN: &str = "x-ms-structured-content-length";

/// Returns the length of the content in a structured body, or `None` if the body isn't structured.
///
/// # Errors
/// Names a format that Laneway didn't request, or a missing length.
pub(super) fn structured_len(head: &ResponseHead) -> Result<Option<u64>, String> {
    let Some(format) = head.header(STRUCTURED_BODY) else { return Ok(None) };
    if !format.trim().eq_ignore_ascii_case(FORMAT) {
        return Err(format!(
            "the server sent a body in the format {format:?}, but Laneway reads only {FORMAT}"
        ));
    }
    let len = head.header(STRUCTURED_LEN).and_then(|len| len.trim().parse().ok());
    len.map(Some).ok_or_else(|| format!("the structured body has no {STRUCTURED_LEN}"))
}

/// Returns the MD5 of the range in an answer.
pub(super) fn range_md5(head: &ResponseHead) -> Option<[u8; 16]> {
    head.header("content-md5").and_then(decode_md5)
}

/// Returns the metadata in an answer's headers. The size is the length of the content, so for a range the caller must
/// replace it.
pub(super) fn meta(id: &ObjectId, head: &ResponseHead) -> ObjectMeta {
    let text = |name: &str| head.header(name).map(str::to_owned);
    let len = head.header(STRUCTURED_LEN).and_then(|len| len.parse().ok()).or(head.content_length());
    let mut meta = ObjectMeta::new(id.clone(), len.unwrap_or(0));
    meta.etag = head.header("etag").map(unquoted);
    meta.version = meta.etag.clone().map(Version::ETag);
    meta.version_id = text("x-ms-version-id");
    // In the answer to a range, `Content-MD5` is that of the range, and another header has the whole blob's.
    let whole = head.header("x-ms-blob-content-md5");
    let plain = head.header("content-md5").filter(|_| head.status.as_u16() != 206);
    meta.checksums.md5 = whole.or(plain).and_then(decode_md5);
    meta.content_type = text("content-type");
    meta.content_encoding = text("content-encoding");
    meta.cache_control = text("cache-control");
    meta.content_disposition = text("content-disposition");
    meta.content_language = text("content-language");
    meta.updated = date(head.header("last-modified"));
    meta.created = date(head.header("x-ms-creation-time"));
    meta.storage_class = text("x-ms-access-tier");
    meta.archive_status = text("x-ms-archive-status");
    meta.archived = meta.storage_class.as_deref() == Some(ARCHIVE);
    meta.restore = meta.archive_status.clone();
    meta.encryption = head.header("x-ms-encryption-key-sha256").map(|_| "customer AES256".to_owned());
    meta.customer_key = text("x-ms-encryption-key-sha256");
    meta.kms_key = text("x-ms-encryption-scope");
    meta.tags = head.header("x-ms-tag-count").and_then(|count| count.parse().ok());
    meta.legal_hold = head.header("x-ms-legal-hold").is_some_and(|held| held.eq_ignore_ascii_case("true"));
    let metadata = head.headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix(METADATA)?;
        Some((name.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
    });
    meta.metadata = Some(metadata.collect());
    meta
}

/// Reads a date in the format of HTTP headers.
pub(super) fn date(text: Option<&str>) -> Option<std::time::SystemTime> {
    httpdate::parse_http_date(text?).ok()
}

/// Checks that the service supports all properties that a new object should get.
///
/// # Errors
/// Names a property that Azure lacks.
pub(super) fn check_options(options: &PutOptions) -> Result<(), String> {
    let lacks = |what: &str| Err(format!("Laneway doesn't support {what} on Azure"));
    match options {
        _ if options.expires.is_some() => lacks("the header Expires"),
        _ if options.custom_time.is_some() => lacks("a custom time"),
        _ if options.acl.is_some() => lacks("access control lists"),
        _ if options.is_protected() => lacks("retention and legal holds"),
        _ => match options.metadata.keys().find(|name| !is_identifier(name)) {
            // The service answers such a name with 400, without naming it.
            Some(name) => Err(format!(
                "Azure can't keep metadata {name:?}: a name has letters, digits and underscores, and doesn't begin with a digit"
            )),
            None => Ok(()),
        },
    }
}

/// Returns true if a name can be that of metadata. The service demands identifiers of C#.
fn is_identifier(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Adds the headers that describe a new blob: its properties, metadata, tags and tier.
pub(super) fn describe(outgoing: Outgoing, options: &PutOptions) -> Result<Outgoing, UnsendableHeader> {
    let outgoing = properties(outgoing, options)?
        .header_some("x-ms-access-tier", options.storage_class.as_deref())?
        .header_some("x-ms-encryption-scope", options.kms_key.as_deref())?
        .header_some("x-ms-tags", tags_header(&options.tags).as_deref())?;
    metadata(outgoing, &options.metadata)
}

/// Adds the headers of a blob's properties.
pub(super) fn properties(outgoing: Outgoing, options: &PutOptions) -> Result<Outgoing, UnsendableHeader> {
    outgoing
        .header_some("x-ms-blob-content-type", options.content_type.as_deref())?
        .header_some("x-ms-blob-content-encoding", options.content_encoding.as_deref())?
        .header_some("x-ms-blob-cache-control", options.cache_control.as_deref())?
        .header_some("x-ms-blob-content-disposition", options.content_disposition.as_deref())?
        .header_some("x-ms-blob-content-language", options.content_language.as_deref())
}

/// Adds the headers of user metadata.
pub(super) fn metadata(
    mut outgoing: Outgoing,
    metadata: &BTreeMap<String, String>,
) -> Result<Outgoing, UnsendableHeader> {
    for (name, value) in metadata {
        let unsendable = || UnsendableHeader(format!("metadata {name:?}"));
        let header = HeaderName::try_from(format!("{METADATA}{name}")).map_err(|_| unsendable())?;
        let value = HeaderValue::from_str(value).ok().filter(|value| value.to_str().is_ok());
        outgoing.headers.insert(header, value.ok_or_else(unsendable)?);
    }
    Ok(outgoing)
}

/// Returns tags as the header carries them, or `None` if there are none.
pub(super) fn tags_header(tags: &BTreeMap<String, String>) -> Option<String> {
    let pairs: Vec<_> =
        tags.iter().map(|(name, value)| format!("{}={}", component(name), component(value))).collect();
    (!pairs.is_empty()).then(|| pairs.join("&"))
}

/// Adds the headers of a write's condition on its destination.
pub(super) fn on_write(outgoing: Outgoing, condition: &Condition) -> Result<Outgoing, String> {
    conditional(outgoing, condition, "if-match", "if-none-match")
}

/// Adds the headers of a copy's condition on its source.
pub(super) fn on_source(outgoing: Outgoing, condition: &Condition) -> Result<Outgoing, String> {
    conditional(outgoing, condition, "x-ms-source-if-match", "x-ms-source-if-none-match")
}

fn conditional(
    outgoing: Outgoing,
    condition: &Condition,
    matches: &'static str,
    absent: &'static str,
) -> Result<Outgoing, String> {
    let sent = match condition {
        Condition::None => Ok(outgoing),
        Condition::Absent => outgoing.header(absent, "*"),
        Condition::Matches(Version::ETag(etag)) => outgoing.header(matches, &quoted(etag)),
        Condition::Matches(_) => return Err(NO_GENERATIONS.to_owned()),
    };
    sent.map_err(|e| e.to_string())
}

/// Adds the headers that pin a read to a version, or that let it return only a newer state.
pub(super) fn on_read(
    outgoing: Outgoing,
    version: Option<&Version>,
    unless: Option<&Unless>,
) -> Result<Outgoing, String> {
    let pinned = version.map_or(Condition::None, |version| Condition::Matches(version.clone()));
    let outgoing = on_write(outgoing, &pinned)?;
    let sent = match unless {
        None => Ok(outgoing),
        Some(Unless::Version(Version::ETag(etag))) => outgoing.header("if-none-match", &quoted(etag)),
        Some(Unless::Version(_)) => return Err(NO_GENERATIONS.to_owned()),
        Some(Unless::ModifiedSince(since)) => outgoing.header("if-modified-since", &http_date(*since)),
    };
    sent.map_err(|e| e.to_string())
}

/// Returns an entity tag in quotes, as headers carry it.
pub(super) fn quoted(etag: &str) -> String {
    format!("\"{etag}\"")
}

/// Returns an entity tag without its quotes. Listings have none.
pub(super) fn unquoted(etag: &str) -> String {
    etag.trim().trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method, StatusCode};

    use super::*;

    fn head(status: u16, headers: &[(&'static str, &'static str)]) -> ResponseHead {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        ResponseHead { status: StatusCode::from_u16(status).expect("a status"), headers: map }
    }

    const MD5: &str = "XrY7u+Ae7tCTyyK7j1rNww==";

    #[test]
    fn the_md5_of_a_range_is_not_taken_for_the_blobs() {
        let id = ObjectId::new("abc", "k");
        let whole = meta(&id, &head(200, &[("content-md5", MD5)]));
        assert!(whole.checksums.md5.is_some());
        let range = meta(&id, &head(206, &[("content-md5", MD5)]));
        assert_eq!(range.checksums.md5, None);
        let range = meta(&id, &head(206, &[("content-md5", "AAAA"), ("x-ms-blob-content-md5", MD5)]));
        assert_eq!(range.checksums.md5, whole.checksums.md5);
    }

    #[test]
    fn reads_state_tier_and_metadata() {
        let answer = head(
            200,
            &[
                ("etag", "\"0x8D1\""),
                ("content-length", "5"),
                ("x-ms-access-tier", "Archive"),
                ("x-ms-meta-mtime", "17"),
                ("x-ms-tag-count", "2"),
            ],
        );
        let meta = meta(&ObjectId::new("abc", "k"), &answer);
        assert_eq!(meta.version, Some(Version::ETag("0x8D1".to_owned())));
        assert!(meta.archived && meta.size == 5 && meta.tags == Some(2));
        assert_eq!(meta.metadata.expect("metadata").get("mtime").map(String::as_str), Some("17"));
    }

    #[test]
    fn metadata_that_the_service_cannot_keep_is_refused_by_name() {
        let refused = |name: &str| check_options(&PutOptions::default().metadata(name, "v"));
        assert!(refused("with-hyphen").is_err_and(|why| why.contains("with-hyphen")));
        assert!(refused("1st").is_err());
        assert_eq!(refused("mtime_2"), Ok(()));
    }

    #[test]
    fn conditions_are_sent_in_headers() {
        let put = || Outgoing::new(Method::PUT, "/abc/k");
        let absent = on_write(put(), &Condition::Absent).expect("a request");
        assert_eq!(absent.headers["if-none-match"], "*");
        let state = Condition::Matches(Version::ETag("0x1".to_owned()));
        assert_eq!(on_write(put(), &state).expect("a request").headers["if-match"], "\"0x1\"");
        assert_eq!(on_source(put(), &state).expect("a request").headers["x-ms-source-if-match"], "\"0x1\"");
        assert!(on_write(put(), &Condition::Matches(Version::Generation(1))).is_err());
    }

    #[test]
    fn names_that_a_server_would_resolve_are_refused() {
        let check = |key: &str| check_target(&blob_target(&ObjectId::new("abc", key), QueryString::new()));
        for key in ["a/../b", "..", "./a", "a/."] {
            assert!(check(key).is_err(), "{key}");
        }
        for key in ["a..", "...", "a//b", "a/.b"] {
            assert_eq!(check(key), Ok(()), "{key}");
        }
    }

    #[test]
    fn a_target_has_the_container_and_the_encoded_key() {
        let id = ObjectId::new("abc@mine.blob.core.windows.net", "a b/%+.")
            .at_version("2026-01-01T00:00:00.0000000Z");
        let target = blob_target(&id, QueryString::new().and("comp", "tags"));
        assert_eq!(target, "/abc/a%20b/%25%2B.?comp=tags&versionid=2026-01-01T00%3A00%3A00.0000000Z");
    }
}
