//! What the limits on what is on its way have in common.

use std::time::Duration;

/// How long after small requests more of them are expected.
pub(super) const SMALL_EXPECTED_FOR: Duration = Duration::from_secs(5);

/// A server nearer than this is in the same house: there is no queue to speak of, and a round trip is not the network's.
pub(super) const NEARBY: Duration = Duration::from_millis(1);

/// Who shares a limit, and over which path as far as is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharing {
    pub(super) lanes: usize,
    /// The longest round trip of those lanes.
    pub(super) rtt: Duration,
}

/// The limit that is in force for each lane, in bytes; nothing where it is left to TCP.
#[derive(Debug, Default)]
pub(super) struct Applied(Option<u32>);

impl Applied {
    pub(super) fn is_held(&self) -> bool {
        self.0.is_some()
    }

    /// The change to make where this is wanted: `Some` when it differs by more than one in `one_in` from what is in force.
    /// `Some(None)` leaves it to TCP again.
    pub(super) fn update(&mut self, wanted: Option<u32>, one_in: u32) -> Option<Option<u32>> {
        let Some(bytes) = wanted else { return self.0.take().map(|_| None) };
        if self.0.is_some_and(|applied| applied.abs_diff(bytes) <= applied / one_in) {
            return None;
        }
        self.0 = Some(bytes);
        Some(Some(bytes))
    }
}
