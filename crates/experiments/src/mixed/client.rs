//! The clients that are compared. Each can download or upload one object.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use laneway::internal::trace::Trace as Recorder;
use laneway::{CopyRequest, Event, Location, Outcome, Provider};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use super::plan::Object;
use super::{Errand, Mover};
use crate::Failure;
use crate::rival::{self, Connection, Pool, Protocol, Rival, Sender, Tally, all};
use crate::site::Site;
use crate::trace::{Role, Trace};

/// A client that makes a separate call for each object, as a program does when it needs this object.
pub(super) enum Client {
    Pooled(Pooled),
    Http2(Http2),
    Laneway(Laneway),
}

/// One object to move.
pub(super) struct Job<'a> {
    pub(super) key: String,
    pub(super) size: u64,
    pub(super) large: bool,
    pub(super) file: &'a Path,
}

impl Client {
    /// Creates a client without open connections.
    ///
    /// # Errors
    /// Returns an error if Laneway's client can't be built.
    pub(super) fn start(errand: &Errand, site: &Arc<Site>, now: Instant) -> Result<Self, Failure> {
        Ok(match errand.mover {
            Mover::Pool(bound) => Self::Pooled(Pooled::new(site, Some(bound))),
            Mover::Unbounded => Self::Pooled(Pooled::new(site, None)),
            Mover::Http2 => Self::Http2(Http2::new(site)),
            Mover::Laneway => Self::Laneway(Laneway::start(site, now)?),
        })
    }

    /// Moves one object completely.
    ///
    /// # Errors
    /// Returns the reason why the object couldn't be moved.
    pub(super) async fn transfer(
        &self,
        errand: &Errand,
        object: &Object,
        large: bool,
    ) -> Result<(), Failure> {
        let file = errand.folder.join(&object.name);
        let key = format!("{}{}", errand.prefix, object.name);
        let job = Job { key, size: object.size, large, file: &file };
        match (self, errand.puts) {
            (Self::Pooled(client), false) => client.get(&job).await,
            (Self::Pooled(client), true) => client.put(&job).await,
            (Self::Http2(client), false) => client.get(&job).await,
            (Self::Http2(client), true) => client.put(&job).await,
            (Self::Laneway(client), puts) => client.copy(&job, puts).await,
        }
    }

    /// Returns the counters, the body bytes that were moved, and the trace.
    pub(super) fn end(&self) -> (Tally, u64, Trace) {
        match self {
            Self::Pooled(client) => client.rival().ended(),
            Self::Http2(client) => client.rival().ended(),
            Self::Laneway(client) => client.end(),
        }
    }
}

/// Moves objects with Laneway's library, with one client for all objects.
pub(super) struct Laneway {
    client: laneway::Client,
    provider: Provider,
    bucket: String,
    recorder: Recorder,
    epoch: Instant,
}

impl Laneway {
    pub(super) fn start(site: &Site, epoch: Instant) -> Result<Self, Failure> {
        let recorder = Recorder::default();
        let client = site.laneway(Some(&recorder))?;
        Ok(Self { client, provider: site.provider, bucket: site.bucket.clone(), recorder, epoch })
    }

    pub(super) async fn copy(&self, job: &Job<'_>, puts: bool) -> Result<(), Failure> {
        let object = Location::object(self.provider, self.bucket.clone(), job.key.clone());
        let file = Location::from(job.file);
        let (from, to) = if puts { (file, object) } else { (object, file) };
        let mut running = self.client.copy(CopyRequest::new(vec![from], to));
        let mut done = false;
        while let Some(event) = running.next().await {
            if let Event::Item(item) = event {
                match item.outcome {
                    Outcome::Done { .. } => done = true,
                    Outcome::Failed(error) => return Err(error.into()),
                    _ => {}
                }
            }
        }
        if done { Ok(()) } else { Err(Failure::Unfinished) }
    }

    pub(super) fn end(&self) -> (Tally, u64, Trace) {
        let counters = self.client.counters();
        let tally = Tally { requests: counters.requests, connections: counters.connections };
        let moved = counters.bytes_sent + counters.bytes_received;
        (tally, moved, Trace::of_engine(&self.recorder.moments(), self.epoch))
    }
}

/// Size of the ranges in which large objects are downloaded: the default of SDKs' transfer managers.
const PART: u64 = 8 << 20;

pub(super) struct Pooled {
    site: Arc<Site>,
    rival: Rival,
    pool: Pool,
}

pub(super) struct Http2 {
    site: Arc<Site>,
    rival: Rival,
    connection: OnceCell<rival::Http2>,
}

impl Pooled {
    pub(super) fn new(site: &Arc<Site>, bound: Option<usize>) -> Self {
        let rival = Rival::new(site, Protocol::H1);
        Self { site: Arc::clone(site), pool: Pool::new(rival.clone(), bound), rival }
    }

    pub(super) fn rival(&self) -> &Rival {
        &self.rival
    }

    pub(super) async fn get(&self, job: &Job<'_>) -> Result<(), Failure> {
        let file = Arc::new(File::create(job.file).map_err(Failure::File)?);
        let mut parts = JoinSet::new();
        for range in ranges(job) {
            let (pool, site, file) = (self.pool.clone(), Arc::clone(&self.site), Arc::clone(&file));
            let (key, role) = (job.key.clone(), role(job));
            parts.spawn(async move {
                loop {
                    let mut request = site.get(&key, range.as_ref()).await?;
                    request.extensions_mut().insert(role);
                    let mut taken = pool.take().await?;
                    match taken.connection.fetch(request, writer(&file, range.clone())).await {
                        // The server closed the idle connection just before the request. Repeat the request on another
                        // connection, as SDKs do.
                        Err(rival::Error::Exchange(_)) if taken.is_reused => {}
                        answer => {
                            answer?;
                            taken.give_back();
                            return Ok(());
                        }
                    }
                }
            });
        }
        all(parts).await?;
        complete(&file, job)
    }

    pub(super) async fn put(&self, job: &Job<'_>) -> Result<(), Failure> {
        let mut taken = self.pool.take().await?;
        upload(&mut taken.connection, &self.site, job).await?;
        taken.give_back();
        Ok(())
    }
}

impl Http2 {
    pub(super) fn new(site: &Arc<Site>) -> Self {
        let rival = Rival::new(site, Protocol::H2);
        Self { site: Arc::clone(site), rival, connection: OnceCell::new() }
    }

    pub(super) fn rival(&self) -> &Rival {
        &self.rival
    }

    async fn connection(&self) -> Result<rival::Http2, rival::Error> {
        self.connection.get_or_try_init(|| self.rival.connect_h2()).await.cloned()
    }

    pub(super) async fn get(&self, job: &Job<'_>) -> Result<(), Failure> {
        let connection = self.connection().await?;
        let file = Arc::new(File::create(job.file).map_err(Failure::File)?);
        let mut parts = JoinSet::new();
        for range in ranges(job) {
            let (mut connection, file) = (connection.clone(), Arc::clone(&file));
            let mut request = self.site.get(&job.key, range.as_ref()).await?;
            request.extensions_mut().insert(role(job));
            parts.spawn(async move { connection.fetch(request, writer(&file, range)).await });
        }
        all(parts).await?;
        complete(&file, job)
    }

    pub(super) async fn put(&self, job: &Job<'_>) -> Result<(), Failure> {
        upload(&mut self.connection().await?, &self.site, job).await
    }
}

/// Uploads an object in one request: a large object as a stream, a small one from memory.
async fn upload<S: Sender>(
    connection: &mut Connection<S>,
    site: &Site,
    job: &Job<'_>,
) -> Result<(), Failure> {
    let answer = if job.large {
        let mut request = site.put_stream(&job.key).await?;
        request.extensions_mut().insert(role(job));
        let file = File::open(job.file).map_err(Failure::File)?;
        connection.send_file(request, file, job.size).await?
    } else {
        let content = std::fs::read(job.file).map_err(Failure::File)?;
        connection.send(site.put(&job.key, &content, None).await?).await?
    };
    answer.succeeded()?;
    Ok(())
}

/// Returns the ranges to request for an object: `None` (the whole object) for a small one, and several ranges
/// for a large one.
fn ranges(job: &Job<'_>) -> Vec<Option<Range<u64>>> {
    if !job.large || job.size <= PART {
        return vec![None];
    }
    let parts = job.size.div_ceil(PART);
    (0..parts).map(|n| Some(n * PART..((n + 1) * PART).min(job.size))).collect()
}

fn role(job: &Job<'_>) -> Role {
    if job.large { Role::Freight } else { Role::Express }
}

/// Returns a function that writes received bytes to their position in the file. The file is in memory, so a blocking
/// write takes only microseconds.
fn writer(file: &File, range: Option<Range<u64>>) -> impl FnMut(&[u8]) -> std::io::Result<()> {
    let mut at = range.map_or(0, |range| range.start);
    move |bytes| {
        file.write_all_at(bytes, at)?;
        at += bytes.len() as u64;
        Ok(())
    }
}

fn complete(file: &File, job: &Job<'_>) -> Result<(), Failure> {
    let len = file.metadata().map_err(Failure::File)?.len();
    if len == job.size {
        return Ok(());
    }
    Err(Failure::Different(format!("{}: {len} of {} bytes arrived", job.key, job.size)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_large_object_is_cut_as_transfer_managers_do() {
        let job = |size, large| Job { key: "k".to_owned(), size, large, file: Path::new("f") };
        assert_eq!(ranges(&job(PART + 1, true)), [Some(0..PART), Some(PART..PART + 1)]);
        assert_eq!(ranges(&job(PART, true)), [None]);
        assert_eq!(ranges(&job(PART * 2, false)), [None]);
    }
}
