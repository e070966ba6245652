//! Uploads of many small files: with five usual methods, from the slowest to the fastest, and with Laneway.
//!
//! Laneway began with this measurement: the official Ruby gem took 28 s for fifty empty files, and an upload over
//! HTTP/2 took 0.4 s. [`run`] executes a [`Plan`]. Each method has its own file.

mod concurrent;
mod floor;
mod http2;
mod keepalive;
mod laneway;
mod plan;
mod resumable;
mod rung;
mod single;
mod stock;
mod work;

use std::sync::Arc;
use std::time::Instant;

use laneway_quantity::size;
use serde::{Deserialize, Serialize};

use crate::counted::{Bench, Counted, Found};
use crate::errand::{self, Measured};
use crate::program::{self, Chore, Job, versions, with_programs};
use crate::site::Site;
use crate::stage::{Stage, local, on_stage};
use crate::turns::Event;
use crate::{Error, Failure, Stop, Workers};
pub use plan::Plan;

use floor::{Path, floor};
use rung::{ONE_BY_ONE, RUNGS, Way};
use work::{Files, Work};

/// The input of one run, as it is sent to the process that executes the run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Errand {
    way: Way,
    files: Files,
    prefix: String,
}

impl errand::Errand for Errand {
    const NAME: &'static str = "ladder";
    type Found = Found;

    async fn run(self, site: Arc<Site>) -> Result<Found, Failure> {
        let work = Work { site, files: self.files, prefix: self.prefix };
        let started = Instant::now();
        let tally = self.way.upload(&work).await?;
        Ok(Found { seconds: started.elapsed().as_secs_f64(), tally })
    }
}

/// Uploads the files with each method in turn. Blocks the thread, so don't call this on a thread that runs async tasks.
///
/// # Errors
/// Returns an error that prevents the whole experiment. If only one method fails, its row holds the failure.
pub fn run(
    plan: &Plan,
    workers: &Workers,
    stop: &Stop,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Counted, Error> {
    plan.check()?;
    let bytes = plan.files as u64 * plan.size;
    on_stage((&plan.target, None, bytes), (workers, stop), tell, |stage, tell| climb(plan, stage, tell))
}

fn climb(plan: &Plan, stage: &Stage<'_>, tell: &mut dyn FnMut(Event<'_>)) -> Result<Counted, Error> {
    let files = Files::create(stage.folder().join("files"), plan.files, plan.size);
    let files = files.map_err(local("writing the files"))?;
    let path = Path { rtt: stage.rtt, tls: stage.tls(), segment: stage.segment };
    let floor_s = floor(path, plan.size).as_secs_f64();
    // Only the upload is timed. The store is checked and cleared afterwards.
    let one = |way, run: usize| {
        let below = format!("{way:?}-{run}/").replace(['(', ')'], "-");
        let prefix = stage.key(&below);
        let ran = match way {
            program::Way::Own(way) => {
                stage.carry(Errand { way, files: files.clone(), prefix: prefix.clone() })?
            }
            program::Way::Program(program) => {
                let job = Job::Up { folder: files.folder(), prefix: &prefix };
                stage.run(program, &job)?.map(Measured::of_program)
            }
        };
        let work = Work { site: Arc::clone(&stage.site), files: files.clone(), prefix };
        let checked = stage.wait(stock::check(&work))?;
        let cleared = stage.clear(&below).map_err(|left| left.failure);
        Ok(ran.and_then(|measured| checked.and(cleared).map(|()| measured)))
    };
    let first = if plan.one_by_one { 0 } else { ONE_BY_ONE };
    let rungs = with_programs(&RUNGS[first..], Chore::Copy, &stage.programs(plan.programs));
    let what = match plan.size {
        0 => format!("upload {} empty files", plan.files),
        bytes => format!("upload {} files of {}", plan.files, size(bytes)),
    };
    let found =
        Counted::find(Bench::Ladder, (plan.files, what, plan.runs), stage, floor_s, &rungs, tell, one)?;
    Ok(Counted { programs: versions(&rungs), ..found })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use laneway_server::Server;
    use tokio::runtime::Runtime;

    use super::*;
    use crate::place::{Imitated, Remote};
    use crate::rival::Tally;
    use crate::stage::{embedded, runtime};

    const BUCKET: &str = "ladder";

    /// A server that records its requests, and the files that a method uploads to it.
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
            let files = Files::create(folder.path().join("files"), files, size).unwrap();
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
        for way in RUNGS.map(|rung| rung.method) {
            let before = stage.server.counters();
            let tally = stage.wait(way.upload(&stage.work)).unwrap();
            let after = stage.server.counters();
            let seen = Tally {
                requests: after.requests - before.requests,
                connections: after.connections - before.connections,
            };
            assert_eq!(tally, seen, "the method {way:?} counts other figures than the server");
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
        assert!(
            matches!(failure, Failure::Wrong { right: 1, wanted: 3, size: 4, wrong: 2 }),
            "the check reports {failure:?}"
        );
    }

    #[test]
    fn what_was_uploaded_elsewhere_is_removed_and_nothing_else() {
        let stage = Stage::set(3, 4);
        stage.server.store().put(BUCKET, "p/u/y", b"").unwrap();
        stage.wait(single::upload(&stage.work)).unwrap();
        stage.wait(crate::stock::clear(&stage.work.site, &stage.work.prefix)).unwrap();
        assert_eq!(stage.server.store().keys(BUCKET), ["p/u/y"]);
        // A method that failed at its first request leaves nothing to remove.
        stage.wait(crate::stock::clear(&stage.work.site, &stage.work.prefix)).unwrap();
    }
}
