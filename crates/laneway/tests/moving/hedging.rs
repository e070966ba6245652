//! Hedged requests: if one answer stalls while others arrive, a second request fetches its bytes.

use std::time::Duration;

use laneway::{CopyRequest, Location, ReadRequest};
use laneway_server::{Config, Faults};

use crate::stage::{DIALECTS, KINDS, Kind, MIB, Report, Stage, noise};

/// Returns a stage whose clients wait the usual 30 s for a silent server. In these tests a hedge comes earlier.
fn stage(kind: Kind, rule: &str) -> Stage {
    Stage::with_faults(kind, &[rule])
}

/// Returns a stage whose client has already sent many requests. The client may hedge 2 % of them, which is enough even on a slow, loaded
/// machine. The rule counts only the requests after them.
fn busy_stage(kind: Kind, rule: &str) -> Stage {
    let stage = Stage::new(kind);
    for i in 0..500 {
        stage.object(&format!("before/{i}"), b"x");
    }
    stage.cp_r(stage.url("before"), stage.path("before")).all_verified();
    stage.server.set_faults(Faults::parse([rule]).unwrap());
    stage
}

/// Panics unless the copy succeeds without retries, by hedges within the budget. The server must have received no additional
/// requests except the hedges.
#[track_caller]
fn is_hedged(stage: &Stage, gets: u64, copy: impl FnOnce() -> Report) {
    let before = stage.requests("get");
    let report = copy();
    report.all_verified();
    let summary = &report.summary;
    assert_eq!(summary.retries, 0, "nothing had to be tried again");
    assert!(summary.hedges >= 1, "{summary:?}");
    let counters = stage.client.counters();
    assert!(counters.hedges <= counters.requests / 50, "{counters:?}");
    assert_eq!(stage.requests("get") - before, gets + summary.hedges, "a hedge is one more request");
}

#[test]
fn a_small_object_that_stalls_is_brought_by_a_second_request() {
    for kind in KINDS {
        for rule in ["get:30 stall@0", "get:30 stall@1000", "get:60 stall@3000"] {
            let stage = busy_stage(kind, rule);
            for i in 0..60 {
                stage.object(&format!("t/{i}"), &noise(4000, i));
            }
            is_hedged(&stage, 60, || stage.cp_r(stage.url("t"), stage.path("out")));
            for i in 0..60 {
                let file = std::fs::read(stage.path(&format!("out/{i}"))).unwrap();
                assert!(file == noise(4000, i), "{kind:?} {rule}: object {i}");
            }
        }
    }
}

#[test]
fn an_object_whose_size_nobody_knew_is_brought_by_a_second_request() {
    for kind in KINDS {
        // In the first two cases the object shares an express lane with other objects. In the last case it is
        // alone on a freight lane.
        for (count, rule) in
            [(25, "get:1 key=20 stall@0"), (25, "get:1 key=20 stall@3000"), (1, "get:1 stall@3000")]
        {
            let stage = busy_stage(kind, rule);
            // The keys are so few that Laneway doesn't list them first.
            let keys: Vec<_> = (0..count).map(|i| format!("{i}")).collect();
            keys.iter().for_each(|key| stage.object(key, &noise(4000, 1)));
            std::fs::create_dir_all(stage.path("out")).unwrap();
            let sources = keys.iter().map(|key| stage.url(key)).collect();
            let request = CopyRequest::new(sources, Location::Local(stage.path("out")));
            is_hedged(&stage, count, || stage.copy(request));
            for key in &keys {
                let file = std::fs::read(stage.path(&format!("out/{key}"))).unwrap();
                assert!(file == noise(4000, 1), "{kind:?} {rule}: object {key}");
            }
        }
    }
}

#[test]
fn another_request_brings_the_rest_of_a_stalled_stream() {
    for kind in KINDS {
        // Depending on the machine's speed, either a hedge or the helping streams fetch the rest of the
        // stalled stream.
        let stage = stage(kind, "get:1 stall@1MiB");
        let bytes = noise(56 * MIB, 1);
        stage.object("k", &bytes);
        let report = stage.cp(stage.url("k"), stage.path("k"));
        report.all_verified();
        assert!(std::fs::read(stage.path("k")).unwrap() == bytes, "{kind:?}");
        let summary = &report.summary;
        assert_eq!(summary.retries, 0, "{kind:?}");
        assert!(summary.hedges <= 2, "{kind:?}: {summary:?}");
        let twice = summary.network_bytes - bytes.len() as u64;
        assert!(twice <= 16 * MIB as u64, "{kind:?}: {twice} bytes came twice");
    }
}

#[test]
fn all_bytes_are_read_although_a_hedge_was_sent_for_the_first_ones() {
    for kind in KINDS {
        let stage = stage(kind, "get:1 stall@1MiB");
        let bytes = noise(56 * MIB, 1);
        stage.object("k", &bytes);
        let got = stage.client.bucket(&stage.url("").to_string()).unwrap().get("k").call().unwrap();
        stage.wait_for("get", 2);
        assert!(got.bytes_blocking().unwrap() == bytes, "{kind:?}");
    }
}

#[test]
fn a_stream_in_order_that_stalls_is_written_once() {
    for kind in KINDS {
        for rule in ["get:1 key=k stall@1MiB", "get:4 key=k stall@3MiB"] {
            // Over HTTP/2 Laneway cancels an opening stream beside other work before its body arrives.
            if kind.tls && rule.starts_with("get:1") {
                continue;
            }
            let stage = stage(kind, rule);
            let bytes = noise(40 * MIB, 1);
            stage.object("k", &bytes);
            // The download of another object shows the client the usual speed.
            stage.object("before", &noise(40 * MIB, 2));
            stage.cp(stage.url("before"), stage.path("before")).all_verified();
            let mut read = Vec::new();
            stage.client.read(&ReadRequest::new(stage.url("k")), &mut read).unwrap();
            assert!(read == bytes, "{kind:?} {rule}");
            let counters = stage.client.counters();
            assert!(counters.retries == 0 && counters.hedges >= 1, "{kind:?} {rule}: {counters:?}");
        }
    }
}

#[test]
fn the_connection_of_an_answer_that_lost_is_closed() {
    for kind in DIALECTS {
        let stage = busy_stage(kind, "get:30 stall@0");
        for i in 0..60 {
            stage.object(&format!("t/{i}"), &noise(4000, i));
        }
        is_hedged(&stage, 60, || stage.cp_r(stage.url("t"), stage.path("out")));
        let opened = stage.server.counters().connections;
        stage.wait_until("a connection to be closed", |server| server.connections_open < opened);
    }
}

#[test]
fn of_healthy_objects_few_are_asked_for_twice() {
    for kind in KINDS {
        let stage = Stage::new(kind);
        for i in 0..1000 {
            stage.object(&format!("t/{i}"), &noise(5000, i));
        }
        let report = stage.cp_r(stage.url("t"), stage.path("out"));
        report.all_verified();
        // On a loaded machine, further answers may be late. The budget is 2 % of the requests: the objects, a few listing
        // pages and the hedges.
        assert!(report.summary.hedges <= 21, "{kind:?}: {:?}", report.summary);
    }
}

#[test]
fn writes_are_never_sent_twice_at_once() {
    for kind in KINDS {
        let faults = Faults::parse(["put:30 stall@100"]).unwrap();
        let stage =
            Stage::with_no_progress(kind, Config { faults, ..Config::default() }, Duration::from_secs(1));
        for i in 0..60 {
            stage.file(&format!("in/{i}"), noise(4000, i));
        }
        let report = stage.cp_r(stage.path("in"), stage.url("up/"));
        report.all_verified();
        assert_eq!(report.summary.hedges, 0, "{kind:?}");
        assert!(report.summary.retries > 0, "{kind:?}: nothing stalled");
    }
}
