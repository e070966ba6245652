//! How much bulk is on its way: about what the path holds.
//!
//! Left to TCP, connections fill whatever queue the path has, and a small answer waits behind that: a full mebibyte at
//! 1 Gbit/s is 8 ms, four times the round trip of a server nearby. What doesn't fit is lost, of small bodies too, and whoever loses his
//! last packet waits for a timeout. A rate to keep to would have to be known exactly: a little above what the path carries fills the
//! queue as well, a little below wastes the path, and what is measured while it is kept says nothing new. What is clamped instead is
//! what the kernel lets each connection have outstanding, its receive window or its send buffer, which empties as fast as the path lets it:
//!
//! | bulk | down: receive windows | up: send buffers |
//! |---|---|---|
//! | alone, on a path that it has filled, but within a house | `2 * gain` | TCP's |
//! | beside small requests | `growth` | `gain` |
//! | that yields | `growth` of what it may move | as beside small requests |
//!
//! They are so many bandwidth-delay products, and what the path carries while a thread isn't running; the lanes that carry bulk share them. Of
//! a path that bulk hasn't filled nothing is held but what yields.

use std::time::{Duration, Instant};

use super::Direction;
use super::path_model::PathEstimate;
use super::rules::Rules;
use super::strangling::Strangling;

/// What bulk moves beside.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beside {
    /// Whether small requests are outstanding, or more of them expected.
    pub(super) expects_small: bool,
    /// What bulk that yields may move, in bytes a second.
    pub(super) allowed: Option<u64>,
}

/// The lanes that carry bulk in a direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharing {
    pub(super) lanes: usize,
    /// The longest round trip of them.
    pub(super) rtt: Duration,
}

/// What one origin's bulk of one direction is held to.
#[derive(Debug)]
pub(super) struct BulkInFlight {
    rules: &'static Rules,
    /// What is in force for each lane, in bytes; nothing where it is left to TCP.
    applied: Option<u32>,
    unsent: u32,
    /// The pace of each lane in bytes a second; nothing where it is left to TCP.
    pace: Option<u32>,
    strangling: Strangling,
}

impl BulkInFlight {
    pub(super) fn by(rules: &'static Rules) -> Self {
        Self {
            rules,
            applied: None,
            unsent: rules.unsent_unknown,
            pace: None,
            strangling: Strangling::by(rules),
        }
    }

    /// What each of the lanes may have on its way, in bytes: `Some` when that differs by much from what was said last.
    /// `Some(None)` leaves it to TCP again.
    pub(super) fn decide(
        &mut self,
        now: Instant,
        direction: Direction,
        sharing: Sharing,
        path: &PathEstimate,
        Beside { expects_small, allowed }: Beside,
    ) -> Option<Option<u32>> {
        if sharing.lanes == 0 && expects_small {
            // Whoever comes next finds what held before.
            return None;
        }
        let is_held = self.applied.is_some();
        let may_hold = self.strangling.may_hold(now, is_held, sharing.lanes, path) && path.is_full_of_bulk();
        let seen = path.rate().unwrap_or_default();
        let held = match (direction, allowed) {
            _ if sharing.lanes == 0 => None,
            // A server that is nearer than it takes to answer is in the same house: what it may send wakes its threads less often.
            _ if sharing.rtt < self.rules.service_min && !expects_small => None,
            (Direction::Down, Some(allowed)) => Some((self.rules.growth, allowed as f64)),
            _ if !may_hold => None,
            (Direction::Down, None) if expects_small => Some((self.rules.growth, seen)),
            (Direction::Down, None) => Some((2.0 * self.rules.gain, seen)),
            (Direction::Up, _) if expects_small => Some((self.rules.gain, seen)),
            (Direction::Up, _) => None,
        };
        let share = held.map(|(products, rate)| {
            rate * (sharing.rtt.as_secs_f64() * products + self.rules.service_min.as_secs_f64())
                / sharing.lanes as f64
        });
        let share = share.filter(|share| *share <= self.rules.lane_bytes_max);
        self.update(share.map(|share| (share as u32).max(self.rules.lane_bytes_min)))
    }

    fn update(&mut self, wanted: Option<u32>) -> Option<Option<u32>> {
        let Some(bytes) = wanted else { return self.applied.take().map(|_| None) };
        if self.applied.is_some_and(|applied| applied.abs_diff(bytes) <= applied / self.rules.change_min) {
            return None;
        }
        self.applied = Some(bytes);
        Some(Some(bytes))
    }

    /// Returns the pace of each of `lanes`, which upload bulk alone, in bytes a second: `Some` when it differs by much from the last one.
    /// Each part of an upload ends with a pause. A sender that goes by rate (BBR) then bursts at almost three times its share: a path of
    /// 1 Gbit/s and 20 ms with a queue of 512 KiB had 22 % of its packets sent again.
    pub(super) fn pace(&mut self, lanes: usize, path: &PathEstimate, beside: Beside) -> Option<Option<u32>> {
        let is_alone = lanes > 0 && !beside.expects_small;
        let rate = path.rate().filter(|_| is_alone && path.is_full_of_bulk());
        let each = rate.map(|rate| rate * (self.rules.growth * self.rules.growth) / lanes as f64);
        let each = each.filter(|each| (self.rules.pace_min..f64::from(u32::MAX)).contains(each));
        let Some(pace) = each.map(|each| each as u32) else { return self.pace.take().map(|_| None) };
        if self.pace.is_some_and(|said| said.abs_diff(pace) <= said / self.rules.change_min) {
            return None;
        }
        self.pace = Some(pace);
        Some(Some(pace))
    }

    /// How much bulk the kernel may hold, small requests or not, that it may not send yet, in bytes for each of `lanes`: `Some`
    /// when that differs by much from what was said last. Together as much as the path carries in a [`moment`](Rules::moment), since it goes before the
    /// clamp is felt: four lanes with their 4 MiB each had 0.1 s of a 1 Gbit/s path. Less costs wake-ups: with 256 KiB a lane a GiB over
    /// loopback took a tenth more CPU.
    pub(super) fn unsent(&mut self, lanes: usize, rate: Option<f64>) -> Option<u32> {
        let rate = rate.filter(|_| lanes > 0)?;
        let unsent = (rate * self.rules.moment.as_secs_f64() / lanes as f64)
            .max(2.0 * f64::from(self.rules.lane_bytes_min)) as u32;
        if self.unsent.abs_diff(unsent) <= self.unsent / 2 {
            return None;
        }
        self.unsent = unsent;
        Some(unsent)
    }
}

#[cfg(test)]
mod tests {
    use super::super::path_model::Load;
    use super::*;

    const NEAR: Duration = Duration::from_millis(2);
    const HOME: Duration = Duration::from_millis(20);
    const GIGABIT: f64 = 125e6;

    /// A path that bulk has filled at so many bytes a second.
    fn full(rate: f64) -> PathEstimate {
        let (mut path, now) = (PathEstimate::default(), Instant::now());
        for reading in 0..10 {
            let bytes = rate * f64::from(reading) / 10.0;
            path.read(now + Duration::from_millis(100) * reading, bytes as u64, BULK);
        }
        assert!(path.is_full());
        path
    }

    const BULK: Load = Load { fills: true, has_bulk: true, is_held: false };

    /// Small requests that come again and again.
    const SMALL: Beside = Beside { expects_small: true, allowed: None };

    /// What a lane gets beside small requests.
    fn share(direction: Direction, lanes: usize, rtt: Duration, path: &PathEstimate) -> Option<u32> {
        let now = Instant::now();
        BulkInFlight::by(&Rules::CHOSEN).decide(now, direction, Sharing { lanes, rtt }, path, SMALL).flatten()
    }

    #[test]
    fn nothing_is_held_on_a_path_that_nothing_has_filled_nor_alone_in_the_same_house() {
        for direction in Direction::BOTH {
            assert_eq!(share(direction, 2, NEAR, &PathEstimate::default()), None);
        }
        let (now, sharing) = (Instant::now(), Sharing { lanes: 32, rtt: Rules::CHOSEN.service_min / 2 });
        let (gigabit, alone) = (full(GIGABIT), Beside::default());
        assert_eq!(
            BulkInFlight::by(&Rules::CHOSEN).decide(now, Direction::Down, sharing, &gigabit, alone),
            None
        );
        for direction in Direction::BOTH {
            assert!(share(direction, 2, sharing.rtt, &gigabit).is_some(), "{direction:?}");
        }
    }

    #[test]
    fn beside_small_requests_lanes_share_little_more_than_the_path_holds() {
        for direction in Direction::BOTH {
            let (mut bulk, now, gigabit) = (BulkInFlight::by(&Rules::CHOSEN), Instant::now(), full(GIGABIT));
            let mut decide =
                |lanes, beside| bulk.decide(now, direction, Sharing { lanes, rtt: NEAR }, &gigabit, beside);
            let clamp = decide(2, SMALL).flatten().unwrap();
            assert!((400_000..=650_000).contains(&(2 * clamp)), "{clamp}");
            assert_eq!(decide(2, SMALL), None, "nothing new");
            assert_eq!(decide(0, SMALL), None, "nobody to tell");
            assert_eq!(decide(4, SMALL), Some(Some(clamp / 2)));
            let then = decide(4, Beside::default()).unwrap();
            assert!(then.is_none_or(|then| then > clamp), "and then there is more room again");
        }
    }

    #[test]
    fn bulk_that_yields_has_no_more_on_its_way_than_it_may_move() {
        let (now, sharing) = (Instant::now(), Sharing { lanes: 2, rtt: HOME });
        let beside = Beside { expects_small: true, allowed: Some(6_250_000) };
        let said =
            BulkInFlight::by(&Rules::CHOSEN).decide(now, Direction::Down, sharing, &full(GIGABIT), beside);
        let clamp = said.flatten().unwrap();
        assert!((80_000..=82_000).contains(&clamp), "{clamp}");
    }

    #[test]
    fn many_lanes_on_a_slow_path_keep_a_few_segments_each() {
        for direction in Direction::BOTH {
            assert_eq!(share(direction, 64, NEAR, &full(1e6)), Some(Rules::CHOSEN.lane_bytes_min));
        }
    }

    #[test]
    fn a_long_path_that_a_few_lanes_hold_is_left_to_tcp() {
        for direction in Direction::BOTH {
            assert_eq!(share(direction, 1, Duration::from_millis(50), &full(1.25e9)), None);
        }
    }

    /// What bulk moves in five minutes, bytes a second, on a path whose round trip is so many times the shortest that was seen.
    fn moved(direction: Direction, rtt: Duration, times: u32, expects_small: bool) -> f64 {
        // Of a send buffer three quarters are filled, and a packet beyond it.
        let filled = if direction == Direction::Up { (0.75, 32e3) } else { (1.0, 0.0) };
        let (mut path, start) = (full(GIGABIT), Instant::now() + Duration::from_secs(1));
        let (mut now, mut bytes, mut clamp) = (start, GIGABIT, None);
        let (mut bulk, beside) = (BulkInFlight::by(&Rules::CHOSEN), Beside { expects_small, allowed: None });
        for _ in 0..3000 {
            if let Some(said) = bulk.decide(now, direction, Sharing { lanes: 4, rtt }, &path, beside) {
                clamp = said.map(|bytes| 4.0 * (f64::from(bytes) * filled.0 + filled.1));
            }
            now += Duration::from_millis(100);
            let through = |clamp: f64| (clamp / (rtt * times).as_secs_f64()).min(GIGABIT);
            bytes += clamp.map_or(GIGABIT, through) / 10.0;
            path.read(now, bytes as u64, BULK);
        }
        (bytes - GIGABIT) / (now - start).as_secs_f64()
    }

    #[test]
    fn bulk_is_not_strangled_where_the_round_trip_is_longer_than_it_was() {
        for shared in [false, true] {
            for times in [1, 2, 4, 10] {
                for direction in Direction::BOTH {
                    let moved = moved(direction, NEAR, times, shared);
                    assert!(moved > 0.8 * GIGABIT, "{times} times as long, shared: {shared}: {moved}");
                }
            }
        }
    }

    #[test]
    fn a_path_that_was_taken_for_too_little_is_found_out_beside_small_requests() {
        for lanes in [2, 4, 8] {
            for direction in Direction::BOTH {
                let mut bulk = BulkInFlight::by(&Rules::CHOSEN);
                let filled = if direction == Direction::Up { (2.0 / 3.0, 16e3) } else { (1.0, 0.0) };
                let (mut path, mut bytes) = (full(10e6), 10e6);
                let (mut now, mut held) = (Instant::now() + Duration::from_secs(1), 0.0);
                for _ in 0..100 {
                    let sharing = Sharing { lanes, rtt: HOME };
                    let said = bulk.decide(now, direction, sharing, &path, SMALL).flatten();
                    let each = |clamp: u32| f64::from(clamp) * filled.0 + filled.1;
                    held = said.map_or(held, |clamp| each(clamp) * lanes as f64);
                    now += Duration::from_millis(100);
                    bytes += (held / HOME.as_secs_f64()).min(GIGABIT) / 10.0;
                    path.read(now, bytes as u64, BULK);
                }
                assert!(path.rate().unwrap() > 0.9 * GIGABIT, "{lanes} lanes: {:?}", path.rate());
            }
        }
    }

    #[test]
    fn the_kernel_is_ahead_by_the_same_time_on_slow_paths_and_on_fast_ones() {
        let mut bulk = BulkInFlight::by(&Rules::CHOSEN);
        assert_eq!(bulk.unsent(4, None), None);
        assert_eq!(bulk.unsent(4, Some(GIGABIT)), None, "about what was assumed");
        assert_eq!(bulk.unsent(4, Some(1.25e9)), Some(3_125_000));
        assert_eq!(bulk.unsent(4, Some(1.0e9)), None, "not much less");
        assert_eq!(bulk.unsent(4, Some(1e6)), Some((2.0 * f64::from(Rules::CHOSEN.lane_bytes_min)) as u32));
        assert_eq!(bulk.unsent(0, Some(GIGABIT)), None);
    }
}
