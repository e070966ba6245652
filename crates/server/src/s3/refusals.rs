//! Refuses requests that S3 refuses, and requests for features that this store lacks. The latter might otherwise be
//! handled as a different request.

use http::header::{CONTENT_LENGTH, RANGE};
use http::{HeaderMap, Method, StatusCode};

use super::checksums::{ALGORITHMS, header, named};
use super::{ACCOUNT, versions};
use crate::query::Query;

/// The maximum size in bytes of an object in one PUT, of a part, and of an object in one copy request.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>
pub(super) const PUT_BYTES_MAX: u64 = 5 << 30;

/// The maximum number of bytes of user metadata, names and values together.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html>
const METADATA_BYTES_MAX: usize = 2048;

/// S3's storage classes. <https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html>
const STORAGE_CLASSES: [&str; 12] = [
    "STANDARD",
    "REDUCED_REDUNDANCY",
    "STANDARD_IA",
    "ONEZONE_IA",
    "INTELLIGENT_TIERING",
    "GLACIER",
    "DEEP_ARCHIVE",
    "OUTPOSTS",
    "GLACIER_IR",
    "SNOW",
    "EXPRESS_ONEZONE",
    "FSX_OPENZFS",
];

/// Headers that begin with `x-amz-checksum-` but don't contain a checksum.
const ABOUT_CHECKSUMS: [&str; 3] = ["x-amz-checksum-algorithm", "x-amz-checksum-type", "x-amz-checksum-mode"];

/// The algorithms of S3's checksums that this store doesn't compute.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_Checksum.html>
const LACKING_ALGORITHMS: [&str; 5] = ["md5", "sha512", "xxhash128", "xxhash3", "xxhash64"];

/// S3's predefined access control lists.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html#canned-acl>
const PREDEFINED_LISTS: [&str; 8] = [
    "private",
    "public-read",
    "public-read-write",
    "aws-exec-read",
    "authenticated-read",
    "bucket-owner-read",
    "bucket-owner-full-control",
    "log-delivery-write",
];

const NOT_IMPLEMENTED: &str = "A header you provided implies functionality that is not implemented";

/// The status, the code and the message of an error.
pub(super) type Refusal = (StatusCode, &'static str, &'static str);

/// Returns the error for a request that can be refused by its head alone.
pub(super) fn refusal(method: &Method, key: &str, query: &Query, headers: &HeaderMap) -> Option<Refusal> {
    let bad = |code, message| Some((StatusCode::BAD_REQUEST, code, message));
    match query.value("versionId") {
        Some("") => return bad("InvalidArgument", "Version id cannot be the empty string"),
        Some(id) if versions::parse(id).is_none() => {
            return bad("InvalidArgument", "Invalid version id specified");
        }
        None | Some(_) => {}
    }
    if let Some(refusal) = presigned(query, headers) {
        return Some(refusal);
    }
    match refused_subresource(method, query, !key.is_empty()) {
        Some(SubresourceError::NotImplemented) => {
            return Some((StatusCode::NOT_IMPLEMENTED, "NotImplemented", NOT_IMPLEMENTED));
        }
        Some(SubresourceError::Method) => {
            let message = "The specified method is not allowed against this resource.";
            return Some((StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message));
        }
        None => {}
    }
    let of_request = of_owner(headers)
        .or_else(|| of_new_object(method, headers))
        .or_else(|| of_listing(method, key, query));
    if of_request.is_some() {
        return of_request;
    }
    // Only directory buckets support appending to an object.
    if headers.contains_key("x-amz-write-offset-bytes") {
        return Some((StatusCode::NOT_IMPLEMENTED, "NotImplemented", NOT_IMPLEMENTED));
    }
    if *method == Method::GET && query.has("partNumber") && headers.contains_key(RANGE) {
        let message = "Cannot specify both Range header and partNumber query parameter";
        return bad("InvalidRequest", message);
    }
    // A read needs no header about encryption with keys that the store manages, and S3 refuses such a header:
    // <https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html>
    if matches!(*method, Method::GET | Method::HEAD)
        && !key.is_empty()
        && headers.contains_key("x-amz-server-side-encryption")
    {
        return bad(
            "InvalidArgument",
            "x-amz-server-side-encryption header is not supported for this operation.",
        );
    }
    if *method == Method::PUT && !key.is_empty() && len(headers).is_some_and(|len| len > PUT_BYTES_MAX) {
        return bad("EntityTooLarge", "Your proposed upload exceeds the maximum allowed size");
    }
    None
}

/// Returns the error for a request that expects a different owner of the bucket.
fn of_owner(headers: &HeaderMap) -> Option<Refusal> {
    let names = ["x-amz-expected-bucket-owner", "x-amz-source-expected-bucket-owner"];
    names.iter().filter_map(|name| headers.get(*name)).find_map(|value| {
        let is_account = |id: &str| id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_digit());
        match value.to_str() {
            Ok(ACCOUNT) => None,
            Ok(id) if is_account(id) => Some((StatusCode::FORBIDDEN, "AccessDenied", "Access Denied")),
            _ => {
                let message = "The value of the expected bucket owner parameter must be an AWS account ID.";
                Some((StatusCode::BAD_REQUEST, "InvalidBucketOwnerAWSAccountID", message))
            }
        }
    })
}

/// Returns the error for a request that grants access to other accounts. The server refuses it because it couldn't
/// enforce such grants. If `accepts` is true, it stores predefined lists without enforcing them.
pub(super) fn of_acl(headers: &HeaderMap, accepts: bool) -> Option<Refusal> {
    let private = ["private", "bucket-owner-read", "bucket-owner-full-control"];
    let acl = headers.get("x-amz-acl").and_then(|value| value.to_str().ok());
    let message = if headers.keys().any(|name| name.as_str().starts_with("x-amz-grant-")) {
        "This store has only predefined access control lists (x-amz-acl), and no grants (x-amz-grant-*)."
    } else if acl.is_some_and(|acl| !PREDEFINED_LISTS.contains(&acl)) {
        let message = "The predefined access control list (x-amz-acl) is unknown.";
        return Some((StatusCode::BAD_REQUEST, "InvalidArgument", message));
    } else if !accepts && acl.is_some_and(|acl| !private.contains(&acl)) {
        "This store doesn't enforce access control lists, so it refuses those that grant others access (x-amz-acl)."
    } else {
        return None;
    };
    Some((StatusCode::NOT_IMPLEMENTED, "NotImplemented", message))
}

/// Returns the reason to refuse a new object because of its storage class or its metadata.
pub(super) fn of_new_object(method: &Method, headers: &HeaderMap) -> Option<Refusal> {
    if !matches!(*method, Method::PUT | Method::POST) {
        return None;
    }
    let class = headers.get("x-amz-storage-class");
    if class.is_some_and(|class| !class.to_str().is_ok_and(|class| STORAGE_CLASSES.contains(&class))) {
        let message = "The storage class you specified is not valid";
        return Some((StatusCode::BAD_REQUEST, "InvalidStorageClass", message));
    }
    let user = headers.iter().filter_map(|(name, value)| {
        Some(name.as_str().strip_prefix("x-amz-meta-")?.len() + value.as_bytes().len())
    });
    if user.sum::<usize>() > METADATA_BYTES_MAX {
        let message = "Your metadata headers exceed the maximum allowed metadata size";
        return Some((StatusCode::BAD_REQUEST, "MetadataTooLarge", message));
    }
    None
}

/// Returns the reason to refuse a listing because of its options.
fn of_listing(method: &Method, key: &str, query: &Query) -> Option<Refusal> {
    if *method != Method::GET {
        return None;
    }
    let bad = |message| Some((StatusCode::BAD_REQUEST, "InvalidArgument", message));
    if key.is_empty() && query.value("list-type").is_some_and(|kind| kind != "2") {
        return bad("Invalid List Type specified in Request");
    }
    if query.value("encoding-type").is_some_and(|encoding| encoding != "url") {
        return bad("Invalid Encoding Method specified in Request");
    }
    let is_count = |text: &str| text.parse::<u32>().is_ok_and(|count| i32::try_from(count).is_ok());
    for (name, message) in [
        ("max-keys", "Argument maxKeys must be an integer between 0 and 2147483647"),
        ("max-uploads", "Argument max-uploads must be an integer between 0 and 2147483647"),
        ("max-parts", "Argument max-parts must be an integer between 0 and 2147483647"),
    ] {
        if query.value(name).is_some_and(|text| !text.is_empty() && !is_count(text)) {
            return bad(message);
        }
    }
    None
}

/// Returns the reason to refuse a presigned request before its signature is verified.
fn presigned(query: &Query, headers: &HeaderMap) -> Option<Refusal> {
    let seconds = query.value("X-Amz-Expires")?;
    let bad = |message| Some((StatusCode::BAD_REQUEST, "AuthorizationQueryParametersError", message));
    match seconds.parse::<i64>() {
        Err(_) => return bad("X-Amz-Expires should be a number"),
        Ok(..0) => return bad("X-Amz-Expires must be non-negative"),
        Ok(604_801..) => {
            return bad(
                "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than \
                        604800 seconds",
            );
        }
        Ok(_) => {}
    }
    let signed: Vec<&str> = query.value("X-Amz-SignedHeaders")?.split(';').collect();
    // Headers that begin with `x-amz-` change the meaning of a request, so the signature must cover them.
    let is_free =
        |name: &str| !name.starts_with("x-amz-") || name == "x-amz-content-sha256" || signed.contains(&name);
    let message = "There were headers present in the request which were not signed";
    let all_signed = headers.keys().all(|name| is_free(name.as_str()));
    (!all_signed).then_some((StatusCode::FORBIDDEN, "AccessDenied", message))
}

/// Returns the error for a request whose checksum headers aren't valid.
pub(super) fn checksum_refusal(headers: &HeaderMap) -> Option<Refusal> {
    let bad = |code, message| Some((StatusCode::BAD_REQUEST, code, message));
    if lacks_algorithm(headers) {
        let message = "This store doesn't compute MD5, SHA-512 and XXHash checksums (x-amz-checksum-*).";
        return Some((StatusCode::NOT_IMPLEMENTED, "NotImplemented", message));
    }
    let is_known = |name: &str| ALGORITHMS.into_iter().any(|algorithm| header(algorithm) == name);
    let mut values = headers
        .keys()
        .map(|name| name.as_str())
        .filter(|name| name.starts_with("x-amz-checksum-") && !ABOUT_CHECKSUMS.contains(name));
    let (first, second) = (values.next(), values.next());
    if second.is_some() {
        let message = "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.";
        return bad("InvalidRequest", message);
    }
    if first.is_some_and(|name| !is_known(name)) {
        let message = "The algorithm type you specified in x-amz-checksum- header is invalid.";
        return bad("InvalidRequest", message);
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let trailer = text("x-amz-trailer").map(str::to_ascii_lowercase);
    if trailer.as_deref().is_some_and(|name| !is_known(name)) {
        return bad("InvalidRequest", "The value specified in the x-amz-trailer header is not supported");
    }
    let word = text("x-amz-sdk-checksum-algorithm")?;
    let sent = match first.or(trailer.as_deref()) {
        Some(sent) => sent,
        None => {
            let message = "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or \
                           x-amz-trailer headers were found.";
            return bad("InvalidRequest", message);
        }
    };
    match named(word) {
        Ok(algorithm) if header(algorithm) == sent => None,
        Ok(_) => {
            bad("BadDigest", "The checksum is of another algorithm than x-amz-sdk-checksum-algorithm says.")
        }
        Err(_) => bad("InvalidRequest", "Value for x-amz-sdk-checksum-algorithm header is invalid."),
    }
}

/// Returns true if a request has or chooses a checksum of S3 that this store doesn't compute.
fn lacks_algorithm(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let sent = headers.keys().map(|name| name.as_str()).chain(text("x-amz-trailer"));
    let mut sent =
        sent.filter_map(|name| name.get(.."x-amz-checksum-".len()).zip(name.get("x-amz-checksum-".len()..)));
    let mut named = text("x-amz-checksum-algorithm").into_iter().chain(text("x-amz-sdk-checksum-algorithm"));
    let lacks = |name: &str| LACKING_ALGORITHMS.iter().any(|lacking| name.eq_ignore_ascii_case(lacking));
    sent.any(|(prefix, name)| prefix.eq_ignore_ascii_case("x-amz-checksum-") && lacks(name))
        || named.any(lacks)
}

/// Returns the number of content bytes in a request.
pub(super) fn len(headers: &HeaderMap) -> Option<u64> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse().ok();
    number("x-amz-decoded-content-length").or_else(|| number(CONTENT_LENGTH.as_str()))
}

/// A subresource: its name in the query, and the methods that S3 has for it.
///
/// Without the list of subresources, a request for an unknown one would be handled as a request for the bucket or
/// object itself. A `PUT ?renameObject` would write an object, and a `DELETE ?acl` would delete one.
type Subresource = (&'static str, &'static [Method]);

const GET: &[Method] = &[Method::GET];

const PUT: &[Method] = &[Method::PUT];

const POST: &[Method] = &[Method::POST];

const GET_PUT: &[Method] = &[Method::GET, Method::PUT];

const GET_PUT_DELETE: &[Method] = &[Method::GET, Method::PUT, Method::DELETE];

const GET_POST_DELETE: &[Method] = &[Method::GET, Method::POST, Method::DELETE];

/// The subresources of an object.
const OF_OBJECTS: [Subresource; 12] = [
    ("acl", GET_PUT),
    ("annotation", GET_PUT_DELETE),
    ("attributes", GET),
    ("encryption", PUT),
    ("legal-hold", GET_PUT),
    ("renameObject", PUT),
    ("restore", POST),
    ("retention", GET_PUT),
    ("select", POST),
    ("tagging", GET_PUT_DELETE),
    ("torrent", GET),
    ("uploads", POST),
];

/// The subresources of a bucket.
const OF_BUCKETS: [Subresource; 33] = [
    ("abac", GET_PUT),
    ("accelerate", GET_PUT),
    ("acl", GET_PUT),
    ("analytics", GET_PUT_DELETE),
    ("cors", GET_PUT_DELETE),
    ("delete", POST),
    ("encryption", GET_PUT_DELETE),
    ("intelligent-tiering", GET_PUT_DELETE),
    ("inventory", GET_PUT_DELETE),
    ("lifecycle", GET_PUT_DELETE),
    ("location", GET),
    ("logging", GET_PUT),
    ("metadataAnnotationTable", PUT),
    ("metadataConfiguration", GET_POST_DELETE),
    ("metadataInventoryTable", PUT),
    ("metadataJournalTable", PUT),
    ("metadataTable", GET_POST_DELETE),
    ("metrics", GET_PUT_DELETE),
    ("notification", GET_PUT),
    ("object-lock", GET_PUT),
    ("ownershipControls", GET_PUT_DELETE),
    ("policy", GET_PUT_DELETE),
    ("policyStatus", GET),
    ("publicAccessBlock", GET_PUT_DELETE),
    ("replication", GET_PUT_DELETE),
    ("requestPayment", GET_PUT),
    ("session", GET),
    ("tagging", GET_PUT_DELETE),
    ("uploads", GET),
    ("versioning", GET_PUT),
    ("versions", GET),
    ("website", GET_PUT_DELETE),
    ("x-notification", GET),
];

/// The subresources that this store supports, of buckets and of objects.
const HERE: [&str; 14] = [
    "acl",
    "attributes",
    "cors",
    "delete",
    "legal-hold",
    "location",
    "object-lock",
    "restore",
    "retention",
    "session",
    "tagging",
    "uploads",
    "versioning",
    "versions",
];

/// The reason why a request for a subresource is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SubresourceError {
    /// S3 has the subresource, but this store doesn't support it.
    NotImplemented,
    /// S3 doesn't support this method for the subresource.
    Method,
}

/// Returns the reason to refuse a request for the subresource in its query, if there is one.
fn refused_subresource(method: &Method, query: &Query, is_object: bool) -> Option<SubresourceError> {
    let known: &[Subresource] = if is_object { &OF_OBJECTS } else { &OF_BUCKETS };
    let (name, methods) = known.iter().find(|(name, _)| query.has(name))?;
    // A HEAD always concerns the bucket or object itself, with any query.
    if *method == Method::HEAD {
        None
    } else if !methods.contains(method) {
        Some(SubresourceError::Method)
    } else if !HERE.contains(name) {
        Some(SubresourceError::NotImplemented)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        lines.iter().map(pair).collect()
    }

    fn code(method: Method, query: &str, lines: &[(&'static str, &'static str)]) -> &'static str {
        let refusal = refusal(&method, "k", &Query::parse(Some(query)), &headers(lines));
        refusal.map_or("", |(_, code, _)| code)
    }

    #[test]
    fn what_can_be_no_version_id_is_refused() {
        assert_eq!(code(Method::GET, "versionId=null", &[]), "");
        assert_eq!(code(Method::GET, "versionId=00c0ffee00c0ffee", &[]), "");
        assert_eq!(code(Method::GET, "versionId=3HL4kqtJlcpXroDTDmJ", &[]), "InvalidArgument");
        assert_eq!(code(Method::DELETE, "versionId=", &[]), "InvalidArgument");
    }

    #[test]
    fn what_would_be_taken_for_another_write_is_refused() {
        assert_eq!(code(Method::PUT, "renameObject", &[]), "NotImplemented");
        assert_eq!(code(Method::PUT, "", &[("x-amz-write-offset-bytes", "5")]), "NotImplemented");
        assert_eq!(code(Method::PUT, "", &[("content-length", "5368709121")]), "EntityTooLarge");
        assert_eq!(code(Method::PUT, "", &[("content-length", "5368709120")]), "");
        assert_eq!(code(Method::GET, "partNumber=1", &[("range", "bytes=0-1")]), "InvalidRequest");
        let managed = [("x-amz-server-side-encryption", "aws:kms")];
        assert_eq!(code(Method::HEAD, "", &managed), "InvalidArgument");
        assert_eq!(code(Method::PUT, "", &managed), "");
    }

    #[test]
    fn classes_metadata_and_owners_are_checked() {
        let long: &'static str = Box::leak("x".repeat(2048).into_boxed_str());
        assert_eq!(code(Method::PUT, "", &[("x-amz-storage-class", "STANDARD_IA")]), "");
        assert_eq!(code(Method::PUT, "", &[("x-amz-storage-class", "BOGUS")]), "InvalidStorageClass");
        assert_eq!(code(Method::PUT, "", &[("x-amz-meta-a", &long[1..])]), "");
        assert_eq!(code(Method::POST, "uploads", &[("x-amz-meta-a", long)]), "MetadataTooLarge");
        assert_eq!(code(Method::GET, "", &[("x-amz-expected-bucket-owner", ACCOUNT)]), "");
        assert_eq!(code(Method::GET, "", &[("x-amz-expected-bucket-owner", "111122223333")]), "AccessDenied");
        let malformed = [("x-amz-source-expected-bucket-owner", "me")];
        assert_eq!(code(Method::PUT, "", &malformed), "InvalidBucketOwnerAWSAccountID");
    }

    #[test]
    fn checksums_are_of_one_known_algorithm() {
        let code = |lines: &[(&'static str, &'static str)]| {
            checksum_refusal(&headers(lines)).map_or("", |(_, code, _)| code)
        };
        assert_eq!(code(&[("x-amz-checksum-mode", "ENABLED")]), "");
        assert_eq!(code(&[("x-amz-checksum-crc32c", "AAAAAA==")]), "");
        assert_eq!(code(&[("x-amz-checksum-sha512", "AAAA")]), "NotImplemented");
        assert_eq!(code(&[("x-amz-checksum-blake3", "AAAA")]), "InvalidRequest");
        assert_eq!(code(&[("x-amz-trailer", "x-amz-checksum-sha512")]), "NotImplemented");
        let two = [("x-amz-checksum-crc32c", "AAAAAA=="), ("x-amz-checksum-crc32", "AAAAAA==")];
        assert_eq!(code(&two), "InvalidRequest");
    }

    #[test]
    fn what_an_sdk_says_of_its_checksum_has_to_be_so() {
        let code = |lines: &[(&'static str, &'static str)]| {
            checksum_refusal(&headers(lines)).map_or("", |(_, code, _)| code)
        };
        let sdk = ("x-amz-sdk-checksum-algorithm", "CRC32C");
        assert_eq!(code(&[sdk]), "InvalidRequest");
        assert_eq!(code(&[sdk, ("x-amz-checksum-crc32c", "AAAAAA==")]), "");
        assert_eq!(code(&[sdk, ("x-amz-trailer", "x-amz-checksum-crc32c")]), "");
        assert_eq!(code(&[sdk, ("x-amz-checksum-crc32", "AAAAAA==")]), "BadDigest");
        let unknown = ("x-amz-sdk-checksum-algorithm", "CRC8");
        assert_eq!(code(&[unknown, ("x-amz-checksum-crc32", "AAAAAA==")]), "InvalidRequest");
    }

    fn of(method: Method, query: &str, is_object: bool) -> Option<SubresourceError> {
        refused_subresource(&method, &Query::parse(Some(query)), is_object)
    }

    #[test]
    fn what_is_no_request_for_the_object_itself_is_not_taken_for_one() {
        assert_eq!(of(Method::PUT, "renameObject", true), Some(SubresourceError::NotImplemented));
        assert_eq!(of(Method::PUT, "encryption", true), Some(SubresourceError::NotImplemented));
        assert_eq!(
            of(Method::DELETE, "annotation&annotationName=n", true),
            Some(SubresourceError::NotImplemented)
        );
        assert_eq!(of(Method::DELETE, "acl", true), Some(SubresourceError::Method));
        assert_eq!(of(Method::PUT, "uploads", true), Some(SubresourceError::Method));
        assert_eq!(of(Method::DELETE, "versioning", false), Some(SubresourceError::Method));
        assert_eq!(of(Method::GET, "metadataConfiguration", false), Some(SubresourceError::NotImplemented));
    }

    #[test]
    fn what_s3_has_and_what_means_nothing_goes_on() {
        for (method, query, is_object) in [
            (Method::PUT, "tagging", true),
            (Method::POST, "uploads", true),
            (Method::PUT, "partNumber=1&uploadId=u", true),
            (Method::PUT, "x-id=PutObject", true),
            (Method::GET, "versions&prefix=a", false),
            (Method::POST, "delete", false),
            (Method::DELETE, "", false),
        ] {
            assert_eq!(of(method.clone(), query, is_object), None, "{method} {query}");
        }
    }
}
