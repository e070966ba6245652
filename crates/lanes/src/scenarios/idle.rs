//! Servers that close connections which nobody uses, and jobs that are long enough to meet them.

use super::*;

const ENDINGS: [Ending; 4] = [Ending::Found, Ending::Seen, Ending::Reset, Ending::Silence];

fn closing(idle_s: u64, ending: Ending) -> World {
    let far = Server { idle_max: Duration::from_secs(idle_s), ending, ..Server::new(120, Protocol::H1) };
    World::new(25e6, vec![far], CONNECTIONS_MAX, 1)
}

/// A burst of 200 small uploads beside parts that take more than a minute, then what completes the large ones.
#[test]
fn requests_after_a_minute_of_bulk_find_a_connection() {
    for ending in ENDINGS {
        for idle_s in [1, 5, 30] {
            let mut world = closing(idle_s, ending);
            for _ in 0..200 {
                world.submit(Duration::ZERO, small());
            }
            for _ in 0..100 {
                world.submit(Duration::ZERO, Want::put(16 * MIB));
            }
            let ends: Vec<_> = (0..4).map(|_| world.submit(Duration::from_secs(61), small())).collect();
            let later: Vec<_> =
                (0..20).map(|i| world.submit(Duration::from_secs(62 + 2 * i), small())).collect();
            world.run();
            assert!(world.last_end() > Duration::from_secs(66), "bulk took {:?}", world.last_end());
            // Returns how often each of these found a lane that was gone.
            let gone = |attempts: &[AttemptId]| {
                let gone =
                    |w: &AttemptId| world.requests[w.0 as usize].stale + world.requests[w.0 as usize].bounces;
                attempts.iter().map(gone).collect::<Vec<_>>()
            };
            assert!(gone(&ends).iter().all(|gone| *gone <= 1), "{idle_s} s, {ending:?}: {:?}", gone(&ends));
            // After the minute's rest it is known that it is less than that, and after the next that it is a second. Of
            // silence nothing is known until it has been waited for.
            let learned = gone(&later).iter().sum::<u32>() <= 1 || ending == Ending::Silence;
            assert!(learned, "{idle_s} s, {ending:?}: {:?}", gone(&later));
            if ending == Ending::Seen {
                assert_eq!(gone(&ends).iter().chain(&gone(&later)).sum::<u32>(), 0, "{idle_s} s");
            }
        }
    }
}

#[test]
fn after_a_stale_lane_a_new_one_is_dialled() {
    let mut world = closing(5, Ending::Reset);
    for _ in 0..200 {
        world.submit(Duration::ZERO, small());
    }
    let late = world.submit(Duration::from_secs(40), small());
    world.run();
    let request = &world.requests[late.0 as usize];
    assert_eq!((request.stale, request.lanes.len()), (1, 2));
    assert_eq!(world.dispatcher.lanes(), 1, "the others are given up with it");
    // The reset's round trip, a dial's two, and the request's own.
    assert!(world.times(&[late])[0] < Duration::from_millis(500));
}

#[test]
fn what_the_server_tells_of_its_idle_timeout_is_kept_to() {
    let (mut dispatcher, now, origin) = (Dispatcher::new(CONNECTIONS_MAX), Instant::now(), OriginId(0));
    let size = Size::new(1000, Some(0), false);
    let mut announced = Vec::new();
    dispatcher.handle(now, Event::Submitted { attempt: AttemptId(0), origin, size });
    announced.extend(std::iter::from_fn(|| dispatcher.poll()));
    let Some(Action::Dial { lane, .. }) = announced.first().copied() else { panic!("{announced:?}") };
    let rtt = Duration::from_millis(100);
    dispatcher.handle(now, Event::Opened { lane, protocol: Protocol::H1, rtt });
    dispatcher.handle(now, Event::KeepsIdle { lane, limit: Duration::from_secs(5) });
    dispatcher.handle(now, Event::Finished { attempt: AttemptId(0), reusable: true });
    while dispatcher.poll().is_some() {}
    let due = dispatcher.next_tick().expect("the lane is to be closed in time");
    assert_eq!(due, now + Duration::from_millis(4400));
    dispatcher.handle(due, Event::Tick);
    assert_eq!(dispatcher.poll(), Some(Action::Close { lane }));
}

#[test]
fn after_a_standstill_nothing_goes_on_what_was_idle() {
    let mut world = closing(600, Ending::Silence);
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
