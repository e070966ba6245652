//! What clients share: threads, memory, connections.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use laneway_lanes::trace::Trace;
use laneway_lanes::{Bandwidth, Config, Lanes, MemoryBudget, Trust};

use crate::files::Files;
use crate::fork::PerProcess;
use crate::runtime::Runtime;
use crate::{Error, descriptors};

/// Below this even one request at a time would wait for itself.
const MEMORY_MIN: usize = 1 << 20;

/// The engine of clients that name none. It holds no threads while none of them lives.
static DEFAULT: OnceLock<Engine> = OnceLock::new();

/// What carries clients' work out: threads of its own and the connections, within budgets of memory, connections and
/// bandwidth. Clients that name no engine share the process's; clones of one are the same engine.
///
/// Threads are started with the first client and end with the last one and its jobs. Connections are shared by clients
/// that reach servers in the same way, with the same certificates, proxies and addresses; those that differ in that have
/// their own within the engine, and each of these ways may have [`connections_max`](EngineBuilder::connections_max).
///
/// After a `fork` the child has an engine of its own, of the same budgets, from its first call on. What ran in the parent
/// goes on there: a job of the parent's has no more events in the child, and its calls, downloads, writers and streams are errors of
/// kind cancelled there; a reader reads on. A program that begins in Rust's `main` should not fork while its threads start or end: the
/// standard library (1.95) holds a lock then, without which no thread starts in the child.
#[derive(Clone, Debug)]
pub struct Engine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    budgets: EngineBuilder,
    /// A recorder is another process's where this one is a child.
    made_in: u32,
    running: PerProcess<Mutex<Weak<Machinery>>>,
}

/// Says how much an [`Engine`] may use. The defaults are meant to be right; none of them has to be set for speed. Its messages go to
/// `tracing`: see [the crate's page](crate#messages).
#[derive(Clone, Default, Debug)]
pub struct EngineBuilder {
    budgets: Budgets,
    trace: Option<Trace>,
    tcp_handshake_min: Duration,
}

/// What was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Budgets {
    memory: Option<usize>,
    connections_max: Option<usize>,
    bandwidth: Option<u64>,
    threads: Option<usize>,
}

/// How servers are reached. Those that are reached alike share connections.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Network {
    pub(crate) ca_files: Vec<PathBuf>,
    pub(crate) https_proxy: Option<String>,
    pub(crate) http_proxy: Option<String>,
    pub(crate) no_proxy: Vec<String>,
    pub(crate) resolve: BTreeMap<String, Vec<IpAddr>>,
    pub(crate) stall_timeout: Duration,
}

impl fmt::Debug for Network {
    /// Leaves the proxies' URLs out: they may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("ca_files", &self.ca_files)
            .field("https_proxy", &self.https_proxy.is_some())
            .field("http_proxy", &self.http_proxy.is_some())
            .field("no_proxy", &self.no_proxy)
            .field("resolve", &self.resolve)
            .field("stall_timeout", &self.stall_timeout)
            .finish()
    }
}

/// A running engine: its threads, and what they work on.
#[derive(Debug)]
pub(crate) struct Machinery {
    pub(crate) runtime: Runtime,
    pub(crate) files: Files,
    /// Threads that the machine runs at once.
    pub(crate) cores: usize,
    /// Held by each reader that is read far ahead: as many as there are share the room for that.
    pub(crate) reading_on: Arc<()>,
    config: Config,
    lanes: Mutex<Vec<(Network, Lanes)>>,
}

impl Engine {
    /// Begins an engine of one's own, for clients that shall not share the process's.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// The process's engine. Where nobody has used it yet, it has these budgets.
    pub(crate) fn of_process(wanted: &EngineBuilder) -> Self {
        let engine = DEFAULT.get_or_init(|| wanted.clone().build());
        if wanted.budgets != Budgets::default() && wanted.budgets != engine.0.budgets.budgets {
            tracing::warn!(
                "another client has started the process's engine, whose budgets stay: name an engine of your own"
            );
        }
        engine.clone()
    }

    /// The engine at work in this process.
    ///
    /// # Errors
    /// When the system refuses a thread or the descriptors that one needs.
    pub(crate) fn running(&self) -> Result<Arc<Machinery>, Error> {
        let mut running = lock(self.0.running.get());
        if let Some(running) = running.upgrade() {
            return Ok(running);
        }
        let started = Arc::new(Machinery::start(&self.0)?);
        *running = Arc::downgrade(&started);
        Ok(started)
    }
}

impl EngineBuilder {
    /// Bytes of buffers in flight, at least 1 MiB; 64 MiB where nothing is said. What waits for memory waits in order.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Self {
        self.budgets.memory = Some(bytes);
        self
    }

    /// Most connections open at once over all servers, at least one; 256 where nothing is said, and fewer where the process may have fewer than
    /// 1024 files open.
    #[must_use]
    pub fn connections_max(mut self, connections: usize) -> Self {
        self.budgets.connections_max = Some(connections.max(1));
        self
    }

    /// Body bytes a second over all connections, sent and received together; without a limit where nothing is said.
    #[must_use]
    pub fn bandwidth_limit(mut self, bytes_per_second: u64) -> Self {
        self.budgets.bandwidth = Some(bytes_per_second);
        self
    }

    /// Threads that decrypt and checksum bulk, at least one; as many as the machine has cores and at most eight where
    /// nothing is said. There are two more, which mostly wait, and some for file operations while there are any.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.budgets.threads = Some(threads.max(1));
        self
    }

    /// Records who is sent when on which connection.
    #[doc(hidden)]
    #[must_use]
    pub fn trace(mut self, trace: Trace) -> Self {
        self.trace = Some(trace);
        self
    }

    /// The least that a TCP handshake takes, for a path that is imitated on loopback, where it takes no time.
    #[doc(hidden)]
    #[must_use]
    pub fn tcp_handshake_min(mut self, time: Duration) -> Self {
        self.tcp_handshake_min = time;
        self
    }

    /// The engine. Its threads are started with its first client.
    pub fn build(self) -> Engine {
        Engine(Arc::new(Inner { budgets: self, made_in: std::process::id(), running: PerProcess::new() }))
    }
}

impl Machinery {
    fn start(engine: &Inner) -> Result<Self, Error> {
        let EngineBuilder { budgets, trace, tcp_handshake_min } = engine.budgets.clone();
        let trace = trace.filter(|_| engine.made_in == std::process::id());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let usual = Config::default();
        let config = Config {
            memory: budgets.memory.map_or(usual.memory, |bytes| MemoryBudget::new(bytes.max(MEMORY_MIN))),
            connections_max: budgets.connections_max.or_else(descriptors::connections_max),
            bandwidth: budgets.bandwidth.map(Bandwidth::limited_to),
            bulk_threads: budgets.threads,
            trace,
            tcp_handshake_min,
            ..Config::default()
        };
        Ok(Self {
            runtime: Runtime::start()?,
            files: Files::new(Files::threads_for(cores)),
            cores,
            reading_on: Arc::default(),
            config,
            lanes: Mutex::default(),
        })
    }

    /// Connections to servers that are reached in this way.
    ///
    /// # Errors
    /// For an unreadable CA file, a proxy that is no URL, or threads that can't be started.
    pub(crate) fn lanes(&self, network: &Network) -> Result<Lanes, Error> {
        let mut all = lock(&self.lanes);
        if let Some((_, lanes)) = all.iter().find(|(known, _)| known == network) {
            return Ok(lanes.clone());
        }
        let Network { ca_files, https_proxy, http_proxy, no_proxy, resolve, stall_timeout } = network.clone();
        let lanes = Lanes::start(Config {
            trust: Trust { extra_ca_files: ca_files },
            https_proxy,
            http_proxy,
            no_proxy,
            resolve,
            no_progress: stall_timeout,
            ..self.config.clone()
        })?;
        all.push((network.clone(), lanes.clone()));
        Ok(lanes)
    }
}

impl Drop for Machinery {
    fn drop(&mut self) {
        self.files.close();
    }
}

impl Network {
    /// The same where a server may say nothing for half of the time for which is tried again, so that another connection is tried
    /// before that is over.
    pub(crate) fn heard_within(mut self, retry_for: Duration) -> Self {
        // A longer timeout that a caller has asked for stays.
        if !retry_for.is_zero() && self.stall_timeout == Self::default().stall_timeout {
            self.stall_timeout = self.stall_timeout.min(retry_for / 2);
        }
        self
    }
}

impl Default for Network {
    fn default() -> Self {
        let Config { no_progress, .. } = Config::default();
        Self {
            ca_files: Vec::new(),
            https_proxy: None,
            http_proxy: None,
            no_proxy: Vec::new(),
            resolve: BTreeMap::new(),
            stall_timeout: no_progress,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_reach_servers_alike_share_connections_and_others_do_not() {
        let engine = Engine::builder().threads(1).build();
        let running = engine.running().unwrap();
        let usual = Network::default();
        let other = Network { http_proxy: Some("http://127.0.0.1:1".to_owned()), ..Network::default() };
        for network in [&usual, &other, &usual] {
            running.lanes(network).unwrap();
        }
        assert_eq!(lock(&running.lanes).len(), 2);
        let memory = |network| running.lanes(network).unwrap().memory().available();
        let held = running.lanes(&usual).unwrap().memory().try_reserve(1 << 20);
        assert!(held.is_some() && memory(&other) == memory(&usual), "memory is the engine's");
    }

    #[test]
    fn an_engine_is_at_work_while_somebody_uses_it() {
        let engine = Engine::builder().threads(1).build();
        let (first, second) = (engine.running().unwrap(), engine.clone().running().unwrap());
        assert!(Arc::ptr_eq(&first, &second));
        let was = Arc::downgrade(&first);
        drop((first, second));
        assert!(was.upgrade().is_none());
        engine.running().unwrap();
    }

    #[test]
    fn the_first_client_sets_the_budgets_of_the_process() {
        let wanted = Engine::builder().memory(3 << 20);
        let first = Engine::of_process(&wanted);
        let second = Engine::of_process(&Engine::builder().memory(5 << 20));
        assert!(Arc::ptr_eq(&first.0, &second.0));
        assert_eq!(second.0.budgets.budgets, wanted.budgets);
    }
}
