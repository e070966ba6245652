//! Several origins behind one access link.

use super::*;
use crate::simulator::{Bottleneck, Wire};

const NEAR: usize = 0;
const FAR: usize = 1;

/// A world with a server nearby and another one far away, behind a gigabit.
fn near_and(far: Server) -> World {
    let near = Server { stream_rate: f64::INFINITY, ..Server::new(2, Protocol::H1) };
    World::over(&[Wire::both(Bottleneck::new(GIGABIT))], vec![near, far], CONNECTIONS_MAX, 1)
}

/// When so much bulk of the server nearby has come.
fn bulk_ends(world: &mut World, mib: u64) -> Duration {
    let bulk: Vec<_> =
        (0..mib / 16).map(|_| world.submit(Duration::ZERO, Want::get(16 * MIB).of(NEAR))).collect();
    world.run();
    world.end_of(&bulk)
}

#[test]
fn small_requests_to_an_unreachable_server_hold_bulk_back_only_briefly() {
    let mut world = near_and(Server::new(60_000, Protocol::H1));
    for _ in 0..200 {
        world.submit(Duration::ZERO, Want::get(256 * KIB).of(FAR));
    }
    let took = bulk_ends(&mut world, 1024);
    assert!(took < Duration::from_secs(11), "{took:?}");
}

#[test]
fn each_origins_bulk_is_held_to_what_its_own_path_holds() {
    // A hundredth of the rate over sixty times the distance: about as much on its way.
    let far = Server { stream_rate: f64::INFINITY, ..Server::new(120, Protocol::H1).behind(GIGABIT / 100.0) };
    let mut world = near_and(far);
    for _ in 0..4 {
        world.submit(Duration::ZERO, Want::get(4 * MIB).of(FAR));
    }
    let took = bulk_ends(&mut world, 1024);
    assert!(took < Duration::from_secs(11), "{took:?}");
    // The best rate counts what stood behind a lost packet and is read at once: up to twice of what the path carries.
    for (origin, rate) in [(NEAR, GIGABIT), (FAR, GIGABIT / 100.0)] {
        let seen = world.dispatcher.path(OriginId(origin)).rate.unwrap_or_default();
        assert!((0.5..2.2).contains(&(seen / rate)), "{origin}: {seen} of {rate}");
    }
}

#[test]
fn bulk_that_waits_in_one_direction_keeps_none_from_going_in_the_other() {
    let mut world = near_and(Server::new(20, Protocol::H1));
    // Uploads don't begin beside many small ones; what comes down has nothing to wait for.
    for _ in 0..400 {
        world.submit(Duration::ZERO, Want::put(512 * KIB).of(NEAR));
    }
    world.submit(Duration::ZERO, Want::put(64 * MIB).of(NEAR));
    let took = bulk_ends(&mut world, 64);
    assert!(took < Duration::from_millis(900), "{took:?}");
}

#[test]
fn connections_to_several_addresses_carry_more_than_one_of_them() {
    let path = |rate| Path { rtt: Duration::from_millis(10), bottleneck: Bottleneck::new(rate) };
    let took = |paths: Vec<Path>| {
        let server = Server { stream_rate: f64::INFINITY, ..Server::new(0, Protocol::H1).at(paths) };
        let mut world = World::new(GIGABIT, vec![server], CONNECTIONS_MAX, 1);
        bulk_ends(&mut world, 512)
    };
    let (one, two) = (took(vec![path(40e6)]), took(vec![path(40e6), path(40e6)]));
    assert!(two < one.mul_f64(0.65), "{two:?}, {one:?} over one");
}
