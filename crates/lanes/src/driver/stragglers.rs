//! What the driver has to do with hedging: it watches what it sends, and asks for second requests.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::Driver;
use crate::addresses::SLOW_FOR;
use crate::dispatch::{Direction, LaneId, Role};
use crate::hedge::budget_left;
use crate::job::Job;

impl Driver {
    /// Watches a request that is being sent, if a second one may be sent beside it.
    pub(super) fn begin_watching(&mut self, now: Instant, job: &Job, lane: LaneId, role: Role) {
        if let (Some(pulse), Some(origin)) = (&job.pulse, self.lane_origins.get(&lane)) {
            let expected = job.request.expected;
            self.watch.begin(now, job.work, (*origin, role), expected, Arc::clone(pulse));
        }
    }

    pub(super) fn bulk_is_held(&mut self, direction: Direction, is_held: bool) {
        if direction == Direction::Down {
            self.watch.hold_bulk(Instant::now(), is_held);
        }
    }

    /// Asks for second requests beside those that are stragglers.
    pub(super) fn look_for_stragglers(&mut self, now: Instant) {
        if self.watch.next_look().is_none_or(|at| at > now) {
            return;
        }
        let most = budget_left(self.shared.counts.requests.load(Relaxed), self.hedges_asked);
        let is_all = self.dispatcher.works() <= 1;
        let stragglers = self.watch.look(now, most, is_all);
        self.hedges_asked += stragglers.len() as u64;
        for lane in stragglers.iter().filter_map(|work| self.dispatcher.lane_of(*work)) {
            self.shun(now, lane, SLOW_FOR);
        }
    }
}
