//! How a server is set up.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::fault::Faults;
use crate::habits::Habits;

/// All settings of a server. `Config::default()` is a plain-HTTP server in memory on a free port of the
/// loopback interface, without delay, bandwidth limit or faults.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen; port 0 takes a free one. It is a demo store without real access control: anything but
    /// loopback opens it to the network.
    pub listen: SocketAddr,
    /// Where objects are kept.
    pub storage: Storage,
    /// `None` is plain HTTP/1.1.
    pub tls: Option<Tls>,
    /// Offer only `http/1.1` by ALPN. Without TLS there is only h1 anyway.
    pub h1_only: bool,
    /// SETTINGS_MAX_CONCURRENT_STREAMS; `None` is 100, as at GCS.
    pub max_streams: Option<u32>,
    /// The round-trip time to imitate: half of it delays each direction, and the first bytes of a connection
    /// begin to travel one whole after it was accepted, in the place of the TCP handshake.
    pub rtt: Duration,
    /// Bytes per second that all connections share, in each direction by itself; `None` is unlimited: then
    /// bytes are delayed and nothing else. With it connections begin with ten segments and share the bottleneck as BBR's senders
    /// do. On Linux, what a client of this machine keeps small, receive windows and send buffers, holds its bytes back.
    pub bandwidth: Option<u64>,
    /// Bytes that may wait in front of that bottleneck, in each direction. What finds no place is dropped, and comes a round
    /// trip or more later. `None` is what the bottleneck carries in a round trip, in 5 ms at least, and 64 KiB.
    pub queue: Option<u64>,
    /// How many of all packets of 1448 bytes are lost by chance, from 0 to 0.5, in each direction. What is drawn starts
    /// from `seed`.
    pub loss: f64,
    /// Bytes per second that each connection takes and sends at most, in each direction by itself, TLS and framing included;
    /// `None` is no cap. S3 sends some 90 MB/s on a connection. After a pause 64 KiB pass at once, or what the rate brings in 3 ms.
    /// Behind the cap, buffers of the kernel or of the imitated path take in what a client sends sooner.
    pub connection_bandwidth: Option<u64>,
    /// The number of connections served at once; `None` is all. Others are accepted, and wait for the end of one that is served.
    pub served_connections: Option<usize>,
    /// Those others are reset instead.
    pub reset_surplus: bool,
    /// How long an h1 connection is kept on which no request comes; `None` is 30 s, as at MinIO.
    pub idle_max: Option<Duration>,
    /// Faults on purpose.
    pub faults: Faults,
    /// What the draws of `:P%` fault selectors and of lost packets start from.
    pub seed: u64,
    /// Create a bucket when an object is first written to it. Off, as in the real stores: 404.
    pub create_buckets: bool,
    /// Buckets keep versions from their beginning, as if versioning had been enabled on each. Off, as in the real stores.
    pub versions: bool,
    /// Worker threads of the server's own runtime; `None` is the smaller of the cores and 2.
    pub threads: Option<usize>,
    /// Which service's habits to have; as strict as GCS and S3 unless it is set otherwise.
    pub habits: Habits,
    /// What only the S3 dialect asks for.
    pub s3: S3Config,
    /// What only the GCS dialect asks for.
    pub gcs: GcsConfig,
    /// Buckets that answer 403 to everything, in both dialects.
    pub denied_buckets: BTreeSet<String>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            storage: Storage::Memory,
            tls: None,
            h1_only: false,
            max_streams: None,
            rtt: Duration::ZERO,
            bandwidth: None,
            queue: None,
            loss: 0.0,
            connection_bandwidth: None,
            served_connections: None,
            reset_surplus: false,
            idle_max: None,
            faults: Faults::default(),
            seed: 0,
            create_buckets: false,
            versions: false,
            threads: None,
            habits: Habits::strict(),
            s3: S3Config::default(),
            gcs: GcsConfig::default(),
            denied_buckets: BTreeSet::new(),
        }
    }
}

/// Where objects are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// In memory, gone with the server.
    Memory,
    /// As files under this folder, which is created if missing and read back at the next start.
    Disk(PathBuf),
}

/// With which certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tls {
    /// A CA made for this run and a leaf for `localhost`, 127.0.0.1, ::1 and the address listened on.
    Generated,
    /// PEM files: a chain, leaf first, and its private key.
    Files {
        /// The chain.
        cert: PathBuf,
        /// The private key (PKCS#8, PKCS#1 or SEC1).
        key: PathBuf,
    },
}

/// What only the S3 dialect asks for.
#[derive(Debug, Clone)]
pub struct S3Config {
    /// The access key whose signatures are verified. Unsigned requests are served as well. A session token of the form
    /// `until-20261124T154500Z` is refused as expired from then on.
    pub access_key: String,
    /// Its secret.
    pub secret_key: String,
    /// The region of every bucket that `bucket_regions` doesn't name.
    pub region: String,
    /// Buckets of other regions. A request that isn't signed for the bucket's region gets 301 PermanentRedirect
    /// with `x-amz-bucket-region`.
    pub bucket_regions: BTreeMap<String, String>,
    /// Regions that an account has to opt in to. A request for a bucket there that isn't signed for it gets 400
    /// IllegalLocationConstraintException, which doesn't name the region; HeadBucket does.
    pub opt_in_regions: BTreeSet<String>,
    /// Smallest part in bytes, but for the last, below which completing fails with EntityTooSmall; 0 switches
    /// the check off. Default 5 MiB, as S3.
    pub part_size_min: u64,
    /// How many seconds the server's clock is ahead of this machine's; negative, behind. What is signed at a time that
    /// differs from it by more than 15 minutes is refused.
    pub clock_ahead_s: i64,
    /// How long it takes to restore what is archived. Default 1 minute, which is the least that S3 names, for expedited ones.
    pub restores_take: Duration,
    /// Whether ETags are MD5s, as at S3 without KMS. Off, they are opaque, which spares 1.6 CPU seconds per GiB.
    pub md5_etags: bool,
    /// Whether answers to reads carry checksums where they are asked for. Off, as in servers that know none.
    pub checksums: bool,
}

impl Default for S3Config {
    fn default() -> S3Config {
        S3Config {
            access_key: "laneway".to_owned(),
            secret_key: "lanewaysecret".to_owned(),
            region: "us-east-1".to_owned(),
            bucket_regions: BTreeMap::new(),
            opt_in_regions: BTreeSet::new(),
            part_size_min: 5 << 20,
            clock_ahead_s: 0,
            restores_take: Duration::from_secs(60),
            md5_etags: true,
            checksums: true,
        }
    }
}

/// What only the GCS dialect asks for.
#[derive(Debug, Clone)]
pub struct GcsConfig {
    /// How many bytes one `rewriteTo` call copies before it answers with a token; `None` is all of them.
    pub rewrite_bytes_max: Option<u64>,
    /// Smallest part in bytes, but for the last, of XML multipart uploads; 0 switches the check off. Default 5 MiB, as GCS.
    pub part_size_min: u64,
    /// Whether there is an XML API. Off, its requests answer 404 in the manner of `fake-gcs-server`.
    pub xml: bool,
    /// Whether there is a batch endpoint.
    pub batch: bool,
    /// Largest object in bytes that has an MD5 even if its writer sent none. By default all have one unless they are composed,
    /// as at GCS. An MD5 takes 1.6 CPU seconds per GiB.
    pub md5_bytes_max: u64,
}

impl Default for GcsConfig {
    fn default() -> GcsConfig {
        GcsConfig {
            rewrite_bytes_max: None,
            part_size_min: 5 << 20,
            xml: true,
            batch: true,
            md5_bytes_max: u64::MAX,
        }
    }
}
