//! Tests of `verify`, which compares listings, and the bytes of local files.

use std::fs;

use laneway::{Filter, Location, Op, Outcome, Verified, VerifyRequest};

use crate::stage::{BUCKET, DIALECTS, KINDS, Report, Stage};

fn verify(stage: &Stage, source: Location, destination: Location) -> Report {
    let request = VerifyRequest::new(source, destination).report(stage.dir.path().join("report"));
    Report::of(stage.client.verify(request))
}

fn rows(stage: &Stage) -> Vec<String> {
    let text = fs::read_to_string(stage.dir.path().join("report")).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn equal_places_are_found_equal_by_listings_alone() {
    for kind in KINDS {
        let stage = Stage::new(kind);
        for i in 0..1200 {
            for prefix in ["p", "q"] {
                stage.object(&format!("{prefix}/{i}"), i.to_string().as_bytes());
            }
        }
        let report = verify(&stage, stage.url("p"), stage.url("q"));
        assert_eq!(report.all_verified().ops(Op::Verify), 1200, "{kind:?}");
        assert_eq!((stage.requests("list"), stage.server.counters().requests), (4, 4));
        let rows = rows(&stage);
        assert!(rows.len() == 1200 && rows.iter().all(|row| row.contains(",succeeded,,200,")), "{}", rows[0]);
        assert!(rows[0].starts_with(&format!("{BUCKET},p/0,")), "{}", rows[0]);
    }
}

#[test]
fn what_differs_is_missing_or_is_extra_is_told_and_reported() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for (key, bytes) in [
            ("p/a b", "same"),
            ("q/a b", "same"),
            ("p/content", "1"),
            ("q/content", "2"),
            ("p/missing", "x"),
            ("p/size", "1"),
            ("q/size", "22"),
            ("q/extra", "x"),
        ] {
            stage.object(key, bytes.as_bytes());
        }
        let report = verify(&stage, stage.url("p"), stage.url("q"));
        assert_eq!((report.summary.files, report.summary.failed), (1, 4), "{report:?}");
        let failures = report.failures().join("\n");
        for part in [
            "q/content: its ",
            "q/missing: the source has it",
            "2 bytes at the destination, and 1 at the source",
            "p/extra: the destination has it",
        ] {
            assert!(failures.contains(part), "{part}: {failures}");
        }
        let rows = rows(&stage);
        let code = |row: &str| row.split(',').nth(4).unwrap_or_default().to_owned();
        let codes: Vec<_> = rows.iter().map(|row| code(row)).collect();
        assert_eq!(
            codes,
            ["", "ChecksumMismatch", "UnexpectedKey", "NoSuchKey", "SizeMismatch"],
            "{rows:#?}"
        );
        assert!(rows[0].starts_with("bucket,p/a%20b,"), "{rows:#?}");
        assert_eq!(stage.requests("head") + stage.requests("get"), 0);
    }
}

#[test]
fn local_files_are_read_and_differ_by_their_bytes() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for (name, bytes) in [("same", "1"), ("other", "1"), ("size", "1")] {
            stage.file(&format!("tree/{name}"), bytes);
        }
        for (name, bytes) in [("same", "1"), ("other", "2"), ("size", "22")] {
            stage.object(&format!("p/{name}"), bytes.as_bytes());
        }
        let tree = || Location::Local(stage.path("tree"));
        for (source, destination) in [(tree(), stage.url("p")), (stage.url("p"), tree())] {
            let report = verify(&stage, source, destination);
            let counts = (report.summary.files, report.summary.failed, report.summary.unverified);
            assert_eq!(counts, (1, 2, 0), "{kind:?}: {report:?}");
            assert!(report.failures().iter().any(|why| why.contains("other: its ")), "{report:?}");
        }
    }
}

#[test]
fn local_files_are_compared_with_each_other() {
    let stage = Stage::new(DIALECTS[0]);
    for (name, bytes) in [("a/same", "1"), ("b/same", "1"), ("a/other", "1"), ("b/other", "2")] {
        stage.file(name, bytes);
    }
    let report = verify(&stage, Location::Local(stage.path("a")), Location::Local(stage.path("b")));
    assert_eq!((report.summary.files, report.summary.failed), (1, 1), "{report:?}");
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_and_no_difference() {
    let stage = Stage::new(DIALECTS[1]);
    let file = stage.file("tree/a", "1");
    stage.file("tree/b", "1");
    stage.object("p/a", b"1");
    stage.object("p/b", b"1");
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    if fs::read(&file).is_ok() {
        return;
    }
    let report = verify(&stage, Location::Local(stage.path("tree")), stage.url("p"));
    assert_eq!((report.summary.files, report.failure().0), (1, "local"), "{report:?}");
    assert!(rows(&stage)[0].contains("Unreadable"), "{:?}", rows(&stage));
}

#[test]
fn files_that_are_not_read_are_compared_by_their_sizes() {
    let stage = Stage::new(DIALECTS[0]);
    stage.file("tree/a", "1");
    stage.file("tree/b", "1");
    stage.object("p/a", b"2");
    stage.object("p/b", b"22");
    stage.object("p/folder/", b"");
    let request = VerifyRequest::new(Location::Local(stage.path("tree")), stage.url("p")).read(false);
    let report = Report::of(stage.client.verify(request.report(stage.dir.path().join("report"))));
    assert_eq!((report.summary.files, report.summary.failed, report.summary.unverified), (1, 1, 1));
    let unverified =
        |item: &laneway::Item| matches!(item.outcome, Outcome::Done { verified: Verified::Unverified });
    assert!(report.items.iter().any(unverified), "{report:?}");
    assert!(rows(&stage)[0].contains("no kind of checksum in common"), "{:?}", rows(&stage));
}

#[test]
fn what_a_filter_excludes_and_what_makes_no_sense_is_not_compared() {
    let stage = Stage::new(DIALECTS[1]);
    stage.object("p/a.tmp", b"1");
    stage.object("p/b", b"1");
    stage.object("q/b", b"1");
    let request = VerifyRequest::new(stage.url("p"), stage.url("q"));
    let filtered = request.filter(Filter::default().exclude("*.tmp").unwrap());
    Report::of(stage.client.verify(filtered)).all_verified();
    for (source, destination) in [
        (stage.url("p"), stage.url("p")),
        (stage.url("p*"), stage.url("q")),
        (Location::Local("/none".into()), stage.url("q")),
    ] {
        assert_eq!(verify(&stage, source, destination).failure().0, "usage");
    }
    let nothing = verify(&stage, stage.url("none"), stage.url("neither"));
    assert!(nothing.warnings[0].contains("is empty"), "{nothing:?}");
}

#[test]
fn a_listing_that_fails_is_an_error_and_no_difference() {
    let stage = Stage::with_faults(DIALECTS[1], &["list:2 status 403"]);
    stage.object("p/a", b"1");
    let report = verify(&stage, stage.url("p"), stage.url("q"));
    assert_eq!((report.failure().0, report.summary.search_cut), ("permission", true), "{report:?}");
    let report = stage.dir.path().join("report");
    assert!(!report.exists() && report.with_file_name("report.unfinished").exists(), "an incomplete report");
}

#[test]
fn a_file_whose_name_can_be_no_key_is_a_difference_on_either_side() {
    use std::os::unix::ffi::OsStrExt as _;
    let stage = Stage::new(DIALECTS[0]);
    stage.object("p/a", b"1");
    let file = stage.file("tree/a", "1");
    fs::write(file.with_file_name(std::ffi::OsStr::from_bytes(b"\xff")), "x").unwrap();
    let tree = || Location::Local(stage.path("tree"));
    for (source, destination) in [(tree(), stage.url("p")), (stage.url("p"), tree())] {
        let report = verify(&stage, source, destination);
        assert_eq!((report.summary.files, report.summary.failed), (1, 1), "{report:?}");
    }
}
