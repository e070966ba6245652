//! Connections whose other end a test plays itself, byte by byte, with or without TLS.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// The longest wait of a peer for the other end to read or to write.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// One end of a connection.
pub trait Peer: Read + Write + Send {
    /// Returns the underlying socket.
    fn socket(&self) -> &TcpStream;

    /// Sends bytes. Returns false once the other end accepts no more.
    fn send(&mut self, bytes: &[u8]) -> bool {
        self.write_all(bytes).and_then(|()| self.flush()).is_ok()
    }

    /// Reads and discards the bytes that have arrived. Returns false once the other end has closed.
    fn drain(&mut self) -> bool {
        let _ = self.socket().set_read_timeout(Some(Duration::from_millis(1)));
        let mut buffer = [0; 64 << 10];
        let is_open = loop {
            match self.read(&mut buffer) {
                Ok(0) => break false,
                Ok(_) => {}
                Err(e) => break matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
            }
        };
        let _ = self.socket().set_read_timeout(Some(WAIT_MAX));
        is_open
    }

    /// Sends the same bytes repeatedly until the other end accepts no more, or `bytes_max` were sent. Returns their
    /// number.
    fn flood(&mut self, bytes: &[u8], bytes_max: usize) -> usize {
        // In large writes, because the test measures the other end.
        let many = bytes.repeat((32 << 10) / bytes.len() + 1);
        let mut sent = 0;
        while sent < bytes_max && self.send(&many) {
            sent += many.len();
        }
        sent
    }
}

impl Peer for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Peer for StreamOwned<ClientConnection, TcpStream> {
    fn socket(&self) -> &TcpStream {
        &self.sock
    }
}

impl Peer for StreamOwned<ServerConnection, TcpStream> {
    fn socket(&self) -> &TcpStream {
        &self.sock
    }
}

/// Connects without TLS.
///
/// # Errors
/// Fails if no server listens.
pub fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let tcp = TcpStream::connect(to)?;
    tcp.set_write_timeout(Some(WAIT_MAX))?;
    tcp.set_read_timeout(Some(WAIT_MAX))?;
    Ok(tcp)
}

/// Connects with TLS, and agrees on HTTP/2 or HTTP/1.1.
///
/// # Errors
/// Fails if no server listens, or if its certificate isn't signed by this authority.
///
/// # Panics
/// Panics if the certificate authority can't be read.
pub fn connect_tls(
    to: SocketAddr,
    ca_pem: &str,
    protocol: &[u8],
) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(ca_pem.as_bytes()).expect("a CA");
    roots.add(ca).expect("a CA that can be trusted");
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let name = ServerName::from(to.ip());
    let mut tls = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    let mut tcp = connect(to)?;
    while tls.is_handshaking() {
        tls.complete_io(&mut tcp)?;
    }
    Ok(StreamOwned::new(tls, tcp))
}

/// A server that speaks TLS, and then whatever a test sends.
#[derive(Debug)]
pub struct Played {
    url: String,
    ca_pem: String,
}

impl Played {
    /// Listens on a free port of this machine until the process ends. Calls `play` for each connection, on which HTTP/2
    /// was agreed.
    ///
    /// # Panics
    /// Panics if there is no port to listen on.
    pub fn serve(play: impl Fn(&mut dyn Peer) + Send + Sync + 'static) -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("a certificate that fits its key");
        config.alpn_protocols = vec![b"h2".to_vec()];
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("https://{}", listener.local_addr().expect("an address"));
        let play = Arc::new(play);
        thread::spawn(move || {
            for tcp in listener.incoming().map_while(Result::ok) {
                let (config, play) = (Arc::clone(&config), Arc::clone(&play));
                thread::spawn(move || {
                    if let Ok(mut peer) = accept(config, tcp) {
                        play(&mut peer);
                    }
                });
            }
        });
        Self { url, ca_pem: cert.pem() }
    }

    /// Returns its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the certificate authority to trust.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }
}

fn accept(
    config: Arc<ServerConfig>,
    mut tcp: TcpStream,
) -> io::Result<StreamOwned<ServerConnection, TcpStream>> {
    tcp.set_write_timeout(Some(WAIT_MAX))?;
    tcp.set_read_timeout(Some(WAIT_MAX))?;
    let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
    while tls.is_handshaking() {
        tls.complete_io(&mut tcp)?;
    }
    Ok(StreamOwned::new(tls, tcp))
}
