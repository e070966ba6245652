//! Who goes on which lane, and when: a state machine without clock or socket.
//!
//! The driver feeds [`Event`]s with the time they happened and carries out the [`Action`]s that come back. Everything
//! the dispatcher knows comes in by them, so a test can run it in virtual time.
//!
//! Its rules, each in its own file: `class` (express or freight), `express_lanes` and `freight_lanes` (how many
//! connections), `ceiling` (at most), `served` (as many as the server takes), `lane` (what a lane may take), `queue` (in which order), `sending` (on which lane), `idle` (which lane is
//! too old), `hedges` (where a hedge goes), `in_flight` and `bulk_in_flight` (how much is on its way), and in `directions` for each direction
//! `yielding` (how much bulk moves beside small requests). They ask `path_estimate` what the path carries.
//! The invariants: an attempt that was submitted is sent, failed or cancelled, never forgotten; lanes never pass the ceiling;
//! a lane carries one role at a time.

mod access_link;
mod bulk_in_flight;
mod ceiling;
mod class;
mod directions;
mod event;
mod express_lanes;
mod freight_lanes;
mod hedges;
mod idle;
mod in_flight;
mod lane;
mod origin;
mod path_estimate;
mod queue;
mod rules;
mod sending;
mod served;
mod strangling;
mod yielding;

#[cfg(test)]
pub(crate) mod inspection;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use access_link::AccessLink;
pub(crate) use class::{Class, Size};
pub(crate) use event::{Action, AttemptId, Event, Flow, LaneId, OriginId};
pub use event::{Direction, Role};
use lane::{Lane, LaneState};
use origin::OriginState;
pub(crate) use rules::Rules;
use rustc_hash::FxHashMap;

use crate::{Path, Protocol};

/// The state machine.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    rules: &'static Rules,
    connections_max: usize,
    origins: Vec<OriginState>,
    // The ids are our own counters, which nobody outside can choose: a fast hash does.
    lanes: FxHashMap<LaneId, Lane>,
    attempts: FxHashMap<AttemptId, AttemptState>,
    lanes_made: u64,
    /// What all origins share, one for each direction.
    links: [AccessLink; 2],
    /// When the limits of what is on its way were decided last.
    limited: Option<Instant>,
    actions: VecDeque<Action>,
}

#[derive(Clone, Copy, Debug)]
struct AttemptState {
    origin: OriginId,
    role: Role,
    size: Size,
    weight: u64,
    submitted: Instant,
    lane: Option<LaneId>,
    opener: bool,
    /// The attempt that this one is a hedge of.
    hedge_of: Option<AttemptId>,
}

impl AttemptState {
    fn uploads_bulk(&self, rules: &Rules) -> bool {
        self.size.up > rules.freight_above
    }

    /// What a small attempt moves in each direction.
    fn small_bytes(&self, rules: &Rules) -> [(Direction, u64); 2] {
        let is_small = u64::from(self.role == Role::Express);
        [(Direction::Down, self.size.down(rules) * is_small), (Direction::Up, self.size.up * is_small)]
    }
}

impl Dispatcher {
    /// A dispatcher that opens at most `connections_max` connections, at least one.
    pub(crate) fn new(connections_max: usize) -> Self {
        Self::by(&Rules::CHOSEN, connections_max)
    }

    /// The same by other rules.
    pub(crate) fn by(rules: &'static Rules, connections_max: usize) -> Self {
        Self {
            rules,
            connections_max: connections_max.max(1),
            origins: Vec::new(),
            lanes: FxHashMap::default(),
            attempts: FxHashMap::default(),
            lanes_made: 0,
            links: [AccessLink::by(rules), AccessLink::by(rules)],
            limited: None,
            actions: VecDeque::new(),
        }
    }

    /// Takes note of what happened at `now`; the consequences are had from [`poll`](Self::poll). Events of attempts and
    /// lanes that are already gone are ignored.
    pub(crate) fn handle(&mut self, now: Instant, event: Event) {
        let was_full = self.lanes.len() >= self.ceiling(Role::Freight);
        self.take_note(now, event);
        let frees = matches!(
            event,
            Event::Finished { .. } | Event::Closed { .. } | Event::DialFailed { .. } | Event::Draining { .. }
        );
        // At the ceiling, a slot or a lane that has become free may be what another origin waits for.
        if was_full && frees {
            for origin in 0..self.origins.len() {
                self.schedule(now, OriginId(origin));
            }
        }
        self.yield_bulk(now);
        if self.limited.is_none_or(|at| now >= at + self.rules.service_min) {
            self.limited = Some(now);
            self.clamp_downloads(now);
        }
    }

    fn take_note(&mut self, now: Instant, event: Event) {
        match event {
            Event::Submitted { attempt, origin, size } => self.submit(now, attempt, origin, size),
            Event::Hedged { attempt, origin, size, hedge_of } => {
                self.hedge(now, attempt, origin, size, hedge_of)
            }
            Event::Cancelled { attempt } => self.cancel(attempt),
            Event::Expected { origin, protocol } => self.origin(origin).expect(protocol),
            Event::Anticipated { origin, attempts } => {
                self.origin(origin).anticipated = attempts;
                self.schedule(now, origin);
            }
            Event::Reached { lane, rtt } => {
                if let Some(origin) = self.lanes.get(&lane).map(|l| l.origin) {
                    self.origin(origin).reached(rtt);
                    self.schedule(now, origin);
                }
            }
            Event::Opened { lane, protocol, rtt } => self.opened(now, lane, protocol, rtt),
            Event::Located { lane, address } => {
                if let Some(l) = self.lanes.get_mut(&lane) {
                    l.address = Some(address);
                }
            }
            Event::DialFailed { lane } => self.dial_failed(now, lane),
            Event::Streams { lane, max } => self.streams(now, lane, max),
            Event::Sized { attempt, bytes } => self.sized(now, attempt, bytes),
            Event::TurnedFreight { attempt } => self.turned_freight(now, attempt),
            Event::Finished { attempt, reusable } => self.finished(now, attempt, reusable),
            Event::Draining { lane } => {
                if let Some(l) = self.lanes.get_mut(&lane) {
                    let origin = l.origin;
                    l.state = LaneState::Draining;
                    self.drop_if_spent(lane);
                    self.schedule(now, origin);
                }
            }
            Event::Answered { lane } => self.answered(now, lane),
            Event::Unserved { lane } => self.unserved(now, lane),
            Event::Stale { lane } => self.stale(now, lane),
            Event::KeepsIdle { lane, limit } => {
                if let Some(origin) = self.lanes.get(&lane).map(|l| l.origin) {
                    self.origin(origin).idle.tell(limit);
                }
            }
            Event::Slept => self.slept(),
            Event::Closed { lane } => {
                // What a server closes that was idle for long was not refused.
                let is_refused =
                    |l: &&Lane| l.is_open() && (l.in_flight > 0 || now < l.idle_since + self.rules.idle_min);
                if self.lanes.get(&lane).filter(is_refused).is_some() {
                    self.unserved(now, lane);
                }
                if let Some(l) = self.lanes.get(&lane).filter(|l| l.is_idle()) {
                    let (origin, idle) = (l.origin, now.saturating_duration_since(l.idle_since));
                    let state = self.origin(origin);
                    state.idle.closed(now, idle);
                    state.anticipated = 0;
                }
                if let Some(origin) = self.forget(lane) {
                    self.schedule(now, origin);
                }
            }
            Event::Moved { origin, down, up, flow } => self.moved(now, origin, (down, up), flow),
            Event::Tick => {
                self.read_links(now);
                self.clamp_uploads(now);
                for origin in 0..self.origins.len() {
                    self.origins[origin].tick(now);
                    self.schedule(now, OriginId(origin));
                }
            }
        }
    }

    /// The next thing to be done, if there is one.
    pub(crate) fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Event::Tick`] is wanted at the latest, and [`Event::Moved`] of each origin before it.
    pub(crate) fn next_tick(&self) -> Option<Instant> {
        let origins = self.origins.iter().flat_map(|o| [o.next_tick(), self.next_too_old(o)]).flatten();
        let links = self.links.iter().flat_map(|link| {
            let reading = link.path.next_reading().filter(|_| !link.is_idle());
            [link.yielding.next_tick(), reading]
        });
        origins.chain(links.flatten()).min()
    }

    /// What is known of the way to an origin.
    pub(crate) fn path(&mut self, origin: OriginId) -> Path {
        let origin = self.origin(origin);
        let (rate, is_full) = (origin.down.path.rate(), origin.down.path.is_full());
        Path { round_trip: origin.path(), protocol: origin.protocol(), rate, is_full }
    }

    /// How many lanes are open or being dialled.
    #[cfg(test)]
    pub(crate) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// How many attempts are queued or running.
    pub(crate) fn attempts(&self) -> usize {
        self.attempts.len()
    }

    fn origin(&mut self, id: OriginId) -> &mut OriginState {
        while self.origins.len() <= id.0 {
            self.origins.push(OriginState::by(self.rules));
        }
        &mut self.origins[id.0]
    }

    fn submit(&mut self, now: Instant, id: AttemptId, origin: OriginId, size: Size) {
        let state = self.origin(origin);
        let role = size.role(state.rules, state.openers, state.express_live, state.freight_live);
        let opener = size.class(state.rules) == Class::Opener;
        let weight = size.weight(state.rules);
        state.admit(now, id, role, size, opener);
        let attempt =
            AttemptState { origin, role, size, weight, submitted: now, lane: None, opener, hedge_of: None };
        self.attempts.insert(id, attempt);
        self.count(&attempt);
        self.schedule(now, origin);
    }

    fn cancel(&mut self, id: AttemptId) {
        // A running attempt ends by its own Finished; a queued one is taken out here.
        if let Some(attempt) = self.attempts.get(&id).copied().filter(|w| w.lane.is_none()) {
            self.attempts.remove(&id);
            self.discount(&attempt);
            // Its place in the queue is skipped when it comes up: taking it out would make a great cancel quadratic.
            let origin = self.origin(attempt.origin);
            origin.release(attempt.role, attempt.weight, attempt.opener);
            origin.hedges.retain(|hedge| *hedge != id);
        }
    }

    fn opened(&mut self, now: Instant, id: LaneId, protocol: Protocol, rtt: Duration) {
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        let (origin, took) = (lane.origin, now.saturating_duration_since(lane.since));
        lane.open(now, protocol);
        // A freight lane speaks what it was made to offer, which says nothing of what express lanes get.
        let spoken = (lane.role == Role::Express).then_some(protocol);
        self.origin(origin).learn(now, spoken, rtt, took);
        self.close_surplus(now, id, origin);
        self.schedule(now, origin);
    }

    fn dial_failed(&mut self, now: Instant, id: LaneId) {
        let Some(role) = self.lanes.get(&id).map(|l| l.role) else { return };
        self.unserved(now, id);
        let Some(origin) = self.forget(id) else { return };
        // Only when nothing else can carry the role's queue is it given up: each request's own retry decides what next.
        let alive = self.lanes.values().any(|l| l.origin == origin && l.role == role && !l.is_draining());
        if alive {
            self.origin(origin).dial_failed(role, now);
        } else {
            self.origin(origin).forgive(role);
            // What was only announced has no work that could fail: dialling for it would go on and on.
            self.origin(origin).anticipated = 0;
            let hedges = self.waiting_hedges(origin, role);
            self.origin(origin).hedges.retain(|hedge| !hedges.contains(hedge));
            let queued = std::iter::from_fn(|| self.origins[origin.0].queues.pop(role));
            for attempt in hedges.into_iter().chain(queued).collect::<Vec<_>>() {
                if self.retire(attempt).is_some() {
                    self.actions.push_back(Action::Fail { attempt, because: id });
                }
            }
        }
        self.schedule(now, origin);
    }

    fn streams(&mut self, now: Instant, id: LaneId, max: usize) {
        if let Some(lane) = self.lanes.get_mut(&id) {
            let origin = lane.origin;
            lane.limit_streams(max);
            self.schedule(now, origin);
        }
    }

    /// An opener's size is known: it says also what others of its origin are likely to have.
    fn sized(&mut self, now: Instant, id: AttemptId, bytes: u64) {
        let Some(attempt) = self.attempts.get_mut(&id).filter(|w| w.opener && w.role == Role::Express) else {
            return;
        };
        // What is larger turns freight, or is given up.
        if bytes > self.rules.freight_above {
            return;
        }
        let (before, origin) = (*attempt, attempt.origin);
        attempt.size.down = Some(bytes);
        let after = *attempt;
        self.discount(&before);
        self.count(&after);
        self.origin(origin).sized(now, id, bytes);
        self.schedule(now, origin);
    }

    fn turned_freight(&mut self, now: Instant, id: AttemptId) {
        let Some(attempt) = self.attempts.get_mut(&id) else { return };
        if attempt.role == Role::Freight {
            return;
        }
        let (origin, weight, opener, lane) = (attempt.origin, attempt.weight, attempt.opener, attempt.lane);
        let before = *attempt;
        let alone = lane.and_then(|l| self.lanes.get(&l)).is_some_and(Lane::is_exclusive);
        if alone {
            attempt.role = Role::Freight;
            let after = *attempt;
            self.discount(&before);
            self.count(&after);
            let state = self.origin(origin);
            state.in_flight.remove(id);
            state.release(Role::Express, weight, opener);
            state.count(Role::Freight, weight, opener);
            if let Some(lane) = lane.and_then(|l| self.lanes.get_mut(&l)) {
                lane.role = Role::Freight;
            }
            self.schedule(now, origin);
        }
    }

    fn finished(&mut self, now: Instant, id: AttemptId, reusable: bool) {
        if let Some(origin) = self.attempts.get(&id).filter(|_| reusable).map(|attempt| attempt.origin) {
            let origin = self.origin(origin);
            origin.in_flight.ended(now, id, origin.rtt());
        }
        let Some(attempt) = self.retire(id) else { return };
        if let Some(lane_id) = attempt.lane {
            if let Some(lane) = self.lanes.get_mut(&lane_id) {
                lane.give_back(now, attempt.weight);
                lane.uploads -= usize::from(attempt.uploads_bulk(self.rules));
                let rested = lane.rested;
                if reusable {
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

    /// Forgets an attempt and what it counted for.
    fn retire(&mut self, id: AttemptId) -> Option<AttemptState> {
        let attempt = self.attempts.remove(&id)?;
        self.discount(&attempt);
        let origin = self.origin(attempt.origin);
        origin.in_flight.remove(id);
        origin.release(attempt.role, attempt.weight, attempt.opener);
        if origin.express_live == 0 {
            // What was found out has led to nothing more, or its attempts come now.
            origin.anticipated = 0;
            origin.in_flight.begin_anew();
        }
        Some(attempt)
    }

    /// Forgets a lane.
    fn forget(&mut self, id: LaneId) -> Option<OriginId> {
        let lane = self.lanes.remove(&id)?;
        self.origin(lane.origin).lanes.retain(|l| *l != id);
        Some(lane.origin)
    }

    fn drop_if_spent(&mut self, id: LaneId) {
        if self.lanes.get(&id).is_some_and(|l| l.is_draining() && l.in_flight == 0) {
            self.forget(id);
            self.actions.push_back(Action::Close { lane: id });
        }
    }

    fn freight_busy(&self, origin: OriginId) -> usize {
        let Some(state) = self.origins.get(origin.0) else { return 0 };
        let lanes = state.lanes.iter().filter_map(|id| self.lanes.get(id));
        lanes.filter(|l| l.role == Role::Freight && l.in_flight > 0).count()
    }

    /// Sends what can be sent and dials what is missing, for one origin.
    fn schedule(&mut self, now: Instant, origin: OriginId) {
        self.give_up_old(now, origin);
        // A slot that is free belongs to whoever has none before it is anybody's second one.
        if self.lanes.len() < self.connections_max
            && let Some(waiting) = self.waiting_without_lane(origin)
        {
            self.dial_missing(now, waiting, Role::Express);
            self.dial_missing(now, waiting, Role::Freight);
        }
        let freight_first = self.freight_is_overdue(now, origin);
        let order =
            if freight_first { [Role::Freight, Role::Express] } else { [Role::Express, Role::Freight] };
        for role in order {
            if !self.origins[origin.0].hedges.is_empty() {
                self.send_hedges(now, origin, role);
            }
            self.send_queued(now, origin, role);
            self.dial_missing(now, origin, role);
        }
        let live = self.origins[origin.0].freight_live;
        let lanes_max = self.freight_lanes_max(origin);
        let state = self.origin(origin);
        state.freight.watch(now, live > 0);
        let spare = state.spare(lanes_max);
        if std::mem::replace(&mut state.said_spare, spare) != spare {
            self.actions.push_back(Action::Spare { origin, lanes: spare });
        }
        // A lane that opens when those whom it was dialled for are gone may be the last slot: nothing else would ask for it.
        if self.lanes.len() >= self.connections_max
            && let Some(waiting) = self.waiting_without_lane(origin)
        {
            self.dial_missing(now, waiting, Role::Express);
            self.dial_missing(now, waiting, Role::Freight);
        }
    }
}
