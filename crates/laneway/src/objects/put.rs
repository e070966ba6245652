//! Writes an object from bytes in memory, a file or a stream.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt as _};
use laneway_lanes::Reservation;
use laneway_store::{Body, Checksums, PutOptions, Version};
use tokio::sync::{Mutex, mpsc};

use super::call::{callable, cleaning, job, within};
use super::setters::{conditional_write, describable};
use crate::content::checksum::{ChecksumSet, RangeChecksums};
use crate::content::encoding;
use crate::engine::files::FileThreads;
use crate::event::Verified;
use crate::job::running::JobState;
use crate::plan::parts::part_len;
use crate::plan::{PARTS_AT_ONCE, SMALL_UPLOAD_MAX};
use crate::transfer::upload::{ExpectedChecksum, Input, PartsUpload, PutOutcome, ReadyPart, put_verified};
use crate::{Bucket, Error};

/// A call that writes an object, made by [`Bucket::put`].
#[derive(Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct Put {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    key: String,
    payload: Payload,
    /// Boxed, so that the future of a put doesn't hold the options several times.
    options: Box<PutOptions>,
    crc32c: Option<u32>,
}

/// The source of a new object's bytes: memory, a file or a stream.
pub struct Payload(PayloadSource);

enum PayloadSource {
    Bytes(Bytes),
    File(PathBuf),
    Stream(BoxStream<'static, io::Result<Bytes>>),
}

impl Bucket {
    /// Writes an object, then compares the stored object's checksum with the bytes that were sent. An object
    /// of at most 16 MiB takes one request, which contains the checksum. Laneway sends larger objects in
    /// parts, several at the same time. The object never exists with only some of its bytes. If the call is
    /// dropped, Laneway aborts the upload.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// let written = bucket.put("notes.txt", "one line\n").metadata("author", "me").if_absent().await?;
    /// assert_eq!(written.size, 9);
    /// bucket.put("manifest.toml", laneway::Payload::file("Cargo.toml")).await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn put(&self, key: &str, payload: impl Into<Payload>) -> Put {
        let (payload, options) = (payload.into(), Box::default());
        Put { bucket: self.clone(), deadline: None, key: key.to_owned(), payload, options, crc32c: None }
    }
}

callable!(Put, Written);
conditional_write!(Put);
describable!(Put);

impl Put {
    /// Sets the expected CRC32C of all bytes. If the bytes have another checksum, the call fails and writes
    /// no object.
    pub fn crc32c(mut self, value: u32) -> Self {
        self.crc32c = Some(value);
        self
    }

    async fn run(self) -> Result<Written, Error> {
        let Self { bucket, deadline, key, payload, mut options, crc32c } = self;
        let url = bucket.url_of(&key);
        if options.content_type.is_none() {
            options.content_type = encoding::content_type(&key).map(str::to_owned);
        }
        let write = async {
            match payload.0 {
                PayloadSource::Bytes(bytes) => write(&bucket, &key, bytes, options, crc32c).await,
                PayloadSource::File(path) => {
                    let (owner, job) = job(&bucket)?;
                    let (at, id) = (bucket.store()?, bucket.id(&key)?);
                    let send = async move {
                        crate::transfer::upload::file(&job, &at, path, &id, &options, crc32c).await
                    };
                    Ok(cleaning(bucket.client(), owner, send).await?.into())
                }
                // Box this large future. Otherwise every put's future would be at least as large, even for a
                // put of a few bytes.
                PayloadSource::Stream(mut stream) => {
                    Box::pin(async {
                        let mut writer = bucket.writer(&key).options(*options);
                        writer.expect_crc32c(crc32c);
                        while let Some(chunk) = stream.next().await {
                            let chunk = chunk.map_err(|e| {
                                Error::local(&url, "its bytes could not be read from the stream", e)
                            })?;
                            writer.write(&chunk).await?;
                        }
                        writer.finish().await
                    })
                    .await
                }
            }
        };
        within(deadline, &url, write).await
    }
}

/// Writes bytes from memory.
///
/// # Errors
/// The store's error; bytes whose checksum differs from `crc32c`, the one that the caller expects.
pub(super) async fn write(
    bucket: &Bucket,
    key: &str,
    bytes: Bytes,
    options: Box<PutOptions>,
    crc32c: Option<u32>,
) -> Result<Written, Error> {
    let (store, id, engine) = (bucket.store()?, bucket.id(key)?, bucket.client().state()?);
    let given = ExpectedChecksum { url: bucket.url_of(key), crc32c };
    if bytes.len() as u64 <= SMALL_UPLOAD_MAX {
        let whole = match bytes.len() <= HASHED_AT_ONCE {
            true => crate::content::checksum::RangeChecksums::of(&bytes, ChecksumSet::CRC32C),
            false => hashed(&engine.files, bytes.clone(), ChecksumSet::CRC32C).await?,
        };
        given.compare(&whole)?;
        let sums: Checksums = whole.checksums();
        return Ok(put_verified(&engine.files, &store, &id, bytes, &sums, &options).await?.into());
    }
    if crc32c.is_some() {
        given.compare(&hashed(&engine.files, bytes.clone(), ChecksumSet::CRC32C).await?)?;
    }
    let (owner, job) = job(bucket)?;
    let send = async move {
        let (size, job) = (bytes.len() as u64, &job);
        let part = usize::try_from(part_len(size, store.capabilities().parts)).unwrap_or(usize::MAX);
        let input = BytesInput { job: Arc::<JobState>::clone(job), bytes, part, next: AtomicUsize::new(0) };
        let parts = PartsUpload::new(job, &store, &id, &options, None);
        parts.send(Some(size), &input).await
    };
    Ok(cleaning(bucket.client(), owner, send).await?.into())
}

/// The maximum number of bytes whose checksum the calling thread itself computes. For so few bytes, passing
/// them to another thread would take longer than the checksum.
const HASHED_AT_ONCE: usize = 64 << 10;

impl Payload {
    /// Makes the payload from a local file. Laneway holds in memory only the bytes that it is sending.
    pub fn file(path: impl AsRef<Path>) -> Self {
        Self(PayloadSource::File(path.as_ref().to_owned()))
    }

    /// Makes the payload from a stream of bytes of any length. Laneway holds a few parts of 16 MiB in memory,
    /// each until the store has confirmed it.
    pub fn stream(stream: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Self {
        Self(PayloadSource::Stream(stream.boxed()))
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Self(PayloadSource::Bytes(bytes))
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static [u8]> for Payload {
    fn from(bytes: &'static [u8]) -> Self {
        Bytes::from_static(bytes).into()
    }
}

impl<const N: usize> From<&'static [u8; N]> for Payload {
    fn from(bytes: &'static [u8; N]) -> Self {
        Bytes::from_static(bytes).into()
    }
}

impl From<&'static str> for Payload {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            PayloadSource::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            PayloadSource::File(path) => path.fmt(f),
            PayloadSource::Stream(_) => f.write_str("a stream"),
        }
    }
}

/// The channel for an object's parts. Each part except the last one has the upload's part length. The flag is
/// true for the last part.
pub(super) type PartReceiver = mpsc::Receiver<(Bytes, bool)>;

/// The input of an upload whose parts arrive over a channel. If the channel closes before the last part, the
/// program has abandoned the object, and the upload ends.
pub(super) struct ChannelInput {
    job: Arc<JobState>,
    given: ExpectedChecksum,
    parts: Mutex<(PartReceiver, bool)>,
}

impl ChannelInput {
    pub(super) fn new(job: Arc<JobState>, given: ExpectedChecksum, parts: PartReceiver) -> Self {
        Self { job, given, parts: Mutex::new((parts, false)) }
    }
}

pub(super) struct HeldPart {
    bytes: Bytes,
    is_last: bool,
    held: Reservation,
}

impl Input for ChannelInput {
    type Begun = HeldPart;

    async fn next(&self) -> Result<Option<Self::Begun>, Error> {
        let mut state = self.parts.lock().await;
        let (parts, is_over) = &mut *state;
        if *is_over {
            return Ok(None);
        }
        let Some((bytes, is_last)) = parts.recv().await else {
            return Err(Error::cancelled(&self.given.url));
        };
        *is_over = is_last;
        if bytes.is_empty() {
            return Ok(None);
        }
        // Reserve memory only after the part has arrived. Otherwise this upload would hold memory that
        // other transfers need, while it waits for the program's next write.
        let held = self.job.engine.lanes.memory().reserve(bytes.len()).await;
        Ok(Some(HeldPart { bytes, is_last, held }))
    }

    async fn prepare(&self, begun: HeldPart, wanted: ChecksumSet) -> Result<ReadyPart, Error> {
        let HeldPart { bytes, is_last, held } = begun;
        let run = hashed(&self.job.engine.files, bytes.clone(), wanted).await?;
        Ok(ReadyPart { body: Body::from(bytes), run, is_last, held: Some(Arc::new(held)) })
    }

    async fn check(&self, whole: &RangeChecksums) -> Result<(), Error> {
        self.given.compare(whole)
    }

    fn rewind(&self) -> bool {
        false
    }
}

/// The input of an upload whose bytes are all in the caller's memory.
struct BytesInput {
    pub(super) job: Arc<JobState>,
    pub(super) bytes: Bytes,
    pub(super) part: usize,
    pub(super) next: AtomicUsize,
}

impl Input for BytesInput {
    type Begun = Bytes;

    async fn next(&self) -> Result<Option<Bytes>, Error> {
        let start = self.next.fetch_add(self.part, Ordering::Relaxed).min(self.bytes.len());
        let end = self.bytes.len().min(start + self.part);
        Ok((start < end).then(|| self.bytes.slice(start..end)))
    }

    async fn prepare(&self, bytes: Bytes, wanted: ChecksumSet) -> Result<ReadyPart, Error> {
        let is_last = bytes.as_ptr_range().end == self.bytes.as_ptr_range().end;
        let run = hashed(&self.job.engine.files, bytes.clone(), wanted).await?;
        Ok(ReadyPart { body: Body::from(bytes), run, is_last, held: None })
    }

    async fn check(&self, _whole: &RangeChecksums) -> Result<(), Error> {
        Ok(())
    }

    fn rewind(&self) -> bool {
        self.next.store(0, Ordering::Relaxed);
        true
    }

    fn at_once(&self, _cores: usize) -> usize {
        PARTS_AT_ONCE
    }
}

/// Computes checksums on a file thread, so that they don't delay the engine's thread.
///
/// # Errors
/// If the engine has ended.
pub(super) async fn hashed(
    files: &FileThreads,
    bytes: Bytes,
    wanted: ChecksumSet,
) -> Result<RangeChecksums, Error> {
    files.run(move || RangeChecksums::of(&bytes, wanted)).await
}

/// Describes an object that a call has written. Fields that the store doesn't report are `None` or empty.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Written {
    /// The object's version, for [`if_version`](crate::Put::if_version).
    pub version: Option<Version>,
    /// The object's size in bytes.
    pub size: u64,
    /// The checksums that the store reports.
    pub checksums: Checksums,
    /// The kind of checksum that was equal for the stored object and the sent bytes.
    pub verified: Verified,
    /// True if there was no condition, or if the store itself enforced it, so that no other write could
    /// happen between check and write.
    pub atomic: bool,
}

impl From<PutOutcome> for Written {
    fn from(PutOutcome { moved, meta }: PutOutcome) -> Self {
        Self {
            version: meta.version,
            size: moved.bytes,
            checksums: meta.checksums,
            verified: moved.verified,
            atomic: moved.atomic,
        }
    }
}
