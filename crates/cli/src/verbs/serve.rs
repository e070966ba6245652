//! `laneway serve`: a small object store for demos and tests.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use laneway_server::{AzureConfig, Config, FaultRule, Faults, Habits, S3Config, Server, Storage, Tls};
use tempfile::TempDir;

use crate::context::{Context, say};
use crate::exit::Exit;
use crate::job::Interrupt;

/// Run a small object store for demos and tests
///
/// The store speaks Google Cloud Storage's JSON and XML APIs, Amazon S3's API and Azure Blob Storage's API, over the same objects. The
/// server can imitate a distant or failing store. Don't keep important data in this store: anyone who can reach the store can read and
/// write all objects. The store therefore listens on the loopback interface unless --listen says otherwise.
#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// Create this bucket if it doesn't exist; repeat for more
    ///
    /// Example: laneway serve --bucket demo
    #[arg(long = "bucket", value_name = "NAME", value_parser = laneway_server::parse_bucket_name)]
    buckets: Vec<String>,
    /// Keep objects in this folder, instead of in memory
    ///
    /// By default the objects are lost when the server ends.
    ///
    /// Example: laneway serve --root /srv/objects
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Start with the files below this folder as objects: DIR/BUCKET/KEY
    ///
    /// Each folder in DIR becomes a bucket, and the files below it become its objects. The files replace objects of the same name in
    /// --root. A reset of the store (POST /_laneway/reset) reads DIR again.
    ///
    /// Example: laneway serve --seed fixtures
    #[arg(long, value_name = "DIR")]
    seed: Option<PathBuf>,
    /// Listen on this address and port; port 0 takes a free one
    ///
    /// Example: laneway serve --listen 127.0.0.1:0
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9010")]
    listen: SocketAddr,
    /// Keep versions in every new bucket
    ///
    /// Without --versions, a bucket keeps versions only if a client turns them on.
    ///
    /// Example: laneway serve --versions --bucket demo
    #[arg(long)]
    versions: bool,

    /// Accept access control lists, bucket policies and lifecycles, without enforcing them
    ///
    /// Without this option, the server refuses requests for such settings with status 501.
    ///
    /// Example: laneway serve --accept-unenforced --bucket demo
    #[arg(hide_short_help = true, long)]
    accept_unenforced: bool,

    /// Speak TLS, with a certificate made for this run
    ///
    /// Use --cert and --key for a certificate of your own.
    ///
    /// Example: laneway serve --tls --bucket demo
    #[arg(long, help_heading = "TLS")]
    tls: bool,
    /// Use this certificate chain in PEM, the server's own certificate first
    ///
    /// Example: laneway serve --tls --cert chain.pem --key key.pem
    #[arg(hide_short_help = true, long, value_name = "FILE", requires_all = ["tls", "key"], help_heading = "TLS")]
    cert: Option<PathBuf>,
    /// Use this private key for --cert, in PEM
    ///
    /// Example: laneway serve --tls --cert chain.pem --key key.pem
    #[arg(hide_short_help = true, long, value_name = "FILE", requires = "cert", help_heading = "TLS")]
    key: Option<PathBuf>,
    /// Write the CA of the certificate to FILE [default: ca.pem in a temporary folder]
    ///
    /// Example: laneway serve --tls --ca-out ca.pem
    #[arg(
        hide_short_help = true,
        long,
        value_name = "FILE",
        requires = "tls",
        conflicts_with = "cert",
        help_heading = "TLS"
    )]
    ca_out: Option<PathBuf>,
    /// Offer HTTP/1.1 only
    ///
    /// Example: laneway serve --tls --h1-only
    #[arg(long, help_heading = "TLS")]
    h1_only: bool,

    /// Imitate this round-trip time, such as 50ms, also for handshakes
    ///
    /// Example: laneway serve --rtt 50ms --bucket demo
    #[arg(long, value_name = "TIME", value_parser = laneway_quantity::parse_duration, help_heading = "Imitation")]
    rtt: Option<Duration>,
    /// Limit all connections together to this rate in each direction, such as 1Gbit/s
    ///
    /// Each direction has a bottleneck with one queue (--queue). A connection starts with ten segments and then sends as TCP with BBR does.
    /// If a client stops reading, the imitated sender stops too. On Linux, a local client's small TCP window or receive buffer also slows
    /// the sender. Without a rate, bytes are only delayed.
    ///
    /// Example: laneway serve --rtt 20ms --bandwidth 1Gbit/s
    #[arg(long, value_name = "RATE", value_parser = laneway_quantity::parse_rate, help_heading = "Imitation")]
    bandwidth: Option<u64>,
    /// Let at most this many bytes wait for the bottleneck of --bandwidth [default: what it sends in one round trip]
    ///
    /// Bytes beyond it are lost and sent again. The default is at least 64 KiB, and assumes a round trip of at least 5 ms.
    ///
    /// Example: laneway serve --rtt 20ms --bandwidth 1Gbit/s --queue 256KiB
    #[arg(hide_short_help = true, long, value_name = "SIZE", value_parser = laneway_quantity::parse_size, requires = "bandwidth",
          help_heading = "Imitation")]
    queue: Option<u64>,
    /// Lose this share of packets in each direction, such as 0.5% (at most 50%)
    ///
    /// Lost bytes arrive one round trip later, and so do all bytes after them on the same connection. If no bytes follow, the lost ones
    /// arrive two round trips and up to 200 ms later.
    ///
    /// Example: laneway serve --rtt 20ms --loss 0.5%
    #[arg(long, value_name = "PERCENT", value_parser = laneway_quantity::parse_loss, help_heading = "Imitation")]
    loss: Option<f64>,
    /// Limit each connection to this rate, such as 90MB/s
    ///
    /// S3 limits a connection to about 90 MB/s, so a client needs several connections for one object to fill a fast link. The limit applies
    /// to each direction, and includes TLS and framing. The option works without --rtt and --bandwidth.
    ///
    /// Example: laneway serve --connection-bandwidth 90MB/s
    #[arg(hide_short_help = true, long, value_name = "RATE", value_parser = laneway_quantity::parse_rate, help_heading = "Imitation")]
    connection_bandwidth: Option<u64>,
    /// Behave like a service: gcs, s3, r2, b2, minio, sia, storj, gcs-interop, azurite, azurite-3.35 [default: as strict as GCS, S3 and Azure]
    ///
    /// The server then imitates the known differences of that service. They concern conditional requests, checksum headers, parts of
    /// unequal sizes, the lengths of objects stored as gzip, and the starts of listings.
    ///
    /// Example: laneway serve --like minio
    #[arg(long, value_name = "NAME", value_parser = Habits::named, help_heading = "Imitation")]
    like: Option<Habits>,
    /// Fail on purpose by this rule, such as 'get:3 reset@256KiB'; repeat for more
    ///
    /// A rule is [VERB][:SELECTOR] [key=GLOB] ACTION. The rule above resets the connection of the third GET after 256 KiB
    /// of its body. A selector can also be a share such as :10%, or the first requests, as in :1-3. An unknown ACTION is
    /// refused with a list of all actions.
    ///
    /// Example: laneway serve --fault 'put:10% status 503 retry-after 2s'
    #[arg(long = "fault", value_name = "RULE", value_parser = laneway_server::parse_fault, help_heading = "Imitation")]
    faults: Vec<FaultRule>,
    /// Allow N streams at once on an HTTP/2 connection [default: 100]
    ///
    /// Example: laneway serve --tls --max-streams 1
    #[arg(hide_short_help = true, long, value_name = "N", help_heading = "Imitation")]
    max_streams: Option<u32>,
    /// Serve only N connections at once, and let the others wait
    ///
    /// Example: laneway serve --served-connections 4
    #[arg(hide_short_help = true, long, value_name = "N", help_heading = "Imitation")]
    served_connections: Option<NonZeroUsize>,
    /// Reset connections above --served-connections instead of letting them wait
    ///
    /// Example: laneway serve --served-connections 4 --reset-surplus
    #[arg(hide_short_help = true, long, requires = "served_connections", help_heading = "Imitation")]
    reset_surplus: bool,

    /// Check S3 signatures made with this access key
    ///
    /// The server also accepts requests without a signature.
    ///
    /// Example: laneway serve --access-key me --secret-key mine
    #[arg(hide_short_help = true, long, value_name = "KEY", help_heading = "S3")]
    access_key: Option<String>,
    /// Check S3 signatures made with this secret key
    ///
    /// Example: laneway serve --access-key me --secret-key mine
    #[arg(hide_short_help = true, long, value_name = "SECRET", help_heading = "S3")]
    secret_key: Option<String>,

    /// Name the Azure storage account [default: devstoreaccount1]
    ///
    /// The path of an Azure request begins with this name, as at Microsoft's emulators.
    ///
    /// Example: laneway serve --account me --account-key bWluZQ==
    #[arg(hide_short_help = true, long, value_name = "NAME", help_heading = "Azure")]
    account: Option<String>,
    /// Check Azure signatures and SAS tokens made with this key, in base64 [default: the key of Microsoft's emulators]
    ///
    /// Azure requests need a signature, a SAS token or a bearer token, as at the service. A bearer token may have any value.
    ///
    /// Example: laneway serve --account me --account-key bWluZQ==
    #[arg(hide_short_help = true, long, value_name = "KEY", help_heading = "Azure")]
    account_key: Option<String>,
}

/// The address of the server, and the CA of its certificate.
#[derive(Debug)]
struct ServerAddress {
    url: String,
    ca: Option<PathBuf>,
    access_key: String,
    secret_key: String,
    /// The Azure account and its key.
    account: (String, String),
}

/// Returns a line about the requests that the server received, for `--stats`.
fn asked(server: &Server) -> String {
    let counters = server.counters();
    let verbs: Vec<_> =
        counters.requests_by_verb.iter().map(|(verb, count)| format!("{verb} {count}")).collect();
    format!(
        "connections {}, {} at once; requests {}: {}; bytes in {}, out {}",
        counters.connections,
        counters.connections_peak,
        counters.requests,
        verbs.join(", "),
        counters.bytes_in,
        counters.bytes_out
    )
}

impl Serve {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        if self.root.is_none() {
            allocator::return_memory_at_once();
        }
        let config = self.config();
        let (access_key, secret_key) = (config.s3.access_key.clone(), config.s3.secret_key.clone());
        let account = (config.azure.account.clone(), config.azure.key.clone());
        let (stop, stopped) = mpsc::channel::<()>();
        // Handle signals before the address is printed. A program that waits for the address may end the server right after that.
        let _interrupt = Interrupt::listen(move || drop(stop))?;
        let server = Server::start(config)?;
        for bucket in &self.buckets {
            server.create_bucket(bucket)?;
        }
        if let Some(seed) = &self.seed {
            server.sow(seed)?;
        }
        // The folder is removed when the server ends.
        let (_folder, ca) = self.write_ca(&server)?;
        let reach = ServerAddress { url: server.url(), ca, access_key, secret_key, account };
        let is_quiet = context.options.quiet;
        // If the system chose the port, print the line even with -q, because nothing else shows the port.
        if !is_quiet || self.listen.port() == 0 {
            context.output.line(&reach.first_line())?;
            context.output.flush()?;
        }
        if !is_quiet {
            say(&reach.advice(self.listen.ip().is_loopback()));
            if self.accept_unenforced {
                say("Access control lists, bucket policies and lifecycles are stored, but not enforced.");
            }
        }
        // The sender is dropped at the first signal.
        let _ = stopped.recv();
        if context.options.stats {
            say(&asked(&server));
        }
        Ok(Exit::Done)
    }

    fn write_ca(&self, server: &Server) -> anyhow::Result<(Option<TempDir>, Option<PathBuf>)> {
        let Some(pem) = server.ca_pem() else { return Ok((None, None)) };
        let (folder, path) = match &self.ca_out {
            Some(path) => (None, path.clone()),
            None => {
                let folder = tempfile::Builder::new().prefix("laneway-serve-").tempdir()?;
                let path = folder.path().join("ca.pem");
                (Some(folder), path)
            }
        };
        std::fs::write(&path, pem).with_context(|| path.display().to_string())?;
        Ok((folder, Some(path)))
    }

    fn config(&self) -> Config {
        let (defaults, azure) = (S3Config::default(), AzureConfig::default());
        Config {
            listen: self.listen,
            storage: self.root.clone().map_or(Storage::Memory, Storage::Disk),
            tls: self.tls.then(|| match (&self.cert, &self.key) {
                (Some(cert), Some(key)) => Tls::Files { cert: cert.clone(), key: key.clone() },
                _ => Tls::Generated,
            }),
            h1_only: self.h1_only,
            max_streams: self.max_streams,
            rtt: self.rtt.unwrap_or_default(),
            bandwidth: self.bandwidth,
            queue: self.queue,
            loss: self.loss.unwrap_or_default(),
            connection_bandwidth: self.connection_bandwidth,
            served_connections: self.served_connections.map(NonZeroUsize::get),
            reset_surplus: self.reset_surplus,
            habits: self.like.clone().unwrap_or_default(),
            faults: Faults { rules: self.faults.clone() },
            versions: self.versions,
            accept_unenforced: self.accept_unenforced,
            report: Some(|trouble| say(&format!("laneway serve: {trouble}"))),
            s3: S3Config {
                access_key: self.access_key.clone().unwrap_or(defaults.access_key.clone()),
                secret_key: self.secret_key.clone().unwrap_or(defaults.secret_key.clone()),
                ..defaults
            },
            azure: AzureConfig {
                account: self.account.clone().unwrap_or(azure.account.clone()),
                key: self.account_key.clone().unwrap_or(azure.key.clone()),
                ..azure
            },
            ..Config::default()
        }
    }
}

impl ServerAddress {
    /// Returns the line that programs wait for and parse.
    fn first_line(&self) -> String {
        match &self.ca {
            Some(ca) => format!("laneway serve: listening on {} (CA: {})", self.url, ca.display()),
            None => format!("laneway serve: listening on {}", self.url),
        }
    }

    /// Returns instructions as lines to paste into a shell.
    fn advice(&self, loopback: bool) -> String {
        let ca = self.ca.as_deref().map(|ca| format!(" --ca-cert {}", quoted(ca))).unwrap_or_default();
        let mut text = String::from(
            "This store is for demos and tests; don't keep important data here. Press Ctrl-C to stop it.\n",
        );
        if !loopback {
            text += "The store listens on more than the loopback interface: anyone who can reach it can read and write all objects.\n";
        }
        text += "To use the store:\n";
        let (url, key, secret) = (&self.url, &self.access_key, &self.secret_key);
        text += &format!("  laneway{ca} --gcs-endpoint {url} --anonymous --project any ls gs://\n");
        text +=
            &format!("  AWS_ACCESS_KEY_ID={key} AWS_SECRET_ACCESS_KEY={secret} AWS_REGION=us-east-1 \\\n");
        text += &format!("    laneway{ca} --s3-endpoint {url} ls s3://\n");
        let (account, key) = &self.account;
        text += &format!("  AZURE_STORAGE_ACCOUNT={account} AZURE_STORAGE_KEY={key} \\\n");
        text += &format!("    laneway{ca} --azure-endpoint {url}/{account} ls az://");
        text
    }
}

mod allocator {
    #![allow(unsafe_code, reason = "the allocator's options have no safe interface")]

    /// `mi_option_purge_delay` of mimalloc 2 and 3, for which the crate has no name.
    const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

    /// Lets the allocator return freed memory to the system at once. By default, the allocator keeps freed memory
    /// for 10 ms, and then until the thread that allocated the memory calls it again. An idle server would keep the
    /// memory of deleted objects.
    pub(super) fn return_memory_at_once() {
        // SAFETY: the option is a number that mimalloc reads atomically, at any time.
        unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, 0) }
    }
}

/// Returns a path quoted for a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
