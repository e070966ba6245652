//! Moves of whole trees in GCS buckets with a hierarchical namespace, which take one request.

use std::time::Duration;

use laneway::{CopyRequest, Filter, Op};
use laneway_server::{Attributes, Config, Faults, ObjectOptions};

use crate::stage::{BUCKET, DIALECTS, Report, Stage};

const KEYS: [&str; 4] = ["t/1", "t/deep/3", "t/deep/er/2", "t2/4"];

fn hierarchical(rules: &[&str], retry_for: Duration) -> Stage {
    let config = Config { faults: Faults::parse(rules.iter().copied()).unwrap(), ..Config::default() };
    let stage = Stage::set_up(DIALECTS[0], config, |settings| settings.retry_for(retry_for));
    stage.server.store().make_hierarchical(BUCKET).unwrap();
    KEYS.iter().for_each(|key| stage.object(key, key.as_bytes()));
    stage
}

fn request(stage: &Stage, from: &str, to: &str) -> CopyRequest {
    CopyRequest::new(vec![stage.url(from)], stage.url(to)).remove_source(true).recursive(true)
}

fn moved(stage: &Stage, from: &str, to: &str) -> Report {
    stage.copy(request(stage, from, to))
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
        let report = moved(&stage, from, "new");
        assert_moved(&stage, &report, "new");
        assert_eq!((report.ops(Op::Move), report.summary.bytes), (3, 22));
        assert_eq!(["copy", "delete", "batch"].map(|verb| stage.requests(verb)), [1, 0, 0], "{from}");
    }
    let stage = hierarchical(&[], Duration::from_secs(4));
    assert_moved(&stage, &moved(&stage, "t", "t2/"), "t2/t");
}

#[test]
fn a_part_of_a_tree_and_an_existing_folder_move_object_by_object() {
    let stage = hierarchical(&[], Duration::from_secs(4));
    let some = Filter::default().include("*3").unwrap();
    assert_eq!(stage.copy(request(&stage, "t", "new").filter(some)).summary.files, 1);
    assert_eq!(stage.keys(), ["new/deep/3", "t/1", "t/deep/er/2", "t2/4"]);
    // The folder `new` exists now, and a rename would be refused.
    assert_eq!(moved(&stage, "t", "new").summary.files, 2);
    assert_eq!(stage.keys(), ["new/1", "new/deep/3", "new/deep/er/2", "t2/4"]);
    assert_eq!(stage.requests("copy"), 3);
    assert_eq!(stage.copy(request(&stage, "new", "dry").dry_run(true)).summary.files, 3);
    assert_eq!(stage.requests("copy"), 3);
}

#[test]
fn a_refused_rename_moves_the_objects_one_by_one() {
    for status in [400, 403, 404, 409, 412, 501] {
        let stage = hierarchical(&[&format!("copy:1 status {status}")], Duration::from_secs(4));
        assert_moved(&stage, &moved(&stage, "t", "new"), "new");
        assert_eq!(stage.requests("copy"), 4, "{status}");
    }
}

#[test]
fn a_new_name_without_a_parent_folder_is_reached_object_by_object() {
    let stage = hierarchical(&[], Duration::from_secs(4));
    assert_moved(&stage, &moved(&stage, "t", "no/such/parent"), "no/such/parent");
}

#[test]
fn a_rename_whose_answer_was_lost_is_found_under_the_new_name() {
    for rule in ["copy:1 lose-answer", "copy:1 garble", "copy:1 malformed"] {
        for retry_for in [Duration::ZERO, Duration::from_secs(4)] {
            let stage = hierarchical(&[rule], retry_for);
            assert_moved(&stage, &moved(&stage, "t", "new"), "new");
        }
    }
}

#[test]
fn a_rename_that_never_arrived_fails_and_the_next_run_makes_it() {
    let stage = hierarchical(&["copy:1 reset"], Duration::ZERO);
    let report = moved(&stage, "t", "new");
    assert_eq!((report.summary.files, report.summary.failed), (0, 1), "{report:?}");
    assert_eq!(stage.keys(), KEYS);
    assert_moved(&stage, &moved(&stage, "t", "new"), "new");
}

#[test]
fn an_object_with_the_name_of_an_empty_folder_is_the_one_that_moves() {
    let stage = hierarchical(&[], Duration::from_secs(4));
    ["e/gone", "e"].iter().for_each(|key| stage.object(key, b"x"));
    assert!(stage.server.store().remove(BUCKET, "e/gone"));
    assert_eq!(moved(&stage, "e", "new").summary.files, 1);
    assert!(!stage.keys().contains(&"e".to_owned()), "{:?}", stage.keys());
}

#[test]
fn a_rename_that_cannot_be_followed_warns_that_it_may_go_on() {
    // The third request for a folder asks for the state of the rename. The second listing is that of the new folder.
    let rules =
        [("bucket:3 status 400", "may still complete the rename"), ("list:2 status 400", "can't be listed")];
    for (rule, said) in rules {
        let stage = hierarchical(&[rule], Duration::ZERO);
        let report = moved(&stage, "t", "new");
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
    let report = moved(&stage, "t", "new");
    assert_eq!((report.summary.files, report.summary.failed), (3, 1), "{report:?}");
    assert!(stage.keys().contains(&"t/held".to_owned()), "{:?}", stage.keys());
}
