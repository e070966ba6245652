//! Laneway as a store of the crate [`object_store`](https://docs.rs/object_store). Software on its traits (DataFusion,
//! delta-rs, Lance, Parquet readers) reads and writes over Laneway's lanes.
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
//! The feature `object_store_0_14` (on by default) implements the traits of 0.14. `object_store_0_13` implements those
//! of 0.13, which DataFusion 55 and delta-rs 1.1 use. Both can be on together. Neither adds a second HTTP client,
//! because object_store's own clients are left out.
//!
//! # Under object_store's own clients
//!
//! To keep object_store's own clients (`AmazonS3`, `GoogleCloudStorage`) with their configuration, credentials and
//! retries, put Laneway's lanes under them with the feature `http-connector`. It uses object_store's `aws-base`,
//! `gcp-base` and `ring`, which build no other HTTP client: see `connector::LanewayConnector`.
//!
//! The feature `opendal-transport` does the same under [OpenDAL](https://docs.rs/opendal)'s services (0.59): see
//! `transport::LanewayTransport`.
//!
//! # Promises
//!
//! - A location is its key below the bucket's prefix, byte for byte. Keys that a
//!   [`Path`](https://docs.rs/object_store/latest/object_store/path/struct.Path.html) can't represent (`a//b`, `.`,
//!   control characters) are errors of a listing. Keys that end in a slash, which mark folders, are left out.
//! - An ETag is S3's without its quotes, or GCS's generation, because GCS's conditions use generations. Only the newest
//!   state is reported, so `version` in results is `None`. A `version` in a request is a GCS generation.
//! - Some `GetOptions` can't be expressed in one request (a list of ETags, `if_unmodified_since`). For these the
//!   metadata is requested first, and the read is pinned to that state.
//! - The attributes of a whole GCS object need a second, concurrent request, because the answer with its bytes doesn't
//!   tell metadata. A read of a range doesn't make it, and returns no attributes.
//! - A multipart upload is one writer. The futures of its parts may be awaited in any order and concurrently. Dropping
//!   one halfway ends the upload. An upload that is dropped before its end leaves nothing behind.
//! - Errors have object_store's kinds, and Laneway's error as their source. `NotSupported` covers tags on GCS, versions
//!   on S3, and unknown attributes.
//! - `MultipartStore`'s ids and parts are text, with which another process can continue. An upload stays in the store
//!   until it is completed or aborted. If GCS's credentials don't permit multipart uploads, the error is
//!   `NotSupported`.

// The traits of both versions are the same, so they share one implementation.
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
