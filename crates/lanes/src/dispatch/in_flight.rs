//! How many small works are on their way at once.
//!
//! An h2 lane takes a hundred works, but those that are on their way together share the path and all end late. What
//! keeps the path full is enough; the others wait, and the smallest go first. With all of 200 works of 32-512 KiB in flight
//! beside bulk at 1 Gbit/s over h2, the last of them took 0.70 s; so they take 0.53 s.

use std::time::Duration;

/// Works that are never held back: what one lane of a browser or an SDK carries, too few to be in each other's way.
const WORKS_MIN: usize = 16;

/// What the path is taken to carry, bytes a second: 10 Gbit/s. Assuming too much only leaves more works to share it.
const RATE_ASSUMED: f64 = 1.25e9;

/// What a server takes to answer, beside the round trip.
const SERVICE: Duration = Duration::from_millis(1);

/// The small works of known size that one origin has on its lanes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InFlight {
    works: usize,
    bytes: u64,
}

impl InFlight {
    pub(super) fn add(&mut self, bytes: u64) {
        self.works += 1;
        self.bytes += bytes;
    }

    pub(super) fn remove(&mut self, bytes: u64) {
        self.works -= 1;
        self.bytes -= bytes;
    }

    /// Whether another work keeps the path fuller.
    pub(super) fn has_room(&self, rtt: Duration) -> bool {
        self.works < WORKS_MIN || (self.bytes as f64) < (rtt + SERVICE).as_secs_f64() * RATE_ASSUMED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many works of so many bytes go at once.
    fn at_once(bytes: u64, rtt_ms: u64) -> usize {
        let mut flight = InFlight::default();
        while flight.has_room(Duration::from_millis(rtt_ms)) {
            flight.add(bytes);
        }
        flight.works
    }

    #[test]
    fn what_fills_the_path_goes_at_once_and_no_more() {
        assert_eq!(at_once(256 << 10, 2), WORKS_MIN);
        assert_eq!(at_once(256 << 10, 20), 101);
        assert!(at_once(6 << 10, 50) > 10_000);
        assert!(at_once(2 << 10, 0) > 500);
    }

    #[test]
    fn what_has_ended_makes_room() {
        let (mut flight, near) = (InFlight::default(), Duration::from_millis(1));
        (0..WORKS_MIN).for_each(|_| flight.add(1 << 20));
        assert!(!flight.has_room(near));
        flight.remove(1 << 20);
        assert!(flight.has_room(near));
    }
}
