//! The store of an experiment, with objects in it, and a folder for files.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use laneway::{CopyRequest, Event, Location, Outcome, Provider};
use laneway_server::{Config, GcsConfig, Server, Tls};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::errand::{Address, Errand, Measured};
use crate::place::{Imitated, Remote, Target};
use crate::program::{Job, Program, Reached, Took};
use crate::random::Random;
use crate::rival::{Protocol, Rival, Tally, probe};
use crate::site::Site;
use crate::{Error, Failure, Stop, Workers, place, program, room, turns};

/// The bucket of the embedded store, and of a remote store if the plan names none.
const BUCKET: &str = "laneway-bench";
/// The file with the embedded store's certificate, in the stage's folder.
const CA_FILE: &str = "ca.pem";
/// Bytes that are generated and stored at a time on an external store.
const STOCKED_AT_ONCE: u64 = 64 << 20;

/// Laneway may upload objects of at least this size in parts. S3 accepts no parts below 5 MiB.
pub(crate) const PARTED_FROM: u64 = 5 << 20;
/// Time limit for the link to become idle again.
const SETTLED_WITHIN: Duration = Duration::from_secs(20);
/// The link counts as idle if a round trip takes at most one and a half times the normal time plus this.
const JITTER: Duration = Duration::from_millis(5);

/// An object that must be in the store before a run begins.
#[derive(Clone, Debug)]
pub(crate) struct Supply {
    /// The object's key below the experiment's prefix.
    pub(crate) name: String,
    /// The seed of the object's bytes.
    pub(crate) seed: u64,
    pub(crate) size: u64,
}

/// A store, its location, and a folder. [`end`](Self::end) removes everything; dropping the value removes the folder
/// and the embedded store.
pub(crate) struct Stage<'a> {
    pub(crate) site: Arc<Site>,
    /// The path's round-trip time as a client measures it.
    pub(crate) rtt: Duration,
    /// The conditions that the embedded store simulates, if the store is embedded.
    pub(crate) link: Option<Imitated>,
    /// The size in bytes of a TCP segment on the path, from which the cost of slow start is computed. `None` if slow start
    /// delays nothing, as on an imitated link without a bandwidth.
    pub(crate) segment: Option<u32>,
    address: Address,
    server: Option<Server>,
    folder: TempDir,
    runtime: Runtime,
    workers: &'a Workers,
    stop: &'a Stop,
    bucket_is_new: bool,
    /// Keys of objects that may be uploaded in several parts. If an experiment on S3 is stopped, the unfinished multipart uploads of these
    /// keys are aborted.
    parted: RefCell<Vec<String>>,
}

impl<'a> Stage<'a> {
    /// Starts the embedded store, or connects to the external one. Creates a folder for files of `bytes` in total, as
    /// [`room::folder`] does.
    ///
    /// # Errors
    /// Returns an error that makes the store unusable.
    pub(crate) fn set(
        target: &Target,
        parent: Option<&Path>,
        bytes: u64,
        workers: &'a Workers,
        stop: &'a Stop,
    ) -> Result<Self, Error> {
        let folder =
            room::folder("laneway-bench-", parent, bytes).map_err(local("making a folder for the files"))?;
        let (server, remote) = match target {
            Target::Remote(remote) => (None, remote.clone()),
            Target::Embedded(imitated) => {
                let (server, remote) = embedded(*imitated, BUCKET, folder.path())?;
                (Some(server), remote)
            }
        };
        // The folder's name is unique, so a key prefix with this name is unique too.
        let unique = folder.path().file_name().map(|name| name.to_string_lossy().into_owned());
        let bucket = remote.bucket.clone().unwrap_or_else(|| BUCKET.to_owned());
        let address = Address { remote, bucket, unique: unique.unwrap_or_default() };
        let runtime = runtime()?;
        let (site, rtt, segment, bucket_is_new) = runtime.block_on(async {
            let prepared = Site::prepare(&address.remote, &address.bucket, &address.unique);
            let site = Arc::new(stop.unless(prepared).await??);
            let new = match address.remote.bucket {
                Some(_) => false,
                None => stop.unless(place::create_bucket(&site)).await?.map_err(Error::Store)?,
            };
            let (rtt, segment) = stop.unless(probe(&site)).await?.map_err(Error::Store)?;
            Ok::<_, Error>((site, rtt, segment, new))
        })?;
        let link = target.imitated();
        Ok(Self {
            site,
            rtt,
            link,
            segment: match link {
                Some(Imitated { bandwidth: None, .. }) => None,
                Some(_) => Some(Imitated::SEGMENT),
                None => Some(segment),
            },
            address,
            server,
            folder,
            runtime,
            workers,
            stop,
            bucket_is_new,
            parted: RefCell::default(),
        })
    }

    /// Returns the store's URL.
    pub(crate) fn store(&self) -> &str {
        &self.site.endpoint
    }

    /// Returns whether a connection needs a TLS handshake.
    pub(crate) fn tls(&self) -> bool {
        self.site.origin.https
    }

    /// Returns the key of the experiment's object with this name.
    pub(crate) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.site.prefix)
    }

    /// Records that an object may be uploaded in parts. If the experiment is stopped, it looks for unfinished uploads of
    /// this object, because a listing of objects doesn't show them.
    pub(crate) fn may_be_parted(&self, name: &str) {
        self.parted.borrow_mut().push(self.key(name));
    }

    /// Returns the folder for the experiment's own files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Puts objects into the store.
    ///
    /// # Errors
    /// Returns [`Error::Store`] if an object can't be stored, or [`Error::Stopped`] if the experiment is stopped.
    pub(crate) fn stock(&self, supplies: &[Supply]) -> Result<(), Error> {
        if let Some(server) = &self.server {
            for supply in supplies {
                let content = Random::new(supply.seed).content(supply.size);
                server
                    .store()
                    .put(&self.site.bucket, &self.key(&supply.name), &content)
                    .map_err(local("filling the embedded store"))?;
                if self.stop.is_asked() {
                    return Err(Error::Stopped);
                }
            }
            return Ok(());
        }
        for supply in supplies.iter().filter(|supply| supply.size >= PARTED_FROM) {
            self.may_be_parted(&supply.name);
        }
        let mut rest = supplies;
        while !rest.is_empty() {
            let mut bytes = 0;
            let some = rest.iter().take_while(|supply| {
                let fits = bytes == 0 || bytes + supply.size <= STOCKED_AT_ONCE;
                bytes += supply.size;
                fits
            });
            let (now, later) = rest.split_at(some.count());
            self.upload(now)?;
            rest = later;
        }
        Ok(())
    }

    /// Writes files with the contents of `supplies` into the folder `below`, which is inside the experiment's own
    /// folder.
    ///
    /// # Errors
    /// Returns the file system's error.
    pub(crate) fn files(&self, below: &str, supplies: &[Supply]) -> Result<(), Error> {
        let folder = self.folder().join(below);
        for supply in supplies {
            let path = folder.join(&supply.name);
            path.parent().map_or(Ok(()), fs::create_dir_all).map_err(local("making a folder"))?;
            fs::write(&path, Random::new(supply.seed).content(supply.size))
                .map_err(local("writing the files"))?;
        }
        Ok(())
    }

    /// Uploads objects with Laneway. This upload isn't measured, so it uses the fastest method.
    fn upload(&self, supplies: &[Supply]) -> Result<(), Error> {
        self.files("stock", supplies)?;
        let stock = self.folder().join("stock");
        let to = Location::object(self.site.provider, self.site.bucket.clone(), self.site.prefix.clone());
        let entries = fs::read_dir(&stock).map_err(local("reading a folder"))?;
        let sources: Vec<Location> =
            entries.filter_map(|entry| Some(Location::Local(entry.ok()?.path()))).collect();
        self.wait(async {
            let client = self.site.laneway(None).map_err(Failure::from)?;
            let request = CopyRequest::new(sources, to).recursive(true);
            let mut job = client.copy(request);
            while let Some(event) = job.next().await {
                if let Event::Item(item) = event
                    && let Outcome::Failed(error) = item.outcome
                {
                    return Err(error.into());
                }
            }
            Ok(())
        })?
        .map_err(Error::Store)?;
        fs::remove_dir_all(stock).map_err(local("removing a folder"))
    }

    /// Executes a run as soon as the link is idle again after earlier runs.
    ///
    /// # Errors
    /// Returns [`Error::Stopped`]. The inner error is the reason why the run has no figures.
    pub(crate) fn carry<E: Errand>(&self, errand: E) -> Result<Result<Measured<E::Found>, Failure>, Error> {
        self.wait(async {
            settle(&self.site, self.rtt).await;
            self.workers.carry(errand, &self.site, &self.address).await
        })
    }

    /// Returns the other vendors' installed programs if they are `wanted`. They take part only if the store is embedded
    /// and runs have their own processes.
    pub(crate) fn programs(&self, wanted: bool) -> Vec<Program> {
        match (&self.server, self.workers) {
            (Some(_), Workers::Program(..)) if wanted => {
                program::installed().iter().map(|found| found.program).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Runs a program for a job as soon as the link is idle. The store counts the program's requests and connections.
    ///
    /// # Errors
    /// Returns [`Error::Stopped`]. The inner error is the reason why the run has no figures.
    pub(crate) fn run(
        &self,
        program: Program,
        job: &Job<'_>,
    ) -> Result<Result<(Took, Tally), Failure>, Error> {
        let (Some(server), Workers::Program(laneway, _)) = (&self.server, self.workers) else {
            return Ok(Err(Failure::Absent(
                "installed programs can only use the store in this process".to_owned(),
            )));
        };
        let at = Reached {
            endpoint: self.site.endpoint.clone(),
            bucket: self.site.bucket.clone(),
            ca_file: self.folder().join(CA_FILE),
            scratch: self.folder().join("scratch"),
            laneway: laneway.clone(),
        };
        fs::create_dir_all(&at.scratch).map_err(local("making a folder"))?;
        self.wait(async {
            settle(&self.site, self.rtt).await;
            let before = server.counters();
            let took = program.carry_out(job, &at).await?;
            let after = server.counters();
            let requests = after.requests - before.requests;
            Ok((took, Tally { requests, connections: after.connections - before.connections }))
        })
    }

    /// Returns the segments that the embedded store's link has lost so far, or `None` for an external store.
    pub(crate) fn segments_lost(&self) -> Option<u64> {
        self.server.as_ref().map(|server| server.counters().segments_lost)
    }

    /// Executes a run with the API of `provider`. Only the embedded store supports both APIs.
    ///
    /// # Errors
    /// Returns the errors of [`carry`](Self::carry).
    pub(crate) fn carry_as<E: Errand>(
        &self,
        provider: Provider,
        errand: E,
    ) -> Result<Result<Measured<E::Found>, Failure>, Error> {
        let remote = Remote { provider, ..self.address.remote.clone() };
        let address = Address { remote, ..self.address.clone() };
        let prepared = Site::prepare(&address.remote, &address.bucket, &address.unique);
        let site = Arc::new(self.wait(prepared)??);
        self.wait(async {
            settle(&site, self.rtt).await;
            self.workers.carry(errand, &site, &address).await
        })
    }

    /// Executes a future, unless the experiment is stopped.
    ///
    /// # Errors
    /// Returns [`Error::Stopped`] if the experiment is stopped.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        self.runtime.block_on(self.stop.unless(work))
    }

    /// Counts the objects under a prefix of the experiment.
    ///
    /// # Errors
    /// Returns [`Error::Store`] if the listing fails, or [`Error::Stopped`] if the experiment is stopped.
    pub(crate) fn count(&self, below: &str) -> Result<usize, Error> {
        let prefix = self.key(below);
        match &self.server {
            Some(server) => {
                let keys = server.store().keys(&self.site.bucket);
                Ok(keys.iter().filter(|key| key.starts_with(&prefix)).count())
            }
            None => self.wait(place::count_objects(&self.site, &prefix))?.map_err(Error::Store),
        }
    }

    /// Removes the objects under a prefix of the experiment.
    ///
    /// # Errors
    /// Returns the store's error and the prefix that may still hold objects.
    pub(crate) fn clear(&self, below: &str) -> Result<(), Left> {
        let prefix = self.key(below);
        if let Some(server) = &self.server {
            let keys = server.store().keys(&self.site.bucket);
            for key in keys.iter().filter(|key| key.starts_with(&prefix)) {
                server.store().remove(&self.site.bucket, key);
            }
            return Ok(());
        }
        // Remove the objects even if the experiment was stopped.
        let parted = self.parted.borrow().clone();
        let cleared = self.runtime.block_on(async {
            match self.stop.is_asked() {
                true => place::clear_after_a_stop(&self.site, &prefix, &parted).await,
                false => place::clear_objects(&self.site, &prefix).await,
            }
        });
        cleared.map_err(|failure| Left {
            url: format!("{}://{}/{prefix}", self.site.provider.scheme(), self.site.bucket),
            failure,
        })
    }

    /// Removes all of the experiment's objects from the store, and its bucket if that is new.
    ///
    /// # Errors
    /// Returns the errors of [`clear`](Self::clear).
    pub(crate) fn end(self) -> Result<(), Left> {
        self.clear("")?;
        if self.bucket_is_new {
            let removed = self.runtime.block_on(place::remove_bucket(&self.site));
            removed.map_err(|failure| Left { url: format!("gs://{}", self.site.bucket), failure })?;
        }
        Ok(())
    }
}

/// Sets up the store and folder of an experiment, calls `climb` with them, and then removes the experiment's objects,
/// even after a failure. Reports everything that can't be removed.
///
/// # Errors
/// Returns an error that makes the store unusable, or the error of `climb`.
pub(crate) fn on_stage<T>(
    (target, parent, bytes): (&Target, Option<&Path>, u64),
    (workers, stop): (&Workers, &Stop),
    tell: &mut dyn FnMut(turns::Event<'_>),
    climb: impl FnOnce(&Stage<'_>, &mut dyn FnMut(turns::Event<'_>)) -> Result<T, Error>,
) -> Result<T, Error> {
    let stage = Stage::set(target, parent, bytes, workers, stop)?;
    let found = climb(&stage, tell);
    if let Err(left) = stage.end() {
        tell(turns::Event::Left(left));
    }
    found
}

/// Waits until a round trip takes about as long as at the beginning. The previous run may have left bytes in the link's
/// queue, which would delay the next run. The wait has a limit, because the store may have become permanently slower.
async fn settle(site: &Site, rtt: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < SETTLED_WITHIN {
        // If the store can't be reached, don't wait. The run itself then reports why.
        match Rival::new(site, Protocol::H1).probe().await {
            Ok((now, _)) if now > rtt * 3 / 2 + JITTER => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// An object or bucket that couldn't be removed.
#[derive(Debug)]
pub struct Left {
    /// The URL of the object or bucket.
    pub url: String,
    /// The reason why it couldn't be removed.
    pub failure: Failure,
}

/// The embedded store computes the MD5 of objects up to this size. `gcloud storage cp` needs it for the small files
/// that it uploads, because it treats a missing MD5 as a wrong one.
const MD5_BYTES_MAX: u64 = 1 << 20;

/// Starts a store in this process, and returns it with its address.
///
/// # Errors
/// Returns the error that prevents the store's start.
pub(crate) fn embedded(imitated: Imitated, bucket: &str, folder: &Path) -> Result<(Server, Remote), Error> {
    let Imitated { rtt, bandwidth, queue, loss, connection_bandwidth, h1_only, provider } = imitated;
    // Computing MD5s of large objects would take processor time from the measured client.
    let gcs = GcsConfig { md5_bytes_max: MD5_BYTES_MAX, ..GcsConfig::default() };
    let tls = Some(Tls::Generated);
    let config =
        Config { tls, h1_only, rtt, bandwidth, queue, loss, connection_bandwidth, gcs, ..Config::default() };
    let server = Server::start(config)?;
    server.create_bucket(bucket)?;
    let ca_file = folder.join(CA_FILE);
    fs::write(&ca_file, server.ca_pem().unwrap_or_default()).map_err(local("writing the CA file"))?;
    let remote = Remote {
        provider,
        bucket: Some(bucket.to_owned()),
        anonymous: true,
        imitated_rtt: rtt,
        ca_files: vec![ca_file],
        ..Remote::gcs(server.url())
    };
    Ok((server, remote))
}

/// Creates the async runtime of the experiment, with tokio's default of one thread per core.
///
/// # Errors
/// Fails if threads can't be started.
pub(crate) fn runtime() -> Result<Runtime, Error> {
    let runtime = Builder::new_multi_thread().thread_name("bench").enable_all().build();
    runtime.map_err(local("starting threads"))
}

pub(crate) fn local(what: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::Local { what, source }
}
