//! The driver's part of hedging: it watches what it sends, and asks for hedges of slow requests.

use std::sync::Arc;
use std::time::Instant;

use super::Driver;
use crate::addresses::SLOW_FOR;
use crate::dispatch::{Direction, LaneId, Role};
use crate::hedge::budget_left;
use crate::submission::Submission;

impl Driver {
    /// Watches a request that is being sent, if it may be hedged.
    pub(super) fn begin_watching(&mut self, now: Instant, submission: &Submission, lane: LaneId, role: Role) {
        if let (Some(tracker), Some(lane)) = (&submission.tracker, self.lanes.get(&lane)) {
            let expected = submission.request.expected;
            // Until its answer tells, a request of unknown size is compared with small ones on any lane. Alone on a freight lane it would
            // have no comparison.
            let role = if submission.request.is_opener() { Role::Express } else { role };
            self.watch.begin(now, submission.attempt, (lane.origin, role), expected, Arc::clone(tracker));
        }
    }

    pub(super) fn bulk_is_held(&mut self, direction: Direction, is_held: bool) {
        if direction == Direction::Down {
            self.watch.hold_bulk(Instant::now(), is_held);
        }
    }

    /// Asks for hedges of those that are stragglers.
    pub(super) fn look_for_stragglers(&mut self, now: Instant) {
        if self.watch.next_look().is_none_or(|at| at > now) {
            return;
        }
        let most = budget_left(self.shared.counts.all().requests(), self.hedges_asked);
        let is_all = self.dispatcher.attempts() <= 1;
        let stragglers = self.watch.look(now, most, is_all);
        self.hedges_asked += stragglers.len() as u64;
        for lane in stragglers.iter().filter_map(|attempt| self.dispatcher.lane_of(*attempt)) {
            self.avoid(now, lane, SLOW_FOR);
        }
    }
}
