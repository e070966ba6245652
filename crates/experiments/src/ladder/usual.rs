//! A single upload in a usual way, for a program that shows it beside another upload.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::rung::Way;
use super::work::{Files, Work};
use crate::place::Remote;
use crate::rival::Tally;
use crate::site::Site;
use crate::stage::runtime;
use crate::{Error, Stop};

/// A usual way, without an engine, to upload many small files: one request on a new connection for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Usual {
    /// One after another.
    OneByOne,
    /// All at once.
    AllAtOnce,
}

/// Uploads the files of a folder, which must contain nothing else, to a store's bucket under `prefix`. It returns the
/// time and the numbers of requests and connections. It blocks the thread, which must not run async tasks.
///
/// # Errors
/// [`Error::Store`] with the first failure, or an error before the upload begins.
pub fn upload(
    way: Usual,
    folder: &Path,
    (remote, prefix): (&Remote, &str),
    stop: &Stop,
) -> Result<(Duration, Tally), Error> {
    let files = Files::of(folder).map_err(crate::stage::local("reading a folder"))?;
    let bucket = remote.bucket.clone().unwrap_or_default();
    let way = match way {
        Usual::OneByOne => Way::Single,
        Usual::AllAtOnce => Way::Concurrent,
    };
    runtime()?.block_on(stop.unless(async {
        let site = Arc::new(Site::prepare(remote, &bucket, prefix).await?);
        let work = Work { prefix: site.prefix.clone(), site, files };
        let started = Instant::now();
        let (tally, _) = way.upload(&work).await.map_err(Error::Store)?;
        Ok((started.elapsed(), tally))
    }))?
}
