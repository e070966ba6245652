//! Uploads whose parts a program numbers and keeps itself: begun here, gone on with and ended there.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use laneway_store::{Body, Multipart as Named, Part, PartChecksums, PutOptions};
use serde::{Deserialize, Serialize};

use super::attributes::describable;
use super::call::{callable, job, within};
use super::handed::hashed;
use crate::checksum::{Crc, Run};
use crate::upload::{Parts, wanted};
use crate::{Bucket, Error, Written, content_type};

/// An upload in parts that is under way in the store; begun by [`Bucket::begin_multipart`].
///
/// Its parts may come in any order, several at once, and from other processes, which get at it by
/// [`Bucket::multipart`] and its [`id`](Self::id). Nothing can be seen in the store before [`complete`](Self::complete) has ended
/// well. It stays in the store, and is paid for there, until it is completed or [aborted](Self::abort): dropping this does neither.
/// Who has all bytes in one place uses a [`Writer`](crate::Writer), which cuts parts, keeps conditions and cleans up after itself.
#[derive(Clone)]
pub struct Multipart {
    bucket: Bucket,
    key: String,
    named: Named,
}

/// A part that the store has. As text it can be handed to whoever completes the upload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UploadedPart {
    #[serde(flatten)]
    part: Part,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crc64nvme: Option<u64>,
}

/// Begins an upload in parts; made by [`Bucket::begin_multipart`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct BeginMultipart {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    key: String,
    options: PutOptions,
}

/// Lists uploads that are under way; made by [`Bucket::list_multipart`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct ListMultipart {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    prefix: String,
}

/// Sends a part; made by [`Multipart::part`].
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

/// Makes the object of its parts; made by [`Multipart::complete`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct CompleteMultipart {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    key: String,
    named: Named,
    parts: Vec<UploadedPart>,
}

/// Gives an upload up; made by [`Multipart::abort`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct AbortMultipart {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    key: String,
    named: Named,
}

impl Bucket {
    /// Begins an upload whose parts the caller numbers, sends and names at its end. It takes no condition: GCS's uploads in parts keep
    /// none. A [`put`](Self::put) or a [`writer`](Self::writer) does.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// let upload = bucket.begin_multipart("table.csv").await?;
    /// let (id, last) = (upload.id(), upload.part(2, "the end\n").await?);
    /// // Elsewhere, later:
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

    /// The uploads in parts of keys that begin with `prefix`, by whomever they were begun, that were neither completed nor given up: what a
    /// program that died has left. Those that a [`Writer`](crate::Writer) or a job has under way are among them.
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

    /// An upload that was begun before, by the key and the [`id`](Multipart::id) that it has. Nothing is asked of the store.
    ///
    /// # Errors
    /// For an id of another form; an empty key.
    pub fn multipart(&self, key: &str, id: &str) -> Result<Multipart, Error> {
        let url = self.url_of(key);
        let unknown = || Error::usage(&url, format!("{id:?} is no id of an upload that Laneway has begun"));
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

/// What an id begins with: what the store makes of the parts' checksums, which it says when an upload is begun and not again.
const WHOLE: &str = "whole";
const COMPOSITE: &str = "parts";
const NONE: &str = "none";

impl Multipart {
    /// The key of the object that it is to become, without the bucket's prefix.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What it is found again by: the store's own name for it, and what the store makes of checksums. No secret.
    pub fn id(&self) -> String {
        let checksums = match self.named.checksums {
            PartChecksums::FullObject => WHOLE,
            PartChecksums::Composite => COMPOSITE,
            PartChecksums::None => NONE,
        };
        format!("{checksums}:{}", self.named.upload_id)
    }

    /// Sends a part with its checksum: `number` from 1 to 10000, at least 5 MiB unless it is the last one. Cloudflare R2 wants all but
    /// the last to be of one size. Sent again under its number it is replaced.
    ///
    /// # Errors
    /// Awaited: a number beyond those; what the store says. An upload that has ended is not found.
    pub fn part(&self, number: u32, bytes: impl Into<Bytes>) -> SendPart {
        let Self { bucket, key, named } = self.clone();
        SendPart { bucket, deadline: None, key, named, number, bytes: bytes.into() }
    }

    /// Makes the object of these parts, in the order of their numbers, and compares what the store then has with what was sent. Of no
    /// parts it is empty. Dropped half-way it may have come into being or not.
    ///
    /// # Errors
    /// Awaited: two parts of one number; what the store says (parts that are too small, others than it has); an object that differs.
    pub fn complete(&self, parts: impl IntoIterator<Item = UploadedPart>) -> CompleteMultipart {
        let Self { bucket, key, named } = self.clone();
        CompleteMultipart { bucket, deadline: None, key, named, parts: parts.into_iter().collect() }
    }

    /// Gives it up, and with it its parts.
    ///
    /// # Errors
    /// Awaited: what the store says. An upload that has ended is not found.
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
            return Err(Error::usage(url, "an upload whose parts are sent one by one takes no condition"));
        }
        if options.content_type.is_none() {
            options.content_type = content_type::guess(&key).map(str::to_owned);
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
        let (store, (_owner, job)) = (bucket.store()?, job(&bucket)?);
        let last = store.capabilities().parts.count_max;
        if number == 0 || u64::from(number) > last {
            return Err(Error::usage(url, format!("parts have numbers from 1 to {last}, and not {number}")));
        }
        within(deadline, &url, async {
            let run = hashed(&job, bytes.clone(), wanted(&named)).await?;
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
                // Stores make no object of no parts.
                let run = Run::of(b"", wanted(&named));
                let part = store.part(&named, 1, Body::empty(), run.crc32c.unwrap_or_default()).await?;
                parts.push(UploadedPart { part, crc64nvme: run.crc64nvme });
            }
            let (id, options) = (&named.id, &PutOptions::default());
            let whole = Parts::new(&job, &store, id, options, None);
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
    /// Its number.
    pub fn number(&self) -> u32 {
        self.part.number
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.part.size
    }

    fn into_run(self) -> (Part, Run) {
        let Self { part, crc64nvme } = self;
        let mut run = Run::known(part.size, Crc::Crc32c, 0);
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
        let unknown = |e| Error::usage(text, format!("is no part that Laneway has uploaded: {e}"));
        serde_json::from_str(text).map_err(unknown)
    }
}

impl fmt::Debug for Multipart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.bucket.url_of(&self.key);
        f.debug_struct("Multipart").field("url", &url).field("id", &self.id()).finish()
    }
}
