//! A socket, and when it last moved a byte.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::delivered::{Delivered, Listed};
use super::platform::{self, Locks, Socket, TELLS_ACKNOWLEDGED};

/// How often a clamp that doesn't last is set again.
const CLAMP_AGAIN_MS: u64 = 5;

/// When a connection last moved a byte. Shared by everything that waits on the connection.
#[derive(Debug)]
pub(crate) struct Progress {
    since: Instant,
    /// Milliseconds after `since`.
    last_ms: AtomicU64,
    /// What may be outstanding on the way to us; 0 leaves it to TCP.
    window: AtomicU32,
    /// How many bytes have to have come before a read is woken up.
    low_water: AtomicU32,
    /// What may lie in the send buffer; 0 leaves it to TCP.
    send_buffer: AtomicU32,
    /// What of it may be unsent; 0 leaves it to TCP.
    unsent: AtomicU32,
    /// The socket, while it is open.
    socket: Mutex<Option<Socket>>,
    is_given_up: AtomicBool,
    given_up: Notify,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            since: Instant::now(),
            last_ms: AtomicU64::new(0),
            window: AtomicU32::new(0),
            low_water: AtomicU32::new(1),
            send_buffer: AtomicU32::new(0),
            unsent: AtomicU32::new(0),
            socket: Mutex::default(),
            is_given_up: AtomicBool::new(false),
            given_up: Notify::new(),
        }
    }

    /// Ends everything that waits on the connection.
    pub(crate) fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Release);
        self.given_up.notify_waiters();
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Acquire)
    }

    /// Resolves when the connection is given up.
    pub(crate) async fn given_up(&self) {
        let given_up = self.given_up.notified();
        if !self.is_given_up() {
            given_up.await;
        }
    }

    fn note(&self) {
        self.note_at(Instant::now());
    }

    /// Says that something moved at this time.
    pub(crate) fn note_at(&self, now: Instant) {
        let last = now.saturating_duration_since(self.since);
        self.last_ms.store(last.as_millis() as u64, Ordering::Relaxed);
    }

    /// Clamps the connection's receive window to so many bytes from its next read on; 0 leaves it to TCP.
    pub(crate) fn clamp(&self, window: u32) {
        self.window.store(window, Ordering::Relaxed);
    }

    /// Lets reads sleep until so many bytes have come, from the next one on. At most what comes for certain, or the end.
    pub(crate) fn wake_at(&self, low_water: u32) {
        self.low_water.store(low_water, Ordering::Relaxed);
    }

    /// Says that bulk is sent from the next write on, of which the kernel takes `unsent` bytes ahead of what it sends, and
    /// `buffer` with what is on its way; 0 leaves that to TCP.
    pub(crate) fn sends_bulk(&self, buffer: u32, unsent: u32) {
        self.send_buffer.store(buffer, Ordering::Relaxed);
        self.unsent.store(unsent, Ordering::Relaxed);
    }

    /// Says that small bodies are sent from the next write on, which are left to TCP.
    pub(crate) fn sends_small(&self) {
        self.send_buffer.store(0, Ordering::Relaxed);
    }

    /// How many of the bytes that were written the peer has not acknowledged; `None` where the system doesn't tell.
    pub(crate) fn unacknowledged(&self) -> Option<u64> {
        // It isn't closed while this holds it.
        let socket = self.socket();
        socket.filter(|_| TELLS_ACKNOWLEDGED).map(Socket::unacknowledged)
    }

    fn socket(&self) -> MutexGuard<'_, Option<Socket>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// Before the socket, so that it is given up while that is open.
    listed: Listed,
    tcp: TcpStream,
    progress: Arc<Progress>,
    /// The clamp that is set.
    clamped: u32,
    /// The reading of `last_ms` when a clamp was set that doesn't last.
    clamp_again: Option<u64>,
    /// The low-water mark that is set.
    low_water: u32,
    /// The send buffer that is set, and what of it may be unsent.
    sending: (u32, u32),
    locks: Locks,
}

impl Watched {
    pub(crate) fn new(tcp: TcpStream, progress: Arc<Progress>, delivered: Arc<Delivered>) -> Self {
        *progress.socket() = Some(Socket::of(&tcp));
        Self {
            listed: Listed::new(delivered, &tcp),
            tcp,
            progress,
            clamped: 0,
            clamp_again: None,
            low_water: 1,
            sending: (0, 0),
            locks: Locks::default(),
        }
    }

    /// Sets the window that is wanted, where it is another one or the last one doesn't last.
    fn keep_clamped(&mut self) {
        let wanted = self.progress.window.load(Ordering::Relaxed);
        let now_ms = self.progress.last_ms.load(Ordering::Relaxed);
        let again = self.clamp_again.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) >= CLAMP_AGAIN_MS);
        if wanted != self.clamped || again {
            let lasts = platform::clamp(&self.tcp, &mut self.locks, wanted);
            self.clamped = wanted;
            self.clamp_again = (!lasts).then_some(now_ms);
        }
    }

    fn keep_send_buffer(&mut self) {
        let buffer = self.progress.send_buffer.load(Ordering::Relaxed);
        if buffer != self.sending.0 {
            platform::send_buffer(&self.tcp, &mut self.locks, buffer);
        }
        let unsent = self.progress.unsent.load(Ordering::Relaxed);
        if unsent != self.sending.1 {
            platform::unsent(&self.tcp, unsent);
        }
        self.sending = (buffer, unsent);
    }

    fn keep_low_water(&mut self) {
        let wanted = self.progress.low_water.load(Ordering::Relaxed);
        if wanted != self.low_water {
            platform::low_water(&self.tcp, wanted);
            self.low_water = wanted;
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        *self.progress.socket() = None;
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.keep_clamped();
        self.keep_low_water();
        ready!(Pin::new(&mut self.tcp).poll_read(cx, buf))?;
        self.progress.note();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.keep_send_buffer();
        let sent = ready!(Pin::new(&mut self.tcp).poll_write(cx, buf))?;
        self.listed.wrote(sent);
        self.progress.note();
        Poll::Ready(Ok(sent))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.keep_send_buffer();
        let sent = ready!(Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs))?;
        self.listed.wrote(sent);
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
