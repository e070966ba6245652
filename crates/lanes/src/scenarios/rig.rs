//! The simulated network beside a real one: the mixed job as it was measured with the program on the rig's links.
//!
//! The figures are of 2026-11-23: a release build without LTO on two idle cores, one to three runs a row, by senders of BBR. The jobs are
//! `mixed` from MinIO over HTTP/1.1, `mixedgcs` from nginx over HTTP/2 and `mixedput` to MinIO. The simulated network has no
//! processor. At 1 Gbit/s it may be faster than the rig, whose two cores carry both ends. The objects' order differs.

use super::mixed::{CASES, Rig, Times, case};
use crate::simulator::Control;

/// A row: the link, which of the cases, seconds until half of the small objects, nearly all of them and everything were there, and
/// connections.
type Measured = (Rig, usize, [f64; 3], usize);

const DOWN_H1: usize = 0;
const DOWN_H2: usize = 1;
const UP_H1: usize = 2;

const MEASURED: [Measured; 10] = [
    (Rig(1.0, 1000, 1024, 0.0), DOWN_H1, [0.20, 0.52, 9.45], 21),
    (Rig(10.0, 1000, 1024, 0.0), DOWN_H1, [0.35, 0.87, 10.05], 41),
    (Rig(10.0, 1000, 256, 0.1), DOWN_H1, [0.47, 0.95, 10.94], 42),
    (Rig(25.0, 500, 1024, 0.0), DOWN_H1, [0.72, 1.55, 20.2], 41),
    (Rig(60.0, 200, 2048, 0.0), DOWN_H1, [1.64, 3.22, 51.6], 45),
    (Rig(10.0, 1000, 1024, 0.5), DOWN_H1, [0.42, 0.91, 10.81], 41),
    (Rig(10.0, 1000, 1024, 0.0), DOWN_H2, [0.41, 0.64, 10.25], 27),
    (Rig(25.0, 500, 1024, 0.0), DOWN_H2, [0.91, 1.48, 20.5], 26),
    (Rig(10.0, 1000, 1024, 0.0), UP_H1, [0.42, 0.82, 10.00], 41),
    (Rig(10.0, 1000, 1024, 0.5), UP_H1, [0.51, 0.96, 11.73], 41),
];

/// Factors by which the small objects' times may differ from the rig's, and the total: on links of up to 500 Mbit/s, and on faster ones.
const WITHIN: [f64; 2] = [1.45, 1.05];
const WITHIN_FAST: [f64; 2] = [1.6, 1.15];

#[test]
fn the_mixed_job_takes_about_what_it_took_on_the_rig() {
    for (rig, which, measured, lanes) in MEASURED {
        let (protocol, is_up) = CASES[which];
        let runs = [1, 2, 3].map(|seed| rig.mixed(protocol, is_up, Control::Rate, seed).run());
        let times = |time: fn(&Times) -> f64| {
            let mut times = runs.each_ref().map(|run| time(&run.times));
            times.sort_by(f64::total_cmp);
            times[1]
        };
        let times = [times(|of| of.small_p50), times(|of| of.small_p99), times(|of| of.total)];
        println!(
            "{rig:?} {}: {times:.2?}, {:?} lanes; on the rig {measured:?}, {lanes}",
            case(protocol, is_up),
            runs.each_ref().map(|run| run.lanes)
        );
        let [small, total] = if rig.1 > 500 { WITHIN_FAST } else { WITHIN };
        for (i, within) in [small, small, total].into_iter().enumerate() {
            let ratio = times[i] / measured[i];
            assert!((1.0 / within..within).contains(&ratio), "{rig:?}: {times:.2?}, on the rig {measured:?}");
        }
    }
}
