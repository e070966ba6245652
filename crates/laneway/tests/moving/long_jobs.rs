//! Jobs that are long beside what a server keeps idle connections for.

use std::time::Duration;

use laneway::Engine;
use laneway_server::Config;

use super::stage::{DIALECTS, MIB, Stage, at_once};

/// How long the large files take in each direction, in seconds, in a soak.
const SOAK_VARIABLE: &str = "LANEWAY_SOAK_LONG_JOB_S";

/// What makes a job long.
struct Length {
    /// How long the server keeps idle connections.
    idle_max: Duration,
    /// Bytes a second.
    bandwidth: u64,
    /// The size of each of two large files, in MiB.
    large_mib: usize,
}

impl Length {
    /// A few seconds beside a server that hurries, or a minute and more beside one that keeps what is idle for five seconds.
    fn asked() -> Self {
        match std::env::var(SOAK_VARIABLE) {
            Err(_) => Self { idle_max: Duration::from_millis(700), bandwidth: 12 << 20, large_mib: 20 },
            Ok(seconds) => {
                let seconds: usize = seconds.parse().expect("seconds");
                Self { idle_max: Duration::from_secs(5), bandwidth: 3 << 20, large_mib: seconds * 3 / 2 }
            }
        }
    }
}

/// As a burst of small files and some large ones that take minutes, at a server that keeps idle connections for half of one.
/// `LANEWAY_SOAK_LONG_JOB_S` makes it last minutes indeed.
#[test]
fn a_long_job_avoids_connections_closed_while_idle() {
    let Length { idle_max, bandwidth, large_mib } = Length::asked();
    at_once(&DIALECTS, |kind| {
        let config = Config { rtt: Duration::from_millis(60), idle_max: Some(idle_max), ..Config::default() };
        let stage =
            Stage::set_up_on(Engine::builder().bandwidth_limit(bandwidth), kind, config, |settings| settings);
        for i in 0..80 {
            stage.file(&format!("tree/small/{i}"), format!("file {i}"));
        }
        for i in 0..2 {
            stage.file(&format!("tree/large/{i}"), vec![i; large_mib * MIB]);
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
