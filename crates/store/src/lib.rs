//! The protocols of GCS, S3 and Azure Blob Storage: requests, answers, errors and credentials.
//!
//! [`Store`] is the caller's interface to a [`Dialect`]: `head get put delete delete_many list copy`, multipart uploads
//! (`begin part list_parts complete abort`) and resumable sessions. GCS, S3 and Azure are dialects over HTTP, each a folder of
//! verbs. For each verb, one function without side effects makes a request from the arguments, and another makes the
//! result from an answer. A few lines in between send the request over [`laneway_lanes::Lanes`]. Callers can supply
//! their own dialect. Code that depends on the kind of store decides by [`Capabilities`].
//!
//! The invariant: keys are exactly the store's bytes and are never changed. Before a verb reports success, it compares
//! the result with every size and checksum that the store sends.
//!
//! This crate deliberately doesn't choose ranges and parts, which is the caller's task. It also doesn't write files,
//! and it doesn't resume in the middle of a body.

mod aws_files;
mod azure;
mod capabilities;
mod checksum;
mod credential_provider;
mod credentials;
mod delete_many;
mod delivery;
mod dialect;
mod digest;
mod download;
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
mod http_verbs;
mod judge;
mod listing;
mod meta_change;
mod multipart;
mod object;
mod presign;
mod reconcile;
mod requests;
mod s3;
mod secrets;
mod settings;
mod store;
mod timestamp;
mod unless;
mod upload;
mod xml;

pub use azure::bucket_at as azure_bucket;
pub use capabilities::{
    Capabilities, FileAttributes, InventoryFormat, PartRules, RequestPrices, VersionNames,
};
pub use checksum::{Checksums, Composite, PartHasher, PartsAlgorithm, PartsDigest};
pub use credential_provider::{AccessKey, BearerToken, CredentialProvider, ExpiringKey, Provided};
pub use credentials::SLOW_CREDENTIALS;
pub use dialect::{BucketSetting, Dialect, NewBucket, Restoration, RestoreOptions};
pub use download::{Get, GetHedge, GetRange, GetSink, Got, HedgeMaker, SinkMaker, Timings};
pub use encryption::{CustomerKey, Encryption, NotAKey, ReadAs, SseAlgorithm};
pub use endpoint::is_endpoint;
pub use environment::Environment;
pub use error::{CredentialError, Error, ErrorKind, Operation};
pub use laneway_lanes::{Body, Breaks, Path, Protocol, Route, Segment, SinkError, Spare};
pub use listing::{FolderPage, FolderRename, List, ListingLimits, Listings, Page};
pub use meta_change::{Changing, MetaChange};
pub use object::{
    AccessGrant, NotAScheme, ObjectId, ObjectMeta, Provider, ReservedScheme, Retention, RetentionMode,
    Version,
};
pub use presign::{Method, NoMethod, SignOptions, SignedUrl};
pub use requests::Requests;
pub use settings::{AssumedRole, ChecksumAlgorithm, MfaPrompt, RequestChecksums, Settings, may_be_added};
pub use store::{Store, capabilities_of};
pub use unless::Unless;
pub use upload::{
    Appended, Condition, Deletion, Multipart, Part, PartChecksums, PutOptions, Resumable, StoredPart,
};
