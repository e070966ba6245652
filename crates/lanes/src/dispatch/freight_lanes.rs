//! How many freight lanes an origin gets: as many as raise its goodput.

use std::time::{Duration, Instant};

use super::lane::LANES_MAX;
use super::path_estimate::{GROWS, REMEMBERED};

/// Lanes to begin with: beside a lane that recovers from a loss, or goes from one slice to the next, three others use what it leaves. With two
/// the simulated path of 1 Gbit/s and 20 ms was used by a twentieth less.
const FIRST: usize = 4;

/// The shortest time over which goodput is measured. A window also spans eight round trips, in which senders that begin with ten
/// segments come to fill any path. Over half of it, noise alone took the simulated path of 100 Mbit/s and 20 ms to 32 lanes.
const WINDOW_MIN: Duration = Duration::from_millis(300);

/// Goodput so many times below what the path has carried lately isn't held by the path, but by senders that take each loss for a full
/// queue: lanes are added then, though a single step may not show that it pays, since what it brings and what the older ones lose come in
/// the same windows. Below twice, senders that go by rate and were held back are still growing; with 1.5 they got half as many lanes
/// again.
const FALLEN: f64 = 2.0;

/// A hill climber over the number of lanes.
#[derive(Debug)]
pub(super) struct FreightLanes {
    target: usize,
    trial: Trial,
    /// The best goodput of a window since bulk began or was let go, bytes a second.
    best: f64,
    /// Until when a step that did not pay isn't tried again, and steps against fallen goodput: paths change.
    step_held_until: Option<Instant>,
    fallen_held_until: Option<Instant>,
    window: Option<Window>,
}

/// What the lanes that were added last have still to show.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trial {
    None,
    /// That they raise the best goodput.
    Step,
    /// That they raise goodput, which had fallen, from what it was with `lanes`, bytes a second.
    Fallen {
        lanes: usize,
        goodput: f64,
    },
}

#[derive(Clone, Copy, Debug)]
struct Window {
    ends: Instant,
    began: Instant,
    bytes: Option<u64>,
    /// Whether bulk was held back in it.
    yielded: bool,
}

impl Default for FreightLanes {
    fn default() -> Self {
        Self {
            target: FIRST,
            trial: Trial::None,
            best: 0.0,
            step_held_until: None,
            fallen_held_until: None,
            window: None,
        }
    }
}

impl FreightLanes {
    /// The number of lanes that are worth having now.
    pub(super) fn target(&self) -> usize {
        self.target
    }

    /// Begins or ends watching, as there is freight or not.
    pub(super) fn watch(&mut self, now: Instant, live: bool) {
        match (live, &self.window) {
            (true, None) => {
                let ends = now + WINDOW_MIN;
                self.window = Some(Window { ends, began: now, bytes: None, yielded: false });
            }
            (false, Some(_)) => (self.window, self.best) = (None, 0.0),
            _ => {}
        }
    }

    /// Bulk was held back for small requests: the window's goodput is not what its lanes can do, and the next one's not
    /// what a step has gained.
    pub(super) fn yielded(&mut self) {
        if let Some(window) = &mut self.window {
            window.yielded = true;
        }
        if std::mem::replace(&mut self.trial, Trial::None) != Trial::None {
            // It was never shown to pay.
            self.target = (self.target / 2).max(1);
        }
        self.best = 0.0;
    }

    /// When the window ends.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        self.window.map(|w| w.ends)
    }

    /// Takes the bytes moved so far over `busy` lanes; at a window's end decides. `shown` is the best rate of the path lately, in
    /// bytes a second, whatever it was that moved.
    pub(super) fn moved(&mut self, now: Instant, bytes: u64, busy: usize, rtt: Duration, shown: f64) {
        let Some(window) = self.window else { return };
        if now < window.ends {
            return;
        }
        let seconds = now.saturating_duration_since(window.began).as_secs_f64();
        // A window in which nothing was counted says nothing: an upload's bytes count when it is answered. Neither does
        // one in which bulk had to yield.
        let moved = |first: &u64| bytes > *first && seconds > 0.0 && busy >= self.target && !window.yielded;
        if let Some(first) = window.bytes.filter(moved) {
            self.decide(now, (bytes.saturating_sub(first)) as f64 / seconds, shown);
        }
        let length = WINDOW_MIN.max(rtt * 8);
        self.window = Some(Window { ends: now + length, began: now, bytes: Some(bytes), yielded: false });
    }

    /// One measured window in which every lane was busy.
    fn decide(&mut self, now: Instant, goodput: f64, shown: f64) {
        let best = self.best;
        self.best = goodput.max(best);
        let allowed = |held_until: Option<Instant>| held_until.is_none_or(|until| now >= until);
        // Many young connections of small requests show a little more than bulk will find.
        let has_fallen = goodput * FALLEN < best.max(shown / GROWS) && allowed(self.fallen_held_until);
        match self.trial {
            Trial::Fallen { lanes, goodput: before } if has_fallen && self.target < 4 * lanes => {
                // What the older lanes still lose is not for the new ones to bring: two steps are judged together.
                self.add(Trial::Fallen { lanes, goodput: before.min(goodput) });
            }
            Trial::Fallen { lanes, goodput: before } if has_fallen && goodput < before * GROWS => {
                // Where a slow disk or a standstill holds goodput, lanes don't raise it, and go.
                (self.target, self.trial) = (lanes, Trial::None);
                self.fallen_held_until = Some(now + REMEMBERED);
            }
            _ if has_fallen => self.add(Trial::Fallen { lanes: self.target, goodput }),
            Trial::Step | Trial::Fallen { .. } if goodput < best * GROWS => {
                // The step did not pay: back to what was enough.
                (self.target, self.trial) = ((self.target / 2).max(1), Trial::None);
                self.step_held_until = Some(now + REMEMBERED);
            }
            // Senders are still finding their pace: it isn't the lanes that raise it.
            _ if best == 0.0 => {}
            Trial::None if !allowed(self.step_held_until) => {}
            _ => self.add(Trial::Step),
        }
    }

    /// Doubles the lanes, for `trial` to be judged.
    fn add(&mut self, trial: Trial) {
        self.trial = if self.target < LANES_MAX { trial } else { Trial::None };
        self.target = (self.target * 2).min(LANES_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the climber against a path whose goodput is `rate(lanes, window)` and that has carried `shown` before, and returns the
    /// targets it went through.
    fn climb_after(shown: f64, windows: usize, rate: impl Fn(usize, usize) -> f64) -> Vec<usize> {
        let mut lanes = FreightLanes::default();
        let (mut now, mut bytes) = (Instant::now(), 0.0);
        lanes.watch(now, true);
        let mut targets = vec![lanes.target()];
        for window in 0..windows {
            let next = lanes.next_tick().unwrap();
            bytes += rate(lanes.target(), window) * (next - now).as_secs_f64();
            now = next;
            lanes.moved(now, bytes as u64, lanes.target(), Duration::from_millis(1), shown);
            targets.push(lanes.target());
        }
        targets
    }

    fn climb(windows: usize, rate: impl Fn(usize) -> f64) -> Vec<usize> {
        climb_after(0.0, windows, |lanes, _| rate(lanes))
    }

    #[test]
    fn lanes_are_added_while_each_stream_is_capped() {
        let targets = climb(12, |lanes| (lanes as f64 * 90e6).min(2.9e9));
        assert_eq!(*targets.last().unwrap(), LANES_MAX);
    }

    #[test]
    fn a_link_that_the_first_lanes_fill_keeps_them() {
        let targets = climb(12, |_| 125e6);
        assert_eq!(*targets.last().unwrap(), FIRST);
        assert!(targets.iter().all(|t| *t <= 2 * FIRST));
    }

    #[test]
    fn senders_that_lose_what_they_had_get_more_lanes_though_no_step_pays() {
        // Each carries 2.5 MB/s once it has lost a few packets, and eight times that before.
        let lossy = |lanes: usize, window: usize| lanes as f64 * if window < 2 { 20e6 } else { 2.5e6 };
        let most = |shown: f64| climb_after(shown, 12, lossy).into_iter().max().unwrap();
        assert_eq!(most(0.0), 4 * FIRST, "half of the best is reached");
        assert_eq!(most(125e6), 8 * FIRST, "small requests have shown more");
        assert_eq!(most(1e9), LANES_MAX);
    }

    #[test]
    fn a_disk_that_is_slower_than_its_cache_gets_no_lanes_for_long() {
        let targets = climb_after(0.0, 12, |_, window| if window < 4 { 1e9 } else { 200e6 });
        assert!(targets.iter().all(|target| *target <= 4 * FIRST), "{targets:?}");
        assert_eq!(*targets.last().unwrap(), FIRST, "{targets:?}");
    }

    #[test]
    fn a_path_that_bulk_fills_as_well_as_small_requests_did_keeps_the_first_lanes() {
        let targets = climb_after(125e6, 12, |_, window| if window < 2 { 125e6 } else { 70e6 });
        assert_eq!(*targets.last().unwrap(), FIRST);
    }

    #[test]
    fn while_senders_find_their_pace_no_lane_is_added() {
        assert_eq!(climb(2, |_| 1e6), [FIRST, FIRST, FIRST], "nothing to compare with yet");
        assert_eq!(climb(3, |_| 1e6).last(), Some(&(2 * FIRST)));
    }

    #[test]
    fn a_step_that_nobody_judged_before_bulk_yielded_is_taken_back() {
        let (mut lanes, mut now, mut bytes) = (FreightLanes::default(), Instant::now(), 0);
        lanes.watch(now, true);
        for _ in 0..9 {
            while lanes.target() == FIRST {
                now = lanes.next_tick().unwrap();
                bytes += 1 << 20;
                lanes.moved(now, bytes, lanes.target(), Duration::from_millis(1), 0.0);
            }
            lanes.yielded();
            assert_eq!(lanes.target(), FIRST);
        }
    }

    #[test]
    fn no_bytes_at_all_add_no_lane() {
        assert_eq!(*climb(20, |_| 0.0).last().unwrap(), FIRST);
    }

    #[test]
    fn idle_lanes_say_nothing_about_goodput() {
        let mut lanes = FreightLanes::default();
        let mut now = Instant::now();
        lanes.watch(now, true);
        for _ in 0..10 {
            now = lanes.next_tick().unwrap();
            lanes.moved(now, 0, 1, Duration::ZERO, 0.0);
        }
        assert_eq!(lanes.target(), FIRST);
    }
}
