//! How much may be on its way to us: about what the path holds.
//!
//! Left to TCP, connections fill whatever queue the path has, and a small answer waits behind that: a full mebibyte at
//! 1 Gbit/s is 8 ms, four times the round trip of a server nearby. And many connections that all send what TCP allows each
//! of them overflow it: with 200 objects of 32-512 KiB over 20 connections, one packet in twelve was lost, and whoever
//! lost his last one waited 200 ms for it. So the lanes of a role share the bandwidth-delay product and a little more
//! while small requests come. Bulk alone is left to TCP until it has filled the path, and then is given twice of it, so that
//! what comes next finds no queue.

use std::time::{Duration, Instant};

use super::Role;
use super::goodput::Goodput;
use super::limit::{Applied, NEARBY, SMALL_EXPECTED_FOR, Sharing};
use super::strangling::Strangling;

/// What may be outstanding, in bandwidth-delay products: senders that probe for more (BBR by a quarter) must find it.
const GAIN: f64 = 1.25;

/// And this in addition, in bytes: what the two ends hold while their threads are not running. With 1 to 1.5 products and
/// 64 to 128 KiB, bulk beside 50 small objects a second had the same 97 % of what they left of 1 Gbit/s 2 ms away.
const SLACK: f64 = 128.0 * 1024.0;

/// What the path is taken to carry until bulk has filled it, in bytes a second, 2 Gbit/s, unless more was seen. What is
/// let in beyond it can overflow a queue before anything is known.
const RATE_UNKNOWN: f64 = 250e6;

/// The same for bulk alone: enough to go on through a lost packet, and to find a path that is a little longer than it was.
const GAIN_ALONE: f64 = 2.0;
const SLACK_ALONE: f64 = 256.0 * 1024.0;

/// A lane's window is never smaller: below a score of segments TCP doesn't notice a loss but by a timeout.
const LANE_MIN: u32 = 32 * 1024;

/// A window that would be larger is left to TCP: the path is long, and its queue a small part of it.
const LANE_MAX: f64 = 8.0 * 1024.0 * 1024.0;

/// What differs by less than one in so many isn't said. It must be less than what the path may turn out to hold more than
/// it was taken for, or nobody would ever find that out.
const CHANGE_MIN: u32 = 16;

/// How often it is decided anew.
const AGAIN: Duration = Duration::from_millis(2);

/// The clamps of the downward direction.
#[derive(Debug, Default)]
pub(super) struct Window {
    small_at: Option<Instant>,
    decided: Option<Instant>,
    applied: [Applied; 2],
    strangling: Strangling,
}

impl Window {
    /// Takes note that small requests are outstanding.
    pub(super) fn small(&mut self, now: Instant) {
        self.small_at = Some(now);
    }

    /// Whether it is time to decide anew.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.decided.is_none_or(|at| now >= at + AGAIN)
    }

    /// Takes note that it is decided.
    pub(super) fn decided(&mut self, now: Instant) {
        self.decided = Some(now);
    }

    /// What each of a role's lanes that carry something or are being dialled may have outstanding, in bytes: `Some` when
    /// that differs by much from what was said last. `Some(None)` leaves it to TCP again.
    pub(super) fn decide(
        &mut self,
        now: Instant,
        role: Role,
        sharing: Sharing,
        goodput: &Goodput,
    ) -> Option<Option<u32>> {
        let expects_small =
            self.small_at.is_some_and(|at| now.saturating_duration_since(at) < SMALL_EXPECTED_FOR);
        let applied = &mut self.applied[role as usize];
        if sharing.lanes == 0 && expects_small {
            // Whoever comes next finds what held before.
            return None;
        }
        let may_hold =
            role == Role::Express || self.strangling.may_hold(now, applied.is_held(), sharing.lanes, goodput);
        let seen = goodput.rate().unwrap_or_default();
        let product = |rate: f64, gain: f64| rate * sharing.rtt.as_secs_f64() * gain;
        let total = match role {
            _ if sharing.lanes == 0 || sharing.rtt < NEARBY || !may_hold => None,
            _ if expects_small && goodput.is_full() => Some(product(seen, GAIN) + SLACK),
            _ if expects_small => Some(product(seen.max(RATE_UNKNOWN), GAIN) + SLACK),
            Role::Freight if goodput.is_full() => Some(product(seen, GAIN_ALONE) + SLACK_ALONE),
            _ => None,
        };
        let share = total.map(|total| total / sharing.lanes as f64);
        let share = share.filter(|share| *share <= LANE_MAX);
        applied.update(share.map(|share| (share as u32).max(LANE_MIN)), CHANGE_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::super::goodput::Load;
    use super::*;

    const NEAR: Duration = Duration::from_millis(2);

    /// A path that bulk has filled at so many bytes a second.
    fn full(rate: u64) -> Goodput {
        let (mut goodput, now) = (Goodput::default(), Instant::now());
        for reading in 0..10 {
            let at = now + Duration::from_millis(100) * reading;
            goodput.read(at, rate * u64::from(reading) / 10, Load::Bulk);
        }
        assert!(goodput.is_full());
        goodput
    }

    fn share(lanes: usize, rtt: Duration, goodput: &Goodput) -> Option<u32> {
        let (mut window, now) = (Window::default(), Instant::now());
        window.small(now);
        window.decide(now, Role::Freight, Sharing { lanes, rtt }, goodput).flatten()
    }

    #[test]
    fn bulk_alone_is_left_to_tcp_until_it_has_filled_the_path() {
        let (mut window, now, sharing) = (Window::default(), Instant::now(), Sharing { lanes: 2, rtt: NEAR });
        assert_eq!(window.decide(now, Role::Freight, sharing, &Goodput::default()), None);
        let clamp = window.decide(now, Role::Freight, sharing, &full(125_000_000)).flatten().unwrap();
        assert!((500_000..=800_000).contains(&(2 * clamp)), "{clamp}");
    }

    /// What bulk moves in five minutes, bytes a second, on a path whose round trip is longer than the shortest that was seen.
    fn moved(true_rtt: Duration, shared: bool) -> f64 {
        const PATH: f64 = 125e6;
        let (mut window, mut goodput) = (Window::default(), full(PATH as u64));
        let (start, sharing) = (Instant::now() + Duration::from_secs(1), Sharing { lanes: 4, rtt: NEAR });
        let (mut now, mut bytes, mut clamp) = (start, PATH, None);
        for _ in 0..3000 {
            if shared {
                window.small(now);
            }
            // As the dispatcher does, for both roles in turn.
            window.decide(now, Role::Express, Sharing { lanes: 1, rtt: NEAR }, &goodput);
            if let Some(said) = window.decide(now, Role::Freight, sharing, &goodput) {
                clamp = said.map(|bytes| f64::from(bytes) * 4.0);
            }
            now += Duration::from_millis(100);
            bytes += clamp.map_or(PATH, |clamp| (clamp / true_rtt.as_secs_f64()).min(PATH)) / 10.0;
            goodput.read(now, bytes as u64, Load::Bulk);
        }
        (bytes - PATH) / (now - start).as_secs_f64()
    }

    #[test]
    fn bulk_is_not_strangled_where_the_round_trip_is_longer_than_it_was() {
        for shared in [false, true] {
            for times in [1, 2, 4, 10] {
                let moved = moved(NEAR * times, shared);
                assert!(moved > 0.8 * 125e6, "{times} times as long, shared: {shared}: {moved}");
            }
        }
    }

    #[test]
    fn beside_small_attempts_lanes_share_little_more_than_the_path_holds() {
        let (mut window, now, gigabit) = (Window::default(), Instant::now(), full(125_000_000));
        window.small(now);
        let mut decide = |at, lanes| window.decide(at, Role::Freight, Sharing { lanes, rtt: NEAR }, &gigabit);
        let clamp = decide(now, 2).flatten().unwrap();
        assert!((375_000..=500_000).contains(&(2 * clamp)), "{clamp}");
        assert_eq!(decide(now + SMALL_EXPECTED_FOR / 2, 2), None, "nothing new");
        assert_eq!(decide(now + SMALL_EXPECTED_FOR / 2, 0), None, "nobody to tell");
        assert_eq!(decide(now + SMALL_EXPECTED_FOR / 2, 4), Some(Some(clamp / 2)));
        assert!(
            decide(now + SMALL_EXPECTED_FOR, 4).flatten().unwrap() > clamp / 2,
            "and then there is more room again"
        );
    }

    #[test]
    fn a_long_path_is_still_filled() {
        let far = Duration::from_millis(50);
        let clamp = share(4, far, &full(125_000_000)).unwrap();
        assert!(f64::from(clamp) * 4.0 >= 1.25 * 125e6 * 0.05);
        assert_eq!(share(1, far, &full(1_250_000_000)), None, "beyond that TCP knows better");
    }

    #[test]
    fn a_path_that_was_taken_for_too_little_is_found_out_beside_small_attempts() {
        let (rtt, path) = (Duration::from_millis(50), 125e6);
        let (mut window, mut goodput) = (Window::default(), full(10_000_000));
        // What the connections are held to, and what comes through them.
        let (mut now, mut bytes, mut clamp) = (Instant::now() + Duration::from_secs(1), 10_000_000.0, 0.0);
        for _ in 0..60 {
            window.small(now);
            let said = window.decide(now, Role::Freight, Sharing { lanes: 4, rtt }, &goodput);
            clamp = said.flatten().map_or(clamp, |clamp| f64::from(clamp) * 4.0);
            now += Duration::from_millis(100);
            bytes += (clamp / rtt.as_secs_f64()).min(path) / 10.0;
            goodput.read(now, bytes as u64, Load::Bulk);
        }
        assert!(goodput.rate().unwrap() > 0.95 * path, "{:?}", goodput.rate());
    }

    #[test]
    fn many_lanes_on_a_slow_path_keep_a_few_segments_each() {
        assert_eq!(share(64, NEAR, &full(1_000_000)), Some(LANE_MIN));
    }

    #[test]
    fn what_is_not_known_to_fill_the_path_is_not_taken_for_it() {
        let mut few = Goodput::default();
        few.read(Instant::now(), 0, Load::Small);
        few.read(Instant::now() + Duration::from_millis(100), 100_000, Load::Small);
        assert_eq!(share(8, NEAR, &few), share(8, NEAR, &Goodput::default()));
        assert!(share(8, NEAR, &few).unwrap() > share(8, NEAR, &full(1_000_000)).unwrap());
    }

    #[test]
    fn next_door_there_is_no_queue_to_keep_short() {
        assert_eq!(share(32, NEARBY / 2, &Goodput::default()), None);
    }
}
