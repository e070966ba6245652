//! One direction of the network. Connections send bursts of packets through their path's bottleneck and the machine's link. Both have
//! finite queues and lose packets. The acknowledgements are packets of the other direction, and may be delayed and lost too. The
//! dispatcher's limits on windows, send buffers, unsent bytes and yielding bulk are applied.
//!
//! There are three simplifications: packets keep their order, HTTP/2 has no windows of its own, and an idle connection keeps its congestion
//! window.

pub(crate) mod congestion;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rustc_hash::FxHashMap;

use crate::simulator::network::{BottleneckQueue, OneWayPath};
use receiver::{DELAYED, Receiver};
pub(crate) use sender::Ack;
use sender::{SendBlocker, Sender, TcpFlow, UnackedBurst};

use super::network::{HEADERS, MSS, Nanos, Server, Wire, on_wire};
use crate::dispatch as tcp;
use crate::dispatch::{AttemptId, LaneId, OriginId, Role};

/// The number of bytes of one body that a connection writes before it continues with the next body.
const CHUNK: u64 = 16 << 10;

/// The size of the send buffer of one of our connections, if the dispatcher doesn't limit it.
const SEND_MAX: u64 = 4 << 20;

/// The maximum number of unsent bytes that a server's kernel buffers.
const AHEAD: u64 = 256 << 10;

/// Yielding bulk gets permission to move more bytes once per interval of this length.
const TURN: Nanos = 1_000_000;

/// The direction of bytes: down to the client, or up to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Down,
    Up,
}

impl Side {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Down => Self::Up,
            Self::Up => Self::Down,
        }
    }
}

/// The place of a connection in the network: its lane, role and server, and its path's index among all servers' paths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionSite {
    pub(crate) lane: LaneId,
    pub(crate) role: Role,
    pub(crate) server: usize,
    pub(crate) path: usize,
}

/// An event of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkEvent {
    /// The first bytes of a body have arrived.
    First(AttemptId),
    /// The whole body has arrived.
    All(AttemptId),
}

#[derive(Clone, Copy, Debug)]
enum LinkStep {
    /// A burst arrives at the machine's link.
    Enters(LaneId, UnackedBurst),
    Arrives(LaneId, UnackedBurst),
    /// An acknowledgement of the other direction's bytes arrives at the machine's link (`AckEnters`), and then at the sender
    /// (`AckArrives`).
    AckEnters(Ack),
    AckArrives(Ack),
    /// The delayed acknowledgement of a receiver is due, unless the receiver has sent an acknowledgement since.
    Says(LaneId, u64),
    Paced(LaneId),
    Timeout(LaneId),
    /// Yielding bulk may move further bytes, unless the rate limit has been set again meanwhile.
    Turn(u64),
}

/// A step. Steps are ordered by their time, and then by the order of their creation.
#[derive(Debug)]
struct ScheduledStep(Nanos, u64, LinkStep);

impl PartialEq for ScheduledStep {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for ScheduledStep {}
impl PartialOrd for ScheduledStep {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for ScheduledStep {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

#[derive(Debug)]
struct BodyInTransit {
    lane: LaneId,
    bytes: u64,
    left: u64,
}

/// The dispatcher's limits for each bulk connection to an origin: its window, its send buffer, its unsent bytes and its rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BulkClamps {
    pub(crate) window: Option<u32>,
    pub(crate) send_buffer: Option<u32>,
    pub(crate) unsent: u32,
    /// The rate in bytes per second.
    pub(crate) pace: Option<u32>,
}

impl Default for BulkClamps {
    fn default() -> Self {
        Self { window: None, send_buffer: None, unsent: tcp::Rules::CHOSEN.unsent_unknown, pace: None }
    }
}

#[derive(Debug)]
pub(crate) struct Link {
    side: Side,
    servers: Vec<Server>,
    /// The machine's links, and the paths between them and the servers.
    wires: Vec<BottleneckQueue>,
    paths: Vec<OneWayPath>,
    random: StdRng,
    flows: BTreeMap<LaneId, TcpFlow>,
    bodies: FxHashMap<AttemptId, BodyInTransit>,
    valve: Option<f64>,
    allowance: f64,
    /// The number of times that the rate limit was set. `is_turning` is true while the next turn of yielding bulk is scheduled.
    set: u64,
    is_turning: bool,
    /// The limits of bulk for each server.
    clamps: Vec<BulkClamps>,
    due: BinaryHeap<Reverse<ScheduledStep>>,
    order: u64,
    now: Nanos,
    arrived: Vec<LinkEvent>,
    /// `to_say` has the acknowledgements for this direction's bytes, which the other direction must carry. `brought` has the
    /// acknowledgements for the other direction's bytes, which have arrived over this direction.
    to_say: Vec<Ack>,
    brought: Vec<Ack>,
    /// `carried` has the bytes of each server that have arrived (downloads) or were acknowledged (uploads). `sent` and `lost` are totals
    /// over all servers.
    pub(crate) carried: Vec<u64>,
    pub(crate) sent: u64,
    pub(crate) lost: u64,
}

impl Link {
    pub(crate) fn new(side: Side, wires: &[Wire], servers: &[Server], seed: u64) -> Self {
        let bottleneck = |wire: &Wire| if side == Side::Down { wire.down } else { wire.up };
        let mut random = StdRng::seed_from_u64(seed ^ side as u64);
        let paths = servers.iter().flat_map(|server| server.paths.iter().map(|path| (server.wire, path)));
        let way = |(wire, path)| OneWayPath::new(path, wire, bottleneck(&wires[wire]), &mut random);
        let paths = paths.map(way).collect();
        Self {
            side,
            servers: servers.to_vec(),
            wires: wires.iter().map(|wire| BottleneckQueue::new(bottleneck(wire))).collect(),
            paths,
            random,
            flows: BTreeMap::new(),
            bodies: FxHashMap::default(),
            valve: None,
            allowance: 0.0,
            set: 0,
            is_turning: false,
            clamps: vec![BulkClamps::default(); servers.len()],
            due: BinaryHeap::new(),
            order: 0,
            now: 0,
            arrived: Vec::new(),
            to_say: Vec::new(),
            brought: Vec::new(),
            carried: vec![0; servers.len()],
            sent: 0,
            lost: 0,
        }
    }

    /// Returns the time of the next event.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.due.peek().map(|Reverse(at)| at.0)
    }

    /// Returns whether a connection's sender waits for acknowledgements.
    fn is_waiting(&self, lane: LaneId) -> bool {
        self.flows.get(&lane).is_some_and(|flow| flow.sender.acknowledged < flow.sender.written)
    }

    pub(super) fn now(&self) -> Nanos {
        self.now
    }

    /// Returns how long a packet that is sent now waits in the queues of a path.
    pub(super) fn delay(&self, now: Nanos, path: usize) -> Nanos {
        let way = &self.paths[path];
        way.queue.delay(now) + self.wires[way.wire].delay(now)
    }

    pub(super) fn loss(&self, path: usize) -> f64 {
        self.paths[path].loss
    }

    /// Starts to send a body.
    pub(super) fn begin(&mut self, now: Nanos, place: ConnectionSite, attempt: AttemptId, bytes: u64) {
        self.now = now;
        let (lane, clamp) = (place.lane, self.clamp(place));
        let Server { control, window_max, .. } = self.servers[place.server];
        let flow = self.flows.entry(lane).or_insert_with(|| {
            let receiver = Receiver::new(window_max);
            TcpFlow::new(place, Sender::new(control, receiver.edge(clamp)), receiver)
        });
        flow.place.role = place.role;
        flow.begin(attempt, bytes);
        self.bodies.insert(attempt, BodyInTransit { lane, bytes, left: bytes });
        if self.is_held(place.role) && !self.is_turning {
            self.is_turning = true;
            self.at(TURN, LinkStep::Turn(self.set));
        }
        self.pump(lane);
    }

    /// Stops a body before its end.
    pub(super) fn stop(&mut self, lane: LaneId, attempt: AttemptId) {
        self.bodies.remove(&attempt);
        if let Some(flow) = self.flows.get_mut(&lane) {
            flow.stop(attempt);
        }
    }

    /// Returns how many bytes of a body the sender hasn't written yet.
    pub(crate) fn unwritten(&self, lane: LaneId, attempt: AttemptId) -> u64 {
        self.flows.get(&lane).map_or(0, |flow| flow.unwritten(attempt))
    }

    /// Shortens a body that is being sent by `bytes` at its end.
    pub(crate) fn cut(&mut self, lane: LaneId, attempt: AttemptId, bytes: u64) {
        if let (Some(flow), Some(body)) = (self.flows.get_mut(&lane), self.bodies.get_mut(&attempt))
            && flow.cut(attempt, bytes)
        {
            (body.bytes, body.left) = (body.bytes - bytes, body.left - bytes);
        }
    }

    pub(super) fn close(&mut self, lane: LaneId) {
        self.flows.remove(&lane);
        self.bodies.retain(|_, body| body.lane != lane);
    }

    pub(crate) fn set_valve(&mut self, now: Nanos, rate: Option<u64>) {
        self.now = now;
        self.valve = rate.map(|rate| rate as f64);
        self.allowance = 0.0;
        self.set += 1;
        self.is_turning = true;
        self.at(0, LinkStep::Turn(self.set));
    }

    /// Returns the limits of an origin's bulk connections.
    pub(crate) fn clamps(&mut self, origin: OriginId) -> &mut BulkClamps {
        &mut self.clamps[origin.0]
    }

    /// Returns the number of connections that have bulk to send.
    pub(crate) fn bulk_lanes(&self) -> usize {
        self.flows.values().filter(|flow| flow.is_bulk() && flow.bodies() > 0).count()
    }

    /// Returns the bytes moved so far and TCP's measurements for each connection to a server.
    pub(crate) fn said_by_tcp(
        &self,
        now: Nanos,
        server: usize,
    ) -> impl Iterator<Item = (LaneId, u64, tcp::TcpSample)> {
        let flows = self.flows.iter().filter(move |(_, flow)| flow.place.server == server);
        flows.map(move |(lane, flow)| {
            let round_trip = Duration::from_nanos(flow.sender.round_trip().unwrap_or_default());
            let quiet = Duration::from_nanos(now.saturating_sub(flow.arrived_at));
            (*lane, flow.sender.delivered, tcp::TcpSample { round_trip, quiet, disordered: 0 })
        })
    }

    /// Returns the bodies that are being sent, with their remaining bytes.
    pub(crate) fn flowing(&self) -> impl Iterator<Item = (AttemptId, u64)> {
        let mut all: Vec<_> = self.bodies.iter().map(|(attempt, body)| (*attempt, body.left)).collect();
        all.sort();
        all.into_iter()
    }

    /// Processes the next step, and adds arrivals to `arrived`.
    pub(super) fn step(&mut self, arrived: &mut Vec<LinkEvent>) {
        let Some(Reverse(ScheduledStep(at, _, due))) = self.due.pop() else { return };
        self.now = at;
        match due {
            LinkStep::Enters(lane, burst) => self.enters(lane, burst),
            LinkStep::Arrives(lane, burst) => self.arrives(lane, burst),
            LinkStep::AckEnters(ack) => self.ack_enters(ack),
            LinkStep::AckArrives(ack) => self.brought.push(ack),
            LinkStep::Says(lane, said) => {
                if self.flows.get(&lane).is_some_and(|flow| flow.receiver.said() == said) {
                    self.says(lane);
                }
            }
            LinkStep::Paced(lane) => {
                if let Some(flow) = self.flows.get_mut(&lane) {
                    flow.sender.is_paced = false;
                    self.pump(lane);
                }
            }
            LinkStep::Timeout(lane) => self.timeout(lane),
            LinkStep::Turn(set) if set == self.set => self.turn(),
            LinkStep::Turn(_) => {}
        }
        arrived.append(&mut self.arrived);
    }

    /// Takes the acknowledgements that the other direction must carry.
    pub(super) fn acknowledgements(&mut self) -> Vec<Ack> {
        std::mem::take(&mut self.to_say)
    }

    /// Takes the acknowledgements that have arrived at the senders of the other direction.
    pub(super) fn brought(&mut self) -> Vec<Ack> {
        std::mem::take(&mut self.brought)
    }

    /// Sends an acknowledgement of the other direction's bytes.
    pub(super) fn carry(&mut self, now: Nanos, ack: Ack) {
        self.now = now;
        let way = &mut self.paths[ack.path];
        if way.spares(1, &mut self.random) == 0 {
            return;
        }
        match way.queue.pass(now, 1, HEADERS as f64) {
            (0, _) => {}
            (_, at) if at > now => self.at(at - now, LinkStep::AckEnters(ack)),
            _ => self.ack_enters(ack),
        }
    }

    fn ack_enters(&mut self, ack: Ack) {
        let way = &self.paths[ack.path];
        let (half, (fit, at)) = (way.half, self.wires[way.wire].pass(self.now, 1, HEADERS as f64));
        if fit > 0 {
            self.at(at - self.now + half, LinkStep::AckArrives(ack));
        }
    }

    /// Delivers an acknowledgement to its sender.
    pub(super) fn acked(&mut self, now: Nanos, ack: Ack) {
        self.now = now;
        let Some(flow) = self.flows.get_mut(&ack.lane) else { return };
        let delivered = flow.sender.acked(now, &ack);
        if self.side == Side::Up {
            self.carried[flow.place.server] += delivered;
        }
        self.pump(ack.lane);
    }

    /// Sends a receiver's delayed acknowledgement now, together with data that the receiver's program sends.
    pub(super) fn acknowledge(&mut self, now: Nanos, lane: LaneId) {
        self.now = now;
        if self.flows.get(&lane).is_some_and(|flow| flow.receiver.is_silent()) {
            self.says(lane);
        }
    }

    fn at(&mut self, after: Nanos, due: LinkStep) {
        self.order += 1;
        self.due.push(Reverse(ScheduledStep(self.now + after, self.order, due)));
    }

    /// Returns the dispatcher's limit on a connection's receive window.
    fn clamp(&self, place: ConnectionSite) -> Option<u64> {
        let window = self.clamps[place.server].window.map(u64::from);
        window.filter(|_| self.side == Side::Down && place.role == Role::Freight)
    }

    fn is_held(&self, role: Role) -> bool {
        role == Role::Freight && self.valve.is_some()
    }

    /// Writes and sends the bytes that all limits permit.
    fn pump(&mut self, lane: LaneId) {
        let Some(ConnectionSite { role, server, .. }) = self.flows.get(&lane).map(|flow| flow.place) else {
            return;
        };
        let may_write = self.side == Side::Down || !self.is_held(role);
        loop {
            let room = self.room(lane);
            let flow = self.flows.get_mut(&lane).expect("it is there");
            if may_write {
                flow.write(room);
            }
            let streams = flow.bodies().max(1) as f64;
            let pace = self.clamps[server].pace.filter(|_| self.side == Side::Up && flow.is_bulk());
            let pace = pace.map_or(f64::INFINITY, f64::from).min(self.servers[server].stream_rate * streams);
            match flow.sender.next_burst(self.now, pace) {
                Ok(burst) => self.leaves(lane, burst),
                Err(SendBlocker::Waits) => break,
                Err(SendBlocker::Until(at)) => {
                    if !flow.sender.is_paced {
                        flow.sender.is_paced = true;
                        self.at(at - self.now, LinkStep::Paced(lane));
                    }
                    break;
                }
            }
        }
        self.watch(lane);
    }

    /// Sends the packets of a burst up to the next random loss. If the first packet is to be lost, only this packet is sent, and it is
    /// lost.
    fn leaves(&mut self, lane: LaneId, burst: UnackedBurst) {
        let flow = self.flows.get_mut(&lane).expect("it is there");
        let way = &mut self.paths[flow.place.path];
        let spared = way.spares(burst.segments(), &mut self.random);
        let burst = burst.first(burst.bytes.min(spared.max(1) * MSS));
        flow.sender.left(burst);
        self.sent += burst.bytes;
        if spared == 0 {
            self.lost += burst.bytes;
            return;
        }
        self.sets_out(lane, burst);
    }

    /// Passes a burst to its path's bottleneck. Packets that don't fit into the queue are dropped.
    fn sets_out(&mut self, lane: LaneId, burst: UnackedBurst) {
        let way = &mut self.paths[self.flows[&lane].place.path];
        let (fit, at) = way.queue.pass(self.now, burst.segments().max(1), per_packet(burst));
        let Some(burst) = self.fits(burst, fit) else { return };
        match at > self.now {
            true => self.at(at - self.now, LinkStep::Enters(lane, burst)),
            false => self.enters(lane, burst),
        }
    }

    fn enters(&mut self, lane: LaneId, burst: UnackedBurst) {
        let Some(path) = self.flows.get(&lane).map(|flow| flow.place.path) else { return };
        let way = &self.paths[path];
        let half = way.half;
        let (fit, at) = self.wires[way.wire].pass(self.now, burst.segments().max(1), per_packet(burst));
        if let Some(burst) = self.fits(burst, fit) {
            self.at(at - self.now + half, LinkStep::Arrives(lane, burst));
        }
    }

    /// Returns the part of a burst that fits into a queue.
    fn fits(&mut self, burst: UnackedBurst, packets: u64) -> Option<UnackedBurst> {
        let fits = burst.first(burst.bytes.min(packets * MSS));
        self.lost += burst.bytes - fits.bytes;
        (packets > 0).then_some(fits)
    }

    /// Returns how many bytes a sender's program may write to its kernel now.
    fn room(&self, lane: LaneId) -> u64 {
        let flow = &self.flows[&lane];
        let sender = &flow.sender;
        if self.side == Side::Down {
            return AHEAD.saturating_sub(sender.unsent());
        }
        // On average three quarters of a buffer are filled, because the kernel asks for more only when a third is free.
        let clamps = self.clamps[flow.place.server];
        let clamp = clamps.send_buffer.filter(|_| flow.is_bulk());
        let buffer = clamp.map_or(SEND_MAX, |bytes| u64::from(bytes) * 3 / 4);
        let in_buffer = sender.written - sender.acknowledged;
        let unsent = if flow.is_bulk() { u64::from(clamps.unsent) } else { SEND_MAX };
        buffer.saturating_sub(in_buffer).min(unsent.saturating_sub(sender.unsent()))
    }

    fn watch(&mut self, lane: LaneId) {
        let sender = &mut self.flows.get_mut(&lane).expect("it is there").sender;
        if let Some(deadline) =
            sender.deadline.filter(|at| sender.watched.is_none_or(|watched| *at < watched))
        {
            sender.watched = Some(deadline);
            self.at(deadline.saturating_sub(self.now), LinkStep::Timeout(lane));
        }
    }

    fn arrives(&mut self, lane: LaneId, burst: UnackedBurst) {
        let Some(flow) = self.flows.get_mut(&lane) else { return };
        let role = flow.place.role;
        flow.arrived_at = self.now;
        let at_once = flow.receiver.arrives(burst);
        if self.side == Side::Down {
            self.carried[flow.place.server] += burst.bytes;
        }
        // The head of an answer is always read, because only the head shows if bulk follows.
        let most = if self.side == Side::Up || !self.is_held(role) { u64::MAX } else { self.head(lane) };
        self.reads(lane, most);
        if at_once {
            return self.says(lane);
        }
        let said = self.flows[&lane].receiver.said();
        self.at(DELAYED, LinkStep::Says(lane, said));
    }

    /// Sends an acknowledgement of a receiver.
    fn says(&mut self, lane: LaneId) {
        let Some(place) = self.flows.get(&lane).map(|flow| flow.place) else { return };
        let clamp = self.clamp(place);
        let flow = self.flows.get_mut(&lane).expect("it is there");
        let (edge, (received, blocks)) = (flow.receiver.edge(clamp), flow.receiver.says());
        self.to_say.push(Ack { lane, path: flow.place.path, received, blocks, edge });
    }

    /// Returns how many bytes a connection may read although bulk yields: the first segment of a new body, which contains the head.
    fn head(&self, lane: LaneId) -> u64 {
        let is_new = self.bodies.values().any(|body| body.lane == lane && body.left == body.bytes);
        if is_new { MSS } else { 0 }
    }

    /// Makes the receiver's program read at most `most` bytes.
    fn reads(&mut self, lane: LaneId, most: u64) {
        let flow = self.flows.get_mut(&lane).expect("it is there");
        let bytes = flow.receiver.unread().min(most);
        let (bodies, arrived) = (&mut self.bodies, &mut self.arrived);
        flow.receiver.read(bytes, |attempt, bytes| {
            let Some(body) = bodies.get_mut(&attempt) else { return };
            if body.left == body.bytes {
                arrived.push(LinkEvent::First(attempt));
            }
            body.left -= bytes;
            if body.left == 0 {
                bodies.remove(&attempt);
                arrived.push(LinkEvent::All(attempt));
            }
        });
        let round_trip = flow.sender.round_trip().unwrap_or(2 * self.paths[flow.place.path].half);
        flow.receiver.adjust(self.now, round_trip);
    }

    fn timeout(&mut self, lane: LaneId) {
        let Some(flow) = self.flows.get_mut(&lane) else { return };
        let sender = &mut flow.sender;
        if sender.watched.is_some_and(|at| at > self.now) {
            return;
        }
        sender.watched = None;
        let Some(deadline) = sender.deadline else { return };
        if deadline > self.now {
            return self.watch(lane);
        }
        if sender.timed_out(self.now) {
            let question = UnackedBurst::question(self.now, sender.acknowledged);
            let way = &mut self.paths[flow.place.path];
            if way.spares(1, &mut self.random) > 0 {
                self.sets_out(lane, question);
            }
        }
        self.pump(lane);
    }

    /// Moves at most `most` bytes of yielding bulk, by reading or writing.
    fn moves(&mut self, lane: LaneId, most: u64) -> u64 {
        if self.side == Side::Down {
            let Some(before) = self.flows.get(&lane).map(|flow| flow.receiver.read) else { return 0 };
            self.reads(lane, most);
            let read = self.flows[&lane].receiver.read - before;
            if read > 0 {
                self.says(lane);
            }
            return read;
        }
        let room = self.room(lane).min(most);
        let Some(flow) = self.flows.get_mut(&lane) else { return 0 };
        let written = flow.write(room);
        self.pump(lane);
        written
    }

    /// While bulk yields to small requests, adds the bytes that its rate limit allows for one interval, and moves them on the connections
    /// of bulk in turn. If bulk no longer yields, moves as many bytes as possible.
    fn turn(&mut self) {
        self.is_turning = self.valve.is_some();
        let rate = self.valve.unwrap_or(f64::INFINITY);
        self.allowance = (self.allowance + rate * TURN as f64 * 1e-9).min(rate * 0.01 + MSS as f64);
        let bulk = self.flows.iter().filter(|(_, flow)| flow.is_bulk());
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
            self.at(TURN, LinkStep::Turn(self.set));
        } else {
            self.is_turning = false;
        }
    }
}

/// Returns the mean size of a burst's packets on the wire.
fn per_packet(burst: UnackedBurst) -> f64 {
    on_wire(burst.bytes).max(HEADERS) as f64 / burst.segments().max(1) as f64
}
