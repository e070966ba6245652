//! Small objects that are moved at the same time as large ones.
//!
//! In the first such measurement, the median small object took 15 s, because large ones held every connection of an SDK's pool. There are
//! two cases. In the first case, a client requests all small and large objects at once. In the second case, small objects are requested at
//! random times while large ones are moved. Their latencies are compared with those of the same requests on an idle link.

mod client;
mod laneway;
mod load;
mod plan;
mod programs;
mod result;
mod rivals;
mod scene;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::arrivals::Arrivals;
use crate::errand;
use crate::latency::Latencies;
use crate::program::{Chore, Way, versions, with_programs};
use crate::rival::Tally;
use crate::site::Site;
use crate::stage::{PARTED_FROM, Stage, on_stage};
use crate::trace::Trace;
use crate::turns::{Event, Rung, turns};
use crate::{Error, Failure, Stop, Workers};
use load::{Load, Object};
pub use plan::{Plan, SMALL_SIZE};
pub use result::{ArrivalFigures, Figures, Mixed};
use result::{arrival_figures, figures};

/// Seconds for which the large transfers run alone before the first small object is requested.
const LEAD_S: f64 = 0.5;

/// The client that moves the objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Mover {
    /// At most this many HTTP/1.1 connections. Requests wait for a free one in order of arrival.
    Pool(usize),
    Unbounded,
    Http2,
    Laneway,
}

const RUNGS: [Rung<Mover>; 4] = [
    rung(Mover::Pool(50), "pool-50", "a pool of 50 HTTP/1.1 connections"),
    rung(Mover::Unbounded, "pool-unbounded", "an unbounded pool of HTTP/1.1 connections"),
    rung(Mover::Http2, "http2", "one HTTP/2 connection"),
    rung(Mover::Laneway, "laneway", "Laneway"),
];

const fn rung(method: Mover, name: &'static str, description: &'static str) -> Rung<Mover> {
    Rung { method, name, description, group: "" }
}

/// The input of one run, as it is sent to the process that executes the run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Errand {
    mover: Mover,
    puts: bool,
    /// Large objects, which are all requested at once. If small objects arrive at random times, each large object is
    /// moved again and again until they are done.
    large: Vec<Object>,
    small: Vec<Object>,
    /// The time of each small object's request, in seconds from the start. If it is empty, all are requested at once.
    arrivals: Vec<f64>,
    /// The folder of downloaded and uploaded files.
    folder: PathBuf,
    /// The prefix of all keys.
    prefix: String,
}

/// The result of one run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Found {
    small: Latencies,
    total_s: f64,
    /// Body bytes of large objects, including unfinished ones.
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

/// Moves the objects with each method in turn. Blocks the thread, so don't call this on a thread that runs async tasks.
///
/// # Errors
/// Returns an error that prevents the whole experiment. If only one method fails, its row holds the failure.
pub fn run(
    plan: &Plan,
    workers: &Workers,
    stop: &Stop,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Mixed, Error> {
    run_rungs(plan, &RUNGS, workers, stop, tell)
}

/// Does the same as [`run`], but with only two methods: Laneway and a pool of 50 connections.
///
/// # Errors
/// Fails in the same cases as [`run`].
pub(crate) fn run_beside_a_pool(
    plan: &Plan,
    workers: &Workers,
    stop: &Stop,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Mixed, Error> {
    let [pool, _, _, laneway] = RUNGS;
    run_rungs(plan, &[pool, laneway], workers, stop, tell)
}

fn run_rungs(
    plan: &Plan,
    rungs: &[Rung<Mover>],
    workers: &Workers,
    stop: &Stop,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Mixed, Error> {
    plan.check()?;
    let load = Load::draw(plan);
    on_stage((&plan.target, plan.folder.as_deref(), load.bytes()), (workers, stop), tell, |stage, tell| {
        climb((plan, rungs), &load, stage, tell)
    })
}

fn climb(
    (plan, own): (&Plan, &[Rung<Mover>]),
    load: &Load,
    stage: &Stage<'_>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Mixed, Error> {
    match plan.puts {
        true => {
            stage.files("here", &load.supplies())?;
            for large in load.large.iter().filter(|large| large.size >= PARTED_FROM) {
                stage.may_be_parted(&format!("up/{}", large.name));
            }
        }
        false => stage.stock(&load.supplies())?,
    }
    tell(Event::Begun { bench: "mixed", store: stage.store(), rtt: stage.rtt });
    let floor_s = crate::slices::floor_s(stage, load.smaller_half(), &plan.target);
    let total_floor_s = crate::slices::floor_s(stage, load.bytes(), &plan.target);
    let bandwidth = stage.link.and_then(|imitated| imitated.bandwidth);
    let floors = load.floors(crate::slices::floor_s(stage, 0, &plan.target), bandwidth);
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
    // The completion time of each object is read from the downloaded files. For uploads by a program, this time is unknown, so programs
    // take part only in downloads.
    let programs = stage.programs(plan.programs && !plan.puts);
    let rungs = with_programs(own, Chore::Copy, &programs);
    let together = turns(&rungs, plan.runs, tell, |way, _| {
        let ran = match way {
            Way::Own(mover) => carry(errand(mover, true, &[]))?,
            Way::Program(program) => programs::download(program, load, stage)?,
        };
        Ok(ran.map(|measured| figures(measured, floor_s)))
    })?;
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
            turns(own, plan.runs, tell, both)?
        }
    };
    Ok(Mixed {
        store: stage.store().to_owned(),
        rtt_s: stage.rtt.as_secs_f64(),
        link: stage.link,
        programs: versions(&rungs),
        what: plan.what(),
        puts: plan.puts,
        floor_s,
        floors,
        total_floor_s,
        together,
        arrivals,
    })
}
