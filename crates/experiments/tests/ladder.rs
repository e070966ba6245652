//! A ladder from end to end, against the embedded store and an external one.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use laneway_experiments::ladder::{self, Plan};
use laneway_experiments::{
    Counted, Error, Event, Failure, Imitated, Remote, Repeats, RivalError, Stop, Target, Workers,
};
use laneway_server::{Config, Server, Tls};

const FILES: usize = 5;

fn plan(target: Target) -> Plan {
    Plan { files: FILES, size: 10, runs: Repeats::times(2), one_by_one: true, programs: false, target }
}

fn climb(plan: &Plan) -> Counted {
    ladder::run(plan, &Workers::ThisProcess, &Stop::default(), &mut |event| {
        assert!(!matches!(event, Event::Left(_)), "{event:?}");
    })
    .unwrap()
}

fn counted(found: &Counted, rung: &str) -> (u64, u64) {
    let row = found.rows.iter().find(|row| row.rung == rung).unwrap();
    let figures = row.figures().unwrap();
    (figures.requests, figures.connections)
}

#[test]
fn every_rung_arrives_with_the_requests_and_connections_of_its_way() {
    let found = climb(&plan(Target::Embedded(Imitated::at(Duration::ZERO))));
    let names: Vec<_> = found.rows.iter().map(|row| row.rung).collect();
    assert_eq!(names, ["resumable", "single", "keepalive", "concurrent", "http2", "laneway"]);
    let n = FILES as u64;
    for (rung, requests, connections) in [
        ("resumable", 2 * n, 2 * n),
        ("single", n, n),
        ("keepalive", n, 1),
        ("concurrent", n, n),
        ("http2", n, 1),
    ] {
        assert_eq!(counted(&found, rung), (requests, connections), "{rung}");
    }
    let (requests, connections) = counted(&found, "laneway");
    assert!(requests >= n && (1..=n).contains(&connections), "{requests} {connections}");
    assert!((found.floor_s - found.rtt_s * 3.0).abs() < 1e-9);
}

#[test]
fn laneway_takes_an_embedded_store_that_is_far_for_a_far_one() {
    let far = Target::Embedded(Imitated::at(Duration::from_millis(50)));
    // For a near server, one connection is enough for eight files. For a far server, a second connection
    // saves a round trip.
    assert_eq!(counted(&climb(&Plan { runs: Repeats::times(1), files: 8, ..plan(far) }), "laneway"), (8, 2));
}

#[test]
fn a_plain_server_elsewhere_has_no_http2_row_and_is_left_as_it_was() {
    let server = Server::start(Config::default()).unwrap();
    let remote = Remote { prefix: "some/where".to_owned(), ..Remote::gcs(server.url()) };
    let found = climb(&plan(Target::Remote(remote)));
    for row in &found.rows {
        match row.rung {
            "http2" => {
                assert!(matches!(row.result, Err(Failure::Rival(RivalError::NoHttp2))), "{row:?}");
            }
            _ => assert!(row.result.is_ok(), "{row:?}"),
        }
    }
    assert!((found.floor_s - found.rtt_s * 2.0).abs() < 1e-9);
    assert!(server.create_bucket("laneway-bench").is_ok() && server.store().keys("laneway-bench").is_empty());
}

#[test]
fn a_stopped_ladder_leaves_nothing_behind() {
    let server = Server::start(Config { tls: Some(Tls::Generated), ..Config::default() }).unwrap();
    server.create_bucket("b").unwrap();
    let ca = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(ca.path(), server.ca_pem().unwrap()).unwrap();
    let remote = Remote {
        bucket: Some("b".to_owned()),
        anonymous: true,
        ca_files: vec![ca.path().to_owned()],
        ..Remote::gcs(server.url())
    };
    let stop = Stop::default();
    let ended = ladder::run(&plan(Target::Remote(remote)), &Workers::ThisProcess, &stop, &mut |event| {
        if matches!(event, Event::Ran { .. }) {
            stop.stop();
        }
    });
    assert!(matches!(ended, Err(Error::Stopped)));
    assert!(server.store().keys("b").is_empty());
}

#[test]
fn a_missing_bucket_fails_every_row_and_says_why() {
    let server = Server::start(Config::default()).unwrap();
    let remote = Remote { bucket: Some("missing".to_owned()), anonymous: true, ..Remote::gcs(server.url()) };
    let found =
        ladder::run(&plan(Target::Remote(remote)), &Workers::ThisProcess, &Stop::default(), &mut |_| {})
            .unwrap();
    for row in found.rows {
        let failure = row.result.unwrap_err().to_string();
        if row.rung != "http2" {
            assert!(failure.contains("404") || failure.contains("bucket"), "{}: {failure}", row.rung);
        }
    }
}
