//! Jobs whose names come from a file.

use laneway::{CopyRequest, Location, Op, RemoveRequest};

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
        assert!(has("names:1: ", "can't be read") && has("names:2: ", "no file"), "{failures:?}");
        assert!(has("names:4: ", "lead elsewhere"), "{failures:?}");
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
