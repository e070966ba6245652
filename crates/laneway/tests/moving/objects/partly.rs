//! Reads of a range in an object of unknown size.

use laneway::{ErrorKind, Verified};

use super::bucket;
use crate::stage::{DIALECTS, KINDS, MIB, Stage, at_once, noise};

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
            let got = call.call().unwrap();
            assert_eq!(got.range(), expected.start as u64..expected.end as u64);
            let whole = if key == "small" { &small } else { &large };
            assert_eq!(got.meta().size, whole.len() as u64);
            assert!(got.bytes_blocking().unwrap() == whole[expected.clone()], "{key} {expected:?}");
            assert_eq!(stage.requests("get") - before, requests, "{kind:?} {key} {expected:?}");
        }
        assert_eq!(stage.requests("head"), 0);
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
