//! Reads that transfer only a newer version.

use std::time::{Duration, SystemTime};

use laneway::{Error, ErrorKind, Provider, Version};

use super::bucket;
use crate::stage::{DIALECTS, KINDS, MIB, Stage, at_once, noise};

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
