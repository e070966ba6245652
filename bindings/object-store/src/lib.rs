//! Laneway as a store of the crate [`object_store`](https://docs.rs/object_store): what stands on its traits (DataFusion, delta-rs,
//! Lance, Parquet readers) reads and writes over Laneway's lanes.
//!
//! ```
//! # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
//! # server.create_bucket("lake").expect("a bucket");
//! # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
//! # #[cfg(feature = "object_store_0_14")]
//! # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
//! # use object_store_0_14 as object_store;
//! use laneway_object_store::v0_14::LanewayStore;
//! use object_store::{ObjectStore, ObjectStoreExt as _, path::Path};
//!
//! // In a program: let client = laneway::Client::from_env()?;
//! let store = LanewayStore::new(client.bucket("s3://lake/warehouse/")?);
//! let path = Path::from("table/part-0");
//! store.put(&path, "bytes".into()).await?;
//! // As few requests as pay, by the path and the store's prices.
//! let ranges = store.get_ranges(&path, &[0..2, 3..5]).await?;
//! assert_eq!(ranges, ["by", "es"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).expect("it is read back");
//! # Ok::<(), laneway::Error>(())
//! ```
//!
//! The feature `object_store_0_14` (on by default) implements the traits of 0.14, `object_store_0_13` those of 0.13, which DataFusion 55 and
//! delta-rs 1.1 take; both together do no harm. Neither brings a second HTTP client: object_store's own ones are left out.
//!
//! # Under object_store's own clients
//!
//! Who wants those (`AmazonS3`, `GoogleCloudStorage`, with their configuration, credentials and retries) puts Laneway's lanes under them with the
//! feature `http-connector`, on object_store's `aws-base`, `gcp-base` and `ring`, by which no other HTTP client is built: see `connector::LanewayConnector`.
//!
//! Under [OpenDAL](https://docs.rs/opendal)'s services (0.59) they go by the feature `opendal-transport`: see `transport::LanewayTransport`.
//!
//! # What holds
//!
//! - A location is its key, below the bucket's prefix, byte for byte. Keys that no [`Path`](https://docs.rs/object_store/latest/object_store/path/struct.Path.html)
//!   can say (`a//b`, `.`, control characters) are errors of a listing; those that end in a slash, which mark folders, are left out.
//! - An ETag is S3's without its quotes, and GCS's generation, by which its conditions go. No state but the newest is told or read,
//!   so that `version` of what comes back is `None`; asked for, it is a generation of GCS's.
//! - `GetOptions` that no single request can say (a list of ETags, `if_unmodified_since`) are looked up first, and what is then read is the
//!   state that was looked at.
//! - The attributes of a whole GCS object take a second request beside the first, because the answer that brings its bytes doesn't tell
//!   metadata; those of a range do without, and lack them.
//! - An upload in parts is one writer: the parts' futures may be awaited in any order and at once; one that is dropped half-way ends the upload.
//!   Dropped without its end it leaves nothing behind.
//! - Errors have object_store's kinds and Laneway's error as their source. What Laneway can't do is `NotSupported`: tags on GCS, versions
//!   on S3, attributes that are unknown.
//! - `MultipartStore`'s ids and parts are text, which another process may go on with; an upload stays in the store until it is completed or
//!   aborted. GCS's credentials must allow uploads in parts: else that is `NotSupported`.

// The traits of both versions are the same, and so is the text that implements them.
#![allow(clippy::duplicate_mod, reason = "one text for both versions")]

#[cfg(feature = "http-connector")]
pub mod connector;
#[cfg(any(feature = "http-connector", feature = "opendal-transport"))]
mod expected;
#[cfg(feature = "opendal-transport")]
pub mod transport;
#[cfg(feature = "object_store_0_13")]
pub mod v0_13;
#[cfg(feature = "object_store_0_14")]
pub mod v0_14;
