//! Hundreds of read-modify-writes, like those of commits to a lakehouse table. Each one reads an object, changes it,
//! and writes it back on the condition that no other client has changed it.

mod laneway;
mod rivals;

use std::sync::Arc;

use laneway_quantity::size;
use serde::{Deserialize, Serialize};

use crate::counted::{Bench, Counted, Found};
use crate::errand;
use crate::place::Target;
use crate::site::Site;
use crate::stage::{Stage, Supply, on_stage};
use crate::turns::{Event, Repeats, Rung};
use crate::{Error, Failure, Stop, Workers};

/// Round trips of the fastest possible client after its handshakes. Such a client sends all reads at once, and then all writes at once.
const TRIPS: f64 = 2.0;

/// The objects to change, and their store.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of objects.
    pub objects: usize,
    /// Bytes of each object.
    pub size: u64,
    /// Runs of each method. The methods take turns.
    pub runs: Repeats,
    /// The store.
    pub target: Target,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Writer {
    Sequential,
    Pool(usize),
    Laneway,
}

const RUNGS: [Rung<Writer>; 3] = [
    Rung {
        method: Writer::Sequential,
        name: "sequential",
        description: "one object after another on a kept-alive connection",
        group: "",
    },
    Rung {
        method: Writer::Pool(50),
        name: "pool-50",
        description: "a pool of 50 HTTP/1.1 connections",
        group: "",
    },
    Rung { method: Writer::Laneway, name: "laneway", description: "Laneway", group: "" },
];

/// The input of one run, as it is sent to the process that executes the run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Errand {
    writer: Writer,
    keys: Vec<String>,
}

impl errand::Errand for Errand {
    const NAME: &'static str = "commit";
    type Found = Found;

    async fn run(self, site: Arc<Site>) -> Result<Found, Failure> {
        match self.writer {
            Writer::Sequential => rivals::one_by_one(&site, &self.keys).await,
            Writer::Pool(bound) => rivals::pooled(&site, &self.keys, bound).await,
            Writer::Laneway => laneway::all_at_once(&site, &self.keys).await,
        }
    }
}

/// Returns the new content of an object. Any change will do.
fn changed(content: &[u8]) -> Vec<u8> {
    content.iter().map(|byte| byte.wrapping_add(1)).collect()
}

/// Changes the objects with each method in turn. Blocks the thread, so don't call this on a thread that runs async tasks.
///
/// # Errors
/// Returns an error that prevents the whole experiment. If only one method fails, its row holds the failure.
pub fn run(
    plan: &Plan,
    workers: &Workers,
    stop: &Stop,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Counted, Error> {
    if plan.objects == 0 || plan.runs.least == 0 || plan.objects > 100_000 || plan.size > 1 << 20 {
        let why = "the plan needs from 1 to 100,000 objects of at most 1 MiB, and at least one run";
        return Err(Error::Plan(why.to_owned()));
    }
    on_stage((&plan.target, None, plan.objects as u64 * plan.size), (workers, stop), tell, |stage, tell| {
        climb(plan, stage, tell)
    })
}

fn climb(plan: &Plan, stage: &Stage<'_>, tell: &mut dyn FnMut(Event<'_>)) -> Result<Counted, Error> {
    let supplies: Vec<Supply> = (0..plan.objects)
        .map(|n| Supply { name: format!("table/{n:05}.json"), seed: n as u64, size: plan.size })
        .collect();
    stage.stock(&supplies)?;
    let keys: Vec<String> = supplies.iter().map(|supply| stage.key(&supply.name)).collect();
    let floor_s = stage.rtt.as_secs_f64() * (TRIPS + if stage.tls() { 2.0 } else { 1.0 });
    let one = |writer, _| stage.carry(Errand { writer, keys: keys.clone() });
    let what = format!("read, change and write {} objects of {}", plan.objects, size(plan.size));
    Counted::find(Bench::Commit, (plan.objects, what, plan.runs), stage, floor_s, &RUNGS, tell, one)
}
