//! Limits bulk (requests above 1 MiB) to keep small requests fast. It limits bulk's bytes in flight, and bulk's rate while bulk yields to
//! small requests.
//!
//! A lane of its own doesn't help a small object whose bytes queue behind bulk on the path. So bulk yields if the outstanding small
//! requests of its direction have more bytes than the path carries in 10 ms (a [`moment`](Rules::moment)). If they have fewer bytes, bulk
//! isn't slowed down. Yielding bulk moves at a low rate, which rises with time so that bulk never starves. [`AccessLink`] decides for all
//! origins, since they share one link. Its states ([`BulkState`]) are:
//!
//! ```text
//!          `decide`: small requests have a backlog            `share`: their rate is steady, and leaves some unused
//!    Free ─────────────────────────────────────▶ Yielding ───────────────────────────────────────────────▶ Sharing
//!     ▲  ▲                                        │    ▲                                                    │   │
//!     │  └────────────────────────────────────────┘    └──────── `measure_again`: ten seconds later ────────┘   │
//!     └──────────── `decide`: half of the backlog is left, or bulk on a far path starts ────────────────────────┘
//! ```
//!
//! Without limits, TCP connections fill any queue on the path, and a small answer waits behind it. At 1 Gbit/s, a full queue of 1 MiB adds
//! 8 ms, four times the round trip to a nearby server. A full queue also drops packets, and if the last packet of a small body is lost, TCP
//! needs a timeout to notice. A limit on the rate would have to be exact. A rate that is a little too high fills the queue, and one that is
//! a little too low wastes capacity. So [`BulkInFlight`] limits each connection's bytes in flight, which leave as fast as the path permits.
//! Its limits are:
//!
//! | bulk | down: receive windows | up: send buffers |
//! |---|---|---|
//! | alone, on a path that it has filled, but not within one building | `2 * gain` | no limit but TCP's |
//! | on a [far](Rules::far) path, once its rate has stopped growing | `growth` | no limit but TCP's |
//! | while there are small requests | `growth` | `gain` |
//! | while it yields | `growth` of its permitted rate | `gain` |
//! | for a while after these limits made it slower ([`StranglingWatch`]) | no limit but TCP's | no limit but TCP's |
//!
//! The figures are in bandwidth-delay products. Each limit also includes the bytes that the path carries in 1 ms, because a thread may not
//! run for that long. The lanes that carry bulk divide the sum among them. Bulk alone needs room for lost packets, because two
//! bandwidth-delay products of bytes wait behind each lost packet. While there are small requests, the limit still lets a sender's rate
//! grow by a quarter. BBR probes with a rate that is also a quarter higher. Until bulk has filled the path, its bytes in flight are limited
//! only while it yields. On a far path, several senders start at once, and each doubles its rate in a round trip. Together they would send
//! three times as many bytes as the path holds, lose many of them, and repeat that for seconds.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Direction;
use super::path_model::{PathLoad, Throughput};
use super::rules::Rules;

/// One direction of the machine's link to the network.
#[derive(Debug)]
pub(super) struct AccessLink {
    rules: &'static Rules,
    direction: Direction,
    pub(super) path: Throughput,
    state: BulkState,
    small_at: Option<Instant>,
    /// True if small requests waited for other requests to end at the last reading.
    small_wait: bool,
    /// The time when the start of bulk on a far path ends or has ended.
    start_until: Option<Instant>,
    /// The shortest round trip.
    rtt: Duration,
}

/// The state of bulk in one direction of the link. Bulk is free without a `cap`. With one, it yields or shares, by its `phase`. The phase
/// begins again only at the next reading without a cap, because bulk that is released briefly soon yields again.
#[derive(Debug, Default)]
struct BulkState {
    cap: Option<RateCap>,
    phase: YieldPhase,
}

#[derive(Debug)]
enum YieldPhase {
    /// Bulk moves slowly. `rates` has the latest rates of the link in bytes per second, the newest first. Nearly all of these bytes belong
    /// to small requests, because bulk yields.
    Yielding { rates: VecDeque<f64> },
    /// Bulk may use the rate that small requests leave unused, in bytes per second, until this time.
    Sharing { left_over: f64, until: Instant },
}

impl Default for YieldPhase {
    fn default() -> Self {
        Self::Yielding { rates: VecDeque::new() }
    }
}

/// The limit on the rate of bulk in bytes per second, the time since which bulk is limited, and the time of the last decision on the rate.
#[derive(Clone, Copy, Debug)]
struct RateCap {
    rate: u64,
    since: Instant,
    decided: Instant,
}

impl AccessLink {
    pub(super) fn by(rules: &'static Rules, direction: Direction) -> Self {
        Self {
            rules,
            direction,
            path: Throughput::by(rules),
            state: BulkState::default(),
            small_at: None,
            small_wait: false,
            start_until: None,
            rtt: Duration::ZERO,
        }
    }

    /// Processes a reading of the bytes moved so far. `small_wait` is true if small requests wait for other requests to end. `has_bulk` is
    /// true if there is bulk. `rtt` is the longest round trip to an origin.
    pub(super) fn read(&mut self, now: Instant, bytes: u64, small_wait: bool, has_bulk: bool, rtt: Duration) {
        self.small_wait = small_wait;
        let is_new = self.path.read(now, bytes, PathLoad::of(small_wait, has_bulk, self.is_yielding(), rtt));
        if !self.is_yielding() {
            self.state.phase = YieldPhase::default();
        } else if is_new {
            self.state.share(now, self.rules, &self.path);
        }
    }

    /// Decides the rate of bulk while `outstanding` bytes of small requests are outstanding. `rtt` is the shortest round trip to an origin.
    /// Returns `Some` if the decision differs from the last one. `Some(None)` removes the limit.
    pub(super) fn decide(&mut self, now: Instant, outstanding: u64, rtt: Duration) -> Option<Option<u64>> {
        self.rtt = rtt;
        self.state.measure_again(now);
        let outstanding = if self.is_starting(now, outstanding) { 0 } else { outstanding };
        let known = (self.path.rate(), self.path.is_full_of_bulk());
        self.state.decide(now, self.rules, outstanding, known, rtt)
    }

    /// Returns whether downloaded bulk starts on a [far](Rules::far) path. Its senders need many round trips to reach their rate, and a
    /// sender that is limited meanwhile needs many more. So bulk doesn't yield then. `outstanding` is the number of bytes for which bulk
    /// would yield. It is zero before bulk comes, and before the first connection is open.
    ///
    /// The start begins when small requests wait that haven't filled the path, unless they need longer than the start at the measured rate.
    /// It ends early once the rate has stopped growing and the small requests need longer. Without this end, small objects over 120 ms and
    /// 200 Mbit/s came a seventh later.
    fn is_starting(&mut self, now: Instant, outstanding: u64) -> bool {
        if self.direction == Direction::Up || self.rtt < self.rules.far {
            return false;
        }
        let length = self.rtt * self.rules.ramp;
        let moved_meanwhile = self.path.rate().unwrap_or_default() * length.as_secs_f64();
        let is_soon_done = outstanding as f64 <= moved_meanwhile;
        if self.start_until.is_none() && self.small_wait && !self.path.is_full() && is_soon_done {
            self.start_until = Some(now + length);
        }
        if self.path.is_steady() && !is_soon_done {
            self.start_until = self.start_until.map(|until| until.min(now));
        }
        self.start_until.is_some_and(|until| now < until)
    }

    /// Records that there is no bulk, so that the next bulk starts anew.
    pub(super) fn bulk_ended(&mut self) {
        self.start_until = None;
    }

    /// Returns whether queued bulk may be sent now. New bulk waits until the limit of running bulk has risen once, and then for some round
    /// trips more. A sender that is limited at its start takes long to recover.
    pub(super) fn bulk_may_begin(&self, now: Instant) -> bool {
        let wait = self.rules.yield_step + self.rtt * self.rules.yield_round_trips;
        match (self.state.cap, &self.state.phase) {
            (Some(cap), YieldPhase::Yielding { .. }) => now >= cap.since + wait,
            _ => true,
        }
    }

    /// Returns whether the rate of bulk is limited.
    pub(super) fn is_yielding(&self) -> bool {
        self.state.cap.is_some()
    }

    /// Returns whether bulk yields and the rate that small requests leave unused isn't known yet.
    pub(super) fn holds_bulk(&self) -> bool {
        self.is_yielding() && matches!(self.state.phase, YieldPhase::Yielding { .. })
    }

    /// Returns the time of the next decision on the rate of bulk if no event comes earlier.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        self.state.cap.map(|cap| cap.decided + self.rules.reading_min)
    }

    /// Records that small requests are outstanding. Returns true if none were expected. The caller must then decide the limits again.
    pub(super) fn small(&mut self, now: Instant) -> bool {
        let expected_small = self.beside(now).expects_small;
        self.small_at = Some(now);
        !expected_small
    }

    /// Returns the state of small requests that limits bulk now. If small requests were outstanding recently, more of them are expected.
    pub(super) fn beside(&self, now: Instant) -> SmallTraffic {
        let is_recent = |at| now.saturating_duration_since(at) < self.rules.small_expected_for;
        let allowed = self.state.cap.map(|cap| cap.rate);
        SmallTraffic { expects_small: self.small_at.is_some_and(is_recent), allowed }
    }
}

impl BulkState {
    /// Decides how many bytes per second bulk may move. `outstanding` is the number of bytes of small requests. `rate` is the path's rate,
    /// and `is_full` says if it is the path's capacity.
    fn decide(
        &mut self,
        now: Instant,
        rules: &Rules,
        outstanding: u64,
        (rate, is_full): (Option<f64>, bool),
        rtt: Duration,
    ) -> Option<Option<u64>> {
        let carries = rate.unwrap_or_default();
        // A steady stream of small requests can have up to this many bytes in flight, even without bulk. So this amount isn't a sign of a
        // backlog.
        let on_the_way = carries * rtt.as_secs_f64() * rules.gain;
        let above =
            (carries * rules.moment.as_secs_f64()).min(rules.freight_above as f64).max(on_the_way) as u64;
        // Once bulk yields, it continues to yield until at most half of `above` is outstanding. Otherwise single answers would switch
        // yielding on and off.
        if outstanding <= if self.cap.is_some() { above / 2 } else { above } {
            return self.cap.take().map(|_| None);
        }
        let since = self.cap.map_or(now, |cap| cap.since);
        let aged =
            (now.saturating_duration_since(since).as_secs_f64() / rules.yield_step.as_secs_f64()).floor();
        // The limit is at most half of a full path's rate. If the path may not be full, its measured rate may be much too low, so allow
        // twice this rate.
        let most = if is_full { carries / rules.gain } else { carries * rules.gain };
        let floor = (rules.yield_floor * aged.exp2()).min(most.max(rules.yield_floor));
        let floor = match self.phase {
            YieldPhase::Sharing { left_over, .. } => floor.max(left_over),
            YieldPhase::Yielding { .. } => floor,
        } as u64;
        // Keep the last limit if the new one is close to it.
        let unchanged =
            self.cap.map(|cap| cap.rate).filter(|said| said.abs_diff(floor) <= said / rules.yield_change_min);
        self.cap = Some(RateCap { rate: unchanged.unwrap_or(floor), since, decided: now });
        unchanged.is_none().then_some(Some(floor))
    }

    /// Lets yielding bulk share the link once the rate of small requests is steady. The shared rate leaves room for small requests to grow
    /// by a quarter.
    fn share(&mut self, now: Instant, rules: &Rules, path: &Throughput) {
        let YieldPhase::Yielding { rates } = &mut self.phase else { return };
        let latest = path.latest();
        rates.push_front(latest);
        rates.truncate(2 * rules.readings + 1);
        let carries = path.rate().filter(|_| path.is_full_of_bulk());
        let (Some(before), Some(carries)) = (rates.get(2 * rules.readings), carries) else { return };
        let need = latest * rules.growth;
        if latest <= before * rules.growth && need < carries {
            self.phase = YieldPhase::Sharing { left_over: carries - need, until: now + rules.remembered };
        }
    }

    /// Ends the sharing of the link after a while, to measure the rate of small requests again. Bulk starts again at a low rate.
    fn measure_again(&mut self, now: Instant) {
        if matches!(self.phase, YieldPhase::Sharing { until, .. } if now >= until) {
            self.phase = YieldPhase::default();
            self.cap = self.cap.map(|cap| RateCap { since: now, ..cap });
        }
    }
}

/// The state of small requests that limits bulk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SmallTraffic {
    /// True while small requests are outstanding or expected.
    pub(super) expects_small: bool,
    /// The rate of yielding bulk in bytes per second. `None` if bulk doesn't yield.
    pub(super) allowed: Option<u64>,
}

/// The lanes that carry bulk in a direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneGroup {
    pub(super) lanes: usize,
    /// The round trip of the lanes' path.
    pub(super) rtt: Duration,
}

/// The limits of one origin's bulk in one direction.
#[derive(Debug, Default)]
pub(super) struct BulkInFlight {
    rules: &'static Rules,
    /// The limit of each lane in bytes. `None` means that only TCP limits it.
    applied: Option<u32>,
    /// The number of unsent bytes that the kernel holds for each lane.
    unsent: Option<u32>,
    /// The pace of each lane in bytes per second. `None` means that only TCP limits it.
    pace: Option<u32>,
    strangling: StranglingWatch,
}

impl BulkInFlight {
    pub(super) fn by(rules: &'static Rules) -> Self {
        let strangling = StranglingWatch::by(rules);
        Self { rules, unsent: Some(rules.unsent_unknown), strangling, ..Self::default() }
    }

    /// Decides how many bytes each of the lanes may have in flight. Returns `Some` if the new limit differs much from the last one.
    /// `Some(None)` removes the limit.
    pub(super) fn decide(
        &mut self,
        now: Instant,
        direction: Direction,
        group: LaneGroup,
        path: &Throughput,
        SmallTraffic { expects_small, allowed }: SmallTraffic,
    ) -> Option<Option<u32>> {
        if group.lanes == 0 && expects_small {
            // Keep the last limit for the bulk that comes next.
            return None;
        }
        let is_held = self.applied.is_some();
        let is_far = group.rtt >= self.rules.far;
        let is_steady = is_far && direction == Direction::Down && path.is_steady();
        let may_hold = self.strangling.may_hold(now, is_held, group.lanes, path)
            && (path.is_full_of_bulk() || is_steady);
        let seen = path.rate().unwrap_or_default();
        let held = match (direction, allowed) {
            _ if group.lanes == 0 => None,
            // The server is in the same building, so a queue adds little delay. With more bytes in flight, the server's threads wake up
            // less often.
            _ if group.rtt < self.rules.service_min && !expects_small => None,
            (Direction::Down, Some(allowed)) => Some((self.rules.growth, allowed as f64)),
            _ if !may_hold => None,
            (Direction::Down, None) if expects_small || is_far => Some((self.rules.growth, seen)),
            (Direction::Down, None) => Some((2.0 * self.rules.gain, seen)),
            (Direction::Up, _) if expects_small => Some((self.rules.gain, seen)),
            (Direction::Up, _) => None,
        };
        let share = held.map(|(products, rate)| {
            rate * (group.rtt.as_secs_f64() * products + self.rules.service_min.as_secs_f64())
                / group.lanes as f64
        });
        let share = share.filter(|share| *share <= self.rules.lane_bytes_max);
        let share = share.map(|share| (share as u32).max(self.rules.lane_bytes_min));
        replace(&mut self.applied, share, self.rules.change_min)
    }

    /// Decides the pace, in bytes per second, of each of `lanes` while they upload bulk and there are no small requests. Returns `Some` if
    /// the pace differs much from the last one. Each part of an upload ends with a pause, after which a rate-based sender (BBR) sends at
    /// almost three times its share. On a path of 1 Gbit/s and 20 ms with a queue of 512 KiB, 22 % of the packets were retransmitted
    /// without a pace. With the square of `growth` as the factor, a path of 300 Mbit/s and 80 ms was not faster, and 7.5 % were
    /// retransmitted instead of 3.1 %.
    pub(super) fn pace(
        &mut self,
        lanes: usize,
        path: &Throughput,
        beside: SmallTraffic,
    ) -> Option<Option<u32>> {
        let is_alone = lanes > 0 && !beside.expects_small;
        let rate = path.rate().filter(|_| is_alone && path.is_full_of_bulk());
        let each = rate.map(|rate| rate * self.rules.growth / lanes as f64);
        let each = each.filter(|each| (self.rules.pace_min..f64::from(u32::MAX)).contains(each));
        replace(&mut self.pace, each.map(|each| each as u32), self.rules.change_min)
    }

    /// Decides how many unsent bytes of bulk the kernel holds for each of `lanes`. Returns `Some` if the number differs much from the last
    /// one. A new limit on the rate takes effect only after these bytes are sent. So the number is chosen so that the path carries all of
    /// them in a [`moment`](Rules::moment). With fewer bytes, the writer would be woken more often.
    pub(super) fn unsent(&mut self, lanes: usize, rate: Option<f64>) -> Option<u32> {
        let rate = rate.filter(|_| lanes > 0)?;
        let unsent = (rate * self.rules.moment.as_secs_f64() / lanes as f64)
            .max(2.0 * f64::from(self.rules.lane_bytes_min)) as u32;
        replace(&mut self.unsent, Some(unsent), 2).flatten()
    }
}

/// Replaces a limit by a new one. Returns `Some` if they differ by more than `last / change_min`. Otherwise the last limit stays.
fn replace(last: &mut Option<u32>, new: Option<u32>, change_min: u32) -> Option<Option<u32>> {
    let is_about = |(last, new): (u32, u32)| last.abs_diff(new) <= last / change_min;
    if last.is_none() && new.is_none() || last.zip(new).is_some_and(is_about) {
        return None;
    }
    *last = new;
    Some(new)
}

/// Detects that the limits have made bulk slower, and then removes them for a while.
///
/// The limit on bytes in flight is computed from the path's rate and shortest round trip. A radio link, a queue of other traffic or a new
/// route can make the round trip longer. The limit then makes bulk slower, so the next limit is lower, and so on. To stop this spiral, the
/// limit is removed for a while if it has made bulk slower.
#[derive(Debug, Default)]
pub(super) struct StranglingWatch {
    rules: &'static Rules,
    /// The time of the last processed reading, and the number of lanes at that time.
    read: Option<(Instant, usize)>,
    /// The best rate that two readings in a row reached, in bytes per second, and the rate of the last reading. A single reading may
    /// include bytes that had accumulated while bulk was limited.
    best: f64,
    last: f64,
    slow: u32,
    lifted_until: Option<Instant>,
    /// The duration of the limit's last removal.
    lifted: Duration,
}

impl StranglingWatch {
    pub(super) fn by(rules: &'static Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Returns whether bulk over `lanes` may be limited. `is_held` says if it is limited now.
    pub(super) fn may_hold(&mut self, now: Instant, is_held: bool, lanes: usize, path: &Throughput) -> bool {
        let is_new = |at: Instant| self.read.is_none_or(|(last, _)| last != at);
        if let Some((at, rate)) = path.bulk_reading().filter(|(at, _)| is_new(*at)) {
            // If there are fewer lanes than before, bulk is near its end. That explains its lower rate.
            let are_fewer = self.read.is_some_and(|(_, before)| lanes < before);
            self.read = Some((at, lanes));
            self.best = self.best.max(rate.min(self.last));
            self.last = rate;
            self.slow =
                if is_held && !are_fewer && rate * self.rules.growth < self.best { self.slow + 1 } else { 0 };
        }
        // Slow readings count only if they last long. After small requests end, bulk needs some tenths of a second to regain its rate.
        if self.rules.reading_min * self.slow >= self.rules.strangled_after {
            (self.slow, self.best) = (0, 0.0);
            // If the limit was already removed for this reason not long ago, double the time without a limit.
            let is_again = self.lifted_until.is_some_and(|until| now < until + self.lifted * 2);
            self.lifted = if is_again { self.lifted.saturating_mul(2) } else { self.rules.remembered };
            self.lifted_until = now.checked_add(self.lifted);
        }
        self.lifted_until.is_none_or(|until| now >= until)
    }
}

#[cfg(test)]
mod tests {
    mod access_link {
        use super::super::*;

        /// A far path that small requests haven't filled yet: its rate doubles in each round trip of 200 ms.
        struct GrowingPath {
            link: AccessLink,
            now: Instant,
            rate: f64,
            moved: f64,
        }

        impl GrowingPath {
            fn new(direction: Direction) -> Self {
                let link = AccessLink::by(&Rules::CHOSEN, direction);
                Self { link, now: Instant::now(), rate: 1e5, moved: 0.0 }
            }

            /// Advances the time by one second, while `outstanding` bytes of small requests are outstanding. Returns whether bulk is
            /// limited at the end.
            fn limits_after_a_second(&mut self, outstanding: u64) -> bool {
                let rtt = Duration::from_millis(200);
                for _ in 0..10 {
                    self.now += Duration::from_millis(100);
                    self.rate *= 1.4;
                    self.moved += self.rate / 10.0;
                    self.link.read(self.now, self.moved as u64, true, true, rtt);
                    self.link.decide(self.now, outstanding, rtt);
                }
                self.link.is_yielding()
            }
        }

        #[test]
        fn downloaded_bulk_far_away_starts_beside_the_last_small_requests() {
            const MANY: u64 = u64::MAX;
            let mut down = GrowingPath::new(Direction::Down);
            assert!(down.limits_after_a_second(MANY));
            assert!(!down.limits_after_a_second(20_000_000), "they will be done in 2.4 s");
            assert!(!down.limits_after_a_second(MANY), "bulk that is starting isn't limited");
            assert!(down.limits_after_a_second(MANY), "its time is over");
            let mut new = GrowingPath::new(Direction::Down);
            new.link.bulk_ended();
            new.limits_after_a_second(0);
            assert!(!new.limits_after_a_second(MANY), "bulk that comes then starts, too");
            let mut up = GrowingPath::new(Direction::Up);
            assert!(up.limits_after_a_second(MANY) && up.limits_after_a_second(MANY));
        }

        #[test]
        fn it_is_time_to_decide_when_small_requests_come_after_a_pause() {
            let (mut link, now) = (AccessLink::by(&Rules::CHOSEN, Direction::Down), Instant::now());
            assert!(link.small(now));
            assert!(!link.small(now + Rules::CHOSEN.small_expected_for / 2));
            assert!(!link.small(now + Rules::CHOSEN.small_expected_for));
            assert!(link.small(now + Rules::CHOSEN.small_expected_for * 2));
        }
    }

    mod yielding {
        use super::super::*;

        const GIGABIT: (Option<f64>, bool) = (Some(125e6), true);
        const RTT: Duration = Duration::from_millis(2);

        fn decide(
            state: &mut BulkState,
            now: Instant,
            outstanding: u64,
            path: (Option<f64>, bool),
            rtt: Duration,
        ) -> Option<Option<u64>> {
            state.decide(now, &Rules::CHOSEN, outstanding, path, rtt)
        }

        #[test]
        fn bulk_yields_to_a_backlog_of_small_work_and_is_let_go_when_that_is_done() {
            let (mut yielding, now) = (BulkState::default(), Instant::now());
            assert_eq!(
                decide(&mut yielding, now, 50 << 20, GIGABIT, RTT),
                Some(Some(Rules::CHOSEN.yield_floor as u64))
            );
            assert_eq!(decide(&mut yielding, now, 20 << 20, GIGABIT, RTT), None, "nothing new");
            assert_eq!(decide(&mut yielding, now, 800 << 10, GIGABIT, RTT), None, "not over yet");
            assert_eq!(decide(&mut yielding, now, 100 << 10, GIGABIT, RTT), Some(None));
            assert_eq!(decide(&mut yielding, now, 0, GIGABIT, RTT), None);
        }

        #[test]
        fn a_single_small_object_does_not_stop_bulk() {
            let mut yielding = BulkState::default();
            assert_eq!(decide(&mut yielding, Instant::now(), 500 << 10, GIGABIT, RTT), None);
        }

        #[test]
        fn small_objects_that_come_and_go_do_not_stop_bulk_far_away() {
            // Request 50 objects of 272 KiB per second, each of which takes 70 ms.
            let far = Duration::from_millis(50);
            let decide =
                |outstanding, path| decide(&mut BulkState::default(), Instant::now(), outstanding, path, far);
            for is_full in [false, true] {
                assert_eq!(decide(1 << 20, (Some(14e6), is_full)), None);
                assert_eq!(decide(6_100_000, (Some(62e6), is_full)), None);
                assert!(decide(6_300_000, (Some(62e6), is_full)).is_some(), "a backlog");
                assert!(decide(1 << 20, (Some(3e6), is_full)).is_some(), "or what comes as it can");
            }
        }

        #[test]
        fn on_a_slow_path_less_is_a_backlog() {
            let mut yielding = BulkState::default();
            let slow = (Some(1.25e6), true);
            assert!(decide(&mut yielding, Instant::now(), 300 << 10, slow, RTT).is_some());
        }

        #[test]
        fn bulk_is_never_starved_and_gains_with_time() {
            let (mut yielding, start) = (BulkState::default(), Instant::now());
            let rates: Vec<u64> = (0..40)
                .filter_map(|s| {
                    decide(&mut yielding, start + Rules::CHOSEN.yield_step * s, 50 << 20, GIGABIT, RTT)
                        .flatten()
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
            let mut yielding = BulkState::default();
            let allowed = decide(&mut yielding, Instant::now(), 1 << 20, (None, false), RTT);
            assert_eq!(allowed, Some(Some(Rules::CHOSEN.yield_floor as u64)));
        }

        #[test]
        fn running_bulk_goes_on_and_more_begins_once_that_has_gained() {
            let (mut link, now) = (AccessLink::by(&Rules::CHOSEN, Direction::Down), Instant::now());
            assert!(link.bulk_may_begin(now));
            link.decide(now, 50 << 20, RTT);
            assert!(!link.bulk_may_begin(now + Rules::CHOSEN.yield_step / 2));
            assert!(!link.bulk_may_begin(now + Rules::CHOSEN.yield_step));
            let wait = Rules::CHOSEN.yield_step + RTT * Rules::CHOSEN.yield_round_trips;
            assert!(link.bulk_may_begin(now + wait));
            link.decide(now, 0, RTT);
            assert!(link.bulk_may_begin(now));
        }
    }

    mod bulk_in_flight {
        use super::super::super::path_model::PathLoad;
        use super::super::*;

        const NEAR: Duration = Duration::from_millis(2);
        const HOME: Duration = Duration::from_millis(20);
        const GIGABIT: f64 = 125e6;

        /// Returns a path that bulk has filled, with this rate in bytes per second.
        fn full(rate: f64) -> Throughput {
            let (mut path, now) = (Throughput::default(), Instant::now());
            for reading in 0..10 {
                let bytes = rate * f64::from(reading) / 10.0;
                path.read(now + Duration::from_millis(100) * reading, bytes as u64, BULK);
            }
            assert!(path.is_full());
            path
        }

        const BULK: PathLoad =
            PathLoad { fills: true, has_bulk: true, is_held: false, small_wait: false, rtt: Duration::ZERO };

        /// The state while small requests keep coming.
        const SMALL: SmallTraffic = SmallTraffic { expects_small: true, allowed: None };

        /// Returns the limit of bytes in flight for each lane while there are small requests.
        fn share(direction: Direction, lanes: usize, rtt: Duration, path: &Throughput) -> Option<u32> {
            let now = Instant::now();
            BulkInFlight::by(&Rules::CHOSEN)
                .decide(now, direction, LaneGroup { lanes, rtt }, path, SMALL)
                .flatten()
        }

        #[test]
        fn nothing_is_held_on_a_path_that_is_not_full_nor_alone_in_a_house() {
            for direction in Direction::BOTH {
                assert_eq!(share(direction, 2, NEAR, &Throughput::default()), None);
            }
            let (now, group) = (Instant::now(), LaneGroup { lanes: 32, rtt: Rules::CHOSEN.service_min / 2 });
            let (gigabit, alone) = (full(GIGABIT), SmallTraffic::default());
            assert_eq!(
                BulkInFlight::by(&Rules::CHOSEN).decide(now, Direction::Down, group, &gigabit, alone),
                None
            );
            for direction in Direction::BOTH {
                assert!(share(direction, 2, group.rtt, &gigabit).is_some(), "{direction:?}");
            }
        }

        #[test]
        fn beside_small_requests_lanes_share_little_more_than_the_path_holds() {
            for direction in Direction::BOTH {
                let (mut bulk, now, gigabit) =
                    (BulkInFlight::by(&Rules::CHOSEN), Instant::now(), full(GIGABIT));
                let mut decide = |lanes, beside| {
                    bulk.decide(now, direction, LaneGroup { lanes, rtt: NEAR }, &gigabit, beside)
                };
                let clamp = decide(2, SMALL).flatten().unwrap();
                assert!((400_000..=650_000).contains(&(2 * clamp)), "{clamp}");
                assert_eq!(decide(2, SMALL), None, "nothing new");
                assert_eq!(decide(0, SMALL), None, "nobody to tell");
                assert_eq!(decide(4, SMALL), Some(Some(clamp / 2)));
                let then = decide(4, SmallTraffic::default()).unwrap();
                assert!(then.is_none_or(|then| then > clamp), "and then there is more room again");
            }
        }

        #[test]
        fn bulk_that_yields_has_no_more_on_its_way_than_it_may_move() {
            let (now, group) = (Instant::now(), LaneGroup { lanes: 2, rtt: HOME });
            let beside = SmallTraffic { expects_small: true, allowed: Some(6_250_000) };
            let said =
                BulkInFlight::by(&Rules::CHOSEN).decide(now, Direction::Down, group, &full(GIGABIT), beside);
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

        /// Returns the rate in bytes per second that bulk reaches in five minutes. The path's round trip is now `times` times as long as
        /// the shortest one.
        fn moved(direction: Direction, rtt: Duration, times: u32, expects_small: bool) -> f64 {
            // For uploads, three quarters of the send buffer are filled on average, and one more packet is in flight.
            let filled = if direction == Direction::Up { (0.75, 32e3) } else { (1.0, 0.0) };
            let (mut path, start) = (full(GIGABIT), Instant::now() + Duration::from_secs(1));
            let (mut now, mut bytes, mut clamp) = (start, GIGABIT, None);
            let (mut bulk, beside) =
                (BulkInFlight::by(&Rules::CHOSEN), SmallTraffic { expects_small, allowed: None });
            for _ in 0..3000 {
                if let Some(said) = bulk.decide(now, direction, LaneGroup { lanes: 4, rtt }, &path, beside) {
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
        fn a_path_taken_for_too_little_is_found_out_beside_small_requests() {
            for lanes in [2, 4, 8] {
                for direction in Direction::BOTH {
                    let mut bulk = BulkInFlight::by(&Rules::CHOSEN);
                    let filled = if direction == Direction::Up { (2.0 / 3.0, 16e3) } else { (1.0, 0.0) };
                    let (mut path, mut bytes) = (full(10e6), 10e6);
                    let (mut now, mut held) = (Instant::now() + Duration::from_secs(1), 0.0);
                    for _ in 0..100 {
                        let group = LaneGroup { lanes, rtt: HOME };
                        let said = bulk.decide(now, direction, group, &path, SMALL).flatten();
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
            assert_eq!(
                bulk.unsent(4, Some(1e6)),
                Some((2.0 * f64::from(Rules::CHOSEN.lane_bytes_min)) as u32)
            );
            assert_eq!(bulk.unsent(0, Some(GIGABIT)), None);
        }
    }
}
