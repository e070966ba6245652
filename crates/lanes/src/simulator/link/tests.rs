//! Tests of the simulated TCP. A single body over an idle link must take as long as with a real TCP.

use super::congestion::CongestionControl;
use super::*;
use crate::Protocol;
use crate::simulator::network::{Bottleneck, Network};

const MIB: u64 = 1 << 20;
const PLACE: ConnectionSite = ConnectionSite { lane: LaneId(1), role: Role::Freight, server: 0, path: 0 };

/// Returns the seconds until a body that begins at `now` has arrived.
fn takes(network: &mut Network, now: Nanos, bytes: u64) -> f64 {
    let attempt = AttemptId(now);
    network.begin(now, Side::Down, PLACE, attempt, bytes);
    let (mut arrived, mut at) = (Vec::new(), 0);
    while !arrived.contains(&LinkEvent::All(attempt)) {
        at = network.next().expect("bytes are forgotten");
        network.step(&mut arrived);
    }
    (at - now) as f64 * 1e-9
}

/// Returns the seconds that a body takes over an idle link, for each kind of congestion control.
fn alone(wire: Bottleneck, rtt_ms: u64, bytes: u64) -> [f64; 2] {
    [CongestionControl::Rate, CongestionControl::Loss].map(|control| {
        let server = Server { stream_rate: f64::INFINITY, control, ..Server::new(rtt_ms, Protocol::H1) };
        let mut network = Network::new(&[Wire::both(wire)], &[server], 7);
        let seconds = takes(&mut network, 0, bytes);
        println!(
            "{wire:?} {rtt_ms} ms {control:?}: {} of {} bytes are lost",
            network.down.lost, network.down.sent
        );
        seconds
    })
}

#[test]
fn what_fits_the_first_window_takes_half_a_round_trip() {
    for seconds in alone(Bottleneck::of(1000, 1024, 0.0), 20, 10_000) {
        assert!((0.010..0.011).contains(&seconds), "{seconds}");
    }
}

#[test]
fn a_short_body_takes_the_rounds_of_slow_start() {
    for seconds in alone(Bottleneck::of(1000, 1024, 0.0), 20, 100_000) {
        assert!((0.045..0.075).contains(&seconds), "{seconds}");
    }
}

#[test]
fn a_long_body_fills_the_link() {
    for (mbit, queue, rtt) in [(1000, 1024, 2), (1000, 1024, 20), (200, 2048, 100), (100, 256, 20)] {
        for seconds in alone(Bottleneck::of(mbit, queue, 0.0), rtt, 256 * MIB) {
            let floor = (256 * MIB) as f64 / (mbit as f64 * 125e3);
            assert!(
                (1.0..1.3).contains(&(seconds / floor)),
                "{mbit} Mbit/s, {rtt} ms: took {seconds} s, best {floor} s"
            );
        }
    }
}

#[test]
fn random_loss_slows_who_goes_by_it_and_hardly_who_goes_by_rate() {
    let [rate, loss] = alone(Bottleneck::of(1000, 1024, 0.5), 20, 64 * MIB);
    let floor = (64 * MIB) as f64 / 125e6;
    assert!(rate < 2.0 * floor, "{rate}");
    // The expected rate is about MSS / RTT * 1.2 / sqrt(p), which is 1.2 MB/s.
    assert!(loss > 10.0 * floor, "{loss}");
}

fn network(wire: Wire, server: Server) -> Network {
    Network::new(&[wire], &[Server { stream_rate: f64::INFINITY, ..server }], 7)
}

#[test]
fn acknowledgements_that_are_lost_hardly_slow_a_body() {
    let down = Bottleneck::of(100, 256, 0.0);
    for control in [CongestionControl::Rate, CongestionControl::Loss] {
        let wire = Wire { down, up: Bottleneck { loss: 0.2, ..down } };
        let seconds =
            takes(&mut network(wire, Server { control, ..Server::new(20, Protocol::H1) }), 0, 32 * MIB);
        assert!(seconds < 1.3 * (32 * MIB) as f64 / down.rate, "{control:?}: {seconds}");
    }
}

#[test]
fn acknowledgements_stand_in_the_queue_of_what_goes_their_way() {
    let wire = Wire { down: Bottleneck::of(100, 256, 0.0), up: Bottleneck::of(1, 256, 0.0) };
    let server = || Server { control: CongestionControl::Loss, ..Server::new(20, Protocol::H1) };
    let alone = takes(&mut network(wire, server()), 0, 2 * MIB);
    let mut network = network(wire, server());
    let other = ConnectionSite { lane: LaneId(2), ..PLACE };
    network.begin(0, Side::Up, other, AttemptId(9), 16 * MIB);
    let mut arrived = Vec::new();
    while network.next().is_some_and(|at| at < 3_000_000_000) {
        network.step(&mut arrived);
    }
    let beside = takes(&mut network, 3_000_000_000, 2 * MIB);
    // A full queue of 256 KiB takes two seconds at 1 Mbit/s.
    assert!(alone < 0.5 && beside > 4.0 * alone, "{beside}, {alone} alone");
}

#[test]
fn an_old_connection_acknowledges_a_single_segment_late() {
    let mut network = network(Wire::both(Bottleneck::of(100, 256, 0.0)), Server::new(20, Protocol::H1));
    let mut now = 0;
    let mut acknowledged = Vec::new();
    for _ in 0..20 {
        takes(&mut network, now, 1000);
        let came = network.down.now();
        while network.down.is_waiting(PLACE.lane) {
            network.step(&mut Vec::new());
        }
        acknowledged.push(network.down.now() - came);
        now = network.down.now();
    }
    let half = 10_000_000..11_000_000;
    assert!(half.contains(&acknowledged[0]), "{acknowledged:?}");
    assert!((half.start + DELAYED..half.end + DELAYED).contains(&acknowledged[19]), "{acknowledged:?}");
}

#[test]
fn a_receiver_that_takes_less_than_the_path_holds_sets_the_pace() {
    let server = |window_max| Server { window_max, ..Server::new(100, Protocol::H1) };
    let wire = Wire::both(Bottleneck::of(10_000, 16 << 10, 0.0));
    let seconds = |window_max| takes(&mut network(wire, server(window_max)), 0, 256 * MIB);
    // The body consists of 85 windows of 3 MiB (or 16 windows of 16 MiB), and each window takes a round trip. Slow
    // start takes further round trips.
    let (small, large) = (seconds(3 << 20), seconds(16 << 20));
    assert!((8.5..10.5).contains(&small), "{small}");
    assert!((1.6..4.0).contains(&large), "{large}");
}

#[test]
fn a_full_queue_drops_the_packets_of_a_burst_that_have_no_room() {
    let mut queue = BottleneckQueue::new(Bottleneck { rate: 1e6, queue: 15_000, loss: 0.0 });
    assert_eq!(queue.pass(0, 4, 1500.0), (4, 6_000_000));
    assert_eq!(queue.pass(0, 44, 1500.0), (6, 15_000_000));
    assert_eq!(queue.pass(0, 1, 1500.0), (0, 15_000_000));
    assert_eq!(queue.pass(3_000_000, 44, 1500.0), (2, 18_000_000));
}

#[test]
fn a_valve_that_is_set_again_at_once_lets_no_more_pass() {
    let passed = |times: u64| {
        let mut network = network(Wire::both(Bottleneck::of(1000, 1024, 0.0)), Server::new(2, Protocol::H1));
        network.begin(0, Side::Down, PLACE, AttemptId(0), 64 * MIB);
        for i in 0..times {
            network.down.set_valve(i * 100_000, (i % 2 == 0).then_some(1_000_000));
        }
        network.down.set_valve(times * 100_000, Some(1_000_000));
        let second = times * 100_000 + 1_000_000_000;
        while network.next().is_some_and(|at| at < second) {
            network.step(&mut Vec::new());
        }
        network.down.carried[0]
    };
    for times in [0, 1, 2, 9, 10] {
        assert!((900_000..1_300_000).contains(&passed(times)), "{times} times: {}", passed(times));
    }
}

#[test]
fn a_tail_probe_does_not_wait_for_the_window() {
    let mut sender = Sender::new(CongestionControl::Loss, 1 << 20);
    sender.written = 1 << 20;
    let mut sent = Vec::new();
    while let Ok(burst) = sender.next_burst(0, f64::INFINITY) {
        sender.left(burst);
        sent.push(burst);
    }
    // One segment is acknowledged, and all bytes that the window allows are in flight again.
    let (lane, blocks) = (PLACE.lane, [(0, 0); 3]);
    sender.acked(20_000_000, &Ack { lane, path: 0, received: MSS, blocks, edge: 1 << 20 });
    while let Ok(burst) = sender.next_burst(20_000_000, f64::INFINITY) {
        sender.left(burst);
        sent.push(burst);
    }
    let until = sent.last().map(|burst| burst.from + burst.bytes);
    assert!(!sender.timed_out(80_000_000));
    let probe = sender.next_burst(80_000_000, f64::INFINITY).expect("a probe");
    assert_eq!((Some(probe.from), probe.bytes), (until, MSS), "the next segment");
    sender.left(probe);
    assert_eq!(sender.next_burst(80_000_000, f64::INFINITY).err(), Some(SendBlocker::Waits), "and no more");
}
