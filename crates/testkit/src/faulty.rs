//! Shared by the fault matrices: a store that can fail, the expected end of an operation with a fault, and another
//! writer's change of an object.

use std::time::Duration;

use laneway_server::{Config, Counters, Faults, GcsConfig, S3Config};

use crate::Endpoint;

/// The longest wait until the server has noticed the end of all connections.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// The expected end of an operation that meets a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// A success with exactly the requested result.
    Success,
    /// An error of one of these kinds of the library.
    Failure(&'static [&'static str]),
    /// Either of them, depending on the order of requests.
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

/// Returns another writer's change of an object's bytes.
pub fn inverted(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}

/// Returns the number of unfinished uploads.
pub fn uploads_open(counters: &Counters) -> u64 {
    counters.multipart_open + counters.resumable_open
}

/// Returns the configuration of a server for many cells that run beside others: one thread, and no slow work that
/// doesn't matter.
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
        self.server().wait_until(WAIT_MAX, |counters| counters.connections_open == 0)
    }
}
