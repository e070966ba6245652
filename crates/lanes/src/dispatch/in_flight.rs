//! How many small attempts are on their way at once.
//!
//! An h2 lane takes a hundred attempts, but those that are on their way together share the path and all end late. What
//! keeps the path full is enough; the others wait, and the smallest go first. With all of 200 attempts of 32-512 KiB in flight
//! beside bulk at 1 Gbit/s over h2, the last of them took 0.70 s; so they take 0.53 s. Attempts of unknown size count for what
//! others brought whose answers said theirs.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::AttemptId;

/// Attempts that are never held back: what one lane of a browser or an SDK carries, too few to be in each other's way.
const ATTEMPTS_MIN: usize = 16;

/// What the path is taken to carry, bytes a second: 10 Gbit/s. Assuming too much only leaves more attempts to share it.
const RATE_ASSUMED: f64 = 1.25e9;

/// What the path is taken to carry up until something was seen, in bytes a second: 1 Gbit/s. Senders double what they send with
/// each round trip, so that where it carries more, that is seen about as soon as this matters.
pub(super) const UP_UNKNOWN: f64 = 125e6;

/// Uploads go at once for so many times of what the path is taken to carry: it may be more.
const UP_GAIN: f64 = 2.0;

/// And they go in any case up to so many bytes: a server may take longer than is assumed.
const UP_MIN: f64 = (2 << 20) as f64;

/// What a server takes to answer, beside the round trip, at least. Where answers tell when they begin, the shortest of
/// them says what it takes; it is believed to be longer by a hundredth with each that took longer.
const SERVICE: Duration = Duration::from_millis(1);
const SERVICE_GROWS: f64 = 1.01;

/// An attempt that has been on its way for this long isn't counted any more: those on a lane that has fallen silent must not
/// hold up the other lanes. On a path so slow that it needs this for sixteen attempts, holding back is of little use.
const COUNTED_FOR: Duration = Duration::from_millis(500);

/// An attempt on its way: since when, its bytes, and those of them that go up.
#[derive(Clone, Copy, Debug)]
struct Counted {
    since: Instant,
    bytes: u64,
    up: u64,
}

/// The express attempts that one origin has on its lanes.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    counted: FxHashMap<AttemptId, Counted>,
    bytes: u64,
    up: u64,
    /// What the path is taken to carry up, bytes a second.
    up_rate: Option<f64>,
    /// What the server takes to answer, as far as it is known.
    service: Option<Duration>,
    /// When they were sent, the first first; with some that have ended.
    sent: VecDeque<(Instant, AttemptId)>,
}

impl InFlight {
    pub(super) fn add(&mut self, now: Instant, attempt: AttemptId, bytes: u64, up: u64) {
        self.counted.insert(attempt, Counted { since: now, bytes, up });
        self.bytes += bytes;
        self.up += up;
        self.sent.push_back((now, attempt));
    }

    /// An attempt's answer has begun, and tells its size.
    pub(super) fn answered(&mut self, now: Instant, attempt: AttemptId, bytes: u64, rtt: Duration) {
        let Some(counted) = self.counted.get_mut(&attempt) else { return };
        self.bytes = self.bytes - counted.bytes + bytes;
        counted.bytes = bytes;
        let took = now.saturating_duration_since(counted.since).saturating_sub(rtt);
        self.service = Some(self.service.map_or(took, |known| known.mul_f64(SERVICE_GROWS).min(took)));
    }

    pub(super) fn remove(&mut self, attempt: AttemptId) {
        if let Some(counted) = self.counted.remove(&attempt) {
            self.bytes -= counted.bytes;
            self.up -= counted.up;
        }
        while self.sent.front().is_some_and(|(_, attempt)| !self.counted.contains_key(attempt)) {
            self.sent.pop_front();
        }
    }

    /// Takes note that `now` has come.
    pub(super) fn tick(&mut self, now: Instant) {
        while let Some((_, attempt)) = self.sent.front().copied().filter(|(at, _)| *at + COUNTED_FOR <= now) {
            self.sent.pop_front();
            self.remove(attempt);
        }
    }

    /// When there is room at the latest.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        self.sent.front().map(|(at, _)| *at + COUNTED_FOR)
    }

    /// Whether another attempt keeps the path fuller.
    pub(super) fn has_room(&self, rtt: Duration) -> bool {
        let turn = rtt + self.service.unwrap_or_default().max(SERVICE);
        let is_path_full = self.bytes as f64 >= turn.as_secs_f64() * RATE_ASSUMED;
        self.counted.len() < ATTEMPTS_MIN
            || !is_path_full && (self.up as f64) < uploads_max(turn, self.up_rate)
    }

    /// Takes note of what the path is taken to carry up, in bytes a second.
    pub(super) fn rate_up(&mut self, rate: f64) {
        self.up_rate = Some(rate);
    }
}

/// How many bytes of small uploads go at once, where a round trip and the answer take `turn`.
pub(super) fn uploads_max(turn: Duration, rate: Option<f64>) -> f64 {
    let rate = (rate.unwrap_or(UP_UNKNOWN) * UP_GAIN).min(RATE_ASSUMED);
    (turn.as_secs_f64() * rate).max(UP_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many attempts of so many bytes go at once.
    fn at_once(bytes: u64, rtt_ms: u64) -> usize {
        let (mut flight, now) = (InFlight::default(), Instant::now());
        let attempts = (0..).map(AttemptId).take_while(|_| {
            let has_room = flight.has_room(Duration::from_millis(rtt_ms));
            flight.add(now, AttemptId(flight.counted.len() as u64), bytes, 0);
            has_room
        });
        attempts.count()
    }

    #[test]
    fn what_fills_the_path_goes_at_once_and_no_more() {
        assert_eq!(at_once(256 << 10, 2), ATTEMPTS_MIN);
        assert_eq!(at_once(256 << 10, 20), 101);
        assert!(at_once(6 << 10, 50) > 10_000);
        assert!(at_once(2 << 10, 0) > 500);
    }

    #[test]
    fn of_uploads_less_goes_at_once_where_less_is_known_to_be_carried() {
        let at_once = |rate: Option<f64>, rtt_ms| {
            let (mut flight, now) = (InFlight::default(), Instant::now());
            rate.into_iter().for_each(|rate| flight.rate_up(rate));
            while flight.has_room(Duration::from_millis(rtt_ms)) {
                flight.add(now, AttemptId(flight.counted.len() as u64), 64 << 10, 64 << 10);
            }
            flight.counted.len()
        };
        assert_eq!(at_once(None, 49), 191);
        assert_eq!(at_once(Some(25e6), 49), 39);
        assert_eq!(at_once(Some(1e6), 49), 32, "a server may take longer than the path");
        assert_eq!(at_once(Some(1e12), 49), 954, "what any path is taken to carry");
    }

    #[test]
    fn what_has_ended_makes_room() {
        let (mut flight, now, near) = (InFlight::default(), Instant::now(), Duration::from_millis(1));
        (0..16).for_each(|attempt| flight.add(now, AttemptId(attempt), 1 << 20, 0));
        assert!(!flight.has_room(near));
        flight.remove(AttemptId(3));
        assert!(flight.has_room(near));
        (0..16).for_each(|attempt| flight.remove(AttemptId(attempt)));
        assert_eq!((flight.bytes, flight.next_tick()), (0, None));
    }

    #[test]
    fn a_work_counts_for_what_it_turns_out_to_be() {
        let (mut flight, now, near) = (InFlight::default(), Instant::now(), Duration::from_millis(1));
        (0..16).for_each(|attempt| flight.add(now, AttemptId(attempt), 256 << 10, 0));
        assert!(!flight.has_room(near));
        (0..16).for_each(|attempt| flight.answered(now + near, AttemptId(attempt), 4 << 10, near));
        assert!(flight.has_room(near));
        (0..16).for_each(|attempt| flight.remove(AttemptId(attempt)));
        flight.answered(now, AttemptId(3), 1 << 20, near);
        assert_eq!(flight.bytes, 0, "one that has ended counts for nothing");
    }

    #[test]
    fn a_server_that_thinks_longer_is_asked_more_at_once() {
        let (mut flight, now, near) = (InFlight::default(), Instant::now(), Duration::from_millis(1));
        (0..16).for_each(|attempt| flight.add(now, AttemptId(attempt), 256 << 10, 0));
        assert!(!flight.has_room(near));
        flight.answered(now + Duration::from_millis(51), AttemptId(0), 256 << 10, near);
        (16..200).for_each(|attempt| flight.add(now, AttemptId(attempt), 256 << 10, 0));
        assert!(flight.has_room(near));
        flight.answered(now + near, AttemptId(1), 256 << 10, near);
        assert!(!flight.has_room(near), "one that came at once shows that it doesn't");
    }

    #[test]
    fn attempts_on_a_silent_lane_do_not_hold_up_the_others_for_long() {
        let (mut flight, now, near) = (InFlight::default(), Instant::now(), Duration::from_millis(1));
        (0..16).for_each(|attempt| flight.add(now, AttemptId(attempt), 1 << 20, 0));
        let at = flight.next_tick().expect("a tick");
        flight.tick(at - Duration::from_millis(1));
        assert!(!flight.has_room(near));
        flight.tick(at);
        assert!(flight.has_room(near));
        flight.remove(AttemptId(0));
        assert_eq!(flight.bytes, 0);
    }
}
