//! Listings of hundreds of thousands of keys, such as inventories and clean-ups need.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use laneway::{Entry, ListRequest, Location, Provider};
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

/// The prefix of all listed keys.
const BELOW: &str = "lake/";

/// Number of objects that are created at a time before the measurement.
const STOCKED_AT_ONCE: usize = 10_000;

/// The listing's size, and the store.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of objects.
    pub objects: usize,
    /// Runs of each method. The methods take turns.
    pub runs: Repeats,
    /// True if installed programs take part. They require the embedded store.
    pub programs: bool,
    /// The store. An embedded store is measured with GCS's API and with S3's.
    pub target: Target,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Way {
    /// One page after another over one connection. Each page is read to its end before the next request.
    Chain,
    /// One page after another, but the next page is requested while the keys of the previous one are parsed.
    Ahead,
    /// One page after another in each folder, all folders at once. The client is given the folders' names.
    Folders,
    /// Laneway, given only the prefix, in key order.
    Laneway,
    /// Laneway, given only the prefix, in the order in which keys arrive.
    Arriving,
}

const RUNGS: [Rung<(Provider, Way)>; 10] = [
    gcs(Way::Chain, "gcs-chain", "GCS: one page after another over one connection"),
    gcs(
        Way::Ahead,
        "gcs-ahead",
        "GCS: each page is requested while the keys of the page before it are parsed",
    ),
    gcs(
        Way::Folders,
        "gcs-folders",
        "GCS: all folders at once, one page after another in each; the client is given the folders' names",
    ),
    gcs(Way::Laneway, "gcs-laneway", "GCS: Laneway, in the order of the keys"),
    gcs(Way::Arriving, "gcs-laneway-arriving", "GCS: Laneway, as keys arrive"),
    s3(Way::Chain, "s3-chain", "S3: one page after another over one connection"),
    s3(Way::Ahead, "s3-ahead", "S3: each page is requested while the keys of the page before it are parsed"),
    s3(
        Way::Folders,
        "s3-folders",
        "S3: all folders at once, one page after another in each; the client is given the folders' names",
    ),
    s3(Way::Laneway, "s3-laneway", "S3: Laneway, in the order of the keys"),
    s3(Way::Arriving, "s3-laneway-arriving", "S3: Laneway, as keys arrive"),
];

const fn gcs(way: Way, name: &'static str, description: &'static str) -> Rung<(Provider, Way)> {
    Rung { method: (Provider::Gcs, way), name, description, group: "GCS" }
}

const fn s3(way: Way, name: &'static str, description: &'static str) -> Rung<(Provider, Way)> {
    Rung { method: (Provider::S3, way), name, description, group: "S3" }
}

/// The input of one run, as it is sent to the process that executes the run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Errand {
    way: Way,
    prefix: String,
    /// All folders below the prefix, for methods that know the folders.
    folders: Vec<String>,
    objects: usize,
}

impl errand::Errand for Errand {
    const NAME: &'static str = "list";
    type Found = Found;

    async fn run(self, site: Arc<Site>) -> Result<Found, Failure> {
        let (listed, found) = match self.way {
            Way::Chain => chain(&site, &self.prefix).await,
            Way::Ahead => ahead(&site, &self.prefix).await,
            Way::Folders => folders(&site, self.folders).await,
            Way::Laneway => list_by_laneway(&site, &self.prefix, true).await,
            Way::Arriving => list_by_laneway(&site, &self.prefix, false).await,
        }?;
        match listed == self.objects {
            true => Ok(found),
            false => Err(Failure::Different(format!("{listed} of {} keys were listed", self.objects))),
        }
    }
}

/// Lists the objects with each method in turn. Blocks the thread, so don't call this on a thread that runs async tasks.
///
/// # Errors
/// Returns an error that prevents the whole experiment. If only one method fails, its row holds the failure.
pub fn run(
    plan: &Plan,
    workers: &Workers,
    stop: &Stop,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Counted, Error> {
    if plan.objects == 0 || plan.runs.least == 0 || plan.objects > 10_000_000 {
        return Err(Error::Plan(
            "the plan needs from 1 to 10,000,000 objects, and at least one run".to_owned(),
        ));
    }
    on_stage((&plan.target, None, 0), (workers, stop), tell, |stage, tell| climb(plan, stage, tell))
}

fn climb(plan: &Plan, stage: &Stage<'_>, tell: &mut dyn FnMut(Event<'_>)) -> Result<Counted, Error> {
    // The shortest possible time is one round trip each for TCP, TLS and one request.
    let floor_s = stage.rtt.as_secs_f64() * if stage.tls() { 3.0 } else { 2.0 };
    // The objects are empty, because only their names are listed.
    let supply = |name: String| Supply { name: format!("{BELOW}{name}"), seed: 0, size: 0 };
    for begun in (0..plan.objects).step_by(STOCKED_AT_ONCE) {
        let some = begun..plan.objects.min(begun + STOCKED_AT_ONCE);
        let supplies: Vec<Supply> = some.map(|n| supply(shaped_name(n))).collect();
        stage.stock(&supplies)?;
    }
    let folders: Vec<String> =
        shaped_folders(plan.objects).map(|folder| stage.key(&format!("{BELOW}{folder}"))).collect();
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
                        let why = format!("{} of {} keys were listed", took.lines, plan.objects);
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
    let what = format!("list {} keys", plan.objects);
    let found =
        Counted::find(Bench::List, (plan.objects, what, plan.runs), stage, floor_s, &rungs, tell, one)?;
    Ok(Counted { programs: versions(&rungs), ..found })
}

/// Lists a prefix with Laneway's library.
async fn list_by_laneway(site: &Site, prefix: &str, in_order: bool) -> Result<(usize, Found), Failure> {
    let started = Instant::now();
    let client = site.laneway(None)?;
    let at = Location::object(site.provider, site.bucket.clone(), prefix);
    let mut listing = client.list(ListRequest::new(at).recursive(true).in_order(in_order));
    let mut listed = 0;
    while let Some(entry) = listing.next().await {
        listed += usize::from(matches!(entry?, Entry::Object(_)));
    }
    let seconds = started.elapsed().as_secs_f64();
    let counters = client.counters();
    let tally = Tally { requests: counters.requests, connections: counters.connections };
    Ok((listed, Found { seconds, tally }))
}

/// Number of connections that list folders.
const CONNECTIONS: usize = 16;

async fn chain(site: &Arc<Site>, prefix: &str) -> Result<(usize, Found), Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let pool = Pool::new(rival.clone(), Some(1));
    let listed = pages(site, &pool, prefix).await?;
    Ok((listed, found(&rival, started)))
}

async fn pages(site: &Site, pool: &Pool, prefix: &str) -> Result<usize, rival::Error> {
    let (mut listed, mut token) = (0, None);
    loop {
        let answer = page(site, pool, prefix, token.as_deref()).await?;
        let (keys, next) = site.listed(&answer)?;
        listed += keys.len();
        match next {
            Some(next) => token = Some(next),
            None => return Ok(listed),
        }
    }
}

async fn page(site: &Site, pool: &Pool, prefix: &str, token: Option<&str>) -> Result<Answer, rival::Error> {
    let mut taken = pool.take().await?;
    let answer = taken.connection.send(site.list(prefix, token).await?).await?.succeeded()?;
    taken.give_back();
    Ok(answer)
}

/// Lists page by page, but parses the keys of each page in a separate task. The next request needs only the page's
/// token, so it doesn't wait for the parsing.
async fn ahead(site: &Arc<Site>, prefix: &str) -> Result<(usize, Found), Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let pool = Pool::new(rival.clone(), Some(1));
    let listed = Arc::new(AtomicUsize::new(0));
    let (mut readers, mut token) = (JoinSet::new(), None);
    loop {
        let answer = page(site, &pool, prefix, token.as_deref()).await?;
        token = site.next_page(&answer)?;
        let (site, listed) = (Arc::clone(site), Arc::clone(&listed));
        readers.spawn(async move {
            listed.fetch_add(site.listed(&answer)?.0.len(), Relaxed);
            Ok(())
        });
        if token.is_none() {
            break;
        }
    }
    all(readers).await?;
    Ok((listed.load(Relaxed), found(&rival, started)))
}

async fn folders(site: &Arc<Site>, folders: Vec<String>) -> Result<(usize, Found), Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let pool = Pool::new(rival.clone(), Some(CONNECTIONS));
    let listed = Arc::new(AtomicUsize::new(0));
    let mut chains = JoinSet::new();
    for folder in folders {
        let (site, pool, listed) = (Arc::clone(site), pool.clone(), Arc::clone(&listed));
        chains.spawn(async move {
            listed.fetch_add(pages(&site, &pool, &folder).await?, Relaxed);
            Ok(())
        });
    }
    all(chains).await?;
    Ok((listed.load(Relaxed), found(&rival, started)))
}

fn found(rival: &Rival, started: Instant) -> Found {
    Found { seconds: started.elapsed().as_secs_f64(), tally: rival.tally() }
}

/// Out of this many consecutive objects, two are in the large folder, one is in a day's folder, and one is in a user's
/// folder.
const TURN: usize = 4;
const DAYS: usize = 28;
const USERS: usize = 64;

/// Returns the name of object number `n`. Different numbers have different names.
fn shaped_name(n: usize) -> String {
    let folder = shaped_folder(n);
    match n % TURN {
        // Multiply by an odd number, so that names are spread like hashes and no two numbers get the same name.
        0 | 1 => format!("{folder}{:016x}.json", (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        2 => format!("{folder}{n:08}.gz"),
        _ => format!("{folder}photo-{n}.jpg"),
    }
}

fn shaped_folder(n: usize) -> String {
    let turn = n / TURN;
    match n % TURN {
        0 | 1 => "events/hot/".to_owned(),
        2 => format!("logs/2026/{:02}/{:02}/", 1 + turn / DAYS % 12, 1 + turn % DAYS),
        _ => format!("users/{:02x}/", turn % USERS),
    }
}

/// Returns the folders of the first `objects` objects.
fn shaped_folders(objects: usize) -> impl Iterator<Item = String> {
    let all = TURN * DAYS * 12 * USERS;
    let folders: BTreeSet<String> = (0..objects.min(all)).map(shaped_folder).collect();
    folders.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_one_and_lies_in_a_folder_that_is_known() {
        let names: BTreeSet<String> = (0..20_000).map(shaped_name).collect();
        assert_eq!(names.len(), 20_000);
        let folders: Vec<String> = shaped_folders(20_000).collect();
        assert_eq!(folders.len(), 1 + 12 * DAYS + USERS);
        let within = |folder: &String| names.iter().filter(|name| name.starts_with(folder)).count();
        assert_eq!(folders.iter().map(within).sum::<usize>(), 20_000);
        assert_eq!(folders.iter().map(within).max(), Some(10_000));
    }
}
