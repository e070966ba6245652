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
mod rung;
mod single;
mod stock;
mod work;

use std::sync::Arc;
use std::time::{Duration, Instant};

use laneway_server::Server;

use crate::place::Target;
use crate::rival::{Tally, probe};
use crate::site::Site;
use crate::stage::{embedded, runtime};
use crate::trace::Trace;
use crate::{Error, Failure, Stop};
pub use plan::Plan;
pub use result::{Figures, Ladder, Row};
pub use rung::Rung;

use floor::{Path, floor};
use result::row;
use work::{Files, Work};

/// The bucket of the embedded store, and of a remote one where none is named.
const BUCKET: &str = "laneway-ladder";
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
        Target::Embedded(imitated) => {
            let (server, remote) = embedded(*imitated, BUCKET, folder.path())?;
            (Some(server), remote)
        }
    };
    // The folder's name is used by nobody else, and so neither is a prefix of that name.
    let unique =
        folder.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let runtime = runtime()?;
    runtime.block_on(async {
        let bucket = remote.bucket.as_deref().unwrap_or(BUCKET);
        let site = Arc::new(stop.unless(Site::prepare(&remote, bucket, &unique)).await??);
        let mut climb = Climb { plan, stop, site, files, server: server.as_ref(), tell };
        let new = match remote.bucket {
            Some(_) => false,
            None => crate::stock::create_bucket(&climb.site).await.map_err(Error::Store)?,
        };
        let climbed = climb.all().await;
        if new && let Err(failure) = crate::stock::remove_bucket(&climb.site).await {
            (climb.tell)(Event::Left { url: format!("gs://{bucket}"), failure });
        }
        climbed
    })
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
                let outcome = result.as_ref().map(|(time, ..)| *time);
                (self.tell)(Event::Ran { rung, run, result: outcome });
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
    async fn one(
        &mut self,
        rung: Rung,
        run: usize,
    ) -> Result<Result<(Duration, Tally, Trace), Failure>, Error> {
        let prefix = format!("{}{}-{run}/", self.site.prefix, rung.name());
        let work = Work { site: Arc::clone(&self.site), files: Arc::clone(&self.files), prefix };
        let climbed = async {
            let started = Instant::now();
            let (tally, trace) = rung.upload(&work).await?;
            let time = started.elapsed();
            stock::check(&work).await?;
            Ok((time, tally, trace))
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
            None if self.stop.is_asked() => crate::stock::clear_after_a_stop(&self.site, prefix, &[]).await,
            None => crate::stock::clear(&self.site, prefix).await,
        };
        if let Err(failure) = cleared {
            let url = format!("gs://{}/{prefix}", self.site.bucket);
            (self.tell)(Event::Left { url, failure });
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Runtime;

    use super::*;
    use crate::place::{Imitated, Remote};

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
            let at = Imitated::at(Duration::ZERO);
            let (server, remote) = embedded(at, BUCKET, folder.path()).unwrap();
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
            let (tally, _) = stage.wait(rung.upload(&stage.work)).unwrap();
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
        stage.wait(crate::stock::clear(&stage.work.site, &stage.work.prefix)).unwrap();
        assert_eq!(stage.server.store().keys(BUCKET), ["p/u/y"]);
        // A rung that failed at its first request leaves nothing to be removed.
        stage.wait(crate::stock::clear(&stage.work.site, &stage.work.prefix)).unwrap();
    }
}
