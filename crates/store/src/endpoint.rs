//! The base URL of a dialect's requests: an origin and a path.

use std::fmt;

use laneway_lanes::{Origin, Scheme};

use crate::{Error, ErrorKind, Operation, Provider};

/// A parsed base URL.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) origin: Origin,
    /// The URL's path without a trailing slash. It is usually empty.
    pub(crate) base: String,
}

impl Endpoint {
    /// Parses `https://host:port/base`. A URL without a scheme means plain HTTP, as Google's clients read
    /// `STORAGE_EMULATOR_HOST`.
    ///
    /// # Errors
    /// Returns `Invalid` if the text isn't such a URL.
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let invalid = |why: String| Error::new(ErrorKind::Invalid, Operation::Open, why);
        if begins_like_a_url(url) {
            return Err(invalid(format!(
                "{url:?} isn't an endpoint URL: two slashes must follow the scheme"
            )));
        }
        let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let origin = Origin::parse(&url).map_err(|e| invalid(e.to_string()))?;
        let uri: http::Uri =
            url.parse().map_err(|e| invalid(format!("{url:?} isn't an endpoint URL: {e}")))?;
        Ok(Self { origin, base: uri.path().trim_end_matches('/').to_owned() })
    }

    /// Checks that a URL names its scheme, as the AWS SDKs require. Without the check, a URL that lacks `https://`
    /// would make Laneway send credentials in plain HTTP.
    ///
    /// # Errors
    /// Returns the mistake and the correct form.
    pub(crate) fn check_with_scheme(url: &str) -> Result<(), String> {
        if !url.contains("://") && !begins_like_a_url(url) {
            return Err(format!("{url:?} lacks its scheme: write http://{url} or https://{url}"));
        }
        Self::parse(url).map(|_| ()).map_err(|e| e.message().to_owned())
    }

    /// Returns true if the endpoint is reached over TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.origin.scheme == Scheme::Https
    }
}

/// Returns true if an endpoint of this store can have this URL. Only GCS accepts a URL without a scheme.
pub fn is_endpoint(provider: Provider, url: &str) -> bool {
    match provider {
        Provider::Gcs => Endpoint::parse(url).is_ok(),
        _ => Endpoint::check_with_scheme(url).is_ok(),
    }
}

/// Returns true if a text without `://` begins with a mistyped scheme, such as `https:/host`. Such a text isn't a
/// host's name.
fn begins_like_a_url(text: &str) -> bool {
    !text.contains("://") && ["http:", "https:"].iter().any(|scheme| text.starts_with(scheme))
}

/// Returns true if requests to an origin can't be read on the network, because the origin uses TLS or is this machine
/// itself.
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
        assert!(Endpoint::parse("http:/h").is_err_and(|e| e.is_invalid()));
    }

    #[test]
    fn what_needs_a_scheme_and_has_none_is_shown_how_it_is_written() {
        let why = Endpoint::check_with_scheme("localhost:9000").expect_err("no scheme");
        assert!(why.contains("http://localhost:9000 or https://localhost:9000"), "{why}");
        let why = Endpoint::check_with_scheme("https:/h").expect_err("a slash too few");
        assert!(why.contains("two slashes"), "{why}");
        assert_eq!(Endpoint::check_with_scheme("http://localhost:9000"), Ok(()));
    }
}
