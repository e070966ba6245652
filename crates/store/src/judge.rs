//! All rules that decide if a failed request is tried again.
//!
//! Reads, whole puts, parts, deletes, listings and copies have the same effect if they run several times, so Laneway
//! retries all of them. A repeated move within a GCS bucket finds no source, so `gcs::move_to` looks at both names
//! after a lost answer.
//!
//! After a lost answer, a precondition can make the second attempt fail because the first one succeeded.
//! [`Error::is_uncertain`](crate::Error) reports this case to the verb, which then reads the object back. A chunk of a
//! resumable session is sent again only after a request to the session has shown which bytes arrived.

use std::time::{Duration, SystemTime};

use http::{Method, StatusCode};
use laneway_lanes::{Kind, ResponseHead, Verdict};

use crate::ErrorKind;

/// An error answer, reduced to the fields that the rules use.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct ErrorResponse {
    /// The status. For an error in the body of an answer with status 200, it is the usual status for the error's code.
    pub(crate) status: StatusCode,
    /// The store's error code.
    pub(crate) code: Option<String>,
    /// The store's message.
    pub(crate) message: String,
    /// The pause that `Retry-After` asks for.
    pub(crate) after: Option<Duration>,
    /// The bucket's region, if the answer contains it.
    pub(crate) region: Option<String>,
    /// The store's clock, from the `Date` header.
    pub(crate) date: Option<SystemTime>,
    /// True if the same request can't succeed any more, although this kind of failure is usually temporary.
    pub(crate) is_final: bool,
    /// True if the cause is unknown, because the answer to a HEAD has no body.
    pub(crate) is_silent: bool,
}

/// The outcome of an attempt, reduced to the fields that the rules use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AttemptResult<'a> {
    /// A success.
    Success,
    /// An answer with an error.
    Failure {
        failure: &'a ErrorResponse,
        kind: ErrorKind,
        /// The dialect learned something from the answer, such as a region or that its token is stale.
        learned: bool,
    },
    /// The attempt ended without an answer, or with only part of one.
    Broken { kind: Kind, unsent: bool, transient: bool },
}

/// Decides if and when another attempt follows. `delivered` is true if bytes of the answer's body have reached the
/// caller's sink.
pub(crate) fn verdict(delivered: bool, ending: AttemptResult<'_>) -> Verdict {
    match ending {
        AttemptResult::Success => Verdict::Done,
        AttemptResult::Failure { learned: true, .. } => Verdict::Again,
        AttemptResult::Failure { failure, kind: ErrorKind::Throttled, .. } => {
            Verdict::Throttled { after: failure.after }
        }
        // A temporary error with `Retry-After` is treated like throttling, because the server asks for a pause.
        AttemptResult::Failure { failure, .. }
            if failure.after.is_some() && wants_to_be_left_alone(failure) =>
        {
            Verdict::Throttled { after: failure.after }
        }
        AttemptResult::Failure { failure, .. } if is_passing(failure) => match failure.status {
            StatusCode::SERVICE_UNAVAILABLE => Verdict::Unavailable,
            _ => Verdict::Retry,
        },
        AttemptResult::Failure { .. } => Verdict::Done,
        AttemptResult::Broken { transient: false, .. } => Verdict::Done,
        AttemptResult::Broken { unsent: true, .. } => Verdict::Retry,
        AttemptResult::Broken { kind: Kind::Sink | Kind::Source, .. } => Verdict::Done,
        AttemptResult::Broken { .. } if delivered => Verdict::Done,
        AttemptResult::Broken { .. } => Verdict::Retry,
    }
}

/// Returns true if the server may have carried out the request, although the attempt ended in this way. A server that
/// answers 501 or 505 doesn't support the request, so it hasn't carried it out.
pub(crate) fn may_have_acted(ending: AttemptResult<'_>) -> bool {
    match ending {
        AttemptResult::Success => true,
        AttemptResult::Failure { failure, .. } => {
            failure.status.is_server_error() && !matches!(failure.status.as_u16(), 501 | 505)
        }
        AttemptResult::Broken { unsent, .. } => !unsent,
    }
}

/// Returns true if `Retry-After` in an answer with this status asks the client to slow down.
fn wants_to_be_left_alone(failure: &ErrorResponse) -> bool {
    failure.status.as_u16() == 408 || may_recover(failure.status)
}

/// Returns true for temporary failures that don't ask to slow down. S3 sends 400 `RequestTimeout` if the request
/// arrived too slowly, and 409 if two conditional writes of an object ran at the same time.
pub(crate) fn is_passing(failure: &ErrorResponse) -> bool {
    if failure.is_final {
        return false;
    }
    match failure.status.as_u16() {
        408 => true,
        400 => failure.code.as_deref() == Some("RequestTimeout"),
        409 => matches!(failure.code.as_deref(), Some("OperationAborted" | "ConditionalRequestConflict")),
        _ => may_recover(failure.status),
    }
}

/// Returns whether the same request may succeed later, after the server failed with this 5xx status. [Cloudflare] sends
/// 520 to 527 if it can't reach the origin. A server that doesn't support a method (501) or a version of HTTP (505)
/// won't support it later either. MinIO and `laneway serve` answer 507 if their disk is full, and RFC 4918 (11.5)
/// forbids repeating such a request.
///
/// [Cloudflare]: https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-5xx-errors/
fn may_recover(status: StatusCode) -> bool {
    status.is_server_error() && !matches!(status.as_u16(), 501 | 505 | 507)
}

/// Returns true if an error message says that the bytes don't match their checksum. GCS writes `Provided CRC32C "…"
/// doesn't match calculated CRC32C "…".`, and fake-gcs-server writes `crc32c checksum mismatch …`.
pub(crate) fn names_a_digest(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    let digest = ["crc32c", "md5", "checksum", "digest"].iter().any(|name| message.contains(name));
    digest && ["match", "differ"].iter().any(|word| message.contains(word))
}

/// Returns true if an answer says that its port speaks TLS and got a plain HTTP request, in the words of Go's
/// `net/http` (MinIO), nginx or Apache. A store never answers in this way. The answer to a HEAD has no body, so for a
/// HEAD the function returns true if the answer has none of a store's headers and isn't announced as XML.
pub(crate) fn wants_tls(method: &Method, head: &ResponseHead, body: &[u8]) -> bool {
    const WORDS: [&str; 3] = [
        "Client sent an HTTP request to an HTTPS server",
        "The plain HTTP request was sent to HTTPS port",
        "speaking plain HTTP to an SSL-enabled server port",
    ];
    const OF_STORES: [&str; 5] = ["x-amz-", "x-goog-", "x-guploader-", "x-minio-", "x-ms-"];
    let is_of_store = |name: &str| OF_STORES.iter().any(|prefix| name.starts_with(prefix));
    let announces_xml = || head.header("content-type").is_some_and(|kind| kind.contains("xml"));
    head.status == StatusCode::BAD_REQUEST
        && match *method {
            Method::HEAD => !announces_xml() && !head.headers.keys().any(|name| is_of_store(name.as_str())),
            _ => {
                let text = String::from_utf8_lossy(body);
                WORDS.iter().any(|words| text.contains(words))
            }
        }
}

/// Returns the kind of error for a status. It is used if the store's error code doesn't say more.
pub(crate) fn kind_of_status(status: StatusCode) -> ErrorKind {
    match status.as_u16() {
        401 => ErrorKind::Unauthenticated,
        403 => ErrorKind::Permission,
        404 | 410 => ErrorKind::NotFound,
        304 => ErrorKind::NotModified,
        412 => ErrorKind::Precondition,
        416 => ErrorKind::InvalidRange,
        429 => ErrorKind::Throttled,
        408 => ErrorKind::Server,
        405 | 501 => ErrorKind::Unsupported,
        400..=499 => ErrorKind::Invalid,
        _ => ErrorKind::Server,
    }
}

/// Reads `Retry-After`: seconds, or a date. A date in the past means no pause.
pub(crate) fn retry_after(value: Option<&str>, now: SystemTime) -> Option<Duration> {
    let value = value?.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(status: u16, code: Option<&str>) -> ErrorResponse {
        ErrorResponse {
            status: StatusCode::from_u16(status).expect("a status"),
            code: code.map(str::to_owned),
            after: Some(Duration::from_secs(7)),
            ..ErrorResponse::default()
        }
    }

    fn broken(kind: Kind, unsent: bool) -> AttemptResult<'static> {
        let transient =
            matches!(kind, Kind::Resolve | Kind::Connect | Kind::Tls | Kind::Timeout | Kind::Interrupted);
        AttemptResult::Broken { kind, unsent, transient }
    }

    #[test]
    fn the_table_of_answers() {
        let throttled = Verdict::Throttled { after: Some(Duration::from_secs(7)) };
        let table = [
            (404, None, Verdict::Done),
            (412, None, Verdict::Done),
            (401, None, Verdict::Done),
            (403, None, Verdict::Done),
            (400, Some("RequestTimeout"), Verdict::Retry),
            (409, Some("ConditionalRequestConflict"), Verdict::Retry),
            (409, Some("BucketNotEmpty"), Verdict::Done),
            (429, None, throttled),
            (408, None, throttled),
            (503, None, throttled),
            (500, None, throttled),
            (501, None, Verdict::Done),
            (507, None, Verdict::Done),
        ];
        for (status, code, expected) in table {
            let failure = failure(status, code);
            let ending = AttemptResult::Failure {
                failure: &failure,
                kind: kind_of_status(failure.status),
                learned: false,
            };
            assert_eq!(verdict(false, ending), expected, "{status} {code:?}");
        }
    }

    #[test]
    fn a_server_that_fails_without_naming_a_time_is_asked_again() {
        for (status, expected) in [
            (408, Verdict::Retry),
            (500, Verdict::Retry),
            (502, Verdict::Retry),
            (503, Verdict::Unavailable),
            (504, Verdict::Retry),
            (520, Verdict::Retry),
            (527, Verdict::Retry),
            (505, Verdict::Done),
        ] {
            let failure = ErrorResponse { after: None, ..failure(status, None) };
            let ending = AttemptResult::Failure {
                failure: &failure,
                kind: kind_of_status(failure.status),
                learned: false,
            };
            assert_eq!(verdict(false, ending), expected, "{status}");
        }
    }

    #[test]
    fn the_table_of_broken_attempts() {
        let (retry, done) = (Verdict::Retry, Verdict::Done);
        // Kind and `unsent`, then the verdict without and with delivered bytes.
        let table = [
            (Kind::Resolve, true, retry, retry),
            (Kind::Connect, true, retry, retry),
            (Kind::Interrupted, true, retry, retry),
            (Kind::Interrupted, false, retry, done),
            (Kind::Timeout, false, retry, done),
            (Kind::Certificate, true, done, done),
            (Kind::Scheme, true, done, done),
            (Kind::Protocol, false, done, done),
            (Kind::Sink, false, done, done),
            (Kind::Source, false, done, done),
            (Kind::Invalid, true, done, done),
            (Kind::Closed, false, done, done),
        ];
        for (kind, unsent, expected, delivered) in table {
            let ending = broken(kind, unsent);
            assert_eq!(verdict(false, ending), expected, "{kind:?}");
            assert_eq!(verdict(true, ending), delivered, "{kind:?} delivered");
        }
    }

    #[test]
    fn what_the_dialect_learned_is_tried_at_once() {
        let failure = failure(301, None);
        let ending = AttemptResult::Failure { failure: &failure, kind: ErrorKind::Invalid, learned: true };
        assert_eq!(verdict(false, ending), Verdict::Again);
    }

    #[test]
    fn only_a_lost_answer_or_a_server_error_makes_the_outcome_uncertain() {
        assert!(may_have_acted(broken(Kind::Interrupted, false)));
        assert!(!may_have_acted(broken(Kind::Interrupted, true)));
        let (no, maybe) = (failure(412, None), failure(503, None));
        let unsupported = failure(501, None);
        let kind = ErrorKind::Unsupported;
        assert!(!may_have_acted(AttemptResult::Failure { failure: &unsupported, kind, learned: false }));
        assert!(!may_have_acted(AttemptResult::Failure {
            failure: &no,
            kind: ErrorKind::Precondition,
            learned: false
        }));
        assert!(may_have_acted(AttemptResult::Failure {
            failure: &maybe,
            kind: ErrorKind::Throttled,
            learned: false
        }));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:00 GMT").expect("a date");
        assert_eq!(retry_after(Some(" 3 "), now), Some(Duration::from_secs(3)));
        assert_eq!(retry_after(Some("Sun, 06 Nov 1994 08:49:37 GMT"), now), Some(Duration::from_secs(37)));
        assert_eq!(retry_after(Some("Sun, 06 Nov 1994 08:48:00 GMT"), now), Some(Duration::ZERO));
        assert_eq!(retry_after(Some("soon"), now), None);
        assert_eq!(retry_after(None, now), None);
    }
}
