//! A store that can fail, and a bucket of it for each cell.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use laneway::{Bucket, Client, Engine, Provider};
use laneway_server::{Config, Counters, Faults, GcsConfig, S3Config, Server, Tls};
use laneway_testkit::random_bytes;
use tempfile::TempDir;

use crate::matrix::Operation;

pub(crate) const BUCKET: &str = "bucket";
/// Where the ranges begin that are read together: too far from each other to be read at once.
pub(crate) const RANGES: [usize; 3] = [10, 2 << 20, 4 << 20];
/// How long what is over may take until the server has seen it.
const WAIT_MAX: Duration = Duration::from_secs(120);

pub(crate) static SMALL_BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| random_bytes(1, 5000));
pub(crate) static RANGED_BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| random_bytes(2, (4 << 20) + 2000));
/// Moves in several requests.
pub(crate) static LARGE_BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| random_bytes(3, (17 << 20) + 5));

/// A dialect over HTTP/1.1, or over TLS, where ALPN gives HTTP/2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kind {
    pub(crate) provider: Provider,
    pub(crate) tls: bool,
}

pub(crate) const KINDS: [Kind; 4] = [
    Kind { provider: Provider::Gcs, tls: false },
    Kind { provider: Provider::S3, tls: true },
    Kind { provider: Provider::Gcs, tls: true },
    Kind { provider: Provider::S3, tls: false },
];

pub(crate) struct Rig {
    server: Server,
    kind: Kind,
    dir: TempDir,
}

impl Rig {
    pub(crate) fn new(kind: Kind) -> Self {
        let config = Config {
            tls: kind.tls.then_some(Tls::Generated),
            threads: Some(1),
            // What takes time and decides nothing here.
            gcs: GcsConfig { md5: false, ..GcsConfig::default() },
            s3: S3Config { md5_etags: false, ..S3Config::default() },
            ..Config::default()
        };
        let server = Server::start(config).unwrap();
        server.create_bucket(BUCKET).unwrap();
        Self { server, kind, dir: tempfile::tempdir().unwrap() }
    }

    /// A bucket of a client on an engine of its own.
    pub(crate) fn bucket(&self, retry_for: Duration, stall_timeout: Duration) -> Bucket {
        let url = self.server.url();
        let mut settings = Client::builder()
            .anonymous(true)
            .gcs_endpoint(url.clone())
            .s3_endpoint(url)
            .retry_for(retry_for)
            .stall_timeout(stall_timeout);
        if let Some(pem) = self.server.ca_pem() {
            let path: PathBuf = self.dir.path().join("ca.pem");
            std::fs::write(&path, pem).unwrap();
            settings = settings.ca_file(path);
        }
        let client = settings.engine(Engine::builder().threads(1).build()).build().unwrap();
        client.bucket(&format!("{}://{BUCKET}/", self.kind.provider.scheme())).unwrap()
    }

    pub(crate) fn set_faults(&self, rule: Option<&str>) {
        self.server.set_faults(Faults::parse(rule).unwrap());
    }

    pub(crate) fn counters(&self) -> Counters {
        self.server.counters()
    }

    /// Waits until all that clients had open is closed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.server.wait_until(WAIT_MAX, |counters| counters.connections_open == 0)
    }

    /// Lays ready what an operation reads, and what it replaces.
    pub(crate) fn prepare(&self, operation: Operation) {
        let store = self.server.store();
        for key in store.keys(BUCKET) {
            store.remove(BUCKET, &key);
        }
        let object: &[u8] = match operation {
            Operation::GetLarge => &LARGE_BYTES,
            Operation::GetRanges => &RANGED_BYTES,
            Operation::Put | Operation::PutMultipart => b"old",
            _ => &SMALL_BYTES,
        };
        store.put(BUCKET, "k", object).unwrap();
        for key in ["t/0", "t/1", "u"] {
            store.put(BUCKET, key, b"x").unwrap();
        }
    }

    /// What is wrong with what an operation has left where it has `succeeded` or not.
    pub(crate) fn problem(&self, operation: Operation, succeeded: bool) -> Option<&'static str> {
        let stored = |key: &str| self.server.store().read(BUCKET, key).ok();
        let keys = self.server.store().keys(BUCKET);
        let (old, new): (&[u8], &[u8]) = match operation {
            Operation::Put => (b"old", &SMALL_BYTES),
            Operation::PutMultipart => (b"old", &LARGE_BYTES),
            Operation::Delete => {
                let is_so = if succeeded { keys == ["t/0", "t/1", "u"] } else { keys.len() >= 3 };
                return (!is_so).then_some("other objects are there than after a removal");
            }
            Operation::DeleteStream => {
                let is_so = keys[0] == "k" && (!succeeded || keys.len() == 1);
                return (!is_so).then_some("other objects are there than after a removal");
            }
            Operation::Copy => {
                let there = stored("copied");
                let is_so = there.as_ref() == Some(&*SMALL_BYTES) || there.is_none() && !succeeded;
                return (!is_so).then_some("the copy is not the object");
            }
            _ => return (keys != ["k", "t/0", "t/1", "u"]).then_some("other objects are there than before"),
        };
        let there = stored("k").unwrap_or_default();
        let is_so = there == new || there == old && !succeeded;
        (!is_so).then_some("the object is neither what was there nor what was sent")
    }
}

/// What another writer makes of the bytes.
pub(crate) fn inverted(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}
