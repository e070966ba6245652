//! An embedded object store for demos and tests: GCS, S3 and Azure Blob Storage over HTTP/1.1, HTTP/2 and TLS, with
//! simulated delay and faults.
//!
//! The server offers one store, on disk or in memory, in all dialects at the same time. An object that was written
//! through one can be read through the others. The server can simulate a network path with delay and bandwidth, and
//! inject faults.
//!
//! It is a store for demos and tests. Its only access control is that it verifies the signatures of S3 and Azure. S3 and
//! GCS requests may be anonymous. Data is neither replicated nor synced to disk, so a power failure may lose it. The crate contains no
//! client code.
//!
//! | module | what |
//! |---|---|
//! | `config`, `server`, `initial` | setup, TLS, start and stop of a server, and the content that it begins with |
//! | `habits` | the differences between services |
//! | `socket`, `token_bucket`, `link`, `connection` | bytes: a connection's cap, the imitated path, h1 and h2 |
//! | `route`, `query`, `service`, `body` | requests: dialect, verb, handler and refusals |
//! | `verb`, `fault` | verbs, and injected faults: grammar, selection of requests, effect on bodies |
//! | `cross_origin` | preflights of browsers, and what pages of other origins may read |
//! | `objects`, `checksum` | the store |
//! | `gcs`, `s3`, `azure` | the dialects, one verb or group of verbs a file |

mod azure;
mod body;
mod checksum;
pub mod config;
mod connection;
mod counters;
mod cross_origin;
mod customer_key;
mod error;
pub mod fault;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod gcs;
pub mod habits;
mod initial;
mod iso8601;
mod link;
mod objects;
mod query;
mod route;
mod s3;
mod server;
mod service;
mod socket;
mod token_bucket;
mod verb;

pub use config::{AzureConfig, Config, GcsConfig, S3Config, Storage, Tls};
pub use counters::ServerCounters;
pub use error::Error;
pub use fault::{FaultRule, Faults, parse_fault};
pub use habits::{AzureHabits, Conditions, Habits, ListingHabits, RefusedHeaders, Treatment};
pub use objects::object::{ObjectEncryption, ObjectOptions};
pub use objects::settings::parse_bucket_name;
pub use objects::{Attributes, Object, Objects, VersionState, Versioning};
pub use server::Server;
