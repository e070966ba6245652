//! A store for tests: the embedded server on a free port, and the settings that a client needs.

use std::fs;
use std::path::{Path, PathBuf};

use laneway_server::{Config, Server, Tls};
use tempfile::TempDir;

use crate::Program;

/// The protocol of connections to the store.
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
    /// The bucket that exists from the start, in both dialects.
    pub const BUCKET: &'static str = "bucket";

    /// Starts a server without delay or faults, with objects in memory.
    pub fn start(wire: Wire) -> Self {
        Self::start_with(wire, Config::default())
    }

    /// Starts a server with this configuration, except the settings that `wire` decides.
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

    /// Returns its base URL, for both dialects.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Returns the certificate authority to trust, if the server uses TLS.
    pub fn ca_file(&self) -> Option<&Path> {
        self.ca_file.as_deref()
    }

    /// Returns an empty folder that is removed with the server.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Puts an object into the store without a protocol.
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

    /// Returns the program at `binary`, configured only by variables to reach this server in both dialects.
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
