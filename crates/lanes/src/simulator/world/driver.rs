//! A driver that carries the dispatcher's actions out, and the servers that answer it.

use super::*;
use std::net::SocketAddr;

use crate::addresses::FAILED_FOR;
use crate::simulator::server::Ending;

/// The time that the driver waits for a silent server.
const NO_PROGRESS: Nanos = 30_000_000_000;

/// The number of lanes that may be gone when a request comes to them until it fails, as in the driver.
const BOUNCES_MAX: u32 = 4;

/// The time until a first packet that was lost is sent again, and one in the middle of a handshake.
const SYN_TIMEOUT: Nanos = 1_000_000_000;
const HELLO_TIMEOUT: Nanos = 200_000_000;

impl World {
    /// Returns the delay by random loss: `each` for every one of `packets` that is lost.
    fn lost_for(&mut self, path: usize, packets: u32, each: Nanos) -> Nanos {
        let loss = self.network.loss(path);
        let lost = (0..packets).filter(|_| self.random.random::<f64>() < loss).count();
        lost as Nanos * each
    }

    fn dial(&mut self, lane: LaneId, origin: usize, role: Role) {
        self.dials += 1;
        // Its packets stand in the queues too, and may be lost.
        let path = self.next_path(origin);
        let rtt = nanos(self.paths[path].1.rtt) + self.network.delay(self.now, path);
        let handshake = nanos(self.servers[origin].handshake);
        let syn = self.lost_for(path, 2, SYN_TIMEOUT);
        let hello = self.lost_for(path, 6, 2 * rtt + HELLO_TIMEOUT);
        let greeted = (self.now + syn + rtt + rtt / 2).max(self.shaken[origin]) + handshake;
        self.shaken[origin] = greeted;
        let ends = greeted + rtt / 2 + hello - self.now;
        self.at(syn + rtt, Due::Reached(lane, rtt));
        self.at(ends, Due::DialEnds(lane, ends - syn - rtt));
        let connection = Connection {
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

    /// Returns which path a new connection takes: those of a server in turn, without those that are left out.
    fn next_path(&mut self, origin: usize) -> usize {
        let now = self.instant();
        let addresses = &mut self.addresses[origin];
        if !addresses.are_fresh(now) {
            let of_it = self.paths.iter().enumerate().filter(|(_, (server, _))| *server == origin);
            addresses.learn(now, of_it.map(|(path, _)| address(path)).collect());
        }
        usize::from(addresses.order(now)[0].port())
    }

    /// New connections leave the address out for a while that a lane leads to.
    pub(crate) fn avoid(&mut self, lane: LaneId, time: Duration) {
        let now = self.instant();
        if let Some(connection) = self.connections.get(&lane) {
            self.addresses[connection.origin].avoid(now, address(connection.path), time);
        }
    }

    fn place(&self, attempt: AttemptId, lane: LaneId) -> Place {
        let Request { want, role, .. } = self.requests[attempt.0 as usize];
        Place { lane, role, server: want.origin, path: self.connections[&lane].path }
    }

    pub(crate) fn dial_ends(&mut self, lane: LaneId, rtt: Duration) {
        let (origin, role) = (self.connections[&lane].origin, self.connections[&lane].role);
        let server = &self.servers[origin];
        let protocol = if role == Role::Freight { server.freight } else { server.express };
        if self.chance(server.faults.dials_fail) {
            self.avoid(lane, FAILED_FOR);
            self.connections.remove(&lane);
            return self.tell(Event::DialFailed { lane });
        }
        let connection = self.connections.get_mut(&lane).unwrap();
        connection.protocol = Some(protocol);
        connection.last_used = self.now;
        let address = address(connection.path);
        self.tell(Event::Opened { lane, protocol, rtt });
        self.tell(Event::Located { lane, address });
        self.rests(lane);
    }

    pub(crate) fn carry_out(&mut self) {
        while let Some(action) = self.dispatcher.poll() {
            match action {
                Action::Dial { lane, origin, role } => self.dial(lane, origin.0, role),
                Action::Send { attempt, lane, role } => self.send(attempt, lane, role),
                Action::Close { lane } => {
                    let left = self.connections.remove(&lane).map(|c| c.riding);
                    assert!(left.is_none_or(|attempts| attempts.is_empty()), "closed a lane in use");
                    self.forget_flows(lane);
                }
                Action::Window { origin, bytes } => self.network.down.clamps(origin).window = bytes,
                Action::Unsent { origin, bytes } => self.network.up.clamps(origin).unsent = bytes,
                Action::SendBuffer { origin, bytes } => {
                    self.network.up.clamps(origin).send_buffer = bytes;
                    let uploading = self.network.up.bulk_lanes();
                    self.send_buffers.push((Duration::from_nanos(self.now), bytes, uploading));
                }
                Action::Yield { direction, rate } => {
                    let direction = if direction == Direction::Down { Side::Down } else { Side::Up };
                    let said = self.yields[direction as usize].1 + 1;
                    self.yields[direction as usize] = (rate, said);
                    if direction == Side::Down {
                        self.hold_bulk(rate.is_some());
                    }
                    self.at(0, Due::Valve(direction, rate, said));
                }
                Action::Pace { origin, rate } => self.network.up.clamps(origin).pace = rate,
                Action::Spare { origin, lanes } => {
                    self.spare[origin.0] = lanes;
                    self.take_over(origin.0, lanes);
                }
                Action::Fail { attempt, .. } => {
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
            Ending::Reset => Some(rtt),
            Ending::Silence => Some(NO_PROGRESS),
            Ending::Found | Ending::Seen => None,
        };
        if let Some(after) = after.filter(|_| is_idle && !protocol.is_multiplexed()) {
            connection.riding.push(attempt);
            let request = &mut self.requests[attempt.0 as usize];
            (request.running, request.role) = (true, role);
            request.lanes.push(lane);
            return self.at(after, Due::Stale(attempt, lane));
        }
        let is_idle = is_idle && self.now - connection.last_used > nanos(server.idle_max);
        if connection.is_last || is_idle {
            connection.is_last = true;
            if !protocol.is_multiplexed() {
                self.connections.remove(&lane);
                self.forget_flows(lane);
                self.tell(Event::Stale { lane });
                self.tell(Event::Closed { lane });
            }
            self.tell(Event::Finished { attempt, reusable: false });
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
            self.at(after, Due::Reset(lane));
        }
        let place = self.place(attempt, lane);
        self.network.begin(self.now, Side::Up, place, attempt, HEAD + want.up);
    }

    /// The server has the whole request.
    pub(crate) fn serve(&mut self, attempt: AttemptId) {
        let request = &self.requests[attempt.0 as usize];
        let (origin, lane) = (request.want.origin, *request.lanes.last().unwrap());
        let rtt = nanos(self.paths[self.connections[&lane].path].1.rtt);
        let usual = nanos(self.servers[origin].service);
        let stalls = self.chance(self.servers[origin].faults.stalls);
        let stall = if stalls { self.random.random_range(0..2 * NO_PROGRESS) } else { 0 };
        self.stalled += Duration::from_nanos(stall.min(NO_PROGRESS));
        if stall < NO_PROGRESS {
            self.at(usual + stall, Due::Serve(attempt, lane));
        } else {
            self.at(usual + NO_PROGRESS + rtt, Due::GiveUp(attempt, lane));
        }
    }

    /// The server sends the answer, of a large object as much as its opener takes.
    pub(crate) fn send_answer(&mut self, attempt: AttemptId, lane: LaneId) {
        let Request { want, role, .. } = self.requests[attempt.0 as usize];
        let role = match self.is_large_opener(&want) && self.is_exclusive(lane) {
            true => Role::Freight,
            false => role,
        };
        let body = self.taken(&want, role, lane);
        let place = Place { role, ..self.place(attempt, lane) };
        self.network.begin(self.now, Side::Down, place, attempt, HEAD + body);
    }

    /// Returns whether a request has the connection for itself.
    fn is_exclusive(&self, lane: LaneId) -> bool {
        self.connections[&lane].protocol.is_some_and(|protocol| !protocol.is_multiplexed())
    }

    fn is_large_opener(&self, want: &Want) -> bool {
        !want.known && want.down > Rules::CHOSEN.freight_above
    }

    /// Returns how much of an object an attempt takes by itself.
    fn taken(&self, want: &Want, role: Role, lane: LaneId) -> u64 {
        match self.is_large_opener(want) {
            false => want.down,
            true if self.is_exclusive(lane) || role == Role::Freight => want.down,
            true => 0,
        }
    }

    /// The answer's head comes.
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
            self.tell(Event::Answered { lane });
        }
        if !want.known {
            self.tell(Event::Sized { attempt, bytes: want.down });
        }
        if self.is_large_opener(&want) {
            match self.taken(&want, role, lane) {
                0 => self.get_all(want.down, want.origin),
                _ => self.opened(attempt, want.origin),
            }
            if is_exclusive && role == Role::Express {
                self.request(attempt).role = Role::Freight;
                self.tell(Event::TurnedFreight { attempt });
            }
        }
        if is_last && is_exclusive {
            self.tell(Event::Draining { lane });
        }
    }

    /// A running attempt ends, well or not.
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
                self.tell(Event::Streams { lane, max });
            }
            if let Some(next) = next {
                self.ask(next);
            }
        }
        self.tell(Event::Finished { attempt, reusable });
        self.rests(lane);
        if well {
            self.cancel_other(attempt);
        }
    }

    /// The server begins to wait for another request, if the lane is idle.
    fn rests(&mut self, lane: LaneId) {
        let Some(connection) = self.connections.get(&lane).filter(|c| c.riding.is_empty()) else { return };
        let server = &self.servers[connection.origin];
        if server.ending == Ending::Seen && server.idle_max < Duration::MAX {
            // By its own clock, half a round trip behind, and as much until we hear of it.
            self.at(nanos(server.idle_max), Due::IdleEnds(lane, connection.last_used));
        }
    }

    pub(crate) fn idle_ends(&mut self, lane: LaneId, since: Nanos) {
        let is_idle = |c: &&Connection| c.riding.is_empty() && c.last_used == since;
        if self.connections.get(&lane).filter(is_idle).is_some() {
            self.reset(lane);
        }
    }

    /// A request has found its connection closed: it goes again, and costs nobody an attempt.
    pub(crate) fn found_stale(&mut self, attempt: AttemptId, lane: LaneId) {
        self.connections.remove(&lane);
        self.forget_flows(lane);
        self.request(attempt).stale += 1;
        self.request(attempt).running = false;
        self.stop_watching(attempt, false);
        self.tell(Event::Stale { lane });
        self.tell(Event::Finished { attempt, reusable: false });
        self.submitted(attempt);
    }

    /// The connection dies, and everything on it.
    pub(crate) fn reset(&mut self, lane: LaneId) {
        let Some(connection) = self.connections.remove(&lane) else { return };
        for attempt in connection.riding.into_iter().chain(connection.waiting) {
            self.end(attempt, false);
        }
        self.forget_flows(lane);
        self.tell(Event::Closed { lane });
    }

    fn forget_flows(&mut self, lane: LaneId) {
        self.network.close(lane);
    }
}

/// The address at a path's end, which is called by the path's number.
fn address(path: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], path as u16))
}
