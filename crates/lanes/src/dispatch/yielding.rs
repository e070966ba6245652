//! How much bulk may move while small requests are outstanding: small first, on the wire too.
//!
//! A lane of its own doesn't help a small object whose bytes queue behind bulk on the path. So while the small requests of a
//! direction are more than the path carries in a moment, bulk in that direction is let through at a floor rate only,
//! which rises with time so that it is never starved. Small requests that a moment carries don't stop bulk: the path has
//! room for both, and stopping for each of many small requests would waste it.

use std::time::{Duration, Instant};

use super::rules::Rules;

/// One direction's state.
#[derive(Debug, Default)]
pub(super) struct Yielding {
    rules: &'static Rules,
    since: Option<Instant>,
    decided: Option<Instant>,
    allowed: Option<u64>,
    /// The shortest round trip.
    rtt: Duration,
}

impl Yielding {
    pub(super) fn by(rules: &'static Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// What bulk is allowed now, bytes a second, given the bytes of small requests outstanding and the path as far as it is
    /// known, and of that small requests don't need: `Some` when that differs from what was said last. `Some(None)` opens it again.
    pub(super) fn decide(
        &mut self,
        now: Instant,
        outstanding: u64,
        (rate, is_full): (Option<f64>, bool),
        left_over: Option<f64>,
        rtt: Duration,
    ) -> Option<Option<u64>> {
        self.rtt = rtt;
        let carries = rate.unwrap_or_default();
        // What comes one by one keeps so much outstanding by waiting for its answers, bulk or none.
        let on_the_way = carries * rtt.as_secs_f64() * self.rules.gain;
        let above = (carries * self.rules.moment.as_secs_f64())
            .min(self.rules.freight_above as f64)
            .max(on_the_way) as u64;
        // What has begun to yield goes on until half of that is left, so that single ends don't flip it.
        let yields = outstanding > if self.since.is_some() { above / 2 } else { above };
        if !yields {
            self.since = None;
            return self.allowed.take().map(|_| None);
        }
        let since = *self.since.get_or_insert(now);
        self.decided = Some(now);
        let aged = (now.saturating_duration_since(since).as_secs_f64() / self.rules.yield_step.as_secs_f64())
            .floor();
        // Up to a part of the path; but that of what isn't known to be the whole may be nothing.
        let most = if is_full { carries / self.rules.gain } else { carries * self.rules.gain };
        let floor = (self.rules.yield_floor * aged.exp2()).min(most.max(self.rules.yield_floor));
        let floor = floor.max(left_over.unwrap_or_default()) as u64;
        // A new estimate matters only where it is another one.
        if self.allowed.is_some_and(|said| said.abs_diff(floor) <= said / 4) {
            return None;
        }
        self.allowed = Some(floor);
        Some(Some(floor))
    }

    /// Yields as if it began now.
    pub(super) fn begin_anew(&mut self, now: Instant) {
        self.since = self.since.map(|_| now);
    }

    /// What bulk is held to, in bytes a second.
    pub(super) fn allowed(&self) -> Option<u64> {
        self.allowed
    }

    /// Whether bulk that isn't on its way yet may begin: not before that has gained something, nor before it has waited for as
    /// long as it would lose by beginning.
    pub(super) fn may_begin(&self, now: Instant) -> bool {
        self.since.is_none_or(|since| {
            now >= since + self.rules.yield_step + self.rtt * self.rules.yield_round_trips
        })
    }

    /// Whether bulk is held back.
    pub(super) fn is_yielding(&self) -> bool {
        self.allowed.is_some()
    }

    /// When to decide again without anything having happened.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        self.since.and(self.decided).map(|at| at + self.rules.reading_min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIGABIT: (Option<f64>, bool) = (Some(125e6), true);
    const RTT: Duration = Duration::from_millis(2);

    #[test]
    fn bulk_yields_to_a_backlog_of_small_work_and_is_let_go_when_that_is_done() {
        let (mut yielding, now) = (Yielding::default(), Instant::now());
        assert_eq!(
            yielding.decide(now, 50 << 20, GIGABIT, None, RTT),
            Some(Some(Rules::CHOSEN.yield_floor as u64))
        );
        assert_eq!(yielding.decide(now, 20 << 20, GIGABIT, None, RTT), None, "nothing new");
        assert_eq!(yielding.decide(now, 800 << 10, GIGABIT, None, RTT), None, "not over yet");
        assert_eq!(yielding.decide(now, 100 << 10, GIGABIT, None, RTT), Some(None));
        assert_eq!(yielding.decide(now, 0, GIGABIT, None, RTT), None);
    }

    #[test]
    fn a_single_small_object_does_not_stop_bulk() {
        let mut yielding = Yielding::default();
        assert_eq!(yielding.decide(Instant::now(), 500 << 10, GIGABIT, None, RTT), None);
    }

    #[test]
    fn small_objects_that_come_and_go_do_not_stop_bulk_far_away() {
        // 50 of 272 KiB a second take 70 ms each.
        let far = Duration::from_millis(50);
        let decide =
            |outstanding, path| Yielding::default().decide(Instant::now(), outstanding, path, None, far);
        for is_full in [false, true] {
            assert_eq!(decide(1 << 20, (Some(14e6), is_full)), None);
            assert_eq!(decide(6_100_000, (Some(62e6), is_full)), None);
            assert!(decide(6_300_000, (Some(62e6), is_full)).is_some(), "a backlog");
            assert!(decide(1 << 20, (Some(3e6), is_full)).is_some(), "or what comes as it can");
        }
    }

    #[test]
    fn on_a_slow_path_less_is_a_backlog() {
        let mut yielding = Yielding::default();
        let slow = (Some(1.25e6), true);
        assert!(yielding.decide(Instant::now(), 300 << 10, slow, None, RTT).is_some());
    }

    #[test]
    fn bulk_is_never_starved_and_gains_with_time() {
        let (mut yielding, start) = (Yielding::default(), Instant::now());
        let rates: Vec<u64> = (0..40)
            .filter_map(|s| {
                yielding.decide(start + Rules::CHOSEN.yield_step * s, 50 << 20, GIGABIT, None, RTT).flatten()
            })
            .collect();
        assert!(
            rates.is_sorted()
                && rates[0] == Rules::CHOSEN.yield_floor as u64
                && *rates.last().unwrap() >= 50_000_000,
            "{rates:?}"
        );
    }

    #[test]
    fn before_anything_is_known_bulk_keeps_a_little() {
        let mut yielding = Yielding::default();
        let allowed = yielding.decide(Instant::now(), 1 << 20, (None, false), None, RTT);
        assert_eq!(allowed, Some(Some(Rules::CHOSEN.yield_floor as u64)));
    }

    #[test]
    fn what_bulk_there_is_goes_on_and_more_begins_when_that_has_gained_something() {
        let (mut yielding, now) = (Yielding::default(), Instant::now());
        assert!(yielding.may_begin(now));
        yielding.decide(now, 50 << 20, GIGABIT, None, RTT);
        assert!(!yielding.may_begin(now + Rules::CHOSEN.yield_step / 2));
        assert!(!yielding.may_begin(now + Rules::CHOSEN.yield_step));
        assert!(yielding.may_begin(now + Rules::CHOSEN.yield_step + RTT * Rules::CHOSEN.yield_round_trips));
        yielding.decide(now, 0, GIGABIT, None, RTT);
        assert!(yielding.may_begin(now));
    }
}
