//! Which waiting attempt goes on which lane.

use std::time::Instant;

use super::ceiling::all_but_a_quarter;
use super::{Action, AttemptId, Direction, Dispatcher, LaneId, OriginId, Role};

impl Dispatcher {
    pub(super) fn send_queued(&mut self, now: Instant, origin: OriginId, role: Role) {
        if self.ledger.account(origin).queues.is_empty(role) {
            return;
        }
        let share = self.share(now, origin, role);
        loop {
            let (account, state) = (self.ledger.account(origin), &self.origins[origin.0]);
            let may_go = |direction: Direction| match role {
                Role::Express => state.has_room(account, direction),
                Role::Freight => self.links[direction as usize].bulk_may_begin(now),
            };
            let Some((direction, id)) = account.queues.front_that(role, may_go) else { return };
            let Some(weight) = self.ledger.attempt(id).map(|w| w.weight) else {
                self.ledger.account_mut(origin).queues.pop_of(role, direction);
                continue;
            };
            let Some(lane) = self.pick(now, origin, role, weight, share, None) else { return };
            self.ledger.account_mut(origin).queues.pop_of(role, direction);
            self.put_on(now, id, lane, role);
            self.actions.push_back(Action::Send { attempt: id, lane, role });
        }
    }

    /// Takes note that an attempt goes on a lane.
    pub(super) fn put_on(&mut self, now: Instant, id: AttemptId, lane_id: LaneId, role: Role) {
        let Some(attempt) = self.ledger.attempt(id) else { return };
        let origin = attempt.origin;
        let bytes = self.origins[origin.0].likely_bytes(attempt);
        self.ledger.put_on(now, id, lane_id, role, bytes);
        if role == Role::Freight {
            self.origins[origin.0].freight_sent = Some(now);
        }
    }

    /// The least loaded lane that may take an attempt of this weight, leaving one out and those at its address to the last.
    pub(super) fn pick(
        &self,
        now: Instant,
        origin: OriginId,
        role: Role,
        weight: u64,
        share: Option<u64>,
        but: Option<LaneId>,
    ) -> Option<LaneId> {
        let may_borrow = (self.ledger.lanes().len() >= self.ceiling(role)
            || self.has_all_served(now, origin))
            && (role == Role::Express || self.has_lanes_for_bulk(origin));
        let avoided = but.and_then(|lane| self.ledger.lane(lane)).and_then(|lane| lane.address);
        let mut best: Option<((bool, bool, u64, bool), LaneId)> = None;
        for (id, lane) in self.ledger.lanes_of(origin).filter(|(id, _)| Some(*id) != but) {
            let own = lane.role == role;
            // A lane of the other role is lent only where no more can be dialled, and only while it is idle.
            if !(own || may_borrow && lane.in_flight == 0) || !lane.can_take(role, weight, share) {
                continue;
            }
            let key = (avoided.is_some() && lane.address == avoided, !own, lane.weight, !lane.has_answered);
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, id));
            }
        }
        best.map(|(_, id)| id)
    }

    /// Whether freight may have another of the origin's lanes: some are left for express attempts, if there is more than one.
    fn has_lanes_for_bulk(&self, origin: OriginId) -> bool {
        let freight = self.ledger.lanes_of(origin).filter(|(_, lane)| lane.role == Role::Freight).count();
        freight < all_but_a_quarter(self.ledger.account(origin).lanes.len())
    }

    /// While lanes of the same burst are still being dialled, how much one open lane may take of the queue: its fair
    /// share, so that the first to open doesn't swallow what the others were opened for.
    fn share(&self, now: Instant, origin: OriginId, role: Role) -> Option<u64> {
        let state = &self.origins[origin.0];
        let timeout = state.sibling_wait();
        let of_role = || self.ledger.lanes_of(origin).map(|(_, lane)| lane).filter(|lane| lane.role == role);
        let young = of_role().filter(|l| l.is_dialling() && now < l.since + timeout).count() as u64;
        if young == 0 || role == Role::Freight {
            return None;
        }
        let open = of_role().filter(|l| l.is_open()).count() as u64;
        // Of what goes at once: what waits after that finds all of them open.
        Some(self.ledger.account(origin).express_weight.min(state.at_once()).div_ceil((open + young).max(1)))
    }

    /// Whether freight has waited long enough at the ceiling, where it can't dial a lane of its own. It has one
    /// turn then: behind a long queue of bulk, express would wait for its end.
    pub(super) fn freight_is_overdue(&self, now: Instant, origin: OriginId) -> bool {
        let state = &self.origins[origin.0];
        let Some((_, front)) = self.ledger.account(origin).queues.front(Role::Freight) else { return false };
        let since = self
            .ledger
            .attempt(front)
            .map(|w| state.freight_sent.map_or(w.submitted, |s| s.max(w.submitted)));
        let waited = since.map(|since| now.saturating_duration_since(since));
        let is_full =
            self.ledger.lanes().len() >= self.ceiling(Role::Freight) || self.has_all_served(now, origin);
        is_full && waited.is_some_and(|w| w >= self.rules.turn)
    }
}
