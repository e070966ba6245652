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
mod directions;
mod event;
mod express_lanes;
mod freight_lanes;
mod hedges;
mod idle;
mod ledger;
mod origin;
mod path_model;
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
use event::Class;
pub(crate) use event::{Action, AttemptId, Event, Flow, LaneId, OriginId, Size};
pub use event::{Direction, Role};
use ledger::{Attempt, Lane, LaneState, Ledger};
use origin::OriginState;
pub(crate) use rules::Rules;

use crate::{Path, Protocol};

/// The state machine.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    rules: &'static Rules,
    connections_max: usize,
    ledger: Ledger,
    origins: Vec<OriginState>,
    /// What all origins share, one for each direction.
    links: [AccessLink; 2],
    /// When the limits of what is on its way were decided last.
    limited: Option<Instant>,
    actions: VecDeque<Action>,
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
            ledger: Ledger::by(rules),
            origins: Vec::new(),
            links: [AccessLink::by(rules), AccessLink::by(rules)],
            limited: None,
            actions: VecDeque::new(),
        }
    }

    /// Takes note of what happened at `now`; the consequences are had from [`poll`](Self::poll). Events of attempts and
    /// lanes that are already gone are ignored.
    pub(crate) fn handle(&mut self, now: Instant, event: Event) {
        let was_full = self.ledger.lanes().len() >= self.ceiling(Role::Freight);
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
            Event::Cancelled { attempt } => self.ledger.withdraw(attempt),
            Event::Expected { origin, protocol } => self.origin(origin).expect(protocol),
            Event::Anticipated { origin, attempts } => {
                self.origin(origin).anticipated = attempts;
                self.schedule(now, origin);
            }
            Event::Reached { lane, rtt } => {
                if let Some(origin) = self.ledger.lane(lane).map(|l| l.origin) {
                    self.origin(origin).reached(rtt);
                    self.schedule(now, origin);
                }
            }
            Event::Opened { lane, protocol, rtt } => self.opened(now, lane, protocol, rtt),
            Event::Located { lane, address } => {
                if let Some(l) = self.ledger.lane_mut(lane) {
                    l.address = Some(address);
                }
            }
            Event::DialFailed { lane } => self.dial_failed(now, lane),
            Event::Streams { lane, max } => self.streams(now, lane, max),
            Event::Sized { attempt, bytes } => self.sized(now, attempt, bytes),
            Event::TurnedFreight { attempt } => self.turned_freight(now, attempt),
            Event::Finished { attempt, reusable } => self.finished(now, attempt, reusable),
            Event::Draining { lane } => {
                if let Some(l) = self.ledger.lane_mut(lane) {
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
                if let Some(origin) = self.ledger.lane(lane).map(|l| l.origin) {
                    self.origin(origin).idle.tell(limit);
                }
            }
            Event::Slept => self.slept(),
            Event::Closed { lane } => {
                // What a server closes that was idle for long was not refused.
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
            Event::Moved { origin, down, up, flow } => self.moved(now, origin, (down, up), flow),
            Event::Tick => {
                self.read_links(now);
                self.clamp_uploads(now);
                for origin in 0..self.origins.len() {
                    let id = OriginId(origin);
                    self.ledger.account_mut(id).on_the_way.tick(now);
                    self.origins[origin].tick(now);
                    self.schedule(now, id);
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
        let origins = self.ledger.accounts().zip(&self.origins);
        let origins =
            origins.flat_map(|((id, account), o)| [o.next_tick(account), self.next_too_old(id, o)]).flatten();
        let links = Direction::BOTH.into_iter().zip(&self.links).flat_map(|(direction, link)| {
            let reading = link.path.next_reading().filter(|_| !self.ledger.outstanding(direction).is_none());
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
        self.ledger.lanes().len()
    }

    /// How many attempts are queued or running.
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

    fn submit(&mut self, now: Instant, id: AttemptId, origin: OriginId, size: Size) {
        let state = self.origin(origin);
        state.anticipated = state.anticipated.saturating_sub(1);
        let opener = size.class(self.rules) == Class::Opener;
        let attempt = self.attempt(now, origin, size, opener);
        self.ledger.admit(id, attempt);
        self.schedule(now, origin);
    }

    /// An attempt that comes now, as its size is judged beside what its origin has.
    fn attempt(&self, now: Instant, origin: OriginId, size: Size, opener: bool) -> Attempt {
        let (account, weight) = (self.ledger.account(origin), size.weight(self.rules));
        let role = size.role(self.rules, account.openers, account.express, account.freight);
        Attempt { origin, role, size, weight, submitted: now, lane: None, opener, hedge_of: None }
    }

    fn opened(&mut self, now: Instant, id: LaneId, protocol: Protocol, rtt: Duration) {
        let Some(lane) = self.ledger.lane_mut(id) else { return };
        let (origin, took) = (lane.origin, now.saturating_duration_since(lane.since));
        lane.open(now, protocol);
        // A freight lane speaks what it was made to offer, which says nothing of what express lanes get.
        let spoken = (lane.role == Role::Express).then_some(protocol);
        self.origin(origin).learn(now, spoken, rtt, took);
        self.close_surplus(now, id, origin);
        self.schedule(now, origin);
    }

    fn dial_failed(&mut self, now: Instant, id: LaneId) {
        let Some(role) = self.ledger.lane(id).map(|l| l.role) else { return };
        self.unserved(now, id);
        let Some(origin) = self.ledger.forget(id) else { return };
        // Only when nothing else can carry the role's queue is it given up: each request's own retry decides what next.
        let alive = self.ledger.lanes_of(origin).any(|(_, lane)| lane.role == role && !lane.is_draining());
        if alive {
            self.origin(origin).dial_failed(role, now);
        } else {
            self.origin(origin).forgive(role);
            // What was only announced has no work that could fail: dialling for it would go on and on.
            self.origin(origin).anticipated = 0;
            let hedges = self.waiting_hedges(origin, role);
            self.ledger.account_mut(origin).hedges.retain(|hedge| !hedges.contains(hedge));
            let queued = std::iter::from_fn(|| self.ledger.account_mut(origin).queues.pop(role));
            for attempt in hedges.into_iter().chain(queued).collect::<Vec<_>>() {
                if self.retire(attempt).is_some() {
                    self.actions.push_back(Action::Fail { attempt, because: id });
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

    /// Takes note of an opener's size, which says also what others of its origin are likely to have.
    fn sized(&mut self, now: Instant, id: AttemptId, bytes: u64) {
        let Some((origin, took)) = self.ledger.resize(now, id, bytes) else { return };
        self.origin(origin).sized(bytes, took);
        self.schedule(now, origin);
    }

    fn turned_freight(&mut self, now: Instant, id: AttemptId) {
        if let Some(origin) = self.ledger.turn_freight(id) {
            self.schedule(now, origin);
        }
    }

    fn finished(&mut self, now: Instant, id: AttemptId, reusable: bool) {
        if let Some(origin) = self.ledger.attempt(id).filter(|_| reusable).map(|attempt| attempt.origin)
            && let Some(took) = self.ledger.account(origin).on_the_way.single_flight(now, id)
        {
            self.origin(origin).served(took);
        }
        let Some(attempt) = self.retire(id) else { return };
        if let Some(lane_id) = attempt.lane {
            if let Some(lane) = self.ledger.take_off(now, &attempt) {
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

    /// Forgets an attempt.
    fn retire(&mut self, id: AttemptId) -> Option<Attempt> {
        let attempt = self.ledger.retire(id)?;
        if self.ledger.account(attempt.origin).express == 0 {
            let origin = self.origin(attempt.origin);
            // What was announced has led to nothing more, or its attempts come now.
            origin.anticipated = 0;
            origin.service.begin_anew();
        }
        Some(attempt)
    }

    fn drop_if_spent(&mut self, id: LaneId) {
        if self.ledger.lane(id).is_some_and(|l| l.is_draining() && l.in_flight == 0) {
            self.ledger.forget(id);
            self.actions.push_back(Action::Close { lane: id });
        }
    }

    /// Sends what can be sent and dials what is missing, for one origin.
    fn schedule(&mut self, now: Instant, origin: OriginId) {
        self.give_up_old(now, origin);
        // A slot that is free belongs to whoever has none before it is anybody's second one.
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
        let live = self.ledger.account(origin).freight;
        let lanes_max = self.freight_lanes_max(origin);
        let state = &mut self.origins[origin.0];
        state.freight.watch(now, live > 0);
        let spare = state.spare(live, lanes_max);
        if std::mem::replace(&mut state.said_spare, spare) != spare {
            self.actions.push_back(Action::Spare { origin, lanes: spare });
        }
        // A lane that opens when those whom it was dialled for are gone may be the last slot: nothing else would ask for it.
        if self.ledger.lanes().len() >= self.connections_max
            && let Some(waiting) = self.waiting_without_lane(origin)
        {
            self.dial_missing(now, waiting, Role::Express);
            self.dial_missing(now, waiting, Role::Freight);
        }
    }
}
