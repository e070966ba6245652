//! Reading, listing and removing.

use std::io::Read as _;
use std::task::{Context, Waker};
use std::time::Duration;

use futures_util::StreamExt as _;
use laneway::{Error, ErrorKind, Listed, Verified};
use laneway_testkit::random_bytes;

use super::{bucket, wait};
use crate::stage::{DIALECTS, KINDS, MIB, Stage, at_once};

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
        for no_bucket in ["gs://", "file", "-", "az://b"] {
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
