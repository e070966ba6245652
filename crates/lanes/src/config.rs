//! The configuration of an engine.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;

use crate::trace::Trace;
use crate::{Bandwidth, MemoryBudget};

/// The variables that may set a proxy, those first that come first.
pub(crate) const HTTPS_VARIABLES: &[&str] = &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
pub(crate) const HTTP_VARIABLES: &[&str] = &["http_proxy", "all_proxy", "ALL_PROXY"];

/// The longest that a dial takes, TLS included. Seven SYNs from new sockets have gone by then, and the next dial asks the resolver again.
pub(crate) const DIAL_MAX: Duration = Duration::from_secs(15);

/// Settings of an engine. The defaults are meant to be right; none of them has to be set for speed.
#[derive(Clone)]
pub struct Config {
    /// The certificates that are trusted.
    pub trust: Trust,
    /// Proxy for `https` origins (`http://host:port`, `https://host:port` or `socks5://host:port`, credentials allowed), as
    /// `HTTPS_PROXY` gives it.
    pub https_proxy: Option<String>,
    /// Proxy for `http` origins, as `http_proxy` gives it.
    pub http_proxy: Option<String>,
    /// Hosts that are reached directly, as `NO_PROXY` gives them: names with their subdomains, `.suffixes`, addresses, networks
    /// (`10.0.0.0/8`, `fd00::/8`), each of these but networks with a `:port` or without, and `*`.
    pub no_proxy: Vec<String>,
    /// Addresses of hosts, by their names in lower case: these are connected to and the resolver isn't asked. For private
    /// endpoints that no name server knows of. Several are used in turn.
    pub resolve: BTreeMap<String, Vec<IpAddr>>,
    /// Most connections open at once over all origins; `None` leaves the bound at 256.
    pub connections_max: Option<usize>,
    /// Body bytes a second over all connections, sent and received together; with other engines that have the same.
    pub bandwidth: Option<Bandwidth>,
    /// Buffers in flight that callers may reserve from [`Lanes::memory`](crate::Lanes::memory), as those of other engines
    /// that have the same may.
    pub memory: MemoryBudget,
    /// Threads for bulk; `None` starts as many as the machine has cores, at most eight.
    pub bulk_threads: Option<usize>,
    /// The `User-Agent` of requests that have none of their own.
    pub user_agent: HeaderValue,
    /// The time that a request may go without a byte in either direction.
    pub no_progress: Duration,
    /// The time without anything from an origin after which its calls end: no connection, no answer but 500, 502, 503 and 504, no byte of a
    /// body. Zero tries nothing again.
    pub retry_for: Duration,
    /// The same for an origin that has never answered, where that is shorter: its name, its port or its proxy may be wrong.
    pub retry_unanswered_for: Duration,
    /// Where to record who is sent when on which lane; `None` records nothing.
    pub trace: Option<Trace>,
    /// The least that a TCP handshake takes. An imitated path can't delay loopback's, by which the dispatcher would take a far server for
    /// one nearby.
    #[doc(hidden)]
    pub tcp_handshake_min: Duration,
}

/// The certificates that are trusted.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// PEM files whose certificates are trusted beside the platform's. Those are `SSL_CERT_FILE`'s and `SSL_CERT_DIR`'s where
    /// these are set, on Linux; what they name and can't be read ends each request over TLS.
    pub extra_ca_files: Vec<PathBuf>,
}

impl std::fmt::Debug for Config {
    /// Leaves the proxies' URLs out: they may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("trust", &self.trust)
            .field("https_proxy", &self.https_proxy.is_some())
            .field("http_proxy", &self.http_proxy.is_some())
            .field("no_proxy", &self.no_proxy)
            .field("resolve", &self.resolve)
            .field("connections_max", &self.connections_max)
            .field("bandwidth", &self.bandwidth)
            .field("memory", &self.memory)
            .field("no_progress", &self.no_progress)
            .field("retry_for", &self.retry_for)
            .field("retry_unanswered_for", &self.retry_unanswered_for)
            .field("trace", &self.trace)
            .field("tcp_handshake_min", &self.tcp_handshake_min)
            .finish()
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            trust: Trust::default(),
            https_proxy: None,
            http_proxy: None,
            no_proxy: Vec::new(),
            resolve: BTreeMap::new(),
            connections_max: None,
            bandwidth: None,
            memory: MemoryBudget::new(64 << 20),
            bulk_threads: None,
            user_agent: user_agent(),
            // Other clients wait 20 to 60 s for a silent server. MinIO and GCS both answer a healthy request's first byte within a few
            // seconds. Calls that are known to take longer set their own timeout.
            no_progress: Duration::from_secs(30),
            // A service is restarted, a machine rebooted, a network changed within that.
            retry_for: Duration::from_secs(120),
            // One dial that is not answered, or eight that are refused: a mistyped name or port is told of soon.
            retry_unanswered_for: DIAL_MAX,
            trace: None,
            tcp_handshake_min: Duration::ZERO,
        }
    }
}

/// Returns the User-Agent: Laneway's version, the operating system and the architecture. With the word gzip in it, Google's servers would compress their answers
/// (<https://cloud.google.com/storage/docs/json_api#gzip>), since we accept gzip for objects stored so.
fn user_agent() -> HeaderValue {
    use std::env::consts::{ARCH, OS};
    let text = format!(concat!("laneway/", env!("CARGO_PKG_VERSION"), " ({}; {})"), OS, ARCH);
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("laneway"))
}

impl Config {
    /// The defaults with the proxy variables of the environment: `HTTPS_PROXY`, `http_proxy`, `ALL_PROXY`, `NO_PROXY`
    /// and their lower-case forms. `HTTP_PROXY` in upper case is ignored, as curl does, because CGI servers let a
    /// client set it.
    pub fn from_env() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// The same with these variables.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&str]| names.iter().find_map(|n| variable(n).filter(|v| !v.is_empty()));
        Self {
            https_proxy: first(HTTPS_VARIABLES),
            http_proxy: first(HTTP_VARIABLES),
            no_proxy: first(&["no_proxy", "NO_PROXY"])
                .map(|list| {
                    list.split(',').map(|h| h.trim().to_ascii_lowercase()).filter(|h| !h.is_empty()).collect()
                })
                .unwrap_or_default(),
            ..Self::default()
        }
    }
}
