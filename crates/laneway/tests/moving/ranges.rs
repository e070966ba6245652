//! Reads of many ranges of an object in one call.
#![allow(clippy::single_range_in_vec_init, reason = "a range is what is meant")]

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use laneway::{Bucket, Client, Engine, ErrorKind, Provider, Tally};
use laneway_server::{Config, Faults};
use laneway_testkit::{Asked, Scripted, answer};

use crate::stage::{BUCKET, DIALECTS, KINDS, Kind, MIB, Stage, at_once, noise};

const KIB: usize = 1 << 10;

fn bucket(stage: &Stage) -> Bucket {
    bucket_of(&stage.client, stage.kind.provider)
}

fn bucket_of(client: &Client, provider: Provider) -> Bucket {
    client.bucket(&format!("{}://{BUCKET}", provider.scheme())).unwrap()
}

fn gets(stage: &Stage) -> u64 {
    stage.server.counters().requests_by_verb.get("get").copied().unwrap_or(0)
}

/// Returns ranges all over an object: unsorted, duplicate, overlapping, empty, and beyond its end.
fn scattered(size: usize) -> Vec<Range<u64>> {
    let size = size as u64;
    let mut ranges: Vec<_> = (0..200u64)
        .map(|n| {
            let start = n * 7_919_993 % size;
            start..start + n * 641 % 65_536
        })
        .collect();
    ranges.extend([0..1, 0..1, 5..5, size - 3..size + 9, size - 1..u64::MAX, size + 7..size + 7]);
    ranges
}

fn cut<'a>(bytes: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    let clamp = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    &bytes[clamp(range.start)..clamp(range.end)]
}

#[test]
fn ranges_come_together_in_the_order_asked_for_and_as_they_come() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        let bytes = noise(30 * MIB + 11, 1);
        stage.object("k", &bytes);
        let asked = scattered(bytes.len());
        let call = bucket(&stage).get_ranges("k", asked.clone());
        let together = call.clone().call().unwrap();
        assert_eq!(together.len(), asked.len());
        for (range, got) in asked.iter().zip(&together) {
            assert!(got == cut(&bytes, range), "{kind:?} {range:?}");
        }
        let (mut coming, mut places) = (call.stream(), BTreeSet::new());
        while let Some(came) = coming.next_blocking() {
            let (at, got) = came.unwrap();
            assert!(got == cut(&bytes, &asked[at]), "{kind:?} {:?}", asked[at]);
            assert!(places.insert(at), "{kind:?}: {at} was read twice");
        }
        assert_eq!(places.len(), asked.len());
    });
}

#[test]
fn neighbours_and_duplicates_are_one_request_and_empty_ranges_none() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let bytes = noise(MIB, 2);
        stage.object("k", &bytes);
        let read = |ranges: &[Range<u64>]| bucket(&stage).get_ranges("k", ranges.to_vec()).call().unwrap();
        assert_eq!(read(&[]).len(), 0);
        assert!(read(&[3..3, 0..0])[0].is_empty());
        assert_eq!(gets(&stage), 0);
        read(&[100..200, 0..100, 150..300, 100..200, 400..500]);
        assert_eq!(gets(&stage), 1);
    }
}

#[test]
fn a_long_range_is_cut_and_the_size_that_needs_asked_for_once() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        let bytes = noise(40 * MIB + 3, 3);
        stage.object("k", &bytes);
        let asked = [7..u64::MAX, 0..64];
        let together = bucket(&stage).get_ranges("k", asked.clone()).call().unwrap();
        assert!(together.iter().zip(&asked).all(|(got, range)| got == cut(&bytes, range)), "{kind:?}");
        let (before, meta) = (gets(&stage), bucket(&stage).head("k").call().unwrap());
        assert!(before >= 3, "{kind:?}: {before} requests");
        let heads = stage.server.counters().requests_by_verb.clone();
        bucket(&stage).get_ranges("k", asked).known(&meta).call().unwrap();
        let mut after = stage.server.counters().requests_by_verb;
        after.insert("get", heads["get"]);
        assert_eq!(after, heads, "{kind:?}: a known object needs no HEAD");
    });
}

#[test]
fn a_whole_object_is_read_where_that_costs_less() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let bytes = noise(2 * MIB, 4);
        stage.object("k", &bytes);
        let asked: Vec<_> =
            (0..32).map(|n| n * 64 * KIB as u64..n * 64 * KIB as u64 + 60 * KIB as u64).collect();
        let meta = bucket(&stage).head("k").call().unwrap();
        let together = bucket(&stage).get_ranges("k", asked.clone()).known(&meta).call().unwrap();
        assert!(together.iter().zip(&asked).all(|(got, range)| got == cut(&bytes, range)), "{kind:?}");
        assert_eq!(gets(&stage), 1, "{kind:?}");
    }
}

#[test]
fn a_range_that_cannot_be_read_is_named() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.object("k", &noise(100, 5));
        stage.object("empty", b"");
        let read = |key: &str, ranges: &[Range<u64>]| bucket(&stage).get_ranges(key, ranges.to_vec()).call();
        for outside in [100..101, 400..u64::MAX, 9 * MIB as u64..10 * MIB as u64] {
            let error = read("k", &[0..10, outside.clone()]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidRange, "{kind:?} {outside:?}: {error}");
            assert!(error.to_string().contains(&format!("{outside:?}")), "{kind:?}: {error}");
        }
        let reversed = Range { start: 9, end: 4 };
        let error = read("k", &[0..10, reversed]).unwrap_err();
        assert!(error.to_string().contains("9..4"), "{kind:?}: {error}");
        assert_eq!(read("empty", &[0..10, 0..u64::MAX]).unwrap(), ["", ""]);
        assert!(read("empty", &[1..10]).unwrap_err().to_string().contains("1..10"), "{kind:?}");
        assert_eq!(read("none", &[0..10]).unwrap_err().kind(), ErrorKind::NotFound);
    }
}

#[test]
fn what_breaks_on_the_way_is_asked_for_again() {
    at_once(&KINDS, |kind| {
        let stage = Stage::with_faults(kind, &["get:4 reset@1KiB", "get:2 status 500"]);
        let bytes = noise(20 * MIB, 6);
        stage.object("k", &bytes);
        let asked = scattered(bytes.len());
        let together = bucket(&stage).get_ranges("k", asked.clone()).call().unwrap();
        assert!(together.iter().zip(&asked).all(|(got, range)| got == cut(&bytes, range)), "{kind:?}");
    });
}

#[test]
fn a_range_that_breaks_off_is_continued_after_its_last_byte() {
    at_once(&KINDS, |kind| {
        let stage = Stage::with_faults(kind, &["get:1 truncate@700KiB"]);
        let (bytes, tally) = (noise(2 * MIB, 13), Tally::default());
        stage.object("k", &bytes);
        let got = bucket(&stage).counted(&tally).get_ranges("k", [9..MIB as u64 + 9]).call().unwrap();
        assert!(got[0] == bytes[9..MIB + 9], "{kind:?}");
        // If the second request fetched the whole range again, 1724 KiB would arrive in total.
        let received = tally.bytes_received();
        assert!(gets(&stage) == 2 && received < 3 * MIB as u64 / 2, "{kind:?}: {received} bytes");
    });
}

#[test]
fn a_range_that_breaks_off_is_never_continued_in_another_version() {
    at_once(&KINDS, |kind| {
        let stage = Stage::with_faults(kind, &["get:1 truncate@700KiB", "get:2 delay 300ms"]);
        let (old, new) = (noise(2 * MIB, 14), noise(2 * MIB, 15));
        stage.object("k", &old);
        let read = std::thread::scope(|scope| {
            let reading = scope.spawn(|| bucket(&stage).get_ranges("k", [0..MIB as u64]).call());
            stage.wait_for("get", 2);
            stage.object("k", &new);
            reading.join().unwrap()
        });
        match read {
            Ok(got) => assert!(got[0] == old[..MIB], "{kind:?}"),
            Err(error) => assert!(error.is_precondition() || error.is_not_found(), "{kind:?}: {error}"),
        }
    });
}

#[test]
fn an_answer_of_another_length_or_place_is_no_range() {
    let faults = [
        ("get range shifted", ErrorKind::Unsupported),
        ("get range ignored", ErrorKind::Unsupported),
        ("get truncate@7", ErrorKind::Transport),
    ];
    at_once(&KINDS, |kind| {
        for (fault, wanted) in faults {
            let config = Config { faults: Faults::parse([fault]).unwrap(), ..Config::default() };
            let stage = Stage::set_up(kind, config, |settings| settings.retry_for(Duration::ZERO));
            stage.object("k", &noise(MIB, 12));
            let error = bucket(&stage).get_ranges("k", [10..30, 500_000..500_020]).call().unwrap_err();
            assert_eq!(error.kind(), wanted, "{kind:?} {fault}: {error}");
        }
    });
}

#[test]
fn ranges_of_many_objects_fail_object_by_object() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        let objects: Vec<_> = (0..100).map(|n| noise(n * 1_000 + 1, n as u64)).collect();
        for (n, bytes) in objects.iter().enumerate().filter(|(n, _)| *n != 50) {
            stage.object(&format!("k/{n}"), bytes);
        }
        let asked = |n: usize| [0..1, n as u64 * 500..n as u64 * 1_000 + 1, 3..3];
        let all = (0..100).map(move |n| (n.to_string(), asked(n)));
        let mut coming = bucket(&stage).below("k/").get_ranges_of(all);
        let mut places = BTreeSet::new();
        while let Some(object) = coming.next_blocking() {
            let (at, came) = object.unwrap();
            assert!(places.insert(at));
            match came {
                Ok(got) => {
                    for (range, got) in asked(at).iter().zip(&got) {
                        assert!(got == cut(&objects[at], range), "{kind:?} {at} {range:?}");
                    }
                }
                Err(error) => assert_eq!((at, error.kind()), (50, ErrorKind::NotFound), "{error}"),
            }
        }
        assert_eq!(places.len(), 100);
    });
}

#[test]
fn the_smallest_budget_brings_the_longest_range() {
    for budget in [MIB, 12 * MIB] {
        let engine = Engine::builder().memory(budget);
        let stage = Stage::set_up_on(engine, KINDS[2], Config::default(), |settings| settings);
        let bytes = noise(80 * MIB, 7);
        stage.object("k", &bytes);
        let asked: Vec<_> = [0..u64::MAX, 5..6].into_iter().chain(scattered(bytes.len())).collect();
        let mut coming = bucket(&stage).get_ranges("k", asked.clone()).stream();
        let mut count = 0;
        while let Some(came) = coming.next_blocking() {
            let (at, got) = came.unwrap();
            assert!(got == cut(&bytes, &asked[at]), "{:?}", asked[at]);
            count += 1;
        }
        assert_eq!(count, asked.len());
    }
}

#[test]
fn what_nobody_waits_for_any_more_is_not_read() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::with_faults(kind, &["get:100% stall@1KiB"]);
        stage.object("k", &noise(9 * MIB, 8));
        let coming = bucket(&stage).get_ranges("k", [0..2048, 4 * MIB as u64..5 * MIB as u64]).stream();
        stage.wait_for("get", 2);
        drop(coming);
        stage.wait_until("its connections to be closed", |counters| counters.connections_open == 0);
    });
}

/// An S3 object is replaced between two concurrent requests. One answer has the old version, the other the new one. The store
/// answers conditional requests for the versions that `keeps` accepts.
fn replaced(keeps: impl Fn(&str) -> bool + Send + Sync + 'static) -> (Scripted, Bucket) {
    let (both, served) = (Barrier::new(2), Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let scripted = Scripted::serve(move |asked: &Asked| {
        let state = match asked.header("if-match").map(|etag| etag.trim_matches('"').to_owned()) {
            Some(etag) if keeps(&etag) => etag,
            Some(_) => return answer(412, &[], "<Error><Code>PreconditionFailed</Code></Error>"),
            None => {
                both.wait();
                let is_first = !served.swap(true, std::sync::atomic::Ordering::SeqCst);
                if is_first { "old" } else { "new" }.to_owned()
            }
        };
        let range = asked.header("range").and_then(|range| range.strip_prefix("bytes=")).unwrap();
        let etag = format!("\"{state}\"");
        let range = format!("bytes {range}/100000000");
        answer(206, &[("ETag", &etag), ("Content-Range", &range)], &state)
    });
    let client = Client::builder()
        .anonymous(true)
        .s3_endpoint(scripted.url())
        .retry_for(Duration::ZERO)
        .engine(Engine::builder().build())
        .build()
        .unwrap();
    let bucket = bucket_of(&client, Provider::S3);
    (scripted, bucket)
}

const FAR_APART: [Range<u64>; 2] = [0..3, 50_000_000..50_000_003];

#[test]
fn an_object_that_is_replaced_meanwhile_is_an_error_and_never_a_mixture() {
    let (scripted, bucket) = replaced(|_| false);
    let error = bucket.get_ranges("k", FAR_APART).call().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Precondition, "{error}");
    assert_eq!(scripted.asked().len(), 3, "one range is requested again, in the other's version");
}

#[test]
fn an_answer_of_another_state_is_fetched_again_in_that_of_the_first() {
    let (scripted, bucket) = replaced(|_| true);
    let together = bucket.get_ranges("k", FAR_APART).call().unwrap();
    assert!(together == ["old", "old"] || together == ["new", "new"], "{together:?}");
    assert_eq!(scripted.asked().len(), 3);
}

#[test]
fn ranges_of_another_version_than_the_one_wanted_are_refused() {
    at_once(&KINDS, |kind: Kind| {
        let stage = Stage::new(kind);
        stage.object("k", &noise(100, 9));
        let version = bucket(&stage).head("k").call().unwrap().version.unwrap();
        let read = || bucket(&stage).get_ranges("k", [0..10, 50..60]).if_version(&version).call();
        assert_eq!(read().unwrap().len(), 2);
        stage.object("k", &noise(100, 10));
        assert_eq!(read().unwrap_err().kind(), ErrorKind::Precondition, "{kind:?}");
    });
}

#[test]
fn objects_whose_iterator_fails_end_with_an_error_that_is_none_of_theirs() {
    let stage = Stage::new(KINDS[0]);
    stage.object("k", b"0123456789");
    let objects = (0..3).map(|n| {
        assert!(n < 2, "the iterator fails");
        ("k", [n..n + 1])
    });
    let mut coming = bucket(&stage).get_ranges_of(objects);
    let mut results: Vec<_> = std::iter::from_fn(|| coming.next_blocking()).collect();
    assert_eq!(results.pop().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(results.iter().all(|object| matches!(object, Ok((_, Ok(_))))), "{results:?}");
}
