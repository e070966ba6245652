//! An object to a place that takes bytes only in order: a pipe, a terminal, a device. Slices are fetched ahead into
//! memory from the budget; they reserve in order, so that the one whose turn it is always has its share.

use std::collections::VecDeque;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use laneway_lanes::Reservation;
use laneway_store::{Get, GetSink, ObjectId, ObjectMeta, Route, Store, Version};
use tokio::sync::{mpsc, oneshot};

use super::range_writer::{Output, Pinned, RangeWriter};
use super::slice::Into;
use super::{Fetched, remove_moved};
use crate::checksum::{Run, Wanted};
use crate::event::Verified;
use crate::location::url;
use crate::plan::slices::SLICE_MIN;
use crate::plan::{SMALL_DOWNLOAD_MAX, requests_at_once};
use crate::pump::ready;
use crate::running::{Moved, Running};
use crate::second_try::log_second_try;
use crate::{ByteRange, CopyRequest, Error, Op, Progress};

/// What is fetched ahead at a time, and the most that the first request brings.
const SLICE: u64 = SLICE_MIN;

/// The next bytes, and the part of the memory budget that they stand on.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) bytes: Bytes,
    _held: Held,
}

/// Where chunks go. Its receiver gone, nobody reads any more.
pub(crate) type Chunks = mpsc::Sender<Chunk>;

/// A channel on which a chunk waits while the one before is written.
pub(crate) fn chunks() -> (Chunks, mpsc::Receiver<Chunk>) {
    mpsc::channel(1)
}

/// What is asked for.
#[derive(Debug, Default)]
pub(crate) struct Wish {
    /// Which bytes; `None` for all.
    pub(crate) range: Option<ByteRange>,
    /// The state that the object must be in.
    pub(crate) version: Option<Version>,
    /// Who is to hear what comes, before the first byte does.
    pub(crate) described: Option<oneshot::Sender<Described>>,
}

/// What comes.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) meta: ObjectMeta,
    pub(crate) range: Range<u64>,
}

/// Fetches one object to what takes bytes only in order.
pub(super) async fn fetch_one(
    job: Arc<Running>,
    request: Arc<CopyRequest>,
    store: Store,
    id: ObjectId,
    (name, output): (String, Box<dyn Write + Send>),
) {
    let begun = job.begin(Op::Download, url(store.provider(), &id), Some(name.clone()));
    let (chunks, taken) = chunks();
    let written = tokio::sync::oneshot::channel();
    let writer = std::thread::Builder::new().name("laneway-write".into()).spawn(move || {
        let _ = written.0.send(write_all(taken, output, &name));
    });
    let fetched = match writer {
        Ok(_) => job
            .unless_cancelled(fetch(&job, &store, &id, Wish::default(), chunks))
            .await
            .and_then(|fetched| fetched),
        Err(e) => Err(Error::local("the writing thread", "can't be started", e)),
    };
    // The writer's error is the cause where there is one: it makes the fetch end as cancelled. A job that was
    // cancelled does not wait for whoever reads the pipe.
    let result = match job.cancel.is_set() {
        true => fetched,
        false => match written.1.await {
            Ok(Err(error)) => Err(error),
            _ => fetched,
        },
    };
    let result = match result {
        Ok(fetched) => remove_moved(&request, &store, &id, fetched).await,
        Err(error) => Err(error),
    };
    job.end(begun, 0, result).await;
}

/// Writes chunks until there are no more. Blocks.
pub(crate) fn write_all(
    mut chunks: mpsc::Receiver<Chunk>,
    mut output: impl Write,
    name: &str,
) -> Result<(), Error> {
    let failed = |e| Error::local(name, "can't be written", e);
    while let Some(chunk) = chunks.blocking_recv() {
        output.write_all(&chunk.bytes).map_err(failed)?;
    }
    output.flush().map_err(failed)
}

/// Fetches an object, or a range of it, in order.
///
/// # Errors
/// What the store says; `ErrorKind::Cancelled` when the receiver is gone.
pub(crate) async fn fetch(
    job: &Running,
    store: &Store,
    id: &ObjectId,
    wish: Wish,
    out: Chunks,
) -> Result<Fetched, Error> {
    let Wish { range, version, described } = wish;
    let is_for_program = described.is_some();
    let mut ordered = InOrder { job, store, id, version, described, is_for_program, out, attempts: 1 };
    match range {
        None => ordered.whole(true).await,
        Some(range) => ordered.range(range).await,
    }
}

/// A part of the memory budget; `None` of what waits for a program, which may wait for something else of the same engine meanwhile.
type Held = Option<Arc<Reservation>>;

struct InOrder<'a> {
    job: &'a Running,
    store: &'a Store,
    id: &'a ObjectId,
    version: Option<Version>,
    described: Option<oneshot::Sender<Described>>,
    /// Whether a program reads, at its leisure.
    is_for_program: bool,
    out: Chunks,
    attempts: u32,
}

type Slice = Result<(Bytes, Run, Held, u32), Error>;

impl InOrder<'_> {
    async fn range(&mut self, range: ByteRange) -> Result<Fetched, Error> {
        if let Some(offsets) = range.offsets().filter(|offsets| offsets.end - offsets.start <= SLICE) {
            let len = offsets.end - offsets.start;
            let held = Arc::new(self.job.engine.lanes.memory().reserve(len as usize).await);
            let mut get = Get::new(self.id);
            (get.range, get.expected) = (Some(offsets.into()), Some(len));
            get.version = self.version.as_ref();
            let got = self.store.get(get).await?;
            self.describe(&got.meta, got.range.clone());
            let moved = Moved {
                bytes: got.body.len() as u64,
                attempts: got.attempts,
                verified: Verified::Unverified,
                atomic: true,
            };
            self.job.progress.sized(moved.bytes);
            self.send(got.body, held).await?;
            return Ok(Fetched { moved, version: got.meta.version });
        }
        let meta = self.store.head(self.id, self.version.as_ref()).await?;
        let Some(range) = range.within(meta.size) else {
            let message = format!("the range {range} lies outside the object's {} bytes", meta.size);
            return Err(Error::invalid_range(url(self.store.provider(), self.id), message));
        };
        self.job.progress.sized(range.end - range.start);
        self.describe(&meta, range.clone());
        let wanted = if range == (0..meta.size) {
            Wanted::to_compare_with(&meta.checksums, false)
        } else {
            Wanted::default()
        };
        let pinned = Pinned::of(&meta);
        let run = self.slices(range, &pinned, wanted).await?;
        self.verified(&meta, run)
    }

    /// The first request is unranged, for the checksum of the whole, and is stopped after a slice. What that brings whole is
    /// compared before it is handed on, and fetched once more where it is wrong.
    async fn whole(&mut self, may_try_again: bool) -> Result<Fetched, Error> {
        let held = Arc::new(self.job.engine.lanes.memory().reserve(SLICE as usize).await);
        let progress = &self.job.progress;
        let head = Head { meta: None, bytes: Vec::new(), progress: Arc::clone(progress) };
        let head = RangeWriter::of_any(head, Arc::clone(progress));
        let sink = || -> Box<dyn GetSink> { Box::new(head.sink()) };
        let hedge = || head.hedge();
        let get = Get { sink: Some(&sink), hedge: Some(&hedge), ..Get::new(self.id) };
        let ended = self.store.get(Get { version: self.version.as_ref(), ..get }).await;
        let (meta, bytes) = head.end(|head| (head.meta.take(), std::mem::take(&mut head.bytes)));
        let meta = match (ended, meta) {
            (Ok(got), meta) => {
                self.attempts = got.attempts;
                meta.unwrap_or_else(|| Box::new(got.meta))
            }
            (Err(e), Some(meta)) if e.is_interrupted() => meta,
            (Err(e), _) => return Err(e.into()),
        };
        self.describe(&meta, 0..meta.size);
        let have = bytes.len() as u64;
        let is_all = have == meta.size;
        let wanted = Wanted::to_compare_with(&meta.checksums, is_all);
        let first = Run::of(&bytes, wanted);
        if is_all
            && may_try_again
            && let Err(error) = self.verified(&meta, first)
        {
            log_second_try(&error);
            drop((bytes, held));
            self.attempts += 1;
            return Box::pin(self.whole(false)).await;
        }
        self.send(bytes.into(), held).await?;
        let rest = match is_all {
            true => Run::of(b"", wanted),
            false if meta.version.is_none() => {
                let message = "without a version the store can't be asked for the rest of it";
                return Err(Error::integrity(url(self.store.provider(), self.id), message));
            }
            false => self.slices(have..meta.size, &Pinned::of(&meta), wanted).await?,
        };
        self.verified(&meta, first.then(rest))
    }

    /// Fetches slices ahead and sends them on in order.
    async fn slices(&mut self, range: Range<u64>, pinned: &Pinned, wanted: Wanted) -> Result<Run, Error> {
        let memory = self.job.engine.lanes.memory();
        let (store, id, progress) = (self.store, self.id, Arc::clone(&self.job.progress));
        let ahead_max = requests_at_once(self.job.engine.cores);
        let mut ahead = FuturesOrdered::<BoxFuture<'_, Slice>>::new();
        let mut reserving: Option<BoxFuture<'_, Reservation>> = None;
        let is_for_program = self.is_for_program;
        let mut waiting = VecDeque::<(Bytes, Held)>::new();
        let mut next = range.start;
        let mut run = Run::of(b"", wanted);
        // What nobody has begun to read is fetched a slice ahead only.
        let mut taken = 0;
        loop {
            let end = range.end.min(next + SLICE);
            let ahead_max = if is_for_program { ahead_max.min(1 + taken) } else { ahead_max };
            if next < range.end && ahead.len() + waiting.len() < ahead_max && reserving.is_none() {
                reserving = Some(Box::pin(memory.reserve((end - next) as usize)));
            }
            if reserving.is_none() && ahead.is_empty() && waiting.is_empty() {
                return Ok(run);
            }
            tokio::select! {
                biased;
                held = ready(&mut reserving), if reserving.is_some() => {
                    reserving = None;
                    let into = Into::Memory(Vec::with_capacity((end - next) as usize));
                    let writer = RangeWriter::new(next..end, pinned.clone(), wanted, into, Arc::clone(&progress));
                    ahead.push_back(Box::pin(async move {
                        let attempts = writer.bring(store, id).await?;
                        let (run, bytes) = writer.finish();
                        Ok((bytes.into(), run, (!is_for_program).then(|| Arc::new(held)), attempts))
                    }));
                    next = end;
                }
                Some(slice) = ahead.next(), if !ahead.is_empty() => {
                    let (bytes, next_run, held, attempts) = slice?;
                    self.attempts = self.attempts.max(attempts);
                    run = run.then(next_run);
                    waiting.push_back((bytes, held));
                }
                // The others go on meanwhile: they hold memory that others need.
                room = self.out.reserve(), if !waiting.is_empty() => match (room, waiting.pop_front()) {
                    (Ok(room), Some((bytes, held))) => {
                        room.send(Chunk { bytes, _held: held });
                        taken += 1;
                    }
                    _ => return Err(Error::cancelled(url(self.store.provider(), self.id))),
                },
            }
        }
    }

    fn describe(&mut self, meta: &ObjectMeta, range: Range<u64>) {
        if let Some(described) = self.described.take() {
            // Nobody waits for it any more.
            drop(described.send(Described { meta: meta.clone(), range }));
        }
    }

    async fn send(&self, bytes: Bytes, held: Arc<Reservation>) -> Result<(), Error> {
        let held = (!self.is_for_program).then_some(held);
        let gone = |_| Error::cancelled(url(self.store.provider(), self.id));
        self.out.send(Chunk { bytes, _held: held }).await.map_err(gone)
    }

    fn verified(&self, meta: &ObjectMeta, run: Run) -> Result<Fetched, Error> {
        let source = || url(self.store.provider(), self.id);
        let is_whole = run.len == meta.size;
        let verified = match is_whole {
            true => run.verify(&meta.checksums).map_err(|e| Error::mismatch(source(), e))?,
            false => Verified::Unverified,
        };
        let moved = Moved { bytes: run.len, attempts: self.attempts, verified, atomic: true };
        Ok(Fetched { moved, version: meta.version.clone() })
    }
}

/// The beginning of an object, in memory.
#[derive(Debug)]
struct Head {
    meta: Option<Box<ObjectMeta>>,
    bytes: Vec<u8>,
    progress: Arc<Progress>,
}

impl Output for Head {
    fn begin(&mut self, meta: &ObjectMeta) {
        if self.meta.is_none() {
            self.progress.sized(meta.size);
        }
        self.bytes = Vec::with_capacity(meta.size.min(SLICE) as usize);
        self.meta = Some(Box::new(meta.clone()));
    }

    fn route(&self, _at: u64) -> Route {
        let is_small = self.meta.as_ref().is_some_and(|meta| meta.size <= SMALL_DOWNLOAD_MAX);
        if is_small { Route::Stay } else { Route::Freight }
    }

    fn end(&self) -> u64 {
        self.meta.as_ref().map_or(0, |meta| meta.size).min(SLICE)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<u64, Error> {
        let own = bytes.len().min((Output::end(self) - at) as usize);
        self.bytes.extend_from_slice(&bytes[..own]);
        Ok(own as u64)
    }
}
