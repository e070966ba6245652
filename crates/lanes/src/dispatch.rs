//! Who goes on which lane, and when: a state machine without clock or socket.
//!
//! The driver feeds [`Event`]s with the time they happened and carries out the [`Action`]s that come back. Everything
//! the dispatcher knows it was told, so a test can run it in virtual time.
//!
//! Its rules, each in its own file: `class` (express or freight), `express_lanes` and `freight_lanes` (how many
//! connections), `lane` (what a lane may take), `queue` (in which order), `in_flight` (how many at once), `hedges` (where
//! a second request goes), `yielding`, `window` and `send_buffer` (how much bulk moves, and is on its way down and up, beside
//! small work), `goodput` (what the path carries).
//! The invariants: a work that was submitted is sent, failed or cancelled, never forgotten; lanes never pass the ceiling;
//! a lane carries one role at a time.

mod class;
mod event;
mod express_lanes;
mod freight_lanes;
mod goodput;
mod hedges;
mod in_flight;
mod lane;
mod origin;
mod queue;
mod send_buffer;
mod window;
mod yielding;

#[cfg(test)]
mod scenario;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

pub use class::{Class, FREIGHT_ABOVE, Piece};
pub use event::{Action, Direction, Event, LaneId, OriginId, Role, WorkId};
use goodput::{Goodput, Load};
use lane::{Lane, LaneState};
use origin::OriginState;
use rustc_hash::FxHashMap;
use send_buffer::SendBuffer;
pub(crate) use send_buffer::UNSENT_UNKNOWN;
use window::{Sharing, Window};
use yielding::Yielding;

use crate::Protocol;

/// Most connections at once over all origins, unless the caller caps it lower. Twice what the largest express and
/// freight sets of one origin need (128 h1 lanes and 32 freight lanes); S3 and GCS take thousands.
pub const CONNECTIONS_MAX: usize = 256;

/// At the ceiling, where express and freight share lanes in turn, freight that has waited this long goes first.
const FREIGHT_PATIENCE: Duration = Duration::from_secs(2);

/// At the ceiling, how long an origin keeps its only lane while another has none. A turn costs a dial.
const TURN: Duration = Duration::from_secs(1);

/// The state machine.
#[derive(Debug)]
pub struct Dispatcher {
    connections_max: usize,
    origins: Vec<OriginState>,
    // The ids are our own counters, which nobody outside can choose: a fast hash does.
    lanes: FxHashMap<LaneId, Lane>,
    works: FxHashMap<WorkId, Work>,
    lanes_made: u64,
    down: Way,
    up: Way,
    window: Window,
    send_buffer: SendBuffer,
    actions: VecDeque<Action>,
}

/// One direction, over all origins: what leaves this machine or comes to it shares a path.
#[derive(Debug, Default)]
struct Way {
    /// Bytes of small works, queued and running.
    small: u64,
    /// Bulk works, queued and running.
    bulk: usize,
    goodput: Goodput,
    yielding: Yielding,
}

impl Way {
    /// Takes a reading of the bytes moved so far.
    fn read(&mut self, now: Instant, bytes: u64) {
        let load = match self.bulk {
            _ if self.yielding.is_yielding() => Load::Held,
            0 => Load::Small,
            _ => Load::Bulk,
        };
        self.goodput.read(now, bytes, load);
    }

    fn is_idle(&self) -> bool {
        self.small == 0 && self.bulk == 0
    }
}

#[derive(Clone, Copy, Debug)]
struct Work {
    origin: OriginId,
    role: Role,
    piece: Piece,
    weight: u64,
    submitted: Instant,
    lane: Option<LaneId>,
    opener: bool,
    /// The work that this one is a second request for.
    beside: Option<WorkId>,
}

impl Work {
    fn uploads_bulk(&self) -> bool {
        self.piece.up > FREIGHT_ABOVE
    }
}

impl Dispatcher {
    /// A dispatcher that opens at most `connections_max` connections, at least one.
    pub fn new(connections_max: usize) -> Self {
        Self {
            connections_max: connections_max.max(1),
            origins: Vec::new(),
            lanes: FxHashMap::default(),
            works: FxHashMap::default(),
            lanes_made: 0,
            down: Way::default(),
            up: Way::default(),
            window: Window::default(),
            send_buffer: SendBuffer::default(),
            actions: VecDeque::new(),
        }
    }

    /// Takes note of what happened at `now`; the consequences are had from [`poll`](Self::poll). Events of works and
    /// lanes that are already gone are ignored.
    pub fn handle(&mut self, now: Instant, event: Event) {
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
        if self.window.is_due(now) {
            self.window.decided(now);
            self.share_window(now, Role::Express);
            self.share_window(now, Role::Freight);
        }
    }

    fn take_note(&mut self, now: Instant, event: Event) {
        match event {
            Event::Submitted { work, origin, piece } => self.submit(now, work, origin, piece),
            Event::Hedged { work, origin, piece, beside } => self.hedge(now, work, origin, piece, beside),
            Event::Cancelled { work } => self.cancel(work),
            Event::Expected { origin, protocol } => self.origin(origin).expect(protocol),
            Event::Anticipated { origin, works } => {
                self.origin(origin).anticipated = works;
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
            Event::Sized { work, bytes } => self.sized(now, work, bytes),
            Event::TurnedFreight { work } => self.turned_freight(now, work),
            Event::Finished { work, reusable } => self.finished(now, work, reusable),
            Event::Draining { lane } => {
                if let Some(l) = self.lanes.get_mut(&lane) {
                    let origin = l.origin;
                    l.state = LaneState::Draining;
                    self.drop_if_spent(lane);
                    self.schedule(now, origin);
                }
            }
            Event::Closed { lane } => {
                if let Some(origin) = self.forget(lane) {
                    self.schedule(now, origin);
                }
            }
            Event::Moved { origin, bytes } => {
                let busy = self.freight_busy(origin);
                let rtt = self.origin(origin).rtt();
                self.origin(origin).freight.moved(now, bytes, busy, rtt);
            }
            Event::Carried { down, up } => {
                self.down.read(now, down);
                self.up.read(now, up);
                self.clamp_uploads(now);
            }
            Event::Tick => {
                for origin in 0..self.origins.len() {
                    self.origins[origin].tick(now);
                    self.schedule(now, OriginId(origin));
                }
            }
        }
    }

    /// The next thing to be done, if there is one.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Event::Tick`] is wanted at the latest, and [`Event::Moved`] before it where freight is running.
    pub fn next_tick(&self) -> Option<Instant> {
        let origins = self.origins.iter().filter_map(OriginState::next_tick);
        let ways = [&self.down, &self.up].into_iter().flat_map(|way| {
            let reading = way.goodput.next_reading().filter(|_| !way.is_idle());
            [way.yielding.next_tick(), reading]
        });
        origins.chain(ways.flatten()).min()
    }

    /// How many lanes are open or being dialled.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// How many works are queued or running.
    pub fn works(&self) -> usize {
        self.works.len()
    }

    fn origin(&mut self, id: OriginId) -> &mut OriginState {
        while self.origins.len() <= id.0 {
            self.origins.push(OriginState::default());
        }
        &mut self.origins[id.0]
    }

    fn submit(&mut self, now: Instant, id: WorkId, origin: OriginId, piece: Piece) {
        let state = self.origin(origin);
        let role = piece.role(state.openers, state.express_live, state.freight_live);
        let opener = piece.class == Class::Opener;
        let weight = piece.weight();
        state.admit(now, id, role, weight, opener);
        let work = Work { origin, role, piece, weight, submitted: now, lane: None, opener, beside: None };
        self.works.insert(id, work);
        self.count(&work);
        self.schedule(now, origin);
    }

    fn cancel(&mut self, id: WorkId) {
        // A running work ends by its own Finished; a queued one is taken out here.
        if let Some(work) = self.works.get(&id).copied().filter(|w| w.lane.is_none()) {
            self.works.remove(&id);
            self.discount(&work);
            // Its place in the queue is skipped when it comes up: taking it out would make a great cancel quadratic.
            let origin = self.origin(work.origin);
            origin.release(work.role, work.weight, work.opener);
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
        self.schedule(now, origin);
    }

    fn dial_failed(&mut self, now: Instant, id: LaneId) {
        let Some(role) = self.lanes.get(&id).map(|l| l.role) else { return };
        let Some(origin) = self.forget(id) else { return };
        // Only when nothing else can carry the role's queue is it given up: each work's own retry decides what next.
        let alive = self.lanes.values().any(|l| l.origin == origin && l.role == role && !l.is_draining());
        if alive {
            self.origin(origin).dial_failed(role, now);
        } else {
            self.origin(origin).forgive(role);
            // What was only announced has no work that could fail: dialling for it would go on and on.
            self.origin(origin).anticipated = 0;
            let hedges = self.waiting_hedges(origin, role);
            self.origin(origin).hedges.retain(|hedge| !hedges.contains(hedge));
            let queued = std::iter::from_fn(|| self.origins[origin.0].queue(role).pop());
            for work in hedges.into_iter().chain(queued).collect::<Vec<_>>() {
                if self.retire(work).is_some() {
                    self.actions.push_back(Action::Fail { work, because: id });
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
    fn sized(&mut self, now: Instant, id: WorkId, bytes: u64) {
        let Some(work) = self.works.get_mut(&id).filter(|w| w.opener && w.role == Role::Express) else {
            return;
        };
        // What is larger turns freight, or is given up.
        if bytes > FREIGHT_ABOVE {
            return;
        }
        let (before, origin) = (*work, work.origin);
        work.piece.down = bytes;
        let after = *work;
        self.discount(&before);
        self.count(&after);
        self.origin(origin).sized(id, bytes);
        self.schedule(now, origin);
    }

    fn turned_freight(&mut self, now: Instant, id: WorkId) {
        let Some(work) = self.works.get_mut(&id) else { return };
        if work.role == Role::Freight {
            return;
        }
        let (origin, weight, opener, lane) = (work.origin, work.weight, work.opener, work.lane);
        let before = *work;
        let alone = lane.and_then(|l| self.lanes.get(&l)).is_some_and(|l| l.protocol() == Some(Protocol::H1));
        if alone {
            work.role = Role::Freight;
            let after = *work;
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

    fn finished(&mut self, now: Instant, id: WorkId, reusable: bool) {
        let Some(work) = self.retire(id) else { return };
        if let Some(lane_id) = work.lane {
            if let Some(lane) = self.lanes.get_mut(&lane_id) {
                lane.give_back(work.weight);
                lane.uploads -= usize::from(work.uploads_bulk());
                if !reusable {
                    lane.state = LaneState::Draining;
                }
            }
            self.give_way(now, lane_id);
            self.drop_if_spent(lane_id);
        }
        self.schedule(now, work.origin);
    }

    /// Forgets a work and what it counted for.
    fn retire(&mut self, id: WorkId) -> Option<Work> {
        let work = self.works.remove(&id)?;
        self.discount(&work);
        let origin = self.origin(work.origin);
        origin.in_flight.remove(id);
        origin.release(work.role, work.weight, work.opener);
        if origin.express_live == 0 {
            // What was found out has led to nothing more, or its works come now.
            origin.anticipated = 0;
        }
        Some(work)
    }

    /// Counts a work in the directions that it takes.
    fn count(&mut self, work: &Work) {
        if work.role == Role::Express {
            self.down.small += work.piece.down;
            self.up.small += work.piece.up;
        } else {
            self.way(work.piece.direction()).bulk += 1;
        }
    }

    fn discount(&mut self, work: &Work) {
        if work.role == Role::Express {
            self.down.small -= work.piece.down;
            self.up.small -= work.piece.up;
        } else {
            self.way(work.piece.direction()).bulk -= 1;
        }
    }

    fn way(&mut self, direction: Direction) -> &mut Way {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }

    /// Decides how much may be on its way to each lane of a role.
    fn share_window(&mut self, now: Instant, role: Role) {
        let busy = |lane: &&Lane| lane.role == role && (lane.in_flight > lane.uploads || lane.is_dialling());
        let lanes = self.lanes.values().filter(busy);
        let (count, rtt) = lanes.fold((0, Duration::ZERO), |(count, rtt), lane| {
            (count + 1, rtt.max(self.origins[lane.origin.0].rtt()))
        });
        let said = self.window.decide(now, role, Sharing { lanes: count, rtt }, &self.down.goodput);
        self.actions.extend(said.map(|bytes| Action::Window { role, bytes }));
    }

    /// Decides how much bulk may lie in send buffers and be on its way from us.
    fn clamp_uploads(&mut self, now: Instant) {
        let uploading = || self.lanes.values().filter(|lane| lane.uploads > 0);
        let paths = uploading().filter_map(|lane| self.origins.get(lane.origin.0)).map(OriginState::rtt);
        let rtt = paths.max().unwrap_or_default();
        let said = self.send_buffer.decide(now, uploading().count(), self.up.goodput.rate(), rtt);
        self.actions.extend(said.map(|bytes| Action::SendBuffer { bytes }));
        let said = self.send_buffer.unsent(uploading().count(), self.up.goodput.rate());
        self.actions.extend(said.map(|bytes| Action::Unsent { bytes }));
    }

    /// Decides how much bulk may move beside the small work that is outstanding.
    fn yield_bulk(&mut self, now: Instant) {
        let is_stuck = self.small_work_is_stuck();
        let rtt = self.origins.iter().map(OriginState::rtt).filter(|rtt| !rtt.is_zero()).min();
        if self.down.small > 0 {
            self.window.small(now);
        }
        // A small download's request goes up, too.
        if self.up.bulk > 0 && self.up.small + self.down.small > 0 && self.send_buffer.small(now) {
            self.clamp_uploads(now);
        }
        for (direction, way) in [(Direction::Down, &mut self.down), (Direction::Up, &mut self.up)] {
            let outstanding = if way.bulk > 0 && !is_stuck { way.small } else { 0 };
            let rate = way.goodput.rate();
            let said = way.yielding.decide(now, outstanding, rate, rtt.unwrap_or_default());
            if !way.is_idle() {
                way.goodput.begin(now);
            }
            self.actions.extend(said.map(|rate| Action::Yield { direction, rate }));
        }
        if self.down.yielding.is_yielding() || self.up.yielding.is_yielding() {
            self.origins.iter_mut().for_each(|origin| origin.freight.yielded());
        }
    }

    /// Whether small work of some origin waits, at the ceiling, for a lane that something else holds. Where that is bulk,
    /// slowing it would only prolong the wait.
    fn small_work_is_stuck(&self) -> bool {
        let carries =
            |id: &LaneId| self.lanes.get(id).is_some_and(|l| l.role == Role::Express && !l.is_draining());
        let is_stuck = |origin: &OriginState| origin.express_live > 0 && !origin.lanes.iter().any(carries);
        self.lanes.len() >= self.connections_max && self.origins.iter().any(is_stuck)
    }

    /// At the ceiling, a lane on which something has ended is given up for an origin that waits and has none. An origin's
    /// only lane is given up in turns of [`TURN`].
    fn give_way(&mut self, now: Instant, id: LaneId) {
        let Some((own, since)) = self.lanes.get(&id).map(|l| (l.origin, l.since)) else { return };
        if self.lanes.len() < self.connections_max || self.waiting_without_lane(own).is_none() {
            return;
        }
        let lanes = &self.origins[own.0].lanes;
        let gives_one = lanes.iter().any(|l| self.lanes.get(l).is_some_and(Lane::is_draining));
        if gives_one || lanes.len() == 1 && now < since + TURN {
            return;
        }
        self.origins[own.0].gave_way = Some(now);
        if let Some(lane) = self.lanes.get_mut(&id) {
            lane.state = LaneState::Draining;
        }
    }

    /// The origin, other than this one, that has work and no lane: of several the one whose last turn is longest ago.
    fn waiting_without_lane(&self, own: OriginId) -> Option<OriginId> {
        let waits = |o: &OriginState| o.lanes.is_empty() && o.express_live + o.freight_live > 0;
        let origins = self.origins.iter().enumerate().filter(|(i, o)| *i != own.0 && waits(o));
        origins.min_by_key(|(_, o)| o.gave_way).map(|(i, _)| OriginId(i))
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
        // A slot that is free belongs to whoever has none before it is anybody's second.
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
        self.origin(origin).freight.watch(now, live > 0);
    }

    /// How many lanes there may be before another of the role is dialled: freight never takes the last quarter, so that
    /// express work which comes later finds a slot.
    fn ceiling(&self, role: Role) -> usize {
        match role {
            Role::Express => self.connections_max,
            Role::Freight => all_but_a_quarter(self.connections_max),
        }
    }

    /// Whether freight has waited its patience out at the ceiling, where it can't dial a lane of its own. It has one
    /// turn then: behind a long queue of bulk, express would wait for its end.
    fn freight_is_overdue(&self, now: Instant, origin: OriginId) -> bool {
        let state = &self.origins[origin.0];
        let Some(front) = state.freight_queue.front() else { return false };
        let since =
            self.works.get(&front).map(|w| state.freight_sent.map_or(w.submitted, |s| s.max(w.submitted)));
        let waited = since.map(|since| now.saturating_duration_since(since));
        self.lanes.len() >= self.ceiling(Role::Freight) && waited.is_some_and(|w| w >= FREIGHT_PATIENCE)
    }

    fn send_queued(&mut self, now: Instant, origin: OriginId, role: Role) {
        if self.origins[origin.0].queue(role).is_empty() {
            return;
        }
        let share = self.share(now, origin, role);
        while let Some(id) = self.origins[origin.0].queue(role).front() {
            let Some(weight) = self.works.get(&id).map(|w| w.weight) else {
                self.origins[origin.0].queue(role).pop();
                continue;
            };
            if role == Role::Express && !self.origins[origin.0].has_room() {
                return;
            }
            let Some(lane) = self.pick(origin, role, weight, share, None) else { return };
            self.origins[origin.0].queue(role).pop();
            self.put_on(now, id, lane, role);
            self.actions.push_back(Action::Send { work: id, lane, role });
        }
    }

    /// Takes note that a work goes on a lane.
    fn put_on(&mut self, now: Instant, id: WorkId, lane_id: LaneId, role: Role) {
        let Some(work) = self.works.get_mut(&id) else { return };
        work.lane = Some(lane_id);
        let (origin, weight, opener) = (work.origin, work.weight, work.opener);
        if let Some(lane) = self.lanes.get_mut(&lane_id) {
            lane.role = role;
            lane.take(weight);
            lane.uploads += usize::from(work.uploads_bulk());
        }
        if work.role == Role::Express {
            self.origins[origin.0].sent(now, id, weight, opener);
        }
        if role == Role::Freight {
            self.origins[origin.0].freight_sent = Some(now);
        }
    }

    /// The least loaded lane that may take a work of this weight, leaving one out and those at its address to the last.
    fn pick(
        &self,
        origin: OriginId,
        role: Role,
        weight: u64,
        share: Option<u64>,
        but: Option<LaneId>,
    ) -> Option<LaneId> {
        let may_borrow = self.lanes.len() >= self.ceiling(role)
            && (role == Role::Express || self.has_lanes_for_bulk(origin));
        let lanes = self.origins[origin.0].lanes.iter();
        let shunned = but.and_then(|lane| self.lanes.get(&lane)).and_then(|lane| lane.address);
        let mut best: Option<((bool, bool, u64), LaneId)> = None;
        for id in lanes.filter(|id| Some(**id) != but) {
            let Some(lane) = self.lanes.get(id) else { continue };
            let own = lane.role == role;
            // A lane of the other role is lent only where no more can be dialled, and only while it is idle.
            if !(own || may_borrow && lane.in_flight == 0) || !lane.can_take(role, weight, share) {
                continue;
            }
            let key = (shunned.is_some() && lane.address == shunned, !own, lane.weight);
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, *id));
            }
        }
        best.map(|(_, id)| id)
    }

    /// Whether freight may have another of the origin's lanes: some are left for express work, if there is more than one.
    fn has_lanes_for_bulk(&self, origin: OriginId) -> bool {
        let lanes = &self.origins[origin.0].lanes;
        let freight = lanes.iter().filter(|id| self.lanes.get(id).is_some_and(|l| l.role == Role::Freight));
        freight.count() < all_but_a_quarter(lanes.len())
    }

    /// While lanes of the same burst are still being dialled, how much one open lane may take of the queue: its fair
    /// share, so that the first to open doesn't swallow what the others were opened for.
    fn share(&self, now: Instant, origin: OriginId, role: Role) -> Option<u64> {
        let state = &self.origins[origin.0];
        let patience = state.sibling_patience();
        let of_role = || state.lanes.iter().filter_map(|id| self.lanes.get(id)).filter(|l| l.role == role);
        let young = of_role().filter(|l| l.is_dialling() && now < l.since + patience).count() as u64;
        if young == 0 || role == Role::Freight {
            return None;
        }
        let open = of_role().filter(|l| l.is_open()).count() as u64;
        Some(state.express_weight.div_ceil((open + young).max(1)))
    }

    fn dial_missing(&mut self, now: Instant, origin: OriginId, role: Role) {
        // Only an origin that has a lane already leaves slots to others.
        let is_first = self.origins[origin.0].lanes.is_empty();
        let ceiling = if is_first { self.connections_max } else { self.ceiling(role) };
        let hedges = self.waiting_hedges(origin, role).len();
        let state = &mut self.origins[origin.0];
        let anticipated = role == Role::Express && state.anticipated > 0;
        let is_queued = !state.queue(role).is_empty() || hedges > 0;
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
            Role::Express => express_lanes::missing(have, state.express_wanted()),
            Role::Freight => state.freight_wanted().saturating_sub(have),
        };
        let missing = state.may_dial(now, missing.max(for_hedges));
        for _ in 0..missing {
            // For what is only announced no other origin loses a lane: two of them would take it from each other for ever.
            if self.lanes.len() >= ceiling && !(is_queued && self.close_an_idle_lane(origin)) {
                return;
            }
            let lane = LaneId(self.lanes_made);
            self.lanes_made += 1;
            self.lanes.insert(lane, Lane::dialling(origin, role, now));
            self.origin(origin).lanes.push(lane);
            self.actions.push_back(Action::Dial { lane, origin, role });
        }
    }

    /// Makes room at the ceiling for an origin that has no lane it could use: closes an idle lane of another origin.
    fn close_an_idle_lane(&mut self, origin: OriginId) -> bool {
        let idle = self.lanes.iter().filter(|(_, l)| l.origin != origin && l.is_open() && l.in_flight == 0);
        let Some(id) = idle.map(|(id, _)| *id).min() else { return false };
        self.forget(id);
        self.actions.push_back(Action::Close { lane: id });
        true
    }
}

/// So many lanes less a quarter, but at least one and of two or more not all.
fn all_but_a_quarter(lanes: usize) -> usize {
    lanes - (lanes / 4).max(usize::from(lanes > 1))
}
