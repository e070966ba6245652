//! Existing destinations stay. Laneway looks for them before it sends any bytes.

use laneway::{CopyRequest, Location, Outcome, Provider};

use crate::stage::{BUCKET, DIALECTS, MIB, Report, Stage, noise};

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
