//! Reads many ranges of an object or of many objects in a single call.

mod fetch;
mod path;
mod plan;
mod scatter;

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use fetch::{Fetch, Limits, RangeResult, RangesResult};
use futures_util::stream::FuturesUnordered;
use futures_util::{Stream, StreamExt as _};
use laneway_store::{ObjectId, ObjectMeta, Store, Version};
pub use plan::PriceList;
pub use scatter::{FilledRange, RangeBuffers, RangesInto};
use tokio::sync::mpsc::{self, error::TryRecvError};

use super::call::{callable, within};
use crate::engine::fork::OfProcess;
use crate::engine::runtime::Task;
use crate::{Bucket, Error};

/// The maximum number of objects that [`Bucket::get_ranges_of`] reads concurrently.
const OBJECTS_AT_ONCE: usize = 64;

/// A call that reads ranges of an object, made by [`Bucket::get_ranges`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct GetRanges {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    key: String,
    ranges: Vec<Range<u64>>,
    version: Option<Version>,
    size: Option<u64>,
    prices: Option<PriceList>,
}

impl Bucket {
    /// Reads any number of ranges of an object. Ranges are half-open ranges of byte offsets, and can be given
    /// in any order. Awaiting the call returns the bytes of all ranges together, in the order of the request.
    /// [`stream`](GetRanges::stream) returns each range as soon as it has arrived.
    ///
    /// Laneway joins neighbouring ranges into one request if fetching the bytes between them costs less than
    /// another request. The costs are computed from the measured network path and the store's [`PriceList`].
    /// Laneway splits a range above 16 MiB into several requests. If the object's size is known
    /// ([`known`](GetRanges::known)) and reading the whole object costs less, Laneway reads the whole object
    /// instead. A call sends up to 100 requests at the same time. All answers must be of the same version: if
    /// the object is replaced during the call, the call fails.
    ///
    /// - Ranges may repeat or overlap. Each of them returns all its bytes, but Laneway fetches shared bytes
    ///   once.
    /// - An empty range returns no bytes, at any offset. If all ranges are empty, Laneway sends no request.
    /// - A range that reaches beyond the object's end returns the bytes up to the end. If a range begins at
    ///   or after the end, the call fails with an error that names the range. There is one exception: in an
    ///   empty object, a range that begins at 0 returns no bytes.
    /// - If a range ends before it begins, the call also fails.
    ///
    /// Several results may share one buffer in memory. This buffer may also hold bytes between the ranges,
    /// but at least half of its bytes belong to the ranges. No store reports a checksum of a range, so
    /// Laneway checks only the answer's length, its offset in the object and the object's version.
    ///
    /// # Examples
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # server.store().put("lake", "tables/part-0.parquet", &[7; 2 << 20]).expect("an object");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// let bucket = client.bucket("s3://lake/tables/")?;
    /// // In async code, write `.await` instead of `.call()`.
    /// let chunks = bucket.get_ranges("part-0.parquet", [4..65_540, 1_048_576..1_310_720]).call()?;
    /// assert_eq!(chunks[0].len(), 65_536);
    /// # Ok::<(), laneway::Error>(())
    /// ```
    pub fn get_ranges(&self, key: &str, ranges: impl IntoIterator<Item = Range<u64>>) -> GetRanges {
        GetRanges {
            bucket: self.clone(),
            deadline: None,
            key: key.to_owned(),
            ranges: ranges.into_iter().collect(),
            version: None,
            size: None,
            prices: None,
        }
    }

    /// Reads ranges of many objects, several objects at the same time, each as
    /// [`get_ranges`](Self::get_ranges) does. The stream yields each object when all its ranges have arrived,
    /// with the object's index in the request and its own outcome. If one object can't be read, Laneway still
    /// reads the others.
    ///
    /// Laneway takes objects from the iterator as fast as the caller takes results. It calls the iterator on
    /// the engine's thread, so an iterator that blocks delays every other call.
    pub fn get_ranges_of<K, R, O>(&self, objects: O) -> ObjectRanges
    where
        K: AsRef<str>,
        R: IntoIterator<Item = Range<u64>>,
        O: IntoIterator<Item = (K, R)>,
        O::IntoIter: Send + 'static,
    {
        let bucket = self.clone();
        let calls = objects.into_iter().map(move |(key, ranges)| bucket.get_ranges(key.as_ref(), ranges));
        let (out, results) = mpsc::channel(1);
        let results = OfProcess::new(results);
        let limits = Limits::of_taken();
        let worker = match self.client().worker() {
            Ok(worker) => worker,
            Err(error) => {
                // This can't fail, because the channel is empty and has room for one.
                drop(out.try_send(Some(Err(error))));
                return ObjectRanges { results, url: self.url(), is_over: false, _task: None };
            }
        };
        let task = worker.task(async move {
            let read = |(at, call): (usize, GetRanges)| {
                let limits = limits.clone();
                async move { (at, call.all(&limits).await) }
            };
            let mut calls = calls.enumerate().fuse();
            let (mut running, mut done) = (FuturesUnordered::new(), VecDeque::new());
            loop {
                while running.len() + done.len() < OBJECTS_AT_ONCE
                    && let Some(call) = calls.next()
                {
                    running.push(read(call));
                }
                if running.is_empty() && done.is_empty() {
                    // Ignore an error: the caller may have dropped the stream.
                    return drop(out.send(None).await);
                }
                // Poll the running reads even while results wait for the caller. A read that isn't polled
                // keeps memory that other transfers need.
                tokio::select! {
                    Some(result) = running.next(), if !running.is_empty() => done.push_back(result),
                    room = out.reserve(), if !done.is_empty() => match (room, done.pop_front()) {
                        (Ok(room), Some(result)) => room.send(Some(Ok(result))),
                        _ => return,
                    },
                }
            }
        });
        ObjectRanges { results, url: self.url(), is_over: false, _task: Some(task) }
    }
}

callable!(GetRanges, Vec<Bytes>);

impl GetRanges {
    /// Reads the ranges only if this is the object's current version. If the object was replaced, the call
    /// fails.
    pub fn if_version(mut self, version: &Version) -> Self {
        self.version = Some(version.clone());
        self
    }

    /// Reads only the version that this metadata describes. If the object was replaced, the call fails. The
    /// metadata contains the object's size. So Laneway can read the whole object if that costs less, and can
    /// split long ranges without a request for the size.
    pub fn known(mut self, meta: &ObjectMeta) -> Self {
        (self.version, self.size) = (meta.version.clone(), Some(meta.size));
        self
    }

    /// Uses these prices instead of the store's own to decide which ranges to join.
    pub fn prices(mut self, prices: PriceList) -> Self {
        self.prices = Some(prices);
        self
    }

    /// Returns a stream that yields the ranges as they arrive, in no particular order. At any time, Laneway
    /// fetches and holds at most 64 MiB of ranges that the caller hasn't taken, or a single larger range.
    /// Dropping the stream ends the reads.
    pub fn stream(self) -> Ranges {
        let (out, results) = mpsc::unbounded_channel();
        let (results, url) = (OfProcess::new(results), self.bucket.url_of(&self.key));
        let worker = match self.bucket.client().worker() {
            Ok(worker) => worker,
            Err(error) => {
                // This can't fail, because this function still has the receiver.
                drop(out.send(Some(Err(error))));
                return Ranges::new(results, url, None);
            }
        };
        let task = worker.task(async move {
            let limits = Limits::of_taken();
            let take = |at, bytes, room| drop(out.send(Some(Ok((at, bytes, room)))));
            let failed = self.each(&limits, take).await.err();
            drop(out.send(failed.map(Err)));
        });
        Ranges::new(results, url, Some(task))
    }

    pub(super) async fn run(self) -> Result<Vec<Bytes>, Error> {
        Ok(self.all(&Limits::of_all()).await?.0)
    }

    async fn all(&self, limits: &Limits) -> RangesResult {
        let (store, id) = self.place()?;
        within(self.deadline, &self.bucket.url_of(&self.key), self.fetch(&store, &id, limits).all()).await
    }

    async fn each(&self, limits: &Limits, take: impl fetch::RangeTaker) -> Result<(), Error> {
        let (store, id) = self.place()?;
        within(self.deadline, &self.bucket.url_of(&self.key), self.fetch(&store, &id, limits).each(take))
            .await
    }

    fn place(&self) -> Result<(Store, ObjectId), Error> {
        Ok((self.bucket.store()?, self.bucket.id(&self.key)?))
    }

    fn fetch<'a>(&'a self, store: &'a Store, id: &'a ObjectId, limits: &'a Limits) -> Fetch<'a> {
        let prices = self.prices.unwrap_or_else(|| PriceList::charged_by(store));
        Fetch {
            store,
            id,
            asked: &self.ranges,
            version: self.version.as_ref(),
            size: self.size,
            prices,
            limits,
        }
    }
}

/// A stream of an object's ranges as they arrive, made by [`GetRanges::stream`]. The stream ends after the
/// first error. If it ends without an error, it has yielded every range.
pub struct Ranges {
    /// The task sends `None` at the end. If the channel closes without it, the task has died.
    results: OfProcess<mpsc::UnboundedReceiver<Option<RangeResult>>>,
    url: String,
    is_over: bool,
    /// True once all ranges are in `here` or were returned, so that none is left to receive.
    is_whole: bool,
    /// Ranges that have already arrived. They are returned first.
    here: Vec<(usize, Result<Bytes, Error>)>,
    /// For each range that the task reads, its index in the caller's request. `None` if the task reads all
    /// ranges of the request, so that the indices are the same.
    places: Option<Vec<usize>>,
    /// Dropping it ends the reads.
    _task: Option<Task>,
}

impl Ranges {
    fn new(
        results: OfProcess<mpsc::UnboundedReceiver<Option<RangeResult>>>,
        url: String,
        task: Option<Task>,
    ) -> Self {
        Self { results, url, is_over: false, is_whole: false, here: Vec::new(), places: None, _task: task }
    }

    /// Returns the same stream with additional ranges that have already arrived. `places` has the index in
    /// the caller's request of each range that this stream reads.
    pub(super) fn among(self, here: Vec<(usize, Result<Bytes, Error>)>, places: Vec<usize>) -> Self {
        Self { here, places: Some(places), ..self }
    }

    /// Moves the ranges that have arrived to `here`, and returns the stream. Returns `None` if it has failed.
    pub(super) fn unless_failed(mut self) -> Option<Self> {
        loop {
            match self.results.get_mut()?.try_recv() {
                Ok(Some(one)) => {
                    let (at, bytes, _) = one.ok()?;
                    self.here.push((self.place(at), Ok(bytes)));
                }
                Ok(None) => {
                    self.is_whole = true;
                    return Some(self);
                }
                Err(TryRecvError::Empty) => return Some(self),
                Err(TryRecvError::Disconnected) => return None,
            }
        }
    }

    fn place(&self, at: usize) -> usize {
        self.places.as_ref().and_then(|places| places.get(at)).copied().unwrap_or(at)
    }

    fn at_hand(&mut self) -> Option<Result<(usize, Bytes), Error>> {
        let (at, bytes) = self.here.pop()?;
        self.is_over = bytes.is_err();
        Some(bytes.map(|bytes| (at, bytes)))
    }

    /// Returns the next range that has arrived: its index in the request, and its bytes. Returns `None` at
    /// the end. Blocks the thread. Don't call it on a thread that runs async tasks.
    pub fn next_blocking(&mut self) -> Option<Result<(usize, Bytes), Error>> {
        if self.is_over {
            return None;
        }
        if let Some(here) = self.at_hand() {
            return Some(here);
        }
        if self.is_whole {
            return None;
        }
        let some = self.results.get_mut().map(mpsc::UnboundedReceiver::blocking_recv);
        self.taken(some)
    }

    /// Converts a received message to an item of the stream. `some` is `None` if this process was forked
    /// after the read began, which is an error.
    fn taken(&mut self, some: Option<Option<Option<RangeResult>>>) -> Option<Result<(usize, Bytes), Error>> {
        let result = match some {
            Some(Some(result)) => result,
            Some(None) => Some(Err(Error::cancelled(&self.url))),
            None => Some(Err(Error::forked(&self.url))),
        };
        self.is_over = !matches!(result, Some(Ok(_)));
        Some(result?.map(|(at, bytes, _)| (self.place(at), bytes)))
    }
}

impl Stream for Ranges {
    /// The index of a range in the request, and its bytes.
    type Item = Result<(usize, Bytes), Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if let Some(here) = self.at_hand() {
            return Poll::Ready(Some(here));
        }
        if self.is_whole {
            return Poll::Ready(None);
        }
        self.results.poll_with(|results| results.poll_recv(context)).map(|some| self.taken(some))
    }
}

impl fmt::Debug for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranges").finish_non_exhaustive()
    }
}

/// A stream of the ranges of many objects, made by [`Bucket::get_ranges_of`]. If an error concerns no single
/// object, the stream yields it and ends. Examples are an engine that has ended, and an iterator that
/// panicked.
pub struct ObjectRanges {
    /// The task sends `None` at the end. If the channel closes without it, the task has died.
    results: OfProcess<mpsc::Receiver<Option<ObjectOutcome>>>,
    url: String,
    is_over: bool,
    /// Dropping it ends the reads.
    _task: Option<Task>,
}

/// The outcome for an object, or the error that ends the stream.
type ObjectOutcome = Result<(usize, RangesResult), Error>;

impl ObjectRanges {
    /// Returns the next object that is done: its index in the request, and its ranges in the order of the
    /// request. Returns `None` at the end. Blocks the thread. Don't call it on a thread that runs async
    /// tasks.
    pub fn next_blocking(&mut self) -> Option<<Self as Stream>::Item> {
        if self.is_over {
            return None;
        }
        let some = self.results.get_mut().map(mpsc::Receiver::blocking_recv);
        self.taken(some)
    }

    /// Converts a received message to an item of the stream. `some` is `None` if this process was forked
    /// after the read began, which is an error.
    fn taken(&mut self, some: Option<Option<Option<ObjectOutcome>>>) -> Option<<Self as Stream>::Item> {
        let object = match some {
            Some(Some(object)) => object,
            Some(None) => Some(Err(Error::cancelled(&self.url))),
            None => Some(Err(Error::forked(&self.url))),
        };
        self.is_over = !matches!(object, Some(Ok(_)));
        Some(object?.map(|(at, all)| (at, all.map(|(bytes, _)| bytes))))
    }
}

impl Stream for ObjectRanges {
    /// The index of an object in the request, and its ranges in the order of the request.
    type Item = Result<(usize, Result<Vec<Bytes>, Error>), Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        self.results.poll_with(|results| results.poll_recv(context)).map(|some| self.taken(some))
    }
}

impl fmt::Debug for ObjectRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectRanges").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_nobody_brings_any_more_are_an_error_and_no_end() {
        let begun = || {
            let (out, results) = mpsc::unbounded_channel();
            (out, Ranges::new(OfProcess::new(results), "s3://b/k".to_owned(), None))
        };
        let (out, mut lost) = begun();
        out.send(Some(Ok((7, Bytes::new(), None)))).unwrap();
        drop(out);
        assert_eq!(lost.next_blocking().unwrap().unwrap().0, 7);
        let error = lost.next_blocking().unwrap().unwrap_err();
        assert!(error.is_cancelled() && error.to_string().contains("s3://b/k"), "{error}");
        assert!(lost.next_blocking().is_none());
        let (out, mut whole) = begun();
        out.send(None).unwrap();
        assert!(whole.next_blocking().is_none() && whole.next_blocking().is_none());
    }

    #[test]
    fn ranges_fetched_ahead_come_first_and_failed_ones_are_dropped() {
        let begun = || {
            let (out, results) = mpsc::unbounded_channel();
            let ranges = Ranges::new(OfProcess::new(results), "s3://b/k".to_owned(), None);
            (out, ranges.among(vec![(0, Ok(Bytes::from_static(b"footer")))], vec![1, 2]))
        };
        let one = |at, bytes| Some(Ok((at, Bytes::from_static(bytes), None)));
        let (out, some) = begun();
        out.send(one(1, b"here")).unwrap();
        let mut some = some.unless_failed().unwrap();
        out.send(one(0, b"late")).unwrap();
        out.send(None).unwrap();
        let come: Vec<_> = std::iter::from_fn(|| some.next_blocking()).map(Result::unwrap).collect();
        assert_eq!(come, [(2, "here".into()), (0, "footer".into()), (1, "late".into())]);
        let (out, all) = begun();
        out.send(one(0, b"a")).unwrap();
        out.send(one(1, b"b")).unwrap();
        out.send(None).unwrap();
        drop(out);
        let mut all = all.unless_failed().unwrap();
        assert_eq!(std::iter::from_fn(|| all.next_blocking()).count(), 3);
        let (out, failed) = begun();
        out.send(one(0, b"a")).unwrap();
        out.send(Some(Err(Error::cancelled("s3://b/k")))).unwrap();
        assert!(failed.unless_failed().is_none());
        let (out, lost) = begun();
        drop(out);
        assert!(lost.unless_failed().is_none());
    }
}
