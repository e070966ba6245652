//! A store with faults, a client for each cell, and a working folder.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use laneway::{AccessKey, Bucket, Client, ClientBuilder, Engine, Location, Provider};
use laneway_server::{Config, S3Config};
use laneway_testkit::{Endpoint, Wire, config_for_faults, random_bytes};
use tempfile::TempDir;

/// The size of an object that is transferred in one request.
pub(crate) const SMALL: usize = 5000;
/// The size of an object that is transferred in several requests, in either direction.
pub(crate) const LARGE: usize = (17 << 20) + 5;
/// The size of an object with ranges that are too far apart for one request.
pub(crate) const RANGED: usize = (4 << 20) + 2000;

/// A dialect over a protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kind {
    pub(crate) provider: Provider,
    pub(crate) tls: bool,
    /// If true, an HTTP/2 connection takes one request at a time.
    pub(crate) one_stream: bool,
}

/// Each dialect over plain HTTP/1.1 and over TLS. There, ALPN gives HTTP/2 to GCS and S3. Azure has only HTTP/1.1.
pub(crate) const KINDS: [Kind; 6] = [
    Kind { provider: Provider::Gcs, tls: false, one_stream: false },
    Kind { provider: Provider::Gcs, tls: true, one_stream: false },
    Kind { provider: Provider::S3, tls: false, one_stream: false },
    Kind { provider: Provider::S3, tls: true, one_stream: false },
    Kind { provider: Provider::Azure, tls: false, one_stream: false },
    Kind { provider: Provider::Azure, tls: true, one_stream: false },
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
            (Provider::Azure, false, _) => "azure-h1",
            (Provider::Azure, true, _) => "azure-tls-h1",
            (_, false, _) => "s3-h1",
            (_, true, false) => "s3-h2",
            (_, true, true) => "s3-h2-one-stream",
        }
    }

    fn wire(self) -> Wire {
        match (self.tls, self.provider) {
            (false, _) => Wire::Plain,
            (true, Provider::Azure) => Wire::TlsH1,
            (true, _) => Wire::TlsH2,
        }
    }
}

/// Returns the dialect of the destination of copies between dialects. Each dialect is the destination of one other.
pub(crate) fn other(provider: Provider) -> Provider {
    match provider {
        Provider::Gcs => Provider::S3,
        Provider::S3 => Provider::Azure,
        _ => Provider::Gcs,
    }
}

/// The bytes of the large object and of the small one.
pub(crate) static LARGE_BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| random_bytes(1, LARGE));
pub(crate) static RANGED_BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| random_bytes(3, RANGED));
pub(crate) static SMALL_BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| random_bytes(2, SMALL));

pub(crate) struct Rig {
    pub(crate) endpoint: Endpoint,
    pub(crate) kind: Kind,
    sources: TempDir,
}

impl Rig {
    pub(crate) fn new(kind: Kind) -> Self {
        let max_streams = kind.one_stream.then_some(1);
        let endpoint = Endpoint::start_with(kind.wire(), Config { max_streams, ..config_for_faults() });
        let sources = tempfile::tempdir().unwrap();
        std::fs::write(sources.path().join("large"), &*LARGE_BYTES).unwrap();
        std::fs::write(sources.path().join("small"), &*SMALL_BYTES).unwrap();
        Self { endpoint, kind, sources }
    }

    /// Returns a client on an engine of its own.
    pub(crate) fn client(&self, retry_for: Duration, stall_timeout: Duration) -> Client {
        let keys = S3Config::default();
        let mut settings = ClientBuilder::from_variables(self.endpoint.azure_variables())
            .access_key(AccessKey::new(keys.access_key, keys.secret_key))
            .region(keys.region)
            .gcs_endpoint(self.endpoint.url())
            .s3_endpoint(self.endpoint.url())
            .retry_for(retry_for)
            .stall_timeout(stall_timeout);
        if let Some(ca) = self.endpoint.ca_file() {
            settings = settings.ca_file(ca);
        }
        settings.engine(Engine::builder().threads(1).build()).build().unwrap()
    }

    pub(crate) fn bucket(&self, client: &Client) -> Bucket {
        client.bucket(&format!("{}://{}/", self.kind.provider.scheme(), Endpoint::BUCKET)).unwrap()
    }

    pub(crate) fn url(&self, key: &str) -> Location {
        Location::object(self.kind.provider, Endpoint::BUCKET, key)
    }

    /// Returns the same key's URL in the dialect of [`other`].
    pub(crate) fn url_across(&self, key: &str) -> Location {
        Location::object(other(self.kind.provider), Endpoint::BUCKET, key)
    }

    /// Returns the path of a source file, `small` or `large`, that exists from the start.
    pub(crate) fn source(&self, name: &str) -> PathBuf {
        self.sources.path().join(name)
    }

    /// Returns the folder for a cell's files.
    pub(crate) fn work(&self) -> PathBuf {
        self.endpoint.folder()
    }

    /// Empties bucket and folder.
    pub(crate) fn clear(&self) {
        self.endpoint.clear();
        std::fs::remove_dir_all(self.work()).unwrap();
        std::fs::create_dir(self.work()).unwrap();
    }

    /// Returns the names of all files in the cell's folder, sorted.
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
