//! Tests of bulk (requests above 1 MiB): from several origins over one access link, in uploads, and for single objects.

use super::mixed::{CASES, JobFigures, MixedJob, RigLink, case, in_parallel};
use super::*;
use crate::simulator::{Bottleneck, CongestionControl, Wire};

const NEAR: usize = 0;
const FAR: usize = 1;

/// Creates a world with a near and a far server over a link of 1 Gbit/s.
fn near_and(far: Server) -> World {
    let near = Server { stream_rate: f64::INFINITY, ..Server::new(2, Protocol::H1) };
    World::over(&[Wire::both(Bottleneck::new(GIGABIT))], vec![near, far], CONNECTIONS_MAX, 1)
}

/// Downloads bulk of `mib` MiB from the near server. Returns the time when all of it has arrived.
fn bulk_ends(world: &mut World, mib: u64) -> Duration {
    let bulk: Vec<_> =
        (0..mib / 16).map(|_| world.submit(Duration::ZERO, RequestSpec::get(16 * MIB).of(NEAR))).collect();
    world.run();
    world.end_of(&bulk)
}

#[test]
fn small_requests_to_an_unreachable_server_hold_bulk_back_only_briefly() {
    let mut world = near_and(Server::new(60_000, Protocol::H1));
    for _ in 0..200 {
        world.submit(Duration::ZERO, RequestSpec::get(256 * KIB).of(FAR));
    }
    let took = bulk_ends(&mut world, 1024);
    assert!(took < Duration::from_secs(11), "bulk took {took:?}");
}

#[test]
fn each_origins_bulk_is_held_to_what_its_own_path_holds() {
    // The far path has a hundredth of the near path's rate and sixty times its round trip. So both have about the same number of bytes in
    // flight.
    let far = Server { stream_rate: f64::INFINITY, ..Server::new(120, Protocol::H1).behind(GIGABIT / 100.0) };
    let mut world = near_and(far);
    for _ in 0..4 {
        world.submit(Duration::ZERO, RequestSpec::get(4 * MIB).of(FAR));
    }
    let took = bulk_ends(&mut world, 1024);
    assert!(took < Duration::from_secs(11), "bulk took {took:?}");
    // Bytes that waited for a lost packet are read at once. So the best measured rate can be twice the path's rate.
    for (origin, rate) in [(NEAR, GIGABIT), (FAR, GIGABIT / 100.0)] {
        let seen = world.dispatcher.path(OriginId(origin)).rate.unwrap_or_default();
        assert!(
            (0.5..2.2).contains(&(seen / rate)),
            "origin {origin}: the measured rate is {seen}, the path's is {rate}"
        );
    }
}

#[test]
fn bulk_that_waits_in_one_direction_keeps_none_from_going_in_the_other() {
    let mut world = near_and(Server::new(20, Protocol::H1));
    // A bulk upload doesn't begin while there are many small uploads. Downloads must not wait for these
    // uploads.
    for _ in 0..400 {
        world.submit(Duration::ZERO, RequestSpec::put(512 * KIB).of(NEAR));
    }
    world.submit(Duration::ZERO, RequestSpec::put(64 * MIB).of(NEAR));
    let took = bulk_ends(&mut world, 64);
    assert!(took < Duration::from_millis(900), "the downloads took {took:?}");
}

#[test]
fn connections_to_several_addresses_carry_more_than_one_of_them() {
    let path = |rate| ServerPath { rtt: Duration::from_millis(10), bottleneck: Bottleneck::new(rate) };
    let took = |paths: Vec<ServerPath>| {
        let server = Server { stream_rate: f64::INFINITY, ..Server::new(0, Protocol::H1).at(paths) };
        let mut world = World::new(GIGABIT, vec![server], CONNECTIONS_MAX, 1);
        bulk_ends(&mut world, 512)
    };
    let (one, two) = (took(vec![path(40e6)]), took(vec![path(40e6), path(40e6)]));
    assert!(two < one.mul_f64(0.65), "bulk took {two:?} over two addresses, {one:?} over one");
}

// Uploads: the order of their parts, and the limits on send buffers of bulk while there are small requests.

const SMALL_AT: Duration = Duration::from_secs(2);

/// Runs about nine seconds of bulk, with one small request during it.
fn shared(bulk: RequestSpec, small: RequestSpec, protocol: Protocol) -> World {
    let path = Server { freight: protocol, ..Server::new(20, protocol) };
    run(World::new(GIGABIT, vec![path], CONNECTIONS_MAX, 1), bulk, small)
}

fn run(mut world: World, bulk: RequestSpec, small: RequestSpec) -> World {
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
        for small in [RequestSpec::put(16 * KIB), RequestSpec::get(16 * KIB)] {
            let world = shared(RequestSpec::put(16 * MIB), small, protocol);
            let announced = &world.send_buffers;
            let (Some((first, Some(_), _)), Some((last, None, _))) = (announced.first(), announced.last())
            else {
                panic!(
                    "{protocol:?}: the send buffers must be limited first, and have no limit in the end: {announced:?}"
                );
            };
            // The dispatcher sets the limit once it knows the path's rate. At first the rate seems higher, because bytes that waited for a
            // lost packet are read all at once.
            assert!(
                (SMALL_AT..SMALL_AT + Duration::from_millis(1500)).contains(first),
                "{protocol:?}: the send buffers are first limited after {first:?}"
            );
            assert!(
                *last >= SMALL_AT + Duration::from_secs(1),
                "{protocol:?}: the limit of send buffers is lifted after {last:?}"
            );
        }
    }
}

#[test]
fn send_buffers_are_left_to_tcp_where_bulk_comes_down_or_goes_alone() {
    for (bulk, small) in [
        (RequestSpec::get(16 * MIB), RequestSpec::put(16 * KIB)),
        (RequestSpec::put(16 * MIB), RequestSpec::put(16 * MIB)),
    ] {
        let world = shared(bulk, small, Protocol::H1);
        assert!(world.send_buffers.is_empty(), "send buffers are limited: {:?}", world.send_buffers);
    }
}

#[test]
fn uploads_are_not_judged_where_nothing_says_what_has_been_acknowledged() {
    for protocol in [Protocol::H1, Protocol::H2] {
        let path = Server { freight: protocol, ..Server::new(20, protocol) };
        let mut world = World::new(GIGABIT, vec![path], CONNECTIONS_MAX, 1);
        world.tells_acknowledged = false;
        // If the path's rate could be measured, bulk would yield to these 50 MiB of small uploads.
        for _ in 0..200 {
            world.submit(SMALL_AT, RequestSpec::put(256 * KIB));
        }
        let world = run(world, RequestSpec::put(16 * MIB), RequestSpec::put(16 * KIB));
        assert_eq!(
            world.yields[1].1, 0,
            "{protocol:?}: bulk yields, although the path's rate can't be measured"
        );
        assert!(
            world.send_buffers.is_empty(),
            "{protocol:?}: send buffers are limited: {:?}",
            world.send_buffers
        );
        assert_eq!(
            world.dispatcher.next_tick(),
            None,
            "{protocol:?}: the dispatcher has a timer, although nothing is left to do"
        );
    }
}

#[test]
fn connections_that_download_have_no_share_of_the_send_buffers() {
    let total = |downloads: usize| {
        let mut world = World::new(GIGABIT, vec![Server::new(20, Protocol::H1); 2], CONNECTIONS_MAX, 1);
        for _ in 0..64 {
            world.submit(Duration::ZERO, RequestSpec::put(16 * MIB));
        }
        for _ in 0..downloads {
            world.submit(Duration::ZERO, RequestSpec::get(16 * MIB).of(1));
        }
        world.submit(SMALL_AT, RequestSpec::put(16 * KIB));
        world.run();
        let (_, bytes, lanes) = world.send_buffers[0];
        bytes.expect("the first change sets a limit") as usize * lanes
    };
    let (alone, shared) = (total(0), total(64));
    assert!(
        shared >= alone - alone / 4,
        "the send buffers have {alone} bytes without downloads, {shared} with them"
    );
}

#[test]
fn a_slow_upload_finishes_its_parts_in_turn() {
    let mut world = World::new(50e6 / 8.0, vec![Server::new(20, Protocol::H1)], CONNECTIONS_MAX, 1);
    for _ in 0..6 {
        world.submit(Duration::ZERO, RequestSpec::put(16 * MIB));
    }
    world.run();
    // Two parts take 5.4 s. If four parts were sent at once, all four would end only after 10.7 s.
    let within = Duration::from_secs(6).as_nanos();
    let finished =
        world.requests.iter().filter(|request| request.ended.is_some_and(|at| u128::from(at) < within));
    assert_eq!(finished.count(), 2);
}

// One object over many links, down and up. The results are its time as a multiple of the link's best time, the number of lanes, and the
// share of lost packets.
//
// The links are those of the test rig's job `oneobject`, with and without a server that limits each connection. `cargo test -p
// laneway-lanes --lib one_object -- --nocapture` prints the table, for rate-based senders (BBR) and loss-based ones (CUBIC).

const LINKS: [RigLink; 7] = [
    RigLink(0.25, 1000, 1024, 0.0),
    RigLink(5.0, 200, 256, 0.0),
    RigLink(10.0, 1000, 512, 0.0),
    RigLink(10.0, 1000, 2560, 0.0),
    RigLink(10.0, 1000, 1024, 0.1),
    RigLink(40.0, 300, 1024, 0.0),
    RigLink(100.0, 1000, 8192, 0.0),
];

/// The server's limit on the rate of each connection, in bytes per second. Real stores have such limits.
const CAP: f64 = 20e6;

#[derive(Clone, Copy, Debug)]
struct ObjectCell {
    rig: RigLink,
    protocol: Protocol,
    is_up: bool,
    control: CongestionControl,
    is_capped: bool,
}

impl ObjectCell {
    fn run(&self) -> JobFigures {
        let server = Server { control: self.control, ..self.rig.server(self.protocol) };
        let stream_rate = if self.is_capped { CAP } else { f64::INFINITY };
        let job = MixedJob {
            wires: vec![self.rig.wire()],
            servers: vec![Server { stream_rate, ..server }],
            is_up: self.is_up,
            large: vec![256 * MIB],
            small: Vec::new(),
            seed: 1,
        };
        job.run()
    }
}

fn run_all(cells: &[ObjectCell]) -> Vec<JobFigures> {
    let all = in_parallel(cells, ObjectCell::run);
    for (cell, took) in cells.iter().zip(&all) {
        let capped = if cell.is_capped { " capped" } else { "" };
        println!(
            "{:?} {:8} {:?}{capped}: the object takes {:.2} times the floor over {} lanes, and {:.1} % of the bytes are lost",
            cell.rig,
            case(cell.protocol, cell.is_up),
            cell.control,
            took.over_floor.total,
            took.lanes,
            took.lost * 1e2
        );
    }
    all
}

#[test]
fn one_object_takes_what_its_link_allows_over_few_lanes() {
    let cells = |control| {
        let cases = LINKS.into_iter().flat_map(|rig| CASES.map(|case| (rig, case)));
        cases.map(move |(rig, (protocol, is_up))| ObjectCell {
            rig,
            protocol,
            is_up,
            control,
            is_capped: false,
        })
    };
    let cells: Vec<_> = cells(CongestionControl::Rate).chain(cells(CongestionControl::Loss)).collect();
    for (cell, took) in cells.iter().zip(run_all(&cells)) {
        let (is_clean, is_far) = (cell.rig.3 == 0.0, cell.rig.0 >= 100.0);
        let total = match (cell.control, is_clean, is_far) {
            (CongestionControl::Rate, _, true) => 2.1,
            (CongestionControl::Rate, ..) => 1.35,
            // If the queue is short, one loss-based stream takes 1.6 times the best time.
            (CongestionControl::Loss, true, false) => 1.8,
            (CongestionControl::Loss, ..) => 4.0,
        };
        assert!(took.over_floor.total <= total, "{cell:?}: the object takes too long: {took:?}");
        if is_clean && !is_far {
            let lanes_max = if cell.is_up { 6 } else { 4 };
            assert!(
                took.lanes <= lanes_max,
                "{cell:?}: the object takes more than {lanes_max} lanes: {took:?}"
            );
        }
    }
}

#[test]
fn an_object_of_a_capping_server_comes_over_enough_lanes() {
    let cells: Vec<_> = [10.0, 40.0]
        .map(|half_ms| RigLink(half_ms, 1000, 2560, 0.0))
        .into_iter()
        .map(|rig| ObjectCell {
            rig,
            protocol: Protocol::H1,
            is_up: false,
            control: CongestionControl::Rate,
            is_capped: true,
        })
        .collect();
    for (cell, took) in cells.iter().zip(run_all(&cells)) {
        let total = if cell.rig.0 > 10.0 { 2.4 } else { 1.35 };
        assert!(took.over_floor.total <= total, "{cell:?}: the object takes too long: {took:?}");
    }
}
