//! Removals.

use laneway::{CopyRequest, Location, Op, Provider};

use crate::stage::{DIALECTS, KINDS, Stage, at_once};

#[test]
fn everything_under_a_prefix_is_removed_and_nothing_beside_it() {
    for kind in KINDS {
        let stage = Stage::new(kind);
        for i in 0..1500 {
            stage.object(&format!("p/{}/{i}", i % 7), b"x");
        }
        stage.object("p/a b%&<>\"'/ü", b"x");
        stage.object("p/", b"");
        stage.object("pq", b"stays");
        let report = stage.rm(vec![stage.url("p")], true);
        report.all_done();
        assert_eq!(report.ops(Op::Remove), 1502, "{kind:?}");
        assert_eq!(stage.keys(), ["pq"]);
    }
}

#[test]
fn a_tree_is_removed_in_full_batches() {
    for kind in KINDS {
        let stage = Stage::new(kind);
        (0..2000).for_each(|i| stage.object(&format!("p/{i:04}"), b"x"));
        stage.rm(vec![stage.url("p/")], true).all_done();
        let requests = stage.server.counters().requests_by_verb;
        let (verb, batches) = match kind.provider {
            Provider::Gcs => ("batch", 20),
            _ => ("delete-many", 2),
        };
        assert_eq!(
            (requests.get(verb), requests.get("list")),
            (Some(&batches), Some(&2)),
            "{kind:?}: {requests:?}"
        );
    }
}

/// Removals run in parallel. Laneway sends all of them while the first answers are still delayed.
#[test]
fn the_sources_of_a_move_are_removed_at_once() {
    // Over HTTP/2, one connection carries all requests. Over HTTP/1.1, the test would also measure the time
    // to open connections.
    at_once(&[KINDS[1], KINDS[3]], |kind| {
        for (i, to_store) in [false, true].into_iter().enumerate() {
            let stage = Stage::with_faults(kind, &["delete delay 500ms", "copy delay 500ms"]);
            (0..60).for_each(|i| stage.object(&format!("p/{i}"), b"x"));
            let destination =
                if to_store { stage.url("q") } else { Location::Local(stage.path(&format!("d{i}"))) };
            let request = CopyRequest::new(vec![stage.url("p/")], destination);
            let report = stage.copy(request.recursive(true).remove_source(true));
            report.all_done();
            assert_eq!(report.ops(Op::Move), 60);
            let counters = stage.server.counters();
            // Inside S3, one request removes the sources of a whole group of copies. GCS renames each object.
            let verb = if to_store { "copy" } else { "delete" };
            if to_store {
                let asked = |verb| counters.requests_by_verb.get(verb).copied().unwrap_or(0);
                assert!(asked("delete") + asked("delete-many") < 10, "{counters:?}");
            }
            assert_eq!(counters.requests_by_verb[verb], 60);
            assert!(counters.peak_by_verb[verb] >= 30, "{kind:?} {to_store}: {counters:?}");
        }
    });
}

#[test]
fn removing_what_is_not_there_is_an_error() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.object("a", b"x");
        let report = stage.rm(vec![stage.url("absent"), stage.url("a")], false);
        let (class, text) = report.failure();
        assert!(class == "not_found" && text.contains("absent"), "{text}");
        assert!(stage.keys().is_empty());
        assert_eq!(stage.rm(vec![stage.url("none/")], true).failure().0, "not_found");
    }
}

#[test]
fn a_named_key_is_removed_by_who_may_not_read_it() {
    let stage = Stage::with_faults(KINDS[2], &["head status 403", "get status 403"]);
    stage.object("a", b"x");
    stage.rm(vec![stage.url("a")], false).all_done();
    assert!(stage.keys().is_empty());
}

#[test]
fn patterns_remove_what_they_match() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for key in ["a1", "a2", "b", "a/x"] {
            stage.object(key, b"x");
        }
        stage.rm(vec![stage.url("a*")], false).all_done();
        assert_eq!(stage.keys(), ["a/x", "b"]);
        stage.rm(vec![stage.url("[ab]*")], true).all_done();
        assert!(stage.keys().is_empty());
    }
}

#[test]
fn one_key_that_may_not_be_removed_fails_alone() {
    for kind in DIALECTS {
        let stage = Stage::with_faults(kind, &["delete key=p/3 status 403"]);
        for i in 0..6 {
            stage.object(&format!("p/{i}"), b"x");
        }
        let report = stage.rm(vec![stage.url("p/")], true);
        assert_eq!(report.failure().0, "permission", "{kind:?}");
        assert_eq!((report.summary.files, report.summary.failed), (5, 1), "{kind:?}");
        assert_eq!(stage.keys(), ["p/3"]);
    }
}
