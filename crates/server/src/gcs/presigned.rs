//! The checks of requests with signed URLs, which the XML API makes first
//! (<https://cloud.google.com/storage/docs/access-control/signed-urls>). The signature itself isn't verified, because
//! the server doesn't have the service account's key.

use std::time::{Duration, SystemTime};

use http::header::HOST;
use http::request::Parts;

use super::answer::ApiError;
use crate::iso8601::basic;
use crate::query::Query;

/// Returns an error if a URL has expired or is malformed, or if the request lacks one of its signed headers.
pub(super) fn check(head: &Parts, query: &Query, now: SystemTime) -> Result<(), ApiError> {
    if !query.is_signed_by_google() {
        return Ok(());
    }
    let text = |name: &str| {
        query.value(name).filter(|value| !value.is_empty()).ok_or_else(|| malformed(name, "it is missing"))
    };
    if !matches!(text("X-Goog-Algorithm")?, "GOOG4-RSA-SHA256" | "GOOG4-HMAC-SHA256") {
        return Err(malformed("X-Goog-Algorithm", "no such algorithm"));
    }
    let signed_at = basic(text("X-Goog-Date")?).ok_or_else(|| malformed("X-Goog-Date", "no time"))?;
    let expires_s = text("X-Goog-Expires")?.parse().ok().filter(|seconds| (1..=604_800).contains(seconds));
    let expires_s = expires_s.ok_or_else(|| malformed("X-Goog-Expires", "not from 1 to 604800 seconds"))?;
    let date = text("X-Goog-Date")?.get(..8).unwrap_or_default();
    let scope =
        text("X-Goog-Credential")?.split_once('/').map(|(_, scope)| scope.split('/').collect::<Vec<_>>());
    match scope.as_deref() {
        Some([on, _, "storage", "goog4_request"]) if *on == date => {}
        _ => return Err(malformed("X-Goog-Credential", "not of EMAIL/DATE/REGION/storage/goog4_request")),
    }
    let signature = text("X-Goog-Signature")?;
    if signature.len() % 2 != 0 || !signature.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(malformed("X-Goog-Signature", "not in hexadecimal"));
    }
    if now > signed_at + Duration::from_secs(expires_s) {
        return Err(ApiError::expired_token());
    }
    let names: Vec<&str> = text("X-Goog-SignedHeaders")?.split(';').collect();
    if !names.contains(&HOST.as_str()) {
        return Err(malformed("host", "Header must be signed."));
    }
    let has_come =
        |name: &str| head.headers.contains_key(name) || (name == HOST && head.uri.host().is_some());
    match names.into_iter().find(|name| !has_come(name)) {
        Some(name) => Err(malformed(name, "Header was included in signedheaders, but not in the request.")),
        None => Ok(()),
    }
}

fn malformed(name: &str, why: &str) -> ApiError {
    ApiError::malformed_signature(format!("Your request has a malformed header. {name}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Credential=a%40b%2F20261122%2Fauto%2Fstorage%2Fgoog4_request&\
                        X-Goog-Date=20261122T000000Z&X-Goog-Expires=60&X-Goog-SignedHeaders=content-type%3Bhost&X-Goog-Signature=0a";

    /// Returns the error for a URL, `after_s` seconds after it was signed.
    fn reason(query: &str, after_s: u64) -> Option<String> {
        let (head, ()) = http::Request::builder()
            .uri(format!("/b/k?{query}"))
            .header("host", "h")
            .header("content-type", "a/b")
            .body(())
            .unwrap()
            .into_parts();
        let signed_at = basic("20261122T000000Z").unwrap();
        let query = Query::parse(head.uri.query());
        check(&head, &query, signed_at + Duration::from_secs(after_s))
            .err()
            .map(|problem| problem.reason.into_owned())
    }

    #[test]
    fn a_url_ends_when_it_says() {
        assert_eq!(reason(GOOD, 60), None);
        assert_eq!(reason(GOOD, 61).as_deref(), Some("expiredToken"));
    }

    #[test]
    fn what_is_malformed_is_refused() {
        for (good, bad) in [
            ("GOOG4-RSA-SHA256", "GOOG4-NONE"),
            ("20261122%2Fauto", "20261121%2Fauto"),
            ("20261122T000000Z", "yesterday"),
            ("Expires=60", "Expires=604801"),
            ("content-type%3Bhost", "host%3Bx-goog-acl"),
            ("content-type%3Bhost", "content-type"),
            ("Signature=0a", "Signature=xy"),
            ("&X-Goog-Signature=0a", ""),
        ] {
            let bad = GOOD.replace(good, bad);
            assert_eq!(reason(&bad, 0).as_deref(), Some("malformedSecurityHeader"), "{bad}");
        }
        assert_eq!(reason("generation=1", 0), None);
    }
}
