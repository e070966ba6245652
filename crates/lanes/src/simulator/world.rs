//! Simulates the dispatcher's surroundings in virtual time: driver, network, servers and a program's requests.

mod driver;
mod hedging;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use driver::LargeObject;
use hedging::Hedging;

use super::link::{ConnectionSite, LinkEvent, Side};
use super::network::{Bottleneck, Nanos, Network, RequestSpec, Server, ServerPath, Wire, nanos};
use crate::Protocol;
use crate::addresses::Addresses;
use crate::dispatch::{
    AttemptId, Direction, DispatchAction, DispatchEvent, Dispatcher, LaneId, OriginId, Role, Rules, TcpSample,
};

/// If a run takes more steps than this, it fails, because it would probably never end.
const STEPS_MAX: usize = 200_000;

/// The size in bytes of a request's head, and of an answer's.
const HEAD: u64 = 400;

/// A request and its results.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedRequest {
    pub(crate) want: RequestSpec,
    pub(crate) submitted: Nanos,
    pub(crate) ended: Option<Nanos>,
    /// True if no lane could be opened for it.
    pub(crate) failed: bool,
    /// The lanes that carried the request.
    pub(crate) lanes: Vec<LaneId>,
    /// The number of those lanes that the server had already closed.
    pub(crate) stale: u32,
    pub(crate) role: Role,
    running: bool,
    pub(crate) bounces: u32,
    /// True if another request has taken over the end of this request's range. Over HTTP/1.1, the connection of this request can't be used
    /// again.
    is_cut: bool,
}

impl SimulatedRequest {
    fn new(want: RequestSpec) -> Self {
        Self {
            want,
            submitted: 0,
            ended: None,
            failed: false,
            lanes: Vec::new(),
            stale: 0,
            role: Role::Express,
            running: false,
            bounces: 0,
            is_cut: false,
        }
    }
}

#[derive(Debug)]
struct SimulatedConnection {
    origin: usize,
    /// The index of its path among all servers' paths.
    path: usize,
    role: Role,
    /// `None` until it is open.
    protocol: Option<Protocol>,
    riding: Vec<AttemptId>,
    /// Attempts that wait for a stream.
    waiting: VecDeque<AttemptId>,
    answers: usize,
    is_limit_announced: bool,
    last_used: Nanos,
    is_last: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WorldStep {
    Submit(AttemptId),
    Anticipate(usize, usize),
    Cancel(AttemptId),
    Reached(LaneId, Nanos),
    DialEnds(LaneId, Nanos),
    /// The server begins to answer.
    Serve(AttemptId, LaneId),
    GiveUp(AttemptId, LaneId),
    Reset(LaneId),
    /// The client learns that the server has closed a connection, provided that the connection has been idle since this time.
    IdleEnds(LaneId, Nanos),
    Stale(AttemptId, LaneId),
    Valve(Side, Option<u64>, usize),
}

pub(crate) struct World {
    pub(crate) dispatcher: Dispatcher,
    pub(crate) requests: Vec<SimulatedRequest>,
    pub(crate) dials: usize,
    pub(crate) lanes_peak: usize,
    /// The total time of all servers' silences.
    pub(crate) stalled: Duration,
    /// The last rate limit of bulk for each direction, and the number of limits so far.
    pub(crate) yields: [(Option<u64>, usize); 2],
    /// The limits of send buffers that the dispatcher set. Each has its time and the number of connections that uploaded bulk at that time.
    pub(crate) send_buffers: Vec<(Duration, Option<u32>, usize)>,
    /// The numbers of sent requests and of requested hedges.
    pub(crate) sent: u64,
    pub(crate) hedged: u64,
    /// True if the simulated operating system can tell how many bytes were acknowledged.
    pub(crate) tells_acknowledged: bool,
    objects: Vec<LargeObject>,
    /// The number of spare freight lanes for each server, as the dispatcher last reported it.
    spare: Vec<usize>,
    /// The bytes that each connection had moved at the last report to the dispatcher.
    reported: BTreeMap<(Side, LaneId), u64>,
    /// The bytes that had been lost at the last report, for each server.
    reported_lost: Vec<u64>,
    hedging: Hedging,
    servers: Vec<Server>,
    /// The paths of all servers, each with the index of its server. `addresses` has the addresses of each server.
    paths: Vec<(usize, ServerPath)>,
    addresses: Vec<Addresses>,
    ceiling: usize,
    random: StdRng,
    start: Instant,
    now: Nanos,
    due: BinaryHeap<Reverse<(Nanos, u64, WorldStep)>>,
    order: u64,
    pub(crate) network: Network,
    /// The arrivals of the last step, in the direction `side`.
    arrived: Vec<LinkEvent>,
    side: Side,
    connections: BTreeMap<LaneId, SimulatedConnection>,
    /// For each server, the time when it finishes the last of the handshakes so far.
    shaken: Vec<Nanos>,
}

impl World {
    /// Creates a world whose servers are reached over one link of `rate` bytes per second in each direction.
    pub(crate) fn new(rate: f64, servers: Vec<Server>, ceiling: usize, seed: u64) -> Self {
        Self::over(&[Wire::both(Bottleneck::new(rate))], servers, ceiling, seed)
    }

    /// Creates a world whose servers are reached over these links.
    pub(crate) fn over(wires: &[Wire], servers: Vec<Server>, ceiling: usize, seed: u64) -> Self {
        let of_each = servers.iter().enumerate();
        let paths: Vec<_> =
            of_each.flat_map(|(i, server)| server.paths.iter().map(move |path| (i, *path))).collect();
        Self {
            dispatcher: Dispatcher::new(ceiling),
            requests: Vec::new(),
            dials: 0,
            lanes_peak: 0,
            stalled: Duration::ZERO,
            yields: [(None, 0); 2],
            send_buffers: Vec::new(),
            sent: 0,
            hedged: 0,
            tells_acknowledged: true,
            objects: Vec::new(),
            spare: vec![0; servers.len()],
            reported: BTreeMap::new(),
            reported_lost: vec![0; servers.len()],
            hedging: Hedging::default(),
            ceiling,
            random: StdRng::seed_from_u64(seed),
            start: Instant::now(),
            now: 0,
            due: BinaryHeap::new(),
            order: 0,
            network: Network::new(wires, &servers, seed),
            arrived: Vec::new(),
            side: Side::Down,
            connections: BTreeMap::new(),
            shaken: vec![0; servers.len()],
            addresses: (0..servers.len()).map(|_| Addresses::default()).collect(),
            servers,
            paths,
        }
    }

    pub(crate) fn submit(&mut self, after: Duration, want: RequestSpec) -> AttemptId {
        // The client expects the right protocol, as it does for a known store.
        let protocol = self.servers[want.origin].express;
        self.tell(DispatchEvent::Expected { origin: OriginId(want.origin), protocol });
        let attempt = AttemptId(self.requests.len() as u64);
        self.requests
            .push(SimulatedRequest { submitted: self.now + nanos(after), ..SimulatedRequest::new(want) });
        self.at(nanos(after), WorldStep::Submit(attempt));
        attempt
    }

    /// Makes the program announce requests to an origin. The program doesn't have to submit them.
    pub(crate) fn anticipate(&mut self, after: Duration, origin: usize, attempts: usize) {
        self.at(nanos(after), WorldStep::Anticipate(origin, attempts));
    }

    /// Simulates a suspend of the machine, during which every server closes its connections.
    pub(crate) fn stand_still(&mut self) {
        self.tell(DispatchEvent::Slept);
        self.carry_out();
    }

    fn at(&mut self, after: Nanos, due: WorldStep) {
        self.order += 1;
        self.due.push(Reverse((self.now.saturating_add(after), self.order, due)));
    }

    fn chance(&mut self, of_1000: u32) -> bool {
        of_1000 > 0 && self.random.random_range(0..1000) < of_1000
    }

    fn tell(&mut self, event: DispatchEvent) {
        self.dispatcher.handle(self.start + Duration::from_nanos(self.now), event);
    }

    fn request(&mut self, attempt: AttemptId) -> &mut SimulatedRequest {
        &mut self.requests[attempt.0 as usize]
    }

    /// Runs until no event is left.
    pub(crate) fn run(&mut self) {
        let mut only_ticks = 0;
        for step in 0.. {
            assert!(step < STEPS_MAX, "the simulation doesn't end: {:?}", self.dispatcher);
            let tick = self.dispatcher.next_tick().map(|at| nanos(at.saturating_duration_since(self.start)));
            let due = self.due.peek().map(|Reverse((at, _, _))| *at);
            let flows = self.network.next().is_some();
            if due.is_none() && self.dispatcher.attempts() == 0 {
                break;
            }
            let until = [due, tick, self.next_look()].into_iter().flatten().min();
            let arrived = self.flow(until.unwrap_or(Nanos::MAX));
            let Some(now) = arrived.or(until) else {
                // Only acknowledgements are in flight.
                assert_eq!(self.dispatcher.attempts(), 0, "attempts are forgotten");
                break;
            };
            only_ticks = if arrived.is_some() || due == Some(now) || flows { 0 } else { only_ticks + 1 };
            assert!(only_ticks < 10_000, "{} attempts are forgotten", self.dispatcher.attempts());
            let dials_max = 100 + 20 * self.requests.len() * (1 + self.now as usize / 1_000_000_000);
            assert!(self.dials <= dials_max, "{} dials", self.dials);
            self.now = self.now.max(now);
            self.arrive();
            while let Some(Reverse((at, _, _))) = self.due.peek()
                && *at <= self.now
            {
                let Reverse((_, _, due)) = self.due.pop().unwrap();
                self.happen(due);
                self.carry_out();
            }
            if tick.is_some_and(|at| at <= self.now) {
                self.tick();
            }
            self.carry_out();
            if self.next_look().is_some_and(|at| at <= self.now) {
                self.look();
                self.carry_out();
            }
        }
    }

    fn tick(&mut self) {
        for origin in 0..self.servers.len() {
            let (down, up) = (self.network.down.carried[origin], self.network.up.carried[origin]);
            let up = self.tells_acknowledged.then_some(up);
            let flow = self.busiest(origin);
            self.tell(DispatchEvent::Moved { origin: OriginId(origin), down, up, flow });
        }
        self.tell(DispatchEvent::Tick);
    }

    /// Returns TCP's measurements of the connection to a server that has moved the most bytes since the last report.
    fn busiest(&mut self, origin: usize) -> Option<TcpSample> {
        let mut busiest: (u64, Option<TcpSample>) = (0, None);
        for (side, link) in [(Side::Down, &self.network.down), (Side::Up, &self.network.up)] {
            for (lane, carried, flow) in link.said_by_tcp(self.now, origin) {
                let before = self.reported.insert((side, lane), carried).unwrap_or_default();
                if carried.saturating_sub(before) > busiest.0 {
                    busiest = (carried - before, Some(flow));
                }
            }
        }
        let lost = self.network.down.lost + self.network.up.lost;
        let disordered = lost - std::mem::replace(&mut self.reported_lost[origin], lost);
        busiest.1.map(|flow| TcpSample { disordered, ..flow })
    }

    /// Runs the network until `until`, or until an arrival. Returns the time of the arrival.
    fn flow(&mut self, until: Nanos) -> Option<Nanos> {
        loop {
            let at = self.network.next().filter(|at| *at <= until)?;
            self.side = self.network.step(&mut self.arrived);
            if !self.arrived.is_empty() {
                return Some(at);
            }
        }
    }

    /// Processes the arrivals.
    fn arrive(&mut self) {
        for arrived in std::mem::take(&mut self.arrived) {
            match (self.side, arrived) {
                (Side::Up, LinkEvent::First(_)) => {}
                (Side::Up, LinkEvent::All(attempt)) => self.serve(attempt),
                (Side::Down, LinkEvent::First(attempt)) => self.answer(attempt),
                (Side::Down, LinkEvent::All(attempt)) => self.end(attempt, true),
            }
            self.carry_out();
        }
    }

    fn happen(&mut self, due: WorldStep) {
        match due {
            WorldStep::Submit(attempt) => {
                let want = self.request(attempt).want;
                self.submitted(attempt);
                if self.chance(self.servers[want.origin].faults.cancels) {
                    let after = self.random.random_range(0..200_000_000);
                    self.at(after, WorldStep::Cancel(attempt));
                }
            }
            WorldStep::Anticipate(origin, attempts) => {
                self.tell(DispatchEvent::Anticipated { origin: OriginId(origin), attempts });
            }
            WorldStep::Cancel(attempt) if self.request(attempt).ended.is_none() => {
                self.cancel(attempt);
                self.cancel_other(attempt);
            }
            WorldStep::Reached(lane, rtt) => {
                self.tell(DispatchEvent::Reached { lane, rtt: Duration::from_nanos(rtt) });
            }
            WorldStep::DialEnds(lane, rtt) => self.dial_ends(lane, Duration::from_nanos(rtt)),
            WorldStep::Serve(attempt, lane) if self.is_on(attempt, lane) => self.send_answer(attempt, lane),
            WorldStep::GiveUp(attempt, lane) if self.is_on(attempt, lane) => {
                self.end(attempt, false);
            }
            WorldStep::Reset(lane) => self.reset(lane),
            WorldStep::IdleEnds(lane, since) => self.idle_ends(lane, since),
            WorldStep::Stale(attempt, lane) if self.is_on(attempt, lane) => self.found_stale(attempt, lane),
            WorldStep::Valve(direction, rate, said) if self.yields[direction as usize].1 == said => {
                match direction {
                    Side::Down => self.network.down.set_valve(self.now, rate),
                    Side::Up => self.network.up.set_valve(self.now, rate),
                }
            }
            WorldStep::Cancel(_)
            | WorldStep::Serve(..)
            | WorldStep::GiveUp(..)
            | WorldStep::Stale(..)
            | WorldStep::Valve(..) => {}
        }
    }

    fn cancel(&mut self, attempt: AttemptId) {
        self.tell(DispatchEvent::Cancelled { attempt });
        if self.request(attempt).running {
            self.end(attempt, false);
        } else {
            self.request(attempt).ended = Some(self.now);
        }
    }

    fn is_on(&self, attempt: AttemptId, lane: LaneId) -> bool {
        self.connections.get(&lane).is_some_and(|c| c.riding.contains(&attempt))
    }

    /// Returns the times from submission to end of these requests, the shortest first.
    pub(crate) fn times(&self, attempts: &[AttemptId]) -> Vec<Duration> {
        let took = |w: &AttemptId| {
            let request = &self.requests[w.0 as usize];
            Duration::from_nanos(request.ended.expect("not ended") - request.submitted)
        };
        let mut times: Vec<_> = attempts.iter().map(took).collect();
        times.sort();
        times
    }

    /// Returns the time when the last of these requests ended.
    pub(crate) fn end_of(&self, attempts: &[AttemptId]) -> Duration {
        let ends = attempts.iter().map(|w| self.requests[w.0 as usize].ended.expect("not ended"));
        Duration::from_nanos(ends.max().unwrap_or_default())
    }

    /// Returns the time when the last of all requests ended.
    pub(crate) fn last_end(&self) -> Duration {
        let ends = self.requests.iter().map(|r| r.ended.expect("not ended"));
        Duration::from_nanos(ends.max().unwrap_or_default())
    }
}
