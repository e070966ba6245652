//! The matrix of links, printed: what whoever changes a rule looks at before and after.
//!
//! `cargo test -p laneway-lanes --lib matrix -- --ignored --nocapture`, with `LANEWAY_CONTROL=cubic` for senders that go by loss.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::MIB;
use super::mixed::{CASES, Mixed, Rig, Times, Took, case};
use crate::simulator::Control;

pub(super) const LINKS: [Rig; 8] = [
    Rig(0.25, 1000, 1024, 0.0),
    Rig(1.0, 1000, 1024, 0.0),
    Rig(10.0, 1000, 1024, 0.0),
    Rig(10.0, 1000, 256, 0.1),
    Rig(25.0, 500, 1024, 0.0),
    Rig(60.0, 200, 2048, 0.0),
    Rig(10.0, 100, 256, 0.0),
    Rig(10.0, 1000, 1024, 0.5),
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
            Mixed { large: vec![40 * MIB; 4], small: mixed.small[..100].to_vec(), ..mixed }.run()
        };
        let one_object = |bytes: u64| {
            let alone = move |seed| Mixed { large: vec![bytes], small: vec![64 << 10; 8], ..mixed(seed) };
            median_of(move |seed| alone(seed).run())
        };
        (median_of(|seed| mixed(seed).run()), median_of(shorter), [128 * MIB, 1024 * MIB].map(one_object))
    });
    println!(
        "{control:?}; small p50, small p99 and total as multiples of the floor, lanes, packets lost; the total of four objects of 40 MiB and 100 small; and of one object of 128 MiB and one of 1 GiB total and lanes; medians of {SEEDS} seeds"
    );
    for (rows, rig) in rows.chunks(CASES.len()).zip(LINKS) {
        let Rig(half_ms, mbit, queue, loss) = rig;
        println!("{half_ms} ms one way, {mbit} Mbit/s, {queue} KiB, {loss} %");
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

/// Returns the congestion control of senders.
pub(super) fn control() -> Control {
    match std::env::var("LANEWAY_CONTROL").as_deref() {
        Ok("cubic") => Control::Loss,
        _ => Control::Rate,
    }
}

/// Each figure's own median over the seeds.
pub(super) fn median_of(run: impl Fn(u64) -> Took) -> Took {
    let runs: Vec<_> = (1..=SEEDS).map(run).collect();
    let times = |of: fn(&Took) -> Times| Times {
        small_p50: median(&runs, |took| of(took).small_p50),
        small_p99: median(&runs, |took| of(took).small_p99),
        total: median(&runs, |took| of(took).total),
    };
    Took {
        times: times(|took| took.times),
        over_floor: times(|took| took.over_floor),
        lanes: median(&runs, |took| took.lanes as f64) as usize,
        lost: median(&runs, |took| took.lost),
    }
}

/// A figure's median over some runs.
pub(super) fn median<T>(runs: &[T], figure: impl Fn(&T) -> f64) -> f64 {
    let mut figures: Vec<f64> = runs.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Returns what becomes of each of these, in their order, on all cores.
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
