//! What moves in each direction, and how much more may.

use std::time::Instant;

use super::access_link::AccessLink;
use super::bulk_in_flight::{BulkInFlight, Sharing};
use super::event::Flow;
use super::freight_lanes::Reading;
use super::ledger::{Account, Lane};
use super::origin::OriginState;
use super::path_model::{Load, PathEstimate, PathRate};
use super::rules::Rules;
use super::{Action, Direction, Dispatcher, LaneId, OriginId, Role};

/// One direction of the path to an origin.
#[derive(Debug)]
pub(super) struct DirectionState {
    /// Bytes moved so far; nothing where that isn't known.
    moved: Option<u64>,
    pub(super) path: PathEstimate,
    pub(super) in_flight: BulkInFlight,
}

impl DirectionState {
    pub(super) fn by(rules: &'static Rules) -> Self {
        let (path, in_flight) = (PathEstimate::by(rules), BulkInFlight::by(rules));
        Self { moved: None, path, in_flight }
    }

    /// What the path has shown.
    pub(super) fn shown(&self) -> PathRate {
        PathRate { rate: self.path.rate().unwrap_or_default(), is_full: self.path.is_full() }
    }
}

impl Dispatcher {
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
            (self.ledger.freight_busy(id), Direction::BOTH.map(|to| self.link(to).yielding.is_yielding()));
        self.origin(id);
        let (account, origin) = (self.ledger.account(id), &mut self.origins[id.0]);
        let bulk = |direction| account.outstanding(direction).bulk;
        for (direction, bytes) in [(Direction::Down, Some(down)), (Direction::Up, up)] {
            let small_wait = account.queues.wait(Role::Express, direction);
            let state = origin.direction(direction);
            state.moved = bytes;
            match bytes {
                Some(bytes) => {
                    let load =
                        Load::of(small_wait, bulk(direction) > 0 && busy > 0, held[direction as usize]);
                    state.path.read(now, bytes, load);
                }
                None => state.path.cannot_be_read(),
            }
        }
        let mut shown: f64 = 0.0;
        for direction in Direction::BOTH {
            let rate = origin.way(direction).path.rate().filter(|_| bulk(direction) > 0);
            shown = shown.max(rate.unwrap_or_default());
        }
        let bytes = down + up.unwrap_or_default();
        let (rtt, covering) = (origin.path(), origin.covering(account));
        let is_full = origin.freight.moved(now, Reading { bytes, busy, covering, rtt, flow, shown });
        if is_full && (bulk(Direction::Down) > 0) != (bulk(Direction::Up) > 0) {
            let direction = if bulk(Direction::Down) > 0 { Direction::Down } else { Direction::Up };
            origin.direction(direction).path.filled();
            self.link(direction).path.filled();
        }
    }

    /// Takes a reading of what has moved over all origins.
    pub(super) fn read_links(&mut self, now: Instant) {
        for direction in Direction::BOTH {
            let small_wait =
                self.ledger.accounts().any(|(_, account)| account.queues.wait(Role::Express, direction));
            let has_bulk = (0..self.origins.len()).any(|id| self.ledger.freight_busy(OriginId(id)) > 0);
            let moved = self.origins.iter().map(|origin| origin.way(direction).moved);
            let bytes = moved.sum::<Option<u64>>();
            match bytes {
                Some(bytes) => {
                    let has_bulk = has_bulk && self.ledger.outstanding(direction).bulk > 0;
                    self.link(direction).read(now, bytes, small_wait, has_bulk);
                }
                None => self.link(direction).path.cannot_be_read(),
            }
        }
    }

    /// The lanes of an origin that share a limit, and the round trip.
    fn sharing(&self, origin: OriginId, shares: impl Fn(&Lane) -> bool) -> Sharing {
        let lanes = self.ledger.lanes_of(origin).filter(|(_, lane)| shares(lane)).count();
        Sharing { lanes, rtt: self.origins[origin.0].rtt() }
    }

    /// Decides how much bulk may be on its way to us.
    pub(super) fn clamp_downloads(&mut self, now: Instant) {
        let carries = |lane: &Lane| lane.in_flight > lane.uploads || lane.is_dialling();
        let beside = self.link(Direction::Down).beside(now);
        for origin in (0..self.origins.len()).map(OriginId) {
            let sharing = self.sharing(origin, |lane| lane.role == Role::Freight && carries(lane));
            let DirectionState { path, in_flight, .. } = &mut self.origins[origin.0].down;
            let said = in_flight.decide(now, Direction::Down, sharing, path, beside);
            self.actions.extend(said.map(|bytes| Action::Window { origin, bytes }));
        }
    }

    /// Decides how much bulk may lie in send buffers and be on its way from us.
    pub(super) fn clamp_uploads(&mut self, now: Instant) {
        let beside = self.link(Direction::Up).beside(now);
        for origin in (0..self.origins.len()).map(OriginId) {
            let sharing = self.sharing(origin, |lane| lane.uploads > 0);
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
        let [down, up] = Direction::BOTH.map(|direction| self.ledger.outstanding(direction));
        if down.small > 0 && self.link(Direction::Down).small(now) {
            self.clamp_downloads(now);
        }
        // A small download's request goes up, too.
        if (down.small > 0 || up.small > 0) && up.bulk > 0 && self.link(Direction::Up).small(now) {
            self.clamp_uploads(now);
        }
        let is_stuck = self.small_attempts_are_stuck();
        let rtt = self.origins.iter().map(OriginState::rtt).filter(|rtt| !rtt.is_zero()).min();
        let mut is_let_go = false;
        for (direction, all) in [(Direction::Down, down), (Direction::Up, up)] {
            // A path that is never known to be too slow or too fast isn't slowed down: it could be for as long as small requests come.
            let can_be_read = self.link(direction).path.can_be_read();
            let may_yield = all.bulk > 0 && all.small > 0 && !is_stuck && can_be_read;
            let outstanding = if may_yield { self.small_that_moves(now, direction) } else { 0 };
            let link = self.link(direction);
            let said = link.decide(now, outstanding, rtt.unwrap_or_default());
            if !all.is_none() {
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

    /// Returns the bytes of small requests that move or are about to. Requests to an origin that can't be reached would only hold others'
    /// bulk back.
    fn small_that_moves(&self, now: Instant, direction: Direction) -> u64 {
        let moves = |(_, lane): (LaneId, &Lane)| {
            let is_about_to = now < lane.since + self.rules.dial_again;
            lane.role == Role::Express && (!lane.is_dialling() || is_about_to)
        };
        let small =
            self.ledger.accounts().map(|(origin, account)| (origin, account.outstanding(direction).small));
        let moving = small.filter(|(origin, bytes)| *bytes > 0 && self.ledger.lanes_of(*origin).any(moves));
        moving.map(|(_, bytes)| bytes).sum()
    }

    /// Returns whether small requests of some origin wait, at the ceiling, for a lane that other work holds. Where that is bulk, slowing it
    /// would only prolong the wait.
    fn small_attempts_are_stuck(&self) -> bool {
        let carries = |(_, lane): (LaneId, &Lane)| lane.role == Role::Express && !lane.is_draining();
        let is_stuck = |(origin, account): (OriginId, &Account)| {
            account.express > 0 && !self.ledger.lanes_of(origin).any(carries)
        };
        self.ledger.lanes().len() >= self.connections_max && self.ledger.accounts().any(is_stuck)
    }
}
