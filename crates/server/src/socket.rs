//! A connection's socket, with or without an imitated path, counted, and able to end with a reset.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::counters::Tally;
use crate::link::pump::Delayed;
use crate::link::unsent;

/// What the requests on a connection can do to it.
#[derive(Debug, Default)]
pub(crate) struct Control {
    reset: AtomicBool,
    killed: Notify,
    goaway: Notify,
    flushes: AtomicU64,
}

impl Control {
    /// Ends the connection at once, with a TCP reset.
    pub(crate) fn kill(&self) {
        self.reset.store(true, Relaxed);
        self.killed.notify_one();
    }

    /// Ends the connection at once, as a process does that ends: TCP is closed, and TLS has said nothing.
    pub(crate) fn close(&self) {
        self.killed.notify_one();
    }

    /// How often everything written to the connection has been handed to the kernel or to the imitated path.
    pub(crate) fn flushes(&self) -> u64 {
        self.flushes.load(Relaxed)
    }

    /// Lets the connection take no more requests.
    pub(crate) fn go_away(&self) {
        self.goaway.notify_one();
    }

    pub(crate) async fn killed(&self) {
        self.killed.notified().await;
    }

    pub(crate) async fn asked_to_go_away(&self) {
        self.goaway.notified().await;
    }
}

/// The bytes of one connection.
pub(crate) struct Socket {
    pub(crate) transport: Transport,
    pub(crate) tally: Arc<Tally>,
    pub(crate) control: Arc<Control>,
}

pub(crate) enum Transport {
    Plain(TcpStream),
    Delayed(Box<Delayed>),
    /// Handed on while the socket is dropped.
    Gone,
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.tally.connections_open.fetch_sub(1, Relaxed);
        self.tally.tell();
        if !self.control.reset.load(Relaxed) {
            return;
        }
        match std::mem::replace(&mut self.transport, Transport::Gone) {
            Transport::Plain(stream) => {
                // Without a runtime the server is stopping, and the connection just closes.
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(reset(stream));
                }
            }
            Transport::Delayed(mut delayed) => delayed.reset_at_end(),
            Transport::Gone => {}
        }
    }
}

async fn reset(stream: TcpStream) {
    unsent::sent(&stream).await;
    // Failing only makes it an ordinary close.
    let _ = stream.set_zero_linger();
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Transport::Delayed(delayed) => Pin::new(delayed).poll_read(cx, buf),
            Transport::Gone => Poll::Ready(Ok(())),
        };
        self.tally.bytes_in.fetch_add((buf.filled().len() - before) as u64, Relaxed);
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Transport::Delayed(delayed) => Pin::new(delayed).poll_write(cx, bytes),
            Transport::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        })?;
        self.tally.bytes_out.fetch_add(written as u64, Relaxed);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Transport::Delayed(delayed) => Pin::new(delayed).poll_write_vectored(cx, slices),
            Transport::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        })?;
        self.tally.bytes_out.fetch_add(written as u64, Relaxed);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        matches!(self.transport, Transport::Plain(_))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Transport::Delayed(delayed) => Pin::new(delayed).poll_flush(cx),
            Transport::Gone => Poll::Ready(Ok(())),
        })?;
        self.control.flushes.fetch_add(1, Relaxed);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Transport::Delayed(delayed) => Pin::new(delayed).poll_shutdown(cx),
            Transport::Gone => Poll::Ready(Ok(())),
        }
    }
}
