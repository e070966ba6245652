//! The job that mixes small and large objects, and what its links would take for it at best.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::*;
use crate::simulator::{Bottleneck, Control, Wire, on_wire};

/// A link of the rig: one-way milliseconds, Mbit/s, KiB of queue, percent lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rig(pub(super) f64, pub(super) u64, pub(super) u64, pub(super) f64);

/// The job over any network. The objects are spread over the servers.
#[derive(Clone, Debug)]
pub(super) struct Mixed {
    pub(super) wires: Vec<Wire>,
    pub(super) servers: Vec<Server>,
    pub(super) is_up: bool,
    pub(super) large: Vec<u64>,
    pub(super) small: Vec<u64>,
    pub(super) seed: u64,
}

/// Seconds until half and until nearly all of the small objects and until all objects are there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) small_p50: f64,
    pub(super) small_p99: f64,
    pub(super) total: f64,
}

/// The figures of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Took {
    pub(super) times: Times,
    /// The times as multiples of what the links take at best.
    pub(super) over_floor: Times,
    pub(super) lanes: usize,
    /// The part of the bytes that got lost.
    pub(super) lost: f64,
}

/// The protocols and directions.
pub(super) const CASES: [(Protocol, bool); 4] =
    [(Protocol::H1, false), (Protocol::H2, false), (Protocol::H1, true), (Protocol::H2, true)];

pub(super) fn case(protocol: Protocol, is_up: bool) -> String {
    format!("{protocol:?} {}", if is_up { "up" } else { "down" })
}

impl Rig {
    pub(super) fn wire(self) -> Wire {
        Wire::both(Bottleneck::of(self.1, self.2, self.3))
    }

    pub(super) fn server(self, protocol: Protocol) -> Server {
        let path = Path::new(Duration::from_secs_f64(2.0 * self.0 / 1e3));
        Server { stream_rate: f64::INFINITY, ..Server::new(0, protocol).at(vec![path]) }
    }

    /// As on the rig: four objects of 256 MiB and 200 of 32 to 512 KiB.
    pub(super) fn mixed(self, protocol: Protocol, is_up: bool, control: Control, seed: u64) -> Mixed {
        Mixed {
            wires: vec![self.wire()],
            servers: vec![Server { control, ..self.server(protocol) }],
            is_up,
            large: vec![256 * MIB; 4],
            small: shuffled(sizes(200, 32 * KIB, 512 * KIB).collect(), seed),
            seed,
        }
    }
}

/// In another order with each seed, since without loss nothing else differs.
fn shuffled(mut sizes: Vec<u64>, seed: u64) -> Vec<u64> {
    sizes.shuffle(&mut StdRng::seed_from_u64(seed));
    sizes
}

impl Mixed {
    pub(super) fn run(&self) -> Took {
        self.run_by(&Rules::CHOSEN)
    }

    pub(super) fn run_by(&self, rules: &'static Rules) -> Took {
        let mut world = World::over(&self.wires, self.servers.clone(), CONNECTIONS_MAX, self.seed);
        world.dispatcher = Dispatcher::by(rules, rules.connections_max);
        for (i, bytes) in self.large.iter().enumerate() {
            let server = i % self.servers.len();
            // Files are known, and go in parts; objects aren't until they answer.
            if self.is_up {
                world.put_in_parts(*bytes, server);
            } else {
                world.submit(Duration::ZERO, self.want(*bytes).of(server));
            }
        }
        let of_small = self.small.iter().enumerate();
        let of_small = of_small.map(|(i, size)| self.want(*size).of(i % self.servers.len()));
        let smalls: Vec<_> = of_small.map(|want| world.submit(Duration::ZERO, want)).collect();
        world.run();
        let mut small = world.times(&smalls);
        if small.is_empty() {
            small.push(world.last_end());
        }
        let times = Times {
            small_p50: percentile(&small, 50).as_secs_f64(),
            small_p99: percentile(&small, 99).as_secs_f64(),
            total: world.last_end().as_secs_f64(),
        };
        let floor = self.floor();
        let over_floor = Times {
            small_p50: times.small_p50 / floor.small_p50,
            small_p99: times.small_p99 / floor.small_p99,
            total: times.total / floor.total,
        };
        let link = if self.is_up { &world.network.up } else { &world.network.down };
        Took { times, over_floor, lanes: world.lanes_peak, lost: link.lost as f64 / link.sent as f64 }
    }

    fn want(&self, bytes: u64) -> Want {
        if self.is_up { Want::put(bytes) } else { Want::unknown(bytes) }
    }

    /// The small ones first, the smallest of them first, at the link's rate; a connection and a request before. What goes to each
    /// server has its own path, and shares its link with others.
    fn floor(&self) -> Times {
        let (mut small, mut total) = (Vec::new(), 0.0_f64);
        for (wire, each) in self.wires.iter().enumerate() {
            let servers = || self.servers.iter().filter(|server| server.wire == wire);
            if servers().next().is_none() {
                continue;
            }
            let beyond =
                servers().flat_map(|server| &server.paths).map(|path| path.bottleneck.rate).sum::<f64>();
            let rate = if self.is_up { each.up.rate } else { each.down.rate }.min(beyond);
            // A connection and a request take so long on a server's shortest path.
            let begins = |server: &Server| {
                3.0 * server.paths.iter().map(|path| path.rtt).min().unwrap_or_default().as_secs_f64()
            };
            let of_wire = |sizes: &[u64]| {
                let servers = self.servers.iter().cycle();
                let of_all = sizes.iter().zip(servers).filter(|(_, server)| server.wire == wire);
                of_all.map(|(size, server)| (*size, begins(server))).collect::<Vec<_>>()
            };
            let (mut smalls, large) = (of_wire(&self.small), of_wire(&self.large));
            smalls.sort_by_key(|(size, _)| *size);
            let mut bytes = 0;
            small.extend(smalls.iter().map(|(size, begins)| {
                bytes += on_wire(*size);
                begins + bytes as f64 / rate
            }));
            let bytes = bytes + large.iter().map(|(size, _)| on_wire(*size)).sum::<u64>();
            let soonest = servers().map(begins).fold(f64::INFINITY, f64::min);
            total = total.max(soonest + bytes as f64 / rate);
        }
        if small.is_empty() {
            small.push(total);
        }
        small.sort_by(f64::total_cmp);
        let of = |of_100: usize| small[(small.len() * of_100 / 100).max(1) - 1];
        Times { small_p50: of(50), small_p99: of(99), total }
    }
}
