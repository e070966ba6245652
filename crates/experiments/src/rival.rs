//! The code that all rivals share. This code opens and counts connections, with the defaults of hyper and rustls.

mod connection;

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes};
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use serde::{Deserialize, Serialize};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::Failure;
use crate::site::{Origin, Site};
use crate::trace::{Role, Trace, Tracer};
pub(crate) use connection::{Connection, Http1, Http2, Sender};

/// Time limit for opening a connection, and for an answer that is read into memory. For a body that is passed on in chunks, the limit
/// applies to each chunk.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of an answer that is read into memory. A page of a listing has less than 1 MiB.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Maximum bytes of an error response that are shown.
const SHOWN_BYTES_MAX: usize = 200;

/// The reason why a rival failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection could be opened.
    #[error("connecting to {host} failed")]
    Connect {
        /// The server.
        host: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The server chose HTTP/1.1 in the TLS handshake, or the connection has no TLS and therefore no choice of
    /// protocol.
    #[error("the server doesn't offer HTTP/2")]
    NoHttp2,
    /// The connection broke during the exchange.
    #[error("the connection broke during the exchange")]
    Exchange(#[from] hyper::Error),
    /// The answer couldn't be read, or it is too long.
    #[error("the answer can't be read")]
    Answer(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The request can't be built.
    #[error("the request can't be built")]
    Request(#[from] http::Error),
    /// No connection was opened, or no answer came, within 60 s.
    #[error("the server didn't answer within {} s", TIMEOUT.as_secs())]
    TimedOut,
    /// The server returned an error status.
    #[error("the server answered {status}: {text}")]
    Refused {
        /// The status of the answer.
        status: StatusCode,
        /// The beginning of its answer.
        text: String,
    },
    /// The answer to the start of a resumable upload names no session.
    #[error("the answer names no upload session")]
    NoSession,
    /// The answer names no version of the object.
    #[error("the answer names no version of the object")]
    NoVersion,
    /// The request can't be signed.
    #[error("the request can't be signed: {0}")]
    Unsigned(String),
    /// The received bytes can't be written to their destination.
    #[error("the answer can't be written to its file")]
    Sink(#[source] io::Error),
}

/// The protocol of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Protocol {
    H1,
    H2,
}

/// The counters of a client.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Tally {
    /// Requests sent.
    pub requests: u64,
    /// TCP connections established.
    pub connections: u64,
}

/// A rival's client for one run. It starts without TLS sessions to resume, and with counters at zero. Clones share
/// the sessions and the counters.
#[derive(Clone)]
pub(crate) struct Rival(Arc<Inner>);

struct Inner {
    origin: Origin,
    tls: Option<TlsConnector>,
    requests: AtomicU64,
    connections: AtomicU64,
    /// Body bytes in both directions.
    moved: AtomicU64,
    tracer: Tracer,
}

/// A connection's number in the trace of its client.
struct Lane {
    number: u64,
    rival: Rival,
}

/// An answer that was read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Waits until all tasks have succeeded.
///
/// # Errors
/// Returns the first failure. The remaining tasks are then cancelled.
pub(crate) async fn all<T: 'static>(mut uploads: JoinSet<Result<T, Error>>) -> Result<(), Failure> {
    while let Some(joined) = uploads.join_next().await {
        // Joining fails only if a task panicked or the runtime shuts down.
        joined.map_err(|_| Failure::Unfinished)??;
    }
    Ok(())
}

impl Rival {
    pub(crate) fn new(site: &Site, protocol: Protocol) -> Self {
        Self::at(site.origin.clone(), site.tls(protocol))
    }

    pub(crate) fn at(origin: Origin, tls: Option<ClientConfig>) -> Self {
        let tls = tls.map(|config| TlsConnector::from(Arc::new(config)));
        Self(Arc::new(Inner {
            origin,
            tls,
            requests: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            tracer: Tracer::start(),
        }))
    }

    pub(crate) fn tally(&self) -> Tally {
        Tally { requests: self.0.requests.load(Relaxed), connections: self.0.connections.load(Relaxed) }
    }

    /// Returns all counters and the trace.
    pub(crate) fn ended(&self) -> (Tally, u64, Trace) {
        (self.tally(), self.moved(), self.trace())
    }

    /// Returns the body bytes so far. Bytes of answers are counted as they arrive, and bytes of files as they are sent.
    /// Other request bodies are counted when the answer arrives.
    fn moved(&self) -> u64 {
        self.0.moved.load(Relaxed)
    }

    fn moves(&self, bytes: u64) {
        self.0.moved.fetch_add(bytes, Relaxed);
    }

    /// Returns the trace so far. Its times are measured from the creation of the client.
    pub(crate) fn trace(&self) -> Trace {
        self.0.tracer.trace()
    }

    /// Opens an HTTP/1.1 connection.
    ///
    /// # Errors
    /// Fails if the connection can't be opened.
    pub(crate) async fn connect_h1(&self) -> Result<Http1, Error> {
        patiently(async {
            let (stream, _) = self.dial().await?;
            let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            // The result of this task isn't needed, because hyper also reports a broken connection to the caller that
            // waits for an answer.
            tokio::spawn(connection);
            Ok(Http1 { sender, lane: Arc::new(self.lane()) })
        })
        .await
    }

    /// Opens an HTTP/2 connection.
    ///
    /// # Errors
    /// Returns [`Error::NoHttp2`], or an error while opening it.
    pub(crate) async fn connect_h2(&self) -> Result<Http2, Error> {
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
            Ok(Http2 { sender, lane: Arc::new(self.lane()) })
        })
        .await
    }

    /// Returns the path's round-trip time and its segment size in bytes. It times the handshakes of TCP and TLS 1.3 on a new connection and
    /// halves the result, because each takes one round trip. A simulated path can't delay the TCP handshake on loopback. Instead, such a
    /// path delays the first bytes of TLS by that time, so the sum is right on every path.
    ///
    /// # Errors
    /// Fails if a connection can't be opened.
    pub(crate) async fn probe(&self) -> Result<(Duration, u32), Error> {
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

    fn lane(&self) -> Lane {
        Lane { number: self.0.tracer.opened(), rival: self.clone() }
    }
}

impl Lane {
    /// Executes one exchange of a request and an answer. Counts it, and records it in the trace when it succeeds.
    async fn exchange<T>(
        &self,
        role: Role,
        sent: u64,
        exchange: impl Future<Output = Result<(T, u64), Error>>,
    ) -> Result<T, Error> {
        let inner = &self.rival.0;
        inner.requests.fetch_add(1, Relaxed);
        let start = inner.tracer.now();
        let (answer, received) = exchange.await?;
        inner.tracer.ended(self.number, role, start, sent + received);
        Ok(answer)
    }
}

impl Answer {
    /// Returns the answer if its status means success.
    ///
    /// # Errors
    /// Returns [`Error::Refused`] for any other status.
    pub(crate) fn succeeded(self) -> Result<Self, Error> {
        if self.status.is_success() {
            return Ok(self);
        }
        let shown = &self.body[..self.body.len().min(SHOWN_BYTES_MAX)];
        let text = String::from_utf8_lossy(shown).replace(char::is_control, " ");
        Err(Error::Refused { status: self.status, text })
    }
}

/// Reads an answer into memory. Also returns the length of the body.
async fn collect(response: http::Response<Incoming>) -> Result<(Answer, u64), Error> {
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
    let body = body.to_bytes();
    let len = body.len() as u64;
    Ok((Answer { status: parts.status, headers: parts.headers, body }, len))
}

/// Passes the body of a successful answer to `take`, chunk by chunk. An answer with any other status is an error.
async fn hand_on(
    response: http::Response<Incoming>,
    rival: &Rival,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<(Answer, u64), Error> {
    if !response.status().is_success() {
        let (answer, len) = patiently(collect(response)).await?;
        return answer.succeeded().map(|answer| (answer, len));
    }
    let (parts, mut body) = response.into_parts();
    let mut len = 0;
    while let Some(frame) = patiently(async { Ok(body.frame().await.transpose()?) }).await? {
        let Ok(mut data) = frame.into_data() else { continue };
        len += data.len() as u64;
        rival.moves(data.len() as u64);
        while data.has_remaining() {
            take(data.chunk()).map_err(Error::Sink)?;
            data.advance(data.chunk().len());
        }
    }
    Ok((Answer { status: parts.status, headers: parts.headers, body: Bytes::new() }, len))
}

async fn patiently<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(TIMEOUT, work).await.unwrap_or(Err(Error::TimedOut))
}

/// Number of measurements of the round-trip time. The shortest one is used, because disturbances only lengthen a round
/// trip.
const PROBES: usize = 5;

/// Returns the shortest of several round trips, and the segment size.
///
/// # Errors
/// Fails if a connection can't be opened.
pub(crate) async fn probe(site: &Site) -> Result<(Duration, u32), Failure> {
    let rival = Rival::new(site, Protocol::H1);
    let (mut rtt, mut segment) = rival.probe().await?;
    for _ in 1..PROBES {
        let (another, size) = rival.probe().await?;
        rtt = rtt.min(another);
        segment = size;
    }
    Ok((rtt, segment))
}

/// A pool, which opens a connection if none is idle. Clones share it.
#[derive(Clone)]
pub(crate) struct Pool(Arc<PoolState>);

struct PoolState {
    rival: Rival,
    /// Maximum number of concurrent requests. Further requests wait. `None` sets no limit.
    bound: Option<Semaphore>,
    /// Idle connections. As in most pools, a request takes the connection that was used last. The server may close the
    /// others meanwhile.
    idle: Mutex<Vec<Http1>>,
}

/// A connection that was taken out of the pool. Dropping the value closes the connection, unless it was [given back](Self::give_back).
pub(crate) struct Taken<'a> {
    pub(crate) connection: Http1,
    /// True if the connection has carried a request before. The server may have closed it meanwhile, so a failed
    /// request should be repeated.
    pub(crate) is_reused: bool,
    pool: &'a Pool,
    _turn: Option<SemaphorePermit<'a>>,
}

impl Pool {
    /// Creates a pool of at most `bound` connections.
    pub(crate) fn new(rival: Rival, bound: Option<usize>) -> Self {
        Self(Arc::new(PoolState { rival, bound: bound.map(Semaphore::new), idle: Mutex::default() }))
    }

    /// Waits until the pool's bound permits another request. Then takes an idle connection, or opens one.
    ///
    /// # Errors
    /// Fails if a connection can't be opened.
    pub(crate) async fn take(&self) -> Result<Taken<'_>, Error> {
        let turn = match &self.0.bound {
            // The semaphore is fair and is never closed.
            Some(bound) => bound.acquire().await.ok(),
            None => None,
        };
        loop {
            let idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(mut connection) = idle else { break };
            if connection.is_usable().await {
                return Ok(Taken { connection, is_reused: true, pool: self, _turn: turn });
            }
        }
        let connection = self.0.rival.connect_h1().await?;
        Ok(Taken { connection, is_reused: false, pool: self, _turn: turn })
    }
}

impl Taken<'_> {
    /// Returns the connection to the pool. The answer must have been read completely, so that the connection can carry
    /// another request.
    pub(crate) fn give_back(self) {
        self.pool.0.idle.lock().unwrap_or_else(PoisonError::into_inner).push(self.connection);
    }
}
