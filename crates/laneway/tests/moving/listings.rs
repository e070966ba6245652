//! Listings and single lookups.

use std::time::Duration;

use futures_util::StreamExt as _;
use laneway::{CopyRequest, Entry, ErrorKind, Event, ListRequest, Location, RemoveRequest};
use laneway_server::{Config, Faults, Habits, ListingHabits, Treatment};

use crate::stage::{BUCKET, DIALECTS, KINDS, Stage, at_once};

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

/// Returns keys of several shapes, sorted. Most of them are in one folder.
fn skewed(count: usize) -> Vec<String> {
    let mut keys: Vec<_> = (0..count)
        .map(|i| match i % 10 {
            0 => format!("t/{i}"),
            1 => format!("t/ü{}/{i:05}", i % 7),
            2 => format!("t/{:02x}/{:02x}/{i}", i % 251, i % 241),
            _ => format!("t/hot/day={:02}/part-{i:06}", i % 3),
        })
        .collect();
    keys.sort();
    keys
}

/// Returns the maximum number of requests for a listing of this many keys of any shape.
fn requests_max(keys: usize) -> u64 {
    let pages = keys.div_ceil(1000) as u64;
    pages + 1 + (2 * pages).min(24) + pages / 4
}

/// Returns a stage with these keys and a distant server, so that Laneway requests pages in
/// parallel.
fn far_away(kind: crate::stage::Kind, keys: &[String]) -> Stage {
    let stage = Stage::with(kind, Config { rtt: Duration::from_millis(40), ..Config::default() });
    keys.iter().for_each(|key| stage.object(key, b"x"));
    stage
}

#[test]
fn pages_that_are_asked_for_side_by_side_come_in_order_and_whole() {
    let keys = skewed(15_000);
    at_once(&KINDS, |kind| {
        let stage = far_away(kind, &keys);
        assert!(listed(&stage, stage.url("t"), true).unwrap() == keys, "{kind:?}");
        let requests = stage.requests("list");
        assert!((16..=requests_max(keys.len())).contains(&requests), "{kind:?}: {requests}");
        // In a listing of one level, each common prefix occurs once.
        let level = listed(&stage, stage.url("t/"), false).unwrap();
        let mut below: Vec<String> = keys
            .iter()
            .map(|key| match key[2..].split_once('/') {
                Some((folder, _)) => stage.url(&format!("t/{folder}/")).to_string(),
                None => key.clone(),
            })
            .collect();
        below.sort();
        below.dedup();
        assert!(level.iter().collect::<std::collections::BTreeSet<_>>().into_iter().eq(&below), "{kind:?}");
        assert_eq!(level.len(), below.len());
    });
}

#[test]
fn trees_that_are_listed_side_by_side_are_copied_and_removed_whole() {
    let keys = skewed(6000);
    at_once(&DIALECTS, |kind| {
        let stage = far_away(kind, &keys);
        let request = CopyRequest::new(vec![stage.url("t")], stage.url("to/")).recursive(true).dry_run(true);
        let planned = stage.copy(request);
        let mut sources: Vec<_> = planned.items.iter().map(|item| item.source.clone()).collect();
        sources.sort();
        let mut urls: Vec<_> = keys.iter().map(|key| stage.url(key).to_string()).collect();
        urls.sort();
        assert!(sources == urls, "{kind:?}: {}", sources.len());
        stage.rm(vec![stage.url("t")], true).all_done();
        assert_eq!(stage.keys(), [""; 0], "{kind:?}");
    });
}

#[test]
fn a_listing_that_fails_on_the_way_says_so_and_ends() {
    let keys = skewed(9000);
    at_once(&DIALECTS, |kind| {
        let faults = Faults::parse(["list:5-999 status 403"]).unwrap();
        let stage = Stage::with(kind, Config { rtt: Duration::from_millis(40), faults, ..Config::default() });
        keys.iter().for_each(|key| stage.object(key, b"x"));
        let mut listing = stage.client.list(ListRequest::new(stage.url("t")).recursive(true));
        let mut before = Vec::new();
        let error = loop {
            match listing.next_blocking() {
                Some(Ok(Entry::Object(meta))) => before.push(meta.id.key),
                Some(Err(error)) => break error,
                other => panic!("{kind:?}: {other:?}"),
            }
        };
        assert!(listing.next_blocking().is_none());
        assert!(error.to_string().contains(BUCKET), "{error}");
        assert!(before.len() >= 1000 && keys.starts_with(&before), "{kind:?}: {}", before.len());
    });
}

#[test]
fn listings_and_jobs_are_streams() {
    let stage = Stage::new(DIALECTS[0]);
    ["a", "b", "c"].iter().for_each(|key| stage.object(key, b"x"));
    let listing = stage.client.list(ListRequest::new(stage.url("")).recursive(true));
    let entries: Vec<_> = pollster::block_on(listing.take(2).collect());
    assert!(matches!(entries[..], [Ok(Entry::Object(_)), Ok(Entry::Object(_))]), "{entries:?}");
    let job = stage.client.remove(RemoveRequest::new(vec![stage.url("b")]));
    let events: Vec<Event> = pollster::block_on(job.collect());
    assert!(
        matches!(&events[..], [Event::Item(_), Event::Done(summary)] if summary.files == 1),
        "{events:?}"
    );
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

/// Returns an S3 stage whose listings have these habits.
fn with_habits(rtt: Duration, change: impl FnOnce(&mut ListingHabits)) -> Stage {
    let mut habits = Habits::strict();
    change(&mut habits.listings);
    Stage::with(DIALECTS[1], Config { habits, rtt, ..Config::default() })
}

/// Storj lists in the order of encrypted keys, older versitygw in the order of a file system walk.
#[test]
fn a_bucket_without_order_is_listed_copied_and_removed_whole() {
    let keys = skewed(2500);
    let mut stage = with_habits(Duration::ZERO, |habits| habits.sorted = false);
    keys.iter().for_each(|key| stage.object(key, b"x"));
    let sorted = |mut listed: Vec<String>| {
        listed.sort();
        listed
    };
    let first = listed(&stage, stage.url("t"), true).unwrap();
    assert_ne!(first, keys);
    assert!(sorted(first) == keys, "each key is listed once");
    let requests = stage.requests("list");
    assert!(sorted(listed(&stage, stage.url("t"), true).unwrap()) == keys);
    assert_eq!(stage.requests("list") - requests, 3, "one chain from the beginning");
    let level = sorted(listed(&stage, stage.url("t/*"), false).unwrap());
    assert!(
        level.windows(2).all(|pair| pair[0] < pair[1]) && level.len() == 250 + 250 + 7 + 1,
        "{}",
        level.len()
    );
    stage.renew();
    // Some keys beside this folder are both files and folders.
    stage.cp_r(stage.url("t/hot"), stage.path("hot")).all_verified();
    assert_eq!(std::fs::read_dir(stage.path("hot")).unwrap().count(), 3);
    stage.renew();
    stage.rm(vec![stage.url("t")], true).all_done();
    assert_eq!(stage.keys(), [""; 0]);
}

/// A policy with `StringEquals` on `s3:prefix` denies the longer prefixes that a parallel listing
/// uses.
#[test]
fn a_policy_for_one_prefix_is_kept_to_and_remembered() {
    let keys = skewed(15_000);
    let stage = with_habits(Duration::from_millis(40), |habits| habits.prefixes = Some(&["t/"]));
    keys.iter().for_each(|key| stage.object(key, b"x"));
    assert!(listed(&stage, stage.url("t"), true).unwrap() == keys);
    let requests = stage.requests("list");
    assert!(listed(&stage, stage.url("t"), true).unwrap() == keys);
    let again = stage.requests("list") - requests;
    assert!((16..=requests_max(keys.len())).contains(&again), "{again}");
    let denied = listed(&stage, stage.url("t/hot"), true).unwrap_err();
    assert_eq!(denied.kind(), ErrorKind::Permission);
}

#[test]
fn pages_without_tokens_and_version_1_are_listed_whole() {
    let without_tokens = |habits: &mut ListingHabits| habits.tokens = false;
    let ignored = |habits: &mut ListingHabits| habits.second_version = Treatment::Ignored;
    let refused = |habits: &mut ListingHabits| habits.second_version = Treatment::Refused;
    let mut keys: Vec<_> = (0..2500).map(|i| format!("k/{i}/ü x")).collect();
    keys.push("k/1".to_owned());
    keys.sort();
    for change in [without_tokens, ignored, refused] {
        let stage = with_habits(Duration::ZERO, change);
        keys.iter().for_each(|key| stage.object(key, b"x"));
        assert!(listed(&stage, stage.url("k"), true).unwrap() == keys);
        let level = listed(&stage, stage.url("k"), false).unwrap();
        let folders: std::collections::BTreeSet<_> = level.iter().collect();
        assert_eq!((level.len(), folders.len()), (2501, 2501));
    }
}

#[test]
fn an_empty_object_without_a_size_is_accepted() {
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
