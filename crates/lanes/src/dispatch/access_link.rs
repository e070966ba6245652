//! What all origins share: this machine's own way to the network.
//!
//! Whatever lies beyond it, small requests of one origin stand behind bulk of another there. So it is here that is decided
//! how much bulk moves beside small requests; what the path to each origin carries is its own.

use std::time::{Duration, Instant};

use super::bulk_in_flight::Beside;
use super::path_estimate::{Load, PathEstimate};
use super::yielding::Yielding;

/// How long after small requests more of them are expected.
const SMALL_EXPECTED_FOR: Duration = Duration::from_secs(1);

/// One direction of it.
#[derive(Debug, Default)]
pub(super) struct AccessLink {
    /// Bytes of small attempts, queued and running.
    pub(super) small: u64,
    /// Bulk attempts, queued and running.
    pub(super) bulk: usize,
    pub(super) path: PathEstimate,
    pub(super) yielding: Yielding,
    small_at: Option<Instant>,
}

impl AccessLink {
    /// Takes a reading of the bytes moved so far, while small requests wait for those on their way or not.
    pub(super) fn read(&mut self, now: Instant, bytes: u64, small_wait: bool) {
        self.path.read(now, bytes, Load::of(small_wait, self.bulk > 0, self.yielding.is_yielding()));
    }

    pub(super) fn is_idle(&self) -> bool {
        self.small == 0 && self.bulk == 0
    }

    /// Takes note that small requests are outstanding. Says whether none were expected.
    pub(super) fn small(&mut self, now: Instant) -> bool {
        let expected_small = self.expects_small(now);
        self.small_at = Some(now);
        !expected_small
    }

    fn expects_small(&self, now: Instant) -> bool {
        self.small_at.is_some_and(|at| now.saturating_duration_since(at) < SMALL_EXPECTED_FOR)
    }

    /// What bulk moves beside now.
    pub(super) fn beside(&self, now: Instant) -> Beside {
        Beside { expects_small: self.expects_small(now), allowed: self.yielding.allowed() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_time_to_decide_when_small_requests_come_after_a_pause() {
        let (mut link, now) = (AccessLink::default(), Instant::now());
        assert!(link.small(now));
        assert!(!link.small(now + SMALL_EXPECTED_FOR / 2));
        assert!(!link.small(now + SMALL_EXPECTED_FOR));
        assert!(link.small(now + SMALL_EXPECTED_FOR * 2));
    }
}
