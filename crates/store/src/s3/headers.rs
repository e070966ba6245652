//! Reads an object's metadata from S3's headers, and writes the headers for a new object, with those of its
//! encryption.

use http::{HeaderMap, HeaderName, HeaderValue};
use laneway_lanes::ResponseHead;

use super::conditions::unquoted;
use super::etags::is_made_up;
use super::set_meta;
use crate::checksum::{PartsAlgorithm, decode_crc32c, decode_crc64, encode_crc32c, of_etag};
use crate::encryption::{KeyHeaders, KeyUse};
use crate::exchange::{Outgoing, UnsendableHeader};
use crate::timestamp::{rfc3339, to_rfc3339};
use crate::{
    Checksums, Composite, CustomerKey, Encryption, ObjectId, ObjectMeta, PutOptions, Retention,
    RetentionMode, Version,
};

/// Returns the metadata in an answer's headers. The size is the `Content-Length`, so if the answer is a range the
/// caller must replace it.
pub(super) fn meta(id: &ObjectId, head: &ResponseHead) -> ObjectMeta {
    let text = |name: &str| head.header(name).map(str::to_owned);
    let mut meta = ObjectMeta::new(id.clone(), head.content_length().unwrap_or(0));
    meta.etag = head.header("etag").map(unquoted);
    meta.version = meta.etag.clone().map(Version::ETag);
    meta.version_id = text("x-amz-version-id");
    // In the answer to a range, the header may contain the checksum of a single part instead of the object's.
    if head.status.as_u16() != 206 {
        meta.checksums = checksums(head);
    }
    let etag = md5_etag(head);
    meta.checksums.md5 = etag.and_then(hex_md5);
    meta.checksums.parts = meta.checksums.parts.or_else(|| etag.and_then(of_etag));
    meta.content_type = text("content-type");
    meta.content_encoding = text("content-encoding").filter(|encoding| encoding != "aws-chunked");
    meta.cache_control = text("cache-control");
    meta.content_disposition = text("content-disposition");
    meta.content_language = text("content-language");
    meta.expires = text("expires");
    meta.storage_class = text("x-amz-storage-class");
    meta.kms_key = text("x-amz-server-side-encryption-aws-kms-key-id");
    protection(&mut meta, head);
    meta.updated = head.header("last-modified").and_then(|date| httpdate::parse_http_date(date).ok());
    let metadata = head
        .headers
        .iter()
        .filter_map(|(name, value)| {
            let name = name.as_str().strip_prefix("x-amz-meta-")?;
            Some((name.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        })
        .collect();
    meta.metadata = Some(metadata);
    meta
}

/// Adds the fields about encryption, tags, locks and archives.
fn protection(meta: &mut ObjectMeta, head: &ResponseHead) {
    let text = |name: &str| head.header(name).map(str::to_owned);
    meta.encryption = match head.header("x-amz-server-side-encryption-customer-algorithm") {
        Some(algorithm) => Some(format!("customer {algorithm}")),
        None => text("x-amz-server-side-encryption"),
    };
    meta.customer_key = text("x-amz-server-side-encryption-customer-key-md5");
    meta.bucket_key = head
        .header("x-amz-server-side-encryption-bucket-key-enabled")
        .is_some_and(|enabled| enabled.eq_ignore_ascii_case("true"));
    meta.tags = head.header("x-amz-tagging-count").and_then(|count| count.parse().ok());
    let mode = head.header("x-amz-object-lock-mode").and_then(RetentionMode::named);
    let until = head.header("x-amz-object-lock-retain-until-date").and_then(rfc3339);
    meta.retention = mode.zip(until).map(|(mode, until)| Retention { mode, until });
    meta.legal_hold = head.header("x-amz-object-lock-legal-hold") == Some("ON");
    meta.archive_status = text("x-amz-archive-status");
    meta.restore = text("x-amz-restore");
    let in_archive = meta.archive_status.is_some() || meta.storage_class.as_deref().is_some_and(is_archive);
    // An object whose restoration has finished can be read.
    let readable = |restore: &str| restore.contains("ongoing-request=\"false\"");
    meta.archived = in_archive && !meta.restore.as_deref().is_some_and(readable);
}

/// Returns whether objects of a storage class must be restored before a read.
pub(super) fn is_archive(class: &str) -> bool {
    matches!(class, "GLACIER" | "DEEP_ARCHIVE")
}

/// Returns the checksums in the headers. Composite checksums are separate from checksums of the whole object.
pub(super) fn checksums(head: &ResponseHead) -> Checksums {
    let is_composite =
        head.header("x-amz-checksum-type").is_some_and(|kind| kind.eq_ignore_ascii_case("COMPOSITE"));
    let value = |algorithm: PartsAlgorithm| match algorithm {
        PartsAlgorithm::Crc32c => head.header("x-amz-checksum-crc32c"),
        PartsAlgorithm::Crc32 => head.header("x-amz-checksum-crc32"),
        PartsAlgorithm::Sha256 => head.header("x-amz-checksum-sha256"),
        PartsAlgorithm::Sha1 => head.header("x-amz-checksum-sha1"),
        PartsAlgorithm::Md5 => None,
    };
    let mut sums = reported(is_composite, value);
    sums.crc64nvme = head.header("x-amz-checksum-crc64nvme").and_then(decode_crc64);
    sums
}

/// Decides for each CRC and SHA in an answer if it is a checksum of the whole object or a composite of the parts'
/// checksums.
pub(super) fn reported<'a>(
    is_composite: bool,
    value: impl Fn(PartsAlgorithm) -> Option<&'a str>,
) -> Checksums {
    let of_parts = |value: &&str| is_composite || value.contains('-');
    let whole = |algorithm| value(algorithm).filter(|value| !of_parts(value)).and_then(decode_crc32c);
    let composite = |algorithm: PartsAlgorithm| -> Option<Composite> {
        algorithm.decode(value(algorithm).filter(of_parts)?)
    };
    Checksums {
        crc32c: whole(PartsAlgorithm::Crc32c),
        crc32: whole(PartsAlgorithm::Crc32),
        parts: PartsAlgorithm::ALL.into_iter().find_map(composite),
        ..Checksums::default()
    }
}

/// Returns the MD5 in an ETag. The answer must come from S3, because the ETags of other web servers aren't MD5s. The
/// object must not consist of several parts, and not be encrypted with a KMS key or a customer's key.
pub(super) fn md5(head: &ResponseHead) -> Option<[u8; 16]> {
    md5_etag(head).and_then(hex_md5)
}

/// Returns the ETag without quotes if it is made of MD5s: on S3, outside directory buckets, and without a KMS or
/// customer's key.
fn md5_etag(head: &ResponseHead) -> Option<&str> {
    let encrypted =
        head.header("x-amz-server-side-encryption").is_some_and(|kind| kind.starts_with("aws:kms"))
            || head.headers.contains_key("x-amz-server-side-encryption-customer-algorithm");
    // The ETags of directory buckets are random.
    let random = head.header("x-amz-storage-class") == Some("EXPRESS_ONEZONE");
    if encrypted || random || !head.headers.contains_key("x-amz-request-id") {
        return None;
    }
    Some(head.header("etag")?.trim_matches('"')).filter(|etag| !is_made_up(etag))
}

/// Parses 32 hexadecimal digits.
pub(super) fn hex_md5(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    Some(u128::from_str_radix(text, 16).ok()?.to_be_bytes())
}

/// Checks that S3 supports all properties that a new object should get.
///
/// # Errors
/// Names a property that S3 lacks.
pub(super) fn check_options(options: &PutOptions) -> Result<(), String> {
    match options.custom_time {
        Some(_) => Err("objects on S3 have no custom time, only metadata".to_owned()),
        None => Ok(()),
    }
}

/// Adds the headers that describe a new object.
pub(super) fn describe(
    outgoing: Outgoing,
    options: &PutOptions,
    kms_key: Option<&str>,
) -> Result<Outgoing, UnsendableHeader> {
    let mut outgoing = outgoing
        .header_some("content-type", options.content_type.as_deref())?
        .header_some("content-encoding", options.content_encoding.as_deref())?
        .header_some("cache-control", options.cache_control.as_deref())?
        .header_some("content-disposition", options.content_disposition.as_deref())?
        .header_some("content-language", options.content_language.as_deref())?
        .header_some("expires", options.expires.map(httpdate::fmt_http_date).as_deref())?
        .header_some("x-amz-storage-class", options.storage_class.as_deref())?;
    if let Some(key) = options.kms_key.as_deref().or(kms_key) {
        outgoing = outgoing
            .header("x-amz-server-side-encryption", "aws:kms")?
            .header("x-amz-server-side-encryption-aws-kms-key-id", key)?;
    }
    outgoing = outgoing
        .header_some("x-amz-acl", options.acl.as_deref())?
        .header_some("x-amz-tagging", set_meta::tags_header(&options.tags).as_deref())?;
    if let Some(Retention { mode, until }) = options.retention {
        outgoing = outgoing
            .header("x-amz-object-lock-mode", mode.name())?
            .header("x-amz-object-lock-retain-until-date", &to_rfc3339(until))?;
    }
    if options.legal_hold {
        outgoing = outgoing.header("x-amz-object-lock-legal-hold", "ON")?;
    }
    for (name, value) in &options.metadata {
        let unsendable = || UnsendableHeader(format!("metadata {name:?}"));
        let header = HeaderName::try_from(format!("x-amz-meta-{name}")).map_err(|_| unsendable())?;
        // The signature covers the value as text. A server could decode non-ASCII characters differently, so they
        // aren't sent.
        let value = HeaderValue::from_str(value).ok().filter(|value| value.to_str().is_ok());
        outgoing.headers.insert(header, value.ok_or_else(unsendable)?);
    }
    Ok(outgoing)
}

/// Adds the CRC32C by which the server verifies the body. SDKs also send `x-amz-sdk-checksum-algorithm`. It adds no
/// information, and some stores refuse it.
pub(super) fn checked(outgoing: Outgoing, crc32c: u32) -> Result<Outgoing, UnsendableHeader> {
    outgoing.header("x-amz-checksum-crc32c", &encode_crc32c(crc32c))
}

const ALGORITHM: HeaderName = HeaderName::from_static("x-amz-server-side-encryption");

const BUCKET_KEY: HeaderName = HeaderName::from_static("x-amz-server-side-encryption-bucket-key-enabled");

const CONTEXT: HeaderName = HeaderName::from_static("x-amz-server-side-encryption-context");

const KMS_KEY: HeaderName = HeaderName::from_static("x-amz-server-side-encryption-aws-kms-key-id");

const OWN: KeyHeaders = [
    "x-amz-server-side-encryption-customer-algorithm",
    "x-amz-server-side-encryption-customer-key",
    "x-amz-server-side-encryption-customer-key-md5",
];

const OF_SOURCE: KeyHeaders = [
    "x-amz-copy-source-server-side-encryption-customer-algorithm",
    "x-amz-copy-source-server-side-encryption-customer-key",
    "x-amz-copy-source-server-side-encryption-customer-key-md5",
];

/// Adds the request's encryption headers, for a customer's key or for a key that the store manages
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/ServerSideEncryptionCustomerKeys.html>).
pub(super) fn apply_encryption(headers: &mut HeaderMap, key_use: KeyUse, encryption: &Encryption) {
    let Encryption { customer_key: own, source_customer_key: of_source, .. } = encryption;
    match key_use {
        KeyUse::Nothing => {}
        KeyUse::Object => key(headers, OWN, own.as_ref()),
        KeyUse::Source => key(headers, OWN, of_source.as_ref()),
        KeyUse::New => {
            key(headers, OWN, own.as_ref());
            managed(headers, encryption);
        }
        KeyUse::Copy => {
            key(headers, OWN, own.as_ref());
            key(headers, OF_SOURCE, of_source.as_ref());
            managed(headers, encryption);
        }
        KeyUse::PartCopy => {
            key(headers, OWN, own.as_ref());
            key(headers, OF_SOURCE, of_source.as_ref());
        }
    }
}

fn key(headers: &mut HeaderMap, names: KeyHeaders, key: Option<&CustomerKey>) {
    Encryption::insert_key(headers, names, key, CustomerKey::md5);
}

/// Adds headers that encrypt a new object with keys of the store. The KMS key's header is already there.
pub(super) fn managed(headers: &mut HeaderMap, encryption: &Encryption) {
    if let Some(algorithm) = encryption.algorithm {
        headers.insert(ALGORITHM, HeaderValue::from_static(algorithm.name()));
    }
    if let Some(enabled) = encryption.bucket_key {
        headers.insert(BUCKET_KEY, HeaderValue::from_static(if enabled { "true" } else { "false" }));
    }
    if let Some(context) = encryption.context_header()
        && let Ok(context) = HeaderValue::try_from(context)
    {
        headers.insert(CONTEXT, context);
    }
}

/// Adds the headers that make S3 encrypt a new object with this KMS key.
pub(super) fn with_kms_key(headers: &mut HeaderMap, key: &HeaderValue) {
    headers.insert(ALGORITHM, HeaderValue::from_static("aws:kms"));
    headers.insert(KMS_KEY, key.clone());
}

/// Removes the encryption headers that, in a directory bucket, only the request for a session may carry.
pub(super) fn without_managed(headers: &mut HeaderMap) {
    for name in [ALGORITHM, BUCKET_KEY, CONTEXT, KMS_KEY] {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method, StatusCode};

    use super::*;
    use crate::{PartsDigest, SseAlgorithm};

    const MD5: &str = "\"25f9e794323b453885f5181f1b624d0b\"";

    fn read(status: u16, headers: &[(&'static str, &'static str)]) -> ObjectMeta {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let head = ResponseHead { status: StatusCode::from_u16(status).expect("a status"), headers: map };
        meta(&ObjectId::new("b", "k"), &head)
    }

    #[test]
    fn headers_become_metadata() {
        let meta = read(
            200,
            &[
                ("content-length", "9"),
                ("etag", MD5),
                ("x-amz-request-id", "1"),
                ("x-amz-checksum-crc32c", "4waSgw=="),
                ("x-amz-checksum-type", "FULL_OBJECT"),
                ("x-amz-meta-k", "v"),
                ("content-type", "text/plain"),
            ],
        );
        assert_eq!((meta.size, meta.checksums.crc32c), (9, Some(0xe306_9283)));
        assert_eq!(meta.checksums.md5.map(|md5| md5[..2].to_vec()), Some(vec![0x25, 0xf9]));
        assert_eq!(meta.version, Some(Version::ETag("25f9e794323b453885f5181f1b624d0b".into())));
        assert_eq!(meta.metadata.expect("metadata")["k"], "v");
    }

    #[test]
    fn a_composite_checksum_says_nothing_of_the_whole() {
        let crc = |digest| Some(Composite { digest, parts: 2 });
        let meta =
            read(200, &[("x-amz-checksum-crc32c", "4waSgw==-2"), ("x-amz-checksum-type", "COMPOSITE")]);
        assert_eq!(meta.checksums.crc32c, None);
        assert_eq!(meta.checksums.parts, crc(PartsDigest::Crc32c(0xe306_9283)));
        // The AWS CLI and boto3 upload a composite CRC32. It is preferred to the ETag's MD5s.
        let crc32 = [("x-amz-checksum-crc32", "y/Q5Jg==-2"), ("x-amz-checksum-type", "COMPOSITE")];
        let etag = [("etag", "\"25f9e794323b453885f5181f1b624d0b-2\""), ("x-amz-request-id", "1")];
        let meta = read(200, &[crc32, etag].concat());
        assert_eq!(meta.checksums.crc32, None);
        assert_eq!(meta.checksums.parts, crc(PartsDigest::Crc32(0xcbf4_3926)));
        let Some(Composite { digest: PartsDigest::Md5(_), parts: 2 }) = read(200, &etag).checksums.parts
        else {
            panic!("an ETag of parts")
        };
        let kms = ("x-amz-server-side-encryption", "aws:kms");
        assert_eq!(read(200, &[etag[0], etag[1], kms]).checksums.parts, None);
    }

    #[test]
    fn a_crc32_of_the_whole_is_read_too() {
        let meta = read(200, &[("x-amz-checksum-crc32", "y/Q5Jg=="), ("x-amz-checksum-type", "FULL_OBJECT")]);
        assert_eq!(meta.checksums.crc32, Some(0xcbf4_3926));
    }

    #[test]
    fn a_ranged_answers_checksum_is_not_the_objects() {
        assert!(read(206, &[("x-amz-checksum-crc32c", "4waSgw==")]).checksums.is_empty());
    }

    #[test]
    fn not_every_tag_is_an_md5() {
        assert_eq!(read(200, &[("etag", MD5)]).checksums.md5, None, "any web server's");
        let request = ("x-amz-request-id", "1");
        let kms = ("x-amz-server-side-encryption", "aws:kms");
        assert_eq!(read(200, &[("etag", MD5), request, kms]).checksums.md5, None);
        assert_eq!(
            read(200, &[("etag", "\"25f9e794323b453885f5181f1b624d0b-2\""), request]).checksums.md5,
            None
        );
        let express = ("x-amz-storage-class", "EXPRESS_ONEZONE");
        assert_eq!(read(200, &[("etag", MD5), request, express]).checksums.md5, None);
        assert!(read(200, &[("etag", MD5), request]).checksums.md5.is_some());
    }

    #[test]
    fn encryption_tags_locks_and_archives_are_read() {
        let meta = read(
            200,
            &[
                ("x-amz-server-side-encryption", "aws:kms"),
                ("x-amz-server-side-encryption-aws-kms-key-id", "k"),
                ("x-amz-server-side-encryption-bucket-key-enabled", "true"),
                ("x-amz-tagging-count", "2"),
                ("x-amz-object-lock-mode", "COMPLIANCE"),
                ("x-amz-object-lock-retain-until-date", "2027-01-31T00:00:00.000Z"),
                ("x-amz-object-lock-legal-hold", "ON"),
            ],
        );
        assert_eq!((meta.encryption.as_deref(), meta.kms_key.as_deref()), (Some("aws:kms"), Some("k")));
        assert!(meta.bucket_key && meta.legal_hold);
        assert_eq!(meta.tags, Some(2));
        let until = rfc3339("2027-01-31T00:00:00Z").expect("a time");
        assert_eq!(meta.retention, Some(Retention { mode: RetentionMode::Compliance, until }));
        let customer = read(
            200,
            &[
                ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
                ("x-amz-server-side-encryption-customer-key-md5", "m"),
            ],
        );
        assert_eq!(customer.encryption.as_deref(), Some("customer AES256"));
        assert_eq!(customer.customer_key.as_deref(), Some("m"));
    }

    #[test]
    fn what_lies_in_an_archive_is_archived_until_it_is_restored() {
        let class = |class| ("x-amz-storage-class", class);
        let restore = |text| ("x-amz-restore", text);
        assert!(read(200, &[class("GLACIER")]).archived && read(200, &[class("DEEP_ARCHIVE")]).archived);
        assert!(!read(200, &[class("GLACIER_IR")]).archived);
        assert!(read(200, &[class("GLACIER"), restore("ongoing-request=\"true\"")]).archived);
        let done = restore("ongoing-request=\"false\", expiry-date=\"Fri, 21 Dec 2026 00:00:00 GMT\"");
        assert!(!read(200, &[class("GLACIER"), done]).archived);
        let tiered = [class("INTELLIGENT_TIERING"), ("x-amz-archive-status", "ARCHIVE_ACCESS")];
        assert!(read(200, &tiered).archived);
    }

    #[test]
    fn a_web_servers_answer_has_size_and_tag_and_no_checksums() {
        let meta = read(200, &[("content-length", "5"), ("etag", "\"67a-5\""), ("server", "nginx")]);
        assert_eq!(meta.size, 5);
        assert_eq!(meta.version, Some(Version::ETag("67a-5".into())));
        assert!(meta.checksums.is_empty());
    }

    #[test]
    fn a_description_becomes_headers() {
        let mut options = PutOptions::default().content_type("a/b");
        options.metadata.insert("Name".into(), "v".into());
        let outgoing = describe(Outgoing::new(Method::PUT, "/k"), &options, Some("key")).expect("a request");
        assert_eq!(outgoing.headers["x-amz-meta-name"], "v");
        assert_eq!(outgoing.headers["x-amz-server-side-encryption"], "aws:kms");
        assert_eq!(outgoing.headers["x-amz-server-side-encryption-aws-kms-key-id"], "key");
        options.acl = Some("private".into());
        options.tags.insert("a b".into(), "c".into());
        let until = rfc3339("2027-01-31T00:00:00Z").expect("a time");
        options.retention = Some(Retention { mode: RetentionMode::Governance, until });
        options.legal_hold = true;
        let outgoing = describe(Outgoing::new(Method::PUT, "/k"), &options, None).expect("a request");
        for (name, value) in [
            ("x-amz-acl", "private"),
            ("x-amz-tagging", "a%20b=c"),
            ("x-amz-object-lock-mode", "GOVERNANCE"),
            ("x-amz-object-lock-retain-until-date", "2027-01-31T00:00:00Z"),
            ("x-amz-object-lock-legal-hold", "ON"),
        ] {
            assert_eq!(outgoing.headers[name], value);
        }
        options.metadata.insert("n".into(), "é".into());
        assert!(describe(Outgoing::new(Method::PUT, "/k"), &options, None).is_err());
    }

    fn encryption() -> Encryption {
        Encryption {
            customer_key: CustomerKey::parse(&[1; 32]).ok(),
            source_customer_key: CustomerKey::parse(&[2; 32]).ok(),
            ..Encryption::default()
        }
    }

    fn applied(key_use: KeyUse, encryption: &Encryption) -> HeaderMap {
        let mut headers = HeaderMap::new();
        apply_encryption(&mut headers, key_use, encryption);
        headers
    }

    #[test]
    fn each_request_says_the_key_of_what_it_touches() {
        let (one, two) =
            ("AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=", "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=");
        for (key_use, own, of_source) in [
            (KeyUse::Nothing, None, None),
            (KeyUse::Object, Some(one), None),
            (KeyUse::Source, Some(two), None),
            (KeyUse::New, Some(one), None),
            (KeyUse::Copy, Some(one), Some(two)),
            (KeyUse::PartCopy, Some(one), Some(two)),
        ] {
            let headers = applied(key_use, &encryption());
            let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
            assert_eq!((said(OWN[1]), said(OF_SOURCE[1])), (own, of_source), "{key_use:?}");
            assert_eq!(headers.contains_key(OWN[2]), own.is_some(), "{key_use:?}");
        }
    }

    #[test]
    fn a_key_is_marked_as_a_secret() {
        let headers = applied(KeyUse::Object, &encryption());
        assert!(headers[OWN[1]].is_sensitive());
        assert!(!format!("{headers:?}").contains("AQEB"), "{headers:?}");
    }

    #[test]
    fn managed_encryption_is_for_new_objects_only() {
        let dsse = Encryption {
            algorithm: Some(SseAlgorithm::KmsDsse),
            bucket_key: Some(false),
            context: [("team".to_owned(), "a".to_owned())].into(),
            ..Encryption::default()
        };
        let new = applied(KeyUse::New, &dsse);
        assert_eq!(new[ALGORITHM], "aws:kms:dsse");
        assert_eq!(new[BUCKET_KEY], "false");
        assert_eq!(new[CONTEXT], "eyJ0ZWFtIjoiYSJ9");
        assert!(applied(KeyUse::Object, &dsse).is_empty() && applied(KeyUse::PartCopy, &dsse).is_empty());
    }
}
