//! The counters of jobs and calls: their own requests, without those of others.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use futures_util::{StreamExt as _, TryStreamExt as _};
use laneway::{Bucket, CopyRequest, Event, Tally};
use laneway_server::Faults;

use crate::objects::{bucket, wait};
use crate::stage::{DIALECTS, KINDS, Report, Stage, noise};

#[test]
fn two_jobs_at_once_do_not_count_each_others_requests() {
    for kind in &KINDS[..2] {
        // The answer arrives after the other job has begun and ended.
        let stage = Stage::with_faults(*kind, &["put key=up/7 stall@0"]);
        for i in 0..12 {
            stage.file(&format!("tree/{i}"), noise(500, i));
        }
        stage.object("one", &noise(300_000, 77));
        let request = CopyRequest::new(vec![stage.path("tree").as_path().into()], stage.url("up/"));
        let mut upload = stage.client.copy(request.recursive(true));
        for _ in 0..11 {
            assert!(matches!(upload.next_blocking(), Some(Event::Item(_))));
        }
        stage.wait_for("put", 12);
        let before = stage.server.counters().requests;

        let download = stage.cp(stage.url("one"), stage.path("one"));
        let between = stage.server.counters().requests;
        stage.server.set_faults(Faults::default());
        let upload = Report::of(upload).summary;
        let (download, after) = (download.all_verified().summary.clone(), stage.server.counters().requests);

        assert_eq!((upload.files, download.files), (12, 1));
        assert_eq!(download.requests, between - before, "{kind:?}");
        assert_eq!(upload.requests, before + after - between, "{kind:?}");
        assert_eq!((upload.hedges, download.retries), (0, 0));
        assert!(download.network_bytes == 300_000 || download.hedges > 0, "{download:?}");
        assert!(upload.network_bytes < 100_000, "{upload:?}");
        let all = stage.client.counters();
        assert_eq!(upload.requests + download.requests, all.requests);
        assert_eq!(upload.network_bytes + download.network_bytes, all.bytes_sent + all.bytes_received);
        assert_eq!(upload.connections + download.connections, all.connections);
        assert_eq!(upload.handshakes + download.handshakes, all.handshakes);
    }
}

#[test]
fn a_tally_counts_what_each_verb_takes() {
    for kind in KINDS {
        let stage = Stage::new(kind);
        let counted = |verb: &str, call: &dyn Fn(&Bucket)| {
            let (tally, before) = (Tally::default(), stage.server.counters().requests);
            call(&bucket(&stage, "").counted(&tally));
            let asked = stage.server.counters().requests - before;
            assert!(asked > 0, "{verb}");
            assert_eq!((tally.requests(), tally.retries()), (asked, 0), "{kind:?} {verb}");
        };
        counted("put", &|bucket| drop(wait(bucket.put("a", noise(3 << 20, 1)).into_future()).unwrap()));
        counted("writer", &|bucket| {
            let mut writer = bucket.writer("b");
            wait(writer.write(&noise(20 << 20, 2))).unwrap();
            wait(writer.finish()).unwrap();
        });
        counted("get", &|bucket| drop(bucket.get("a").call().unwrap().bytes_blocking().unwrap()));
        counted("get_ranges", &|bucket| {
            drop(bucket.get_ranges("b", [0..7, 90_000..100_000]).call().unwrap())
        });
        counted("open", &|bucket| {
            let reader = bucket.open("b").call().unwrap();
            wait(reader.read_range(5..90)).unwrap();
        });
        counted("list", &|bucket| {
            assert_eq!(wait(bucket.list("").try_collect::<Vec<_>>()).unwrap().len(), 2)
        });
        counted("copy", &|bucket| drop(bucket.copy("a", "c").call().unwrap()));
        counted("delete", &|bucket| bucket.delete("a").call().unwrap());
        counted("delete_many", &|bucket| {
            let keys = futures_util::stream::iter(["c".to_owned()]);
            assert_eq!(wait(bucket.delete_many(keys).count()), 1);
        });
    }
}

#[test]
fn a_retried_call_counts_both_attempts_and_no_other_calls() {
    for kind in DIALECTS {
        let stage = Stage::with_faults(kind, &["get:1 status 500"]);
        stage.object("k", b"five!");
        let (first, second) = (Tally::default(), Tally::default());
        for tally in [&first, &second] {
            bucket(&stage, "").counted(tally).get("k").call().unwrap().bytes_blocking().unwrap();
        }
        assert_eq!((first.requests(), first.retries(), first.throttles()), (2, 1, 0));
        assert_eq!((second.requests(), second.retries(), second.bytes_received()), (1, 0, 5));
        assert_eq!(stage.client.counters().requests, 3);
    }
}

#[test]
fn bytes_that_an_upload_sent_in_vain_count_as_lost_and_not_as_done() {
    for kind in DIALECTS {
        let stage = Stage::with_faults(kind, &["put:1 status 503", "put:2 reset"]);
        let size = 200 << 10;
        let file = stage.file("f", noise(size, 1));
        let whole = Tally::default();
        let client = stage.client.counted(&whole);
        let report = Report::of(client.copy(CopyRequest::new(vec![file.as_path().into()], stage.url("k"))));
        // A reset of a previously idle connection doesn't count as a retry.
        assert!(report.summary.files == 1 && report.summary.retries >= 1, "{kind:?}");
        assert!(whole.bytes_lost() > 0, "{kind:?}");
        // On GCS the body also contains the object's metadata.
        let moved = (whole.bytes_sent() - whole.bytes_lost()) as usize;
        assert!((size..size + 1024).contains(&moved), "{kind:?}: {moved}");
    }
}

#[test]
fn a_call_that_is_dropped_counts_what_was_sent_for_it() {
    for kind in KINDS {
        let stage = Stage::with_faults(kind, &["head delay 60m"]);
        let (dropped, other) = (Tally::default(), Tally::default());
        {
            let mut head = pin!(bucket(&stage, "").counted(&dropped).head("k").into_future());
            assert!(head.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            stage.wait_for("head", 1);
        }
        bucket(&stage, "").counted(&other).put("k", "").call().unwrap();
        assert_eq!(dropped.requests() - dropped.hedges(), 1, "{kind:?}");
        assert_eq!(other.requests(), 1, "{kind:?}");
    }
}

#[test]
fn what_a_part_of_a_tally_counts_counts_in_the_whole() {
    let stage = Stage::new(KINDS[0]);
    let whole = Tally::default();
    let client = stage.client.counted(&whole);
    let file = stage.file("f", b"12345");
    let report = Report::of(client.copy(CopyRequest::new(vec![file.as_path().into()], stage.url("k"))));
    assert_eq!(report.summary.requests, whole.requests());
    client.stat(&stage.url("k")).unwrap();
    assert_eq!(report.summary.requests + 1, whole.requests());
    assert!(whole.bytes_sent() >= 5);
}

#[test]
fn a_watched_tally_reports_the_bytes_of_each_verb_while_they_move() {
    for kind in KINDS {
        let stage = Stage::new(kind);
        let bytes = noise(3 << 20, 1);
        let watched = |verb: &str, call: &dyn Fn(&Bucket)| {
            let reports = Arc::new(Mutex::new(Vec::new()));
            let taken = Arc::clone(&reports);
            let tally = Tally::watched(move |moved| taken.lock().unwrap().push(moved));
            call(&bucket(&stage, "").counted(&tally));
            let reports = reports.lock().unwrap();
            let most = reports.iter().max().copied().unwrap_or_default();
            assert_eq!(most, tally.bytes_sent() + tally.bytes_received(), "{kind:?} {verb}");
            assert!(most >= 3 << 20, "{kind:?} {verb}: {most}");
            assert!((4..3 << 8).contains(&reports.len()), "{kind:?} {verb}: {} reports", reports.len());
        };
        watched("put", &|bucket| drop(bucket.put("a", bytes.clone()).call().unwrap()));
        watched("get", &|bucket| drop(bucket.get("a").call().unwrap().bytes_blocking().unwrap()));
        watched("get_ranges", &|bucket| {
            drop(bucket.get_ranges("a", [0..1 << 20, 1 << 20..3 << 20]).call().unwrap())
        });
        watched("writer", &|bucket| {
            let mut writer = bucket.writer("b");
            wait(writer.write(&noise(20 << 20, 2))).unwrap();
            wait(writer.finish()).unwrap();
        });
    }
}
