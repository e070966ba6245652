//! Who goes on which lane, and when: a state machine without clock or socket.
//!
//! The driver feeds [`Event`]s with the time they happened and carries out the [`Action`]s that come back. Everything
//! the dispatcher knows it was told, so a test can run it in virtual time.
//!
//! Its rules, each in its own file: `class` (express or freight), `express_lanes` and `freight_lanes` (how many
//! connections), `ceiling` (at most), `lane` (what a lane may take), `queue` (in which order), `sending` (on which lane), `idle` (which lane is
//! too old), `in_flight` (how many at once), `hedges` (where a second request goes), and in `ways` for each direction `yielding` (how
//! much bulk moves beside small work), `window`, `send_buffer` and `small_uploads` (how much is on its way), `goodput` (what the path carries).
//! The invariants: a work that was submitted is sent, failed or cancelled, never forgotten; lanes never pass the ceiling;
//! a lane carries one role at a time.

mod ceiling;
mod class;
mod event;
mod express_lanes;
mod freight_lanes;
mod goodput;
mod hedges;
mod idle;
mod in_flight;
mod lane;
mod limit;
mod origin;
mod queue;
mod send_buffer;
mod sending;
mod small_uploads;
mod strangling;
mod ways;
mod window;
mod yielding;

#[cfg(test)]
mod scenario;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

pub use class::{Class, FREIGHT_ABOVE, Piece};
pub use event::{Action, Direction, Event, LaneId, OriginId, Role, WorkId};
use lane::{Lane, LaneState};
use origin::OriginState;
use rustc_hash::FxHashMap;
use send_buffer::SendBuffer;
pub(crate) use send_buffer::UNSENT_UNKNOWN;
use small_uploads::SmallUploads;
use ways::Way;
use window::Window;

use crate::Protocol;

/// Most connections at once over all origins, unless the caller caps it lower. Twice what the largest express and
/// freight sets of one origin need (128 h1 lanes and 32 freight lanes); S3 and GCS take thousands.
pub const CONNECTIONS_MAX: usize = 256;

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
    small_uploads: SmallUploads,
    actions: VecDeque<Action>,
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
            small_uploads: SmallUploads::default(),
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
            self.clamp_small_uploads();
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
            Event::Stale { lane } => self.stale(now, lane),
            Event::KeepsIdle { lane, limit } => {
                if let Some(origin) = self.lanes.get(&lane).map(|l| l.origin) {
                    self.origin(origin).idle.tell(limit);
                }
            }
            Event::Slept => self.slept(),
            Event::Closed { lane } => {
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
            Event::Moved { origin, bytes } => {
                let busy = self.freight_busy(origin);
                let rtt = self.origin(origin).rtt();
                self.origin(origin).freight.moved(now, bytes, busy, rtt);
            }
            Event::Carried { down, up } => {
                self.down.read(now, down);
                self.up.read(now, up);
                self.clamp_uploads(now);
                let rate = small_uploads::assumed(&self.up.goodput);
                self.origins.iter_mut().for_each(|origin| origin.in_flight.is_carried_up(rate));
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
        let origins = self.origins.iter().flat_map(|o| [o.next_tick(), self.next_too_old(o)]).flatten();
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
        self.origin(origin).sized(now, id, bytes);
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
                lane.give_back(now, work.weight);
                lane.uploads -= usize::from(work.uploads_bulk());
                let rested = lane.rested;
                if reusable {
                    self.origin(work.origin).idle.served(rested);
                } else {
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
}
