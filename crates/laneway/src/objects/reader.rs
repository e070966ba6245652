//! Reads an open object at any offset, or in order from an offset on.

use std::fmt;
use std::future::poll_fn;
use std::io::{self, SeekFrom};
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use laneway_store::ObjectMeta;
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};

use super::call::{Pending, pending};
use super::columns::PredictedReads;
use super::ranges::{GetRanges, Ranges, RangesInto};
use super::read_ahead::ReadAhead;
use crate::engine::fork::OfProcess;
use crate::{Bucket, Error};

/// The minimum number of missing bytes that [`Reader::next_into`] writes to the buffer directly. For fewer
/// bytes, reading ahead saves more than the copy costs.
const DIRECT_MIN: u64 = 2 << 20;

/// An object that is open for reads, made by [`Bucket::open`]. All reads return bytes of the same version.
/// After the object was replaced, reads fail.
///
/// A reader also implements [`AsyncRead`] and [`AsyncSeek`]. While a program reads in order, Laneway fetches
/// more and more bytes in advance. After a jump to another offset, it fetches nothing in advance at first,
/// unless the object was opened for [reading in order](super::Open::in_order). [`again`](Self::again) makes
/// another reader of the same object. Both readers share the bytes that came with the opening request.
pub struct Reader {
    object: Arc<ReaderObject>,
    deadline: Option<Duration>,
    position: u64,
    ahead: ReadAhead,
    /// The bytes of the last fetch, and their offset in the object.
    have: (u64, Bytes),
    /// The fetch that is under way.
    coming: Option<OfProcess<PendingFetch>>,
    /// Held while this reader reads far ahead. The engine counts the readers that hold a clone, because they
    /// share the memory for reading ahead.
    reading_on: Option<OfProcess<Arc<()>>>,
    /// The columns of a Parquet file that are fetched in advance. `None` before the first call of
    /// `stream_ranges` or `stream_ranges_into`.
    columns: Mutex<Option<PredictedReads<Ranges>>>,
}

type PendingFetch = (Range<u64>, Pending<Vec<Bytes>>);

struct ReaderObject {
    bucket: Bucket,
    meta: ObjectMeta,
    opened: OpeningBytes,
    in_order: bool,
}

/// The bytes that the opening request fetched: none, or the object's first or last bytes.
#[derive(Default)]
pub(super) struct OpeningBytes {
    pub(super) start: u64,
    pub(super) bytes: Bytes,
}

impl OpeningBytes {
    fn range(&self) -> Range<u64> {
        self.start..self.start + self.bytes.len() as u64
    }
}

impl Reader {
    pub(super) fn new(bucket: Bucket, meta: ObjectMeta, opened: OpeningBytes, in_order: bool) -> Self {
        Self::of(Arc::new(ReaderObject { bucket, meta, opened, in_order }), None)
    }

    fn of(object: Arc<ReaderObject>, deadline: Option<Duration>) -> Self {
        let here = if object.opened.start == 0 { object.opened.range().end } else { 0 };
        let ahead = ReadAhead::new(object.in_order, here);
        let (have, columns) = ((0, Bytes::new()), Mutex::default());
        Self { object, deadline, position: 0, ahead, have, coming: None, reading_on: None, columns }
    }

    /// Limits the time of each read. After this time, the read fails with an error of kind
    /// [`Timeout`](crate::ErrorKind::Timeout). If Laneway fetches bytes in advance, the time begins with that
    /// fetch, which is before the caller's read. Without a deadline, a read fails once the server has made no
    /// progress for the client's [`retry_for`](crate::ClientBuilder::retry_for).
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Returns the object's metadata at the time it was opened. The key in it doesn't include the bucket's
    /// prefix.
    pub fn meta(&self) -> &ObjectMeta {
        &self.object.meta
    }

    /// Returns the object's size in bytes.
    pub fn size(&self) -> u64 {
        self.object.meta.size
    }

    /// Returns the bytes at the object's end that the opening request fetched: see
    /// [`Open::footer`](super::Open::footer).
    pub fn footer(&self) -> &Bytes {
        self.object.footer()
    }

    /// Reads the bytes from `offset` on into `buffer`, and returns the buffer with the number of bytes read.
    /// The number is less than the buffer's length only if the object ends earlier. The future borrows
    /// nothing from the reader.
    ///
    /// # Errors
    /// The store's error; an object that was replaced.
    pub fn read_at(
        &self,
        offset: u64,
        mut buffer: Vec<u8>,
    ) -> impl Future<Output = (Result<usize, Error>, Vec<u8>)> + Send + use<> {
        let (object, deadline) = (Arc::clone(&self.object), self.deadline);
        async move {
            let read = object.read_into(offset, &mut buffer, deadline).await;
            (read, buffer)
        }
    }

    /// Does the same as [`read_at`](Self::read_at) for a borrowed buffer.
    pub(crate) async fn read_to(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        self.object.read_into(offset, buffer, self.deadline).await
    }

    /// Reads the bytes from `offset` on into `buffer`, as [`read_at`](Self::read_at) does. Use this method
    /// for memory that isn't a `Vec`, such as another language's buffer. Laneway writes the bytes to the
    /// buffer directly as they arrive on the connections, and keeps no other copy. It fetches a long range
    /// with several concurrent requests. If the future fails or is dropped, a request may still write to the
    /// buffer for a moment. The buffer is dropped only after that, so its `Drop` shows when the memory can be
    /// freed.
    ///
    /// # Errors
    /// The store's error; an object that was replaced.
    pub fn read_into<B: AsMut<[u8]> + Send + 'static>(
        &self,
        offset: u64,
        buffer: B,
    ) -> impl Future<Output = Result<(usize, B), Error>> + Send + use<B> {
        let (object, deadline) = (Arc::clone(&self.object), self.deadline);
        async move { object.fill(offset, buffer, deadline).await }
    }

    /// Reads a single range, as [`read_ranges`](Self::read_ranges) does.
    ///
    /// # Errors
    /// Fails as [`read_ranges`](Self::read_ranges) does.
    pub fn read_range(&self, range: Range<u64>) -> impl Future<Output = Result<Bytes, Error>> + Send + use<> {
        let (object, deadline) = (Arc::clone(&self.object), self.deadline);
        async move { object.range(range, deadline).await }
    }

    /// Reads ranges together, as [`Bucket::get_ranges`] does. Ranges within the bytes of the opening request,
    /// such as the footer, need no request.
    ///
    /// # Errors
    /// Fails as [`Bucket::get_ranges`] does, and if the object was replaced since it was opened.
    pub fn read_ranges<R: IntoIterator<Item = Range<u64>>>(
        &self,
        ranges: R,
    ) -> impl Future<Output = Result<Vec<Bytes>, Error>> + Send + use<R> {
        let (object, deadline) = (Arc::clone(&self.object), self.deadline);
        let ranges = ranges.into_iter().collect();
        async move { object.ranges(ranges, deadline).await }
    }

    /// Reads ranges as [`GetRanges::stream`] does. The stream yields each range as it arrives, in no
    /// particular order, with its index in the request.
    ///
    /// If the footer of a Parquet file came with the opening request ([`Open::footer`](super::Open::footer)),
    /// Laneway predicts the program's next reads. After a program has read the same columns of two
    /// consecutive row groups, Laneway fetches these columns of the next row group in advance. The longer the
    /// program reads in this way, the more row groups Laneway fetches in advance, up to 16 MiB.
    pub fn stream_ranges(&self, ranges: impl IntoIterator<Item = Range<u64>>) -> Ranges {
        let ranges: Vec<_> = ranges.into_iter().collect();
        self.ahead(&ranges).unwrap_or_else(|| self.object.stream(ranges, self.deadline))
    }

    /// Reads ranges as [`stream_ranges`](Self::stream_ranges) does, but into the caller's buffers. Laneway
    /// writes the bytes there directly as they arrive on the connections, and keeps no other copy. The stream
    /// yields each range with its buffer as soon as the range is complete. Until then, the caller can [give
    /// the range up](crate::RangeBuffers::give_up). Ranges may overlap, and each has its own buffer. If a
    /// buffer is longer than its range, Laneway fills its beginning. After an error, the remaining buffers
    /// are dropped, and their content is undefined.
    ///
    /// In three cases, Laneway itself holds the bytes first and then copies them to the buffers. These are
    /// bytes that came with the opening request, columns that were fetched in advance, and objects of a store
    /// that reports no version.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # server.store().put("lake", "table", &[7; 2 << 20]).expect("an object");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// // In async code, write `.await` instead of `.call()`, and `next().await` (of `StreamExt`) instead of `next_blocking()`.
    /// let reader = client.bucket("s3://lake/")?.open("table").call()?;
    /// let mut coming = reader.stream_ranges_into([(0..4, [0; 4]), (1_000_000..1_000_003, [0; 4])]);
    /// while let Some(range) = coming.next_blocking() {
    ///     let range = range?;
    ///     assert!(range.buffer[..range.bytes].iter().all(|byte| *byte == 7));
    /// }
    /// # Ok::<(), laneway::Error>(())
    /// ```
    pub fn stream_ranges_into<B: AsMut<[u8]> + Send + 'static>(
        &self,
        ranges: impl IntoIterator<Item = (Range<u64>, B)>,
    ) -> RangesInto<B> {
        let (ranges, buffers): (Vec<_>, Vec<_>) = ranges.into_iter().unzip();
        let ahead = self.ahead(&ranges);
        self.object.stream_into(ranges, buffers, ahead, self.deadline)
    }

    /// Returns the stream of these ranges, if they are columns whose fetch was begun in advance.
    fn ahead(&self, ranges: &[Range<u64>]) -> Option<Ranges> {
        let begin = |ranges: Vec<_>| self.object.stream(ranges, self.deadline);
        let mut columns = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        let begun =
            columns.get_or_insert_with(|| PredictedReads::new(self.object.footer(), self.object.meta.size));
        // If the early fetch of these ranges has failed, return `None`, so that the caller fetches them
        // again.
        begun.take(ranges, begin).and_then(Ranges::unless_failed)
    }

    /// Returns the offset of the next read in order.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Sets the offset of the next read in order. The offset may be after the object's end, where reads
    /// return no bytes.
    pub fn set_position(&mut self, position: u64) {
        self.position = position;
    }

    /// Returns the next bytes in order, without copying them: at least one byte and at most `most`, or none
    /// at the end. With [`AsyncRead`], the same errors arrive inside of an [`io::Error`].
    ///
    /// # Errors
    /// The store's error; an object that was replaced.
    pub async fn chunk(&mut self, most: usize) -> Result<Bytes, Error> {
        poll_fn(|context| self.poll_some(context, most)).await
    }

    /// Fills `buffer` with the next bytes in order, and returns the buffer with the number of bytes read. The
    /// number is less than the buffer's length only if the object ends earlier. Laneway copies bytes that it
    /// has fetched in advance. If at least 2 MiB are missing then, it fetches them with several concurrent
    /// requests, and writes them to the buffer directly as they arrive. If the future fails or is dropped,
    /// the position doesn't change. After that, Laneway no longer writes to the buffer, and has dropped it.
    ///
    /// # Errors
    /// The store's error; an object that was replaced.
    pub async fn next_into<B: AsMut<[u8]> + Send + 'static>(
        &mut self,
        mut buffer: B,
    ) -> Result<(usize, B), Error> {
        let start = self.position;
        let end = start.saturating_add(buffer.as_mut().len() as u64).min(self.size()).max(start);
        let mut at = start;
        while at < end {
            if let Some(bytes) = self.at_hand(at, (end - at) as usize) {
                buffer.as_mut()[(at - start) as usize..][..bytes.len()].copy_from_slice(&bytes);
                at += bytes.len() as u64;
                continue;
            }
            let arriving = self.coming_at(at).map_or(at, |range| range.end).min(end);
            if end - arriving < DIRECT_MIN {
                poll_fn(|context| self.poll_fetch(context, at, end - at)).await?;
                continue;
            }
            // Begin with the bytes that no other request fetches, and read ahead behind them. Then no
            // connection waits for the program.
            let rest = BufferRest { buffer, at: (arriving - start) as usize };
            let range = std::iter::once(arriving..end).collect();
            let mut direct = self.object.stream_into(range, vec![rest], None, self.deadline);
            if arriving > at {
                poll_fn(|context| self.poll_fetch(context, at, arriving - at)).await?;
            }
            poll_fn(|context| {
                self.fetch_behind(context, arriving..end);
                Poll::Ready(())
            })
            .await;
            let filled = direct.next().await.unwrap_or_else(|| Err(Error::cancelled(self.url())));
            buffer = filled?.buffer.buffer;
            if arriving > at {
                let before = self.at_hand(at, (arriving - at) as usize).unwrap_or_default();
                buffer.as_mut()[(at - start) as usize..][..before.len()].copy_from_slice(&before);
            }
            at = end;
        }
        self.position = end;
        poll_fn(|context| {
            self.passed(context);
            Poll::Ready(())
        })
        .await;
        Ok(((end - start) as usize, buffer))
    }

    /// Returns another reader of the same object with the same deadline. Its position is the object's
    /// beginning.
    pub fn again(&self) -> Self {
        Self::of(Arc::clone(&self.object), self.deadline)
    }

    /// Returns some bytes at the reader's position, at most `len`. Fetches them if none have arrived.
    fn poll_some(&mut self, context: &mut Context<'_>, len: usize) -> Poll<Result<Bytes, Error>> {
        loop {
            if self.position >= self.size() || len == 0 {
                return Poll::Ready(Ok(Bytes::new()));
            }
            if let Some(bytes) = self.at_hand(self.position, len) {
                self.position += bytes.len() as u64;
                self.passed(context);
                return Poll::Ready(Ok(bytes));
            }
            ready!(self.poll_fetch(context, self.position, len as u64))?;
        }
    }

    /// Waits for the fetch of the byte at `at`. If none is under way, begins one. The program wants `len`
    /// bytes from there on.
    fn poll_fetch(&mut self, context: &mut Context<'_>, at: u64, len: u64) -> Poll<Result<(), Error>> {
        loop {
            if self.coming_at(at).is_none() {
                let range = self.ahead.wanted(at, len, self.size(), self.object.readers());
                self.share();
                let fetch = self.object.fetch(range.clone(), self.deadline);
                self.coming = Some(OfProcess::new((range, fetch)));
            }
            let Some((range, fetch)) = self.coming.as_mut().and_then(OfProcess::get_mut) else { continue };
            let read = ready!(Pin::new(fetch).poll(context));
            let start = range.start;
            self.coming = None;
            self.have = (start, read?.into_iter().next().unwrap_or_default());
            return Poll::Ready(Ok(()));
        }
    }

    /// Returns the range of the fetch that is under way, if the byte at `at` is in it. In a forked child, a
    /// fetch that the parent began doesn't count, because it never completes.
    fn coming_at(&self, at: u64) -> Option<&Range<u64>> {
        let (range, _) = self.coming.as_ref()?.get()?;
        range.contains(&at).then_some(range)
    }

    /// Updates [`reading_on`](Self::reading_on): joins or leaves the readers that share the memory for
    /// reading far ahead.
    fn share(&mut self) {
        self.reading_on = match self.ahead.reads_on() {
            true => self.reading_on.take().filter(|held| held.get().is_some()).or_else(|| {
                let state = self.object.bucket.client().state();
                state.ok().map(|state| OfProcess::new(Arc::clone(&state.machinery.reading_on)))
            }),
            false => None,
        };
    }

    /// Returns at most `len` bytes from `position` on, or `None` if none have arrived yet.
    fn at_hand(&self, position: u64, len: usize) -> Option<Bytes> {
        let (at, bytes) = &self.have;
        let OpeningBytes { start, bytes: opened } = &self.object.opened;
        [(at, bytes), (start, opened)].into_iter().find_map(|(at, bytes)| {
            let from = usize::try_from(position.checked_sub(*at)?).ok().filter(|from| *from < bytes.len())?;
            Some(bytes.slice(from..bytes.len().min(from.saturating_add(len))))
        })
    }

    /// Fetches ahead after the program has read on.
    fn passed(&mut self, context: &mut Context<'_>) {
        self.fetch_ahead(context);
        // At the object's end, free the bytes that were fetched ahead, because the program may keep the
        // reader open.
        if self.position >= self.size() && self.reading_on.take().is_some() {
            self.have = (0, Bytes::new());
        }
    }

    /// Begins to fetch the bytes after those that have arrived, if [`ReadAhead::next`] decides that it is
    /// time.
    fn fetch_ahead(&mut self, context: &mut Context<'_>) {
        let (have, opened) = (self.have.0 + self.have.1.len() as u64, self.object.opened.range());
        // The opening request fetched either the object's first bytes or its last bytes. If it fetched the
        // last bytes, they don't count here.
        let end = if opened.start == 0 { have.max(opened.end) } else { have };
        if self.coming.is_some() || (opened.start > 0 && end > opened.start) {
            return;
        }
        let object = &self.object;
        if let Some(range) = self.ahead.next(self.position, end, object.meta.size, || object.readers()) {
            self.begin_ahead(context, range);
        }
    }

    /// Begins to fetch the bytes after those that are written directly to the program's buffer, if
    /// [`ReadAhead::behind`] decides that this is worth it.
    fn fetch_behind(&mut self, context: &mut Context<'_>, direct: Range<u64>) {
        self.coming = None;
        if let Some(range) = self.ahead.behind(&direct, self.size(), self.object.readers()) {
            self.begin_ahead(context, range);
        }
    }

    fn begin_ahead(&mut self, context: &mut Context<'_>, range: Range<u64>) {
        self.share();
        let mut fetch = self.object.fetch(range.clone(), self.deadline);
        // Poll the future once, which starts the request. The result is taken when the program reads these
        // bytes.
        if Pin::new(&mut fetch).poll(context).is_pending() {
            self.coming = Some(OfProcess::new((range, fetch)));
        }
    }

    fn url(&self) -> String {
        self.object.bucket.url_of(&self.object.meta.id.key)
    }
}

impl ReaderObject {
    /// Returns the number of readers that share the memory for reading ahead.
    fn readers(&self) -> usize {
        self.bucket.client().state().map_or(1, |state| Arc::strong_count(&state.machinery.reading_on) - 1)
    }

    /// Returns the bytes that the opening request fetched, if they are the last bytes of the object.
    fn footer(&self) -> &Bytes {
        static NOTHING: Bytes = Bytes::new();
        if self.opened.range().end == self.meta.size { &self.opened.bytes } else { &NOTHING }
    }

    fn fetch(&self, range: Range<u64>, deadline: Option<Duration>) -> Pending<Vec<Bytes>> {
        pending(self.bucket.client(), self.call(vec![range], deadline).run())
    }

    fn stream(&self, ranges: Vec<Range<u64>>, deadline: Option<Duration>) -> Ranges {
        let (here, asked): (Vec<_>, Vec<_>) =
            ranges.into_iter().enumerate().partition(|(_, range)| self.is_here(range));
        let (places, asked) = asked.into_iter().unzip();
        let here = here.into_iter().map(|(at, range)| (at, self.of_opened(&range))).collect();
        self.call(asked, deadline).stream().among(here, places)
    }

    fn stream_into<B: AsMut<[u8]> + Send + 'static>(
        &self,
        ranges: Vec<Range<u64>>,
        buffers: Vec<B>,
        ahead: Option<Ranges>,
        deadline: Option<Duration>,
    ) -> RangesInto<B> {
        let ranges_by_copy = match (ahead, &self.meta.version) {
            // Without a version, don't write directly into the buffers. If a body broke off, the retry could
            // return bytes of another version, behind bytes that are already in the buffer.
            (None, None) => Some(self.stream(ranges.clone(), deadline)),
            (ahead, _) => ahead,
        };
        let here = ranges.iter().enumerate().filter(|(_, range)| self.is_here(range));
        let here = here.filter_map(|(at, range)| Some((at, self.of_opened(range).ok()?))).collect();
        self.call(ranges, deadline).stream_into(buffers, here, ranges_by_copy)
    }

    fn call(&self, ranges: Vec<Range<u64>>, deadline: Option<Duration>) -> GetRanges {
        let mut call = self.bucket.get_ranges(&self.meta.id.key, ranges).known(&self.meta);
        call.deadline = deadline;
        call
    }

    async fn read_into(
        &self,
        offset: u64,
        buffer: &mut [u8],
        deadline: Option<Duration>,
    ) -> Result<usize, Error> {
        let end = offset.saturating_add(buffer.len() as u64).min(self.meta.size);
        if offset >= end {
            return Ok(0);
        }
        let bytes = self.range(offset..end, deadline).await?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    async fn range(&self, range: Range<u64>, deadline: Option<Duration>) -> Result<Bytes, Error> {
        let read = self.ranges(vec![range], deadline).await?;
        Ok(read.into_iter().next().unwrap_or_default())
    }

    /// Returns whether the opening request fetched all bytes of a range. Returns false for an empty range.
    fn is_here(&self, range: &Range<u64>) -> bool {
        let here = self.opened.range();
        here.start <= range.start && range.start < range.end && range.end.min(self.meta.size) <= here.end
    }

    /// Returns the bytes of a range from those that the opening request fetched.
    ///
    /// # Errors
    /// If the range begins at or after the object's end.
    fn of_opened(&self, range: &Range<u64>) -> Result<Bytes, Error> {
        let (start, size) = (self.opened.start, self.meta.size);
        if range.start >= size && range.start > 0 {
            let message = format!("the range {}..{} begins at or beyond the end", range.start, range.end);
            return Err(Error::invalid_range(self.bucket.url_of(&self.meta.id.key), message));
        }
        Ok(self.opened.bytes.slice((range.start - start) as usize..(range.end.min(size) - start) as usize))
    }

    async fn fill<B: AsMut<[u8]> + Send + 'static>(
        self: Arc<Self>,
        offset: u64,
        mut buffer: B,
        deadline: Option<Duration>,
    ) -> Result<(usize, B), Error> {
        let room = buffer.as_mut();
        let end = offset.saturating_add(room.len() as u64).min(self.meta.size);
        if offset >= end {
            return Ok((0, buffer));
        }
        let read = (end - offset) as usize;
        // The opening request fetched bytes at the object's beginning or at its end. So the missing bytes are
        // one range, after or before the fetched bytes.
        let opened = self.opened.range();
        let here = opened.start.max(offset)..opened.end.min(end);
        let missing = match here.is_empty() {
            true => offset..end,
            false if here.start == offset => here.end..end,
            false => offset..here.start,
        };
        if !here.is_empty() {
            let bytes =
                &self.opened.bytes[(here.start - opened.start) as usize..(here.end - opened.start) as usize];
            room[(here.start - offset) as usize..(here.end - offset) as usize].copy_from_slice(bytes);
        }
        if missing.is_empty() {
            return Ok((read, buffer));
        }
        let rest = BufferRest { buffer, at: (missing.start - offset) as usize };
        let mut filled = self.call(vec![missing], deadline).stream_into(vec![rest], Vec::new(), None);
        let cancelled = || Error::cancelled(self.bucket.url_of(&self.meta.id.key));
        Ok((read, filled.next().await.ok_or_else(cancelled)??.buffer.buffer))
    }

    async fn ranges(&self, ranges: Vec<Range<u64>>, deadline: Option<Duration>) -> Result<Vec<Bytes>, Error> {
        let asked: Vec<_> = ranges.iter().filter(|range| !self.is_here(range)).cloned().collect();
        let mut read = match asked.is_empty() {
            true => Vec::new(),
            false => self.call(asked, deadline).await?,
        }
        .into_iter();
        ranges
            .iter()
            .map(|range| match self.is_here(range) {
                true => self.of_opened(range),
                false => Ok(read.next().unwrap_or_default()),
            })
            .collect()
    }
}

/// The part of a buffer from the index `at` on.
struct BufferRest<B> {
    buffer: B,
    at: usize,
}

impl<B: AsMut<[u8]>> AsMut<[u8]> for BufferRest<B> {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.buffer.as_mut()[self.at..]
    }
}

impl AsyncRead for Reader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(self.get_mut().poll_some(context, buffer.remaining()));
        buffer.put_slice(&read.map_err(io::Error::other)?);
        Poll::Ready(Ok(()))
    }
}

impl AsyncSeek for Reader {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        let this = self.get_mut();
        this.position = sought(position, this.position, this.size())?;
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(Ok(self.position))
    }
}

/// Returns the new offset after a seek from the offset `now`. The new offset may be after the object's end,
/// where reads return no bytes.
///
/// # Errors
/// If the new offset would be negative.
pub(super) fn sought(position: SeekFrom, now: u64, size: u64) -> io::Result<u64> {
    let place = match position {
        SeekFrom::Start(place) => Some(place),
        SeekFrom::Current(by) => now.checked_add_signed(by),
        SeekFrom::End(by) => size.checked_add_signed(by),
    };
    place.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the position is before the beginning"))
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("url", &self.url())
            .field("size", &self.size())
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
