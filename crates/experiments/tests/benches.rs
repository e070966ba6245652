//! Tiny runs of each benchmark, against the embedded store and an external one.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use laneway::Provider;
use laneway_experiments::{Event, Imitated, Remote, Repeats, Row, Stop, Target, Workers};
use laneway_experiments::{clean, commit, list, mixed, ranges, slices};
use laneway_server::{Config, Server, Tls};

const GCS: Provider = Provider::Gcs;
const S3: Provider = Provider::S3;

fn embedded(provider: Provider) -> Target {
    Target::Embedded(Imitated { provider, ..Imitated::at(Duration::ZERO) })
}

/// A failure to clean up fails the test.
fn tell(event: Event<'_>) {
    assert!(!matches!(event, Event::Left(_)), "{event:?}");
}

fn names<F>(rows: &[Row<F>]) -> Vec<&'static str> {
    for row in rows {
        if let Err(failure) = &row.result {
            panic!("{}: {}", row.rung, failure.reason());
        }
    }
    rows.iter().map(|row| row.rung).collect()
}

/// Starts an external store. It uses plain HTTP, so it offers no HTTP/2.
fn elsewhere(provider: Provider) -> (Server, Target) {
    let server = Server::start(Config::default()).unwrap();
    server.create_bucket("lake").unwrap();
    let remote = Remote {
        provider,
        bucket: Some("lake".to_owned()),
        prefix: "some/where".to_owned(),
        anonymous: true,
        ..Remote::gcs(server.url())
    };
    (server, Target::Remote(remote))
}

fn slices_of(size: u64, target: Target) -> slices::Slices {
    let plan = slices::Plan { size, runs: Repeats::times(1), folder: None, programs: false, target };
    slices::run(&plan, &Workers::ThisProcess, &Stop::default(), &mut tell).unwrap()
}

#[test]
fn a_huge_object_arrives_checked_in_both_ways_and_both_tongues() {
    for provider in [GCS, S3] {
        let found = slices_of((3 << 20) + 7, embedded(provider));
        assert_eq!(names(&found.rows), ["single", "fixed", "laneway"]);
        for row in &found.rows {
            let figures = row.figures().unwrap();
            assert!(figures.verified && figures.mib_s > 0.0 && figures.connections > 0, "{row:?}");
        }
    }
}

fn mixed_plan(puts: bool, target: Target) -> mixed::Plan {
    mixed::Plan {
        large: 2,
        large_size: 9 << 20,
        small: 12,
        small_size: (1 << 10, 8 << 10),
        arrivals: None,
        puts,
        seed: 3,
        runs: Repeats::times(1),
        folder: None,
        programs: false,
        target,
    }
}

fn mix(plan: &mixed::Plan) -> mixed::Mixed {
    mixed::run(plan, &Workers::ThisProcess, &Stop::default(), &mut tell).unwrap()
}

const MOVERS: [&str; 4] = ["pool-50", "pool-unbounded", "http2", "laneway"];

#[test]
fn small_and_large_objects_come_down_together() {
    let found = mix(&mixed_plan(false, embedded(S3)));
    assert_eq!(names(&found.together), MOVERS);
    for row in &found.together {
        let figures = row.figures().unwrap();
        assert_eq!(figures.latencies.sorted().len(), 12);
        assert!(figures.small_p50_s <= figures.small_p99_s && figures.small_p99_s <= figures.small_max_s);
        assert!(figures.small_max_s <= figures.total_s && figures.connections > 0, "{figures:?}");
        let came: u64 = figures.trace.spans.iter().map(|span| span.bytes).sum();
        assert!(came >= 18 << 20, "{came} bytes in the trace");
    }
    let requests = |n: usize| found.together[n].figures().unwrap().requests;
    // Twelve small objects, and two ranges for each of two large ones.
    assert_eq!([requests(0), requests(1), requests(2)], [16; 3]);
    assert_eq!(found.together[2].figures().unwrap().connections, 1);
    assert!(found.arrivals_table().is_none());
}

#[test]
fn small_and_large_objects_go_up_together() {
    for provider in [GCS, S3] {
        let found = mix(&mixed_plan(true, embedded(provider)));
        assert_eq!(names(&found.together), MOVERS);
        // The rivals need only one request per object.
        assert_eq!(found.together[0].figures().unwrap().requests, 14);
    }
}

#[test]
fn arrivals_are_measured_idle_and_beside_bulk() {
    let plan = mixed::Plan { arrivals: Some(200.0), ..mixed_plan(false, embedded(GCS)) };
    let found = mix(&plan);
    assert_eq!(names(&found.arrivals), MOVERS);
    for row in &found.arrivals {
        let figures = row.figures().unwrap();
        assert_eq!((figures.idle.sorted().len(), figures.beside.sorted().len()), (12, 12));
        assert!(figures.idle_p50_s > 0.0 && figures.beside_p50_s > 0.0, "{figures:?}");
    }
}

#[test]
fn a_benchmark_that_is_stopped_leaves_the_store_as_it_was() {
    let (server, target) = elsewhere(S3);
    let stop = Stop::default();
    let pressed = stop.clone();
    let stopped = mixed::run(&mixed_plan(true, target), &Workers::ThisProcess, &stop, &mut |event| {
        if matches!(event, Event::Ran { .. }) {
            pressed.stop();
        }
        tell(event);
    });
    assert!(matches!(stopped, Err(laneway_experiments::Error::Stopped)), "{stopped:?}");
    assert!(server.store().keys("lake").is_empty());
}

#[test]
fn without_http2_its_row_says_so_and_the_store_stays_unchanged() {
    let (server, target) = elsewhere(S3);
    let found = mix(&mixed_plan(false, target));
    let failure = |name| {
        let row = found.together.iter().find(|row| row.rung == name).unwrap();
        row.result.as_ref().err().map(|failure| failure.reason())
    };
    assert_eq!(failure("http2").as_deref(), Some("the server doesn't offer HTTP/2"));
    assert_eq!((failure("pool-50"), failure("laneway")), (None, None));
    assert!(server.store().keys("lake").is_empty());
}

fn commits(target: Target) -> laneway_experiments::Counted {
    let plan = commit::Plan { objects: 8, size: 100, runs: Repeats::times(1), target };
    commit::run(&plan, &Workers::ThisProcess, &Stop::default(), &mut tell).unwrap()
}

#[test]
fn every_object_is_read_and_written_back_once() {
    for provider in [GCS, S3] {
        let found = commits(embedded(provider));
        assert_eq!(names(&found.rows), ["sequential", "pool-50", "laneway"]);
        let requests = |n: usize| found.rows[n].figures().unwrap().requests;
        assert_eq!((requests(0), requests(1)), (16, 16), "{provider:?}");
        assert!(requests(2) >= 16, "{provider:?}");
        assert_eq!(found.rows[0].figures().unwrap().connections, 1);
    }
}

#[test]
fn ranges_come_right_in_every_way() {
    for provider in [GCS, S3] {
        let plan =
            ranges::Plan { ranges: 60, size: 16 << 20, runs: Repeats::times(1), target: embedded(provider) };
        let found = ranges::run(&plan, &Workers::ThisProcess, &Stop::default(), &mut tell).unwrap();
        for (found, ranges) in [(&found.scattered, 60), (&found.columns, 193)] {
            assert_eq!(names(&found.rows), ["one-by-one", "pool-50", "fixed-gap", "whole", "laneway"]);
            let requests = |n: usize| found.rows[n].figures().unwrap().requests;
            assert_eq!((requests(0), requests(1), requests(3)), (ranges, ranges, 2), "{provider:?}");
            assert!(requests(2) < ranges && requests(4) < ranges, "{provider:?}");
            assert_eq!(found.rows[0].figures().unwrap().connections, 1);
        }
    }
}

#[test]
fn every_broom_leaves_nothing() {
    let plan = clean::Plan { objects: 205, runs: Repeats::times(1), programs: false, target: embedded(GCS) };
    let found = clean::run(&plan, &Workers::ThisProcess, &Stop::default(), &mut tell).unwrap();
    let gcs = ["gcs-one-by-one", "gcs-batch", "gcs-laneway-keys", "gcs-list-batch", "gcs-laneway"];
    let s3 = ["s3-one-by-one", "s3-delete-objects", "s3-laneway-keys", "s3-list-delete", "s3-laneway"];
    assert_eq!(names(&found.rows), [gcs, s3].concat());
    let requests: Vec<u64> = found.rows.iter().map(|row| row.figures().unwrap().requests).collect();
    // A client that knows the keys needs no listing. Laneway also asks whether the bucket has folders.
    assert_eq!(requests[..5], [205, 3, 3, 4, 5]);
    assert_eq!(requests[5..], [205, 1, 1, 2, 2]);
}

#[test]
fn every_way_of_listing_brings_every_key() {
    let plan = list::Plan { objects: 6000, runs: Repeats::times(1), programs: false, target: embedded(GCS) };
    let found = list::run(&plan, &Workers::ThisProcess, &Stop::default(), &mut tell).unwrap();
    let rungs = |tongue: &str| {
        ["chain", "ahead", "folders", "laneway", "laneway-arriving"].map(|way| format!("{tongue}-{way}"))
    };
    assert_eq!(names(&found.rows), [rungs("gcs"), rungs("s3")].concat());
    for rows in found.rows.chunks(5) {
        let figures = |n: usize| *rows[n].figures().unwrap();
        assert_eq!((figures(0).requests, figures(0).connections), (6, 1));
        assert_eq!((figures(1).requests, figures(1).connections), (6, 1));
        assert!(figures(2).requests > 400 && figures(2).connections <= 16);
        assert!(figures(3).requests <= 20 && figures(4).requests <= 20);
    }
}

#[test]
fn what_lists_first_deletes_every_page() {
    let plan = clean::Plan { objects: 2100, runs: Repeats::times(1), programs: false, target: embedded(GCS) };
    let found = clean::run(&plan, &Workers::ThisProcess, &Stop::default(), &mut tell).unwrap();
    names(&found.rows);
}

#[test]
fn a_store_elsewhere_is_filled_used_and_left_as_it_was() {
    let (server, target) = elsewhere(GCS);
    let before = "some/where/else".to_owned();
    server.store().put("lake", &before, b"x").unwrap();
    assert_eq!(names(&commits(target.clone()).rows).len(), 3);
    assert_eq!(names(&slices_of(100_000, target.clone()).rows).len(), 3);
    let plan = clean::Plan { objects: 5, runs: Repeats::times(1), programs: false, target };
    let found = clean::run(&plan, &Workers::ThisProcess, &Stop::default(), &mut tell).unwrap();
    assert_eq!(names(&found.rows).len(), 5);
    assert_eq!(server.store().keys("lake"), [before]);
}

#[test]
fn bytes_that_changed_on_their_way_fail_the_row() {
    let faults = laneway_server::parse_fault("get corrupt").unwrap();
    let config = Config {
        tls: Some(Tls::Generated),
        faults: laneway_server::Faults { rules: vec![faults] },
        ..Config::default()
    };
    let server = Server::start(config).unwrap();
    server.create_bucket("lake").unwrap();
    let ca = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(ca.path(), server.ca_pem().unwrap()).unwrap();
    let remote = Remote {
        bucket: Some("lake".to_owned()),
        anonymous: true,
        ca_files: vec![ca.path().to_owned()],
        ..Remote::gcs(server.url())
    };
    let found = slices_of(100_000, Target::Remote(remote));
    for row in &found.rows {
        let why = row.result.as_ref().unwrap_err().to_string();
        assert!(why.contains("checksum") || why.contains("crc32c"), "{why}");
    }
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    let refused = |plan: mixed::Plan| plan.check().is_err();
    let plan = || mixed_plan(false, embedded(GCS));
    assert!(plan().check().is_ok());
    assert!(
        refused(mixed::Plan { small: 0, ..plan() })
            && refused(mixed::Plan { runs: Repeats::times(0), ..plan() })
    );
    assert!(refused(mixed::Plan { small_size: (9, 3), ..plan() }));
    assert!(refused(mixed::Plan { large: 0, arrivals: Some(1.0), ..plan() }));
}
