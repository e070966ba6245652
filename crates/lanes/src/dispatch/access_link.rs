//! What all origins share: this machine's own way to the network.
//!
//! Whatever lies beyond it, small requests of one origin stand behind bulk of another there. So it is here that is decided
//! how much bulk moves beside small requests; what the path to each origin carries is its own.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::bulk_in_flight::Beside;
use super::path_model::{Load, PathEstimate};
use super::rules::Rules;
use super::yielding::Yielding;

/// One direction of it.
#[derive(Debug, Default)]
pub(super) struct AccessLink {
    rules: &'static Rules,
    pub(super) path: PathEstimate,
    pub(super) yielding: Yielding,
    small_at: Option<Instant>,
    left_over: LeftOver,
}

impl AccessLink {
    pub(super) fn by(rules: &'static Rules) -> Self {
        let (path, yielding) = (PathEstimate::by(rules), Yielding::by(rules));
        Self { rules, path, yielding, ..Self::default() }
    }

    /// Takes a reading of the bytes moved so far, while small requests wait for those on their way or not, and any bulk is under way or not.
    pub(super) fn read(&mut self, now: Instant, bytes: u64, small_wait: bool, has_bulk: bool) {
        let is_held = self.yielding.is_yielding();
        let is_new = self.path.read(now, bytes, Load::of(small_wait, has_bulk, is_held));
        if !is_held {
            self.left_over = LeftOver::default();
        } else if is_new {
            self.left_over.read(now, self.rules, &self.path);
        }
    }

    /// Decides what bulk may move beside so many bytes of small requests: `Some` when that differs from what was said last.
    pub(super) fn decide(&mut self, now: Instant, outstanding: u64, rtt: Duration) -> Option<Option<u64>> {
        if self.left_over.has_ended(now) {
            // It was none of what bulk waits for: small requests show anew what they need, and then bulk's share grows again.
            self.left_over = LeftOver::default();
            self.yielding.begin_anew(now);
        }
        let known = (self.path.rate(), self.path.is_full_of_bulk());
        self.yielding.decide(now, outstanding, known, self.left_over.rate(), rtt)
    }

    /// Whether bulk that waits may go, as far as small requests are concerned.
    pub(super) fn bulk_may_begin(&self, now: Instant) -> bool {
        self.left_over.found.is_some() || self.yielding.may_begin(now)
    }

    /// Returns whether bulk is held to less than small requests leave of the link.
    pub(super) fn holds_bulk(&self) -> bool {
        self.yielding.is_yielding() && self.left_over.found.is_none()
    }

    /// Takes note that small requests are outstanding. Says whether none were expected.
    pub(super) fn small(&mut self, now: Instant) -> bool {
        let expected_small = self.expects_small(now);
        self.small_at = Some(now);
        !expected_small
    }

    /// For a turn after small requests more of them are expected.
    fn expects_small(&self, now: Instant) -> bool {
        self.small_at.is_some_and(|at| now.saturating_duration_since(at) < self.rules.small_expected_for)
    }

    /// What bulk moves beside now.
    pub(super) fn beside(&self, now: Instant) -> Beside {
        Beside { expects_small: self.expects_small(now), allowed: self.yielding.allowed() }
    }
}

/// What small requests leave of the link while bulk yields to them.
#[derive(Debug, Default)]
struct LeftOver {
    /// What they moved, in bytes a second, as it was read lately, the last first.
    rates: VecDeque<f64>,
    /// What they don't need, in bytes a second, and until when that is bulk's.
    found: Option<(f64, Instant)>,
}

impl LeftOver {
    fn read(&mut self, now: Instant, rules: &Rules, path: &PathEstimate) {
        if self.found.is_some() {
            return;
        }
        let latest = path.latest();
        self.rates.push_front(latest);
        self.rates.truncate(2 * rules.readings + 1);
        let before = self.rates.get(2 * rules.readings);
        let (Some(before), Some(carries)) = (before, path.rate().filter(|_| path.is_full_of_bulk())) else {
            return;
        };
        // Room is left for them to grow.
        let need = latest * rules.growth;
        if latest <= before * rules.growth && need < carries {
            self.found = Some((carries - need, now + rules.remembered));
        }
    }

    fn rate(&self) -> Option<f64> {
        self.found.map(|(rate, _)| rate)
    }

    fn has_ended(&self, now: Instant) -> bool {
        self.found.is_some_and(|(_, until)| now >= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_time_to_decide_when_small_requests_come_after_a_pause() {
        let (mut link, now) = (AccessLink::default(), Instant::now());
        assert!(link.small(now));
        assert!(!link.small(now + Rules::CHOSEN.small_expected_for / 2));
        assert!(!link.small(now + Rules::CHOSEN.small_expected_for));
        assert!(link.small(now + Rules::CHOSEN.small_expected_for * 2));
    }
}
