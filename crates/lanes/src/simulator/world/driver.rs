//! The simulated driver, which carries out the dispatcher's actions, and the simulated servers.

use std::net::SocketAddr;

use super::*;
use crate::addresses::FAILED_FOR;
use crate::simulator::network::IdleClose;

/// The no-progress timeout of the driver.
const NO_PROGRESS: Nanos = 30_000_000_000;

/// As in the real driver, a request fails if this many lanes had ended before the request could be sent on them.
const BOUNCES_MAX: u32 = 4;

/// The delays after lost packets of a handshake. A lost SYN costs `SYN_TIMEOUT`. Any other lost packet costs `HELLO_TIMEOUT` and two round
/// trips.
const SYN_TIMEOUT: Nanos = 1_000_000_000;
const HELLO_TIMEOUT: Nanos = 200_000_000;

impl World {
    /// Returns the delay that random loss causes to `packets` packets. Every lost packet adds `each`.
    fn lost_for(&mut self, path: usize, packets: u32, each: Nanos) -> Nanos {
        let loss = self.network.loss(path);
        let lost = (0..packets).filter(|_| self.random.random::<f64>() < loss).count();
        lost as Nanos * each
    }

    fn dial(&mut self, lane: LaneId, origin: usize, role: Role) {
        self.dials += 1;
        // The handshake's packets also wait in queues, and may be lost.
        let path = self.next_path(origin);
        let rtt = nanos(self.paths[path].1.rtt) + self.network.delay(self.now, path);
        let handshake = nanos(self.servers[origin].handshake);
        let syn = self.lost_for(path, 2, SYN_TIMEOUT);
        let hello = self.lost_for(path, 6, 2 * rtt + HELLO_TIMEOUT);
        let greeted = (self.now + syn + rtt + rtt / 2).max(self.shaken[origin]) + handshake;
        self.shaken[origin] = greeted;
        let ends = greeted + rtt / 2 + hello - self.now;
        self.at(syn + rtt, WorldStep::Reached(lane, rtt));
        self.at(ends, WorldStep::DialEnds(lane, ends - syn - rtt));
        let connection = SimulatedConnection {
            origin,
            path,
            role,
            protocol: None,
            riding: Vec::new(),
            waiting: VecDeque::new(),
            answers: 0,
            is_limit_announced: false,
            last_used: 0,
            is_last: false,
        };
        self.connections.insert(lane, connection);
    }

    /// Returns the path for a new connection. Connections use a server's paths in turn, and avoid some of them.
    fn next_path(&mut self, origin: usize) -> usize {
        let now = self.instant();
        let addresses = &mut self.addresses[origin];
        if !addresses.are_fresh(now) {
            let of_it = self.paths.iter().enumerate().filter(|(_, (server, _))| *server == origin);
            addresses.learn(now, of_it.map(|(path, _)| address(path)).collect());
        }
        usize::from(addresses.order(now)[0].port())
    }

    /// Makes new connections avoid a lane's address for a while.
    pub(crate) fn avoid(&mut self, lane: LaneId, time: Duration) {
        let now = self.instant();
        if let Some(connection) = self.connections.get(&lane) {
            self.addresses[connection.origin].avoid(now, address(connection.path), time);
        }
    }

    fn place(&self, attempt: AttemptId, lane: LaneId) -> ConnectionSite {
        let SimulatedRequest { want, role, .. } = self.requests[attempt.0 as usize];
        ConnectionSite { lane, role, server: want.origin, path: self.connections[&lane].path }
    }

    pub(crate) fn dial_ends(&mut self, lane: LaneId, rtt: Duration) {
        let (origin, role) = (self.connections[&lane].origin, self.connections[&lane].role);
        let server = &self.servers[origin];
        let protocol = if role == Role::Freight { server.freight } else { server.express };
        if self.chance(server.faults.dials_fail) {
            self.avoid(lane, FAILED_FOR);
            self.connections.remove(&lane);
            return self.tell(DispatchEvent::DialFailed { lane });
        }
        let connection = self.connections.get_mut(&lane).unwrap();
        connection.protocol = Some(protocol);
        connection.last_used = self.now;
        let address = address(connection.path);
        self.tell(DispatchEvent::Opened { lane, protocol, rtt });
        self.tell(DispatchEvent::Located { lane, address });
        self.rests(lane);
    }

    pub(crate) fn carry_out(&mut self) {
        while let Some(action) = self.dispatcher.poll() {
            match action {
                DispatchAction::Dial { lane, origin, role } => self.dial(lane, origin.0, role),
                DispatchAction::Send { attempt, lane, role } => self.send(attempt, lane, role),
                DispatchAction::Close { lane } => {
                    let left = self.connections.remove(&lane).map(|c| c.riding);
                    assert!(left.is_none_or(|attempts| attempts.is_empty()), "closed a lane in use");
                    self.forget_flows(lane);
                }
                DispatchAction::Window { origin, bytes } => self.network.down.clamps(origin).window = bytes,
                DispatchAction::Unsent { origin, bytes } => self.network.up.clamps(origin).unsent = bytes,
                DispatchAction::SendBuffer { origin, bytes } => {
                    self.network.up.clamps(origin).send_buffer = bytes;
                    let uploading = self.network.up.bulk_lanes();
                    self.send_buffers.push((Duration::from_nanos(self.now), bytes, uploading));
                }
                DispatchAction::Yield { direction, rate } => {
                    let direction = if direction == Direction::Down { Side::Down } else { Side::Up };
                    let said = self.yields[direction as usize].1 + 1;
                    self.yields[direction as usize] = (rate, said);
                    if direction == Side::Down {
                        self.hold_bulk(rate.is_some());
                    }
                    self.at(0, WorldStep::Valve(direction, rate, said));
                }
                DispatchAction::Pace { origin, rate } => self.network.up.clamps(origin).pace = rate,
                DispatchAction::Spare { origin, lanes, .. } => {
                    self.spare[origin.0] = lanes;
                    self.take_over(origin.0, lanes);
                }
                DispatchAction::Fail { attempt, .. } => {
                    let now = self.now;
                    let request = self.request(attempt);
                    (request.failed, request.ended) = (true, Some(now));
                }
            }
        }
        self.lanes_peak = self.lanes_peak.max(self.connections.len());
        assert!(self.connections.len() <= self.ceiling, "{} lanes", self.connections.len());
        assert_eq!(self.connections.len(), self.dispatcher.lanes(), "a lane was lost");
        for (direction, (said, _)) in [Direction::Down, Direction::Up].into_iter().zip(self.yields) {
            assert!(self.dispatcher.counts_small(direction) || said.is_none(), "bulk yields to nothing");
        }
    }

    fn send(&mut self, attempt: AttemptId, lane: LaneId, role: Role) {
        let connection = self.connections.get_mut(&lane).expect("sent on a lane that isn't there");
        let server = &self.servers[connection.origin];
        let protocol = connection.protocol.expect("sent on a lane that isn't open");
        let mut others = connection.riding.iter().chain(&connection.waiting);
        assert!(others.all(|w| self.requests[w.0 as usize].role == role), "express beside freight");
        let running = connection.riding.len() + connection.waiting.len();
        let attempts_max = if protocol.is_multiplexed() { 100 } else { 1 };
        assert!(running < attempts_max, "too many on one lane");
        let rtt = nanos(self.paths[connection.path].1.rtt);
        let is_idle = running == 0 && self.now - connection.last_used + rtt > nanos(server.idle_max);
        let after = match server.ending {
            IdleClose::Reset => Some(rtt),
            IdleClose::Silence => Some(NO_PROGRESS),
            IdleClose::Found | IdleClose::Seen => None,
        };
        if let Some(after) = after.filter(|_| is_idle && !protocol.is_multiplexed()) {
            connection.riding.push(attempt);
            let request = &mut self.requests[attempt.0 as usize];
            (request.running, request.role) = (true, role);
            request.lanes.push(lane);
            return self.at(after, WorldStep::Stale(attempt, lane));
        }
        let is_idle = is_idle && self.now - connection.last_used > nanos(server.idle_max);
        if connection.is_last || is_idle {
            connection.is_last = true;
            if !protocol.is_multiplexed() {
                self.connections.remove(&lane);
                self.forget_flows(lane);
                self.tell(DispatchEvent::Stale { lane });
                self.tell(DispatchEvent::Closed { lane });
            }
            self.tell(DispatchEvent::Finished { attempt, reusable: false });
            return self.bounce(attempt);
        }
        let waits = protocol.is_multiplexed() && connection.riding.len() >= server.streams_max;
        if waits {
            connection.waiting.push_back(attempt);
        } else {
            connection.riding.push(attempt);
        }
        let request = &mut self.requests[attempt.0 as usize];
        (request.running, request.role) = (true, role);
        request.lanes.push(lane);
        self.begin_watching(attempt);
        if !waits {
            self.ask(attempt);
        }
    }

    fn bounce(&mut self, attempt: AttemptId) {
        let now = self.now;
        let request = self.request(attempt);
        request.bounces += 1;
        if request.bounces >= BOUNCES_MAX {
            request.ended = Some(now);
            return;
        }
        self.submitted(attempt);
    }

    fn ask(&mut self, attempt: AttemptId) {
        let request = &self.requests[attempt.0 as usize];
        let (want, lane) = (request.want, *request.lanes.last().unwrap());
        self.track(attempt, |tracker, now| tracker.sent(now));
        if self.chance(self.servers[want.origin].faults.resets) {
            let after = self.random.random_range(0..200_000_000);
            self.at(after, WorldStep::Reset(lane));
        }
        let place = self.place(attempt, lane);
        self.network.begin(self.now, Side::Up, place, attempt, HEAD + want.up);
    }

    /// Handles the arrival of the whole request at the server.
    pub(crate) fn serve(&mut self, attempt: AttemptId) {
        let request = &self.requests[attempt.0 as usize];
        let (origin, lane) = (request.want.origin, *request.lanes.last().unwrap());
        let rtt = nanos(self.paths[self.connections[&lane].path].1.rtt);
        let usual = nanos(self.servers[origin].service);
        let stalls = self.chance(self.servers[origin].faults.stalls);
        let stall = if stalls { self.random.random_range(0..2 * NO_PROGRESS) } else { 0 };
        self.stalled += Duration::from_nanos(stall.min(NO_PROGRESS));
        if stall < NO_PROGRESS {
            self.at(usual + stall, WorldStep::Serve(attempt, lane));
        } else {
            self.at(usual + NO_PROGRESS + rtt, WorldStep::GiveUp(attempt, lane));
        }
    }

    /// Makes the server send the answer. If the answer to an opener is large, the server sends only the bytes that the opener itself takes.
    pub(crate) fn send_answer(&mut self, attempt: AttemptId, lane: LaneId) {
        let SimulatedRequest { want, role, .. } = self.requests[attempt.0 as usize];
        let role = match self.is_large_opener(&want) && self.is_exclusive(lane) {
            true => Role::Freight,
            false => role,
        };
        let body = self.taken(&want, role, lane);
        let place = ConnectionSite { role, ..self.place(attempt, lane) };
        self.network.begin(self.now, Side::Down, place, attempt, HEAD + body);
    }

    /// Returns whether the connection carries one request at a time.
    fn is_exclusive(&self, lane: LaneId) -> bool {
        self.connections[&lane].protocol.is_some_and(|protocol| !protocol.is_multiplexed())
    }

    fn is_large_opener(&self, want: &RequestSpec) -> bool {
        !want.known && want.down > Rules::CHOSEN.freight_above
    }

    /// Returns how many bytes of an object the attempt itself takes. It is 0 if the object is requested again as freight.
    fn taken(&self, want: &RequestSpec, role: Role, lane: LaneId) -> u64 {
        match self.is_large_opener(want) {
            false => want.down,
            true if self.is_exclusive(lane) || role == Role::Freight => want.down,
            true => 0,
        }
    }

    /// Handles the arrival of the answer's head.
    pub(crate) fn answer(&mut self, attempt: AttemptId) {
        let lane = *self.request(attempt).lanes.last().unwrap();
        let (want, role) = (self.request(attempt).want, self.request(attempt).role);
        self.track(attempt, |tracker, now| tracker.head(now));
        let server = &self.servers[want.origin];
        let (answers_max, drains) = (server.answers_max, server.faults.drains);
        let drains = self.chance(drains);
        let is_exclusive = self.is_exclusive(lane);
        let connection = self.connections.get_mut(&lane).unwrap();
        connection.answers += 1;
        let is_first = connection.answers == 1;
        let is_last = drains || connection.answers >= answers_max;
        connection.is_last |= is_last;
        if is_first {
            self.tell(DispatchEvent::Answered { lane });
        }
        if !want.known || crate::dispatch::is_announced_to_dispatcher(want.down) {
            self.tell(DispatchEvent::Sized { attempt, bytes: want.down });
        }
        if self.is_large_opener(&want) {
            match self.taken(&want, role, lane) {
                0 => self.get_all(want.down, want.origin),
                _ => self.opened(attempt, want.origin),
            }
            if is_exclusive && role == Role::Express {
                self.request(attempt).role = Role::Freight;
                self.tell(DispatchEvent::TurnedFreight { attempt });
            }
        }
        if is_last && is_exclusive {
            self.tell(DispatchEvent::Draining { lane });
        }
    }

    /// Ends a running attempt. `well` is true if it has succeeded.
    pub(crate) fn end(&mut self, attempt: AttemptId, well: bool) {
        self.stop_watching(attempt, well);
        let now = self.now;
        let request = self.request(attempt);
        (request.ended, request.running) = (Some(now), false);
        let lane = *request.lanes.last().unwrap();
        self.network.stop(lane, attempt);
        if let Some(object) = self.request(attempt).want.part_of {
            self.next_part(object);
        }
        let is_cut = self.request(attempt).is_cut;
        let mut reusable = false;
        if let Some(connection) = self.connections.get_mut(&lane) {
            let is_multiplexed = connection.protocol.is_some_and(Protocol::is_multiplexed);
            connection.riding.retain(|w| *w != attempt);
            connection.waiting.retain(|w| *w != attempt);
            connection.last_used = now;
            reusable = is_multiplexed || well && !connection.is_last && !is_cut;
            let max = self.servers[connection.origin].streams_max;
            let next = connection.waiting.pop_front();
            connection.riding.extend(next);
            if is_multiplexed && !std::mem::replace(&mut connection.is_limit_announced, true) {
                self.tell(DispatchEvent::Streams { lane, max });
            }
            if let Some(next) = next {
                self.ask(next);
            }
        }
        self.tell(DispatchEvent::Finished { attempt, reusable });
        self.rests(lane);
        if well {
            self.cancel_other(attempt);
        }
    }

    /// If the lane is idle, starts the server's idle timeout.
    fn rests(&mut self, lane: LaneId) {
        let Some(connection) = self.connections.get(&lane).filter(|c| c.riding.is_empty()) else { return };
        let server = &self.servers[connection.origin];
        if server.ending == IdleClose::Seen && server.idle_max < Duration::MAX {
            // `last_used` is half a round trip after the server's last activity, and its FIN takes half a round trip to arrive. The two
            // cancel out.
            self.at(nanos(server.idle_max), WorldStep::IdleEnds(lane, connection.last_used));
        }
    }

    pub(crate) fn idle_ends(&mut self, lane: LaneId, since: Nanos) {
        let is_idle = |c: &&SimulatedConnection| c.riding.is_empty() && c.last_used == since;
        if self.connections.get(&lane).filter(is_idle).is_some() {
            self.reset(lane);
        }
    }

    /// Handles a request that found its connection closed. The request is sent again, and this doesn't count as another attempt.
    pub(crate) fn found_stale(&mut self, attempt: AttemptId, lane: LaneId) {
        self.connections.remove(&lane);
        self.forget_flows(lane);
        self.request(attempt).stale += 1;
        self.request(attempt).running = false;
        self.stop_watching(attempt, false);
        self.tell(DispatchEvent::Stale { lane });
        self.tell(DispatchEvent::Finished { attempt, reusable: false });
        self.submitted(attempt);
    }

    /// Resets a connection, and ends all attempts on it.
    pub(crate) fn reset(&mut self, lane: LaneId) {
        let Some(connection) = self.connections.remove(&lane) else { return };
        for attempt in connection.riding.into_iter().chain(connection.waiting) {
            self.end(attempt, false);
        }
        self.forget_flows(lane);
        self.tell(DispatchEvent::Closed { lane });
    }

    fn forget_flows(&mut self, lane: LaneId) {
        self.network.close(lane);
    }
}

/// Returns the address at the end of a path. Its port is the path's index.
fn address(path: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], path as u16))
}

// Large objects. An upload is divided into parts, of which the program sends a few at once. A download begins as one stream. Other streams
// take over the end of its range if the dispatcher reports spare lanes.

/// The size in bytes of a part of an upload, and the number of parts that the program submits at once.
const USUAL: u64 = 16 << 20;
const UP_AT_ONCE: u64 = 16;

/// A range of fewer bytes than this isn't requested separately.
const CLAIM: u64 = 1 << 20;

/// The maximum number of bytes that another stream takes over at first. The maximum is higher if a path of 1 Gbit/s carries more bytes in a
/// round trip.
const FIRST_SPLIT: u64 = 8 << 20;

/// A large object. `left` is the number of bytes of an upload that weren't submitted yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct LargeObject {
    origin: usize,
    left: u64,
    /// The number of bytes that other streams have taken over so far.
    taken_over: u64,
}

impl World {
    /// Uploads a file in parts.
    pub(crate) fn put_in_parts(&mut self, bytes: u64, origin: usize) {
        self.objects.push(LargeObject { origin, left: bytes, taken_over: 0 });
        (0..UP_AT_ONCE).for_each(|_| self.next_part(self.objects.len() - 1));
    }

    /// Handles an opener whose answer turned out to be large. Other streams may take over a part of it.
    pub(super) fn opened(&mut self, opener: AttemptId, origin: usize) {
        self.request(opener).want.part_of = Some(self.objects.len());
        self.objects.push(LargeObject { origin, left: 0, taken_over: 0 });
        self.take_over(origin, self.spare[origin]);
    }

    /// Requests a whole object again as freight, because its opener shares an express connection.
    pub(super) fn get_all(&mut self, bytes: u64, origin: usize) {
        self.objects.push(LargeObject { origin, left: 0, taken_over: 0 });
        self.submit(Duration::ZERO, RequestSpec::get(bytes).of(origin).part_of(self.objects.len() - 1));
    }

    /// Submits the next part of an upload, if there is one.
    pub(super) fn next_part(&mut self, number: usize) {
        let object = &mut self.objects[number];
        let part = if object.left < USUAL + USUAL / 4 { object.left } else { USUAL };
        if part > 0 {
            object.left -= part;
            let want = RequestSpec::put(part).of(object.origin).part_of(number);
            self.submit(Duration::ZERO, want);
        }
    }

    /// Uses spare lanes: new requests take over the ends of the longest running downloads. They take only bytes that the server hasn't
    /// written yet.
    pub(super) fn take_over(&mut self, origin: usize, lanes: usize) {
        let rtt = self.servers[origin].paths[0].rtt.as_secs_f64();
        let first = FIRST_SPLIT.max((125e6 * rtt) as u64);
        for more in (1..=lanes).rev() {
            let of_an_object = |request: &SimulatedRequest| {
                request.running && request.want.origin == origin && request.want.up == 0
            };
            let running = self.requests.iter().enumerate().filter(|(_, request)| of_an_object(request));
            let unwritten: Vec<_> = running
                .filter_map(|(number, request)| {
                    let (attempt, lane) = (AttemptId(number as u64), *request.lanes.last()?);
                    Some((self.network.down.unwritten(lane, attempt), attempt, lane, request.want.part_of?))
                })
                .collect();
            let Some((left, attempt, lane, number)) = unwritten.iter().copied().max() else { return };
            let of_object = || unwritten.iter().filter(|(.., of)| *of == number);
            let share = of_object().map(|(left, ..)| left).sum::<u64>() / (of_object().count() + more) as u64;
            let bytes = (left / 2).min(share).min(first.max(self.objects[number].taken_over));
            if bytes <= CLAIM {
                return;
            }
            self.objects[number].taken_over += bytes;
            self.network.down.cut(lane, attempt, bytes);
            self.request(attempt).is_cut = true;
            self.submit(Duration::ZERO, RequestSpec::get(bytes).of(origin).part_of(number));
        }
    }
}
