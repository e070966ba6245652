//! The first request of a download: an unranged GET that brings size, state, checksums and the first bytes in one
//! round trip. A small object is done with it; of a large one it goes on until it meets the slices that others take.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laneway_store::{GetSink, ObjectMeta, Route, SinkError};
use tokio::sync::oneshot;

use crate::checksum::{Hashing, Run, Wanted};
use crate::folder::{Place, Staged};
use crate::plan::slices::{Slices, is_sliced, slice_len};
use crate::{Error, Progress};

/// An object whose checksum is only an MD5 is fetched by one stream up to this size, since MD5s can't be combined.
const MD5_IN_ORDER_MAX: u64 = 64 << 20;

/// An opening stream. It outlives the attempts that begin it.
#[derive(Debug)]
pub(crate) struct Opening {
    state: Mutex<State>,
    place: Place,
    collect_max: u64,
    in_flight: usize,
    /// Announces a size only where it wasn't known before.
    is_size_known: bool,
    progress: Arc<Progress>,
}

#[derive(Debug)]
struct State {
    attempt: u32,
    meta: Option<Box<ObjectMeta>>,
    hashing: Hashing,
    at: u64,
    body: Body,
    large: Option<oneshot::Sender<Large>>,
}

#[derive(Debug)]
enum Body {
    Unopened,
    Collected(Vec<u8>),
    File(Option<Large>),
}

/// A large object of which the first bytes have come: what others need to help.
#[derive(Clone, Debug)]
pub(crate) struct Large {
    pub(crate) meta: Arc<ObjectMeta>,
    pub(crate) staged: Arc<Staged>,
    pub(crate) slices: Arc<Mutex<Slices>>,
    pub(crate) wanted: Wanted,
    /// Whether slices may be fetched beside the opener.
    pub(crate) is_shared: bool,
}

/// What an opening stream brought by itself.
#[derive(Debug)]
pub(crate) enum Opened {
    /// All of a small object.
    Collected(Box<ObjectMeta>, Vec<u8>),
    /// The beginning of a large one, or all of it.
    Head(Large, Run),
    /// Nothing but what a large one is: its lane was not made for bulk.
    Told(Box<ObjectMeta>),
}

impl Opening {
    /// An opening stream that collects at most `collect_max` bytes in memory. The receiver hears of an object that
    /// is larger.
    pub(crate) fn new(
        place: Place,
        collect_max: u64,
        in_flight: usize,
        is_size_known: bool,
        progress: Arc<Progress>,
    ) -> (Arc<Self>, oneshot::Receiver<Large>) {
        let (large, told) = oneshot::channel();
        let hashing = Hashing::new(Wanted::default());
        let state =
            State { attempt: 0, meta: None, hashing, at: 0, body: Body::Unopened, large: Some(large) };
        let state = Mutex::new(state);
        (Arc::new(Self { state, place, collect_max, in_flight, is_size_known, progress }), told)
    }

    /// The sink of an attempt.
    pub(crate) fn sink(self: &Arc<Self>) -> Sink {
        let mut state = self.lock();
        state.attempt += 1;
        Sink { opening: Arc::clone(self), attempt: state.attempt }
    }

    /// Ends the stream: what it brought, if it brought anything.
    pub(crate) fn end(&self) -> Option<Opened> {
        let mut state = self.lock();
        state.attempt += 1;
        match std::mem::replace(&mut state.body, Body::Unopened) {
            Body::Collected(bytes) => state.meta.take().map(|meta| Opened::Collected(meta, bytes)),
            Body::File(Some(large)) => {
                lock(&large.slices).opener_ended();
                let hashing = std::mem::replace(&mut state.hashing, Hashing::new(Wanted::default()));
                Some(Opened::Head(large, hashing.finish()))
            }
            Body::File(None) => state.meta.take().map(Opened::Told),
            Body::Unopened => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Large {
    /// Prepares the file and the slices of an object.
    pub(crate) fn prepare(
        meta: Box<ObjectMeta>,
        place: &Place,
        in_flight: usize,
        opened: bool,
    ) -> Result<Self, Error> {
        let size = meta.size;
        let told = &meta.checksums;
        let is_md5_only = told.crc32c.is_none() && told.crc64nvme.is_none() && told.md5.is_some();
        let in_order = is_md5_only && size <= MD5_IN_ORDER_MAX;
        // Slices of an object whose state can't be pinned could be of two objects.
        let is_shared = is_sliced(size) && !in_order && meta.version.is_some();
        let slice = slice_len(size, in_flight);
        let slices = if opened { Slices::opened(size, slice) } else { Slices::planned(size, slice) };
        Ok(Self {
            wanted: Wanted::to_compare_with(told, in_order),
            staged: Arc::new(place.stage(size)?),
            meta: Arc::from(meta),
            slices: Arc::new(Mutex::new(slices)),
            is_shared,
        })
    }

    /// The slices, locked.
    pub(crate) fn slices(&self) -> MutexGuard<'_, Slices> {
        lock(&self.slices)
    }
}

/// The sink of an opening stream's attempt.
pub(crate) struct Sink {
    opening: Arc<Opening>,
    attempt: u32,
}

impl GetSink for Sink {
    fn begin(&mut self, meta: &ObjectMeta, _range: Range<u64>) -> Result<Route, SinkError> {
        let mut state = self.opening.lock();
        if state.attempt != self.attempt {
            return Ok(Route::Stop);
        }
        if state.meta.is_none() && !self.opening.is_size_known {
            self.opening.progress.sized(meta.size);
        }
        state.meta = Some(Box::new(meta.clone()));
        state.at = 0;
        if meta.size <= self.opening.collect_max {
            state.body = Body::Collected(Vec::with_capacity(meta.size as usize));
            return Ok(Route::Stay);
        }
        state.body = Body::File(None);
        Ok(Route::Freight)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Route, SinkError> {
        let mut state = self.opening.lock();
        if state.attempt != self.attempt {
            return Ok(Route::Stop);
        }
        let State { meta, hashing, at, body, large, .. } = &mut *state;
        let Some(size) = meta.as_ref().map(|meta| meta.size) else { return Ok(Route::Stop) };
        let large = match body {
            Body::Unopened => return Ok(Route::Stop),
            Body::Collected(collected) => {
                let room = (size as usize).saturating_sub(collected.len());
                collected.extend_from_slice(&bytes[..bytes.len().min(room)]);
                self.opening.progress.moved(bytes.len().min(room) as u64);
                return Ok(if bytes.len() > room { Route::Stop } else { Route::Stay });
            }
            Body::File(Some(large)) => large,
            // Made here and not at `begin`, because only from here on this may block.
            Body::File(unmade) => {
                let Some(meta) = meta.clone() else { return Ok(Route::Stop) };
                let made = Large::prepare(meta, &self.opening.place, self.opening.in_flight, true)?;
                *hashing = Hashing::new(made.wanted);
                if let Some(large) = large.take() {
                    // Nobody waits where the job was cancelled.
                    let _ = large.send(made.clone());
                }
                unmade.insert(made)
            }
        };
        let own = large.slices().opener_takes(bytes.len() as u64);
        let taken = &bytes[..own as usize];
        large.staged.write_at(taken, *at)?;
        hashing.update(taken);
        *at += own;
        self.opening.progress.moved(own);
        let is_cut = taken.len() < bytes.len() || (*at < size && !large.slices().opener_is_needed());
        Ok(if is_cut { Route::Stop } else { Route::Stay })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
