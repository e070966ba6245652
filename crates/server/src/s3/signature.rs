//! Verifies the Signature Version 4 of requests that are signed for a service other than `s3`, which `s3s` doesn't
//! verify (<https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>).

use http::header::{AUTHORIZATION, HOST};
use http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str};
use ring::digest::{SHA256, digest};
use ring::hmac;

use crate::checksum::hex;

/// The characters that aren't encoded in a signed query.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The parsed `Authorization` header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SignatureHeader<'a> {
    pub(super) access_key: &'a str,
    /// The credential scope: `DATE/REGION/SERVICE/aws4_request`.
    scope: &'a str,
    headers: Vec<&'a str>,
    signature: &'a str,
}

impl<'a> SignatureHeader<'a> {
    /// Parses the header. Returns `None` for a request without a signature, or with another kind of signature.
    pub(super) fn of(head: &'a Parts) -> Option<SignatureHeader<'a>> {
        let header = head.headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("AWS4-HMAC-SHA256")?;
        let field = |name: &str| {
            header.split(',').find_map(|field| field.trim().strip_prefix(name)?.strip_prefix('='))
        };
        let (access_key, scope) = field("Credential")?.split_once('/')?;
        let headers = field("SignedHeaders")?.split(';').collect();
        Some(SignatureHeader { access_key, scope, headers, signature: field("Signature")? })
    }

    /// Returns the service for which the request is signed.
    pub(super) fn service(&self) -> &'a str {
        self.scope.rsplit('/').nth(1).unwrap_or_default()
    }

    /// Returns true if the signature was made with this secret.
    pub(super) fn is_by(&self, secret: &str, head: &Parts) -> bool {
        let Some(request) = self.canonical(head) else { return false };
        let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let hash = hex(digest(&SHA256, request.as_bytes()).as_ref());
        let signed = format!("AWS4-HMAC-SHA256\n{}\n{}\n{hash}", text("x-amz-date"), self.scope);
        let key =
            self.scope.split('/').fold(format!("AWS4{secret}").into_bytes(), |key, part| mac(&key, part));
        hex(&mac(&key, &signed)) == self.signature
    }

    fn canonical(&self, head: &Parts) -> Option<String> {
        let mut request = format!("{}\n{}\n{}\n", head.method, head.uri.path(), query(head.uri.query()));
        for name in &self.headers {
            let value = match head.headers.get(*name) {
                Some(value) => value.to_str().ok()?.split_whitespace().collect::<Vec<_>>().join(" "),
                None if *name == HOST => head.uri.authority()?.to_string(),
                None => return None,
            };
            request.push_str(&format!("{name}:{value}\n"));
        }
        let payload = head.headers.get("x-amz-content-sha256")?.to_str().ok()?;
        Some(format!("{request}\n{}\n{payload}", self.headers.join(";")))
    }
}

/// Returns the query's parameters in their canonical order and encoding.
fn query(text: Option<&str>) -> String {
    let decoded = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
    let encoded = |text: &str| percent_encoding::percent_encode(&decoded(text), UNRESERVED).to_string();
    let pairs = text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let mut pairs: Vec<String> = pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            format!("{}={}", encoded(name), encoded(value))
        })
        .collect();
    pairs.sort_unstable();
    pairs.join("&")
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in S3's own documentation: a GET with a range.
    #[test]
    fn amazons_own_example_is_verified() {
        let (mut head, ()) = http::Request::builder()
            .uri("/test.txt")
            .header("host", "examplebucket.s3.amazonaws.com")
            .header("range", "bytes=0-9")
            .header(
                "x-amz-content-sha256",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            )
            .header("x-amz-date", "20130524T000000Z")
            .header(
                "authorization",
                "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
                 SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,\
                 Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            )
            .body(())
            .unwrap()
            .into_parts();
        let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        let signed = SignatureHeader::of(&head).unwrap();
        assert_eq!((signed.access_key, signed.service()), ("AKIAIOSFODNN7EXAMPLE", "s3"));
        assert!(signed.is_by(secret, &head));
        assert!(!signed.is_by("another", &head));
        head.headers.insert("range", "bytes=0-8".parse().unwrap());
        assert!(!SignatureHeader::of(&head).unwrap().is_by(secret, &head));
    }

    #[test]
    fn queries_are_sorted_and_encoded() {
        assert_eq!(query(Some("b=%7e+&a&c=/")), "a=&b=~%2B&c=%2F");
        assert_eq!(query(None), "");
    }
}
