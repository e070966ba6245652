//! The configuration of an engine.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;

use crate::trace::Trace;
use crate::{Bandwidth, MemoryBudget};

/// The environment variables that can set a proxy for `https` origins, and those for `http` origins. The first variable that is set
/// determines the proxy.
pub(crate) const HTTPS_VARIABLES: &[&str] = &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
pub(crate) const HTTP_VARIABLES: &[&str] = &["http_proxy", "all_proxy", "ALL_PROXY"];

/// The maximum time for opening a connection, TLS included. If an address doesn't answer, a dial tries it from seven more sockets in this
/// time. If that fails, the next dial asks the resolver again.
pub(crate) const DIAL_MAX: Duration = Duration::from_secs(15);

/// Settings of an engine. The defaults are meant to reach full speed without tuning.
#[derive(Clone)]
pub struct LanesConfig {
    /// The certificates that are trusted.
    pub trust: Trust,
    /// The proxy for `https` origins, in the form of `HTTPS_PROXY`: `http://host:port`, `https://host:port` or `socks5://host:port`. It may
    /// contain user and password.
    pub https_proxy: Option<String>,
    /// The proxy for `http` origins, in the form of `http_proxy`.
    pub http_proxy: Option<String>,
    /// Hosts that are reached without a proxy, in the form of `NO_PROXY`. An entry is a name (which includes its subdomains), a `.suffix`,
    /// an address, a network (`10.0.0.0/8`, `fd00::/8`) or `*`. A name, a suffix or an address can end with a `:port`.
    pub no_proxy: Vec<String>,
    /// Fixed addresses of hosts, for private endpoints without DNS. The keys are host names in lower case. Connections to such a host use
    /// its addresses in turn, and the resolver isn't asked.
    pub resolve: BTreeMap<String, Vec<IpAddr>>,
    /// The maximum number of open connections to all origins together. `None` means 256.
    pub connections_max: Option<usize>,
    /// The limit on body bytes per second of all connections, for both directions together. Engines that hold clones of one `Bandwidth`
    /// share the limit.
    pub bandwidth: Option<Bandwidth>,
    /// The limit on bytes of buffers, which callers reserve with [`Lanes::memory`](crate::Lanes::memory). Engines that hold clones of one
    /// budget share it.
    pub memory: MemoryBudget,
    /// The number of threads for large bodies. `None` means one per core, at most eight.
    pub bulk_threads: Option<usize>,
    /// The `User-Agent` of requests that don't set one.
    pub user_agent: HeaderValue,
    /// A request fails if no byte has moved in either direction for this time.
    pub no_progress: Duration,
    /// Calls to an origin fail once it has given no sign of life for this time. Signs of life are bytes of a body, and answers other than
    /// 408, 429, 500, 502, 503 and 504. Zero disables retries.
    pub retry_for: Duration,
    /// The limit for an origin that has never answered, if it is shorter than [`retry_for`](Self::retry_for). The name, port or proxy of
    /// such an origin is often wrong.
    pub retry_unanswered_for: Duration,
    /// Records when each request was sent, and on which connection. `None` records nothing.
    pub trace: Option<Trace>,
    /// The minimum time of a TCP handshake. After a shorter handshake, a dial waits for the rest of this time, and reports the whole time
    /// as the round trip. Tests use this to imitate a long path on loopback, because they can't delay the kernel's handshake. Without this
    /// minimum, the dispatcher would treat the server as a nearby one.
    #[doc(hidden)]
    pub tcp_handshake_min: Duration,
}

/// The certificates that are trusted.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// PEM files with certificates to trust in addition to the operating system's. On Linux, the variables `SSL_CERT_FILE` and
    /// `SSL_CERT_DIR` replace the system's certificates. If their files can't be read, every request over TLS fails.
    pub extra_ca_files: Vec<PathBuf>,
}

impl std::fmt::Debug for LanesConfig {
    /// Leaves out the proxies' URLs, because they may contain a password.
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

impl Default for LanesConfig {
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
            // Other clients wait 20 to 60 s for a silent server. MinIO and GCS usually send the first byte of an answer within a few
            // seconds. Calls that may take longer set their own timeout.
            no_progress: Duration::from_secs(30),
            // A restart of a service or a machine, or a change of networks, usually ends within this time.
            retry_for: Duration::from_secs(120),
            // A dial without an answer fails after this time. Eight refused dials, with the pauses between them, take about as long. So a
            // mistyped name or port is reported soon.
            retry_unanswered_for: DIAL_MAX,
            trace: None,
            tcp_handshake_min: Duration::ZERO,
        }
    }
}

/// Returns the User-Agent: Laneway's version, the operating system and the architecture. It must not contain the word gzip. Our requests
/// accept gzip, so that objects stored with gzip arrive unchanged. If the User-Agent also contained the word, Google's servers would
/// compress their other answers (<https://cloud.google.com/storage/docs/json_api#gzip>).
fn user_agent() -> HeaderValue {
    use std::env::consts::{ARCH, OS};
    let text = format!(concat!("laneway/", env!("CARGO_PKG_VERSION"), " ({}; {})"), OS, ARCH);
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("laneway"))
}

impl LanesConfig {
    /// Returns the defaults with the proxies from the environment: `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` in upper or lower case, and
    /// `http_proxy` only in lower case. As in curl, `HTTP_PROXY` is ignored, because a client of a CGI server can set it with the header
    /// `Proxy`.
    pub fn from_env() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Does the same as [`from_env`](Self::from_env), but reads the variables with this function.
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
