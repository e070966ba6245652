//! A ladder from end to end, against the embedded store and against one elsewhere.

use std::time::Duration;

use laneway_experiments::ladder::{self, Event, Ladder, Plan, Rung};
use laneway_experiments::{Error, Failure, Imitated, Remote, RivalError, Stop, Tally, Target};
use laneway_server::{Config, Server, Tls};

const FILES: usize = 5;

fn plan(target: Target) -> Plan {
    Plan { files: FILES, size: 10, runs: 2, target }
}

fn climb(plan: &Plan) -> Ladder {
    ladder::run(plan, &Stop::default(), |event| {
        assert!(!matches!(event, Event::Left { .. }), "{event:?}");
    })
    .expect("a ladder")
}

fn tally(ladder: &Ladder, rung: Rung) -> Tally {
    let row = ladder.rows.iter().find(|row| row.rung == rung).expect("a row");
    row.result.as_ref().expect("figures").tally
}

#[test]
fn every_rung_arrives_with_the_requests_and_connections_of_its_way() {
    let ladder = climb(&plan(Target::Embedded(Imitated::at(Duration::ZERO))));
    assert_eq!(ladder.rows.iter().map(|row| row.rung).collect::<Vec<_>>(), Rung::ALL);
    let n = FILES as u64;
    for (rung, requests, connections) in [
        (Rung::Resumable, 2 * n, 2 * n),
        (Rung::Single, n, n),
        (Rung::KeepAlive, n, 1),
        (Rung::Concurrent, n, n),
        (Rung::Http2, n, 1),
    ] {
        assert_eq!(tally(&ladder, rung), Tally { requests, connections }, "{rung:?}");
    }
    let laneway = tally(&ladder, Rung::Laneway);
    assert!(laneway.requests >= n && (1..=n).contains(&laneway.connections), "{laneway:?}");
    assert!(ladder.floor == ladder.rtt * 3);
}

#[test]
fn a_plain_server_elsewhere_has_no_http2_row_and_is_left_as_it_was() {
    let server = Server::start(Config::default()).unwrap();
    let remote = Remote { prefix: "some/where".to_owned(), ..Remote::gcs(server.url()) };
    let ladder = climb(&plan(Target::Remote(remote)));
    for row in &ladder.rows {
        match row.rung {
            Rung::Http2 => {
                assert!(matches!(row.result, Err(Failure::Rival(RivalError::NoHttp2))), "{row:?}");
            }
            _ => assert!(row.result.is_ok(), "{row:?}"),
        }
    }
    assert_eq!(ladder.floor, ladder.rtt * 2);
    assert!(
        server.create_bucket("laneway-ladder").is_ok() && server.store().keys("laneway-ladder").is_empty()
    );
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
    let ended = ladder::run(&plan(Target::Remote(remote)), &stop, |event| {
        if matches!(event, Event::Ran { rung: Rung::Single, .. }) {
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
    let plan = plan(Target::Remote(remote));
    let ladder = ladder::run(&plan, &Stop::default(), |_| {}).unwrap();
    for row in ladder.rows {
        let failure = row.result.unwrap_err().to_string();
        if row.rung != Rung::Http2 {
            assert!(failure.contains("404") || failure.contains("bucket"), "{:?}: {failure}", row.rung);
        }
    }
}
