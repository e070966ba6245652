//! Reads error answers of Azure Blob Storage.

use std::time::{Duration, SystemTime};

use http::StatusCode;
use laneway_lanes::ResponseHead;

use super::headers::date;
use crate::ErrorKind;
use crate::judge::{ErrorResponse, kind_of_status, names_a_digest, retry_after};
use crate::xml;

/// Codes of failures that a retry can't cure, although their status is a server error. Azurite answers 500 to headers
/// that it doesn't support.
const FINAL: [&str; 2] = ["FeatureNotSupported", "FeatureNotYetSupportedForHierarchicalNamespaceAccounts"];

/// If the clocks differ by at least this much, the difference may be why the service refused a signature. It is a minute
/// less than the service's tolerance, because the answer has taken some time and its `Date` has whole seconds.
const SKEW_MIN: Duration = Duration::from_secs(14 * 60);

/// Reads an error answer. The header has the code also if the answer has no body, as to a HEAD.
pub(super) fn read(head: &ResponseHead, body: &[u8]) -> ErrorResponse {
    let document = xml::error(body);
    let code = head.header("x-ms-error-code").map(str::to_owned);
    let code = code.or_else(|| document.as_ref().map(|document| document.code.clone()));
    let said = document.map(|document| first_line(&document.message)).filter(|message| !message.is_empty());
    let advice = code.as_deref().and_then(advice).map(str::to_owned);
    let now = SystemTime::now();
    let advice = advice.or_else(|| clock_advice(head, code.as_deref()?, now));
    let reason = || head.status.canonical_reason().unwrap_or_default().to_owned();
    let message = match (said, advice) {
        (Some(said), Some(advice)) => format!("{said} {advice}"),
        (None, Some(advice)) => advice,
        (said, None) => said.unwrap_or_else(reason),
    };
    ErrorResponse {
        status: head.status,
        is_final: code.as_deref().is_some_and(|code| FINAL.contains(&code)),
        code,
        message,
        after: retry_after(head.header("retry-after"), now),
        ..ErrorResponse::default()
    }
}

/// Returns the difference between the clocks, if it can be the reason why the service refused a signature. The service
/// names it only in a part of the answer that HEADs don't have.
fn clock_advice(head: &ResponseHead, code: &str, now: SystemTime) -> Option<String> {
    let date = date(head.header("date")).filter(|_| code == "AuthenticationFailed")?;
    let (skew, side) = match now.duration_since(date) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    };
    (skew >= SKEW_MIN).then(|| {
        format!(
            "This machine's clock is {} minutes {side} the service's, which permits 15 minutes: set the clock.",
            skew.as_secs() / 60
        )
    })
}

/// Returns the first line of a message. The service adds lines with the request's id and the time.
fn first_line(message: &str) -> String {
    message.trim_start().lines().next().unwrap_or_default().trim_end().to_owned()
}

/// Returns the remedy for a failure, if the service's message doesn't name it.
fn advice(code: &str) -> Option<&'static str> {
    match code {
        "LeaseIdMissing" => Some("A lease protects the blob: break the lease or wait until it ends."),
        "BlobArchived" => Some("The blob is in the archive tier and must be restored before it can be read."),
        "BlobBeingRehydrated" => {
            Some("The blob is being restored from the archive tier and can't be read yet.")
        }
        "InvalidBlobOrBlock" => Some(
            "The blob may have unfinished blocks of another program. The service removes them after a week, \
             or when the blob is written in one request.",
        ),
        "InvalidBlockList" => Some(
            "The service has discarded blocks of this upload, because another writer has stored the blob meanwhile.",
        ),
        "SnapshotsPresent" => Some("Remove the blob's snapshots first."),
        _ => None,
    }
}

/// Returns the kind of a failure. The status alone isn't enough: a blob that exists is 409 or 412, and throttling is
/// 500 or 503 (<https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes>).
pub(super) fn kind(failure: &ErrorResponse) -> ErrorKind {
    match failure.code.as_deref() {
        Some("BlobAlreadyExists" | "ConditionNotMet" | "TargetConditionNotMet" | "SourceConditionNotMet") => {
            match failure.status {
                StatusCode::NOT_MODIFIED => ErrorKind::NotModified,
                _ => ErrorKind::Precondition,
            }
        }
        Some("ServerBusy" | "OperationTimedOut" | "TooManyRequests") => ErrorKind::Throttled,
        Some("Md5Mismatch" | "Crc64Mismatch") => ErrorKind::Integrity,
        // The uncommitted blocks are gone, for example because another writer has replaced the blob.
        Some("InvalidBlockList") => ErrorKind::NotFound,
        Some("BlobArchived" | "BlobBeingRehydrated") => ErrorKind::Archived,
        Some(
            "AuthenticationFailed"
            | "InvalidAuthenticationInfo"
            | "NoAuthenticationInformation"
            | "MissingRequiredHeader",
        ) if failure.status != StatusCode::BAD_REQUEST => ErrorKind::Unauthenticated,
        Some("BlobImmutableDueToPolicy" | "SnapshotsPresent" | "AccountIsDisabled") => ErrorKind::Permission,
        Some(code) if code.starts_with("LeaseId") || code.starts_with("LeaseLost") => ErrorKind::Permission,
        Some(
            "FeatureNotSupported"
            | "FeatureNotYetSupportedForHierarchicalNamespaceAccounts"
            | "UnsupportedHeader"
            | "UnsupportedQueryParameter"
            | "UnsupportedHttpVerb",
        ) => ErrorKind::Unsupported,
        // Azurite 3.35 reports a wrong MD5 with this code.
        Some("InvalidOperation") if names_a_digest(&failure.message) => ErrorKind::Integrity,
        _ => kind_of_status(failure.status),
    }
}

/// Returns true if the service refuses the token, and another one may help.
pub(super) fn is_stale(failure: &ErrorResponse) -> bool {
    failure.status == StatusCode::UNAUTHORIZED
}

/// Returns true if the service refuses a header, or the version of the protocol that another header names.
pub(super) fn refuses_header(failure: &ErrorResponse) -> bool {
    let codes = ["InvalidHeaderValue", "UnsupportedHeader", "FeatureNotSupported"];
    failure.code.as_deref().is_some_and(|code| codes.contains(&code))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;
    use crate::judge::is_passing;

    fn failure(status: u16, code: &'static str) -> ErrorResponse {
        let mut headers = HeaderMap::new();
        headers.insert("x-ms-error-code", HeaderValue::from_static(code));
        read(&ResponseHead { status: StatusCode::from_u16(status).expect("a status"), headers }, b"")
    }

    #[test]
    fn a_blob_that_exists_is_a_failed_condition_by_409_and_by_412() {
        assert_eq!(kind(&failure(409, "BlobAlreadyExists")), ErrorKind::Precondition);
        assert_eq!(kind(&failure(412, "ConditionNotMet")), ErrorKind::Precondition);
        assert_eq!(kind(&failure(304, "ConditionNotMet")), ErrorKind::NotModified);
    }

    #[test]
    fn throttling_is_503_server_busy_and_500_operation_timed_out() {
        assert_eq!(kind(&failure(503, "ServerBusy")), ErrorKind::Throttled);
        assert_eq!(kind(&failure(500, "OperationTimedOut")), ErrorKind::Throttled);
        assert_eq!(kind(&failure(500, "InternalError")), ErrorKind::Server);
    }

    #[test]
    fn a_feature_that_an_emulator_lacks_is_not_tried_again() {
        let lacking = failure(500, "FeatureNotSupported");
        assert_eq!(kind(&lacking), ErrorKind::Unsupported);
        assert!(!is_passing(&lacking));
        assert!(is_passing(&failure(500, "InternalError")));
    }

    #[test]
    fn lost_blocks_mean_that_the_upload_is_gone() {
        assert_eq!(kind(&failure(400, "InvalidBlockList")), ErrorKind::NotFound);
    }

    #[test]
    fn a_lease_is_named_as_the_reason() {
        let leased = failure(412, "LeaseIdMissing");
        assert_eq!(kind(&leased), ErrorKind::Permission);
        assert!(leased.message.contains("lease"), "{}", leased.message);
    }

    #[test]
    fn a_refused_signature_names_a_clock_that_is_wrong() {
        let said = |code: &'static str, minutes: i64| {
            let now = SystemTime::now();
            let by = Duration::from_secs(minutes.unsigned_abs() * 60);
            let date = if minutes < 0 { now - by } else { now + by };
            let mut headers = HeaderMap::new();
            headers.insert("x-ms-error-code", HeaderValue::from_static(code));
            headers.insert("date", httpdate::fmt_http_date(date).parse().expect("a header"));
            read(&ResponseHead { status: StatusCode::FORBIDDEN, headers }, b"").message
        };
        let behind = said("AuthenticationFailed", 180);
        assert!(behind.contains("minutes behind the service's"), "{behind}");
        let ahead = said("AuthenticationFailed", -20);
        assert!(ahead.contains("clock is 20 minutes ahead of"), "{ahead}");
        for (code, minutes) in [("AuthenticationFailed", 5), ("AuthorizationFailure", 60)] {
            assert_eq!(said(code, minutes), "Forbidden");
        }
    }

    #[test]
    fn a_missing_blob_is_404_even_to_a_head() {
        assert_eq!(kind(&failure(404, "BlobNotFound")), ErrorKind::NotFound);
        assert_eq!(kind(&failure(404, "ContainerNotFound")), ErrorKind::NotFound);
    }

    #[test]
    fn reads_the_document_behind_a_byte_order_mark() {
        let body = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>OutOfRangeInput</Code>\
                    <Message>One of the request inputs is out of range.\nRequestId:1\nTime:2</Message></Error>";
        let head = ResponseHead { status: StatusCode::BAD_REQUEST, headers: HeaderMap::new() };
        let failure = read(&head, body.as_bytes());
        assert_eq!(failure.code.as_deref(), Some("OutOfRangeInput"));
        assert_eq!(failure.message, "One of the request inputs is out of range.");
    }

    #[test]
    fn a_wrong_checksum_is_a_failure_of_integrity() {
        assert_eq!(kind(&failure(400, "Md5Mismatch")), ErrorKind::Integrity);
        assert_eq!(kind(&failure(400, "Crc64Mismatch")), ErrorKind::Integrity);
        let older = ErrorResponse {
            message: "Provided contentMD5 doesn't match.".to_owned(),
            ..failure(400, "InvalidOperation")
        };
        assert_eq!(kind(&older), ErrorKind::Integrity);
    }
}
