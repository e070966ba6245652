//! Parses S3's error answers.

use std::time::SystemTime;

use http::{Method, StatusCode};
use laneway_lanes::ResponseHead;

use crate::ErrorKind;
use crate::error::CONFLICT;
use crate::judge::{ErrorResponse, kind_of_status, names_a_digest, retry_after};
use crate::xml::{self, ErrorDocument};

/// The message if a HEAD is answered with 400. The usual cause is expired credentials. The answer to a GET would
/// contain the code `ExpiredToken`, but the answer to a HEAD has no body.
const SILENT_400: &str =
    "Bad Request, without details (a HEAD's answer has no body); the credentials have probably expired";

/// Parses an unsuccessful answer to a request with this method.
pub(super) fn read(method: &Method, head: &ResponseHead, body: &[u8]) -> ErrorResponse {
    let document = xml::error(body);
    let archive = document.as_ref().and_then(archive);
    let region = head.header("x-amz-bucket-region").map(str::to_owned);
    let (code, message, named) = match document {
        Some(document) => (Some(document.code), document.message, document.region),
        // MinIO sends the code in a header, because the answer to a HEAD has no body.
        None => (head.header("x-minio-error-code").map(str::to_owned), String::new(), None),
    };
    let is_silent = *method == Method::HEAD && code.is_none();
    let reason = || match head.status {
        StatusCode::BAD_REQUEST if is_silent => SILENT_400.to_owned(),
        status => status.canonical_reason().unwrap_or_default().to_owned(),
    };
    ErrorResponse {
        status: head.status,
        code,
        message: archive.or(Some(message).filter(|message| !message.is_empty())).unwrap_or_else(reason),
        after: retry_after(head.header("retry-after"), SystemTime::now()),
        region: region.or(named),
        is_final: false,
        date: head.header("date").and_then(|date| httpdate::parse_http_date(date).ok()),
        is_silent,
    }
}

/// Returns a message that names the archive in which an object is, and the remedy.
fn archive(document: &ErrorDocument) -> Option<String> {
    if !ARCHIVED.contains(&document.code.as_str()) {
        return None;
    }
    let place = document.access_tier.as_deref().or(document.storage_class.as_deref()).unwrap_or("an archive");
    Some(format!("the object is archived in {place} and must be restored before it can be read"))
}

/// S3's error codes for reads of archived objects.
const ARCHIVED: [&str; 2] = ["InvalidObjectState", "ObjectNotInActiveTierError"];

/// Returns the error in the body of an answer with status 200. S3 sends the status before it has finished a copy or has
/// completed an upload.
pub(super) fn inside(head: &ResponseHead, body: &[u8]) -> Option<ErrorResponse> {
    let document = xml::error(body)?;
    let status = match document.code.as_str() {
        "SlowDown" | "ServiceUnavailable" => StatusCode::SERVICE_UNAVAILABLE,
        "NoSuchUpload" | "NoSuchKey" | "NoSuchBucket" => StatusCode::NOT_FOUND,
        "PreconditionFailed" => StatusCode::PRECONDITION_FAILED,
        CONFLICT => StatusCode::CONFLICT,
        "AccessDenied" => StatusCode::FORBIDDEN,
        "InvalidPart" | "InvalidPartOrder" | "EntityTooSmall" | "InvalidRequest" | "BadDigest" => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    Some(ErrorResponse { status, ..read(&Method::POST, head, body) })
}

/// Classifies a failure.
pub(super) fn kind(failure: &ErrorResponse) -> ErrorKind {
    match failure.code.as_deref() {
        Some(
            "SlowDown"
            | "SlowDownRead"
            | "SlowDownWrite"
            | "Throttling"
            | "ThrottlingException"
            | "TooManyRequests"
            | "RequestLimitExceeded"
            | "BandwidthLimitExceeded",
        ) => ErrorKind::Throttled,
        Some(code) if ARCHIVED.contains(&code) => ErrorKind::Archived,
        Some("BadDigest" | "XAmzContentSHA256Mismatch" | "XAmzContentChecksumMismatch") => {
            ErrorKind::Integrity
        }
        Some(
            "InvalidAccessKeyId"
            | "SignatureDoesNotMatch"
            | "ExpiredToken"
            | "InvalidToken"
            | "TokenRefreshRequired"
            | "RequestTimeTooSkewed"
            | "AuthorizationHeaderMalformed",
        ) => ErrorKind::Unauthenticated,
        None if failure.is_silent && failure.status == StatusCode::BAD_REQUEST => ErrorKind::Unauthenticated,
        // Another write was in progress. The error doesn't show if the object fulfils the condition, so it isn't
        // reported as a failed precondition.
        Some("ConditionalRequestConflict" | "OperationAborted") => ErrorKind::Server,
        // Some S3-compatible stores return 412 if the bytes don't match their checksum.
        _ if failure.status == StatusCode::PRECONDITION_FAILED && names_a_digest(&failure.message) => {
            ErrorKind::Integrity
        }
        Some("NotImplemented" | "MethodNotAllowed") => ErrorKind::Unsupported,
        _ => kind_of_status(failure.status),
    }
}

/// Returns whether the failure means that two conditional writes of one object ran at the same time.
pub(super) fn is_conflict(failure: &ErrorResponse) -> bool {
    failure.code.as_deref() == Some(CONFLICT)
}

/// Returns whether the failure can mean that the bucket is in another region.
pub(super) fn is_elsewhere(failure: &ErrorResponse) -> bool {
    is_certainly_elsewhere(failure)
        // A HEAD's answer has no body, so it can't name the reason.
        || (failure.status == StatusCode::BAD_REQUEST && failure.code.is_none())
}

/// Returns whether the failure proves that the bucket is in another region, even if it doesn't name that region. S3's
/// errors for buckets in opt-in regions are like this.
pub(super) fn is_certainly_elsewhere(failure: &ErrorResponse) -> bool {
    matches!(failure.status.as_u16(), 301 | 307 | 308)
        || matches!(
            failure.code.as_deref(),
            Some("AuthorizationHeaderMalformed" | "IllegalLocationConstraintException" | "PermanentRedirect")
        )
}

/// Returns whether the request may succeed with other credentials.
pub(super) fn is_stale(failure: &ErrorResponse) -> bool {
    match failure.code.as_deref() {
        Some("ExpiredToken" | "InvalidToken" | "TokenRefreshRequired") => true,
        Some(_) => false,
        None => failure.is_silent && failure.status == StatusCode::BAD_REQUEST,
    }
}

/// Returns whether a signature was refused, or may have been refused, because of its time. The answer to a HEAD is a
/// 403 without a reason.
pub(super) fn may_be_skewed(failure: &ErrorResponse) -> bool {
    match failure.code.as_deref() {
        Some("RequestTimeTooSkewed" | "RequestExpired" | "RequestInTheFuture") => true,
        Some(_) => false,
        None => failure.is_silent && failure.status == StatusCode::FORBIDDEN,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;

    fn head(status: u16) -> ResponseHead {
        ResponseHead { status: StatusCode::from_u16(status).expect("a status"), headers: HeaderMap::new() }
    }

    #[test]
    fn a_code_says_more_than_a_status() {
        let body =
            b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>";
        let failure = read(&Method::GET, &head(400), body);
        assert_eq!(kind(&failure), ErrorKind::Unauthenticated);
        assert!(is_stale(&failure));
        assert_eq!(failure.message, "The provided token has expired.");
    }

    #[test]
    fn an_archived_object_is_named_as_such() {
        let body = b"<Error><Code>InvalidObjectState</Code><Message>The operation is not valid for the object's storage class</Message>\
                     <StorageClass>GLACIER</StorageClass></Error>";
        let failure = read(&Method::GET, &head(403), body);
        assert_eq!(kind(&failure), ErrorKind::Archived);
        assert!(failure.message.contains("GLACIER") && failure.message.contains("restored"));
        let tiered = b"<Error><Code>InvalidObjectState</Code><Message>m</Message><AccessTier>DEEP_ARCHIVE_ACCESS</AccessTier></Error>";
        assert!(read(&Method::GET, &head(403), tiered).message.contains("DEEP_ARCHIVE_ACCESS"));
    }

    #[test]
    fn a_head_says_it_with_its_status_alone() {
        assert_eq!(kind(&read(&Method::HEAD, &head(404), b"")), ErrorKind::NotFound);
        assert_eq!(kind(&read(&Method::HEAD, &head(403), b"")), ErrorKind::Permission);
        let expired = read(&Method::HEAD, &head(400), b"");
        assert!(is_stale(&expired) && kind(&expired) == ErrorKind::Unauthenticated);
        assert!(may_be_skewed(&read(&Method::HEAD, &head(403), b"")));
        assert!(!may_be_skewed(&read(&Method::GET, &head(403), b"")));
        assert_eq!(read(&Method::GET, &head(404), b"").message, "Not Found");
    }

    #[test]
    fn a_bucket_elsewhere_is_told_by_header_or_document() {
        let mut redirect = head(301);
        redirect.headers.insert("x-amz-bucket-region", HeaderValue::from_static("eu-central-1"));
        let failure = read(&Method::GET, &redirect, b"<Error><Code>PermanentRedirect</Code></Error>");
        assert_eq!(failure.region.as_deref(), Some("eu-central-1"));
        assert!(is_elsewhere(&failure));
        let body = b"<Error><Code>AuthorizationHeaderMalformed</Code><Message>m</Message><Region>eu-west-2</Region></Error>";
        let failure = read(&Method::GET, &head(400), body);
        assert_eq!(failure.region.as_deref(), Some("eu-west-2"));
        assert!(is_elsewhere(&failure));
    }

    #[test]
    fn an_error_inside_a_200_is_a_failure() {
        let body =
            b"  <?xml version=\"1.0\"?><Error><Code>InternalError</Code><Message>try again</Message></Error>";
        let failure = inside(&head(200), body).expect("a failure");
        assert_eq!(failure.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(kind(&failure), ErrorKind::Server);
        assert_eq!(inside(&head(200), b"<CopyObjectResult/>"), None);
    }

    #[test]
    fn throttles_are_told_by_code_too() {
        let body = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>";
        assert_eq!(kind(&read(&Method::GET, &head(503), body)), ErrorKind::Throttled);
        let body = b"<Error><Code>ServiceUnavailable</Code><Message>Please try again.</Message></Error>";
        assert_eq!(kind(&read(&Method::GET, &head(503), body)), ErrorKind::Server);
    }
}
