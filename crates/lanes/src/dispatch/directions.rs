//! What moves in each direction, and how much more may.

use std::time::{Duration, Instant};

use super::bulk_in_flight::{BulkInFlight, Sharing};
use super::in_flight::{Shown, Shows};
use super::lane::Lane;
use super::origin::OriginState;
use super::path_estimate::{Load, PathEstimate};
use super::yielding::Yielding;
use super::{Action, AttemptId, AttemptState, Direction, Dispatcher, LaneId, OriginId, Role};

/// One direction, over all origins: what leaves this machine or comes to it shares a path.
#[derive(Debug)]
pub(super) struct DirectionState {
    /// Bytes of small attempts, queued and running.
    pub(super) small: u64,
    /// Bulk attempts, queued and running.
    pub(super) bulk: usize,
    pub(super) path: PathEstimate,
    pub(super) yielding: Yielding,
    pub(super) in_flight: BulkInFlight,
}

impl DirectionState {
    pub(super) fn new(in_flight: BulkInFlight) -> Self {
        Self { small: 0, bulk: 0, path: PathEstimate::default(), yielding: Yielding::default(), in_flight }
    }

    /// Takes a reading of the bytes moved so far, while small requests wait for those on their way or not.
    pub(super) fn read(&mut self, now: Instant, bytes: u64, small_wait: bool) {
        let (has_bulk, is_held) = (self.bulk > 0, self.yielding.is_yielding());
        let fills = small_wait || has_bulk && !is_held;
        self.path.read(now, bytes, Load { fills, has_bulk: has_bulk && !is_held, is_held });
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

    /// Decides how much bulk may be on its way to us.
    pub(super) fn clamp_downloads(&mut self, now: Instant) {
        let carries = |lane: &Lane| lane.in_flight > lane.uploads || lane.is_dialling();
        let sharing = self.sharing(|lane| lane.role == Role::Freight && carries(lane));
        let DirectionState { path, yielding, in_flight, .. } = &mut self.down;
        let said = in_flight.decide(now, sharing, path, yielding.allowed());
        self.actions.extend(said.map(|bytes| Action::Window { bytes }));
    }

    /// Decides how much bulk may lie in send buffers and be on its way from us.
    pub(super) fn clamp_uploads(&mut self, now: Instant) {
        let sharing = self.sharing(|lane| lane.uploads > 0);
        let DirectionState { path, yielding, in_flight, .. } = &mut self.up;
        let said = in_flight.decide(now, sharing, path, yielding.allowed());
        self.actions.extend(said.map(|bytes| Action::SendBuffer { bytes }));
        let said = in_flight.unsent(sharing.lanes, path.rate());
        self.actions.extend(said.map(|bytes| Action::Unsent { bytes }));
    }

    /// Takes a reading of the bytes moved so far; nothing of those that went where the system doesn't tell.
    pub(super) fn read_directions(&mut self, now: Instant, down: u64, up: Option<u64>) {
        let small_wait = self.origins.iter().any(|origin| !origin.express_queue.is_empty());
        let most_go_up = self.up.small > self.down.small;
        self.down.read(now, down, small_wait && !most_go_up);
        match up {
            Some(up) => self.up.read(now, up, small_wait && most_go_up),
            None => self.up.path.cannot_be_read(),
        }
        let shows = Shows { down: Shown::by(&self.down.path), up: Shown::by(&self.up.path) };
        self.origins.iter_mut().for_each(|origin| origin.in_flight.shows = shows);
    }

    /// Whether bulk that waits may go, as far as small requests of its direction are concerned.
    pub(super) fn bulk_may_begin(&mut self, now: Instant, attempt: AttemptId) -> bool {
        let direction = self.attempts.get(&attempt).map(|attempt| attempt.size.direction());
        direction.is_none_or(|direction| self.direction(direction).yielding.may_begin(now))
    }

    /// Decides how much bulk may move beside the small requests that are outstanding.
    pub(super) fn yield_bulk(&mut self, now: Instant) {
        let is_stuck = self.small_attempts_are_stuck();
        let rtt = self.origins.iter().map(OriginState::rtt).filter(|rtt| !rtt.is_zero()).min();
        let small = self.up.small + self.down.small > 0;
        if self.down.small > 0 && self.down.in_flight.small(now) {
            self.clamp_downloads(now);
        }
        // A small download's request goes up, too.
        if self.up.bulk > 0 && small && self.up.in_flight.small(now) {
            self.clamp_uploads(now);
        }
        let mut is_let_go = false;
        for (direction, state) in [(Direction::Down, &mut self.down), (Direction::Up, &mut self.up)] {
            // What is never known to be too slow or too fast isn't slowed down: it could be for as long as small requests come.
            let may_yield = state.bulk > 0 && !is_stuck && state.path.can_be_read();
            let outstanding = if may_yield { state.small } else { 0 };
            let known = (state.path.rate(), state.path.is_full_of_bulk());
            let said = state.yielding.decide(now, outstanding, known, rtt.unwrap_or_default());
            if !state.is_idle() {
                state.path.begin(now);
            }
            is_let_go |= said == Some(None);
            self.actions.extend(said.map(|rate| Action::Yield { direction, rate }));
        }
        if is_let_go {
            (0..self.origins.len()).for_each(|origin| self.schedule(now, OriginId(origin)));
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
