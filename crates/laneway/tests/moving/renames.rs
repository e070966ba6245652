//! Moves within a GCS bucket. They take one request for each object, or a single request for a whole tree if
//! the bucket has a hierarchical namespace.

use std::time::Duration;

use laneway::{Condition, CopyRequest, Filter, Location, Op, Outcome, PutOptions, Verified};
use laneway_server::{Attributes, Config, Faults, ObjectOptions, Versioning};

use crate::stage::{BUCKET, DIALECTS, Report, Stage};

fn gcs(rules: &[&str]) -> Stage {
    Stage::with_faults(DIALECTS[0], rules)
}

/// Returns a stage whose client sends each request once.
fn without_retries(rules: &[&str]) -> Stage {
    let faults = Faults::parse(rules.iter().copied()).unwrap();
    let config = Config { faults, ..Config::default() };
    Stage::set_up(DIALECTS[0], config, |settings| settings.retry_for(Duration::ZERO))
}

fn request(stage: &Stage, from: &str, to: &str) -> CopyRequest {
    CopyRequest::new(vec![stage.url(from)], stage.url(to)).remove_source(true)
}

fn moved(stage: &Stage, from: &str, to: &str) -> Report {
    stage.copy(request(stage, from, to))
}

fn moved_tree(stage: &Stage, from: &str, to: &str) -> Report {
    stage.copy(request(stage, from, to).recursive(true))
}

/// Returns the numbers of requests that move, copy, remove and look up objects.
fn requests(stage: &Stage) -> [u64; 4] {
    ["copy", "delete", "batch", "head"].map(|verb| stage.requests(verb))
}

#[test]
fn a_move_within_a_bucket_of_gcs_takes_one_request_each() {
    let stage = gcs(&[]);
    (0..10).for_each(|i| stage.object(&format!("t/{i}"), format!("{i}").as_bytes()));
    let attributes = Attributes {
        content_type: Some("x/y".into()),
        metadata: [("colour".to_owned(), "green".to_owned())].into(),
        ..Attributes::default()
    };
    stage.server.store().put_with(BUCKET, "one", b"bytes", attributes).unwrap();
    let report = moved_tree(&stage, "t/", "u");
    assert_eq!(report.all_verified().ops(Op::Move), 10);
    for item in &report.items {
        assert!(
            item.atomic && matches!(item.outcome, Outcome::Done { verified: Verified::Crc32c }),
            "{item:?}"
        );
    }
    assert_eq!((report.summary.bytes, requests(&stage)), (10, [10, 0, 0, 0]));
    assert_eq!(stage.stored("u/7"), b"7");
    moved(&stage, "one", "u/one").all_verified();
    assert_eq!(requests(&stage), [11, 0, 0, 1], "a named object is looked up first");
    assert!(stage.keys().iter().all(|key| key.starts_with("u/")) && stage.keys().len() == 11);
    let meta = stage.client.stat(&stage.url("u/one")).unwrap();
    assert_eq!(meta.content_type.as_deref(), Some("x/y"));
    assert_eq!(meta.metadata.unwrap()["colour"], "green");
}

#[test]
fn what_changes_more_than_the_name_is_copied_and_removed() {
    let stage = gcs(&[]);
    stage.server.create_bucket("other").unwrap();
    (0..2).for_each(|i| stage.object(&format!("{i}"), b"x"));
    let put = PutOptions::default().content_type("a/b");
    stage.copy(request(&stage, "0", "c").put(put)).all_done();
    assert_eq!(requests(&stage), [1, 1, 0, 2]);
    let elsewhere = Location::object(stage.kind.provider, "other", "1");
    stage.copy(CopyRequest::new(vec![stage.url("1")], elsewhere).remove_source(true)).all_done();
    assert_eq!((requests(&stage), stage.keys()), ([2, 2, 0, 3], vec!["c".to_owned()]));
    stage.server.store().keep_versions(BUCKET, Versioning::Enabled).unwrap();
    stage.object("c", b"newer");
    let old =
        stage.server.store().versions(BUCKET, "c").iter().map(|object| object.generation).min().unwrap();
    let source = format!("gs://{BUCKET}/c#{old}").parse().unwrap();
    stage.copy(CopyRequest::new(vec![source], stage.url("old")).remove_source(true)).all_done();
    assert_eq!((stage.stored("c"), stage.stored("old")), (b"newer".to_vec(), b"x".to_vec()));
}

#[test]
fn a_dry_run_moves_nothing_and_an_existing_destination_is_skipped() {
    let stage = gcs(&[]);
    for key in ["t/a", "t/b", "u/b"] {
        stage.object(key, key.as_bytes());
    }
    let all = request(&stage, "t/", "u").recursive(true);
    assert_eq!(stage.copy(all.clone().dry_run(true)).summary.files, 2);
    let report = stage.copy(all.no_clobber(true));
    assert_eq!((report.summary.files, report.summary.skipped, report.summary.failed), (1, 1, 0));
    assert_eq!(requests(&stage)[..2], [1, 0]);
    assert_eq!(stage.keys(), ["t/b", "u/a", "u/b"]);
    assert_eq!(stage.stored("u/b"), b"u/b");
}

#[test]
fn a_refused_move_tells_if_source_or_destination_was_in_the_way() {
    let stage = gcs(&[]);
    stage.object("a", b"a");
    stage.object("b", b"b");
    let condition = |condition| PutOptions::default().condition(condition);
    let absent = stage.copy(request(&stage, "a", "b").put(condition(Condition::Absent)));
    assert_eq!(absent.failure().0, "already_exists");
    let other = Condition::Matches(laneway::Version::Generation(7));
    let report = stage.copy(request(&stage, "a", "b").put(condition(other)));
    assert_eq!(report.failure().0, "precondition");
    assert_eq!((stage.stored("a"), stage.stored("b")), (b"a".to_vec(), b"b".to_vec()));
    // Another writer replaces the source after it was looked up.
    stage.server.set_faults(Faults::parse(["copy replace"]).unwrap());
    let (class, text) = moved(&stage, "a", "c").failure();
    assert!(class == "source" && text.contains("replaced meanwhile"), "{class}: {text}");
    let report = stage.copy(request(&stage, "a", "c").put(condition(Condition::Absent)));
    assert_eq!(report.failure().0, "source");
    assert_eq!(stage.keys(), ["a", "b"]);
    assert_eq!(moved(&stage, "missing", "d").failure().0, "not_found");
}

#[test]
fn a_move_whose_answer_was_lost_is_found_under_its_new_name() {
    for rules in [&["copy:1 lose-answer"][..], &["copy:1 garble"], &["copy:1 malformed"]] {
        let stage = gcs(rules);
        stage.object("t/a", b"bytes");
        stage.object("u/a", b"replaced");
        moved_tree(&stage, "t/", "u").all_verified();
        assert_eq!(
            (stage.keys(), stage.stored("u/a")),
            (vec!["u/a".to_owned()], b"bytes".to_vec()),
            "{rules:?}"
        );
        assert_eq!(requests(&stage)[1..], [0, 0, 2], "{rules:?}");
    }
}

#[test]
fn a_move_without_retries_is_looked_up_after_a_lost_answer() {
    for (rule, is_moved) in [("copy lose-answer", true), ("copy reset", false), ("copy status 503", false)] {
        let stage = without_retries(&[rule]);
        stage.object("a", b"bytes");
        let report = moved(&stage, "a", "b");
        let key = if is_moved { "b" } else { "a" };
        assert_eq!((stage.keys(), stage.stored(key)), (vec![key.to_owned()], b"bytes".to_vec()), "{rule}");
        match is_moved {
            true => drop(report.all_verified()),
            false => assert_ne!(report.failure().0, "not_found", "{rule}"),
        }
    }
}

/// Moves `a` to `b`. The answer to the first attempt is lost, and `meanwhile` runs before the answer to the
/// second attempt comes.
fn moved_while(meanwhile: impl FnOnce(&Stage)) -> (Stage, Report) {
    let stage = gcs(&["copy:1 lose-answer", "copy:2 stall"]);
    stage.object("a", b"bytes");
    let report = std::thread::scope(|scope| {
        let moving = scope.spawn(|| moved(&stage, "a", "b"));
        stage.wait_for("copy", 2);
        meanwhile(&stage);
        stage.server.set_faults(Faults::default());
        moving.join().unwrap()
    });
    (stage, report)
}

#[test]
fn a_moved_object_that_was_replaced_at_either_name_is_not_lost() {
    let (stage, report) = moved_while(|stage| {
        stage.object("b", b"another writer's");
    });
    let (class, text) = report.failure();
    assert!(
        class == "not_found" && text.contains("may have been moved: the source is gone"),
        "{class}: {text}"
    );
    assert!(text.contains("the destination is another object"), "{text}");
    assert_eq!(stage.stored("b"), b"another writer's");

    let (stage, report) = moved_while(|stage| {
        stage.object("a", b"another writer's");
    });
    report.all_verified();
    assert_eq!((stage.stored("a"), stage.stored("b")), (b"another writer's".to_vec(), b"bytes".to_vec()));
}

#[test]
fn a_source_that_is_gone_before_its_move_is_named_by_the_error() {
    // Throttled requests aren't carried out. The client repeats them.
    let stage = gcs(&["copy status 429"]);
    stage.object("a", b"bytes");
    let report = std::thread::scope(|scope| {
        let moving = scope.spawn(|| moved(&stage, "a", "b"));
        stage.wait_for("copy", 1);
        assert!(stage.server.store().remove(BUCKET, "a"));
        stage.server.set_faults(Faults::default());
        moving.join().unwrap()
    });
    let (class, text) = report.failure();
    assert!(class == "not_found" && text.contains("bucket/a"), "{class}: {text}");
    assert!(stage.keys().is_empty());
}

#[test]
fn equal_bytes_from_before_are_no_proof_of_a_move() {
    // Another writer replaces the source, and the first attempt fails without a move.
    let stage = gcs(&["copy:1 replace", "copy:1 status 503"]);
    ["b", "a"].iter().for_each(|key| stage.object(key, b"bytes"));
    let (class, text) = moved(&stage, "a", "b").failure();
    assert!(
        class == "not_found" && text.contains("may have been moved: the source was replaced"),
        "{class}: {text}"
    );
    assert_eq!((stage.keys().len(), stage.stored("b")), (2, b"bytes".to_vec()));
}

#[test]
fn an_existing_destination_is_told_even_after_a_lost_attempt() {
    let stage = gcs(&["copy:1 status 503"]);
    ["b", "a"].iter().for_each(|key| stage.object(key, b"bytes"));
    let put = PutOptions::default().condition(Condition::Absent);
    assert_eq!(stage.copy(request(&stage, "a", "b").put(put)).failure().0, "already_exists");
    assert_eq!(stage.keys(), ["a", "b"]);
}

#[test]
fn a_server_or_role_without_moves_is_remembered() {
    for (status, is_remembered) in [(404, true), (405, true), (501, true), (403, true), (400, false)] {
        let stage = gcs(&[&format!("copy:1 status {status}")]);
        ["a", "b"].iter().for_each(|key| stage.object(key, b"x"));
        moved(&stage, "a", "c").all_verified();
        assert_eq!(requests(&stage)[..3], [2, 1, 0], "{status}");
        moved(&stage, "b", "d").all_verified();
        let deletes = if is_remembered { 2 } else { 1 };
        assert_eq!(requests(&stage)[..3], [3, deletes, 0], "{status}");
        assert_eq!(stage.keys(), ["c", "d"]);
    }
}

#[test]
fn a_refusal_after_a_lost_attempt_leads_to_a_copy() {
    let stage = gcs(&["copy:1 status 503", "copy:2 status 501"]);
    stage.object("a", b"x");
    moved(&stage, "a", "b").all_verified();
    assert_eq!((requests(&stage)[..2].to_vec(), stage.keys()), (vec![3, 1], vec!["b".to_owned()]));
}

#[test]
fn a_held_object_is_copied_and_its_source_stays() {
    let stage = gcs(&[]);
    let options = ObjectOptions { temporary_hold: Some(true), ..ObjectOptions::default() };
    let held = Attributes { options, ..Attributes::default() };
    stage.server.store().put_with(BUCKET, "held", b"x", held).unwrap();
    stage.object("free", b"y");
    assert_eq!(moved(&stage, "held", "copy").failure().0, "permission");
    assert_eq!(requests(&stage)[..2], [2, 1]);
    assert_eq!(stage.keys(), ["copy", "free", "held"]);
    moved(&stage, "free", "moved").all_done();
    assert_eq!(requests(&stage)[..2], [3, 1], "the hold was of one object");
}

#[test]
fn a_move_that_broke_off_is_completed_by_the_next_run() {
    let stage = without_retries(&["copy:5-7 reset", "copy:8-9 lose-answer"]);
    (0..12).for_each(|i| stage.object(&format!("t/{i:02}"), &[i]));
    let report = moved_tree(&stage, "t/", "u");
    assert_eq!((report.summary.files, report.summary.failed), (9, 3), "{report:?}");
    assert_eq!(stage.keys().iter().filter(|key| key.starts_with("t/")).count(), 3);
    moved_tree(&stage, "t/", "u").all_verified();
    (0..12).for_each(|i| assert_eq!(stage.stored(&format!("u/{i:02}")), [i]));
    assert_eq!(stage.keys().len(), 12);
}

const KEYS: [&str; 4] = ["t/1", "t/deep/3", "t/deep/er/2", "t2/4"];

fn hierarchical(rules: &[&str], retry_for: Duration) -> Stage {
    let config = Config { faults: Faults::parse(rules.iter().copied()).unwrap(), ..Config::default() };
    let stage = Stage::set_up(DIALECTS[0], config, |settings| settings.retry_for(retry_for));
    stage.server.store().make_hierarchical(BUCKET).unwrap();
    KEYS.iter().for_each(|key| stage.object(key, key.as_bytes()));
    stage
}

fn folder_request(stage: &Stage, from: &str, to: &str) -> CopyRequest {
    CopyRequest::new(vec![stage.url(from)], stage.url(to)).remove_source(true).recursive(true)
}

fn moved_folder(stage: &Stage, from: &str, to: &str) -> Report {
    stage.copy(folder_request(stage, from, to))
}

/// Asserts that the tree `t` has moved to `new`, and that the report says so.
fn assert_moved(stage: &Stage, report: &Report, new: &str) {
    assert_eq!((report.summary.files, report.summary.failed), (3, 0), "{report:?}");
    for item in &report.items {
        let (from, to) = (&item.source, item.destination.as_deref().unwrap_or_default());
        assert!(from.starts_with(&format!("gs://{BUCKET}/t/")), "{item:?}");
        assert_eq!(to.replace(&format!("/{new}/"), "/t/"), *from);
    }
    let keys = KEYS.map(|key| key.replace("t/", &format!("{new}/")));
    let mut sorted = keys.clone().to_vec();
    sorted.sort();
    assert_eq!(stage.keys(), sorted);
    KEYS.iter().zip(&keys).for_each(|(old, new)| assert_eq!(stage.stored(new), old.as_bytes()));
}

#[test]
fn a_whole_tree_moves_by_one_request() {
    for from in ["t", "t/"] {
        let stage = hierarchical(&[], Duration::from_secs(4));
        let report = moved_folder(&stage, from, "new");
        assert_moved(&stage, &report, "new");
        assert_eq!((report.ops(Op::Move), report.summary.bytes), (3, 22));
        assert_eq!(["copy", "delete", "batch"].map(|verb| stage.requests(verb)), [1, 0, 0], "{from}");
    }
    let stage = hierarchical(&[], Duration::from_secs(4));
    assert_moved(&stage, &moved_folder(&stage, "t", "t2/"), "t2/t");
}

#[test]
fn a_part_of_a_tree_and_an_existing_folder_move_object_by_object() {
    let stage = hierarchical(&[], Duration::from_secs(4));
    let some = Filter::default().include("*3").unwrap();
    assert_eq!(stage.copy(folder_request(&stage, "t", "new").filter(some)).summary.files, 1);
    assert_eq!(stage.keys(), ["new/deep/3", "t/1", "t/deep/er/2", "t2/4"]);
    // The folder `new` exists now, and a rename would be refused.
    assert_eq!(moved_folder(&stage, "t", "new").summary.files, 2);
    assert_eq!(stage.keys(), ["new/1", "new/deep/3", "new/deep/er/2", "t2/4"]);
    assert_eq!(stage.requests("copy"), 3);
    assert_eq!(stage.copy(folder_request(&stage, "new", "dry").dry_run(true)).summary.files, 3);
    assert_eq!(stage.requests("copy"), 3);
}

#[test]
fn a_refused_rename_moves_the_objects_one_by_one() {
    for status in [400, 403, 404, 409, 412, 501] {
        let stage = hierarchical(&[&format!("copy:1 status {status}")], Duration::from_secs(4));
        assert_moved(&stage, &moved_folder(&stage, "t", "new"), "new");
        assert_eq!(stage.requests("copy"), 4, "{status}");
    }
}

#[test]
fn a_new_name_without_a_parent_folder_is_reached_object_by_object() {
    let stage = hierarchical(&[], Duration::from_secs(4));
    assert_moved(&stage, &moved_folder(&stage, "t", "no/such/parent"), "no/such/parent");
}

#[test]
fn a_rename_whose_answer_was_lost_is_found_under_the_new_name() {
    for rule in ["copy:1 lose-answer", "copy:1 garble", "copy:1 malformed"] {
        for retry_for in [Duration::ZERO, Duration::from_secs(4)] {
            let stage = hierarchical(&[rule], retry_for);
            assert_moved(&stage, &moved_folder(&stage, "t", "new"), "new");
        }
    }
}

#[test]
fn a_rename_that_never_arrived_fails_and_the_next_run_makes_it() {
    let stage = hierarchical(&["copy:1 reset"], Duration::ZERO);
    let report = moved_folder(&stage, "t", "new");
    assert_eq!((report.summary.files, report.summary.failed), (0, 1), "{report:?}");
    assert_eq!(stage.keys(), KEYS);
    assert_moved(&stage, &moved_folder(&stage, "t", "new"), "new");
}

#[test]
fn an_object_with_the_name_of_an_empty_folder_is_the_one_that_moves() {
    let stage = hierarchical(&[], Duration::from_secs(4));
    ["e/gone", "e"].iter().for_each(|key| stage.object(key, b"x"));
    assert!(stage.server.store().remove(BUCKET, "e/gone"));
    assert_eq!(moved_folder(&stage, "e", "new").summary.files, 1);
    assert!(!stage.keys().contains(&"e".to_owned()), "{:?}", stage.keys());
}

#[test]
fn a_rename_that_cannot_be_followed_warns_that_it_may_go_on() {
    // The third request for a folder asks for the state of the rename. The second listing is that of the new folder.
    let rules =
        [("bucket:3 status 400", "may still complete the rename"), ("list:2 status 400", "can't be listed")];
    for (rule, said) in rules {
        let stage = hierarchical(&[rule], Duration::ZERO);
        let report = moved_folder(&stage, "t", "new");
        assert_eq!(report.summary.failed, 1, "{report:?}");
        assert!(report.warnings.iter().any(|warning| warning.contains(said)), "{:?}", report.warnings);
        assert_eq!(stage.keys(), ["new/1", "new/deep/3", "new/deep/er/2", "t2/4"]);
    }
}

#[test]
fn a_held_object_keeps_its_name_and_the_others_move() {
    let stage = hierarchical(&[], Duration::from_secs(4));
    let options = ObjectOptions { temporary_hold: Some(true), ..ObjectOptions::default() };
    let held = Attributes { options, ..Attributes::default() };
    stage.server.store().put_with(BUCKET, "t/held", b"x", held).unwrap();
    let report = moved_folder(&stage, "t", "new");
    assert_eq!((report.summary.files, report.summary.failed), (3, 1), "{report:?}");
    assert!(stage.keys().contains(&"t/held".to_owned()), "{:?}", stage.keys());
}
