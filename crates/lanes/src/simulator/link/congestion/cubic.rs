//! CUBIC (RFC 9438) with HyStart, by delay and by trains of acknowledgements: a sender that goes by loss.

use super::{Acked, INITIAL};
use crate::simulator::wire::{MSS, Nanos};

#[derive(Debug)]
pub(crate) struct Cubic {
    window: f64,
    threshold: f64,
    /// The window before it was cut last, and when that was.
    top: f64,
    cut: Option<Nanos>,
    shortest: Nanos,
    /// The round trip that is under way: where it ends, when it began, until when its acknowledgements were a train, the shortest of
    /// its first ones, and how many came.
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
    /// Segments per second cubed.
    const GROWTH: f64 = 0.4;
    /// Acknowledgements of a round trip that HyStart looks at.
    const SAMPLES: u32 = 8;
    /// A packet that follows the one before within this belongs to a train.
    const TRAIN: Nanos = 2_000_000;

    pub(super) fn window(&self) -> u64 {
        self.window as u64
    }

    pub(super) fn acked(&mut self, acked: Acked) {
        let Acked { now, bytes, rtt, in_flight, .. } = acked;
        self.shortest = self.shortest.min(rtt);
        if acked.delivered_when_sent >= self.round_ends {
            (self.round_ends, self.round_shortest, self.samples) = (acked.delivered, Nanos::MAX, 0);
            (self.round_began, self.train) = (now, now);
        }
        self.round_shortest = self.round_shortest.min(rtt);
        self.samples += 1;
        let mss = MSS as f64;
        // A window that the application doesn't use doesn't grow.
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
            // A train of half a round trip fills the path when the next one follows it.
            let is_long = self.train - self.round_began > self.shortest / 2;
            // As in Linux, below 16 segments it isn't looked for.
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

    pub(super) fn lost(&mut self, now: Nanos, sent: Nanos) {
        // All that is lost of one window cuts it once.
        if self.cut.is_some_and(|cut| sent < cut) && self.threshold.is_finite() {
            return;
        }
        self.top = self.window;
        self.window = (self.window * Self::CUT).max(2.0 * MSS as f64);
        (self.threshold, self.cut) = (self.window, Some(now));
    }

    pub(super) fn timed_out(&mut self) {
        self.threshold = (self.window * Self::CUT).max(2.0 * MSS as f64);
        (self.top, self.window, self.cut) = (self.window, MSS as f64, None);
    }
}
