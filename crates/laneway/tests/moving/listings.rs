//! Listings and single looks.

use laneway::{Entry, ListRequest, Location};
use laneway_server::{Config, Habits};

use crate::stage::{BUCKET, DIALECTS, KINDS, Stage};

fn listed(stage: &Stage, at: Location, recursive: bool) -> Result<Vec<String>, laneway::Error> {
    let mut listing = stage.client.list(ListRequest::new(at).recursive(recursive));
    let mut names = Vec::new();
    while let Some(entry) = listing.next_blocking() {
        names.push(match entry? {
            Entry::Object(meta) => meta.id.key.clone(),
            Entry::Prefix(url) => url,
            Entry::Bucket(name) => name,
            other => panic!("{other:?}"),
        });
    }
    Ok(names)
}

#[test]
fn a_level_shows_objects_and_prefixes_and_recursion_everything() {
    for kind in KINDS {
        let stage = Stage::new(kind);
        for key in ["a", "d/x", "d/e/y", "dx"] {
            stage.object(key, b"x");
        }
        let prefix = |key: &str| stage.url(key).to_string();
        assert_eq!(listed(&stage, stage.url(""), false).unwrap(), [prefix("d/"), "a".into(), "dx".into()]);
        assert_eq!(listed(&stage, stage.url("d"), false).unwrap(), [prefix("d/e/"), "d/x".into()]);
        assert_eq!(listed(&stage, stage.url("d/"), true).unwrap(), ["d/e/y", "d/x"]);
        assert_eq!(listed(&stage, stage.url("a"), false).unwrap(), ["a"]);
        assert_eq!(listed(&stage, stage.url("d*"), false).unwrap(), [prefix("d/"), "dx".into()]);
        assert_eq!(listed(&stage, stage.url("**/y"), false).unwrap(), ["d/e/y"]);
        assert!(listed(&stage, stage.url("none"), false).unwrap_err().is_not_found());
    }
}

#[test]
fn many_pages_come_in_order_and_whole() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let mut keys: Vec<_> = (0..3500).map(|i| format!("k/{i}")).collect();
        for key in &keys {
            stage.object(key, b"");
        }
        keys.sort();
        assert_eq!(listed(&stage, stage.url("k"), true).unwrap(), keys, "{kind:?}");
    }
}

#[test]
fn an_empty_bucket_is_an_empty_listing_and_a_missing_one_an_error() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        assert!(listed(&stage, stage.url(""), true).unwrap().is_empty());
        assert!(
            listed(&stage, Location::object(kind.provider, "missing", ""), true).unwrap_err().is_not_found()
        );
    }
}

#[test]
fn a_listing_that_is_dropped_early_ends() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for i in 0..3000 {
            stage.object(&format!("k/{i}"), b"");
        }
        let mut listing = stage.client.list(ListRequest::new(stage.url("k")).recursive(true));
        assert!(listing.next_blocking().is_some());
        drop(listing);
        assert_eq!(listed(&stage, stage.url("k/1"), false).unwrap(), ["k/1"]);
    }
}

#[test]
fn stat_tells_an_object_and_refuses_what_is_none() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.object("a//b ü%", b"12345");
        let meta = stage.client.stat(&stage.url("a//b ü%")).unwrap();
        assert_eq!((meta.size, meta.id.bucket.as_str()), (5, BUCKET));
        assert!(stage.client.stat(&stage.url("none")).unwrap_err().is_not_found());
        assert!(stage.client.stat(&stage.url("")).unwrap_err().is_usage());
        assert!(stage.client.stat(&Location::Standard).unwrap_err().is_usage());
    }
}

#[test]
fn an_empty_object_whose_size_is_left_out_fails_neither_its_tree_nor_itself() {
    let habits = Habits { empty_sizes: false, ..Habits::gcs() };
    let stage = Stage::with(DIALECTS[0], Config { habits, ..Config::default() });
    for (key, bytes) in [("t/a", &b"a"[..]), ("t/empty", b""), ("t/z", b"z")] {
        stage.object(key, bytes);
    }
    stage.cp_r(stage.url("t"), stage.path("t")).all_verified();
    for (name, bytes) in [("a", &b"a"[..]), ("empty", b""), ("z", b"z")] {
        assert_eq!(std::fs::read(stage.path("t").join(name)).unwrap(), bytes, "{name}");
    }
    assert_eq!(stage.client.stat(&stage.url("t/empty")).unwrap().size, 0);
    stage.cp(stage.url("t/empty"), stage.path("alone")).all_verified();
    assert_eq!(std::fs::read(stage.path("alone")).unwrap(), b"");
}
