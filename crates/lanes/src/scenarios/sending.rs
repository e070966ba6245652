//! Uploads: parts in turn, and bulk in send buffers beside small requests.

use super::*;

const SMALL_AT: Duration = Duration::from_secs(2);

/// Bulk for some nine seconds, and one small request beside it.
fn shared(bulk: Want, small: Want, protocol: Protocol) -> World {
    let path = Server { freight: protocol, ..Server::new(20, protocol) };
    run(World::new(GIGABIT, vec![path], CONNECTIONS_MAX, 1), bulk, small)
}

fn run(mut world: World, bulk: Want, small: Want) -> World {
    for _ in 0..64 {
        world.submit(Duration::ZERO, bulk);
    }
    world.submit(SMALL_AT, small);
    world.run();
    world
}

#[test]
fn small_attempts_limit_the_send_buffers_of_bulk_for_a_while() {
    for protocol in [Protocol::H1, Protocol::H2] {
        for small in [Want::put(16 * KIB), Want::get(16 * KIB)] {
            let world = shared(Want::put(16 * MIB), small, protocol);
            let announced = &world.send_buffers;
            let (Some((first, Some(_), _)), Some((last, None, _))) = (announced.first(), announced.last())
            else {
                panic!("{protocol:?}: {announced:?}");
            };
            // Once the path is known: what is read at once behind a lost packet is taken for more than it carries.
            assert!(
                (SMALL_AT..SMALL_AT + Duration::from_millis(1500)).contains(first),
                "{protocol:?}: {first:?}"
            );
            assert!(*last >= SMALL_AT + Duration::from_secs(1), "{protocol:?}: {last:?}");
        }
    }
}

#[test]
fn send_buffers_are_left_to_tcp_where_bulk_comes_down_or_goes_alone() {
    for (bulk, small) in
        [(Want::get(16 * MIB), Want::put(16 * KIB)), (Want::put(16 * MIB), Want::put(16 * MIB))]
    {
        let world = shared(bulk, small, Protocol::H1);
        assert!(world.send_buffers.is_empty(), "{:?}", world.send_buffers);
    }
}

#[test]
fn uploads_are_not_judged_where_nothing_says_what_has_been_acknowledged() {
    for protocol in [Protocol::H1, Protocol::H2] {
        let path = Server { freight: protocol, ..Server::new(20, protocol) };
        let mut world = World::new(GIGABIT, vec![path], CONNECTIONS_MAX, 1);
        world.tells_acknowledged = false;
        // More at once than a path of which nothing is known yet would have bulk yield to.
        for _ in 0..200 {
            world.submit(SMALL_AT, Want::put(256 * KIB));
        }
        let world = run(world, Want::put(16 * MIB), Want::put(16 * KIB));
        assert_eq!(world.yields[1].1, 0, "{protocol:?}: bulk yields to what may be nothing");
        assert!(world.send_buffers.is_empty(), "{protocol:?}: {:?}", world.send_buffers);
        assert_eq!(world.dispatcher.next_tick(), None, "{protocol:?}: nothing is waited for");
    }
}

#[test]
fn connections_that_download_have_no_share_of_the_send_buffers() {
    let total = |downloads: usize| {
        let mut world = World::new(GIGABIT, vec![Server::new(20, Protocol::H1); 2], CONNECTIONS_MAX, 1);
        for _ in 0..64 {
            world.submit(Duration::ZERO, Want::put(16 * MIB));
        }
        for _ in 0..downloads {
            world.submit(Duration::ZERO, Want::get(16 * MIB).of(1));
        }
        world.submit(SMALL_AT, Want::put(16 * KIB));
        world.run();
        let (_, bytes, lanes) = world.send_buffers[0];
        bytes.expect("a clamp") as usize * lanes
    };
    let (alone, shared) = (total(0), total(64));
    assert!(shared >= alone - alone / 4, "{alone} and {shared}");
}

#[test]
fn a_slow_upload_finishes_its_parts_in_turn() {
    let mut world = World::new(50e6 / 8.0, vec![Server::new(20, Protocol::H1)], CONNECTIONS_MAX, 1);
    for _ in 0..6 {
        world.submit(Duration::ZERO, Want::put(16 * MIB));
    }
    world.run();
    // Two parts take 5.4 s. Four together would all take 10.7 s.
    let within = Duration::from_secs(6).as_nanos();
    let finished =
        world.requests.iter().filter(|request| request.ended.is_some_and(|at| u128::from(at) < within));
    assert_eq!(finished.count(), 2);
}
