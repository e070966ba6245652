//! Whether what holds bulk back strangles it.
//!
//! What may be on its way is reckoned from the path's rate and round trip. Where the round trip is longer than the
//! shortest that was ever seen, because of a radio link, somebody else's queue or another route, bulk becomes slower by
//! it, then less is let in, and so on. So bulk that becomes slower while it is held is left to TCP for a while.

use std::time::{Duration, Instant};

use super::path_model::PathEstimate;
use super::rules::Rules;

/// The memory of one thing that holds bulk.
#[derive(Debug, Default)]
pub(super) struct Strangling {
    rules: &'static Rules,
    /// The last reading that was looked at, and how many lanes there were.
    read: Option<(Instant, usize)>,
    /// What bulk moved at best in two readings on end, in bytes a second, and what in the last one: what has gathered while
    /// it was held back comes at once.
    best: f64,
    last: f64,
    slow: u32,
    lifted_until: Option<Instant>,
    /// For how long it was left to TCP the last time.
    lifted: Duration,
}

impl Strangling {
    pub(super) fn by(rules: &'static Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Whether bulk over so many lanes may be held, having been so or not.
    pub(super) fn may_hold(
        &mut self,
        now: Instant,
        is_held: bool,
        lanes: usize,
        path: &PathEstimate,
    ) -> bool {
        let is_new = |at: Instant| self.read.is_none_or(|(last, _)| last != at);
        if let Some((at, rate)) = path.bulk_reading().filter(|(at, _)| is_new(*at)) {
            // Towards its end bulk is slower because less of it is left.
            let are_fewer = self.read.is_some_and(|(_, before)| lanes < before);
            self.read = Some((at, lanes));
            self.best = self.best.max(rate.min(self.last));
            self.last = rate;
            self.slow =
                if is_held && !are_fewer && rate * self.rules.growth < self.best { self.slow + 1 } else { 0 };
        }
        // When small requests have ended, bulk needs some tenths to find its pace.
        if self.rules.reading_min * self.slow >= self.rules.strangled_after {
            (self.slow, self.best) = (0, 0.0);
            // Each time for twice as long, unless it bore being held for that long.
            let is_again = self.lifted_until.is_some_and(|until| now < until + self.lifted * 2);
            self.lifted = if is_again { self.lifted.saturating_mul(2) } else { self.rules.remembered };
            self.lifted_until = now.checked_add(self.lifted);
        }
        self.lifted_until.is_none_or(|until| now >= until)
    }
}
