//! State that all connections share: counters and limits.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::client_certificate::{is_refused, refused};
use crate::counters::Recorder;
use crate::dispatch::{Direction, Rules};
use crate::error::{Error, Kind};
use crate::pace::Bandwidth;
use crate::stream::IoProgress;
use crate::tally::{Metric, Tally};
use crate::valve::Valve;
use crate::{Counters, Request, Response, Times};

/// If a stream receives nothing while other streams of its connection make progress, it fails after this many timeouts, by default ten
/// minutes. On a slow uplink, all answers to many small uploads may come that late. But without this limit, a request that the server has
/// forgotten would never end.
const TIMEOUTS_WHILE_OTHERS_MOVE: u32 = 20;

/// During each timeout, we check this many times if the peer has acknowledged bytes.
const LOOKS: u32 = 2;

pub(crate) struct SharedState {
    pub(crate) no_progress: Duration,
    pub(crate) pace: Option<Bandwidth>,
    pub(crate) counts: CounterCells,
    pub(crate) down: Valve,
    pub(crate) up: Valve,
}

/// The running counters.
#[derive(Debug, Default)]
pub(crate) struct CounterCells {
    all: Tally,
    pub(crate) connections_open: AtomicU64,
    pub(crate) connections_peak: AtomicU64,
    pub(crate) connections_h1: AtomicU64,
    pub(crate) connections_h2: AtomicU64,
    pub(crate) segments_resent: AtomicU64,
    pub(crate) first_byte: Recorder,
    pub(crate) queued: Recorder,
}

impl CounterCells {
    pub(crate) fn snapshot(&self) -> Counters {
        Counters {
            connections: self.all.connections(),
            connections_open: self.connections_open.load(Relaxed),
            connections_peak: self.connections_peak.load(Relaxed),
            handshakes: self.all.handshakes(),
            connections_h1: self.connections_h1.load(Relaxed),
            connections_h2: self.connections_h2.load(Relaxed),
            requests: self.all.requests(),
            retries: self.all.retries(),
            throttles: self.all.throttles(),
            hedges: self.all.hedges(),
            bytes_sent: self.all.bytes_sent(),
            bytes_received: self.all.bytes_received(),
            segments_resent: self.segments_resent.load(Relaxed),
        }
    }

    /// Returns the counters of all callers together.
    pub(crate) fn all(&self) -> &Tally {
        &self.all
    }

    /// Adds to the counters of all callers, and to this tally if there is one.
    pub(crate) fn add(&self, tally: Option<&Tally>, what: Metric, n: u64) {
        self.all.add(what, n);
        if let Some(tally) = tally {
            tally.add(what, n);
        }
    }

    /// Adds the waiting times of an answered request to the distributions.
    pub(crate) fn answered(&self, response: &Response) {
        self.first_byte.add(response.first_byte);
        self.queued.add(response.queued);
    }

    pub(crate) fn times(&self) -> Times {
        Times { first_byte: self.first_byte.snapshot(), queued: self.queued.snapshot() }
    }
}

impl SharedState {
    /// Returns the valve that limits bulk in this direction.
    pub(crate) fn valve(&self, direction: Direction) -> &Valve {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }

    /// Returns the sender that applies the limits to the request's body.
    pub(crate) fn sending<'a>(&'a self, request: &'a Request) -> BodySender<'a> {
        let (is_bulk, tally) = (request.body.len() > Rules::CHOSEN.freight_above, request.tally.as_ref());
        BodySender { shared: self, is_bulk, tally }
    }

    /// Counts received body bytes, and waits to keep to the caller's bandwidth limit. Bulk also waits while it yields to small requests.
    pub(crate) async fn received(&self, bytes: usize, is_bulk: bool, tally: Option<&Tally>) {
        self.counts.add(tally, Metric::ByteReceived, bytes as u64);
        self.keep_pace(bytes).await;
        if is_bulk {
            self.down.pass(bytes).await;
        }
    }

    async fn keep_pace(&self, bytes: usize) {
        if let Some(pace) = &self.pace {
            let pause = pace.take(Instant::now(), bytes);
            if pause > Duration::from_millis(1) {
                tokio::time::sleep(pause).await;
            }
        }
    }
}

/// A body that is being sent.
#[derive(Clone, Copy)]
pub(crate) struct BodySender<'a> {
    shared: &'a SharedState,
    is_bulk: bool,
    tally: Option<&'a Tally>,
}

impl BodySender<'_> {
    /// Sets how much unsent data the connection may buffer, which depends on whether the body is bulk.
    pub(crate) fn limit(&self, progress: &IoProgress) {
        progress.sends(self.is_bulk);
    }

    /// Returns the number of bytes to send at a time, at most `most`.
    pub(crate) fn at_once(&self, most: usize) -> usize {
        self.shared.pace.as_ref().map_or(most, |pace| pace.chunk().min(most))
    }

    /// Counts sent bytes, and waits to keep to the caller's bandwidth limit. Bulk also waits while it yields to small requests.
    pub(crate) async fn sent(&self, bytes: usize) {
        self.shared.counts.add(self.tally, Metric::ByteSent, bytes as u64);
        self.shared.keep_pace(bytes).await;
        if self.is_bulk {
            self.shared.up.pass(bytes).await;
        }
    }
}

/// Waits for I/O while the connection makes progress. Progress means that the connection moves bytes, or that the peer acknowledges bytes
/// from the system's send buffer. On a slow uplink, the buffer can take longer to empty than the timeout.
///
/// # Errors
/// [`Kind::Timeout`] if nothing has moved for `timeout`; [`Kind::Interrupted`] if the I/O fails.
pub(crate) async fn with_timeout<T>(
    io: impl Future<Output = io::Result<T>>,
    progress: &IoProgress,
    timeout: Duration,
    doing: &str,
) -> Result<T, Error> {
    let (mut io, mut left) = (pin!(io), timeout / LOOKS);
    let mut unacknowledged = None;
    for _ in 0..LOOKS * TIMEOUTS_WHILE_OTHERS_MOVE {
        let waited = tokio::select! {
            biased;
            waited = tokio::time::timeout(left, &mut io) => waited,
            () = progress.given_up() => {
                let why = format!("the connection was closed because it was silent while {doing}");
                return Err(Error::new(Kind::Timeout, why));
            }
        };
        match waited {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(e)) => return Err(interrupted(doing, e)),
            Err(_) => {
                let now = tokio::time::Instant::now().into_std();
                let before = std::mem::replace(&mut unacknowledged, progress.unacknowledged());
                if before.zip(unacknowledged).is_some_and(|(before, is)| is < before) {
                    progress.note_at(now);
                }
                let idle = progress.idle(now);
                if idle >= timeout {
                    break;
                }
                // Wait only for the rest of the timeout, so that a silent connection fails in time.
                left = (timeout - idle).min(timeout / LOOKS);
            }
        }
    }
    let lacking = if doing.starts_with("waiting") { "response" } else { "progress" };
    Err(Error::new(Kind::Timeout, format!("no {lacking} for {timeout:?} while {doing}")))
}

pub(crate) fn interrupted(doing: &str, e: io::Error) -> Error {
    if is_refused(&e) {
        return refused(&format!("connection lost while {doing}"), e);
    }
    Error::because(Kind::Interrupted, format!("connection lost while {doing}"), e)
}

#[cfg(all(test, target_os = "linux", not(laneway_fallback)))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::sync::Arc;

    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::stream::WatchedSocket;

    const TIMEOUT: Duration = Duration::from_secs(30);

    /// A connection with full buffers, and its peer.
    async fn full() -> (WatchedSocket, Arc<IoProgress>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tcp = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let peer = listener.accept().await.unwrap().0;
        tcp.writable().await.unwrap();
        while tcp.try_write(&[7; 64 * 1024]).is_ok() {}
        let progress = Arc::new(IoProgress::new(Arc::default()));
        let watched = WatchedSocket::new(tcp, Arc::clone(&progress));
        (watched, progress, peer)
    }

    async fn waits(progress: &IoProgress) -> Duration {
        let (began, nothing) = (tokio::time::Instant::now(), std::future::pending::<io::Result<()>>());
        let error = with_timeout(nothing, progress, TIMEOUT, "waiting").await.unwrap_err();
        assert_eq!(error.kind(), Kind::Timeout);
        began.elapsed()
    }

    #[tokio::test]
    async fn buffered_bytes_acknowledged_bit_by_bit_keep_a_request_alive() {
        let (_watched, progress, mut peer) = full().await;
        let before = progress.unacknowledged().unwrap();
        tokio::time::pause();
        // From here on, virtual time advances whenever all tasks wait.
        let reading = async {
            tokio::time::sleep(TIMEOUT * 3 / 4).await;
            let mut into = vec![0; 64 * 1024];
            while progress.unacknowledged().unwrap() >= before {
                peer.read_exact(&mut into).await.unwrap();
            }
            std::future::pending::<()>().await
        };
        let waited = tokio::select! { waited = waits(&progress) => waited, () = reading => unreachable!() };
        assert!(waited >= TIMEOUT * 2 && waited < TIMEOUT * 3, "{waited:?}");
    }

    #[tokio::test]
    async fn a_peer_that_acknowledges_nothing_is_given_up_after_the_timeout() {
        let (_watched, progress, _peer) = full().await;
        tokio::time::pause();
        let waited = waits(&progress).await;
        assert!(waited >= TIMEOUT && waited < TIMEOUT + Duration::from_secs(1), "{waited:?}");
    }
}
