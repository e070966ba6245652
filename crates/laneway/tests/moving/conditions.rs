//! Preconditions: which ones each store supports, what Laneway reports about them, and concurrent writers.

use std::sync::Arc;

use laneway::{CopyRequest, Location, Outcome};
use laneway_server::{Config, Faults, Habits};

use crate::stage::{BUCKET, DIALECTS, KINDS, MIB, Report, Stage, noise};

fn no_clobber(stage: &Stage, source: Location, key: &str) -> Report {
    stage.copy(CopyRequest::new(vec![source], stage.url(key)).no_clobber(true))
}

/// Uploads a small file, uploads a file in parts, and copies an object, all with `no_clobber`. Each item says
/// if the store itself checks that the destination doesn't exist.
#[test]
fn an_item_says_where_the_check_was_not_atomic() {
    for (name, expected) in [
        ("strict", [true, true, true]),
        // This store calls itself `AmazonS3`, but runs at a host outside Amazon.
        ("s3", [true, false, false]),
        ("minio", [true, true, false]),
        ("r2", [true, false, false]),
        ("b2", [false, false, false]),
        // This store also calls itself `AmazonS3`, and ignores every condition.
        ("sia", [false, false, false]),
        ("gcs-interop", [false, false, false]),
    ] {
        let habits = Habits::named(name).unwrap_or_else(|_| Habits::strict());
        let stage = Stage::with(KINDS[2], Config { habits, ..Config::default() });
        let small = Location::Local(stage.file("small", "mine"));
        let large = Location::Local(stage.file("large", noise(17 * MIB, 1)));
        stage.object("from", b"bytes");
        let seen = [
            no_clobber(&stage, small.clone(), "small"),
            no_clobber(&stage, large.clone(), "large"),
            no_clobber(&stage, stage.url("from"), "to"),
        ]
        .map(|report| {
            report.all_done();
            report.items[0].atomic
        });
        assert_eq!(seen, expected, "{name}");
        assert!(stage.stored("small") == b"mine" && stage.stored("to") == b"bytes");

        for (source, key) in [(small, "small"), (large, "large"), (stage.url("from"), "to")] {
            stage.object(key, b"theirs");
            let report = no_clobber(&stage, source, key);
            let skipped = Outcome::Skipped { why: "the destination exists" };
            assert_eq!(format!("{:?}", report.items[0].outcome), format!("{skipped:?}"), "{name}, {key}");
            assert_eq!(stage.stored(key), b"theirs", "{name}, {key}");
        }
        assert_eq!(stage.server.counters().multipart_open, 0, "{name}");
    }
}

#[test]
fn an_upload_that_meets_another_write_begins_anew() {
    // S3 may report the conflict after it has already sent the status 200.
    for refusal in ["status 409 ConditionalRequestConflict", "error-in-200 ConditionalRequestConflict"] {
        begins_anew(&Stage::with_faults(KINDS[2], &[&format!("complete:1-2 {refusal}")]));
    }
}

fn begins_anew(stage: &Stage) {
    let bytes = noise(20 * MIB, 7);
    let source = Location::Local(stage.file("big", &bytes));
    let request = CopyRequest::new(vec![source], stage.url("big")).no_clobber(true);
    let job = stage.client.copy(request);
    let progress = Arc::clone(job.progress());
    Report::of(job).all_verified();
    let all = bytes.len() as u64;
    assert_eq!((progress.bytes_found(), progress.bytes_done()), (all, all), "each byte counts once");
    assert!(stage.stored("big") == bytes);
    assert_eq!((stage.requests("begin"), stage.requests("complete")), (3, 3));
    assert_eq!(stage.server.counters().multipart_open, 0);
}

#[test]
fn an_upload_in_constant_conflict_fails_and_is_not_skipped() {
    let stage = Stage::with_faults(KINDS[2], &["complete status 409 ConditionalRequestConflict"]);
    let source = Location::Local(stage.file("big", noise(17 * MIB, 7)));
    let report = no_clobber(&stage, source, "big");
    let (class, text) = report.failure();
    assert!(class == "server" && text.contains("ConditionalRequestConflict"), "{class}: {text}");
    assert_eq!((report.summary.failed, report.summary.skipped), (1, 0));
    assert!(stage.keys().is_empty());
    assert_eq!(stage.server.counters().multipart_open, 0);
}

#[test]
fn a_refusal_is_called_existing_only_where_something_exists() {
    for kind in DIALECTS {
        let stage = Stage::with_faults(kind, &["put status 412"]);
        let source = Location::Local(stage.file("small", "mine"));
        let report = no_clobber(&stage, source, "small");
        assert_eq!(report.failure().0, "already_exists", "{kind:?}");
        assert_eq!((report.summary.failed, report.summary.skipped), (1, 0), "{kind:?}");
        assert!(stage.keys().is_empty(), "{kind:?}");
    }
}

#[test]
fn where_it_may_not_be_looked_up_the_stores_word_is_passed_on_as_such() {
    let stage = Stage::with_faults(KINDS[2], &["head status 403", "list status 403"]);
    stage.object("small", b"theirs");
    let source = Location::Local(stage.file("small", "mine"));
    let report = no_clobber(&stage, source, "small");
    let why = "the store says that the destination exists";
    assert!(matches!(report.items[0].outcome, Outcome::Skipped { why: said } if said == why), "{report:?}");
    assert_eq!(stage.stored("small"), b"theirs");
}

#[test]
fn a_move_keeps_a_source_that_was_replaced_meanwhile() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.object("k", b"old");
        stage.server.set_faults(Faults::parse(["delete status 412"]).unwrap());
        let request = CopyRequest::new(vec![stage.url("k")], Location::Local(stage.path("k")));
        std::fs::create_dir_all(stage.path("")).unwrap();
        let report = stage.copy(request.remove_source(true));
        let (class, text) = report.failure();
        assert!(class == "source" && text.contains("replaced meanwhile"), "{kind:?}: {text}");
        assert_eq!(stage.stored("k"), b"old");
    }
}

#[test]
fn a_move_works_whatever_a_store_makes_of_conditional_deletes() {
    for name in Habits::NAMES {
        let habits = Habits::named(name).unwrap();
        let stage = Stage::with(KINDS[2], Config { habits, ..Config::default() });
        stage.object("k", b"bytes");
        let request =
            CopyRequest::new(vec![stage.url("k")], Location::object(stage.kind.provider, BUCKET, "l"));
        stage.copy(request.remove_source(true)).all_done();
        assert_eq!(stage.keys(), ["l"], "{name}");
    }
}

#[test]
fn a_tree_moved_inside_s3_is_removed_in_batches_by_version() {
    let stage = Stage::new(KINDS[2]);
    for i in 0..40 {
        stage.object(&format!("from/{i:02}"), b"bytes");
    }
    let request = CopyRequest::new(vec![stage.url("from/")], stage.url("to/"));
    let report = stage.copy(request.remove_source(true).recursive(true));
    report.all_done();
    assert_eq!(stage.keys().iter().filter(|key| key.starts_with("from/")).count(), 0);
    assert_eq!((stage.keys().len(), stage.requests("copy")), (40, 40));
    let removals = stage.requests("delete") + stage.requests("delete-many");
    assert!(stage.requests("delete-many") > 0 && removals < 40, "{removals}");
}
