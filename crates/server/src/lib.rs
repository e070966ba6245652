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
//! | `config`, `server`, `initial` | setup, start and stop of a server, and the content that it begins with |
//! | `habits` | the differences between services |
//! | `socket`, `token_bucket`, `link`, `tls`, `connection` | bytes: a connection's cap, the imitated path, TLS, h1 and h2 |
//! | `route`, `query`, `service`, `length`, `body` | requests: dialect, verb, handler and refusals |
//! | `verb`, `fault` | verbs, and injected faults: grammar, selection of requests, effect on bodies |
//! | `cross_origin` | preflights of browsers, and what pages of other origins may read |
//! | `objects`, `checksum` | the store |
//! | `gcs`, `s3`, `azure` | the dialects, one verb a file |

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
mod length;
mod link;
mod objects;
mod query;
mod route;
mod s3;
mod server;
mod service;
mod socket;
mod tls;
mod token_bucket;
mod verb;
mod wrong_answer;

pub use config::{AzureConfig, Config, GcsConfig, S3Config, Storage, Tls};
pub use counters::ServerCounters;
pub use error::Error;
pub use fault::{FaultRule, Faults, parse_fault};
pub use habits::{AzureHabits, Conditions, Habits, ListingHabits, RefusedHeaders, Treatment};
pub use objects::bucket_name::parse_bucket_name;
pub use objects::options::{ObjectEncryption, ObjectOptions};
pub use objects::{Attributes, Object, Objects, VersionState, Versioning};
pub use server::Server;
