//! Reading ahead of whoever takes the bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncBufRead, AsyncRead, ReadBuf};

use super::adapter::reads_ahead_and_writes_through;
use super::held::Held;

/// A socket that is read in large chunks, however small those are that are asked for: rustls asks for what completes
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

reads_ahead_and_writes_through!(Ahead, socket, AsyncRead);
