//! Listings of hundreds of thousands of keys, as inventories and clean-ups make them.

mod laneway;
mod rivals;
mod shape;

use std::sync::Arc;

use ::laneway::Provider;
use serde::{Deserialize, Serialize};

use crate::counted::{Bench, Counted, Found};
use crate::errand::{self, Measured};
use crate::place::Target;
use crate::program::{self, Chore, Job, versions, with_programs};
use crate::site::Site;
use crate::stage::{Stage, Supply, on_stage};
use crate::turns::{Event, Repeats, Rung};
use crate::{Error, Failure, Stop, Workers};

/// Below this everything lies that is listed.
const BELOW: &str = "lake/";

/// Names of objects that are made and stored at a time.
const STOCKED_AT_ONCE: usize = 10_000;

/// What to list, and where.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many objects.
    pub objects: usize,
    /// How often each rung runs, in turns.
    pub runs: Repeats,
    /// Whether installed programs are rivals, where the store is one in this process.
    pub programs: bool,
    /// The store. An embedded one is spoken with in both tongues.
    pub target: Target,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Way {
    /// A page after the other over one connection, each read to its end before the next is asked for.
    Chain,
    /// The next page is asked for while the last one is read.
    Ahead,
    /// A chain for each folder, by somebody who knows them.
    Folders,
    /// Laneway, which knows a prefix, in the order of the keys.
    Laneway,
    /// The same, as they arrive.
    Arriving,
}

const RUNGS: [Rung<(Provider, Way)>; 10] = [
    gcs(Way::Chain, "gcs-chain", "GCS: a page after the other, one connection"),
    gcs(Way::Ahead, "gcs-ahead", "GCS: the next page is asked for while one is read"),
    gcs(Way::Folders, "gcs-folders", "GCS: a chain for each folder, all of which are known"),
    gcs(Way::Laneway, "gcs-laneway", "GCS: Laneway, in the order of the keys"),
    gcs(Way::Arriving, "gcs-laneway-arriving", "GCS: Laneway, as keys arrive"),
    s3(Way::Chain, "s3-chain", "S3: a page after the other, one connection"),
    s3(Way::Ahead, "s3-ahead", "S3: the next page is asked for while one is read"),
    s3(Way::Folders, "s3-folders", "S3: a chain for each folder, all of which are known"),
    s3(Way::Laneway, "s3-laneway", "S3: Laneway, in the order of the keys"),
    s3(Way::Arriving, "s3-laneway-arriving", "S3: Laneway, as keys arrive"),
];

const fn gcs(way: Way, name: &'static str, description: &'static str) -> Rung<(Provider, Way)> {
    Rung { method: (Provider::Gcs, way), name, description, group: "GCS" }
}

const fn s3(way: Way, name: &'static str, description: &'static str) -> Rung<(Provider, Way)> {
    Rung { method: (Provider::S3, way), name, description, group: "S3" }
}

/// One run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Errand {
    way: Way,
    prefix: String,
    /// What lies directly below it or deeper, for those who know.
    folders: Vec<String>,
    objects: usize,
}

impl errand::Errand for Errand {
    const NAME: &'static str = "list";
    type Found = Found;

    async fn run(self, site: Arc<Site>) -> Result<Found, Failure> {
        let (listed, found) = match self.way {
            Way::Chain => rivals::chain(&site, &self.prefix).await,
            Way::Ahead => rivals::ahead(&site, &self.prefix).await,
            Way::Folders => rivals::folders(&site, self.folders).await,
            Way::Laneway => laneway::list(&site, &self.prefix, true).await,
            Way::Arriving => laneway::list(&site, &self.prefix, false).await,
        }?;
        match listed == self.objects {
            true => Ok(found),
            false => Err(Failure::Different(format!("{listed} keys came of {}", self.objects))),
        }
    }
}

/// Lists the objects, rung by rung. Blocks the thread, which must not be one that runs async tasks.
///
/// # Errors
/// What keeps it from being done at all. A rung that fails is a row that says so.
pub fn run(
    plan: &Plan,
    workers: &Workers,
    stop: &Stop,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Counted, Error> {
    if plan.objects == 0 || plan.runs.least == 0 || plan.objects > 10_000_000 {
        return Err(Error::Plan("from 1 to 10,000,000 objects and one run are needed".to_owned()));
    }
    on_stage((&plan.target, None, 0), (workers, stop), tell, |stage, tell| climb(plan, stage, tell))
}

fn climb(plan: &Plan, stage: &Stage<'_>, tell: &mut dyn FnMut(Event<'_>)) -> Result<Counted, Error> {
    // TCP, TLS, and one request.
    let floor_s = stage.rtt.as_secs_f64() * if stage.tls() { 3.0 } else { 2.0 };
    // Objects are empty: it is their names that are listed.
    let supply = |name: String| Supply { name: format!("{BELOW}{name}"), seed: 0, size: 0 };
    for begun in (0..plan.objects).step_by(STOCKED_AT_ONCE) {
        let some = begun..plan.objects.min(begun + STOCKED_AT_ONCE);
        let supplies: Vec<Supply> = some.map(|n| supply(shape::name(n))).collect();
        stage.stock(&supplies)?;
    }
    let folders: Vec<String> =
        shape::folders(plan.objects).map(|folder| stage.key(&format!("{BELOW}{folder}"))).collect();
    let one = |way, _| {
        let prefix = stage.key(BELOW);
        match way {
            program::Way::Own((provider, way)) => {
                let folders = folders.clone();
                stage.carry_as(provider, Errand { way, prefix, folders, objects: plan.objects })
            }
            program::Way::Program(program) => {
                let ran = stage.run(program, &Job::List { prefix: &prefix })?;
                Ok(ran.and_then(|(took, tally)| match took.lines == plan.objects as u64 {
                    true => Ok(Measured::of_program((took, tally))),
                    false => {
                        let why = format!("{} keys came of {}", took.lines, plan.objects);
                        Err(Failure::Different(why))
                    }
                }))
            }
        }
    };
    let own: Vec<_> = match &plan.target {
        Target::Embedded(_) => RUNGS.to_vec(),
        Target::Remote(remote) => RUNGS.into_iter().filter(|rung| rung.method.0 == remote.provider).collect(),
    };
    let rungs = with_programs(&own, Chore::List, &stage.programs(plan.programs));
    let what = format!("{} keys listed", plan.objects);
    let found =
        Counted::find(Bench::List, (plan.objects, what, plan.runs), stage, floor_s, &rungs, tell, one)?;
    Ok(Counted { programs: versions(&rungs), ..found })
}
