//! Random servers, paths, faults and loads, by seed.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::simulator::server::{WINDOW_MAX, WINDOW_MAX_BEFORE};
use crate::simulator::wire::MSS;
use crate::simulator::{Bottleneck, Control, Wire};

/// The number of seeds that are tried, or their range: `1000` or `17..18`.
const SEEDS_VARIABLE: &str = "LANEWAY_SOAK_SEEDS";

/// After so many failing seeds a thread stops.
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
    assert!(failures.is_empty(), "seeds {numbers:?} of {seeds:?} fail; the first:\n{}", failures[0].1);
}

/// The seeds that were asked for, or so many.
pub(super) fn seeds(most: u64) -> Range<u64> {
    let Ok(asked) = std::env::var(SEEDS_VARIABLE) else { return 0..most };
    let (from, to) = asked.split_once("..").unwrap_or(("0", &asked));
    from.parse().expect("a number of seeds, or a range of them")..to.parse().expect("the number of seeds")
}

/// Why the seed fails, if it does.
fn try_seed(seed: u64) -> Option<(u64, String)> {
    let mut about = String::new();
    let panic = catch_unwind(AssertUnwindSafe(|| run(seed, &mut about))).err()?;
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let why = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
    let alone =
        format!("{SEEDS_VARIABLE}={seed}..{} cargo test -p laneway-lanes whatever_the_network", seed + 1);
    Some((seed, format!("seed {seed}: {why}\n{about}\nalone: {alone}")))
}

fn run(seed: u64, about: &mut String) {
    let mut random = StdRng::seed_from_u64(seed);
    let wires: Vec<_> = (0..random.random_range(1..3)).map(|_| wire(&mut random)).collect();
    let servers: Vec<_> = (0..random.random_range(1..4)).map(|_| server(&mut random, wires.len())).collect();
    let ceiling = if random.random() { random.random_range(1..8) } else { random.random_range(1..300) };
    let most = if random.random_range(0..10) == 0 { 400 } else { 80 };
    let count = random.random_range(1..most);
    *about = format!("{wires:?}, ceiling {ceiling}, {count} requests, {servers:#?}");
    let world = World::over(&wires, servers.clone(), ceiling, seed);
    // Drawn apart, so that a seed is the same world with and without.
    let mut world = if seed.is_multiple_of(2) { world.hedging() } else { world };
    let spread = random.random_range(1..2_000_000);
    let mut alone = Duration::ZERO;
    for _ in 0..count {
        let origin = random.random_range(0..servers.len());
        let lone = Lone::new(&servers[origin], &wires[servers[origin].wire]);
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
    // However unlucky, no request takes longer than all of them one after the other, each on a connection of its own.
    let bound = 2 * alone + world.stalled + Duration::from_secs(5);
    let longest = world.requests.iter().map(|r| r.ended.unwrap() - r.submitted).max().unwrap_or_default();
    assert!(Duration::from_nanos(longest) <= bound, "a request took {longest} ns, all in turn {bound:?}");
}

/// Checks the invariants after a run.
fn check(world: &World) {
    let lost = world.requests.iter().position(|r| r.ended.is_none());
    assert_eq!(lost, None, "a request never ended");
    assert_eq!(world.dispatcher.left_over(), None, "something is still counted");
    assert_eq!(world.yields.map(|(said, _)| said), [None, None], "bulk still yields");
}

/// The machine's link: up to ten times slower one way, with a queue of a millisecond to two seconds, and one in four loses packets.
fn wire(random: &mut StdRng) -> Wire {
    let down = bottleneck(random, 6.0..9.5);
    let is_even = random.random_range(0..4) > 0;
    let slower = if is_even { 1.0 } else { 10_f64.powf(random.random_range(0.0..1.0)) };
    Wire { down, up: Bottleneck { rate: down.rate / slower, ..down } }
}

/// One that carries so many bytes a second, as a power of ten.
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
    let ending = [Ending::Found, Ending::Seen, Ending::Reset][random.random_range(0..3)];
    // With a shorter timeout than a few round trips every connection would be gone when it is used again.
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
        control: if random.random() { Control::Loss } else { Control::Rate },
        window_max: if random.random() { WINDOW_MAX } else { WINDOW_MAX_BEFORE },
        ending: if is_patient { ending } else { Ending::Found },
        faults: Faults {
            dials_fail: if random.random_range(0..20) == 0 { 1000 } else { often(random, 400) },
            resets: often(random, 100),
            stalls: often(random, 30),
            drains: often(random, 100),
            cancels: often(random, 200),
        },
    }
}

/// One server in three has several addresses, each with a path of its own.
fn paths(random: &mut StdRng) -> Vec<Path> {
    let rtt = 10_f64.powf(random.random_range(2.0..5.3));
    let has_one = random.random_range(0..3) > 0;
    let count = if has_one { 1 } else { random.random_range(2..5) };
    let path = |random: &mut StdRng| {
        let rtt = if has_one { rtt } else { rtt * random.random_range(0.5..2.0) };
        let is_narrow = random.random();
        let bottleneck = if is_narrow { bottleneck(random, 5.5..9.0) } else { Bottleneck::NONE };
        Path { rtt: Duration::from_micros(rtt as u64), bottleneck }
    };
    (0..count).map(|_| path(random)).collect()
}

/// A single request on a server's worst path.
struct Lone {
    /// Bytes a second.
    rate: f64,
    /// A dial, a request and the rounds of slow start, with full queues.
    begins: Duration,
}

impl Lone {
    fn new(server: &Server, wire: &Wire) -> Self {
        let waits = |bottleneck: &Bottleneck| bottleneck.queue as f64 / bottleneck.rate;
        let of_path = |path: &Path| {
            let passed = [path.bottleneck, wire.down, wire.up];
            let rtt =
                path.rtt.as_secs_f64() + waits(&wire.down) + waits(&wire.up) + 2.0 * waits(&path.bottleneck);
            let loss = 1.0 - passed.iter().map(|bottleneck| 1.0 - bottleneck.loss).product::<f64>();
            // A sender that goes by loss has sqrt(3/2p) packets on its way; half of it, for it is unlucky.
            let by_loss =
                if loss > 0.0 { 0.5 * MSS as f64 / rtt * (1.5 / loss).sqrt() } else { f64::INFINITY };
            let rate = passed.iter().map(|bottleneck| bottleneck.rate).fold(by_loss, f64::min);
            // One in so many packets is waited for, and so are dials.
            let timeouts = loss * 40.0;
            (rate.min(server.stream_rate), rtt * 18.0 + timeouts)
        };
        let worst = server.paths.iter().map(of_path);
        let (rate, begins) = worst
            .fold((f64::INFINITY, 0.0), |(rate, begins), (r, b)| (f64::min(rate, r), f64::max(begins, b)));
        let dials = if server.faults.dials_fail > 0 { Duration::from_secs(1) } else { Duration::ZERO };
        Self { rate, begins: Duration::from_secs_f64(begins) + server.handshake + server.service + dials }
    }

    fn takes(&self, want: &Want) -> Duration {
        self.begins + Duration::from_secs_f64((want.up + want.down) as f64 / self.rate)
    }
}

/// Small more often than large, and nothing that its path takes many seconds for.
fn want(random: &mut StdRng, lone: &Lone) -> Want {
    let most = (2.0 * lone.rate) as u64;
    let small = random.random_range(0..FREIGHT_ABOVE.min(most));
    let large = random.random_range(FREIGHT_ABOVE + 1..(64 * MIB).min(FREIGHT_ABOVE + 2 + most));
    match random.random_range(0..12) {
        0 => Want::get(large),
        1 => Want::put(large),
        2 => Want::unknown(large),
        3 | 4 => Want::unknown(small),
        5..=8 => Want::get(small / 8),
        _ => Want::put(small / 8),
    }
}
