//! How many express lanes pay for themselves.
//!
//! A connection costs about a millisecond of handshake on both ends; what it saves is round trips. Both laws below
//! weigh the two, so that a far server gets many lanes, a near one few, and nobody sets a number.

use std::time::Duration;

use super::ledger::{INITIAL_SEGMENTS, INITIAL_WINDOW};
use super::path_model::PathRate;
use super::rules::Rules;
/// The attempts of an origin, queued and running, and their bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Work {
    pub(super) attempts: usize,
    /// Those among them, and those before them since it had none: a job shows its attempts a few at a time, and what has gone on for long is
    /// likely to go on for as long again.
    pub(super) so_far: usize,
    pub(super) bytes: u64,
    /// The lanes that bulk wants beside them.
    pub(super) freight: usize,
}

/// What is known of an origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Known {
    /// True when each of its lanes carries many requests at once; `has_spoken` when it has shown that.
    pub(super) is_multiplexed: bool,
    pub(super) has_spoken: bool,
    pub(super) rtt: Option<Duration>,
    /// What it takes to answer beside that.
    pub(super) service: Duration,
    /// What the path has shown in the direction that most of the bytes go.
    pub(super) path: PathRate,
}

/// How many express lanes an origin should have.
pub(super) fn wanted(rules: &Rules, work: Work, known: Known) -> usize {
    if work.attempts == 0 {
        return 0;
    }
    if known.is_multiplexed { multiplexed(rules, work, known) } else { exclusive(rules, work, known) }
}

/// How many lanes to dial beside those that there are. A few more don't pay for the two round trips until they open: with
/// a thirteenth beside twelve, the last of 75 small files waited for it and came a round trip late.
pub(super) fn missing(rules: &Rules, have: usize, wanted: usize) -> usize {
    let missing = wanted.saturating_sub(have);
    if missing.saturating_mul(rules.change_min as usize) <= have { 0 } else { missing }
}

/// n attempts over c lanes take n·(rtt + service)/c, and the lanes cost c·handshake: least at the square root of
/// n·(rtt + service)/handshake. But the attempts' bytes take their time on the path whatever the number of lanes, and
/// once it is full another lane only divides it: beyond what goes at once none pays.
fn exclusive(rules: &Rules, work: Work, Known { has_spoken, rtt, service, path, .. }: Known) -> usize {
    let (live, turn) = (work.attempts as f64, rtt.unwrap_or(rules.rtt_assumed) + service);
    let best = (live * turn.as_secs_f64() / rules.handshake_cost.as_secs_f64()).sqrt().ceil() as usize;
    let mean = (work.bytes as f64 / live).max(1.0);
    let fill = (path.at_once(rules, turn) / mean).ceil() as usize;
    let is_known = has_spoken && rtt.is_some();
    // An origin that turns out to be multiplexed then has no lanes too many.
    let usual = (rules.connections_max / 2).saturating_sub(work.freight);
    let documented = (rules.requests_a_second * turn.as_secs_f64()) as usize;
    let most = if is_known {
        usual.max(documented.min(work.so_far / rules.attempts_min))
    } else {
        rules.attempts_min
    };
    best.min(fill.max(rules.attempts_min / 2)).clamp(1, work.attempts.min(most))
}

/// Bytes leave in the rounds that slow start allows, doubling from the initial window of each lane, and so do the
/// answers' segments; more attempts than streams go in turns. What doesn't go at once finds windows that have grown.
fn multiplexed(rules: &Rules, work: Work, Known { rtt, service, path, .. }: Known) -> usize {
    let rtt = rtt.unwrap_or(rules.rtt_assumed);
    let (live, bytes) = (work.attempts, (work.bytes as f64).min(path.at_once(rules, rtt + service)));
    let time = |lanes: usize| {
        // The fullest lane counts, and it must fit with room to spare.
        let fullest = live.div_ceil(lanes) as f64 * bytes / live as f64;
        let windows = fullest * rules.framing / INITIAL_WINDOW;
        let lanes = lanes as f64;
        let answers = live as f64 / lanes * rules.answer_segments / INITIAL_SEGMENTS;
        let rounds = (windows.max(answers) + 1.0).log2().ceil().max(1.0);
        let turns = (live as f64 / (lanes * rules.streams_max as f64)).ceil();
        rounds * rtt.as_secs_f64()
            + turns * (rtt + service).as_secs_f64()
            + lanes * rules.handshake_cost.as_secs_f64()
    };
    let most = (live / rules.attempts_per_lane).clamp(rules.attempts_min, rules.lanes_max).min(live);
    (1..=most).min_by(|a, b| time(*a).total_cmp(&time(*b))).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Option<Duration> = Some(Duration::from_millis(50));
    const NEAR: Option<Duration> = Some(Duration::from_micros(200));
    const GIGABIT: PathRate = PathRate { rate: 125e6, is_full: true };
    const EXCLUSIVE: bool = false;
    const MULTIPLEXED: bool = true;

    /// At an origin with such lanes, over a path that has shown nothing.
    fn wanted(is_multiplexed: bool, attempts: usize, bytes: u64, rtt: Option<Duration>) -> usize {
        over(PathRate::default(), is_multiplexed, attempts, bytes, rtt)
    }

    fn over(
        path: PathRate,
        is_multiplexed: bool,
        attempts: usize,
        bytes: u64,
        rtt: Option<Duration>,
    ) -> usize {
        super::wanted(
            &Rules::CHOSEN,
            Work { attempts, so_far: attempts, bytes, freight: 0 },
            Known { is_multiplexed, has_spoken: true, rtt, service: Rules::CHOSEN.service_min, path },
        )
    }

    #[test]
    fn lanes_are_added_where_there_are_none_or_clearly_too_few() {
        assert_eq!(
            [
                missing(&Rules::CHOSEN, 0, 1),
                missing(&Rules::CHOSEN, 4, 5),
                missing(&Rules::CHOSEN, 12, 13),
                missing(&Rules::CHOSEN, 12, 16),
                missing(&Rules::CHOSEN, 9, 4)
            ],
            [1, 1, 0, 4, 0]
        );
    }

    #[test]
    fn no_work_wants_no_lane_and_one_wants_one() {
        for is_multiplexed in [false, true] {
            assert_eq!(wanted(is_multiplexed, 0, 0, FAR), 0);
            assert_eq!(wanted(is_multiplexed, 1, 1024, FAR), 1);
        }
    }

    #[test]
    fn a_thousand_small_files_take_many_lanes_far_away_and_few_nearby() {
        let bytes = 1000 * (4700 + 1024);
        assert!((24..=Rules::CHOSEN.lanes_max).contains(&wanted(MULTIPLEXED, 1000, bytes, FAR)));
        assert!(wanted(MULTIPLEXED, 1000, bytes, NEAR) <= 6);
        assert_eq!(wanted(EXCLUSIVE, 1000, bytes, FAR), (Rules::CHOSEN.connections_max / 2));
        assert!(wanted(EXCLUSIVE, 1000, bytes, NEAR) <= 48);
    }

    #[test]
    fn a_server_nearby_that_takes_its_time_is_worth_as_many_lanes_as_one_far_away() {
        let known = |service| Known {
            is_multiplexed: false,
            has_spoken: true,
            rtt: NEAR,
            service,
            path: PathRate::default(),
        };
        let work = Work { attempts: 1000, so_far: 1000, bytes: 1000 * 6000, freight: 0 };
        assert!(super::wanted(&Rules::CHOSEN, work, known(Rules::CHOSEN.service_min)) <= 48);
        assert_eq!(
            super::wanted(&Rules::CHOSEN, work, known(Duration::from_millis(30))),
            (Rules::CHOSEN.connections_max / 2)
        );
        let beside = Work { freight: 2, ..work };
        assert_eq!(
            super::wanted(&Rules::CHOSEN, beside, known(Duration::from_millis(30))),
            (Rules::CHOSEN.connections_max / 2) - 2,
            "of all together"
        );
    }

    #[test]
    fn a_long_queue_of_tiny_far_objects_wants_every_exclusive_lane() {
        let known = |rtt| Known {
            is_multiplexed: false,
            has_spoken: true,
            rtt,
            service: Rules::CHOSEN.service_min,
            path: PathRate::default(),
        };
        // As a job shows it, which holds some at a time.
        let after = |so_far, rtt| {
            let work = Work { attempts: 1500, so_far, bytes: 1500 * 2048, freight: 0 };
            super::wanted(&Rules::CHOSEN, work, known(rtt))
        };
        assert_eq!([1500, 2048, 3200, 20_000].map(|so_far| after(so_far, FAR)), [128, 128, 178, 178]);
        assert_eq!(
            after(20_000, Some(Duration::from_millis(20))),
            (Rules::CHOSEN.connections_max / 2),
            "no more than stores promise to bear"
        );
    }

    #[test]
    fn seventy_five_files_of_5_kb_leave_in_two_rounds() {
        let lanes = wanted(MULTIPLEXED, 75, 75 * (4700 + 1024), FAR);
        assert!((12..=16).contains(&lanes), "{lanes}");
    }

    #[test]
    fn objects_that_fill_the_path_get_as_many_exclusive_lanes_as_go_at_once() {
        let objects =
            |path, rtt_ms| over(path, EXCLUSIVE, 200, 200 * 272_000, Some(Duration::from_millis(rtt_ms)));
        assert!((8..=16).contains(&objects(PathRate::default(), 2)));
        assert!((24..=34).contains(&objects(PathRate::default(), 20)));
        assert!((24..=34).contains(&objects(PathRate::default(), 120)), "however far");
        assert_eq!(
            objects(GIGABIT, 2),
            objects(PathRate::default(), 2),
            "a server may take longer than is known"
        );
        let fast = PathRate { rate: 1.25e9, is_full: false };
        assert!(objects(fast, 50) > 100, "and more where the path carries it");
    }

    #[test]
    fn before_a_server_has_shown_what_it_speaks_lanes_are_not_too_many() {
        let known = Known {
            is_multiplexed: false,
            has_spoken: false,
            rtt: FAR,
            service: Rules::CHOSEN.service_min,
            path: PathRate::default(),
        };
        let work = Work { attempts: 1000, so_far: 1000, bytes: 1000 * 6000, freight: 0 };
        assert_eq!(super::wanted(&Rules::CHOSEN, work, known), Rules::CHOSEN.attempts_min);
        assert!(
            super::wanted(&Rules::CHOSEN, work, Known { has_spoken: true, ..known })
                > Rules::CHOSEN.lanes_max
        );
    }

    #[test]
    fn fifty_empty_files_stay_within_sixteen_multiplexed_lanes() {
        assert!((1..=16).contains(&wanted(MULTIPLEXED, 50, 50 * 1024, FAR)));
    }

    #[test]
    fn never_more_lanes_than_attempts() {
        for live in 1..300 {
            for rtt in [None, FAR, NEAR] {
                assert!(wanted(EXCLUSIVE, live, 1 << 20, rtt) <= live);
                assert!(wanted(MULTIPLEXED, live, 1 << 20, rtt) <= live);
            }
        }
    }
}
