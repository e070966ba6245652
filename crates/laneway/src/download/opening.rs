//! The first request of a download: an unranged GET that brings size, state, checksums and the first bytes in one
//! round trip. A small object is done with it; of a large one it goes on until it meets the slices that others take.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laneway_lanes::{MemoryBudget, Reservation};
use laneway_store::{GetHedge, GetSink, ObjectMeta, Route, SinkError};
use tokio::sync::oneshot;

use super::claims::Claims;
use super::new_bytes::new_bytes;
use crate::boot::boot;
use crate::checksum::{Crc, Run, Wanted};
use crate::folder::{Place, Staged, Subject, TakeUp};
use crate::plan::SMALL_DOWNLOAD_MAX;
use crate::plan::resume::missing;
use crate::plan::slices::{Slices, is_sliced, slice_len};
use crate::{Error, Progress};

/// An object whose checksum is only an MD5 is fetched by one stream up to this size, since MD5s can't be combined.
const MD5_IN_ORDER_MAX: u64 = 64 << 20;

/// An opening stream. It outlives the attempts that begin it.
#[derive(Debug)]
pub(crate) struct Opening {
    state: Mutex<State>,
    destination: Destination,
    collect_max: u64,
    memory: MemoryBudget,
    /// Announces a size only where it wasn't known before.
    is_size_known: bool,
    progress: Arc<Progress>,
}

#[derive(Debug)]
struct State {
    attempt: u32,
    /// The attempt that `meta`, `at` and `body` are of.
    begun: u32,
    meta: Option<Box<ObjectMeta>>,
    claims: Claims,
    at: u64,
    body: Body,
    large: Option<oneshot::Sender<Large>>,
    /// What was reserved in addition, once it was seen that the object is a little larger, and for what size.
    more: Option<(u64, Reservation)>,
}

#[derive(Debug)]
enum Body {
    Unopened,
    Collected(Vec<u8>),
    File(Option<Large>),
}

/// Where a large object goes.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(crate) place: Place,
    /// The URL that the object comes from.
    pub(crate) source: String,
    /// How many slices are under way at once.
    pub(crate) in_flight: usize,
}

/// A large object of which the first bytes have come: what others need to help.
#[derive(Clone, Debug)]
pub(crate) struct Large {
    pub(crate) meta: Arc<ObjectMeta>,
    pub(crate) staged: Arc<Staged>,
    pub(crate) slices: Arc<Mutex<Slices>>,
    /// What an earlier run has brought, by its first byte.
    pub(crate) done: Vec<(u64, Run)>,
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
    Described(Box<ObjectMeta>),
}

impl Opening {
    /// An opening stream that collects at most `collect_max` bytes in memory. The receiver hears of an object that
    /// is larger.
    pub(crate) fn new(
        destination: Destination,
        collect_max: u64,
        memory: MemoryBudget,
        is_size_known: bool,
        progress: Arc<Progress>,
    ) -> (Arc<Self>, oneshot::Receiver<Large>) {
        let (large, announced) = oneshot::channel();
        let claims = Claims::new(0, Wanted::default());
        let state = State {
            attempt: 0,
            begun: 0,
            meta: None,
            claims,
            at: 0,
            body: Body::Unopened,
            large: Some(large),
            more: None,
        };
        let state = Mutex::new(state);
        (Arc::new(Self { state, destination, collect_max, memory, is_size_known, progress }), announced)
    }

    /// The sink of an attempt.
    pub(crate) fn sink(self: &Arc<Self>) -> Sink {
        let mut state = self.lock();
        state.attempt += 1;
        Sink { opening: Arc::clone(self), attempt: state.attempt, at: 0 }
    }

    /// Another sink of the same attempt: for the whole until it is known what that is, else for what is still to come.
    pub(crate) fn hedge(self: &Arc<Self>) -> GetHedge {
        let state = self.lock();
        let sink = |at| Box::new(Sink { opening: Arc::clone(self), attempt: state.attempt, at });
        let Some(meta) = state.meta.as_ref().filter(|_| state.begun == state.attempt) else {
            return GetHedge::Send(None, sink(0));
        };
        let end = match &state.body {
            Body::File(Some(large)) => large.slices().opener_end(),
            _ => Some(meta.size),
        };
        match end {
            Some(end) if meta.version.is_some() && state.at < end => {
                GetHedge::Send(Some(state.at..end), sink(state.at))
            }
            _ => GetHedge::Nothing,
        }
    }

    /// Ends the stream: what it brought, if it brought anything.
    pub(crate) fn end(&self) -> Option<Opened> {
        let mut state = self.lock();
        state.attempt += 1;
        match std::mem::replace(&mut state.body, Body::Unopened) {
            Body::Collected(bytes) => state.meta.take().map(|meta| Opened::Collected(meta, bytes)),
            Body::File(Some(large)) => {
                lock(&large.slices).opener_ended();
                let run = state.claims.finish(Some(&large.staged));
                Some(Opened::Head(large, run))
            }
            Body::File(None) => state.meta.take().map(Opened::Described),
            Body::Unopened => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Large {
    /// Prepares the file and the slices of an object whose first request is an unranged one that has begun to bring it.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) fn opened(meta: Box<ObjectMeta>, destination: &Destination) -> Result<Self, Error> {
        let slices = |_: &[_], size, slice| Slices::opened(size, slice);
        Self::prepare(meta, destination, &|| false, true, slices)
    }

    /// Prepares the file and the slices of an object of which everything is known that has to be. Blocks while a file
    /// from before the machine's last boot is read back, unless `is_cancelled`.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) fn planned(
        meta: Box<ObjectMeta>,
        destination: &Destination,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        Self::prepare(meta, destination, is_cancelled, false, |done: &[(u64, Run)], size, slice| {
            let done = done.iter().map(|(start, run)| *start..*start + run.len);
            Slices::planned(missing(done, size), slice)
        })
    }

    fn prepare(
        meta: Box<ObjectMeta>,
        destination: &Destination,
        is_cancelled: &dyn Fn() -> bool,
        fresh: bool,
        slices: impl FnOnce(&[(u64, Run)], u64, u64) -> Slices,
    ) -> Result<Self, Error> {
        let Destination { place, source, in_flight } = destination;
        let size = meta.size;
        let stored = &meta.checksums;
        let is_md5_only = Crc::given_in(stored).is_none() && stored.md5.is_some();
        let in_order = is_md5_only && size <= MD5_IN_ORDER_MAX;
        let wanted = Wanted::to_compare_with(stored, in_order);
        // Slices of an object whose state can't be pinned could be of two objects.
        let is_shared = is_sliced(size) && !in_order && meta.version.is_some();
        let (staged, done) = match (&meta.version, Crc::of(wanted)) {
            (Some(version), Some(crc)) if is_shared => {
                let subject = Subject { url: source.clone(), version: version.clone(), size, crc };
                place.resume(&TakeUp { subject: &subject, fresh, boot: boot(), is_cancelled })?
            }
            _ => {
                if !fresh {
                    place.forget(source);
                }
                (place.stage(size)?, Vec::new())
            }
        };
        let left = size - done.iter().map(|(_, run)| run.len).sum::<u64>();
        let slice = if in_order { size } else { slice_len(left, *in_flight) };
        Ok(Self {
            wanted,
            staged: Arc::new(staged),
            slices: Arc::new(Mutex::new(slices(&done, size, slice))),
            meta: Arc::from(meta),
            done,
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
    /// The next byte of its answer.
    at: u64,
}

impl GetSink for Sink {
    fn begin(&mut self, meta: &ObjectMeta, _range: Range<u64>) -> Result<Route, SinkError> {
        let mut state = self.opening.lock();
        if state.attempt != self.attempt {
            return Ok(Route::Stop);
        }
        if let Some(known) = state.meta.as_ref().filter(|_| state.begun == self.attempt) {
            // The other of two at once has begun before.
            if known.version.is_none() || known.version != meta.version || known.size != meta.size {
                let message = "the object changed between two requests for it";
                return Err(Error::integrity(meta.id.to_string(), message).into());
            }
            return Ok(if matches!(state.body, Body::Collected(_)) { Route::Stay } else { Route::Freight });
        }
        state.begun = self.attempt;
        if state.meta.is_none() && !self.opening.is_size_known {
            self.opening.progress.sized(meta.size);
        }
        state.meta = Some(Box::new(meta.clone()));
        state.at = 0;
        // One that is a little larger than what was reserved for it still needs no freight lane, where memory is free.
        let max = self.opening.collect_max;
        if max > 0 && max < meta.size && meta.size <= SMALL_DOWNLOAD_MAX && state.more.is_none() {
            let more = self.opening.memory.try_reserve((meta.size - max) as usize);
            state.more = more.map(|held| (meta.size, held));
        }
        if meta.size <= state.more.as_ref().map_or(max, |(room, _)| *room) {
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
        let State { meta, claims, at, body, large, .. } = &mut *state;
        let Some(size) = meta.as_ref().map(|meta| meta.size) else { return Ok(Route::Stop) };
        let new = new_bytes(&mut self.at, *at, bytes);
        let large = match body {
            Body::Unopened => return Ok(Route::Stop),
            Body::Collected(collected) => {
                let room = (size as usize).saturating_sub(collected.len());
                let own = new.len().min(room);
                collected.extend_from_slice(&new[..own]);
                *at += own as u64;
                self.opening.progress.moved(own as u64);
                return Ok(if *at == size && self.at != size { Route::Stop } else { Route::Stay });
            }
            Body::File(Some(large)) => large,
            // Made here and not at `begin`, because only from here on this may block.
            Body::File(unmade) => {
                let Some(meta) = meta.clone() else { return Ok(Route::Stop) };
                let made = Large::opened(meta, &self.opening.destination)?;
                *claims = Claims::new(0, made.wanted);
                if let Some(large) = large.take() {
                    // Nobody waits where the job was cancelled.
                    let _ = large.send(made.clone());
                }
                unmade.insert(made)
            }
        };
        let own = large.slices().opener_takes(new.len() as u64);
        let taken = &new[..own as usize];
        large.staged.write_at(taken, *at)?;
        claims.update(taken, Some(&large.staged));
        *at += own;
        self.opening.progress.moved(own);
        let is_needed = large.slices().opener_is_needed();
        let is_cut = taken.len() < new.len() || (!is_needed && self.at != size);
        Ok(if is_cut { Route::Stop } else { Route::Stay })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
