//! A single body over an idle link takes what TCP makes it take.

use super::congestion::Control;
use super::*;
use crate::Protocol;

const MIB: u64 = 1 << 20;
const LANE: LaneId = LaneId(1);

/// How long a body of so many bytes takes to come over an idle link, by each kind of sender.
fn alone(wire: Wire, rtt_ms: u64, bytes: u64) -> [f64; 2] {
    [Control::Rate, Control::Loss].map(|control| {
        let path = Path { stream_rate: f64::INFINITY, control, ..Path::new(rtt_ms, Protocol::H1) };
        let mut link = Link::new(Side::Down, wire, &[path], 7);
        link.begin(0, LANE, (0, Role::Freight), AttemptId(0), bytes);
        let (mut arrived, mut at) = (Vec::new(), 0);
        while !arrived.contains(&Arrived::All(AttemptId(0))) {
            at = link.next().expect("bytes are forgotten");
            link.step(&mut arrived);
        }
        println!("{wire:?} {rtt_ms} ms {control:?}: {} lost of {}", link.lost, link.sent);
        at as f64 * 1e-9
    })
}

#[test]
fn what_fits_the_first_window_takes_half_a_round_trip() {
    for seconds in alone(Wire::of(1000, 1024, 0.0), 20, 10_000) {
        assert!((0.010..0.011).contains(&seconds), "{seconds}");
    }
}

#[test]
fn a_short_body_takes_the_rounds_of_slow_start() {
    for seconds in alone(Wire::of(1000, 1024, 0.0), 20, 100_000) {
        assert!((0.045..0.075).contains(&seconds), "{seconds}");
    }
}

#[test]
fn a_long_body_fills_the_link() {
    for (mbit, queue, rtt) in [(1000, 1024, 2), (1000, 1024, 20), (200, 2048, 100), (100, 256, 20)] {
        for seconds in alone(Wire::of(mbit, queue, 0.0), rtt, 256 * MIB) {
            let floor = (256 * MIB) as f64 / (mbit as f64 * 125e3);
            assert!((1.0..1.3).contains(&(seconds / floor)), "{mbit} Mbit/s, {rtt} ms: {seconds} of {floor}");
        }
    }
}

#[test]
fn random_loss_slows_who_goes_by_it_and_hardly_who_goes_by_rate() {
    let [rate, loss] = alone(Wire::of(1000, 1024, 0.5), 20, 64 * MIB);
    let floor = (64 * MIB) as f64 / 125e6;
    assert!(rate < 2.0 * floor, "{rate}");
    // About MSS / RTT * 1.2 / sqrt(p): 1.2 MB/s.
    assert!(loss > 10.0 * floor, "{loss}");
}
