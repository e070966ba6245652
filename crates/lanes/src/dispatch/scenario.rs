//! The dispatcher against a simulated network, in virtual time.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;

/// A network and a server, by their numbers.
#[derive(Clone, Debug)]
struct Network {
    rtt: Duration,
    protocol: Protocol,
    /// What a small request takes beside the round trip.
    service: Duration,
    /// Bytes a second of one freight stream.
    stream_rate: f64,
    /// Chances out of 1000.
    dial_fails: u32,
    closes: u32,
    drains: u32,
    cancels: u32,
    /// How many origins the works are spread over.
    origins: usize,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            rtt: Duration::from_millis(50),
            protocol: Protocol::H2,
            service: Duration::from_millis(2),
            stream_rate: 90e6,
            dial_fails: 0,
            closes: 0,
            drains: 0,
            cancels: 0,
            origins: 1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Submit(WorkId),
    Reached(LaneId),
    DialEnds(LaneId),
    WorkEnds(WorkId),
    Cancel(WorkId),
    Tick,
}

struct World {
    network: Network,
    dispatcher: Dispatcher,
    random: StdRng,
    start: Instant,
    now: Instant,
    due: BinaryHeap<Reverse<(Instant, u64, Due)>>,
    order: u64,
    pieces: HashMap<WorkId, Piece>,
    /// Works on each open lane.
    riding: HashMap<LaneId, Vec<WorkId>>,
    dialling: HashSet<LaneId>,
    bulk_moved: u64,
    ended: HashMap<WorkId, Duration>,
    failed: HashSet<WorkId>,
    lanes_peak: usize,
    dials: usize,
    sent_on: HashMap<LaneId, usize>,
    roles: HashMap<WorkId, Role>,
}

impl World {
    fn new(network: Network, connections_max: usize, seed: u64) -> Self {
        let now = Instant::now();
        Self {
            network,
            dispatcher: Dispatcher::new(connections_max),
            random: StdRng::seed_from_u64(seed),
            start: now,
            now,
            due: BinaryHeap::new(),
            order: 0,
            pieces: HashMap::new(),
            riding: HashMap::new(),
            dialling: HashSet::new(),
            bulk_moved: 0,
            ended: HashMap::new(),
            failed: HashSet::new(),
            lanes_peak: 0,
            dials: 0,
            sent_on: HashMap::new(),
            roles: HashMap::new(),
        }
    }

    fn submit(&mut self, after: Duration, piece: Piece) -> WorkId {
        let work = WorkId(self.pieces.len() as u64);
        self.pieces.insert(work, piece);
        self.at(after, Due::Submit(work));
        work
    }

    fn at(&mut self, after: Duration, due: Due) {
        self.order += 1;
        self.due.push(Reverse((self.now + after, self.order, due)));
    }

    fn chance(&mut self, of_1000: u32) -> bool {
        self.random.random_range(0..1000) < of_1000
    }

    /// Runs until nothing is left to happen.
    fn run(&mut self) {
        for _ in 0..2_000_000 {
            let tick = self.dispatcher.next_tick();
            let next = self.due.peek().map(|Reverse((at, _, _))| *at);
            let due = match (tick, next) {
                (Some(tick), Some(next)) if tick < next => (tick, Due::Tick),
                // With nothing else due and nothing alive, a tick would only come again and again.
                (_, None) if self.dispatcher.works() == 0 => return,
                (Some(tick), None) => (tick, Due::Tick),
                (None, None) => panic!("{} works are forgotten", self.dispatcher.works()),
                (_, Some(_)) => self.due.pop().map(|Reverse((at, _, due))| (at, due)).unwrap(),
            };
            self.now = self.now.max(due.0);
            self.happen(due.1);
            self.carry_out();
        }
        panic!("the world doesn't come to rest: {:?}", self.dispatcher);
    }

    fn happen(&mut self, due: Due) {
        let now = self.now;
        match due {
            Due::Submit(work) => {
                let piece = self.pieces[&work];
                let origin = OriginId(work.0 as usize % self.network.origins);
                self.dispatcher.handle(now, Event::Submitted { work, origin, piece });
                if self.chance(self.network.cancels) {
                    let after = self.random.random_range(0..100);
                    self.at(Duration::from_millis(after), Due::Cancel(work));
                }
            }
            Due::Cancel(work) => {
                self.dispatcher.handle(now, Event::Cancelled { work });
                let riding = self.riding.values().any(|works| works.contains(&work));
                if !riding {
                    self.end(work);
                }
            }
            Due::Reached(lane) => {
                self.dispatcher.handle(now, Event::Reached { lane, rtt: self.network.rtt });
            }
            Due::DialEnds(lane) => {
                self.dialling.remove(&lane);
                if self.chance(self.network.dial_fails) {
                    self.dispatcher.handle(now, Event::DialFailed { lane });
                } else {
                    self.riding.insert(lane, Vec::new());
                    let (protocol, rtt) = (self.network.protocol, self.network.rtt);
                    self.dispatcher.handle(now, Event::Opened { lane, protocol, rtt });
                }
            }
            Due::WorkEnds(work) => self.work_ends(work),
            Due::Tick => {
                let bytes = self.bulk_moved;
                for origin in (0..self.network.origins).map(OriginId) {
                    self.dispatcher.handle(now, Event::Moved { origin, bytes });
                }
                self.dispatcher.handle(now, Event::Tick);
            }
        }
    }

    fn work_ends(&mut self, work: WorkId) {
        let Some(lane) = self.riding.iter().find(|(_, works)| works.contains(&work)).map(|(l, _)| *l) else {
            return;
        };
        let now = self.now;
        if self.chance(self.network.closes) {
            // The connection dies, and with it everything on it.
            for work in self.riding.remove(&lane).unwrap() {
                self.dispatcher.handle(now, Event::Finished { work, reusable: false });
                self.end(work);
            }
            self.dispatcher.handle(now, Event::Closed { lane });
            return;
        }
        if self.chance(self.network.drains) {
            self.dispatcher.handle(now, Event::Draining { lane });
        }
        self.riding.get_mut(&lane).unwrap().retain(|w| *w != work);
        if self.pieces[&work].class == Class::Opener && self.chance(300) {
            self.dispatcher.handle(now, Event::TurnedFreight { work });
        }
        self.bulk_moved += self.pieces[&work].down;
        self.dispatcher.handle(now, Event::Finished { work, reusable: true });
        self.end(work);
    }

    fn end(&mut self, work: WorkId) {
        self.ended.entry(work).or_insert(self.now - self.start);
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.dispatcher.poll() {
            match action {
                Action::Dial { lane, .. } => {
                    self.dials += 1;
                    self.dialling.insert(lane);
                    let jitter = Duration::from_micros(self.random.random_range(0..3000));
                    self.at(self.network.rtt, Due::Reached(lane));
                    self.at(self.network.rtt * 2 + jitter, Due::DialEnds(lane));
                }
                Action::Send { work, lane, role } => {
                    let riding = self.riding.get_mut(&lane).expect("sent on a lane that isn't open");
                    riding.push(work);
                    assert!(self.network.protocol == Protocol::H2 || riding.len() == 1, "two on one h1 lane");
                    assert!(riding.len() <= 100);
                    *self.sent_on.entry(lane).or_default() += 1;
                    self.roles.insert(work, role);
                    let body =
                        (self.pieces[&work].up + self.pieces[&work].down) as f64 / self.network.stream_rate;
                    let takes = self.network.rtt + self.network.service + Duration::from_secs_f64(body);
                    self.at(takes, Due::WorkEnds(work));
                }
                Action::Close { lane } => {
                    let left = self.riding.remove(&lane).unwrap_or_default();
                    assert!(left.is_empty(), "closed a lane in use");
                }
                Action::Yield { .. } | Action::Window { .. } => {}
                Action::Fail { work, .. } => {
                    self.failed.insert(work);
                    self.end(work);
                }
            }
        }
        self.lanes_peak = self.lanes_peak.max(self.dispatcher.lanes());
    }

    fn last_end(&self) -> Duration {
        self.ended.values().copied().max().unwrap_or_default()
    }
}

fn small() -> Piece {
    Piece::new(4700, Some(0), false)
}

fn bulk() -> Piece {
    Piece::new(0, Some(8 << 20), true)
}

#[test]
fn fifty_cold_uploads_take_three_round_trips() {
    let mut world = World::new(Network::default(), CONNECTIONS_MAX, 1);
    for _ in 0..50 {
        world.submit(Duration::ZERO, small());
    }
    world.run();
    assert!(world.last_end() < Duration::from_millis(160), "{:?}", world.last_end());
    assert!(world.dials <= 16);
}

#[test]
fn a_server_nearby_gets_few_lanes_even_from_a_cold_start() {
    let network = Network { rtt: Duration::from_micros(200), ..Network::default() };
    let mut world = World::new(network, CONNECTIONS_MAX, 8);
    for _ in 0..50 {
        world.submit(Duration::ZERO, small());
    }
    world.run();
    assert!(world.dials <= 3, "{} dials", world.dials);
}

#[test]
fn the_first_lane_to_open_leaves_the_others_their_share() {
    let mut world = World::new(Network::default(), CONNECTIONS_MAX, 2);
    for _ in 0..400 {
        world.submit(Duration::ZERO, small());
    }
    world.run();
    let most = world.sent_on.values().max().copied().unwrap_or_default();
    assert!(world.sent_on.len() > 4 && most <= 2 * 400 / world.sent_on.len(), "{:?}", world.sent_on);
}

#[test]
fn a_lane_that_never_opens_does_not_keep_its_share() {
    let mut world = World::new(Network { dial_fails: 500, ..Network::default() }, CONNECTIONS_MAX, 5);
    for _ in 0..200 {
        world.submit(Duration::ZERO, small());
    }
    world.run();
    assert_eq!(world.ended.len(), 200);
    assert!(world.failed.is_empty(), "some dials succeeded, so nothing is given up");
}

#[test]
fn when_no_dial_succeeds_every_work_fails() {
    let mut world = World::new(Network { dial_fails: 1000, ..Network::default() }, 8, 6);
    for _ in 0..20 {
        world.submit(Duration::ZERO, small());
    }
    world.run();
    assert_eq!((world.failed.len(), world.dispatcher.lanes()), (20, 0));
}

#[test]
fn small_requests_do_not_wait_for_bulk() {
    for protocol in [Protocol::H1, Protocol::H2] {
        let network = Network { protocol, rtt: Duration::from_millis(2), ..Network::default() };
        let mut world = World::new(network, 16, 3);
        for _ in 0..300 {
            world.submit(Duration::ZERO, bulk());
        }
        let smalls: Vec<_> = (0..50)
            .map(|i| world.submit(Duration::from_millis(100 + i), Piece::new(0, Some(9000), true)))
            .collect();
        world.run();
        let last = smalls.iter().map(|w| world.ended[w]).max().unwrap();
        assert!(last < Duration::from_millis(250), "{protocol:?}: {last:?}");
        assert!(world.lanes_peak <= 16);
    }
}

#[test]
fn an_h1_freight_lane_does_not_make_the_server_one_of_h1() {
    let mut dispatcher = Dispatcher::new(CONNECTIONS_MAX);
    let (now, origin, rtt) = (Instant::now(), OriginId(0), Duration::from_millis(50));
    dispatcher.handle(now, Event::Submitted { work: WorkId(0), origin, piece: bulk() });
    let Some(Action::Dial { lane, role: Role::Freight, .. }) = dispatcher.poll() else { panic!("no dial") };
    dispatcher.handle(now, Event::Opened { lane, protocol: Protocol::H1, rtt });
    for work in 1..=1000 {
        dispatcher.handle(now, Event::Submitted { work: WorkId(work), origin, piece: small() });
    }
    assert!(dispatcher.lanes() <= 33, "{} lanes", dispatcher.lanes());
}

#[test]
fn one_connection_serves_both_roles_in_turn() {
    for protocol in [Protocol::H1, Protocol::H2] {
        let mut world = World::new(Network { protocol, ..Network::default() }, 1, 4);
        for i in 0..40 {
            world.submit(Duration::ZERO, if i % 4 == 0 { bulk() } else { small() });
        }
        world.run();
        assert_eq!((world.ended.len(), world.lanes_peak), (40, 1));
    }
}

#[test]
fn an_origin_gets_the_slot_that_another_has_freed() {
    for protocol in [Protocol::H1, Protocol::H2] {
        let network = Network { protocol, origins: 2, drains: 1000, closes: 300, ..Network::default() };
        let mut world = World::new(network, 1, 9);
        for _ in 0..40 {
            world.submit(Duration::ZERO, small());
        }
        world.run();
        assert_eq!((world.ended.len(), world.lanes_peak), (40, 1));
    }
}

#[test]
fn freight_is_not_starved_at_the_ceiling() {
    let network = Network { protocol: Protocol::H1, ..Network::default() };
    let mut world = World::new(network, 1, 7);
    let heavy = world.submit(Duration::from_millis(10), bulk());
    for _ in 0..1000 {
        world.submit(Duration::ZERO, small());
    }
    world.run();
    assert!(world.ended[&heavy] < FREIGHT_PATIENCE + Duration::from_secs(1), "{:?}", world.ended[&heavy]);
}

#[test]
fn every_request_ends_within_the_ceiling_whatever_the_network_does() {
    for seed in 0..1000 {
        let mut random = StdRng::seed_from_u64(seed);
        let network = Network {
            rtt: Duration::from_micros(random.random_range(100..100_000)),
            protocol: if random.random() { Protocol::H1 } else { Protocol::H2 },
            service: Duration::from_micros(random.random_range(10..50_000)),
            stream_rate: random.random_range(1e6..1e9),
            dial_fails: random.random_range(0..400),
            closes: random.random_range(0..100),
            drains: random.random_range(0..100),
            cancels: random.random_range(0..200),
            origins: random.random_range(1..4),
        };
        let ceiling = random.random_range(1..40);
        let mut world = World::new(network.clone(), ceiling, seed);
        let works = random.random_range(1..400);
        for _ in 0..works {
            let piece = match random.random_range(0..10) {
                0 => bulk(),
                1..=3 => Piece::new(0, None, true),
                _ => small(),
            };
            let after = Duration::from_micros(random.random_range(0..200_000));
            world.submit(after, piece);
        }
        world.run();
        let about = format!("seed {seed}, ceiling {ceiling}, {network:?}");
        assert_eq!(world.ended.len(), works, "{about}");
        assert_eq!(world.dispatcher.works(), 0, "{about}");
        assert!(world.lanes_peak <= ceiling, "{} lanes: {about}", world.lanes_peak);
        for state in &world.dispatcher.origins {
            let counts = (state.express_live, state.freight_live, state.openers, state.express_weight);
            assert_eq!(counts, (0, 0, 0, 0), "{about}");
        }
    }
}
