//! Reads error answers of GCS. They are JSON, XML or plain text, depending on the API and the server.

use std::io::Read as _;
use std::time::SystemTime;

use flate2::read::GzDecoder;
use laneway_lanes::ResponseHead;
use serde_json::Value;

use super::resource::text_of;
use crate::judge::{ErrorResponse, kind_of_status, names_a_digest, retry_after};
use crate::{ErrorKind, xml};

/// Reads an error answer.
pub(crate) fn read(head: &ResponseHead, body: &[u8]) -> ErrorResponse {
    let (code, message) = match head.header("content-encoding") {
        Some("gzip") => describe(&unpacked(body)),
        _ => describe(body),
    };
    ErrorResponse {
        status: head.status,
        code,
        message: message.unwrap_or_else(|| head.status.canonical_reason().unwrap_or_default().to_owned()),
        after: retry_after(head.header("retry-after"), SystemTime::now()),
        ..ErrorResponse::default()
    }
}

/// Returns the kind of a failure. Its status isn't enough: GCS throttles with 403 as well as 429, and reports a wrong
/// checksum with 400.
pub(crate) fn kind(failure: &ErrorResponse) -> ErrorKind {
    match (failure.status.as_u16(), failure.code.as_deref()) {
        (403, Some("rateLimitExceeded" | "userRateLimitExceeded")) => ErrorKind::Throttled,
        (_, Some("SlowDown")) => ErrorKind::Throttled,
        (400, Some("BadDigest")) => ErrorKind::Integrity,
        (400 | 412, _) if names_a_digest(&failure.message) => ErrorKind::Integrity,
        _ => kind_of_status(failure.status),
    }
}

/// The maximum number of bytes of an error document that are decompressed.
const UNPACKED_MAX: u64 = 64 << 10;

/// Decompresses a gzip body, as far as it is valid.
fn unpacked(body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    // If the document is damaged, the error is described by the answer's status alone.
    let _ = GzDecoder::new(body).take(UNPACKED_MAX).read_to_end(&mut plain);
    plain
}

fn describe(body: &[u8]) -> (Option<String>, Option<String>) {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if let Ok(mut answer) = serde_json::from_str::<Value>(text)
        && let Some(error) = answer.get_mut("error").map(Value::take)
    {
        return reason_and_message(error);
    }
    if let Some(error) = xml::error(body) {
        return (Some(error.code), Some(error.details.unwrap_or(error.message)));
    }
    // GCS answers failed media requests with plain text, which the message can repeat. A page of HTML doesn't help the
    // user.
    let plain = !text.is_empty() && text.len() <= 300 && !text.starts_with('<');
    (None, plain.then(|| text.to_owned()))
}

/// Returns the reason and the message of an `error`. Google's APIs send a JSON object; OAuth endpoints and proxies send
/// a string.
fn reason_and_message(mut error: Value) -> (Option<String>, Option<String>) {
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    if !error.is_object() {
        return (None, some(text_of(error)));
    }
    let reasons = error["errors"].as_array_mut().into_iter().flatten();
    let reason = reasons.filter_map(|error| error.get("reason")?.as_str().map(str::to_owned)).next();
    let reason = reason.or_else(|| error["status"].as_str().map(str::to_owned));
    (reason, some(text_of(error["message"].take())))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, StatusCode};

    use super::*;

    fn failure(status: u16, body: &str) -> ErrorResponse {
        let status = StatusCode::from_u16(status).expect("a status");
        read(&ResponseHead { status, headers: HeaderMap::new() }, body.as_bytes())
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
    fn a_message_that_is_no_string_is_told_as_it_stands() {
        let body =
            r#"{"error":{"code":403,"message":{"why":"quota"},"errors":[{"reason":"rateLimitExceeded"}]}}"#;
        let failed = failure(403, body);
        assert_eq!((failed.message.as_str(), kind(&failed)), (r#"{"why":"quota"}"#, ErrorKind::Throttled));
        let failed = failure(400, r#"{"error":{"message":["a","b"],"errors":{"reason":"x"},"status":7}}"#);
        assert_eq!((failed.message.as_str(), failed.code), (r#"["a","b"]"#, None));
        assert_eq!(failure(404, r#"{"error":{"message":null}}"#).message, "Not Found");
        assert_eq!(failure(401, r#"{"error":"invalid_grant"}"#).message, "invalid_grant");
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
        let head = ResponseHead { status: StatusCode::SERVICE_UNAVAILABLE, headers };
        assert_eq!(read(&head, b"").after, Some(std::time::Duration::from_secs(2)));
    }
}
