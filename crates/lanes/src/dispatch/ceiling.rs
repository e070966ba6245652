//! Which lanes are dialled, and which given up: all origins together stay under the ceiling.

use std::time::Instant;

use super::lane::{Lane, LaneState};
use super::origin::OriginState;
use super::{Action, Dispatcher, LaneId, OriginId, Role, express_lanes};

impl Dispatcher {
    pub(super) fn dial_missing(&mut self, now: Instant, origin: OriginId, role: Role) {
        // Only an origin that has a lane already leaves slots to others.
        let is_first = self.origins[origin.0].lanes.is_empty();
        let ceiling = if is_first { self.connections_max } else { self.ceiling(role) };
        let hedges = self.waiting_hedges(origin, role).len();
        let state = &mut self.origins[origin.0];
        let anticipated = role == Role::Express && state.anticipated > 0;
        let is_queued = !state.queues.is_empty(role) || hedges > 0;
        if !is_queued && !anticipated {
            return;
        }
        let lanes = || state.lanes.iter().filter_map(|id| self.lanes.get(id)).filter(|l| l.role == role);
        let have = lanes().filter(|l| !l.is_draining()).count();
        let failed = state.failed_lately(role, now);
        // None of those that are open is free for a hedge that waits.
        let for_hedges = hedges.saturating_sub(lanes().filter(|l| l.is_dialling()).count() + failed);
        let have = if have == 0 { 0 } else { have + failed };
        let missing = match role {
            Role::Express => express_lanes::missing(state.rules, have, state.express_wanted()),
            Role::Freight => state.freight_wanted().saturating_sub(have),
        };
        let missing = state.may_dial(now, missing.max(for_hedges));
        for _ in 0..missing {
            if self.has_all_served(now, origin) {
                return;
            }
            // For what is only announced no other origin loses a lane: two of them would take it from each other for ever.
            if self.lanes.len() >= ceiling && !(is_queued && self.close_an_idle_lane(origin)) {
                return;
            }
            let lane = LaneId(self.lanes_made);
            self.lanes_made += 1;
            self.lanes.insert(lane, Lane::dialling(self.rules, origin, role, now));
            self.origin(origin).lanes.push(lane);
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
        let lanes = self.origins[origin.0].lanes.iter().filter_map(|id| self.lanes.get(id));
        let have = lanes.filter(|l| l.role == Role::Freight && !l.is_draining()).count();
        have + self.ceiling(Role::Freight).saturating_sub(self.lanes.len())
    }

    /// Makes room at the ceiling for an origin that has no lane it could use: closes an idle lane of another origin.
    fn close_an_idle_lane(&mut self, origin: OriginId) -> bool {
        let idle = self.lanes.iter().filter(|(_, l)| l.origin != origin && l.is_open() && l.in_flight == 0);
        let Some(id) = idle.map(|(id, _)| *id).min() else { return false };
        self.forget(id);
        self.actions.push_back(Action::Close { lane: id });
        true
    }

    /// At the ceiling, a lane on which something has ended is given up for an origin that waits and has none. An origin's
    /// only lane is given up in turns of [`turn`](super::Rules::turn).
    pub(super) fn give_way(&mut self, now: Instant, id: LaneId) {
        let Some((own, since)) = self.lanes.get(&id).map(|l| (l.origin, l.since)) else { return };
        if self.lanes.len() < self.connections_max || self.waiting_without_lane(own).is_none() {
            return;
        }
        let lanes = &self.origins[own.0].lanes;
        let gives_one = lanes.iter().any(|l| self.lanes.get(l).is_some_and(Lane::is_draining));
        if gives_one || lanes.len() == 1 && now < since + self.rules.turn {
            return;
        }
        self.origins[own.0].gave_way = Some(now);
        if let Some(lane) = self.lanes.get_mut(&id) {
            lane.state = LaneState::Draining;
        }
    }

    /// The origin, other than this one, that has work and no lane: of several the one whose last turn is longest ago.
    pub(super) fn waiting_without_lane(&self, own: OriginId) -> Option<OriginId> {
        let waits = |o: &OriginState| o.lanes.is_empty() && o.express_live + o.freight_live > 0;
        let origins = self.origins.iter().enumerate().filter(|(i, o)| *i != own.0 && waits(o));
        origins.min_by_key(|(_, o)| o.gave_way).map(|(i, _)| OriginId(i))
    }
}

/// So many lanes less a quarter, but at least one and of two or more not all.
pub(super) fn all_but_a_quarter(lanes: usize) -> usize {
    lanes - (lanes / 4).max(usize::from(lanes > 1))
}
