//! Collects the secrets that a request carried, and removes server messages that repeat them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use percent_encoding::percent_decode_str;

/// The replacement for a message that repeats a secret.
pub(crate) const LEFT_OUT: &str = "(the server's message contains a secret and is left out)";

/// A message is treated as repeating a secret if it contains this many of the secret's first letters and digits. A
/// match of this length is unlikely to be chance.
const REPEATED: usize = 8;
/// A secret shorter than [`REPEATED`] is searched for as a whole. A secret with fewer letters and digits than this
/// isn't searched for, because any text may contain it by chance.
const REPEATED_MIN: usize = 4;

/// Headers with the clouds' prefixes whose values are secret. The values of other headers with these prefixes aren't
/// secret, and the clouds' error messages often repeat them.
const OF_CLOUDS: [&str; 6] = [
    "x-amz-copy-source-server-side-encryption-customer-key",
    "x-amz-s3session-token",
    "x-amz-security-token",
    "x-amz-server-side-encryption-customer-key",
    "x-amz-sso_bearer_token",
    "x-goog-encryption-key",
];

/// The secrets of a request that was sent.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<HeaderValue>);

impl Secrets {
    /// Returns the secrets in these headers. Signatures aren't treated as secrets.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let found = headers.iter().filter(|(name, value)| is_secret(name, value));
        Self(found.map(|(_, value)| value.clone()).collect())
    }

    /// Returns the secrets in a request's headers, and the signature of a SAS token in its query.
    pub(crate) fn of_request(headers: &HeaderMap, target: &Uri) -> Self {
        let Self(mut found) = Self::of(headers);
        let pairs = target.query().unwrap_or_default().split('&');
        let signatures =
            pairs.filter_map(|pair| percent_decode_str(pair.strip_prefix("sig=")?).decode_utf8().ok());
        found.extend(signatures.filter_map(|signature| HeaderValue::from_str(&signature).ok()));
        Self(found)
    }

    /// Returns true if a text contains the beginning of one of these secrets or of `others`. Only letters and digits
    /// are compared, so that escaping doesn't hide a secret.
    pub(crate) fn are_repeated(&self, others: Vec<String>, text: &str) -> bool {
        if self.0.is_empty() && others.is_empty() {
            return false;
        }
        let text = [plain(text), plain(&percent_decode_str(text).decode_utf8_lossy())];
        let words = self.0.iter().filter_map(|value| value.to_str().ok()).flat_map(authorized_by);
        let beginnings = words.chain(others.iter().map(|other| plain(other)));
        let beginnings = beginnings.map(|secret| secret.chars().take(REPEATED).collect::<String>());
        let mut long_enough = beginnings.filter(|beginning| beginning.len() >= REPEATED_MIN);
        long_enough.any(|beginning| text.iter().any(|text| text.contains(&beginning)))
    }

    /// Returns the server's message, or [`LEFT_OUT`] if it repeats a secret.
    pub(crate) fn cleared(&self, words: String) -> String {
        if self.are_repeated(Vec::new(), &words) { LEFT_OUT.to_owned() } else { words }
    }

    /// Returns the server's error code, unless it repeats a secret.
    pub(crate) fn cleared_code(&self, code: Option<String>) -> Option<String> {
        code.filter(|code| !self.are_repeated(Vec::new(), code))
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

/// Returns true if a header's value is secret. A short value of a caller's header may be an ordinary word, so it
/// doesn't count. Otherwise, with `x-env: prod`, errors that name the bucket `prod-data` would be left out.
fn is_secret(name: &HeaderName, value: &HeaderValue) -> bool {
    let name = name.as_str();
    if name.starts_with("x-amz-") || name.starts_with("x-goog-") {
        return OF_CLOUDS.contains(&name);
    }
    let is_long = || value.to_str().is_ok_and(|value| plain(value).len() >= REPEATED);
    value.is_sensitive()
        && !value.as_bytes().starts_with(b"AWS4-HMAC")
        && !value.as_bytes().starts_with(b"SharedKey ")
        && (name == AUTHORIZATION.as_str() || is_long())
}

/// Returns the letters and digits of the secrets in a header's value, without the authentication scheme, because a
/// server may leave it out. For basic authentication, the secrets are the base64 text and the password in it.
fn authorized_by(value: &str) -> Vec<String> {
    let (scheme, secret) = value.split_once(' ').unwrap_or(("", value));
    if scheme.eq_ignore_ascii_case("basic") {
        let pair = BASE64_STANDARD.decode(secret).unwrap_or_default();
        let pair = String::from_utf8_lossy(&pair);
        let password = pair.split_once(':').map(|(_, password)| plain(password));
        return std::iter::once(plain(secret)).chain(password).collect();
    }
    let is_token = scheme.eq_ignore_ascii_case("bearer");
    vec![plain(if is_token { secret } else { value })]
}

/// Returns the letters and digits of a text, which escaping leaves unchanged.
fn plain(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            let mut value = HeaderValue::from_static(value);
            value.set_sensitive(true);
            (HeaderName::from_static(name), value)
        });
        pairs.collect()
    }

    #[test]
    fn words_that_repeat_what_was_shown_are_left_out() {
        let secrets = Secrets::of(&headers(&[
            ("authorization", "Bearer ya29.a0Af_H6SMB"),
            ("x-amz-security-token", "FwoGZXIvYXdzEBY"),
            ("x-amz-sso_bearer_token", "eyJlbmMiOiJBMjU2"),
            ("x-own", "hunter2+hunter2"),
        ]));
        for words in [
            "no such token: ya29.a0Af_H6SMB",
            "the token FwoGZXIv... has expired",
            "GET /federation eyJlbmMiOiJBMjU2",
            "x-own: hunter2%2Bhunter2",
        ] {
            assert_eq!(secrets.cleared(words.to_owned()), LEFT_OUT);
            assert_eq!(secrets.cleared_code(Some(words.to_owned())), None);
        }
        let words = "The provided token has expired.";
        assert_eq!(secrets.cleared(words.to_owned()), words);
        assert_eq!(secrets.cleared_code(Some("ExpiredToken".to_owned())).as_deref(), Some("ExpiredToken"));
    }

    #[test]
    fn the_signature_of_a_sas_token_is_a_secret_of_its_request() {
        let target: Uri = "/abc/k?comp=block&sv=2021&sig=hunter2hunter2%2Bx%3D".parse().expect("a target");
        let secrets = Secrets::of_request(&HeaderMap::new(), &target);
        for words in ["hunter2hunter2+x= is wrong", "sig=hunter2hunter2%2Bx%3D isn't a size"] {
            assert_eq!(secrets.cleared(words.to_owned()), LEFT_OUT);
        }
        assert_eq!(secrets.cleared("the token has expired".to_owned()), "the token has expired");
        let plain: Uri = "/abc/k?comp=block".parse().expect("a target");
        assert!(Secrets::of_request(&HeaderMap::new(), &plain).0.is_empty());
    }

    #[test]
    fn a_signature_and_the_stores_own_vocabulary_are_no_secrets() {
        let secrets = Secrets::of(&headers(&[
            ("authorization", "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/20260101, Signature=beef"),
            ("x-amz-request-payer", "requester"),
            ("x-amz-server-side-encryption", "aws:kms"),
            ("x-env", "prod"),
        ]));
        for words in [
            "The AWS Access Key Id AKIAEXAMPLE does not exist in our records; use AWS4-HMAC-SHA256.",
            "the bucket is of kind requester pays, keys of aws:kms",
            "no such bucket: prod-data",
        ] {
            assert_eq!(secrets.cleared(words.to_owned()), words);
        }
    }
}
