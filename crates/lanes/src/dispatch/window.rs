//! How much of bulk may be on its way to us: about what the path holds, while small work comes beside it.
//!
//! Bulk alone is best left to TCP, which fills whatever queue the path has. But a small answer waits behind that queue: a
//! full mebibyte at 1 Gbit/s is 8 ms, four times the round trip of a server nearby. So once small work has been seen beside
//! bulk, each freight lane's receive window is clamped to its share of the bandwidth-delay product and a little more.

use std::time::{Duration, Instant};

/// How long after small work more of it is expected.
const BESIDE: Duration = Duration::from_secs(5);

/// What may be outstanding, in bandwidth-delay products: senders that probe for more (BBR by a quarter) must find it.
const GAIN: f64 = 1.5;

/// And this in addition, in bytes: what the two ends hold while their threads are not running.
const SLACK: f64 = 128.0 * 1024.0;

/// A lane's window is never smaller: below a few segments TCP falls into timeouts.
const LANE_MIN: u32 = 64 * 1024;

/// A window that would be larger is left to TCP: the path is long, and its queue a small part of it.
const LANE_MAX: f64 = 8.0 * 1024.0 * 1024.0;

/// The clamp of the downward direction.
#[derive(Debug, Default)]
pub(super) struct Window {
    small_at: Option<Instant>,
    told: Option<u32>,
}

impl Window {
    /// Takes note that small work is outstanding.
    pub(super) fn small(&mut self, now: Instant) {
        self.small_at = Some(now);
    }

    /// What each of `lanes` busy freight lanes may have outstanding, in bytes: `Some` when that differs by much from
    /// what was said last. `Some(None)` leaves it to TCP again.
    pub(super) fn decide(
        &mut self,
        now: Instant,
        lanes: usize,
        goodput: Option<f64>,
        rtt: Duration,
    ) -> Option<Option<u32>> {
        let is_beside = self.small_at.is_some_and(|at| now.saturating_duration_since(at) < BESIDE);
        let share = goodput.filter(|_| is_beside && lanes > 0 && !rtt.is_zero()).map(|rate| {
            let product = rate * rtt.as_secs_f64();
            (product * GAIN + SLACK) / lanes as f64
        });
        let Some(share) = share.filter(|share| *share <= LANE_MAX) else {
            return self.told.take().map(|_| None);
        };
        let clamp = (share as u32).max(LANE_MIN);
        if self.told.is_some_and(|told| told.abs_diff(clamp) <= told / 4) {
            return None;
        }
        self.told = Some(clamp);
        Some(Some(clamp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIGABIT: Option<f64> = Some(125e6);
    const NEAR: Duration = Duration::from_millis(2);

    #[test]
    fn bulk_alone_is_left_to_tcp() {
        assert_eq!(Window::default().decide(Instant::now(), 2, GIGABIT, NEAR), None);
    }

    #[test]
    fn beside_small_work_lanes_share_little_more_than_the_path_holds() {
        let (mut window, now) = (Window::default(), Instant::now());
        window.small(now);
        let clamp = window.decide(now, 2, GIGABIT, NEAR).flatten().unwrap();
        assert!((375_000..=600_000).contains(&(2 * clamp)), "{clamp}");
        assert_eq!(window.decide(now + BESIDE / 2, 2, GIGABIT, NEAR), None, "nothing new");
        assert_eq!(window.decide(now + BESIDE, 2, GIGABIT, NEAR), Some(None), "and then TCP has it again");
    }

    #[test]
    fn a_long_path_is_still_filled() {
        let (mut window, now) = (Window::default(), Instant::now());
        window.small(now);
        let far = Duration::from_millis(50);
        let clamp = window.decide(now, 4, GIGABIT, far).flatten().unwrap();
        assert!(f64::from(clamp) * 4.0 >= 1.4 * 125e6 * 0.05);
        assert_eq!(window.decide(now, 1, Some(1.25e9), far), Some(None), "beyond that TCP knows better");
    }

    #[test]
    fn many_lanes_on_a_slow_path_keep_a_few_segments_each() {
        let (mut window, now) = (Window::default(), Instant::now());
        window.small(now);
        assert_eq!(window.decide(now, 32, Some(1e6), NEAR).flatten(), Some(LANE_MIN));
    }
}
