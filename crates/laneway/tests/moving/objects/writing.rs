//! Writes: in one call, from a file, from a stream, and in small writes.

use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use laneway::{ErrorKind, Payload, Provider, PutOptions, Verified};
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
