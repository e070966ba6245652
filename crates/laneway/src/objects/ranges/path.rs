//! A model of the network path to a store. It estimates the time that requests take.

use std::time::Duration;

use laneway_lanes::{Path, Protocol};

/// The round trip assumed before any measurement, which is typical for a store on the same continent.
const ROUND_TRIP_ASSUMED: Duration = Duration::from_millis(20);

/// The minimum rate assumed for a path, in bytes per second (1 Gbit/s). Small requests alone don't show a
/// path's capacity. So a lower measured rate is used only if large transfers have filled the path.
const RATE_ASSUMED: f64 = 125e6;

/// The rate in bytes per second of a single connection on a faster path. S3 and GCS deliver about this much.
const LANE_RATE_ASSUMED: f64 = 80e6;

/// The time that a server takes to answer, in addition to the round trip.
const SERVICE: Duration = Duration::from_millis(1);

/// The CPU time in seconds at both ends, for opening a connection and for each request (signing, headers, TLS
/// records).
const HANDSHAKE: f64 = 0.000_8;
const WORK: f64 = 0.000_1;

/// The maximum number of HTTP/1.1 connections for the ranges of one call.
const LANES_MAX: f64 = 64.0;

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct PathEstimate {
    pub(crate) round_trip: Duration,
    /// The rate of all connections together, in bytes per second.
    pub(crate) rate: f64,
    /// The rate of a single connection, in bytes per second.
    pub(crate) lane_rate: f64,
    pub(crate) protocol: Protocol,
}

impl PathEstimate {
    /// Returns the model for a path with these measurements. If no protocol was measured, the model uses
    /// `usual`, the one that the store's servers usually speak.
    pub(crate) fn new(usual: Protocol, measured: Path) -> Self {
        let rate = match measured.rate {
            Some(rate) if measured.is_full => rate,
            rate => rate.unwrap_or_default().max(RATE_ASSUMED),
        };
        Self {
            round_trip: measured.round_trip.unwrap_or(ROUND_TRIP_ASSUMED),
            rate,
            lane_rate: LANE_RATE_ASSUMED.min(rate),
            protocol: measured.protocol.unwrap_or(usual),
        }
    }

    /// Returns the time in seconds that one more request adds to `requests` others, apart from the transfer
    /// of its bytes. If a connection carries one request at a time, this is a round trip divided by the
    /// number of connections that the dispatcher opens.
    pub(super) fn request_seconds(&self, requests: usize) -> f64 {
        let lanes = self.lanes(requests);
        match self.protocol.is_multiplexed() {
            true => WORK,
            // The dispatcher opens a connection for each request and sends all requests at the same time.
            false if lanes >= requests as f64 => HANDSHAKE + WORK,
            false => self.turn() / lanes + WORK,
        }
    }

    /// Returns the time in seconds that this many requests take together, apart from the transfer of their
    /// bytes.
    pub(super) fn requests_seconds(&self, requests: usize) -> f64 {
        let count = requests as f64;
        match self.protocol.is_multiplexed() {
            _ if requests == 0 => 0.0,
            true => self.turn() + count * WORK,
            false => {
                let lanes = self.lanes(requests);
                count * (self.turn() / lanes + WORK) + lanes * HANDSHAKE
            }
        }
    }

    pub(super) fn byte_seconds(&self) -> f64 {
        1.0 / self.rate.max(1.0)
    }

    fn turn(&self) -> f64 {
        (self.round_trip + SERVICE).as_secs_f64()
    }

    /// Returns the number of connections for which this many requests take the least time. The dispatcher
    /// uses the same rule for express lanes.
    fn lanes(&self, requests: usize) -> f64 {
        let count = requests.max(1) as f64;
        (count * self.turn() / HANDSHAKE).sqrt().min(count).clamp(1.0, LANES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(ms: u64, rate: f64, is_full: bool) -> Path {
        let round_trip = Some(Duration::from_millis(ms));
        Path { round_trip, rate: Some(rate), is_full, protocol: Some(Protocol::H1) }
    }

    #[test]
    fn what_small_requests_brought_does_not_make_a_path_slow() {
        let rate = |measured| PathEstimate::new(Protocol::H1, measured).rate;
        assert_eq!(rate(Path::default()), RATE_ASSUMED);
        assert_eq!(rate(measured(1, 1e6, false)), RATE_ASSUMED);
        assert_eq!(rate(measured(1, 1e9, false)), 1e9);
        assert_eq!(rate(measured(1, 1e6, true)), 1e6);
    }

    #[test]
    fn a_request_costs_more_far_away_and_less_beside_many() {
        let at = |ms| PathEstimate::new(Protocol::H1, measured(ms, 1e9, true));
        assert!(at(50).request_seconds(400) > at(1).request_seconds(400));
        assert!(at(20).request_seconds(4) > at(20).request_seconds(400));
        let gcs = PathEstimate::new(Protocol::H2, Path::default());
        assert!(gcs.request_seconds(400) < at(20).request_seconds(400));
    }

    #[test]
    fn many_requests_take_longer_than_few() {
        for measured in [measured(20, 1e9, true), Path { protocol: Some(Protocol::H2), ..Path::default() }] {
            let path = PathEstimate::new(Protocol::H1, measured);
            let times: Vec<f64> = [0, 1, 2, 10, 100, 10_000].map(|n| path.requests_seconds(n)).into();
            assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
        }
    }
}
