//! Computes the shortest time in which any client can upload the files over this path.

use std::time::Duration;

/// Segments that a new connection sends in its first round trip (RFC 6928).
const INITIAL_WINDOW: u64 = 10;

/// The path of a client that has no open connection yet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Path {
    /// Round-trip time.
    pub(super) rtt: Duration,
    /// `true` if there is a TLS 1.3 handshake.
    pub(super) tls: bool,
    /// Bytes of a TCP segment: 1460 or a little less on the internet, 65,483 on loopback. `None` means that slow start delays nothing. On
    /// the embedded server's simulated path without a bandwidth, any number of bytes passes at once.
    pub(super) segment: Option<u32>,
}

/// Returns the time from the client's start to the last answer. Counts a round trip for TCP, one for TLS and one for each flight of the
/// largest object. Assumes a separate connection for every object, because nothing is faster.
pub(super) fn floor(path: Path, largest: u64) -> Duration {
    let flights = path.segment.map_or(1, |segment| flights(largest, segment));
    path.rtt * (1 + u32::from(path.tls) + flights)
}

/// Returns the number of round trips that a new connection needs for `bytes`. The congestion window doubles with each
/// round trip. A request without a body also needs one round trip.
fn flights(bytes: u64, segment: u32) -> u32 {
    let windows = bytes.div_ceil(INITIAL_WINDOW * u64::from(segment.max(1))).max(1);
    // After n round trips, 2^n - 1 initial windows have been sent.
    u64::BITS - windows.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u32 = 1460;
    const RTT: Duration = Duration::from_millis(50);

    #[test]
    fn empty_files_take_tcp_and_tls_and_the_request() {
        let path = Path { rtt: RTT, tls: true, segment: Some(SEGMENT) };
        assert_eq!(floor(path, 0), RTT * 3);
        assert_eq!(floor(Path { tls: false, ..path }, 0), RTT * 2);
    }

    #[test]
    fn the_window_doubles_with_every_flight() {
        let flights = |bytes| flights(bytes, SEGMENT);
        assert_eq!([0, 1, 14_600].map(flights), [1, 1, 1]);
        assert_eq!([14_601, 3 * 14_600].map(flights), [2, 2]);
        assert_eq!([3 * 14_600 + 1, 7 * 14_600].map(flights), [3, 3]);
        assert_eq!(flights(7 * 14_600 + 1), 4);
        assert_eq!(flights(u64::MAX), 51);
    }

    #[test]
    fn a_path_without_slow_start_takes_any_object_in_one_flight() {
        let path = Path { rtt: RTT, tls: true, segment: None };
        assert_eq!(floor(path, 1 << 20), RTT * 3);
        assert_eq!(floor(Path { segment: Some(SEGMENT), ..path }, 1 << 20), RTT * 9);
    }
}
