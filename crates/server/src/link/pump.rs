//! Carries a delay line out on a socket: two tasks for each connection, one a direction, and the stream between them.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Sleep;

use super::{DelayLine, Item, Path, Wire, unsent};

/// tokio's timer counts whole milliseconds, rounded up. Asking half of one early puts the error's middle at zero.
const TIMER_SLACK: Duration = Duration::from_micros(500);
/// One read from the socket.
const READ_BYTES: usize = 64 << 10;

/// The path of a server: its delay, and the two wires that its connections share.
#[derive(Debug)]
pub(crate) struct Link {
    path: Path,
    epoch: Instant,
    connections: AtomicU64,
    inbound: Mutex<Wire>,
    outbound: Mutex<Wire>,
}

impl Link {
    /// `None` where there is nothing to imitate, so that sockets are used as they are.
    pub(crate) fn new(rtt: Duration, bandwidth: Option<u64>) -> Option<Arc<Link>> {
        if rtt.is_zero() && bandwidth.is_none() {
            return None;
        }
        Some(Arc::new(Link {
            path: Path { delay: rtt / 2, bandwidth },
            epoch: Instant::now(),
            connections: AtomicU64::new(0),
            inbound: Mutex::default(),
            outbound: Mutex::default(),
        }))
    }

    /// Puts the path in front of a socket.
    pub(crate) fn connect(self: &Arc<Link>, socket: TcpStream) -> Delayed {
        let socket = Arc::new(socket);
        // The TCP handshake took no time on loopback; its round trip is made up for here.
        let connection = self.connections.fetch_add(1, Relaxed);
        let inbound = Arc::new(Line::new(&self.path, connection, self.path.delay * 2));
        let outbound = Arc::new(Line::new(&self.path, connection, Duration::ZERO));
        let receiver = tokio::spawn(receive(self.clone(), socket.clone(), inbound.clone()));
        tokio::spawn(send(self.clone(), socket, outbound.clone()));
        Delayed {
            link: self.clone(),
            inbound,
            outbound,
            waiting: None,
            room: None,
            current: Bytes::new(),
            ended: false,
            receiver,
        }
    }

    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// How many bytes a line may take now.
    fn room(&self, wire: &Mutex<Wire>, line: &Line) -> usize {
        let now = self.now() + TIMER_SLACK;
        let share = lock(wire).share(now, line.connection, &self.path);
        lock(&line.line).room(now, share)
    }

    fn send(&self, wire: &Mutex<Wire>, line: &Line, bytes: Bytes) {
        let departed = lock(wire).send(self.now(), line.connection, bytes.len(), &self.path);
        line.push(departed, Item::Bytes(bytes));
    }

    /// Lets the sender know of bytes that came out of the line and went on.
    fn taken(&self, line: &Line, len: usize) {
        // Whoever knows of an acknowledgement already waits for that.
        if lock(&line.line).taken(self.now(), len) {
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

/// A line with those who wait at its ends.
#[derive(Debug)]
struct Line {
    connection: u64,
    line: Mutex<DelayLine>,
    /// Rung when something was pushed.
    filled: Notify,
    /// Rung when an acknowledgement is on its way.
    drained: Notify,
    /// The connection's task, waiting for room to write.
    writer: Mutex<Option<Waker>>,
    failed: Mutex<Option<io::ErrorKind>>,
    /// End with a reset instead of a FIN.
    reset: AtomicBool,
}

impl Line {
    fn new(path: &Path, connection: u64, first_extra: Duration) -> Line {
        Line {
            connection,
            line: Mutex::new(DelayLine::new(path, first_extra)),
            filled: Notify::new(),
            drained: Notify::new(),
            writer: Mutex::new(None),
            failed: Mutex::new(None),
            reset: AtomicBool::new(false),
        }
    }

    fn push(&self, departed: Duration, item: Item) {
        lock(&self.line).push(departed, item);
        self.filled.notify_one();
    }

    fn wake_writer(&self) {
        if let Some(waker) = lock(&self.writer).take() {
            waker.wake();
        }
    }
}

async fn receive(link: Arc<Link>, socket: Arc<TcpStream>, line: Arc<Line>) {
    let mut buffer = BytesMut::new();
    loop {
        let room = link.room(&link.inbound, &line);
        if room == 0 {
            let next = lock(&line.line).next_acknowledgement();
            match next {
                Some(at) => link.sleep_until(at).await,
                None => line.drained.notified().await,
            }
            continue;
        }
        buffer.reserve(READ_BYTES);
        let item = match socket.try_read_buf(&mut (&mut buffer).limit(room.min(READ_BYTES))) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // An error here comes again from the next read.
                let _ = socket.readable().await;
                continue;
            }
            Ok(0) | Err(_) => Item::End,
            Ok(_) => Item::Bytes(buffer.split().freeze()),
        };
        match item {
            Item::Bytes(bytes) => link.send(&link.inbound, &line, bytes),
            Item::End => return line.push(link.now(), Item::End),
        }
    }
}

async fn send(link: Arc<Link>, socket: Arc<TcpStream>, line: Arc<Line>) {
    loop {
        let mut bytes = match arrival(link.clone(), line.clone()).await {
            Item::Bytes(bytes) => bytes,
            Item::End => {
                if line.reset.load(Relaxed) {
                    unsent::sent(&socket).await;
                    // Failing only makes it an ordinary close.
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
        // One who doesn't read has a full socket and closes the window.
        link.taken(&line, len);
    }
}

/// Waits until the next item has come through the line.
async fn arrival(link: Arc<Link>, line: Arc<Line>) -> Item {
    loop {
        let next = lock(&line.line).next_release();
        match next {
            None => line.filled.notified().await,
            Some(release) => {
                link.sleep_until(release).await;
                let item = lock(&line.line).pop(link.now() + TIMER_SLACK);
                if let Some(item) = item {
                    return item;
                }
            }
        }
    }
}

/// The server's end of a delayed connection.
pub(crate) struct Delayed {
    link: Arc<Link>,
    inbound: Arc<Line>,
    outbound: Arc<Line>,
    waiting: Option<Pin<Box<dyn Future<Output = Item> + Send>>>,
    /// Until the next acknowledgement, where there was no room to write.
    room: Option<Pin<Box<Sleep>>>,
    current: Bytes,
    ended: bool,
    receiver: JoinHandle<()>,
}

impl Delayed {
    /// Lets the connection end with a reset, after what has been written has travelled.
    pub(crate) fn reset_at_end(&mut self) {
        self.outbound.reset.store(true, Relaxed);
    }
}

impl Drop for Delayed {
    fn drop(&mut self) {
        // What has been written still travels: the sender closes the socket after the last of it.
        self.outbound.push(self.link.now(), Item::End);
        self.receiver.abort();
    }
}

impl AsyncRead for Delayed {
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
                Item::Bytes(bytes) => {
                    this.link.taken(&this.inbound, bytes.len());
                    this.current = bytes;
                }
                Item::End => this.ended = true,
            }
        }
        let len = this.current.len().min(buf.remaining());
        buf.put_slice(&this.current[..len]);
        this.current.advance(len);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Delayed {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        loop {
            if let Some(sleep) = &mut this.room {
                ready!(sleep.as_mut().poll(cx));
                this.room = None;
            }
            // Before the room is looked at, so that an acknowledgement that appears in between still wakes.
            *lock(&this.outbound.writer) = Some(cx.waker().clone());
            if let Some(kind) = *lock(&this.outbound.failed) {
                return Poll::Ready(Err(kind.into()));
            }
            let len = this.link.room(&this.link.outbound, &this.outbound).min(bytes.len());
            if len > 0 || bytes.is_empty() {
                this.link.send(&this.link.outbound, &this.outbound, Bytes::copy_from_slice(&bytes[..len]));
                return Poll::Ready(Ok(len));
            }
            let next = lock(&this.outbound.line).next_acknowledgement();
            match next {
                Some(at) => this.room = this.link.wait(at).map(Box::pin),
                None => return Poll::Pending,
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // What is on its way needs no more help.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The socket is closed when this end is dropped and the line has run empty.
        Poll::Ready(Ok(()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
