//! Jobs that read names from a file.

use std::time::{Duration, SystemTime};

use laneway::{CopyRequest, Filter, Location, Op, RemoveRequest, SyncRequest};

use crate::stage::{DIALECTS, Report, Stage, names};

fn list(stage: &Stage, text: &str) -> Location {
    Location::Local(stage.file("../names", text))
}

#[test]
fn what_is_named_goes_up_as_it_would_with_its_tree_and_the_rest_stays() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for name in ["a", "b", "c/d", "c/e"] {
            stage.file(&format!("tree/{name}"), name);
        }
        let names = list(&stage, "# some of it\n\na\n  /c/d  \n; no more\n");
        for (destination, expected) in [("p", ["p/a", "p/c/d"]), ("q/", ["q/tree/a", "q/tree/c/d"])] {
            let request = CopyRequest::new(vec![stage.path("tree").as_path().into()], stage.url(destination));
            stage.copy(request.recursive(true).files_from(names.clone())).all_verified();
            let prefix = &destination[..1];
            let keys: Vec<_> = stage.keys().into_iter().filter(|key| key.starts_with(prefix)).collect();
            assert_eq!(keys, expected);
        }
    }
}

#[test]
fn what_is_named_comes_down_and_over_without_a_listing() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for key in ["p/a", "p/b", "p/c/d"] {
            stage.object(key, key.as_bytes());
        }
        let from = |destination: Location| {
            let request = CopyRequest::new(vec![stage.url("p")], destination).recursive(true);
            stage.copy(request.files_from(list(&stage, "a\nc/d\n")))
        };
        from(Location::Local(stage.path("d"))).all_verified();
        assert_eq!(
            (names(&stage.path("d")), names(&stage.path("d/c"))),
            (vec!["a".into(), "c".into()], vec!["d".into()])
        );
        from(stage.url("q")).all_done();
        assert_eq!(stage.stored("q/c/d"), b"p/c/d");
        assert_eq!((stage.requests("list"), stage.keys().len()), (0, 5), "{kind:?}");
    }
}

#[test]
fn a_name_that_is_not_there_is_an_error_of_its_own_with_its_line() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.object("p/a", b"x");
        stage.file("tree/a", "a");
        stage.file("tree/folder/f", "f");
        let names = list(&stage, "nothing\n\na\n");
        let down = CopyRequest::new(vec![stage.url("p")], Location::Local(stage.path("d"))).recursive(true);
        let report = stage.copy(down.files_from(names.clone()));
        let (cause, why) = report.failure();
        assert!(cause == "not_found" && why.contains("names:1: ") && why.contains("p/nothing"), "{why}");
        let over = CopyRequest::new(vec![stage.url("p")], stage.url("q")).recursive(true);
        assert!(stage.copy(over.files_from(names)).failure().1.contains("names:1: "), "{kind:?}");
        let names = list(&stage, "nothing\nfolder\na\n../tree/a\n");
        let up = CopyRequest::new(vec![stage.path("tree").as_path().into()], stage.url("up")).recursive(true);
        let report = stage.copy(up.files_from(names));
        let failures = report.failures();
        let has = |line: &str, why: &str| failures.iter().any(|f| f.contains(line) && f.contains(why));
        assert!(has("names:1: ", "can't be read") && has("names:2: ", "not a file"), "{failures:?}");
        assert!(has("names:4: ", "can't name a file or folder"), "{failures:?}");
        assert_eq!((report.summary.files, report.summary.failed), (1, 3));
    }
}

#[test]
fn names_are_removed_below_a_prefix_or_as_whole_urls_in_full_batches() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        (0..1500).for_each(|i| stage.object(&format!("p/{i}"), b"x"));
        stage.object("kept", b"x");
        let below: String = (0..1000).map(|i| format!("{i}\n")).collect();
        let remove = |request: RemoveRequest| Report::of(stage.client.remove(request));
        let request = RemoveRequest::new(vec![stage.url("p/")]).files_from(list(&stage, &below));
        assert_eq!(remove(request).all_done().ops(Op::Remove), 1000);
        let whole: String = (1000..1500).map(|i| format!("{}\n", stage.url(&format!("p/{i}")))).collect();
        let request = RemoveRequest::new(vec![]).files_from(list(&stage, &(whole + "not-a-url\n")));
        let report = remove(request);
        assert_eq!((report.summary.files, report.summary.failed), (500, 1), "{kind:?}");
        assert!(report.failure().1.contains("names:501: "), "{report:?}");
        assert_eq!(stage.keys(), ["kept"]);
        let batches =
            if kind.provider == laneway::Provider::Gcs { ("batch", 15) } else { ("delete-many", 2) };
        assert_eq!((stage.requests(batches.0), stage.requests("list")), (batches.1, 0), "{kind:?}");
    }
}

#[test]
fn names_that_can_mean_nothing_are_refused_before_anything_is_asked() {
    let stage = Stage::new(DIALECTS[1]);
    stage.file("f", "x");
    let names = || list(&stage, "a\n");
    let copy = |sources: Vec<Location>, recursive: bool| {
        let request = CopyRequest::new(sources, Location::Local(stage.path("d/"))).recursive(recursive);
        stage.copy(request.files_from(names())).failure().0
    };
    assert_eq!(copy(vec![stage.url("p"), stage.url("q")], true), "usage");
    assert_eq!(copy(vec![stage.url("p*")], true), "usage");
    assert_eq!(copy(vec![stage.url("p")], false), "usage");
    let up = CopyRequest::new(vec![stage.path("f").as_path().into()], stage.url("p")).recursive(true);
    assert_eq!(stage.copy(up.files_from(names())).failure().0, "usage");
    assert_eq!(stage.server.counters().requests, 0);
    let request = CopyRequest::new(vec![stage.url("p")], Location::Local(stage.path("d"))).recursive(true);
    let (_, why) = stage.copy(request.files_from(Location::Local(stage.path("none")))).failure();
    assert!(why.contains("none") && why.contains("can't be read"), "{why}");
}

#[test]
fn filters_apply_to_names_from_a_file_in_a_sync_alone() {
    let stage = Stage::new(DIALECTS[0]);
    for name in ["a", "b.tmp"] {
        stage.file(&format!("tree/{name}"), name);
        stage.object(&format!("p/{name}"), b"x");
    }
    let names = || list(&stage, "a\nb.tmp\n");
    let filters = [
        Filter::default().exclude("*.tmp").unwrap(),
        Filter::default().newer(SystemTime::now() + Duration::from_secs(3600)),
    ];
    let before = stage.server.counters().requests;
    for filter in filters {
        let tree = stage.path("tree").as_path().into();
        let copy = CopyRequest::new(vec![tree], stage.url("q")).recursive(true).filter(filter.clone());
        let (class, why) = stage.copy(copy.files_from(names())).failure();
        assert!(class == "usage" && why.contains("can't be combined"), "{why}");
        for targets in [vec![stage.url("p")], vec![]] {
            let remove = RemoveRequest::new(targets).filter(filter.clone()).files_from(names());
            assert_eq!(Report::of(stage.client.remove(remove)).failure().0, "usage");
        }
    }
    assert_eq!(stage.server.counters().requests, before);
    let sync = SyncRequest::new(Location::Local(stage.path("tree")), stage.url("q"));
    let sync = sync.filter(Filter::default().exclude("*.tmp").unwrap()).files_from(names());
    assert_eq!(counts(&Report::of(stage.client.sync(sync))), (1, 0, 0, 0));
    assert_eq!(stage.keys(), ["p/a", "p/b.tmp", "q/a"]);
}

#[test]
fn a_line_that_is_not_the_name_as_it_stands_removes_no_neighbour() {
    let stage = Stage::new(DIALECTS[0]);
    for key in ["p/a", "p/b", "p/ b", "p/c"] {
        stage.object(key, b"x");
    }
    for line in [" b", "/b", "b "] {
        let request = RemoveRequest::new(vec![stage.url("p/")]);
        let request = request.files_from(list(&stage, &format!("# some\n{line}\nc\n")));
        let (cause, why) = Report::of(stage.client.remove(request)).failure();
        assert!(cause == "refused" && why.contains("names:2: "), "{why}");
    }
    assert_eq!(stage.keys().len(), 4);
}

/// Returns the numbers of copied, removed, unchanged and failed items.
fn counts(report: &Report) -> (u64, u64, u64, u64) {
    let summary = &report.summary;
    (summary.files, summary.removed, summary.unchanged, summary.failed)
}

#[test]
fn a_sync_of_names_looks_at_both_sides_of_them_and_lists_neither() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for name in ["b", "a", "d/e", "not-named"] {
            stage.file(&format!("tree/{name}"), name);
        }
        let local = |name: &str| Location::Local(stage.path(name));
        // The names are unsorted, and one of them occurs twice.
        let given = || list(&stage, "b\nd/e\na\n# none\nb\n");
        let sync = |source: Location, destination: Location| {
            let request = SyncRequest::new(source, destination).files_from(given());
            Report::of(stage.client.sync(request))
        };
        for (source, destination) in [
            (local("tree"), stage.url("p")),
            (stage.url("p"), stage.url("q")),
            (stage.url("q"), local("back")),
        ] {
            let report = sync(source.clone(), destination.clone());
            assert_eq!(counts(&report), (3, 0, 0, 0), "{kind:?}: {report:?}");
            let again = sync(source, destination);
            assert_eq!(counts(&again), (0, 0, 3, 0), "{kind:?}: {again:?}");
        }
        assert_eq!(stage.keys(), ["p/a", "p/b", "p/d/e", "q/a", "q/b", "q/d/e"]);
        assert_eq!(names(&stage.path("back")), ["a", "b", "d"]);
        stage.file("tree/a", "a that was changed");
        assert_eq!(counts(&sync(local("tree"), stage.url("p"))), (1, 0, 2, 0), "{kind:?}");
        assert_eq!(stage.stored("p/a"), b"a that was changed");
        assert_eq!(stage.requests("list"), 0, "{kind:?}");
    }
}

#[test]
fn names_that_a_source_lacks_are_errors_or_with_delete_removed() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.file("tree/kept", "x");
        for key in ["p/gone", "p/kept", "p/not-named"] {
            stage.object(key, b"x");
        }
        let request = || {
            let request = SyncRequest::new(Location::Local(stage.path("tree")), stage.url("p"));
            request.files_from(list(&stage, "gone\nnever\nkept\n"))
        };
        let report = Report::of(stage.client.sync(request()));
        let failures = report.failures();
        assert_eq!((failures.len(), report.summary.removed), (2, 0), "{kind:?}: {failures:?}");
        let has = |line: &str| {
            failures.iter().any(|f| f.contains(line) && f.contains("is missing from the source"))
        };
        assert!(has("names:1: ") && has("names:2: "), "{failures:?}");
        let planned = Report::of(stage.client.sync(request().delete(true).dry_run(true)));
        assert_eq!(planned.summary.failed, 0, "{planned:?}");
        assert_eq!(stage.keys().len(), 3);
        let report = Report::of(stage.client.sync(request().delete(true)));
        assert_eq!((report.summary.removed, report.summary.failed), (1, 0), "{kind:?}: {report:?}");
        assert_eq!((stage.keys(), stage.requests("list")), (vec!["p/kept".into(), "p/not-named".into()], 0));
        // If the source is missing or wrong, it contains none of the names.
        std::fs::remove_file(stage.path("tree/kept")).unwrap();
        let (class, why) = Report::of(stage.client.sync(request().delete(true))).failure();
        assert!(class == "refused" && why.contains("--allow-empty"), "{why}");
        let report = Report::of(stage.client.sync(request().delete(true).allow_empty(true)));
        assert_eq!((counts(&report), stage.keys()), ((0, 1, 0, 0), vec!["p/not-named".into()]));
    }
}

#[test]
fn a_name_in_whose_way_another_one_stood_is_copied_after_that_is_gone() {
    let stage = Stage::new(DIALECTS[0]);
    stage.object("p/a/b", b"below");
    stage.object("p/c", b"c");
    stage.file("tree/a", "a file");
    stage.file("tree/c/d", "a folder");
    let request = SyncRequest::new(stage.url("p"), Location::Local(stage.path("tree"))).delete(true);
    let report = Report::of(stage.client.sync(request.files_from(list(&stage, "c\na/b\nc/d\na\n"))));
    assert_eq!(counts(&report), (2, 2, 0, 0), "{report:?}");
    assert_eq!(std::fs::read(stage.path("tree/a/b")).unwrap(), b"below");
    assert_eq!(std::fs::read(stage.path("tree/c")).unwrap(), b"c");
}

/// In the cases below, Laneway copies the source's file, compares it or leaves it alone.
#[test]
fn a_name_that_is_gone_takes_no_file_of_another_case_with_it() {
    for kind in DIALECTS {
        for (ignore_existing, text) in [(false, "kept\nKEPT\ngone\n"), (true, "KEPT\ngone\nkept\n")] {
            let stage = Stage::new(kind);
            stage.object("p/KEPT", b"x");
            stage.file("d/gone", "gone");
            // A hard link under both names imitates a file system that ignores case.
            std::fs::hard_link(stage.file("d/kept", "kept"), stage.path("d/KEPT")).unwrap();
            let request = SyncRequest::new(stage.url("p"), Location::Local(stage.path("d")));
            let request = request.delete(true).ignore_existing(ignore_existing);
            let report = Report::of(stage.client.sync(request.files_from(list(&stage, text))));
            assert_eq!((report.summary.removed, report.summary.failed), (1, 0), "{kind:?}: {report:?}");
            assert_eq!(names(&stage.path("d")), ["KEPT", "kept"]);
        }
    }
}

#[test]
fn a_name_that_leads_out_of_a_folder_is_refused_and_nothing_removed() {
    let stage = Stage::new(DIALECTS[1]);
    stage.file("outside", "theirs");
    stage.file("tree/a", "a");
    stage.object("p/x", b"x");
    let request = SyncRequest::new(stage.url("p"), Location::Local(stage.path("tree"))).delete(true);
    let report = Report::of(stage.client.sync(request.files_from(list(&stage, "../outside\na\nx\n"))));
    let (class, why) = report.failure();
    assert!(
        class == "refused" && why.contains("can't name a file or folder") && why.contains("names:1: "),
        "{why}"
    );
    assert!(report.warnings[0].contains("nothing was removed"), "{report:?}");
    assert!(stage.path("outside").exists() && stage.path("tree/a").exists());
}
