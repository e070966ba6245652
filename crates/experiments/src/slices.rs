//! One huge object down: the strategy of a program of 2021, and Laneway's.
//!
//! It repeats the measurement of a 32 GiB object on a virtual machine of four processors, where parallel ranged streams
//! came to 1105 MiB/s.

mod fixed;
mod laneway;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::errand::{self, Measured};
use crate::place::Target;
use crate::rival::Tally;
use crate::site::Site;
use crate::stage::{Stage, Supply, on_stage};
use crate::table::{self, Line, Table};
use crate::trace::Trace;
use crate::turns::{Event, Row, Run, Rung, turns};
use crate::{Error, Failure, Stop, Workers};

const GIB: f64 = (1u64 << 30) as f64;

/// What to download, and where to.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Bytes of the object.
    pub size: u64,
    /// How often each rung runs, in turns.
    pub runs: usize,
    /// Where the file is written; `None` is in memory where there is enough, or among the temporary files.
    pub folder: Option<PathBuf>,
    /// The store.
    pub target: Target,
}

/// What was found.
#[derive(Debug)]
pub struct Slices {
    /// The store's URL.
    pub store: String,
    /// The path's round trip in seconds.
    pub rtt_s: f64,
    /// The least seconds that the path allows: handshakes, one request, and the bytes where the bandwidth is known.
    pub floor_s: f64,
    /// Bytes of the object.
    pub size: u64,
    /// A row for each rung.
    pub rows: Vec<Row<Figures>>,
}

/// What a run took.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// Seconds from nothing to a checked file.
    pub seconds: f64,
    /// Of these, seconds until the last byte lay in the file. The program of 2021 stopped its clock here.
    pub transfer_s: f64,
    /// MiB a second, over all of the time.
    pub mib_s: f64,
    /// Processor seconds for each GiB; `None` for a run without a process of its own.
    pub cpu_s_per_gib: Option<f64>,
    /// Connections opened.
    pub connections: u64,
    /// Requests sent.
    pub requests: u64,
    /// The most resident memory in bytes; `None` as above.
    pub peak_bytes: Option<u64>,
    /// Whether the checksum was compared with the store's.
    pub verified: bool,
    /// The time over the floor.
    pub floor_ratio: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Strategy {
    Fixed,
    Laneway,
}

const RUNGS: [Rung<Strategy>; 2] = [
    Rung { method: Strategy::Fixed, name: "fixed", description: "2021: fixed slices, checksum read back" },
    Rung { method: Strategy::Laneway, name: "laneway", description: "Laneway" },
];

/// One download.
#[derive(Serialize, Deserialize)]
pub(crate) struct Errand {
    strategy: Strategy,
    key: String,
    to: PathBuf,
}

/// What one download took.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Found {
    seconds: f64,
    transfer_s: f64,
    tally: Tally,
    verified: bool,
    trace: Trace,
}

impl errand::Errand for Errand {
    const NAME: &'static str = "slices";
    type Found = Found;

    async fn run(self, site: Arc<Site>) -> Result<Found, Failure> {
        match self.strategy {
            Strategy::Fixed => fixed::download(&site, &self.key, &self.to).await,
            Strategy::Laneway => laneway::download(&site, &self.key, &self.to).await,
        }
    }
}

/// Downloads the object, rung by rung. Blocks the thread, which must not be one that runs async tasks.
///
/// # Errors
/// What keeps it from being done at all. A rung that fails is a row that says so.
pub fn run(
    plan: &Plan,
    workers: &Workers,
    stop: &Stop,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Slices, Error> {
    if plan.size == 0 || plan.runs == 0 {
        return Err(Error::Plan("at least one byte and one run are needed".to_owned()));
    }
    on_stage((&plan.target, plan.folder.as_deref(), plan.size), (workers, stop), tell, |stage, tell| {
        climb(plan, stage, tell)
    })
}

fn climb(plan: &Plan, stage: &Stage<'_>, tell: &mut dyn FnMut(Event<'_>)) -> Result<Slices, Error> {
    stage.stock(&[Supply { name: "object".to_owned(), seed: 1, size: plan.size }])?;
    tell(Event::Begun { bench: "slices", store: stage.store(), rtt: stage.rtt });
    let rtt_s = stage.rtt.as_secs_f64();
    let floor_s = floor_s(stage, plan.size, &plan.target);
    let to = stage.folder().join("object");
    let one = |strategy, _| {
        let errand = Errand { strategy, key: stage.key("object"), to: to.clone() };
        let ran = stage.carry(errand)?.and_then(|measured| figures(measured, plan.size, floor_s, &to));
        // Each rung begins without a file, so that none finds the pages of another's.
        let _ = std::fs::remove_file(&to);
        Ok(ran)
    };
    let rows = turns(&RUNGS, plan.runs, tell, one, |figures| figures.seconds)?;
    Ok(Slices { store: stage.store().to_owned(), rtt_s, floor_s, size: plan.size, rows })
}

/// TCP, TLS and one request take a round trip each; then the bytes come at the bandwidth, where it is known.
pub(crate) fn floor_s(stage: &Stage<'_>, bytes: u64, target: &Target) -> f64 {
    let bandwidth = match target {
        Target::Embedded(imitated) => imitated.bandwidth,
        Target::Remote(_) => None,
    };
    let trips = if stage.tls() { 3.0 } else { 2.0 };
    trips * stage.rtt.as_secs_f64() + bandwidth.map_or(0.0, |rate| bytes as f64 / rate as f64)
}

fn figures(
    measured: Measured<Found>,
    size: u64,
    floor_s: f64,
    file: &std::path::Path,
) -> Result<Run<Figures>, Failure> {
    let Measured { found, usage } = measured;
    let len = std::fs::metadata(file).map_err(Failure::File)?.len();
    if len != size {
        return Err(Failure::Different(format!("the file has {len} bytes, the object {size}")));
    }
    let figures = Figures {
        seconds: found.seconds,
        transfer_s: found.transfer_s,
        mib_s: size as f64 / f64::from(1 << 20) / found.seconds.max(f64::MIN_POSITIVE),
        cpu_s_per_gib: usage.map(|usage| usage.cpu_s / (size as f64 / GIB)),
        connections: found.tally.connections,
        requests: found.tally.requests,
        peak_bytes: usage.and_then(|usage| usage.peak_bytes),
        verified: found.verified,
        floor_ratio: found.seconds / floor_s.max(f64::MIN_POSITIVE),
    };
    Ok(Run { figures, trace: found.trace })
}

impl Slices {
    /// What people are shown.
    pub fn table(&self) -> Table {
        let head = vec![
            "way",
            "seconds",
            "of them checking",
            "MiB/s",
            "CPU s/GiB",
            "connections",
            "peak MiB",
            "times the floor",
        ];
        let cells = |f: &Figures| {
            vec![
                table::seconds(f.seconds),
                if f.verified { table::seconds(f.seconds - f.transfer_s) } else { "unverified".to_owned() },
                format!("{:.0}", f.mib_s),
                f.cpu_s_per_gib.map_or("-".to_owned(), |s| format!("{s:.2}")),
                f.connections.to_string(),
                table::mib(f.peak_bytes),
                format!("{:.2}", f.floor_ratio),
            ]
        };
        Table { head, rows: self.rows.iter().map(|row| Line::new(row, cells)).collect() }
    }
}
