//! What the matrices of faults share: a store that can fail, how something has to end that meets it, and what another writer makes of an
//! object.

use std::time::Duration;

use laneway_server::{Config, Counters, Faults, GcsConfig, S3Config};

use crate::Endpoint;

/// How long what is over may take until the server has seen it.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// How something has to end that meets a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// With exactly what was asked for.
    Success,
    /// With an error of one of these kinds of the library's.
    Failure(&'static [&'static str]),
    /// With either, by which of several requests came first.
    Either(&'static [&'static str]),
}

impl Expected {
    /// Whether it may have ended with an error of that kind, or without one.
    pub fn allows(self, error: Option<&str>) -> bool {
        match (error, self) {
            (None, Self::Success | Self::Either(_)) => true,
            (Some(kind), Self::Failure(kinds) | Self::Either(kinds)) => kinds.contains(&kind),
            (None, Self::Failure(_)) | (Some(_), Self::Success) => false,
        }
    }
}

/// What another writer makes of an object's bytes.
pub fn inverted(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}

/// Uploads that are begun and have no end.
pub fn uploads_open(counters: &Counters) -> u64 {
    counters.multipart_open + counters.resumable_open
}

/// A server for many cells beside others: of one thread, without what takes time and decides nothing.
pub fn config_for_faults() -> Config {
    Config {
        threads: Some(1),
        gcs: GcsConfig { md5_bytes_max: 0, ..GcsConfig::default() },
        s3: S3Config { md5_etags: false, ..S3Config::default() },
        ..Config::default()
    }
}

impl Endpoint {
    /// The faults that the server has from now on, instead of those before.
    pub fn set_faults(&self, rules: &[impl AsRef<str>]) {
        let rules = rules.iter().map(AsRef::as_ref);
        self.server().set_faults(Faults::parse(rules).expect("they are rules"));
    }

    /// The server has no faults any more.
    pub fn end_faults(&self) {
        self.server().set_faults(Faults::default());
    }

    /// Waits until all that clients had open is closed, and says whether it is.
    pub fn becomes_quiet(&self) -> bool {
        self.server().wait_until(WAIT_MAX, |counters| counters.connections_open == 0)
    }
}
