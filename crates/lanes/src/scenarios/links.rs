//! The job that mixes small and large objects, over links of all kinds.

use super::matrix::{in_parallel, median_of};
use super::mixed::{CASES, Rig, Took, case};
use super::*;
use crate::simulator::Control;

/// The eight links of the matrix, a long one and a slow one.
const LINKS: [Rig; 10] = [
    Rig(0.25, 1000, 1024, 0.0),
    Rig(1.0, 1000, 1024, 0.0),
    Rig(10.0, 1000, 1024, 0.0),
    Rig(10.0, 1000, 256, 0.1),
    Rig(25.0, 500, 1024, 0.0),
    Rig(60.0, 200, 2048, 0.0),
    Rig(10.0, 100, 256, 0.0),
    Rig(10.0, 1000, 1024, 0.5),
    Rig(25.0, 10_000, 16384, 0.0),
    Rig(15.0, 20, 64, 0.0),
];

#[test]
fn on_every_link_small_objects_come_early_and_the_job_fills_the_link() {
    let cells: Vec<_> = LINKS.into_iter().flat_map(|rig| CASES.map(|case| (rig, case))).collect();
    // One run says nothing of a small object that loses its last packet twice.
    let took = in_parallel(&cells, |(rig, (protocol, is_up))| {
        median_of(|seed| rig.mixed(*protocol, *is_up, Control::Rate, seed).run())
    });
    for (took, (rig, (protocol, is_up))) in took.into_iter().zip(cells) {
        let (over, case) = (took.over_floor, case(protocol, is_up));
        println!("{rig:?} {case}: {over:.2?}, {} lanes, {:.3} lost", took.lanes, took.lost);
        // The smallest of objects of unknown size can't go first: half of all bytes come before the median one.
        let small_p50 = if is_up { 2.8 } else { 3.5 };
        // A path of 10 Gbit/s 50 ms long is over before it is filled.
        let is_long = rig.1 >= 10_000;
        let (p50, p99, total) = if is_long { (5.5, 6.5, 7.5) } else { (small_p50, 2.5, 1.4) };
        assert!(over.small_p50 <= p50, "{rig:?} {case}: {took:?}");
        assert!(over.small_p99 <= p99, "{rig:?} {case}: {took:?}");
        assert!(over.total <= total, "{rig:?} {case}: {took:?}");
        assert!(took.lanes <= 80, "{rig:?} {case}: {took:?}");
    }
}

#[test]
fn senders_that_go_by_loss_fill_every_link_that_loses_nothing_by_chance() {
    // A link that loses packets by chance is slow for them whatever is done: a connection has some 35 on its way at 0.1 %.
    for rig in LINKS.into_iter().filter(|rig| rig.3 == 0.0 && rig.1 < 10_000) {
        for (protocol, is_up) in CASES {
            let took = rig.mixed(protocol, is_up, Control::Loss, 1).run();
            let (over, case) = (took.over_floor, case(protocol, is_up));
            println!("{rig:?} {case}: {over:.2?}, {} lanes, {:.3} lost", took.lanes, took.lost);
            assert!(over.small_p50 <= 3.5, "{rig:?} {case}: {took:?}");
            assert!(over.small_p99 <= 2.3, "{rig:?} {case}: {took:?}");
            assert!(over.total <= 1.35, "{rig:?} {case}: {took:?}");
            assert!(took.lanes <= 80, "{rig:?} {case}: {took:?}");
        }
    }
}

#[test]
fn a_link_that_loses_packets_has_them_sent_again() {
    let job = |rig: Rig| -> Took { rig.mixed(Protocol::H1, false, Control::Rate, 1).run() };
    let (lossless, lossy) = (job(Rig(0.25, 1000, 1024, 0.0)), job(Rig(0.25, 1000, 1024, 1.0)));
    assert!(lossless.lost < 0.003, "{lossless:?}");
    assert!((0.009..0.03).contains(&lossy.lost), "{lossy:?}");
    assert!(lossy.times.small_p99 > lossless.times.small_p99, "{lossy:?}");
}
