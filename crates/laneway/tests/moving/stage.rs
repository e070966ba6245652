//! A server, a client, and a working folder.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use laneway::{
    Client, ClientBuilder, CopyRequest, Engine, EngineBuilder, Event, Item, Job, Location, Op, Outcome,
    Provider, RemoveRequest, Summary, Verified,
};
use laneway_server::{AzureConfig, Config, Faults, GcsConfig, Server, ServerCounters, Tls};
use tempfile::TempDir;

pub(crate) const BUCKET: &str = "bucket";
pub(crate) const MIB: usize = 1 << 20;
/// The longest time that these tests wait for anything.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// A dialect over a protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) provider: Provider,
    pub(crate) tls: bool,
}

/// Both dialects over plain HTTP/1.1 and over TLS, where ALPN gives HTTP/2.
pub(crate) const KINDS: [Kind; 4] = [
    Kind { provider: Provider::Gcs, tls: false },
    Kind { provider: Provider::Gcs, tls: true },
    Kind { provider: Provider::S3, tls: false },
    Kind { provider: Provider::S3, tls: true },
];

/// Both dialects over plain HTTP/1.1, for tests that don't depend on the protocol.
pub(crate) const DIALECTS: [Kind; 2] = [KINDS[0], KINDS[2]];

/// Also Azure's dialect, over plain HTTP/1.1.
pub(crate) const ALL_DIALECTS: [Kind; 3] =
    [KINDS[0], KINDS[2], Kind { provider: Provider::Azure, tls: false }];

/// Runs a test for several kinds in parallel.
pub(crate) fn at_once(kinds: &[Kind], test: impl Fn(Kind) + Sync) {
    std::thread::scope(|scope| {
        for kind in kinds {
            let test = &test;
            scope.spawn(move || test(*kind));
        }
    });
}

pub(crate) struct Stage {
    pub(crate) server: Server,
    pub(crate) client: Client,
    pub(crate) dir: TempDir,
    pub(crate) kind: Kind,
    settings: ClientBuilder,
    engine: EngineBuilder,
}

/// A job's events, by kind.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) items: Vec<Item>,
    pub(crate) warnings: Vec<String>,
    pub(crate) summary: Summary,
}

/// Long enough for temporary faults to end, and short enough for tests that wait for a failure.
const RETRY_FOR: Duration = Duration::from_secs(4);

impl Stage {
    pub(crate) fn new(kind: Kind) -> Self {
        Self::with_faults(kind, &[])
    }

    pub(crate) fn with_faults(kind: Kind, rules: &[&str]) -> Self {
        let faults = Faults::parse(rules.iter().copied()).unwrap();
        Self::with(kind, Config { faults, ..Config::default() })
    }

    pub(crate) fn with(kind: Kind, config: Config) -> Self {
        Self::set_up(kind, config, |settings| settings)
    }

    /// Returns a stage whose client gives up a silent connection after `no_progress`.
    pub(crate) fn with_no_progress(kind: Kind, config: Config, no_progress: Duration) -> Self {
        Self::set_up(kind, config, |settings| settings.stall_timeout(no_progress))
    }

    /// Returns a stage for a GCS server without the XML API's multipart uploads.
    pub(crate) fn without_multipart(kind: Kind) -> Self {
        let gcs = GcsConfig { xml: false, ..GcsConfig::default() };
        Self::with(kind, Config { gcs, ..Config::default() })
    }

    /// Returns a stage whose engine has this many bytes of memory for bodies.
    pub(crate) fn with_memory(kind: Kind, bytes: usize) -> Self {
        Self::set_up_on(Engine::builder().memory(bytes), kind, Config::default(), |settings| settings)
    }

    /// Returns a stage whose client has further settings.
    pub(crate) fn set_up(
        kind: Kind,
        config: Config,
        set: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Self {
        Self::set_up_on(Engine::builder(), kind, config, set)
    }

    /// Does the same as `set_up`, on an engine with this builder's limits.
    pub(crate) fn set_up_on(
        engine: EngineBuilder,
        kind: Kind,
        config: Config,
        set: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tls = kind.tls.then_some(Tls::Generated);
        let server = Server::start(Config { tls, ..config }).unwrap();
        server.create_bucket(BUCKET).unwrap();
        let azure = AzureConfig::default();
        // Azure's dialect needs credentials.
        let settings = match kind.provider {
            Provider::Azure => ClientBuilder::from_variables([("AZURE_STORAGE_KEY", azure.key)]),
            _ => Client::builder().anonymous(true),
        };
        let mut settings = settings
            .gcs_endpoint(server.url())
            .s3_endpoint(server.url())
            .azure_endpoint(format!("{}/{}", server.url(), azure.account))
            .retry_for(RETRY_FOR);
        if let Some(pem) = server.ca_pem() {
            let ca = dir.path().join("ca.pem");
            std::fs::write(&ca, pem).unwrap();
            settings = settings.ca_file(ca);
        }
        let settings = set(settings);
        let client = settings.clone().engine(engine.clone().build()).build().unwrap();
        Self { client, server, dir, kind, settings, engine }
    }

    /// Replaces the client, as another run of a program would. Waits until the server has seen the old client's
    /// connections close.
    pub(crate) fn renew(&mut self) {
        self.client = self.settings.clone().engine(self.engine.clone().build()).build().unwrap();
        assert!(self.server.wait_until_idle(WAIT_MAX));
    }

    /// Does the same as [`renew`](Self::renew), with changed settings.
    pub(crate) fn renew_with(&mut self, set: impl FnOnce(ClientBuilder) -> ClientBuilder) {
        self.settings = set(self.settings.clone());
        self.renew();
    }

    /// Returns a path in the working folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("work").join(name)
    }

    /// Writes a file in the working folder.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Makes a pipe.
    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    /// Calls `read` with a pipe that delivers these bytes, and waits until all of them have been read.
    pub(crate) fn piped<T>(&self, bytes: &[u8], read: impl FnOnce(&Path) -> T) -> T {
        let fifo = self.fifo("fifo");
        let writer = {
            let (fifo, bytes) = (fifo.clone(), bytes.to_vec());
            std::thread::spawn(move || std::fs::write(fifo, bytes))
        };
        let read = read(&fifo);
        writer.join().unwrap().unwrap();
        read
    }

    /// Returns the URL of a key in the bucket.
    pub(crate) fn url(&self, key: &str) -> Location {
        Location::object(self.kind.provider, BUCKET, key)
    }

    /// Puts an object into the store directly, without a request.
    pub(crate) fn object(&self, key: &str, bytes: &[u8]) {
        self.server.store().put(BUCKET, key, bytes).unwrap();
    }

    /// Returns an object's bytes in the store.
    pub(crate) fn stored(&self, key: &str) -> Vec<u8> {
        self.server.store().read(BUCKET, key).unwrap()
    }

    /// Returns the number of requests of a verb that the server has received.
    pub(crate) fn requests(&self, verb: &str) -> u64 {
        self.server.counters().requests_by_verb.get(verb).copied().unwrap_or(0)
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.server.store().keys(BUCKET)
    }

    /// Waits until the server has received this many requests of a verb.
    #[track_caller]
    pub(crate) fn wait_for(&self, verb: &str, count: u64) {
        let is_so = |c: &ServerCounters| c.requests_by_verb.get(verb).is_some_and(|seen| *seen >= count);
        self.wait_until(&format!("{count} {verb} requests"), is_so);
    }

    /// Waits for a condition on the server's counters.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn(&ServerCounters) -> bool) {
        let came = self.server.wait_until(WAIT_MAX, is_so);
        assert!(came, "waited in vain for {what}: {:?}", self.server.counters());
    }

    pub(crate) fn copy(&self, request: CopyRequest) -> Report {
        Report::of(self.client.copy(request))
    }

    /// Copies one item.
    pub(crate) fn cp(&self, source: impl Into<Place>, destination: impl Into<Place>) -> Report {
        self.copy(CopyRequest::new(vec![source.into().0], destination.into().0))
    }

    /// Copies a tree.
    pub(crate) fn cp_r(&self, source: impl Into<Place>, destination: impl Into<Place>) -> Report {
        let request = CopyRequest::new(vec![source.into().0], destination.into().0);
        self.copy(request.recursive(true))
    }

    pub(crate) fn rm(&self, targets: Vec<Location>, recursive: bool) -> Report {
        Report::of(self.client.remove(RemoveRequest::new(targets).recursive(recursive)))
    }
}

/// One end of a copy, from any convenient type.
pub(crate) struct Place(pub(crate) Location);

impl From<&Path> for Place {
    fn from(path: &Path) -> Self {
        Self(Location::from(path))
    }
}

impl From<&PathBuf> for Place {
    fn from(path: &PathBuf) -> Self {
        Self(Location::from(path.as_path()))
    }
}

impl From<PathBuf> for Place {
    fn from(path: PathBuf) -> Self {
        Self(Location::Local(path))
    }
}

impl From<Location> for Place {
    fn from(location: Location) -> Self {
        Self(location)
    }
}

impl Report {
    pub(crate) fn of(mut job: Job) -> Self {
        let mut report = Self::default();
        while let Some(event) = job.next_blocking() {
            match event {
                Event::Item(item) => report.items.push(item),
                Event::Warning(warning) => report.warnings.push(warning.to_string()),
                Event::Done(summary) => report.summary = summary,
                other => panic!("{other:?}"),
            }
        }
        report
    }

    /// Panics unless every item was copied and verified by a checksum.
    #[track_caller]
    pub(crate) fn all_verified(&self) -> &Self {
        self.all_done();
        for item in &self.items {
            let verified =
                matches!(&item.outcome, Outcome::Done { verified } if *verified != Verified::Unverified);
            assert!(verified, "{item:?}");
        }
        assert_eq!(self.summary.unverified, 0);
        self
    }

    /// Panics unless every item was completed.
    #[track_caller]
    pub(crate) fn all_done(&self) -> &Self {
        for item in &self.items {
            assert!(matches!(item.outcome, Outcome::Done { .. }), "{item:?}");
        }
        assert!(!self.items.is_empty(), "nothing was done");
        assert_eq!((self.summary.failed, self.summary.interrupted), (0, false));
        assert_eq!(self.summary.files, self.items.len() as u64);
        self
    }

    /// Returns the failures as text, sorted.
    pub(crate) fn failures(&self) -> Vec<String> {
        let mut failures: Vec<_> = self
            .items
            .iter()
            .filter_map(|item| match &item.outcome {
                Outcome::Failed(error) => Some(error.to_string()),
                _ => None,
            })
            .collect();
        failures.sort();
        failures
    }

    /// Returns the only failure's kind and text.
    #[track_caller]
    pub(crate) fn failure(&self) -> (&'static str, String) {
        let mut failed = self.items.iter().filter_map(|item| match &item.outcome {
            Outcome::Failed(error) => Some((error.kind().name(), error.to_string())),
            _ => None,
        });
        let only = failed.next().unwrap_or_else(|| panic!("nothing failed: {self:?}"));
        assert!(failed.next().is_none(), "{self:?}");
        only
    }

    pub(crate) fn ops(&self, op: Op) -> usize {
        self.items.iter().filter(|item| item.op == op).count()
    }
}

/// Returns deterministic pseudo-random bytes.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    laneway_testkit::random_bytes(seed, len)
}

/// Returns the names of all entries in a folder, including hidden ones.
pub(crate) fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<_> = match std::fs::read_dir(path) {
        Ok(entries) => {
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
        }
        Err(_) => Vec::new(),
    };
    names.sort();
    names
}
