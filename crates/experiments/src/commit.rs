//! Hundreds of read-modify-writes, like those of commits to a lakehouse table. Each one reads an object, changes it,
//! and writes it back on the condition that no other client has changed it.

use std::sync::Arc;
use std::time::Instant;

use laneway::Bucket;
use laneway_quantity::size;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::counted::{Bench, Counted, Found};
use crate::place::Target;
use crate::rival::{self, Http1, Pool, Protocol, Rival, Tally, all};
use crate::site::Site;
use crate::stage::{Stage, Supply, on_stage};
use crate::turns::{Event, Repeats, Rung};
use crate::{Error, Failure, Stop, Workers, errand};

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
            Writer::Sequential => one_by_one(&site, &self.keys).await,
            Writer::Pool(bound) => pooled(&site, &self.keys, bound).await,
            Writer::Laneway => all_at_once_by_laneway(&site, &self.keys).await,
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

/// Changes all objects at once with Laneway's library. Each object takes one `get` and one `put`, as in the library of
/// a table format.
async fn all_at_once_by_laneway(site: &Arc<Site>, keys: &[String]) -> Result<Found, Failure> {
    let started = Instant::now();
    let client = site.laneway(None)?;
    let bucket = client.bucket(&format!("{}://{}", site.provider.scheme(), site.bucket))?;
    let mut changes = JoinSet::new();
    for key in keys {
        let (bucket, key) = (bucket.clone(), key.clone());
        changes.spawn(async move { change_by_laneway(&bucket, &key).await });
    }
    while let Some(ended) = changes.join_next().await {
        ended.map_err(|_| Failure::Unfinished)??;
    }
    let seconds = started.elapsed().as_secs_f64();
    let counters = client.counters();
    let tally = Tally { requests: counters.requests, connections: counters.connections };
    Ok(Found { seconds, tally })
}

async fn change_by_laneway(bucket: &Bucket, key: &str) -> Result<(), Failure> {
    let got = bucket.get(key).await?;
    let version = got.meta().version.clone();
    let version =
        version.ok_or_else(|| Failure::Different(format!("the store reports no version of {key}")))?;
    let content = changed(&got.bytes().await?);
    bucket.put(key, content).if_version(&version).await?;
    Ok(())
}

/// Changes one object after another on one connection.
async fn one_by_one(site: &Site, keys: &[String]) -> Result<Found, Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let mut connection = rival.connect_h1().await?;
    for key in keys {
        if !connection.is_usable().await {
            connection = rival.connect_h1().await?;
        }
        change(site, key, &mut connection).await?;
    }
    Ok(Found { seconds: started.elapsed().as_secs_f64(), tally: rival.tally() })
}

async fn pooled(site: &Arc<Site>, keys: &[String], bound: usize) -> Result<Found, Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let pool = Pool::new(rival.clone(), Some(bound));
    let mut changes = JoinSet::new();
    for key in keys {
        let (site, pool, key) = (Arc::clone(site), pool.clone(), key.clone());
        changes.spawn(async move {
            let mut taken = pool.take().await?;
            change(&site, &key, &mut taken.connection).await?;
            taken.give_back();
            Ok(())
        });
    }
    all(changes).await?;
    Ok(Found { seconds: started.elapsed().as_secs_f64(), tally: rival.tally() })
}

/// Reads an object, changes it and writes it back unless another client has changed it meanwhile.
async fn change(site: &Site, key: &str, connection: &mut Http1) -> Result<(), rival::Error> {
    let answer = connection.send(site.get(key, None).await?).await?.succeeded()?;
    let version = site.version(&answer)?;
    let request = site.put(key, &changed(&answer.body), Some(&version)).await?;
    connection.send(request).await?.succeeded()?;
    Ok(())
}
