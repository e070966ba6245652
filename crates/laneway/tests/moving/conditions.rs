//! Preconditions: which ones each store supports, what Laneway reports about them, and concurrent writers.
//! Without overwriting, Laneway looks for existing destinations before it sends any bytes.

use std::sync::Arc;

use laneway::{CopyRequest, Location, Outcome, Provider};
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

/// Returns the number of requests that would write.
fn writes(stage: &Stage) -> u64 {
    ["put", "begin", "part", "complete", "copy"].iter().map(|verb| stage.requests(verb)).sum()
}

fn copy(stage: &Stage, sources: Vec<Location>, destination: Location, recursive: bool) -> Report {
    stage.copy(CopyRequest::new(sources, destination).no_clobber(true).recursive(recursive))
}

fn local(stage: &Stage, name: &str) -> Location {
    Location::Local(stage.path(name))
}

#[test]
fn a_tree_that_exists_costs_a_listing_and_a_new_one_a_single_page() {
    const FILES: u64 = 1200;
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for i in 0..FILES {
            stage.file(&format!("tree/{}/{i}", i % 3), "mine");
            stage.object(&format!("there/{}/{i}", i % 3), b"old");
        }
        let report = copy(&stage, vec![local(&stage, "tree")], stage.url("there"), true);
        assert_eq!((report.summary.skipped, report.summary.files, report.summary.failed), (FILES, 0, 0));
        assert_eq!((writes(&stage), stage.requests("head")), (0, 0), "{kind:?}");
        // Each of the three walkers may request the first page of its own part.
        assert!(stage.requests("list") <= 5, "{kind:?}: {}", stage.requests("list"));
        assert!(stage.stored("there/0/0") == b"old");

        let listed = stage.requests("list");
        copy(&stage, vec![local(&stage, "tree")], stage.url("new"), true).all_verified();
        assert_eq!((writes(&stage), stage.requests("head")), (FILES, 0), "{kind:?}");
        assert_eq!(stage.requests("list") - listed, 1, "{kind:?}");
    }
}

#[test]
fn a_large_file_that_exists_costs_one_head() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.file("big", noise(38 * MIB, 1));
        stage.object("big", b"old");
        let report = copy(&stage, vec![local(&stage, "big")], stage.url("big"), false);
        assert!(matches!(report.items[0].outcome, Outcome::Skipped { why: "the destination exists" }));
        assert_eq!((stage.requests("head"), stage.requests("list"), writes(&stage)), (1, 0, 0), "{kind:?}");
        assert!(stage.stored("big") == b"old");
    }
}

#[test]
fn named_files_cost_a_page_or_a_head_each_among_many_others() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let sources: Vec<_> =
            (0..40).map(|i| Location::Local(stage.file(&format!("n{i:02}"), "mine"))).collect();
        stage.object("p/n07", b"old");
        let report = copy(&stage, sources, stage.url("p/"), false);
        assert_eq!((report.summary.files, report.summary.skipped), (39, 1), "{kind:?}");
        assert_eq!((stage.requests("list"), stage.requests("head")), (1, 0), "{kind:?}");

        for i in 0..9000 {
            stage.object(&format!("far/{i:04}-other"), b"");
        }
        for i in 0..9 {
            stage.file(&format!("far/{i}500-mine"), "mine");
        }
        stage.object("far/7500-mine", b"old");
        let report = copy(&stage, vec![local(&stage, "far")], stage.url("far"), true);
        assert_eq!((report.summary.files, report.summary.skipped), (8, 1), "{kind:?}");
        assert!(stage.requests("list") <= 1 + 3 && stage.requests("head") <= 9, "{kind:?}");
        assert!(stage.stored("far/7500-mine") == b"old");
    }
}

/// If Laneway may not look up the destination, the write's precondition protects it, as it does against other writers.
#[test]
fn where_nothing_may_be_asked_nothing_is_overwritten_either() {
    for kind in DIALECTS {
        let stage = Stage::with_faults(kind, &["list status 403", "head status 403"]);
        for name in ["a", "b", "c"] {
            stage.file(&format!("tree/{name}"), "mine");
        }
        stage.object("tree/b", b"old");
        let report = copy(&stage, vec![local(&stage, "tree")], stage.url(""), true);
        assert_eq!(
            (report.summary.files, report.summary.skipped, report.summary.failed),
            (2, 1, 0),
            "{report:?}"
        );
        assert!(stage.stored("tree/b") == b"old" && stage.stored("tree/a") == b"mine", "{kind:?}");
    }
}

#[test]
fn copies_between_and_inside_stores_ask_too() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for name in ["a", "b", "c"] {
            stage.object(&format!("from/{name}"), b"mine");
        }
        stage.server.create_bucket("other").unwrap();
        stage.server.store().put("other", "to/b", b"old").unwrap();
        for provider in [Provider::Gcs, Provider::S3] {
            let to = Location::object(provider, "other", "to");
            let before = writes(&stage);
            let report = copy(&stage, vec![stage.url("from")], to, true);
            let new = if provider == Provider::Gcs { 2 } else { 0 };
            assert_eq!(
                (report.summary.files, report.summary.skipped),
                (new, 3 - new),
                "{kind:?} {provider:?}"
            );
            assert_eq!(writes(&stage) - before, new, "{kind:?} {provider:?}");
        }
        assert!(stage.server.store().read("other", "to/b").unwrap() == b"old");
        assert_eq!(stage.requests("head"), 0);
    }
}

/// The objects that match a pattern keep their names. Their copies lie directly below the destination, not below
/// a folder named like the pattern.
#[test]
fn what_a_recursive_pattern_matches_is_asked_for_where_it_goes() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for name in ["ab/x", "ab/y", "ac/x"] {
            stage.object(&format!("from/{name}"), b"mine");
        }
        stage.object("to/ab/x", b"old");
        let report = copy(&stage, vec![stage.url("from/a*")], stage.url("to/"), true);
        assert_eq!((report.summary.files, report.summary.skipped), (2, 1), "{kind:?}: {report:?}");
        assert_eq!(writes(&stage), 2, "{kind:?}");
        assert!(stage.stored("to/ab/x") == b"old" && stage.stored("to/ac/x") == b"mine");
    }
}

#[test]
fn a_dry_run_tells_what_exists() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.file("tree/a", "mine");
        stage.file("tree/b", "mine");
        stage.object("tree/b", b"old");
        let request =
            CopyRequest::new(vec![local(&stage, "tree")], Location::object(kind.provider, BUCKET, ""));
        let report = stage.copy(request.no_clobber(true).recursive(true).dry_run(true));
        assert_eq!((report.summary.files, report.summary.skipped), (1, 1), "{kind:?}");
    }
}
