//! What the rivals share: connections over hyper and rustls with their defaults, opened one at a time and counted.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::result::{Failure, Tally};
use super::site::{Origin, Site};

/// How long a connection or an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Largest answer that is read; a page of a listing has less than 1 MiB.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// How much of a refusal is shown.
const SHOWN_BYTES_MAX: usize = 200;

/// Why a rival failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection could be opened.
    #[error("connecting to {host}")]
    Connect {
        /// Where to.
        host: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The server agreed to another protocol, or there is no TLS to agree in.
    #[error("the server doesn't offer HTTP/2")]
    NoHttp2,
    /// The exchange broke off.
    #[error("the exchange broke off")]
    Exchange(#[from] hyper::Error),
    /// The answer could not be read, or is longer than any should be.
    #[error("the answer can't be read")]
    Answer(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No such request can be made.
    #[error("no request can be made of it")]
    Request(#[from] http::Error),
    /// Neither connection nor answer for a minute.
    #[error("no answer within {} s", PATIENCE.as_secs())]
    TimedOut,
    /// The server answered, but not with success.
    #[error("the server answered {status}: {text}")]
    Refused {
        /// Its status.
        status: StatusCode,
        /// The beginning of its answer.
        text: String,
    },
    /// A resumable upload was begun, and the answer names no session.
    #[error("the answer names no upload session")]
    NoSession,
}

/// What a connection is to speak.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Protocol {
    H1,
    H2,
}

/// A client of one run: fresh TLS sessions, and counters. Clones share them.
#[derive(Clone)]
pub(super) struct Rival(Arc<Inner>);

struct Inner {
    origin: Origin,
    tls: Option<TlsConnector>,
    requests: AtomicU64,
    connections: AtomicU64,
}

/// An HTTP/1.1 connection.
pub(super) struct Http1 {
    sender: http1::SendRequest<Full<Bytes>>,
    rival: Rival,
}

/// An HTTP/2 connection; clones share it.
#[derive(Clone)]
pub(super) struct Http2 {
    sender: http2::SendRequest<Full<Bytes>>,
    rival: Rival,
}

/// An answer that was read to its end.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Waits for all uploads.
///
/// # Errors
/// The first failure; what still runs is given up.
pub(super) async fn all(mut uploads: JoinSet<Result<Answer, Error>>) -> Result<(), Failure> {
    while let Some(joined) = uploads.join_next().await {
        // A task that didn't end by itself has panicked, and so does this one.
        joined.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()))?;
    }
    Ok(())
}

impl Rival {
    pub(super) fn new(site: &Site, protocol: Protocol) -> Self {
        Self::at(site.origin.clone(), site.tls(protocol))
    }

    pub(super) fn at(origin: Origin, tls: Option<ClientConfig>) -> Self {
        let tls = tls.map(|config| TlsConnector::from(Arc::new(config)));
        Self(Arc::new(Inner { origin, tls, requests: AtomicU64::new(0), connections: AtomicU64::new(0) }))
    }

    pub(super) fn tally(&self) -> Tally {
        Tally { requests: self.0.requests.load(Relaxed), connections: self.0.connections.load(Relaxed) }
    }

    /// Opens an HTTP/1.1 connection.
    ///
    /// # Errors
    /// What keeps it from being opened.
    pub(super) async fn connect_h1(&self) -> Result<Http1, Error> {
        patiently(async {
            let (stream, _) = self.dial().await?;
            let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            // How it ends is told to whoever waits for an answer.
            tokio::spawn(connection);
            Ok(Http1 { sender, rival: self.clone() })
        })
        .await
    }

    /// Opens an HTTP/2 connection.
    ///
    /// # Errors
    /// [`Error::NoHttp2`]; what keeps it from being opened.
    pub(super) async fn connect_h2(&self) -> Result<Http2, Error> {
        patiently(async {
            let (stream, protocol) = self.dial().await?;
            if protocol != Protocol::H2 {
                return Err(Error::NoHttp2);
            }
            let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .handshake(TokioIo::new(stream))
                .await?;
            tokio::spawn(connection);
            Ok(Http2 { sender, rival: self.clone() })
        })
        .await
    }

    /// The path's round-trip time, and its segments' size in bytes. The time is half of what TCP and TLS 1.3 take together, one round trip each, on a connection of
    /// its own. (An imitated path can't delay loopback's TCP handshake and delays the first TLS flight instead, so that
    /// only the sum is right on every path.)
    ///
    /// # Errors
    /// What keeps a connection from being opened.
    pub(super) async fn probe(&self) -> Result<(Duration, u32), Error> {
        let begun = Instant::now();
        patiently(async {
            let tcp = self.dial_tcp().await?;
            let segment = SockRef::from(&tcp).tcp_mss().map_err(|e| self.unconnected(e))?;
            self.shake_hands(tcp).await?;
            let trips = if self.0.tls.is_some() { 2 } else { 1 };
            Ok((begun.elapsed() / trips, segment))
        })
        .await
    }

    async fn dial(&self) -> Result<(Box<dyn Stream>, Protocol), Error> {
        self.shake_hands(self.dial_tcp().await?).await
    }

    async fn dial_tcp(&self) -> Result<TcpStream, Error> {
        let Inner { origin, connections, .. } = &*self.0;
        let tcp = TcpStream::connect((&*origin.host, origin.port)).await;
        let tcp = tcp.map_err(|e| self.unconnected(e))?;
        connections.fetch_add(1, Relaxed);
        tcp.set_nodelay(true).map_err(|e| self.unconnected(e))?;
        Ok(tcp)
    }

    async fn shake_hands(&self, tcp: TcpStream) -> Result<(Box<dyn Stream>, Protocol), Error> {
        let Some(tls) = &self.0.tls else { return Ok((Box::new(tcp), Protocol::H1)) };
        let name = self.0.origin.server_name().map_err(|e| self.unconnected(e))?;
        let stream = tls.connect(name, tcp).await.map_err(|e| self.unconnected(e))?;
        let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok((Box::new(stream), if h2 { Protocol::H2 } else { Protocol::H1 }))
    }

    fn unconnected(&self, source: io::Error) -> Error {
        Error::Connect { host: self.0.origin.host.clone(), source }
    }

    fn count(&self) {
        self.0.requests.fetch_add(1, Relaxed);
    }
}

impl Http1 {
    /// Whether another request can be sent, once the one before has ended.
    pub(super) async fn is_usable(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    /// Sends a request and reads the answer.
    ///
    /// # Errors
    /// What broke the exchange off.
    pub(super) async fn send(&mut self, mut request: Request<Bytes>) -> Result<Answer, Error> {
        // HTTP/1.1 names the host in a header and only the path in the request line.
        if let Some(authority) = request.uri().authority() {
            let host = HeaderValue::from_str(authority.as_str()).map_err(http::Error::from)?;
            request.headers_mut().insert(HOST, host);
        }
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        *request.uri_mut() = target.parse().map_err(http::Error::from)?;
        self.rival.count();
        patiently(async { read(self.sender.send_request(request.map(Full::new)).await?).await }).await
    }
}

impl Http2 {
    /// Sends a request and reads the answer.
    ///
    /// # Errors
    /// What broke the exchange off.
    pub(super) async fn send(&mut self, request: Request<Bytes>) -> Result<Answer, Error> {
        self.rival.count();
        patiently(async { read(self.sender.send_request(request.map(Full::new)).await?).await }).await
    }
}

impl Answer {
    /// The answer, if it is a success.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub(super) fn succeeded(self) -> Result<Self, Error> {
        if self.status.is_success() {
            return Ok(self);
        }
        let shown = &self.body[..self.body.len().min(SHOWN_BYTES_MAX)];
        let text = String::from_utf8_lossy(shown).replace(char::is_control, " ");
        Err(Error::Refused { status: self.status, text })
    }
}

async fn read(response: http::Response<Incoming>) -> Result<Answer, Error> {
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|error| {
        match error.downcast::<hyper::Error>() {
            Ok(error) => Error::Exchange(*error),
            Err(error) => {
                debug_assert!(error.is::<LengthLimitError>());
                Error::Answer(error)
            }
        }
    })?;
    Ok(Answer { status: parts.status, headers: parts.headers, body: body.to_bytes() })
}

async fn patiently<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or(Err(Error::TimedOut))
}
