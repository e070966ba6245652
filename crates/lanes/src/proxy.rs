//! Chooses the proxy of a connection, and opens tunnels through a proxy.

use std::io;
use std::net::IpAddr;

use http::HeaderValue;
use ipnet::IpNet;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_socks::tcp::Socks5Stream;

use crate::config::{HTTP_VARIABLES, HTTPS_VARIABLES};
use crate::error::{Error, Kind};
use crate::{LanesConfig, Origin, Scheme};

/// The proxies of an engine.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    https: Option<Proxy>,
    http: Option<Proxy>,
    direct: Vec<NoProxyRule>,
}

/// A proxy. If its URL begins with `https://`, the connection to the proxy itself uses TLS.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Proxy {
    pub(crate) origin: Origin,
    pub(crate) protocol: ProxyProtocol,
    /// The environment variable that set the proxy, or `the configuration`, for errors.
    set_by: &'static str,
}

/// The proxy's protocol, with the credentials of its URL.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum ProxyProtocol {
    Http {
        /// The value of `Proxy-Authorization`.
        authorization: Option<String>,
    },
    /// SOCKS5 (RFC 1928) with user and password (RFC 1929). The proxy resolves host names.
    Socks5 { login: Option<(String, String)> },
}

impl std::fmt::Display for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.protocol {
            ProxyProtocol::Http { .. } => write!(f, "{}", self.origin),
            ProxyProtocol::Socks5 { .. } => write!(f, "socks5://{}", self.origin.authority()),
        }
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proxy({self})")
    }
}

impl Proxies {
    /// # Errors
    /// [`Kind::Invalid`] for a proxy that isn't an `http://`, `https://` or `socks5://` URL.
    pub(crate) fn new(config: &LanesConfig) -> Result<Self, Error> {
        let parse = |url: &Option<String>, variables: &[&'static str]| {
            let is_it = |name: &&&str| std::env::var(name).ok().as_deref() == url.as_deref();
            let set_by = variables.iter().find(is_it).copied().unwrap_or("the configuration");
            let parsed = url.as_deref().map(|url| Proxy::parse(url, set_by)).transpose();
            parsed.map_err(|e| named(set_by, &e))
        };
        Ok(Self {
            https: parse(&config.https_proxy, HTTPS_VARIABLES)?,
            http: parse(&config.http_proxy, HTTP_VARIABLES)?,
            direct: config.no_proxy.iter().map(|rule| NoProxyRule::parse(rule)).collect(),
        })
    }

    /// Returns the proxy for `origin`, or `None` if it is reached directly. Requests to loopback and to the clouds' credential services
    /// never use a proxy. A proxy can't reach this machine's loopback, and must not see this machine's credentials.
    pub(crate) fn for_origin(&self, origin: &Origin) -> Option<&Proxy> {
        let proxy = match origin.scheme {
            Scheme::Https => self.https.as_ref(),
            Scheme::Http => self.http.as_ref(),
        }?;
        let address = address(&origin.host);
        let own = match address {
            Some(ip) => is_of_this_machine(ip),
            None => matches!(origin.host.trim_end_matches('.'), "localhost" | "metadata.google.internal"),
        };
        let direct = own || self.direct.iter().any(|rule| rule.names(&origin.host, address, origin.port));
        (!direct).then_some(proxy)
    }
}

impl Proxy {
    /// Returns the proxy and the variable that set it, for errors.
    pub(crate) fn named(&self) -> String {
        format!("the proxy in {}, {self}", self.set_by)
    }

    /// Returns the value of `Proxy-Authorization`, if the proxy uses HTTP and its URL has credentials.
    pub(crate) fn authorization(&self) -> Option<&str> {
        match &self.protocol {
            ProxyProtocol::Http { authorization } => authorization.as_deref(),
            ProxyProtocol::Socks5 { .. } => None,
        }
    }

    /// Returns whether plain HTTP requests also go through a tunnel. If not, Laneway sends them to the proxy itself.
    pub(crate) fn tunnels_all(&self) -> bool {
        matches!(self.protocol, ProxyProtocol::Socks5 { .. })
    }

    fn parse(url: &str, set_by: &'static str) -> Result<Self, Error> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        let (credentials, host) = match rest.rsplit_once('@') {
            Some((credentials, host)) => (Some(credentials), host),
            None => (None, rest),
        };
        // For both schemes the proxy resolves names, since a machine behind a proxy often can't.
        if ["socks5", "socks5h"].iter().any(|socks| scheme.eq_ignore_ascii_case(socks)) {
            let login = credentials.map(login).transpose()?;
            return Ok(Self {
                origin: socks_origin(host)?,
                protocol: ProxyProtocol::Socks5 { login },
                set_by,
            });
        }
        let address = format!("{scheme}://{host}");
        if !["http", "https"].iter().any(|http| scheme.eq_ignore_ascii_case(http)) {
            let why = "it must start with http://, https:// or socks5://";
            return Err(Error::new(Kind::Invalid, format!("{address:?} isn't a proxy URL: {why}")));
        }
        let origin = Origin::parse(&address)?;
        let authorization = credentials.map(|c| {
            use base64::Engine as _;
            let plain = percent_encoding::percent_decode_str(c).collect::<Vec<u8>>();
            format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(plain))
        });
        Ok(Self { origin, protocol: ProxyProtocol::Http { authorization }, set_by })
    }
}

/// The port of a SOCKS proxy if its URL has no port (RFC 1928, section 3).
const SOCKS_PORT: u16 = 1080;

/// Returns the origin of a SOCKS proxy. Its scheme is HTTP, because connections to the proxy don't use TLS.
fn socks_origin(host: &str) -> Result<Origin, Error> {
    let mut origin = Origin::parse(&format!("http://{host}"))?;
    let authority = host.split(['/', '?', '#']).next().unwrap_or(host);
    if origin.port == 80 && !authority.ends_with(":80") {
        origin.port = SOCKS_PORT;
    }
    Ok(origin)
}

/// Parses the user and password of a SOCKS proxy. Each has 1 to 255 bytes (RFC 1929, section 2). The error contains neither of them.
fn login(credentials: &str) -> Result<(String, String), Error> {
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let read = |part: &str| {
        let plain = percent_encoding::percent_decode_str(part).decode_utf8().ok()?.into_owned();
        (1..=255).contains(&plain.len()).then_some(plain)
    };
    let message = "a SOCKS5 proxy needs both a user and a password in its URL, each of 1 to 255 bytes";
    read(user).zip(read(password)).ok_or_else(|| Error::new(Kind::Invalid, message))
}

/// Returns the IP address if the host is one. An IPv4 address that is written as an IPv6 address (`::ffff:1.2.3.4`) is converted.
fn address(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok().map(|ip: IpAddr| ip.to_canonical())
}

/// Returns whether the address belongs to this machine, or to a service that gives it credentials. Such services are the clouds' metadata
/// services (169.254.169.254, and AWS's fd00:ec2::254), and those of ECS (169.254.170.2) and EKS (169.254.170.23, fd00:ec2::23).
fn is_of_this_machine(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_link_local(),
        IpAddr::V6(ip) => {
            let [first, second, ..] = ip.segments();
            ip.is_loopback() || ip.is_unicast_link_local() || (first, second) == (0xfd00, 0xec2)
        }
    }
}

/// One entry of `NO_PROXY`.
#[derive(Clone, PartialEq, Eq, Debug)]
enum NoProxyRule {
    /// `*`.
    Everything,
    /// A range of addresses, such as `10.0.0.0/8` or `fd00::/8`.
    Network(IpNet),
    /// An address, or a name with all its subdomains (also written as `.name` and `*.name`). Without a port it applies to all ports.
    Host { host: String, address: Option<IpAddr>, port: Option<u16> },
}

impl NoProxyRule {
    fn parse(rule: &str) -> Self {
        let rule = rule.trim();
        if rule == "*" {
            return Self::Everything;
        }
        if let Ok(network) = rule.replace(['[', ']'], "").parse::<IpNet>() {
            return Self::Network(network);
        }
        // Several colons without brackets are an IPv6 address without a port.
        let (host, port) = match rule.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port.parse().ok()),
            _ => (rule, None),
        };
        let name = host.strip_prefix('*').unwrap_or(host).trim_matches('.').to_ascii_lowercase();
        Self::Host { address: address(host), host: name, port }
    }

    fn names(&self, host: &str, ip: Option<IpAddr>, port: u16) -> bool {
        match self {
            Self::Everything => true,
            Self::Network(network) => ip.is_some_and(|ip| network.contains(&ip)),
            Self::Host { port: Some(only), .. } if *only != port => false,
            Self::Host { address: Some(address), .. } => ip == Some(*address),
            Self::Host { host: name, .. } => {
                let host = host.trim_end_matches('.');
                let below = host.strip_suffix(name.as_str());
                !name.is_empty() && below.is_some_and(|below| below.is_empty() || below.ends_with('.'))
            }
        }
    }
}

/// Returns an error about a proxy, with the variables that may have set it.
fn named(variables: &str, error: &Error) -> Error {
    Error::new(Kind::Invalid, format!("the proxy of {variables}: {error}"))
}

// Tunnels through a proxy. For an HTTP proxy, CONNECT (RFC 9110, section 9.3.6) opens a tunnel for TLS to the origin. Through a SOCKS5
// proxy (RFC 1928), all connections are tunnels.

/// Asks a proxy to open a tunnel to the origin.
///
/// # Errors
/// [`Kind::Connect`], naming the proxy and its answer.
pub(crate) async fn tunnel(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    origin: &Origin,
    proxy: &Proxy,
    user_agent: &HeaderValue,
) -> Result<(), Error> {
    match &proxy.protocol {
        ProxyProtocol::Http { authorization } => {
            by_connect(stream, origin, proxy, authorization.as_deref(), user_agent).await
        }
        ProxyProtocol::Socks5 { login } => by_socks(stream, origin, proxy, login.as_ref()).await,
    }
}

/// Opens a tunnel by SOCKS5. It sends the host's name to the proxy, so that our own resolver isn't asked.
async fn by_socks(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    origin: &Origin,
    proxy: &Proxy,
    login: Option<&(String, String)>,
) -> Result<(), Error> {
    let target = (&*origin.host, origin.port);
    let opened = match login {
        Some((user, password)) => {
            Socks5Stream::connect_with_password_and_socket(stream, target, user, password).await
        }
        None => Socks5Stream::connect_with_socket(stream, target).await,
    };
    match opened {
        Ok(_) => Ok(()),
        Err(tokio_socks::Error::Io(e)) => {
            Err(Error::because(Kind::Connect, format!("the connection to proxy {proxy} was lost"), e))
        }
        Err(e) => {
            let target = format!("{}:{}", origin.host, origin.port);
            Err(Error::because(Kind::Connect, format!("proxy {proxy} refused a tunnel to {target}"), e))
        }
    }
}

async fn by_connect(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    origin: &Origin,
    proxy: &Proxy,
    authorization: Option<&str>,
    user_agent: &HeaderValue,
) -> Result<(), Error> {
    let failed =
        |e: io::Error| Error::because(Kind::Connect, format!("the connection to proxy {proxy} was lost"), e);
    let target = match origin.host.contains(':') {
        true => format!("[{}]:{}", origin.host, origin.port),
        false => format!("{}:{}", origin.host, origin.port),
    };
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if let Ok(user_agent) = user_agent.to_str() {
        request += &format!("User-Agent: {user_agent}\r\n");
    }
    if let Some(authorization) = authorization {
        request += &format!("Proxy-Authorization: {authorization}\r\n");
    }
    request += "\r\n";
    stream.write_all(request.as_bytes()).await.map_err(failed)?;
    stream.flush().await.map_err(failed)?;
    // Read the head one byte at a time, because the bytes after it belong to TLS. The head has only a few hundred bytes, and comes
    // once per connection.
    let mut head = Vec::with_capacity(256);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > 8192 {
            return Err(Error::new(
                Kind::Connect,
                format!("proxy {proxy} sent a head of more than 8192 bytes"),
            ));
        }
        head.push(stream.read_u8().await.map_err(failed)?);
    }
    let status = head.split(|b| *b == b' ').nth(1).unwrap_or_default();
    match status {
        [b'2', ..] => Ok(()),
        _ => Err(Error::new(
            Kind::Connect,
            format!("proxy {proxy} refused a tunnel to {target} ({})", String::from_utf8_lossy(status)),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(no_proxy: &[&str]) -> Proxies {
        Proxies::new(&LanesConfig {
            https_proxy: Some("http://user:p%40ss@proxy:3128".into()),
            no_proxy: no_proxy.iter().map(|s| (*s).to_owned()).collect(),
            ..LanesConfig::default()
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
    fn addresses_and_networks_are_left_out_in_every_notation() {
        let rules = ["10.0.0.0/8", "192.168.1.5", "fd12::/16", "[fd34::7]:8443", "fd56::1", "*.corp", "x"];
        let p = proxies(&rules);
        let via = |url: &str| p.for_origin(&Origin::parse(url).unwrap()).is_some();
        let direct = [
            "https://10.20.30.40:9000",
            "https://192.168.1.5",
            "https://[fd12:3456::1]",
            "https://[fd34::7]:8443",
            "https://[fd56:0::1]",
            "https://a.b.corp",
            "https://X",
            "https://[::ffff:10.1.1.1]",
        ];
        for url in direct {
            assert!(!via(url), "{url}");
        }
        let through = ["https://11.0.0.1", "https://192.168.1.50", "https://[fd13::1]", "https://[fd34::7]"];
        for url in through.into_iter().chain(["https://10.0.0.0.example.com", "https://xcorp"]) {
            assert!(via(url), "{url}");
        }
        assert!(proxies(&["*"]).for_origin(&Origin::parse("https://h").unwrap()).is_none());
        assert!(
            via("https://h") && proxies(&[""]).for_origin(&Origin::parse("https://h").unwrap()).is_some()
        );
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
            Proxies::new(&LanesConfig { http_proxy: Some("http://proxy".into()), ..LanesConfig::default() })
                .unwrap();
        let own = [
            "http://169.254.169.254",
            "http://169.254.170.2",
            "http://169.254.170.23",
            "http://metadata.google.internal",
            "http://METADATA.google.internal.:80",
            "http://[fd00:ec2::254]",
            "http://[fd00:ec2::23]",
            "http://[fe80::a9fe:a9fe]",
            "http://[::ffff:169.254.169.254]",
        ];
        for url in own {
            assert!(p.for_origin(&Origin::parse(url).unwrap()).is_none(), "{url}");
        }
        assert!(p.for_origin(&Origin::parse("http://example.com").unwrap()).is_some());
    }

    #[test]
    fn credentials_in_the_url_become_a_header_and_stay_out_of_debug_output() {
        let p = proxies(&[]);
        let proxy = p.for_origin(&Origin::parse("https://example.com").unwrap()).unwrap();
        assert_eq!(proxy.authorization(), Some("Basic dXNlcjpwQHNz"));
        assert!(!format!("{proxy:?}").contains("dXNl") && !format!("{proxy:?}").contains("user"));
    }

    fn socks(url: &str) -> Result<Proxies, Error> {
        Proxies::new(&LanesConfig { https_proxy: Some(url.into()), ..LanesConfig::default() })
    }

    #[test]
    fn a_socks_url_has_a_login_and_a_port_of_its_own() {
        let store = Origin::parse("https://example.com").unwrap();
        for (url, port) in [
            ("socks5://us%3Aer:p%40ss@Proxy", 1080),
            ("SOCKS5H://us%3Aer:p%40ss@proxy:/", 1080),
            ("socks5h://us%3Aer:p%40ss@proxy:80", 80),
        ] {
            let proxies = socks(url).unwrap();
            let proxy = proxies.for_origin(&store).unwrap();
            assert_eq!((&*proxy.origin.host, proxy.origin.port), ("proxy", port), "{url}");
            let login = Some(("us:er".to_owned(), "p@ss".to_owned()));
            assert!(proxy.protocol == ProxyProtocol::Socks5 { login }, "{url}");
            assert!(!format!("{proxy:?} {}", proxy.named()).contains("ss@"), "{url}");
            assert_eq!(proxy.authorization(), None);
        }
    }

    #[test]
    fn a_socks_url_that_is_wrong_is_refused_without_its_password() {
        let long = "x".repeat(256);
        for url in [
            "socks5://user:secret@",
            "socks5://user:secret@host:99999",
            "socks4://user:secret@host",
            "socks://user:secret@host",
            &format!("socks5://{long}:secret@host"),
            "socks5://secret@host",
            "socks5://:secret@host",
            "socks5://%ff:secret@host",
        ] {
            let error = socks(url).unwrap_err();
            assert_eq!(error.kind(), Kind::Invalid, "{url}");
            assert!(!error.to_string().contains("secret"), "{url}: {error}");
        }
    }
}
