//! Implements the traits of the crate [`object_store`](https://docs.rs/object_store) over Laneway. Software that uses
//! these traits (DataFusion, delta-rs, Lance, Parquet readers) then reads and writes over Laneway's connections.
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
//! // Ranges that are close together share a request if that is faster or cheaper.
//! let ranges = store.get_ranges(&path, &[0..2, 3..5]).await?;
//! assert_eq!(ranges, ["by", "es"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).expect("it is read back");
//! # Ok::<(), laneway::Error>(())
//! ```
//!
//! The feature `object_store_0_14` (on by default) implements the traits of 0.14. `object_store_0_13` implements those
//! of 0.13, which DataFusion 55 and delta-rs 1.1 use. You can enable both features together. Both leave out
//! object_store's own clients, so cargo builds no second HTTP client.
//!
//! # Under object_store's own clients
//!
//! With the feature `http-connector`, object_store's own clients (`AmazonS3`, `GoogleCloudStorage`) send their requests
//! over Laneway's connections. They keep their configuration, credentials and retries: see
//! `connector::LanewayConnector`. Use object_store's features `aws-base`, `gcp-base` and `ring`, which build no other
//! HTTP client.
//!
//! With the feature `opendal-transport`, the services of [OpenDAL](https://docs.rs/opendal) (0.59) send their requests
//! over Laneway's connections, too: see `transport::LanewayTransport`.
//!
//! # Promises
//!
//! - A location is an object's key without the bucket's prefix, byte for byte. Keys that a
//!   [`Path`](https://docs.rs/object_store/latest/object_store/path/struct.Path.html) can't represent (`a//b`, `.`,
//!   control characters) appear in a listing as errors. A listing leaves out keys that end in a slash, which mark
//!   folders.
//! - On S3 and Azure, `e_tag` is the ETag without its quotes. On GCS it is the generation, because conditions on GCS use
//!   generations. Results describe only the newest version of an object, so their `version` is `None`. A `version` in a
//!   request is a GCS generation.
//! - Some `GetOptions` can't be expressed in one request (a list of ETags, `if_unmodified_since`). For these, Laneway
//!   requests the metadata first, checks the conditions itself, and then reads exactly that version.
//! - A read of a whole GCS object makes a second, concurrent request for its attributes, because the response with the
//!   bytes lacks them. A read of a range doesn't make this request, and returns no attributes.
//! - The futures of a multipart upload's parts may be awaited in any order and concurrently. If one is dropped after it
//!   has begun to write, the upload fails. An upload that is dropped before its end leaves nothing in the store.
//! - Errors have object_store's kinds, and Laneway's error as their source. Tags on GCS, versions on S3 and Azure,
//!   and unknown attributes fail with `NotSupported`.
//! - Azure keeps one set of blocks for each key. If two uploads of a key run at once, the one that ends first discards the
//!   blocks of the other, whose end then fails.
//! - The ids of `MultipartStore`'s uploads and parts are text. Another process can continue an upload with them. An
//!   upload stays in the store until it is completed or aborted. If the credentials for GCS don't permit multipart
//!   uploads, the call fails with `NotSupported`.

// object_store's traits in 0.13 and 0.14 are nearly the same, so the modules for both versions include the same files
// in `adapter`.
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
