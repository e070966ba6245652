//! A store that can fail, a client of it for each cell, and a folder to work in.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use laneway::{Bucket, Client, Engine, Location, Provider};
use laneway_server::{Config, Faults, GcsConfig, S3Config, Server, Tls};
use tempfile::TempDir;

pub(crate) const BUCKET: &str = "bucket";
/// Moves in one request.
pub(crate) const SMALL: usize = 5000;
/// Moves in several, downwards and upwards.
pub(crate) const LARGE: usize = (17 << 20) + 5;
/// Has ranges too far from each other to be read at once.
pub(crate) const RANGED: usize = (4 << 20) + 2000;
/// How long what is over may take until the server has seen it.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// A dialect over a protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kind {
    pub(crate) provider: Provider,
    pub(crate) tls: bool,
    /// Whether an HTTP/2 connection takes one request at a time.
    pub(crate) one_stream: bool,
}

/// Both dialects over plain HTTP/1.1 and over TLS, where ALPN gives HTTP/2.
pub(crate) const KINDS: [Kind; 4] = [
    Kind { provider: Provider::Gcs, tls: false, one_stream: false },
    Kind { provider: Provider::Gcs, tls: true, one_stream: false },
    Kind { provider: Provider::S3, tls: false, one_stream: false },
    Kind { provider: Provider::S3, tls: true, one_stream: false },
];

/// HTTP/2 from a server that allows one stream on a connection.
pub(crate) const ONE_STREAM_KINDS: [Kind; 2] = [
    Kind { provider: Provider::Gcs, tls: true, one_stream: true },
    Kind { provider: Provider::S3, tls: true, one_stream: true },
];

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match (self.provider, self.tls, self.one_stream) {
            (Provider::Gcs, false, _) => "gcs-h1",
            (Provider::Gcs, true, false) => "gcs-h2",
            (Provider::Gcs, true, true) => "gcs-h2-one-stream",
            (_, false, _) => "s3-h1",
            (_, true, false) => "s3-h2",
            (_, true, true) => "s3-h2-one-stream",
        }
    }
}

/// The other dialect.
pub(crate) fn other(provider: Provider) -> Provider {
    if provider == Provider::Gcs { Provider::S3 } else { Provider::Gcs }
}

/// The bytes of the large and of the small object.
pub(crate) static LARGE_BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| laneway_testkit::random_bytes(1, LARGE));
pub(crate) static RANGED_BYTES: LazyLock<Vec<u8>> =
    LazyLock::new(|| laneway_testkit::random_bytes(3, RANGED));
pub(crate) static SMALL_BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| laneway_testkit::random_bytes(2, SMALL));

pub(crate) struct Rig {
    pub(crate) server: Server,
    pub(crate) kind: Kind,
    dir: TempDir,
    ca: Option<PathBuf>,
}

impl Rig {
    pub(crate) fn new(kind: Kind) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = Config {
            tls: kind.tls.then_some(Tls::Generated),
            max_streams: kind.one_stream.then_some(1),
            threads: Some(1),
            // What takes time and decides nothing here.
            gcs: GcsConfig { md5: false, ..GcsConfig::default() },
            s3: S3Config { md5_etags: false, ..S3Config::default() },
            ..Config::default()
        };
        let server = Server::start(config).unwrap();
        server.create_bucket(BUCKET).unwrap();
        let ca = server.ca_pem().map(|pem| {
            let path = dir.path().join("ca.pem");
            std::fs::write(&path, pem).unwrap();
            path
        });
        std::fs::write(dir.path().join("large"), &*LARGE_BYTES).unwrap();
        std::fs::write(dir.path().join("small"), &*SMALL_BYTES).unwrap();
        Self { server, kind, dir, ca }
    }

    /// A client on an engine of its own.
    pub(crate) fn client(&self, retry_for: Duration, stall_timeout: Duration) -> Client {
        let url = self.server.url();
        let mut settings = Client::builder()
            .anonymous(true)
            .gcs_endpoint(url.clone())
            .s3_endpoint(url)
            .retry_for(retry_for)
            .stall_timeout(stall_timeout);
        if let Some(ca) = &self.ca {
            settings = settings.ca_file(ca);
        }
        settings.engine(Engine::builder().threads(1).build()).build().unwrap()
    }

    pub(crate) fn bucket(&self, client: &Client) -> Bucket {
        client.bucket(&format!("{}://{BUCKET}/", self.kind.provider.scheme())).unwrap()
    }

    pub(crate) fn url(&self, key: &str) -> Location {
        Location::object(self.kind.provider, BUCKET, key)
    }

    /// The same key in the other dialect's words.
    pub(crate) fn url_across(&self, key: &str) -> Location {
        Location::object(other(self.kind.provider), BUCKET, key)
    }

    /// A file that is there from the beginning, `small` or `large`.
    pub(crate) fn source(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The folder that a cell's files are in.
    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// Puts an object behind the protocols' back.
    pub(crate) fn object(&self, key: &str, bytes: &[u8]) {
        self.server.store().put(BUCKET, key, bytes).unwrap();
    }

    pub(crate) fn stored(&self, key: &str) -> Option<Vec<u8>> {
        self.server.store().read(BUCKET, key).ok()
    }

    pub(crate) fn set_faults(&self, rules: &[String]) {
        self.server.set_faults(Faults::parse(rules.iter().map(String::as_str)).unwrap());
    }

    /// Empties bucket and folder.
    pub(crate) fn clear(&self) {
        for key in self.server.store().keys(BUCKET) {
            self.server.store().remove(BUCKET, &key);
        }
        let work = self.work();
        if work.exists() {
            std::fs::remove_dir_all(&work).unwrap();
        }
        std::fs::create_dir(&work).unwrap();
    }

    /// Waits until all that clients had open is closed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.server.wait_until(WAIT_MAX, |counters| counters.connections_open == 0)
    }

    /// The names of all files in the cell's folder, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        fn below(folder: &Path, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    below(&path, found);
                } else {
                    found.push(path.file_name().unwrap().to_string_lossy().into_owned());
                }
            }
        }
        let mut found = Vec::new();
        below(&self.work(), &mut found);
        found.sort();
        found
    }
}
