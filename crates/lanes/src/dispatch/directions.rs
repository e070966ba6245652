//! What moves in each direction, and how much more may.

use std::time::{Duration, Instant};

use super::goodput::{Goodput, Load};
use super::lane::Lane;
use super::limit::Sharing;
use super::origin::OriginState;
use super::yielding::Yielding;
use super::{Action, AttemptState, Direction, Dispatcher, LaneId, Role};

/// One direction, over all origins: what leaves this machine or comes to it shares a path.
#[derive(Debug, Default)]
pub(super) struct DirectionState {
    /// Bytes of small attempts, queued and running.
    pub(super) small: u64,
    /// Bulk attempts, queued and running.
    pub(super) bulk: usize,
    pub(super) goodput: Goodput,
    pub(super) yielding: Yielding,
}

impl DirectionState {
    /// Takes a reading of the bytes moved so far.
    pub(super) fn read(&mut self, now: Instant, bytes: u64) {
        let load = match self.bulk {
            _ if self.yielding.is_yielding() => Load::Held,
            0 => Load::Small,
            _ => Load::Bulk,
        };
        self.goodput.read(now, bytes, load);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.small == 0 && self.bulk == 0
    }
}

impl Dispatcher {
    /// Counts an attempt in the directions that it takes.
    pub(super) fn count(&mut self, attempt: &AttemptState) {
        if attempt.role == Role::Express {
            self.down.small += attempt.size.down;
            self.up.small += attempt.size.up;
            self.origin(attempt.origin).express_up += attempt.size.up;
        } else {
            self.direction(attempt.size.direction()).bulk += 1;
        }
    }

    pub(super) fn discount(&mut self, attempt: &AttemptState) {
        if attempt.role == Role::Express {
            self.down.small -= attempt.size.down;
            self.up.small -= attempt.size.up;
            self.origin(attempt.origin).express_up -= attempt.size.up;
        } else {
            self.direction(attempt.size.direction()).bulk -= 1;
        }
    }

    fn direction(&mut self, direction: Direction) -> &mut DirectionState {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }

    /// The lanes that share a limit, and the longest round trip among them.
    fn sharing(&self, shares: impl Fn(&Lane) -> bool) -> Sharing {
        let lanes = self.lanes.values().filter(|lane| shares(lane));
        lanes.fold(Sharing { lanes: 0, rtt: Duration::ZERO }, |sum, lane| Sharing {
            lanes: sum.lanes + 1,
            rtt: sum.rtt.max(self.origins[lane.origin.0].rtt()),
        })
    }

    /// Decides how much may be on its way to each lane of a role.
    pub(super) fn share_window(&mut self, now: Instant, role: Role) {
        let sharing =
            self.sharing(|lane| lane.role == role && (lane.in_flight > lane.uploads || lane.is_dialling()));
        let said = self.window.decide(now, role, sharing, &self.down.goodput);
        self.actions.extend(said.map(|bytes| Action::Window { role, bytes }));
    }

    /// Decides how much bulk may lie in send buffers and be on its way from us.
    pub(super) fn clamp_uploads(&mut self, now: Instant) {
        let sharing = self.sharing(|lane| lane.uploads > 0);
        let said = self.send_buffer.decide(now, sharing, &self.up.goodput);
        self.actions.extend(said.map(|bytes| Action::SendBuffer { role: Role::Freight, bytes }));
        let said = self.send_buffer.unsent(sharing.lanes, self.up.goodput.rate());
        self.actions.extend(said.map(|bytes| Action::Unsent { bytes }));
    }

    /// Decides how much of small uploads may lie in send buffers and be on its way from us.
    pub(super) fn clamp_small_uploads(&mut self) {
        if self.up.small == 0 {
            return;
        }
        let sharing =
            self.sharing(|lane| lane.role == Role::Express && (lane.in_flight > 0 || lane.is_dialling()));
        let said = self.small_uploads.decide(sharing, &self.up.goodput);
        self.actions.extend(said.map(|bytes| Action::SendBuffer { role: Role::Express, bytes }));
    }

    /// Decides how much bulk may move beside the small requests that are outstanding.
    pub(super) fn yield_bulk(&mut self, now: Instant) {
        let is_stuck = self.small_attempts_are_stuck();
        let rtt = self.origins.iter().map(OriginState::rtt).filter(|rtt| !rtt.is_zero()).min();
        if self.down.small > 0 {
            self.window.small(now);
        }
        // A small download's request goes up, too.
        if self.up.bulk > 0 && self.up.small + self.down.small > 0 && self.send_buffer.small(now) {
            self.clamp_uploads(now);
        }
        for (direction, state) in [(Direction::Down, &mut self.down), (Direction::Up, &mut self.up)] {
            // What is never known to be too slow or too fast isn't slowed down: it could be for as long as small requests come.
            let may_yield = state.bulk > 0 && !is_stuck && state.goodput.can_be_read();
            let outstanding = if may_yield { state.small } else { 0 };
            let rate = state.goodput.rate();
            let said = state.yielding.decide(now, outstanding, rate, rtt.unwrap_or_default());
            if !state.is_idle() {
                state.goodput.begin(now);
            }
            self.actions.extend(said.map(|rate| Action::Yield { direction, rate }));
        }
        if self.down.yielding.is_yielding() || self.up.yielding.is_yielding() {
            self.origins.iter_mut().for_each(|origin| origin.freight.yielded());
        }
    }

    /// Whether small requests of some origin wait, at the ceiling, for a lane that something else holds. Where that is bulk,
    /// slowing it would only prolong the wait.
    fn small_attempts_are_stuck(&self) -> bool {
        let carries =
            |id: &LaneId| self.lanes.get(id).is_some_and(|l| l.role == Role::Express && !l.is_draining());
        let is_stuck = |origin: &OriginState| origin.express_live > 0 && !origin.lanes.iter().any(carries);
        self.lanes.len() >= self.connections_max && self.origins.iter().any(is_stuck)
    }
}
