//! Where a dialect's requests go: an origin and the path under it.

use std::fmt;

use laneway_lanes::{Origin, Scheme};

use crate::{Error, ErrorKind, Operation};

/// A base URL, taken apart.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) origin: Origin,
    /// The URL's path without a slash at its end: empty for most.
    pub(crate) base: String,
}

impl Endpoint {
    /// Reads `https://host:port/base`; what has no scheme is plain HTTP, as Google's clients read
    /// `STORAGE_EMULATOR_HOST`.
    ///
    /// # Errors
    /// `Invalid` for what is no such URL.
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let invalid = |why: String| Error::new(ErrorKind::Invalid, Operation::Open, why);
        let origin = Origin::parse(&url).map_err(|e| invalid(e.to_string()))?;
        let uri: http::Uri = url.parse().map_err(|e| invalid(format!("{url:?} is no endpoint URL: {e}")))?;
        Ok(Self { origin, base: uri.path().trim_end_matches('/').to_owned() })
    }

    /// Whether it is reached over TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.origin.scheme == Scheme::Https
    }
}

/// Whether nobody listens on the way to an origin: TLS, or this machine itself.
pub(crate) fn is_private(origin: &Origin) -> bool {
    let is_loopback = || match origin.host.parse::<std::net::IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => &*origin.host == "localhost" || origin.host.ends_with(".localhost"),
    };
    origin.scheme == Scheme::Https || is_loopback()
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulator_without_a_scheme_is_plain_http() {
        let endpoint = Endpoint::parse("localhost:4443").expect("an endpoint");
        assert_eq!(endpoint.origin.to_string(), "http://localhost:4443");
        assert!(!endpoint.is_tls());
    }

    #[test]
    fn a_base_path_loses_its_last_slash() {
        assert_eq!(Endpoint::parse("https://h/a/b/").expect("an endpoint").base, "/a/b");
        assert_eq!(Endpoint::parse("https://h/a/b/").expect("an endpoint").to_string(), "https://h/a/b");
        assert_eq!(Endpoint::parse("https://h").expect("an endpoint").base, "");
        assert_eq!(Endpoint::parse("https://h/").expect("an endpoint").base, "");
    }

    #[test]
    fn only_tls_and_this_machine_are_private() {
        for (url, private) in [
            ("https://h", true),
            ("http://h", false),
            ("http://127.0.0.1:9000", true),
            ("http://[::1]:9000", true),
            ("http://localhost:9000", true),
            ("http://localhost.example", false),
        ] {
            assert_eq!(is_private(&Endpoint::parse(url).expect("an endpoint").origin), private, "{url}");
        }
    }

    #[test]
    fn nonsense_is_invalid() {
        assert!(Endpoint::parse("ftp://h").is_err_and(|e| e.is_invalid()));
        assert!(Endpoint::parse("http://").is_err_and(|e| e.is_invalid()));
    }
}
