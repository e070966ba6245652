//! Deletes of thousands of objects, as in the clean-up of a lakehouse.

use std::sync::Arc;
use std::time::Instant;

use futures_util::{StreamExt as _, stream};
use laneway::{Client, Location, Outcome, Provider, RemoveRequest};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::counted::{Bench, Counted, Found};
use crate::errand::{self, Measured};
use crate::place::Target;
use crate::program::{self, Chore, Job, versions, with_programs};
use crate::rival::{self, Answer, Pool, Protocol, Rival, Tally, all};
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
            Broom::Pool(bound) => one_by_one(&site, self.keys, bound).await,
            Broom::Batches => batches(&site, &self.keys).await,
            Broom::Listed => listed(&site, &self.prefix).await,
            Broom::Keyed => keyed_by_laneway(&site, self.keys).await,
            Broom::Laneway => remove_by_laneway(&site, &self.prefix).await,
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

/// Deletes a prefix with Laneway's library.
async fn remove_by_laneway(site: &Site, prefix: &str) -> Result<Found, Failure> {
    let started = Instant::now();
    let client = site.laneway(None)?;
    let targets = vec![Location::object(site.provider, site.bucket.clone(), prefix)];
    let mut job = client.remove(RemoveRequest::new(targets).recursive(true));
    while let Some(event) = job.next().await {
        if let laneway::Event::Item(item) = event
            && let Outcome::Failed(error) = item.outcome
        {
            return Err(error.into());
        }
    }
    Ok(found_by_laneway(&client, started))
}

/// Removes the keys of a stream batch by batch.
async fn keyed_by_laneway(site: &Site, keys: Vec<String>) -> Result<Found, Failure> {
    let started = Instant::now();
    let client = site.laneway(None)?;
    let bucket = client.bucket(&format!("{}://{}", site.provider.scheme(), site.bucket))?;
    let mut removed = bucket.delete_many(stream::iter(keys));
    while let Some((_, outcome)) = removed.next().await {
        outcome?;
    }
    Ok(found_by_laneway(&client, started))
}

fn found_by_laneway(client: &Client, started: Instant) -> Found {
    let seconds = started.elapsed().as_secs_f64();
    let counters = client.counters();
    let tally = Tally { requests: counters.requests, connections: counters.connections };
    Found { seconds, tally }
}

/// Maximum number of connections for sending batches.
const BATCH_CONNECTIONS: usize = 50;

/// Deletes one object per request, over a pool of connections.
async fn one_by_one(site: &Arc<Site>, keys: Vec<String>, bound: usize) -> Result<Found, Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let pool = Pool::new(rival.clone(), Some(bound));
    let mut deletes = JoinSet::new();
    for key in keys {
        let (site, pool) = (Arc::clone(site), pool.clone());
        deletes.spawn(async move {
            let mut taken = pool.take().await?;
            taken.connection.send(site.delete(&key).await?).await?.succeeded()?;
            taken.give_back();
            Ok(())
        });
    }
    all(deletes).await?;
    Ok(Found { seconds: started.elapsed().as_secs_f64(), tally: rival.tally() })
}

async fn batches(site: &Arc<Site>, keys: &[String]) -> Result<Found, Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let pool = Pool::new(rival.clone(), Some(BATCH_CONNECTIONS));
    let mut deletes = JoinSet::new();
    send_batches(site, &pool, keys, &mut deletes);
    none_refused(deletes).await?;
    Ok(Found { seconds: started.elapsed().as_secs_f64(), tally: rival.tally() })
}

/// Lists the prefix page by page. It deletes a page's objects while it requests the next page.
async fn listed(site: &Arc<Site>, prefix: &str) -> Result<Found, Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let pool = Pool::new(rival.clone(), Some(BATCH_CONNECTIONS));
    let mut deletes = JoinSet::new();
    let mut token = None;
    loop {
        let mut taken = pool.take().await?;
        let answer = taken.connection.send(site.list(prefix, token.as_deref()).await?).await?.succeeded()?;
        taken.give_back();
        let (keys, next) = site.listed(&answer)?;
        send_batches(site, &pool, &keys, &mut deletes);
        match next {
            Some(next) => token = Some(next),
            None => break,
        }
    }
    none_refused(deletes).await?;
    Ok(Found { seconds: started.elapsed().as_secs_f64(), tally: rival.tally() })
}

/// The tasks that send batches. Each returns its number of failed deletes.
type Refused = JoinSet<Result<usize, rival::Error>>;

fn send_batches(site: &Arc<Site>, pool: &Pool, keys: &[String], deletes: &mut Refused) {
    for batch in keys.chunks(site.delete_many_max()) {
        let (site, pool, batch) = (Arc::clone(site), pool.clone(), batch.to_vec());
        deletes.spawn(async move {
            let mut taken = pool.take().await?;
            let answer = taken.connection.send(site.delete_many(&batch).await?).await?.succeeded()?;
            taken.give_back();
            Ok(refusals(&site, &answer))
        });
    }
}

async fn none_refused(mut deletes: Refused) -> Result<(), Failure> {
    let mut refused = 0;
    while let Some(ended) = deletes.join_next().await {
        refused += ended.map_err(|_| Failure::Unfinished)??;
    }
    match refused {
        0 => Ok(()),
        _ => Err(Failure::Different(format!("the store refused {refused} of the deletes"))),
    }
}

/// Counts the failed deletes in the answer to a batch. A rough search is enough, because the objects left in the store
/// are counted too.
fn refusals(site: &Site, answer: &Answer) -> usize {
    let text = String::from_utf8_lossy(&answer.body);
    match site.provider {
        Provider::Gcs => text.matches("HTTP/1.1 4").count() + text.matches("HTTP/1.1 5").count(),
        _ => text.matches("<Error>").count(),
    }
}
