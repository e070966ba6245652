//! A running server.

use std::io::{ErrorKind, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use time::OffsetDateTime;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use crate::config::{Config, Tls};
use crate::counters::{LiveCounters, ServerCounters};
use crate::fault::Faults;
use crate::fault::injector::FaultInjector;
use crate::gcs::resumable::ResumableSessions;
use crate::initial::Initial;
use crate::link::pump::Link;
use crate::objects::{Objects, StoreError};
use crate::service::ServerState;
use crate::{Error, azure, connection, gcs, initial, link, s3};

/// The maximum number of connections that wait to be accepted. It is large, because the client of any further
/// connection would lose a second until it sends its SYN again.
const BACKLOG: u32 = 4096;

/// The size in bytes of socket buffers if a bottleneck is simulated (Linux doubles it). It is small, because bytes in
/// these buffers aren't part of the simulation. By default, loopback sockets buffer megabytes.
const LINK_SOCKET_BYTES: u32 = 16 << 10;

/// The pause before the next connection is accepted, if the system has no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A running server with its own threads. It stops when it is dropped, and closes its connections at once.
pub struct Server {
    runtime: Option<Runtime>,
    shared: Arc<ServerState>,
    addr: SocketAddr,
    ca_pem: Option<String>,
}

impl Server {
    /// Opens the store, binds the address and begins to serve. It returns when the address accepts connections.
    ///
    /// # Errors
    /// Returns the reason why the store can't be opened, the certificate can't be read, or the address can't be bound.
    pub fn start(config: Config) -> Result<Server, Error> {
        let objects =
            Objects::reporting(&config.storage, config.create_buckets, config.versions, config.report)
                .map_err(|error| Error::io(format!("opening the store ({:?})", config.storage), error))?;
        let objects = Arc::new(objects);
        let sessions = ResumableSessions::of(&objects)
            .map_err(|error| Error::io("reading the resumable sessions that the store has kept", error))?;
        let ready = match &config.tls {
            Some(tls) => Some(prepare_tls(tls, config.listen.ip(), config.h1_only)?),
            None => None,
        };
        let path = link::LinkPath::new(config.rtt, config.bandwidth, config.queue, config.loss);
        let threads = config
            .threads
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from).min(2));
        can_be_opened().map_err(|error| Error::io("starting the server's threads", error))?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .thread_name("laneway-server")
            .enable_all()
            .build()
            .map_err(|error| Error::io("starting the server's threads", error))?;
        let listener = runtime
            .block_on(async { listen(config.listen, config.bandwidth.is_some()) })
            .map_err(|error| Error::io(format!("listening on {}", config.listen), error))?;
        let addr = listener.local_addr().map_err(|error| Error::io("asking for the address", error))?;
        let ready_tls = ready.is_some();
        let scheme = if ready_tls { "https" } else { "http" };
        let url = format!("{scheme}://{}", reachable(addr));
        let (acceptor, ca_pem) = ready.map_or((None, None), |ready| (Some(ready.acceptor), ready.ca_pem));
        let tally = Arc::new(LiveCounters::default());
        let draws = Arc::new(FaultInjector::new(config.faults, config.seed, &tally));
        let denied_buckets = Arc::new(config.denied_buckets);
        let shared = Arc::new(ServerState {
            azure: azure::AzureState::new(
                &objects,
                config.azure,
                config.habits.azure,
                &denied_buckets,
                &draws,
                ready_tls,
            ),
            s3: s3::S3State::new(&objects, config.s3, &config.habits, config.accept_unenforced, &draws),
            gcs: gcs::GcsState {
                objects,
                sessions,
                managed_folders: Default::default(),
                config: config.gcs,
                habits: config.habits.clone(),
                accept_unenforced: config.accept_unenforced,
                denied_buckets: denied_buckets.clone(),
                draws: draws.clone(),
                url,
            },
            habits: config.habits,
            initial: Default::default(),
            denied_buckets,
            draws,
            tally,
            link: Link::new(path, config.seed),
            rtt: config.rtt,
            connection_bandwidth: config.connection_bandwidth,
            places: RwLock::new(config.served_connections.map(places)),
            reset_surplus: config.reset_surplus,
            idle_max: config.idle_max,
            acceptor,
            streams_max: config.max_streams,
            documents: Default::default(),
        });
        runtime.spawn(accept(listener, shared.clone()));
        Ok(Server { runtime: Some(runtime), shared, addr, ca_pem })
    }

    /// Returns the address of the server, with its actual port.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns `http://127.0.0.1:PORT` or `https://...`, the endpoint for both dialects. For a server that listens on
    /// all addresses it is loopback.
    pub fn url(&self) -> String {
        self.shared.gcs.url.clone()
    }

    /// Returns the certificate authority of this run as PEM. `None` without TLS, or with the caller's own certificates.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// Creates a bucket. An existing one is left unchanged.
    ///
    /// # Errors
    /// Fails if the name can't be used, or with the disk's error.
    pub fn create_bucket(&self, name: &str) -> Result<(), Error> {
        self.initial().buckets.insert(name.to_owned());
        match self.shared.gcs.objects.create_bucket_named(name) {
            Ok(()) | Err(StoreError::BucketExists) => Ok(()),
            Err(StoreError::Io(error)) => Err(Error::io(format!("creating bucket {name}"), error)),
            Err(_) => Err(Error::bucket_name(name)),
        }
    }

    /// Puts the files below a folder into the store: `BUCKET/KEY`. Objects that exist are replaced. A reset of the
    /// store reads the folder again.
    ///
    /// # Errors
    /// Names the file or folder that can't be read or stored. Objects before it are in the store.
    pub fn sow(&self, seed: &Path) -> Result<(), Error> {
        self.initial().seeds.push(seed.to_owned());
        initial::sow(self.store(), seed).map_err(|error| Error::io("reading the seed", error))
    }

    fn initial(&self) -> MutexGuard<'_, Initial> {
        self.shared.initial.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the server's counters.
    pub fn counters(&self) -> ServerCounters {
        let lost = self.shared.link.as_ref().map_or(0, |link| link.segments_lost());
        self.shared.tally.snapshot(
            lost,
            self.shared.gcs.objects.uploads.len(),
            self.shared.gcs.sessions.open(),
        )
    }

    /// Returns the ids of a bucket's unfinished uploads in both dialects, each with the number of received bytes. A
    /// session that is receiving bytes now is left out.
    pub fn uploads_open(&self, bucket: &str) -> Vec<(String, u64)> {
        let parts = self.shared.gcs.objects.uploads.of(bucket);
        let parts = parts.iter().map(|upload| (upload.id.clone(), upload.size()));
        parts.chain(self.shared.gcs.sessions.open_in(bucket)).collect()
    }

    /// Returns the number of opened sessions of directory buckets.
    pub fn directory_sessions(&self) -> usize {
        self.shared.s3.sessions.opened()
    }

    /// Waits until `is_so` accepts the counters. `is_so` is called at each request and at each end of a connection.
    /// Returns false if `timeout` passes first. The call blocks the thread.
    pub fn wait_until(&self, timeout: Duration, mut is_so: impl FnMut(&ServerCounters) -> bool) -> bool {
        self.shared.tally.wait_until(timeout, || is_so(&self.counters()))
    }

    /// Waits until no connection is open. Connections that clients have opened and the server hasn't accepted yet count
    /// as open. Returns false if that takes too long: `timeout` limits each of two waits, first until the server has
    /// accepted the waiting connections, and then until all connections have ended. The call blocks the thread, and
    /// opens a connection that the counters include.
    pub fn wait_until_idle(&self, timeout: Duration) -> bool {
        // Connections are accepted in the order of their arrival. So once this one has ended, all earlier ones are
        // counted.
        let ended = TcpStream::connect(self.addr).and_then(|mut last| {
            last.set_read_timeout(Some(timeout))?;
            last.shutdown(Shutdown::Write)?;
            last.read(&mut [0])
        });
        let is_accepted =
            ended.map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |len| len == 0);
        is_accepted && self.wait_until(timeout, |counters| counters.connections_open == 0)
    }

    /// Replaces the faults for future requests. Transfers that a fault stalls are reset.
    pub fn set_faults(&self, faults: Faults) {
        self.shared.draws.replace(faults);
    }

    /// Replaces the limit of connections that are served at the same time. `None` means no limit. Connections that are
    /// being served continue and don't count towards the new limit. Waiting connections are served.
    pub fn set_served_connections(&self, most: Option<usize>) {
        let mut held = self.shared.places.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = std::mem::replace(&mut *held, most.map(places)) {
            before.close();
        }
    }

    /// Returns the store itself, for direct access without requests.
    pub fn store(&self) -> &Objects {
        &self.shared.gcs.objects
    }

    /// Stops at once.
    pub fn shutdown(self) {}
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            if tokio::runtime::Handle::try_current().is_ok() {
                // A thread of another async runtime must not block, so don't wait for the tasks.
                runtime.shutdown_background();
            } else {
                // The tasks end at their next await, which normally comes soon.
                runtime.shutdown_timeout(Duration::from_secs(1));
            }
        }
    }
}

/// Checks that a new runtime can open its file descriptors, by opening as many and closing them. Without the check,
/// tokio would panic if it can't open the three descriptors for signals. It opens these with the first runtime of a
/// program that uses its signal support.
fn can_be_opened() -> std::io::Result<()> {
    let (one, _other) = UnixStream::pair()?;
    let _more = (UnixStream::pair()?, one.try_clone()?);
    Ok(())
}

/// Returns a semaphore with one permit for each connection that may be served at the same time.
fn places(most: usize) -> Arc<Semaphore> {
    // The maximum of the semaphore is far above the number of descriptors that a system has, so a larger limit makes no
    // difference.
    Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)))
}

fn listen(addr: SocketAddr, holds_little: bool) -> std::io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    if holds_little {
        // Accepted connections inherit the listener's buffer sizes.
        socket.set_send_buffer_size(LINK_SOCKET_BYTES)?;
        socket.set_recv_buffer_size(LINK_SOCKET_BYTES)?;
    }
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

async fn accept(listener: TcpListener, shared: Arc<ServerState>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                shared.tally.accepted();
                tokio::spawn(connection::serve(shared.clone(), stream));
            }
            // Either there are no more file descriptors, or a client has disconnected. Both are temporary, so try again
            // after a pause.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

fn reachable(addr: SocketAddr) -> SocketAddr {
    match addr {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => (std::net::Ipv4Addr::LOCALHOST, v4.port()).into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => (std::net::Ipv6Addr::LOCALHOST, v6.port()).into(),
        other => other,
    }
}

/// The acceptor of TLS connections. For a generated certificate, it also holds the certificate authority that clients
/// must trust.
///
/// Offers `h2` and `http/1.1` by ALPN.
struct TlsSetup {
    acceptor: TlsAcceptor,
    ca_pem: Option<String>,
}

/// Reads or generates the certificate.
fn prepare_tls(tls: &Tls, listen: IpAddr, h1_only: bool) -> Result<TlsSetup, Error> {
    let (chain, key, ca_pem) = match tls {
        Tls::Generated => {
            let made = generate_certificate(listen)?;
            (made.chain, made.key, Some(made.ca_pem))
        }
        Tls::Files { cert, key } => {
            let reading = |path: &std::path::Path| format!("reading {}", path.display());
            let chain: Vec<_> = CertificateDer::pem_file_iter(cert)
                .and_then(Iterator::collect)
                .map_err(|error| Error::tls(reading(cert), error))?;
            if chain.is_empty() {
                return Err(Error::tls(reading(cert), "there is no certificate in it"));
            }
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| Error::tls(reading(key), error))?;
            (chain, key, None)
        }
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::tls("setting up TLS", error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| Error::tls("using the certificate", error))?;
    config.alpn_protocols =
        if h1_only { vec![b"http/1.1".to_vec()] } else { vec![b"h2".to_vec(), b"http/1.1".to_vec()] };
    Ok(TlsSetup { acceptor: TlsAcceptor::from(Arc::new(config)), ca_pem })
}

/// A certificate authority, and a server certificate that it signed.
struct GeneratedCertificate {
    ca_pem: String,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Generates a certificate authority for this run, and a certificate for `localhost`, 127.0.0.1, ::1 and `listen`. Both
/// are valid for 90 days. Their validity begins yesterday, because the clocks of clients may be behind. The authority's
/// key isn't kept.
fn generate_certificate(listen: IpAddr) -> Result<GeneratedCertificate, Error> {
    let refuse = |error: rcgen::Error| Error::tls("making a certificate", error);
    let yesterday = OffsetDateTime::now_utc() - time::Duration::DAY;

    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.distinguished_name.push(DnType::CommonName, "Laneway demo CA");
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    authority.not_before = yesterday;
    authority.not_after = yesterday + time::Duration::days(90);
    let authority_key = KeyPair::generate().map_err(refuse)?;
    let authority_cert = authority.self_signed(&authority_key).map_err(refuse)?;
    let issuer = Issuer::new(authority, authority_key);

    let mut leaf = CertificateParams::new(vec!["localhost".to_owned()]).map_err(refuse)?;
    let mut addresses = vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    if !listen.is_unspecified() && !addresses.contains(&listen) {
        addresses.push(listen);
    }
    leaf.subject_alt_names.extend(addresses.into_iter().map(SanType::IpAddress));
    leaf.distinguished_name.push(DnType::CommonName, "localhost");
    leaf.use_authority_key_identifier_extension = true;
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.not_before = yesterday;
    leaf.not_after = yesterday + time::Duration::days(90);
    let leaf_key = KeyPair::generate().map_err(refuse)?;
    let leaf_cert = leaf.signed_by(&leaf_key, &issuer).map_err(refuse)?;

    Ok(GeneratedCertificate {
        ca_pem: authority_cert.pem(),
        chain: vec![leaf_cert.der().clone()],
        key: PrivatePkcs8KeyDer::from(leaf_key.serialize_der()).into(),
    })
}
