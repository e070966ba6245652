//! Finds the number of freight lanes of an origin. Freight lanes carry bulk (requests above 1 MiB). The search begins with one lane, or a
//! few, and adds lanes if they raise goodput.
//!
//! On a path without packet loss, one stream uses the full rate, and a second stream only overflows the queue. More streams help if
//! something other than the path limits each stream. The cause can be a server that limits each connection, a small window, or a sender
//! that slows down after each lost packet. When goodput stops growing, something limits the stream. If there is a queue on the path, the
//! path is the limit. If not, lanes are added, and they stay if goodput rises. The states of the search ([`LaneTrial`]) are:
//!
//! ```text
//!                      `step`: goodput is steady, and there is no queue
//!          ┌────────────────────────────────────────────────────────────────▶ Step ──┐ goodput has risen: `step` again
//!        None ◀──────── `take_back`: goodput hasn't risen, or bulk has yielded ───┘ ▲──┘
//!        │  ▲
//!        │  └─────────── goodput is no longer low, or `take_back` after two doublings
//!        └────────────── goodput has fallen below half of the path's rate ──▶ Fallen ──┐ it is still low: double again
//!                                                                                  ▲───┘
//! ```

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::event::TcpSample;
use super::rules::Rules;

/// Returns the number of lanes to begin with. It depends on the round trip to the server.
fn first(rules: &Rules, rtt: Duration) -> usize {
    match rtt {
        // Within one building, bulk is limited by memory and CPU rather than by the path. Two lanes use two threads.
        near if near < rules.service_min => 2,
        far if far >= rules.far => {
            ((rules.rate_unknown * far.as_secs_f64() / rules.far_lane) as usize).min(rules.side_by_side_max)
        }
        _ => 1,
    }
}

/// A reading of the bytes that an origin's lanes have moved, and of the kernel's measurements.
#[derive(Clone, Copy, Debug)]
pub(super) struct GoodputSample {
    /// The bytes moved so far, in both directions together.
    pub(super) bytes: u64,
    /// `busy` is the number of lanes that carry bulk. `covering` is the number that keeps the path busy although each lane pauses between
    /// two requests (see [`FreightDemand::covering`](super::choose::FreightDemand::covering)).
    pub(super) busy: usize,
    pub(super) covering: usize,
    /// The shortest round trip so far, if known.
    pub(super) rtt: Option<Duration>,
    /// The kernel's measurements of the busiest connection. `None` on systems without them.
    pub(super) flow: Option<TcpSample>,
    /// The highest recent rate of the path in bytes per second, no matter if bulk or small requests have reached it.
    pub(super) shown: f64,
}

/// The search for the best number of freight lanes of an origin.
#[derive(Debug, Default)]
pub(super) struct FreightLanes {
    rules: &'static Rules,
    /// The number of lanes found so far. `None` until the round trip to the server is known.
    target: Option<usize>,
    /// The number of lanes that keeps the path busy although each lane pauses between two requests. The origin gets this number or the
    /// target, whichever is larger.
    covering: usize,
    trial: LaneTrial,
    /// The highest mean goodput of [`calm`](Rules::calm) consecutive windows, in bytes per second, since bulk began or last stopped
    /// yielding.
    best: f64,
    /// The goodput at its last strong growth, the goodput of the last windows, and the number of windows since that growth.
    risen: f64,
    latest: VecDeque<f64>,
    calm: u32,
    /// Counts of windows since lanes were added. `queued` counts those in which the path had a queue. `paused` counts those without growth
    /// in which the connection paused.
    queued: u32,
    paused: u32,
    /// True if packets were lost since lanes were added.
    has_lost: bool,
    /// The times at which three findings expire, because paths change. The first finding is that the path has a queue. The second is that
    /// more lanes didn't raise the given goodput. The third is that they didn't raise a goodput that had fallen.
    full_until: Option<Instant>,
    step_held: Option<(Instant, f64)>,
    fallen_held_until: Option<Instant>,
    window: Option<MeasuringWindow>,
}

/// The trial of the lanes that were added last. If they don't raise goodput above `goodput` (bytes per second), the number of lanes goes
/// back to `lanes`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum LaneTrial {
    #[default]
    None,
    Step {
        lanes: usize,
        goodput: f64,
    },
    Fallen {
        lanes: usize,
        goodput: f64,
    },
}

#[derive(Clone, Copy, Debug)]
struct MeasuringWindow {
    ends: Instant,
    began: Instant,
    bytes: Option<u64>,
    /// True if bulk yielded during the window.
    yielded: bool,
}

impl FreightLanes {
    pub(super) fn by(rules: &'static Rules) -> Self {
        Self { rules, covering: 1, ..Self::default() }
    }

    /// Returns the number of lanes that raise goodput, as far as is known now.
    pub(super) fn target(&self) -> usize {
        self.target.unwrap_or(1)
    }

    /// Returns the number of lanes that the origin should have if it has enough bulk.
    fn lanes(&self) -> usize {
        self.target().max(self.covering)
    }

    /// Sets the first number of lanes when the round trip to the server is first known.
    pub(super) fn reached(&mut self, rtt: Duration) {
        self.target.get_or_insert(first(self.rules, rtt));
    }

    /// Starts measuring when there is freight, and stops when there is none.
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

    /// Records that bulk yielded to small requests. The goodput of this window and of a trial is then too low to be judged.
    pub(super) fn yielded(&mut self) {
        if let Some(window) = &mut self.window {
            window.yielded = true;
        }
        // The trial hasn't shown that its lanes raise goodput, so go back to the number before the trial.
        if let LaneTrial::Step { lanes, .. } | LaneTrial::Fallen { lanes, .. } = self.trial {
            self.take_back(lanes);
        }
        (self.best, self.full_until) = (0.0, None);
        self.begin_anew();
    }

    /// Ends a trial whose lanes haven't raised goodput.
    fn take_back(&mut self, lanes: usize) {
        (self.target, self.trial) = (Some(lanes), LaneTrial::None);
        self.begin_anew();
    }

    fn begin_anew(&mut self) {
        (self.risen, self.calm, self.queued, self.paused, self.has_lost) = (0.0, 0, 0, 0, false);
    }

    /// Returns the end of the present window, when a reading is needed.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        self.window.map(|w| w.ends)
    }

    /// Processes a reading, and decides at the end of a window. Returns whether a queue on the path shows that bulk has filled the path.
    pub(super) fn moved(&mut self, now: Instant, reading: GoodputSample) -> bool {
        let Some(window) = self.window else { return false };
        if now < window.ends {
            return false;
        }
        let rtt = reading.rtt.unwrap_or_default();
        self.covering = reading.covering;
        let passed = now.saturating_duration_since(window.began);
        // Ignore a window without any bytes: on some systems, an upload's bytes are counted only when it is answered. Also ignore a window
        // in which bulk had to yield, or in which lanes were still being dialled.
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

    /// Processes the goodput of a window in which every lane was busy.
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

    /// Decides on the number of lanes, after goodput has become steady at `level` bytes per second.
    fn decide(&mut self, now: Instant, level: f64, is_long: bool, shown: f64) {
        let allowed = |held_until: Option<Instant>| held_until.is_none_or(|until| now >= until);
        // Divide `shown`, because many new connections with small requests can briefly be faster than bulk can ever be.
        let has_fallen = is_long
            && level * self.rules.fallen < self.best.max(shown / self.rules.growth)
            && allowed(self.fallen_held_until);
        match self.trial {
            LaneTrial::Step { goodput, .. } if level >= goodput * self.rules.growth => {
                self.trial = LaneTrial::None;
                self.step(now, level, shown);
            }
            LaneTrial::Step { lanes, .. } => {
                self.take_back(lanes);
                self.step_held = Some((now + self.rules.remembered, level));
            }
            LaneTrial::Fallen { lanes, goodput } if has_fallen && self.lanes() < 4 * lanes => {
                // Double the number of lanes once more before judging. The goodput of the older lanes may still fall during the first step.
                self.add(2, LaneTrial::Fallen { lanes, goodput: goodput.min(level) });
            }
            LaneTrial::Fallen { lanes, goodput } if has_fallen && level < goodput * self.rules.growth => {
                // The added lanes didn't raise goodput, so something else limits it, such as a slow disk. Remove them again.
                self.take_back(lanes);
                self.fallen_held_until = Some(now + self.rules.remembered);
            }
            _ if has_fallen => self.add(2, LaneTrial::Fallen { lanes: self.lanes(), goodput: level }),
            LaneTrial::Fallen { .. } => self.trial = LaneTrial::None,
            // Don't repeat a step that didn't raise goodput, unless goodput has fallen since. A fall shows that something else limits
            // goodput now.
            LaneTrial::None
                if self
                    .step_held
                    .is_some_and(|(until, of)| now < until && level * self.rules.growth >= of) => {}
            LaneTrial::None => self.step(now, level, shown),
        }
    }

    /// Adds lanes and starts their trial, unless a queue has shown that the path is full and goodput is close to the path's rate.
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

    /// Multiplies the number of lanes by `times`. `trial` says how to judge the result.
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

    /// A search for the number of lanes, with a simulated path.
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
            // The first window only takes the first reading.
            bulk.passes(1, |_| 0.0);
            bulk
        }

        /// Simulates this many windows. `rate` returns the goodput of a number of lanes in bytes per second.
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

        /// Sets TCP's measurements from now on.
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
        // Then BBR drains the queue that it caused in its startup.
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
