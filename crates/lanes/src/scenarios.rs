//! Tests of the dispatcher on a simulated network, in virtual time. Each scenario tests one requirement.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod ablation;
mod beside;
mod bulk_traffic;
mod mixed;
mod random;
mod servers;

use std::time::{Duration, Instant};

use crate::Protocol;
use crate::dispatch::{
    AttemptId, DispatchAction, DispatchEvent, Dispatcher, LaneId, OriginId, RequestSize, Role, Rules,
};
use crate::simulator::{Faults, IdleClose, RequestSpec, Server, ServerPath, World, nanos};

const CONNECTIONS_MAX: usize = Rules::CHOSEN.connections_max;
const FREIGHT_ABOVE: u64 = Rules::CHOSEN.freight_above;
const TURN: Duration = Rules::CHOSEN.turn;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The rates of links in bytes per second.
const GIGABIT: f64 = 125e6;
const TEN_GIGABIT: f64 = 1.25e9;

fn world(path: Server, ceiling: usize) -> World {
    World::new(TEN_GIGABIT, vec![path], ceiling, 1)
}

/// The upload of an empty file.
fn small() -> RequestSpec {
    RequestSpec::put(1700)
}

fn bulk() -> RequestSpec {
    RequestSpec::get(8 * MIB)
}

/// Returns different sizes between `least` and `most`, in a mixed but fixed order.
fn sizes(count: u64, least: u64, most: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |i| least + (most - least) * (i * 7919 % 997) / 996)
}

fn percentile(times: &[Duration], of_100: usize) -> Duration {
    times[(times.len() * of_100).div_ceil(100).max(1) - 1]
}

#[test]
fn a_thousand_requests_to_a_slow_server_nearby_go_over_many_lanes() {
    let service = Duration::from_millis(30);
    let kinds = [
        RequestSpec::get(4 * KIB),
        RequestSpec::get(20 * KIB),
        RequestSpec::get(128 * KIB),
        RequestSpec::put(4 * KIB),
        RequestSpec::put(20 * KIB),
    ];
    for want in kinds {
        let mut world = world(Server { service, ..Server::new(0, Protocol::H1) }, CONNECTIONS_MAX);
        for _ in 0..1000 {
            world.submit(Duration::ZERO, want);
        }
        world.run();
        let (took, lanes) = (world.last_end(), world.lanes_peak);
        assert!(
            took <= service * 17,
            "requests of {} B took {took:?} over {lanes} lanes",
            want.up + want.down
        );
    }
}

#[test]
fn fifty_cold_uploads_take_three_round_trips() {
    let mut world = world(Server::new(50, Protocol::H2), CONNECTIONS_MAX);
    for _ in 0..50 {
        world.submit(Duration::ZERO, small());
    }
    world.run();
    assert!(world.last_end() < Duration::from_millis(175), "the uploads took {:?}", world.last_end());
    assert!(world.dials <= 16, "the dispatcher dialled {} lanes", world.dials);
}

#[test]
fn what_connections_have_shown_of_the_path_can_be_asked() {
    let mut world = World::new(GIGABIT, vec![Server::new(50, Protocol::H2)], CONNECTIONS_MAX, 1);
    assert_eq!(world.dispatcher.path(OriginId(0)), crate::Path::default());
    for _ in 0..100 {
        world.submit(Duration::ZERO, small());
        world.submit(Duration::ZERO, bulk());
    }
    world.run();
    let path = world.dispatcher.path(OriginId(0));
    assert_eq!((path.round_trip, path.protocol), (Some(Duration::from_millis(50)), Some(Protocol::H2)));
    // Bytes that waited for a lost packet are read at once. So the best measured rate can be twice the link's rate.
    assert!(
        path.is_full && path.rate.is_some_and(|rate| (0.8..2.2).contains(&(rate / GIGABIT))),
        "the dispatcher reports {path:?}"
    );
}

#[test]
fn a_server_nearby_gets_few_lanes_even_from_a_cold_start() {
    let near = Server::new(0, Protocol::H2).at(vec![ServerPath::new(Duration::from_micros(200))]);
    let mut world = world(near, CONNECTIONS_MAX);
    for _ in 0..50 {
        world.submit(Duration::ZERO, small());
    }
    world.run();
    assert!(world.dials <= 3, "the dispatcher dialled {} lanes", world.dials);
}

#[test]
fn the_first_lane_to_open_leaves_the_others_their_share() {
    let mut world = world(Server::new(50, Protocol::H2), CONNECTIONS_MAX);
    for _ in 0..400 {
        world.submit(Duration::ZERO, small());
    }
    world.run();
    let mut sent_on = std::collections::HashMap::<LaneId, usize>::new();
    for lane in world.requests.iter().flat_map(|r| &r.lanes) {
        *sent_on.entry(*lane).or_default() += 1;
    }
    let most = sent_on.values().max().copied().unwrap_or_default();
    assert!(
        sent_on.len() > 4 && most <= 2 * 400 / sent_on.len(),
        "the number of requests on each lane: {sent_on:?}"
    );
}

#[test]
fn a_lane_that_never_opens_does_not_keep_its_share() {
    let path = Server::new(50, Protocol::H2).with(Faults { dials_fail: 500, ..Faults::default() });
    let mut world = World::new(TEN_GIGABIT, vec![path], CONNECTIONS_MAX, 5);
    for _ in 0..200 {
        world.submit(Duration::ZERO, small());
    }
    world.run();
    assert!(world.requests.iter().all(|r| !r.failed), "some dials succeeded, so no request may fail");
}

#[test]
fn when_no_dial_succeeds_every_work_fails() {
    let path = Server::new(50, Protocol::H2).with(Faults { dials_fail: 1000, ..Faults::default() });
    let mut world = world(path, 8);
    for _ in 0..20 {
        world.submit(Duration::ZERO, small());
    }
    world.run();
    assert!(world.requests.iter().all(|r| r.failed) && world.dispatcher.lanes() == 0);
}

#[test]
fn small_requests_do_not_wait_for_bulk_at_a_low_ceiling() {
    for protocol in [Protocol::H1, Protocol::H2] {
        let mut world = world(Server::new(2, protocol), 16);
        for _ in 0..300 {
            world.submit(Duration::ZERO, bulk());
        }
        let smalls: Vec<_> =
            (0..50).map(|i| world.submit(Duration::from_millis(100 + i), RequestSpec::get(9000))).collect();
        world.run();
        assert!(
            world.end_of(&smalls) < Duration::from_millis(250),
            "{protocol:?}: the last small request ended after {:?}",
            world.end_of(&smalls)
        );
    }
}

#[test]
fn an_h1_freight_lane_does_not_make_the_server_one_of_h1() {
    let mut dispatcher = Dispatcher::new(CONNECTIONS_MAX);
    let (now, origin, rtt) = (Instant::now(), OriginId(0), Duration::from_millis(50));
    let large = RequestSize::new(0, Some(8 * MIB), true);
    dispatcher.handle(now, DispatchEvent::Submitted { attempt: AttemptId(0), origin, size: large });
    let Some(DispatchAction::Dial { lane, role: Role::Freight, .. }) = dispatcher.poll() else {
        panic!("the dispatcher dials no freight lane")
    };
    dispatcher.handle(now, DispatchEvent::Opened { lane, protocol: Protocol::H1, rtt });
    for attempt in 1..=1000 {
        let size = RequestSize::new(4700, Some(0), false);
        dispatcher.handle(now, DispatchEvent::Submitted { attempt: AttemptId(attempt), origin, size });
    }
    assert!(dispatcher.lanes() <= 33, "the dispatcher has {} lanes", dispatcher.lanes());
}

#[test]
fn one_connection_serves_both_roles_in_turn() {
    for protocol in [Protocol::H1, Protocol::H2] {
        let mut world = world(Server::new(50, protocol), 1);
        for i in 0..40 {
            world.submit(Duration::ZERO, if i % 4 == 0 { bulk() } else { small() });
        }
        world.run();
        assert_eq!(world.lanes_peak, 1);
    }
}

#[test]
fn an_origin_gets_the_slot_that_another_has_freed() {
    for protocol in [Protocol::H1, Protocol::H2] {
        let path = Server::new(50, protocol).with(Faults { drains: 1000, resets: 300, ..Faults::default() });
        let mut world = World::new(TEN_GIGABIT, vec![path; 2], 1, 9);
        for i in 0..40 {
            world.submit(Duration::ZERO, small().of(i % 2));
        }
        world.run();
        assert_eq!(world.lanes_peak, 1);
    }
}

#[test]
fn freight_is_not_starved_at_the_ceiling() {
    let mut world = world(Server::new(50, Protocol::H1), 1);
    let large = world.submit(Duration::from_millis(10), bulk());
    for _ in 0..1000 {
        world.submit(Duration::ZERO, small());
    }
    world.run();
    assert!(
        world.end_of(&[large]) < TURN + Duration::from_secs(1),
        "the large request ended after {:?}",
        world.end_of(&[large])
    );
}

#[test]
fn an_origin_with_a_long_queue_does_not_keep_every_lane_from_another() {
    for (protocol, want) in [
        (Protocol::H1, RequestSpec::get(64 * KIB)),
        (Protocol::H2, RequestSpec::get(64 * KIB)),
        (Protocol::H1, RequestSpec::get(16 * MIB)),
    ] {
        let mut world = World::new(GIGABIT, vec![Server::new(10, protocol); 2], 4, 1);
        let long: Vec<_> =
            (0..GIGABIT as u64 * 20 / want.down).map(|_| world.submit(Duration::ZERO, want)).collect();
        let late: Vec<_> = (0..10)
            .map(|i| world.submit(Duration::from_millis(500 + i), RequestSpec::get(16 * KIB).of(1)))
            .collect();
        world.run();
        let (took, whole) = (*world.times(&late).last().unwrap(), world.end_of(&long));
        assert!(
            took < Duration::from_secs(3),
            "{protocol:?} {want:?}: a late request took {took:?}; the long queue ended after {whole:?}"
        );
    }
}

#[test]
fn small_requests_after_a_lull_find_a_lane_that_bulk_has_not_taken() {
    for protocol in [Protocol::H1, Protocol::H2] {
        let path = Server { stream_rate: 5e6, ..Server::new(10, protocol) };
        let mut world = World::new(GIGABIT, vec![path], 8, 1);
        for _ in 0..100 {
            world.submit(Duration::ZERO, RequestSpec::get(16 * MIB));
        }
        let smalls: Vec<_> =
            (0..20).map(|i| world.submit(Duration::from_secs(1 + i), RequestSpec::get(16 * KIB))).collect();
        world.run();
        let worst = *world.times(&smalls).last().unwrap();
        assert!(worst < Duration::from_millis(500), "{protocol:?}: a small request took {worst:?}");
    }
}

/// A job in which small objects are requested one after another at a fixed interval.
struct Arrivals {
    protocol: Protocol,
    rtt_ms: u64,
    is_up: bool,
    /// The seconds from the start of bulk to the first small object.
    begin_s: u64,
}

impl Arrivals {
    fn all() -> impl Iterator<Item = Self> {
        let protocols = [Protocol::H1, Protocol::H2].into_iter();
        let paths = protocols.flat_map(|p| [2, 50].map(|rtt| (p, rtt)));
        let directed = paths.flat_map(|path| [false, true].map(|is_up| (path, is_up)));
        directed.flat_map(|((protocol, rtt_ms), is_up)| {
            [0, 1].map(|begin_s| Self { protocol, rtt_ms, is_up, begin_s })
        })
    }

    fn want(&self, bytes: u64) -> RequestSpec {
        if self.is_up { RequestSpec::put(bytes) } else { RequestSpec::get(bytes) }
    }

    fn world(&self) -> World {
        World::new(GIGABIT, vec![Server::new(self.rtt_ms, self.protocol)], CONNECTIONS_MAX, 1)
    }

    /// Requests about 40 MB/s of small objects for two seconds, together with this many bulk requests. Returns the world at the end, the
    /// small requests and the bulk requests.
    fn run(&self, slices: usize) -> (World, Vec<AttemptId>, Vec<AttemptId>) {
        let mut world = self.world();
        let bulk = (0..slices).map(|_| world.submit(Duration::ZERO, self.want(16 * MIB))).collect();
        let mut at = Duration::from_secs(self.begin_s);
        let smalls = sizes(500, 16 * KIB, 300 * KIB)
            .map(|size| {
                at += Duration::from_millis(4);
                world.submit(at, self.want(size))
            })
            .collect();
        world.run();
        (world, smalls, bulk)
    }
}

impl std::fmt::Display for Arrivals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let direction = if self.is_up { "up" } else { "down" };
        let Self { protocol, rtt_ms, begin_s, .. } = self;
        write!(
            f,
            "{protocol:?} {direction}, a round trip of {rtt_ms} ms, small objects {begin_s} s after bulk"
        )
    }
}

#[test]
fn small_objects_beside_bulk_take_little_longer_than_alone() {
    for arrivals in Arrivals::all() {
        let (world, smalls, _) = arrivals.run(0);
        let alone = world.times(&smalls);
        let (world, smalls, _) = arrivals.run(64);
        let with_bulk = world.times(&smalls);
        let (p99_alone, p99) = (percentile(&alone, 99), percentile(&with_bulk, 99));
        println!(
            "{arrivals}: small objects take {:.1?} (p50) and {p99:.1?} (p99) during bulk, {:.1?} and {p99_alone:.1?} without it; \
             the peak is {} lanes; the limits of bulk changed {:?} times (down and up)",
            percentile(&with_bulk, 50),
            percentile(&alone, 50),
            world.lanes_peak,
            world.yields.map(|y| y.1),
        );
        // On a long path (above 10 ms) many connections start at once, overflow the queue and wait for timeouts. There, the p99 of small
        // objects is 3.3 times as long as without bulk, so this test allows 3.6. The goal is 2.5.
        let most = if arrivals.rtt_ms > 10 { 3.6 } else { 2.5 };
        // If the small objects begin together with bulk, bulk begins before the dispatcher knows the path's round trip. Small objects may
        // then be 250 ms late instead of 30 ms.
        let later = Duration::from_millis(if arrivals.begin_s == 0 { 250 } else { 30 });
        assert!(
            p99 <= p99_alone.mul_f64(most).max(p99_alone + later),
            "{arrivals}: the p99 of small objects is {p99:?} during bulk, {p99_alone:?} without it"
        );
    }
}

#[test]
fn bulk_beside_arrivals_gets_what_they_leave_of_the_link() {
    for arrivals in Arrivals::all() {
        let (world, smalls, bulk) = arrivals.run(32);
        let end = world.end_of(&bulk);
        let small = smalls.iter().map(|w| &world.requests[w.0 as usize]);
        let small = small.filter(|r| r.ended.unwrap() <= nanos(end)).map(|r| r.want.up + r.want.down);
        let left = end.as_secs_f64() - small.sum::<u64>() as f64 / GIGABIT;
        // Run bulk alone for comparison, because it begins slowly on a far path.
        let mut alone = arrivals.world();
        for _ in 0..32 {
            alone.submit(Duration::ZERO, arrivals.want(16 * MIB));
        }
        alone.run();
        let share = alone.last_end().as_secs_f64() / left;
        println!("{arrivals}: bulk uses {share:.3} of the rate that the small objects leave");
        // On a far path, bulk needs some time to regain its rate after it has yielded.
        let least = if arrivals.rtt_ms > 10 { 0.75 } else { 0.95 };
        assert!(share >= least, "{arrivals}: bulk uses {share:.3} of the rate that the small objects leave");
    }
}

/// Requests slices of large objects and small objects at the same time. Returns the world and the small objects' times. The second returned
/// value is the total time, as a multiple of the time that the link needs for all bytes.
fn mixed(protocol: Protocol, large: u64, slices: u64, small: u64) -> (World, f64, Vec<Duration>) {
    let mut world = World::new(GIGABIT, vec![Server::new(2, protocol)], CONNECTIONS_MAX, 1);
    for _ in 0..large * slices {
        world.submit(Duration::ZERO, RequestSpec::get(16 * MIB));
    }
    let smalls: Vec<_> = sizes(small, 32 * KIB, 512 * KIB)
        .map(|size| world.submit(Duration::ZERO, RequestSpec::get(size)))
        .collect();
    world.run();
    let bytes: u64 = world.requests.iter().map(|r| r.want.down).sum();
    let over_floor = world.last_end().as_secs_f64() / (bytes as f64 / GIGABIT);
    let times = world.times(&smalls);
    println!(
        "{large} objects of {} MiB and {small} small ones, {protocol:?}: the job takes {over_floor:.3} times the floor over {} lanes; \
         small objects take {:.0?} (p50) and {:.0?} (p99)",
        slices * 16,
        world.lanes_peak,
        percentile(&times, 50),
        percentile(&times, 99),
    );
    (world, over_floor, times)
}

#[test]
fn a_mixed_job_takes_what_its_bytes_take_over_few_connections() {
    for (large, slices, small) in [(4, 16, 200), (64, 4, 500)] {
        for protocol in [Protocol::H1, Protocol::H2] {
            let (world, over_floor, times) = mixed(protocol, large, slices, small);
            assert!(over_floor <= 1.06, "{protocol:?}: the job takes {over_floor} times the floor");
            assert!(world.lanes_peak <= 26, "{protocol:?}: the peak is {} lanes", world.lanes_peak);
            // `floor` is the time that the link needs for the small objects' bytes. The slowest small object may take twice as long.
            let floor = sizes(small, 32 * KIB, 512 * KIB).sum::<u64>() as f64 / GIGABIT;
            let slowest = times.last().unwrap();
            assert!(
                slowest.as_secs_f64() <= 2.0 * floor,
                "{protocol:?}: the slowest small object takes {slowest:?}"
            );
        }
    }
}

#[test]
fn bulk_that_yielded_flows_again_when_the_small_work_is_done() {
    for is_up in [false, true] {
        let arrivals = Arrivals { protocol: Protocol::H1, rtt_ms: 2, is_up, begin_s: 1 };
        let mut world = World::new(GIGABIT, vec![Server::new(2, Protocol::H1)], CONNECTIONS_MAX, 1);
        let bulk: Vec<_> = (0..64).map(|_| world.submit(Duration::ZERO, arrivals.want(16 * MIB))).collect();
        for size in sizes(200, 32 * KIB, 512 * KIB) {
            world.submit(Duration::from_secs(1), arrivals.want(size));
        }
        world.run();
        let (said, times) = world.yields[usize::from(is_up)];
        assert!(said.is_none() && times >= 2, "after {times} changes, the limit of bulk is {said:?}");
        assert_eq!(world.yields[usize::from(!is_up)].1, 0, "the other direction doesn't yield");
        let took = world.end_of(&bulk);
        assert!(took < Duration::from_secs_f64(1.1 * 1.135e9 / GIGABIT), "bulk took {took:?}");
    }
}

#[test]
fn bulk_moves_however_much_small_work_there_is() {
    for protocol in [Protocol::H1, Protocol::H2] {
        let mut world = World::new(GIGABIT, vec![Server::new(10, protocol)], CONNECTIONS_MAX, 1);
        let large = world.submit(Duration::ZERO, RequestSpec::get(16 * MIB));
        // For ten seconds, request one and a half times as many bytes as the link carries.
        for i in 0..3000 {
            world.submit(Duration::from_micros(i * 10_000 / 3), RequestSpec::get(600 * KIB));
        }
        world.run();
        assert!(
            world.end_of(&[large]) < Duration::from_secs(8),
            "{protocol:?}: the large request ended after {:?}",
            world.end_of(&[large])
        );
    }
}

#[test]
fn small_work_at_a_slow_server_leaves_the_link_to_bulk_from_another() {
    for protocol in [Protocol::H1, Protocol::H2] {
        let slow = Server::new(20, protocol).behind(1e6);
        let mut world = World::new(GIGABIT, vec![Server::new(20, protocol), slow], CONNECTIONS_MAX, 1);
        let bulk: Vec<_> =
            (0..64).map(|_| world.submit(Duration::ZERO, RequestSpec::get(16 * MIB))).collect();
        for _ in 0..600 {
            world.submit(Duration::from_secs(1), RequestSpec::get(100 * KIB).of(1));
        }
        world.run();
        // Bulk alone takes 9 s. The small requests take a minute, and use less than a hundredth of the link.
        let took = world.end_of(&bulk);
        assert!(took < Duration::from_secs(14), "{protocol:?}: bulk took {took:?}");
    }
}

#[test]
fn bulk_is_not_held_to_the_rate_of_earlier_small_work_at_a_slow_server() {
    for protocol in [Protocol::H1, Protocol::H2] {
        let slow = Server::new(20, protocol).behind(1e6);
        let mut world = World::new(GIGABIT, vec![Server::new(20, protocol), slow], CONNECTIONS_MAX, 1);
        for _ in 0..600 {
            world.submit(Duration::ZERO, RequestSpec::get(100 * KIB).of(1));
        }
        let begins = Duration::from_secs(5);
        let bulk: Vec<_> = (0..64).map(|_| world.submit(begins, RequestSpec::get(16 * MIB))).collect();
        world.run();
        let took = world.end_of(&bulk) - begins;
        println!("{protocol:?}: bulk took {took:?}");
        assert!(took < Duration::from_secs(30), "{protocol:?}: bulk took {took:?}");
    }
}

#[test]
fn many_tiny_objects_far_away_take_the_connections_that_stores_bear() {
    let mut world = World::new(GIGABIT, vec![Server::new(50, Protocol::H1)], CONNECTIONS_MAX, 1);
    for _ in 0..8000 {
        world.submit(Duration::ZERO, RequestSpec::unknown(KIB));
    }
    world.run();
    println!("the objects took {:?} over {} lanes", world.last_end(), world.lanes_peak);
    assert!((160..200).contains(&world.lanes_peak), "the peak is {} lanes", world.lanes_peak);
    assert!(world.last_end() < Duration::from_secs(3), "the objects took {:?}", world.last_end());
}

#[test]
fn a_server_that_takes_no_connection_is_not_dialled_for_what_never_comes() {
    let path = Server::new(2, Protocol::H1).with(Faults { dials_fail: 1000, ..Faults::default() });
    let mut world = world(path, CONNECTIONS_MAX);
    world.anticipate(Duration::ZERO, 0, 100);
    world.run();
    let (dials, lanes) = (world.dials, world.dispatcher.lanes());
    assert!(dials <= 40 && lanes == 0, "the dispatcher dialled {dials} lanes and still has {lanes}");
}

#[test]
fn a_flood_of_openers_that_turn_out_large_fills_the_link() {
    for protocol in [Protocol::H1, Protocol::H2] {
        let mut world = World::new(GIGABIT, vec![Server::new(20, protocol)], CONNECTIONS_MAX, 1);
        for _ in 0..200 {
            world.submit(Duration::ZERO, RequestSpec::unknown(32 * MIB));
        }
        world.run();
        let over_floor = world.last_end().as_secs_f64() / (200.0 * (32 * MIB) as f64 / GIGABIT);
        println!(
            "{protocol:?}: the job takes {over_floor:.3} times the floor over {} lanes; the last limits of bulk and their numbers are {:?}",
            world.lanes_peak, world.yields
        );
        // If two hundred lanes begin at once, a twentieth of the sent bytes is lost.
        assert!(over_floor <= 1.1, "{protocol:?}: the job takes {over_floor} times the floor");
    }
}

#[test]
fn more_origins_than_the_ceiling_has_slots_take_turns() {
    for protocol in [Protocol::H1, Protocol::H2] {
        let mut world = World::new(GIGABIT, vec![Server::new(10, protocol); 8], 3, 1);
        let firsts: Vec<_> = (0..8).map(|o| world.submit(Duration::from_millis(1), small().of(o))).collect();
        for i in 0..8000 {
            world.submit(Duration::ZERO, RequestSpec::get(64 * KIB).of(i % 8));
        }
        world.run();
        let (worst, last) = (*world.times(&firsts).last().unwrap(), world.last_end());
        let dials = world.dials;
        println!(
            "{protocol:?}: an origin's first request took {worst:?}; all took {last:?}, with {dials} dials"
        );
        assert!(worst < Duration::from_secs(5), "{protocol:?}: an origin's first request took {worst:?}");
        assert!(
            dials < 8 * last.as_secs() as usize + 24,
            "{protocol:?}: the dispatcher dialled {dials} lanes"
        );
    }
}
