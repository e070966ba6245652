//! The congestion control of senders, which decides their window and pace. One kind reacts to loss, like CUBIC. The other uses the measured
//! rate, like the first version of BBR.

use crate::simulator::network::{MSS, Nanos};

/// The kind of congestion control that a host's TCP uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CongestionControl {
    Loss,
    Rate,
}

/// The facts about an acknowledgement that congestion control uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckSample {
    pub(crate) now: Nanos,
    pub(crate) bytes: u64,
    pub(crate) rtt: Nanos,
    /// The total of acknowledged bytes, now and at the time when the acknowledged packet was sent.
    pub(crate) delivered: u64,
    pub(crate) delivered_when_sent: u64,
    /// The delivery rate since that packet was sent, in bytes per second.
    pub(crate) rate: f64,
    /// True if the sender had nothing more to send at the time when that packet was sent.
    pub(crate) is_app_limited: bool,
    pub(crate) in_flight: u64,
}

const INITIAL: u64 = 10 * MSS;

#[derive(Debug)]
pub(crate) enum CongestionState {
    Loss(Cubic),
    Rate(Bbr),
}

impl CongestionState {
    pub(crate) fn new(control: CongestionControl) -> Self {
        match control {
            CongestionControl::Loss => Self::Loss(Cubic::default()),
            CongestionControl::Rate => Self::Rate(Bbr::default()),
        }
    }

    /// Returns how many bytes may be in flight.
    pub(crate) fn window(&self) -> u64 {
        match self {
            Self::Loss(cubic) => cubic.window(),
            Self::Rate(bbr) => bbr.window(),
        }
    }

    /// Returns the pace in bytes per second. It is infinite if only the window limits the sender.
    pub(crate) fn pace(&self) -> f64 {
        match self {
            Self::Loss(_) => f64::INFINITY,
            Self::Rate(bbr) => bbr.pace(),
        }
    }

    pub(crate) fn acked(&mut self, acked: AckSample) {
        match self {
            Self::Loss(cubic) => cubic.acked(acked),
            Self::Rate(bbr) => bbr.acked(acked),
        }
    }

    /// Reacts to the loss of a packet that was sent at `sent`.
    pub(crate) fn lost(&mut self, now: Nanos, sent: Nanos) {
        match self {
            Self::Loss(cubic) => cubic.lost(now, sent),
            Self::Rate(bbr) => bbr.lost(),
        }
    }

    /// Reacts to a timeout, after which all packets in flight count as lost.
    pub(crate) fn timed_out(&mut self) {
        match self {
            Self::Loss(cubic) => cubic.timed_out(),
            Self::Rate(bbr) => bbr.timed_out(),
        }
    }
}

// The first version of BBR, a rate-based sender. Its window is the product of the highest delivery rate in ten round trips and the shortest
// round trip in ten seconds, times a gain.

const LEAST: u64 = 4 * MSS;

#[derive(Debug)]
pub(crate) struct Bbr {
    window: u64,
    phase: Phase,
    shortest: Nanos,
    shortest_at: Nanos,
    /// The best rate of each of the last ten rounds. Round n is at index n % 10.
    rates: [f64; 10],
    rounds: u64,
    round_ends: u64,
    /// The rate at the time when it last grew by a quarter, and the number of rounds since then.
    grown: f64,
    rounds_since: u32,
    /// In the phase `Steady`, the present eighth of the gain cycle, and its start.
    eighth: usize,
    eighth_at: Nanos,
    /// For one round after a loss, the sender sends only the number of bytes that are acknowledged. The two values are the end of that
    /// round, and the window before the round.
    conserving: Option<(u64, u64)>,
    conserved_until: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Startup,
    Drain,
    Steady,
    /// The window is minimal until this time, to measure the shortest round trip without a queue.
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

    fn window(&self) -> u64 {
        self.window
    }

    fn pace(&self) -> f64 {
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
        // The pace is a hundredth below the rate, so that queues become shorter. In startup, the pace is at least the rate of the initial
        // window.
        match self.phase {
            Phase::Startup => gain * self.rate().max(first),
            _ => gain * self.rate() * 0.99,
        }
    }

    fn acked(&mut self, acked: AckSample) {
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
            // In startup the window grows by the acknowledged bytes, and never becomes smaller.
            Phase::Startup => (self.window + acked.bytes).min(aim.max(self.window)),
            _ => (self.window + acked.bytes).min(aim),
        };
    }

    fn timed_out(&mut self) {
        self.window = MSS;
    }

    fn lost(&mut self) {
        if self.conserving.is_none() && self.rounds >= self.conserved_until {
            self.conserving = Some((self.rounds + 1, self.window));
        }
    }

    fn steady(&mut self, now: Nanos) {
        (self.phase, self.eighth, self.eighth_at) = (Phase::Steady, 2, now);
    }

    fn turn(&mut self, acked: AckSample) {
        let is_over = acked.now > self.eighth_at + self.shortest;
        let is_drained = self.eighth == 1 && acked.in_flight as f64 <= self.product();
        if is_over || is_drained {
            (self.eighth, self.eighth_at) = ((self.eighth + 1) % 8, acked.now);
        }
    }
}

// CUBIC (RFC 9438), a loss-based sender. HyStart can end its slow start before a loss. It does so when the round trips of a round have
// become longer, or when a train of acknowledgements lasts more than half a round trip.

#[derive(Debug)]
pub(crate) struct Cubic {
    window: f64,
    threshold: f64,
    /// The window before its last reduction, and the time of the reduction.
    top: f64,
    cut: Option<Nanos>,
    shortest: Nanos,
    /// The present round: the position that ends it, its start, the end of its train of acknowledgements, its shortest round trip, and its
    /// number of samples.
    round_ends: u64,
    round_began: Nanos,
    train: Nanos,
    round_shortest: Nanos,
    samples: u32,
}

impl Default for Cubic {
    fn default() -> Self {
        let window = INITIAL as f64;
        Self {
            window,
            threshold: f64::INFINITY,
            top: window,
            cut: None,
            shortest: Nanos::MAX,
            round_ends: 0,
            round_began: 0,
            train: 0,
            round_shortest: Nanos::MAX,
            samples: 0,
        }
    }
}

impl Cubic {
    const CUT: f64 = 0.7;
    /// The growth of the window, in segments per second cubed.
    const GROWTH: f64 = 0.4;
    /// The number of acknowledgements in each round whose delay HyStart uses.
    const SAMPLES: u32 = 8;
    /// An acknowledgement that comes within this time after the previous one belongs to the same train.
    const TRAIN: Nanos = 2_000_000;

    fn window(&self) -> u64 {
        self.window as u64
    }

    fn acked(&mut self, acked: AckSample) {
        let AckSample { now, bytes, rtt, in_flight, .. } = acked;
        self.shortest = self.shortest.min(rtt);
        if acked.delivered_when_sent >= self.round_ends {
            (self.round_ends, self.round_shortest, self.samples) = (acked.delivered, Nanos::MAX, 0);
            (self.round_began, self.train) = (now, now);
        }
        self.round_shortest = self.round_shortest.min(rtt);
        self.samples += 1;
        let mss = MSS as f64;
        // The window doesn't grow if the application uses less than half of it.
        if ((in_flight + bytes) as f64) < self.window / 2.0 {
            return;
        }
        if self.window < self.threshold {
            self.window += bytes as f64;
            let longer = (self.shortest / 8).clamp(4_000_000, 16_000_000);
            let is_late = self.samples == Self::SAMPLES && self.round_shortest > self.shortest + longer;
            if now <= self.train + Self::TRAIN {
                self.train = now;
            }
            // If a train of acknowledgements lasts half a round trip, the doubled window of the next round fills the path. So slow start
            // ends here.
            let is_long = self.train - self.round_began > self.shortest / 2;
            // As in Linux, slow start ends like this only with a window of at least 16 segments.
            if (is_late || is_long) && self.window >= 16.0 * mss {
                self.threshold = self.window;
                (self.top, self.cut) = (self.window, Some(now));
            }
            return;
        }
        let since = (now - *self.cut.get_or_insert(now)) as f64 * 1e-9 + rtt as f64 * 1e-9;
        let back = ((self.top * (1.0 - Self::CUT)) / mss / Self::GROWTH).cbrt();
        let cubic = self.top + Self::GROWTH * (since - back).powi(3) * mss;
        let reno = self.top * Self::CUT
            + 3.0 * (1.0 - Self::CUT) / (1.0 + Self::CUT) * mss * since / (rtt as f64 * 1e-9);
        let aim = cubic.max(reno).min(1.5 * self.window);
        if aim > self.window {
            self.window += (aim - self.window) * bytes as f64 / self.window;
        }
    }

    fn lost(&mut self, now: Nanos, sent: Nanos) {
        // Several losses in one window reduce it only once.
        if self.cut.is_some_and(|cut| sent < cut) && self.threshold.is_finite() {
            return;
        }
        self.top = self.window;
        self.window = (self.window * Self::CUT).max(2.0 * MSS as f64);
        (self.threshold, self.cut) = (self.window, Some(now));
    }

    fn timed_out(&mut self) {
        self.threshold = (self.window * Self::CUT).max(2.0 * MSS as f64);
        (self.top, self.window, self.cut) = (self.window, MSS as f64, None);
    }
}
