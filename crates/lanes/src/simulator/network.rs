//! The simulated network, with its links, servers and paths. The acknowledgements of one direction are packets of the other.

use std::time::Duration;

use rand::Rng as _;
use rand::rngs::StdRng;

use super::link::congestion::CongestionControl;
use super::link::{ConnectionSite, Link, LinkEvent, Side};
use crate::Protocol;
use crate::dispatch::{AttemptId, LaneId, RequestSize};

#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) down: Link,
    pub(crate) up: Link,
}

impl Network {
    pub(crate) fn new(wires: &[Wire], servers: &[Server], seed: u64) -> Self {
        let link = |side| Link::new(side, wires, servers, seed);
        Self { down: link(Side::Down), up: link(Side::Up) }
    }

    /// Returns the time of the next event.
    pub(crate) fn next(&self) -> Option<Nanos> {
        [self.down.next(), self.up.next()].into_iter().flatten().min()
    }

    /// Processes the next event. Adds arrivals to `arrived`, and returns their direction.
    pub(crate) fn step(&mut self, arrived: &mut Vec<LinkEvent>) -> Side {
        let is_down = match (self.down.next(), self.up.next()) {
            (Some(down), Some(up)) => down <= up,
            (down, _) => down.is_some(),
        };
        let (link, side) = if is_down { (&mut self.down, Side::Down) } else { (&mut self.up, Side::Up) };
        link.step(arrived);
        let now = link.now();
        self.exchange(now);
        side
    }

    /// Begins to send a body.
    pub(crate) fn begin(
        &mut self,
        now: Nanos,
        side: Side,
        place: ConnectionSite,
        attempt: AttemptId,
        bytes: u64,
    ) {
        // A delayed acknowledgement of the other direction is sent together with these bytes.
        self.link(side.other()).acknowledge(now, place.lane);
        self.exchange(now);
        self.link(side).begin(now, place, attempt, bytes);
    }

    /// Stops a body before its end, in both directions.
    pub(crate) fn stop(&mut self, lane: LaneId, attempt: AttemptId) {
        self.down.stop(lane, attempt);
        self.up.stop(lane, attempt);
    }

    /// Closes a connection.
    pub(crate) fn close(&mut self, lane: LaneId) {
        self.down.close(lane);
        self.up.close(lane);
    }

    /// Returns how long a packet that is sent now and its answer wait in the queues of a path.
    pub(crate) fn delay(&self, now: Nanos, path: usize) -> Nanos {
        self.down.delay(now, path) + self.up.delay(now, path)
    }

    /// Returns the probability that a packet on a path is lost. It is the mean of both directions.
    pub(crate) fn loss(&self, path: usize) -> f64 {
        (self.down.loss(path) + self.up.loss(path)) / 2.0
    }

    fn link(&mut self, side: Side) -> &mut Link {
        match side {
            Side::Down => &mut self.down,
            Side::Up => &mut self.up,
        }
    }

    fn exchange(&mut self, now: Nanos) {
        for side in [Side::Down, Side::Up] {
            let link = self.link(side);
            let (to_carry, brought) = (link.acknowledgements(), link.brought());
            let other = self.link(side.other());
            to_carry.into_iter().for_each(|ack| other.carry(now, ack));
            brought.into_iter().for_each(|ack| other.acked(now, ack));
        }
    }
}

/// A request: the sizes of its body and of its answer's body, and its server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestSpec {
    pub(crate) up: u64,
    pub(crate) down: u64,
    /// True if the dispatcher knows the answer's size.
    pub(crate) known: bool,
    pub(crate) origin: usize,
    /// The index of the object of which this request is a part.
    pub(crate) part_of: Option<usize>,
}

impl RequestSpec {
    pub(crate) fn get(bytes: u64) -> Self {
        Self { up: 0, down: bytes, known: true, origin: 0, part_of: None }
    }

    pub(crate) fn put(bytes: u64) -> Self {
        Self { up: bytes, down: 0, known: true, origin: 0, part_of: None }
    }

    pub(crate) fn unknown(bytes: u64) -> Self {
        Self { known: false, ..Self::get(bytes) }
    }

    pub(crate) fn of(self, origin: usize) -> Self {
        Self { origin, ..self }
    }

    pub(crate) fn part_of(self, object: usize) -> Self {
        Self { part_of: Some(object), ..self }
    }

    pub(crate) fn size(&self) -> RequestSize {
        RequestSize::new(self.up, self.known.then_some(self.down), !self.known || self.down > 0)
    }
}

/// Virtual time in nanoseconds, from the start of the simulation.
pub(crate) type Nanos = u64;

pub(crate) fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}

/// The maximum bytes of data in a packet, and the bytes of its headers (IPv4, and TCP with timestamps).
pub(crate) const MSS: u64 = 1448;
pub(crate) const HEADERS: u64 = 52;

/// Returns the number of bytes on the wire, with headers, for these bytes of data.
pub(crate) fn on_wire(bytes: u64) -> u64 {
    bytes + bytes.div_ceil(MSS) * HEADERS
}

/// A bottleneck: its rate in bytes per second, the size of its queue in bytes, and the share of packets that are lost at random. An
/// infinite rate means that it isn't a bottleneck.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Bottleneck {
    pub(crate) rate: f64,
    pub(crate) queue: u64,
    pub(crate) loss: f64,
}

impl Bottleneck {
    pub(crate) const NONE: Self = Self { rate: f64::INFINITY, queue: 0, loss: 0.0 };

    /// Creates a bottleneck without random loss. Its queue holds the bytes of 8 ms, but at least 128 KiB.
    pub(crate) fn new(rate: f64) -> Self {
        Self { rate, queue: (rate * 0.008).max(131_072.0) as u64, loss: 0.0 }
    }

    /// Creates a bottleneck from the units in the names of the test rig's links: Mbit/s, KiB of queue and percent of loss.
    pub(crate) fn of(mbit: u64, queue_kib: u64, loss_percent: f64) -> Self {
        Self { rate: mbit as f64 * 125e3, queue: queue_kib << 10, loss: loss_percent / 100.0 }
    }
}

/// One of the machine's network links. Several servers may be reached over one link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Wire {
    pub(crate) down: Bottleneck,
    pub(crate) up: Bottleneck,
}

impl Wire {
    /// Creates a link with the same bottleneck in both directions.
    pub(crate) fn both(bottleneck: Bottleneck) -> Self {
        Self { down: bottleneck, up: bottleneck }
    }
}

/// The path between the machine's link and one of a server's addresses. It is the same in both directions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct ServerPath {
    pub(crate) rtt: Duration,
    pub(crate) bottleneck: Bottleneck,
}

impl ServerPath {
    /// Creates a path without a bottleneck.
    pub(crate) fn new(rtt: Duration) -> Self {
        Self { rtt, bottleneck: Bottleneck::NONE }
    }
}

/// The maximum receive window: half of the maximum of `tcp_rmem`, which is 32 MiB in Linux since 6.16 and was 6 MiB before.
pub(crate) const WINDOW_MAX: u64 = 16 << 20;
pub(crate) const WINDOW_MAX_BEFORE: u64 = 3 << 20;

/// A server and the paths to it.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// One path for each of its addresses. New connections use them in turn.
    pub(crate) paths: Vec<ServerPath>,
    /// The index of the machine's link over which the server is reached.
    pub(crate) wire: usize,
    /// The maximum rate of one stream in bytes per second, in either direction.
    pub(crate) stream_rate: f64,
    pub(crate) express: Protocol,
    pub(crate) freight: Protocol,
    /// The time that the server needs for a request.
    pub(crate) service: Duration,
    /// The time that the server needs for a handshake. The server makes one handshake at a time.
    pub(crate) handshake: Duration,
    pub(crate) streams_max: usize,
    /// The server closes a connection after this many answers.
    pub(crate) answers_max: usize,
    /// The server closes a connection that was idle for this long.
    pub(crate) idle_max: Duration,
    pub(crate) ending: IdleClose,
    pub(crate) control: CongestionControl,
    /// The maximum receive window of either end.
    pub(crate) window_max: u64,
    pub(crate) faults: Faults,
}

/// The moment at which the client notices that the server has closed an idle connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IdleClose {
    /// When the client is about to send the next request.
    Found,
    /// When the server's FIN arrives.
    Seen,
    /// When the next request is answered with a reset.
    Reset,
    /// When the next request times out, because it is never answered.
    Silence,
}

/// The numbers of faults per 1000 dials or requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) dials_fail: u32,
    pub(crate) resets: u32,
    pub(crate) stalls: u32,
    /// Answers with `Connection: close` (HTTP/1.1) or GOAWAY (HTTP/2).
    pub(crate) drains: u32,
    pub(crate) cancels: u32,
}

impl Server {
    /// Creates a server with one path without a bottleneck.
    pub(crate) fn new(rtt_ms: u64, express: Protocol) -> Self {
        Self {
            paths: vec![ServerPath::new(Duration::from_millis(rtt_ms))],
            wire: 0,
            stream_rate: 90e6,
            express,
            freight: Protocol::H1,
            service: Duration::from_millis(2),
            handshake: Duration::from_micros(500),
            streams_max: 100,
            answers_max: usize::MAX,
            idle_max: Duration::MAX,
            ending: IdleClose::Found,
            control: CongestionControl::Rate,
            window_max: WINDOW_MAX,
            faults: Faults::default(),
        }
    }

    /// Returns this server with the given faults.
    pub(crate) fn with(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    /// Returns this server with the given paths.
    pub(crate) fn at(self, paths: Vec<ServerPath>) -> Self {
        Self { paths, ..self }
    }

    /// Returns this server with a bottleneck of `rate` bytes per second on its first path.
    pub(crate) fn behind(mut self, rate: f64) -> Self {
        self.paths[0].bottleneck = Bottleneck::new(rate);
        self
    }
}

#[derive(Debug)]
pub(crate) struct BottleneckQueue {
    rate: f64,
    room: f64,
    free_at: Nanos,
}

impl BottleneckQueue {
    pub(crate) fn new(bottleneck: Bottleneck) -> Self {
        Self { rate: bottleneck.rate, room: bottleneck.queue as f64, free_at: 0 }
    }

    /// Accepts as many of these packets of `each` bytes as fit into the queue. Returns their number, and the time when the last of them
    /// has left.
    pub(crate) fn pass(&mut self, now: Nanos, packets: u64, each: f64) -> (u64, Nanos) {
        if self.rate.is_infinite() {
            return (packets, now);
        }
        let waiting = self.delay(now) as f64 * 1e-9 * self.rate;
        // An empty bottleneck accepts one packet, even if its queue is smaller than a packet.
        let least = u64::from(waiting == 0.0);
        let fit = (((self.room - waiting) / each).max(0.0) as u64).max(least).min(packets);
        if fit > 0 {
            self.free_at = self.free_at.max(now) + (fit as f64 * each / self.rate * 1e9) as Nanos;
        }
        (fit, self.free_at)
    }

    /// Returns how long a packet that arrives now has to wait.
    pub(crate) fn delay(&self, now: Nanos) -> Nanos {
        self.free_at.saturating_sub(now)
    }
}

/// One direction of the path to one address: its own bottleneck, its loss, and the index of the machine's link.
#[derive(Debug)]
pub(crate) struct OneWayPath {
    pub(crate) half: Nanos,
    pub(crate) wire: usize,
    pub(crate) queue: BottleneckQueue,
    pub(crate) loss: f64,
    /// The number of packets until the next one is lost.
    until_lost: u64,
}

impl OneWayPath {
    pub(crate) fn new(path: &ServerPath, wire: usize, link: Bottleneck, random: &mut StdRng) -> Self {
        let loss = 1.0 - (1.0 - path.bottleneck.loss) * (1.0 - link.loss);
        let queue = BottleneckQueue::new(path.bottleneck);
        let mut way = Self { half: nanos(path.rtt) / 2, wire, queue, loss, until_lost: u64::MAX };
        way.draw(random);
        way
    }

    /// Returns how many of these packets come before the next random loss. If the result is 0, the first of these packets is lost.
    pub(crate) fn spares(&mut self, packets: u64, random: &mut StdRng) -> u64 {
        if self.until_lost == 0 {
            self.draw(random);
            return 0;
        }
        let spared = packets.min(self.until_lost);
        self.until_lost -= spared;
        spared
    }

    /// Chooses the random number of packets until the next loss.
    fn draw(&mut self, random: &mut StdRng) {
        if self.loss > 0.0 {
            let chance: f64 = random.random_range(f64::MIN_POSITIVE..1.0);
            self.until_lost = (chance.ln() / (1.0 - self.loss).ln()) as u64;
        }
    }
}
