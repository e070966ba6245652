//! The first flights of an express connection, while its congestion window opens: whole requests, one after the other.
//!
//! A request whose last byte misses a flight waits another round trip. Two things would spread the first flights thin. `h2` sends the heads
//! of all streams before the first body. A TLS record of 16 KiB, longer than the ten segments of the first flight, can't be opened before
//! its end has come. So while a connection is young, small requests with bodies enter in turn, and records are a segment long.

use tokio::sync::Semaphore;

use crate::threads::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Bytes that a connection sends before it is young no more. The first three flights of a window that begins with ten segments of 1448
/// bytes and doubles are 100 kB. The cut from the fourth is little beside it.
const YOUNG: u64 = 96 * 1024;

/// Bytes of plaintext in a young connection's records. With TLS's 22 bytes and TCP's timestamps they fit packets of 1460 bytes, as Google's
/// network has them.
const RECORD: usize = 1370;

/// The state of one connection's first flights, shared by whoever asks and whoever writes.
#[derive(Debug)]
pub(crate) struct FirstFlights {
    sent: AtomicU64,
    turn: Semaphore,
    /// True if somebody's turn ends with the next flush.
    is_taken: AtomicBool,
}

impl FirstFlights {
    pub(crate) fn new() -> Self {
        Self { sent: AtomicU64::new(0), turn: Semaphore::new(1), is_taken: AtomicBool::new(false) }
    }

    fn is_young(&self) -> bool {
        self.sent.load(Relaxed) < YOUNG
    }

    /// Waits for the caller's turn to send a request; it ends when what the caller has sent was written.
    pub(crate) async fn turn(&self) {
        if self.is_young()
            && let Ok(turn) = self.turn.acquire().await
        {
            turn.forget();
            self.is_taken.store(true, Relaxed);
        }
    }

    /// Everything that was sent has been written: the next one's turn.
    pub(crate) fn written(&self) {
        if self.is_taken.swap(false, Relaxed) {
            self.turn.add_permits(1);
        }
    }

    /// The connection has ended. Whoever waits for a turn finds out by sending.
    pub(crate) fn ended(&self) {
        self.turn.close();
    }

    /// So many bytes have left.
    pub(crate) fn left(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Relaxed);
    }

    /// Returns how many bytes to write at a time, one TLS record.
    pub(crate) fn record_max(&self) -> usize {
        if self.is_young() { RECORD } else { usize::MAX }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_ready(turn: std::pin::Pin<&mut impl Future>) -> bool {
        turn.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_young_connections_requests_go_one_after_the_other() {
        let flights = FirstFlights::new();
        let (mut first, mut second) = (pin!(flights.turn()), pin!(flights.turn()));
        assert!(is_ready(first.as_mut()) && !is_ready(second.as_mut()));
        flights.written();
        assert!(is_ready(second.as_mut()));
    }

    #[test]
    fn an_older_connections_requests_need_no_turn_and_records_are_long() {
        let flights = FirstFlights::new();
        assert_eq!(flights.record_max(), RECORD);
        flights.left(YOUNG as usize);
        let (mut first, mut second) = (pin!(flights.turn()), pin!(flights.turn()));
        assert!(is_ready(first.as_mut()) && is_ready(second.as_mut()));
        assert_eq!(flights.record_max(), usize::MAX);
    }

    #[test]
    fn the_connections_end_lets_everybody_go_on() {
        let flights = FirstFlights::new();
        let (mut first, mut second) = (pin!(flights.turn()), pin!(flights.turn()));
        assert!(is_ready(first.as_mut()) && !is_ready(second.as_mut()));
        flights.ended();
        assert!(is_ready(second.as_mut()));
    }
}
