//! A store for tests: the embedded server on a free port, the settings that a client needs, and the outcomes that tests
//! expect of operations with faults.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use laneway_server::{AzureConfig, Config, Faults, GcsConfig, S3Config, Server, ServerCounters, Tls};
use tempfile::TempDir;

use crate::Program;

/// The protocol that clients use to connect to the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wire {
    /// Clear text, HTTP/1.1.
    Plain,
    /// TLS, HTTP/1.1.
    TlsH1,
    /// TLS, HTTP/2.
    TlsH2,
}

impl Wire {
    /// All protocols.
    pub const ALL: [Self; 3] = [Self::Plain, Self::TlsH1, Self::TlsH2];

    fn apply(self, config: &mut Config) {
        config.tls = (self != Self::Plain).then_some(Tls::Generated);
        config.h1_only = self == Self::TlsH1;
    }
}

/// A running embedded server with one bucket, and a folder for the test's files. Dropping it removes both.
pub struct Endpoint {
    server: Server,
    folder: TempDir,
    ca_file: Option<PathBuf>,
}

impl Endpoint {
    /// The bucket that exists from the start, in all dialects.
    pub const BUCKET: &'static str = "bucket";

    /// Starts a server without delay or faults, with objects in memory.
    pub fn start(wire: Wire) -> Self {
        Self::start_with(wire, Config::default())
    }

    /// Starts a server with this configuration. `wire` overrides its settings of TLS and HTTP.
    pub fn start_with(wire: Wire, mut config: Config) -> Self {
        wire.apply(&mut config);
        let server = Server::start(config).expect("the server starts");
        server.create_bucket(Self::BUCKET).expect("the bucket is made");
        let folder = tempfile::tempdir().expect("a folder is made");
        let ca_file = server.ca_pem().map(|pem| {
            let path = folder.path().join("ca.pem");
            fs::write(&path, pem).expect("the CA is written");
            path
        });
        fs::create_dir(folder.path().join("home")).expect("a home is made");
        fs::create_dir(folder.path().join("work")).expect("a work folder is made");
        Self { server, folder, ca_file }
    }

    /// Returns the server itself.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Returns the server's base URL, for all dialects.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Returns the certificate authority to trust, if the server uses TLS.
    pub fn ca_file(&self) -> Option<&Path> {
        self.ca_file.as_deref()
    }

    /// Returns the folder for the test's files. It is empty at first, and is removed together with the server.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Puts an object into the store directly, without an HTTP request.
    pub fn put(&self, key: &str, bytes: &[u8]) {
        self.server().store().put(Self::BUCKET, key, bytes).expect("it is stored");
    }

    /// Returns the bytes of an object.
    pub fn stored(&self, key: &str) -> Option<Vec<u8>> {
        self.server().store().read(Self::BUCKET, key).ok()
    }

    /// Returns the keys of all objects, sorted.
    pub fn keys(&self) -> Vec<String> {
        self.server().store().keys(Self::BUCKET)
    }

    /// Removes all objects.
    pub fn clear(&self) {
        for key in self.keys() {
            self.server().store().remove(Self::BUCKET, &key);
        }
    }

    /// Returns the environment variables that make a client use this server for Azure. Unlike the other dialects, Azure's
    /// needs credentials.
    pub fn azure_variables(&self) -> [(&'static str, String); 2] {
        let AzureConfig { account, key, .. } = AzureConfig::default();
        let endpoint = format!("{}/{account}", self.url());
        [("AZURE_STORAGE_SERVICE_ENDPOINT", endpoint), ("AZURE_STORAGE_KEY", key)]
    }

    /// Returns the program at `binary`, with environment variables that make it use this server for both GCS and S3.
    pub fn program(&self, binary: &str) -> Program {
        let s3 = laneway_server::S3Config::default();
        let program = Program::new(binary, self.folder.path().join("home"))
            .with("STORAGE_EMULATOR_HOST", self.url())
            .with("AWS_ENDPOINT_URL_S3", self.url())
            .with("AWS_ACCESS_KEY_ID", s3.access_key)
            .with("AWS_SECRET_ACCESS_KEY", s3.secret_key)
            .with("AWS_REGION", s3.region)
            .in_folder(self.folder());
        match &self.ca_file {
            Some(path) => program.with("AWS_CA_BUNDLE", path),
            None => program,
        }
    }
}

/// The longest wait until all connections to the server are closed.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// The expected outcome of an operation that meets a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// The operation succeeds, with exactly the requested result.
    Success,
    /// The operation fails, with one of these error kinds of the library.
    Failure(&'static [&'static str]),
    /// The operation succeeds, or fails with one of these error kinds. The outcome depends on the order of the
    /// requests.
    Either(&'static [&'static str]),
}

impl Expected {
    /// Returns true if the operation may end with an error of this kind, or without one.
    pub fn allows(self, error: Option<&str>) -> bool {
        match (error, self) {
            (None, Self::Success | Self::Either(_)) => true,
            (Some(kind), Self::Failure(kinds) | Self::Either(kinds)) => kinds.contains(&kind),
            (None, Self::Failure(_)) | (Some(_), Self::Success) => false,
        }
    }
}

/// Returns the bytes with all bits inverted. Tests store the result as the new content by another writer.
pub fn inverted(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}

/// Returns the number of unfinished uploads.
pub fn uploads_open(counters: &ServerCounters) -> u64 {
    counters.multipart_open + counters.resumable_open
}

/// Returns the configuration of a server for tests that run in parallel in large numbers: one thread, and no slow
/// work that these tests don't need.
pub fn config_for_faults() -> Config {
    Config {
        threads: Some(1),
        gcs: GcsConfig { md5_bytes_max: 0, ..GcsConfig::default() },
        s3: S3Config { md5_etags: false, ..S3Config::default() },
        ..Config::default()
    }
}

impl Endpoint {
    /// Replaces the faults of the server.
    pub fn set_faults(&self, rules: &[impl AsRef<str>]) {
        let rules = rules.iter().map(AsRef::as_ref);
        self.server().set_faults(Faults::parse(rules).expect("they are rules"));
    }

    /// Removes the faults of the server.
    pub fn end_faults(&self) {
        self.server().set_faults(Faults::default());
    }

    /// Waits until all connections of clients are closed. Returns false if that takes too long.
    pub fn becomes_quiet(&self) -> bool {
        self.server().wait_until_idle(WAIT_MAX)
    }
}
