//! The library's face.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use laneway_lanes::{Counters, Times};
use laneway_store::{ObjectMeta, Provider, Requests};

use crate::fork::PerProcess;
use crate::running::Running;
use crate::settings::Settings;
use crate::shared::Common;
use crate::state::State;
use crate::{
    CopyRequest, Engine, Error, Item, Job, ListRequest, Listing, Location, Op, ReadRequest, RemoveRequest,
    Stats, copy, download, read, remove, stat,
};

/// Moves objects. Clones are the same client; its [`Engine`] has threads of its own, so that any thread or runtime can use
/// it, and a child of a `fork` too. Jobs go on when their client is dropped, until they end or are dropped themselves.
#[derive(Clone, Debug)]
pub struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    engine: Engine,
    settings: Settings,
    state: PerProcess<Mutex<Option<Arc<State>>>>,
}

impl Client {
    pub(crate) fn start(engine: Engine, settings: Settings) -> Result<Self, Error> {
        let client = Self(Arc::new(Inner { engine, settings, state: PerProcess::new() }));
        client.state()?;
        Ok(client)
    }

    /// What its jobs stand on, in this process.
    ///
    /// # Errors
    /// In a child of a `fork`, at its first call: as [`build`](crate::ClientBuilder::build).
    pub(crate) fn state(&self) -> Result<Arc<State>, Error> {
        let mut state = self.0.state.get().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = &*state {
            return Ok(Arc::clone(state));
        }
        let started = Arc::new(State::start(&self.0.engine, &self.0.settings)?);
        *state = Some(Arc::clone(&started));
        Ok(started)
    }

    /// The engine that carries its work out.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// Copies files and objects.
    pub fn copy(&self, request: CopyRequest) -> Job {
        let (job, ends) = Job::new();
        match self.state() {
            Ok(state) => {
                let common = Common::of_copy(&request);
                let running = Running::new(Arc::clone(&state), ends, request.remove_source, common);
                state.machinery.runtime.spawn(copy::run(running, request));
            }
            Err(error) => ends.fail(Op::Copy, error),
        }
        job
    }

    /// Removes objects.
    pub fn remove(&self, request: RemoveRequest) -> Job {
        let (job, ends) = Job::new();
        match self.state() {
            Ok(state) => {
                let common = Common::of_remove(&request);
                let running = Running::new(Arc::clone(&state), ends, false, common);
                state.machinery.runtime.spawn(remove::run(running, request));
            }
            Err(error) => ends.fail(Op::Remove, error),
        }
        job
    }

    /// Lists objects.
    pub fn list(&self, request: ListRequest) -> Listing {
        match self.state() {
            Ok(state) => {
                let (listing, fill) = Listing::new(Arc::clone(&state), request);
                state.machinery.runtime.spawn(fill);
                listing
            }
            Err(error) => Listing::failed(error),
        }
    }

    /// What the store knows about an object. Blocks the thread.
    ///
    /// # Errors
    /// What the store says; `ErrorKind::Usage` for what is no object.
    pub fn stat(&self, at: &Location) -> Result<ObjectMeta, Error> {
        let state = self.state()?;
        state.machinery.runtime.wait_for(stat::stat(Arc::clone(&state), at.clone()))?
    }

    /// What the store knows about several objects, many of which are asked for at once.
    pub fn stats(&self, places: Vec<Location>) -> Stats {
        match self.state() {
            Ok(state) => {
                let (stats, fill) = Stats::new(Arc::clone(&state), places);
                state.machinery.runtime.spawn(fill);
                stats
            }
            Err(error) => Stats::failed(places, error),
        }
    }

    /// Reads an object in order into `to`. Blocks the thread, on which all of `to`'s writes happen; not to be called on
    /// a thread that runs async tasks.
    ///
    /// # Errors
    /// What the store or `to` says. Bytes may have been written before an error is found: checksums come last.
    pub fn read(&self, request: &ReadRequest, to: impl Write) -> Result<Item, Error> {
        let (_job, ends) = Job::new();
        let state = self.state()?;
        let job = Running::new(Arc::clone(&state), ends, false, Common::default());
        let begun = read::begin(&job, request);
        let (chunks, taken) = download::in_order::chunks();
        let (ended, end) = std::sync::mpsc::sync_channel(1);
        let (inside, request) = (Arc::clone(&job), request.clone());
        state.machinery.runtime.spawn(async move {
            // Whoever reads is still there: the thread below waits for it.
            let _ = ended.send(read::read(inside, request, chunks).await);
        });
        download::in_order::write_all(taken, to, "the output")?;
        let moved = end.recv().map_err(|_| Error::cancelled(&begun.source))??;
        Ok(read::end(&job, begun, moved))
    }

    /// What the engine has done so far.
    pub fn counters(&self) -> Counters {
        self.state().map(|state| state.lanes.counters()).unwrap_or_default()
    }

    /// How long the engine's requests had to wait so far.
    pub fn times(&self) -> Times {
        self.state().map(|state| state.lanes.times()).unwrap_or_default()
    }

    /// What has been asked of a provider so far, as its price list classes requests.
    pub fn requests(&self, provider: Provider) -> Requests {
        self.state().map(|state| state.requests(provider)).unwrap_or_default()
    }
}
