//! Reads, writes and moves objects of Google Cloud Storage and of S3 (and what speaks its protocol), as fast as the network
//! allows, with nothing to tune.
//!
//! # Objects
//!
//! A [`Client`] gives [`Bucket`]s, whose verbs are calls: values that run when they are awaited, on any runtime or none, end when
//! they are dropped, and whose `call()` does the same and blocks the thread.
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
//! // Only over what was read: somebody else's change is an error, and not lost.
//! let version = written.version.ok_or("the store tells no version")?;
//! bucket.put("state.json", r#"{"next": 2}"#).if_version(&version).await?;
//! let late = bucket.put("state.json", r#"{"next": 3}"#).if_version(&version).await;
//! assert_eq!(late.unwrap_err().kind(), laneway::ErrorKind::Precondition);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Bucket::get_ranges`] reads many ranges by as few requests as pay, [`Bucket::open`] gives a [`Reader`] of one version,
//! [`Bucket::writer`] a [`Writer`], [`Bucket::list`] a stream of what is there. [`blocking`] has what threads without async code use.
//!
//! # Jobs
//!
//! [`Client::copy`] and [`Client::remove`] move and remove many: files, trees, patterns. They start a [`Job`], whose [`Event`]s tell the
//! end of each item and at last a [`Summary`]; [`Client::list`], [`Client::stat`] and [`Client::read`] look at what is there, by URL.
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
//! # What holds
//!
//! - A destination is old, absent or complete. Bytes are compared with the store's checksum before anything counts as done, and where
//!   there is none, [`Verified::Unverified`] says so.
//! - An [`Error`] has a [`kind`](Error::kind) with a number that never changes, names the URL and the cause, and never holds a secret.
//! - What is configured is used, or an error says why not: [`Client::from_env`] reads what the program `laneway` reads.
//! - Connections, protocols, sizes and retries are chosen for each request. There is one [`Engine`] in a process unless a
//!   program makes its own: its threads do the work, so that no runtime of the program's can stall it, and its budgets bound memory
//!   and connections. After a `fork` the child's client starts anew at its first call.
//! - Nothing is printed: what there is to say goes to `tracing`.
//!
//! # Messages
//!
//! A subscriber of the program's receives what the engine says by `tracing`: outages, budgets that are not what was asked for and the like as
//! warnings, connections, retries and hedges as `INFO`, each request as `DEBUG`. None holds a secret. `tracing`'s feature `log` hands them to the
//! `log` crate's loggers. They come from the engine's own threads, so that the subscriber has to be the process's (`init`), and must not
//! block.
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

pub mod blocking;
mod builder;
mod checksum;
mod client;
mod content_type;
mod copy;
mod descriptors;
pub mod dialect;
mod download;
mod engine;
mod environment;
mod error;
mod event;
mod existing;
mod files;
mod filter;
mod folder;
mod fork;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod glob;
mod gzip;
mod hash;
mod identity;
mod inventory;
mod job;
mod lines;
mod list;
mod listing;
mod location;
mod lookup;
mod manifest;
mod mapping;
mod moved;
mod named_version;
mod names;
mod names_from;
mod objects;
mod pattern;
mod plan;
mod platform;
mod preserve;
mod progress;
mod pump;
mod put_options;
mod read;
mod relative;
mod remarks;
mod remove;
mod request;
mod running;
mod runtime;
mod search;
mod second_try;
mod set_meta;
mod settings;
mod shared;
mod stat;
mod state;
mod sync;
mod threads;
mod upload;
mod walk;
mod worker;

pub use builder::ClientBuilder;
pub use client::{Client, Spawned};
pub use engine::{Engine, EngineBuilder};
pub use error::{Error, ErrorKind};
pub use event::{Event, Item, Op, Outcome, Summary, Verified, Warning};
pub use filter::Filter;
pub use gzip::Gzip;
pub use hash::hash;
pub use job::{Canceller, Job};
pub use laneway_lanes::{Counters, Distribution, Tally, Times};
pub use laneway_store::{
    AccessKey, BearerToken, Checksums, CompositeCrc32c, Condition, CredentialProvider, CustomerKey,
    ExpiringKey, Listings, MetaChange, Method, NoMethod, NotAKey, ObjectId, ObjectMeta, Provided, Provider,
    PutOptions, RequestChecksums, Requests, Retention, RetentionMode, SignedUrl, SseAlgorithm, Version,
};
pub use list::{Entry, Listing};
pub use location::Location;
pub use manifest::{Manifest, RunCommand, RunManifest};
pub use objects::{
    AbortMultipart, BeginMultipart, Bucket, CompleteMultipart, Copy, CreateBucket, Delete, DeleteMany,
    Download, FilledRange, Get, GetRanges, Head, List, ListDir, ListMultipart, Listed, Multipart,
    ObjectRanges, Open, Payload, Pending, PriceList, Put, RangeBuffers, Ranges, RangesInto, Reader,
    RemoveBucket, SendPart, Sign, UploadedPart, Writer, Written,
};
pub use progress::Progress;
pub use request::{
    ByteRange, CopyRequest, ListRequest, ReadRequest, RemoveRequest, SetMetaRequest, SyncRequest,
    VerifyRequest,
};
pub use stat::Stats;

/// What the benchmarks and the tests of this workspace use besides: it changes with the engine, without notice.
#[doc(hidden)]
pub mod internal {
    pub use laneway_lanes::{Direction, Protocol, Role, trace};

    pub use crate::plan::copies::CopySizes;

    /// The lanes that a client's requests go over.
    ///
    /// # Errors
    /// Where the engine can't be at work.
    pub fn lanes(client: &crate::Client) -> Result<laneway_lanes::Lanes, crate::Error> {
        Ok(client.state()?.lanes.clone())
    }
}
