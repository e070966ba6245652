//! What GCS and S3 call things: requests, answers, errors, credentials.
//!
//! [`Store`] is the plain face of a [`Dialect`]: `head get put delete delete_many list copy`, multipart
//! (`begin part list_parts complete abort`) and resumable sessions. GCS and S3 are dialects over HTTP, each a folder of verbs; each
//! verb is a pure function from arguments to a request, a pure function from an answer to a type, and a few lines that send the
//! one and read the other over [`laneway_lanes::Lanes`]. Callers may bring a dialect of their own, and decide by
//! [`Capabilities`].
//!
//! The invariant: keys are bytes of the store, kept exactly, and what a verb reports as done was compared with what
//! the store says it holds wherever the store says anything.
//!
//! What this crate deliberately does not do: it plans nothing (which ranges, how many parts is the caller's choice),
//! touches no files, and doesn't go on in the middle of a body.

mod added_headers;
mod aws_files;
mod capabilities;
mod checksum;
mod credential_provider;
mod credentials;
mod delete_many;
mod delivery;
mod dialect;
mod digest;
mod download;
#[cfg(feature = "fuzzing")]
mod drawn_head;
mod encode;
mod encryption;
mod endpoint;
mod environment;
mod error;
mod exchange;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod gcs;
mod get_range;
mod http_verbs;
mod judge;
mod listing;
mod listings;
mod lock;
mod meta_change;
mod multipart;
mod new_bucket;
mod object;
mod partition;
mod presign;
mod reconcile;
mod requests;
mod s3;
mod secrets;
mod settings;
mod store;
mod timestamp;
mod unfinished;
mod unless;
mod upload;
mod xml;

pub use added_headers::may_be_added;
pub use capabilities::{
    Capabilities, FileAttributes, InventoryFormat, PartRules, RequestPrices, VersionNames,
};
pub use checksum::{Checksums, Composite, PartHasher, PartsAlgorithm, PartsDigest};
pub use credential_provider::{AccessKey, BearerToken, CredentialProvider, ExpiringKey, Provided};
pub use credentials::SLOW_CREDENTIALS;
pub use dialect::Dialect;
pub use download::{Get, GetHedge, GetSink, Got, HedgeMaker, SinkMaker, Timings};
pub use encryption::{CustomerKey, Encryption, NotAKey, ReadAs, SseAlgorithm};
pub use environment::Environment;
pub use error::{CredentialError, Error, ErrorKind, Operation};
pub use get_range::GetRange;
pub use laneway_lanes::{Body, Breaks, Path, Protocol, Route, Segment, SinkError, Spare};
pub use listing::{List, Page};
pub use listings::Listings;
pub use lock::{Retention, RetentionMode};
pub use meta_change::{Changing, MetaChange};
pub use new_bucket::NewBucket;
pub use object::{NotAScheme, ObjectId, ObjectMeta, Provider, ReservedScheme, Version};
pub use presign::{Method, NoMethod, SignOptions, SignedUrl};
pub use requests::Requests;
pub use settings::{MfaPrompt, RequestChecksums, Settings};
pub use store::{Store, capabilities_of};
pub use unless::Unless;
pub use upload::{
    Appended, Condition, Deletion, Multipart, Part, PartChecksums, PutOptions, Resumable, StoredPart,
};
