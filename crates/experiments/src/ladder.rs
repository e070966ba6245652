//! Uploads of many small files: with five usual methods, from the slowest to the fastest, and with Laneway.
//!
//! Laneway began with this measurement: the official Ruby gem took 28 s for fifty empty files, and an upload over
//! HTTP/2 took 0.4 s. [`run`] executes a [`Plan`]. The methods are in `rung`.

mod rung;
mod work;

use std::sync::Arc;
use std::time::{Duration, Instant};

use laneway_quantity::size;
use serde::{Deserialize, Serialize};

use crate::counted::{Bench, Counted, Found};
use crate::errand::{self, Measured};
use crate::place::{Imitated, Target};
use crate::program::{self, Chore, Job, versions, with_programs};
use crate::site::Site;
use crate::stage::{Stage, local, on_stage};
use crate::turns::{Event, Repeats};
use crate::{Error, Failure, Stop, Workers};
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
        let checked = stage.wait(work::check(&work))?;
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

/// Maximum number of files. The method `concurrent` opens a connection for each file.
const FILES_MAX: usize = 10_000;
/// Maximum bytes of all files together. The methods that upload all files at once hold them in memory, as simple
/// programs do.
const BYTES_MAX: u64 = 256 << 20;

/// The plan of a ladder.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of files that each method uploads.
    pub files: usize,
    /// Bytes of each file.
    pub size: u64,
    /// Runs of each method. The methods take turns.
    pub runs: Repeats,
    /// True if the slowest methods take part. The slowest methods open a connection for each file, one file after another.
    pub one_by_one: bool,
    /// True if installed programs take part. They require the embedded store.
    pub programs: bool,
    /// The store.
    pub target: Target,
}

impl Default for Plan {
    /// Returns the plan of the original measurement: fifty empty files to another continent.
    fn default() -> Self {
        Self {
            files: 50,
            size: 0,
            runs: Repeats::times(3),
            one_by_one: true,
            programs: true,
            target: Target::Embedded(Imitated::at(Duration::from_millis(50))),
        }
    }
}

impl Plan {
    /// Checks that the plan can be carried out.
    ///
    /// # Errors
    /// Returns [`Error::Plan`] if there are no files or runs, more than 10,000 files, or more than 256 MiB together.
    pub fn check(&self) -> Result<(), Error> {
        let refused = |why: String| Err(Error::Plan(why));
        if self.files == 0 || self.runs.least == 0 {
            return refused("`bench ladder` needs at least one file and one run".to_owned());
        }
        if self.files > FILES_MAX {
            return refused(format!("`bench ladder` uploads at most {FILES_MAX} files"));
        }
        if (self.files as u64).checked_mul(self.size).is_none_or(|bytes| bytes > BYTES_MAX) {
            return refused(format!(
                "`bench ladder` is for small files: all files together can have at most {} MiB",
                BYTES_MAX >> 20
            ));
        }
        Ok(())
    }
}

/// Segments that a new connection sends in its first round trip (RFC 6928).
const INITIAL_WINDOW: u64 = 10;

/// The path of a client that has no open connection yet.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Path {
    /// Round-trip time.
    rtt: Duration,
    /// `true` if there is a TLS 1.3 handshake.
    tls: bool,
    /// Bytes of a TCP segment: 1460 or a little less on the internet, 65,483 on loopback. `None` means that slow start delays nothing. On
    /// the embedded server's simulated path without a bandwidth, any number of bytes passes at once.
    segment: Option<u32>,
}

/// Returns the time from the client's start to the last answer. Counts a round trip for TCP, one for TLS and one for each flight of the
/// largest object. Assumes a separate connection for every object, because nothing is faster.
fn floor(path: Path, largest: u64) -> Duration {
    let flights = path.segment.map_or(1, |segment| flights(largest, segment));
    path.rtt * (1 + u32::from(path.tls) + flights)
}

/// Returns the number of round trips that a new connection needs for `bytes`. The congestion window doubles with each
/// round trip. A request without a body also needs one round trip.
fn flights(bytes: u64, segment: u32) -> u32 {
    let windows = bytes.div_ceil(INITIAL_WINDOW * u64::from(segment.max(1))).max(1);
    // After n round trips, 2^n - 1 initial windows have been sent.
    u64::BITS - windows.leading_zeros()
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
            stage.wait(work::check(&stage.work)).unwrap();
        }
    }

    #[test]
    fn missing_short_and_foreign_objects_are_noticed() {
        let stage = Stage::set(3, 4);
        stage.wait(rung::single(&stage.work)).unwrap();
        let (store, work) = (stage.server.store(), &stage.work);
        store.remove(BUCKET, &work.key("00000.bin"));
        store.put(BUCKET, &work.key("00001.bin"), b"abc").unwrap();
        store.put(BUCKET, &work.key("another"), b"abcd").unwrap();
        let failure = stage.wait(work::check(work)).unwrap_err();
        assert!(
            matches!(failure, Failure::Wrong { right: 1, wanted: 3, size: 4, wrong: 2 }),
            "the check reports {failure:?}"
        );
    }

    #[test]
    fn what_was_uploaded_elsewhere_is_removed_and_nothing_else() {
        let stage = Stage::set(3, 4);
        stage.server.store().put(BUCKET, "p/u/y", b"").unwrap();
        stage.wait(rung::single(&stage.work)).unwrap();
        stage.wait(crate::place::clear_objects(&stage.work.site, &stage.work.prefix)).unwrap();
        assert_eq!(stage.server.store().keys(BUCKET), ["p/u/y"]);
        // A method that failed at its first request leaves nothing to remove.
        stage.wait(crate::place::clear_objects(&stage.work.site, &stage.work.prefix)).unwrap();
    }

    #[test]
    fn a_plan_beyond_the_bounds_is_refused() {
        let plan = Plan::default();
        assert!(plan.check().is_ok());
        assert!(Plan { files: 0, ..plan.clone() }.check().is_err());
        assert!(Plan { runs: Repeats::times(0), ..plan.clone() }.check().is_err());
        assert!(Plan { files: FILES_MAX + 1, ..plan.clone() }.check().is_err());
        assert!(Plan { files: 2, size: BYTES_MAX / 2, ..plan.clone() }.check().is_ok());
        assert!(Plan { files: 2, size: BYTES_MAX / 2 + 1, ..plan.clone() }.check().is_err());
        assert!(Plan { files: 3, size: u64::MAX, ..plan }.check().is_err());
    }

    const SEGMENT: u32 = 1460;
    const RTT: Duration = Duration::from_millis(50);

    #[test]
    fn empty_files_take_tcp_and_tls_and_the_request() {
        let path = Path { rtt: RTT, tls: true, segment: Some(SEGMENT) };
        assert_eq!(floor(path, 0), RTT * 3);
        assert_eq!(floor(Path { tls: false, ..path }, 0), RTT * 2);
    }

    #[test]
    fn the_window_doubles_with_every_flight() {
        let flights = |bytes| flights(bytes, SEGMENT);
        assert_eq!([0, 1, 14_600].map(flights), [1, 1, 1]);
        assert_eq!([14_601, 3 * 14_600].map(flights), [2, 2]);
        assert_eq!([3 * 14_600 + 1, 7 * 14_600].map(flights), [3, 3]);
        assert_eq!(flights(7 * 14_600 + 1), 4);
        assert_eq!(flights(u64::MAX), 51);
    }

    #[test]
    fn a_path_without_slow_start_takes_any_object_in_one_flight() {
        let path = Path { rtt: RTT, tls: true, segment: None };
        assert_eq!(floor(path, 1 << 20), RTT * 3);
        assert_eq!(floor(Path { segment: Some(SEGMENT), ..path }, 1 << 20), RTT * 9);
    }
}
