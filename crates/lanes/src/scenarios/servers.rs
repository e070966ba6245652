//! Tests with servers that close idle connections or never answer some requests.

use super::*;

const ENDINGS: [IdleClose; 4] = [IdleClose::Found, IdleClose::Seen, IdleClose::Reset, IdleClose::Silence];

fn closing(idle_s: u64, ending: IdleClose) -> World {
    let far = Server { idle_max: Duration::from_secs(idle_s), ending, ..Server::new(120, Protocol::H1) };
    World::new(25e6, vec![far], CONNECTIONS_MAX, 1)
}

/// First, 200 small uploads leave idle lanes, while the parts of large uploads take more than a minute. Then come the requests that
/// complete the large objects.
#[test]
fn requests_after_a_minute_of_bulk_find_a_connection() {
    for ending in ENDINGS {
        for idle_s in [1, 5, 30] {
            let mut world = closing(idle_s, ending);
            for _ in 0..200 {
                world.submit(Duration::ZERO, small());
            }
            for _ in 0..100 {
                world.submit(Duration::ZERO, RequestSpec::put(16 * MIB));
            }
            let ends: Vec<_> = (0..4).map(|_| world.submit(Duration::from_secs(61), small())).collect();
            let later: Vec<_> =
                (0..20).map(|i| world.submit(Duration::from_secs(62 + 2 * i), small())).collect();
            world.run();
            assert!(world.last_end() > Duration::from_secs(66), "bulk took only {:?}", world.last_end());
            // Returns how often each of these attempts found that its lane had been closed.
            let gone = |attempts: &[AttemptId]| {
                let gone =
                    |w: &AttemptId| world.requests[w.0 as usize].stale + world.requests[w.0 as usize].bounces;
                attempts.iter().map(gone).collect::<Vec<_>>()
            };
            let found = gone(&ends);
            assert!(
                found.iter().all(|gone| *gone <= 1),
                "idle timeout of {idle_s} s, {ending:?}: the number of closed lanes that each of the last requests found: {found:?}"
            );
            // The first closed lane shows that the idle timeout is below a minute. The next closed lane shows that it is about a second.
            // With a silent server, nothing is known before the request times out.
            let learned = gone(&later).iter().sum::<u32>() <= 1 || ending == IdleClose::Silence;
            assert!(
                learned,
                "idle timeout of {idle_s} s, {ending:?}: the number of closed lanes that each later request found: {:?}",
                gone(&later)
            );
            if ending == IdleClose::Seen {
                let found: u32 = gone(&ends).iter().chain(&gone(&later)).sum();
                assert_eq!(found, 0, "idle timeout of {idle_s} s: a request found a closed lane");
            }
        }
    }
}

#[test]
fn after_a_stale_lane_a_new_one_is_dialled() {
    let mut world = closing(5, IdleClose::Reset);
    for _ in 0..200 {
        world.submit(Duration::ZERO, small());
    }
    let late = world.submit(Duration::from_secs(40), small());
    world.run();
    let request = &world.requests[late.0 as usize];
    assert_eq!((request.stale, request.lanes.len()), (1, 2));
    let message = "the other lanes that were idle as long must be closed together with the stale one";
    assert_eq!(world.dispatcher.lanes(), 1, "{message}");
    // This takes four round trips: one until the reset, two for a dial, and one for the request.
    let took = world.times(&[late])[0];
    assert!(took < Duration::from_millis(500), "the late request took {took:?}");
}

#[test]
fn what_the_server_tells_of_its_idle_timeout_is_kept_to() {
    let (mut dispatcher, now, origin) = (Dispatcher::new(CONNECTIONS_MAX), Instant::now(), OriginId(0));
    let size = RequestSize::new(1000, Some(0), false);
    let mut announced = Vec::new();
    dispatcher.handle(now, DispatchEvent::Submitted { attempt: AttemptId(0), origin, size });
    announced.extend(std::iter::from_fn(|| dispatcher.poll()));
    let Some(DispatchAction::Dial { lane, .. }) = announced.first().copied() else {
        panic!("the dispatcher doesn't dial first: {announced:?}")
    };
    let rtt = Duration::from_millis(100);
    dispatcher.handle(now, DispatchEvent::Opened { lane, protocol: Protocol::H1, rtt });
    dispatcher.handle(now, DispatchEvent::KeepsIdle { lane, limit: Duration::from_secs(5) });
    dispatcher.handle(now, DispatchEvent::Finished { attempt: AttemptId(0), reusable: true });
    while dispatcher.poll().is_some() {}
    let due = dispatcher.next_tick().expect("the dispatcher must plan to close the lane");
    assert_eq!(due, now + Duration::from_millis(4400));
    dispatcher.handle(due, DispatchEvent::Tick);
    assert_eq!(dispatcher.poll(), Some(DispatchAction::Close { lane }));
}

#[test]
fn after_a_standstill_nothing_goes_on_what_was_idle() {
    let mut world = closing(600, IdleClose::Silence);
    for _ in 0..100 {
        world.submit(Duration::ZERO, small());
    }
    world.run();
    assert!(world.dispatcher.lanes() > 1);
    world.stand_still();
    assert_eq!(world.dispatcher.lanes(), 0);
    let next = world.submit(Duration::ZERO, small());
    world.run();
    assert_eq!(world.requests[next.0 as usize].stale, 0);
}

// Requests that a server never answers, and their hedges.

/// Creates a server that delays `of_1000` of 1000 requests by up to a minute.
fn forgetful(rtt_ms: u64, protocol: Protocol, of_1000: u32) -> Server {
    Server::new(rtt_ms, protocol).with(Faults { stalls: of_1000, ..Faults::default() })
}

/// Runs the requests in twenty simulated worlds, with a different seed in each. Returns two numbers of worlds in which the last request
/// ended after `late`: without hedging, and with hedging.
fn late_worlds(wants: &[RequestSpec], path: &Server, late: Duration) -> (usize, usize) {
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
            late_worlds(&[RequestSpec::get(9000); 1000], &forgetful(20, protocol, 2), Duration::from_secs(1));
        // The server may leave a hedge without an answer, too.
        assert!(
            alone >= 12 && hedged <= 1,
            "{protocol:?}: of 20 worlds, {alone} end late without hedging, {hedged} with it"
        );
    }
}

#[test]
fn the_tail_of_a_server_that_forgets_slices_is_cut() {
    let (alone, hedged) =
        late_worlds(&[bulk(); 100], &forgetful(20, Protocol::H1, 10), Duration::from_secs(12));
    assert!(alone >= 8 && hedged <= 3, "of 20 worlds, {alone} end late without hedging, {hedged} with it");
}

#[test]
fn a_healthy_server_that_loses_nothing_is_hardly_ever_asked_twice() {
    for protocol in [Protocol::H1, Protocol::H2] {
        for link in [1e6, GIGABIT, TEN_GIGABIT] {
            let mut world = World::new(link, vec![Server::new(20, protocol)], CONNECTIONS_MAX, 1).hedging();
            for size in sizes(1000, 1 << 10, 200 << 10) {
                world.submit(Duration::ZERO, RequestSpec::get(size));
            }
            for _ in 0..20 {
                world.submit(Duration::ZERO, bulk());
            }
            world.run();
            // On slower links the queue overflows, and a dropped request looks like a request that the server never answers. So a few
            // hedges are allowed there. At 10 Gbit/s, the windows of large transfers grow late, so up to 3 of the 1,020 requests are hedged.
            let most = world.sent / if link < TEN_GIGABIT { 50 } else { 300 };
            let hedges = world.hedged;
            assert!(hedges <= most, "{protocol:?} at {link:.0e} bytes per second: {hedges} hedges were sent");
        }
    }
}
