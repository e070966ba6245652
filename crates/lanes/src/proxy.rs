//! Which proxy a connection goes through.

use std::net::IpAddr;

use crate::error::{Error, Kind};
use crate::{Config, Origin, Scheme};

/// The proxies of an engine.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    https: Option<Proxy>,
    http: Option<Proxy>,
    direct: Vec<String>,
}

/// A proxy that is spoken to in clear text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Proxy {
    pub(crate) origin: Origin,
    /// The value of `Proxy-Authorization`, if the proxy's URL carries credentials.
    pub(crate) authorization: Option<String>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proxy({})", self.origin)
    }
}

impl Proxies {
    /// # Errors
    /// [`Kind::Invalid`] for a proxy that is no `http://` URL.
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let parse = |url: &Option<String>| url.as_deref().map(Proxy::parse).transpose();
        Ok(Self {
            https: parse(&config.https_proxy)?,
            http: parse(&config.http_proxy)?,
            direct: config.no_proxy.clone(),
        })
    }

    /// The proxy for `origin`, if it isn't reached directly. Loopback always is, and so are the addresses at which clouds
    /// hand this machine its credentials: no proxy could reach the one, none may see the other.
    pub(crate) fn for_origin(&self, origin: &Origin) -> Option<&Proxy> {
        let proxy = match origin.scheme {
            Scheme::Https => self.https.as_ref(),
            Scheme::Http => self.http.as_ref(),
        }?;
        let own = match origin.host.parse::<IpAddr>() {
            Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_link_local(),
            // fd00:ec2::254 is AWS's metadata service.
            Ok(IpAddr::V6(ip)) => ip.is_loopback() || ip.segments() == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254],
            Err(_) => matches!(&*origin.host, "localhost" | "metadata.google.internal"),
        };
        let direct = own || self.direct.iter().any(|rule| matches(rule, &origin.host, origin.port));
        (!direct).then_some(proxy)
    }
}

impl Proxy {
    fn parse(url: &str) -> Result<Self, Error> {
        let full = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let (credentials, address) = match full.split_once("://") {
            Some((scheme, rest)) => match rest.rsplit_once('@') {
                Some((user, host)) => (Some(user.to_owned()), format!("{scheme}://{host}")),
                None => (None, full),
            },
            None => (None, full),
        };
        let origin = Origin::parse(&address)?;
        if origin.scheme == Scheme::Https {
            return Err(Error::new(
                Kind::Invalid,
                format!("proxy {origin}: only http:// proxies are supported"),
            ));
        }
        let authorization = credentials.map(|c| {
            use base64::Engine as _;
            let plain = percent_encoding::percent_decode_str(&c).collect::<Vec<u8>>();
            format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(plain))
        });
        Ok(Self { origin, authorization })
    }
}

/// Whether a `NO_PROXY` rule names the host: `*`, a name and all its subdomains, a `.suffix`, `host:port`, or an
/// address.
fn matches(rule: &str, host: &str, port: u16) -> bool {
    if rule == "*" || rule == host {
        return true;
    }
    let (rule, wanted) = match rule.rsplit_once(':') {
        Some((name, p)) if !name.contains(':') => (name, p.parse::<u16>().ok()),
        _ => (rule, None),
    };
    if wanted.is_some_and(|p| p != port) {
        return false;
    }
    let suffix = rule.trim_start_matches('.');
    host == suffix || (!suffix.is_empty() && host.strip_suffix(suffix).is_some_and(|h| h.ends_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(no_proxy: &[&str]) -> Proxies {
        Proxies::new(&Config {
            https_proxy: Some("http://user:p%40ss@proxy:3128".into()),
            no_proxy: no_proxy.iter().map(|s| (*s).to_owned()).collect(),
            ..Config::default()
        })
        .unwrap()
    }

    #[test]
    fn a_suffix_rule_covers_subdomains_and_no_lookalikes() {
        let p = proxies(&["example.com", ".internal", "host:8443"]);
        let via = |url: &str| p.for_origin(&Origin::parse(url).unwrap()).is_some();
        assert!(!via("https://example.com") && !via("https://a.example.com") && !via("https://x.internal"));
        assert!(via("https://badexample.com"));
        assert!(!via("https://host:8443") && via("https://host:9443"));
    }

    #[test]
    fn loopback_and_plain_http_do_not_go_through_the_https_proxy() {
        let p = proxies(&[]);
        assert!(p.for_origin(&Origin::parse("https://127.0.0.1:4443").unwrap()).is_none());
        assert!(p.for_origin(&Origin::parse("http://example.com").unwrap()).is_none());
    }

    #[test]
    fn this_machines_own_credentials_never_pass_a_proxy() {
        let p =
            Proxies::new(&Config { http_proxy: Some("http://proxy".into()), ..Config::default() }).unwrap();
        for url in ["http://169.254.169.254", "http://metadata.google.internal", "http://[fd00:ec2::254]"] {
            assert!(p.for_origin(&Origin::parse(url).unwrap()).is_none(), "{url}");
        }
        assert!(p.for_origin(&Origin::parse("http://example.com").unwrap()).is_some());
    }

    #[test]
    fn credentials_in_the_url_become_a_header_and_stay_out_of_debug_output() {
        let p = proxies(&[]);
        let proxy = p.for_origin(&Origin::parse("https://example.com").unwrap()).unwrap();
        assert_eq!(proxy.authorization.as_deref(), Some("Basic dXNlcjpwQHNz"));
        assert!(!format!("{proxy:?}").contains("dXNl") && !format!("{proxy:?}").contains("user"));
    }
}
