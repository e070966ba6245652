//! The bytes of one connection, with or without TLS.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// One read of a plain connection. Large, because bulk goes from here straight to its place in a file: each fill is a
/// system call and so is each `pwrite`.
const READ_BUFFER: usize = 256 * 1024;

/// A connection's bytes. Reads are offered as the buffer they already lie in.
pub(crate) struct Stream(Kind);

enum Kind {
    Plain(Box<BufReader<Watched>>),
    Tls(Box<TlsStream<Watched>>),
}

impl Stream {
    pub(crate) fn plain(tcp: Watched) -> Self {
        Self(Kind::Plain(Box::new(BufReader::with_capacity(READ_BUFFER, tcp))))
    }

    pub(crate) fn tls(tls: TlsStream<Watched>) -> Self {
        Self(Kind::Tls(Box::new(tls)))
    }
}

macro_rules! each {
    ($self:ident, $stream:ident => $do:expr) => {
        match &mut $self.get_mut().0 {
            Kind::Plain(s) => {
                let $stream = Pin::new(s.as_mut());
                $do
            }
            Kind::Tls(s) => {
                let $stream = Pin::new(s.as_mut());
                $do
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, s => s.poll_read(cx, buf))
    }
}

impl AsyncBufRead for Stream {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        each!(self, s => s.poll_fill_buf(cx))
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        each!(self, s => s.consume(amount));
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, s => s.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, s => s.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, s => s.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, s => s.poll_shutdown(cx))
    }
}

/// When a connection last moved a byte. Shared by everything that waits on the connection.
#[derive(Debug)]
pub(crate) struct Progress {
    since: Instant,
    /// Milliseconds after `since`.
    last_ms: AtomicU64,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { since: Instant::now(), last_ms: AtomicU64::new(0) }
    }

    fn note(&self) {
        self.last_ms.store(self.since.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// How long the connection has moved nothing.
    pub(crate) fn idle(&self, now: Instant) -> Duration {
        let last = self.since + Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
        now.saturating_duration_since(last)
    }
}

/// A socket that notes its progress.
#[derive(Debug)]
pub(crate) struct Watched {
    tcp: TcpStream,
    progress: Arc<Progress>,
}

impl Watched {
    pub(crate) fn new(tcp: TcpStream, progress: Arc<Progress>) -> Self {
        Self { tcp, progress }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.tcp).poll_read(cx, buf))?;
        self.progress.note();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let sent = ready!(Pin::new(&mut self.tcp).poll_write(cx, buf))?;
        self.progress.note();
        Poll::Ready(Ok(sent))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let sent = ready!(Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs))?;
        self.progress.note();
        Poll::Ready(Ok(sent))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
