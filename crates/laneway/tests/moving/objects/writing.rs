//! Writes: in one call, from a file, from a stream, in small writes, and in parts that the caller sends and
//! numbers.

use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use laneway::{Condition, ErrorKind, Payload, Provider, PutOptions, UploadedPart, Verified};
use laneway_server::Faults;
use laneway_testkit::random_bytes;
use tokio::io::AsyncWriteExt as _;

use super::{bucket, wait};
use crate::stage::{DIALECTS, KINDS, MIB, Stage, at_once};

#[test]
fn bytes_files_and_streams_become_objects_that_are_verified() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        let bucket = bucket(&stage, "p/");
        let (small, large) = (random_bytes(1, 70_000), random_bytes(2, 40 * MIB + 5));
        let (small_file, large_file) = (stage.file("small", &small), stage.file("large", &large));
        let chunks = |bytes: &[u8]| {
            let chunks: Vec<_> = bytes.chunks(3 * MIB + 7).map(|c| Ok(Bytes::copy_from_slice(c))).collect();
            Payload::stream(stream::iter(chunks))
        };
        for (size, payloads) in [
            (0_usize, vec![Payload::from(""), chunks(b"")]),
            (small.len(), vec![small.clone().into(), Payload::file(&small_file), chunks(&small)]),
            (large.len(), vec![large.clone().into(), Payload::file(&large_file), chunks(&large)]),
        ] {
            for (i, payload) in payloads.into_iter().enumerate() {
                let key = format!("{size}/{i}.json");
                let written = wait(bucket.put(&key, payload).metadata("a", "b").into_future()).unwrap();
                assert_eq!((written.size, written.atomic), (size as u64, true), "{key}");
                assert!(written.version.is_some() && written.verified != Verified::Unverified, "{key}");
                let bytes = if size == small.len() { &small } else { &large[..size] };
                assert!(stage.stored(&format!("p/{key}")) == bytes, "{key}");
                let meta = bucket.head(&key).if_version(&written.version.unwrap()).call().unwrap();
                assert_eq!(meta.content_type.as_deref(), Some("application/json"));
                assert_eq!(meta.metadata.unwrap()["a"], "b");
            }
        }
    });
}

#[test]
fn a_write_under_a_condition_replaces_only_what_it_names() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        let bucket = bucket(&stage, "");
        let large = random_bytes(3, 20 * MIB);
        let first = bucket.put("k", "first").if_absent().call().unwrap();
        for payload in [Payload::from("again"), large.clone().into()] {
            let there = bucket.put("k", payload).if_absent().call().unwrap_err();
            assert!(there.is_precondition(), "{there}");
        }
        let second = bucket.put("k", "second").if_version(first.version.as_ref().unwrap()).call().unwrap();
        let stale = bucket.put("k", "third").if_version(first.version.as_ref().unwrap()).call().unwrap_err();
        assert!(stale.is_precondition() && stage.stored("k") == b"second", "{stale}");
        let written =
            bucket.put("k", large.clone()).if_version(second.version.as_ref().unwrap()).call().unwrap();
        assert!(written.atomic && stage.stored("k") == large);
    });
}

#[test]
fn other_bytes_than_the_caller_says_become_no_object() {
    let stage = Stage::new(DIALECTS[1]);
    let bucket = bucket(&stage, "");
    let large = random_bytes(4, 20 * MIB);
    let file = stage.file("large", &large);
    let streamed = Payload::stream(stream::iter([Ok(Bytes::from(large.clone()))]));
    for payload in [Payload::from("small"), large.into(), Payload::file(file), streamed] {
        let wrong = bucket.put("k", payload).crc32c(7).call().unwrap_err();
        assert!(
            wrong.kind() == ErrorKind::Integrity && wrong.to_string().contains("the caller gave"),
            "{wrong}"
        );
    }
    assert!(stage.keys().is_empty());
    bucket.put("k", "123456789").crc32c(0xe306_9283).call().unwrap();
}

#[test]
fn a_writer_finishes_once_and_its_object_is_whole_or_not_at_all() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        let bucket = bucket(&stage, "");
        let bytes = random_bytes(5, 33 * MIB + 1);
        for size in [0, 1000, 16 * MIB, 16 * MIB + 1, 32 * MIB, bytes.len()] {
            let mut writer = bucket.writer("k").content_type("text/x");
            wait(async {
                for chunk in bytes[..size].chunks(MIB - 3) {
                    writer.write_all(chunk).await.unwrap();
                }
                writer.shutdown().await.unwrap();
                let late = writer.write_all(b"more").await.unwrap_err().to_string();
                assert!(late.contains("was finished"), "{late}");
            });
            let written = wait(writer.finish()).unwrap();
            assert_eq!(written.size, size as u64);
            assert!(stage.stored("k") == bytes[..size], "{size}");
            bucket.delete("k").call().unwrap();
        }
    });
}

#[test]
fn what_is_given_up_half_way_leaves_nothing_behind() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        let bucket = bucket(&stage, "");
        let bytes = random_bytes(6, 34 * MIB);
        let mut aborted = bucket.writer("aborted");
        wait(aborted.write(&bytes)).unwrap();
        wait(aborted.abort());
        let mut dropped = bucket.writer("dropped");
        wait(dropped.write(&bytes)).unwrap();
        drop(dropped);
        let late = bucket.put("late", bytes).deadline(Duration::ZERO).call().unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Timeout);
        stage.wait_until("what was begun is taken back", |counters| {
            let of = |verb: &str| counters.requests_by_verb.get(verb).copied().unwrap_or_default();
            of("begin") >= 2 && counters.multipart_open == 0
        });
        assert!(stage.keys().is_empty());
    });
}

#[test]
fn aborting_a_finishing_object_waits_until_its_upload_is_gone() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::with_faults(kind, &["part delay 60m"]);
        let mut writer = bucket(&stage, "").writer("k");
        wait(writer.write(&random_bytes(8, 34 * MIB))).unwrap();
        let mut shutdown = pin!(writer.shutdown());
        assert!(shutdown.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        stage.wait_for("part", 1);
        stage.server.set_faults(Faults::default());
        wait(writer.abort());
        assert_eq!((stage.server.counters().multipart_open, stage.keys().len()), (0, 0), "{kind:?}");
    });
}

#[test]
fn a_writer_that_has_failed_says_so_again_and_can_still_be_given_up() {
    let stage = Stage::with_faults(DIALECTS[1], &["part status 403", "begin:2 status 403"]);
    let bucket = bucket(&stage, "");
    let bytes = random_bytes(7, 17 * MIB);
    let mut writer = bucket.writer("k");
    // Only a few parts may be under way, so a later write waits and sees the failure.
    let failed = (0..40).find_map(|_| wait(writer.write(&bytes)).err());
    assert_eq!(failed.map(|error| error.kind()), Some(ErrorKind::Permission));
    let more = wait(writer.write(b"more")).unwrap_err().to_string();
    assert!(more.contains("takes no more bytes"), "{more}");
    for _ in 0..2 {
        let end = wait(writer.shutdown()).unwrap_err().to_string();
        assert!(end.contains("because an earlier write failed"), "{end}");
    }
    wait(writer.abort());
    let mut writer = bucket.writer("k");
    let failed = wait(writer.write(&bytes)).err();
    let failed = failed.unwrap_or_else(|| wait(writer.finish()).unwrap_err());
    assert_eq!(failed.kind(), ErrorKind::Permission);
    assert!(stage.keys().is_empty());
    assert_eq!(stage.server.counters().multipart_open, 0);
}

#[test]
fn a_change_of_what_was_read_is_two_requests() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        stage.object("state.json", b"1");
        let bucket = bucket(&stage, "");
        wait(async {
            let read = bucket.get("state.json").await?;
            let version = read.meta().version.clone().unwrap();
            let mut bytes = read.bytes().await?.to_vec();
            bytes.push(b'0');
            bucket.put("state.json", bytes).if_version(&version).await
        })
        .unwrap();
        assert_eq!(stage.stored("state.json"), b"10");
        assert_eq!((stage.requests("get"), stage.requests("put"), stage.requests("head")), (1, 1, 0));
    });
}

#[test]
fn what_an_answer_does_not_tell_is_not_said_to_be_nothing() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        let bucket = bucket(&stage, "");
        bucket.put("plain", "x").call().unwrap();
        let options = PutOptions::default().cache_control("no-store");
        bucket.put("described", "x").metadata("author", "me").options(options).call().unwrap();
        let metadata = |author: Option<&str>| {
            Some(author.map(|author| ("author".to_owned(), author.to_owned())).into_iter().collect())
        };
        let (plain, described) =
            (bucket.head("plain").call().unwrap(), bucket.head("described").call().unwrap());
        assert_eq!((plain.metadata, plain.cache_control), (metadata(None), None));
        assert_eq!(
            (described.metadata, described.cache_control.as_deref()),
            (metadata(Some("me")), Some("no-store"))
        );
        let (plain, described) =
            (bucket.get("plain").call().unwrap(), bucket.get("described").call().unwrap());
        let (plain, described) = (plain.meta(), described.meta());
        match kind.provider {
            Provider::Gcs => assert_eq!((&plain.metadata, &described.metadata), (&None, &None)),
            _ => {
                assert_eq!((&plain.metadata, &described.metadata), (&metadata(None), &metadata(Some("me"))));
                assert_eq!(described.cache_control.as_deref(), Some("no-store"));
            }
        }
    });
}

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
