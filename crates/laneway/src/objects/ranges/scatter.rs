//! Reads ranges into the caller's memory. Laneway writes bytes there directly as they arrive on a connection,
//! and keeps no other copy.
//!
//! The memory of each range has its own lock, which every write holds. To take the memory back, this module
//! holds the lock and removes the memory. After that, nothing writes to the memory, even if its request is
//! still running.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, TryStreamExt as _};
use futures_util::{Stream, StreamExt as _};
use laneway_store::{ObjectId, Route, Store};
use tokio::sync::{Notify, mpsc};

use super::fetch::{Fetch, Limits};
use super::plan::{RequestGroup, within};
use super::{GetRanges, Ranges};
use crate::Error;
use crate::content::range_writer::{ObjectPin, Output, RangeWriter};
use crate::content::read::DamagedReads;
use crate::engine::fork::OfProcess;
use crate::engine::runtime::Task;
use crate::objects::call;
use crate::plan::SMALL_DOWNLOAD_MAX;

/// A range whose bytes have all been written into the caller's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FilledRange<B> {
    /// The range's index in the request.
    pub place: usize,
    /// The number of bytes that were written to the beginning of the memory. The number is smaller than the
    /// requested range if the object ends within the range.
    pub bytes: usize,
    /// The memory. Laneway no longer writes to it.
    pub buffer: B,
}

/// The memory of the ranges that have not yet arrived, made by [`RangesInto::buffers`]. Clones share the
/// memory.
pub struct RangeBuffers<B>(Arc<OfProcess<RangeSlots<B>>>);

struct RangeSlots<B> {
    slots: Vec<RangeSlot<B>>,
    /// Notifies the requests when the caller gives up a range.
    given_up: Notify,
}

/// The memory of one range, or `None` if the range has arrived or was given up.
type RangeSlot<B> = Mutex<Option<UnfilledBuffer<B>>>;

struct UnfilledBuffer<B> {
    buffer: B,
    len: usize,
    missing: usize,
}

impl<B> RangeBuffers<B> {
    fn new(buffers: impl Iterator<Item = (B, usize)>) -> Self {
        let slots =
            buffers.map(|(buffer, len)| Mutex::new(Some(UnfilledBuffer { buffer, len, missing: len })));
        Self(Arc::new(OfProcess::new(RangeSlots { slots: slots.collect(), given_up: Notify::new() })))
    }

    /// Gives up the range with this index in the request, and returns its memory. After this method has
    /// returned, Laneway no longer writes to that memory. The other ranges still arrive. Returns `None` if
    /// the range has already arrived or was given up before.
    pub fn give_up(&self, place: usize) -> Option<B> {
        let RangeSlots { slots, given_up } = self.0.get()?;
        let unfilled = lock(slots.get(place)?).take()?;
        given_up.notify_waiters();
        Some(unfilled.buffer)
    }

    /// Gives up all ranges that have not arrived, and drops their memory.
    fn give_up_all(&self) {
        for place in 0..self.0.get().map_or(0, |shared| shared.slots.len()) {
            drop(self.give_up(place));
        }
    }

    /// Returns whether a range has neither arrived nor been given up.
    fn is_wanted(&self, place: usize) -> bool {
        self.slot(place).is_some_and(|slot| lock(slot).is_some())
    }

    fn slot(&self, place: usize) -> Option<&RangeSlot<B>> {
        self.0.get()?.slots.get(place)
    }

    /// Waits until each of these ranges has arrived or was given up.
    async fn all_given_up(&self, asked: &[(usize, Range<u64>)]) {
        let Some(shared) = self.0.get() else { return };
        loop {
            // Enable the notification before the check. Otherwise this call could miss a range that is given
            // up between the check and `await`.
            let mut given_up = pin!(shared.given_up.notified());
            given_up.as_mut().enable();
            if !asked.iter().any(|(place, _)| self.is_wanted(*place)) {
                return;
            }
            given_up.await;
        }
    }
}

impl<B> Clone for RangeBuffers<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B> fmt::Debug for RangeBuffers<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangeBuffers").finish_non_exhaustive()
    }
}

/// Locks a slot. A writer holds this lock only for a short time, while it copies the bytes of one read from a
/// connection.
fn lock<B>(slot: &RangeSlot<B>) -> MutexGuard<'_, Option<UnfilledBuffer<B>>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A complete range, or the error that ends the stream. `None` follows after the last range.
type Arrival<B> = Option<Result<FilledRange<B>, Error>>;

/// Writes to the memory of ranges, and sends each complete range to the stream.
struct RangeTargets<B> {
    buffers: RangeBuffers<B>,
    out: mpsc::UnboundedSender<Arrival<B>>,
    url: Arc<str>,
}

impl<B> Clone for RangeTargets<B> {
    fn clone(&self) -> Self {
        Self { buffers: self.buffers.clone(), out: self.out.clone(), url: Arc::clone(&self.url) }
    }
}

impl<B: AsMut<[u8]>> RangeTargets<B> {
    /// Writes bytes of the range `place` at the offset `at` in its memory. Each byte must be written only
    /// once, because the missing bytes are counted. Does nothing if the range was given up.
    ///
    /// # Errors
    /// If the memory has become too small since the read began.
    fn write(&self, place: usize, at: usize, bytes: &[u8]) -> Result<(), Error> {
        self.copy(place, at, bytes)?;
        self.count(place, bytes.len());
        Ok(())
    }

    /// Writes bytes without counting them.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    fn copy(&self, place: usize, at: usize, bytes: &[u8]) -> Result<(), Error> {
        let Some(slot) = self.buffers.slot(place) else { return Ok(()) };
        let mut slot = lock(slot);
        let Some(unfilled) = slot.as_mut() else { return Ok(()) };
        let to =
            unfilled.buffer.as_mut().get_mut(at..at + bytes.len()).ok_or_else(|| self.too_small(place))?;
        to.copy_from_slice(bytes);
        Ok(())
    }

    /// Counts bytes that were written to the memory of the range `place`. If none are missing, sends the range to
    /// the stream.
    fn count(&self, place: usize, bytes: usize) {
        let Some(slot) = self.buffers.slot(place) else { return };
        let mut slot = lock(slot);
        let Some(unfilled) = slot.as_mut() else { return };
        unfilled.missing = unfilled.missing.saturating_sub(bytes);
        if unfilled.missing == 0
            && let Some(UnfilledBuffer { buffer, len, .. }) = slot.take()
        {
            drop(slot);
            // Sending fails only if the caller has dropped the stream.
            drop(self.out.send(Some(Ok(FilledRange { place, bytes: len, buffer }))));
        }
    }

    fn too_small(&self, place: usize) -> Error {
        Error::usage(&*self.url, format!("the memory for range {place} is smaller than the range"))
    }
}

/// The output of one request, with the ranges that its bytes belong to.
struct Scatter<B> {
    targets: RangeTargets<B>,
    /// The ranges that still miss bytes of this request, sorted by their beginnings, with their indices in
    /// the caller's request.
    wanted: Vec<(usize, Range<u64>)>,
    /// The first byte that hasn't arrived yet, as an offset in the object.
    at: u64,
    /// The end of the request, or the end of the last range in `wanted` if that is earlier.
    end: u64,
    /// The written bytes that the store's checksums haven't confirmed yet. `None` if the answers have no such
    /// checksums. A range arrives only after its bytes are confirmed.
    unchecked: Option<VecDeque<UncheckedBytes>>,
}

/// Bytes in the memory of a range that aren't counted yet.
struct UncheckedBytes {
    place: usize,
    len: usize,
    /// The offset in the object after the last byte.
    end: u64,
}

impl<B> Scatter<B> {
    /// Returns the output for a request. Returns `None` if none of its bytes belong to a range that is still
    /// wanted.
    fn new(targets: &RangeTargets<B>, request: &Range<u64>, asked: &[(usize, Range<u64>)]) -> Option<Self> {
        let overlaps = |range: &Range<u64>| range.start < request.end && request.start < range.end;
        let wanted: Vec<_> = asked
            .iter()
            .filter(|(place, range)| overlaps(range) && targets.buffers.is_wanted(*place))
            .cloned()
            .collect();
        let at = wanted.first()?.1.start.max(request.start);
        let mut scatter = Self { targets: targets.clone(), wanted, at, end: request.end, unchecked: None };
        scatter.narrow();
        Some(scatter)
    }

    /// Removes the ranges that were given up or whose bytes have arrived. Sets the end to that of the last
    /// remaining range, so that no unneeded bytes are fetched.
    fn narrow(&mut self) {
        let Self { targets, wanted, at, end, .. } = self;
        wanted.retain(|(place, range)| range.end > *at && targets.buffers.is_wanted(*place));
        *end = wanted.iter().map(|(_, range)| range.end).max().unwrap_or(*at).min(*end);
    }
}

impl<B: AsMut<[u8]> + Send + 'static> Output for Scatter<B> {
    fn route(&self, at: u64) -> Route {
        if self.end - at <= SMALL_DOWNLOAD_MAX { Route::Stay } else { Route::Freight }
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<u64, Error> {
        let own = (bytes.len() as u64).min(self.end - at);
        let come = at..at + own;
        for (place, range) in self.wanted.iter().take_while(|(_, range)| range.start < come.end) {
            let part = range.start.max(come.start)..range.end.min(come.end);
            if part.start < part.end {
                let part_bytes = &bytes[(part.start - at) as usize..(part.end - at) as usize];
                self.targets.copy(*place, (part.start - range.start) as usize, part_bytes)?;
                match &mut self.unchecked {
                    Some(unchecked) => unchecked.push_back(UncheckedBytes {
                        place: *place,
                        len: part_bytes.len(),
                        end: part.end,
                    }),
                    None => self.targets.count(*place, part_bytes.len()),
                }
            }
        }
        self.at = come.end;
        self.narrow();
        Ok(own)
    }

    fn expect_checks(&mut self) {
        self.unchecked.get_or_insert_default();
    }

    fn checked(&mut self, to: u64) {
        let Some(unchecked) = &mut self.unchecked else { return };
        while unchecked.front().is_some_and(|bytes| bytes.end <= to)
            && let Some(bytes) = unchecked.pop_front()
        {
            self.targets.count(bytes.place, bytes.len);
        }
    }

    fn give_up_checks(&mut self) {
        self.checked(u64::MAX);
        self.unchecked = None;
    }
}

impl Fetch<'_> {
    /// Fetches the ranges of an object whose version is known. `places` has the index of each range in the
    /// caller's request.
    ///
    /// # Errors
    /// The store's error; an object that was replaced.
    async fn scatter<B>(&self, places: &[usize], targets: &RangeTargets<B>) -> Result<(), Error>
    where
        B: AsMut<[u8]> + Send + 'static,
    {
        let (plan, _) = self.plan().await?;
        for at in &plan.empty {
            targets.write(places[*at], 0, &[])?;
        }
        let of = ObjectPin { size: self.size.unwrap_or_default(), version: self.version.cloned() };
        let asked_of = |group: &RequestGroup| -> Arc<[(usize, Range<u64>)]> {
            group.asked.iter().map(|(at, range)| (places[*at], range.clone())).collect()
        };
        let requests = plan.groups.iter().flat_map(|group| {
            let asked = asked_of(group);
            group.requests.iter().map(move |request| (request, Arc::clone(&asked)))
        });
        let bringing: FuturesUnordered<_> = requests
            .map(async |(request, asked)| {
                // This can't fail, because the semaphore is never closed.
                let _slot = self.limits.requests.acquire().await;
                let (mut request, mut damaged) = (request.clone(), DamagedReads::default());
                loop {
                    let Some(scatter) = Scatter::new(targets, &request, &asked) else { return Ok(()) };
                    let (at, wanted) = (scatter.at, scatter.wanted.clone());
                    let writer = RangeWriter::pinned(at, of.clone(), scatter, Arc::default());
                    let brought = tokio::select! {
                        biased;
                        brought = writer.bring(self.store, self.id) => brought,
                        () = targets.buffers.all_given_up(&wanted) => return Ok(()),
                    };
                    match brought {
                        Ok(()) => {
                            writer.end(Scatter::give_up_checks);
                            return Ok(());
                        }
                        // The bytes that aren't checked weren't counted, so they can be written again.
                        Err(error) => {
                            request.start = writer.rest().map_or(at, |(rest, _)| rest.start);
                            writer.end(|_| ());
                            damaged.again(error)?;
                        }
                    }
                }
            })
            .collect();
        bringing.try_collect().await
    }
}

/// A stream of ranges that were read into the caller's memory, made by
/// [`Reader::stream_ranges_into`](crate::Reader::stream_ranges_into). The stream ends after the first error.
/// If it ends without an error, every range has arrived or was given up.
///
/// Laneway no longer writes to the memory of a range that has arrived or was [given
/// up](RangeBuffers::give_up). After the stream has returned an error or was dropped, Laneway writes to no
/// buffer, and has dropped the buffers of the missing ranges.
pub struct RangesInto<B> {
    buffers: RangeBuffers<B>,
    /// `None` follows after the last range. If the channel closes without it, the task that fills the channel
    /// has died.
    results: OfProcess<mpsc::UnboundedReceiver<Arrival<B>>>,
    url: Arc<str>,
    is_over: bool,
    /// Dropping the task ends the reads.
    _task: Option<Task>,
}

impl GetRanges {
    /// Reads ranges of an object whose version is known into `buffers`. The ranges in `here` have already
    /// arrived, and their bytes are copied. If `ranges` is given, it is a fetch of the same ranges that was
    /// begun in advance, and the bytes are copied from it.
    pub(in crate::objects) fn stream_into<B: AsMut<[u8]> + Send + 'static>(
        self,
        mut buffers: Vec<B>,
        here: Vec<(usize, Bytes)>,
        ranges: Option<Ranges>,
    ) -> RangesInto<B> {
        let url: Arc<str> = self.bucket.url_of(&self.key).into();
        let (out, results) = mpsc::unbounded_channel();
        let results = OfProcess::new(results);
        let lens = self.lens(&mut buffers);
        let is_known = lens.is_ok();
        let lens = lens.unwrap_or_else(|error| {
            // This can't fail, because this function still has the receiver.
            drop(out.send(Some(Err(error))));
            vec![0; buffers.len()]
        });
        let buffers = RangeBuffers::new(buffers.into_iter().zip(lens));
        let targets = RangeTargets { buffers: buffers.clone(), out, url: Arc::clone(&url) };
        let task = match self.bucket.client().worker() {
            _ if !is_known => None,
            Ok(worker) => Some(worker.task(async move {
                let landed = self.land(&targets, here, ranges).await;
                drop(targets.out.send(landed.err().map(Err)));
            })),
            Err(error) => {
                drop(targets.out.send(Some(Err(error))));
                None
            }
        };
        RangesInto { buffers, results, url, is_over: false, _task: task }
    }

    /// Returns the lengths of the ranges, and checks that each range fits into its memory.
    ///
    /// # Errors
    /// If a range can't be read, or its memory is too small.
    fn lens<B: AsMut<[u8]>>(&self, buffers: &mut [B]) -> Result<Vec<usize>, Error> {
        let (store, id) = self.place()?;
        let limits = Limits::of_all();
        let fetch = self.fetch(&store, &id, &limits);
        let len = |(place, (range, buffer)): (usize, (&Range<u64>, &mut B))| {
            let cut = within(range, self.size).map_err(|why| fetch.unreadable(why, self.size))?;
            let room = buffer.as_mut().len();
            usize::try_from(cut.end - cut.start).ok().filter(|len| *len <= room).ok_or_else(|| {
                let message = format!(
                    "the memory for range {place} has only {room} bytes, which are too few for the range"
                );
                Error::usage(self.bucket.url_of(&self.key), message)
            })
        };
        self.ranges.iter().zip(buffers).enumerate().map(len).collect()
    }

    async fn land<B: AsMut<[u8]> + Send + 'static>(
        &self,
        targets: &RangeTargets<B>,
        here: Vec<(usize, Bytes)>,
        ranges: Option<Ranges>,
    ) -> Result<(), Error> {
        let empty = self.ranges.iter().enumerate().filter(|(_, range)| range.is_empty());
        for (place, bytes) in here.into_iter().chain(empty.map(|(place, _)| (place, Bytes::new()))) {
            targets.write(place, 0, &bytes)?;
        }
        if let Some(mut ranges) = ranges {
            while let Some(range) = ranges.next().await {
                let (place, bytes) = range?;
                targets.write(place, 0, &bytes)?;
            }
        } else {
            let (store, id): (Store, ObjectId) = self.place()?;
            let asked = self.ranges.iter().cloned().enumerate();
            let (places, asked): (Vec<_>, Vec<_>) =
                asked.filter(|(place, _)| targets.buffers.is_wanted(*place)).unzip();
            let limits = Limits::of_all();
            let fetch = Fetch { asked: &asked, ..self.fetch(&store, &id, &limits) };
            call::within(self.deadline, &targets.url, fetch.scatter(&places, targets)).await?;
        }
        match (0..self.ranges.len()).find(|place| targets.buffers.is_wanted(*place)) {
            Some(place) => Err(Error::integrity(
                &*targets.url,
                format!("the store sends fewer bytes than range {place} has"),
            )),
            None => Ok(()),
        }
    }
}

impl<B> RangesInto<B> {
    /// Returns a handle that lets the caller give up single ranges and take back their memory.
    pub fn buffers(&self) -> RangeBuffers<B> {
        self.buffers.clone()
    }

    /// Returns the next complete range, or `None` at the end. Blocks the thread. Don't call it on a thread
    /// that runs async tasks.
    pub fn next_blocking(&mut self) -> Option<<Self as Stream>::Item> {
        if self.is_over {
            return None;
        }
        let some = self.results.get_mut().map(mpsc::UnboundedReceiver::blocking_recv);
        self.taken(some)
    }

    /// Converts a received message to an item of the stream. `some` is `None` if this process was forked
    /// after the read began, so that the read belongs to its parent.
    fn taken(&mut self, some: Option<Option<Arrival<B>>>) -> Option<<Self as Stream>::Item> {
        let result = match some {
            Some(Some(result)) => result,
            Some(None) => Some(Err(Error::cancelled(&*self.url))),
            None => Some(Err(Error::forked(&*self.url))),
        };
        self.is_over = !matches!(result, Some(Ok(_)));
        if self.is_over {
            // Take all buffers out, so that requests that still run can't write to the buffers.
            self.buffers.give_up_all();
        }
        result
    }
}

impl<B> Stream for RangesInto<B> {
    type Item = Result<FilledRange<B>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        self.results.poll_with(|results| results.poll_recv(context)).map(|some| self.taken(some))
    }
}

/// No field is pinned, so the stream can be moved even if `B` isn't `Unpin`.
impl<B> Unpin for RangesInto<B> {}

impl<B> Drop for RangesInto<B> {
    fn drop(&mut self) {
        self.buffers.give_up_all();
    }
}

impl<B> fmt::Debug for RangesInto<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangesInto").finish_non_exhaustive()
    }
}
