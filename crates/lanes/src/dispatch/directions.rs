//! What moves in each direction, and how much more may.

use std::time::Instant;

use super::access_link::AccessLink;
use super::bulk_in_flight::{BulkInFlight, Sharing};
use super::event::Flow;
use super::freight_lanes::Reading;
use super::in_flight::Shown;
use super::lane::Lane;
use super::origin::OriginState;
use super::path_estimate::{Load, PathEstimate};
use super::rules::Rules;
use super::{Action, AttemptState, Direction, Dispatcher, LaneId, OriginId, Role};

/// One direction of the path to an origin.
#[derive(Debug)]
pub(super) struct DirectionState {
    /// Bytes of small attempts, queued and running.
    pub(super) small: u64,
    /// Bulk attempts, queued and running.
    pub(super) bulk: usize,
    /// Bytes moved so far; nothing where that isn't known.
    moved: Option<u64>,
    pub(super) path: PathEstimate,
    pub(super) in_flight: BulkInFlight,
}

impl DirectionState {
    pub(super) fn by(rules: &'static Rules) -> Self {
        let (path, in_flight) = (PathEstimate::by(rules), BulkInFlight::by(rules));
        Self { small: 0, bulk: 0, moved: None, path, in_flight }
    }

    /// What the path has shown.
    pub(super) fn shown(&self) -> Shown {
        Shown { rate: self.path.rate().unwrap_or_default(), is_full: self.path.is_full() }
    }
}

impl Dispatcher {
    /// Counts an attempt in the directions that it takes.
    pub(super) fn count(&mut self, attempt: &AttemptState) {
        for (direction, bytes) in attempt.small_bytes(self.rules) {
            self.link(direction).small += bytes;
            self.origin(attempt.origin).direction(direction).small += bytes;
        }
        if attempt.role == Role::Freight {
            let direction = attempt.size.direction(self.rules);
            self.link(direction).bulk += 1;
            self.origin(attempt.origin).direction(direction).bulk += 1;
        }
    }

    pub(super) fn discount(&mut self, attempt: &AttemptState) {
        for (direction, bytes) in attempt.small_bytes(self.rules) {
            self.link(direction).small -= bytes;
            self.origin(attempt.origin).direction(direction).small -= bytes;
        }
        if attempt.role == Role::Freight {
            let direction = attempt.size.direction(self.rules);
            self.link(direction).bulk -= 1;
            self.origin(attempt.origin).direction(direction).bulk -= 1;
        }
    }

    pub(super) fn link(&mut self, direction: Direction) -> &mut AccessLink {
        &mut self.links[direction as usize]
    }

    /// Takes note of the bytes that an origin's lanes have moved so far; nothing of those that went up where the system doesn't tell.
    pub(super) fn moved(
        &mut self,
        now: Instant,
        id: OriginId,
        (down, up): (u64, Option<u64>),
        flow: Option<Flow>,
    ) {
        let (busy, held) =
            (self.freight_busy(id), Direction::BOTH.map(|to| self.link(to).yielding.is_yielding()));
        let origin = self.origin(id);
        for (direction, bytes) in [(Direction::Down, Some(down)), (Direction::Up, up)] {
            let small_wait = origin.queues.wait(Role::Express, direction);
            let state = origin.direction(direction);
            state.moved = bytes;
            match bytes {
                Some(bytes) => {
                    let load = Load::of(small_wait, state.bulk > 0 && busy > 0, held[direction as usize]);
                    state.path.read(now, bytes, load);
                }
                None => state.path.cannot_be_read(),
            }
        }
        let mut shown: f64 = 0.0;
        for direction in Direction::BOTH {
            let state = origin.direction(direction);
            let rate = state.path.rate().filter(|_| state.bulk > 0);
            shown = shown.max(rate.unwrap_or_default());
        }
        let bytes = down + up.unwrap_or_default();
        let (rtt, covering) = (origin.path(), origin.covering());
        let is_full = origin.freight.moved(now, Reading { bytes, busy, covering, rtt, flow, shown });
        if is_full && (origin.down.bulk > 0) != (origin.up.bulk > 0) {
            let direction = if origin.down.bulk > 0 { Direction::Down } else { Direction::Up };
            origin.direction(direction).path.filled();
            self.link(direction).path.filled();
        }
    }

    /// Takes a reading of what has moved over all origins.
    pub(super) fn read_links(&mut self, now: Instant) {
        for direction in Direction::BOTH {
            let small_wait = self.origins.iter().any(|origin| origin.queues.wait(Role::Express, direction));
            let has_bulk = (0..self.origins.len()).any(|id| self.freight_busy(OriginId(id)) > 0);
            let moved = self.origins.iter_mut().map(|origin| origin.direction(direction).moved);
            let bytes = moved.sum::<Option<u64>>();
            match bytes {
                Some(bytes) => self.link(direction).read(now, bytes, small_wait, has_bulk),
                None => self.link(direction).path.cannot_be_read(),
            }
        }
    }

    /// The lanes of an origin that share a limit, and the round trip.
    fn sharing(&self, origin: &OriginState, shares: impl Fn(&Lane) -> bool) -> Sharing {
        let lanes = origin.lanes.iter().filter_map(|id| self.lanes.get(id));
        Sharing { lanes: lanes.filter(|lane| shares(lane)).count(), rtt: origin.rtt() }
    }

    /// Decides how much bulk may be on its way to us.
    pub(super) fn clamp_downloads(&mut self, now: Instant) {
        let carries = |lane: &Lane| lane.in_flight > lane.uploads || lane.is_dialling();
        let beside = self.link(Direction::Down).beside(now);
        for origin in (0..self.origins.len()).map(OriginId) {
            let sharing =
                self.sharing(&self.origins[origin.0], |lane| lane.role == Role::Freight && carries(lane));
            let DirectionState { path, in_flight, .. } = &mut self.origins[origin.0].down;
            let said = in_flight.decide(now, Direction::Down, sharing, path, beside);
            self.actions.extend(said.map(|bytes| Action::Window { origin, bytes }));
        }
    }

    /// Decides how much bulk may lie in send buffers and be on its way from us.
    pub(super) fn clamp_uploads(&mut self, now: Instant) {
        let beside = self.link(Direction::Up).beside(now);
        for origin in (0..self.origins.len()).map(OriginId) {
            let sharing = self.sharing(&self.origins[origin.0], |lane| lane.uploads > 0);
            let DirectionState { path, in_flight, .. } = &mut self.origins[origin.0].up;
            let said = in_flight.decide(now, Direction::Up, sharing, path, beside);
            self.actions.extend(said.map(|bytes| Action::SendBuffer { origin, bytes }));
            let said = in_flight.pace(sharing.lanes, path, beside);
            self.actions.extend(said.map(|rate| Action::Pace { origin, rate }));
            let said = in_flight.unsent(sharing.lanes, path.rate());
            self.actions.extend(said.map(|bytes| Action::Unsent { origin, bytes }));
        }
    }

    /// Decides how much bulk may move beside the small requests that are outstanding.
    pub(super) fn yield_bulk(&mut self, now: Instant) {
        let small = self.links.iter().any(|link| link.small > 0);
        if self.link(Direction::Down).small > 0 && self.link(Direction::Down).small(now) {
            self.clamp_downloads(now);
        }
        // A small download's request goes up, too.
        if small && self.link(Direction::Up).bulk > 0 && self.link(Direction::Up).small(now) {
            self.clamp_uploads(now);
        }
        let is_stuck = self.small_attempts_are_stuck();
        let rtt = self.origins.iter().map(OriginState::rtt).filter(|rtt| !rtt.is_zero()).min();
        let mut is_let_go = false;
        for direction in Direction::BOTH {
            // What is never known to be too slow or too fast isn't slowed down: it could be for as long as small requests come.
            let link = self.link(direction);
            let may_yield = link.bulk > 0 && link.small > 0 && !is_stuck && link.path.can_be_read();
            let outstanding = if may_yield { self.small_that_moves(now, direction) } else { 0 };
            let link = self.link(direction);
            let said = link.decide(now, outstanding, rtt.unwrap_or_default());
            if !link.is_idle() {
                link.path.begin(now);
            }
            is_let_go |= said == Some(None);
            self.actions.extend(said.map(|rate| Action::Yield { direction, rate }));
        }
        if is_let_go {
            (0..self.origins.len()).for_each(|origin| self.schedule(now, OriginId(origin)));
        }
        if self.links.iter().any(AccessLink::holds_bulk) {
            self.origins.iter_mut().for_each(|origin| origin.freight.yielded());
        }
    }

    /// Bytes of small requests that move or are about to. Those of an origin that can't be reached would only hold others' bulk
    /// back.
    fn small_that_moves(&self, now: Instant, direction: Direction) -> u64 {
        let moves = |id: &LaneId| {
            let lane = self.lanes.get(id).filter(|lane| lane.role == Role::Express);
            lane.is_some_and(|lane| !lane.is_dialling() || now < lane.since + self.rules.dial_again)
        };
        let small = |origin: &OriginState| match direction {
            Direction::Down => origin.down.small,
            Direction::Up => origin.up.small,
        };
        let moving = self.origins.iter().filter(|origin| small(origin) > 0 && origin.lanes.iter().any(moves));
        moving.map(small).sum()
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
