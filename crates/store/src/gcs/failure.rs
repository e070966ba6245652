//! What a GCS answer that is no success says: JSON, XML or plain text, depending on the API and on who answers.

use std::time::SystemTime;

use laneway_lanes::Head;
use serde::Deserialize;

use crate::ErrorKind;
use crate::judge::{Failure, kind_of_status, retry_after};
use crate::xml;

/// Reads an unsuccessful answer.
pub(crate) fn read(head: &Head, body: &[u8]) -> Failure {
    let (code, message) = describe(body);
    Failure {
        status: head.status,
        code,
        message: message.unwrap_or_else(|| head.status.canonical_reason().unwrap_or_default().to_owned()),
        after: retry_after(head.header("retry-after"), SystemTime::now()),
        region: None,
    }
}

/// What a failure means. GCS throttles also as 403, and says a wrong checksum as 400.
pub(crate) fn kind(failure: &Failure) -> ErrorKind {
    match (failure.status.as_u16(), failure.code.as_deref()) {
        (403, Some("rateLimitExceeded" | "userRateLimitExceeded")) => ErrorKind::Throttled,
        (400, Some("BadDigest")) => ErrorKind::Integrity,
        (400, _) if names_a_digest(&failure.message) => ErrorKind::Integrity,
        _ => kind_of_status(failure.status),
    }
}

/// GCS: `Provided CRC32C "…" doesn't match calculated CRC32C "…".`; fake-gcs-server: `crc32c checksum mismatch …`.
fn names_a_digest(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    let digest = ["crc32c", "md5"].iter().any(|name| message.contains(name));
    digest && ["match", "mismatch"].iter().any(|word| message.contains(word))
}

#[derive(Deserialize)]
struct Answer {
    error: Details,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Details {
    Full {
        #[serde(default)]
        message: String,
        #[serde(default)]
        errors: Vec<Reason>,
        status: Option<String>,
    },
    // OAuth endpoints and proxies.
    Text(String),
}

#[derive(Deserialize)]
struct Reason {
    reason: Option<String>,
}

fn describe(body: &[u8]) -> (Option<String>, Option<String>) {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if let Ok(answer) = serde_json::from_str::<Answer>(text) {
        return match answer.error {
            Details::Full { message, errors, status } => {
                let reason = errors.into_iter().find_map(|error| error.reason).or(status);
                (reason, Some(message).filter(|m| !m.is_empty()))
            }
            Details::Text(message) => (None, Some(message)),
        };
    }
    if let Some(error) = xml::error(body) {
        return (Some(error.code), Some(error.details.unwrap_or(error.message)));
    }
    // Media requests are answered in plain text; a page of HTML says nothing that belongs into an error.
    let plain = !text.is_empty() && text.len() <= 300 && !text.starts_with('<');
    (None, plain.then(|| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, StatusCode};

    use super::*;

    fn failure(status: u16, body: &str) -> Failure {
        let status = StatusCode::from_u16(status).expect("a status");
        read(&Head { status, headers: HeaderMap::new() }, body.as_bytes())
    }

    #[test]
    fn json_gives_reason_and_message() {
        let body = r#"{"error":{"code":404,"message":"No such object: b/k","errors":[{"message":"No such object: b/k","domain":"global","reason":"notFound"}]}}"#;
        let failure = failure(404, body);
        assert_eq!(failure.code.as_deref(), Some("notFound"));
        assert_eq!(failure.message, "No such object: b/k");
        assert_eq!(kind(&failure), ErrorKind::NotFound);
    }

    #[test]
    fn a_rate_limit_that_comes_as_403_is_a_throttle() {
        let body =
            |reason: &str| format!(r#"{{"error":{{"message":"m","errors":[{{"reason":"{reason}"}}]}}}}"#);
        assert_eq!(kind(&failure(403, &body("rateLimitExceeded"))), ErrorKind::Throttled);
        assert_eq!(kind(&failure(403, &body("userRateLimitExceeded"))), ErrorKind::Throttled);
        assert_eq!(kind(&failure(403, &body("forbidden"))), ErrorKind::Permission);
    }

    #[test]
    fn media_errors_are_plain_text() {
        assert_eq!(failure(404, "No such object: b/k\n").message, "No such object: b/k");
    }

    #[test]
    fn xml_gives_code_and_details() {
        let body = "<?xml version='1.0' encoding='UTF-8'?><Error><Code>NoSuchUpload</Code><Message>The requested upload was not found.</Message></Error>";
        let failure = failure(404, body);
        assert_eq!(failure.code.as_deref(), Some("NoSuchUpload"));
        assert_eq!(failure.message, "The requested upload was not found.");
    }

    #[test]
    fn a_proxys_page_leaves_the_status() {
        assert_eq!(failure(502, "<html><body>oops</body></html>").message, "Bad Gateway");
    }

    #[test]
    fn a_wrong_checksum_is_an_integrity_failure() {
        let body = r#"{"error":{"message":"Provided CRC32C \"AAAAAA==\" doesn't match calculated CRC32C \"x\".","errors":[{"reason":"invalid"}]}}"#;
        assert_eq!(kind(&failure(400, body)), ErrorKind::Integrity);
        assert_eq!(kind(&failure(400, r#"{"error":{"message":"Invalid bucket name"}}"#)), ErrorKind::Invalid);
    }

    #[test]
    fn retry_after_is_read() {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", HeaderValue::from_static("2"));
        let head = Head { status: StatusCode::SERVICE_UNAVAILABLE, headers };
        assert_eq!(read(&head, b"").after, Some(std::time::Duration::from_secs(2)));
    }
}
