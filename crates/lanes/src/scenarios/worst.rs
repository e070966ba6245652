//! Where the dispatcher is furthest from what its links allow: the mixed job over random networks and over links far from the matrix.
//!
//! `cargo test -p laneway-lanes --lib worst -- --ignored --nocapture`; `LANEWAY_SOAK_SEEDS=17..18` looks at one seed alone.

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::matrix::in_parallel;
use super::mixed::{CASES, Mixed, Took, case};
use super::random::seeds;
use super::*;
use crate::simulator::{Bottleneck, Control, Wire};

/// The number of runs shown for each quantity.
const SHOWN: usize = 10;

#[test]
#[ignore = "it prints, and asserts nothing"]
fn worst_of_random_networks() {
    let seeds: Vec<u64> = seeds(300).collect();
    let took = in_parallel(&seeds, |seed| {
        let (about, mixed) = drawn(*seed);
        (format!("seed {seed}: {about}"), mixed.run())
    });
    show(took);
}

#[test]
#[ignore = "it prints, and asserts nothing"]
fn worst_of_far_links() {
    let mut jobs = Vec::new();
    for control in [Control::Rate, Control::Loss] {
        for (protocol, is_up) in CASES {
            for (name, wires, servers) in far_links(protocol, control) {
                let name = format!("{name}, {control:?}, {}", case(protocol, is_up));
                jobs.push((name, job(wires, servers, is_up, 1)));
            }
        }
    }
    let took = in_parallel(&jobs, |(name, mixed)| (name.clone(), mixed.run()));
    for (name, took) in &took {
        println!("{}", line(name, took));
    }
    show(took);
}

fn show(took: Vec<(String, Took)>) {
    type Figure = (&'static str, fn(&Took) -> f64);
    let figures: [Figure; 4] = [
        ("small p50", |took| took.over_floor.small_p50),
        ("small p99", |took| took.over_floor.small_p99),
        ("total", |took| took.over_floor.total),
        ("lanes", |took| took.lanes as f64),
    ];
    for (name, figure) in figures {
        let mut sorted: Vec<_> = took.iter().collect();
        sorted.sort_by(|a, b| figure(&b.1).total_cmp(&figure(&a.1)));
        println!("\nworst {name} (median {:.2}):", figure(&sorted[sorted.len() / 2].1));
        for (about, took) in sorted.into_iter().take(SHOWN) {
            println!("{}", line(about, took));
        }
    }
}

fn line(about: &str, took: &Took) -> String {
    let (over, times) = (took.over_floor, took.times);
    format!(
        "{:6.2} {:6.2} {:6.2} {:4} lanes {:3.0} % lost ({:.2} {:.2} {:.2} s) {about}",
        over.small_p50,
        over.small_p99,
        over.total,
        took.lanes,
        100.0 * took.lost,
        times.small_p50,
        times.small_p99,
        times.total
    )
}

/// A job of some ten seconds that has a tenth of its bytes in small objects.
fn job(wires: Vec<Wire>, servers: Vec<Server>, is_up: bool, seed: u64) -> Mixed {
    let rate = wires.iter().map(|wire| if is_up { wire.up.rate } else { wire.down.rate }).fold(0.0, f64::max);
    let large = ((8.0 * rate) as u64).clamp(16 * MIB, 1 << 30) / 4;
    let count = ((rate / (270.0 * 1024.0)) as u64).clamp(20, 200);
    Mixed {
        wires,
        servers,
        is_up,
        large: vec![large; 4],
        small: sizes(count, 32 * KIB, 512 * KIB).collect(),
        seed,
    }
}

fn far_links(protocol: Protocol, control: Control) -> Vec<(&'static str, Vec<Wire>, Vec<Server>)> {
    let server = |rtt_ms: f64| {
        let path = Path::new(Duration::from_secs_f64(rtt_ms / 1e3));
        Server { stream_rate: f64::INFINITY, control, ..Server::new(0, protocol).at(vec![path]) }
    };
    let wire = |mbit, queue, loss| Wire::both(Bottleneck::of(mbit, queue, loss));
    let one = |name, wire: Wire, rtt_ms| (name, vec![wire], vec![server(rtt_ms)]);
    let narrow = |rtt_ms: u64, mbit: u64| Path {
        rtt: Duration::from_millis(rtt_ms),
        bottleneck: Bottleneck::of(mbit, 256, 0.0),
    };
    let addresses =
        vec![narrow(10, 400), narrow(10, 50), Path::new(Duration::from_millis(80)), narrow(10, 400)];
    vec![
        one("0.1 ms, 10 Gbit/s", wire(10_000, 4096, 0.0), 0.1),
        one("200 ms, 1 Gbit/s", wire(1000, 4096, 0.0), 200.0),
        one("300 ms, 10 Mbit/s", wire(10, 128, 0.0), 300.0),
        one("20 ms, 100 Mbit/s, 5 % lost", wire(100, 256, 5.0), 20.0),
        one("20 ms, 1 Gbit/s, 5 % lost", wire(1000, 1024, 5.0), 20.0),
        one("20 ms, 20 Mbit/s, 5 s of queue", wire(20, 12_500, 0.0), 20.0),
        one("20 ms, 100 Mbit/s, 5 s of queue", wire(100, 62_500, 0.0), 20.0),
        one(
            "20 ms, 100/10 Mbit/s",
            Wire { down: Bottleneck::of(100, 256, 0.0), up: Bottleneck::of(10, 128, 0.0) },
            20.0,
        ),
        one(
            "20 ms, 1000/20 Mbit/s",
            Wire { down: Bottleneck::of(1000, 1024, 0.0), up: Bottleneck::of(20, 128, 0.0) },
            20.0,
        ),
        ("near and far over one 1 Gbit/s", vec![wire(1000, 1024, 0.0)], vec![server(1.0), server(150.0)]),
        (
            "near over 1 Gbit/s, far over 100 Mbit/s",
            vec![wire(1000, 1024, 0.0), wire(100, 256, 0.0)],
            vec![server(1.0), Server { wire: 1, ..server(100.0) }],
        ),
        ("four addresses that differ", vec![wire(1000, 1024, 0.0)], vec![server(0.0).at(addresses)]),
    ]
}

/// A random network without faults, and a job for it.
fn drawn(seed: u64) -> (String, Mixed) {
    let mut random = StdRng::seed_from_u64(seed);
    let power = |random: &mut StdRng, from: f64, to: f64| 10_f64.powf(random.random_range(from..to));
    let bottleneck = |random: &mut StdRng, from, to| {
        let rate = power(random, from, to);
        let seconds = power(random, -2.7, 0.0);
        let loss = if random.random_range(0..4) > 0 { 0.0 } else { power(random, -4.0, -1.5) };
        Bottleneck { rate, queue: ((rate * seconds) as u64).max(32 * KIB), loss }
    };
    let wire = |random: &mut StdRng| {
        let down = bottleneck(random, 6.0, 9.1);
        let slower = if random.random_range(0..3) > 0 { 1.0 } else { power(random, 0.0, 1.0) };
        Wire { down, up: Bottleneck { rate: down.rate / slower, ..down } }
    };
    let wires: Vec<_> =
        (0..if random.random_range(0..3) > 0 { 1 } else { 2 }).map(|_| wire(&mut random)).collect();
    let protocol = if random.random() { Protocol::H1 } else { Protocol::H2 };
    let control = if random.random_range(0..3) > 0 { Control::Rate } else { Control::Loss };
    let path = |random: &mut StdRng| {
        let rtt = Duration::from_secs_f64(power(random, -4.0, -0.5));
        let narrow = random.random_range(0..4) == 0;
        Path { rtt, bottleneck: if narrow { bottleneck(random, 6.0, 9.0) } else { Bottleneck::NONE } }
    };
    let server = |random: &mut StdRng, wire| {
        let paths = if random.random_range(0..4) > 0 { 1 } else { random.random_range(2..4) };
        let paths = (0..paths).map(|_| path(random)).collect();
        let stream_rate = if random.random() { f64::INFINITY } else { power(random, 6.7, 8.5) };
        Server { wire, control, stream_rate, ..Server::new(0, protocol).at(paths) }
    };
    let servers: Vec<_> = match random.random_range(0..3) {
        0 => (0..2).map(|i| server(&mut random, i % wires.len())).collect(),
        _ => vec![server(&mut random, 0)],
    };
    let is_up = random.random();
    let show = |bottleneck: &Bottleneck| {
        let (mbit, ms) = (bottleneck.rate / 125e3, bottleneck.queue as f64 / bottleneck.rate * 1e3);
        format!("{mbit:.1} Mbit/s, {ms:.0} ms of queue, {:.2} % lost", bottleneck.loss * 100.0)
    };
    let of_wires = wires.iter().map(|wire| {
        let up = if wire.up.rate == wire.down.rate {
            String::new()
        } else {
            format!(" (up {:.1})", wire.up.rate / 125e3)
        };
        format!("{}{up}", show(&wire.down))
    });
    let of_path = |path: &Path| match path.bottleneck.rate.is_finite() {
        true => format!("{:.1?} behind {}", path.rtt, show(&path.bottleneck)),
        false => format!("{:.1?}", path.rtt),
    };
    let of_servers = servers.iter().map(|server| {
        let paths: Vec<_> = server.paths.iter().map(of_path).collect();
        format!("link {} {paths:?} {:.0} Mbit/s a stream", server.wire, server.stream_rate / 125e3)
    });
    let (of_wires, of_servers): (Vec<_>, Vec<_>) = (of_wires.collect(), of_servers.collect());
    let about = format!("{control:?}, {}, {of_wires:?}, {of_servers:?}", case(protocol, is_up));
    (about, job(wires, servers, is_up, seed))
}
