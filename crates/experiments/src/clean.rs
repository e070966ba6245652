//! Deletes of thousands of objects, as in the clean-up of a lakehouse.

mod laneway;
mod rivals;

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

/// The objects to delete, and their store.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of objects.
    pub objects: usize,
    /// Runs of each method. The methods take turns.
    pub runs: Repeats,
    /// True if installed programs take part, which requires the embedded store.
    pub programs: bool,
    /// The store. An embedded store is measured with GCS's API and with S3's.
    pub target: Target,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Broom {
    /// One DELETE request per object, over a pool of at most this many connections.
    Pool(usize),
    /// Known keys, in batches that are as large as the store accepts.
    Batches,
    /// Keys from a listing, in batches that are as large as the store accepts.
    Listed,
    /// Laneway with known keys.
    Keyed,
    /// Laneway's removal of a prefix, which lists it first.
    Laneway,
}

const RUNGS: [Rung<(Provider, Broom)>; 10] = [
    gcs(
        Broom::Pool(50),
        "gcs-one-by-one",
        "GCS, keys known: one object per request, over a pool of 50 connections",
        GCS_KNOWN,
    ),
    gcs(Broom::Batches, "gcs-batch", "GCS, keys known: batches of 100 deletes, all at once", GCS_KNOWN),
    gcs(Broom::Keyed, "gcs-laneway-keys", "GCS, keys known: Laneway", GCS_KNOWN),
    gcs(
        Broom::Listed,
        "gcs-list-batch",
        "GCS, a prefix: the keys of each listing page, in batches of 100",
        GCS_PREFIX,
    ),
    gcs(Broom::Laneway, "gcs-laneway", "GCS, a prefix: Laneway", GCS_PREFIX),
    s3(
        Broom::Pool(50),
        "s3-one-by-one",
        "S3, keys known: one object per request, over a pool of 50 connections",
        S3_KNOWN,
    ),
    s3(
        Broom::Batches,
        "s3-delete-objects",
        "S3, keys known: DeleteObjects of 1000 keys, all at once",
        S3_KNOWN,
    ),
    s3(Broom::Keyed, "s3-laneway-keys", "S3, keys known: Laneway", S3_KNOWN),
    s3(
        Broom::Listed,
        "s3-list-delete",
        "S3, a prefix: the keys of each listing page, in one DeleteObjects",
        S3_PREFIX,
    ),
    s3(Broom::Laneway, "s3-laneway", "S3, a prefix: Laneway", S3_PREFIX),
];

/// Methods that are given the keys save the round trips of a listing. So they aren't compared with methods that are given a prefix.
const GCS_KNOWN: &str = "GCS, keys known";
const GCS_PREFIX: &str = "GCS, a prefix";
const S3_KNOWN: &str = "S3, keys known";
const S3_PREFIX: &str = "S3, a prefix";

const fn gcs(
    broom: Broom,
    name: &'static str,
    description: &'static str,
    group: &'static str,
) -> Rung<(Provider, Broom)> {
    Rung { method: (Provider::Gcs, broom), name, description, group }
}

const fn s3(
    broom: Broom,
    name: &'static str,
    description: &'static str,
    group: &'static str,
) -> Rung<(Provider, Broom)> {
    Rung { method: (Provider::S3, broom), name, description, group }
}

/// The input of one run, as it is sent to the process that executes the run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Errand {
    broom: Broom,
    prefix: String,
    keys: Vec<String>,
}

impl errand::Errand for Errand {
    const NAME: &'static str = "clean";
    type Found = Found;

    async fn run(self, site: Arc<Site>) -> Result<Found, Failure> {
        match self.broom {
            Broom::Pool(bound) => rivals::one_by_one(&site, self.keys, bound).await,
            Broom::Batches => rivals::batches(&site, &self.keys).await,
            Broom::Listed => rivals::listed(&site, &self.prefix).await,
            Broom::Keyed => laneway::keyed(&site, self.keys).await,
            Broom::Laneway => laneway::remove(&site, &self.prefix).await,
        }
    }
}

/// Deletes the objects with each method in turn. Blocks the thread, so don't call this on a thread that runs async tasks.
///
/// # Errors
/// Returns an error that prevents the whole experiment. If only one method fails, its row holds the failure.
pub fn run(
    plan: &Plan,
    workers: &Workers,
    stop: &Stop,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Counted, Error> {
    if plan.objects == 0 || plan.runs.least == 0 || plan.objects > 100_000 {
        return Err(Error::Plan("the plan needs from 1 to 100,000 objects, and at least one run".to_owned()));
    }
    on_stage((&plan.target, None, 0), (workers, stop), tell, |stage, tell| climb(plan, stage, tell))
}

fn climb(plan: &Plan, stage: &Stage<'_>, tell: &mut dyn FnMut(Event<'_>)) -> Result<Counted, Error> {
    // The shortest possible time is one round trip each for TCP, TLS and one request.
    let floor_s = stage.rtt.as_secs_f64() * if stage.tls() { 3.0 } else { 2.0 };
    let supplies: Vec<Supply> = (0..plan.objects)
        .map(|n| Supply { name: format!("old/part-{n:06}.parquet"), seed: n as u64, size: 16 })
        .collect();
    let keys: Vec<String> = supplies.iter().map(|supply| stage.key(&supply.name)).collect();
    let one = |way, _| {
        stage.stock(&supplies)?;
        let prefix = stage.key("old/");
        let ran = match way {
            program::Way::Own((provider, broom)) => {
                stage.carry_as(provider, Errand { broom, prefix, keys: keys.clone() })?
            }
            program::Way::Program(program) => {
                stage.run(program, &Job::Clean { prefix: &prefix })?.map(Measured::of_program)
            }
        };
        let left = stage.count("old/")?;
        if left > 0 {
            let _ = stage.clear("old/");
        }
        Ok(ran.and_then(|measured| match left {
            0 => Ok(measured),
            left => Err(Failure::Different(format!("{left} objects are still there"))),
        }))
    };
    let own: Vec<_> = match &plan.target {
        Target::Embedded(_) => RUNGS.to_vec(),
        Target::Remote(remote) => RUNGS.into_iter().filter(|rung| rung.method.0 == remote.provider).collect(),
    };
    let rungs = with_programs(&own, Chore::Clean, &stage.programs(plan.programs));
    let what = format!("delete {} objects", plan.objects);
    let found =
        Counted::find(Bench::Clean, (plan.objects, what, plan.runs), stage, floor_s, &rungs, tell, one)?;
    Ok(Counted { programs: versions(&rungs), ..found })
}
