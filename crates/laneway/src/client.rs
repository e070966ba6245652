//! The client, its builder, and the operations that take URLs. The client is the library's entry point.

pub(crate) mod builder;
pub mod dialect;
pub(crate) mod list;
pub(crate) mod stat;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use laneway_lanes::{Counters, Tally, Times, tally};
use laneway_store::{
    BucketSetting, Capabilities, Listings, ObjectMeta, Provider, PutOptions, Requests, Store,
};

use crate::engine::files::panic_text;
use crate::engine::fork::{OfProcess, PerProcess};
use crate::engine::runtime::{Task, block_on, wait};
use crate::engine::settings::{ClientSettings, ClientState};
use crate::job::running::{JobState, Purpose};
use crate::job::{CommonBuckets, JobEnds};
use crate::manifest::ManifestSubject;
use crate::transfer::compose;
use crate::transfer::copy;
use crate::transfer::remove;
use crate::transfer::restore;
use crate::transfer::set_meta;
use crate::transfer::sync;
use crate::{
    Canceller, CopyRequest, Engine, Error, Job, ListRequest, Listing, Location, ObjectAccess, Op,
    RemoveRequest, RestoreRequest, RunManifest, SetMetaRequest, Stats, SyncRequest, VerifyRequest, Warning,
};

/// Reads, writes and moves objects. A clone refers to the same client. The client's [`Engine`] has its own
/// threads, so any thread or async runtime can use the client. The child of a `fork` can use it too. A job
/// can outlive its client: it runs until it ends or the program drops the job.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<ClientCore>,
    tally: Option<Tally>,
}

/// Returns a bucket's store and its name.
fn bucket_of(state: &ClientState, at: &Location) -> Result<(Store, String), Error> {
    match at {
        Location::Object { provider, bucket, key } if key.is_empty() && !bucket.is_empty() => {
            Ok((state.store(*provider)?.clone(), bucket.clone()))
        }
        _ => Err(Error::usage(at.to_string(), "names no bucket")),
    }
}

#[derive(Debug)]
struct ClientCore {
    engine: Engine,
    settings: ClientSettings,
    state: PerProcess<Mutex<Option<Arc<ClientState>>>>,
}

/// A running future, made by [`Client::spawn`]. Dropping this value cancels the future: the engine's thread
/// drops the future at its next await point. In the child of a `fork`, dropping this value has no effect.
#[derive(Debug)]
#[must_use = "dropped, the future ends"]
pub struct Spawned {
    _task: Task,
}

impl Client {
    pub(crate) fn start(engine: Engine, settings: ClientSettings) -> Result<Self, Error> {
        let inner = Arc::new(ClientCore { engine, settings, state: PerProcess::new() });
        let client = Self { inner, tally: None };
        client.state()?;
        Ok(client)
    }

    /// Returns the state that this client's jobs share in this process. After a `fork`, the first call in the
    /// child starts a new state.
    ///
    /// # Errors
    /// In the child of a `fork`, the first call can fail as [`build`](crate::ClientBuilder::build) does.
    pub(crate) fn state(&self) -> Result<Arc<ClientState>, Error> {
        let mut state = self.inner.state.get().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = &*state {
            return Ok(Arc::clone(state));
        }
        let started = Arc::new(ClientState::start(&self.inner.engine, &self.inner.settings)?);
        *state = Some(Arc::clone(&started));
        Ok(started)
    }

    /// Returns what a provider's stores support, or `None` if this client has no dialect for the provider.
    pub fn capabilities(&self, provider: Provider) -> Option<&Capabilities> {
        self.inner.settings.capabilities(provider)
    }

    /// Returns the worker that runs this client's calls in this process and counts their requests.
    ///
    /// # Errors
    /// Fails as [`state`](Self::state) does.
    pub(crate) fn worker(&self) -> Result<Worker, Error> {
        Ok(Worker { state: self.state()?, tally: self.tally.clone() })
    }

    /// Starts a job. The job counts its requests in a tally of its own. This client's tally counts them, too.
    fn begin<F: Future<Output = ()> + Send + 'static>(
        &self,
        op: Op,
        (purpose, common): (Purpose, CommonBuckets),
        run: impl FnOnce(Arc<JobState>) -> F,
    ) -> Job {
        let (job, ends) = Job::new();
        match self.state() {
            Ok(state) => {
                let tally = self.tally.as_ref().map_or_else(Tally::default, Tally::part);
                ends.progress.counts_in(&tally);
                let running = JobState::new(Arc::clone(&state), ends, purpose, common);
                // Box the future at once, because it is large. Moving it unboxed could overflow a small stack
                // of the caller's thread.
                let work = AssertUnwindSafe(Box::pin(run(Arc::clone(&running)))).catch_unwind();
                Worker { state, tally: Some(tally) }.spawn(async move {
                    // Report the panic as a failed item. Otherwise the job would end without an event, just
                    // like a job that succeeds with nothing to do.
                    if let Err(panic) = work.await {
                        let error = Error::source("this job", format!("panicked: {}", panic_text(panic)));
                        running.fail(op, String::new(), None, error).await;
                        running.finish().await;
                    }
                });
            }
            Err(error) => ends.fail(op, error),
        }
        job
    }

    /// Returns the same client with a tally. The returned client adds the requests and bytes of its calls,
    /// jobs and buckets to `tally`. A client has one tally at a time. If this client already has a tally, the
    /// returned client uses `tally` instead, and the earlier tally keeps its counts.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// let (reading, writing) = (laneway::Tally::default(), laneway::Tally::default());
    /// let bucket = client.counted(&writing).bucket("s3://lake/")?;
    /// bucket.put("a", "bytes").call()?;
    /// bucket.counted(&reading).get("a").call()?.bytes_blocking()?;
    /// assert_eq!((writing.requests(), writing.bytes_sent()), (1, 5));
    /// assert_eq!((reading.requests(), reading.bytes_received()), (1, 5));
    /// # Ok::<(), laneway::Error>(())
    /// ```
    #[must_use]
    pub fn counted(&self, tally: &Tally) -> Self {
        Self { inner: Arc::clone(&self.inner), tally: Some(tally.clone()) }
    }

    /// Runs the caller's own future on the engine's thread, where this client's calls run. The future's
    /// requests are added to the client's tally. Use this method if you can't poll a future yourself: in a
    /// language binding, in a callback, or on a thread with its own way to wait. A future that blocks delays
    /// every other call.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// let (done, is_done) = std::sync::mpsc::channel();
    /// let put = client.bucket("s3://lake/")?.put("a", "bytes");
    /// let running = client.spawn(async move { drop(done.send(put.await)) })?;
    /// assert_eq!(is_done.recv().expect("it was not dropped")?.size, 5);
    /// drop(running);
    /// # Ok::<(), laneway::Error>(())
    /// ```
    ///
    /// # Errors
    /// In the child of a `fork`, the first call can fail as [`build`](crate::ClientBuilder::build) does.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> Result<Spawned, Error> {
        Ok(Spawned { _task: self.worker()?.task(future) })
    }

    /// Blocks this thread until `future`, which makes calls of this library, is done. Meanwhile this method
    /// calls `goes_on` each time `look_every` has passed. When `goes_on` returns false, this method cancels
    /// the future and returns `None`. At first the future runs on this thread, which halves the time of a
    /// small call. After the first `look_every`, the engine's thread runs it. So `goes_on` can itself make
    /// calls of this library.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    /// use std::time::Duration;
    ///
    /// static INTERRUPTED: AtomicBool = AtomicBool::new(false);
    /// let put = client.bucket("s3://lake/")?.put("a", "bytes").into_future();
    /// let put = client.block_on_while(put, Duration::from_millis(50), || !INTERRUPTED.load(Relaxed))?;
    /// assert_eq!(put.expect("nobody interrupted it")?.size, 5);
    /// # Ok::<(), laneway::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails as [`spawn`](Self::spawn) does. If `goes_on` forks, the wait fails in the child.
    pub fn block_on_while<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
        look_every: Duration,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<Option<T>, Error> {
        let mut future = Box::pin(future);
        let worker = self.worker()?;
        if let Some(done) = wait(worker.with_timers(future.as_mut()), look_every) {
            return Ok(Some(done));
        }
        let (done, is_done) = mpsc::sync_channel(1);
        // If this function returns before the future is done, this handle is dropped, and dropping it cancels
        // the future.
        let _running = self.spawn(async move { drop(done.send(future.await)) })?;
        let is_done = OfProcess::new(is_done);
        while goes_on() {
            match is_done.get().ok_or_else(|| Error::forked("the request"))?.recv_timeout(look_every) {
                Ok(done) => return Ok(Some(done)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Error::cancelled("the request")),
            }
        }
        Ok(None)
    }

    /// Returns the engine that runs this client's work.
    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// Copies files and objects.
    pub fn copy(&self, request: CopyRequest) -> Job {
        let purpose = if request.remove_source { Purpose::Move } else { Purpose::Plain };
        let about = (purpose, CommonBuckets::of_copy(&request));
        self.begin(Op::Copy, about, |running| copy::run(running, request))
    }

    /// Removes objects.
    pub fn remove(&self, request: RemoveRequest) -> Job {
        let about = (Purpose::Plain, CommonBuckets::of_remove(&request));
        self.begin(Op::Remove, about, |running| remove::run(running, request))
    }

    /// Changes the metadata and the storage class of objects.
    pub fn set_meta(&self, request: SetMetaRequest) -> Job {
        let about = (Purpose::Plain, CommonBuckets::of_set_meta(&request));
        self.begin(Op::SetMeta, about, |running| set_meta::run(running, request))
    }

    /// Returns a setting of a bucket, as JSON in the provider's own form. If the bucket doesn't have the
    /// setting, returns `{}`. Blocks the thread.
    ///
    /// # Errors
    /// The store's error; `ErrorKind::Usage` if the location isn't a bucket.
    pub fn bucket_setting(&self, at: &Location, setting: BucketSetting) -> Result<String, Error> {
        let (worker, at) = (self.worker()?, at.clone());
        let state = Arc::clone(&worker.state);
        let asked = async move {
            let (store, bucket) = bucket_of(&state, &at)?;
            Ok(store.bucket_setting(&bucket, setting).await?.to_string())
        };
        block_on(worker.run_here(asked))
    }

    /// Changes a setting of a bucket to `value`, which is JSON in the provider's own form. If `value` is
    /// `None`, removes the setting. Blocks the thread.
    ///
    /// # Errors
    /// The store's error; `ErrorKind::Usage` if the location isn't a bucket, or the text isn't JSON.
    pub fn set_bucket_setting(
        &self,
        at: &Location,
        setting: BucketSetting,
        value: Option<&str>,
    ) -> Result<(), Error> {
        let read = |text| serde_json::from_str(text);
        let value: Option<serde_json::Value> = value
            .map(read)
            .transpose()
            .map_err(|e| Error::usage(at.to_string(), format!("the setting isn't JSON: {e}")))?;
        let (worker, at) = (self.worker()?, at.clone());
        let state = Arc::clone(&worker.state);
        let set = async move {
            let (store, bucket) = bucket_of(&state, &at)?;
            Ok(store.set_bucket_setting(&bucket, setting, value.as_ref()).await?)
        };
        block_on(worker.run_here(set))
    }

    /// Joins objects of one bucket to a new object, in the order of `sources`. The store itself copies the
    /// bytes, so they don't pass through this machine. If `put` sets no content type, the new object gets the
    /// content type of the first source. Blocks the thread.
    ///
    /// # Errors
    /// The store's error; `ErrorKind::Usage` if these objects can't be joined; `ErrorKind::Integrity` if the
    /// checksum of the new object differs from that of the joined sources.
    pub fn compose(
        &self,
        sources: &[Location],
        destination: &Location,
        put: PutOptions,
    ) -> Result<ObjectMeta, Error> {
        self.compose_until(&Canceller::default(), sources, destination, put)
    }

    /// Does the same as [`compose`](Self::compose), unless `canceller` cancels the call. A cancelled call removes
    /// its temporary objects or aborts its upload, and then fails.
    ///
    /// # Errors
    /// Fails as [`compose`](Self::compose) does, and with `ErrorKind::Cancelled`.
    pub fn compose_until(
        &self,
        canceller: &Canceller,
        sources: &[Location],
        destination: &Location,
        put: PutOptions,
    ) -> Result<ObjectMeta, Error> {
        let worker = self.worker()?;
        let (state, ends) = (Arc::clone(&worker.state), JobEnds::of_call(canceller));
        let job = JobState::new(state, ends, Purpose::Plain, CommonBuckets::default());
        let composed = compose::compose(job, sources.to_vec(), destination.clone().as_written(), put);
        block_on(worker.run_here(composed))
    }

    /// Restores objects from S3's archives, and deleted objects on GCS. On S3, an item is done as soon as the
    /// store has accepted the request. The store may then need days to restore the object.
    pub fn restore(&self, request: RestoreRequest) -> Job {
        let about = (Purpose::Plain, CommonBuckets::of_restore(&request));
        self.begin(Op::Restore, about, |running| restore::run(running, request))
    }

    /// Makes a destination folder or prefix have the same content as a source folder or prefix.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).gcs_endpoint(server.url()).build()?;
    /// use laneway::{Event, SyncRequest};
    ///
    /// # let folder = std::env::temp_dir().join(format!("laneway-sync-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder).expect("a folder");
    /// # std::fs::write(folder.join("a"), "a").expect("a file");
    /// for expected in [(1, 0), (0, 1)] {
    ///     let mut job = client.sync(SyncRequest::new(folder.as_path().into(), "gs://lake/backup".parse()?));
    ///     while let Some(event) = job.next_blocking() {
    ///         if let Event::Done(summary) = event {
    ///             assert_eq!((summary.files, summary.unchanged), expected);
    ///         }
    ///     }
    /// }
    /// # std::fs::remove_dir_all(&folder).expect("removed");
    /// # Ok::<(), laneway::Error>(())
    /// ```
    pub fn sync(&self, request: SyncRequest) -> Job {
        let about = (Purpose::Sync, CommonBuckets::of_sync(&request));
        self.begin(Op::Copy, about, |running| sync::run(running, request))
    }

    /// Opens a manifest that several jobs write together. The manifest belongs to the current folder and to
    /// this client's endpoints. If an earlier run wrote the file in another folder or with other endpoints,
    /// this method refuses the file. Also returns a warning about the file, if there is one. Blocks the
    /// thread.
    /// # Errors
    /// `ErrorKind::Refused` if the file isn't such a manifest, has a broken line, or is being written by
    /// another process.
    pub fn run_manifest(&self, file: impl Into<PathBuf>) -> Result<(RunManifest, Option<Warning>), Error> {
        let state = self.state()?;
        let folder = std::env::current_dir()
            .map_err(|error| Error::local(".", "the path of the current folder can't be read", error))?;
        let of = |ask: fn(&Store) -> String| {
            let state = Arc::clone(&state);
            move |provider| state.store(provider).map(ask).unwrap_or_default()
        };
        let added: String = state.providers().map(of(Store::fingerprint)).collect();
        let subject = ManifestSubject::run(&folder, added).at(state.providers(), of(Store::endpoint));
        RunManifest::open(file.into(), &subject)
    }

    /// Compares the names, sizes and checksums of everything below two folders or prefixes. The job reports
    /// each difference as a failed item.
    pub fn verify(&self, request: VerifyRequest) -> Job {
        let about = (Purpose::Plain, CommonBuckets::default());
        self.begin(Op::Verify, about, |running| sync::verify::run(running, request))
    }

    /// Lists objects.
    pub fn list(&self, request: ListRequest) -> Listing {
        match self.worker() {
            Ok(worker) => {
                let (listing, fill) = Listing::new(Arc::clone(&worker.state), request);
                worker.spawn(fill);
                listing
            }
            Err(error) => Listing::failed(error),
        }
    }

    /// Requests the metadata of an object. Blocks the thread.
    ///
    /// # Errors
    /// The store's error; `ErrorKind::Usage` if the location isn't an object.
    pub fn stat(&self, at: &Location) -> Result<ObjectMeta, Error> {
        let worker = self.worker()?;
        let stat = stat::stat(Arc::clone(&worker.state), at.clone());
        block_on(worker.run_here(stat))
    }

    /// Returns an object's tags if `tags` is true, and the grants of its access control list if `grants` is
    /// true. Each of them takes one request. Blocks the thread.
    ///
    /// # Errors
    /// The store's error; `ErrorKind::Usage` if the location isn't an object.
    pub fn access(&self, at: &Location, tags: bool, grants: bool) -> Result<ObjectAccess, Error> {
        let worker = self.worker()?;
        let access = stat::access(Arc::clone(&worker.state), at.clone(), (tags, grants));
        block_on(worker.run_here(access))
    }

    /// Requests the metadata of several objects, with many concurrent requests.
    pub fn stats(&self, places: Vec<Location>) -> Stats {
        match self.worker() {
            Ok(worker) => {
                let (stats, fill) = Stats::new(Arc::clone(&worker.state), places);
                worker.spawn(fill);
                stats
            }
            Err(error) => Stats::failed(places, error),
        }
    }

    /// Returns the engine's counters so far, summed over this client and all others with the same network
    /// settings. Use [`counted`](Self::counted) to count one client alone.
    pub fn counters(&self) -> Counters {
        self.state().map(|state| state.lanes.counters()).unwrap_or_default()
    }

    /// Returns the host whose answers the engine's requests wait for, with its port unless that is the
    /// scheme's default port. If requests wait for several hosts, returns the host that has been silent for
    /// longest.
    pub fn waits_for(&self) -> Option<String> {
        self.state().ok()?.lanes.waits_for().map(|origin| origin.authority())
    }

    /// Returns the distributions of two waiting times of the engine's requests so far: the wait for a
    /// connection, and the wait for the response.
    pub fn times(&self) -> Times {
        self.state().map(|state| state.lanes.times()).unwrap_or_default()
    }

    /// Returns counters of the listings of this provider's buckets so far: pages, keys, and the peak number
    /// of concurrent page requests.
    pub fn listings(&self, provider: Provider) -> Listings {
        self.state().map(|state| state.listings(provider)).unwrap_or_default()
    }

    /// Returns how many requests were sent to a provider so far, for each class of the provider's price list.
    pub fn requests(&self, provider: Provider) -> Requests {
        self.state().map(|state| state.requests(provider)).unwrap_or_default()
    }
}

/// Runs one client's tasks on the engine's thread. The tasks' requests are added to the client's tally, if
/// the client has one.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) state: Arc<ClientState>,
    pub(crate) tally: Option<Tally>,
}

impl Worker {
    /// Runs a task to its end, even if nothing waits for it.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.state.machinery.runtime.spawn(tally::scope(self.tally.clone(), task));
    }

    /// Runs a task to its end, or until the returned value is dropped.
    pub(crate) fn task(&self, task: impl Future<Output = ()> + Send + 'static) -> Task {
        self.state.machinery.runtime.task(tally::scope(self.tally.clone(), task))
    }

    /// Runs a task, and waits for it on the caller's executor. Dropping the wait ends the task.
    ///
    /// # Errors
    /// The task's error; `ErrorKind::Cancelled` if the engine ended first.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        task: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        self.state.machinery.runtime.run(tally::scope(self.tally, task)).await
    }

    /// Wraps a future so that a thread outside of the runtime can poll it. The future then uses the engine's
    /// timers.
    pub(crate) fn with_timers<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        self.state.machinery.runtime.with_timers(future)
    }

    /// Does the same as [`run`](Self::run), but polls the task on the calling thread if that thread blocks
    /// until the task is done.
    ///
    /// # Errors
    /// Fails as [`run`](Self::run) does.
    pub(crate) async fn run_here<T: Send + 'static>(
        self,
        task: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        self.state.machinery.runtime.run_here(tally::scope(self.tally, task)).await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::{Engine, Event, Outcome};

    #[test]
    fn a_job_that_panics_ends_as_one_that_failed() {
        let client = Client::builder().anonymous(true).engine(Engine::builder().build()).build().unwrap();
        let job = (Purpose::Plain, CommonBuckets::default());
        let mut job = client.begin(Op::Copy, job, |_| async { panic!("torn") });
        let Some(Event::Item(item)) = job.next_blocking() else { panic!("its failure is reported first") };
        let Outcome::Failed(error) = item.outcome else { panic!("{item:?}") };
        assert!(error.to_string().contains("panicked: torn"), "{error}");
        let Some(Event::Done(summary)) = job.next_blocking() else { panic!("its end is reported") };
        assert_eq!((summary.failed, summary.files), (1, 0));
        assert!(job.next_blocking().is_none());
    }
}
