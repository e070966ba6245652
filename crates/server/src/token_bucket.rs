//! The rate limit of one direction of a connection.

use std::time::{Duration, Instant};

/// The minimum capacity in bytes, which can be transferred at once after a pause: four TLS records.
const BURST_BYTES: f64 = (64 << 10) as f64;
/// If a timer is late by at most this much, the transfer catches up, so that the rate stays the same. tokio's timer
/// counts in whole milliseconds. At 90 MB/s, a millisecond is 90 KB.
const LATE_MAX_S: f64 = 3e-3;
/// A transfer waits until there are tokens for this many bytes (a TLS record), so that writes don't become tiny. At low
/// rates, it waits only for the tokens that [`PAUSE_MAX_S`] brings.
const RECORD_BYTES: f64 = (16 << 10) as f64;
const PAUSE_MAX_S: f64 = 10e-3;

/// A token bucket. It is full at first, and fills at its rate. Each transferred byte takes a token.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    bytes_per_second: f64,
    tokens: f64,
    /// The time at which `tokens` was computed.
    counted_at: Instant,
}

impl TokenBucket {
    pub(crate) fn new(bytes_per_second: u64, now: Instant) -> TokenBucket {
        let bytes_per_second = bytes_per_second.max(1) as f64;
        let mut bucket = TokenBucket { bytes_per_second, tokens: 0.0, counted_at: now };
        bucket.tokens = bucket.capacity();
        bucket
    }

    /// Returns the number of bytes that may be transferred now.
    ///
    /// # Errors
    /// Returns the time to wait, if no byte may be transferred now.
    pub(crate) fn room(&mut self, now: Instant) -> Result<usize, Duration> {
        let passed = now.saturating_duration_since(self.counted_at).as_secs_f64();
        self.tokens = (self.tokens + passed * self.bytes_per_second).min(self.capacity());
        self.counted_at = now;
        let wanted = RECORD_BYTES.min(self.bytes_per_second * PAUSE_MAX_S).max(1.0);
        if self.tokens >= wanted {
            return Ok(self.tokens as usize);
        }
        // The duration must not be rounded down, because the caller would then have to wait a second time for the same
        // byte.
        Err(Duration::from_secs_f64((wanted - self.tokens) / self.bytes_per_second) + Duration::from_nanos(1))
    }

    /// Takes the tokens of transferred bytes. There must be no more of them than `room` has returned.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.tokens -= bytes as f64;
    }

    fn capacity(&self) -> f64 {
        BURST_BYTES.max(self.bytes_per_second * LATE_MAX_S)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    /// Lets this many bytes pass in chunks of at most `chunk`, while each timer fires later than requested by `late`.
    /// Returns the total time and the longest pause.
    fn pass(rate: u64, bytes: usize, chunk: usize, late: Duration) -> (Duration, Duration) {
        let begun = Instant::now();
        let (mut now, mut bucket) = (begun, TokenBucket::new(rate, begun));
        let (mut left, mut longest) = (bytes, Duration::ZERO);
        while left > 0 {
            match bucket.room(now) {
                Ok(room) => {
                    let passing = room.min(chunk).min(left);
                    bucket.take(passing);
                    left -= passing;
                }
                Err(pause) => {
                    now += pause + late;
                    longest = longest.max(pause);
                }
            }
        }
        (now - begun, longest)
    }

    #[test]
    fn bytes_pass_at_the_rate_in_short_steps_whatever_their_chunks() {
        for rate in [100_000, 20_000_000, 90_000_000, 1_000_000_000] {
            for chunk in [1000, 16 << 10, 1 << 20] {
                for late in [Duration::ZERO, Duration::from_millis(2)] {
                    let bytes = 2 * rate as usize;
                    let (took, longest) = pass(rate, bytes, chunk, late);
                    let case =
                        format!("{rate} bytes/s, chunks of {chunk}, {late:?} late: {took:?}, {longest:?}");
                    // The initial burst may pass sooner than the rate permits.
                    let burst = BURST_BYTES.max(rate as f64 * LATE_MAX_S) / rate as f64;
                    let least = 2.0 - burst - 1e-3;
                    assert!((least..2.0 + 15e-3).contains(&took.as_secs_f64()), "{case}");
                    assert!(longest <= Duration::from_millis(11), "{case}");
                }
            }
        }
    }

    #[test]
    fn a_pause_saves_up_one_burst() {
        let begun = Instant::now();
        for (rate, burst) in [(1_000_000, 64 << 10), (90_000_000, 270_000)] {
            let mut bucket = TokenBucket::new(rate, begun);
            assert_eq!(bucket.room(begun), Ok(burst));
            bucket.take(burst);
            let soon = begun + Duration::from_micros(100);
            assert!(bucket.room(soon).is_err(), "a few bytes wait for more");
            assert_eq!(bucket.room(begun + 3600 * S), Ok(burst));
        }
    }

    #[test]
    fn one_byte_a_second_passes_byte_by_byte() {
        let (took, longest) = pass(1, (64 << 10) + 5, 1 << 20, Duration::ZERO);
        assert!((4 * S..6 * S).contains(&took) && longest <= S + S / 1000, "{took:?}, {longest:?}");
    }
}
