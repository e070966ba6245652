//! One object down: in one stream, in five fixed parts side by side, and with Laneway.
//!
//! One stream fills a clean link. Parts pay where a store caps each connection, or where one stream can't fill the link.

mod fixed;
mod laneway;
mod single;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::errand::{self, Measured};
use crate::place::{Imitated, Target};
use crate::program::{Chore, Job, Took, Way, versions, with_programs};
use crate::random::Random;
use crate::rival::Tally;
use crate::site::Site;
use crate::stage::{Stage, Supply, on_stage};
use crate::table::{self, Table};
use crate::turns::{Compared, Event, Measure, Repeats, Row, Rung, turns};
use crate::{Error, Failure, Stop, Workers};

/// What the object's bytes are made from.
const SEED: u64 = 1;

/// The links that are imitated where nothing else is asked for: a clean one with a deep queue, a far one with a short queue, and one to a
/// store that caps each connection at two fifths of the link.
pub const LINKS: [Imitated; 3] = [
    Imitated { queue: Some(2560 << 10), ..Imitated::USUAL },
    Imitated {
        rtt: Duration::from_millis(80),
        bandwidth: Some(37_500_000),
        queue: Some(1 << 20),
        ..Imitated::USUAL
    },
    Imitated { queue: Some(2560 << 10), connection_bandwidth: Some(50_000_000), ..Imitated::USUAL },
];

const GIB: f64 = (1u64 << 30) as f64;

/// What to download, and where to.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Bytes of the object.
    pub size: u64,
    /// How often each rung runs, in turns.
    pub runs: Repeats,
    /// Where the file is written; `None` is in memory where there is enough, or among the temporary files.
    pub folder: Option<PathBuf>,
    /// Whether installed programs are rivals, where the store is one in this process.
    pub programs: bool,
    /// The store.
    pub target: Target,
}

/// What was found.
#[derive(Debug)]
pub struct Slices {
    /// The store's URL.
    pub store: String,
    /// What the embedded store imitated, if it was one.
    pub link: Option<Imitated>,
    /// The programs of others that took part: names and versions.
    pub programs: Vec<String>,
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
    /// Seconds until the last byte lay in the file, before anything is read back.
    pub transfer_s: f64,
    /// MiB a second, over all of the time.
    pub mib_s: f64,
    /// Processor seconds for each GiB; `None` for a run without a process of its own.
    pub cpu_s_per_gib: Option<f64>,
    /// Connections opened.
    pub connections: u64,
    /// Segments that the imitated link lost, and that were sent again; `None` of a store elsewhere.
    pub resent_segments: Option<u64>,
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
    Single,
    Fixed,
    Laneway,
}

const RUNGS: [Rung<Strategy>; 3] = [
    rung(Strategy::Single, "single", "one stream, checked while it comes"),
    rung(Strategy::Fixed, "fixed", "five fixed parts, checksum read back"),
    rung(Strategy::Laneway, "laneway", "Laneway"),
];

const fn rung(method: Strategy, name: &'static str, description: &'static str) -> Rung<Strategy> {
    Rung { method, name, description, group: "" }
}

impl Compared for Figures {
    const MEASURES: &'static [Measure<Self>] = &[Measure {
        name: "seconds",
        short: "",
        heads: ["range s", "Laneway"],
        value: |figures| figures.seconds,
    }];

    fn lasted_s(&self) -> f64 {
        self.seconds
    }
}

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
}

impl errand::Errand for Errand {
    const NAME: &'static str = "slices";
    type Found = Found;

    async fn run(self, site: Arc<Site>) -> Result<Found, Failure> {
        match self.strategy {
            Strategy::Single => single::download(&site, &self.key, &self.to).await,
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
    if plan.size == 0 || plan.runs.least == 0 {
        return Err(Error::Plan("at least one byte and one run are needed".to_owned()));
    }
    on_stage((&plan.target, plan.folder.as_deref(), plan.size), (workers, stop), tell, |stage, tell| {
        climb(plan, stage, tell)
    })
}

fn climb(plan: &Plan, stage: &Stage<'_>, tell: &mut dyn FnMut(Event<'_>)) -> Result<Slices, Error> {
    stage.stock(&[Supply { name: "object".to_owned(), seed: SEED, size: plan.size }])?;
    tell(Event::Begun { bench: "slices", store: stage.store(), rtt: stage.rtt });
    let rtt_s = stage.rtt.as_secs_f64();
    let floor_s = floor_s(stage, plan.size, &plan.target);
    let to = stage.folder().join("object");
    let key = stage.key("object");
    let one = |way, _| {
        let lost = stage.segments_lost();
        let ran = match way {
            Way::Own(strategy) => stage.carry(Errand { strategy, key: key.clone(), to: to.clone() })?,
            Way::Program(program) => {
                let ran = stage.run(program, &Job::Down { key: &key, file: &to })?;
                // Not every program tells whether it has checked what came.
                ran.and_then(|(took, tally)| {
                    same(&to, plan.size)?;
                    let Took { seconds, .. } = took;
                    let found = Found { seconds, transfer_s: seconds, tally, verified: false };
                    Ok(Measured { found, usage: None })
                })
            }
        };
        let resent = stage.segments_lost().zip(lost).map(|(after, before)| after - before);
        let ran = ran.and_then(|measured| figures(measured, resent, plan.size, floor_s, &to));
        // Each rung begins without a file, so that none finds the pages of another's.
        let _ = std::fs::remove_file(&to);
        Ok(ran)
    };
    let rungs = with_programs(&RUNGS, Chore::Copy, &stage.programs(plan.programs));
    let rows = turns(&rungs, plan.runs, tell, one)?;
    let (store, programs) = (stage.store().to_owned(), versions(&rungs));
    Ok(Slices { store, link: stage.link, programs, rtt_s, floor_s, size: plan.size, rows })
}

/// Whether a file has the object's bytes.
///
/// # Errors
/// [`Failure::Different`] where it hasn't; what the disk answers.
fn same(file: &Path, size: u64) -> Result<(), Failure> {
    let mut file = File::open(file).map_err(Failure::File)?;
    let mut block = vec![0; 1 << 20];
    let mut at = 0;
    while at < size {
        let end = size.min(at + block.len() as u64);
        let found = &mut block[..(end - at) as usize];
        file.read_exact(found).map_err(Failure::File)?;
        if *found != Random::content_at(SEED, &(at..end)) {
            return Err(Failure::Different(format!("the bytes {at} to {end} are others than were stored")));
        }
        at = end;
    }
    Ok(())
}

/// TCP, TLS and one request take a round trip each; then the bytes come at the bandwidth, where it is known.
pub(crate) fn floor_s(stage: &Stage<'_>, bytes: u64, target: &Target) -> f64 {
    let bandwidth = target.imitated().and_then(|imitated| imitated.bandwidth);
    let trips = if stage.tls() { 3.0 } else { 2.0 };
    trips * stage.rtt.as_secs_f64() + bandwidth.map_or(0.0, |rate| bytes as f64 / rate as f64)
}

fn figures(
    measured: Measured<Found>,
    resent_segments: Option<u64>,
    size: u64,
    floor_s: f64,
    file: &Path,
) -> Result<Figures, Failure> {
    let Measured { found, usage } = measured;
    let len = std::fs::metadata(file).map_err(Failure::File)?.len();
    if len != size {
        return Err(Failure::Different(format!("the file has {len} bytes, the object {size}")));
    }
    Ok(Figures {
        seconds: found.seconds,
        transfer_s: found.transfer_s,
        mib_s: size as f64 / f64::from(1 << 20) / found.seconds.max(f64::MIN_POSITIVE),
        cpu_s_per_gib: usage.map(|usage| usage.cpu_s / (size as f64 / GIB)),
        connections: found.tally.connections,
        resent_segments,
        requests: found.tally.requests,
        peak_bytes: usage.and_then(|usage| usage.peak_bytes),
        verified: found.verified,
        floor_ratio: found.seconds / floor_s.max(f64::MIN_POSITIVE),
    })
}

impl Slices {
    /// The object and its way, for people.
    pub fn name(&self) -> String {
        let size = laneway_quantity::readable_size(self.size);
        format!("{size} over {}", self.path())
    }

    /// The way to the store, for people.
    pub fn path(&self) -> String {
        crate::report::path(self.link, &self.store, self.rtt_s)
    }

    /// Segments that were sent again, as a share of those that the object takes.
    fn resent(&self, segments: u64) -> String {
        let all = self.size as f64 / f64::from(Imitated::SEGMENT);
        format!("{:.1} %", segments as f64 / all * 1e2)
    }

    /// What people are shown.
    pub fn table(&self) -> Table {
        let head = [
            "method",
            "seconds",
            "of them checking",
            "MiB/s",
            "CPU s/GiB",
            "connections",
            "sent again",
            "peak MiB",
            "times the least",
        ];
        Table::compared(&head, &self.rows, |f| {
            vec![
                table::seconds(f.seconds),
                if f.verified { table::seconds(f.seconds - f.transfer_s) } else { "-".to_owned() },
                format!("{:.0}", f.mib_s),
                f.cpu_s_per_gib.map_or("-".to_owned(), |s| format!("{s:.2}")),
                f.connections.to_string(),
                f.resent_segments.map_or("-".to_owned(), |segments| self.resent(segments)),
                table::mib(f.peak_bytes),
                format!("{:.2}", f.floor_ratio),
            ]
        })
    }
}
