//! The limit on bytes per second that the caller sets.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The length of a turn in seconds. In each turn, every body that is being sent makes progress. A body can be up to a second late, because
/// it waits for large chunks of other bodies. Servers abort a request whose body makes no progress, the strictest after 5 s.
const TURN_SECS: u64 = 2;

/// At least this many bodies may be sent at once. So while the server answers one request, other bodies use the bandwidth.
const BODIES_MIN: u64 = 4;

/// The maximum number of bytes that one body sends at a time. Connections count sent bytes in steps of this size. `TURN_MAX` is the maximum
/// number of bytes of all bodies in a turn. This number is small enough for a semaphore, which counts its permits with 32 bits.
const CHUNK_MAX: u64 = 64 << 10;
const TURN_MAX: u64 = 1 << 30;

/// A limit on bytes per second. Engines that hold clones of one `Bandwidth` share the limit.
#[derive(Clone, Debug)]
pub struct Bandwidth(Arc<BandwidthLimit>);

#[derive(Debug)]
struct BandwidthLimit {
    pace: Mutex<Pace>,
    shares: BandwidthShares,
    /// The number of bytes of a turn that no body has reserved.
    unclaimed: Arc<Semaphore>,
}

/// The division of a limit among bodies that are sent at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct BandwidthShares {
    /// The bytes that all bodies together may send in a turn.
    turn: u64,
    /// The bytes that one body sends at a time.
    chunk: u64,
}

impl BandwidthShares {
    fn of(bytes_per_second: u64) -> Self {
        let turn = bytes_per_second.saturating_mul(TURN_SECS).clamp(BODIES_MIN, TURN_MAX);
        Self { turn, chunk: (turn / BODIES_MIN).min(CHUNK_MAX) }
    }

    /// Returns how much of a turn a body of `len` bytes reserves while it is sent.
    fn claim(self, len: u64) -> u32 {
        // This conversion never fails, because a chunk has at most 64 KiB.
        u32::try_from(len.min(self.chunk)).unwrap_or(u32::MAX)
    }
}

impl Bandwidth {
    /// Creates a limit of `bytes` per second.
    pub fn limited_to(bytes: u64) -> Self {
        let shares = BandwidthShares::of(bytes);
        let unclaimed = Arc::new(Semaphore::new(shares.turn as usize));
        Self(Arc::new(BandwidthLimit { pace: Mutex::new(Pace::new(bytes)), shares, unclaimed }))
    }

    /// Waits until the limit has room for another body of `len` bytes, so that each body makes progress in each turn. Bodies wait in the
    /// order of these calls. Dropping the result gives the share back.
    pub(crate) async fn share(&self, len: u64) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed, so this always returns a permit.
        Arc::clone(&self.0.unclaimed).acquire_many_owned(self.0.shares.claim(len)).await.ok()
    }

    /// Returns how many bytes of a body to send at a time.
    pub(crate) fn chunk(&self) -> usize {
        self.0.shares.chunk as usize
    }

    /// Counts `bytes` that move now. Returns the pause that the caller must make to keep to the rate.
    pub(crate) fn take(&self, now: Instant, bytes: usize) -> Duration {
        self.0.pace.lock().unwrap_or_else(PoisonError::into_inner).take(now, bytes)
    }
}

/// Spreads bytes evenly in time, to keep to a rate. A sender that has paused may not send faster later to catch up, so a burst is never
/// larger than one chunk.
#[derive(Debug)]
pub(crate) struct Pace {
    bytes_per_second: f64,
    next: Option<Instant>,
}

impl Pace {
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1) as f64, next: None }
    }

    /// Counts `bytes` that move now. Returns the pause that the caller must make to keep to the rate.
    pub(crate) fn take(&mut self, now: Instant, bytes: usize) -> Duration {
        let next = self.next.map_or(now, |n| n.max(now))
            + Duration::from_secs_f64(bytes as f64 / self.bytes_per_second);
        self.next = Some(next);
        next - now
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::{BinaryHeap, VecDeque};

    use futures_util::FutureExt;

    use super::*;

    /// Returns the longest time without progress of a body of 1 MiB, while 200 streams of small bodies are sent.
    fn standstill(limit: u64, small: u64, shares: BandwidthShares) -> Duration {
        let (start, mut pace) = (Instant::now(), Pace::new(limit));
        let (mut left, mut longest, mut unclaimed) = (1_u64 << 20, Duration::ZERO, shares.turn);
        let mut waiting: VecDeque<u64> = (0..200).map(|_| small).chain([left]).collect();
        // For each running body, the time when it may send next, and its remaining bytes.
        let mut under_way = BinaryHeap::new();
        let mut now = start;
        while left > 0 {
            while let Some(len) = waiting.front().copied()
                && unclaimed >= u64::from(shares.claim(len))
            {
                unclaimed -= u64::from(shares.claim(len));
                waiting.pop_front();
                under_way.push(Reverse((now, len, len)));
            }
            let Reverse((at, len, rest)) = under_way.pop().unwrap();
            now = now.max(at);
            if rest == 0 {
                unclaimed += u64::from(shares.claim(len));
                waiting.push_back(small);
                continue;
            }
            let chunk = rest.min(shares.chunk);
            let pause = pace.take(now, chunk as usize);
            if len > small {
                left -= chunk;
                longest = longest.max(pause);
            }
            under_way.push(Reverse((now + pause, len, rest - chunk)));
        }
        longest
    }

    #[test]
    fn a_large_body_keeps_moving_beside_small_ones_whatever_the_limit() {
        for limit in [4 << 10, 32 << 10, 1 << 20, 100 << 20] {
            for small in [100, 10_000, 300_000] {
                let still = standstill(limit, small, BandwidthShares::of(limit));
                assert!(still <= Duration::from_secs(TURN_SECS + 1), "{limit} B/s, {small} B: {still:?}");
            }
        }
        let unshared = BandwidthShares { turn: u64::MAX, chunk: CHUNK_MAX };
        assert!(standstill(32 << 10, 10_000, unshared) > Duration::from_secs(30), "shares prevent this");
    }

    #[test]
    fn shares_of_any_limit_let_four_bodies_go() {
        for limit in [0, 1, 10, 32 << 10, 1 << 30, u64::MAX] {
            let shares = BandwidthShares::of(limit);
            assert!(
                shares.chunk > 0 && u64::from(shares.claim(u64::MAX)) * BODIES_MIN <= shares.turn,
                "{limit}"
            );
        }
    }

    #[tokio::test]
    async fn a_body_begins_when_another_has_given_its_share_back() {
        let bandwidth = Bandwidth::limited_to(32 << 10);
        let mut shares = Vec::new();
        for _ in 0..BODIES_MIN {
            shares.push(bandwidth.share(1 << 20).await.unwrap());
        }
        assert!(bandwidth.share(1).now_or_never().is_none());
        shares.pop();
        assert!(bandwidth.share(1 << 20).now_or_never().is_some());
    }

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
