//! The store that an experiment runs against.

use std::path::PathBuf;
use std::time::Duration;

use laneway::Provider;
use serde::{Deserialize, Serialize};

/// The store of an experiment.
#[derive(Clone, Debug)]
pub enum Target {
    /// A store in this process, in memory, with TLS and HTTP/2.
    Embedded(Imitated),
    /// An external store.
    Remote(Remote),
}

impl Target {
    /// Returns the conditions that the embedded store simulates, or `None` for an external store.
    pub fn imitated(&self) -> Option<Imitated> {
        match self {
            Self::Embedded(imitated) => Some(*imitated),
            Self::Remote(_) => None,
        }
    }
}

/// The conditions that the embedded store simulates, and the API that clients use.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Imitated {
    /// The round-trip time.
    pub rtt: Duration,
    /// Bytes per second that all connections share in each direction. `None` sets no limit.
    pub bandwidth: Option<u64>,
    /// Bytes that may wait in the queue before the link. `None` is the number of bytes that the link sends in a round
    /// trip.
    pub queue: Option<u64>,
    /// Share of packets that are lost at random, from 0 to 0.5.
    pub loss: f64,
    /// Maximum bytes per second that each connection receives and sends. `None` sets no limit.
    pub connection_bandwidth: Option<u64>,
    /// `true` offers no HTTP/2.
    pub h1_only: bool,
    /// The provider whose API is used.
    pub provider: Provider,
}

impl Imitated {
    /// Bytes of a segment in simulated slow start. It is the payload of an Ethernet frame, minus the headers of IP and
    /// TCP with TCP's timestamps.
    pub(crate) const SEGMENT: u32 = 1448;

    /// The default link, like that to a neighbouring region. Two cores can send several times its rate, including TLS
    /// on both ends, so the processor doesn't limit a run.
    pub const USUAL: Self = Self {
        rtt: Duration::from_millis(20),
        bandwidth: Some(125_000_000),
        queue: None,
        loss: 0.0,
        connection_bandwidth: None,
        h1_only: false,
        provider: Provider::Gcs,
    };

    /// Simulates GCS with this round trip, without a bandwidth limit.
    pub fn at(rtt: Duration) -> Self {
        Self { rtt, bandwidth: None, ..Self::USUAL }
    }
}

/// An external store. An experiment writes its objects under a unique prefix and removes them at its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Remote {
    /// The provider whose API the store speaks.
    pub provider: Provider,
    /// The store's base URL.
    pub endpoint: String,
    /// The bucket. With `None` (GCS only), the experiment uses a bucket with a fixed name. If the bucket doesn't exist,
    /// the experiment creates it, and removes it at the end.
    pub bucket: Option<String>,
    /// The prefix in the bucket, or empty for its root.
    pub prefix: String,
    /// The AWS region that requests are signed for.
    pub region: String,
    /// `true` sends no credentials. Otherwise requests to S3 are signed. Among GCS servers, only Google's own hosts
    /// receive the application default credentials. Any other TLS endpoint receives only the credentials in
    /// `GOOGLE_APPLICATION_CREDENTIALS`, and a plain-HTTP endpoint receives none.
    pub anonymous: bool,
    /// The round trip of a simulated path, or zero for a real path. It is needed because a simulated path doesn't delay
    /// TCP handshakes, so clients can't learn the round trip from them.
    pub imitated_rtt: Duration,
    /// PEM files of certificates to trust in addition to the platform's.
    pub ca_files: Vec<PathBuf>,
}

impl Remote {
    /// Google's own endpoint.
    pub const GOOGLE: &str = "https://storage.googleapis.com";
    /// The default region.
    pub const REGION: &str = "us-east-1";

    /// Describes a server with GCS's JSON API, on which a bucket will be created.
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
