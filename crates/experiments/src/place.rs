//! Where an experiment takes place.

use std::path::PathBuf;
use std::time::Duration;

use laneway::Provider;
use serde::{Deserialize, Serialize};

/// The store of an experiment.
#[derive(Clone, Debug)]
pub enum Target {
    /// One in this process, in memory, with TLS and HTTP/2.
    Embedded(Imitated),
    /// A store elsewhere.
    Remote(Remote),
}

impl Target {
    /// What the embedded store imitates; `None` of one elsewhere.
    pub fn imitated(&self) -> Option<Imitated> {
        match self {
            Self::Embedded(imitated) => Some(*imitated),
            Self::Remote(_) => None,
        }
    }
}

/// What the embedded store imitates, and in which tongue it is addressed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Imitated {
    /// The round-trip time.
    pub rtt: Duration,
    /// Bytes a second that all connections share in each direction; `None` is as fast as the machine.
    pub bandwidth: Option<u64>,
    /// Bytes that may wait in front of that; `None` is what it sends in a round trip.
    pub queue: Option<u64>,
    /// How many packets are lost by chance, from 0 to 0.5.
    pub loss: f64,
    /// Bytes a second that each connection takes and sends at most; `None` is no cap.
    pub connection_bandwidth: Option<u64>,
    /// Whether HTTP/2 is not offered.
    pub h1_only: bool,
    /// Whose protocol is spoken with it.
    pub provider: Provider,
}

impl Imitated {
    /// Bytes of a segment where slow start is imitated: what an Ethernet frame has room for beside TCP's timestamps.
    pub(crate) const SEGMENT: u32 = 1448;

    /// The link that stands for most: to a neighbouring region, and so slow that two cores fill it several times over, TLS
    /// on both ends included.
    pub const USUAL: Self = Self {
        rtt: Duration::from_millis(20),
        bandwidth: Some(125_000_000),
        queue: None,
        loss: 0.0,
        connection_bandwidth: None,
        h1_only: false,
        provider: Provider::Gcs,
    };

    /// GCS at this distance, without a limit of bandwidth.
    pub fn at(rtt: Duration) -> Self {
        Self { rtt, bandwidth: None, ..Self::USUAL }
    }
}

/// A store elsewhere. What an experiment writes lies under a prefix of its own and is removed at its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Remote {
    /// Whose protocol it speaks.
    pub provider: Provider,
    /// Its base URL.
    pub endpoint: String,
    /// The bucket; `None` is one that is created, and removed at the end if it is new (GCS only).
    pub bucket: Option<String>,
    /// Under which prefix of the bucket; empty for its root.
    pub prefix: String,
    /// The AWS region that requests are signed for.
    pub region: String,
    /// Send no credentials. Without this, Google itself is shown the application default credentials, another TLS
    /// endpoint what `GOOGLE_APPLICATION_CREDENTIALS` names, and a plain-HTTP one nothing; requests to S3 are signed.
    pub anonymous: bool,
    /// The round trip of an imitated path, which its TCP handshakes don't show; zero of a real one.
    pub imitated_rtt: Duration,
    /// PEM files of certificates to be trusted beside the platform's.
    pub ca_files: Vec<PathBuf>,
}

impl Remote {
    /// Google's own endpoint.
    pub const GOOGLE: &str = "https://storage.googleapis.com";
    /// The region of whoever names none.
    pub const REGION: &str = "us-east-1";

    /// A server that speaks GCS's JSON API, with a bucket to be created.
    pub fn gcs(endpoint: impl Into<String>) -> Self {
        Self {
            provider: Provider::Gcs,
            endpoint: endpoint.into(),
            bucket: None,
            prefix: String::new(),
            region: Self::REGION.to_owned(),
            anonymous: false,
            imitated_rtt: Duration::ZERO,
            ca_files: Vec::new(),
        }
    }
}
