//! Applies the simulated flows to real sockets. Each connection has two tasks, one for each direction, and a stream
//! that the server reads and writes.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Sleep;

use super::clamps::{Buffers, Kernel};
use super::flow::{Flow, FlowItem};
use super::wire::Wire;
use super::{LinkPath, RECEIVE_BYTES_MAX};

/// tokio's timer rounds up to whole milliseconds. Waits are shortened by half a millisecond, so that the error is zero
/// on average.
const TIMER_SLACK: Duration = Duration::from_micros(500);

/// The maximum number of bytes of one read from the socket.
const READ_BYTES: usize = 64 << 10;

/// The client's buffers are queried again after this time. A query takes some microseconds.
const BUFFERS_AGE_MAX: Duration = Duration::from_millis(5);

/// The simulated path of a server: its delay, and the two wires that its connections share.
#[derive(Debug)]
pub(crate) struct Link {
    path: LinkPath,
    epoch: Instant,
    kernel: Option<Kernel>,
    inbound: Arc<Mutex<Wire>>,
    outbound: Arc<Mutex<Wire>>,
}

impl Link {
    /// Returns a link, or `None` if there is nothing to simulate and sockets are used directly. The random losses
    /// depend on `seed`.
    pub(crate) fn new(path: LinkPath, seed: u64) -> Option<Arc<Link>> {
        if path.is_nothing() {
            return None;
        }
        Some(Arc::new(Link {
            path,
            epoch: Instant::now(),
            // A path without a bandwidth only delays bytes, so the client's buffers don't matter.
            kernel: path.bandwidth.and_then(|_| Kernel::open()),
            inbound: Arc::new(Mutex::new(Wire::new(path, seed))),
            outbound: Arc::new(Mutex::new(Wire::new(path, !seed))),
        }))
    }

    /// Returns a stream that puts the simulated path between the server and a socket.
    pub(crate) fn connect(self: &Arc<Link>, socket: TcpStream) -> DelayedStream {
        let socket = Arc::new(socket);
        // On loopback the TCP handshake takes no time. To imitate its round trip, hold back the client's first bytes
        // for that long. Meanwhile the client can do other work, as on a real path.
        let inbound =
            Arc::new(LinkDirection::new(&self.path, &self.inbound, self.now() + self.path.delay * 2));
        let outbound = Arc::new(LinkDirection::new(&self.path, &self.outbound, Duration::ZERO));
        let receiver = tokio::spawn(receive(self.clone(), socket.clone(), inbound.clone()));
        let client = ClientSocket::of(&socket);
        tokio::spawn(send(self.clone(), socket, outbound.clone()));
        DelayedStream {
            link: self.clone(),
            inbound,
            outbound,
            client,
            waiting: None,
            room: None,
            current: Bytes::new(),
            ended: false,
            receiver,
        }
    }

    /// Returns the number of segments lost so far, in both directions.
    pub(crate) fn segments_lost(&self) -> u64 {
        lock(&self.inbound).lost() + lock(&self.outbound).lost()
    }

    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// Returns the number of bytes that may be sent now, if the receiver may have at most `most` unread bytes. The
    /// second value is the time when that number may change by itself. Both are computed for the same moment. Otherwise
    /// an event between two moments would be missed, and the task would wait for ever.
    fn room(&self, line: &LinkDirection, most: usize) -> (usize, Option<Duration>) {
        let now = self.now() + TIMER_SLACK;
        let mut flow = lock(&line.flow);
        let room = flow.room(now, most, &mut lock(&line.wire));
        (room, flow.next_room(now))
    }

    fn send(&self, line: &LinkDirection, bytes: Bytes) {
        lock(&line.flow).send(self.now(), bytes, &mut lock(&line.wire));
        line.filled.notify_one();
    }

    /// Tells the simulated sender that the receiver has taken bytes.
    fn taken(&self, line: &LinkDirection, len: usize) {
        let mut flow = lock(&line.flow);
        // If it is known when there will be more room, the tasks already sleep until then. Otherwise they must be woken
        // here.
        let now = self.now();
        let is_awaited = flow.next_room(now + TIMER_SLACK).is_some();
        flow.taken(now, len);
        drop(flow);
        if !is_awaited {
            line.drained.notify_one();
            line.wake_writer();
        }
    }

    fn wait(&self, moment: Duration) -> Option<Sleep> {
        let wait = moment.saturating_sub(self.now() + TIMER_SLACK);
        (!wait.is_zero()).then(|| tokio::time::sleep(wait))
    }

    async fn sleep_until(&self, moment: Duration) {
        if let Some(sleep) = self.wait(moment) {
            sleep.await;
        }
    }
}

/// The client's socket, as far as the kernel reports it.
#[derive(Debug)]
struct ClientSocket {
    /// The client's address and the server's. `None` if the client's kernel can't be queried.
    ends: Option<(SocketAddr, SocketAddr)>,
    buffers: Option<Buffers>,
    asked: Duration,
}

impl ClientSocket {
    fn of(socket: &TcpStream) -> ClientSocket {
        let ends = socket.peer_addr().ok().zip(socket.local_addr().ok());
        ClientSocket { ends, buffers: None, asked: Duration::ZERO }
    }

    /// Returns the client's socket buffers. They are queried again if the last query was some milliseconds ago.
    fn buffers(&mut self, link: &Link) -> Option<&Buffers> {
        let (kernel, (near, far)) = (link.kernel.as_ref()?, self.ends?);
        let now = link.now();
        if self.buffers.is_none() || now > self.asked + BUFFERS_AGE_MAX {
            self.buffers = kernel.buffers(near, far);
            self.asked = now;
            if self.buffers.is_none() {
                // The kernel doesn't know the socket, so the client is on another machine.
                self.ends = None;
            }
        }
        self.buffers.as_ref()
    }
}

/// One direction of a connection: its flow, and the notifications for the tasks at both ends.
#[derive(Debug)]
struct LinkDirection {
    flow: Mutex<Flow>,
    /// The wire that all connections share. It is locked only while the flow is locked.
    wire: Arc<Mutex<Wire>>,
    /// Notified when bytes or the end were sent.
    filled: Notify,
    /// Notified when the receiver has taken bytes, so that there may be room for more.
    drained: Notify,
    /// Wakes the connection's task, which waits for room to write.
    writer: Mutex<Option<Waker>>,
    failed: Mutex<Option<io::ErrorKind>>,
    /// If true, the connection ends with a reset instead of a FIN.
    reset: AtomicBool,
}

impl LinkDirection {
    fn new(path: &LinkPath, wire: &Arc<Mutex<Wire>>, opens: Duration) -> LinkDirection {
        LinkDirection {
            flow: Mutex::new(Flow::new(path, opens)),
            wire: wire.clone(),
            filled: Notify::new(),
            drained: Notify::new(),
            writer: Mutex::new(None),
            failed: Mutex::new(None),
            reset: AtomicBool::new(false),
        }
    }

    fn end(&self, now: Duration) {
        lock(&self.flow).end(now);
        self.filled.notify_one();
    }

    fn wake_writer(&self) {
        if let Some(waker) = lock(&self.writer).take() {
            waker.wake();
        }
    }
}

async fn receive(link: Arc<Link>, socket: Arc<TcpStream>, line: Arc<LinkDirection>) {
    let (mut buffer, mut client) = (BytesMut::new(), ClientSocket::of(&socket));
    loop {
        let most = client.buffers(&link).map_or(RECEIVE_BYTES_MAX, Buffers::may_send);
        let (room, next) = link.room(&line, most);
        if room == 0 {
            match next {
                Some(at) => link.sleep_until(at).await,
                None => line.drained.notified().await,
            }
            continue;
        }
        buffer.reserve(READ_BYTES);
        let read = match socket.try_read_buf(&mut (&mut buffer).limit(room.min(READ_BYTES))) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // An error here is ignored, because the next read returns it again.
                let _ = socket.readable().await;
                continue;
            }
            read => read.unwrap_or(0),
        };
        if read == 0 {
            return line.end(link.now());
        }
        link.send(&line, buffer.split().freeze());
    }
}

async fn send(link: Arc<Link>, socket: Arc<TcpStream>, line: Arc<LinkDirection>) {
    loop {
        let mut bytes = match arrival(link.clone(), line.clone()).await {
            FlowItem::Bytes(bytes) => bytes,
            FlowItem::End => {
                if line.reset.load(Relaxed) {
                    all_sent(&socket).await;
                    // If this fails, the connection is closed with a FIN instead of a reset.
                    let _ = socket.set_zero_linger();
                }
                return;
            }
        };
        let len = bytes.len();
        while !bytes.is_empty() {
            match socket.try_write(&bytes) {
                Ok(len) => bytes.advance(len),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => drop(socket.writable().await),
                Err(error) => {
                    *lock(&line.failed) = Some(error.kind());
                    line.wake_writer();
                    return;
                }
            }
        }
        // Bytes count as taken only after they were written to the socket. So if the client doesn't read, its socket
        // fills up and the simulated window closes.
        link.taken(&line, len);
    }
}

/// Waits until the next item arrives. Until then, lost chunks are sent again.
async fn arrival(link: Arc<Link>, line: Arc<LinkDirection>) -> FlowItem {
    loop {
        let next = lock(&line.flow).next(link.now() + TIMER_SLACK);
        match next {
            None => line.filled.notified().await,
            Some(moment) => {
                link.sleep_until(moment).await;
                let now = link.now() + TIMER_SLACK;
                let mut flow = lock(&line.flow);
                flow.advance(now, &mut lock(&line.wire));
                if let Some(item) = flow.pop(now) {
                    return item;
                }
            }
        }
    }
}

/// The server's end of a connection over the simulated path.
pub(crate) struct DelayedStream {
    link: Arc<Link>,
    inbound: Arc<LinkDirection>,
    outbound: Arc<LinkDirection>,
    client: ClientSocket,
    waiting: Option<Pin<Box<dyn Future<Output = FlowItem> + Send>>>,
    /// The timer of the wait for room, if there was no room to write.
    room: Option<Pin<Box<Sleep>>>,
    current: Bytes,
    ended: bool,
    receiver: JoinHandle<()>,
}

impl DelayedStream {
    /// Makes the connection end with a reset, after the written bytes have been delivered.
    pub(crate) fn reset_at_end(&mut self) {
        self.outbound.reset.store(true, Relaxed);
    }
}

impl Drop for DelayedStream {
    fn drop(&mut self) {
        // Written bytes are still delivered. The sending task closes the socket after the last of them.
        self.outbound.end(self.link.now());
        self.receiver.abort();
    }
}

impl AsyncRead for DelayedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.current.is_empty() && !this.ended {
            let waiting = this
                .waiting
                .get_or_insert_with(|| Box::pin(arrival(this.link.clone(), this.inbound.clone())));
            let item = ready!(waiting.as_mut().poll(cx));
            this.waiting = None;
            match item {
                FlowItem::Bytes(bytes) => {
                    this.link.taken(&this.inbound, bytes.len());
                    this.current = bytes;
                }
                FlowItem::End => this.ended = true,
            }
        }
        let len = this.current.len().min(buf.remaining());
        buf.put_slice(&this.current[..len]);
        this.current.advance(len);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for DelayedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        loop {
            if let Some(sleep) = &mut this.room {
                ready!(sleep.as_mut().poll(cx));
                this.room = None;
            }
            // Store the waker before checking for room, so that an acknowledgement in between still wakes this task.
            *lock(&this.outbound.writer) = Some(cx.waker().clone());
            if let Some(kind) = *lock(&this.outbound.failed) {
                return Poll::Ready(Err(kind.into()));
            }
            let most = this.client.buffers(&this.link).map_or(RECEIVE_BYTES_MAX, Buffers::may_receive);
            let (room, next) = this.link.room(&this.outbound, most);
            let len = room.min(bytes.len());
            if len > 0 || bytes.is_empty() {
                this.link.send(&this.outbound, Bytes::copy_from_slice(&bytes[..len]));
                return Poll::Ready(Ok(len));
            }
            match next {
                Some(at) => this.room = this.link.wait(at).map(Box::pin),
                None => return Poll::Pending,
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The sending task delivers written bytes by itself, so a flush has nothing to do.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The socket is closed when this end has been dropped and all bytes have been delivered.
        Poll::Ready(Ok(()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const PAUSE: Duration = Duration::from_millis(2);

/// After this many pauses, the connection is reset anyway. Otherwise a client that reads nothing would delay the reset
/// for ever.
const PAUSES_MAX: u32 = 500;

/// The wait if the number of unsent bytes can't be found out, for example without `/proc`. On loopback, bytes reach a
/// client that reads within microseconds.
const UNKNOWN: Duration = Duration::from_millis(100);

/// Waits until all written bytes have been acknowledged, but at most a second. If the number of unsent bytes can't be
/// found out, it waits for [`UNKNOWN`].
///
/// A reset would discard unsent bytes, so a fault after N bytes must wait until the first N bytes have been sent.
/// Linux shows the unsent bytes in `/proc/net/tcp`.
pub(crate) async fn all_sent(socket: &TcpStream) {
    let (Ok(local), Ok(peer)) = (socket.local_addr(), socket.peer_addr()) else { return };
    for _ in 0..PAUSES_MAX {
        tokio::time::sleep(PAUSE).await;
        let table = if local.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
        let Ok(table) = std::fs::read_to_string(table) else { return tokio::time::sleep(UNKNOWN).await };
        if unsent(&table, local, peer).is_none_or(|bytes| bytes == 0) {
            return;
        }
    }
}

/// Returns the number of bytes in one connection's send queue, from a table such as `/proc/net/tcp`.
fn unsent(table: &str, local: SocketAddr, peer: SocketAddr) -> Option<u64> {
    let (local, peer) = (written(local), written(peer));
    table.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let same = words.next() == Some(&local) && words.next() == Some(&peer);
        let queues = words.nth(1).filter(|_| same)?;
        u64::from_str_radix(queues.split(':').next()?, 16).ok()
    })
}

/// Returns an address in the format of that table: hexadecimal words in the machine's byte order.
fn written(addr: SocketAddr) -> String {
    let octets = match addr.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = octets.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    let words: String = words.map(|word| format!("{word:08X}")).collect();
    format!("{words}:{:04X}", addr.port())
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;

    #[test]
    fn the_queue_of_the_right_connection_is_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n\
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000\n\
             1: 0100007F:1F90 0100007F:D6A2 01 000002A0:00000000 00:00000000\n";
        let local = "127.0.0.1:8080".parse().unwrap();
        assert_eq!(unsent(table, local, "127.0.0.1:54946".parse().unwrap()), Some(0x2A0));
        assert_eq!(unsent(table, local, "127.0.0.1:54947".parse().unwrap()), None);
    }
}
