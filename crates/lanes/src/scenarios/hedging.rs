//! Requests that a server forgets, and their hedges.

use super::*;

/// A server that leaves one of so many requests without an answer, for up to a minute.
fn forgetful(rtt_ms: u64, protocol: Protocol, of_1000: u32) -> Server {
    Server::new(rtt_ms, protocol).with(Faults { stalls: of_1000, ..Faults::default() })
}

/// Returns in how many of twenty worlds the last of these requests ended later than `late` without hedging and with it.
fn late_worlds(wants: &[Want], path: &Server, late: Duration) -> (usize, usize) {
    let last = |world: World| {
        let mut world = world;
        for want in wants {
            world.submit(Duration::ZERO, *want);
        }
        world.run();
        world.last_end()
    };
    let world = |seed| World::new(GIGABIT, vec![path.clone()], CONNECTIONS_MAX, seed);
    let late_ones = |is_hedging: bool| {
        let of_seed = |seed| if is_hedging { world(seed).hedging() } else { world(seed) };
        (0..20).filter(|seed| last(of_seed(*seed)) > late).count()
    };
    (late_ones(false), late_ones(true))
}

#[test]
fn the_tail_of_a_server_that_forgets_small_requests_is_cut() {
    for protocol in [Protocol::H1, Protocol::H2] {
        let (alone, hedged) =
            late_worlds(&[Want::get(9000); 1000], &forgetful(20, protocol, 2), Duration::from_secs(1));
        // A hedge may be forgotten as well.
        assert!(alone >= 12 && hedged <= 1, "{protocol:?}: {alone} of 20, hedged {hedged}");
    }
}

#[test]
fn the_tail_of_a_server_that_forgets_slices_is_cut() {
    let (alone, hedged) =
        late_worlds(&[bulk(); 100], &forgetful(20, Protocol::H1, 10), Duration::from_secs(12));
    assert!(alone >= 8 && hedged <= 3, "{alone} of 20, hedged {hedged}");
}

#[test]
fn a_healthy_server_that_loses_nothing_is_never_asked_twice() {
    for protocol in [Protocol::H1, Protocol::H2] {
        for link in [1e6, GIGABIT, TEN_GIGABIT] {
            let mut world = World::new(link, vec![Server::new(20, protocol)], CONNECTIONS_MAX, 1).hedging();
            for size in sizes(1000, 1 << 10, 200 << 10) {
                world.submit(Duration::ZERO, Want::get(size));
            }
            for _ in 0..20 {
                world.submit(Duration::ZERO, bulk());
            }
            world.run();
            // Requests that overflow the link's queue are silent for as long as a server that has forgotten something.
            let most = if link < TEN_GIGABIT { world.sent / 50 } else { 0 };
            assert!(world.hedged <= most, "{protocol:?} at {link:.0e} bytes a second: {}", world.hedged);
        }
    }
}
