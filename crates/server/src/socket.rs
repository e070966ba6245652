//! A connection's socket, with or without a simulated path. It counts bytes, and can end with a reset.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};

use crate::counters::LiveCounters;
use crate::link::pump;
use crate::link::pump::DelayedStream;
use crate::token_bucket::TokenBucket;

/// Lets the handler of a request end or reset its connection.
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

    /// Ends the connection at once, as when a process exits: TCP is closed, and TLS sends no close_notify.
    pub(crate) fn close(&self) {
        self.killed.notify_one();
    }

    /// Returns how often the socket has passed all written bytes to the kernel or to the simulated path.
    pub(crate) fn flushes(&self) -> u64 {
        self.flushes.load(Relaxed)
    }

    /// Makes the connection refuse further requests.
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

/// The socket of one connection. It counts and limits the bytes.
pub(crate) struct Socket {
    transport: SocketTransport,
    inbound: Option<SocketLimit>,
    outbound: Option<SocketLimit>,
    tally: Arc<LiveCounters>,
    control: Arc<Control>,
    /// True after the server has written everything and shut down its sending side. The client then knows that nothing
    /// follows.
    is_shut: bool,
}

/// The maximum time for which a client may keep its side of a connection open after the server has shut its own side
/// down.
const LINGER_MAX: Duration = Duration::from_secs(10);
/// The maximum number of bytes that the client may still send within [`LINGER_MAX`]. It is twice the window of an
/// HTTP/2 connection, because a client that began an upload before it got a GOAWAY may send a whole window.
const LINGER_BYTES_MAX: u64 = 32 << 20;

pub(crate) enum SocketTransport {
    Plain(TcpStream),
    Delayed(Box<DelayedStream>),
    /// The transport has been moved to another task. This state occurs only while the socket is dropped.
    Gone,
}

/// The rate limit of one direction.
struct SocketLimit {
    bucket: TokenBucket,
    pause: Option<Pin<Box<Sleep>>>,
}

impl SocketLimit {
    fn new(bytes_per_second: u64) -> SocketLimit {
        SocketLimit { bucket: TokenBucket::new(bytes_per_second, Instant::now().into_std()), pause: None }
    }

    /// Waits until bytes may be transferred, and returns their number.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            match self.bucket.room(Instant::now().into_std()) {
                Ok(room) => return Poll::Ready(room),
                Err(wait) => self.pause = Some(Box::pin(tokio::time::sleep(wait))),
            }
        }
    }
}

impl Socket {
    /// Returns a socket over a transport. If `bytes_per_second` is set, it limits each direction separately.
    pub(crate) fn new(
        transport: SocketTransport,
        bytes_per_second: Option<u64>,
        tally: Arc<LiveCounters>,
        control: Arc<Control>,
    ) -> Socket {
        let cap = || bytes_per_second.map(SocketLimit::new);
        Socket { transport, inbound: cap(), outbound: cap(), tally, control, is_shut: false }
    }

    fn poll_read_transport(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            SocketTransport::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            SocketTransport::Delayed(delayed) => Pin::new(delayed).poll_read(cx, buf),
            SocketTransport::Gone => Poll::Ready(Ok(())),
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.tally.connections_open.fetch_sub(1, Relaxed);
        self.tally.tell();
        let is_reset = self.control.reset.load(Relaxed);
        // If there is no runtime, the server is stopping, and the connection is closed without waiting.
        let runtime = tokio::runtime::Handle::try_current();
        match (std::mem::replace(&mut self.transport, SocketTransport::Gone), runtime) {
            (SocketTransport::Plain(stream), Ok(runtime)) if is_reset => drop(runtime.spawn(reset(stream))),
            (SocketTransport::Plain(stream), Ok(runtime)) if self.is_shut => {
                drop(runtime.spawn(linger(stream)))
            }
            (SocketTransport::Delayed(mut delayed), _) if is_reset => delayed.reset_at_end(),
            _ => {}
        }
    }
}

/// Reads and discards bytes until the client closes its side. If a socket is closed while bytes are unread, even those
/// of a WINDOW_UPDATE, the kernel resets the connection. The client then loses the end of the last answer.
async fn linger(stream: TcpStream) {
    let (mut rest, mut nowhere) = (stream.take(LINGER_BYTES_MAX), tokio::io::sink());
    // After `LINGER_MAX` or `LINGER_BYTES_MAX`, the connection is closed even if the client hasn't closed its side.
    let _ = tokio::time::timeout(LINGER_MAX, tokio::io::copy(&mut rest, &mut nowhere)).await;
}

async fn reset(stream: TcpStream) {
    pump::all_sent(&stream).await;
    // If this fails, the connection is closed with a FIN instead of a reset.
    let _ = stream.set_zero_linger();
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = match &mut self.inbound {
            None => self.poll_read_transport(cx, buf),
            Some(cap) => {
                let room = ready!(cap.poll_room(cx)).min(buf.remaining());
                let mut part = ReadBuf::new(buf.initialize_unfilled_to(room));
                let read = self.poll_read_transport(cx, &mut part);
                let len = part.filled().len();
                buf.advance(len);
                if let Some(cap) = &mut self.inbound {
                    cap.bucket.take(len);
                }
                read
            }
        };
        self.tally.bytes_in.fetch_add((buf.filled().len() - before) as u64, Relaxed);
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let room = match &mut self.outbound {
            Some(cap) => ready!(cap.poll_room(cx)),
            None => usize::MAX,
        };
        let bytes = &bytes[..room.min(bytes.len())];
        let written = ready!(match &mut self.transport {
            SocketTransport::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            SocketTransport::Delayed(delayed) => Pin::new(delayed).poll_write(cx, bytes),
            SocketTransport::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        })?;
        self.tally.bytes_out.fetch_add(written as u64, Relaxed);
        if let Some(cap) = &mut self.outbound {
            cap.bucket.take(written);
        }
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.outbound.is_some() {
            let first = slices.iter().find(|slice| !slice.is_empty());
            return self.poll_write(cx, first.map_or(&[][..], |slice| &**slice));
        }
        let written = ready!(match &mut self.transport {
            SocketTransport::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            SocketTransport::Delayed(delayed) => Pin::new(delayed).poll_write_vectored(cx, slices),
            SocketTransport::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        })?;
        self.tally.bytes_out.fetch_add(written as u64, Relaxed);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.outbound.is_none() && matches!(self.transport, SocketTransport::Plain(_))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(match &mut self.transport {
            SocketTransport::Plain(stream) => Pin::new(stream).poll_flush(cx),
            SocketTransport::Delayed(delayed) => Pin::new(delayed).poll_flush(cx),
            SocketTransport::Gone => Poll::Ready(Ok(())),
        })?;
        self.control.flushes.fetch_add(1, Relaxed);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(match &mut self.transport {
            SocketTransport::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            SocketTransport::Delayed(delayed) => Pin::new(delayed).poll_shutdown(cx),
            SocketTransport::Gone => Poll::Ready(Ok(())),
        })?;
        self.is_shut = true;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    const RATE: u64 = 20_000_000;
    const BYTES: usize = 40_000_000;

    /// Returns a rate-limited socket and its client.
    async fn connected() -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let (tally, control) = Default::default();
        (Socket::new(SocketTransport::Plain(accepted), Some(RATE), tally, control), client)
    }

    #[tokio::test]
    async fn an_ended_connection_lets_the_client_read_the_rest() {
        const ANSWER: usize = 256 << 10;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpSocket::new_v4().unwrap();
        client.set_recv_buffer_size(4 << 10).unwrap();
        let mut client = client.connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let mut socket = Socket::new(SocketTransport::Plain(accepted), None, Arc::default(), Arc::default());
        client.write_all(b"never read").await.unwrap();
        socket.write_all(&vec![1; ANSWER]).await.unwrap();
        socket.shutdown().await.unwrap();
        drop(socket);
        // The client began this upload before it saw that the server had shut its side down.
        client.write_all(&vec![0; 16 << 20]).await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer.len(), ANSWER);
    }

    /// Checks that the transfer took two seconds, less the time that the burst saves. tokio's timer may add a
    /// millisecond.
    fn assert_at_rate(took: Duration) {
        assert!((1.99..2.02).contains(&took.as_secs_f64()), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_capped_connection_sends_its_rate() {
        let (mut socket, mut client) = connected().await;
        let reading = tokio::spawn(async move { client.read_exact(&mut vec![0; BYTES]).await });
        let begun = Instant::now();
        socket.write_all(&vec![1; BYTES]).await.unwrap();
        assert_at_rate(begun.elapsed());
        assert_eq!(reading.await.unwrap().unwrap(), BYTES);
    }

    #[tokio::test(start_paused = true)]
    async fn a_capped_connection_takes_its_rate() {
        let (mut socket, mut client) = connected().await;
        let writing = tokio::spawn(async move { client.write_all(&vec![1; BYTES]).await });
        let begun = Instant::now();
        socket.read_exact(&mut vec![0; BYTES]).await.unwrap();
        assert_at_rate(begun.elapsed());
        writing.await.unwrap().unwrap();
    }
}
