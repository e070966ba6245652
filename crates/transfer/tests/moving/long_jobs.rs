//! Jobs that are long beside what a server keeps idle connections for.

use std::time::Duration;

use laneway_server::Config;

use super::stage::{DIALECTS, MIB, Stage, at_once};

/// As a burst of small files and some large ones that take minutes, at a server that keeps idle connections for half of one.
#[test]
fn large_uploads_after_a_burst_of_small_ones_are_completed_on_connections_that_are_there() {
    at_once(&DIALECTS, |kind| {
        let config = Config {
            rtt: Duration::from_millis(60),
            idle_max: Some(Duration::from_millis(700)),
            ..Config::default()
        };
        let stage = Stage::set_up(kind, config, |settings| settings.lanes.bandwidth_limit = Some(12 << 20));
        for i in 0..80 {
            stage.file(&format!("tree/small/{i}"), format!("file {i}"));
        }
        for i in 0..2 {
            stage.file(&format!("tree/large/{i}"), vec![i; 20 * MIB]);
        }
        stage.cp_r(stage.path("tree"), stage.url("up")).all_done();
        let counters = stage.client.counters();
        assert_eq!(counters.retries, 0, "{kind:?}: a connection that was closed while idle costs no attempt");
        assert!(counters.connections_peak > 8, "{kind:?}: a burst that shows something: {counters:?}");
        // And back, by connections that have all been closed meanwhile but those of the last moment.
        stage.cp_r(stage.url("up"), stage.path("down")).all_done();
        assert_eq!(stage.client.counters().retries, 0, "{kind:?}");
    });
}
