//! Headers that the caller adds to requests ([`Settings::headers`](crate::Settings::headers)).

use http::HeaderName;

/// Headers that frame a message, route it, choose its coding or manage its connection. Only Laneway's HTTP client can
/// set them correctly (RFC 9110 section 7.6.1, RFC 9112 section 6).
const FRAMING: [&str; 16] = [
    "accept-encoding",
    "connection",
    "content-length",
    "content-range",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns true if a caller may add this header. Headers that frame the request can't be added.
pub fn may_be_added(name: &HeaderName) -> bool {
    !FRAMING.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framing_is_nothing_that_can_be_added() {
        for name in FRAMING {
            assert!(!may_be_added(&HeaderName::from_static(name)), "{name}");
        }
        for name in ["x-amz-acl", "authorization", "cache-control", "x-goog-meta-a"] {
            assert!(may_be_added(&HeaderName::from_static(name)), "{name}");
        }
    }
}
