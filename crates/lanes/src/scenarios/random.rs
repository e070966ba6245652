//! Tests with random servers, paths, faults and loads, and a search for the worst cases. A seed determines each case.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::mixed::{CASES, JobFigures, MixedJob, case, in_parallel};
use super::*;
use crate::simulator::network::{MSS, WINDOW_MAX, WINDOW_MAX_BEFORE};
use crate::simulator::{Bottleneck, CongestionControl, Wire};

/// The environment variable that sets the number of seeds to try (`1000`), or their range (`17..18`).
const SEEDS_VARIABLE: &str = "LANEWAY_SOAK_SEEDS";

/// A thread stops after this many failing seeds.
const FAILURES_MAX: usize = 20;

#[test]
fn every_request_ends_within_the_ceiling_whatever_the_network_does() {
    let seeds = seeds(1000);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut failures: Vec<(u64, String)> = std::thread::scope(|scope| {
        let each = |thread| seeds.clone().skip(thread).step_by(threads);
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || each(thread).filter_map(try_seed).take(FAILURES_MAX).collect::<Vec<_>>())
            })
            .collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    failures.sort();
    let numbers: Vec<_> = failures.iter().map(|(seed, _)| seed).collect();
    assert!(
        failures.is_empty(),
        "seeds {numbers:?} of {seeds:?} fail; the first failure is:\n{}",
        failures[0].1
    );
}

/// Returns the seeds that the variable sets, or the first `most` seeds if it isn't set.
pub(super) fn seeds(most: u64) -> Range<u64> {
    let Ok(asked) = std::env::var(SEEDS_VARIABLE) else { return 0..most };
    let (from, to) = asked.split_once("..").unwrap_or(("0", &asked));
    let parse = |text: &str| {
        text.parse::<u64>().expect("the variable must be a number of seeds, or a range such as 17..18")
    };
    parse(from)..parse(to)
}

/// Runs a seed. If it fails, returns the seed and a description of the failure.
fn try_seed(seed: u64) -> Option<(u64, String)> {
    let mut about = String::new();
    let panic = catch_unwind(AssertUnwindSafe(|| run(seed, &mut about))).err()?;
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let why =
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked without a message");
    let alone =
        format!("{SEEDS_VARIABLE}={seed}..{} cargo test -p laneway-lanes whatever_the_network", seed + 1);
    Some((seed, format!("seed {seed}: {why}\n{about}\nto run this seed alone: {alone}")))
}

fn run(seed: u64, about: &mut String) {
    let mut random = StdRng::seed_from_u64(seed);
    let wires: Vec<_> = (0..random.random_range(1..3)).map(|_| wire(&mut random)).collect();
    let servers: Vec<_> = (0..random.random_range(1..4)).map(|_| server(&mut random, wires.len())).collect();
    let ceiling = if random.random() { random.random_range(1..8) } else { random.random_range(1..300) };
    let most = if random.random_range(0..10) == 0 { 400 } else { 80 };
    let count = random.random_range(1..most);
    *about = format!("{wires:?}, at most {ceiling} lanes, {count} requests, {servers:#?}");
    let world = World::over(&wires, servers.clone(), ceiling, seed);
    // The seed itself decides if requests are hedged. No random number is drawn for it, so the seed's other random numbers don't depend on
    // hedging.
    let mut world = if seed.is_multiple_of(2) { world.hedging() } else { world };
    let spread = random.random_range(1..2_000_000);
    let mut alone = Duration::ZERO;
    for _ in 0..count {
        let origin = random.random_range(0..servers.len());
        let lone = LoneRequest::new(&servers[origin], &wires[servers[origin].wire]);
        let want = want(&mut random, &lone).of(origin);
        alone += lone.takes(&want);
        world.submit(Duration::from_micros(random.random_range(0..spread)), want);
    }
    for origin in 0..servers.len() {
        if random.random_range(0..4) == 0 {
            let after = Duration::from_micros(random.random_range(0..2_000_000));
            world.anticipate(after, origin, random.random_range(1..100));
        }
    }
    world.run();
    check(&world);
    // The bound is twice the time of all requests one after the other, each on a connection of its own, plus the servers' stalls and 5 s.
    let bound = 2 * alone + world.stalled + Duration::from_secs(5);
    let longest = world.requests.iter().map(|r| r.ended.unwrap() - r.submitted).max().unwrap_or_default();
    assert!(
        Duration::from_nanos(longest) <= bound,
        "a request took {longest} ns, longer than the bound of {bound:?}"
    );
}

/// Checks the invariants after a run.
fn check(world: &World) {
    let lost = world.requests.iter().position(|r| r.ended.is_none());
    assert_eq!(lost, None, "a request never ended");
    assert_eq!(
        world.dispatcher.left_over(),
        None,
        "the dispatcher still has an attempt, or a sum that isn't zero"
    );
    assert_eq!(world.yields.map(|(said, _)| said), [None, None], "bulk still yields");
}

/// Returns a random link of the machine. On one link in four, uploads are up to ten times slower than downloads. The queue holds from a
/// millisecond to two seconds of downloads. One link in four loses packets.
fn wire(random: &mut StdRng) -> Wire {
    let down = bottleneck(random, 6.0..9.5);
    let is_even = random.random_range(0..4) > 0;
    let slower = if is_even { 1.0 } else { 10_f64.powf(random.random_range(0.0..1.0)) };
    Wire { down, up: Bottleneck { rate: down.rate / slower, ..down } }
}

/// Returns a random bottleneck. `rate` is the range of the decimal logarithm of its rate in bytes per second.
fn bottleneck(random: &mut StdRng, rate: Range<f64>) -> Bottleneck {
    let bottleneck = Bottleneck::new(10_f64.powf(random.random_range(rate)));
    let seconds = 10_f64.powf(random.random_range(-3.0..0.3));
    let queue = ((bottleneck.rate * seconds) as u64).max(16 * KIB);
    let queue = if random.random() { bottleneck.queue } else { queue };
    let loss = if random.random_range(0..4) > 0 { 0.0 } else { 10_f64.powf(random.random_range(-4.0..-1.5)) };
    Bottleneck { queue, loss, ..bottleneck }
}

fn server(random: &mut StdRng, wires: usize) -> Server {
    let protocol = |random: &mut StdRng| if random.random() { Protocol::H1 } else { Protocol::H2 };
    let express = protocol(random);
    let often =
        |random: &mut StdRng, most: u32| if random.random() { 0 } else { random.random_range(0..most) };
    let idle_max = if random.random_range(0..4) > 0 {
        Duration::MAX
    } else {
        Duration::from_millis(random.random_range(1..1000))
    };
    let ending = [IdleClose::Found, IdleClose::Seen, IdleClose::Reset][random.random_range(0..3)];
    // If the idle timeout is shorter than a few round trips, every connection is closed before a second request can use it. With such a
    // server, the client must notice the close before it sends the request.
    let is_patient = idle_max > Duration::from_millis(500);
    Server {
        paths: paths(random),
        wire: random.random_range(0..wires),
        stream_rate: 10_f64.powf(random.random_range(5.5..9.0)),
        express,
        freight: if express == Protocol::H1 { Protocol::H1 } else { protocol(random) },
        service: Duration::from_micros(random.random_range(10..50_000)),
        handshake: Duration::from_micros(random.random_range(10..3000)),
        streams_max: random.random_range(1..130),
        answers_max: if random.random_range(0..4) > 0 { usize::MAX } else { random.random_range(1..50) },
        idle_max,
        control: if random.random() { CongestionControl::Loss } else { CongestionControl::Rate },
        window_max: if random.random() { WINDOW_MAX } else { WINDOW_MAX_BEFORE },
        ending: if is_patient { ending } else { IdleClose::Found },
        faults: Faults {
            dials_fail: if random.random_range(0..20) == 0 { 1000 } else { often(random, 400) },
            resets: often(random, 100),
            stalls: often(random, 30),
            drains: often(random, 100),
            cancels: often(random, 200),
        },
    }
}

/// Returns random paths of a server. One server in three has several addresses, each with its own path.
fn paths(random: &mut StdRng) -> Vec<ServerPath> {
    let rtt = 10_f64.powf(random.random_range(2.0..5.3));
    let has_one = random.random_range(0..3) > 0;
    let count = if has_one { 1 } else { random.random_range(2..5) };
    let path = |random: &mut StdRng| {
        let rtt = if has_one { rtt } else { rtt * random.random_range(0.5..2.0) };
        let is_narrow = random.random();
        let bottleneck = if is_narrow { bottleneck(random, 5.5..9.0) } else { Bottleneck::NONE };
        ServerPath { rtt: Duration::from_micros(rtt as u64), bottleneck }
    };
    (0..count).map(|_| path(random)).collect()
}

/// An estimate of the time that a single request takes on the worst path of a server.
struct LoneRequest {
    /// The rate in bytes per second.
    rate: f64,
    /// The time of a dial, a request and the rounds of slow start, if all queues are full.
    begins: Duration,
}

impl LoneRequest {
    fn new(server: &Server, wire: &Wire) -> Self {
        let waits = |bottleneck: &Bottleneck| bottleneck.queue as f64 / bottleneck.rate;
        let of_path = |path: &ServerPath| {
            let passed = [path.bottleneck, wire.down, wire.up];
            let rtt =
                path.rtt.as_secs_f64() + waits(&wire.down) + waits(&wire.up) + 2.0 * waits(&path.bottleneck);
            let loss = 1.0 - passed.iter().map(|bottleneck| 1.0 - bottleneck.loss).product::<f64>();
            // With a loss rate p, a loss-based sender has about sqrt(3/2p) packets in flight. Take half of this number as the worst case.
            let by_loss =
                if loss > 0.0 { 0.5 * MSS as f64 / rtt * (1.5 / loss).sqrt() } else { f64::INFINITY };
            let rate = passed.iter().map(|bottleneck| bottleneck.rate).fold(by_loss, f64::min);
            // Add the time of timeouts, for lost packets and dials.
            let timeouts = loss * 40.0;
            (rate.min(server.stream_rate), rtt * 18.0 + timeouts)
        };
        let worst = server.paths.iter().map(of_path);
        let (rate, begins) = worst
            .fold((f64::INFINITY, 0.0), |(rate, begins), (r, b)| (f64::min(rate, r), f64::max(begins, b)));
        let dials = if server.faults.dials_fail > 0 { Duration::from_secs(1) } else { Duration::ZERO };
        Self { rate, begins: Duration::from_secs_f64(begins) + server.handshake + server.service + dials }
    }

    fn takes(&self, want: &RequestSpec) -> Duration {
        self.begins + Duration::from_secs_f64((want.up + want.down) as f64 / self.rate)
    }
}

/// Returns a random request. Most requests are small, and each takes at most a few seconds on its path.
fn want(random: &mut StdRng, lone: &LoneRequest) -> RequestSpec {
    let most = (2.0 * lone.rate) as u64;
    let small = random.random_range(0..FREIGHT_ABOVE.min(most));
    let large = random.random_range(FREIGHT_ABOVE + 1..(64 * MIB).min(FREIGHT_ABOVE + 2 + most));
    match random.random_range(0..12) {
        0 => RequestSpec::get(large),
        1 => RequestSpec::put(large),
        2 => RequestSpec::unknown(large),
        3 | 4 => RequestSpec::unknown(small),
        5..=8 => RequestSpec::get(small / 8),
        _ => RequestSpec::put(small / 8),
    }
}

// Runs the mixed job over random networks, and over links that differ much from those of the matrix. Prints the cases whose times are the
// largest multiples of the links' best times.
//
// `cargo test -p laneway-lanes --lib worst -- --ignored --nocapture`. `LANEWAY_SOAK_SEEDS=17..18` runs one seed only.

/// The number of worst runs that are shown for each figure.
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
    for control in [CongestionControl::Rate, CongestionControl::Loss] {
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

fn show(took: Vec<(String, JobFigures)>) {
    type Figure = (&'static str, fn(&JobFigures) -> f64);
    let figures: [Figure; 4] = [
        ("small p50", |took| took.over_floor.small_p50),
        ("small p99", |took| took.over_floor.small_p99),
        ("total", |took| took.over_floor.total),
        ("lanes", |took| took.lanes as f64),
    ];
    for (name, figure) in figures {
        let mut sorted: Vec<_> = took.iter().collect();
        sorted.sort_by(|a, b| figure(&b.1).total_cmp(&figure(&a.1)));
        println!(
            "\nThese runs have the worst {name}; its median is {:.2}:",
            figure(&sorted[sorted.len() / 2].1)
        );
        for (about, took) in sorted.into_iter().take(SHOWN) {
            println!("{}", line(about, took));
        }
    }
}

fn line(about: &str, took: &JobFigures) -> String {
    let (over, times) = (took.over_floor, took.times);
    format!(
        "{:6.2} {:6.2} {:6.2} times the floor, {:4} lanes, {:3.0} % lost ({:.2} {:.2} {:.2} s): {about}",
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

/// Creates a job of about ten seconds, with a tenth of its bytes in small objects.
fn job(wires: Vec<Wire>, servers: Vec<Server>, is_up: bool, seed: u64) -> MixedJob {
    let rate = wires.iter().map(|wire| if is_up { wire.up.rate } else { wire.down.rate }).fold(0.0, f64::max);
    let large = ((8.0 * rate) as u64).clamp(16 * MIB, 1 << 30) / 4;
    let count = ((rate / (270.0 * 1024.0)) as u64).clamp(20, 200);
    MixedJob {
        wires,
        servers,
        is_up,
        large: vec![large; 4],
        small: sizes(count, 32 * KIB, 512 * KIB).collect(),
        seed,
    }
}

fn far_links(protocol: Protocol, control: CongestionControl) -> Vec<(&'static str, Vec<Wire>, Vec<Server>)> {
    let server = |rtt_ms: f64| {
        let path = ServerPath::new(Duration::from_secs_f64(rtt_ms / 1e3));
        Server { stream_rate: f64::INFINITY, control, ..Server::new(0, protocol).at(vec![path]) }
    };
    let wire = |mbit, queue, loss| Wire::both(Bottleneck::of(mbit, queue, loss));
    let one = |name, wire: Wire, rtt_ms| (name, vec![wire], vec![server(rtt_ms)]);
    let narrow = |rtt_ms: u64, mbit: u64| ServerPath {
        rtt: Duration::from_millis(rtt_ms),
        bottleneck: Bottleneck::of(mbit, 256, 0.0),
    };
    let addresses =
        vec![narrow(10, 400), narrow(10, 50), ServerPath::new(Duration::from_millis(80)), narrow(10, 400)];
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

/// Returns a mixed job for a random network without faults, and a description of the network.
fn drawn(seed: u64) -> (String, MixedJob) {
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
    let control =
        if random.random_range(0..3) > 0 { CongestionControl::Rate } else { CongestionControl::Loss };
    let path = |random: &mut StdRng| {
        let rtt = Duration::from_secs_f64(power(random, -4.0, -0.5));
        let narrow = random.random_range(0..4) == 0;
        ServerPath { rtt, bottleneck: if narrow { bottleneck(random, 6.0, 9.0) } else { Bottleneck::NONE } }
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
    let of_path = |path: &ServerPath| match path.bottleneck.rate.is_finite() {
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
