//! Reading, listing and removing; reads on conditions, and reads of a range in an object of unknown size.

use std::io::Read as _;
use std::task::{Context, Waker};
use std::time::{Duration, SystemTime};

use futures_util::StreamExt as _;
use laneway::{Engine, Error, ErrorKind, Listed, Provider, Verified, Version};
use laneway_server::Config;
use laneway_testkit::random_bytes;

use super::{bucket, wait};
use crate::stage::{DIALECTS, KINDS, MIB, Stage, at_once, noise};

#[test]
fn an_object_is_read_whole_streamed_and_in_part() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        let (small, large) = (random_bytes(1, 70_000), random_bytes(2, 20 * MIB + 5));
        stage.object("p/small", &small);
        stage.object("p/large", &large);
        stage.object("p/empty", b"");
        let bucket = bucket(&stage, "p/");

        let download = wait(bucket.get("small").into_future()).unwrap();
        assert_eq!((download.meta().id.key.as_str(), download.meta().size), ("small", 70_000));
        assert_eq!(wait(download.bytes()).unwrap(), small);
        assert_eq!(wait(async { bucket.get("empty").await?.bytes().await }).unwrap(), b"".as_slice());

        let mut download = wait(bucket.get("large").into_future()).unwrap();
        assert_eq!((download.meta().size, download.range()), (large.len() as u64, 0..large.len() as u64));
        let mut whole = Vec::new();
        while let Some(chunk) = wait(download.chunk()).unwrap() {
            whole.extend_from_slice(&chunk);
        }
        assert!(whole == large && wait(download.chunk()).unwrap().is_none());
        assert!(download.verified().is_some_and(|verified| verified != Verified::Unverified));

        let mut read = Vec::new();
        bucket.get("large").call().unwrap().read_to_end(&mut read).unwrap();
        assert!(read == large);
        // A body that `Read` began can be continued by any other method.
        let mut begun = bucket.get("large").call().unwrap();
        let mut first = [0; 10];
        begun.read_exact(&mut first).unwrap();
        assert!(first == large[..10] && begun.bytes_blocking().unwrap() == large[10..]);
        for range in [0..1, 5..70_000, MIB..2 * MIB, 9 * MIB..20 * MIB] {
            let (start, end) = (range.start as u64, range.end as u64);
            let got = wait(async { bucket.get("large").range(start..end).await?.bytes().await }).unwrap();
            assert!(got == large[range.clone()], "{range:?}");
        }
        let ends = wait(async { bucket.get("small").last(10).await?.bytes().await }).unwrap();
        assert_eq!(ends, small[small.len() - 10..]);
        let rest = wait(async { bucket.get("small").range(69_000..).await?.bytes().await }).unwrap();
        assert_eq!(rest, small[69_000..]);
    });
}

#[test]
fn what_cannot_be_read_is_an_error_that_names_it() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        stage.object("k", b"0123456789");
        let bucket = bucket(&stage, "");
        let url = format!("{}k", bucket.url());
        let nowhere = wait(bucket.get("nowhere").into_future()).unwrap_err();
        assert!(nowhere.is_not_found() && nowhere.to_string().contains("nowhere"), "{nowhere}");
        for beyond in
            [wait(bucket.get("k").range(10..).into_future()), wait(bucket.get("k").range(4..4).into_future())]
        {
            let error = beyond.unwrap_err();
            assert!(error.kind() == ErrorKind::InvalidRange && error.to_string().contains(&url), "{error}");
        }
        assert_eq!(bucket.get("").call().unwrap_err().kind(), ErrorKind::Usage);
        for no_bucket in ["gs://", "file", "-", "ftp://b"] {
            assert_eq!(stage.client.bucket(no_bucket).unwrap_err().kind(), ErrorKind::Usage, "{no_bucket}");
        }
    });
}

#[test]
fn a_version_that_was_replaced_is_an_error() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        stage.object("k", b"first");
        let bucket = bucket(&stage, "");
        let version = bucket.head("k").call().unwrap().version.unwrap();
        assert_eq!(bucket.get("k").if_version(&version).call().unwrap().bytes_blocking().unwrap(), "first");
        stage.object("k", b"second");
        let replaced = |error: Error| assert!(error.is_precondition() || error.is_not_found(), "{error}");
        replaced(bucket.get("k").if_version(&version).call().unwrap_err());
        replaced(bucket.get("k").range(1..3).if_version(&version).call().unwrap_err());
        replaced(bucket.head("k").if_version(&version).call().unwrap_err());
        replaced(bucket.delete("k").if_version(&version).call().unwrap_err());
        assert_eq!(stage.stored("k"), b"second");
        bucket.delete("k").call().unwrap();
        assert!(bucket.head("k").call().unwrap_err().is_not_found());
    });
}

#[test]
fn listings_are_streams_of_keys_as_the_verbs_take_them() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        let keys: Vec<String> = (0..2100).map(|i| format!("d/{i:04}")).collect();
        for key in &keys {
            stage.object(&format!("p/{key}"), b"x");
        }
        stage.object("p/top", b"x");
        stage.object("other", b"x");
        let bucket = bucket(&stage, "p/");
        let listed: Vec<_> = wait(bucket.list("").map(|meta| meta.unwrap().id.key).collect());
        assert!(listed[..2100] == keys && listed[2100..] == ["top"], "{}", listed.len());
        let after = wait(
            bucket.list("d/").start_after("d/2097").map(|meta| meta.unwrap().id.key).collect::<Vec<_>>(),
        );
        assert_eq!(after, ["d/2098", "d/2099"]);
        let level: Vec<Listed> = wait(bucket.list_dir("").map(Result::unwrap).collect());
        let prefixes: Vec<_> = level.iter().filter(|l| **l == Listed::Prefix("d/".to_owned())).collect();
        assert_eq!((level.len(), prefixes.len()), (2, 1), "{level:?}");
        let mut blocking = bucket.list("d/");
        assert_eq!(blocking.next_blocking().unwrap().unwrap().id.key, "d/0000");

        let removed = wait(bucket.delete_many(futures_util::stream::iter(keys.clone())).collect::<Vec<_>>());
        assert!(removed.iter().map(|(key, _)| key).eq(&keys));
        assert!(removed.iter().all(|(_, outcome)| outcome.is_ok()));
        assert_eq!(wait(bucket.list("").count()), 1);
    });
}

#[test]
fn a_key_that_names_nothing_is_an_error_among_many_that_are_removed() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        for key in ["a", "b", "p/"] {
            stage.object(key, b"x");
        }
        let removed = |prefix: &str, keys: &[&str]| {
            let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
            let outcomes = bucket(&stage, prefix).delete_many(futures_util::stream::iter(keys));
            wait(outcomes.map(|(key, outcome)| (key, outcome.err().map(|e| e.kind()))).collect::<Vec<_>>())
        };
        let refused = || Some(ErrorKind::Usage);
        let outcomes = [("a".to_owned(), None), (String::new(), refused()), ("b".to_owned(), None)];
        assert_eq!(removed("", &["a", "", "b"]), outcomes);
        assert_eq!(removed("", &[""]), [(String::new(), refused())]);
        // With a prefix, the empty key names the prefix's own object.
        assert_eq!(removed("p/", &[""]), [(String::new(), None)]);
        assert!(stage.keys().is_empty());
    });
}

#[test]
fn keys_whose_batch_was_carried_out_and_cannot_be_read_count_as_removed() {
    for (kind, verb) in [(KINDS[0], "batch"), (KINDS[2], "delete-many")] {
        let stage = Stage::with_faults(kind, &[&format!("{verb} garble")]);
        let keys = ["a", "b", "c"];
        keys.iter().for_each(|key| stage.object(key, b"x"));
        let named = futures_util::stream::iter(keys.map(str::to_owned));
        let outcomes: Vec<_> = wait(bucket(&stage, "").delete_many(named).collect());
        assert!(outcomes.iter().all(|(_, outcome)| outcome.is_ok()), "{kind:?}: {outcomes:?}");
        assert!(stage.keys().is_empty() && outcomes.len() == 3);
    }
}

#[test]
fn as_many_batches_are_under_way_as_hold_five_thousand_keys() {
    for (kind, verb, batches) in [(KINDS[1], "batch", 50), (KINDS[3], "delete-many", 5)] {
        let stage = Stage::with_faults(kind, &[&format!("{verb} stall")]);
        let keys = futures_util::stream::iter((0..6000).map(|n| n.to_string()));
        let mut removed = bucket(&stage, "").delete_many(keys);
        assert!(removed.poll_next_unpin(&mut Context::from_waker(Waker::noop())).is_pending());
        stage.wait_for(verb, batches);
        assert_eq!(stage.requests(verb), batches);
    }
}

#[test]
fn a_call_that_is_dropped_or_late_holds_nothing() {
    let stage = Stage::with_faults(DIALECTS[1], &["get key=silent stall"]);
    stage.object("silent", b"never told");
    stage.object("k", b"told");
    let bucket = bucket(&stage, "");
    for _ in 0..300 {
        // More calls than connections. Each dropped call gives its connection back.
        let mut call = Box::pin(bucket.get("silent").into_future());
        let waker = Waker::noop();
        assert!(call.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    }
    assert_eq!(bucket.get("k").call().unwrap().bytes_blocking().unwrap(), "told");
    let late = bucket.get("silent").deadline(Duration::from_millis(20)).call().unwrap_err();
    assert!(
        late.kind() == ErrorKind::Timeout
            && late.to_string().contains("the call took longer than its deadline of 0.02 s"),
        "{late}"
    );
}

#[test]
fn small_objects_are_all_requested_at_once_in_any_memory() {
    let stage = Stage::with_faults(KINDS[1], &["get stall"]);
    let bucket = bucket(&stage, "");
    let calls: Vec<_> = (0..40)
        .map(|i| {
            let mut call = Box::pin(bucket.get(&i.to_string()).into_future());
            assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            call
        })
        .collect();
    // 64 MiB are eight slices.
    stage.wait_for("get", 40);
    drop(calls);
}

#[test]
fn what_is_not_read_on_holds_up_nobody_else() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        let large = random_bytes(9, 40 * MIB);
        stage.object("large", &large);
        stage.object("small", b"small");
        let bucket = bucket(&stage, "");
        // More downloads than the engine's memory can hold.
        let begun: Vec<_> = (0..12).map(|_| bucket.get("large").call().unwrap()).collect();
        assert_eq!(bucket.get("small").call().unwrap().bytes_blocking().unwrap(), "small");
        for download in begun {
            assert!(download.bytes_blocking().unwrap() == large);
        }
        let mut objects = bucket.get_ranges_of((0..40).map(|_| ("large", [0..9 << 20, 0..1])));
        assert!(objects.next_blocking().is_some());
        assert_eq!(bucket.get("small").call().unwrap().bytes_blocking().unwrap(), "small");
        assert_eq!(wait(objects.count()), 39);
    });
}

fn nothing_new<T>(answer: Result<T, Error>) {
    match answer {
        Ok(_) => panic!("the reader's own version was sent again"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NotModified, "{error}");
            assert!(!error.is_retryable() && error.url().is_some(), "{error}");
        }
    }
}

#[test]
fn only_another_version_than_the_readers_is_sent() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        // More than the first request fetches.
        let (first, second) = (noise(9 * MIB, 1), noise(9 * MIB, 2));
        stage.object("k", &first);
        let bucket = bucket(&stage, "");
        let version = bucket.head("k").call().unwrap().version.unwrap();
        let gets = stage.requests("get");
        nothing_new(bucket.get("k").unless_version(&version).call());
        nothing_new(bucket.get("k").range(5..10).unless_version(&version).call());
        nothing_new(bucket.get("k").range(5..).unless_version(&version).call());
        nothing_new(bucket.get("k").last(5).unless_version(&version).call());
        assert_eq!(stage.requests("get") - gets, 4, "each is one request");
        nothing_new(bucket.head("k").unless_version(&version).call());
        let later = SystemTime::now() + Duration::from_secs(60);
        nothing_new(
            bucket.head("k").if_modified_since(SystemTime::UNIX_EPOCH).unless_version(&version).call(),
        );

        stage.object("k", &second);
        let got = bucket.get("k").unless_version(&version).call().unwrap();
        assert_ne!(got.meta().version.as_ref(), Some(&version));
        assert!(got.bytes_blocking().unwrap() == second);
        let end = bucket.get("k").last(5).unless_version(&version).call().unwrap();
        assert!(end.bytes_blocking().unwrap() == second[9 * MIB - 5..]);
        assert_ne!(bucket.head("k").unless_version(&version).call().unwrap().version, Some(version.clone()));
        // The version decides over the time, in either order of the calls.
        bucket.head("k").unless_version(&version).if_modified_since(later).call().unwrap();
        bucket.head("k").if_modified_since(later).unless_version(&version).call().unwrap();
    });
}

#[test]
fn only_what_has_changed_since_is_sent_in_whole_seconds() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        stage.object("k", b"first");
        let bucket = bucket(&stage, "");
        let updated = bucket.head("k").call().unwrap().updated.unwrap();
        let (heads, gets) = (stage.requests("head"), stage.requests("get"));
        for since in [updated, updated + Duration::from_millis(999), updated + Duration::from_secs(3600)] {
            nothing_new(bucket.get("k").if_modified_since(since).call());
            nothing_new(bucket.get("k").last(2).if_modified_since(since).call());
        }
        let asked = (stage.requests("head") - heads, stage.requests("get") - gets);
        assert_eq!(asked, if kind.provider == Provider::Gcs { (6, 0) } else { (0, 6) }, "{kind:?}");
        nothing_new(bucket.head("k").if_modified_since(updated).call());

        let before = updated - Duration::from_secs(1);
        assert_eq!(bucket.head("k").if_modified_since(before).call().unwrap().updated, Some(updated));
        stage.object("k", b"second");
        let got = bucket.get("k").if_modified_since(before).call().unwrap();
        assert_eq!(got.bytes_blocking().unwrap(), "second");
        let got = bucket.get("k").range(1..3).if_modified_since(SystemTime::UNIX_EPOCH).call().unwrap();
        assert_eq!(got.bytes_blocking().unwrap(), "ec");
    });
}

#[test]
fn the_version_of_another_service_is_refused_and_nothing_is_nowhere() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        stage.object("k", b"first");
        let bucket = bucket(&stage, "");
        if kind.provider == Provider::S3 {
            let error = bucket.get("k").unless_version(&Version::Generation(7)).call().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        }
        let version = bucket.head("k").call().unwrap().version.unwrap();
        assert!(stage.server.store().remove("bucket", "k"));
        assert!(bucket.get("k").unless_version(&version).call().unwrap_err().is_not_found());
        assert!(bucket.head("k").if_modified_since(SystemTime::now()).call().unwrap_err().is_not_found());
    });
}

#[test]
fn a_range_is_one_request_and_one_more_for_each_slice_beyond_the_first() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        let (small, large) = (noise(70_000, 1), noise(20 * MIB + 5, 2));
        stage.object("small", &small);
        stage.object("large", &large);
        let bucket = bucket(&stage, "");
        let end = large.len();
        for (key, call, expected, requests) in [
            ("small", bucket.get("small").range(69_000..), 69_000..70_000, 1),
            ("small", bucket.get("small").range(5..1 << 40), 5..70_000, 1),
            ("small", bucket.get("small").last(10), 69_990..70_000, 1),
            ("small", bucket.get("small").last(1 << 20), 0..70_000, 1),
            ("small", bucket.get("small").last(1 << 40), 0..70_000, 1),
            ("large", bucket.get("large").range(0..8 << 20), 0..8 * MIB, 1),
            ("large", bucket.get("large").range(19 << 20..), 19 * MIB..end, 1),
            ("large", bucket.get("large").range(1 << 20..), MIB..end, 3),
            ("large", bucket.get("large").range(7..17 << 20), 7..17 * MIB, 3),
            ("large", bucket.get("large").last(3 << 20), end - 3 * MIB..end, 1),
            ("large", bucket.get("large").last(17 << 20), end - 17 * MIB..end, 3),
        ] {
            let before = stage.requests("get");
            let mut got = call.call().unwrap();
            assert_eq!(got.range(), expected.start as u64..expected.end as u64);
            let whole = if key == "small" { &small } else { &large };
            assert_eq!(got.meta().size, whole.len() as u64);
            let mut bytes = Vec::new();
            while let Some(chunk) = got.chunk_blocking().unwrap() {
                bytes.extend_from_slice(&chunk);
            }
            assert!(bytes == whole[expected.clone()], "{key} {expected:?}");
            assert_eq!(stage.requests("get") - before, requests, "{kind:?} {key} {expected:?}");
        }
        assert_eq!(stage.requests("head"), 0);
    });
}

#[test]
fn all_bytes_at_once_take_two_requests_at_most_on_one_connection() {
    at_once(&DIALECTS, |kind| {
        let engine = Engine::builder().connections_max(1);
        let stage = Stage::set_up_on(engine, kind, Config::default(), |settings| settings);
        let large = noise(40 * MIB + 5, 2);
        stage.object("large", &large);
        let bucket = bucket(&stage, "");
        for (call, start) in [
            (bucket.get("large"), 0),
            (bucket.get("large").range(3..), 3),
            (bucket.get("large").last(33 << 20), large.len() - 33 * MIB),
        ] {
            let before = stage.requests("get");
            assert!(
                call.clone().call().unwrap().bytes_blocking().unwrap() == large[start..],
                "{kind:?} {start}"
            );
            // The caller may ask for all bytes only after the first slice has arrived.
            assert!((1..=2).contains(&(stage.requests("get") - before)), "{kind:?} from {start}");
            let mut begun = call.call().unwrap();
            let first = begun.chunk_blocking().unwrap().unwrap();
            assert!([first, begun.bytes_blocking().unwrap()].concat() == large[start..], "{kind:?} {start}");
        }
    });
}

#[test]
fn all_bytes_at_once_resume_after_a_break_and_are_of_one_version() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::with_faults(kind, &["get:1 truncate@12MiB", "get:3 truncate@12MiB"]);
        let (first, second) = (noise(20 * MIB, 1), noise(20 * MIB, 2));
        stage.object("k", &first);
        let bucket = bucket(&stage, "");
        assert!(bucket.get("k").call().unwrap().bytes_blocking().unwrap() == first);
        let got = bucket.get("k").call().unwrap();
        stage.object("k", &second);
        let error = got.bytes_blocking().unwrap_err();
        assert!(error.is_precondition() || error.is_not_found(), "{kind:?}: {error}");
    });
}

#[test]
fn an_empty_object_has_an_end_and_no_byte() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        stage.object("empty", b"");
        let bucket = bucket(&stage, "");
        for call in [
            bucket.get("empty").last(5),
            bucket.get("empty").last(1 << 40),
            bucket.get("empty").range(0..7),
            bucket.get("empty").range(0..1 << 40),
            bucket.get("empty").range(0..),
        ] {
            let got = call.clone().call().unwrap_or_else(|e| panic!("{kind:?} {call:?}: {e}"));
            assert_eq!((got.meta().size, got.range()), (0, 0..0));
            assert_eq!(got.bytes_blocking().unwrap(), "");
        }
        for call in
            [bucket.get("empty").range(1..), bucket.get("empty").range(1..9), bucket.get("empty").last(0)]
        {
            assert_eq!(call.call().unwrap_err().kind(), ErrorKind::InvalidRange, "{kind:?}");
        }
    });
}

#[test]
fn a_range_behind_the_end_is_the_stores_error_and_one_request() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        stage.object("k", b"0123456789");
        let bucket = bucket(&stage, "");
        let url = format!("{}k", bucket.url());
        for call in
            [bucket.get("k").range(10..), bucket.get("k").range(10..20), bucket.get("k").range(1 << 40..)]
        {
            let error = call.call().unwrap_err();
            assert_eq!((error.kind(), error.status()), (ErrorKind::InvalidRange, Some(416)), "{error}");
            assert!(error.url() == Some(&url) && error.attempts() == 1 && !error.is_retryable(), "{error}");
        }
        assert_eq!((stage.requests("get"), stage.requests("head")), (3, 0));
    });
}

#[test]
fn the_end_of_an_object_that_is_replaced_or_breaks_off_is_never_a_mixture() {
    at_once(&KINDS, |kind| {
        let stage = Stage::with_faults(kind, &["get:1 truncate@300KiB"]);
        let (first, second) = (noise(40 * MIB, 1), noise(40 * MIB, 2));
        stage.object("k", &first);
        let bucket = bucket(&stage, "");
        let got = bucket.get("k").last(39 << 20).call().unwrap();
        assert!(got.bytes_blocking().unwrap() == first[MIB..], "the read resumes where it broke off");
        let mut got = bucket.get("k").last(39 << 20).call().unwrap();
        let begun = got.chunk_blocking().unwrap().unwrap();
        assert!(first[MIB..].starts_with(&begun));
        stage.object("k", &second);
        let error = got.bytes_blocking().unwrap_err();
        assert!(error.is_precondition() || error.is_not_found(), "{error}");
    });
}

#[test]
fn a_suffix_of_the_whole_object_is_verified() {
    let stage = Stage::new(KINDS[0]);
    stage.object("k", b"0123456789");
    let mut got = bucket(&stage, "").get("k").last(1 << 20).call().unwrap();
    while got.chunk_blocking().unwrap().is_some() {}
    assert!(got.verified().is_some_and(|verified| verified != Verified::Unverified));
}
