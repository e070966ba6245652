//! How much of bulk may lie in our send buffers and be on its way from us: about what the path holds, while small requests
//! comes beside it.
//!
//! What bulk has handed to the kernel goes before a small upload that comes later, and congestion control fills whatever
//! queue the path has with it: a full mebibyte at 1 Gbit/s is 8 ms, and of what doesn't fit small uploads lose packets too,
//! and wait for a timeout. So once small requests have been seen beside bulk, each connection that uploads has its send
//! buffer clamped to its share of what the path holds. A rate to keep to would have to be known exactly: a little above
//! what the path carries fills the queue as well, a little below wastes the path, and what is measured while it is kept
//! says nothing new. A buffer empties as fast as the path lets it.

use std::time::{Duration, Instant};

use super::goodput::Goodput;
use super::limit::{Applied, SMALL_EXPECTED_FOR, Sharing};
use super::strangling::Strangling;

/// What the buffers hold, in bandwidth-delay products. The kernel asks for more only when a third of a buffer is free, and
/// most of the time little less is: on average they were seen to be filled by three quarters. So bulk fills the path, and can
/// become faster than measured while it is clamped; with 1.5 it sank to two thirds of a 200 Mbit/s path with a round trip of 20 ms,
/// where small requests had come beside it from the beginning.
const GAIN: f64 = 1.75;

/// And this in addition, as time: what goes out while our threads are not running.
const UNATTENDED: Duration = Duration::from_millis(1);

/// What a buffer takes beyond its size, in bytes: the kernel fills the last packet that it has begun, of up to 64 KiB.
const BEYOND: f64 = 32.0 * 1024.0;

/// A lane's buffer is never smaller: below a few segments TCP falls into timeouts.
const LANE_MIN: f64 = 32.0 * 1024.0;

/// A buffer that would be larger is left to TCP: the path is long, and its queue a small part of it.
const LANE_MAX: f64 = 8.0 * 1024.0 * 1024.0;

/// What differs by less than one in so many isn't said.
const CHANGE_MIN: u32 = 16;

/// What the kernel takes of bulk beyond what it may send at once, as time of the goodput, shared by the lanes: it goes before
/// the clamp is felt. Four lanes with their 4 MiB each had 0.1 s of a 1 Gbit/s path. Less costs
/// wake-ups: with 256 KiB a lane a GiB over loopback took a tenth more CPU.
const UNSENT: Duration = Duration::from_millis(10);

/// A lane's part of it, in bytes, is never smaller: its writer is woken when half of it is left.
const UNSENT_MIN: f64 = 64.0 * 1024.0;

/// A lane's part before anything is known.
pub(crate) const UNSENT_UNKNOWN: u32 = 256 * 1024;

/// The clamp of the upward direction.
#[derive(Debug)]
pub(super) struct SendBuffer {
    small_at: Option<Instant>,
    applied: Applied,
    unsent: u32,
    strangling: Strangling,
}

impl Default for SendBuffer {
    fn default() -> Self {
        Self {
            small_at: None,
            applied: Applied::default(),
            unsent: UNSENT_UNKNOWN,
            strangling: Strangling::default(),
        }
    }
}

impl SendBuffer {
    /// Takes note that small requests are outstanding. Says whether none were expected: then it is time to decide.
    pub(super) fn small(&mut self, now: Instant) -> bool {
        let expected_small = self.expects_small(now);
        self.small_at = Some(now);
        !expected_small
    }

    /// What each of the lanes that upload bulk may have in its send buffer, in bytes: `Some` when that differs by much from
    /// what was said last. `Some(None)` leaves it to TCP again.
    pub(super) fn decide(
        &mut self,
        now: Instant,
        Sharing { lanes, rtt }: Sharing,
        goodput: &Goodput,
    ) -> Option<Option<u32>> {
        let may_hold = self.strangling.may_hold(now, self.applied.is_held(), lanes, goodput);
        // What small requests alone have moved says little of the path.
        let rate = goodput.rate().filter(|_| goodput.bulk_reading().is_some());
        let is_known = may_hold && self.expects_small(now) && lanes > 0 && !rtt.is_zero();
        let share = rate.filter(|_| is_known).map(|rate| {
            let held = rate * (rtt.as_secs_f64() * GAIN + UNATTENDED.as_secs_f64());
            (held / lanes as f64 - BEYOND).max(LANE_MIN)
        });
        let share = share.filter(|share| *share <= LANE_MAX);
        self.applied.update(share.map(|share| share as u32), CHANGE_MIN)
    }

    /// How much bulk the kernel may hold, small requests or not, that it may not send yet, in bytes for each of `lanes`: `Some`
    /// when that differs by much from what was said last.
    pub(super) fn unsent(&mut self, lanes: usize, goodput: Option<f64>) -> Option<u32> {
        let rate = goodput.filter(|_| lanes > 0)?;
        let unsent = (rate * UNSENT.as_secs_f64() / lanes as f64).max(UNSENT_MIN) as u32;
        if self.unsent.abs_diff(unsent) <= self.unsent / 2 {
            return None;
        }
        self.unsent = unsent;
        Some(unsent)
    }

    fn expects_small(&self, now: Instant) -> bool {
        self.small_at.is_some_and(|at| now.saturating_duration_since(at) < SMALL_EXPECTED_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::super::goodput::Load;
    use super::*;

    const GIGABIT: Option<f64> = Some(125e6);
    /// A path over which bulk has moved so many bytes a second.
    fn path(rate: f64) -> Goodput {
        let (mut goodput, now) = (Goodput::default(), Instant::now());
        goodput.read(now, 0, Load::Bulk);
        goodput.read(now + Duration::from_millis(100), (rate / 10.0) as u64, Load::Bulk);
        goodput
    }

    const NEAR: Duration = Duration::from_millis(2);
    const HOME: Duration = Duration::from_millis(20);

    fn shared() -> (SendBuffer, Instant) {
        let (mut buffer, now) = (SendBuffer::default(), Instant::now());
        buffer.small(now);
        (buffer, now)
    }

    #[test]
    fn bulk_alone_is_left_to_tcp() {
        assert_eq!(
            SendBuffer::default().decide(Instant::now(), Sharing { lanes: 2, rtt: NEAR }, &path(125e6)),
            None
        );
    }

    #[test]
    fn before_anything_is_known_bulk_is_left_to_tcp() {
        let (mut buffer, now) = shared();
        assert_eq!(buffer.decide(now, Sharing { lanes: 2, rtt: NEAR }, &Goodput::default()), None);
        assert_eq!(buffer.decide(now, Sharing { lanes: 2, rtt: Duration::ZERO }, &path(125e6)), None);
        assert_eq!(buffer.decide(now, Sharing { lanes: 0, rtt: NEAR }, &path(125e6)), None);
    }

    #[test]
    fn beside_small_attempts_lanes_share_little_more_than_the_path_holds() {
        let (mut buffer, now) = shared();
        let clamp = buffer.decide(now, Sharing { lanes: 2, rtt: NEAR }, &path(125e6)).flatten().unwrap();
        assert!((450_000..=650_000).contains(&(2 * (clamp + BEYOND as u32))), "{clamp}");
        assert_eq!(
            buffer.decide(now + SMALL_EXPECTED_FOR / 2, Sharing { lanes: 2, rtt: NEAR }, &path(125e6)),
            None,
            "nothing new"
        );
        assert_eq!(
            buffer.decide(now + SMALL_EXPECTED_FOR, Sharing { lanes: 2, rtt: NEAR }, &path(125e6)),
            Some(None),
            "and then TCP has it again"
        );
        assert_eq!(
            buffer.decide(now + SMALL_EXPECTED_FOR * 2, Sharing { lanes: 2, rtt: NEAR }, &path(125e6)),
            None
        );
    }

    #[test]
    fn it_is_time_to_decide_when_small_work_comes_after_a_pause() {
        let (mut buffer, now) = (SendBuffer::default(), Instant::now());
        assert!(buffer.small(now));
        assert!(!buffer.small(now + SMALL_EXPECTED_FOR / 2));
        assert!(!buffer.small(now + SMALL_EXPECTED_FOR));
        assert!(buffer.small(now + SMALL_EXPECTED_FOR * 2));
    }

    #[test]
    fn more_lanes_share_the_same_path() {
        let (mut buffer, now) = shared();
        let two = buffer.decide(now, Sharing { lanes: 2, rtt: HOME }, &path(25e6)).flatten().unwrap();
        let eight = buffer.decide(now, Sharing { lanes: 8, rtt: HOME }, &path(25e6)).flatten().unwrap();
        let in_all = |clamp: u32, lanes: u32| lanes * (clamp + BEYOND as u32);
        assert!(in_all(two, 2).abs_diff(in_all(eight, 8)) < 64, "{two} and {eight}");
    }

    #[test]
    fn many_lanes_on_a_slow_path_keep_a_few_segments_each() {
        let (mut buffer, now) = shared();
        assert_eq!(
            buffer.decide(now, Sharing { lanes: 32, rtt: NEAR }, &path(1e6)).flatten(),
            Some(LANE_MIN as u32)
        );
    }

    #[test]
    fn a_long_path_that_a_few_buffers_hold_is_left_to_tcp() {
        let (mut buffer, now) = shared();
        assert!(buffer.decide(now, Sharing { lanes: 2, rtt: HOME }, &path(125e6)).flatten().is_some());
        assert_eq!(buffer.decide(now, Sharing { lanes: 1, rtt: HOME }, &path(1.25e9)), Some(None));
    }

    #[test]
    fn the_kernel_is_ahead_by_the_same_time_on_slow_paths_and_on_fast_ones() {
        let mut buffer = SendBuffer::default();
        assert_eq!(buffer.unsent(4, None), None);
        assert_eq!(buffer.unsent(4, GIGABIT), None, "about what was assumed");
        assert_eq!(buffer.unsent(4, Some(1.25e9)), Some(3_125_000));
        assert_eq!(buffer.unsent(4, Some(1.0e9)), None, "not much less");
        assert_eq!(buffer.unsent(4, Some(1e6)), Some(UNSENT_MIN as u32));
        assert_eq!(buffer.unsent(0, GIGABIT), None);
    }

    /// What passes is what the buffers let through in a round trip, and the path.
    #[test]
    fn a_clamp_does_not_keep_bulk_from_finding_a_path_that_became_faster() {
        for lanes in [1, 2, 4, 8] {
            let (mut buffer, mut now) = shared();
            let (mut rate, mut clamp) = (5e6, None);
            for _ in 0..50 {
                buffer.small(now);
                clamp = buffer.decide(now, Sharing { lanes, rtt: HOME }, &path(rate)).unwrap_or(clamp);
                // Seldom much more than what the kernel asks for more at: when a third is free.
                let held = clamp.map_or(f64::INFINITY, |bytes| f64::from(bytes) * 2.0 / 3.0 + BEYOND / 2.0);
                rate = (held * lanes as f64 / HOME.as_secs_f64()).min(125e6);
                now += Duration::from_millis(150);
            }
            assert!(rate >= 124e6, "{lanes} lanes stay at {rate}");
        }
    }

    #[test]
    fn bulk_is_not_strangled_where_the_round_trip_is_longer_than_it_was() {
        const PATH: f64 = 25e6;
        for times in [1, 2, 4] {
            let (mut buffer, start) = shared();
            let (mut goodput, mut now, mut bytes, mut clamp) = (path(PATH), start, PATH / 10.0, None);
            now += Duration::from_secs(1);
            let began = now;
            for _ in 0..3000 {
                buffer.small(now);
                clamp = buffer.decide(now, Sharing { lanes: 4, rtt: HOME }, &goodput).unwrap_or(clamp);
                let held = clamp.map_or(f64::INFINITY, |bytes| f64::from(bytes) * 0.75 + BEYOND);
                now += Duration::from_millis(100);
                bytes += (held * 4.0 / (HOME * times).as_secs_f64()).min(PATH) / 10.0;
                goodput.read(now, bytes as u64, Load::Bulk);
            }
            let moved = bytes / (now - began).as_secs_f64();
            assert!(moved > 0.8 * PATH, "{times} times as long: {moved}");
        }
    }
}
