//! The transport: connections, HTTP/1.1 and HTTP/2, and the dispatcher that spreads requests over them.
//!
//! A *lane* is a connection with a role: **express** for metadata and small bodies, **freight** for bodies above 1 MiB (*bulk*). Callers
//! submit a [`Request`]. The dispatcher, a state machine without clock or socket, decides on which lane and when to send it. The connection
//! passes the bytes of the answer's body to the caller's [`Sink`] without copying them.
//!
//! The invariant: each request ends exactly once, with a response or an [`Error`]. By then, everything that the request used is free again:
//! its place in a queue, its connection and its memory.
//!
//! This crate doesn't know about object stores. It signs nothing and follows no redirects. The caller's [`Call`] decides if an answer needs
//! another attempt.
//!
//! The crate is internal: only `laneway` and other crates of this repository depend on it, and its interface changes with them. Programs
//! use `laneway`, which re-exports the types in its signatures.

mod addresses;
pub mod attempts;
mod client_certificate;
mod config;
mod connection;
mod counters;
mod dial;
mod dispatch;
mod driver;
mod engine;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod h1;
mod h2;
mod hedge;
mod incoming;
mod memory;
mod origin;
mod outage;
mod pace;
mod proxy;
mod request;
mod response;
mod retry;
#[cfg(test)]
mod scenarios;
mod shared;
#[cfg(test)]
mod simulator;
mod spare;
mod stream;
mod streamed;
pub mod tally;
mod threads;
mod throttle;
pub mod trace;
mod trust;
mod valve;

pub use client_certificate::ClientCertificate;
pub use config::{LanesConfig, Trust};
pub use counters::{Counters, Distribution, Times};
pub use dispatch::{Direction, Role};
pub use engine::{Lanes, RETRY};
pub use error::{Error, Kind};
pub use hedge::Alike;
pub use memory::{MemoryBudget, Reservation};
pub use origin::{Origin, Path, Protocol, Scheme};
pub use outage::ORIGIN;
pub use pace::Bandwidth;
pub use request::{Body, Call, CallOutcome, Hedge, Renew, Request, Segment, Verdict};
pub use response::{Response, ResponseHead, Route, Sink, SinkError};
pub use retry::Breaks;
pub use spare::{Spare, SpareClaim};
pub use streamed::{BodyStream, Streamed};
pub use tally::Tally;
