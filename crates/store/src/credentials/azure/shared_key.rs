//! Signatures with an account's key
//! (<https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key>).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, Method};
use percent_encoding::percent_decode_str;

use crate::digest::hmac_sha256;

/// The headers whose values are signed without their names, in this order. `Content-Length` comes after the second one,
/// and `Date` is empty because each request has `x-ms-date`.
const SIGNED: [&str; 2] = ["content-encoding", "content-language"];
const SIGNED_AFTER_LENGTH: [&str; 8] = [
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];

/// A request to sign.
pub(crate) struct RequestToSign<'a> {
    pub(crate) method: &'a Method,
    /// Path and query as they are sent, percent-encoded.
    pub(crate) target: &'a str,
    pub(crate) headers: &'a HeaderMap,
    /// The number of bytes of the body.
    pub(crate) len: u64,
}

/// Returns the value of the header `Authorization`.
pub(crate) fn authorization(account: &str, key: &[u8], request: &RequestToSign<'_>) -> String {
    let signature = signature(key, &string_to_sign(account, request));
    format!("SharedKey {account}:{signature}")
}

/// Returns the HMAC of a text in base64.
pub(crate) fn signature(key: &[u8], text: &str) -> String {
    STANDARD.encode(hmac_sha256(key, text.as_bytes()).as_ref())
}

fn string_to_sign(account: &str, request: &RequestToSign<'_>) -> String {
    let header = |name: &str| {
        let value = request.headers.get(name).map(|value| value.as_bytes()).unwrap_or_default();
        String::from_utf8_lossy(value).trim().to_owned()
    };
    let mut text = format!("{}\n", request.method);
    for name in SIGNED {
        let _ = writeln!(text, "{}", header(name));
    }
    // An empty body has an empty length here, not 0.
    match request.len {
        0 => text.push('\n'),
        len => drop(writeln!(text, "{len}")),
    }
    for name in SIGNED_AFTER_LENGTH {
        let _ = writeln!(text, "{}", header(name));
    }
    let mut own: Vec<(&str, String)> = request
        .headers
        .keys()
        .filter(|name| name.as_str().starts_with("x-ms-"))
        .map(|name| (name.as_str(), header(name.as_str())))
        .collect();
    own.sort_unstable_by(|(a, _), (b, _)| compare_names(a, b));
    for (name, value) in own {
        let _ = writeln!(text, "{name}:{value}");
    }
    text.push_str(&resource(account, request.target));
    text
}

/// The marks in names of headers, in the order of the service. They come before digits and letters.
const MARKS: &[u8] = b"!#$%&*.^_`|~+";

/// Compares two names of headers as the service sorts them. Its documentation says "lexicographically", but the service
/// follows the rules of .NET for English: an underscore comes before digits, and hyphens count only between names that are
/// equal without them. Microsoft's SDKs do the same since 2024
/// (<https://github.com/Azure/azure-sdk-for-net/issues/41328>, <https://github.com/Azure/azure-sdk-for-python/pull/35359>,
/// <https://github.com/Azure/azure-sdk-for-go/pull/23359>).
fn compare_names(a: &str, b: &str) -> Ordering {
    let weight = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => Some(byte),
        false => MARKS.iter().position(|mark| *mark == byte).map(|place| place as u8),
    };
    let is_hyphen = |byte: u8| byte == b'-';
    let without_hyphens = a.bytes().filter_map(weight).cmp(b.bytes().filter_map(weight));
    without_hyphens.then_with(|| a.bytes().map(is_hyphen).cmp(b.bytes().map(is_hyphen)))
}

/// Returns the account, the path and the parameters of the query by name, each on a line.
fn resource(account: &str, target: &str) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        parameters.entry(decoded(name).to_ascii_lowercase()).or_default().push(decoded(value));
    }
    let mut text = format!("/{account}{path}");
    for (name, mut values) in parameters {
        values.sort_unstable();
        let _ = write!(text, "\n{name}:{}", values.join(","));
    }
    text
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn text(method: Method, target: &str, headers: &[(&'static str, &'static str)], len: u64) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_static(value));
        }
        string_to_sign("acc", &RequestToSign { method: &method, target, headers: &map, len })
    }

    #[test]
    fn an_empty_body_has_an_empty_length() {
        let date = ("x-ms-date", "Fri, 26 Jun 2026 23:39:12 GMT");
        let version = ("x-ms-version", "2021-12-02");
        let signed = text(Method::GET, "/c?comp=list&restype=container&prefix=a%20b", &[version, date], 0);
        assert_eq!(
            signed,
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2026 23:39:12 GMT\nx-ms-version:2021-12-02\n\
             /acc/c\ncomp:list\nprefix:a b\nrestype:container"
        );
    }

    #[test]
    fn conditions_ranges_and_types_are_signed_by_their_places() {
        let headers =
            [("if-none-match", "*"), ("content-md5", "m"), ("range", "bytes=0-1"), ("content-type", "t")];
        let signed = text(Method::PUT, "/acc/c/k%25", &headers, 5);
        assert_eq!(signed, "PUT\n\n\n5\nm\nt\n\n\n\n*\n\nbytes=0-1\n/acc/acc/c/k%25");
    }

    /// The order that the service's own error showed (<https://github.com/Azure/azure-sdk-for-python/pull/33951>).
    #[test]
    fn headers_are_sorted_in_the_order_of_the_service() {
        let ordered = [
            "x-ms-blob-type",
            "x-ms-date",
            "x-ms-meta-test",
            "x-ms-meta-test-",
            "x-ms-meta-test--",
            "x-ms-meta-test_-",
            "x-ms-meta-test-_",
            "x-ms-meta-test__",
            "x-ms-meta-test_a",
            "x-ms-meta-test_a-",
            "x-ms-meta-test-_a",
            "x-ms-meta-test_a_",
            "x-ms-meta-test_a-_",
            "x-ms-meta-test_z",
            "x-ms-meta-test-a",
            "x-ms-version",
        ];
        let reversed: Vec<_> = ordered.iter().rev().map(|name| (*name, "v")).collect();
        let signed = text(Method::PUT, "/c/k", &reversed, 0);
        let names: Vec<_> = signed.lines().filter_map(|line| line.strip_suffix(":v")).collect();
        assert_eq!(names, ordered);
        let signed = text(Method::PUT, "/c/k", &[("x-ms-meta-i0", "a"), ("x-ms-meta-i_", "a")], 0);
        assert!(signed.contains("x-ms-meta-i_:a\nx-ms-meta-i0:a\n"), "{signed}");
    }

    #[test]
    fn the_signature_is_the_hmac_in_base64() {
        let empty = HeaderMap::new();
        let request = RequestToSign { method: &Method::GET, target: "/", headers: &empty, len: 0 };
        let value = authorization("acc", b"key", &request);
        let signature = value.strip_prefix("SharedKey acc:").expect("a signature");
        assert_eq!(STANDARD.decode(signature).expect("base64").len(), 32);
    }
}
