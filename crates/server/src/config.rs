//! The configuration of a server.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::fault::Faults;
use crate::habits::Habits;

/// All settings of a server. `Config::default()` is a plain-HTTP server in memory, on a free port of the loopback
/// interface, without delay, bandwidth limit or faults.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address to listen on. Port 0 chooses a free port. This is a demo store without real access control, so an
    /// address other than loopback lets everybody on the network use it.
    pub listen: SocketAddr,
    /// The storage of objects.
    pub storage: Storage,
    /// The certificate for TLS. `None` means plain HTTP/1.1.
    pub tls: Option<Tls>,
    /// If true, ALPN offers only `http/1.1`. Without TLS there is only HTTP/1.1 anyway.
    pub h1_only: bool,
    /// The maximum number of concurrent streams on an HTTP/2 connection (SETTINGS_MAX_CONCURRENT_STREAMS). `None` means
    /// 100, as at GCS.
    pub max_streams: Option<u32>,
    /// The simulated round-trip time. Half of it delays each direction. The first bytes of a connection also wait for
    /// one round trip after it was accepted. This stands for the TCP handshake, which takes no time on loopback.
    pub rtt: Duration,
    /// The simulated bottleneck in bytes per second, shared by all connections, for each direction separately. `None`
    /// means no limit, so that bytes are only delayed. With a limit, each connection begins with a window of ten
    /// segments, and they share the bottleneck as BBR senders do. On Linux, if a client on this machine sets small
    /// socket buffers, they limit its transfers as on a real path.
    pub bandwidth: Option<u64>,
    /// The size in bytes of the queue before the bottleneck of [`bandwidth`](Self::bandwidth). Each direction has its
    /// own queue. Bytes that don't fit into the queue are dropped and sent again, so they arrive a round trip or more
    /// later. `None` means as many bytes as the bottleneck carries in a round trip (at least 5 ms), and at least 64
    /// KiB.
    pub queue: Option<u64>,
    /// The share of packets (of 1448 bytes each) that are lost at random in each direction, from 0 to 0.5. The random
    /// numbers start from `seed`.
    pub loss: f64,
    /// The maximum rate of each connection in bytes per second, in each direction separately, including TLS and
    /// framing. `None` means no limit. S3 sends about 90 MB/s on a connection. After a pause, 64 KiB or the
    /// bytes of 3 ms, if they are more, pass without delay. If a client sends faster, its bytes wait in buffers of the
    /// kernel or of the simulated path.
    pub connection_bandwidth: Option<u64>,
    /// The maximum number of connections that are served at the same time. `None` means no limit. Further connections
    /// are accepted, and wait until a served one ends.
    pub served_connections: Option<usize>,
    /// If true, connections above [`served_connections`](Self::served_connections) are reset instead of waiting.
    pub reset_surplus: bool,
    /// The time after which an HTTP/1.1 connection without requests is closed; `None` is 30 s, as in MinIO.
    pub idle_max: Option<Duration>,
    /// The injected faults.
    pub faults: Faults,
    /// The seed of the random numbers for `:P%` fault selectors and lost packets.
    pub seed: u64,
    /// If true, the first write to a bucket creates the bucket. If false, as in the real stores, the write gets 404.
    pub create_buckets: bool,
    /// If true, versioning is enabled on each new bucket. The real stores don't do this.
    pub versions: bool,
    /// The worker threads of the server's own runtime. `None` is the number of cores, at most 2.
    pub threads: Option<usize>,
    /// The behaviour of other stores that the server imitates. The default is as strict as GCS and S3.
    pub habits: Habits,
    /// If true, the server stores and returns access control lists, bucket policies and lifecycles, but doesn't enforce
    /// them. If false, requests for them get 501.
    pub accept_unenforced: bool,
    /// A function that gets a message of one line about a problem that only the operator can solve, such as a full
    /// disk.
    pub report: Option<fn(&str)>,
    /// The settings of the S3 dialect.
    pub s3: S3Config,
    /// The settings of the GCS dialect.
    pub gcs: GcsConfig,
    /// The settings of the Azure dialect.
    pub azure: AzureConfig,
    /// Buckets that return 403 to every request, in both dialects.
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
            accept_unenforced: false,
            report: None,
            s3: S3Config::default(),
            gcs: GcsConfig::default(),
            azure: AzureConfig::default(),
            denied_buckets: BTreeSet::new(),
        }
    }
}

/// The storage of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// The objects are in memory, and are lost when the server ends.
    Memory,
    /// The objects are files below this folder. The server creates the folder if it is missing, and reads its objects
    /// at the next start.
    Disk(PathBuf),
}

/// The certificate to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tls {
    /// The server generates a certificate authority for this run, and a certificate for `localhost`, 127.0.0.1, ::1 and
    /// its own address.
    Generated,
    /// The server reads PEM files with a certificate chain and its private key.
    Files {
        /// The certificate chain, with the server's own certificate first.
        cert: PathBuf,
        /// The private key (PKCS#8, PKCS#1 or SEC1).
        key: PathBuf,
    },
}

/// The settings of the S3 dialect.
#[derive(Debug, Clone)]
pub struct S3Config {
    /// The access key whose signatures are verified. Unsigned requests are also accepted. For tests of expiring
    /// credentials, a session token of the form `until-20261124T154500Z` is refused from that time on.
    pub access_key: String,
    /// The secret of that access key.
    pub secret_key: String,
    /// The region of all buckets that `bucket_regions` doesn't name.
    pub region: String,
    /// Buckets in other regions. A request that isn't signed for the bucket's region gets 301 PermanentRedirect with
    /// `x-amz-bucket-region`.
    pub bucket_regions: BTreeMap<String, String>,
    /// Regions that an account must enable first (opt-in regions). A request for a bucket there that isn't signed for
    /// the region gets 400 IllegalLocationConstraintException. This error doesn't name the region, but HeadBucket does.
    pub opt_in_regions: BTreeSet<String>,
    /// The minimum size in bytes of all parts but the last. If a part is smaller, the completion fails with
    /// EntityTooSmall. 0 turns the check off. The default is 5 MiB, as in S3.
    pub part_size_min: u64,
    /// The number of seconds by which the server's clock is ahead of this machine's, or behind if negative. The server
    /// refuses a signature whose time differs from its clock by more than 15 minutes.
    pub clock_ahead_s: i64,
    /// The time after which an archived object is restored. The default is 1 minute, the shortest time that S3 names
    /// (for expedited restorations).
    pub restores_take: Duration,
    /// If true, ETags are MD5s, as in S3 without KMS. If false, they are opaque texts, which saves 1.6 CPU seconds per
    /// GiB.
    pub md5_etags: bool,
    /// If true, answers to reads have checksums on request. If false, they have none, to imitate servers without
    /// checksums.
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

/// The settings of the Azure dialect.
#[derive(Debug, Clone)]
pub struct AzureConfig {
    /// The name of the only storage account.
    pub account: String,
    /// The account's key, in base64. Signatures and SAS tokens are verified with it. The default account and key are those
    /// of Microsoft's emulators, which all clients know.
    pub key: String,
    /// The time that Copy Blob takes. Until then, the copy is pending and the destination is empty. With 0, the first
    /// answer already reports the copy's success.
    pub copies_take: Duration,
    /// The time after which a blob has left the archive tier.
    pub rehydration_takes: Duration,
}

impl Default for AzureConfig {
    fn default() -> AzureConfig {
        AzureConfig {
            account: "devstoreaccount1".to_owned(),
            key: "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
                .to_owned(),
            copies_take: Duration::ZERO,
            rehydration_takes: Duration::from_secs(60),
        }
    }
}

/// The settings of the GCS dialect.
#[derive(Debug, Clone)]
pub struct GcsConfig {
    /// The number of bytes that one `rewriteTo` call copies before it returns a token. `None` means that the first call
    /// copies all of them.
    pub rewrite_bytes_max: Option<u64>,
    /// The minimum size in bytes of all parts but the last, in multipart uploads of the XML API. 0 turns the check off.
    /// The default is 5 MiB, as in GCS.
    pub part_size_min: u64,
    /// If true, the server has the XML API. If false, its requests get 404, as in `fake-gcs-server`.
    pub xml: bool,
    /// If true, the server has the endpoint for batches.
    pub batch: bool,
    /// The largest object in bytes that gets an MD5 even if its writer sent none. By default all objects get one,
    /// except composed ones, as at GCS. An MD5 takes 1.6 CPU seconds per GiB.
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
