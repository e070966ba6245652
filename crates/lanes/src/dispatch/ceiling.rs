//! Which lanes are dialled, and which given up: all origins together stay under the ceiling.

use std::time::Instant;

use super::ledger::{Account, Lane, LaneState};
use super::{Action, Dispatcher, LaneId, OriginId, Role, express_lanes};

impl Dispatcher {
    pub(super) fn dial_missing(&mut self, now: Instant, origin: OriginId, role: Role) {
        // Only an origin that has a lane already leaves slots to others.
        let is_first = self.ledger.account(origin).lanes.is_empty();
        let ceiling = if is_first { self.connections_max } else { self.ceiling(role) };
        let hedges = self.waiting_hedges(origin, role).len();
        let (account, state) = (self.ledger.account(origin), &mut self.origins[origin.0]);
        let anticipated = role == Role::Express && state.anticipated > 0;
        let is_queued = !account.queues.is_empty(role) || hedges > 0;
        if !is_queued && !anticipated {
            return;
        }
        let lanes = || self.ledger.lanes_of(origin).filter(|(_, lane)| lane.role == role);
        let have = lanes().filter(|(_, lane)| !lane.is_draining()).count();
        let failed = state.failed_lately(role, now);
        // An open lane is not free for a hedge that waits.
        let dialling = lanes().filter(|(_, lane)| lane.is_dialling()).count();
        let for_hedges = hedges.saturating_sub(dialling + failed);
        let have = if have == 0 { 0 } else { have + failed };
        let missing = match role {
            Role::Express => express_lanes::missing(self.rules, have, state.express_wanted(account)),
            Role::Freight => state.freight_wanted(account).saturating_sub(have),
        };
        let missing = state.may_dial(now, missing.max(for_hedges));
        for _ in 0..missing {
            if self.has_all_served(now, origin) {
                return;
            }
            // For what is only announced no other origin loses a lane: two of them would take it from each other for ever.
            if self.ledger.lanes().len() >= ceiling && !(is_queued && self.close_an_idle_lane(origin)) {
                return;
            }
            let lane = self.ledger.dial(now, origin, role);
            self.actions.push_back(Action::Dial { lane, origin, role });
        }
    }

    /// How many lanes there may be before another of the role is dialled: freight never takes the last quarter, so that
    /// express attempts which come later find a slot.
    pub(super) fn ceiling(&self, role: Role) -> usize {
        match role {
            Role::Express => self.connections_max,
            Role::Freight => all_but_a_quarter(self.connections_max),
        }
    }

    /// Returns how many lanes for bulk the origin has or may open beside all that there are.
    pub(super) fn freight_lanes_max(&self, origin: OriginId) -> usize {
        let is_there = |(_, lane): &(LaneId, &Lane)| lane.role == Role::Freight && !lane.is_draining();
        let have = self.ledger.lanes_of(origin).filter(is_there).count();
        have + self.ceiling(Role::Freight).saturating_sub(self.ledger.lanes().len())
    }

    /// Makes room at the ceiling for an origin that has no lane it could use: closes an idle lane of another origin.
    fn close_an_idle_lane(&mut self, origin: OriginId) -> bool {
        let idle = self.ledger.lanes().filter(|(_, lane)| lane.origin != origin && lane.is_idle());
        let Some(id) = idle.map(|(id, _)| id).min() else { return false };
        self.ledger.forget(id);
        self.actions.push_back(Action::Close { lane: id });
        true
    }

    /// At the ceiling, a lane on which something has ended is given up for an origin that waits and has none. An origin's
    /// only lane is given up in turns of [`turn`](super::Rules::turn).
    pub(super) fn give_way(&mut self, now: Instant, id: LaneId) {
        let Some((own, since)) = self.ledger.lane(id).map(|l| (l.origin, l.since)) else { return };
        if self.ledger.lanes().len() < self.connections_max || self.waiting_without_lane(own).is_none() {
            return;
        }
        let lanes = &self.ledger.account(own).lanes;
        let gives_one = self.ledger.lanes_of(own).any(|(_, lane)| lane.is_draining());
        if gives_one || lanes.len() == 1 && now < since + self.rules.turn {
            return;
        }
        self.origins[own.0].gave_way = Some(now);
        if let Some(lane) = self.ledger.lane_mut(id) {
            lane.state = LaneState::Draining;
        }
    }

    /// The origin, other than this one, that has work and no lane: of several the one whose last turn is longest ago.
    pub(super) fn waiting_without_lane(&self, own: OriginId) -> Option<OriginId> {
        let waits = |(origin, account): &(OriginId, &Account)| {
            *origin != own && account.lanes.is_empty() && account.express + account.freight > 0
        };
        let waiting = self.ledger.accounts().filter(waits).map(|(origin, _)| origin);
        waiting.min_by_key(|origin| self.origins[origin.0].gave_way)
    }
}

/// So many lanes less a quarter, but at least one and of two or more not all.
pub(super) fn all_but_a_quarter(lanes: usize) -> usize {
    lanes - (lanes / 4).max(usize::from(lanes > 1))
}
