//! Bytes of a body that are worth a wake-up.

use std::time::{Duration, Instant};

/// Bytes that a fast body is read by. A thread that wakes for less pays for the switch, and hands the file little at a time. A GiB over TLS
/// on loopback, where the server's turn comes between any two packets, came in 0.96 s and 5,000 to 13,000 reads. By this it came in 0.91 s
/// and 5,000 reads.
const GATHERED: u32 = 128 * 1024;

/// A body is fast while so much of it comes in this time, 6 MiB/s; a thread that is shared needs some of it for its turns.
const FAST: Duration = Duration::from_millis(20);

/// Longest wait for more than the first byte.
pub(super) const WAIT_MAX: Duration = Duration::from_millis(40);

/// The rest of a body that is read as it comes: nothing may wait for bytes that don't belong to it.
const REST: u64 = 8 * GATHERED as u64;

/// A window must be wider: while one half of it is read, the other comes.
const WINDOW_MIN: u32 = 2 * GATHERED;

/// The pace of one body.
#[derive(Debug)]
pub(super) struct Gathering {
    since: Instant,
    came: u64,
    is_fast: bool,
}

impl Gathering {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, came: 0, is_fast: false }
    }

    /// Takes note of bytes that were read.
    pub(super) fn took(&mut self, now: Instant, bytes: usize) {
        self.came += bytes as u64;
        if self.came >= u64::from(GATHERED) {
            self.is_fast = now.saturating_duration_since(self.since) <= FAST;
            (self.since, self.came) = (now, 0);
        }
    }

    /// Takes note that more did not come in [`WAIT_MAX`].
    pub(super) fn was_in_vain(&mut self) {
        self.is_fast = false;
    }

    /// Returns how many bytes are worth waking up for where `left` of the body are to come: 1, or more while it is fast. They come through
    /// a window of so many bytes, unless it is 0.
    pub(super) fn low_water(&self, left: u64, window: u32) -> u32 {
        let fits = window == 0 || window >= WINDOW_MIN;
        if self.is_fast && left > REST && fits { GATHERED } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn only_a_fast_body_is_waited_for_and_not_its_end() {
        let mut now = Instant::now();
        let mut gathering = Gathering::new(now);
        assert_eq!(gathering.low_water(100 << 20, 0), 1, "nothing is known yet");
        now += Duration::from_millis(1);
        gathering.took(now, MIB / 16);
        assert_eq!(gathering.low_water(100 << 20, 0), 1, "too little to tell");
        gathering.took(now, MIB / 16);
        assert_eq!(gathering.low_water(100 << 20, 0), GATHERED);
        assert_eq!(gathering.low_water(REST, 0), 1);
        assert_eq!(gathering.low_water(100 << 20, WINDOW_MIN), GATHERED);
        assert_eq!(gathering.low_water(100 << 20, WINDOW_MIN - 1), 1, "it may never come");
        now += 2 * FAST;
        gathering.took(now, MIB / 8);
        assert_eq!(gathering.low_water(100 << 20, 0), 1, "it has become slow");
    }

    #[test]
    fn a_body_that_stops_is_read_as_it_comes_until_it_is_fast_again() {
        let now = Instant::now();
        let mut gathering = Gathering::new(now);
        gathering.took(now, MIB);
        gathering.was_in_vain();
        assert_eq!(gathering.low_water(100 << 20, 0), 1);
        gathering.took(now + FAST, MIB);
        assert_eq!(gathering.low_water(100 << 20, 0), GATHERED);
    }
}
