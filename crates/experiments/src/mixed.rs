//! Small objects that are moved at the same time as large ones.
//!
//! In the first such measurement, the median small object took 15 s, because large ones held every connection of an SDK's pool. There are
//! two cases. In the first case, a client requests all small and large objects at once. In the second case, small objects are requested at
//! random times while large ones are moved. Their latencies are compared with those of the same requests on an idle link.

mod client;
mod plan;
mod result;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::errand::{self, Measured};
use crate::latency::Latencies;
use crate::program::{Chore, Job, Program, Way, completed_s, versions, with_programs};
use crate::random::Arrivals;
use crate::rival::Tally;
use crate::site::Site;
use crate::stage::{PARTED_FROM, Stage, local, on_stage};
use crate::trace::Trace;
use crate::turns::{Event, Rung, turns};
use crate::{Error, Failure, Stop, Workers};
use client::Client;
use plan::{Load, Object};
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
        play(self, site).await
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
            Way::Program(program) => download_by_program(program, load, stage)?,
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

/// Executes a run: requests all objects at once. With arrivals, it moves large objects for as long as small ones arrive.
async fn play(errand: Errand, site: Arc<Site>) -> Result<Found, Failure> {
    std::fs::create_dir_all(&errand.folder).map_err(Failure::File)?;
    let started = Instant::now();
    let client = Arc::new(Client::start(&errand, &site, started)?);
    let errand = Arc::new(errand);
    let enough = Arc::new(AtomicBool::new(false));
    let mut bulk = JoinSet::new();
    for n in 0..errand.large.len() {
        let (client, errand, enough) = (Arc::clone(&client), Arc::clone(&errand), Arc::clone(&enough));
        bulk.spawn(async move {
            let object = &errand.large[n];
            loop {
                client.transfer(&errand, object, true).await?;
                if errand.arrivals.is_empty() || enough.load(Relaxed) {
                    return Ok(());
                }
            }
        });
    }
    let mut small = JoinSet::new();
    for n in 0..errand.small.len() {
        let (client, errand) = (Arc::clone(&client), Arc::clone(&errand));
        small.spawn(async move {
            let mut issued = started;
            if let Some(at) = errand.arrivals.get(n) {
                issued += Duration::from_secs_f64(*at);
                tokio::time::sleep_until(issued.into()).await;
            }
            client.transfer(&errand, &errand.small[n], false).await?;
            Ok(issued.elapsed().as_secs_f64())
        });
    }
    let latencies = ends(&mut small, &mut bulk, !errand.arrivals.is_empty()).await?;
    let total_s = started.elapsed().as_secs_f64();
    let (tally, moved, trace) = client.end();
    let small_bytes: u64 = errand.small.iter().map(|object| object.size).sum();
    let bulk_bytes = moved.saturating_sub(small_bytes);
    // Let Laneway's large uploads finish, because an interrupted multipart upload would leave its parts in the store.
    enough.store(true, Relaxed);
    if errand.puts && errand.mover == Mover::Laneway {
        while bulk.join_next().await.is_some() {}
    }
    Ok(Found { small: Latencies::new(latencies), total_s, bulk_bytes, tally, trace })
}

/// Waits for the small objects. Also waits for the large ones, unless they are moved again and again (`endless`). The
/// first failure ends the run.
async fn ends(
    small: &mut JoinSet<Result<f64, Failure>>,
    bulk: &mut JoinSet<Result<(), Failure>>,
    endless: bool,
) -> Result<Vec<f64>, Failure> {
    let mut latencies = Vec::new();
    loop {
        tokio::select! {
            Some(ended) = small.join_next() => {
                latencies.push(ended.map_err(|_| Failure::Unfinished)??);
            }
            Some(ended) = bulk.join_next() => ended.map_err(|_| Failure::Unfinished)??,
            else => return Ok(latencies),
        }
        if endless && small.is_empty() {
            return Ok(latencies);
        }
    }
}

/// Downloads all objects at once with a program. Latencies of small objects count from the program's start.
///
/// # Errors
/// Returns [`Error::Stopped`] if the experiment is stopped, or an error if a folder can't be created. The inner error
/// is the reason why the run has no figures.
fn download_by_program(
    program: Program,
    load: &Load,
    stage: &Stage<'_>,
) -> Result<Result<Measured<Found>, Failure>, Error> {
    let folder = stage.folder().join("program");
    fs::create_dir(&folder).map_err(local("making a folder"))?;
    let prefix = stage.key("");
    let ran = stage.run(program, &Job::Tree { prefix: &prefix, folder: &folder })?;
    let found = ran.and_then(|(took, tally)| {
        for object in load.large.iter().chain(&load.small) {
            let len = fs::metadata(folder.join(&object.name)).map_err(Failure::File)?.len();
            if len != object.size {
                let why = format!("{}: {len} of {} bytes arrived", object.name, object.size);
                return Err(Failure::Different(why));
            }
        }
        let small = load.small.iter().map(|object| {
            // The clock of the file system may be one tick behind, so the difference may be slightly negative.
            Ok((completed_s(&folder.join(&object.name))? - took.begun_s).clamp(0.0, took.seconds))
        });
        let small = Latencies::new(small.collect::<Result<_, Failure>>()?);
        let bulk_bytes = load.large.iter().map(|object| object.size).sum();
        let found = Found { small, total_s: took.seconds, bulk_bytes, tally, trace: Trace::default() };
        Ok(Measured { found, usage: None })
    });
    fs::remove_dir_all(&folder).map_err(local("removing a folder"))?;
    Ok(found)
}
