//! The simulated network beside a real one: the mixed job as it was measured with the program on the rig's links.
//!
//! The figures are of commit ad02104, a release build on two cores, one run a row (two where a range was seen): `mixed` from MinIO over
//! HTTP/1.1, `mixedgcs` from nginx over HTTP/2, `mixedput` to MinIO, by senders of BBR. The simulated network knows no processor, so at 1 Gbit/s it may be
//! faster than the rig, whose two cores carry both ends; and the objects' order is another one. The dispatcher has changed since: what holds is
//! that the shape is the same, and the seconds where the link is the bottleneck.

use super::mixed::{CASES, Rig, case};
use crate::simulator::Control;

/// A row: the link, which of the cases, seconds until half of the small objects, nearly all of them and everything were there, and
/// connections.
type Measured = (Rig, usize, [f64; 3], usize);

const DOWN_H1: usize = 0;
const DOWN_H2: usize = 1;
const UP_H1: usize = 2;

const MEASURED: [Measured; 10] = [
    (Rig(1.0, 1000, 1024, 0.0), DOWN_H1, [0.40, 0.77, 9.83], 25),
    (Rig(10.0, 1000, 1024, 0.0), DOWN_H1, [0.52, 1.01, 10.38], 45),
    (Rig(10.0, 1000, 256, 0.1), DOWN_H1, [0.72, 1.47, 13.9], 51),
    (Rig(25.0, 500, 1024, 0.0), DOWN_H1, [0.84, 1.58, 20.34], 58),
    (Rig(60.0, 200, 2048, 0.0), DOWN_H1, [1.77, 3.44, 52.2], 59),
    (Rig(10.0, 1000, 1024, 0.5), DOWN_H1, [0.57, 1.16, 12.30], 45),
    (Rig(10.0, 1000, 1024, 0.0), DOWN_H2, [0.60, 0.95, 10.12], 48),
    (Rig(25.0, 500, 1024, 0.0), DOWN_H2, [0.97, 1.44, 20.60], 53),
    (Rig(10.0, 1000, 1024, 0.0), UP_H1, [0.42, 0.79, 10.21], 40),
    (Rig(10.0, 1000, 1024, 0.5), UP_H1, [0.52, 0.98, 12.59], 40),
];

/// How far the small objects' times may be from the rig's, and the total: on links of up to 500 Mbit/s, and on faster ones.
const WITHIN: [f64; 2] = [1.35, 1.15];
const WITHIN_FAST: [f64; 2] = [1.9, 1.4];

#[test]
fn the_mixed_job_takes_about_what_it_took_on_the_rig() {
    for (rig, which, measured, lanes) in MEASURED {
        let (protocol, is_up) = CASES[which];
        let took = rig.mixed(protocol, is_up, Control::Rate, 1).run();
        let times = [took.times.small_p50, took.times.small_p99, took.times.total];
        println!(
            "{rig:?} {}: {times:.2?}, {} lanes; on the rig {measured:?}, {lanes}",
            case(protocol, is_up),
            took.lanes
        );
        let [small, total] = if rig.1 > 500 { WITHIN_FAST } else { WITHIN };
        for (i, within) in [small, small, total].into_iter().enumerate() {
            let ratio = times[i] / measured[i];
            assert!((1.0 / within..within).contains(&ratio), "{rig:?}: {times:.2?}, on the rig {measured:?}");
        }
    }
}
