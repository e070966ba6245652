//! Single flipped bits. A checksum detects each flipped bit, and Laneway transfers the affected bytes again.

use laneway::{CopyRequest, Location, Provider, ReadRequest};
use laneway_server::{Config, Faults, GcsConfig};

use crate::stage::{DIALECTS, KINDS, MIB, Stage, at_once, noise};

#[test]
fn small_objects_are_fetched_once_more() {
    for kind in KINDS {
        let stage = Stage::with_faults(kind, &["get:1 corrupt", "get key=t/3 corrupt"]);
        stage.object("k", &noise(5000, 1));
        let report = stage.cp(stage.url("k"), stage.path("k"));
        report.all_verified();
        assert_eq!((report.items[0].attempts, stage.requests("get")), (2, 2), "{kind:?}");
        assert!(std::fs::read(stage.path("k")).unwrap() == noise(5000, 1));

        stage.server.set_faults(Faults::parse(["get:3 corrupt"]).unwrap());
        for i in 0..8 {
            stage.object(&format!("t/{i}"), &noise(1000, i));
        }
        stage.cp_r(stage.url("t"), stage.path("t")).all_verified();
        assert_eq!(stage.requests("get"), 2 + 9, "{kind:?}");
    }
}

/// No store tells which slice is corrupted, so Laneway fetches all slices again.
#[test]
fn a_large_object_is_fetched_once_more() {
    at_once(&KINDS, |kind| {
        let stage = Stage::with_faults(kind, &["get:1 reset@3MiB", "get:2 corrupt"]);
        stage.object("k", &noise(40 * MIB, 1));
        let report = stage.cp(stage.url("k"), stage.path("k"));
        report.all_verified();
        assert!(std::fs::read(stage.path("k")).unwrap() == noise(40 * MIB, 1), "{kind:?}");
        assert!(report.items[0].attempts >= 2, "{kind:?}");
    });
}

#[test]
fn what_is_read_to_a_stream_is_compared_before_it_is_handed_on() {
    for kind in DIALECTS {
        let stage = Stage::with_faults(kind, &["get:1 corrupt"]);
        stage.object("k", &noise(MIB, 1));
        let mut read = Vec::new();
        stage.client.read(&ReadRequest::new(stage.url("k")), &mut read).unwrap();
        assert!(read == noise(MIB, 1), "{kind:?}");

        stage.server.set_faults(Faults::parse(["get:1 corrupt"]).unwrap());
        let fifo = stage.fifo("fifo");
        let mut job =
            stage.client.copy(CopyRequest::new(vec![stage.url("k")], Location::Local(fifo.clone())));
        assert!(std::fs::read(fifo).unwrap() == noise(MIB, 1), "{kind:?}");
        while job.next_blocking().is_some() {}
        let progress = job.progress();
        let counted = (progress.bytes_found(), progress.bytes_done());
        assert_eq!(counted, (MIB as u64, MIB as u64), "{kind:?}");
    }
}

#[test]
fn a_small_file_is_sent_once_more() {
    for kind in KINDS {
        let stage = Stage::with_faults(kind, &["put:1 corrupt"]);
        let path = stage.file("f", noise(5000, 1));
        stage.cp(&path, stage.url("f")).all_verified();
        assert!(stage.stored("f") == noise(5000, 1) && stage.requests("put") == 2, "{kind:?}");
    }
}

#[test]
fn a_bad_part_costs_that_part_only() {
    at_once(&KINDS, |kind| {
        let stage = Stage::with_faults(kind, &["part:2 corrupt"]);
        let path = stage.file("big", noise(50 * MIB, 1));
        stage.cp(&path, stage.url("big")).all_verified();
        assert!(stage.stored("big") == noise(50 * MIB, 1));
        assert_eq!((stage.requests("part"), stage.requests("begin")), (5, 1), "{kind:?}");
    });
}

/// A session's chunks have no checksums of their own. Laneway compares the whole object, removes it and
/// sends it again.
#[test]
fn a_session_with_a_bad_chunk_is_sent_once_more() {
    let gcs = GcsConfig { xml: false, ..GcsConfig::default() };
    let faults = Faults::parse(["part:2 corrupt"]).unwrap();
    let stage = Stage::with(KINDS[0], Config { gcs, faults, ..Config::default() });
    let path = stage.file("big", noise(40 * MIB, 1));
    stage.cp(&path, stage.url("big")).all_verified();
    assert!(stage.stored("big") == noise(40 * MIB, 1));
    assert_eq!(stage.requests("delete"), 1, "the wrong object was removed");
}

/// Otherwise a later run would mistake the wrong object for an existing one.
#[test]
fn a_wrong_object_that_cannot_be_taken_back_is_an_error_and_not_skipped() {
    let faults = Faults::parse(["part:2 corrupt", "delete status 403"]).unwrap();
    let stage = Stage::with(KINDS[0], Config { faults, ..Config::default() });
    let source = Location::Local(stage.file("big", noise(40 * MIB, 1)));
    let request = CopyRequest::new(vec![source], stage.url("big"));
    let report = stage.copy(request.no_clobber(true));
    assert_eq!(report.failure().0, "integrity");
    assert_eq!((report.summary.skipped, stage.requests("begin")), (0, 1));
}

#[test]
fn a_copy_between_stores_reads_once_more() {
    for size in [5000, 40 * MIB] {
        let stage = Stage::with_faults(KINDS[0], &["get:1 corrupt"]);
        stage.object("k", &noise(size, 1));
        stage.server.create_bucket("other").unwrap();
        stage.cp(stage.url("k"), Location::object(Provider::S3, "other", "k")).all_verified();
        assert!(stage.server.store().read("other", "k").unwrap() == noise(size, 1), "{size}");
    }
}
