//! AWS's Signature Version 4 in the `Authorization` header
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>) and in URLs
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html>).

use std::fmt::Write as _;
use std::time::SystemTime;

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::AccessKey;
use crate::digest::{hex, hex_sha256, hmac_sha256};
use crate::encode::component;
use crate::timestamp::iso8601_basic;

const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const PAYLOAD: HeaderName = HeaderName::from_static("x-amz-content-sha256");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

/// Adds the headers of a signature: the date, the payload hash (or `UNSIGNED-PAYLOAD`), the session token, and the
/// signature over all headers. The request's URI must be absolute, with its path and query percent-encoded as on S3.
///
/// # Errors
/// Returns the part that can't be signed.
pub(super) fn sign(
    request: &mut Parts,
    key: &AccessKey,
    (region, service): (&str, &str),
    now: SystemTime,
) -> Result<(), String> {
    let (time, date) = written(now)?;
    let value = |text: &str| {
        HeaderValue::try_from(text).map_err(|_| "the credential has characters that a header can't carry")
    };
    request.headers.insert(DATE, value(&time)?);
    if !request.headers.contains_key(PAYLOAD) {
        request.headers.insert(PAYLOAD, HeaderValue::from_static("UNSIGNED-PAYLOAD"));
    }
    if let Some(token) = &key.session_token {
        let mut token = value(token)?;
        token.set_sensitive(true);
        request.headers.insert(TOKEN, token);
    }

    let payload = request.headers.get(PAYLOAD).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (canonical, signed_headers) = canonical(request, payload)?;
    let scope = format!("{date}/{region}/{service}/aws4_request");
    let signature = signature(key, &time, &scope, &canonical);
    let mut authorization = value(&format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={signed_headers}, Signature={signature}",
        key.id
    ))?;
    authorization.set_sensitive(true);
    request.headers.insert(AUTHORIZATION, authorization);
    Ok(())
}

/// Returns the signed URL of a request. The signature covers host, headers, path and query, and is valid for
/// `expires_s` seconds. `token` is the session token with its name in the query.
///
/// # Errors
/// Returns the part that can't be signed.
pub(super) fn presign(
    request: &Parts,
    key: &AccessKey,
    token: Option<(&str, &str)>,
    (region, service): (&str, &str),
    expires_s: u64,
    now: SystemTime,
) -> Result<String, String> {
    let (time, date) = written(now)?;
    let scope = format!("{date}/{region}/{service}/aws4_request");
    let authority = request.uri.authority().ok_or("the request has no host")?;
    let names: Vec<&str> =
        canonical_headers(authority.as_str(), &request.headers)?.iter().map(|(name, _)| *name).collect();
    let mut uri = request.uri.to_string();
    let mut separator = if request.uri.query().is_some() { '&' } else { '?' };
    for (name, value) in [
        ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
        ("X-Amz-Credential", &format!("{}/{scope}", key.id)),
        ("X-Amz-Date", &time),
        ("X-Amz-Expires", &expires_s.to_string()),
        ("X-Amz-SignedHeaders", &names.join(";")),
    ]
    .into_iter()
    .chain(token)
    {
        let _ = write!(uri, "{separator}{name}={}", component(value));
        separator = '&';
    }
    let mut unsigned = request.clone();
    unsigned.uri = uri.parse().map_err(|e| format!("no URL: {e}"))?;
    // The URL is signed before the body exists, so the body can't be part of the signature.
    let (canonical, _) = canonical(&unsigned, "UNSIGNED-PAYLOAD")?;
    Ok(format!("{uri}&X-Amz-Signature={}", signature(key, &time, &scope, &canonical)))
}

/// Returns a time in the format of AWS's and Google's signatures, and its date in the same format.
///
/// # Errors
/// Fails for a time outside the calendar.
pub(crate) fn written(time: SystemTime) -> Result<(String, String), String> {
    iso8601_basic(time)
        .ok_or_else(|| "the clock's time is outside the range of a signature's timestamp".to_owned())
}

fn signature(key: &AccessKey, time: &str, scope: &str, canonical: &str) -> String {
    let string_to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex_sha256(canonical.as_bytes()));
    let mut scoped = format!("AWS4{}", key.secret).into_bytes();
    for part in scope.split('/') {
        scoped = hmac_sha256(&scoped, part.as_bytes()).as_ref().to_vec();
    }
    hex(hmac_sha256(&scoped, string_to_sign.as_bytes()).as_ref())
}

/// Returns the headers to sign, sorted, including the host.
///
/// # Errors
/// Fails if a value isn't text.
pub(crate) fn canonical_headers<'a>(
    authority: &str,
    headers: &'a HeaderMap,
) -> Result<Vec<(&'a str, String)>, String> {
    let mut signed = vec![("host", authority.to_owned())];
    for name in headers.keys().filter(|name| *name != AUTHORIZATION) {
        let unsignable = |_| format!("the value of {name} isn't ASCII text");
        let mut values = Vec::new();
        for value in headers.get_all(name) {
            let value = std::str::from_utf8(value.as_bytes()).map_err(unsignable)?;
            // SigV4 signs a run of spaces as a single space. The header itself is sent unchanged.
            values.push(value.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
        }
        signed.push((name.as_str(), values.join(",")));
    }
    signed.sort_unstable();
    Ok(signed)
}

/// Returns the canonical request, and the names of the headers in it.
fn canonical(request: &Parts, payload: &str) -> Result<(String, String), String> {
    let authority = request.uri.authority().ok_or("the request has no host")?;
    let headers = canonical_headers(authority.as_str(), &request.headers)?;

    let mut query: Vec<(&str, &str)> = request
        .uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    query.sort_unstable();
    let query: Vec<String> = query.into_iter().map(|(name, value)| format!("{name}={value}")).collect();

    let mut text = format!("{}\n{}\n{}\n", request.method, request.uri.path(), query.join("&"));
    for (name, value) in &headers {
        let _ = writeln!(text, "{name}:{value}");
    }
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let _ = write!(text, "\n{names}\n{payload}");
    Ok((text, names))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqsign_aws_v4::{Credential, RequestSigner};
    use reqsign_core::time::Timestamp;
    use reqsign_core::{Context, SignRequest as _};

    use super::*;

    fn request(method: &str, uri: &str, headers: &[(&'static str, &'static str)]) -> Parts {
        let mut request = http::Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request").into_parts().0
    }

    fn key(token: Option<&str>) -> AccessKey {
        let key = AccessKey::new("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        AccessKey { session_token: token.map(str::to_owned), ..key }
    }

    /// The second example of S3's own page, "PUT Object", word for word.
    #[test]
    fn the_example_of_s3s_documentation_is_signed_as_there() {
        let mut put = request(
            "PUT",
            "https://examplebucket.s3.amazonaws.com/test%24file.text",
            &[
                ("date", "Fri, 24 May 2013 00:00:00 GMT"),
                ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
                ("x-amz-content-sha256", "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"),
            ],
        );
        let may_24 = SystemTime::UNIX_EPOCH + Duration::from_secs(1_369_353_600);
        sign(&mut put, &key(None), ("us-east-1", "s3"), may_24).expect("it is signed");
        let authorization = put.headers[AUTHORIZATION].to_str().expect("text");
        assert!(
            authorization
                .ends_with("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
            "{authorization}"
        );
    }

    /// The example of S3's page about query authentication, word for word.
    #[test]
    fn the_example_of_a_presigned_url_is_signed_as_in_s3s_documentation() {
        let get = request("GET", "https://examplebucket.s3.amazonaws.com/test.txt", &[]);
        let may_24 = SystemTime::UNIX_EPOCH + Duration::from_secs(1_369_353_600);
        let url = presign(&get, &key(None), None, ("us-east-1", "s3"), 86_400, may_24);
        assert_eq!(
            url.as_deref(),
            Ok("https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256\
                &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
                &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
                &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")
        );
    }

    #[tokio::test]
    async fn any_request_is_signed_as_reqsign_signs_it() {
        let requests = [
            request(
                "GET",
                "https://b.s3.eu-west-1.amazonaws.com/a//b%20c%2B%C3%A9?list-type=2&prefix=a%2Fb",
                &[],
            ),
            request("POST", "http://127.0.0.1:9000/b/k?uploads=", &[("content-type", "text/plain; a=b")]),
            request("PUT", "https://h/b/k?uploadId=x&partNumber=10", &[("x-amz-meta-a", "dark green")]),
            request("HEAD", "https://h/", &[("x-amz-content-sha256", "UNSIGNED-PAYLOAD")]),
        ];
        for token in [None, Some("token")] {
            let AccessKey { id, secret, session_token } = key(token);
            let credential =
                Credential { access_key_id: id, secret_access_key: secret, session_token, expires_in: None };
            for request in &requests {
                let (mut ours, mut theirs) = (request.clone(), request.clone());
                let context = Context::new();
                RequestSigner::new("s3", "eu-west-1")
                    .sign_request(&context, &mut theirs, Some(&credential), None)
                    .await
                    .expect("it is signed");
                let date = theirs.headers[DATE].to_str().expect("text").parse::<Timestamp>().expect("a date");
                sign(&mut ours, &key(token), ("eu-west-1", "s3"), date.as_system_time())
                    .expect("it is signed");
                assert_eq!(ours.headers[AUTHORIZATION], theirs.headers[AUTHORIZATION], "{}", request.uri);
            }
        }
    }

    #[test]
    fn runs_of_spaces_are_signed_as_one_and_sent_as_they_are() {
        let spaced = request("GET", "https://h/", &[("x-amz-meta-a", "dark  green")]);
        let single = request("GET", "https://h/", &[("x-amz-meta-a", "dark green")]);
        assert_eq!(canonical(&spaced, ""), canonical(&single, ""));
    }
}
