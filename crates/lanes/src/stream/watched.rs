//! A socket that records when it last moved bytes, and applies the limits on bulk.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::carried::SocketRegistration;
use super::platform::{self, BufferLocks, SocketSignals};
use super::{PathSignals, Traffic};
use crate::dispatch::Role;

/// The interval after which a limit of the receive window is set again, if the kernel doesn't keep it.
const CLAMP_AGAIN_MS: u64 = 5;

/// Records when a connection last moved bytes, and which limits apply to it. All tasks that wait on the connection share one such record.
#[derive(Debug)]
pub(crate) struct IoProgress {
    since: Instant,
    /// The time when bytes last moved, in milliseconds after `since`.
    last_ms: AtomicU64,
    /// State shared with the other connections to the origin.
    traffic: Arc<Traffic>,
    /// True if the connection downloads bulk.
    receives_bulk: AtomicBool,
    /// True if the connection uploads bulk.
    sends_bulk: AtomicBool,
    /// Bytes that must have arrived before a reader is woken.
    low_water: AtomicU32,
    /// The measurements of the connection's path, while the connection is open.
    signals: Mutex<Option<Arc<dyn PathSignals>>>,
    is_given_up: AtomicBool,
    given_up: Notify,
    /// True for a connection with a request whose answer may take minutes.
    may_be_silent: AtomicBool,
}

impl IoProgress {
    pub(crate) fn new(traffic: Arc<Traffic>) -> Self {
        Self {
            since: Instant::now(),
            last_ms: AtomicU64::new(0),
            traffic,
            receives_bulk: AtomicBool::new(false),
            sends_bulk: AtomicBool::new(false),
            low_water: AtomicU32::new(1),
            signals: Mutex::default(),
            is_given_up: AtomicBool::new(false),
            given_up: Notify::new(),
            may_be_silent: AtomicBool::new(false),
        }
    }

    /// Records that a request's answer may take minutes, such as the answer to a large copy.
    pub(crate) fn allow_silence(&self) {
        self.may_be_silent.store(true, Ordering::Relaxed);
    }

    pub(crate) fn may_be_silent(&self) -> bool {
        self.may_be_silent.load(Ordering::Relaxed)
    }

    /// Makes every task that waits on the connection fail.
    pub(crate) fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Release);
        self.given_up.notify_waiters();
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Acquire)
    }

    /// Resolves when [`give_up`](Self::give_up) is called.
    pub(crate) async fn given_up(&self) {
        let given_up = self.given_up.notified();
        if !self.is_given_up() {
            given_up.await;
        }
    }

    fn note(&self) {
        self.note_at(Instant::now());
    }

    /// Records that bytes moved at this time.
    pub(crate) fn note_at(&self, now: Instant) {
        let last = now.saturating_duration_since(self.since);
        self.last_ms.store(last.as_millis() as u64, Ordering::Relaxed);
    }

    /// Sets the role of the answers that are read from now on. If they are bulk, the window limit of the origin's connections applies.
    pub(crate) fn receives(&self, role: Role) {
        self.receives_bulk.store(role == Role::Freight, Ordering::Relaxed);
    }

    /// Returns the limit of the receive window in bytes. 0 means that only TCP's own limit applies.
    pub(crate) fn window(&self) -> u32 {
        match self.receives_bulk.load(Ordering::Relaxed) {
            true => self.traffic.window.load(Ordering::Relaxed),
            false => 0,
        }
    }

    /// Makes each read from now on wait until this many bytes have arrived. The caller must be certain that so many bytes come. Otherwise
    /// the read can wait forever.
    pub(crate) fn wake_at(&self, low_water: u32) {
        self.low_water.store(low_water, Ordering::Relaxed);
    }

    /// Sets whether the bytes that are written from now on are bulk. For bulk, the limits on the send buffers of the origin's connections
    /// apply. For small bodies, only TCP's own limits apply.
    pub(crate) fn sends(&self, is_bulk: bool) {
        self.sends_bulk.store(is_bulk, Ordering::Relaxed);
    }

    /// Returns how many of the written bytes the peer hasn't acknowledged. Returns `None` if the system doesn't report it.
    pub(crate) fn unacknowledged(&self) -> Option<u64> {
        // The socket can't be closed while `signals` is locked here, so its descriptor is valid.
        self.signals().as_ref()?.unacknowledged()
    }

    fn signals(&self) -> MutexGuard<'_, Option<Arc<dyn PathSignals>>> {
        self.signals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time since the connection last moved bytes.
    pub(crate) fn idle(&self, now: Instant) -> Duration {
        let last = self.since + Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
        now.saturating_duration_since(last)
    }
}

/// A socket that records its progress.
#[derive(Debug)]
pub(crate) struct WatchedSocket {
    /// Rust drops fields in the order of their declaration, so this registration is dropped while the socket
    /// is still open.
    listed: SocketRegistration,
    tcp: TcpStream,
    progress: Arc<IoProgress>,
    /// The present limit of the receive window.
    clamped: u32,
    /// The value of `last_ms` when the limit was set. `None` if the limit is permanent.
    clamp_again: Option<u64>,
    /// The present low-water mark.
    low_water: u32,
    /// The present limits of the send buffer, of its unsent bytes, and of the rate.
    sending: (u32, u32, u32),
    locks: BufferLocks,
}

impl WatchedSocket {
    pub(crate) fn new(tcp: TcpStream, progress: Arc<IoProgress>) -> Self {
        let signals: Arc<dyn PathSignals> = Arc::new(SocketSignals::of(&tcp));
        *progress.signals() = Some(Arc::clone(&signals));
        Self {
            listed: SocketRegistration::new(Arc::clone(&progress.traffic.carried), signals),
            tcp,
            progress,
            clamped: 0,
            clamp_again: None,
            low_water: 1,
            sending: (0, 0, u32::MAX),
            locks: BufferLocks::default(),
        }
    }

    /// Sets the limit of the receive window if it has changed, or if the kernel may have removed it.
    fn keep_clamped(&mut self) {
        let wanted = self.progress.window();
        let now_ms = self.progress.last_ms.load(Ordering::Relaxed);
        let again = self.clamp_again.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) >= CLAMP_AGAIN_MS);
        if wanted != self.clamped || again {
            let lasts = platform::clamp(&self.tcp, &mut self.locks, wanted);
            self.clamped = wanted;
            self.clamp_again = (!lasts).then_some(now_ms);
        }
    }

    fn keep_send_buffer(&mut self) {
        let (mut buffer, mut unsent, mut pace) = (0, self.sending.1, u32::MAX);
        if self.progress.sends_bulk.load(Ordering::Relaxed) {
            let traffic = &self.progress.traffic;
            buffer = traffic.send_buffer.load(Ordering::Relaxed);
            unsent = traffic.unsent.load(Ordering::Relaxed);
            pace = traffic.pace.load(Ordering::Relaxed);
        }
        if buffer != self.sending.0 {
            platform::send_buffer(&self.tcp, &mut self.locks, buffer);
        }
        if unsent != self.sending.1 {
            platform::unsent(&self.tcp, unsent);
        }
        if pace != self.sending.2 {
            platform::pace(&self.tcp, pace);
        }
        self.sending = (buffer, unsent, pace);
    }

    fn keep_low_water(&mut self) {
        let wanted = self.progress.low_water.load(Ordering::Relaxed);
        if wanted != self.low_water {
            platform::low_water(&self.tcp, wanted);
            self.low_water = wanted;
        }
    }
}

impl Drop for WatchedSocket {
    fn drop(&mut self) {
        *self.progress.signals() = None;
    }
}

impl AsyncRead for WatchedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.keep_clamped();
        self.keep_low_water();
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.tcp).poll_read(cx, buf))?;
        self.listed.read(buf.filled().len() - before);
        self.progress.note();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WatchedSocket {
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
