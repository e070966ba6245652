//! Downloads to destinations that take bytes only in order: pipes, terminals, devices. Laneway fetches slices
//! in advance, into memory that it reserves from the memory budget. The slices reserve memory in order, so
//! the slice that is written next always has memory.

use std::collections::VecDeque;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use laneway_lanes::attempts::note_another;
use laneway_lanes::{MemoryBudget, Reservation};
use laneway_store::{
    Composite, Get, GetRange, ObjectId, ObjectMeta, PartsAlgorithm, Route, Store, Unless, Version,
};
use tokio::sync::{mpsc, oneshot, watch};

use super::buffered::{BufferStreams, Buffered, BufferedRange};
use super::{DownloadOutcome, remove_moved};
use crate::content::checksum::{ChecksumSet, RangeChecksums};
use crate::content::range_writer::{ObjectPin, Output, RangeWriter};
use crate::content::read::read_range;
use crate::event::Verified;
use crate::job::pump::ready;
use crate::job::running::{JobState, ResultObject, TransferOutcome};
use crate::location::url;
use crate::plan::slices::SLICE_MIN;
use crate::plan::{SMALL_DOWNLOAD_MAX, requests_at_once};
use crate::transfer::composite::in_memory;
use crate::transfer::log_second_try;
use crate::{ByteRange, CopyRequest, Error, Op, Progress};

/// The size, in bytes, of the slices that Laneway fetches in advance. The first request also brings at most
/// this many bytes.
const SLICE: u64 = SLICE_MIN;

/// The number of bytes reserved for a first request if the size of its answer is unknown. A thousand such
/// requests fit into the budget of 64 MiB. If each reserved a whole slice, only eight small objects could be
/// read at a time.
const OPENING: u64 = 64 << 10;

/// The next bytes, with their reservation in the memory budget.
#[derive(Debug)]
pub(crate) struct ReservedChunk {
    pub(crate) bytes: Bytes,
    _held: BudgetShare,
}

impl ReservedChunk {
    /// Returns a chunk without a reservation, for bytes in memory that the reader owns.
    pub(crate) fn of(bytes: Bytes) -> Self {
        Self { bytes, _held: Vec::new() }
    }
}

/// The channel for chunks. The fetch ends once the receiver is dropped.
pub(crate) type Chunks = mpsc::Sender<ReservedChunk>;

/// Returns a channel in which one chunk waits while the previous one is written.
pub(crate) fn chunks() -> (Chunks, mpsc::Receiver<ReservedChunk>) {
    mpsc::channel(1)
}

/// A caller's request for an object's bytes in order.
#[derive(Debug, Default)]
pub(crate) struct FetchRequest {
    /// The range of bytes, or `None` for the whole object.
    pub(crate) range: Option<ByteRange>,
    pub(crate) version: Option<Version>,
    /// The version that the reader already has, or a time. If the object hasn't changed since, Laneway
    /// fetches nothing.
    pub(crate) unless: Option<Unless>,
    pub(crate) program: Option<ProgramReader>,
}

/// A program that reads the bytes at its own speed.
#[derive(Debug)]
pub(crate) struct ProgramReader {
    /// Receives the object's description before the first byte.
    pub(crate) described: oneshot::Sender<FetchDescription>,
    pub(crate) mode: watch::Receiver<ReadMode>,
}

/// The way in which a program reads the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReadMode {
    /// The program hasn't begun to read.
    Unknown,
    /// One chunk after the other, at the program's own speed.
    Chunks,
    /// All bytes at once, in one block of memory that belongs to the program.
    All,
}

/// Describes the bytes that the fetch will bring.
#[derive(Debug)]
pub(crate) struct FetchDescription {
    pub(crate) meta: ObjectMeta,
    pub(crate) range: Range<u64>,
}

/// Downloads one object to a destination that takes bytes only in order.
pub(super) async fn fetch_one(
    job: Arc<JobState>,
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
            .unless_cancelled(fetch(&job, &store, &id, FetchRequest::default(), chunks))
            .await
            .and_then(|fetched| fetched),
        Err(e) => Err(Error::local("the writing thread", "can't be started", e)),
    };
    // If the writer failed, the fetch ended as cancelled, so report the writer's error instead. If the job
    // was cancelled, don't wait for the writer, because the reader of the pipe may never read.
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

/// Writes chunks until there are no more. Blocks the thread.
pub(crate) fn write_all(
    mut chunks: mpsc::Receiver<ReservedChunk>,
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
/// The store's error; `ErrorKind::Cancelled` when the receiver is gone.
pub(crate) async fn fetch(
    job: &JobState,
    store: &Store,
    id: &ObjectId,
    wish: FetchRequest,
    out: Chunks,
) -> Result<DownloadOutcome, Error> {
    let FetchRequest { range, version, unless, program } = wish;
    let is_for_program = program.is_some();
    let (described, mode) = program.map(|reader| (reader.described, reader.mode)).unzip();
    let mut ordered =
        InOrderDownload { job, store, id, version, unless, described, mode, is_for_program, out };
    ordered.open(range.filter(|range| !range.is_whole()), OPENING, true).await
}

/// Returns the range of the requested bytes in an object of this size, or `None` if the object has none of
/// them.
fn wanted(wish: Option<ByteRange>, size: u64) -> Option<Range<u64>> {
    wish.map_or(Some(0..size), |wish| wish.within(size))
}

/// Returns the range of the first request. Also returns the length of the request's answer, if that length is
/// known and at most a slice. If the offset of the first byte is known, the range is at most a slice.
fn first(wish: Option<ByteRange>) -> (Option<GetRange>, Option<u64>) {
    let slice = |start: u64, len| Some(GetRange::from(start..start.saturating_add(len)));
    match wish.map(ByteRange::asked) {
        None => (None, None),
        Some(GetRange::Bounded(range)) => {
            let len = (range.end - range.start).min(SLICE);
            (slice(range.start, len), Some(len))
        }
        // The object may end within the slice. So the length is unknown until the answer reports the object's
        // size.
        Some(GetRange::From(start)) => (slice(start, SLICE), None),
        Some(GetRange::Last(len)) => (Some(GetRange::Last(len)), Some(len).filter(|len| *len <= SLICE)),
    }
}

/// Reservations in the memory budget. Bytes that wait until a program reads them have no reservation.
/// Otherwise, a program that first waits for another call of the same engine could wait for ever: that call
/// could need the reserved memory.
type BudgetShare = Vec<Reservation>;

struct InOrderDownload<'a> {
    job: &'a JobState,
    store: &'a Store,
    id: &'a ObjectId,
    version: Option<Version>,
    unless: Option<Unless>,
    described: Option<oneshot::Sender<FetchDescription>>,
    mode: Option<watch::Receiver<ReadMode>>,
    /// True if the bytes go to a program that uses the library, and that reads them at its own speed.
    is_for_program: bool,
    out: Chunks,
}

type SliceResult = Result<(Bytes, RangeChecksums, BudgetShare), Error>;

impl InOrderDownload<'_> {
    /// Sends the first request. Its answer brings the object's size and version, and at most a slice of its
    /// bytes. Laneway then fetches the other bytes in slices of that version. For a whole object the first
    /// request has no range, so that its answer has the checksum. If this answer brings all bytes, Laneway
    /// compares them with the checksum before it hands them on. If the bytes are wrong, it fetches them once
    /// more. For an answer of unknown length, it reserves `room` bytes of memory.
    async fn open(
        &mut self,
        wish: Option<ByteRange>,
        room: u64,
        may_try_again: bool,
    ) -> Result<DownloadOutcome, Error> {
        let (is_for_program, (asked, most)) = (self.is_for_program, first(wish));
        let room = most.unwrap_or(room);
        let held = vec![self.job.engine.lanes.memory().reserve(room as usize).await];
        let (version, unless) = (self.version.clone(), self.unless.clone());
        let get = Get { version: version.as_ref(), unless: unless.as_ref(), ..Get::new(self.id) };
        let get = Get { range: asked, expected: most, ..get };
        let first = match self.begin(get, wish, (room, held)).await {
            // After a description, the program expects the bytes of that version.
            Err(error)
                if error.is_mismatch() && may_try_again && self.described.is_some() == is_for_program =>
            {
                log_second_try(&error);
                note_another();
                return Box::pin(self.open(wish, room, false)).await;
            }
            first => first?,
        };
        let (meta, bytes, mut held, is_checked) = match first {
            FirstAnswer::Brought(meta, bytes, held, is_checked) => (meta, bytes, held, is_checked),
            FirstAnswer::All(meta, bytes, run) => return self.buffered(&meta, bytes, run).await,
            FirstAnswer::Lacks(room) => {
                return Box::pin(self.open(wish, room, may_try_again)).await;
            }
        };
        let Some(range) = wanted(wish, meta.size) else {
            let wish = wish.map(|wish| wish.to_string()).unwrap_or_default();
            let message = format!("the range {wish} lies outside the object's {} bytes", meta.size);
            return Err(Error::invalid_range(url(self.store.provider(), self.id), message));
        };
        describe(&mut self.described, &meta, range.clone());
        let have = range.start + bytes.len() as u64;
        let (is_whole, is_all) = (range == (0..meta.size), have == range.end);
        let wanted = match is_whole {
            true => ChecksumSet::to_compare_with(&meta.checksums, is_all),
            false => ChecksumSet::default(),
        };
        let begun = RangeChecksums::of(&bytes, wanted).checked(is_checked);
        if is_all
            && may_try_again
            && let Err(error) = self.verified(&meta, begun)
        {
            log_second_try(&error);
            self.job.progress.begun_again(bytes.len() as u64);
            drop((bytes, held));
            note_another();
            return Box::pin(self.open(wish, room, false)).await;
        }
        // The store has a digest of this object's parts. If the store has no checksum of the whole object,
        // compare with this digest.
        if is_all && is_whole && meta.checksums.parts.is_some() {
            let fetched = self.verified(&meta, begun)?;
            return self.compared_by_parts(fetched, &meta, bytes, held).await;
        }
        if is_all {
            self.send(bytes, held).await?;
            return self.verified(&meta, begun);
        }
        if meta.version.is_none() {
            let message =
                "the store reports no version of the object, so the rest could be bytes of another version";
            return Err(Error::integrity(url(self.store.provider(), self.id), message));
        }
        let pinned = ObjectPin::of(&meta);
        if self.is_for_program {
            // The program may first wait for another call, which could need this memory.
            held.clear();
        }
        if self.chosen_mode().await? == ReadMode::All
            && let Some(mut buffer) = BufferedRange::new(range.clone(), wanted)
        {
            let progress = Arc::clone(&self.job.progress);
            let mut streams = BufferStreams::new(self.store, self.id, range, pinned, progress).await;
            buffer.add_first(&bytes, is_checked);
            streams.begin(buffer, None);
            let (bytes, run) = streams.finish().await?;
            return self.buffered(&meta, bytes, run).await;
        }
        self.send(bytes, held).await?;
        let rest = self.slices(have..range.end, &pinned, wanted).await?;
        self.verified(&meta, begun.then(rest))
    }

    /// Waits until a program has begun to read, and returns how it reads.
    async fn chosen_mode(&self) -> Result<ReadMode, Error> {
        let Some(mut mode) = self.mode.clone() else { return Ok(ReadMode::Chunks) };
        let known = mode.wait_for(|mode| *mode != ReadMode::Unknown).await;
        known.map(|mode| *mode).map_err(|_| self.gone())
    }

    /// Compares an object that one request has brought with the store's digest of its parts. Hands on the
    /// bytes afterwards.
    async fn compared_by_parts(
        &self,
        mut fetched: DownloadOutcome,
        meta: &ObjectMeta,
        bytes: Bytes,
        held: BudgetShare,
    ) -> Result<DownloadOutcome, Error> {
        if fetched.moved.verified == Verified::Unverified {
            fetched.moved.verified = in_memory(self.job, self.store, meta, &bytes).await?;
        }
        self.send(bytes, held).await?;
        Ok(fetched)
    }

    /// Compares the bytes of an object, which are all in memory, with the store's checksum, and hands them on.
    async fn buffered(
        &self,
        meta: &ObjectMeta,
        bytes: Bytes,
        run: RangeChecksums,
    ) -> Result<DownloadOutcome, Error> {
        let fetched = self.verified(meta, run)?;
        // The MD5s of an object's parts take longer than the download over a fast network, and the caller waits.
        let is_quick = |stored: Composite| stored.digest.algorithm() != PartsAlgorithm::Md5;
        if run.len == meta.size && meta.checksums.parts.is_some_and(is_quick) {
            return self.compared_by_parts(fetched, meta, bytes, Vec::new()).await;
        }
        self.send(bytes, Vec::new()).await?;
        Ok(fetched)
    }

    /// Fetches the first bytes into memory: at most a slice, or all if the program wants all bytes at once.
    async fn begin(
        &mut self,
        get: Get<'_>,
        wish: Option<ByteRange>,
        (room, held): (u64, BudgetShare),
    ) -> Result<FirstAnswer, Error> {
        let progress = &self.job.progress;
        let head = ObjectBeginning {
            wish,
            room: FirstReservation { reserved: room, held, memory: self.job.engine.lanes.memory().clone() },
            meta: None,
            lacks: None,
            described: self.described.take(),
            is_announced: false,
            is_replaced: false,
            all: None,
            end: 0,
            bytes: Vec::new(),
            progress: Arc::clone(progress),
        };
        let head = RangeWriter::of_any(head, Arc::clone(progress));
        let is_limited = matches!(get.range, Some(GetRange::Bounded(_)));
        let (store, id) = (self.store, self.id);
        let mut fetching = std::pin::pin!(head.fetch(store, get));
        let mut streams: Option<BufferStreams<'_>> = None;
        let mut mode = self.mode.clone().filter(|_| !is_limited);
        let got = loop {
            tokio::select! {
                biased;
                got = &mut fetching => match got {
                    Err(error) if error.is_mismatch() => {
                        let (described, bytes) =
                            head.cut(|_, head| (head.described.take(), head.bytes.len()));
                        self.described = described;
                        progress.begun_again(bytes as u64);
                        return Err(error);
                    }
                    got => break got?,
                },
                () = is_all(&mut mode) => {
                    mode = None;
                    if let Some((range, pinned)) = head.cut(|at, head| head.take_all(at)) {
                        let mut others = BufferStreams::new(store, id, range, pinned, Arc::clone(progress)).await;
                        others.share(&head);
                        streams = Some(others);
                    }
                }
                running = next(&mut streams) => running?,
            }
        };
        let (described, is_replaced) = head.cut(|_, head| (head.described.take(), head.is_replaced));
        self.described = described;
        if is_replaced {
            let message = "the object changed while it was read";
            return Err(Error::integrity(url(store.provider(), id), message));
        }
        if let Some(mut streams) = streams {
            streams.take_ended(&head);
            let (bytes, run) = streams.finish().await?;
            let meta = head.end(|head| head.meta.take());
            let meta = meta.or_else(|| got.map(|got| Box::new(got.meta)));
            return meta.map(|meta| FirstAnswer::All(meta, bytes, run)).ok_or_else(|| self.undescribed());
        }
        let (meta, bytes, held, lacks, is_checked) = head.end_checked(|head, is_checked| {
            let held = std::mem::take(&mut head.room.held);
            (head.meta.take(), std::mem::take(&mut head.bytes), held, head.lacks, is_checked)
        });
        if let Some(room) = lacks {
            return Ok(FirstAnswer::Lacks(room));
        }
        // The answer for an empty object can have no body, so that nothing reached the sink.
        match meta.or_else(|| got.map(|got| Box::new(got.meta))) {
            Some(meta) => Ok(FirstAnswer::Brought(meta, bytes.into(), held, is_checked)),
            None => Err(self.undescribed()),
        }
    }

    fn undescribed(&self) -> Error {
        Error::integrity(url(self.store.provider(), self.id), "the answer describes no object")
    }

    fn gone(&self) -> Error {
        Error::cancelled(url(self.store.provider(), self.id))
    }

    /// Fetches slices in advance, and sends their bytes to the receiver in order.
    async fn slices(
        &mut self,
        range: Range<u64>,
        pinned: &ObjectPin,
        wanted: ChecksumSet,
    ) -> Result<RangeChecksums, Error> {
        let memory = self.job.engine.lanes.memory();
        let (store, id, progress) = (self.store, self.id, Arc::clone(&self.job.progress));
        let ahead_max = requests_at_once(self.job.engine.cores);
        let mut ahead = FuturesOrdered::<BoxFuture<'_, SliceResult>>::new();
        let mut reserving: Option<BoxFuture<'_, Reservation>> = None;
        let is_for_program = self.is_for_program;
        let mut waiting = VecDeque::<(Bytes, BudgetShare)>::new();
        let mut next = range.start;
        let mut run = RangeChecksums::of(b"", wanted);
        // Count the chunks that the reader has taken. If the reader is a program, each chunk that it takes
        // lets Laneway fetch one more slice ahead. So before the program's first read, Laneway fetches only
        // one slice.
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
                    let (slice, progress) = ((next..end, pinned.clone()), Arc::clone(&progress));
                    ahead.push_back(Box::pin(async move {
                        let (run, bytes) = read_range(store, id, slice, wanted, progress).await?;
                        let held = if is_for_program { Vec::new() } else { vec![held] };
                        Ok((bytes.into(), run, held))
                    }));
                    next = end;
                }
                Some(slice) = ahead.next(), if !ahead.is_empty() => {
                    let (bytes, next_run, held) = slice?;
                    run = run.then(next_run);
                    waiting.push_back((bytes, held));
                }
                // Continue to fetch the other slices while waiting for the reader. Stalled slices would keep
                // memory that other calls need.
                room = self.out.reserve(), if !waiting.is_empty() => match (room, waiting.pop_front()) {
                    (Ok(room), Some((bytes, held))) => {
                        room.send(ReservedChunk { bytes, _held: held });
                        taken += 1;
                    }
                    _ => return Err(self.gone()),
                },
            }
        }
    }

    async fn send(&self, bytes: Bytes, held: BudgetShare) -> Result<(), Error> {
        let held = if self.is_for_program { Vec::new() } else { held };
        self.out.send(ReservedChunk { bytes, _held: held }).await.map_err(|_| self.gone())
    }

    fn verified(&self, meta: &ObjectMeta, run: RangeChecksums) -> Result<DownloadOutcome, Error> {
        let source = || url(self.store.provider(), self.id);
        let is_whole = run.len == meta.size;
        let verified = match is_whole {
            true => run.verify(&meta.checksums).map_err(|e| Error::mismatch(source(), e))?,
            false if run.is_checked => Verified::InTransit,
            false => Verified::Unverified,
        };
        let moved = TransferOutcome { bytes: run.len, verified, atomic: true, made: ResultObject::of(meta) };
        Ok(DownloadOutcome { moved, version: meta.version.clone() })
    }
}

/// Describes the object to a program that waits for it.
fn describe(described: &mut Option<oneshot::Sender<FetchDescription>>, meta: &ObjectMeta, range: Range<u64>) {
    if let Some(described) = described.take() {
        // The receiver may be gone, so ignore the error.
        drop(described.send(FetchDescription { meta: meta.clone(), range }));
    }
}

/// Resolves when the program wants all bytes at once.
async fn is_all(mode: &mut Option<watch::Receiver<ReadMode>>) {
    let Some(mode) = mode else { return std::future::pending().await };
    if mode.wait_for(|mode| *mode == ReadMode::All).await.is_err() {
        std::future::pending().await
    }
}

async fn next(streams: &mut Option<BufferStreams<'_>>) -> Result<(), Error> {
    match streams {
        Some(streams) => streams.next().await,
        None => std::future::pending().await,
    }
}

/// The result of a first request.
enum FirstAnswer {
    /// The answer brought at most a slice. True if the store's checksums have confirmed these bytes.
    Brought(Box<ObjectMeta>, Bytes, BudgetShare, bool),
    /// The program wanted all bytes at once, and here they are.
    All(Box<ObjectMeta>, Bytes, RangeChecksums),
    /// The answer was dropped before its first byte, because it needs this many bytes of memory, which
    /// weren't free.
    Lacks(u64),
}

/// The beginning of an object, or of the requested range, in memory.
#[derive(Debug)]
struct ObjectBeginning {
    wish: Option<ByteRange>,
    room: FirstReservation,
    /// If the answer needs more memory than was free, the number of bytes that it needs.
    lacks: Option<u64>,
    meta: Option<Box<ObjectMeta>>,
    /// Receives the description of an object that has more bytes than a slice, as soon as an answer begins.
    described: Option<oneshot::Sender<FetchDescription>>,
    /// True once the description was sent.
    is_announced: bool,
    /// True if the object was replaced after the program got its description.
    is_replaced: bool,
    /// The memory for all bytes, if the program wants them at once.
    all: Option<BufferedRange>,
    /// The offset after the last byte to collect. It lies at most a slice after the first collected byte.
    end: u64,
    bytes: Vec<u8>,
    progress: Arc<Progress>,
}

/// The memory reserved for a first request.
#[derive(Debug)]
struct FirstReservation {
    reserved: u64,
    /// The reservation, and another one if the answer needs more.
    held: BudgetShare,
    memory: MemoryBudget,
}

impl FirstReservation {
    /// Returns whether the answer may bring this many bytes. If too little memory is reserved, tries to
    /// reserve more. A small answer may continue even if no memory is free, because a second request for it
    /// would cost more. The dispatcher limits how many small requests are under way.
    fn has(&mut self, bytes: u64) -> bool {
        let missing = bytes.saturating_sub(self.reserved);
        if missing > 0
            && let Some(more) = self.memory.try_reserve(missing as usize)
        {
            self.held.push(more);
            self.reserved = bytes;
        }
        bytes <= self.reserved.max(SMALL_DOWNLOAD_MAX)
    }
}

impl ObjectBeginning {
    /// Lets the answer bring all bytes of an object that is larger than a slice. Returns their range and the
    /// object's version. Returns `None` if the slice is complete, or if there is too little memory.
    fn take_all(&mut self, at: u64) -> Option<(Range<u64>, ObjectPin)> {
        let meta = self.meta.as_ref().filter(|meta| meta.version.is_some())?;
        let range = wanted(self.wish, meta.size).filter(|range| range.end - range.start > SLICE)?;
        if at >= self.end || self.lacks.is_some() || self.is_replaced {
            return None;
        }
        let wanted = match range == (0..meta.size) {
            true => ChecksumSet::to_compare_with(&meta.checksums, false),
            false => ChecksumSet::default(),
        };
        let mut all = BufferedRange::new(range.clone(), wanted)?;
        all.add(&std::mem::take(&mut self.bytes));
        self.all = Some(all);
        // The memory is the program's own.
        self.room.held.clear();
        Some((range, ObjectPin::of(meta)))
    }
}

impl Buffered for ObjectBeginning {
    fn buffer(&mut self) -> Option<&mut BufferedRange> {
        self.all.as_mut()
    }
}

impl Output for ObjectBeginning {
    fn begin(&mut self, meta: &ObjectMeta) {
        let is_other = |known: &ObjectMeta| ObjectPin::of(known) != ObjectPin::of(meta);
        if self.is_announced && self.meta.as_deref().is_some_and(is_other) {
            self.is_replaced = true;
            return;
        }
        if let Some(all) = &mut self.all {
            all.clear();
            return;
        }
        let range = wanted(self.wish, meta.size).unwrap_or_default();
        let len = range.end - range.start;
        let first = len.min(SLICE);
        if !self.room.has(first) {
            self.lacks = Some(first);
            self.end = range.start;
            return;
        }
        if self.meta.is_none() {
            self.progress.sized(len);
        }
        (self.lacks, self.end) = (None, range.start + first);
        self.bytes = Vec::with_capacity(first as usize);
        self.meta = Some(Box::new(meta.clone()));
        // The rest of a larger object is of this version, or the read fails.
        if len > SLICE && meta.version.is_some() && self.described.is_some() {
            self.is_announced = true;
            describe(&mut self.described, meta, range);
        }
    }

    fn route(&self, at: u64) -> Route {
        match self.end().saturating_sub(at) {
            _ if self.lacks.is_some() || self.is_replaced => Route::Stop,
            0..=SMALL_DOWNLOAD_MAX => Route::Stay,
            _ => Route::Freight,
        }
    }

    fn end(&self) -> u64 {
        match &self.all {
            _ if self.is_replaced => 0,
            Some(all) => all.end(),
            None => self.end,
        }
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<u64, Error> {
        if let Some(all) = &mut self.all {
            return Ok(all.add(bytes));
        }
        let own = bytes.len().min((self.end - at) as usize);
        self.bytes.extend_from_slice(&bytes[..own]);
        Ok(own as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_request_is_at_most_a_slice_if_its_start_is_known() {
        let range = |text: &str| Some(text.parse::<ByteRange>().unwrap());
        let bounded = |range: Range<u64>| Some(GetRange::Bounded(range));
        assert_eq!(first(None), (None, None));
        assert_eq!(first(range("5-9")), (bounded(5..10), Some(5)));
        assert_eq!(first(range("5-99999999")), (bounded(5..5 + SLICE), Some(SLICE)));
        assert_eq!(first(range("5-")), (bounded(5..5 + SLICE), None));
        assert_eq!(first(range(&format!("{}-", u64::MAX - 9))), (bounded(u64::MAX - 9..u64::MAX), None));
        assert_eq!(first(range("-5")), (Some(GetRange::Last(5)), Some(5)));
        assert_eq!(first(range("-99999999")), (Some(GetRange::Last(99_999_999)), None));
    }

    #[test]
    fn a_large_beginning_waits_for_memory_and_a_small_one_does_not() {
        let memory = MemoryBudget::new(8 << 20);
        let room = || FirstReservation { reserved: OPENING, held: Vec::new(), memory: memory.clone() };
        let mut one = room();
        assert!(one.has(OPENING) && one.held.is_empty());
        assert!(one.has(6 << 20) && one.has(6 << 20), "it is reserved once");
        assert!(!room().has(6 << 20));
        let mut small = room();
        assert!(small.has(SMALL_DOWNLOAD_MAX) && small.held.len() == 1);
        let none_left = memory.try_reserve(memory.available()).unwrap();
        assert!(room().has(SMALL_DOWNLOAD_MAX));
        drop((none_left, one));
        assert!(room().has(6 << 20));
    }
}
