//! The first flights of an express connection, while its congestion window is small. They should carry whole requests, one after the other.
//!
//! A request whose last byte misses a flight waits another round trip. Two things would spread requests over the first flights. `h2` sends
//! the heads of all streams before the first body. And a TLS record of 16 KiB is longer than a first flight of ten segments, and can't be
//! decrypted before its end has come. So while a connection is young, small requests with bodies go in turn, and records are one segment
//! long.

use tokio::sync::Semaphore;

use crate::threads::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Bytes after which a connection is no longer young. A window that begins with ten segments of 1448 bytes and doubles sends 100 kB in its
/// first three flights. If the fourth cuts a request in two, that costs little.
const YOUNG: u64 = 96 * 1024;

/// Plaintext bytes of a young connection's records. With TLS's 22 bytes and TCP's timestamps, each fits a packet of 1460 bytes, as in
/// Google's network.
const RECORD: usize = 1370;

/// The state of one connection's first flights. Its requests and its writer share it.
#[derive(Debug)]
pub(crate) struct FirstFlights {
    sent: AtomicU64,
    turn: Semaphore,
    /// True if a request's turn ends with the next flush.
    is_taken: AtomicBool,
}

impl FirstFlights {
    pub(crate) fn new() -> Self {
        Self { sent: AtomicU64::new(0), turn: Semaphore::new(1), is_taken: AtomicBool::new(false) }
    }

    fn is_young(&self) -> bool {
        self.sent.load(Relaxed) < YOUNG
    }

    /// Waits for the caller's turn to send a request. The turn ends when the request has been written.
    pub(crate) async fn turn(&self) {
        if self.is_young()
            && let Ok(turn) = self.turn.acquire().await
        {
            turn.forget();
            self.is_taken.store(true, Relaxed);
        }
    }

    /// Takes note that all sent bytes have been written, and lets the next request go.
    pub(crate) fn written(&self) {
        if self.is_taken.swap(false, Relaxed) {
            self.turn.add_permits(1);
        }
    }

    /// Takes note that the connection has ended. Requests that wait for a turn then fail when they are sent.
    pub(crate) fn ended(&self) {
        self.turn.close();
    }

    /// Takes note of bytes that were written.
    pub(crate) fn left(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Relaxed);
    }

    /// Returns how many bytes to write at a time, as one TLS record.
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
