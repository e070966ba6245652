//! Reads, writes and moves objects of Google Cloud Storage, Amazon S3 and servers that speak S3's protocol.
//! Transfers are as fast as the network allows, without tuning.
//!
//! # Objects
//!
//! A [`Client`] returns [`Bucket`] handles. A bucket's verbs, such as `get` and `put`, return calls. A call
//! runs when you await it, and ends when you drop it. You can await it on any async runtime, and also without
//! one. `call()` runs the call and blocks the thread until the call is done.
//!
//! ```
//! # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
//! # server.create_bucket("lake").expect("a bucket");
//! # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
//! # pollster::block_on(async {
//! // In a program: let client = laneway::Client::from_env()?;
//! let bucket = client.bucket("s3://lake/warehouse/")?;
//!
//! let written = bucket.put("state.json", r#"{"next": 1}"#).if_absent().await?;
//! let state = bucket.get("state.json").await?.bytes().await?;
//! assert_eq!(state, r#"{"next": 1}"#);
//!
//! // Replace only the version that was read. If another program has changed the object, the call fails.
//! let version = written.version.ok_or("the store reports no version")?;
//! bucket.put("state.json", r#"{"next": 2}"#).if_version(&version).await?;
//! let late = bucket.put("state.json", r#"{"next": 3}"#).if_version(&version).await;
//! assert_eq!(late.unwrap_err().kind(), laneway::ErrorKind::Precondition);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Bucket::get_ranges`] reads many ranges of an object. It joins ranges that lie close together into one
//! request if that is faster. [`Bucket::open`] returns a [`Reader`] of one version, [`Bucket::writer`]
//! returns a [`Writer`], and [`Bucket::list`] returns a stream of the objects. [`blocking`] has versions of
//! these types for threads without async code.
//!
//! # Jobs
//!
//! [`Client::copy`] and [`Client::remove`] copy, move and remove many objects at once: single files, whole
//! trees, or all names that match a pattern. Both methods start a [`Job`]. The job's [`Event`]s report the
//! outcome of each item, and the last event holds a [`Summary`]. [`Client::list`], [`Client::stat`] and
//! [`Client::read`] also take URLs. They list objects, and read their metadata and bytes.
//!
//! ```
//! # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
//! # server.create_bucket("lake").expect("a bucket");
//! # let client = laneway::Client::builder().anonymous(true).gcs_endpoint(server.url()).build()?;
//! use laneway::{CopyRequest, Event};
//!
//! let request = CopyRequest::new(vec!["Cargo.toml".parse()?], "gs://lake/".parse()?);
//! let mut job = client.copy(request);
//! while let Some(event) = job.next_blocking() {
//!     if let Event::Done(summary) = event {
//!         assert_eq!((summary.files, summary.failed), (1, 0));
//!     }
//! }
//! # Ok::<(), laneway::Error>(())
//! ```
//!
//! # Guarantees
//!
//! - After a failure, a destination still has its old content, is absent, or has the complete new content.
//!   Laneway compares bytes with the store's checksum before it reports an item as done. If the store has no
//!   checksum, Laneway reports [`Verified::Unverified`].
//! - An [`Error`] has a [`kind`](Error::kind), and the number of a kind never changes. The error names the
//!   URL and the cause, and never contains a secret.
//! - Laneway never silently ignores a setting. If it can't use one, it returns an error or logs a warning
//!   that says why. [`Client::from_env`] reads the same variables as the program `laneway`.
//! - Laneway chooses connections, protocols, request sizes and retries for each request. All clients of a
//!   process share one [`Engine`], unless the program makes others. The engine works on its own threads, so a
//!   busy async runtime of the program can't stall it. The engine limits its memory and its number of
//!   connections. After a `fork`, the client's first call in the child starts a new engine.
//! - Laneway prints nothing. Its messages go to `tracing`.
//!
//! # Messages
//!
//! The program's `tracing` subscriber receives the engine's messages. Problems are `WARN`: outages, cleanups
//! that failed, and a client's limits that have no effect because another client has started the engine.
//! Connections, retries and hedged requests are `INFO`, and each request is `DEBUG`. No message contains a
//! secret. `tracing`'s feature `log` passes messages on to the loggers of the `log` crate. The messages come
//! from the engine's own threads. So the subscriber must be the process's global one (`init`), and it must
//! not block.
//!
//! ```
//! # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
//! # server.create_bucket("lake").expect("a bucket");
//! # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
//! use std::io::Write;
//! use std::sync::mpsc;
//!
//! struct Lines(mpsc::Sender<String>);
//! impl Write for Lines {
//!     fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
//!         self.0.send(String::from_utf8_lossy(line).into_owned()).map_err(std::io::Error::other)?;
//!         Ok(line.len())
//!     }
//!     fn flush(&mut self) -> std::io::Result<()> {
//!         Ok(())
//!     }
//! }
//!
//! let (sender, lines) = mpsc::channel();
//! tracing_subscriber::fmt().with_writer(move || Lines(sender.clone())).init();
//! client.bucket("s3://lake/")?.put("notes.txt", "one line\n").call()?;
//! assert!(lines.iter().any(|line| line.contains("connection opened")));
//! # Ok::<(), laneway::Error>(())
//! ```

mod client;
mod content;
mod engine;
mod error;
mod event;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod inventory;
mod job;
mod listing;
mod local;
mod location;
mod manifest;
mod objects;
mod plan;
mod request;
mod transfer;

pub use client::builder::ClientBuilder;
pub use client::dialect;
pub use client::list::{Entry, Listing};
pub use client::stat::{ObjectAccess, Stats};
pub use client::{Client, Spawned};
pub use content::checksum::hash;
pub use content::encoding::Gzip;
pub use engine::{Engine, EngineBuilder};
pub use error::{Error, ErrorKind};
pub use event::{Event, Item, Op, Outcome, Progress, Summary, Verified, Warning};
pub use job::{Canceller, Job};
pub use laneway_lanes::{Counters, Distribution, Tally, Times};
pub use laneway_store::{
    AccessGrant, AccessKey, AssumedRole, BearerToken, BucketSetting, ChecksumAlgorithm, Checksums, Composite,
    Condition, CredentialProvider, CustomerKey, ExpiringKey, Listings, MetaChange, Method, NoMethod, NotAKey,
    ObjectId, ObjectMeta, PartHasher, PartsAlgorithm, PartsDigest, Provided, Provider, PutOptions,
    RequestChecksums, Requests, RestoreOptions, Retention, RetentionMode, SignedUrl, SseAlgorithm, Version,
};
pub use listing::filter::Filter;
pub use location::Location;
pub use manifest::{Manifest, RunCommand, RunManifest};
pub use objects::blocking;
pub use objects::{
    AbortMultipart, BeginMultipart, Bucket, CompleteMultipart, CopyObject, CreateBucket, Delete, DeleteMany,
    Download, FilledRange, Get, GetRanges, Head, List, ListDir, ListMultipart, Listed, Multipart,
    ObjectRanges, Open, Payload, Pending, PriceList, Put, RangeBuffers, Ranges, RangesInto, Reader,
    RemoveBucket, SendPart, Sign, UploadedPart, Writer, Written,
};
pub use request::{
    ByteRange, CopyRequest, ListRequest, ReadRequest, RemoveRequest, RestoreRequest, SetMetaRequest,
    SyncRequest, VerifyRequest,
};

/// Items for this workspace's benchmarks, tests and bindings. They aren't part of the stable API, and change without
/// notice.
#[doc(hidden)]
pub mod internal {
    pub use laneway_lanes::{Direction, Protocol, Role, trace};
    pub use laneway_store::is_endpoint;

    pub use crate::plan::parts::CopySizes;
    pub use crate::transfer::sync::planned::{SyncDecision, SyncPlanner, compare_listed, tree_destination};

    /// Returns a planner for a sync between two prefixes.
    ///
    /// # Errors
    /// `ErrorKind::Usage` if the request is invalid, or one of its ends isn't a prefix of a bucket.
    pub fn sync_planner(
        client: &crate::Client,
        request: &crate::SyncRequest,
    ) -> Result<SyncPlanner, crate::Error> {
        request.check()?;
        let state = client.state()?;
        let store = |at: &crate::Location| match at {
            crate::Location::Object { provider, .. } => Ok(state.store(*provider)?.clone()),
            _ => Err(crate::Error::usage(at.to_string(), "only a sync between two prefixes can be planned")),
        };
        Ok(SyncPlanner::new(store(&request.source)?, store(&request.destination)?, request))
    }

    /// Makes an error of the library's own kinds.
    pub fn error(
        kind: crate::ErrorKind,
        target: impl Into<String>,
        message: impl Into<String>,
    ) -> crate::Error {
        crate::Error::own(kind, target, message)
    }

    /// Returns the lanes that carry a client's requests.
    ///
    /// # Errors
    /// If the engine can't start.
    pub fn lanes(client: &crate::Client) -> Result<laneway_lanes::Lanes, crate::Error> {
        Ok(client.state()?.lanes.clone())
    }
}
