//! How many small works are on their way at once.
//!
//! An h2 lane takes a hundred works, but those that are on their way together share the path and all end late. What
//! keeps the path full is enough; the others wait, and the smallest go first. With all of 200 works of 32-512 KiB in flight
//! beside bulk at 1 Gbit/s over h2, the last of them took 0.70 s; so they take 0.53 s. Works of unknown size count for what
//! others brought whose answers told theirs.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::WorkId;

/// Works that are never held back: what one lane of a browser or an SDK carries, too few to be in each other's way.
const WORKS_MIN: usize = 16;

/// What the path is taken to carry, bytes a second: 10 Gbit/s. Assuming too much only leaves more works to share it.
const RATE_ASSUMED: f64 = 1.25e9;

/// What a server takes to answer, beside the round trip.
const SERVICE: Duration = Duration::from_millis(1);

/// A work that has been on its way for this long isn't counted any more: those on a lane that has fallen silent must not
/// hold up the other lanes. On a path so slow that it needs this for sixteen works, holding back is of little use.
const COUNTED_FOR: Duration = Duration::from_millis(500);

/// The express works that one origin has on its lanes.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    counted: FxHashMap<WorkId, u64>,
    bytes: u64,
    /// When they were sent, the first first; with some that have ended.
    sent: VecDeque<(Instant, WorkId)>,
}

impl InFlight {
    pub(super) fn add(&mut self, now: Instant, work: WorkId, bytes: u64) {
        self.counted.insert(work, bytes);
        self.bytes += bytes;
        self.sent.push_back((now, work));
    }

    /// A work turns out to be of another size.
    pub(super) fn resize(&mut self, work: WorkId, bytes: u64) {
        if let Some(counted) = self.counted.get_mut(&work) {
            self.bytes = self.bytes - *counted + bytes;
            *counted = bytes;
        }
    }

    pub(super) fn remove(&mut self, work: WorkId) {
        self.bytes -= self.counted.remove(&work).unwrap_or_default();
        while self.sent.front().is_some_and(|(_, work)| !self.counted.contains_key(work)) {
            self.sent.pop_front();
        }
    }

    /// Takes note that `now` has come.
    pub(super) fn tick(&mut self, now: Instant) {
        while let Some((_, work)) = self.sent.front().copied().filter(|(at, _)| *at + COUNTED_FOR <= now) {
            self.sent.pop_front();
            self.remove(work);
        }
    }

    /// When there is room at the latest.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        self.sent.front().map(|(at, _)| *at + COUNTED_FOR)
    }

    /// Whether another work keeps the path fuller.
    pub(super) fn has_room(&self, rtt: Duration) -> bool {
        self.counted.len() < WORKS_MIN || (self.bytes as f64) < (rtt + SERVICE).as_secs_f64() * RATE_ASSUMED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many works of so many bytes go at once.
    fn at_once(bytes: u64, rtt_ms: u64) -> usize {
        let (mut flight, now) = (InFlight::default(), Instant::now());
        let works = (0..).map(WorkId).take_while(|_| {
            let has_room = flight.has_room(Duration::from_millis(rtt_ms));
            flight.add(now, WorkId(flight.counted.len() as u64), bytes);
            has_room
        });
        works.count()
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
        let (mut flight, now, near) = (InFlight::default(), Instant::now(), Duration::from_millis(1));
        (0..16).for_each(|work| flight.add(now, WorkId(work), 1 << 20));
        assert!(!flight.has_room(near));
        flight.remove(WorkId(3));
        assert!(flight.has_room(near));
        (0..16).for_each(|work| flight.remove(WorkId(work)));
        assert_eq!((flight.bytes, flight.next_tick()), (0, None));
    }

    #[test]
    fn a_work_counts_for_what_it_turns_out_to_be() {
        let (mut flight, now, near) = (InFlight::default(), Instant::now(), Duration::from_millis(1));
        (0..16).for_each(|work| flight.add(now, WorkId(work), 256 << 10));
        assert!(!flight.has_room(near));
        (0..16).for_each(|work| flight.resize(WorkId(work), 4 << 10));
        assert!(flight.has_room(near));
        (0..16).for_each(|work| flight.remove(WorkId(work)));
        flight.resize(WorkId(3), 1 << 20);
        assert_eq!(flight.bytes, 0, "one that has ended counts for nothing");
    }

    #[test]
    fn works_on_a_silent_lane_do_not_hold_up_the_others_for_long() {
        let (mut flight, now, near) = (InFlight::default(), Instant::now(), Duration::from_millis(1));
        (0..16).for_each(|work| flight.add(now, WorkId(work), 1 << 20));
        let at = flight.next_tick().expect("a tick");
        flight.tick(at - Duration::from_millis(1));
        assert!(!flight.has_room(near));
        flight.tick(at);
        assert!(flight.has_room(near));
        flight.remove(WorkId(0));
        assert_eq!(flight.bytes, 0);
    }
}
