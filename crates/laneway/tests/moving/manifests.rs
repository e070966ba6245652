//! Jobs that write manifests and resume by them.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

use laneway::{CopyRequest, Location, Op, Outcome, Provider, RemoveRequest, SyncRequest};
use laneway_server::Faults;
use serde_json::Value;

use crate::stage::{DIALECTS, KINDS, Place, Report, Stage};

/// Copies a tree or a single item with a manifest.
fn copy(stage: &Stage, source: impl Into<Place>, destination: impl Into<Place>, recursive: bool) -> Report {
    let request = CopyRequest::new(vec![source.into().0], destination.into().0);
    stage.copy(request.recursive(recursive).manifest(manifest(stage)))
}

/// Returns the manifest's path.
fn manifest(stage: &Stage) -> PathBuf {
    stage.dir.path().join("manifest")
}

/// Returns the manifest's lines.
fn lines(stage: &Stage) -> Vec<Value> {
    let text = fs::read_to_string(manifest(stage)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ends(report: &Report) -> (u64, u64, u64) {
    (report.summary.files, report.summary.skipped, report.summary.failed)
}

#[test]
fn a_tree_that_is_done_goes_up_no_more_and_what_changed_does() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for name in ["a", "b", "c/d"] {
            stage.file(&format!("tree/{name}"), name);
        }
        let up = || copy(&stage, stage.path("tree"), stage.url("p"), true);
        up().all_verified();
        let written = lines(&stage);
        assert_eq!(written[0]["kind"], "manifest");
        let a = written.iter().find(|line| line["key"] == "p/a").unwrap();
        assert_eq!((&a["op"], &a["size"], &a["attempts"]), (&"upload".into(), &1.into(), &1.into()));
        let version = if kind.provider == Provider::Gcs { "generation" } else { "etag" };
        assert!(a[version].is_string() && a["checksum"].as_str().unwrap().starts_with("crc32c="), "{a}");
        assert!(a["seconds"].as_f64().unwrap() > 0.0 && a["outcome"] == "done", "{a}");

        let requests = stage.server.counters().requests;
        assert_eq!(ends(&up()), (0, 3, 0));
        assert_eq!(stage.server.counters().requests, requests, "completed items cost no request");
        stage.file("tree/b", "another");
        assert_eq!(ends(&up()), (1, 2, 0));
        assert_eq!(stage.stored("p/b"), b"another");
    }
}

#[test]
fn what_came_down_is_left_alone_while_source_and_file_are_as_they_were() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for name in ["a", "b", "c"] {
            stage.object(&format!("p/{name}"), name.as_bytes());
        }
        let down = || copy(&stage, stage.url("p"), stage.path("d"), true);
        down().all_verified();
        let requests = stage.server.counters().requests;
        assert_eq!(ends(&down()), (0, 3, 0));
        assert_eq!(stage.server.counters().requests, requests + 1, "one listing");
        // The folder created by the first run doesn't change the meaning of the same request.
        assert!(stage.path("d/a").is_file() && !stage.path("d/p").exists());
        stage.object("p/a", b"z");
        fs::remove_file(stage.path("d/b")).unwrap();
        fs::write(stage.path("d/c"), "longer").unwrap();
        assert_eq!(ends(&down()), (3, 0, 0));
        assert_eq!(fs::read(stage.path("d/a")).unwrap(), b"z");
        assert_eq!(fs::read(stage.path("d/c")).unwrap(), b"c");
    }
}

#[test]
fn what_was_named_is_looked_at_by_one_request_before_it_is_left_alone() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.object("a", b"bytes");
        for (i, destination) in [Location::Local(stage.path("f")), stage.url("b")].into_iter().enumerate() {
            let _ = fs::remove_file(manifest(&stage));
            let once = || copy(&stage, stage.url("a"), destination.clone(), false);
            once().all_done();
            let requests = stage.server.counters().requests;
            assert_eq!(ends(&once()), (0, 1, 0), "{kind:?} {i}");
            assert_eq!(stage.server.counters().requests, requests + 1);
            stage.object("a", format!("changed {i}").as_bytes());
            assert_eq!(ends(&once()), (1, 0, 0), "{kind:?} {i}");
        }
    }
}

#[test]
fn named_sources_are_looked_up_in_parallel_and_done_in_order() {
    // Over HTTP/2 all requests go out at once on one connection.
    let stage = Stage::new(KINDS[1]);
    let keys: Vec<String> = (0..40).map(|i| format!("s/{i:02}")).collect();
    keys.iter().for_each(|key| stage.object(key, key.as_bytes()));
    stage.server.set_faults(Faults::parse(["head delay 200ms"]).unwrap());
    let peak = || stage.server.counters().peak_by_verb.get("head").copied().unwrap_or(0);
    let sources = || keys.iter().map(|key| stage.url(key)).collect::<Vec<_>>();
    let over = || {
        let request = CopyRequest::new(sources(), stage.url("d/")).manifest(manifest(&stage));
        stage.copy(request)
    };
    assert_eq!(ends(&over()), (40, 0, 0));
    assert!(peak() >= 10, "{:?}", stage.server.counters());
    let again = over();
    assert_eq!(ends(&again), (0, 40, 0));
    let named: Vec<_> = keys.iter().map(|key| stage.url(key).to_string()).collect();
    assert_eq!(again.items.iter().map(|item| item.source.clone()).collect::<Vec<_>>(), named);
}

#[test]
fn copies_inside_a_store_and_between_stores_are_left_alone_once_done() {
    for kind in DIALECTS {
        let other = if kind.provider == Provider::Gcs { DIALECTS[1] } else { DIALECTS[0] };
        for to in [kind, other] {
            let stage = Stage::new(kind);
            (0..5).for_each(|i| stage.object(&format!("p/{i}"), b"x"));
            let destination = Location::object(to.provider, crate::stage::BUCKET, "q");
            let over = || copy(&stage, stage.url("p"), destination.clone(), true);
            assert_eq!(ends(&over()), (5, 0, 0));
            assert_eq!(ends(&over()), (0, 5, 0), "{kind:?} {to:?}");
        }
    }
}

#[test]
fn attempts_are_those_that_an_item_took() {
    for kind in DIALECTS {
        let stage = Stage::with_faults(kind, &["get:1 key=p/b status 503"]);
        for name in ["a", "b"] {
            stage.object(&format!("p/{name}"), name.as_bytes());
        }
        copy(&stage, stage.url("p"), stage.path("d"), true).all_verified();
        let attempts = |key: &str| {
            let written = lines(&stage);
            written.iter().find(|line| line["key"] == key).unwrap()["attempts"].as_u64()
        };
        assert_eq!((attempts("p/a"), attempts("p/b")), (Some(1), Some(2)), "{kind:?}");
    }
}

#[test]
fn a_failure_is_recorded_with_its_cause_and_tried_again() {
    let stage = Stage::new(DIALECTS[1]);
    let once = || copy(&stage, stage.url("none"), stage.path("f"), false);
    assert_eq!(once().failure().0, "not_found");
    let line = &lines(&stage)[1];
    assert_eq!((&line["outcome"], &line["class"]), (&"failed".into(), &"not_found".into()));
    assert!(line["error"].as_str().unwrap().contains("s3://bucket/none"), "{line}");
    stage.object("none", b"x");
    once().all_done();
}

#[test]
fn a_torn_last_line_is_told_and_counts_as_not_written() {
    let stage = Stage::new(DIALECTS[0]);
    for name in ["a", "b"] {
        stage.file(&format!("tree/{name}"), name);
    }
    let up = || copy(&stage, stage.path("tree"), stage.url("p"), true);
    up().all_done();
    let whole = fs::read(manifest(&stage)).unwrap();
    fs::write(manifest(&stage), &whole[..whole.len() - 20]).unwrap();
    let report = up();
    assert_eq!(ends(&report), (1, 1, 0));
    assert!(report.warnings.iter().any(|w| w.contains("line 3 is incomplete")), "{:?}", report.warnings);
    assert_eq!((lines(&stage).len(), ends(&up())), (4, (0, 2, 0)));
    // The job was killed in the middle of the first line.
    fs::write(manifest(&stage), &whole[..10]).unwrap();
    assert_eq!(ends(&up()), (2, 0, 0));
    assert_eq!(lines(&stage)[0]["kind"], "manifest");
}

#[test]
fn a_foreign_or_broken_manifest_is_refused_with_its_line() {
    let stage = Stage::new(DIALECTS[1]);
    stage.file("tree/a", "a");
    copy(&stage, stage.path("tree"), stage.url("p"), true).all_done();
    let requests = stage.server.counters().requests;
    let (kind, why) = copy(&stage, stage.path("tree"), stage.url("q"), true).failure();
    assert!(kind == "refused" && why.contains("manifest:1") && why.contains("another job"), "{why}");
    let moving = CopyRequest::new(vec![stage.path("tree").as_path().into()], stage.url("p")).recursive(true);
    let report = stage.copy(moving.remove_source(true).manifest(manifest(&stage)));
    assert!(report.failure().1.contains("another job: copy"), "{report:?}");
    let whole = fs::read_to_string(manifest(&stage)).unwrap();
    fs::write(manifest(&stage), whole.replacen("\"op\"", "\"op", 1) + &whole).unwrap();
    let (_, why) = copy(&stage, stage.path("tree"), stage.url("p"), true).failure();
    assert!(why.contains("manifest:2") && why.contains("broken"), "{why}");
    for text in ["what I care about", "a table\nof mine\n"] {
        fs::write(manifest(&stage), text).unwrap();
        let (_, why) = copy(&stage, stage.path("tree"), stage.url("p"), true).failure();
        assert!(why.contains("not a manifest"), "{why}");
        assert_eq!(fs::read_to_string(manifest(&stage)).unwrap(), text, "the manifest is unchanged");
    }
    assert_eq!(stage.server.counters().requests, requests, "nothing was asked for");
}

#[test]
fn a_manifest_of_the_same_job_at_another_endpoint_is_refused() {
    for kind in DIALECTS {
        let (here, there) = (Stage::new(kind), Stage::new(kind));
        let over = |stage: &Stage| {
            let request = CopyRequest::new(vec![here.path("tree").as_path().into()], stage.url("p"));
            stage.copy(request.recursive(true).manifest(manifest(&here)))
        };
        here.file("tree/a", "a");
        over(&here).all_done();
        let (cause, why) = over(&there).failure();
        let at = here.server.url();
        assert!(
            cause == "refused" && why.contains("manifest:1") && why.contains("at other endpoints"),
            "{why}"
        );
        assert!(why.contains(at.trim_end_matches('/')), "{why} names {at}");
        assert_eq!(ends(&over(&here)), (0, 1, 0));
        assert_eq!(there.server.counters().requests, 0);
    }
}

#[test]
fn commands_with_a_shared_manifest_know_only_their_own_items() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.file("f", "x");
        stage.object("p/a", b"y");
        let dir = stage.path("d");
        let run = || {
            let (run, warning) = stage.client.run_manifest(manifest(&stage)).unwrap();
            assert!(warning.is_none(), "{warning:?}");
            let copy = |number: u64, source: Location, to: Location, recursive| {
                let command = run.command(number, format!("cp {source} {to}").as_bytes());
                let request = CopyRequest::new(vec![source], to).recursive(recursive);
                let report = stage.copy(request.manifest(command.clone()));
                command.ended(report.summary.failed == 0, std::time::Duration::ZERO).unwrap();
                assert_eq!(command.has_done_something(), report.summary.files > 0);
                (command.was_done(), report.summary.files, report.summary.skipped)
            };
            let file = || Location::Local(stage.path("f"));
            let ends = [
                copy(1, file(), stage.url("one"), false),
                copy(2, file(), stage.url("two"), false),
                copy(3, stage.url("p"), Location::Local(dir.clone()), true),
            ];
            run.close().unwrap();
            ends
        };
        assert_eq!(run(), [(false, 1, 0); 3]);
        let requests = stage.server.counters().requests;
        assert_eq!(run(), [(true, 0, 1); 3]);
        // The folder created by the first run doesn't change the meaning of the same line.
        assert!(dir.join("a").is_file() && !dir.join("p").exists());
        assert_eq!(stage.server.counters().requests, requests + 1, "one listing");
        stage.file("f", "another");
        stage.object("p/a", b"another");
        assert_eq!(run(), [(true, 1, 0); 3]);
        assert_eq!(
            (stage.stored("two"), fs::read(dir.join("a")).unwrap()),
            (b"another".to_vec(), b"another".to_vec())
        );
    }
}

#[test]
fn a_manifest_of_commands_is_refused_by_the_line_that_is_broken() {
    let stage = Stage::new(DIALECTS[0]);
    stage.file("f", "x");
    let open = || stage.client.run_manifest(manifest(&stage));
    let (run, _) = open().unwrap();
    assert!(open().unwrap_err().to_string().contains("another job is writing"));
    let command = run.command(7, b"cp f gs://bucket/f");
    let request = CopyRequest::new(vec![Location::Local(stage.path("f"))], stage.url("f"));
    stage.copy(request.manifest(command.clone())).all_done();
    command.ended(true, std::time::Duration::ZERO).unwrap();
    run.close().unwrap();
    let whole = fs::read_to_string(manifest(&stage)).unwrap();
    let kinds: Vec<_> = lines(&stage).iter().map(|line| line["kind"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["manifest", "command", "item", "command"], "{whole}");
    let refused = |text: &str| {
        fs::write(manifest(&stage), text).unwrap();
        let why = stage.client.run_manifest(manifest(&stage)).unwrap_err().to_string();
        assert_eq!(fs::read_to_string(manifest(&stage)).unwrap(), text, "the manifest is unchanged");
        why
    };
    for (text, at, why) in [
        (whole.replacen("\"number\":7", "\"number\":", 1), 2, "broken"),
        (whole.replacen("\"command\":7", "\"command\":8", 1), 3, "no earlier line begins"),
        (whole.clone() + "\n", 5, "broken"),
        ("a table\n".to_owned(), 1, "not a manifest"),
        (whole.replacen("\"run\"", "\"copy\"", 1), 1, "another job"),
    ] {
        let said = refused(&text);
        assert!(said.contains(&format!("manifest:{at}: ")) && said.contains(why), "{at} {why}: {said}");
        assert!(said.contains("nothing was done"), "{said}");
    }
    // An incomplete last line is not a command.
    fs::write(manifest(&stage), &whole[..whole.len() - 5]).unwrap();
    let (run, warning) = open().unwrap();
    assert!(warning.unwrap().to_string().contains("line 4 is incomplete"));
    assert!(!run.command(7, b"cp f gs://bucket/f").was_done());
}

#[test]
fn a_manifest_that_another_job_is_writing_is_refused() {
    let stage = Stage::new(DIALECTS[0]);
    stage.file("tree/a", "a");
    fs::write(manifest(&stage), "").unwrap();
    let held = OpenOptions::new().append(true).open(manifest(&stage)).unwrap();
    held.lock().unwrap();
    let (_, why) = copy(&stage, stage.path("tree"), stage.url("p"), true).failure();
    assert!(why.contains("another job is writing"), "{why}");
    drop(held);
    copy(&stage, stage.path("tree"), stage.url("p"), true).all_done();
}

#[test]
fn what_was_moved_or_removed_before_is_no_failure() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        (0..4).for_each(|i| stage.object(&i.to_string(), b"x"));
        let manifest = |name: &str| stage.dir.path().join(name);
        let targets: Vec<_> = (0..2).map(|i| stage.url(&i.to_string())).collect();
        let rm =
            || Report::of(stage.client.remove(RemoveRequest::new(targets.clone()).manifest(manifest("rm"))));
        fs::create_dir_all(stage.path("d")).unwrap();
        rm().all_done();
        assert_eq!(ends(&rm()), (0, 2, 0), "{kind:?}");
        // A new object under a removed name is removed again.
        stage.object("0", b"x");
        assert_eq!(ends(&rm()), (1, 1, 0));
        let sources: Vec<_> = (2..4).map(|i| stage.url(&i.to_string())).collect();
        let to = Location::Local(stage.path("d/"));
        let mv = || {
            let request = CopyRequest::new(sources.clone(), to.clone()).remove_source(true);
            stage.copy(request.manifest(manifest("mv")))
        };
        assert_eq!(mv().all_done().ops(Op::Move), 2);
        assert_eq!(ends(&mv()), (0, 2, 0), "{kind:?}");
        assert_eq!(stage.keys(), Vec::<String>::new());
    }
}

#[test]
fn all_of_a_place_that_was_moved_or_removed_before_is_no_failure() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let fill = || {
            ["p/a", "p/q/b", "r/a", "a.log", "b.log"].iter().for_each(|key| stage.object(key, b"x"));
            ["d/a.log", "e/f/a"].iter().for_each(|name| drop(stage.file(name, "x")));
        };
        fill();
        let gone: [(&str, Location, bool, bool); 6] = [
            ("rm-r", stage.url("p/"), true, false),
            ("mv-r", stage.url("r/"), true, true),
            ("rm-pattern", stage.url("a*.log"), false, false),
            ("mv-pattern", stage.url("b*.log"), false, true),
            ("mv-files", stage.path("d/*.log").as_path().into(), false, true),
            ("mv-tree", stage.path("e/f/*").as_path().into(), true, true),
        ];
        let take = |manifest: laneway::Manifest,
                    (_, from, recursive, is_move): &(&str, Location, bool, bool)| {
            let from = vec![from.clone()];
            if !is_move {
                let request = RemoveRequest::new(from).recursive(*recursive).manifest(manifest);
                return Report::of(stage.client.remove(request));
            }
            let to = if from[0].is_object() { Location::Local(stage.path("to/")) } else { stage.url("to/") };
            stage
                .copy(CopyRequest::new(from, to).recursive(*recursive).remove_source(true).manifest(manifest))
        };
        fs::create_dir_all(stage.path("to")).unwrap();
        for place in &gone {
            let own = || laneway::Manifest::from(stage.path(place.0));
            let missing = take(stage.path("none").into(), &(place.0, nothing(&place.1), place.2, place.3));
            fs::remove_file(stage.path("none")).unwrap();
            assert_eq!(missing.summary.failed, 1, "{kind:?} {missing:?}");
            take(own(), place).all_done();
            let again = take(own(), place);
            assert_eq!(ends(&again), (0, 1, 0), "{kind:?} {again:?}");
        }
        fill();
        let run = || {
            let (run, _) = stage.client.run_manifest(manifest(&stage)).unwrap();
            let were_done = gone.iter().zip(1..).map(|(place, number)| {
                let command = run.command(number, place.0.as_bytes());
                let report = take(command.clone().into(), place);
                command.ended(report.summary.failed == 0, std::time::Duration::ZERO).unwrap();
                (command.was_done(), command.was_done(), report.summary.failed)
            });
            let were_done: Vec<_> = were_done.collect();
            run.close().unwrap();
            were_done
        };
        assert_eq!(run(), [(false, false, 0); 6], "{kind:?}");
        assert_eq!(run(), [(true, true, 0); 6], "{kind:?}");
        assert_eq!(run(), [(true, true, 0); 6], "{kind:?}");
    }
}

/// Returns a similar location at which nothing has ever existed.
fn nothing(place: &Location) -> Location {
    let text = place.to_string();
    let (folder, name) = text.trim_end_matches('/').rsplit_once('/').unwrap();
    let slash = if text.ends_with('/') { "/" } else { "" };
    format!("{folder}/none-{name}{slash}").parse().unwrap()
}

#[test]
fn what_is_written_to_a_manifest_of_commands_that_was_closed_is_an_error() {
    let stage = Stage::new(DIALECTS[0]);
    stage.file("f", "x");
    let (run, _) = stage.client.run_manifest(manifest(&stage)).unwrap();
    let command = run.command(1, b"cp f gs://bucket/f");
    run.clone().close().unwrap();
    let request = CopyRequest::new(vec![Location::Local(stage.path("f"))], stage.url("f"));
    let (_, why) = stage.copy(request.manifest(command.clone())).failure();
    assert!(why.contains("can't be written") && why.contains("the manifest is closed"), "{why}");
    let why = command.ended(true, std::time::Duration::ZERO).unwrap_err().to_string();
    assert!(why.contains("manifest") && why.contains("the manifest is closed"), "{why}");
    run.close().expect("a second close succeeds");
    assert_eq!(lines(&stage).len(), 1);
}

#[test]
fn a_dry_run_goes_by_a_manifest_and_writes_none() {
    let stage = Stage::new(DIALECTS[0]);
    stage.file("tree/a", "a");
    let up = |dry| {
        let request = CopyRequest::new(vec![stage.path("tree").as_path().into()], stage.url("p"));
        stage.copy(request.recursive(true).dry_run(dry).manifest(manifest(&stage)))
    };
    assert!(matches!(up(true).items[0].outcome, Outcome::Planned) && !manifest(&stage).exists());
    up(false).all_done();
    let before = fs::read(manifest(&stage)).unwrap();
    assert_eq!(ends(&up(true)), (0, 1, 0));
    assert_eq!(fs::read(manifest(&stage)).unwrap(), before);
}

#[test]
fn a_sync_by_checksum_asks_no_more_for_what_its_manifest_knows() {
    let stage = Stage::new(DIALECTS[1]);
    (0..5).for_each(|i| drop(stage.file(&format!("tree/{i}"), "x")));
    let sync = || {
        let request = SyncRequest::new(stage.path("tree").as_path().into(), stage.url("p"));
        Report::of(stage.client.sync(request.checksum(true).manifest(manifest(&stage))))
    };
    assert_eq!(ends(&sync()), (5, 0, 0));
    let heads = stage.requests("head");
    let report = sync();
    assert_eq!((report.summary.unchanged, report.summary.asked, stage.requests("head")), (5, 0, heads));
    // One object that the first run wrote was replaced, and another one removed.
    stage.object("p/0", b"y");
    assert!(stage.server.store().remove(crate::stage::BUCKET, "p/1"));
    let report = sync();
    assert_eq!((report.summary.files, report.summary.unchanged), (2, 3), "{report:?}");
    assert_eq!(stage.stored("p/0"), b"x");
}

#[test]
fn what_else_stands_at_the_end_of_a_manifest_is_kept() {
    let stage = Stage::new(DIALECTS[0]);
    stage.file("tree/a", "a");
    copy(&stage, stage.path("tree"), stage.url("p"), true).all_done();
    let mut file = OpenOptions::new().append(true).open(manifest(&stage)).unwrap();
    file.write_all(b"\n").unwrap();
    let (_, why) = copy(&stage, stage.path("tree"), stage.url("p"), true).failure();
    assert!(why.contains("manifest:3"), "an empty line is an error: {why}");
}

#[test]
fn the_same_job_with_other_settings_of_what_it_makes_is_another_one() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.file("tree/a", "a");
        let up = |put: laneway::PutOptions, preserve: bool| {
            let request = CopyRequest::new(vec![stage.path("tree").as_path().into()], stage.url("p/"));
            let request = request.recursive(true).put(put).preserve(preserve);
            stage.copy(request.manifest(manifest(&stage)))
        };
        up(laneway::PutOptions::default(), false).all_done();
        for (put, preserve) in [
            (laneway::PutOptions::default().content_type("text/x"), false),
            (laneway::PutOptions::default().storage_class("STANDARD"), false),
            (laneway::PutOptions::default(), true),
        ] {
            let (cause, why) = up(put, preserve).failure();
            assert!(cause == "refused" && why.contains("other settings"), "{why}");
        }
        assert_eq!(up(laneway::PutOptions::default(), false).summary.failed, 0);
    }
}
