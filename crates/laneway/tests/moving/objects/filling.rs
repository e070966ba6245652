//! Reads directly into a caller's memory, and readers of objects with known metadata.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};

use futures_util::StreamExt as _;
use laneway::{ErrorKind, Listed};
use laneway_testkit::random_bytes;

use super::{bucket, wait};
use crate::stage::{DIALECTS, KINDS, MIB, Stage, at_once};

/// Lent memory that returns to the lender once Laneway no longer writes to it.
struct Borrowed {
    bytes: Vec<u8>,
    back: mpsc::Sender<Vec<u8>>,
}

impl Borrowed {
    fn new(len: usize) -> (Self, mpsc::Receiver<Vec<u8>>) {
        let (back, given) = mpsc::channel();
        (Self { bytes: vec![0; len], back }, given)
    }
}

impl AsMut<[u8]> for Borrowed {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        // Ignore an error: the lender may no longer exist.
        let _ = self.back.send(std::mem::take(&mut self.bytes));
    }
}

#[test]
fn memory_is_filled_from_anywhere_by_as_many_requests_as_its_length_takes() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        let bytes = random_bytes(1, 36 * MIB + 3);
        stage.object("p/k", &bytes);
        for footer in [0, 1000] {
            let reader = wait(bucket(&stage, "p/").open("k").footer(footer).into_future()).unwrap();
            for (at, len) in [(0, 10), (5, 36 * MIB), (bytes.len() - 5, 100), (bytes.len(), 10), (7, 0)] {
                let (read, buffer) = wait(reader.read_into(at as u64, vec![0; len])).unwrap();
                assert_eq!(read, len.min(bytes.len() - at), "{at} {len}");
                assert!(buffer.len() == len && buffer[..read] == bytes[at..at + read], "{at} {len}");
            }
        }
        let reader = wait(bucket(&stage, "p/").open("k").into_future()).unwrap();
        stage.object("p/k", &random_bytes(2, 36 * MIB + 3));
        let replaced = wait(reader.read_into(5, vec![0; 9])).unwrap_err();
        assert!(replaced.is_precondition() || replaced.is_not_found(), "{replaced}");
    });
}

#[test]
fn memory_is_filled_over_connections_that_break() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::with_faults(kind, &["get:2-4 cut@300KiB"]);
        let bytes = random_bytes(3, 2 * MIB);
        stage.object("k", &bytes);
        stage.object("first", b"");
        wait(bucket(&stage, "").get("first").into_future()).unwrap();
        let reader = wait(bucket(&stage, "").open("k").into_future()).unwrap();
        let (read, buffer) = wait(reader.read_into(1, vec![0; 2 * MIB])).unwrap();
        assert!(read == 2 * MIB - 1 && buffer[..read] == bytes[1..]);
    });
}

#[test]
fn memory_of_a_dropped_read_is_returned_and_not_written_to() {
    at_once(&KINDS, |kind| {
        let stage = Stage::with_faults(kind, &["get stall@64KiB"]);
        let bytes = random_bytes(4, 20 * MIB);
        stage.object("k", &bytes);
        let reader = wait(bucket(&stage, "").open("k").into_future()).unwrap();
        for n in 1..=5 {
            let (memory, given) = Borrowed::new(20 * MIB);
            let mut read = Box::pin(reader.read_into(0, memory));
            assert!(matches!(read.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
            // The read takes two requests.
            stage.wait_for("get", 2 * n);
            drop(read);
            let back = given.recv().expect("the writer drops it");
            let come = back.iter().zip(&bytes).take_while(|(back, byte)| back == byte).count();
            assert!(come <= MIB, "{come} bytes of the first request have arrived");
        }
    });
}

#[test]
fn a_dropped_read_in_order_returns_its_memory_and_keeps_its_position() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::with_faults(kind, &["get stall@64KiB"]);
        let bytes = random_bytes(6, 20 * MIB);
        stage.object("k", &bytes);
        let mut reader = wait(bucket(&stage, "").open("k").into_future()).unwrap();
        reader.set_position(MIB as u64);
        let (memory, given) = Borrowed::new(16 * MIB);
        let mut read = Box::pin(reader.next_into(memory));
        assert!(matches!(read.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
        stage.wait_for("get", 1);
        drop(read);
        let back = given.try_recv().expect("the memory is free once the read is dropped");
        let come = back.iter().zip(&bytes[MIB..]).take_while(|(back, byte)| back == byte).count();
        assert!(come <= MIB, "{come} bytes of the first request have arrived");
        assert_eq!(reader.position(), MIB as u64);
    });
}

#[test]
fn what_is_known_is_opened_without_a_request() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        let bytes = random_bytes(5, MIB);
        stage.object("p/k", &bytes);
        let bucket = bucket(&stage, "p/");
        let mut listed: Vec<_> = wait(bucket.list("").map(Result::unwrap).collect());
        let meta = listed.remove(0);
        let before = stage.server.counters().requests;
        let reader = wait(bucket.open("k").known(&meta).into_future()).unwrap();
        assert_eq!((reader.size(), reader.meta()), (MIB as u64, &meta));
        assert_eq!(stage.server.counters().requests, before);
        assert!(wait(reader.read_range(7..99)).unwrap() == bytes[7..99]);
        let footed = wait(bucket.open("k").known(&meta).footer(100).into_future()).unwrap();
        assert!(footed.footer()[..] == bytes[MIB - 100..]);
        assert_eq!(stage.server.counters().requests, before + 2);
        // Without a version, a reader can't make its reads conditional.
        let mut stateless = meta.clone();
        stateless.version = None;
        let asked = wait(bucket.open("k").known(&stateless).into_future()).unwrap();
        assert_eq!(asked.meta().version, meta.version);
        assert_eq!(stage.server.counters().requests, before + 3);
        stage.object("p/k", b"another");
        for open in [bucket.open("k").known(&meta).footer(3), bucket.open("k").known(&meta)] {
            let late = wait(async { open.await?.read_range(0..3).await }).unwrap_err();
            assert_eq!(late.kind(), ErrorKind::Precondition, "{late}");
        }
    });
}

#[test]
fn ranges_of_a_reader_come_one_by_one_with_their_places() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        let bytes = random_bytes(6, 4 * MIB);
        stage.object("k", &bytes);
        let reader = wait(bucket(&stage, "").open("k").footer(1000).into_future()).unwrap();
        let end = bytes.len() as u64;
        let ranges = [0..10, end - 10..end, 2_000_000..2_100_000, end - 1000..end - 900, 5..5];
        let come: BTreeMap<_, _> = wait(reader.stream_ranges(ranges.clone()).map(Result::unwrap).collect());
        assert_eq!(come.len(), ranges.len());
        for (at, range) in ranges.into_iter().enumerate() {
            assert!(come[&at] == bytes[range.start as usize..range.end as usize], "{at}");
        }
        let mut beyond = pin!(reader.stream_ranges(std::iter::once(end..end + 1)));
        let refused = wait(beyond.next()).unwrap().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidRange);
        assert!(wait(beyond.next()).is_none());
    });
}

#[test]
fn a_few_entries_take_one_small_request() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        for n in 0..1500 {
            stage.object(&format!("p/d/{n:04}"), b"");
        }
        stage.object("p/k", b"");
        let bucket = bucket(&stage, "p/");
        let keys = |limit| {
            let before = stage.server.counters().requests;
            let listed = bucket.list("d/").start_after("d/0001").limit(limit);
            let keys: Vec<_> = wait(listed.map(|meta| meta.unwrap().id.key).collect());
            (keys, stage.server.counters().requests - before)
        };
        assert_eq!(keys(2), (vec!["d/0002".to_owned(), "d/0003".to_owned()], 1));
        let (many, requests) = keys(1200);
        assert_eq!((many.len(), many.last().map(String::as_str), requests), (1200, Some("d/1201"), 2));
        assert_eq!(keys(5000).0.len(), 1498);
        let level: Vec<Listed> = wait(bucket.list_dir("").limit(1).map(Result::unwrap).collect());
        assert_eq!(level.len(), 1);
        let mut blocking = bucket.list("").limit(1);
        assert!(
            blocking.next_blocking().is_some_and(|meta| meta.is_ok()) && blocking.next_blocking().is_none()
        );
    });
}
