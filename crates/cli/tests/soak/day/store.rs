//! The store of a day: on disk, so that it can be restarted, and with versions, which tell each write.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use laneway_server::{Config, Faults, Server, Storage};
use laneway_testkit::{Endpoint, files_below};
use tempfile::TempDir;

use super::work::{Worker, Write};

const BUCKET: &str = Endpoint::BUCKET;
/// The hot object is served so often, and otherwise answered 429, in S3's dialect 503 `SlowDown`.
const FAULT: &str = "any key=hot/* rate 2/s";
/// The time after a disturbance in which held-up requests are still delivered.
const AFTER: Duration = Duration::from_secs(2);
/// The time that a server gives its clients to close their connections.
const REST: Duration = Duration::from_secs(60);

pub(super) struct Store {
    server: Option<Server>,
    address: SocketAddr,
    folder: TempDir,
    /// Microseconds since 1970 at which an answer may have been lost, as in a version's generation.
    disturbed: Vec<Range<u64>>,
}

impl Store {
    pub(super) fn open() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut store = Self { server: None, address, folder, disturbed: Vec::new() };
        store.start();
        store.address = store.server().addr();
        store.server().create_bucket(BUCKET).expect("a bucket");
        store
    }

    pub(super) fn start(&mut self) {
        let config = Config {
            listen: self.address,
            storage: Storage::Disk(self.folder.path().join("store")),
            faults: Faults::parse([FAULT]).expect("a rule"),
            versions: true,
            ..Config::default()
        };
        self.server = Some(Server::start(config).expect("a server"));
    }

    pub(super) fn stop(&mut self) {
        self.server = None;
    }

    pub(super) fn server(&self) -> &Server {
        self.server.as_ref().expect("it is started")
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// A folder of the workers.
    pub(super) fn folder(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join("work").join(name);
        std::fs::create_dir_all(&folder).expect("a folder is made");
        folder
    }

    /// Notes that answers may be lost meanwhile.
    pub(super) fn disturbed_while(&mut self, passes: impl FnOnce(&mut Self)) {
        let from = micros();
        passes(self);
        self.disturbed.push(from..micros() + AFTER.as_micros() as u64);
    }

    /// Panics unless the store holds what was written, each write once, and nothing is left of what was under way.
    pub(super) fn check(&self, workers: &[Worker]) {
        let mut expected = BTreeMap::new();
        for (key, writes) in workers.iter().flat_map(Worker::writes) {
            self.check_versions(key, writes);
            if let Some(content) = writes.last().and_then(|write| write.content) {
                expected.insert(key.clone(), content);
            }
        }
        let store = self.server().store();
        assert_eq!(store.keys(BUCKET), expected.keys().cloned().collect::<Vec<_>>());
        for (key, content) in expected {
            assert!(content.is(&store.read(BUCKET, &key).expect("it is stored")), "{key} has other bytes");
        }
        // The answer to the beginning of an upload may be lost: nobody knows of that one, and it has no bytes.
        let open = self.server().uploads_open(BUCKET);
        assert!(open.iter().all(|(_, bytes)| *bytes == 0), "uploads stay: {open:?}");
        let files = files_below(&self.folder("."));
        let left = files.iter().filter(|name| name.contains(".laneway-") || name.contains("laneway/uploads"));
        assert_eq!(left.collect::<Vec<_>>(), Vec::<&String>::new(), "files of transfers stay");
        let is_idle = self.server().wait_until(REST, |counters| counters.connections_open == 0);
        assert!(is_idle, "connections stay open: {:?}", self.server().counters());
    }

    /// Panics unless the versions of a key are its writes. A write whose answer may have been lost was perhaps sent again.
    fn check_versions(&self, key: &str, writes: &[Write]) {
        let versions = self.server().store().versions(BUCKET, key);
        let versions: Vec<_> = versions
            .iter()
            .map(|version| {
                let size = (!version.standing.is_delete_marker).then_some(version.size as usize);
                (size, version.generation)
            })
            .collect();
        let once = writes.iter().all(|write| write.once);
        let mut found = versions.clone();
        found.dedup_by(|(size, _), (before, generation)| {
            size == before && !once && self.disturbed.iter().any(|times| times.contains(&*generation))
        });
        let found: Vec<_> = found.into_iter().map(|(size, _)| size).collect();
        let wanted: Vec<_> = writes.iter().map(|write| write.content.map(|content| content.len)).collect();
        assert_eq!(found, wanted, "{key} has the versions {versions:?}, disturbed {:?}", self.disturbed);
    }
}

fn micros() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_micros() as u64
}
