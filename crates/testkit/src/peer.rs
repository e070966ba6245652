//! Servers and connections whose every byte the test chooses, with or without TLS. They can send what no real store
//! would send.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{io, thread};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// The longest time that a peer waits for the other end to read or write.
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
        // Send in large writes, so that this end is fast: the test measures the other end.
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

/// A TLS server that leaves everything after the handshake to the test.
#[derive(Debug)]
pub struct Played {
    url: String,
    ca_pem: String,
}

impl Played {
    /// Listens on a free port of this machine until the process ends. Calls `play` for each connection, after the TLS
    /// handshake has agreed on HTTP/2.
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

    /// Returns the server's URL.
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

/// A received request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The body.
    pub body: Vec<u8>,
    headers: Vec<(String, String)>,
}

impl Asked {
    /// Returns a header's value, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    fn read(from: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut line = || {
            let mut line = String::new();
            let read = from.read_line(&mut line).ok()?;
            (read > 0).then(|| line.trim_end().to_owned())
        };
        let first = line()?;
        let (method, rest) = first.split_once(' ')?;
        let target = rest.split(' ').next()?;
        let mut headers = Vec::new();
        loop {
            let line = line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut asked =
            Self { method: method.to_owned(), target: target.to_owned(), body: Vec::new(), headers };
        let length = asked.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        from.read_exact(&mut body).ok()?;
        asked.body = body;
        Some(asked)
    }
}

/// A plain HTTP/1.1 server with scripted answers.
#[derive(Debug)]
pub struct Scripted {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Scripted {
    /// Serves on a free port of this machine until the process ends. `answer` gets each request and returns the bytes
    /// to send. The connection is closed if there are no bytes, or after an answer with `Connection: close`.
    ///
    /// # Panics
    /// Panics if there is no port to listen on.
    pub fn serve(answer: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (answer, asked) = (Arc::new(answer), Arc::<Mutex<Vec<Asked>>>::default());
        let kept = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, asked) = (Arc::clone(&answer), Arc::clone(&asked));
                thread::spawn(move || {
                    let Ok(reading) = stream.try_clone() else { return };
                    let (mut reading, mut stream) = (BufReader::new(reading), stream);
                    while let Some(one) = Asked::read(&mut reading) {
                        asked.lock().unwrap_or_else(PoisonError::into_inner).push(one.clone());
                        let bytes = answer(&one);
                        if bytes.is_empty() || stream.write_all(&bytes).is_err() || says_close(&bytes) {
                            return;
                        }
                    }
                });
            }
        });
        Self { url, asked: kept }
    }

    /// Returns the server's URL.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Returns the requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns true if an answer's head has `Connection: close`.
fn says_close(answer: &[u8]) -> bool {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(answer.len());
    String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase().contains("\r\nconnection: close")
}

/// Returns the bytes of an HTTP answer: the status, `Content-Length`, these headers and the body.
pub fn answer(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut answer = format!("HTTP/1.1 {status} Scripted\r\nContent-Length: {}\r\n", body.len()).into_bytes();
    for (name, value) in headers {
        answer.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    answer.extend_from_slice(b"\r\n");
    answer.extend_from_slice(body);
    answer
}
