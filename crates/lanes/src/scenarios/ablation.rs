//! Measures the effect of each constant in [`Rules`]. The simulated jobs are run again with one changed constant at a time.
//!
//! `cargo test -p laneway-lanes --lib ablation -- --ignored --nocapture` prints a row for each changed value. `LANEWAY_RULES=gain,growth`
//! limits the run to some constants.

use super::mixed::{MixedJob, RigLink, in_parallel};
use super::*;
use crate::simulator::CongestionControl;

/// The results of a job. The first value of each pair is an index into [`KINDS`].
type Figures = Vec<(usize, f64)>;
const KINDS: [&str; 8] =
    ["small p50", "small p99", "total", "arrivals p50", "arrivals p99", "bulk time", "tiny files", "lanes"];
const P50: usize = 0;
const P99: usize = 1;
const TOTAL: usize = 2;
const ARRIVALS_P50: usize = 3;
const ARRIVALS_P99: usize = 4;
const BULK: usize = 5;
const TINY: usize = 6;
const LANES: usize = 7;

/// Relative changes below these limits are noise: a change of a mean, and a change of a single job.
const NOISE: f64 = 0.02;
const NOISE_OF_A_CELL: f64 = 0.12;

#[derive(Clone, Copy, Debug)]
enum AblationJob {
    /// Small and large objects at once.
    Mixed(RigLink, Protocol, bool),
    /// Small objects that are requested one after another during bulk.
    Arrivals(u64, Protocol, bool),
    /// Tiny uploads that are all submitted at once. The values are their number and the round trip in ms.
    Tiny(usize, u64, Protocol),
    /// One object, with this congestion control. The last value says if the server limits the rate of each connection.
    Object(RigLink, bool, CongestionControl, bool),
}

impl AblationJob {
    fn all() -> Vec<Self> {
        let mut jobs = Vec::new();
        for rig in [
            RigLink(0.25, 1000, 1024, 0.0),
            RigLink(1.0, 1000, 1024, 0.0),
            RigLink(10.0, 1000, 256, 0.1),
            RigLink(25.0, 500, 1024, 0.0),
            RigLink(60.0, 200, 2048, 0.0),
            RigLink(10.0, 100, 256, 0.0),
        ] {
            jobs.extend(
                [(Protocol::H1, false), (Protocol::H2, false), (Protocol::H1, true)]
                    .map(|(p, up)| Self::Mixed(rig, p, up)),
            );
        }
        for rtt_ms in [2, 50] {
            jobs.extend(
                [(Protocol::H1, false), (Protocol::H2, true)].map(|(p, up)| Self::Arrivals(rtt_ms, p, up)),
            );
            jobs.push(Self::Arrivals(rtt_ms, Protocol::H1, true));
        }
        for protocol in [Protocol::H1, Protocol::H2] {
            for rtt_ms in [1, 20, 120] {
                jobs.extend([50, 1000].map(|count| Self::Tiny(count, rtt_ms, protocol)));
            }
        }
        for rig in [
            RigLink(5.0, 200, 256, 0.0),
            RigLink(10.0, 1000, 512, 0.0),
            RigLink(40.0, 300, 1024, 0.0),
            RigLink(100.0, 1000, 8192, 0.0),
        ] {
            jobs.extend([false, true].map(|is_up| Self::Object(rig, is_up, CongestionControl::Rate, false)));
        }
        for half_ms in [1.0, 10.0] {
            jobs.push(Self::Object(RigLink(half_ms, 1000, 2560, 0.0), false, CongestionControl::Rate, true));
            jobs.push(Self::Object(RigLink(half_ms, 1000, 1024, 0.1), false, CongestionControl::Loss, false));
        }
        jobs
    }

    fn run(self, rules: &'static Rules) -> Figures {
        let over = |rig: RigLink, server: Server, is_up, large, small| {
            let mixed =
                MixedJob { wires: vec![rig.wire()], servers: vec![server], is_up, large, small, seed: 1 };
            mixed.run_by(rules)
        };
        match self {
            Self::Mixed(rig, protocol, is_up) => {
                let small = rig.mixed(protocol, is_up, CongestionControl::Rate, 1).small[..80].to_vec();
                let took = over(rig, rig.server(protocol), is_up, vec![20 * MIB; 4], small);
                let times = took.times;
                vec![
                    (P50, times.small_p50),
                    (P99, times.small_p99),
                    (TOTAL, times.total),
                    (LANES, took.lanes as f64),
                ]
            }
            Self::Arrivals(rtt_ms, protocol, is_up) => {
                let want = if is_up { RequestSpec::put } else { RequestSpec::get };
                let mut world = World::new(GIGABIT, vec![Server::new(rtt_ms, protocol)], CONNECTIONS_MAX, 1);
                world.dispatcher = Dispatcher::by(rules, rules.connections_max);
                let bulk: Vec<_> = (0..16).map(|_| world.submit(Duration::ZERO, want(16 * MIB))).collect();
                let arrive =
                    |(i, size): (u64, u64)| world.submit(Duration::from_millis(500 + 5 * i), want(size));
                let small: Vec<_> = (0..).zip(sizes(300, 16 * KIB, 300 * KIB)).map(arrive).collect();
                world.run();
                let times = world.times(&small);
                let of_100 = |part| percentile(&times, part).as_secs_f64();
                let bulk = world.end_of(&bulk).as_secs_f64();
                vec![
                    (ARRIVALS_P50, of_100(50)),
                    (ARRIVALS_P99, of_100(99)),
                    (BULK, bulk),
                    (LANES, world.lanes_peak as f64),
                ]
            }
            Self::Tiny(count, rtt_ms, protocol) => {
                let mut world = World::new(GIGABIT, vec![Server::new(rtt_ms, protocol)], CONNECTIONS_MAX, 1);
                world.dispatcher = Dispatcher::by(rules, rules.connections_max);
                for _ in 0..count {
                    world.submit(Duration::ZERO, small());
                }
                world.run();
                vec![(TINY, world.last_end().as_secs_f64()), (LANES, world.lanes_peak as f64)]
            }
            Self::Object(rig, is_up, control, is_capped) => {
                let stream_rate = if is_capped { 20e6 } else { f64::INFINITY };
                let server = Server { control, stream_rate, ..rig.server(Protocol::H1) };
                let took = over(rig, server, is_up, vec![96 * MIB], Vec::new());
                vec![(TOTAL, took.times.total), (LANES, took.lanes as f64)]
            }
        }
    }
}

/// Returns two changes for each kind of result: the mean over all jobs, and the largest change of a single job. A kind is left out if both
/// changes are noise.
fn row(chosen: &[Figures], changed: &[Figures]) -> Vec<String> {
    let pairs = || chosen.iter().flatten().zip(changed.iter().flatten());
    let kinds = (0..KINDS.len()).filter_map(|kind| {
        let changes: Vec<f64> =
            pairs().filter(|((of, _), _)| *of == kind).map(|((_, was), (_, is))| is / was - 1.0).collect();
        let mean = changes.iter().sum::<f64>() / changes.len() as f64;
        let most = changes.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or_default();
        let is_noise = mean.abs() < NOISE && most.abs() < NOISE_OF_A_CELL;
        (!is_noise).then(|| format!("{} {:+.0} % ({:+.0} %)", KINDS[kind], mean * 1e2, most * 1e2))
    });
    kinds.collect()
}

#[test]
#[ignore = "it prints, and asserts nothing"]
fn ablation() {
    let jobs = AblationJob::all();
    let asked = std::env::var("LANEWAY_RULES").unwrap_or_default();
    let is_asked = |rule: &str| asked.is_empty() || asked.split(',').any(|name| name == rule);
    let chosen = in_parallel(&jobs, |job| job.run(&Rules::CHOSEN));
    let rules: Vec<_> = Rules::ablated().into_iter().filter(|(rule, ..)| is_asked(rule)).collect();
    in_parallel(&rules, |(rule, other, rules)| {
        let rules = &*Box::leak(Box::new(*rules));
        let changed: Vec<_> = jobs.iter().map(|job| job.run(rules)).collect();
        let row = row(&chosen, &changed);
        println!("| {rule} | {other} | {} |", if row.is_empty() { "none".into() } else { row.join(", ") });
    });
}
