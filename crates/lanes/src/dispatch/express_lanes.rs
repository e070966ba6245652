//! How many express lanes pay for themselves.
//!
//! A connection costs about a millisecond of handshake on both ends; what it saves is round trips. Both laws below
//! weigh the two, so that a far server gets many lanes, a near one few, and nobody sets a number.

use std::time::Duration;

use super::CONNECTIONS_MAX;
use super::bulk_in_flight::CHANGE_MIN;
use super::in_flight::{ATTEMPTS_MIN, Shown};
use super::lane::{LANES_MAX, STREAMS_MAX};
/// What opening one more connection costs: a TLS 1.3 handshake's CPU on both ends.
const HANDSHAKE_COST: Duration = Duration::from_micros(800);

/// The first flight of a connection: ten segments (RFC 6928), of 1448 bytes where they are full.
const INITIAL_SEGMENTS: f64 = 10.0;
pub(super) const INITIAL_WINDOW: f64 = INITIAL_SEGMENTS * 1448.0;

/// What heads, frames, TLS records and packets that are not full add to the bytes of attempts. Reckoned without it, the last
/// of 75 small files took a round trip more than the others.
const FRAMING: f64 = 1.12;

/// A server sends the head and the body of each small answer as segments of their own, however short they are. With 8
/// lanes for 50 uploads, five answers came a round trip after the others; with 16 none did.
const ANSWER_SEGMENTS: f64 = 2.0;

/// The round trip assumed before any handshake has shown one: a laptop to a far region. Assuming too much opens a few
/// lanes too many once; assuming too little costs a round trip in every cold start.
const RTT_ASSUMED: Duration = Duration::from_millis(50);

/// Beyond [`ATTEMPTS_MIN`] multiplexed lanes, each has to carry so many attempts: a few dozen files don't need more to be polite and
/// fast at once.
const ATTEMPTS_PER_LANE: usize = 32;

/// Fewest exclusive lanes that filling the path is taken to need: sizes vary.
const FILL_MIN: usize = ATTEMPTS_MIN / 2;

/// Beyond half of all connections, those for bulk among them, each of an origin's exclusive lanes has to have [`ATTEMPTS_MIN`] attempts of
/// what the origin has had to do: with 254 a thousand files of 4.7 KB took 1.07 s over 50 ms to a server on two cores, and with 128 0.85 s.
const EXCLUSIVE_USUAL: usize = CONNECTIONS_MAX / 2;

/// Nor are there more, beyond those, than it takes to ask for as much in a second as S3 promises to bear of writes under one prefix, before
/// it has spread that over more servers. Of reads it bears 5500; GCS begins with 1000 and 5000.
const REQUESTS_A_SECOND: f64 = 3500.0;

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
    pub(super) path: Shown,
}

/// How many express lanes an origin should have.
pub(super) fn wanted(work: Work, known: Known) -> usize {
    if work.attempts == 0 {
        return 0;
    }
    if known.is_multiplexed { multiplexed(work, known) } else { exclusive(work, known) }
}

/// How many lanes to dial beside those that there are. A few more don't pay for the two round trips until they open: with
/// a thirteenth beside twelve, the last of 75 small files waited for it and came a round trip late.
pub(super) fn missing(have: usize, wanted: usize) -> usize {
    let missing = wanted.saturating_sub(have);
    if missing * CHANGE_MIN as usize <= have { 0 } else { missing }
}

/// n attempts over c lanes take n·(rtt + service)/c, and the lanes cost c·handshake: least at the square root of
/// n·(rtt + service)/handshake. But the attempts' bytes take their time on the path whatever the number of lanes, and
/// once it is full another lane only divides it: beyond what goes at once none pays.
fn exclusive(work: Work, Known { has_spoken, rtt, service, path, .. }: Known) -> usize {
    let (live, turn) = (work.attempts as f64, rtt.unwrap_or(RTT_ASSUMED) + service);
    let best = (live * turn.as_secs_f64() / HANDSHAKE_COST.as_secs_f64()).sqrt().ceil() as usize;
    let mean = (work.bytes as f64 / live).max(1.0);
    let fill = (path.at_once(turn) / mean).ceil() as usize;
    let is_known = has_spoken && rtt.is_some();
    // An origin that turns out to be multiplexed then has no lanes too many.
    let usual = EXCLUSIVE_USUAL.saturating_sub(work.freight);
    let documented = (REQUESTS_A_SECOND * turn.as_secs_f64()) as usize;
    let most = if is_known { usual.max(documented.min(work.so_far / ATTEMPTS_MIN)) } else { ATTEMPTS_MIN };
    best.min(fill.max(FILL_MIN)).clamp(1, work.attempts.min(most))
}

/// Bytes leave in the rounds that slow start allows, doubling from the initial window of each lane, and so do the
/// answers' segments; more attempts than streams go in turns. What doesn't go at once finds windows that have grown.
fn multiplexed(work: Work, Known { rtt, service, path, .. }: Known) -> usize {
    let rtt = rtt.unwrap_or(RTT_ASSUMED);
    let (live, bytes) = (work.attempts, (work.bytes as f64).min(path.at_once(rtt + service)));
    let time = |lanes: usize| {
        // The fullest lane counts, and it must fit with room to spare.
        let fullest = live.div_ceil(lanes) as f64 * bytes / live as f64;
        let windows = fullest * FRAMING / INITIAL_WINDOW;
        let lanes = lanes as f64;
        let answers = live as f64 / lanes * ANSWER_SEGMENTS / INITIAL_SEGMENTS;
        let rounds = (windows.max(answers) + 1.0).log2().ceil().max(1.0);
        let turns = (live as f64 / (lanes * STREAMS_MAX as f64)).ceil();
        rounds * rtt.as_secs_f64()
            + turns * (rtt + service).as_secs_f64()
            + lanes * HANDSHAKE_COST.as_secs_f64()
    };
    let most = (live / ATTEMPTS_PER_LANE).clamp(ATTEMPTS_MIN, LANES_MAX).min(live);
    (1..=most).min_by(|a, b| time(*a).total_cmp(&time(*b))).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::super::in_flight::SERVICE;
    use super::*;

    const FAR: Option<Duration> = Some(Duration::from_millis(50));
    const NEAR: Option<Duration> = Some(Duration::from_micros(200));
    const GIGABIT: Shown = Shown { rate: 125e6, is_full: true };
    const EXCLUSIVE: bool = false;
    const MULTIPLEXED: bool = true;

    /// At an origin with such lanes, over a path that has shown nothing.
    fn wanted(is_multiplexed: bool, attempts: usize, bytes: u64, rtt: Option<Duration>) -> usize {
        over(Shown::default(), is_multiplexed, attempts, bytes, rtt)
    }

    fn over(path: Shown, is_multiplexed: bool, attempts: usize, bytes: u64, rtt: Option<Duration>) -> usize {
        super::wanted(
            Work { attempts, so_far: attempts, bytes, freight: 0 },
            Known { is_multiplexed, has_spoken: true, rtt, service: SERVICE, path },
        )
    }

    #[test]
    fn lanes_are_added_where_there_are_none_or_clearly_too_few() {
        assert_eq!(
            [missing(0, 1), missing(4, 5), missing(12, 13), missing(12, 16), missing(9, 4)],
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
        assert!((24..=LANES_MAX).contains(&wanted(MULTIPLEXED, 1000, bytes, FAR)));
        assert!(wanted(MULTIPLEXED, 1000, bytes, NEAR) <= 6);
        assert_eq!(wanted(EXCLUSIVE, 1000, bytes, FAR), EXCLUSIVE_USUAL);
        assert!(wanted(EXCLUSIVE, 1000, bytes, NEAR) <= 48);
    }

    #[test]
    fn a_server_nearby_that_takes_its_time_is_worth_as_many_lanes_as_one_far_away() {
        let known = |service| Known {
            is_multiplexed: false,
            has_spoken: true,
            rtt: NEAR,
            service,
            path: Shown::default(),
        };
        let work = Work { attempts: 1000, so_far: 1000, bytes: 1000 * 6000, freight: 0 };
        assert!(super::wanted(work, known(SERVICE)) <= 48);
        assert_eq!(super::wanted(work, known(Duration::from_millis(30))), EXCLUSIVE_USUAL);
        let beside = Work { freight: 2, ..work };
        assert_eq!(
            super::wanted(beside, known(Duration::from_millis(30))),
            EXCLUSIVE_USUAL - 2,
            "of all together"
        );
    }

    #[test]
    fn a_long_queue_of_tiny_far_objects_wants_every_exclusive_lane() {
        let known = |rtt| Known {
            is_multiplexed: false,
            has_spoken: true,
            rtt,
            service: SERVICE,
            path: Shown::default(),
        };
        // As a job shows it, which holds some at a time.
        let after = |so_far, rtt| {
            let work = Work { attempts: 1500, so_far, bytes: 1500 * 2048, freight: 0 };
            super::wanted(work, known(rtt))
        };
        assert_eq!([1500, 2048, 3200, 20_000].map(|so_far| after(so_far, FAR)), [128, 128, 178, 178]);
        assert_eq!(
            after(20_000, Some(Duration::from_millis(20))),
            EXCLUSIVE_USUAL,
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
        assert!((8..=16).contains(&objects(Shown::default(), 2)));
        assert!((24..=34).contains(&objects(Shown::default(), 20)));
        assert!((24..=34).contains(&objects(Shown::default(), 120)), "however far");
        assert_eq!(
            objects(GIGABIT, 2),
            objects(Shown::default(), 2),
            "a server may take longer than is known"
        );
        let fast = Shown { rate: 1.25e9, is_full: false };
        assert!(objects(fast, 50) > 100, "and more where the path carries it");
    }

    #[test]
    fn before_a_server_has_shown_what_it_speaks_lanes_are_not_too_many() {
        let known = Known {
            is_multiplexed: false,
            has_spoken: false,
            rtt: FAR,
            service: SERVICE,
            path: Shown::default(),
        };
        let work = Work { attempts: 1000, so_far: 1000, bytes: 1000 * 6000, freight: 0 };
        assert_eq!(super::wanted(work, known), ATTEMPTS_MIN);
        assert!(super::wanted(work, Known { has_spoken: true, ..known }) > LANES_MAX);
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
