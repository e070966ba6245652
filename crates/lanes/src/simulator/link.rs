//! One direction of the machine's link: connections send bursts of packets through their path's bottleneck and the link's, which
//! have finite queues; random ones are lost; what arrives is acknowledged half a round trip later. What the dispatcher says of
//! windows, send buffers, bulk in the kernel and yielding holds for them.
//!
//! Left out: acknowledgements are never lost or delayed, packets keep their order, and only the dispatcher closes windows.

pub(crate) mod congestion;
mod flow;
mod queue;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use rustc_hash::FxHashMap;

use super::network::{Nanos, Path, Wire, nanos};
use crate::dispatch::{AttemptId, LaneId, OriginId, Role};
use flow::{Flow, Held, Sent};
use queue::Queue;

/// Bytes of a body in a packet.
const MSS: u64 = 1448;

/// What a connection writes of one body before it is the next one's turn.
const CHUNK: u64 = 16 << 10;

/// What the system lets a connection have outstanding where nobody clamps it: to us, and from us.
const RECEIVE_MAX: u64 = 6 << 20;
const SEND_MAX: u64 = 4 << 20;

/// What a sender's program is ahead of its kernel where nothing bounds it.
const AHEAD: u64 = 256 << 10;

/// How often held bulk gets what it may move.
const TURN: Nanos = 1_000_000;

/// Which way bytes go, seen from us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Down,
    Up,
}

/// What the link tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrived {
    /// The first bytes of a body.
    First(AttemptId),
    /// All of it.
    All(AttemptId),
}

#[derive(Clone, Copy, Debug)]
enum Due {
    /// A burst comes to the link's bottleneck.
    Enters(LaneId, Sent),
    Arrives(LaneId, Sent),
    /// What was received without a gap, and what the receiver takes now.
    Acked(LaneId, Sent, u64, u64),
    Opens(LaneId, u64),
    Paced(LaneId),
    Timeout(LaneId),
    Turn,
}

/// An event by its time, and by when it was made.
#[derive(Debug)]
struct At(Nanos, u64, Due);

impl PartialEq for At {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for At {}
impl PartialOrd for At {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for At {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

#[derive(Debug)]
struct Body {
    lane: LaneId,
    bytes: u64,
    left: u64,
}

/// What each connection to an origin that carries bulk may have on its way to us, hold in its send buffer, and of that unsent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clamps {
    pub(crate) window: Option<u32>,
    pub(crate) send_buffer: Option<u32>,
    pub(crate) unsent: u32,
}

impl Default for Clamps {
    fn default() -> Self {
        Self { window: None, send_buffer: None, unsent: crate::dispatch::UNSENT_UNKNOWN }
    }
}

#[derive(Debug)]
pub(crate) struct Link {
    side: Side,
    paths: Vec<Path>,
    queue: Queue,
    path_queues: Vec<Queue>,
    /// Packets until the next one is lost, and how often one is.
    until_lost: u64,
    loss: f64,
    random: StdRng,
    flows: BTreeMap<LaneId, Flow>,
    bodies: FxHashMap<AttemptId, Body>,
    valve: Option<f64>,
    allowance: f64,
    is_turning: bool,
    /// What each origin's bulk is clamped to.
    clamps: Vec<Clamps>,
    due: BinaryHeap<Reverse<At>>,
    order: u64,
    now: Nanos,
    arrived: Vec<Arrived>,
    /// Bytes of each origin that have come or, on their way from us, were acknowledged; and how many were sent, and lost.
    pub(crate) carried: Vec<u64>,
    pub(crate) sent: u64,
    pub(crate) lost: u64,
}

impl Link {
    pub(crate) fn new(side: Side, wire: Wire, paths: &[Path], seed: u64) -> Self {
        let queue = |rate: f64| Queue::new(rate, wire.queue as f64);
        let mut link = Self {
            side,
            paths: paths.to_vec(),
            queue: queue(wire.rate),
            path_queues: paths.iter().map(|path| queue(path.rate)).collect(),
            until_lost: u64::MAX,
            loss: wire.loss,
            random: StdRng::seed_from_u64(seed ^ side as u64),
            flows: BTreeMap::new(),
            bodies: FxHashMap::default(),
            valve: None,
            allowance: 0.0,
            is_turning: false,
            clamps: vec![Clamps::default(); paths.len()],
            due: BinaryHeap::new(),
            order: 0,
            now: 0,
            arrived: Vec::new(),
            carried: vec![0; paths.len()],
            sent: 0,
            lost: 0,
        };
        link.draw();
        link
    }

    /// When something happens by itself.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.due.peek().map(|Reverse(at)| at.0)
    }

    /// How long a packet waits now in the queues on an origin's path.
    pub(crate) fn delay(&self, now: Nanos, origin: usize) -> Nanos {
        self.path_queues[origin].delay(now) + self.queue.delay(now)
    }

    /// A body begins to be sent.
    pub(crate) fn begin(
        &mut self,
        now: Nanos,
        lane: LaneId,
        place: (usize, Role),
        attempt: AttemptId,
        bytes: u64,
    ) {
        self.now = now;
        let (origin, role) = place;
        let edge = self.window(origin, role);
        let control = self.paths[origin].control;
        let flow = self.flows.entry(lane).or_insert_with(|| Flow::new(origin, role, control, edge));
        flow.role = role;
        flow.begin(attempt, bytes);
        self.bodies.insert(attempt, Body { lane, bytes, left: bytes });
        if self.is_held(role) && !self.is_turning {
            self.is_turning = true;
            self.at(TURN, Due::Turn);
        }
        self.pump(lane);
    }

    /// A body stops before its end.
    pub(crate) fn stop(&mut self, lane: LaneId, attempt: AttemptId) {
        self.bodies.remove(&attempt);
        if let Some(flow) = self.flows.get_mut(&lane) {
            flow.stop(attempt);
        }
    }

    /// A connection is gone.
    pub(crate) fn close(&mut self, lane: LaneId) {
        self.flows.remove(&lane);
        self.bodies.retain(|_, body| body.lane != lane);
    }

    pub(crate) fn set_valve(&mut self, now: Nanos, rate: Option<u64>) {
        self.now = now;
        self.valve = rate.map(|rate| rate as f64);
        self.allowance = 0.0;
        if rate.is_none() || !self.is_turning {
            self.is_turning = true;
            self.at(0, Due::Turn);
        }
    }

    /// What the connections to an origin are clamped to where they carry bulk.
    pub(crate) fn clamps(&mut self, origin: OriginId) -> &mut Clamps {
        &mut self.clamps[origin.0]
    }

    /// What flows, and how many bytes of it are still to come.
    pub(crate) fn flowing(&self) -> impl Iterator<Item = (AttemptId, u64)> {
        let mut all: Vec<_> = self.bodies.iter().map(|(attempt, body)| (*attempt, body.left)).collect();
        all.sort();
        all.into_iter()
    }

    /// Does what is due first, at its time; what has arrived by it is added to `arrived`.
    pub(crate) fn step(&mut self, arrived: &mut Vec<Arrived>) {
        let Some(Reverse(At(at, _, due))) = self.due.pop() else { return };
        self.now = at;
        match due {
            Due::Enters(lane, burst) => self.enters(lane, burst),
            Due::Arrives(lane, burst) => self.arrives(lane, burst),
            Due::Acked(lane, burst, received, edge) => self.acked(lane, burst, received, edge),
            Due::Opens(lane, edge) => {
                if let Some(flow) = self.flows.get_mut(&lane) {
                    flow.opens(edge);
                    self.pump(lane);
                }
            }
            Due::Paced(lane) => {
                if let Some(flow) = self.flows.get_mut(&lane) {
                    flow.is_paced = false;
                    self.pump(lane);
                }
            }
            Due::Timeout(lane) => self.timeout(lane),
            Due::Turn => self.turn(),
        }
        arrived.append(&mut self.arrived);
    }

    fn at(&mut self, after: Nanos, due: Due) {
        self.order += 1;
        self.due.push(Reverse(At(self.now + after, self.order, due)));
    }

    fn half(&self, origin: usize) -> Nanos {
        nanos(self.paths[origin].rtt) / 2
    }

    /// What a connection of a role takes beyond what it has read.
    fn window(&self, origin: usize, role: Role) -> u64 {
        match (self.side, role) {
            (Side::Down, Role::Freight) => self.clamps[origin].window.map_or(RECEIVE_MAX, u64::from),
            _ => RECEIVE_MAX,
        }
    }

    fn is_held(&self, role: Role) -> bool {
        role == Role::Freight && self.valve.is_some()
    }

    /// Writes what may be written, and sends what may be sent.
    fn pump(&mut self, lane: LaneId) {
        let Some((role, origin)) = self.flows.get(&lane).map(|flow| (flow.role, flow.origin)) else { return };
        let may_write = self.side == Side::Down || !self.is_held(role);
        loop {
            let room = self.room(lane);
            let flow = self.flows.get_mut(&lane).expect("it is there");
            if may_write {
                flow.write(room);
            }
            let streams = flow.bodies().max(1) as f64;
            let burst = match flow.next_burst(self.now, self.paths[origin].stream_rate * streams) {
                Ok(burst) => burst,
                Err(Held::Waits) => break,
                Err(Held::Until(at)) => {
                    if !flow.is_paced {
                        flow.is_paced = true;
                        self.at(at - self.now, Due::Paced(lane));
                    }
                    break;
                }
            };
            // A burst ends before a packet that is lost, and that one goes alone.
            let is_lost = self.until_lost == 0;
            let burst = match is_lost {
                true => burst.first(burst.bytes.min(MSS)),
                false => burst.first(burst.bytes.min(self.until_lost.saturating_mul(MSS))),
            };
            flow.left(burst);
            self.sent += burst.bytes;
            self.watch(lane);
            if is_lost {
                self.lost += burst.bytes;
                self.draw();
                continue;
            }
            self.until_lost -= burst.segments();
            match self.path_queues[origin].pass(self.now, burst.bytes) {
                Some(at) if at > self.now => self.at(at - self.now, Due::Enters(lane, burst)),
                Some(_) => self.enters(lane, burst),
                None => self.lost += burst.bytes,
            }
        }
    }

    /// What a connection's sender may write into its kernel.
    fn room(&self, lane: LaneId) -> u64 {
        let flow = &self.flows[&lane];
        if self.side == Side::Down {
            return AHEAD.saturating_sub(flow.unsent());
        }
        // The kernel fills a buffer by three quarters on average before it asks for more.
        let clamps = self.clamps[flow.origin];
        let clamp = clamps.send_buffer.filter(|_| flow.role == Role::Freight);
        let buffer = clamp.map_or(SEND_MAX, |bytes| u64::from(bytes) * 3 / 4);
        let in_buffer = flow.written - flow.acknowledged;
        let unsent = if flow.role == Role::Freight { u64::from(clamps.unsent) } else { SEND_MAX };
        buffer.saturating_sub(in_buffer).min(unsent.saturating_sub(flow.unsent()))
    }

    fn watch(&mut self, lane: LaneId) {
        let flow = self.flows.get_mut(&lane).expect("it is there");
        if let Some(deadline) = flow.deadline.filter(|at| flow.watched.is_none_or(|watched| *at < watched)) {
            flow.watched = Some(deadline);
            self.at(deadline.saturating_sub(self.now), Due::Timeout(lane));
        }
    }

    fn enters(&mut self, lane: LaneId, burst: Sent) {
        let Some(origin) = self.flows.get(&lane).map(|flow| flow.origin) else { return };
        match self.queue.pass(self.now, burst.bytes) {
            Some(at) => self.at(at - self.now + self.half(origin), Due::Arrives(lane, burst)),
            None => self.lost += burst.bytes,
        }
    }

    fn arrives(&mut self, lane: LaneId, burst: Sent) {
        let Some(flow) = self.flows.get_mut(&lane) else { return };
        let (role, origin) = (flow.role, flow.origin);
        flow.arrives(burst);
        // The head of an answer is read in any case: it says that what follows is bulk.
        let most = if self.side == Side::Up || !self.is_held(role) { u64::MAX } else { self.head(lane) };
        self.reads(lane, most);
        let flow = &self.flows[&lane];
        let (received, edge) = (flow.read + flow.unread(), flow.read + self.window(origin, role));
        self.at(self.half(origin), Due::Acked(lane, burst, received, edge));
    }

    /// Bytes that are read of a body to know what it is.
    fn head(&self, lane: LaneId) -> u64 {
        let is_new = self.bodies.values().any(|body| body.lane == lane && body.left == body.bytes);
        if is_new { MSS } else { 0 }
    }

    /// The receiver's program takes what has come, up to so many bytes.
    fn reads(&mut self, lane: LaneId, most: u64) {
        let flow = self.flows.get_mut(&lane).expect("it is there");
        let bytes = flow.unread().min(most);
        let (bodies, arrived) = (&mut self.bodies, &mut self.arrived);
        flow.read(bytes, |attempt, bytes| {
            let Some(body) = bodies.get_mut(&attempt) else { return };
            if body.left == body.bytes {
                arrived.push(Arrived::First(attempt));
            }
            body.left -= bytes;
            if body.left == 0 {
                bodies.remove(&attempt);
                arrived.push(Arrived::All(attempt));
            }
        });
        if self.side == Side::Down {
            self.carried[flow.origin] += bytes;
        }
    }

    fn acked(&mut self, lane: LaneId, burst: Sent, received: u64, edge: u64) {
        let Some(flow) = self.flows.get_mut(&lane) else { return };
        let new = flow.acked(self.now, burst, received);
        flow.opens(edge);
        if self.side == Side::Up {
            self.carried[flow.origin] += new;
        }
        self.watch(lane);
        self.pump(lane);
    }

    fn timeout(&mut self, lane: LaneId) {
        let Some(flow) = self.flows.get_mut(&lane) else { return };
        if flow.watched.is_some_and(|at| at > self.now) {
            return;
        }
        flow.watched = None;
        let Some(deadline) = flow.deadline else { return };
        if deadline <= self.now {
            flow.timed_out();
            self.pump(lane);
        }
        self.watch(lane);
    }

    /// Held bulk moves by so many bytes, read or written.
    fn moves(&mut self, lane: LaneId, most: u64) -> u64 {
        let Some(flow) = self.flows.get(&lane) else { return 0 };
        let (role, origin) = (flow.role, flow.origin);
        if self.side == Side::Down {
            let before = flow.read;
            self.reads(lane, most);
            let read = self.flows[&lane].read;
            if read > before {
                let edge = read + self.window(origin, role);
                self.at(self.half(origin), Due::Opens(lane, edge));
            }
            return read - before;
        }
        let room = self.room(lane).min(most);
        let written = self.flows.get_mut(&lane).expect("it is there").write(room);
        self.pump(lane);
        written
    }

    /// Held bulk gets its allowance of a moment, the connections in turn; what is held no more moves.
    fn turn(&mut self) {
        self.is_turning = self.valve.is_some();
        let rate = self.valve.unwrap_or(f64::INFINITY);
        self.allowance = (self.allowance + rate * TURN as f64 * 1e-9).min(rate * 0.01 + MSS as f64);
        let bulk = self.flows.iter().filter(|(_, flow)| flow.role == Role::Freight);
        let mut lanes: Vec<_> = bulk.map(|(lane, _)| *lane).collect();
        let first = if lanes.is_empty() { 0 } else { self.order as usize % lanes.len() };
        lanes.rotate_left(first);
        for lane in lanes {
            if self.allowance < MSS as f64 {
                break;
            }
            let moved = self.moves(lane, self.allowance as u64);
            self.allowance -= moved as f64;
        }
        if self.valve.is_some() && !self.flows.is_empty() {
            self.at(TURN, Due::Turn);
        } else {
            self.is_turning = false;
        }
    }

    /// Draws how many packets get through until one is lost.
    fn draw(&mut self) {
        if self.loss > 0.0 {
            let chance: f64 = self.random.random_range(f64::MIN_POSITIVE..1.0);
            self.until_lost = (chance.ln() / (1.0 - self.loss).ln()) as u64;
        }
    }
}
