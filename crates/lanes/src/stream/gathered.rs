//! The plaintext of many TLS records in one buffer.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncBufRead;

use super::adapter::reads_ahead_and_writes_through;
use super::held::Held;

/// A TLS connection whose reads bring all records that have arrived, up to the buffer's size, and never wait for more
/// than the first of them.
#[derive(Debug)]
pub(crate) struct Gathered<S> {
    tls: S,
    held: Held,
    /// The error that ended the reading. It is told once all bytes before it have been consumed.
    failed: Option<io::Error>,
}

impl<S> Gathered<S> {
    pub(crate) fn new(tls: S) -> Self {
        Self { tls, held: Held::default(), failed: None }
    }
}

impl<S: AsyncBufRead + Unpin> AsyncBufRead for Gathered<S> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let Self { tls, held, failed } = self.get_mut();
        if !held.is_empty() {
            return Poll::Ready(Ok(held.bytes()));
        }
        if let Some(e) = failed.take() {
            return Poll::Ready(Err(e));
        }
        while !held.is_full() {
            match Pin::new(&mut *tls).poll_fill_buf(cx) {
                Poll::Ready(Ok([])) => break,
                Poll::Ready(Ok(record)) => {
                    let room = held.room();
                    let amount = record.len().min(room.len());
                    room[..amount].copy_from_slice(&record[..amount]);
                    held.filled(amount);
                    Pin::new(&mut *tls).consume(amount);
                }
                Poll::Ready(Err(e)) if held.is_empty() => return Poll::Ready(Err(e)),
                Poll::Ready(Err(e)) => {
                    *failed = Some(e);
                    break;
                }
                Poll::Pending if held.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready(Ok(held.bytes()))
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        self.get_mut().held.consume(amount);
    }
}

reads_ahead_and_writes_through!(Gathered, tls, AsyncBufRead);
