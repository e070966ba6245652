//! An origin (scheme, host and port), and the measured path to it.

use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use crate::ClientCertificate;
use crate::error::{Error, Kind};

/// The security of a connection to an [`Origin`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scheme {
    /// Clear text, with HTTP/1.1 only.
    Http,
    /// TLS, with the protocol that ALPN selects.
    Https,
}

/// The protocol of a connection, with the properties that the dispatcher needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Protocol {
    name: &'static str,
    is_multiplexed: bool,
}

impl Protocol {
    /// HTTP/1.1, with one request at a time.
    pub const H1: Self = Self::new("h1", false);
    /// HTTP/2, with many concurrent requests.
    pub const H2: Self = Self::new("h2", true);

    /// Describes a protocol. The name is used in logs and statistics.
    pub(crate) const fn new(name: &'static str, is_multiplexed: bool) -> Self {
        Self { name, is_multiplexed }
    }

    /// The name used in logs and statistics, such as `h1` or `h2`.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Returns whether a connection carries many requests at once. Such a connection stays usable if a request is dropped. If a connection
    /// carries one request at a time, it must be closed when its request is dropped. But it can become a freight lane in the middle of a
    /// body.
    pub fn is_multiplexed(self) -> bool {
        self.is_multiplexed
    }
}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Scheme, host and port of a server. Only requests of the same origin share connections.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Origin {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// Host name or address in lower case. An IPv6 address has no brackets.
    pub host: Arc<str>,
    /// TCP port.
    pub port: u16,
    /// The client certificate for a server that asks for one. The same server with another certificate, or without one, is another origin,
    /// so they don't share connections.
    pub client_certificate: Option<Arc<ClientCertificate>>,
}

impl Origin {
    /// Reads the origin of an `http://` or `https://` URL. Path and query are ignored.
    ///
    /// # Errors
    /// [`Kind::Invalid`] when the URL has another scheme, no host, or doesn't parse.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let invalid = |why: &str| Error::new(Kind::Invalid, format!("{url:?} isn't an endpoint URL: {why}"));
        let uri: http::Uri = url.parse().map_err(|e: http::uri::InvalidUri| invalid(&e.to_string()))?;
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            _ => return Err(invalid("it must start with http:// or https://")),
        };
        let whole = uri.host().filter(|h| !h.is_empty()).ok_or_else(|| invalid("it names no host"))?;
        let (host, is_host) = match whole.strip_prefix('[') {
            Some(rest) => {
                let address = rest.strip_suffix(']').unwrap_or_default();
                let number = address.split('%').next().unwrap_or_default();
                (address, number.parse::<Ipv6Addr>().is_ok())
            }
            // These characters belong to addresses or user names. If a host name contained one, the written origin would be parsed as
            // another origin.
            None => (whole, !whole.contains(['[', ']', ':', '%'])),
        };
        if !is_host {
            return Err(invalid("the text in brackets isn't an address"));
        }
        // Parse the port here, because `Uri` ignores a suffix that isn't a port, and would use the scheme's default port.
        let named = uri.authority().and_then(|authority| authority.as_str().rsplit('@').next());
        let port = match named.and_then(|named| named.strip_prefix(whole)) {
            Some("" | ":") => Some(default_port(scheme)),
            behind => behind.and_then(|behind| number(behind.strip_prefix(':')?)),
        };
        let port = port.ok_or_else(|| invalid("its port isn't a number up to 65535"))?;
        Ok(Self { scheme, host: host.to_ascii_lowercase().into(), port, client_certificate: None })
    }

    /// Returns the value of the `Host` header and of `:authority`. The scheme's default port is left out, because stores leave it out when
    /// they check a signature that covers this header.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.to_string() };
        if self.port == default_port(self.scheme) { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(f, "{scheme}://{}", self.authority())
    }
}

/// Parses a port, which may contain only digits (`u16::from_str` also accepts a sign).
fn number(port: &str) -> Option<u16> {
    port.parse().ok().filter(|_| port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn default_port(scheme: Scheme) -> u16 {
    match scheme {
        Scheme::Http => 80,
        Scheme::Https => 443,
    }
}

/// The measured properties of the network path to an origin: its round trip, protocol and rate. Callers use these to compare the cost of
/// one more request with the cost of more bytes.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Path {
    /// The shortest measured round trip.
    pub round_trip: Option<Duration>,
    /// The protocol that the origin speaks, or is expected to speak.
    pub protocol: Option<Protocol>,
    /// The highest rate, in bytes per second, at which bytes came from the origin in the last ten seconds.
    pub rate: Option<f64>,
    /// True if transfers have filled the path, so that `rate` is the path's capacity. If it is false, the capacity may be higher than
    /// `rate`.
    pub is_full: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_port_is_left_out_of_the_authority() {
        assert_eq!(
            Origin::parse("https://Storage.googleapis.com/x").unwrap().authority(),
            "storage.googleapis.com"
        );
        assert_eq!(Origin::parse("https://h:443").unwrap().authority(), "h");
        assert_eq!(Origin::parse("http://h:443").unwrap().authority(), "h:443");
    }

    #[test]
    fn an_ipv6_host_keeps_its_brackets_in_the_authority_only() {
        let origin = Origin::parse("http://[::1]:9000").unwrap();
        assert_eq!((&*origin.host, origin.authority().as_str()), ("::1", "[::1]:9000"));
    }

    #[test]
    fn a_port_that_is_none_is_refused_and_an_empty_one_is_the_schemes_own() {
        for url in [
            "http://h:65536",
            "http://h:99999/x",
            "http://h:+80",
            "http://[::1]:70000",
            "http://[]9000",
            "http://[::1]9000",
            "http://[::@h:::]:9000",
        ] {
            assert!(Origin::parse(url).is_err(), "{url}");
        }
        assert_eq!(Origin::parse("http://h:/x").unwrap().port, 80);
        assert_eq!(Origin::parse("http://user:word@h:9000").unwrap().to_string(), "http://h:9000");
    }

    #[test]
    fn brackets_stand_around_an_address_and_nowhere_else() {
        for url in [
            "http://)[AAAAA:]:9000",
            "http://a[::1]",
            "http://[::1]]:80",
            "http://[a]",
            "http://a]",
            "http://[::@%:::]:0",
        ] {
            assert!(Origin::parse(url).is_err(), "{url}");
        }
        assert_eq!(&*Origin::parse("http://[fe80::1%25eth0]:80").unwrap().host, "fe80::1%25eth0");
    }

    #[test]
    fn another_scheme_is_refused() {
        assert!(Origin::parse("ftp://h").is_err());
        assert!(Origin::parse("host:9000").is_err());
    }
}
