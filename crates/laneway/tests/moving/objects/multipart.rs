//! Uploads in which the caller sends and numbers the parts.

use laneway::{Condition, ErrorKind, PutOptions, UploadedPart, Verified};
use laneway_testkit::random_bytes;

use super::bucket;
use crate::stage::{DIALECTS, KINDS, MIB, Stage, at_once};

#[test]
fn parts_in_any_order_from_any_process_become_a_verified_object() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        let bytes = random_bytes(1, 12 * MIB + 5);
        let begun = bucket(&stage, "p/").begin_multipart("k.json").metadata("a", "b").call().unwrap();
        let id = begun.id();
        // Pass only text on, because the parts could be sent by other processes.
        let sent = |number: usize| {
            let upload = bucket(&stage, "p/").multipart("k.json", &id).unwrap();
            let part = bytes.chunks(5 * MIB).nth(number - 1).unwrap().to_vec();
            upload.part(u32::try_from(number).unwrap(), part).call().unwrap().to_string()
        };
        let texts = [sent(3), sent(1), sent(2), sent(1)];
        let parts = texts[..3].iter().map(|text| text.parse::<UploadedPart>().unwrap());
        let parts: Vec<_> = parts.inspect(|part| assert!(part.size() > 0 && part.number() < 4)).collect();
        let written = begun.complete(parts).call().unwrap();
        assert_eq!(written.size, bytes.len() as u64);
        assert_ne!(written.verified, Verified::Unverified);
        assert!(stage.stored("p/k.json") == bytes);
        let meta = bucket(&stage, "p/").head("k.json").call().unwrap();
        assert_eq!((meta.content_type.as_deref(), meta.version), (Some("application/json"), written.version));
        assert_eq!(meta.metadata.unwrap()["a"], "b");
        let over = begun.part(4, "more").call().unwrap_err();
        assert!(over.is_not_found(), "{over}");
    });
}

#[test]
fn an_upload_of_no_parts_is_an_empty_object_and_one_that_is_given_up_none() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        let bucket = bucket(&stage, "");
        let written = bucket.begin_multipart("empty").call().unwrap().complete([]).call().unwrap();
        assert_eq!((written.size, stage.stored("empty").len()), (0, 0));
        let upload = bucket.begin_multipart("k").call().unwrap();
        let part = upload.part(1, "bytes").call().unwrap();
        upload.abort().call().unwrap();
        let gone = upload.complete([part]).call().unwrap_err();
        assert!(gone.is_not_found() && gone.url().is_some_and(|url| url.ends_with("/k")), "{gone}");
        assert!(bucket.head("k").call().is_err_and(|error| error.is_not_found()));
    });
}

#[test]
fn what_no_upload_can_be_made_of_is_an_error_before_anything_is_sent() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        let bucket = bucket(&stage, "");
        let usage = |error: laneway::Error, why: &str| {
            assert!(error.kind() == ErrorKind::Usage && error.to_string().contains(why), "{error}");
        };
        let mut absent = PutOptions::default();
        absent.condition = Condition::Absent;
        usage(bucket.begin_multipart("k").options(absent).call().unwrap_err(), "no preconditions");
        let upload = bucket.begin_multipart("k").call().unwrap();
        let asked = stage.client.counters().requests;
        for number in [0, 10_001] {
            usage(upload.part(number, "x").call().unwrap_err(), "from 1 to 10000");
        }
        for id in ["", "u", "whole:", "odd:u"] {
            usage(bucket.multipart("k", id).unwrap_err(), "is not the id of an upload");
        }
        usage("{}".parse::<UploadedPart>().unwrap_err(), "is not a part");
        assert_eq!(stage.client.counters().requests, asked);
        let part = upload.part(1, "x").call().unwrap();
        usage(upload.complete([part.clone(), part]).call().unwrap_err(), "part 1 is named twice");
    });
}

#[test]
fn a_part_that_was_replaced_elsewhere_is_found_out() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        let upload = bucket(&stage, "").begin_multipart("k").call().unwrap();
        let old = upload.part(1, "old").call().unwrap();
        upload.part(1, "new").call().unwrap();
        let error = upload.complete([old]).call().unwrap_err();
        assert!(!error.is_not_found(), "{error}");
        assert!(bucket(&stage, "").head("k").call().is_err(), "no object of other bytes");
    });
}

#[test]
fn what_a_program_has_left_is_found_and_completed_or_given_up() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        let jobs = bucket(&stage, "jobs/");
        let begun = jobs.begin_multipart("7/a b").call().unwrap();
        let part = begun.part(1, "left").call().unwrap();
        jobs.begin_multipart("7/c").call().unwrap();
        jobs.begin_multipart("8").call().unwrap();
        drop(begun);
        let left = jobs.list_multipart("7/").call().unwrap();
        assert_eq!(left.iter().map(|upload| upload.key()).collect::<Vec<_>>(), ["7/a b", "7/c"]);
        let written = left[0].complete([part]).call().unwrap();
        assert_ne!(
            written.verified,
            Verified::Unverified,
            "what the store makes of checksums is known again"
        );
        left[1].abort().call().unwrap();
        assert!(stage.stored("jobs/7/a b") == b"left");
        let others = bucket(&stage, "").list_multipart("").call().unwrap();
        assert_eq!(others.iter().map(|upload| upload.key()).collect::<Vec<_>>(), ["jobs/8"]);
    });
}
