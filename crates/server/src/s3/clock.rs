//! The server's clock, which may differ from this machine's
//! ([`S3Config::clock_ahead_s`](crate::S3Config::clock_ahead_s)), and the checks of signatures against it.

use std::time::{Duration, SystemTime};

use http::header::{AUTHORIZATION, DATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri};

use super::error_document;
use crate::body::ResponseBody;
use crate::config::S3Config;
use crate::iso8601::{basic, written};
use crate::query::Query;

/// The prefix of session tokens that contain their expiration.
const UNTIL: &str = "until-";

/// The maximum difference between a signature's time and the server's clock, as on S3.
const SKEW_MAX: Duration = Duration::from_secs(15 * 60);

/// Returns the server's time.
fn now(config: &S3Config) -> SystemTime {
    let ahead = Duration::from_secs(config.clock_ahead_s.unsigned_abs());
    let now = SystemTime::now();
    let shown = if config.clock_ahead_s < 0 { now.checked_sub(ahead) } else { now.checked_add(ahead) };
    shown.unwrap_or(now)
}

/// Adds `x-amz-date` to a signed request whose time is in `Date`. S3 takes either header, and `s3s` only the first.
/// <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>
pub(super) fn complete(headers: &mut HeaderMap) {
    let is_signed = headers.get(AUTHORIZATION).is_some_and(|value| value.as_bytes().starts_with(b"AWS4-"));
    if !is_signed || headers.contains_key("x-amz-date") {
        return;
    }
    let date = headers.get(DATE).and_then(|date| {
        let date = date.to_str().ok()?;
        // botocore writes UTC as a numeric zone, as RFC 5322 requires.
        let in_utc = date.strip_suffix(" -0000").or(date.strip_suffix(" +0000"));
        httpdate::parse_http_date(&in_utc.map_or(date.to_owned(), |date| format!("{date} GMT"))).ok()
    });
    if let Some(value) = date.and_then(|date| HeaderValue::try_from(written(date)).ok()) {
        headers.insert("x-amz-date", value);
    }
}

/// Returns 403 if a signature's time differs too much from the server's clock. A time that can't be parsed isn't an
/// error here, because the later check of the signature refuses it.
pub(super) fn refusal(config: &S3Config, uri: &Uri, headers: &HeaderMap) -> Option<Response<ResponseBody>> {
    let query = Query::parse(uri.query());
    let signed_at = match headers.get("x-amz-date") {
        Some(date) => date.to_str().ok()?,
        // For a presigned URL, other code checks if it has expired.
        None if query.value("X-Amz-Expires").is_some() => return None,
        None => query.value("X-Amz-Date")?,
    };
    let signed_at = basic(signed_at)?;
    let now = now(config);
    let off_by = now.duration_since(signed_at).unwrap_or_else(|e| e.duration());
    let message = "The difference between the request time and the current time is too large.";
    (off_by > SKEW_MAX).then(|| error_document(StatusCode::FORBIDDEN, "RequestTimeTooSkewed", message))
}

/// Returns 400 for an expired session token `until-20261124T154500Z`. Any other token never expires.
pub(super) fn expired(config: &S3Config, headers: &HeaderMap) -> Option<Response<ResponseBody>> {
    let token = headers.get("x-amz-security-token")?.to_str().ok()?;
    let ends = basic(token.strip_prefix(UNTIL)?)?;
    let message = "The provided token has expired.";
    (ends <= now(config)).then(|| error_document(StatusCode::BAD_REQUEST, "ExpiredToken", message))
}

/// Sets an answer's `Date` header to the server's time.
pub(super) fn show(config: &S3Config, headers: &mut HeaderMap) {
    if let Ok(date) = HeaderValue::try_from(httpdate::fmt_http_date(now(config))) {
        headers.insert(DATE, date);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_of_a_signed_request_becomes_that_of_its_signature() {
        let completed = |authorization: &'static str, date: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_static(authorization));
            headers.insert(DATE, HeaderValue::from_static(date));
            complete(&mut headers);
            headers.get("x-amz-date").map(|date| date.to_str().unwrap().to_owned())
        };
        for date in ["Fri, 24 May 2013 00:00:01 GMT", "Fri, 24 May 2013 00:00:01 -0000"] {
            assert_eq!(completed("AWS4-HMAC-SHA256 x", date).as_deref(), Some("20130524T000001Z"));
            assert_eq!(completed("Bearer x", date), None);
        }
        assert_eq!(completed("AWS4-HMAC-SHA256 x", "today"), None);
    }

    #[test]
    fn a_session_token_is_refused_when_its_time_is_over() {
        let status = |token: &'static str| {
            let headers = HeaderMap::from_iter([(
                http::HeaderName::from_static("x-amz-security-token"),
                HeaderValue::from_static(token),
            )]);
            expired(&S3Config::default(), &headers).map(|answer| answer.status().as_u16())
        };
        assert_eq!(status("until-20130524T000000Z"), Some(400));
        for token in ["until-20990524T000000Z", "until-tomorrow", "a token"] {
            assert_eq!(status(token), None, "{token}");
        }
    }

    #[test]
    fn a_signature_of_another_quarter_of_an_hour_is_refused() {
        let config = |clock_ahead_s| S3Config { clock_ahead_s, ..S3Config::default() };
        let signed = |at: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-amz-date", HeaderValue::from_str(at).unwrap());
            headers
        };
        let uri = Uri::from_static("/b/k");
        assert!(refusal(&config(0), &uri, &signed("20130524T000000Z")).is_some());
        assert!(refusal(&config(0), &uri, &HeaderMap::new()).is_none());
        let mut date = HeaderMap::new();
        show(&config(3600), &mut date);
        let shown = httpdate::parse_http_date(date[DATE].to_str().unwrap()).unwrap();
        assert!(shown > SystemTime::now() + Duration::from_secs(3500));
    }
}
