//! The base URL of a dialect's requests: an origin and a path. Also the domains of Amazon's partitions.

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

/// A group of regions with one domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Partition {
    /// The partition's name in ARNs.
    pub(crate) name: &'static str,
    /// The domain of its services.
    pub(crate) suffix: &'static str,
    /// The prefixes of its regions' names. Regions without any of these prefixes belong to the commercial partition.
    prefixes: &'static [&'static str],
}

/// The partition of every region that no other partition claims, including future regions.
const COMMERCIAL: Partition = Partition { name: "aws", suffix: "amazonaws.com", prefixes: &[] };

/// Taken from the SDKs' `partitions.json`
/// (<https://github.com/boto/botocore/blob/develop/botocore/data/partitions.json>).
const OTHERS: [Partition; 7] = [
    Partition { name: "aws-cn", suffix: "amazonaws.com.cn", prefixes: &["cn-"] },
    Partition { name: "aws-us-gov", suffix: "amazonaws.com", prefixes: &["us-gov-"] },
    Partition { name: "aws-eusc", suffix: "amazonaws.eu", prefixes: &["eusc-"] },
    Partition { name: "aws-iso", suffix: "c2s.ic.gov", prefixes: &["us-iso-"] },
    Partition { name: "aws-iso-b", suffix: "sc2s.sgov.gov", prefixes: &["us-isob-"] },
    Partition { name: "aws-iso-e", suffix: "cloud.adc-e.uk", prefixes: &["eu-isoe-"] },
    Partition { name: "aws-iso-f", suffix: "csp.hci.ic.gov", prefixes: &["us-isof-"] },
];

impl Partition {
    /// Returns the partition of a region.
    pub(crate) fn of(region: &str) -> Self {
        let claims = |partition: &&Self| partition.prefixes.iter().any(|prefix| region.starts_with(prefix));
        OTHERS.iter().find(claims).copied().unwrap_or(COMMERCIAL)
    }

    /// Returns true if a host, in lower case, is one of Amazon's own.
    pub(super) fn claims_host(host: &str) -> bool {
        let ends = |suffix: &str| host.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('.'));
        ends("api.aws") || ends(COMMERCIAL.suffix) || OTHERS.iter().any(|partition| ends(partition.suffix))
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

    #[test]
    fn regions_belong_to_the_partition_that_their_names_begin_like() {
        for (region, name, suffix) in [
            ("us-east-1", "aws", "amazonaws.com"),
            ("mx-central-1", "aws", "amazonaws.com"),
            ("xx-new-1", "aws", "amazonaws.com"),
            ("cn-northwest-1", "aws-cn", "amazonaws.com.cn"),
            ("us-gov-west-1", "aws-us-gov", "amazonaws.com"),
            ("eusc-de-east-1", "aws-eusc", "amazonaws.eu"),
            ("us-iso-east-1", "aws-iso", "c2s.ic.gov"),
            ("us-isob-east-1", "aws-iso-b", "sc2s.sgov.gov"),
            ("eu-isoe-west-1", "aws-iso-e", "cloud.adc-e.uk"),
            ("us-isof-south-1", "aws-iso-f", "csp.hci.ic.gov"),
        ] {
            let partition = Partition::of(region);
            assert_eq!((partition.name, partition.suffix), (name, suffix), "{region}");
        }
    }
}
