//! Multipart uploads whose parts the program itself numbers. Several processes can send parts of the same
//! upload.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use laneway_store::{Body, Multipart as Named, Part, PartChecksums, PutOptions};
use serde::{Deserialize, Serialize};

use super::call::{callable, job, within};
use super::put::hashed;
use super::setters::describable;
use crate::content::checksum::{Crc, RangeChecksums};
use crate::content::encoding;
use crate::transfer::upload::{PartsUpload, wanted};
use crate::{Bucket, Error, Written};

/// An unfinished multipart upload in the store, begun by [`Bucket::begin_multipart`].
///
/// Parts can be sent in any order and several at the same time. Other processes can also send parts: they
/// call [`Bucket::multipart`] with the upload's [`id`](Self::id). The object isn't visible before
/// [`complete`](Self::complete) has succeeded. The store keeps the upload and charges for it until it is
/// completed or [aborted](Self::abort). Dropping this value neither completes nor aborts it. If a single
/// process has all bytes, use a [`Writer`](crate::Writer) instead: it splits them into parts, supports
/// conditions and cleans up.
#[derive(Clone)]
pub struct Multipart {
    bucket: Bucket,
    key: String,
    named: Named,
}

/// A part that was sent and that the store keeps. This value can be serialised and passed to the process that
/// completes the upload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UploadedPart {
    #[serde(flatten)]
    part: Part,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crc64nvme: Option<u64>,
}

/// A call that begins a multipart upload, made by [`Bucket::begin_multipart`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct BeginMultipart {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    key: String,
    options: PutOptions,
}

/// A call that lists unfinished multipart uploads, made by [`Bucket::list_multipart`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct ListMultipart {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    prefix: String,
}

/// A call that sends a part, made by [`Multipart::part`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct SendPart {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    key: String,
    named: Named,
    number: u32,
    bytes: Bytes,
}

/// A call that completes an upload, made by [`Multipart::complete`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct CompleteMultipart {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    key: String,
    named: Named,
    parts: Vec<UploadedPart>,
}

/// A call that aborts an upload, made by [`Multipart::abort`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct AbortMultipart {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    key: String,
    named: Named,
}

impl Bucket {
    /// Begins a multipart upload. The caller numbers the parts, sends them, and passes them to
    /// [`complete`](Multipart::complete). The upload supports no condition, because multipart uploads of GCS
    /// have none. For a conditional write, use [`put`](Self::put) or [`writer`](Self::writer).
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// let upload = bucket.begin_multipart("table.csv").await?;
    /// let (id, last) = (upload.id(), upload.part(2, "the end\n").await?);
    /// // Later, perhaps in another process:
    /// let upload = bucket.multipart("table.csv", &id)?;
    /// let first = upload.part(1, vec![b'\n'; 5 << 20]).await?;
    /// let written = upload.complete([last, first]).await?;
    /// assert_eq!(written.size, (5 << 20) + 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin_multipart(&self, key: &str) -> BeginMultipart {
        let (key, options) = (key.to_owned(), PutOptions::default());
        BeginMultipart { bucket: self.clone(), deadline: None, key, options }
    }

    /// Lists the multipart uploads that were neither completed nor aborted, for keys that begin with
    /// `prefix`. Programs that were killed leave such uploads behind. The list also includes uploads that are
    /// still running in any process, such as those of a [`Writer`](crate::Writer) or a job.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// bucket.begin_multipart("jobs/7/table.csv").await?;
    /// for left in bucket.list_multipart("jobs/7/").await? {
    ///     left.abort().await?;
    /// }
    /// # assert!(bucket.list_multipart("").await?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn list_multipart(&self, prefix: &str) -> ListMultipart {
        ListMultipart { bucket: self.clone(), deadline: None, prefix: prefix.to_owned() }
    }

    /// Returns the upload with this key and [`id`](Multipart::id), which this or another process began. Sends
    /// no request.
    ///
    /// # Errors
    /// If [`Multipart::id`] can't have returned `id`, or if the key is empty.
    pub fn multipart(&self, key: &str, id: &str) -> Result<Multipart, Error> {
        let url = self.url_of(key);
        let unknown = || Error::usage(&url, format!("{id:?} is not the id of an upload that Laneway began"));
        let (checksums, upload_id) = id.split_once(':').ok_or_else(unknown)?;
        let checksums = match checksums {
            WHOLE => PartChecksums::FullObject,
            COMPOSITE => PartChecksums::Composite,
            NONE => PartChecksums::None,
            _ => return Err(unknown()),
        };
        if upload_id.is_empty() {
            return Err(unknown());
        }
        let named = Named { id: self.id(key)?, upload_id: upload_id.to_owned(), checksums };
        Ok(Multipart { bucket: self.clone(), key: key.to_owned(), named })
    }
}

/// The first word of an id says how the store combines the parts' checksums: `whole`, `parts` or `none`. The
/// id contains this word because the store reports the method only when an upload begins.
const WHOLE: &str = "whole";
const COMPOSITE: &str = "parts";
const NONE: &str = "none";

impl Multipart {
    /// Returns the key of the object that the upload writes, without the bucket's prefix.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the id of the upload. With this id, [`Bucket::multipart`] continues the upload in any process.
    /// The id contains the store's id of the upload, and how the store combines the parts' checksums. The id
    /// isn't secret.
    pub fn id(&self) -> String {
        let checksums = match self.named.checksums {
            PartChecksums::FullObject => WHOLE,
            PartChecksums::Composite => COMPOSITE,
            PartChecksums::None => NONE,
        };
        format!("{checksums}:{}", self.named.upload_id)
    }

    /// Sends a part with its checksum. `number` is from 1 to 10000. Every part except the last must have at
    /// least 5 MiB. On Cloudflare R2, all parts except the last must have the same size. A part with the same
    /// number as an earlier one replaces it.
    ///
    /// # Errors
    /// The awaited call fails if the number is outside this range. The call also returns the store's errors,
    /// such as `ErrorKind::NotFound` if the upload was already completed or aborted.
    pub fn part(&self, number: u32, bytes: impl Into<Bytes>) -> SendPart {
        let Self { bucket, key, named } = self.clone();
        SendPart { bucket, deadline: None, key, named, number, bytes: bytes.into() }
    }

    /// Makes the object from these parts, in the order of their numbers. Then compares the checksum of the
    /// stored object with the parts' checksums. Without parts, the object is empty. If the caller drops the
    /// call before it is done, the object may or may not exist.
    ///
    /// # Errors
    /// The awaited call fails if two parts have the same number, or if a part is too small or isn't in the
    /// store. The call also fails if the stored object differs from the sent bytes.
    pub fn complete(&self, parts: impl IntoIterator<Item = UploadedPart>) -> CompleteMultipart {
        let Self { bucket, key, named } = self.clone();
        CompleteMultipart { bucket, deadline: None, key, named, parts: parts.into_iter().collect() }
    }

    /// Aborts the upload and removes its parts.
    ///
    /// # Errors
    /// When awaited: the store's error, such as `ErrorKind::NotFound` if the upload was already completed or
    /// aborted.
    pub fn abort(&self) -> AbortMultipart {
        let Self { bucket, key, named } = self.clone();
        AbortMultipart { bucket, deadline: None, key, named }
    }
}

callable!(BeginMultipart, Multipart);
callable!(ListMultipart, Vec<Multipart>);
callable!(SendPart, UploadedPart);
callable!(CompleteMultipart, Written);
callable!(AbortMultipart, ());
describable!(BeginMultipart);

impl BeginMultipart {
    async fn run(self) -> Result<Multipart, Error> {
        let Self { bucket, deadline, key, mut options } = self;
        let url = bucket.url_of(&key);
        if !options.condition.is_none() {
            return Err(Error::usage(url, "a multipart upload supports no preconditions; use put or writer"));
        }
        if options.content_type.is_none() {
            options.content_type = encoding::content_type(&key).map(str::to_owned);
        }
        let (store, id) = (bucket.store()?, bucket.id(&key)?);
        let named = within(deadline, &url, async { Ok(store.begin(&id, &options).await?) }).await?;
        Ok(Multipart { bucket, key, named })
    }
}

impl ListMultipart {
    async fn run(self) -> Result<Vec<Multipart>, Error> {
        let Self { bucket, deadline, prefix } = self;
        let (store, url) = (bucket.store()?, bucket.url_of(&prefix));
        let below = format!("{}{prefix}", bucket.prefix());
        let found =
            within(deadline, &url, async { Ok(store.list_uploads(bucket.name(), &below).await?) }).await?;
        let relative = |named: Named| {
            let key = named.id.key.strip_prefix(bucket.prefix()).unwrap_or(&named.id.key).to_owned();
            Multipart { bucket: bucket.clone(), key, named }
        };
        Ok(found.into_iter().map(relative).collect())
    }
}

impl SendPart {
    async fn run(self) -> Result<UploadedPart, Error> {
        let Self { bucket, deadline, key, named, number, bytes } = self;
        let url = bucket.url_of(&key);
        let (store, engine) = (bucket.store()?, bucket.client().state()?);
        let last = store.capabilities().parts.count_max;
        if number == 0 || u64::from(number) > last {
            return Err(Error::usage(url, format!("part numbers are from 1 to {last}, not {number}")));
        }
        within(deadline, &url, async {
            let run = hashed(&engine.files, bytes.clone(), wanted(&named)).await?;
            let crc32c = run.crc32c.unwrap_or_default();
            let part = store.part(&named, number, Body::from(bytes), crc32c).await?;
            Ok(UploadedPart { part, crc64nvme: run.crc64nvme })
        })
        .await
    }
}

impl CompleteMultipart {
    async fn run(self) -> Result<Written, Error> {
        let Self { bucket, deadline, key, named, mut parts } = self;
        let url = bucket.url_of(&key);
        parts.sort_by_key(|uploaded| uploaded.part.number);
        if let Some(twice) = parts.windows(2).find(|two| two[0].part.number == two[1].part.number) {
            return Err(Error::usage(url, format!("part {} is named twice", twice[0].part.number)));
        }
        let (store, (_owner, job)) = (bucket.store()?, job(&bucket)?);
        within(deadline, &url, async {
            if parts.is_empty() {
                // Stores refuse to complete an upload without parts, so send an empty one.
                let run = RangeChecksums::of(b"", wanted(&named));
                let part = store.part(&named, 1, Body::empty(), run.crc32c.unwrap_or_default()).await?;
                parts.push(UploadedPart { part, crc64nvme: run.crc64nvme });
            }
            let (id, options) = (&named.id, &PutOptions::default());
            let whole = PartsUpload::new(&job, &store, id, options, None);
            let parts = parts.into_iter().map(UploadedPart::into_run).collect();
            Ok(whole.complete(&named, parts).await?.into())
        })
        .await
    }
}

impl AbortMultipart {
    async fn run(self) -> Result<(), Error> {
        let store = self.bucket.store()?;
        within(self.deadline, &self.bucket.url_of(&self.key), async { Ok(store.abort(&self.named).await?) })
            .await
    }
}

impl UploadedPart {
    /// Returns the part's number.
    pub fn number(&self) -> u32 {
        self.part.number
    }

    /// Returns the part's size in bytes.
    pub fn size(&self) -> u64 {
        self.part.size
    }

    fn into_run(self) -> (Part, RangeChecksums) {
        let Self { part, crc64nvme } = self;
        let mut run = RangeChecksums::known(part.size, Crc::Crc32c, 0);
        (run.crc32c, run.crc64nvme) = (part.crc32c, crc64nvme);
        (part, run)
    }
}

impl fmt::Display for UploadedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for UploadedPart {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown = |e| Error::usage(text, format!("is not a part that Laneway uploaded: {e}"));
        serde_json::from_str(text).map_err(unknown)
    }
}

impl fmt::Debug for Multipart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.bucket.url_of(&self.key);
        f.debug_struct("Multipart").field("url", &url).field("id", &self.id()).finish()
    }
}
