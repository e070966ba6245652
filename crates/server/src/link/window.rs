//! The congestion window: the number of bytes that one sender may have in flight, and its sending rate.
//!
//! It follows TCP's BBR algorithm. The first window is ten segments, and it doubles each round trip until the rate of
//! acknowledged bytes stops growing. Then the window is twice the bytes that the best rate of the last ten round trips
//! carries in one round trip. Bytes are sent at that rate, a quarter faster in every eighth round trip. Lost bytes
//! lower the measured rate, because they aren't delivered, and have no other effect. A path without a bandwidth is only
//! a delay, and has no window.

use std::time::Duration;

use super::LinkPath;

/// The payload of one packet in bytes: Ethernet's 1500 without headers and timestamps.
pub(super) const SEGMENT: usize = 1448;
/// The initial window of RFC 6928.
pub(super) const INITIAL: usize = 10 * SEGMENT;
const MIN: usize = 4 * SEGMENT;
/// The minimum round trip for the computation. Timers aren't precise enough for a shorter one.
const ROUND_TRIP_MIN: Duration = Duration::from_millis(1);
/// The number of round trips for which a rate is remembered.
const ROUNDS: usize = 10;
/// The factor of rate and window while the rate still grows. 2 / ln 2 doubles the rate in each round trip.
const STARTUP: f64 = 2.885;
/// The path counts as full when the rate hasn't grown by a quarter for this many round trips.
const FULL_ROUNDS: u32 = 3;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The maximum number of bytes that are sent at once: a TLS record and the next one's header, or the bytes of a
/// millisecond.
const BURST_BYTES: f64 = 17e3;
const BURST_TIME_S: f64 = 1e-3;
/// If a timer is late by at most this much, the sender catches up, so that the rate stays the same.
const LATE_MAX: Duration = Duration::from_millis(3);

#[derive(Debug)]
pub(super) struct Window {
    bytes: usize,
    round_trip: Duration,
    phase: Phase,
    /// The total of acknowledged bytes, and the time of the last acknowledgement.
    delivered: u64,
    delivered_at: Duration,
    /// The best rate of each of the last round trips, in bytes per second.
    rates: [f64; ROUNDS],
    round: usize,
    /// The time when the current round trip began. It ends when bytes sent at or after this time are acknowledged.
    round_began: Duration,
    /// The peak number of bytes in flight during the current round trip.
    used: usize,
    paced_until: Duration,
    /// True if the path has no bottleneck. Then only the receiver limits the sender.
    is_unlimited: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Phase {
    /// The rate when it last grew by a quarter, and the number of round trips since then.
    Startup(f64, u32),
    Drain,
    /// The time when this phase began.
    Steady(Duration),
}

/// The state at the time when bytes were sent. Their acknowledgement needs it to compute the rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendRecord {
    pub(super) at: Duration,
    delivered: u64,
    delivered_at: Duration,
}

impl Window {
    pub(super) fn new(path: &LinkPath) -> Window {
        Window {
            bytes: INITIAL,
            round_trip: (2 * path.delay).max(ROUND_TRIP_MIN),
            phase: Phase::Startup(0.0, 0),
            delivered: 0,
            delivered_at: Duration::ZERO,
            rates: [0.0; ROUNDS],
            round: 0,
            round_began: Duration::ZERO,
            used: 0,
            paced_until: Duration::ZERO,
            is_unlimited: path.bandwidth.is_none(),
        }
    }

    /// Returns the number of bytes that may be sent at `now`, in addition to those in flight.
    pub(super) fn room(&self, now: Duration, in_flight: usize) -> usize {
        if self.is_unlimited {
            return usize::MAX;
        }
        if now < self.paced_until {
            return 0;
        }
        let burst = BURST_BYTES.max(self.pace(now) * BURST_TIME_S);
        self.bytes.saturating_sub(in_flight).min(burst as usize)
    }

    /// Returns the time before which nothing may be sent.
    pub(super) fn paced_until(&self) -> Duration {
        if self.is_unlimited { Duration::ZERO } else { self.paced_until }
    }

    /// Records `len` bytes sent at `now`, in addition to those in flight.
    pub(super) fn send(&mut self, now: Duration, len: usize, in_flight: usize) -> SendRecord {
        let takes = Duration::from_secs_f64(len as f64 / self.pace(now));
        self.paced_until = self.paced_until.max(now.saturating_sub(LATE_MAX)) + takes;
        self.used = self.used.max(in_flight + len);
        if in_flight == 0 {
            self.delivered_at = now;
        }
        SendRecord { at: now, delivered: self.delivered, delivered_at: self.delivered_at }
    }

    /// Records the acknowledgement of `len` bytes at `now`. `in_flight` is the number of bytes still in flight.
    pub(super) fn acknowledged(&mut self, now: Duration, sent: SendRecord, len: usize, in_flight: usize) {
        self.delivered += len as u64;
        self.delivered_at = now;
        let took = now.saturating_sub(sent.delivered_at).max(self.round_trip);
        let best = &mut self.rates[self.round % ROUNDS];
        *best = best.max((self.delivered - sent.delivered) as f64 / took.as_secs_f64());
        if sent.at >= self.round_began {
            self.round_ends(now);
        }
        match self.phase {
            Phase::Drain if in_flight as f64 <= self.product() => self.phase = Phase::Steady(now),
            _ => {}
        }
        self.bytes = match self.phase {
            Phase::Startup(..) => {
                let most = ((STARTUP * self.product()) as usize).max(self.bytes);
                (self.bytes + len).min(most)
            }
            Phase::Drain | Phase::Steady(_) => {
                ((2.0 * self.product()) as usize).min(self.bytes + len).max(MIN)
            }
        };
    }

    fn round_ends(&mut self, now: Duration) {
        // If the sender had little to send, its rate shows nothing about the path. So keep the earlier rates.
        let is_used = 5 * self.used >= 2 * self.bytes;
        (self.round_began, self.used) = (now, 0);
        if !is_used {
            return;
        }
        if let Phase::Startup(before, rounds) = self.phase {
            let rate = self.rate();
            self.phase = match rounds + 1 {
                _ if rate >= 1.25 * before => Phase::Startup(rate, 0),
                FULL_ROUNDS => Phase::Drain,
                rounds => Phase::Startup(before, rounds),
            };
        }
        self.round += 1;
        self.rates[self.round % ROUNDS] = 0.0;
    }

    /// Returns the best rate of the last round trips, in bytes per second.
    fn rate(&self) -> f64 {
        self.rates.iter().copied().fold(0.0, f64::max)
    }

    /// Returns the bandwidth-delay product: the bytes that the path carries in a round trip.
    fn product(&self) -> f64 {
        (self.rate() * self.round_trip.as_secs_f64()).max(SEGMENT as f64)
    }

    /// Returns the sending rate at `now` in bytes per second.
    fn pace(&self, now: Duration) -> f64 {
        let first = INITIAL as f64 / self.round_trip.as_secs_f64();
        match self.phase {
            Phase::Startup(..) => STARTUP * self.rate().max(first),
            Phase::Drain => self.rate().max(first) / STARTUP,
            Phase::Steady(since) => {
                let rounds = now.saturating_sub(since).as_secs_f64() / self.round_trip.as_secs_f64();
                CYCLE[(rounds as usize + 2) % CYCLE.len()] * self.rate().max(SEGMENT as f64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const ROUND_TRIP: Duration = Duration::from_millis(20);
    const PATH: LinkPath =
        LinkPath { delay: Duration::from_millis(10), bandwidth: Some(10_000_000), queue: 0, loss: 0.0 };

    /// Sends as much as permitted over a path of this rate in bytes per second. Returns the window at the end of each
    /// round trip.
    fn windows(window: &mut Window, rate: usize, rounds: u32) -> Vec<usize> {
        let round = |n| {
            let now = n * ROUND_TRIP;
            let len = window.bytes;
            let sent = window.send(now, len, 0);
            let acknowledged = len.min(rate / 50);
            window.acknowledged(now + ROUND_TRIP, sent, acknowledged, len - acknowledged);
            window.bytes
        };
        (0..rounds).map(round).collect()
    }

    #[test]
    fn doubles_each_round_trip_until_the_path_is_full_then_holds_two_bdp() {
        let mut window = Window::new(&PATH);
        assert_eq!(windows(&mut window, usize::MAX, 4), [2, 4, 8, 16].map(|times| times * INITIAL));
        let mut window = Window::new(&PATH);
        let windows = windows(&mut window, 10_000_000, 40);
        assert_eq!(windows.last(), Some(&400_000), "{windows:?}");
        assert!(windows.iter().all(|bytes| *bytes <= 577_000), "{windows:?}");
    }

    #[test]
    fn what_leaves_at_once_is_bounded_and_a_late_timer_costs_nothing() {
        let mut window = Window::new(&PATH);
        windows(&mut window, 10_000_000, 40);
        let now = 3000 * MS;
        // 10 MB/s, and a quarter more or less in some round trips.
        let room = window.room(now, 0);
        assert_eq!(room, BURST_BYTES as usize);
        window.send(now, room, 0);
        assert_eq!(window.room(now, room), room, "for what a timer may be late");
        let until = window.paced_until();
        assert!(until < now);
        window.send(now, room, room);
        assert!((MS..3 * MS).contains(&(window.paced_until() - until)));
    }

    #[test]
    fn one_that_is_not_used_learns_nothing_and_forgets_nothing() {
        let mut window = Window::new(&PATH);
        windows(&mut window, 10_000_000, 40);
        let before = window.bytes;
        for n in 50..100 {
            let sent = window.send(n * ROUND_TRIP, 100, 0);
            window.acknowledged((n + 1) * ROUND_TRIP, sent, 100, 0);
            assert_eq!(window.bytes, before);
        }
    }
}
