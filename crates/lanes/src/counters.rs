//! Counters of the engine's work, and distributions of times.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A snapshot of an engine's counters. They are zero when the engine starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// TCP connections established.
    pub connections: u64,
    /// The maximum number of connections that were open at once.
    pub connections_peak: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// TLS handshakes completed.
    pub handshakes: u64,
    /// Connections that use HTTP/1.1.
    pub connections_h1: u64,
    /// Connections that use HTTP/2.
    pub connections_h2: u64,
    /// Requests sent, counting every attempt.
    pub requests: u64,
    /// Repeated attempts: all attempts of each call except the first.
    pub retries: u64,
    /// Answers in which a server asked for fewer requests (429, for example).
    pub throttles: u64,
    /// Hedges sent.
    pub hedges: u64,
    /// Body bytes sent.
    pub bytes_sent: u64,
    /// Body bytes received.
    pub bytes_received: u64,
    /// TCP segments that this machine has retransmitted, as of the last reading of the kernel's counters. On systems other than Linux, the
    /// number is always 0.
    pub segments_resent: u64,
}

/// Distributions of waiting times, over all requests that were answered since the engine's start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Times {
    /// The time from a request's first byte to its answer's head.
    pub first_byte: Distribution,
    /// The time that a request waits for a lane before it is sent.
    pub queued: Distribution,
}

// A distribution is a histogram. Its buckets are wider for longer times, so it takes a bounded amount of memory.
//
// The range between two powers of two (in microseconds) is divided into eight buckets. So a quantile is wrong by at most a sixteenth. The
// 272 counters cover times of up to 19 hours. Longer times are counted as 19 hours.

/// Each number of microseconds below this has its own bucket.
const EXACT: u64 = 16;
/// For longer times, the range between two powers of two has this many buckets.
const PER_OCTAVE: u64 = 8;
/// The highest power of two that has buckets.
const OCTAVE_MAX: u32 = 35;
const BUCKETS: usize = (EXACT + (OCTAVE_MAX as u64 - 3) * PER_OCTAVE) as usize;

/// A snapshot of a distribution of times.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Distribution {
    /// The number of times in each bucket. Empty if nothing was measured.
    counts: Vec<u64>,
}

impl Distribution {
    /// Returns how many times were measured.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the `q`-quantile: a share `q` (0 to 1) of the times is at most this long. Returns `None` if nothing was measured.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let wanted = ((self.count() as f64 * q).ceil() as u64).max(1);
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        Some(Duration::from_micros(middle(bucket)))
    }
}

/// A distribution to which several threads add times.
#[derive(Debug)]
pub(crate) struct Recorder {
    counts: Box<[AtomicU64]>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self { counts: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Recorder {
    pub(crate) fn add(&self, time: Duration) {
        if let Some(count) = self.counts.get(bucket(time)) {
            count.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn snapshot(&self) -> Distribution {
        Distribution { counts: self.counts.iter().map(|count| count.load(Relaxed)).collect() }
    }
}

fn bucket(time: Duration) -> usize {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).min((2 << OCTAVE_MAX) - 1);
    if micros < EXACT {
        return micros as usize;
    }
    let octave = micros.ilog2();
    let within = (micros >> (octave - 3)) - PER_OCTAVE;
    (EXACT + u64::from(octave - 4) * PER_OCTAVE + within) as usize
}

/// Returns the microseconds in the middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket;
    }
    let (octave, within) = ((bucket - EXACT) / PER_OCTAVE + 4, (bucket - EXACT) % PER_OCTAVE);
    let width = 1 << (octave - 3);
    (PER_OCTAVE + within) * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_given_within_a_sixteenth() {
        for micros in (0..2000).chain((0..36).flat_map(|n| [(1u64 << n) - 1, 1 << n, (1 << n) * 13 / 8])) {
            let announced = middle(bucket(Duration::from_micros(micros)));
            assert!(announced.abs_diff(micros) * 16 <= micros, "{micros} is announced as {announced}");
        }
    }

    #[test]
    fn the_longest_times_share_the_last_bucket() {
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
        assert_eq!(bucket(Duration::from_micros((2 << OCTAVE_MAX) - 1)), BUCKETS - 1);
        assert!(bucket(Duration::from_secs(3600)) < BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        let recorder = Recorder::default();
        assert_eq!(recorder.snapshot().quantile(0.5), None);
        (1..=15).for_each(|micros| recorder.add(Duration::from_micros(micros)));
        let times = recorder.snapshot();
        let micros = |q| times.quantile(q).map(|t| t.as_micros());
        assert_eq!((times.count(), micros(0.0), micros(0.5), micros(1.0)), (15, Some(1), Some(8), Some(15)));
        assert_eq!(Distribution::default().quantile(0.99), None);
    }
}
