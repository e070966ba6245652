//! The job that mixes small and large objects, over links of all kinds.

use super::*;
use crate::simulator::{Control, Wire};

/// A link of the rig: one-way milliseconds, Mbit/s, KiB of queue, percent lost.
#[derive(Clone, Copy, Debug)]
struct Rig(f64, u64, u64, f64);

/// What a job took, over what the link takes for its bytes alone.
#[derive(Debug)]
struct Took {
    small_p50: f64,
    small_p99: f64,
    total: f64,
    lanes: usize,
    lost: f64,
}

impl Rig {
    fn mixed(self, protocol: Protocol, is_up: bool) -> Took {
        let Self(half_ms, mbit, queue, loss) = self;
        let rtt = Duration::from_secs_f64(2.0 * half_ms / 1e3);
        let path = Path { rtt, control: Control::Rate, stream_rate: f64::INFINITY, ..Path::new(0, protocol) };
        let wire = Wire::of(mbit, queue, loss);
        let mut world = World::over(wire, vec![path], CONNECTIONS_MAX, 1);
        // Files are known, objects aren't until they answer.
        let want = |bytes| if is_up { Want::put(bytes) } else { Want::unknown(bytes) };
        let (large, each) = if is_up { (4 * 16, 16 * MIB) } else { (4, 256 * MIB) };
        for _ in 0..large {
            world.submit(Duration::ZERO, want(each));
        }
        let sizes: Vec<_> = sizes(200, 32 * KIB, 512 * KIB).collect();
        let smalls: Vec<_> = sizes.iter().map(|size| world.submit(Duration::ZERO, want(*size))).collect();
        world.run();
        // The small ones first, the smallest of them first, at the link's rate; a connection and a request before.
        let seconds = |bytes: u64| bytes as f64 / wire.rate + 3.0 * rtt.as_secs_f64();
        let mut sorted = sizes.clone();
        sorted.sort_unstable();
        let floor = |of_100: usize| seconds(sorted[..sorted.len() * of_100 / 100].iter().sum());
        let times = world.times(&smalls);
        let all = sizes.iter().sum::<u64>() + 1024 * MIB;
        let link = if is_up { &world.up } else { &world.down };
        Took {
            small_p50: percentile(&times, 50).as_secs_f64() / floor(50),
            small_p99: percentile(&times, 99).as_secs_f64() / floor(99),
            total: world.last_end().as_secs_f64() / seconds(all),
            lanes: world.lanes_peak,
            lost: link.lost as f64 / link.sent as f64,
        }
    }
}

/// Half the round trip in ms, Mbit/s, KiB of queue and percent lost.
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
fn on_every_link_small_objects_come_early_and_the_job_ends_when_the_link_has_carried_it() {
    for rig in LINKS {
        for (protocol, is_up) in
            [(Protocol::H1, false), (Protocol::H2, false), (Protocol::H1, true), (Protocol::H2, true)]
        {
            let took = rig.mixed(protocol, is_up);
            println!("{rig:?} {protocol:?} {}: {took:.2?}", if is_up { "up" } else { "down" });
            // Of what isn't known to be small the smallest can't go first: half of all bytes come before the median one.
            let small_p50 = if is_up { 2.8 } else { 3.2 };
            // A path of 10 Gbit/s 50 ms long is over before it is filled.
            let is_long = rig.1 >= 10_000;
            let (p50, p99, total) = if is_long { (5.5, 6.5, 7.0) } else { (small_p50, 2.5, 1.35) };
            assert!(took.small_p50 <= p50, "{rig:?} {protocol:?} {is_up}: {took:?}");
            assert!(took.small_p99 <= p99, "{rig:?} {protocol:?} {is_up}: {took:?}");
            assert!(took.total <= total, "{rig:?} {protocol:?} {is_up}: {took:?}");
            assert!(took.lanes <= 80, "{rig:?} {protocol:?} {is_up}: {took:?}");
        }
    }
}

#[test]
fn a_link_that_loses_packets_has_them_sent_again() {
    let lossless = Rig(0.25, 1000, 1024, 0.0).mixed(Protocol::H1, false);
    let lossy = Rig(0.25, 1000, 1024, 1.0).mixed(Protocol::H1, false);
    assert!(lossless.lost < 0.003, "{lossless:?}");
    assert!((0.009..0.03).contains(&lossy.lost), "{lossy:?}");
    assert!(lossy.small_p99 > lossless.small_p99, "{lossy:?}");
}
