//! The number of freight lanes of an origin: one, and more where they bring more.
//!
//! One stream fills a clean path, and a second one beside it only overflows the queue. Several pay where something else holds a
//! stream: a server that caps each connection, a window that is too small, a sender that takes lost packets for a full queue.
//! Goodput that has stopped growing tells that a stream is held. A queue on the path tells that the path holds it. Without a queue
//! lanes are added, and stay if goodput rises with them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::event::{Direction, TcpSample};
use super::rules::Rules;

/// Lanes that keep a path busy where each request has `mean` bytes: while one waits for its next answer, the others use the path.
pub(super) fn covering(rules: &Rules, direction: Direction, mean: u64, rtt: Duration, rate: f64) -> usize {
    let between = rate * rtt.as_secs_f64() * rules.round_trips_between[direction as usize];
    let others = (between / mean.max(1) as f64).ceil() as usize;
    1 + others.min(rules.side_by_side_max - 1)
}

/// The number of lanes from the first request on, to a server at this distance.
fn first(rules: &Rules, rtt: Duration) -> usize {
    match rtt {
        // Memory and processors hold bulk in the same house: a lane for each of two threads.
        near if near < rules.service_min => 2,
        far if far >= rules.far => {
            ((rules.rate_unknown * far.as_secs_f64() / rules.far_lane) as usize).min(rules.side_by_side_max)
        }
        _ => 1,
    }
}

/// A reading of the bytes that an origin's lanes have moved, and of what TCP says.
#[derive(Clone, Copy, Debug)]
pub(super) struct GoodputSample {
    /// Bytes so far, in both directions.
    pub(super) bytes: u64,
    /// Lanes that carry bulk, and those that [cover](covering) each other's pauses.
    pub(super) busy: usize,
    pub(super) covering: usize,
    /// The shortest round trip that was seen, if any was.
    pub(super) rtt: Option<Duration>,
    /// The busiest connection's round trip and pauses, where the system tells.
    pub(super) flow: Option<TcpSample>,
    /// The best rate of the path lately, in bytes a second, whatever it was that moved.
    pub(super) shown: f64,
}

/// A search for the number of lanes.
#[derive(Debug)]
pub(super) struct FreightLanes {
    rules: &'static Rules,
    /// Nothing until the distance is known.
    target: Option<usize>,
    /// The lanes that cover each other's pauses. They count besides the target.
    covering: usize,
    trial: LaneTrial,
    /// The best goodput of [`calm`](Rules::calm) windows since bulk began or was let go, bytes a second.
    best: f64,
    /// The best one, and the last ones, since lanes were added, and how many windows have brought no more.
    risen: f64,
    latest: VecDeque<f64>,
    calm: u32,
    /// In how many windows since then the path has shown a queue, and in how many of the calm ones the connection stood still.
    queued: u32,
    paused: u32,
    /// True if packets were lost.
    has_lost: bool,
    /// Until when what the path's own queue has shown is believed, a step that did not pay at some goodput isn't tried again, nor steps
    /// against fallen goodput: paths change.
    full_until: Option<Instant>,
    step_held: Option<(Instant, f64)>,
    fallen_held_until: Option<Instant>,
    window: Option<MeasuringWindow>,
}

/// The lanes that were added last have still to show that goodput rises by them from what it was, in bytes a second, with `lanes`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LaneTrial {
    None,
    Step { lanes: usize, goodput: f64 },
    Fallen { lanes: usize, goodput: f64 },
}

#[derive(Clone, Copy, Debug)]
struct MeasuringWindow {
    ends: Instant,
    began: Instant,
    bytes: Option<u64>,
    /// True if bulk was held back in it.
    yielded: bool,
}

impl FreightLanes {
    pub(super) fn by(rules: &'static Rules) -> Self {
        Self {
            rules,
            target: None,
            covering: 1,
            trial: LaneTrial::None,
            best: 0.0,
            risen: 0.0,
            latest: VecDeque::new(),
            calm: 0,
            queued: 0,
            paused: 0,
            has_lost: false,
            full_until: None,
            step_held: None,
            fallen_held_until: None,
            window: None,
        }
    }
    /// The number of lanes that are worth having now.
    pub(super) fn target(&self) -> usize {
        self.target.unwrap_or(1)
    }

    /// The number of lanes that there are.
    fn lanes(&self) -> usize {
        self.target().max(self.covering)
    }

    /// Takes note of how far the server is, when that is first known.
    pub(super) fn reached(&mut self, rtt: Duration) {
        self.target.get_or_insert(first(self.rules, rtt));
    }

    /// Begins or ends watching, as there is freight or not.
    pub(super) fn watch(&mut self, now: Instant, live: bool) {
        match (live, &self.window) {
            (true, None) => {
                let ends = now + self.rules.window_min;
                self.window = Some(MeasuringWindow { ends, began: now, bytes: None, yielded: false });
            }
            (false, Some(_)) => {
                (self.window, self.best, self.full_until) = (None, 0.0, None);
                self.begin_anew();
            }
            _ => {}
        }
    }

    /// Bulk was held back for small requests: the window's goodput is not what its lanes can do, and the next one's not
    /// what a step has gained.
    pub(super) fn yielded(&mut self) {
        if let Some(window) = &mut self.window {
            window.yielded = true;
        }
        // It was never shown to pay.
        if let LaneTrial::Step { lanes, .. } | LaneTrial::Fallen { lanes, .. } = self.trial {
            (self.target, self.trial) = (Some(lanes), LaneTrial::None);
        }
        (self.best, self.full_until) = (0.0, None);
        self.begin_anew();
    }

    fn begin_anew(&mut self) {
        (self.risen, self.calm, self.queued, self.paused, self.has_lost) = (0.0, 0, 0, 0, false);
    }

    /// When the window ends.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        self.window.map(|w| w.ends)
    }

    /// Takes a reading; at a window's end decides. Returns whether the path's queue shows that bulk has filled it.
    pub(super) fn moved(&mut self, now: Instant, reading: GoodputSample) -> bool {
        let Some(window) = self.window else { return false };
        if now < window.ends {
            return false;
        }
        let rtt = reading.rtt.unwrap_or_default();
        self.covering = reading.covering;
        let passed = now.saturating_duration_since(window.began);
        // A window in which nothing was counted says nothing: an upload's bytes count when it is answered. Neither does
        // one in which bulk had to yield, or in which lanes were still being dialled.
        let counts = |first: &u64| {
            reading.bytes > *first && !passed.is_zero() && reading.busy >= self.lanes() && !window.yielded
        };
        if let Some(first) = window.bytes.filter(counts) {
            let goodput = (reading.bytes - first) as f64 / passed.as_secs_f64();
            if let Some(flow) = reading.flow {
                self.queued +=
                    u32::from(flow.round_trip > rtt + (rtt / self.rules.queue).max(self.rules.service_min));
                self.paused += u32::from(flow.quiet > (rtt / self.rules.pause).max(self.rules.pause_min));
                self.has_lost |= flow.disordered > 0;
            }
            self.take(now, passed, goodput, reading.shown);
        }
        let length = self.rules.window_min.max(rtt * 2);
        let bytes = Some(reading.bytes);
        self.window = Some(MeasuringWindow { ends: now + length, began: now, bytes, yielded: false });
        self.full_until.is_some_and(|until| now < until)
    }

    /// One measured window in which every lane was busy.
    fn take(&mut self, now: Instant, length: Duration, goodput: f64, shown: f64) {
        if self.latest.len() == self.rules.calm as usize {
            self.latest.pop_front();
        }
        self.latest.push_back(goodput);
        let level = self.latest.iter().sum::<f64>() / f64::from(self.rules.calm);
        self.best = self.best.max(level);
        if goodput > self.risen * self.rules.slow_start {
            (self.risen, self.calm, self.paused) = (goodput, 0, 0);
            return;
        }
        self.calm += 1;
        let is_mending = self.has_lost && self.trial == LaneTrial::None;
        if self.calm >= if is_mending { self.rules.calm_after_loss } else { self.rules.calm } {
            self.decide(now, level, length * self.calm >= self.rules.fallen_min, shown);
        }
    }

    /// The lanes have found the rate of `level`.
    fn decide(&mut self, now: Instant, level: f64, is_long: bool, shown: f64) {
        let allowed = |held_until: Option<Instant>| held_until.is_none_or(|until| now >= until);
        // Many young connections of small requests show a little more than bulk will find.
        let has_fallen = is_long
            && level * self.rules.fallen < self.best.max(shown / self.rules.growth)
            && allowed(self.fallen_held_until);
        match self.trial {
            LaneTrial::Step { goodput, .. } if level >= goodput * self.rules.growth => {
                self.trial = LaneTrial::None;
                self.step(now, level, shown);
            }
            LaneTrial::Step { lanes, .. } => {
                (self.target, self.trial) = (Some(lanes), LaneTrial::None);
                self.step_held = Some((now + self.rules.remembered, level));
                self.begin_anew();
            }
            LaneTrial::Fallen { lanes, goodput } if has_fallen && self.lanes() < 4 * lanes => {
                // The older lanes may still lose goodput, so that two steps are judged together.
                self.add(2, LaneTrial::Fallen { lanes, goodput: goodput.min(level) });
            }
            LaneTrial::Fallen { lanes, goodput } if has_fallen && level < goodput * self.rules.growth => {
                // Where a slow disk or a standstill holds goodput, lanes don't raise it, and go.
                (self.target, self.trial) = (Some(lanes), LaneTrial::None);
                self.fallen_held_until = Some(now + self.rules.remembered);
                self.begin_anew();
            }
            _ if has_fallen => self.add(2, LaneTrial::Fallen { lanes: self.lanes(), goodput: level }),
            LaneTrial::Fallen { .. } => self.trial = LaneTrial::None,
            // Goodput that has fallen since then is held by something else.
            LaneTrial::None
                if self
                    .step_held
                    .is_some_and(|(until, of)| now < until && level * self.rules.growth >= of) => {}
            LaneTrial::None => self.step(now, level, shown),
        }
    }

    /// Adds lanes, unless the path's own queue has shown that it is full, of what it is known to carry.
    fn step(&mut self, now: Instant, level: f64, shown: f64) {
        let is_paused = self.paused * self.rules.pause >= self.calm;
        if self.queued > 0 && !is_paused {
            self.full_until = Some(now + self.rules.remembered);
        }
        if level * self.rules.growth >= shown && self.full_until.is_some_and(|until| now < until) {
            return self.begin_anew();
        }
        let times = if self.lanes() == 1 && !self.has_lost { self.rules.first_step } else { 2 };
        self.add(times, LaneTrial::Step { lanes: self.lanes(), goodput: level });
    }

    /// Multiplies the lanes, for `trial` to be judged.
    fn add(&mut self, times: usize, trial: LaneTrial) {
        self.trial = if self.lanes() < self.rules.lanes_max { trial } else { LaneTrial::None };
        self.target = Some((self.lanes() * times).min(self.rules.lanes_max));
        self.begin_anew();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(20);
    const NO_PAUSE: Duration = Duration::ZERO;

    /// A path, and bulk on it for some windows.
    struct Bulk {
        lanes: FreightLanes,
        now: Instant,
        bytes: f64,
        shown: f64,
        flow: Option<TcpSample>,
        targets: Vec<usize>,
    }

    impl Bulk {
        fn begins(rtt: Duration) -> Self {
            let (mut lanes, now) = (FreightLanes::by(&Rules::CHOSEN), Instant::now());
            lanes.reached(rtt);
            lanes.watch(now, true);
            let mut bulk = Self { lanes, now, bytes: 0.0, shown: 0.0, flow: None, targets: Vec::new() };
            // Nothing can be said of the first window.
            bulk.passes(1, |_| 0.0);
            bulk
        }

        /// Goodput of so many lanes in bytes a second, for some windows.
        fn passes(&mut self, windows: usize, rate: impl Fn(usize) -> f64) {
            for _ in 0..windows {
                let next = self.lanes.next_tick().unwrap();
                self.bytes += rate(self.lanes.target()) * (next - self.now).as_secs_f64();
                self.now = next;
                let (bytes, busy) = (self.bytes as u64, self.lanes.target());
                let reading = GoodputSample {
                    bytes,
                    busy,
                    covering: 1,
                    rtt: Some(RTT),
                    flow: self.flow,
                    shown: self.shown,
                };
                self.lanes.moved(self.now, reading);
                self.targets.push(self.lanes.target());
            }
        }

        /// The path shows this round trip from now on.
        fn sees(&mut self, round_trip: Duration, quiet: Duration, disordered: u64) {
            self.flow = Some(TcpSample { round_trip, quiet, disordered });
        }

        fn most(&self) -> usize {
            self.targets.iter().copied().max().unwrap_or_default()
        }
    }

    #[test]
    fn a_stream_that_fills_the_path_stays_alone() {
        let mut bulk = Bulk::begins(RTT);
        (0..8).for_each(|doublings| bulk.passes(1, |_| 1e6 * f64::from(1 << doublings)));
        bulk.sees(RTT * 2, NO_PAUSE, 0);
        bulk.passes(2, |_| 125e6);
        // BBR drains the queue that it has found the path by.
        bulk.sees(RTT, NO_PAUSE, 0);
        bulk.passes(100, |_| 125e6);
        assert_eq!(bulk.most(), 1);
    }

    #[test]
    fn lanes_are_added_while_each_connection_is_capped() {
        let mut bulk = Bulk::begins(RTT);
        bulk.sees(RTT, NO_PAUSE, 0);
        bulk.passes(40, |lanes| (lanes as f64 * 20e6).min(600e6));
        assert_eq!(bulk.lanes.target(), Rules::CHOSEN.lanes_max);
    }

    #[test]
    fn a_server_that_pauses_is_not_taken_for_a_queue() {
        let mut bulk = Bulk::begins(RTT);
        bulk.sees(RTT * 3, Duration::from_millis(40), 0);
        bulk.passes(5, |lanes| lanes as f64 * 20e6);
        assert!(bulk.lanes.target() > 1);
    }

    #[test]
    fn lanes_that_bring_nothing_leave_again_and_are_not_tried_soon() {
        let mut bulk = Bulk::begins(RTT);
        bulk.passes(60, |_| 125e6);
        assert_eq!((bulk.lanes.target(), bulk.most()), (1, Rules::CHOSEN.first_step));
        let tried = bulk.targets.iter().filter(|lanes| **lanes > 1).count();
        assert!(tried <= 1 + Rules::CHOSEN.calm as usize, "{:?}", bulk.targets);
    }

    #[test]
    fn a_sender_that_has_overrun_a_short_queue_is_given_time() {
        let mut bulk = Bulk::begins(RTT);
        bulk.sees(RTT, NO_PAUSE, 300);
        bulk.passes(1, |_| 90e6);
        bulk.passes(8, |_| 50e6);
        assert_eq!(bulk.most(), 1);
        bulk.sees(RTT + RTT / 4, NO_PAUSE, 1);
        bulk.passes(60, |_| 120e6);
        assert_eq!(bulk.most(), 1);
    }

    #[test]
    fn senders_that_take_each_loss_for_a_queue_get_more_lanes() {
        let mut bulk = Bulk::begins(RTT);
        bulk.sees(RTT, NO_PAUSE, 1);
        bulk.passes(100, |lanes| lanes as f64 * 3e6);
        assert_eq!(bulk.lanes.target(), Rules::CHOSEN.lanes_max);
    }

    #[test]
    fn goodput_below_half_of_the_paths_gets_lanes_though_no_step_pays() {
        let mut bulk = Bulk::begins(RTT);
        bulk.shown = 125e6;
        bulk.sees(RTT * 2, NO_PAUSE, 0);
        bulk.passes(30, |_| 20e6);
        assert!(bulk.most() > 1, "{:?}", bulk.targets);
        assert!(bulk.most() <= 4, "and a slow disk not many: {:?}", bulk.targets);
    }

    #[test]
    fn far_away_lanes_begin_side_by_side() {
        let target = |ms| Bulk::begins(Duration::from_millis(ms)).lanes.target();
        assert_eq!(
            [0, 1, 20, 99, 100, 200, 900].map(target),
            [2, 1, 1, 1, 4, 8, Rules::CHOSEN.side_by_side_max]
        );
    }

    #[test]
    fn lanes_cover_each_others_pauses_between_requests() {
        let at_20_ms = |mean: u64| covering(&Rules::CHOSEN, Direction::Down, mean, RTT, 125e6);
        assert_eq!([1 << 20, 8 << 20, 16 << 20, 256 << 20].map(at_20_ms), [11, 3, 2, 2]);
        let up = |rate| covering(&Rules::CHOSEN, Direction::Up, 16 << 20, RTT, rate);
        assert_eq!([f64::MIN_POSITIVE, 6e6, 125e6].map(up), [2, 2, 3]);
        assert_eq!(
            covering(&Rules::CHOSEN, Direction::Up, 1, Duration::from_secs(1), 1e9),
            Rules::CHOSEN.side_by_side_max
        );
    }

    #[test]
    fn a_step_that_nothing_has_judged_before_bulk_yielded_is_taken_back() {
        let mut bulk = Bulk::begins(RTT);
        bulk.passes(4, |_| 125e6);
        assert_eq!(bulk.lanes.target(), Rules::CHOSEN.first_step);
        bulk.lanes.yielded();
        assert_eq!(bulk.lanes.target(), 1);
    }

    #[test]
    fn windows_without_bytes_or_with_idle_lanes_say_nothing() {
        let mut bulk = Bulk::begins(RTT);
        bulk.passes(20, |_| 0.0);
        assert_eq!(bulk.most(), 1);
        for _ in 0..20 {
            bulk.now = bulk.lanes.next_tick().unwrap();
            bulk.bytes += 1e6;
            let bytes = bulk.bytes as u64;
            bulk.lanes.moved(
                bulk.now,
                GoodputSample { bytes, busy: 0, covering: 1, rtt: Some(RTT), flow: None, shown: 0.0 },
            );
        }
        assert_eq!(bulk.lanes.target(), 1);
    }
}
