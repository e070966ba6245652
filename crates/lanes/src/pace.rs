//! The caller's cap on bytes a second.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A bound on bytes a second. Engines that hold clones of one keep to it together.
#[derive(Clone, Debug)]
pub struct Bandwidth(Arc<Mutex<Pace>>);

impl Bandwidth {
    /// At most `bytes` a second.
    pub fn limited_to(bytes: u64) -> Self {
        Self(Arc::new(Mutex::new(Pace::new(bytes))))
    }

    /// Takes note of `bytes` that move now: how long to pause so that the rate is kept.
    pub(crate) fn take(&self, now: Instant, bytes: usize) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(now, bytes)
    }
}

/// A schedule that lets bytes pass at a rate. Unused time is not saved up, so there are no bursts beyond one chunk.
#[derive(Debug)]
pub(crate) struct Pace {
    bytes_per_second: f64,
    next: Option<Instant>,
}

impl Pace {
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1) as f64, next: None }
    }

    /// Takes note of `bytes` that move now: how long to pause so that the rate is kept.
    pub(crate) fn take(&mut self, now: Instant, bytes: usize) -> Duration {
        let next = self.next.map_or(now, |n| n.max(now))
            + Duration::from_secs_f64(bytes as f64 / self.bytes_per_second);
        self.next = Some(next);
        next - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_at_the_rate_whatever_their_chunks() {
        let start = Instant::now();
        for chunk in [1_000, 50_000, 1_000_000] {
            let (mut pace, mut now) = (Pace::new(1_000_000), start);
            for _ in 0..(3_000_000 / chunk) {
                now += pace.take(now, chunk);
            }
            assert!((now - start).as_secs_f64() - 3.0 < 0.001);
        }
    }
}
