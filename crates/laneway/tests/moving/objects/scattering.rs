//! Reads of ranges directly into a caller's memory.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::mpsc::{self, Receiver, Sender};

use futures_util::StreamExt as _;
use laneway::{ErrorKind, FilledRange, Reader};
use laneway_server::Faults;
use laneway_testkit::random_bytes;

use super::{bucket, wait};
use crate::stage::{DIALECTS, KINDS, Kind, MIB, Stage, at_once};

/// Lent memory. The lender sees its bytes before each write, and gets it back once Laneway no longer writes to it.
#[derive(Debug)]
struct Lent {
    bytes: Vec<u8>,
    seen: Sender<Seen>,
}

#[derive(Debug)]
enum Seen {
    Bytes(Vec<u8>),
    Back(Vec<u8>),
}

impl Lent {
    fn new(len: usize) -> (Self, Receiver<Seen>) {
        let (seen, hears) = mpsc::channel();
        (Self { bytes: vec![0; len], seen }, hears)
    }
}

impl AsMut<[u8]> for Lent {
    fn as_mut(&mut self) -> &mut [u8] {
        // Ignore an error, here and below: the lender may no longer exist.
        let _ = self.seen.send(Seen::Bytes(self.bytes.clone()));
        &mut self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let _ = self.seen.send(Seen::Back(std::mem::take(&mut self.bytes)));
    }
}

/// Returns the memory if it has been given back.
fn back(seen: &Receiver<Seen>) -> Option<Vec<u8>> {
    seen.try_iter().find_map(|seen| match seen {
        Seen::Back(bytes) => Some(bytes),
        Seen::Bytes(_) => None,
    })
}

/// Waits until the first bytes of a range are in memory. Its other bytes may arrive later.
fn has_begun(seen: &Receiver<Seen>, object: &[u8]) {
    let begins = |seen| matches!(seen, Seen::Bytes(bytes) if bytes[..1000] == object[..1000]);
    assert!(seen.iter().any(begins), "memory is written to while the body comes");
}

fn open(stage: &Stage, footer: u64) -> Reader {
    wait(bucket(stage, "").open("k").footer(footer).into_future()).unwrap()
}

/// Reads ranges into buffers that are larger, and compares the bytes.
fn read(kind: Kind, reader: &Reader, object: &[u8], asked: &[Range<u64>]) {
    let room = |range: &Range<u64>| range.end.min(object.len() as u64).saturating_sub(range.start) as usize;
    let memory = asked.iter().map(|range| (range.clone(), vec![0; room(range) + 3]));
    let mut coming = reader.stream_ranges_into(memory);
    let mut places = BTreeSet::new();
    while let Some(range) = coming.next_blocking() {
        let FilledRange { place, bytes, buffer, .. } = range.unwrap();
        let start = asked[place].start.min(object.len() as u64) as usize;
        assert!(buffer[..bytes] == object[start..start + room(&asked[place])], "{kind:?} {:?}", asked[place]);
        assert_eq!(buffer[bytes..], [0; 3], "{kind:?} {:?}", asked[place]);
        assert!(places.insert(place), "{kind:?}: {place} was read twice");
    }
    assert_eq!(places.len(), asked.len(), "{kind:?}");
}

/// Returns ranges all over an object: unsorted, duplicate, adjacent, overlapping, nested, empty, and beyond its end.
fn scattered(size: u64) -> Vec<Range<u64>> {
    let mut ranges: Vec<_> = (0..200u64)
        .map(|n| {
            let start = n * 7_919_993 % size;
            start..start + n * 641 % 65_536
        })
        .collect();
    ranges.extend([0..1, 0..1, 1..9, 9..5000, 0..6000, 5..5, size - 3..size + 9, size - 1..u64::MAX]);
    ranges.push(size + 7..size + 7);
    ranges
}

#[test]
fn ranges_of_every_kind_land_in_memory_of_their_own() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        let object = random_bytes(1, 30 * MIB + 11);
        stage.object("k", &object);
        for footer in [0, 70_000] {
            let reader = open(&stage, footer);
            read(kind, &reader, &object, &scattered(object.len() as u64));
            // The first range takes several requests, and the second range lies inside the first one.
            read(kind, &reader, &object, &[5..28 << 20, 16 << 20..17 << 20]);
            read(kind, &reader, &object, &[]);
        }
    });
}

#[test]
fn ranges_land_over_connections_that_break() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::with_faults(kind, &["get:2-9 cut@300KiB", "get:4 status 503"]);
        let object = random_bytes(2, 30 * MIB);
        stage.object("k", &object);
        stage.object("first", b"");
        wait(bucket(&stage, "").get("first").into_future()).unwrap();
        let asked = [10..900_000, 400_000..500_000, 910_000..911_000, 5 << 20..6 << 20, 10 << 20..29 << 20];
        read(kind, &open(&stage, 0), &object, &asked);
    });
}

#[test]
fn a_body_of_another_state_or_place_ends_the_call_and_gives_memory_back() {
    at_once(&DIALECTS, |kind| {
        for fault in ["replace", "range shifted", "range ignored"] {
            let stage = Stage::new(kind);
            let object = random_bytes(3, 20 * MIB);
            stage.object("k", &object);
            let reader = open(&stage, 0);
            stage.server.set_faults(Faults::parse([&*format!("get {fault}")]).unwrap());
            let (first, first_seen) = Lent::new(1000);
            let (other, other_seen) = Lent::new(MIB);
            let ranges = [(0..1000, first), (10 << 20..11 << 20, other)];
            let mut coming = reader.stream_ranges_into(ranges);
            let come = std::iter::from_fn(|| coming.next_blocking());
            let error = come.flat_map(Result::err).next().unwrap();
            let is_replaced = error.is_precondition() || error.is_not_found();
            assert_eq!(is_replaced, fault == "replace", "{kind:?} {fault}: {error}");
            for (seen, range) in [(first_seen, &object[..1000]), (other_seen, &object[10 * MIB..11 * MIB])] {
                let bytes = back(&seen).expect("the memory comes back with the error");
                let come = bytes.iter().zip(range).all(|(byte, own)| byte == own || *byte == 0);
                assert!(come, "{kind:?}: wrong bytes");
            }
            assert!(coming.next_blocking().is_none());
        }
    });
}

#[test]
fn bytes_land_as_they_come_and_a_range_that_is_given_up_takes_none_after() {
    at_once(&KINDS, |kind| {
        let stage = Stage::with_faults(kind, &["get stall@700KiB"]);
        let object = random_bytes(5, 20 * MIB);
        stage.object("k", &object);
        let reader = open(&stage, 0);
        let (memory, seen) = Lent::new(18 * MIB);
        let (other, _) = Lent::new(10);
        let mut coming = reader.stream_ranges_into([(0..18 << 20, memory)]);
        has_begun(&seen, &object);
        let buffers = coming.buffers();
        assert!(buffers.give_up(1).is_none(), "there is no such range");
        let given_up = buffers.give_up(0).expect("the range is still under way");
        let has_come = given_up.bytes.iter().zip(&object).all(|(byte, own)| byte == own || *byte == 0);
        assert!(has_come, "{kind:?}: wrong bytes");
        drop(given_up);
        assert!(buffers.give_up(0).is_none());
        // The stalled request ends because no caller wants its range any more.
        assert!(coming.next_blocking().is_none(), "{kind:?}");
        let after = seen.try_iter().skip_while(|seen| !matches!(seen, Seen::Back(_))).count();
        assert_eq!(after, 1, "{kind:?}: no write follows the return");
        let mut coming = reader.stream_ranges_into([(7..17, other)]);
        let range = coming.next_blocking().unwrap().unwrap();
        assert!(range.buffer.bytes == object[7..17]);
        assert!(coming.buffers().give_up(0).is_none(), "the range is complete");
    });
}

#[test]
fn the_ranges_beside_one_that_is_given_up_come_all_the_same() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::with_faults(kind, &["get stall@64KiB"]);
        let object = random_bytes(6, 20 * MIB);
        stage.object("k", &object);
        let reader = open(&stage, 0);
        // One request covers the first three ranges. Its answer stalls after 64 KiB.
        let asked: [Range<u64>; 4] = [0..1000, 2000..900_000, 800_000..810_000, 10_000_000..10_001_000];
        let memory = asked.iter().map(|range| (range.clone(), vec![0; (range.end - range.start) as usize]));
        let mut coming = reader.stream_ranges_into(memory);
        let mut places = BTreeSet::new();
        while places.len() < 2 {
            places.insert(coming.next_blocking().unwrap().unwrap().place);
        }
        assert_eq!(places, BTreeSet::from([0, 3]), "{kind:?}");
        for place in [1, 2] {
            assert!(coming.buffers().give_up(place).is_some(), "{kind:?} {place}");
        }
        assert!(coming.next_blocking().is_none(), "{kind:?}");
    });
}

#[test]
fn dropped_half_way_all_memory_is_back_at_once() {
    at_once(&KINDS, |kind| {
        let stage = Stage::with_faults(kind, &["get stall@700KiB"]);
        let object = random_bytes(7, 40 * MIB);
        stage.object("k", &object);
        let reader = open(&stage, 0);
        let (memory, seen) = Lent::new(30 * MIB);
        let (other, other_seen) = Lent::new(10);
        let coming = reader.stream_ranges_into([(0..30 << 20, memory), (35 << 20..(35 << 20) + 10, other)]);
        has_begun(&seen, &object);
        drop(coming);
        assert!(back(&seen).is_some() && back(&other_seen).is_some(), "{kind:?}");
    });
}

#[test]
fn ranges_and_memory_that_do_not_fit_are_refused_without_a_request() {
    let stage = Stage::new(DIALECTS[0]);
    stage.object("k", b"0123456789");
    let reader = open(&stage, 0);
    let before = stage.server.counters().requests;
    for (range, room, kind, why) in [
        (10..12, 9, ErrorKind::InvalidRange, "10..12"),
        (Range { start: 9, end: 4 }, 9, ErrorKind::InvalidRange, "9..4"),
        (3..9, 5, ErrorKind::Usage, "range 1 has only 5 bytes"),
    ] {
        let ranges = [(0..1, vec![0; 1]), (range, vec![0; room])];
        let come: Vec<_> = wait(reader.stream_ranges_into(ranges).collect());
        let [Err(error)] = &come[..] else { panic!("{come:?}") };
        assert!(error.kind() == kind && error.to_string().contains(why), "{error}");
    }
    assert_eq!(stage.server.counters().requests, before);
    read(DIALECTS[0], &reader, b"0123456789", &[3..99, 4..4, 99..99]);
}
