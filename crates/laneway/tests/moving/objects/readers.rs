//! Open objects, copies and renames.

use std::io::{Read as _, SeekFrom};
use std::time::Duration;

use laneway::{ErrorKind, Provider, Verified};
use laneway_server::Faults;
use laneway_testkit::random_bytes;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use super::{bucket, wait};
use crate::stage::{DIALECTS, KINDS, MIB, Stage, at_once};

fn requests(stage: &Stage, verb: &str) -> u64 {
    stage.server.counters().requests_by_verb.get(verb).copied().unwrap_or_default()
}

#[test]
fn a_reader_reads_anywhere_of_one_version() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        let bytes = random_bytes(1, 5 * MIB + 3);
        stage.object("p/k", &bytes);
        let reader = wait(bucket(&stage, "p/").open("k").into_future()).unwrap();
        assert_eq!((reader.size(), reader.meta().id.key.as_str()), (bytes.len() as u64, "k"));
        for (at, len) in [(0, 10), (MIB, 2 * MIB), (bytes.len() - 5, 100), (bytes.len(), 10), (7, 0)] {
            let (read, buffer) = wait(reader.read_at(at as u64, vec![0; len]));
            let read = read.unwrap();
            assert_eq!(read, len.min(bytes.len() - at), "{at} {len}");
            assert!(buffer.len() == len && buffer[..read] == bytes[at..at + read], "{at} {len}");
        }
        let ranges = wait(reader.read_ranges([5..9, 1_000_000..1_000_001])).unwrap();
        assert!(ranges[0] == bytes[5..9] && ranges[1] == bytes[1_000_000..1_000_001]);
        stage.object("p/k", &random_bytes(2, 5 * MIB + 3));
        let replaced = wait(reader.read_range(5..9)).unwrap_err();
        assert!(replaced.is_precondition() || replaced.is_not_found(), "{replaced}");
    });
}

#[test]
fn the_footer_comes_with_the_opening_request() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        let bytes = random_bytes(3, MIB);
        stage.object("k", &bytes);
        stage.object("empty", b"");
        let bucket = bucket(&stage, "");
        let before = stage.server.counters().requests;
        let mut reader = wait(bucket.open("k").footer(65_536).into_future()).unwrap();
        assert!(reader.footer()[..] == bytes[MIB - 65_536..] && reader.size() == MIB as u64);
        let end = MIB as u64;
        let read = wait(reader.read_ranges([end - 8..end, end - 100..end + 7])).unwrap();
        assert!(read[0] == bytes[MIB - 8..] && read[1] == bytes[MIB - 100..]);
        let mut last = Vec::new();
        wait(async {
            reader.seek(SeekFrom::End(-8)).await.unwrap();
            reader.read_to_end(&mut last).await.unwrap();
        });
        assert!(last == bytes[MIB - 8..]);
        assert_eq!(stage.server.counters().requests - before, 1);
        let all = wait(bucket.open("k").footer(u64::MAX).into_future()).unwrap();
        assert!(all.footer()[..] == bytes);
        let empty = wait(bucket.open("empty").footer(10).into_future()).unwrap();
        assert_eq!((empty.size(), empty.footer().len()), (0, 0));
        assert!(wait(empty.read_range(0..10)).unwrap().is_empty());
    });
}

/// S3 sends no checksum with a range.
#[test]
fn an_object_that_opens_whole_is_verified() {
    for kind in KINDS.into_iter().filter(|kind| kind.provider == Provider::Gcs) {
        let stage = Stage::new(kind);
        let bytes = random_bytes(1, 5000);
        stage.object("k", &bytes);
        let bucket = bucket(&stage, "");
        for open in [bucket.open("k").in_order(), bucket.open("k").footer(65_536)] {
            stage.server.set_faults(Faults::parse(["get:1 corrupt"]).unwrap());
            let before = requests(&stage, "get");
            let reader = wait(open.clone().into_future()).unwrap();
            assert!(reader.footer()[..] == bytes, "{kind:?}");
            assert_eq!(requests(&stage, "get") - before, 2, "{kind:?}");

            stage.server.set_faults(Faults::parse(["get corrupt"]).unwrap());
            let error = wait(open.into_future()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Integrity, "{kind:?}: {error}");
        }
    }
}

#[test]
fn what_is_read_in_order_begins_with_the_opening_request() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        let bytes = random_bytes(5, 3 * MIB);
        let small = &bytes[..400_000];
        stage.object("k", &bytes);
        stage.object("small", small);
        stage.object("empty", b"");
        let bucket = bucket(&stage, "");
        let open = |key: &str| wait(bucket.open(key).footer(100).in_order().into_future()).unwrap();
        let before = stage.server.counters().requests;
        let mut reader = open("small");
        let mut read = Vec::new();
        wait(reader.read_to_end(&mut read)).unwrap();
        assert!(read == small && reader.footer()[..] == *small, "all of it came");
        for (at, len) in [(0, 400_000), (0, 10), (399_990, 100)] {
            let (read, buffer) = wait(reader.read_into(at, vec![0; len])).unwrap();
            assert!(buffer[..read] == small[at as usize..][..read] && read == len.min(400_000 - at as usize));
        }
        assert!(wait(reader.read_range(7..400_000)).unwrap() == small[7..]);
        assert_eq!(stage.server.counters().requests - before, 1);
        let known = reader.meta().clone();
        let mut again = wait(bucket.open("small").known(&known).in_order().into_future()).unwrap();
        let mut some = Vec::new();
        wait(again.read_to_end(&mut some)).unwrap();
        assert!(some == small, "a reader with known metadata reads all bytes");
        assert_eq!(stage.server.counters().requests - before, 2);

        let mut reader = open("k");
        assert!(reader.footer().is_empty());
        read.clear();
        wait(reader.read_to_end(&mut read)).unwrap();
        assert!(read == bytes);
        // The footer's bytes are in memory. They contain the beginning of some ranges, all of others, and
        // nothing of the last range.
        for (at, len) in [(0, 3 * MIB), (500_000, MIB), (1000, 5000), (2 * MIB, 5000)] {
            let (read, buffer) = wait(reader.read_into(at as u64, vec![0; len])).unwrap();
            assert!(read == len.min(3 * MIB - at) && buffer[..read] == bytes[at..at + read], "{at}");
            let ranges = [at as u64..(at + len) as u64, 5..9];
            let ranges = wait(reader.read_ranges(ranges)).unwrap();
            assert!(ranges[0] == buffer[..read] && ranges[1] == bytes[5..9], "{at}");
        }
        let empty = open("empty");
        assert_eq!(empty.size(), 0);
        assert!(wait(empty.read_range(0..10)).unwrap().is_empty());
    });
}

#[test]
fn reading_on_takes_few_requests_and_jumping_about_few_bytes() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        let bytes = random_bytes(4, 40 * MIB);
        stage.object("k", &bytes);
        let mut reader = wait(bucket(&stage, "").open("k").into_future()).unwrap();
        let before = requests(&stage, "get");
        let mut read = Vec::new();
        wait(reader.read_to_end(&mut read)).unwrap();
        assert!(read == bytes);
        let asked = requests(&stage, "get") - before;
        // The size of ranges depends on the measured throughput, which is low on a busy machine.
        assert!((5..=24).contains(&asked), "{asked}");
        let sent = stage.server.counters().bytes_out;
        for at in [30, 3, 17] {
            let mut some = [0; 100];
            wait(async {
                reader.seek(SeekFrom::Start(at * MIB as u64)).await.unwrap();
                reader.read_exact(&mut some).await.unwrap();
            });
            assert!(some == bytes[at as usize * MIB..][..100]);
        }
        assert!(stage.server.counters().bytes_out - sent < MIB as u64);
        let before = wait(reader.seek(SeekFrom::Current(-100 * MIB as i64))).unwrap_err();
        assert_eq!(before.kind(), std::io::ErrorKind::InvalidInput);
    });
}

#[test]
fn large_reads_in_order_fill_the_callers_memory_from_any_offset() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        let bytes = random_bytes(6, 40 * MIB + 3);
        stage.object("k", &bytes);
        for open in [bucket(&stage, "").open("k"), bucket(&stage, "").open("k").in_order()] {
            let mut reader = wait(open.footer(5000).into_future()).unwrap();
            // The header and the content of a file within the object, the next file, and two jumps.
            let reads = [(0, 30), (30, 9 * MIB), (9 * MIB + 30, 7 * MIB), (16 * MIB + 40, 12 * MIB)];
            for (at, len) in
                reads.into_iter().chain([(7, 3 * MIB), (bytes.len() - 4 * MIB, 5 * MIB), (bytes.len(), 9)])
            {
                reader.set_position(at as u64);
                let (read, buffer) = wait(reader.next_into(vec![0; len])).unwrap();
                assert_eq!((read, buffer.len()), (len.min(bytes.len() - at), len), "{at}");
                assert!(buffer[..read] == bytes[at..at + read], "{at}");
                assert_eq!(reader.position(), (at + read) as u64, "{at}");
            }
        }
        let mut reader = wait(bucket(&stage, "").open("k").into_future()).unwrap();
        stage.object("k", &random_bytes(7, 40 * MIB + 3));
        let replaced = wait(reader.next_into(vec![0; 5 * MIB])).unwrap_err();
        assert!(replaced.is_precondition() || replaced.is_not_found(), "{replaced}");
        assert_eq!(reader.position(), 0);
    });
}

#[test]
fn reads_of_any_kind_in_order_can_follow_each_other() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        let bytes = random_bytes(8, 48 * MIB);
        stage.object("k", &bytes);
        let mut reader = wait(bucket(&stage, "").open("k").into_future()).unwrap();
        let sent = stage.server.counters().bytes_out;
        let mut read = Vec::new();
        for len in [100, 8 * MIB, MIB, 12 * MIB, 3 * MIB, 20 * MIB, 10 * MIB].into_iter().cycle() {
            let (count, mut some) = wait(reader.next_into(vec![0; len])).unwrap();
            some.truncate(count);
            read.append(&mut some);
            read.extend_from_slice(&wait(reader.chunk(1000)).unwrap());
            if count == 0 {
                break;
            }
        }
        assert!(read == bytes);
        assert!(stage.server.counters().bytes_out - sent < 56 * MIB as u64, "a read fetches no bytes again");
    });
}

#[test]
fn copies_and_renames_happen_in_the_store() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        let bucket = bucket(&stage, "p/");
        bucket.put("a", "bytes").content_type("text/x").metadata("m", "1").call().unwrap();
        let copied = bucket.copy("a", "b").call().unwrap();
        assert!(copied.version.is_some() && copied.size == 5);
        let meta = bucket.head("b").call().unwrap();
        assert_eq!((meta.content_type.as_deref(), meta.version), (Some("text/x"), copied.version));
        assert!(bucket.copy("a", "b").if_absent().call().unwrap_err().is_precondition());
        bucket.rename("b", "c").into(&bucket.below("deep/")).call().unwrap();
        assert_eq!(stage.keys(), ["p/a", "p/deep/c"]);
        let itself = bucket.rename("a", "a").content_type("text/y").call().unwrap_err();
        assert!(itself.kind() == ErrorKind::Usage && stage.stored("p/a") == b"bytes", "{itself}");
        let nowhere = bucket.rename("nowhere", "x").call().unwrap_err();
        assert!(nowhere.is_not_found() && nowhere.kind() == ErrorKind::NotFound, "{nowhere}");
        assert_eq!(requests(&stage, "get"), 0);
        assert_ne!(bucket.put("v", "").call().unwrap().verified, Verified::NotApplicable);
    });
}

#[test]
fn reads_that_take_longer_than_their_reader_allows_are_errors() {
    let stage = Stage::with_faults(DIALECTS[1], &["get key=silent stall"]);
    stage.object("silent", b"never told");
    let reader = wait(bucket(&stage, "").open("silent").into_future()).unwrap();
    let reader = reader.deadline(Duration::from_millis(20));
    let late = wait(reader.read_range(0..4)).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Timeout, "{late}");
    let late = reader.again().into_blocking().read(&mut [0; 4]).unwrap_err();
    let late = late.get_ref().and_then(|cause| cause.downcast_ref::<laneway::Error>()).unwrap();
    assert_eq!(late.kind(), ErrorKind::Timeout, "{late}");
}
