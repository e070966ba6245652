//! The engine, which has the threads, the memory and the connections of clients.

pub(crate) mod files;
pub(crate) mod fork;
pub(crate) mod runtime;
pub(crate) mod settings;
pub(crate) mod threads;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use laneway_lanes::trace::Trace;
use laneway_lanes::{Bandwidth, Lanes, LanesConfig, MemoryBudget, Trust};

use crate::Error;
use crate::engine::files::FileThreads;
use crate::engine::fork::PerProcess;
use crate::engine::runtime::Runtime;

/// The minimum memory in bytes. With less, a request could wait forever for a buffer that is larger than the
/// whole memory.
const MEMORY_MIN: usize = 1 << 20;

/// The engine of all clients that were built without an engine of their own. It has no threads while no
/// client exists.
static DEFAULT: OnceLock<Engine> = OnceLock::new();

/// The engine that does the work of clients. It has its own threads and connections, and limits its memory,
/// connections and bandwidth. Clients that were built without an engine share the process's default engine. A
/// clone refers to the same engine.
///
/// The threads start with the first client, and end with the last one and its jobs. Clients with the same
/// network settings (certificates, proxies, addresses, stall timeout) share connections. Each such group of
/// clients may open up to [`connections_max`](EngineBuilder::connections_max) connections.
///
/// After a `fork`, the child's first call starts an engine of its own with the same limits. The parent's work
/// continues in the parent. In the child, jobs that the parent began yield no more events. The parent's
/// calls, downloads, writers and streams fail in the child with an error of kind `Cancelled`. A
/// [`Reader`](crate::Reader) that the parent opened still works in the child. A program with a Rust `main`
/// should not fork while one of its threads starts or ends. The standard library (1.95) holds a lock at that
/// time, so the child might be unable to start threads.
#[derive(Clone, Debug)]
pub struct Engine(Arc<EngineCore>);

#[derive(Debug)]
struct EngineCore {
    budgets: EngineBuilder,
    /// The id of the process that made the engine. A forked child must not use the trace, whose recorder
    /// belongs to the parent.
    made_in: u32,
    running: PerProcess<Mutex<Weak<EngineThreads>>>,
}

/// Sets how much memory, how many connections and how much bandwidth an [`Engine`] may use. The defaults suit
/// fast transfers. The engine's messages go to `tracing`: see [the crate's page](crate#messages).
#[derive(Clone, Default, Debug)]
pub struct EngineBuilder {
    budgets: Budgets,
    trace: Option<Trace>,
    tcp_handshake_min: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Budgets {
    memory: Option<usize>,
    connections_max: Option<usize>,
    bandwidth: Option<u64>,
    threads: Option<usize>,
}

/// Network settings. Clients with equal settings share connections.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct NetworkSettings {
    pub(crate) ca_files: Vec<PathBuf>,
    pub(crate) https_proxy: Option<String>,
    pub(crate) http_proxy: Option<String>,
    pub(crate) no_proxy: Vec<String>,
    pub(crate) resolve: BTreeMap<String, Vec<IpAddr>>,
    pub(crate) stall_timeout: Duration,
}

impl fmt::Debug for NetworkSettings {
    /// Leaves out the proxies' URLs, because they may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkSettings")
            .field("ca_files", &self.ca_files)
            .field("https_proxy", &self.https_proxy.is_some())
            .field("http_proxy", &self.http_proxy.is_some())
            .field("no_proxy", &self.no_proxy)
            .field("resolve", &self.resolve)
            .field("stall_timeout", &self.stall_timeout)
            .finish()
    }
}

/// A running engine: its threads and their shared state.
#[derive(Debug)]
pub(crate) struct EngineThreads {
    pub(crate) runtime: Runtime,
    pub(crate) files: FileThreads,
    /// The number of threads that the machine can run at the same time.
    pub(crate) cores: usize,
    /// Counts the readers that read far ahead and therefore share the memory for reading ahead. Each of them
    /// holds a clone, so the reference count is their number plus one.
    pub(crate) reading_on: Arc<()>,
    config: LanesConfig,
    lanes: Mutex<Vec<(NetworkSettings, Lanes)>>,
}

impl Engine {
    /// Starts to configure a separate engine, for clients that should not share the process's default engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Returns the process's default engine. The first client that uses this engine sets its limits.
    pub(crate) fn of_process(wanted: &EngineBuilder) -> Self {
        let engine = DEFAULT.get_or_init(|| wanted.clone().build());
        if wanted.budgets != Budgets::default() && wanted.budgets != engine.0.budgets.budgets {
            tracing::warn!(
                "another client has already started this process's engine, so this client's limits have no effect; to use other limits, build a separate engine"
            );
        }
        engine.clone()
    }

    /// Returns the running engine of this process. Starts the engine if needed.
    ///
    /// # Errors
    /// If the system refuses a thread or the descriptors that the engine needs.
    pub(crate) fn running(&self) -> Result<Arc<EngineThreads>, Error> {
        let mut running = lock(self.0.running.get());
        if let Some(running) = running.upgrade() {
            return Ok(running);
        }
        let started = Arc::new(EngineThreads::start(&self.0)?);
        *running = Arc::downgrade(&started);
        Ok(started)
    }
}

impl EngineBuilder {
    /// Sets the maximum number of bytes in buffers, at least 1 MiB. The default is 64 MiB. When all of them
    /// are in use, further requests wait for memory in the order of their arrival.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Self {
        self.budgets.memory = Some(bytes);
        self
    }

    /// Sets the maximum number of open connections to all servers together, at least one. Clients with
    /// different network settings count separately: see [`Engine`]. The default is 256, or fewer if the
    /// process may open fewer than 1024 files.
    #[must_use]
    pub fn connections_max(mut self, connections: usize) -> Self {
        self.budgets.connections_max = Some(connections.max(1));
        self
    }

    /// Limits the bytes of request and response bodies that all connections together send and receive per
    /// second. There is no limit by default.
    #[must_use]
    pub fn bandwidth_limit(mut self, bytes_per_second: u64) -> Self {
        self.budgets.bandwidth = Some(bytes_per_second);
        self
    }

    /// Sets the number of threads that decrypt and checksum the bytes of large transfers, at least one. The
    /// default is the machine's number of cores, at most eight. The engine has two more threads, which are
    /// mostly idle, and starts others for file operations.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.budgets.threads = Some(threads.max(1));
        self
    }

    /// Records in `trace` when each request is sent, and on which connection.
    #[doc(hidden)]
    #[must_use]
    pub fn trace(mut self, trace: Trace) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Sets a minimum for the time of a TCP handshake. Use it for network paths imitated on loopback, where a
    /// handshake takes almost no time.
    #[doc(hidden)]
    #[must_use]
    pub fn tcp_handshake_min(mut self, time: Duration) -> Self {
        self.tcp_handshake_min = time;
        self
    }

    /// Returns the engine. Its threads start when the first client is built with it.
    pub fn build(self) -> Engine {
        Engine(Arc::new(EngineCore {
            budgets: self,
            made_in: std::process::id(),
            running: PerProcess::new(),
        }))
    }
}

impl EngineThreads {
    fn start(engine: &EngineCore) -> Result<Self, Error> {
        let EngineBuilder { budgets, trace, tcp_handshake_min } = engine.budgets.clone();
        let trace = trace.filter(|_| engine.made_in == std::process::id());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let usual = LanesConfig::default();
        let config = LanesConfig {
            memory: budgets.memory.map_or(usual.memory, |bytes| MemoryBudget::new(bytes.max(MEMORY_MIN))),
            connections_max: budgets.connections_max.or_else(runtime::connections_max),
            bandwidth: budgets.bandwidth.map(Bandwidth::limited_to),
            bulk_threads: budgets.threads,
            trace,
            tcp_handshake_min,
            ..LanesConfig::default()
        };
        Ok(Self {
            runtime: Runtime::start()?,
            files: FileThreads::new(FileThreads::threads_for(cores)),
            cores,
            reading_on: Arc::default(),
            config,
            lanes: Mutex::default(),
        })
    }

    /// Returns the lanes (connections) that clients with these network settings share.
    ///
    /// # Errors
    /// If a CA file can't be read, a proxy isn't a URL, or threads can't be started.
    pub(crate) fn lanes(&self, network: &NetworkSettings) -> Result<Lanes, Error> {
        let mut all = lock(&self.lanes);
        if let Some((_, lanes)) = all.iter().find(|(known, _)| known == network) {
            return Ok(lanes.clone());
        }
        let NetworkSettings { ca_files, https_proxy, http_proxy, no_proxy, resolve, stall_timeout } =
            network.clone();
        let lanes = Lanes::start(LanesConfig {
            trust: Trust { extra_ca_files: ca_files },
            https_proxy,
            http_proxy,
            no_proxy,
            resolve,
            no_progress: stall_timeout,
            ..self.config.clone()
        })
        .map_err(Error::engine)?;
        all.push((network.clone(), lanes.clone()));
        Ok(lanes)
    }
}

impl Drop for EngineThreads {
    fn drop(&mut self) {
        self.files.close();
    }
}

impl NetworkSettings {
    /// Lowers the default stall timeout to half of the retry time. Laneway then still has time to try another
    /// connection before it gives up.
    pub(crate) fn heard_within(mut self, retry_for: Duration) -> Self {
        // Keep a longer timeout that the caller has set.
        if !retry_for.is_zero() && self.stall_timeout == Self::default().stall_timeout {
            self.stall_timeout = self.stall_timeout.min(retry_for / 2);
        }
        self
    }
}

impl Default for NetworkSettings {
    fn default() -> Self {
        let LanesConfig { no_progress, .. } = LanesConfig::default();
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
        let usual = NetworkSettings::default();
        let other = NetworkSettings {
            http_proxy: Some("http://127.0.0.1:1".to_owned()),
            ..NetworkSettings::default()
        };
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
