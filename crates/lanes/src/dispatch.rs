//! The dispatcher decides how many connections (lanes) an origin has. For each attempt (one try of a request), it also decides when and on
//! which lane the attempt is sent. A lane has a role: express for small requests, or freight for requests with bodies above 1 MiB (bulk).
//! The dispatcher is a state machine without clock or socket.
//!
//! The driver passes it each [`DispatchEvent`] with the time of the event, and carries out each [`DispatchAction`] that it returns. The
//! dispatcher has no other input, so a test can run it in virtual time.
//! - `rules` holds all tuned constants.
//! - `ledger` counts attempts and lanes. No other module counts them.
//! - `path_model` measures the path's rate and the time that a server takes to answer. The rate comes from readings of the bytes moved.
//! - `choose` decides how many lanes there are by an explicit cost, and on which lane each attempt is sent. `freight_lanes` finds the best
//!   number of freight lanes by trial.
//! - `bulk_controller` slows bulk while small requests are outstanding.
//! - `server_limits` learns how many connections a server serves, and how long it keeps idle ones.
//! - `origin` holds the state of one origin, and `event` defines events and actions.
//!
//! Three invariants hold. Each submitted attempt is sent, failed or cancelled. The number of lanes never exceeds the limit. A lane has one
//! role at a time.

mod bulk_controller;
mod choose;
mod event;
mod freight_lanes;
mod ledger;
mod origin;
mod path_model;
mod rules;
mod server_limits;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bulk_controller::{AccessLink, LaneGroup};
use event::RequestClass;
pub(crate) use event::{AttemptId, DispatchAction, DispatchEvent, LaneId, OriginId, RequestSize, TcpSample};
pub use event::{Direction, Role};
use freight_lanes::GoodputSample;
pub(crate) use ledger::is_announced_to_dispatcher;
use ledger::{Attempt, Lane, LaneState, Ledger, OriginAccount};
use origin::OriginState;
use path_model::PathLoad;
pub(crate) use rules::Rules;

use crate::{Path, Protocol};

/// The dispatcher's state machine.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    rules: &'static Rules,
    connections_max: usize,
    ledger: Ledger,
    origins: Vec<OriginState>,
    /// This machine's link to the network, in each direction. All origins share it.
    links: [AccessLink; 2],
    /// The time of the last decision on how many bytes of downloaded bulk may be in flight.
    limited: Option<Instant>,
    actions: VecDeque<DispatchAction>,
}

impl Dispatcher {
    /// Creates a dispatcher that opens at most `connections_max` connections. Zero counts as one.
    pub(crate) fn new(connections_max: usize) -> Self {
        Self::by(&Rules::CHOSEN, connections_max)
    }

    /// Creates a dispatcher with the given rules.
    pub(crate) fn by(rules: &'static Rules, connections_max: usize) -> Self {
        Self {
            rules,
            connections_max: connections_max.max(1),
            ledger: Ledger::by(rules),
            origins: Vec::new(),
            links: Direction::BOTH.map(|direction| AccessLink::by(rules, direction)),
            limited: None,
            actions: VecDeque::new(),
        }
    }

    /// Processes an event that happened at `now`. [`poll`](Self::poll) then returns the resulting actions. Events of attempts and lanes
    /// that no longer exist are ignored.
    pub(crate) fn handle(&mut self, now: Instant, event: DispatchEvent) {
        let was_full = self.ledger.lanes().len() >= self.ceiling(Role::Freight);
        self.take_note(now, event);
        let frees = matches!(
            event,
            DispatchEvent::Finished { .. }
                | DispatchEvent::Closed { .. }
                | DispatchEvent::DialFailed { .. }
                | DispatchEvent::Draining { .. }
        );
        // If all connections were in use, another origin may have waited for the lane that this event has freed.
        if was_full && frees {
            for origin in 0..self.origins.len() {
                self.schedule(now, OriginId(origin));
            }
        }
        self.yield_bulk(now);
        if self.limited.is_none_or(|at| now >= at + self.rules.service_min) {
            self.limited = Some(now);
            self.limit_bulk(now, Direction::Down);
        }
    }

    fn take_note(&mut self, now: Instant, event: DispatchEvent) {
        match event {
            DispatchEvent::Submitted { attempt, origin, size } => self.submit(now, attempt, origin, size),
            DispatchEvent::Hedged { attempt, origin, size, hedge_of } => {
                self.hedge(now, attempt, origin, size, hedge_of)
            }
            DispatchEvent::Cancelled { attempt } => self.ledger.withdraw(attempt),
            DispatchEvent::Expected { origin, protocol } => self.origin(origin).expect(protocol),
            DispatchEvent::Anticipated { origin, attempts } => {
                self.origin(origin).anticipated = attempts;
                self.schedule(now, origin);
            }
            DispatchEvent::Reached { lane, rtt } => {
                if let Some(origin) = self.ledger.lane(lane).map(|l| l.origin) {
                    self.origin(origin).path.reached(rtt);
                    self.schedule(now, origin);
                }
            }
            DispatchEvent::Opened { lane, protocol, rtt } => self.opened(now, lane, protocol, rtt),
            DispatchEvent::Located { lane, address } => {
                if let Some(l) = self.ledger.lane_mut(lane) {
                    l.address = Some(address);
                }
            }
            DispatchEvent::DialFailed { lane } => self.dial_failed(now, lane),
            DispatchEvent::Streams { lane, max } => self.streams(now, lane, max),
            DispatchEvent::Sized { attempt, bytes } => self.sized(now, attempt, bytes),
            DispatchEvent::TurnedFreight { attempt } => self.turned_freight(now, attempt),
            DispatchEvent::Finished { attempt, reusable } => self.finished(now, attempt, reusable),
            DispatchEvent::Draining { lane } => {
                if let Some(l) = self.ledger.lane_mut(lane) {
                    let origin = l.origin;
                    l.state = LaneState::Draining;
                    self.drop_if_spent(lane);
                    self.schedule(now, origin);
                }
            }
            DispatchEvent::Answered { lane } => self.answered(now, lane),
            DispatchEvent::Unserved { lane } => self.unserved(now, lane),
            DispatchEvent::Stale { lane } => self.stale(now, lane),
            DispatchEvent::KeepsIdle { lane, limit } => {
                if let Some(origin) = self.ledger.lane(lane).map(|l| l.origin) {
                    self.origin(origin).idle.tell(limit);
                }
            }
            DispatchEvent::Slept => self.slept(),
            DispatchEvent::Closed { lane } => {
                // If the server closes a connection after a long idle time, that doesn't mean that it has too many connections.
                let is_refused =
                    |l: &&Lane| l.is_open() && (l.in_flight > 0 || now < l.idle_since + self.rules.idle_min);
                if self.ledger.lane(lane).filter(is_refused).is_some() {
                    self.unserved(now, lane);
                }
                if let Some(l) = self.ledger.lane(lane).filter(|l| l.is_idle()) {
                    let (origin, idle) = (l.origin, now.saturating_duration_since(l.idle_since));
                    let state = self.origin(origin);
                    state.idle.closed(now, idle);
                    state.anticipated = 0;
                }
                if let Some(origin) = self.ledger.forget(lane) {
                    self.schedule(now, origin);
                }
            }
            DispatchEvent::Moved { origin, down, up, flow } => self.moved(now, origin, (down, up), flow),
            DispatchEvent::Tick => {
                self.read_links(now);
                self.limit_bulk(now, Direction::Up);
                for origin in 0..self.origins.len() {
                    let id = OriginId(origin);
                    self.ledger.account_mut(id).on_the_way.tick(now);
                    self.origins[origin].tick(now);
                    self.schedule(now, id);
                }
            }
        }
    }

    /// Returns the next action, if there is one.
    pub(crate) fn poll(&mut self) -> Option<DispatchAction> {
        self.actions.pop_front()
    }

    /// Returns the time by which the driver must send [`DispatchEvent::Tick`]. Just before that event, it must send
    /// [`DispatchEvent::Moved`] for each origin.
    pub(crate) fn next_tick(&self) -> Option<Instant> {
        let origins = self.ledger.accounts().zip(&self.origins);
        let origins =
            origins.flat_map(|((id, account), o)| [o.next_tick(account), self.next_too_old(id, o)]).flatten();
        let links = Direction::BOTH.into_iter().zip(&self.links).flat_map(|(direction, link)| {
            let reading = link.path.next_reading().filter(|_| !self.ledger.outstanding(direction).is_none());
            [link.next_tick(), reading]
        });
        origins.chain(links.flatten()).min()
    }

    /// Returns the measured path to an origin.
    pub(crate) fn path(&mut self, origin: OriginId) -> Path {
        let origin = self.origin(origin);
        let down = origin.path.throughput(Direction::Down);
        let (rate, is_full) = (down.rate(), down.is_full());
        Path { round_trip: origin.path.round_trip(), protocol: origin.protocol(), rate, is_full }
    }

    /// Returns the number of lanes that are open or being dialled.
    #[cfg(test)]
    pub(crate) fn lanes(&self) -> usize {
        self.ledger.lanes().len()
    }

    /// Returns the number of attempts that are queued or running.
    pub(crate) fn attempts(&self) -> usize {
        self.ledger.attempts().len()
    }

    fn origin(&mut self, id: OriginId) -> &mut OriginState {
        self.ledger.open_account(id);
        while self.origins.len() <= id.0 {
            self.origins.push(OriginState::by(self.rules));
        }
        &mut self.origins[id.0]
    }

    fn submit(&mut self, now: Instant, id: AttemptId, origin: OriginId, size: RequestSize) {
        let state = self.origin(origin);
        state.anticipated = state.anticipated.saturating_sub(1);
        let opener = size.class(self.rules) == RequestClass::Opener;
        let attempt = self.attempt(now, origin, size, opener);
        self.ledger.admit(id, attempt);
        self.schedule(now, origin);
    }

    /// Creates the record of an attempt that is submitted now. Its role depends on its size and on its origin's other attempts.
    fn attempt(&self, now: Instant, origin: OriginId, size: RequestSize, opener: bool) -> Attempt {
        let (account, weight) = (self.ledger.account(origin), size.weight(self.rules));
        let role = size.role(self.rules, account.openers, account.express, account.freight);
        Attempt { origin, role, size, weight, submitted: now, lane: None, opener, hedge_of: None }
    }

    fn opened(&mut self, now: Instant, id: LaneId, protocol: Protocol, rtt: Duration) {
        let Some(lane) = self.ledger.lane_mut(id) else { return };
        let (origin, took) = (lane.origin, now.saturating_duration_since(lane.since));
        lane.open(now, protocol);
        // A freight lane offers only HTTP/1.1, so its protocol isn't necessarily the one that the server chooses for an express lane.
        let spoken = (lane.role == Role::Express).then_some(protocol);
        self.origin(origin).learn(now, spoken, rtt, took);
        self.close_surplus(now, id, origin);
        self.schedule(now, origin);
    }

    fn dial_failed(&mut self, now: Instant, id: LaneId) {
        let Some(role) = self.ledger.lane(id).map(|l| l.role) else { return };
        self.unserved(now, id);
        let Some(origin) = self.ledger.forget(id) else { return };
        // The queued attempts fail only if no other lane can carry them. Each call's retry logic then decides what to do.
        let alive = self.ledger.lanes_of(origin).any(|(_, lane)| lane.role == role && !lane.is_draining());
        if alive {
            self.origin(origin).dial_failed(role, now);
        } else {
            self.origin(origin).forgive(role);
            // Announced attempts have no caller to whom the failure could be reported, so forget them. Otherwise the dispatcher would dial
            // for them again and again.
            self.origin(origin).anticipated = 0;
            let hedges = self.waiting_hedges(origin, role);
            self.ledger.account_mut(origin).hedges.retain(|hedge| !hedges.contains(hedge));
            let queued = std::iter::from_fn(|| self.ledger.account_mut(origin).queues.pop(role));
            for attempt in hedges.into_iter().chain(queued).collect::<Vec<_>>() {
                if self.retire(attempt).is_some() {
                    self.actions.push_back(DispatchAction::Fail { attempt, because: id });
                }
            }
        }
        self.schedule(now, origin);
    }

    fn streams(&mut self, now: Instant, id: LaneId, max: usize) {
        if let Some(lane) = self.ledger.lane_mut(id) {
            let origin = lane.origin;
            lane.limit_streams(max);
            self.schedule(now, origin);
        }
    }

    /// Records the size of an answer, and the time that it took. The origin's other answers are likely to be similar.
    fn sized(&mut self, now: Instant, id: AttemptId, bytes: u64) {
        let Some((attempt, took)) = self.ledger.resize(now, id, bytes) else { return };
        let origin = self.origin(attempt.origin);
        origin.sized(bytes, attempt.size.down.filter(|_| !attempt.opener), took);
        self.schedule(now, attempt.origin);
    }

    fn turned_freight(&mut self, now: Instant, id: AttemptId) {
        if let Some(origin) = self.ledger.turn_freight(id) {
            self.schedule(now, origin);
        }
    }

    fn finished(&mut self, now: Instant, id: AttemptId, reusable: bool) {
        if let Some(attempt) = self.ledger.attempt(id).filter(|_| reusable) {
            let (origin, lane) = (attempt.origin, attempt.lane.and_then(|lane| self.ledger.lane(lane)));
            let grown = lane.filter(|lane| lane.is_exclusive()).map_or(0, |lane| lane.grown);
            if let Some(took) = self.ledger.account(origin).on_the_way.single_flight(now, id, grown) {
                self.origin(origin).path.answered(took);
            }
        }
        let Some(attempt) = self.retire(id) else { return };
        if let Some(lane_id) = attempt.lane {
            if let Some(lane) = self.ledger.take_off(now, &attempt) {
                let rested = lane.rested;
                if reusable {
                    lane.grown = lane.grown.max(attempt.weight);
                    self.origin(attempt.origin).idle.served(rested);
                    self.note_quick(now, lane_id);
                } else {
                    lane.state = LaneState::Draining;
                }
            }
            self.give_way(now, lane_id);
            self.drop_if_spent(lane_id);
        }
        self.schedule(now, attempt.origin);
    }

    /// Forgets an attempt. If its origin has no express attempts left, announced attempts are forgotten, too, and the measurement of the
    /// server's answer time starts again.
    fn retire(&mut self, id: AttemptId) -> Option<Attempt> {
        let attempt = self.ledger.retire(id)?;
        if self.ledger.account(attempt.origin).express == 0 {
            let origin = self.origin(attempt.origin);
            // Announced attempts that haven't come by now aren't expected any more.
            origin.anticipated = 0;
            origin.rests();
        }
        Some(attempt)
    }

    fn drop_if_spent(&mut self, id: LaneId) {
        if self.ledger.lane(id).is_some_and(|l| l.is_draining() && l.in_flight == 0) {
            self.ledger.forget(id);
            self.actions.push_back(DispatchAction::Close { lane: id });
        }
    }

    /// Sends an origin's attempts that can be sent, and dials the lanes that it lacks.
    fn schedule(&mut self, now: Instant, origin: OriginId) {
        self.give_up_old(now, origin);
        // If the number of connections is below the limit, an origin without any lane gets its first lane before this origin gets a further
        // one.
        if self.ledger.lanes().len() < self.connections_max
            && let Some(waiting) = self.waiting_without_lane(origin)
        {
            self.dial_missing(now, waiting, Role::Express);
            self.dial_missing(now, waiting, Role::Freight);
        }
        let freight_first = self.freight_is_overdue(now, origin);
        let order =
            if freight_first { [Role::Freight, Role::Express] } else { [Role::Express, Role::Freight] };
        for role in order {
            if !self.ledger.account(origin).hedges.is_empty() {
                self.send_hedges(now, origin, role);
            }
            self.send_queued(now, origin, role);
            self.dial_missing(now, origin, role);
        }
        let lanes_max = self.freight_lanes_max(origin);
        let idle =
            self.ledger.lanes_of(origin).filter(|(_, l)| l.role == Role::Freight && l.is_idle()).count();
        let (account, state) = (self.ledger.account(origin), &mut self.origins[origin.0]);
        state.freight.watch(now, account.freight > 0);
        let lanes = state.freight_demand(account).spare(lanes_max);
        let spare = (lanes, idle.min(lanes));
        if std::mem::replace(&mut state.said_spare, spare) != spare {
            self.actions.push_back(DispatchAction::Spare { origin, lanes, open: spare.1 });
        }
        // A lane that has just opened may have no attempts left and still hold the last connection that the limit allows. No later event
        // would give this connection to the waiting origin, so do it now.
        if self.ledger.lanes().len() >= self.connections_max
            && let Some(waiting) = self.waiting_without_lane(origin)
        {
            self.dial_missing(now, waiting, Role::Express);
            self.dial_missing(now, waiting, Role::Freight);
        }
    }

    fn link(&mut self, direction: Direction) -> &mut AccessLink {
        &mut self.links[direction as usize]
    }

    /// Processes the number of bytes that an origin's lanes have moved so far. `up` is `None` on systems that don't report acknowledged
    /// bytes.
    fn moved(&mut self, now: Instant, id: OriginId, (down, up): (u64, Option<u64>), flow: Option<TcpSample>) {
        let (busy, held) =
            (self.ledger.freight_busy(id), Direction::BOTH.map(|to| self.link(to).is_yielding()));
        self.origin(id);
        let (account, origin) = (self.ledger.account(id), &mut self.origins[id.0]);
        let bulk = |direction| account.outstanding(direction).bulk;
        for (direction, bytes) in [(Direction::Down, Some(down)), (Direction::Up, up)] {
            let small_wait = account.queues.wait(Role::Express, direction);
            let has_bulk = bulk(direction) > 0 && busy > 0;
            let load = PathLoad::of(small_wait, has_bulk, held[direction as usize], origin.path.rtt());
            origin.path.read(now, direction, bytes, load);
        }
        let mut shown: f64 = 0.0;
        for direction in Direction::BOTH {
            let rate = origin.path.throughput(direction).rate().filter(|_| bulk(direction) > 0);
            shown = shown.max(rate.unwrap_or_default());
        }
        let bytes = down + up.unwrap_or_default();
        let (rtt, covering) = (origin.path.round_trip(), origin.freight_demand(account).covering(self.rules));
        let is_full = origin.freight.moved(now, GoodputSample { bytes, busy, covering, rtt, flow, shown });
        if is_full && (bulk(Direction::Down) > 0) != (bulk(Direction::Up) > 0) {
            let direction = if bulk(Direction::Down) > 0 { Direction::Down } else { Direction::Up };
            origin.path.throughput_mut(direction).filled();
            self.link(direction).path.filled();
        }
    }

    /// Reads the number of bytes that all origins together have moved.
    fn read_links(&mut self, now: Instant) {
        let rtt = self.origins.iter().map(|origin| origin.path.rtt()).max().unwrap_or_default();
        for direction in Direction::BOTH {
            let small_wait =
                self.ledger.accounts().any(|(_, account)| account.queues.wait(Role::Express, direction));
            let has_bulk = (0..self.origins.len()).any(|id| self.ledger.freight_busy(OriginId(id)) > 0);
            let moved = self.origins.iter().map(|origin| origin.path.moved(direction));
            let bytes = moved.sum::<Option<u64>>();
            match bytes {
                Some(bytes) => {
                    let has_bulk = has_bulk && self.ledger.outstanding(direction).bulk > 0;
                    self.link(direction).read(now, bytes, small_wait, has_bulk, rtt);
                }
                None => self.link(direction).path.cannot_be_read(),
            }
        }
    }

    /// Decides the limits on bulk of this direction: its bytes in flight, and for uploads also the unsent bytes and the rate.
    fn limit_bulk(&mut self, now: Instant, direction: Direction) {
        let carries = |lane: &Lane| match direction {
            Direction::Down => {
                lane.role == Role::Freight && (lane.in_flight > lane.uploads || lane.is_dialling())
            }
            Direction::Up => lane.uploads > 0,
        };
        let beside = self.link(direction).beside(now);
        for (id, state) in self.origins.iter_mut().enumerate() {
            let origin = OriginId(id);
            let lanes = self.ledger.lanes_of(origin).filter(|(_, lane)| carries(lane)).count();
            let group = LaneGroup { lanes, rtt: state.path.rtt() };
            let (path, bulk) = (state.path.throughput(direction), &mut state.in_flight[direction as usize]);
            let said = bulk.decide(now, direction, group, path, beside);
            if direction == Direction::Down {
                self.actions.extend(said.map(|bytes| DispatchAction::Window { origin, bytes }));
                continue;
            }
            self.actions.extend(said.map(|bytes| DispatchAction::SendBuffer { origin, bytes }));
            let said = bulk.pace(lanes, path, beside);
            self.actions.extend(said.map(|rate| DispatchAction::Pace { origin, rate }));
            let said = bulk.unsent(lanes, path.rate());
            self.actions.extend(said.map(|bytes| DispatchAction::Unsent { origin, bytes }));
        }
    }

    /// Decides how fast bulk may move while small requests are outstanding.
    fn yield_bulk(&mut self, now: Instant) {
        let [down, up] = Direction::BOTH.map(|direction| self.ledger.outstanding(direction));
        if down.small > 0 && self.link(Direction::Down).small(now) {
            self.limit_bulk(now, Direction::Down);
        }
        // The request of a small download needs the upload direction, too.
        if (down.small > 0 || up.small > 0) && up.bulk > 0 && self.link(Direction::Up).small(now) {
            self.limit_bulk(now, Direction::Up);
        }
        let is_stuck = self.small_attempts_are_stuck();
        let rtt = self.origins.iter().map(|origin| origin.path.rtt()).filter(|rtt| !rtt.is_zero()).min();
        let mut is_let_go = false;
        for (direction, all) in [(Direction::Down, down), (Direction::Up, up)] {
            // Bulk yields only on a path whose rate can be measured. Otherwise bulk could stay slow until no more small requests come.
            let can_be_read = self.link(direction).path.can_be_read();
            let may_yield = all.bulk > 0 && all.small > 0 && !is_stuck && can_be_read;
            let outstanding = if may_yield { self.small_that_moves(now, direction) } else { 0 };
            let link = self.link(direction);
            if all.bulk == 0 {
                link.bulk_ended();
            }
            let said = link.decide(now, outstanding, rtt.unwrap_or_default());
            if !all.is_none() {
                link.path.begin(now);
            }
            is_let_go |= said == Some(None);
            self.actions.extend(said.map(|rate| DispatchAction::Yield { direction, rate }));
        }
        if is_let_go {
            (0..self.origins.len()).for_each(|origin| self.schedule(now, OriginId(origin)));
        }
        if self.links.iter().any(AccessLink::holds_bulk) {
            self.origins.iter_mut().for_each(|origin| origin.freight.yielded());
        }
    }

    /// Returns the number of bytes of small requests whose origin has an express lane that is open or likely to open soon. Requests to an
    /// unreachable origin aren't counted: slowing bulk down wouldn't help them, because they can't be sent anyway.
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

    /// Returns whether some origin has small requests but no express lane, because the limit of connections is reached. If bulk uses all
    /// connections, slowing bulk down would only make the small requests wait longer.
    fn small_attempts_are_stuck(&self) -> bool {
        let carries = |(_, lane): (LaneId, &Lane)| lane.role == Role::Express && !lane.is_draining();
        let is_stuck = |(origin, account): (OriginId, &OriginAccount)| {
            account.express > 0 && !self.ledger.lanes_of(origin).any(carries)
        };
        self.ledger.lanes().len() >= self.connections_max && self.ledger.accounts().any(is_stuck)
    }
}

/// Methods for the simulator and its scenarios. They only read the dispatcher's state.
#[cfg(test)]
impl Dispatcher {
    /// Returns whether small requests of this direction are queued or running. Bulk can yield only while there are any.
    pub(crate) fn counts_small(&self, direction: Direction) -> bool {
        self.ledger.outstanding(direction).small > 0
    }

    /// Returns a description of an attempt that the ledger still holds, or of a sum that isn't zero. Scenarios call this after all work has
    /// ended, to find counting errors.
    pub(crate) fn left_over(&self) -> Option<String> {
        let of_origin = |account: &OriginAccount| {
            (account.express, account.freight, account.openers, account.express_weight)
        };
        let origins = self.ledger.accounts().map(|(_, account)| of_origin(account));
        let origins =
            origins.filter(|counts| *counts != (0, 0, 0, 0)).map(|counts| format!("{counts:?} of an origin"));
        let directions = Direction::BOTH.into_iter().flat_map(|direction| {
            let of_origins = self.ledger.accounts().map(move |(_, account)| account.outstanding(direction));
            of_origins.chain([self.ledger.outstanding(direction)])
        });
        let directions = directions.filter(|sum| !sum.is_none()).map(|sum| format!("{sum:?}"));
        let lanes = self.ledger.lanes().filter(|(_, l)| l.in_flight > 0 || l.uploads > 0 || l.weight > 0);
        let attempts = self.ledger.attempts().map(|attempt| format!("{attempt:?}"));
        origins.chain(directions).chain(lanes.map(|(_, lane)| format!("{lane:?}"))).chain(attempts).next()
    }
}
