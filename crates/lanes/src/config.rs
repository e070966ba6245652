//! The configuration of an engine.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;

use crate::trace::Trace;
use crate::{Bandwidth, MemoryBudget};

/// The variables that may set a proxy. The first one that is set decides.
pub(crate) const HTTPS_VARIABLES: &[&str] = &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
pub(crate) const HTTP_VARIABLES: &[&str] = &["http_proxy", "all_proxy", "ALL_PROXY"];

/// The longest time for a dial, TLS included. By then, new sockets have sent seven SYNs. The next dial asks the resolver again.
pub(crate) const DIAL_MAX: Duration = Duration::from_secs(15);

/// Settings of an engine. The defaults need no tuning for speed.
#[derive(Clone)]
pub struct Config {
    /// The certificates that are trusted.
    pub trust: Trust,
    /// Proxy for `https` origins (`http://host:port`, `https://host:port` or `socks5://host:port`, credentials allowed), as
    /// `HTTPS_PROXY` gives it.
    pub https_proxy: Option<String>,
    /// Proxy for `http` origins, as `http_proxy` gives it.
    pub http_proxy: Option<String>,
    /// Hosts that are reached directly, in the form of `NO_PROXY`: names with their subdomains, `.suffixes`, addresses, networks
    /// (`10.0.0.0/8`, `fd00::/8`) and `*`. All but networks may end with a `:port`.
    pub no_proxy: Vec<String>,
    /// Addresses of hosts by lower-case name. Connections use them in turn, and the resolver isn't asked. For private endpoints without
    /// DNS.
    pub resolve: BTreeMap<String, Vec<IpAddr>>,
    /// Most open connections over all origins. `None` means 256.
    pub connections_max: Option<usize>,
    /// Limit on body bytes a second over all connections, both directions together. Engines with a clone of it share it.
    pub bandwidth: Option<Bandwidth>,
    /// Buffers in flight that callers may reserve from [`Lanes::memory`](crate::Lanes::memory). Engines with a clone of it share it.
    pub memory: MemoryBudget,
    /// Threads for bulk. `None` starts one per core, at most eight.
    pub bulk_threads: Option<usize>,
    /// The `User-Agent` of requests that don't set one.
    pub user_agent: HeaderValue,
    /// The time that a request may go without a byte in either direction.
    pub no_progress: Duration,
    /// Calls to an origin end after this time without anything from it: no connection, no answer except 500, 502, 503 and 504, no byte of a
    /// body. Zero disables retries.
    pub retry_for: Duration,
    /// The same for an origin that has never answered, if that is shorter. Its name, port or proxy may be wrong.
    pub retry_unanswered_for: Duration,
    /// Where to record when each request was sent on which lane. `None` records nothing.
    pub trace: Option<Trace>,
    /// The shortest time that a TCP handshake takes. A path imitated on loopback can't delay the handshake itself, so without this minimum
    /// the dispatcher would take a far server for one nearby.
    #[doc(hidden)]
    pub tcp_handshake_min: Duration,
}

/// The certificates that are trusted.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// PEM files with certificates to trust in addition to the platform's. On Linux, `SSL_CERT_FILE` and `SSL_CERT_DIR` replace the
    /// platform's if set. If their files can't be read, every request over TLS fails.
    pub extra_ca_files: Vec<PathBuf>,
}

impl std::fmt::Debug for Config {
    /// Leaves out the proxies' URLs, which may hold a password.
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
            // Other clients wait 20 to 60 s for a silent server. MinIO and GCS send the first byte of a healthy answer within a few
            // seconds. Calls that are known to take longer set their own timeout.
            no_progress: Duration::from_secs(30),
            // Restarts of a service or a machine, and changes of networks, are over by then.
            retry_for: Duration::from_secs(120),
            // The time of one unanswered dial, or of eight refused ones. So a mistyped name or port is reported soon.
            retry_unanswered_for: DIAL_MAX,
            trace: None,
            tcp_handshake_min: Duration::ZERO,
        }
    }
}

/// Returns the User-Agent: Laneway's version, the operating system and the architecture. It must not contain the word gzip. Otherwise
/// Google's servers would compress their answers (<https://cloud.google.com/storage/docs/json_api#gzip>), since we accept gzip for objects
/// stored in that form.
fn user_agent() -> HeaderValue {
    use std::env::consts::{ARCH, OS};
    let text = format!(concat!("laneway/", env!("CARGO_PKG_VERSION"), " ({}; {})"), OS, ARCH);
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("laneway"))
}

impl Config {
    /// The defaults, with the proxies of the environment: `HTTPS_PROXY`, `http_proxy`, `ALL_PROXY`, `NO_PROXY` and their lower-case forms.
    /// `HTTP_PROXY` in upper case is ignored, as in curl, because a client of a CGI server can set it.
    pub fn from_env() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// The same, with the given lookup of variables.
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
