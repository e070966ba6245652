//! The mixed job: small and large objects at the same time, over many kinds of links. The job's times are compared with the best times that
//! the links permit.

use std::sync::atomic::{AtomicUsize, Ordering};

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::*;
use crate::simulator::{Bottleneck, CongestionControl, Wire, on_wire};

/// A link of the test rig: one-way delay in milliseconds, rate in Mbit/s, queue in KiB, and percent of lost packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct RigLink(pub(super) f64, pub(super) u64, pub(super) u64, pub(super) f64);

/// A mixed job over any network. The objects are distributed over the servers.
#[derive(Clone, Debug)]
pub(super) struct MixedJob {
    pub(super) wires: Vec<Wire>,
    pub(super) servers: Vec<Server>,
    pub(super) is_up: bool,
    pub(super) large: Vec<u64>,
    pub(super) small: Vec<u64>,
    pub(super) seed: u64,
}

/// The seconds until half of the small objects, 99 % of them, and all objects have arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) small_p50: f64,
    pub(super) small_p99: f64,
    pub(super) total: f64,
}

/// The results of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobFigures {
    pub(super) times: Times,
    /// The times as multiples of the links' best times.
    pub(super) over_floor: Times,
    pub(super) lanes: usize,
    /// The share of the sent bytes that was lost.
    pub(super) lost: f64,
}

/// The combinations of protocol and direction. True means uploads.
pub(super) const CASES: [(Protocol, bool); 4] =
    [(Protocol::H1, false), (Protocol::H2, false), (Protocol::H1, true), (Protocol::H2, true)];

pub(super) fn case(protocol: Protocol, is_up: bool) -> String {
    format!("{protocol:?} {}", if is_up { "up" } else { "down" })
}

impl RigLink {
    pub(super) fn wire(self) -> Wire {
        Wire::both(Bottleneck::of(self.1, self.2, self.3))
    }

    pub(super) fn server(self, protocol: Protocol) -> Server {
        let path = ServerPath::new(Duration::from_secs_f64(2.0 * self.0 / 1e3));
        Server { stream_rate: f64::INFINITY, ..Server::new(0, protocol).at(vec![path]) }
    }

    /// Returns the job that the test rig runs: four objects of 256 MiB, and 200 of 32 to 512 KiB.
    pub(super) fn mixed(
        self,
        protocol: Protocol,
        is_up: bool,
        control: CongestionControl,
        seed: u64,
    ) -> MixedJob {
        MixedJob {
            wires: vec![self.wire()],
            servers: vec![Server { control, ..self.server(protocol) }],
            is_up,
            large: vec![256 * MIB; 4],
            small: shuffled(sizes(200, 32 * KIB, 512 * KIB).collect(), seed),
            seed,
        }
    }
}

/// Shuffles the sizes into an order that the seed determines. On a link without random loss, this order is the only difference between
/// seeds.
fn shuffled(mut sizes: Vec<u64>, seed: u64) -> Vec<u64> {
    sizes.shuffle(&mut StdRng::seed_from_u64(seed));
    sizes
}

impl MixedJob {
    pub(super) fn run(&self) -> JobFigures {
        self.run_by(&Rules::CHOSEN)
    }

    pub(super) fn run_by(&self, rules: &'static Rules) -> JobFigures {
        let mut world = World::over(&self.wires, self.servers.clone(), CONNECTIONS_MAX, self.seed);
        world.dispatcher = Dispatcher::by(rules, rules.connections_max);
        for (i, bytes) in self.large.iter().enumerate() {
            let server = i % self.servers.len();
            // The sizes of files are known, so large files are uploaded in parts. The sizes of objects are unknown until their answers
            // begin.
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
        JobFigures { times, over_floor, lanes: world.lanes_peak, lost: link.lost as f64 / link.sent as f64 }
    }

    fn want(&self, bytes: u64) -> RequestSpec {
        if self.is_up { RequestSpec::put(bytes) } else { RequestSpec::unknown(bytes) }
    }

    /// Returns the best possible times. They assume three round trips for a connection and a request. After these round trips, the link
    /// carries all small objects at its full rate, the smallest first, and then the large objects. Servers on the same link share its rate.
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
            // Returns the time of a connection and a request on a server's shortest path.
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

// Compares the simulated network with a real one: the program `laneway` also did the mixed job on the test rig's links.
//
// The measurements are of 2026-11-23, with a release build without LTO on two idle cores, BBR senders, and one to three runs per row. The
// jobs are `mixed` from MinIO over HTTP/1.1, `mixedgcs` from nginx over HTTP/2 and `mixedput` to MinIO. The simulated network needs no CPU
// time. So at 1 Gbit/s it may be faster than the rig, whose two cores run both ends. The order of the objects also differs.

/// A measurement on the rig: the link, the index in [`CASES`], three durations in seconds, and the number of connections. The durations are
/// those until half of the small objects, 99 % of them, and all objects had arrived.
type RigRow = (RigLink, usize, [f64; 3], usize);

const DOWN_H1: usize = 0;
const DOWN_H2: usize = 1;
const UP_H1: usize = 2;

const MEASURED: [RigRow; 10] = [
    (RigLink(1.0, 1000, 1024, 0.0), DOWN_H1, [0.20, 0.52, 9.45], 21),
    (RigLink(10.0, 1000, 1024, 0.0), DOWN_H1, [0.35, 0.87, 10.05], 41),
    (RigLink(10.0, 1000, 256, 0.1), DOWN_H1, [0.47, 0.95, 10.94], 42),
    (RigLink(25.0, 500, 1024, 0.0), DOWN_H1, [0.72, 1.55, 20.2], 41),
    (RigLink(60.0, 200, 2048, 0.0), DOWN_H1, [1.64, 3.22, 51.6], 45),
    (RigLink(10.0, 1000, 1024, 0.5), DOWN_H1, [0.42, 0.91, 10.81], 41),
    (RigLink(10.0, 1000, 1024, 0.0), DOWN_H2, [0.41, 0.64, 10.25], 27),
    (RigLink(25.0, 500, 1024, 0.0), DOWN_H2, [0.91, 1.48, 20.5], 26),
    (RigLink(10.0, 1000, 1024, 0.0), UP_H1, [0.42, 0.82, 10.00], 41),
    (RigLink(10.0, 1000, 1024, 0.5), UP_H1, [0.51, 0.96, 11.73], 41),
];

/// The factors by which the small objects' times and the total time may differ from those on the rig. `WITHIN` is for links of up to 500
/// Mbit/s, and `WITHIN_FAST` for faster ones.
const WITHIN: [f64; 2] = [1.45, 1.05];
const WITHIN_FAST: [f64; 2] = [1.6, 1.15];

#[test]
fn the_mixed_job_takes_about_what_it_took_on_the_rig() {
    for (rig, which, measured, lanes) in MEASURED {
        let (protocol, is_up) = CASES[which];
        let runs = [1, 2, 3].map(|seed| rig.mixed(protocol, is_up, CongestionControl::Rate, seed).run());
        let times = |time: fn(&Times) -> f64| {
            let mut times = runs.each_ref().map(|run| time(&run.times));
            times.sort_by(f64::total_cmp);
            times[1]
        };
        let times = [times(|of| of.small_p50), times(|of| of.small_p99), times(|of| of.total)];
        println!(
            "{rig:?} {}: simulated, the job takes {times:.2?} s (small p50, small p99, total) over {:?} lanes; on the rig it took \
             {measured:?} s over {lanes}",
            case(protocol, is_up),
            runs.each_ref().map(|run| run.lanes)
        );
        let [small, total] = if rig.1 > 500 { WITHIN_FAST } else { WITHIN };
        for (i, within) in [small, small, total].into_iter().enumerate() {
            let ratio = times[i] / measured[i];
            assert!(
                (1.0 / within..within).contains(&ratio),
                "{rig:?}: simulated, the job takes {times:.2?} s; on the rig it took {measured:?} s"
            );
        }
    }
}

// The mixed job over many kinds of links.

/// The eight links of the matrix, a long one and a slow one.
const CHECKED_LINKS: [RigLink; 10] = [
    RigLink(0.25, 1000, 1024, 0.0),
    RigLink(1.0, 1000, 1024, 0.0),
    RigLink(10.0, 1000, 1024, 0.0),
    RigLink(10.0, 1000, 256, 0.1),
    RigLink(25.0, 500, 1024, 0.0),
    RigLink(60.0, 200, 2048, 0.0),
    RigLink(10.0, 100, 256, 0.0),
    RigLink(10.0, 1000, 1024, 0.5),
    RigLink(25.0, 10_000, 16384, 0.0),
    RigLink(15.0, 20, 64, 0.0),
];

/// Describes the results of a job, for the output of tests.
fn multiples(rig: RigLink, case: &str, took: &JobFigures) -> String {
    let JobFigures { over_floor: over, lanes, lost, .. } = took;
    format!(
        "{rig:?} {case}: times as multiples of the link's best times: {over:.2?}; lanes: {lanes}; share of bytes lost: {lost:.3}"
    )
}

#[test]
fn on_every_link_small_objects_come_early_and_the_job_fills_the_link() {
    let cells: Vec<_> = CHECKED_LINKS.into_iter().flat_map(|rig| CASES.map(|case| (rig, case))).collect();
    // In a single run, a small object's last packet may be lost twice by chance, so medians are used.
    let took = in_parallel(&cells, |(rig, (protocol, is_up))| {
        median_of(|seed| rig.mixed(*protocol, *is_up, CongestionControl::Rate, seed).run())
    });
    for (took, (rig, (protocol, is_up))) in took.into_iter().zip(cells) {
        let (over, case) = (took.over_floor, case(protocol, is_up));
        println!("{}", multiples(rig, &case, &took));
        // If sizes are unknown, the smallest objects can't be sent first. In this case, half of the small objects' bytes come before
        // the median object.
        let small_p50 = if is_up { 2.8 } else { 3.5 };
        // On a path of 10 Gbit/s and 50 ms, the job ends before the path is full.
        let is_long = rig.1 >= 10_000;
        let (p50, p99, total) = if is_long { (5.5, 6.5, 7.5) } else { (small_p50, 2.5, 1.4) };
        assert!(over.small_p50 <= p50, "{rig:?} {case}: the small objects' p50 is too high: {took:?}");
        assert!(over.small_p99 <= p99, "{rig:?} {case}: the small objects' p99 is too high: {took:?}");
        assert!(over.total <= total, "{rig:?} {case}: the whole job takes too long: {took:?}");
        assert!(took.lanes <= 80, "{rig:?} {case}: there are too many lanes: {took:?}");
    }
}

#[test]
fn senders_that_go_by_loss_fill_every_link_that_loses_nothing_by_chance() {
    // Links with random loss are left out, because random loss slows loss-based senders on any link. At 0.1 %, a connection has only about
    // 35 packets in flight.
    for rig in CHECKED_LINKS.into_iter().filter(|rig| rig.3 == 0.0 && rig.1 < 10_000) {
        for (protocol, is_up) in CASES {
            let took = rig.mixed(protocol, is_up, CongestionControl::Loss, 1).run();
            let (over, case) = (took.over_floor, case(protocol, is_up));
            println!("{}", multiples(rig, &case, &took));
            assert!(over.small_p50 <= 3.5, "{rig:?} {case}: the small objects' p50 is too high: {took:?}");
            assert!(over.small_p99 <= 2.3, "{rig:?} {case}: the small objects' p99 is too high: {took:?}");
            assert!(over.total <= 1.35, "{rig:?} {case}: the whole job takes too long: {took:?}");
            assert!(took.lanes <= 80, "{rig:?} {case}: there are too many lanes: {took:?}");
        }
    }
}

#[test]
fn a_link_that_loses_packets_has_them_sent_again() {
    let job =
        |rig: RigLink| -> JobFigures { rig.mixed(Protocol::H1, false, CongestionControl::Rate, 1).run() };
    let (lossless, lossy) = (job(RigLink(0.25, 1000, 1024, 0.0)), job(RigLink(0.25, 1000, 1024, 1.0)));
    assert!(lossless.lost < 0.003, "too many bytes were lost on the link without random loss: {lossless:?}");
    assert!(
        (0.009..0.03).contains(&lossy.lost),
        "the share of lost bytes on the link with 1 % loss is wrong: {lossy:?}"
    );
    let (slower, faster) = (lossy.times.small_p99, lossless.times.small_p99);
    assert!(slower > faster, "the p99 of small objects is {slower} s with loss, {faster} s without it");
}

// Prints the results over the matrix of links, to compare them before and after a change of a rule.
//
// `cargo test -p laneway-lanes --lib matrix -- --ignored --nocapture`. `LANEWAY_CONTROL=cubic` uses loss-based senders.

pub(super) const LINKS: [RigLink; 8] = [
    RigLink(0.25, 1000, 1024, 0.0),
    RigLink(1.0, 1000, 1024, 0.0),
    RigLink(10.0, 1000, 1024, 0.0),
    RigLink(10.0, 1000, 256, 0.1),
    RigLink(25.0, 500, 1024, 0.0),
    RigLink(60.0, 200, 2048, 0.0),
    RigLink(10.0, 100, 256, 0.0),
    RigLink(10.0, 1000, 1024, 0.5),
];

const SEEDS: u64 = 3;

#[test]
#[ignore = "it prints, and asserts nothing"]
fn matrix() {
    let control = control();
    let cells: Vec<_> = LINKS.into_iter().flat_map(|rig| CASES.map(|case| (rig, case))).collect();
    let rows = in_parallel(&cells, |(rig, (protocol, is_up))| {
        let mixed = |seed| rig.mixed(*protocol, *is_up, control, seed);
        let shorter = |seed| {
            let mixed = mixed(seed);
            MixedJob { large: vec![40 * MIB; 4], small: mixed.small[..100].to_vec(), ..mixed }.run()
        };
        let one_object = |bytes: u64| {
            let alone = move |seed| MixedJob { large: vec![bytes], small: vec![64 << 10; 8], ..mixed(seed) };
            median_of(move |seed| alone(seed).run())
        };
        (median_of(|seed| mixed(seed).run()), median_of(shorter), [128 * MIB, 1024 * MIB].map(one_object))
    });
    println!(
        "Senders use the congestion control {control:?}. Times are multiples of the floor, and all figures are medians of {SEEDS} seeds. \
         The columns are: the mixed job's small p50, small p99, total, lanes and share of lost bytes; the total of the mixed job with four \
         objects of 40 MiB and 100 small ones; the total and lanes of one object of 128 MiB; the same of one object of 1 GiB."
    );
    for (rows, rig) in rows.chunks(CASES.len()).zip(LINKS) {
        let RigLink(half_ms, mbit, queue, loss) = rig;
        println!("a link of {half_ms} ms one way, {mbit} Mbit/s, a queue of {queue} KiB and {loss} % loss:");
        for ((took, middle, [shorter, longer]), (protocol, is_up)) in rows.iter().zip(CASES) {
            let (over, case) = (took.over_floor, case(protocol, is_up));
            println!(
                "  {case:8} {:5.2} {:5.2} {:5.2} {:4} {:5.1} %  {:5.2}  {:5.2} {:4}  {:5.2} {:4}",
                over.small_p50,
                over.small_p99,
                over.total,
                took.lanes,
                took.lost * 1e2,
                middle.over_floor.total,
                shorter.over_floor.total,
                shorter.lanes,
                longer.over_floor.total,
                longer.lanes
            );
        }
    }
}

/// Returns the senders' congestion control, which `LANEWAY_CONTROL` sets.
pub(super) fn control() -> CongestionControl {
    match std::env::var("LANEWAY_CONTROL").as_deref() {
        Ok("cubic") => CongestionControl::Loss,
        _ => CongestionControl::Rate,
    }
}

/// Returns the median of each figure over all seeds.
pub(super) fn median_of(run: impl Fn(u64) -> JobFigures) -> JobFigures {
    let runs: Vec<_> = (1..=SEEDS).map(run).collect();
    let times = |of: fn(&JobFigures) -> Times| Times {
        small_p50: median(&runs, |took| of(took).small_p50),
        small_p99: median(&runs, |took| of(took).small_p99),
        total: median(&runs, |took| of(took).total),
    };
    JobFigures {
        times: times(|took| took.times),
        over_floor: times(|took| took.over_floor),
        lanes: median(&runs, |took| took.lanes as f64) as usize,
        lost: median(&runs, |took| took.lost),
    }
}

/// Returns the median of a figure over these runs.
pub(super) fn median<T>(runs: &[T], figure: impl Fn(&T) -> f64) -> f64 {
    let mut figures: Vec<f64> = runs.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Calls `each` for every element, on all cores, and returns the results in the order of the elements.
pub(super) fn in_parallel<T: Sync, U: Send>(these: &[T], each: impl Fn(&T) -> U + Sync) -> Vec<U> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let mut done: Vec<(usize, U)> = std::thread::scope(|scope| {
        let work = || {
            let mut done = Vec::new();
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(this) = these.get(i) else { return done };
                done.push((i, each(this)));
            }
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, done)| done).collect()
}
