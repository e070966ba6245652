//! The bytes of one connection, with or without TLS.

mod adapter;
mod ahead;
mod carried;
mod gathered;
mod held;
mod platform;
mod signals;
#[cfg(test)]
mod tests;
mod traffic;
mod watched;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

pub(crate) use ahead::Ahead;
pub(crate) use carried::Moved;
use gathered::Gathered;
pub(crate) use signals::PathSignals;
pub(crate) use traffic::Traffic;
pub(crate) use watched::{Progress, Watched};

/// A connection's bytes. Reads are offered as the buffer they already lie in.
pub(crate) struct Stream(Kind);

enum Kind {
    Plain(Box<Ahead<Watched>>),
    Tls(Box<Gathered<TlsStream<Ahead<Watched>>>>),
    /// To an origin, through a proxy that is itself spoken to over TLS.
    Nested(Box<Gathered<TlsStream<TlsStream<Ahead<Watched>>>>>),
}

impl Stream {
    pub(crate) fn plain(tcp: Ahead<Watched>) -> Self {
        Self(Kind::Plain(Box::new(tcp)))
    }

    pub(crate) fn tls(tls: TlsStream<Ahead<Watched>>) -> Self {
        Self(Kind::Tls(Box::new(Gathered::new(tls))))
    }

    pub(crate) fn nested(tls: TlsStream<TlsStream<Ahead<Watched>>>) -> Self {
        Self(Kind::Nested(Box::new(Gathered::new(tls))))
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
            Kind::Nested(s) => {
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
