//! Downloads all objects with an installed program, and finds when each one was complete.

use std::fs;

use super::Found;
use super::load::Load;
use crate::errand::Measured;
use crate::latency::Latencies;
use crate::program::{Job, Program, completed_s};
use crate::stage::{Stage, local};
use crate::trace::Trace;
use crate::{Error, Failure};

/// Downloads all objects at once with a program. Latencies of small objects count from the program's start.
///
/// # Errors
/// Returns [`Error::Stopped`] if the experiment is stopped, or an error if a folder can't be created. The inner error
/// is the reason why the run has no figures.
pub(super) fn download(
    program: Program,
    load: &Load,
    stage: &Stage<'_>,
) -> Result<Result<Measured<Found>, Failure>, Error> {
    let folder = stage.folder().join("program");
    fs::create_dir(&folder).map_err(local("making a folder"))?;
    let prefix = stage.key("");
    let ran = stage.run(program, &Job::Tree { prefix: &prefix, folder: &folder })?;
    let found = ran.and_then(|(took, tally)| {
        for object in load.large.iter().chain(&load.small) {
            let len = fs::metadata(folder.join(&object.name)).map_err(Failure::File)?.len();
            if len != object.size {
                let why = format!("{}: {len} of {} bytes arrived", object.name, object.size);
                return Err(Failure::Different(why));
            }
        }
        let small = load.small.iter().map(|object| {
            // The clock of the file system may be one tick behind, so the difference may be slightly negative.
            Ok((completed_s(&folder.join(&object.name))? - took.begun_s).clamp(0.0, took.seconds))
        });
        let small = Latencies::new(small.collect::<Result<_, Failure>>()?);
        let bulk_bytes = load.large.iter().map(|object| object.size).sum();
        let found = Found { small, total_s: took.seconds, bulk_bytes, tally, trace: Trace::default() };
        Ok(Measured { found, usage: None })
    });
    fs::remove_dir_all(&folder).map_err(local("removing a folder"))?;
    Ok(found)
}
