//! Small objects beside large ones: who waits for whom.
//!
//! It repeats the measurement in which the median small object took 15 s, because large ones held every connection of
//! an SDK's pool. Two questions are asked: how long small objects take that are issued in one breath with large ones
//! (cold), and how long those take that arrive at random while bulk has been running, compared with the same arrivals on
//! an idle link.

mod client;
mod laneway;
mod load;
mod rivals;
mod scene;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::arrivals::Arrivals;
use crate::errand::{self, Measured};
use crate::latency::Latencies;
use crate::place::Target;
use crate::rival::Tally;
use crate::site::Site;
use crate::stage::{Stage, on_stage};
use crate::table::{Line, Table, seconds};
use crate::trace::Trace;
use crate::turns::{Event, Row, Run, Way, turns};
use crate::{Error, Failure, Stop, Workers};
use load::{Load, Object};

/// How long bulk has been running when the first small object arrives.
const LEAD_S: f64 = 0.5;

/// The least and the most bytes of a small object, as lakehouses have them.
pub const SMALL_SIZE: (u64, u64) = (32 << 10, 512 << 10);

/// What is moved together, and where.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many large objects.
    pub large: usize,
    /// Bytes of each large object.
    pub large_size: u64,
    /// How many small objects.
    pub small: usize,
    /// The least and the most bytes of a small object.
    pub small_size: (u64, u64),
    /// How many small objects a second arrive while bulk is running; `None` leaves that part out.
    pub arrivals: Option<f64>,
    /// Whether objects go up instead of down.
    pub puts: bool,
    /// What sizes and arrivals are drawn from.
    pub seed: u64,
    /// How often each rung runs, in turns.
    pub runs: usize,
    /// Where files are; `None` is in memory where there is enough, or among the temporary files.
    pub folder: Option<PathBuf>,
    /// The store.
    pub target: Target,
}

/// What was found.
#[derive(Debug)]
pub struct Mixed {
    /// The store's URL.
    pub store: String,
    /// The path's round trip in seconds.
    pub rtt_s: f64,
    /// Bytes a second that the embedded store's link carries, where it imitates one.
    pub bandwidth: Option<u64>,
    /// How many objects of what size.
    pub what: String,
    /// Whether objects went up.
    pub puts: bool,
    /// The least median of small objects that are issued with large ones, in seconds: connecting, asking, and the
    /// smaller half of them where the bandwidth is known.
    pub floor_s: f64,
    /// The least seconds that everything together can take.
    pub total_floor_s: f64,
    /// Everything issued in one breath: a row for each rung.
    pub together: Vec<Row<Figures>>,
    /// Small objects that arrive at random, if they were asked for.
    pub arrivals: Vec<Row<ArrivalFigures>>,
}

/// What a run took in which everything was issued in one breath. Latencies count from there.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// Median of the small objects, in seconds.
    pub small_p50_s: f64,
    /// Their 99th percentile.
    pub small_p99_s: f64,
    /// Their maximum.
    pub small_max_s: f64,
    /// Until the last object was there.
    pub total_s: f64,
    /// Connections opened.
    pub connections: u64,
    /// Requests sent.
    pub requests: u64,
    /// The median over the floor.
    pub floor_ratio: f64,
    /// Every latency of a small object.
    #[serde(skip)]
    pub latencies: Latencies,
}

/// What small objects took that arrived at random. Latencies count from the moment of arrival.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct ArrivalFigures {
    /// On the idle link: the median, in seconds.
    pub idle_p50_s: f64,
    /// On the idle link: the 99th percentile.
    pub idle_p99_s: f64,
    /// Beside bulk: the median.
    pub beside_p50_s: f64,
    /// Beside bulk: the 99th percentile.
    pub beside_p99_s: f64,
    /// Beside bulk: the maximum.
    pub beside_max_s: f64,
    /// Connections opened beside bulk.
    pub connections: u64,
    /// Bytes of bulk that went by a second meanwhile, in MiB.
    pub bulk_mib_s: f64,
    /// The median beside bulk over the median on the idle link.
    pub idle_ratio: f64,
    /// Every latency on the idle link.
    #[serde(skip)]
    pub idle: Latencies,
    /// Every latency beside bulk.
    #[serde(skip)]
    pub beside: Latencies,
}

/// Who moves the objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Mover {
    /// At most so many h1 connections; requests wait for them in the order of their coming.
    Pool(usize),
    Unbounded,
    Http2,
    Laneway,
}

const WAYS: [Way<Mover>; 4] = [
    Way { way: Mover::Pool(50), name: "pool-50", description: "a pool of 50 HTTP/1.1 connections" },
    Way {
        way: Mover::Unbounded,
        name: "pool-unbounded",
        description: "an unbounded pool of HTTP/1.1 connections",
    },
    Way { way: Mover::Http2, name: "http2", description: "one HTTP/2 connection" },
    Way { way: Mover::Laneway, name: "laneway", description: "Laneway" },
];

/// One run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Errand {
    mover: Mover,
    puts: bool,
    /// What is issued at once; with arrivals, the bulk that goes on until they have come.
    large: Vec<Object>,
    small: Vec<Object>,
    /// When each of the small ones is issued; empty for at once.
    arrivals: Vec<f64>,
    /// Where downloads go and uploads come from.
    folder: PathBuf,
    /// What keys begin with.
    prefix: String,
}

/// What one run took.
#[derive(Serialize, Deserialize)]
pub(crate) struct Found {
    small: Latencies,
    total_s: f64,
    /// Body bytes of large objects, unfinished ones too.
    bulk_bytes: u64,
    tally: Tally,
    trace: Trace,
}

impl errand::Errand for Errand {
    const NAME: &'static str = "mixed";
    type Found = Found;

    async fn run(self, site: Arc<Site>) -> Result<Found, Failure> {
        scene::play(self, site).await
    }
}

/// Moves the objects in each way. Blocks the thread, which must not be one that runs async tasks.
///
/// # Errors
/// What keeps it from being done at all. A rung that fails is a row that says so.
pub fn run(
    plan: &Plan,
    workers: &Workers,
    stop: &Stop,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Mixed, Error> {
    plan.check()?;
    let load = Load::draw(plan);
    on_stage((&plan.target, plan.folder.as_deref(), load.bytes()), (workers, stop), tell, |stage, tell| {
        climb(plan, &load, stage, tell)
    })
}

fn climb(
    plan: &Plan,
    load: &Load,
    stage: &Stage<'_>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Mixed, Error> {
    match plan.puts {
        true => stage.files("here", &load.supplies())?,
        false => stage.stock(&load.supplies())?,
    }
    tell(Event::Begun { bench: "mixed", store: stage.store(), rtt: stage.rtt });
    let floor_s = crate::slices::floor_s(stage, load.smaller_half(), &plan.target);
    let total_floor_s = crate::slices::floor_s(stage, load.bytes(), &plan.target);
    let errand = |mover, beside: bool, arrivals: &[f64]| Errand {
        mover,
        puts: plan.puts,
        large: if beside { load.large.clone() } else { Vec::new() },
        small: load.small.clone(),
        arrivals: arrivals.to_vec(),
        folder: stage.folder().join("here"),
        prefix: stage.key(if plan.puts { "up/" } else { "" }),
    };
    let carry = |errand: Errand| {
        let wanted = errand.arrivals.is_empty().then_some(errand.large.len() + errand.small.len());
        let result = stage.carry(errand)?;
        if plan.puts {
            let there = stage.count("up/")?;
            if let Err(left) = stage.clear("up/") {
                return Ok(Err(left.failure));
            }
            if let (Some(wanted), Ok(_)) = (wanted, &result)
                && there != wanted
            {
                let why = format!("{there} of {wanted} objects are in the store");
                return Ok(Err(Failure::Different(why)));
            }
        }
        Ok::<_, Error>(result)
    };
    let together = turns(
        &WAYS,
        plan.runs,
        tell,
        |mover, _| Ok(carry(errand(mover, true, &[]))?.map(|measured| figures(measured, floor_s))),
        |figures| figures.small_p50_s,
    )?;
    let arrivals = match plan.arrivals {
        None => Vec::new(),
        Some(rate) => {
            let times: Vec<f64> =
                Arrivals::new(rate, plan.seed).take(plan.small).map(|at| at + LEAD_S).collect();
            let both = |mover, _| {
                let idle = match carry(errand(mover, false, &times))? {
                    Ok(idle) => idle,
                    Err(failure) => return Ok(Err(failure)),
                };
                Ok(carry(errand(mover, true, &times))?.map(|beside| arrival_figures(idle, beside)))
            };
            turns(&WAYS, plan.runs, tell, both, |figures| figures.beside_p50_s)?
        }
    };
    let (store, rtt_s) = (stage.store().to_owned(), stage.rtt.as_secs_f64());
    let bandwidth = match &plan.target {
        Target::Embedded(imitated) => imitated.bandwidth,
        Target::Remote(_) => None,
    };
    let what = plan.what();
    Ok(Mixed { store, rtt_s, bandwidth, what, puts: plan.puts, floor_s, total_floor_s, together, arrivals })
}

fn figures(measured: Measured<Found>, floor_s: f64) -> Run<Figures> {
    let found = measured.found;
    let figures = Figures {
        small_p50_s: found.small.percentile(50.0),
        small_p99_s: found.small.percentile(99.0),
        small_max_s: found.small.max(),
        total_s: found.total_s,
        connections: found.tally.connections,
        requests: found.tally.requests,
        floor_ratio: found.small.percentile(50.0) / floor_s.max(f64::MIN_POSITIVE),
        latencies: found.small,
    };
    Run { figures, trace: found.trace }
}

fn arrival_figures(idle: Measured<Found>, beside: Measured<Found>) -> Run<ArrivalFigures> {
    let (idle, beside) = (idle.found, beside.found);
    let mib = beside.bulk_bytes as f64 / f64::from(1 << 20);
    let figures = ArrivalFigures {
        idle_p50_s: idle.small.percentile(50.0),
        idle_p99_s: idle.small.percentile(99.0),
        beside_p50_s: beside.small.percentile(50.0),
        beside_p99_s: beside.small.percentile(99.0),
        beside_max_s: beside.small.max(),
        connections: beside.tally.connections,
        bulk_mib_s: mib / beside.total_s.max(f64::MIN_POSITIVE),
        idle_ratio: beside.small.percentile(50.0) / idle.small.percentile(50.0).max(f64::MIN_POSITIVE),
        idle: idle.small,
        beside: beside.small,
    };
    Run { figures, trace: beside.trace }
}

impl Plan {
    /// How many objects of what size, for people.
    fn what(&self) -> String {
        let size = |bytes: u64| match bytes {
            b if b >= 1 << 20 => format!("{} MiB", b >> 20),
            b => format!("{} KiB", b >> 10),
        };
        let (least, most) = self.small_size;
        let (large, small) = (self.large, self.small);
        format!("{large} x {} and {small} of {} to {}", size(self.large_size), size(least), size(most))
    }

    /// Checks that the plan can be carried out.
    ///
    /// # Errors
    /// [`Error::Plan`].
    pub fn check(&self) -> Result<(), Error> {
        let refused = |why: &str| Err(Error::Plan(why.to_owned()));
        if self.small == 0 || self.runs == 0 {
            return refused("at least one small object and one run are needed");
        }
        if self.small > 10_000 || self.large > 1000 {
            return refused("at most 10,000 small and 1000 large objects");
        }
        if self.small_size.0 == 0 || self.small_size.0 > self.small_size.1 {
            return refused("the sizes of small objects go from at least one byte up");
        }
        if self.large > 0 && self.large_size == 0 {
            return refused("a large object has at least one byte");
        }
        if self.large == 0 && self.arrivals.is_some() {
            return refused("arrivals beside bulk need at least one large object");
        }
        Ok(())
    }
}

impl Mixed {
    /// Whether every rung has figures, or was skipped.
    pub fn is_complete(&self) -> bool {
        self.together.iter().all(Row::is_fine) && self.arrivals.iter().all(Row::is_fine)
    }

    /// What people are shown of what was issued in one breath.
    pub fn table(&self) -> Table {
        let head = vec!["rung", "small p50 s", "p99 s", "max s", "total s", "connections", "p50 / floor"];
        let cells = |f: &Figures| {
            vec![
                seconds(f.small_p50_s),
                seconds(f.small_p99_s),
                seconds(f.small_max_s),
                seconds(f.total_s),
                f.connections.to_string(),
                format!("{:.2}", f.floor_ratio),
            ]
        };
        Table { head, rows: self.together.iter().map(|row| Line::new(row, cells)).collect() }
    }

    /// What people are shown of random arrivals; `None` where there were none.
    pub fn arrivals_table(&self) -> Option<Table> {
        let head = vec![
            "rung",
            "idle p50 s",
            "idle p99 s",
            "beside bulk p50 s",
            "p99 s",
            "max s",
            "bulk MiB/s",
            "connections",
            "p50 / idle",
        ];
        let cells = |f: &ArrivalFigures| {
            vec![
                seconds(f.idle_p50_s),
                seconds(f.idle_p99_s),
                seconds(f.beside_p50_s),
                seconds(f.beside_p99_s),
                seconds(f.beside_max_s),
                format!("{:.0}", f.bulk_mib_s),
                f.connections.to_string(),
                format!("{:.2}", f.idle_ratio),
            ]
        };
        let rows: Vec<_> = self.arrivals.iter().map(|row| Line::new(row, cells)).collect();
        (!rows.is_empty()).then_some(Table { head, rows })
    }
}
