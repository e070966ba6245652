//! Uploads of single files and streams, and faulty sources.

use std::os::unix::fs::symlink;

use laneway::{CopyRequest, Job, Location, Outcome, Provider, PutOptions, Verified};
use laneway_server::{Config, Faults, GcsConfig};

use crate::stage::{BUCKET, DIALECTS, KINDS, Kind, MIB, Place, Report, Stage, at_once, noise};

const AZURE: Kind = Kind { provider: Provider::Azure, tls: false };

#[test]
fn a_large_file_goes_in_parts_and_is_compared_as_a_whole() {
    for kind in KINDS {
        let stage = Stage::new(kind);
        let bytes = noise(50 * MIB + 12_345, 7);
        let path = stage.file("big", &bytes);
        let report = stage.cp(&path, stage.url("big"));
        report.all_verified();
        assert!(stage.stored("big") == bytes, "{kind:?}");
        let counters = stage.server.counters();
        assert_eq!(counters.requests_by_verb.get("part"), Some(&4), "{kind:?}: {counters:?}");
        assert_eq!((counters.multipart_open, counters.resumable_open), (0, 0));
    }
}

/// The answers to the session's last chunk and to its status query are unreadable. Laneway checks the object instead.
#[test]
fn a_session_whose_end_is_unreadable_is_compared_by_its_object() {
    at_once(&KINDS[..2], |kind| {
        let stage = Stage::with_faults(kind, &["part:3 truncate@10", "status-query truncate@10"]);
        let bytes = noise(40 * MIB, 1);
        let path = stage.file("big", &bytes);
        let request = CopyRequest::new(vec![Location::Local(path)], stage.url("big"));
        stage.copy(request.no_clobber(true)).all_verified();
        assert!(stage.stored("big") == bytes, "{kind:?}");
        let counters = stage.server.counters();
        assert_eq!(counters.requests_by_verb["part"], 3, "{kind:?}: nothing is sent twice");
    });
}

/// A role may allow creating objects but not multipart uploads.
#[test]
fn a_large_file_uses_a_session_where_multipart_is_forbidden() {
    let stage = Stage::with_faults(KINDS[0], &["begin:1 status 403"]);
    let bytes = noise(40 * MIB, 1);
    let path = stage.file("big", &bytes);
    stage.cp(&path, stage.url("big")).all_verified();
    assert!(stage.stored("big") == bytes);
    assert_eq!(stage.requests("begin"), 2);
}

/// The XML API sends an object's metadata in headers only.
#[test]
fn a_large_file_uses_a_session_for_metadata_that_headers_lose() {
    for (name, value, parts_in_order) in
        [("plain", "a  b", false), ("Owner", "me", true), ("city", "Zürich", true), ("padded", " a ", true)]
    {
        let stage = Stage::new(KINDS[0]);
        let bytes = noise(40 * MIB, 1);
        let source = Location::Local(stage.file("big", &bytes));
        let put = PutOptions::default().cache_control("no-store").metadata(name, value);
        stage.copy(CopyRequest::new(vec![source], stage.url("big")).put(put)).all_verified();
        assert!(stage.stored("big") == bytes, "{name}");
        let attributes = stage.server.store().object(BUCKET, "big").unwrap().attributes.clone();
        assert_eq!(attributes.metadata, [(name.to_owned(), value.to_owned())].into());
        assert_eq!(attributes.cache_control.as_deref(), Some("no-store"));
        // Only a multipart upload has a completing request.
        assert_eq!(stage.requests("complete") == 0, parts_in_order, "{name}");
        let counters = stage.server.counters();
        assert_eq!((counters.multipart_open, counters.resumable_open), (0, 0), "{name}");
    }
}

#[test]
fn without_multipart_a_large_file_goes_as_a_resumable_session() {
    let stage = Stage::without_multipart(DIALECTS[0]);
    let bytes = noise(40 * MIB + 1, 3);
    let path = stage.file("big", &bytes);
    for _ in 0..2 {
        stage.cp(&path, stage.url("big")).all_verified();
        assert!(stage.stored("big") == bytes);
    }
    assert_eq!(stage.server.counters().resumable_open, 0);
}

/// A store loses an upload if its server restarts or a lifecycle rule aborts old uploads.
#[test]
fn an_upload_that_the_store_has_lost_begins_anew() {
    let bytes = noise(40 * MIB, 9);
    let case = |kind, has_multipart, rules: &[&str], is_sent| {
        let gcs = GcsConfig { xml: has_multipart, ..GcsConfig::default() };
        let faults = Faults::parse(rules.iter().copied()).unwrap();
        let stage = Stage::with(kind, Config { gcs, faults, ..Config::default() });
        let path = stage.file("big", &bytes);
        let report = stage.cp(&path, stage.url("big"));
        match is_sent {
            true => {
                report.all_verified();
                assert_eq!(report.summary.bytes, bytes.len() as u64, "{kind:?} {rules:?}");
                assert!(stage.stored("big") == bytes, "{kind:?} {rules:?}");
            }
            false => assert!(report.failure().1.contains("not found"), "{kind:?} {report:?}"),
        }
        assert!(stage.requests("begin") >= 2, "{kind:?} {rules:?}");
        let counters = stage.server.counters();
        assert_eq!((counters.multipart_open, counters.resumable_open), (0, 0), "{kind:?} {rules:?}");
    };
    for kind in DIALECTS {
        case(kind, true, &["part:2 status 404 NoSuchUpload"], true);
        case(kind, true, &["complete:1 status 404 NoSuchUpload"], true);
        case(kind, true, &["part status 404 NoSuchUpload"], false);
    }
    for rule in ["part:2 status 404", "part:3 status 410"] {
        case(DIALECTS[0], false, &[rule], true);
    }
    case(DIALECTS[0], false, &["part status 410"], false);
}

/// Uploads `other` as the blob `k`, while the second block of the upload that `begin` begins is stalled. Azure then
/// discards the other blocks of that upload.
fn overtaken(stage: &Stage, begin: impl FnOnce() -> Job, other: &[u8]) -> Report {
    stage.server.set_faults(Faults::parse(["part:2 stall"]).unwrap());
    let job = begin();
    stage.wait_for("part", 3);
    stage.cp(stage.file("other", other), stage.url("k")).all_done();
    assert!(stage.stored("k") == other);
    stage.server.set_faults(Faults::default());
    Report::of(job)
}

#[test]
fn an_upload_whose_blocks_another_writer_discarded_begins_anew() {
    let stage = Stage::new(AZURE);
    let (bytes, other) = (noise(50 * MIB, 1), noise(20 * MIB, 2));
    let path = stage.file("big", &bytes);
    let request = CopyRequest::new(vec![Place::from(&path).0], stage.url("k"));
    let report = overtaken(&stage, || stage.client.copy(request), &other);
    report.all_verified();
    assert!(stage.stored("k") == bytes);
    assert_eq!(stage.requests("complete"), 3);
}

#[test]
fn a_stream_whose_blocks_another_writer_discarded_is_an_error() {
    let stage = Stage::new(AZURE);
    let (bytes, other) = (noise(50 * MIB, 1), noise(20 * MIB, 2));
    let report = stage.piped(&bytes, |fifo| {
        let request = CopyRequest::new(vec![Place::from(fifo).0], stage.url("k"));
        overtaken(&stage, || stage.client.copy(request), &other)
    });
    let (class, text) = report.failure();
    assert!(class == "not_found" && text.contains("another writer has stored the blob"), "{class}: {text}");
    assert!(stage.stored("k") == other);
}

#[test]
fn a_large_upload_that_must_not_replace_anything_does_not() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let bytes = noise(20 * MIB, 3);
        let path = stage.file("big", &bytes);
        let request = || CopyRequest::new(vec![Place::from(&path).0], stage.url("k")).no_clobber(true);
        stage.copy(request()).all_verified();
        stage.object("k", b"theirs");
        let report = stage.copy(request());
        assert_eq!(report.summary.skipped, 1, "{kind:?} {report:?}");
        assert_eq!(stage.stored("k"), b"theirs");
        let counters = stage.server.counters();
        assert_eq!((counters.multipart_open, counters.resumable_open), (0, 0), "{kind:?}");
    }
}

#[test]
fn a_pipe_is_uploaded_whole_whatever_its_length() {
    for kind in DIALECTS {
        for len in [0, 1000, 16 * MIB, 40 * MIB + 17] {
            let stage = Stage::new(kind);
            let bytes = noise(len, len as u64);
            stage.piped(&bytes, |fifo| stage.cp(fifo, stage.url("piped"))).all_verified();
            assert!(stage.stored("piped") == bytes, "{kind:?} {len}");
            assert_eq!(stage.server.counters().multipart_open, 0);
        }
    }
}

#[test]
fn a_pipe_without_multipart_is_a_session_of_any_length() {
    for len in [32 * MIB, 40 * MIB + 17] {
        let stage = Stage::without_multipart(DIALECTS[0]);
        let bytes = noise(len, len as u64);
        stage.piped(&bytes, |fifo| stage.cp(fifo, stage.url("piped"))).all_verified();
        assert!(stage.stored("piped") == bytes, "{len}");
        assert_eq!(stage.server.counters().resumable_open, 0);
    }
}

#[test]
fn content_types_are_guessed_unless_one_is_given() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let path = stage.file("page.html", "<p>");
        stage.cp(&path, stage.url("page.html")).all_verified();
        assert_eq!(
            stage.client.stat(&stage.url("page.html")).unwrap().content_type.as_deref(),
            Some("text/html")
        );
        let put = PutOptions::default().content_type("x/y");
        stage.copy(CopyRequest::new(vec![Place::from(&path).0], stage.url("given")).put(put));
        assert_eq!(stage.client.stat(&stage.url("given")).unwrap().content_type.as_deref(), Some("x/y"));
    }
}

#[test]
fn a_directory_without_the_recursive_flag_is_an_error_of_its_own() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.file("dir/f", "x");
        let file = stage.file("file", "x");
        let sources = vec![Place::from(stage.path("dir")).0, Place::from(&file).0];
        let report = stage.copy(CopyRequest::new(sources, stage.url("p/")));
        assert!(report.failure().1.contains("directory"), "{report:?}");
        assert_eq!(stage.keys(), ["p/file"]);
    }
}

#[test]
fn a_missing_source_is_told_and_the_others_are_done() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let file = stage.file("file", "x");
        let sources = vec![Location::Local(stage.path("absent")), Place::from(&file).0];
        let report = stage.copy(CopyRequest::new(sources, stage.url("p/")));
        let (class, text) = report.failure();
        assert!(class == "local" && text.contains("absent"), "{text}");
        assert_eq!(report.summary.files, 1);
    }
}

#[test]
fn a_file_that_changes_while_its_parts_are_sent_is_not_stored() {
    for kind in DIALECTS {
        // The first part's answer is delayed, so that the file changes before the upload ends.
        let stage = Stage::with_faults(kind, &["part:1 delay 500ms"]);
        let path = stage.file("big", noise(40 * MIB, 1));
        let mut job = stage.client.copy(CopyRequest::new(vec![Place::from(&path).0], stage.url("big")));
        stage.wait_for("part", 1);
        let file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        std::io::Write::write_all(&mut &file, b"more").unwrap();
        let mut failed = None;
        while let Some(event) = job.next_blocking() {
            if let laneway::Event::Item(item) = event {
                failed = Some(item.outcome);
            }
        }
        let Some(Outcome::Failed(error)) = failed else { panic!("{failed:?}") };
        assert!(
            error.kind() == laneway::ErrorKind::Source && error.to_string().contains("changed"),
            "{error}"
        );
        assert!(stage.keys().is_empty());
        assert_eq!(stage.server.counters().multipart_open, 0, "the upload is aborted");
    }
}

#[test]
fn links_to_files_are_uploaded_and_special_files_left_out() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.file("tree/real", "x");
        symlink("real", stage.path("tree/link")).unwrap();
        symlink("nowhere", stage.path("tree/dangling")).unwrap();
        stage.fifo("tree/fifo");
        let report = stage.cp_r(stage.path("tree"), stage.url(""));
        assert_eq!(stage.keys(), ["tree/link", "tree/real"]);
        assert!(report.failure().1.contains("dangling"));
        assert!(report.warnings.iter().any(|w| w.contains("fifo")), "{:?}", report.warnings);
    }
}

#[test]
fn a_move_removes_the_file_once_its_copy_is_verified() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for (name, len) in [("small", 10), ("big", 20 * MIB)] {
            let path = stage.file(name, noise(len, 1));
            let request = CopyRequest::new(vec![Place::from(&path).0], stage.url(name));
            let report = stage.copy(request.remove_source(true));
            report.all_verified();
            assert!(!path.exists() && stage.keys().contains(&name.to_owned()));
        }
    }
}

#[test]
fn a_missing_bucket_is_told_for_each_file() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let path = stage.file("f", "x");
        let report = stage.cp(&path, Location::object(kind.provider, "no-such-bucket", "k"));
        let (class, text) = report.failure();
        assert!(class == "not_found" && text.contains("no-such-bucket"), "{text}");
    }
}

#[test]
fn an_upload_says_what_it_was_compared_by() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let path = stage.file("f", "x");
        let report = stage.cp(&path, stage.url("f"));
        assert!(
            matches!(report.items[0].outcome, Outcome::Done { verified: Verified::Crc32c }),
            "{report:?}"
        );
    }
}

#[test]
fn up_to_16_mib_one_request_suffices_from_files_and_pipes() {
    for kind in DIALECTS {
        for (len, requests) in [(8 * MIB + 1, None), (16 * MIB, None), (16 * MIB + 1, Some(2))] {
            let stage = Stage::new(kind);
            let bytes = noise(len, 5);
            let path = stage.file("file", &bytes);
            stage.cp(&path, stage.url("file")).all_verified();
            stage.piped(&bytes, |fifo| stage.cp(fifo, stage.url("piped"))).all_verified();
            assert!(stage.stored("file") == bytes && stage.stored("piped") == bytes, "{kind:?} {len}");
            let counters = stage.server.counters();
            let parts = counters.requests_by_verb.get("part").copied();
            assert_eq!(parts, requests.map(|parts| 2 * parts), "{kind:?} {len}: {counters:?}");
            let puts = counters.requests_by_verb.get("put").copied();
            assert_eq!(puts, if requests.is_none() { Some(2) } else { None }, "{kind:?} {len}: {counters:?}");
        }
    }
}

#[test]
fn a_stream_is_cut_for_the_size_that_is_expected() {
    let stage = Stage::new(DIALECTS[1]);
    let bytes = noise(70 * MIB, 6);
    // 10,000 parts of 31 MiB.
    let report = stage.piped(&bytes, |fifo| {
        let request = CopyRequest::new(vec![Place::from(fifo).0], stage.url("piped"));
        stage.copy(request.expect_size(300 << 30))
    });
    report.all_verified();
    assert!(stage.stored("piped") == bytes);
    assert_eq!(stage.requests("part"), 3);
}

#[test]
fn a_size_is_expected_only_of_what_goes_into_a_store_and_may_be_as_large() {
    let stage = Stage::new(DIALECTS[0]);
    let path = stage.file("f", "x");
    let up = CopyRequest::new(vec![Place::from(&path).0], stage.url("f"));
    assert!(up.clone().expect_size(5 << 40).check().is_ok());
    let beyond = up.expect_size((5 << 40) + 1);
    assert!(beyond.check().unwrap_err().to_string().contains("maximum size of an object"));
    let down = CopyRequest::new(vec![stage.url("f")], Place::from(&path).0);
    assert!(down.expect_size(1).check().unwrap_err().is_usage());
}

#[test]
fn a_sparse_file_goes_as_zeros_and_that_is_told_once() {
    let stage = Stage::new(DIALECTS[1]);
    for name in ["tree/a", "tree/b"] {
        let path = stage.file(name, "begins");
        std::fs::File::options().write(true).open(path).unwrap().set_len(20 << 20).unwrap();
    }
    let report = stage.cp_r(stage.path("tree"), stage.url("t"));
    report.all_verified();
    assert!(report.warnings[0].contains("is one of 2 sparse files"), "{:?}", report.warnings);
    assert_eq!(report.warnings.len(), 1);
    let stored = stage.stored("t/a");
    assert!(stored.len() == 20 << 20 && stored.starts_with(b"begins") && stored.ends_with(&[0; 1000]));
}
