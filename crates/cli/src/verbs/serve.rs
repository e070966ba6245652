//! `laneway serve`: a small object store for demos and tests.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use laneway_server::{Config, FaultRule, Faults, Habits, S3Config, Server, Storage, Tls};
use tempfile::TempDir;

use crate::context::{Context, say};
use crate::exit::Exit;
use crate::interrupt::Interrupt;

/// Run a small object store for demos and tests
///
/// It speaks Google Cloud Storage's JSON and XML APIs and Amazon S3's, both over the same objects, and can imitate a
/// distant or a failing store. It is no store for anything that matters: whoever reaches it may read and write
/// everything, which is why it listens on the loopback interface unless told otherwise.
#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// Keep objects in this folder; without it they are kept in memory and gone at the end
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Address and port; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9010")]
    listen: SocketAddr,
    /// Create this bucket if it doesn't exist; may be given several times
    #[arg(long = "bucket", value_name = "NAME", value_parser = laneway_server::parse_bucket_name)]
    buckets: Vec<String>,
    /// Keep versions in every bucket that is created; without it, in those whose clients ask for it
    #[arg(long)]
    versions: bool,

    /// Speak TLS, with a certificate made for this run unless --cert and --key give one
    #[arg(long, help_heading = "TLS")]
    tls: bool,
    /// Certificate chain in PEM, the server's own first
    #[arg(long, value_name = "FILE", requires_all = ["tls", "key"], help_heading = "TLS")]
    cert: Option<PathBuf>,
    /// Private key of --cert in PEM
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "TLS")]
    key: Option<PathBuf>,
    /// Where to write the CA of the certificate made for this run [default: ca.pem in a folder of its own]
    #[arg(long, value_name = "FILE", requires = "tls", conflicts_with = "cert", help_heading = "TLS")]
    ca_out: Option<PathBuf>,
    /// Offer HTTP/1.1 alone
    #[arg(long, help_heading = "TLS")]
    h1_only: bool,

    /// Have the habits of a service: gcs, s3, r2, b2, minio, gcs-interop [default: as strict as GCS and S3]
    ///
    /// What it refuses, passes over in silence or leaves out, as far as it is known to differ: conditions, headers of
    /// checksums, parts of unequal sizes, lengths of what is stored as gzip.
    #[arg(long, value_name = "NAME", value_parser = Habits::named, help_heading = "Imitation")]
    like: Option<Habits>,
    /// Allow so many streams at once on an HTTP/2 connection [default: 100]
    #[arg(long, value_name = "N", help_heading = "Imitation")]
    max_streams: Option<u32>,
    /// Delay everything, handshakes included, as this round trip would: 50ms
    #[arg(long, value_name = "TIME", value_parser = laneway_quantity::parse_duration, help_heading = "Imitation")]
    rtt: Option<Duration>,
    /// Bytes a second that all connections share in each direction: 1Gbit/s, 100MB/s
    ///
    /// Each direction has a bottleneck with a queue (--queue), in which everybody waits behind what others have sent.
    /// Connections begin with ten segments, and send as TCP does with BBR. A client that doesn't read stops its sender;
    /// on Linux, windows and buffers that a client of this machine keeps small hold its bytes back too. Without a bandwidth
    /// bytes are delayed and no more.
    #[arg(long, value_name = "RATE", value_parser = laneway_quantity::parse_rate, help_heading = "Imitation")]
    bandwidth: Option<u64>,
    /// Bytes that wait at most in front of --bandwidth; what comes beyond is lost, and sent again [default: a round trip's]
    ///
    /// The default is what the bottleneck sends in a round trip, in 5 ms at least, and at least 64 KiB.
    #[arg(long, value_name = "SIZE", value_parser = laneway_quantity::parse_size, requires = "bandwidth",
          help_heading = "Imitation")]
    queue: Option<u64>,
    /// Lose so many packets by chance, in each direction: 0.5%
    ///
    /// Their bytes come late, and all that follow them on their connection: by a round trip, or by two and up to 200 ms more
    /// where nothing follows. At most 50%.
    #[arg(long, value_name = "PERCENT", value_parser = laneway_quantity::parse_loss, help_heading = "Imitation")]
    loss: Option<f64>,
    /// Bytes a second that each connection takes and sends at most: 90MB/s
    ///
    /// S3 caps a connection at some 90 MB/s, so that one object needs several to fill a fast link. The cap counts TLS and framing, holds
    /// in each direction by itself, and needs neither --rtt nor --bandwidth.
    #[arg(long, value_name = "RATE", value_parser = laneway_quantity::parse_rate, help_heading = "Imitation")]
    connection_bandwidth: Option<u64>,
    /// Serve only so many connections at once; others are accepted, and wait for the end of one of these
    #[arg(long, value_name = "N", help_heading = "Imitation")]
    served_connections: Option<NonZeroUsize>,
    /// Reset connections beyond --served-connections in place of letting them wait
    #[arg(long, requires = "served_connections", help_heading = "Imitation")]
    reset_surplus: bool,
    /// Fail on purpose, as in 'get:3 reset@256KiB' or 'put:10% status 503 retry-after 2s'; may be given several times
    #[arg(long = "fault", value_name = "RULE", value_parser = laneway_server::parse_fault, help_heading = "Imitation")]
    faults: Vec<FaultRule>,

    /// Access key whose signatures are checked on the S3 side; unsigned requests are served all the same
    #[arg(long, value_name = "KEY", help_heading = "S3")]
    access_key: Option<String>,
    /// Its secret
    #[arg(long, value_name = "SECRET", help_heading = "S3")]
    secret_key: Option<String>,
}

/// Where a served store can be reached, and how its certificate is trusted.
#[derive(Debug)]
struct Reach {
    url: String,
    ca: Option<PathBuf>,
    access_key: String,
    secret_key: String,
}

/// What was asked of a server, for `--stats`.
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
        let config = self.config();
        let (access_key, secret_key) = (config.s3.access_key.clone(), config.s3.secret_key.clone());
        let (stop, stopped) = mpsc::channel::<()>();
        // Before the address is printed: whoever reads it may already want to end the server.
        let _interrupt = Interrupt::listen(move || drop(stop))?;
        let server = Server::start(config)?;
        for bucket in &self.buckets {
            server.create_bucket(bucket)?;
        }
        // The folder goes when the server ends.
        let (_folder, ca) = self.write_ca(&server)?;
        let reach = Reach { url: server.url(), ca, access_key, secret_key };
        context.output.line(&reach.first_line())?;
        context.output.flush()?;
        if !context.options.quiet {
            say(&reach.advice(self.listen.ip().is_loopback()));
        }
        // The sender goes away at the first signal.
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
        let defaults = S3Config::default();
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
            s3: S3Config {
                access_key: self.access_key.clone().unwrap_or(defaults.access_key.clone()),
                secret_key: self.secret_key.clone().unwrap_or(defaults.secret_key.clone()),
                ..defaults
            },
            ..Config::default()
        }
    }
}

impl Reach {
    /// The line that programs wait for and parse.
    fn first_line(&self) -> String {
        match &self.ca {
            Some(ca) => format!("laneway serve: listening on {} (CA: {})", self.url, ca.display()),
            None => format!("laneway serve: listening on {}", self.url),
        }
    }

    /// How to use it, as lines to paste into a shell.
    fn advice(&self, loopback: bool) -> String {
        let ca = self.ca.as_deref().map(|ca| format!(" --ca-cert {}", quoted(ca))).unwrap_or_default();
        let mut text =
            String::from("A store for demos and tests, not for data that matters. Ctrl-C ends it.\n");
        if !loopback {
            text += "It listens on more than the loopback interface: whoever reaches it may read and write everything.\n";
        }
        let (url, key, secret) = (&self.url, &self.access_key, &self.secret_key);
        text +=
            &format!("  GOOGLE_CLOUD_PROJECT=any laneway{ca} --gcs-endpoint {url} --anonymous ls gs://\n");
        text +=
            &format!("  AWS_ACCESS_KEY_ID={key} AWS_SECRET_ACCESS_KEY={secret} AWS_REGION=us-east-1 \\\n");
        text += &format!("    laneway{ca} --s3-endpoint {url} ls s3://");
        text
    }
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
