//! Downloads a range of an object into memory, for a caller that wants all of its bytes at once. As in a download
//! to a file, a single stream fetches everything, and further streams take over ends of its range when lanes are
//! free. Each stream owns the part of the memory that it fills, so that no byte is copied.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use laneway_lanes::{Spare, SpareClaim};
use laneway_store::{ObjectId, Route, Store};

use super::sliced::StreamSplit;
use crate::content::checksum::{ChecksumHasher, ChecksumSet, RangeChecksums};
use crate::content::range_writer::{ObjectPin, Output, RangeWriter};
use crate::location::url;
use crate::plan::SMALL_DOWNLOAD_MAX;
use crate::plan::slices::{StreamProgress, is_sliced, split};
use crate::{Error, Progress};

/// A range of an object in memory, which one stream fills from its start.
#[derive(Debug)]
pub(super) struct BufferedRange {
    start: u64,
    end: u64,
    bytes: BytesMut,
    wanted: ChecksumSet,
    hasher: ChecksumHasher,
    /// True if the store's checksums have confirmed the bytes that the range had before its stream began.
    is_checked: bool,
}

impl BufferedRange {
    /// Reserves memory for a range. Returns `None` if the system hasn't so much memory.
    pub(super) fn new(range: Range<u64>, wanted: ChecksumSet) -> Option<Self> {
        let len = usize::try_from(range.end - range.start).ok()?;
        // `BytesMut::with_capacity` would end the process if the system hasn't as much memory as the store says.
        let mut memory = Vec::new();
        memory.try_reserve_exact(len).ok()?;
        Some(Self::with(range, BytesMut::from(Bytes::from(memory)), wanted))
    }

    fn with(range: Range<u64>, bytes: BytesMut, wanted: ChecksumSet) -> Self {
        let hasher = ChecksumHasher::new(wanted);
        Self { start: range.start, end: range.end, bytes, wanted, hasher, is_checked: true }
    }

    /// Forgets the bytes, because another attempt brings them again.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.hasher = ChecksumHasher::new(self.wanted);
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Adds the next bytes, and returns how many of them lie in the range.
    pub(super) fn add(&mut self, bytes: &[u8]) -> u64 {
        let own = bytes.len().min((self.end - self.start) as usize - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..own]);
        self.hasher.update(&bytes[..own]);
        own as u64
    }

    /// Takes at most `most` bytes from the end of the range, with their memory, for another stream.
    fn split(&mut self, most: u64) -> Option<Self> {
        let mut left = self.start + self.bytes.len() as u64..self.end;
        let end = split(&mut left, most)?;
        self.end = left.end;
        let memory = self.bytes.split_off((end.start - self.start) as usize);
        Some(Self::with(end, memory, self.wanted))
    }

    /// Adds bytes that came before the range's stream begins.
    pub(super) fn add_first(&mut self, bytes: &[u8], is_checked: bool) {
        self.add(bytes);
        self.is_checked = is_checked;
    }

    /// Takes the bytes. `is_checked` is true if the store's checksums have confirmed those of the range's stream.
    fn take(&mut self, is_checked: bool) -> (u64, BytesMut, RangeChecksums) {
        let hasher = std::mem::replace(&mut self.hasher, ChecksumHasher::new(self.wanted));
        let run = hasher.finish().checked(self.is_checked && is_checked);
        (self.start, std::mem::take(&mut self.bytes), run)
    }
}

impl Output for BufferedRange {
    fn route(&self, at: u64) -> Route {
        if self.end - at <= SMALL_DOWNLOAD_MAX { Route::Stay } else { Route::Freight }
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn write(&mut self, _at: u64, bytes: &[u8]) -> Result<u64, Error> {
        Ok(self.add(bytes))
    }
}

/// A destination in memory.
pub(super) trait Buffered: Output {
    /// Returns the memory, once the download has decided to fetch all bytes into it.
    fn buffer(&mut self) -> Option<&mut BufferedRange>;
}

impl Buffered for BufferedRange {
    fn buffer(&mut self) -> Option<&mut BufferedRange> {
        Some(self)
    }
}

/// A stream that fills a range in memory.
trait BufferStream: Send + Sync {
    fn progress(&self, age: Duration) -> Option<StreamProgress>;

    /// Takes at most `most` bytes from the end of the stream's range.
    fn split(&self, most: u64) -> Option<BufferedRange>;
}

impl<O: Buffered> BufferStream for RangeWriter<O> {
    fn progress(&self, age: Duration) -> Option<StreamProgress> {
        self.cut(|at, output| {
            let BufferedRange { start, end, .. } = output.buffer()?;
            Some(StreamProgress { left: *end - at, fetched: at - *start, age })
        })
    }

    fn split(&self, most: u64) -> Option<BufferedRange> {
        self.cut(|_, output| output.buffer()?.split(most))
    }
}

/// The streams that fill one range in memory.
pub(super) struct BufferStreams<'a> {
    store: &'a Store,
    id: &'a ObjectId,
    range: Range<u64>,
    pinned: ObjectPin,
    progress: Arc<Progress>,
    spare: Spare,
    by: StreamSplit,
    under_way: BTreeMap<u64, (Arc<dyn BufferStream>, Instant)>,
    running: FuturesUnordered<BoxFuture<'a, Result<BufferedPart, Error>>>,
    done: BTreeMap<u64, (BytesMut, RangeChecksums)>,
}

type BufferedPart = (u64, BytesMut, RangeChecksums);

impl<'a> BufferStreams<'a> {
    pub(super) async fn new(
        store: &'a Store,
        id: &'a ObjectId,
        range: Range<u64>,
        pinned: ObjectPin,
        progress: Arc<Progress>,
    ) -> Self {
        let by = StreamSplit::new(store.path(&id.bucket).await.round_trip.unwrap_or_default());
        let (under_way, running, done) = (BTreeMap::new(), FuturesUnordered::new(), BTreeMap::new());
        let spare = store.spare(&id.bucket).await;
        Self { store, id, range, pinned, progress, spare, by, under_way, running, done }
    }

    /// Counts a stream that the caller runs itself, from the first byte on. Other streams may take over the end
    /// of its range.
    pub(super) fn share<O: Buffered>(&mut self, stream: &Arc<RangeWriter<O>>) {
        self.count(self.range.start, Arc::clone(stream));
    }

    fn count<O: Buffered>(&mut self, start: u64, stream: Arc<RangeWriter<O>>) {
        self.under_way.insert(start, (stream, Instant::now()));
    }

    /// Takes the bytes of a stream that the caller has run.
    pub(super) fn take_ended<O: Buffered>(&mut self, stream: &RangeWriter<O>) {
        let take = |output: &mut O, is_checked| output.buffer().map(|range| range.take(is_checked));
        if let Some(part) = stream.end_checked(take) {
            self.done(part);
        }
    }

    fn done(&mut self, (start, bytes, run): BufferedPart) {
        self.under_way.remove(&start);
        self.done.insert(start, (bytes, run));
    }

    /// Begins a stream that continues after the bytes that the range already has, on a claimed lane if there is one.
    pub(super) fn begin(&mut self, range: BufferedRange, lane: Option<SpareClaim>) {
        let (store, id, start) = (self.store, self.id, range.start);
        let at = start + range.bytes.len() as u64;
        let stream = RangeWriter::pinned(at, self.pinned.clone(), range, Arc::clone(&self.progress));
        self.count(start, Arc::clone(&stream));
        let bring = async move {
            stream.bring(store, id).await?;
            Ok(stream.end_checked(BufferedRange::take))
        };
        self.running.push(Box::pin(SpareClaim::scope(lane, bring)));
    }

    /// Begins streams on free lanes, and waits until a stream ends or a lane may be free.
    ///
    /// # Errors
    /// The store's error; an object that was replaced.
    pub(super) async fn next(&mut self) -> Result<(), Error> {
        while is_sliced(self.pinned.size)
            && let Some(lane) = self.spare.claim()
            && let Some(range) = self.end_of_running(1 + self.spare.lanes(), lane.is_open())
        {
            self.begin(range, Some(lane));
        }
        tokio::select! {
            biased;
            Some(part) = self.running.next(), if !self.running.is_empty() => self.done(part?),
            () = self.spare.changed() => {}
        }
        Ok(())
    }

    fn end_of_running(&mut self, more: usize, is_open: bool) -> Option<BufferedRange> {
        let now = Instant::now();
        let progress = |(stream, began): &(Arc<dyn BufferStream>, Instant)| {
            Some((stream.progress(now.saturating_duration_since(*began))?, Arc::clone(stream)))
        };
        let (progress, streams): (Vec<_>, Vec<_>) = self.under_way.values().filter_map(progress).unzip();
        let done: u64 = self.done.values().map(|(_, run)| run.len).sum();
        let fetched = done + progress.iter().map(|stream| stream.fetched).sum::<u64>();
        let end = self.by.end_of(&progress, fetched, (more, is_open), |stream, most| {
            let range = streams[stream].split(most)?;
            Some((range.start..range.end, range))
        });
        end.map(|(_, range)| range)
    }

    /// Waits for the last stream. Returns all bytes in order, with their checksums.
    ///
    /// # Errors
    /// The store's error; an object that was replaced; missing bytes.
    pub(super) async fn finish(mut self) -> Result<(Bytes, RangeChecksums), Error> {
        while !self.running.is_empty() {
            self.next().await?;
        }
        let (mut whole, mut run) = (BytesMut::new(), RangeChecksums::of(b"", ChecksumSet::default()));
        for (start, (bytes, next)) in self.done {
            if start != self.range.start + whole.len() as u64 {
                break;
            }
            run = if whole.is_empty() { next } else { run.then(next) };
            // The parts lie side by side in memory, so this copies nothing.
            whole.unsplit(bytes);
        }
        let (len, expected) = (whole.len() as u64, self.range.end - self.range.start);
        if len != expected {
            let message = format!("only {len} of {expected} bytes have arrived");
            return Err(Error::integrity(url(self.store.provider(), self.id), message));
        }
        Ok((whole.freeze(), run))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_split_range_takes_its_memory_along_and_is_joined_without_a_copy() {
        let mut first = BufferedRange::new(MIB..9 * MIB, ChecksumSet::CRC32C).unwrap();
        let address = first.bytes.as_ptr();
        assert_eq!(first.add(&[1; 1000]), 1000);
        let mut second = first.split(4 * MIB).unwrap();
        assert_eq!((second.start..second.end, first.end), (5 * MIB + MIB..9 * MIB, 6 * MIB));
        assert_eq!(second.add(&vec![2; 4 << 20]), 3 * MIB, "no more than the range has");
        assert_eq!(first.add(&vec![1; 8 << 20]), 5 * MIB - 1000);
        let ((start, mut whole, run), (_, end, next)) = (first.take(false), second.take(false));
        whole.unsplit(end);
        assert_eq!((start, whole.as_ptr(), whole.len()), (MIB, address, 8 << 20));
        let expected = [vec![1; 5 << 20], vec![2; 3 << 20]].concat();
        assert!(whole == expected);
        assert_eq!(run.then(next), RangeChecksums::of(&expected, ChecksumSet::CRC32C));
    }

    #[test]
    fn memory_that_the_system_does_not_have_is_not_reserved() {
        assert!(BufferedRange::new(0..1 << 62, ChecksumSet::CRC32C).is_none());
    }

    #[test]
    fn an_attempt_that_begins_again_keeps_the_memory() {
        let mut range = BufferedRange::new(0..8 * MIB, ChecksumSet::CRC32C).unwrap();
        range.add(&[1; 100]);
        let end = range.split(3 * MIB).unwrap();
        range.clear();
        assert_eq!(range.add(&vec![3; 8 << 20]), 5 * MIB);
        let (_, bytes, run) = range.take(false);
        assert_eq!((end.start, run), (5 * MIB, RangeChecksums::of(&bytes, ChecksumSet::CRC32C)));
    }
}
