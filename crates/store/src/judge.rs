//! When another attempt is made: every rule of it.
//!
//! Reads, whole puts, parts, deletes, listings and copies do the same however often they are done, so all of them are
//! sent again. Where a precondition makes the second time fail because the first one worked (its answer was lost),
//! the verb that asked reconciles: it is told by [`Error::is_uncertain`](crate::Error) and reads the object back. Chunks of a
//! resumable session are sent again once the session has been asked what has come of them.

use std::time::{Duration, SystemTime};

use http::{Method, StatusCode};
use laneway_lanes::{Head, Kind, Verdict};

use crate::ErrorKind;

/// An answer that is no success, as far as the rules go.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Failure {
    /// The status; for an error in a 200's body the one that its code stands for.
    pub(crate) status: StatusCode,
    /// The store's own name for what is wrong.
    pub(crate) code: Option<String>,
    /// The store's words.
    pub(crate) message: String,
    /// `Retry-After`.
    pub(crate) after: Option<Duration>,
    /// Where the bucket is, if the store says so.
    pub(crate) region: Option<String>,
    /// What time it is at the store.
    pub(crate) date: Option<SystemTime>,
    /// Whether the same request can't succeed any more, although its failure passes.
    pub(crate) is_final: bool,
    /// Whether it can't say what is wrong, because a HEAD's answer has no body.
    pub(crate) is_silent: bool,
}

/// How an attempt ended, as far as the rules go.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending<'a> {
    /// As it was meant to.
    Success,
    /// With an answer that says no.
    Failure {
        failure: &'a Failure,
        kind: ErrorKind,
        /// The dialect learned something from it: a region, that its token is stale.
        learned: bool,
    },
    /// Without a whole answer.
    Broken { kind: Kind, unsent: bool, transient: bool },
}

/// What an attempt's end means. `delivered` is whether bytes of the answer's body have reached the caller's sink.
pub(crate) fn verdict(delivered: bool, ending: Ending<'_>) -> Verdict {
    match ending {
        Ending::Success => Verdict::Done,
        Ending::Failure { learned: true, .. } => Verdict::Again,
        Ending::Failure { failure, kind: ErrorKind::Throttled, .. } => {
            Verdict::Throttled { after: failure.after }
        }
        // Who names a time asks to be left alone for it.
        Ending::Failure { failure, .. } if failure.after.is_some() && wants_to_be_left_alone(failure) => {
            Verdict::Throttled { after: failure.after }
        }
        Ending::Failure { failure, .. } if is_passing(failure) => match failure.status {
            StatusCode::SERVICE_UNAVAILABLE => Verdict::Unavailable,
            _ => Verdict::Retry,
        },
        Ending::Failure { .. } => Verdict::Done,
        Ending::Broken { transient: false, .. } => Verdict::Done,
        Ending::Broken { unsent: true, .. } => Verdict::Retry,
        Ending::Broken { kind: Kind::Sink | Kind::Source, .. } => Verdict::Done,
        Ending::Broken { .. } if delivered => Verdict::Done,
        Ending::Broken { .. } => Verdict::Retry,
    }
}

/// Whether the request may have been carried out although it ended so.
pub(crate) fn may_have_acted(ending: Ending<'_>) -> bool {
    match ending {
        Ending::Success => true,
        Ending::Failure { failure, .. } => failure.status.is_server_error(),
        Ending::Broken { unsent, .. } => !unsent,
    }
}

/// Returns whether a `Retry-After` beside this status is a throttle's.
fn wants_to_be_left_alone(failure: &Failure) -> bool {
    failure.status.as_u16() == 408 || may_recover(failure.status)
}

/// Failures that pass by themselves without being throttles. S3 says 400 `RequestTimeout` when it waited too long for
/// the request, and 409 when two conditional writes met.
pub(crate) fn is_passing(failure: &Failure) -> bool {
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

/// Returns whether a server that failed so may serve the same request later. Cloudflare says 520 to 527 of an origin that it can't reach
/// (<https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-5xx-errors/>). A method (501) or version of
/// HTTP (505) that the server lacks stays lacking.
fn may_recover(status: StatusCode) -> bool {
    status.is_server_error() && !matches!(status.as_u16(), 501 | 505)
}

/// Whether a message says that bytes differ from their checksum. GCS: `Provided CRC32C "…" doesn't match calculated CRC32C
/// "…".`; fake-gcs-server: `crc32c checksum mismatch …`.
pub(crate) fn names_a_digest(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    let digest = ["crc32c", "md5", "checksum", "digest"].iter().any(|name| message.contains(name));
    digest && ["match", "differ"].iter().any(|word| message.contains(word))
}

/// Whether an answer says that its port speaks TLS and was asked in plain HTTP, in the words of Go's `net/http` (MinIO), nginx
/// or Apache. No store says so of a request that has come to it. They can't say it to a HEAD; but a store's answer to that has
/// headers of the store's own, or announces the XML that it would say to a GET.
pub(crate) fn wants_tls(method: &Method, head: &Head, body: &[u8]) -> bool {
    const WORDS: [&str; 3] = [
        "Client sent an HTTP request to an HTTPS server",
        "The plain HTTP request was sent to HTTPS port",
        "speaking plain HTTP to an SSL-enabled server port",
    ];
    const OF_STORES: [&str; 4] = ["x-amz-", "x-goog-", "x-guploader-", "x-minio-"];
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

/// What a status means where the store's code doesn't say it better.
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

/// `Retry-After`: seconds, or a date. What lies in the past asks for no pause.
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

    fn failure(status: u16, code: Option<&str>) -> Failure {
        Failure {
            status: StatusCode::from_u16(status).expect("a status"),
            code: code.map(str::to_owned),
            after: Some(Duration::from_secs(7)),
            ..Failure::default()
        }
    }

    fn broken(kind: Kind, unsent: bool) -> Ending<'static> {
        let transient =
            matches!(kind, Kind::Resolve | Kind::Connect | Kind::Tls | Kind::Timeout | Kind::Interrupted);
        Ending::Broken { kind, unsent, transient }
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
        ];
        for (status, code, expected) in table {
            let failure = failure(status, code);
            let ending =
                Ending::Failure { failure: &failure, kind: kind_of_status(failure.status), learned: false };
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
            let failure = Failure { after: None, ..failure(status, None) };
            let ending =
                Ending::Failure { failure: &failure, kind: kind_of_status(failure.status), learned: false };
            assert_eq!(verdict(false, ending), expected, "{status}");
        }
    }

    #[test]
    fn the_table_of_broken_attempts() {
        let (retry, done) = (Verdict::Retry, Verdict::Done);
        // Kind, unsent, then: without and with bytes delivered.
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
        let ending = Ending::Failure { failure: &failure, kind: ErrorKind::Invalid, learned: true };
        assert_eq!(verdict(false, ending), Verdict::Again);
    }

    #[test]
    fn only_a_lost_answer_or_a_server_error_leaves_it_open_whether_the_request_acted() {
        assert!(may_have_acted(broken(Kind::Interrupted, false)));
        assert!(!may_have_acted(broken(Kind::Interrupted, true)));
        let (no, maybe) = (failure(412, None), failure(503, None));
        assert!(!may_have_acted(Ending::Failure {
            failure: &no,
            kind: ErrorKind::Precondition,
            learned: false
        }));
        assert!(may_have_acted(Ending::Failure {
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
