//! The library's face.

use std::io::Write;
use std::sync::Arc;

use laneway_lanes::{Counters, Times};
use laneway_store::{ObjectMeta, Provider, Requests};

use crate::engine::Engine;
use crate::running::Running;
use crate::runtime::Runtime;
use crate::shared::Common;
use crate::{
    CopyRequest, Error, Item, Job, ListRequest, Listing, Location, ReadRequest, RemoveRequest, Settings,
    Stats, copy, download, read, remove, stat,
};

/// Moves objects. Clones share one engine; it runs on threads of its own, so that any thread or runtime can use it.
/// When the last clone is dropped, jobs that still run end where they are.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) engine: Arc<Engine>,
    pub(crate) runtime: Arc<Runtime>,
}

impl Client {
    /// A client. Nothing is dialled yet.
    ///
    /// # Errors
    /// For an unreadable CA file, a proxy that is no URL, or threads that can't be started.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        Ok(Self { engine: Arc::new(Engine::start(settings)?), runtime: Arc::new(Runtime::start()?) })
    }

    /// Copies files and objects.
    pub fn copy(&self, request: CopyRequest) -> Job {
        let (job, ends) = Job::new();
        let common = Common::of_copy(&request);
        let running = Running::new(Arc::clone(&self.engine), ends, request.remove_source, common);
        self.runtime.spawn(copy::run(running, request));
        job
    }

    /// Removes objects.
    pub fn remove(&self, request: RemoveRequest) -> Job {
        let (job, ends) = Job::new();
        let running = Running::new(Arc::clone(&self.engine), ends, false, Common::of_remove(&request));
        self.runtime.spawn(remove::run(running, request));
        job
    }

    /// Lists objects.
    pub fn list(&self, request: ListRequest) -> Listing {
        let (listing, fill) = Listing::new(Arc::clone(&self.engine), request);
        self.runtime.spawn(fill);
        listing
    }

    /// What the store knows about an object. Blocks the thread.
    ///
    /// # Errors
    /// What the store says; `ErrorKind::Usage` for what is no object.
    pub fn stat(&self, at: &Location) -> Result<ObjectMeta, Error> {
        self.runtime.wait_for(stat::stat(Arc::clone(&self.engine), at.clone()))?
    }

    /// What the store knows about several objects, many of which are asked for at once.
    pub fn stats(&self, places: Vec<Location>) -> Stats {
        let (stats, fill) = Stats::new(Arc::clone(&self.engine), places);
        self.runtime.spawn(fill);
        stats
    }

    /// Reads an object in order into `to`. Blocks the thread, on which all of `to`'s writes happen; not to be called on
    /// a thread that runs async tasks.
    ///
    /// # Errors
    /// What the store or `to` says. Bytes may have been written before an error is found: checksums come last.
    pub fn read(&self, request: &ReadRequest, to: impl Write) -> Result<Item, Error> {
        let (_job, ends) = Job::new();
        let job = Running::new(Arc::clone(&self.engine), ends, false, Common::default());
        let begun = read::begin(&job, request);
        let (chunks, taken) = download::in_order::chunks();
        let (ended, end) = std::sync::mpsc::sync_channel(1);
        let (inside, request) = (Arc::clone(&job), request.clone());
        self.runtime.spawn(async move {
            // Whoever reads is still there: the thread below waits for it.
            let _ = ended.send(read::read(inside, request, chunks).await);
        });
        download::in_order::write_all(taken, to, "the output")?;
        let moved = end.recv().map_err(|_| Error::cancelled(&begun.source))??;
        Ok(read::end(&job, begun, moved))
    }

    /// What the engine has done so far.
    pub fn counters(&self) -> Counters {
        self.engine.lanes.counters()
    }

    /// How long the engine's requests had to wait so far.
    pub fn times(&self) -> Times {
        self.engine.lanes.times()
    }

    /// What has been asked of a provider so far, as its price list classes requests.
    pub fn requests(&self, provider: Provider) -> Requests {
        self.engine.requests(provider)
    }
}
