//! Reading ahead of whoever takes the bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};

use super::held::Held;

/// A socket that is read in large pieces, however small those are that are asked for: rustls asks for what completes
/// a record, at most 16 KiB.
#[derive(Debug)]
pub(crate) struct Ahead<S> {
    socket: S,
    held: Held,
}

impl<S> Ahead<S> {
    pub(crate) fn new(socket: S) -> Self {
        Self { socket, held: Held::default() }
    }
}

impl<S: AsyncRead + Unpin> AsyncBufRead for Ahead<S> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let Self { socket, held } = self.get_mut();
        if held.is_empty() {
            let mut read = ReadBuf::new(held.room());
            let outcome = Pin::new(socket).poll_read(cx, &mut read);
            let amount = read.filled().len();
            held.filled(amount);
            ready!(outcome)?;
        }
        Poll::Ready(Ok(held.bytes()))
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        self.get_mut().held.consume(amount);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Ahead<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(self.as_mut().poll_fill_buf(cx))?;
        let taken = read.len().min(buf.remaining());
        buf.put_slice(&read[..taken]);
        self.consume(taken);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Ahead<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
