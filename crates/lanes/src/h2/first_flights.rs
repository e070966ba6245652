//! The order of requests on a new express connection, while its congestion window is small. Each flight (the packets of one round trip)
//! should carry whole requests.
//!
//! A request whose last byte doesn't fit into a flight waits another round trip. Two things would delay requests in this way. First, `h2`
//! sends the heads of all streams before the first body. Second, a TLS record of 16 KiB is longer than a first flight of ten segments, and
//! the server can't decrypt a record before its end has arrived. So while a connection is young, small requests with bodies are sent one
//! after the other, and each TLS record fits into one segment.

use tokio::sync::Semaphore;

use crate::threads::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// After this many bytes, a connection is no longer young. A window that begins with ten segments of 1448 bytes and doubles sends 100 kB in
/// its first three flights. A request that begins in the fourth flight and ends in the fifth costs little.
const YOUNG: u64 = 96 * 1024;

/// The maximum plaintext bytes of a TLS record on a young connection. With 22 bytes for TLS, and with the headers of IP and TCP, a record
/// fits into a packet of 1460 bytes. This is the MTU of Google's network.
const RECORD: usize = 1370;

/// The turn of requests on one connection. The connection's requests and its writer share this.
#[derive(Debug)]
pub(crate) struct FirstFlights {
    sent: AtomicU64,
    turn: Semaphore,
    /// True if a request has the turn. The turn ends with the next flush.
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

    /// Records that `h2` has written the bytes of the request whose turn it is. Gives the turn to the next request.
    pub(crate) fn written(&self) {
        if self.is_taken.swap(false, Relaxed) {
            self.turn.add_permits(1);
        }
    }

    /// Records that the connection has ended. Requests that wait for their turn continue, and then fail when they are sent.
    pub(crate) fn ended(&self) {
        self.turn.close();
    }

    /// Counts bytes that were written.
    pub(crate) fn left(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Relaxed);
    }

    /// Returns the maximum number of bytes to write at a time, which become one TLS record.
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
