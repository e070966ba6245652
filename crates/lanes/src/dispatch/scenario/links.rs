//! The job that mixes small and large objects, over links of all kinds: beside what was measured on the rig's real ones.

use super::link::congestion::Control;
use super::network::Wire;
use super::*;

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
        let want = |bytes| if is_up { Want::put(bytes) } else { Want::get(bytes) };
        for _ in 0..4 * 16 {
            world.submit(Duration::ZERO, want(16 * MIB));
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

/// What was measured on the rig (2026-11-21): small p50 and p99 and the total, over what the link takes for the bytes, and
/// connections where they were counted.
type Measured = (f64, f64, f64, Option<usize>);

/// Half the round trip in ms, the link, the server's protocol and the direction, and what was measured.
const MEASURED: [(Rig, Protocol, bool, Measured); 8] = [
    (Rig(1.0, 1000, 1024, 0.0), Protocol::H1, false, (1.7, 1.2, 1.02, Some(21))),
    (Rig(60.0, 200, 2048, 0.0), Protocol::H1, false, (2.4, 1.8, 1.08, Some(141))),
    (Rig(60.0, 200, 2048, 0.0), Protocol::H2, false, (2.5, 1.6, 1.10, None)),
    (Rig(10.0, 1000, 1024, 0.5), Protocol::H1, false, (3.8, 2.4, 1.36, Some(91))),
    (Rig(10.0, 100, 256, 0.0), Protocol::H1, false, (2.4, 1.7, 1.06, Some(91))),
    (Rig(60.0, 200, 2048, 0.0), Protocol::H1, true, (2.0, 1.5, 1.08, Some(122))),
    (Rig(10.0, 1000, 1024, 0.5), Protocol::H1, true, (3.2, 2.4, 1.45, None)),
    (Rig(10.0, 100, 256, 0.0), Protocol::H1, true, (1.5, 1.2, 1.04, None)),
];

#[test]
fn what_was_measured_on_real_links_is_found_in_the_simulated_ones() {
    for (rig, protocol, is_up, (small_p50, small_p99, total, lanes)) in MEASURED {
        let took = rig.mixed(protocol, is_up);
        println!(
            "{rig:?} {protocol:?} {is_up}: {took:.2?}; measured {small_p50} {small_p99} {total} {lanes:?}"
        );
        let is_near = |simulated: f64, measured: f64| (0.55..1.5).contains(&(simulated / measured));
        assert!(is_near(took.small_p50, small_p50), "{rig:?} {protocol:?}: {took:?}");
        assert!(is_near(took.small_p99, small_p99), "{rig:?} {protocol:?}: {took:?}");
        assert!((took.total - total).abs() < 0.25, "{rig:?} {protocol:?}: {took:?}");
        assert!(lanes.is_none_or(|lanes| is_near(took.lanes as f64, lanes as f64)), "{rig:?}: {took:?}");
    }
}

#[test]
fn a_link_that_loses_packets_has_them_sent_again() {
    let lossless = Rig(0.25, 1000, 1024, 0.0).mixed(Protocol::H1, false);
    let lossy = Rig(0.25, 1000, 1024, 1.0).mixed(Protocol::H1, false);
    assert_eq!(lossless.lost, 0.0);
    assert!((0.009..0.03).contains(&lossy.lost), "{lossy:?}");
    assert!(lossy.small_p99 > lossless.small_p99, "{lossy:?}");
}
