//! Many small files up: five usual ways, each faster than the one before, and Laneway.
//!
//! It repeats the measurement that Laneway comes from, where fifty empty files took 28 s as the official Ruby gem
//! uploads them and 0.4 s over HTTP/2. [`run`] carries a [`Plan`] out; one rung, one file.

mod concurrent;
mod floor;
mod http2;
mod keepalive;
mod laneway;
mod plan;
mod result;
mod resumable;
mod rival;
mod rung;
mod single;
mod site;
mod stock;
mod stop;
mod token;
mod trust;
mod work;

use std::fs;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use laneway_server::{Config, Server, Tls};
use tokio::runtime::{Builder, Runtime};

pub use plan::{Plan, Remote, Target};
pub use result::{Failure, Figures, Ladder, Row, Tally};
pub use rival::Error as RivalError;
pub use rung::Rung;
pub use stop::Stop;

use floor::{Path, floor};
use result::row;
use rival::{Protocol, Rival};
use site::Site;
use work::{Files, Work};

/// The bucket of the embedded store, and of a remote one where none is named.
const BUCKET: &str = "laneway-ladder";
/// How often the round-trip time is measured; the shortest counts, as everything that disturbs only adds to it.
const PROBES: usize = 5;

/// Why a ladder can't be climbed at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plan makes no sense.
    #[error("{0}")]
    Plan(String),
    /// The embedded store can't be started.
    #[error("the embedded store can't be started")]
    Server(#[from] laneway_server::Error),
    /// Files or threads of the ladder's own.
    #[error("{what}")]
    Local {
        /// What was done.
        what: &'static str,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
    /// A CA file, or the platform's certificates, can't be used.
    #[error("{what} can't be used")]
    Certificates {
        /// Which.
        what: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There are no credentials, or none that can be used.
    #[error("no token for the store: {0}")]
    Credentials(String),
    /// The store can't be reached, or doesn't give us a bucket.
    #[error("the store can't be used")]
    Store(#[source] Failure),
    /// [`Stop::stop`] was called.
    #[error("stopped")]
    Stopped,
}

/// What happens while a ladder is climbed.
#[derive(Debug)]
pub enum Event<'a> {
    /// The store is reached; the rungs begin.
    Begun {
        /// The store's URL.
        store: &'a str,
        /// The measured round-trip time.
        rtt: Duration,
    },
    /// A run begins.
    Running {
        /// The rung.
        rung: Rung,
        /// Which of its runs, from 1.
        run: usize,
    },
    /// A run ended.
    Ran {
        /// The rung.
        rung: Rung,
        /// Which of its runs, from 1.
        run: usize,
        /// How long it took, or why it failed. A rung that failed isn't run again.
        result: Result<Duration, &'a Failure>,
    },
    /// What was uploaded can't be removed and is left behind.
    Left {
        /// Where.
        url: String,
        /// Why.
        failure: Failure,
    },
}

/// Climbs the ladder: every rung as often as the plan says, in turns, so that what disturbs the machine for a while
/// disturbs all of them. Blocks the thread, which must not be one that runs async tasks.
///
/// # Errors
/// What keeps the ladder from being climbed. A rung that fails is a row that says so.
pub fn run(plan: &Plan, stop: &Stop, tell: impl FnMut(Event<'_>)) -> Result<Ladder, Error> {
    plan.check()?;
    let local = |what| move |source| Error::Local { what, source };
    let folder = tempfile::Builder::new().prefix("laneway-ladder-").tempdir();
    let folder = folder.map_err(local("making a folder for the files"))?;
    let files = Files::create(folder.path().join("files"), plan.files, plan.size);
    let files = Arc::new(files.map_err(local("writing the files"))?);

    let (server, remote) = match &plan.target {
        Target::Remote(remote) => (None, remote.clone()),
        Target::Embedded { rtt } => {
            let (server, remote) = embedded(*rtt, folder.path())?;
            (Some(server), remote)
        }
    };
    // The folder's name is used by nobody else, and so neither is a prefix of that name.
    let unique =
        folder.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let runtime = runtime().map_err(local("starting threads"))?;
    runtime.block_on(async {
        let bucket = remote.bucket.as_deref().unwrap_or(BUCKET);
        let site = Arc::new(stop.unless(Site::prepare(&remote, bucket, &unique)).await??);
        let mut climb = Climb { plan, stop, site, files, server: server.as_ref(), tell };
        let new = match remote.bucket {
            Some(_) => false,
            None => stock::create_bucket(&climb.site).await.map_err(Error::Store)?,
        };
        let climbed = climb.all().await;
        if new && let Err(failure) = stock::remove_bucket(&climb.site).await {
            (climb.tell)(Event::Left { url: format!("gs://{bucket}"), failure });
        }
        climbed
    })
}

/// Starts a store in this process, and says how it is reached.
fn embedded(rtt: Duration, folder: &std::path::Path) -> Result<(Server, Remote), Error> {
    let server = Server::start(Config { tls: Some(Tls::Generated), rtt, ..Config::default() })?;
    server.create_bucket(BUCKET)?;
    let ca_file = folder.join("ca.pem");
    fs::write(&ca_file, server.ca_pem().unwrap_or_default())
        .map_err(|source| Error::Local { what: "writing the CA file", source })?;
    let remote = Remote {
        endpoint: server.url(),
        bucket: Some(BUCKET.to_owned()),
        prefix: String::new(),
        anonymous: true,
        ca_files: vec![ca_file],
    };
    Ok((server, remote))
}

/// The rivals' threads: tokio's own default, one for each core.
fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().thread_name("ladder").enable_all().build()
}

/// A ladder on its way.
struct Climb<'a, F> {
    plan: &'a Plan,
    stop: &'a Stop,
    site: Arc<Site>,
    files: Arc<Files>,
    /// The embedded store, if it is one.
    server: Option<&'a Server>,
    tell: F,
}

impl<F: FnMut(Event<'_>)> Climb<'_, F> {
    async fn all(&mut self) -> Result<Ladder, Error> {
        let (rtt, segment) = self.stop.unless(probe(&self.site)).await?.map_err(Error::Store)?;
        (self.tell)(Event::Begun { store: &self.site.endpoint, rtt });
        let mut results: Vec<Vec<_>> = Rung::ALL.iter().map(|_| Vec::new()).collect();
        for run in 1..=self.plan.runs {
            for (rung, results) in Rung::ALL.into_iter().zip(&mut results) {
                if results.iter().any(Result::is_err) {
                    continue;
                }
                (self.tell)(Event::Running { rung, run });
                let result = self.one(rung, run).await?;
                let told = result.as_ref().map(|(time, _)| *time);
                (self.tell)(Event::Ran { rung, run, result: told });
                results.push(result);
            }
        }
        let path =
            Path { rtt, tls: self.site.origin.https, segment: self.server.is_none().then_some(segment) };
        let floor = floor(path, self.plan.size);
        let rows = Rung::ALL.into_iter().zip(results);
        let rows = rows.map(|(rung, results)| row(rung, results, rtt, floor)).collect();
        Ok(Ladder { store: self.site.endpoint.clone(), rtt, floor, rows })
    }

    /// One run of one rung: the upload against the clock; then the store is looked at and cleared.
    async fn one(&mut self, rung: Rung, run: usize) -> Result<Result<(Duration, Tally), Failure>, Error> {
        let prefix = format!("{}{}-{run}/", self.site.prefix, rung.name());
        let work = Work { site: Arc::clone(&self.site), files: Arc::clone(&self.files), prefix };
        let climbed = async {
            let started = Instant::now();
            let tally = rung.upload(&work).await?;
            let time = started.elapsed();
            stock::check(&work).await?;
            Ok((time, tally))
        };
        let result = self.stop.unless(climbed).await;
        self.clear(&work.prefix).await;
        result
    }

    async fn clear(&mut self, prefix: &str) {
        let cleared = match self.server {
            Some(server) => {
                let keys = server.store().keys(BUCKET);
                keys.iter().filter(|key| key.starts_with(prefix)).for_each(|key| {
                    server.store().remove(BUCKET, key);
                });
                Ok(())
            }
            None => stock::clear(&self.site, prefix).await,
        };
        if let Err(failure) = cleared {
            let url = format!("gs://{}/{prefix}", self.site.bucket);
            (self.tell)(Event::Left { url, failure });
        }
    }
}

/// The shortest round trip of several, and the segments' size.
async fn probe(site: &Site) -> Result<(Duration, u32), Failure> {
    let rival = Rival::new(site, Protocol::H1);
    let (mut rtt, mut segment) = rival.probe().await?;
    for _ in 1..PROBES {
        let (another, size) = rival.probe().await?;
        rtt = rtt.min(another);
        segment = size;
    }
    Ok((rtt, segment))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that says what it has seen, and work to be done on it.
    struct Stage {
        server: Server,
        runtime: Runtime,
        work: Work,
        _folder: tempfile::TempDir,
    }

    impl Stage {
        fn set(files: usize, size: u64) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let (server, remote) = embedded(Duration::ZERO, folder.path()).unwrap();
            let remote = Remote { prefix: "p".to_owned(), ..remote };
            let runtime = runtime().unwrap();
            let site = Arc::new(runtime.block_on(Site::prepare(&remote, BUCKET, "u")).unwrap());
            let files = Arc::new(Files::create(folder.path().join("files"), files, size).unwrap());
            let work = Work { prefix: format!("{}x/", site.prefix), site, files };
            Self { server, runtime, work, _folder: folder }
        }

        fn wait<T>(&self, work: impl Future<Output = T>) -> T {
            self.runtime.block_on(work)
        }
    }

    #[test]
    fn what_a_rung_counts_is_what_the_server_sees() {
        let stage = Stage::set(5, 3);
        for rung in Rung::ALL {
            let before = stage.server.counters();
            let tally = stage.wait(rung.upload(&stage.work)).unwrap();
            let after = stage.server.counters();
            let seen = Tally {
                requests: after.requests - before.requests,
                connections: after.connections - before.connections,
            };
            assert_eq!(tally, seen, "{rung:?}");
            stage.wait(stock::check(&stage.work)).unwrap();
        }
    }

    #[test]
    fn missing_short_and_foreign_objects_are_noticed() {
        let stage = Stage::set(3, 4);
        stage.wait(single::upload(&stage.work)).unwrap();
        let (store, work) = (stage.server.store(), &stage.work);
        store.remove(BUCKET, &work.key("00000.bin"));
        store.put(BUCKET, &work.key("00001.bin"), b"abc").unwrap();
        store.put(BUCKET, &work.key("another"), b"abcd").unwrap();
        let failure = stage.wait(stock::check(work)).unwrap_err();
        assert!(matches!(failure, Failure::Wrong { right: 1, wanted: 3, size: 4, wrong: 2 }), "{failure:?}");
    }

    #[test]
    fn what_was_uploaded_elsewhere_is_removed_and_nothing_else() {
        let stage = Stage::set(3, 4);
        stage.server.store().put(BUCKET, "p/u/y", b"").unwrap();
        stage.wait(single::upload(&stage.work)).unwrap();
        stage.wait(stock::clear(&stage.work.site, &stage.work.prefix)).unwrap();
        assert_eq!(stage.server.store().keys(BUCKET), ["p/u/y"]);
        // A rung that failed at its first request leaves nothing to be removed.
        stage.wait(stock::clear(&stage.work.site, &stage.work.prefix)).unwrap();
    }
}
