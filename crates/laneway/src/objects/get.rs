//! Reads an object's metadata, and its bytes in order, as a stream or all at once.

use std::io::{self, Read};
use std::ops::{Bound, Range, RangeBounds};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use futures_util::Stream;
use laneway_store::{ObjectMeta, Unless, Version};
use tokio::sync::{mpsc, oneshot, watch};

use super::call::{callable, job, within};
use super::setters::conditional_read;
use crate::engine::fork::OfProcess;
use crate::engine::runtime::Task;
use crate::event::Verified;
use crate::transfer::download::in_order::{
    self, FetchDescription, FetchRequest, ProgramReader, ReadMode, ReservedChunk,
};
use crate::{Bucket, ByteRange, Error};

/// A call that reads an object or a range of it, made by [`Bucket::get`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct Get {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    key: String,
    part: ReadExtent,
    version: Option<Version>,
    unless: Option<Unless>,
}

impl Bucket {
    /// Reads an object. The call returns a [`Download`] as soon as the object's metadata has arrived. The
    /// download then returns the bytes in order, as they arrive or all together. A small object takes one
    /// request. If the caller reads a large object in pieces, Laneway fetches slices of 8 MiB, and once
    /// the caller has begun to read, some of them in advance. If the caller wants [all bytes](Download::bytes) at
    /// once, a long request brings them into one block of memory. Laneway uses several connections if the download is then faster. All bytes are of the
    /// same version.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// bucket.put("notes.txt", "one line\n").await?;
    /// let mut notes = bucket.get("notes.txt").await?;
    /// assert_eq!(notes.meta().size, 9);
    /// while let Some(chunk) = notes.chunk().await? {
    ///     print!("{}", String::from_utf8_lossy(&chunk));
    /// }
    /// let end = bucket.get("notes.txt").last(5).await?.bytes().await?;
    /// assert_eq!(end, "line\n");
    ///
    /// // Later, read the object only if it has changed.
    /// let version = notes.meta().version.clone().ok_or("the store reports no version")?;
    /// let again = bucket.get("notes.txt").unless_version(&version).await;
    /// assert_eq!(again.unwrap_err().kind(), laneway::ErrorKind::NotModified);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get(&self, key: &str) -> Get {
        let (key, part) = (key.to_owned(), ReadExtent::All);
        Get { bucket: self.clone(), deadline: None, key, part, version: None, unless: None }
    }
}

callable!(Get, Download);
conditional_read!(Get);

impl Get {
    /// Reads only a range of the object, such as `0..100` or `100..`. If the range reaches beyond the object's end, the download ends with the object. If the range is empty, or
    /// begins at or after the object's end, the call fails with an error of kind
    /// [`InvalidRange`](crate::ErrorKind::InvalidRange). In an empty object, `0..` returns no bytes.
    pub fn range(mut self, range: impl RangeBounds<u64>) -> Self {
        self.part = ReadExtent::of(&range);
        self
    }

    /// Reads only the last bytes of the object, or all of them if there are fewer. Laneway sends no
    /// additional request to find out the object's size. In an empty object it returns no bytes. If `bytes`
    /// is 0, the call fails with an error of kind [`InvalidRange`](crate::ErrorKind::InvalidRange).
    pub fn last(mut self, bytes: u64) -> Self {
        self.part =
            ByteRange::last(bytes).map_or(ReadExtent::Nothing { start: 0, end: 0 }, ReadExtent::Bytes);
        self
    }

    async fn run(self) -> Result<Download, Error> {
        let Self { bucket, deadline, key, part, version, unless } = self;
        let (store, id, url) = (bucket.store()?, bucket.id(&key)?, bucket.url_of(&key));
        let range = part.range(&url)?;
        let (owner, job) = job(&bucket)?;
        let (chunks, taken) = in_order::chunks();
        let (describe, described) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let (mode_sender, mode) = watch::channel(ReadMode::Unknown);
        let task = bucket.client().worker()?.task(async move {
            let _owner = owner;
            let program = Some(ProgramReader { described: describe, mode });
            let wish = FetchRequest { range, version, unless, program };
            let fetched = within(deadline, &url, in_order::fetch(&job, &store, &id, wish, chunks)).await;
            // Ignore an error: the caller may have dropped the download.
            drop(end.send(fetched.map(|fetched| fetched.moved.verified)));
        });
        let Ok(FetchDescription { mut meta, range }) = described.await else {
            let gone = || Error::cancelled(bucket.url_of(&key));
            return Err(ended.await.map_or_else(|_| gone(), |ended| ended.err().unwrap_or_else(gone)));
        };
        bucket.relative(&mut meta);
        let state =
            ReadState::Coming(OfProcess::new(AnswerStream { taken, ended, mode_sender, _task: task }));
        Ok(Download { meta, range, state, rest: Bytes::new(), verified: None, url: bucket.url_of(&key) })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReadExtent {
    All,
    Bytes(ByteRange),
    Nothing { start: u64, end: u64 },
}

impl ReadExtent {
    fn of(range: &impl RangeBounds<u64>) -> Self {
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded if start == 0 => return Self::All,
            Bound::Unbounded => return Self::Bytes(ByteRange::starting_at(start)),
        };
        ByteRange::between(start..end).map_or(Self::Nothing { start, end }, Self::Bytes)
    }

    /// Returns the range to request, or `None` for the whole object.
    ///
    /// # Errors
    /// `ErrorKind::InvalidRange` if the range is empty.
    fn range(self, url: &str) -> Result<Option<ByteRange>, Error> {
        match self {
            Self::All => Ok(None),
            Self::Bytes(range) => Ok(Some(range)),
            Self::Nothing { start, end } => {
                Err(Error::invalid_range(url, format!("the range {start}..{end} holds no byte")))
            }
        }
    }
}

/// An object that is being read. Dropping it ends the download.
///
/// A download is a [`Stream`] of chunks, and implements [`Read`] for threads that run no async tasks. If a
/// whole object is read, Laneway compares its checksum with the store's before it reports the end. If the
/// checksums differ, reading ends with an error instead. For an object of at most 8 MiB, Laneway compares
/// them before it returns the first chunk.
#[derive(Debug)]
pub struct Download {
    meta: ObjectMeta,
    range: Range<u64>,
    state: ReadState,
    /// The rest of the last chunk, which [`Read`] has not yet returned.
    rest: Bytes,
    verified: Option<Verified>,
    url: String,
}

#[derive(Debug)]
enum ReadState {
    Coming(OfProcess<AnswerStream>),
    Over,
}

#[derive(Debug)]
struct AnswerStream {
    taken: mpsc::Receiver<ReservedChunk>,
    ended: oneshot::Receiver<Result<Verified, Error>>,
    mode_sender: watch::Sender<ReadMode>,
    /// Dropping it ends the download.
    _task: Task,
}

impl Download {
    /// Returns the object's metadata that the store sent with the bytes. The key in it doesn't include the
    /// bucket's prefix. GCS sends no [`metadata`](ObjectMeta::metadata) and no
    /// [`cache_control`](ObjectMeta::cache_control) with the bytes, so both are `None` there. Use
    /// [`head`](Bucket::head) for them.
    pub fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    /// Returns the range of the object that this download reads.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Returns how Laneway verified the bytes, or `None` before the end of the download.
    pub fn verified(&self) -> Option<Verified> {
        self.verified
    }

    /// Returns the next bytes, or `None` at the end.
    ///
    /// # Errors
    /// The store's error, or bytes that differ from the store's checksum. After an error, no more bytes
    /// follow.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        std::future::poll_fn(|context| self.poll_chunk(context)).await
    }

    /// Reads to the end and returns all bytes that the caller hasn't taken yet.
    ///
    /// # Errors
    /// Fails as [`chunk`](Self::chunk) does.
    pub async fn bytes(mut self) -> Result<Bytes, Error> {
        self.choose(ReadMode::All);
        let mut whole = JoinedBytes::of(&self.range);
        while let Some(chunk) = self.chunk().await? {
            whole.add(chunk).map_err(|error| Error::local(&self.url, TOO_LARGE, error))?;
        }
        Ok(whole.bytes())
    }

    /// Does the same as [`chunk`](Self::chunk), and blocks the thread. Don't call it on a thread that runs
    /// async tasks.
    ///
    /// # Errors
    /// Fails as [`chunk`](Self::chunk) does.
    pub fn chunk_blocking(&mut self) -> Result<Option<Bytes>, Error> {
        self.choose(ReadMode::Chunks);
        if !self.rest.is_empty() {
            return Ok(Some(std::mem::take(&mut self.rest)));
        }
        let ReadState::Coming(coming) = &mut self.state else { return Ok(None) };
        let ended = match coming.get_mut() {
            Some(AnswerStream { taken, ended, .. }) => match taken.blocking_recv() {
                Some(chunk) => return Ok(Some(chunk.bytes)),
                // The channel of chunks is closed. So the result has arrived or arrives immediately, and
                // `block_on` returns soon.
                None => pollster::block_on(ended).unwrap_or_else(|_| Err(Error::cancelled(&self.url))),
            },
            None => Err(Error::forked(&self.url)),
        };
        self.state = ReadState::Over;
        self.end(ended)
    }

    /// Does the same as [`bytes`](Self::bytes), and blocks the thread. Don't call it on a thread that runs
    /// async tasks.
    ///
    /// # Errors
    /// Fails as [`chunk`](Self::chunk) does.
    pub fn bytes_blocking(mut self) -> Result<Bytes, Error> {
        self.choose(ReadMode::All);
        let mut whole = JoinedBytes::of(&self.range);
        while let Some(chunk) = self.chunk_blocking()? {
            whole.add(chunk).map_err(|error| Error::local(&self.url, TOO_LARGE, error))?;
        }
        Ok(whole.bytes())
    }

    /// Chooses how the caller reads. If the caller has begun to take pieces, it continues so.
    fn choose(&mut self, chosen: ReadMode) {
        if let ReadState::Coming(coming) = &mut self.state
            && let Some(coming) = coming.get_mut()
        {
            coming.mode_sender.send_if_modified(|mode| {
                let is_new = *mode == ReadMode::Unknown;
                if is_new {
                    *mode = chosen;
                }
                is_new
            });
        }
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        self.choose(ReadMode::Chunks);
        if !self.rest.is_empty() {
            return Poll::Ready(Ok(Some(std::mem::take(&mut self.rest))));
        }
        let ReadState::Coming(coming) = &mut self.state else { return Poll::Ready(Ok(None)) };
        let ended = match coming.get_mut() {
            Some(AnswerStream { taken, ended, .. }) => match ready!(taken.poll_recv(context)) {
                Some(chunk) => return Poll::Ready(Ok(Some(chunk.bytes))),
                None => {
                    ready!(Pin::new(ended).poll(context)).unwrap_or_else(|_| Err(Error::cancelled(&self.url)))
                }
            },
            None => Err(Error::forked(&self.url)),
        };
        self.state = ReadState::Over;
        Poll::Ready(self.end(ended))
    }

    fn end(&mut self, ended: Result<Verified, Error>) -> Result<Option<Bytes>, Error> {
        self.verified = Some(ended?);
        Ok(None)
    }
}

impl Stream for Download {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_chunk(context).map(Result::transpose)
    }
}

impl Read for Download {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.chunk_blocking().map_err(io::Error::other)? {
                Some(chunk) => self.rest = chunk,
                None => return Ok(0),
            }
        }
        let len = buffer.len().min(self.rest.len());
        self.rest.copy_to_slice(&mut buffer[..len]);
        Ok(len)
    }
}

const TOO_LARGE: &str = "doesn't fit into memory; read it in pieces";

/// Joins chunks. A single chunk isn't copied.
struct JoinedBytes {
    len: usize,
    one: Bytes,
    more: Vec<u8>,
}

impl JoinedBytes {
    fn of(range: &Range<u64>) -> Self {
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        Self { len, one: Bytes::new(), more: Vec::new() }
    }

    /// Adds a chunk. Fails if the system hasn't enough memory for all bytes, because the store can say any size.
    fn add(&mut self, chunk: Bytes) -> io::Result<()> {
        if self.one.is_empty() && self.more.is_empty() {
            self.one = chunk;
            return Ok(());
        }
        if self.more.is_empty() {
            self.more.try_reserve_exact(self.len)?;
            self.more.extend_from_slice(&std::mem::take(&mut self.one));
        }
        self.more.extend_from_slice(&chunk);
        Ok(())
    }

    fn bytes(self) -> Bytes {
        match self.more.is_empty() {
            true => self.one,
            false => self.more.into(),
        }
    }
}

/// A call that requests an object's metadata, made by [`Bucket::head`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct Head {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    key: String,
    version: Option<Version>,
    unless: Option<Unless>,
}

impl Bucket {
    /// Requests an object's metadata, in a single request that doesn't fetch the object's bytes.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// bucket.put("notes.txt", "one line\n").await?;
    /// let meta = bucket.head("notes.txt").await?;
    /// assert_eq!((meta.size, meta.content_type.as_deref()), (9, Some("text/plain")));
    ///
    /// let updated = meta.updated.ok_or("the store reports no time")?;
    /// let again = bucket.head("notes.txt").if_modified_since(updated).await;
    /// assert_eq!(again.unwrap_err().kind(), laneway::ErrorKind::NotModified);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn head(&self, key: &str) -> Head {
        Head { bucket: self.clone(), deadline: None, key: key.to_owned(), version: None, unless: None }
    }
}

callable!(Head, ObjectMeta);
conditional_read!(Head);

impl Head {
    async fn run(self) -> Result<ObjectMeta, Error> {
        let (store, id) = (self.bucket.store()?, self.bucket.id(&self.key)?);
        within(self.deadline, &self.bucket.url_of(&self.key), async {
            let version = self.version.as_ref();
            let mut meta = match &self.unless {
                None => store.head(&id, version).await?,
                Some(unless) => store.head_unless(&id, version, unless).await?,
            };
            self.bucket.relative(&mut meta);
            Ok(meta)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_every_kind_say_which_bytes_are_meant() {
        let bytes = ReadExtent::Bytes;
        let between = |range| ByteRange::between(range).unwrap();
        assert_eq!(ReadExtent::of(&..), ReadExtent::All);
        assert_eq!(ReadExtent::of(&(0..)), ReadExtent::All);
        assert_eq!(ReadExtent::of(&(7..)), bytes(ByteRange::starting_at(7)));
        assert_eq!(ReadExtent::of(&(7..9)), bytes(between(7..9)));
        assert_eq!(ReadExtent::of(&(7..=9)), bytes(between(7..10)));
        assert_eq!(ReadExtent::of(&..u64::MAX), bytes(between(0..u64::MAX)));
        for nothing in [
            ReadExtent::of(&(7..7)),
            ReadExtent::of(&(0..0)),
            ReadExtent::of(&Range { start: 9, end: 7 }),
            ReadExtent::of(&..0),
        ] {
            assert!(
                nothing.range("gs://b/k").unwrap_err().to_string().contains("holds no byte"),
                "{nothing:?}"
            );
        }
    }

    #[test]
    fn a_chunk_that_is_all_there_is_is_not_copied() {
        let chunk = Bytes::from(vec![7; 100]);
        let mut whole = JoinedBytes::of(&(0..100));
        whole.add(chunk.clone()).unwrap();
        assert_eq!(whole.bytes().as_ptr(), chunk.as_ptr());
        let mut whole = JoinedBytes::of(&(0..6));
        for chunk in [b"ab".as_slice(), b"cd", b"ef"] {
            whole.add(Bytes::copy_from_slice(chunk)).unwrap();
        }
        assert_eq!(whole.bytes(), "abcdef");
    }

    #[test]
    fn chunks_of_an_object_that_no_memory_can_hold_are_an_error() {
        let mut whole = JoinedBytes::of(&(0..1 << 62));
        whole.add(Bytes::from_static(b"ab")).unwrap();
        assert_eq!(whole.add(Bytes::from_static(b"cd")).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
    }
}
