//! BBR's first version, a sender that goes by rate: the most that the path has delivered in ten round trips, times the shortest
//! round trip of ten seconds.

use super::{Acked, INITIAL};
use crate::simulator::wire::{MSS, Nanos};

const LEAST: u64 = 4 * MSS;

#[derive(Debug)]
pub(crate) struct Bbr {
    window: u64,
    phase: Phase,
    shortest: Nanos,
    shortest_at: Nanos,
    /// The best rate of the rounds, the latest last.
    rates: [f64; 10],
    rounds: u64,
    round_ends: u64,
    /// The rate when it last grew by a quarter, and rounds since.
    grown: f64,
    rounds_since: u32,
    /// In `Steady`: which eighth of the cycle, and since when.
    eighth: usize,
    eighth_at: Nanos,
    /// After a loss, for a round, no more is sent than is acknowledged; where that round ends, and the window before.
    conserving: Option<(u64, u64)>,
    conserved_until: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Startup,
    Drain,
    Steady,
    /// The window is let down for a moment to see the shortest round trip, until then.
    Looking(Nanos),
}

impl Default for Bbr {
    fn default() -> Self {
        Self {
            window: INITIAL,
            phase: Phase::Startup,
            shortest: Nanos::MAX,
            shortest_at: 0,
            rates: [0.0; 10],
            rounds: 0,
            round_ends: 0,
            grown: 0.0,
            rounds_since: 0,
            eighth: 2,
            eighth_at: 0,
            conserving: None,
            conserved_until: 0,
        }
    }
}

impl Bbr {
    const STARTUP: f64 = 2.885;
    const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    const SHORTEST_FOR: Nanos = 10_000_000_000;
    const LOOKS_FOR: Nanos = 200_000_000;

    fn rate(&self) -> f64 {
        self.rates.iter().copied().fold(0.0, f64::max)
    }

    fn product(&self) -> f64 {
        match self.shortest {
            Nanos::MAX => INITIAL as f64,
            shortest => self.rate() * shortest as f64 * 1e-9,
        }
    }

    pub(super) fn window(&self) -> u64 {
        self.window
    }

    pub(super) fn pace(&self) -> f64 {
        if self.shortest == Nanos::MAX {
            return f64::INFINITY;
        }
        let first = INITIAL as f64 / (self.shortest.max(1) as f64 * 1e-9);
        let gain = match self.phase {
            Phase::Startup => Self::STARTUP,
            Phase::Drain => 1.0 / Self::STARTUP,
            Phase::Steady => Self::CYCLE[self.eighth],
            Phase::Looking(_) => 1.0,
        };
        // A hundredth less, so that queues go down. At first it never goes slower than the first window did.
        match self.phase {
            Phase::Startup => gain * self.rate().max(first),
            _ => gain * self.rate() * 0.99,
        }
    }

    pub(super) fn acked(&mut self, acked: Acked) {
        let now = acked.now;
        let is_round = acked.delivered_when_sent >= self.round_ends;
        if is_round {
            self.round_ends = acked.delivered;
            self.rounds += 1;
            self.rates[self.rounds as usize % 10] = 0.0;
        }
        if !acked.is_app_limited || acked.rate > self.rate() {
            let best = &mut self.rates[self.rounds as usize % 10];
            *best = best.max(acked.rate);
        }
        let is_old = now > self.shortest_at + Self::SHORTEST_FOR && self.shortest < Nanos::MAX;
        if acked.rtt <= self.shortest || is_old {
            (self.shortest, self.shortest_at) = (acked.rtt, now);
        }
        if is_old && !matches!(self.phase, Phase::Looking(_)) && !acked.is_app_limited {
            self.phase = Phase::Looking(now + Self::LOOKS_FOR);
        }
        match self.phase {
            Phase::Startup if is_round && !acked.is_app_limited => {
                if self.rate() >= self.grown * 1.25 {
                    (self.grown, self.rounds_since) = (self.rate(), 0);
                } else {
                    self.rounds_since += 1;
                }
                if self.rounds_since >= 3 {
                    self.phase = Phase::Drain;
                }
            }
            Phase::Drain if acked.in_flight as f64 <= self.product() => self.steady(now),
            Phase::Steady => self.turn(acked),
            Phase::Looking(until) if now >= until => {
                self.shortest_at = now;
                self.steady(now);
            }
            _ => {}
        }
        if let Some((until, before)) = self.conserving {
            if self.rounds < until {
                self.window = (acked.in_flight + acked.bytes).max(LEAST);
                return;
            }
            self.conserving = None;
            self.conserved_until = self.rounds + 1;
            self.window = self.window.max(before);
        }
        let gain = if self.phase == Phase::Startup { Self::STARTUP } else { 2.0 };
        let aim = ((gain * self.product()) as u64).max(LEAST);
        self.window = match self.phase {
            Phase::Looking(_) => LEAST,
            // It grows by what is acknowledged, and before the path is full never shrinks.
            Phase::Startup => (self.window + acked.bytes).min(aim.max(self.window)),
            _ => (self.window + acked.bytes).min(aim),
        };
    }

    pub(super) fn timed_out(&mut self) {
        self.window = MSS;
    }

    pub(super) fn lost(&mut self) {
        if self.conserving.is_none() && self.rounds >= self.conserved_until {
            self.conserving = Some((self.rounds + 1, self.window));
        }
    }

    fn steady(&mut self, now: Nanos) {
        (self.phase, self.eighth, self.eighth_at) = (Phase::Steady, 2, now);
    }

    fn turn(&mut self, acked: Acked) {
        let is_over = acked.now > self.eighth_at + self.shortest;
        let is_drained = self.eighth == 1 && acked.in_flight as f64 <= self.product();
        if is_over || is_drained {
            (self.eighth, self.eighth_at) = ((self.eighth + 1) % 8, acked.now);
        }
    }
}
