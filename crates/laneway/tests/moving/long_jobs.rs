//! Jobs that last longer than the server keeps idle connections.

use std::time::Duration;

use laneway::Engine;
use laneway_server::Config;

use super::stage::{DIALECTS, MIB, Stage, at_once};

/// The variable that sets the duration of the large transfers in each direction, in seconds, for a soak.
const SOAK_VARIABLE: &str = "LANEWAY_SOAK_LONG_JOB_S";

/// The parameters that determine a job's duration.
struct Length {
    /// The server closes a connection that is idle for this long.
    idle_max: Duration,
    /// The limit in bytes per second.
    bandwidth: u64,
    /// The size of each of two large files, in MiB.
    large_mib: usize,
}

impl Length {
    /// Returns a job of a few seconds at a server with a short idle timeout. In a soak the job lasts a minute or more, and
    /// the timeout is 5 s.
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

/// Imitates a burst of small files and some large ones that take minutes, at a server that closes idle connections after 30 s.
/// In this test all times are shorter. `LANEWAY_SOAK_LONG_JOB_S` makes the job last for minutes.
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
        assert_eq!(counters.retries, 0, "{kind:?}: a connection closed while idle costs no attempt");
        assert!(counters.connections_peak > 8, "{kind:?}: the burst needs many connections: {counters:?}");
        // Copy the tree back. By now the server has closed all connections except the last ones in use.
        stage.cp_r(stage.url("up"), stage.path("down")).all_done();
        assert_eq!(stage.client.counters().retries, 0, "{kind:?}");
    });
}
