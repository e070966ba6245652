//! Moves whole things between machines and object stores: plan, slices, files, trees.
//!
//! A [`Client`] owns the engine. [`Client::copy`] and [`Client::remove`] start a [`Job`], whose [`Event`]s tell the end
//! of each item and at last a [`Summary`]; [`Client::list`], [`Client::stat`] and [`Client::read`] look at what is there.
//!
//! The invariant: a destination is old, absent or complete. Bytes are compared with the store's checksum before an
//! item counts as done, and where there is none the item says `unverified`.
//!
//! What this crate deliberately does not do: it speaks no dialect and opens no connection (`laneway-store` and
//! `laneway-lanes` do), and it never decides how many requests are on the wire at once, only which may be.

mod boot;
mod builder;
mod checksum;
mod client;
mod content_type;
mod copy;
mod download;
mod engine;
mod environment;
mod error;
mod event;
mod existing;
mod files;
mod folder;
mod fork;
mod glob;
mod gzip;
mod identity;
mod job;
mod list;
mod listing;
mod location;
mod lookup;
mod mapping;
mod moved;
mod names;
mod objects;
mod pattern;
mod plan;
mod progress;
mod pump;
mod put_options;
mod read;
mod relative;
mod remove;
mod request;
mod running;
mod runtime;
mod search;
mod second_try;
mod settings;
mod shared;
mod stat;
mod state;
mod upload;
mod walk;

pub use builder::ClientBuilder;
pub use client::Client;
pub use engine::{Engine, EngineBuilder};
pub use error::{Error, ErrorKind};
pub use event::{Event, Item, Op, Outcome, Summary, Verified, Warning};
pub use gzip::Gzip;
pub use http::{HeaderName, HeaderValue};
pub use job::{Canceller, Job};
pub use laneway_lanes::{Counters, Direction, Distribution, Protocol, Role, Times, trace};
pub use laneway_store::{
    AccessKey, BearerToken, Checksums, Condition, CredentialProvider, CustomerKey, ExpiringKey, NotAKey,
    ObjectId, ObjectMeta, Provided, Provider, PutOptions, RequestChecksums, Requests, Retention,
    RetentionMode, SseAlgorithm, Version, may_be_added,
};
pub use list::{Entry, Listing};
pub use location::Location;
pub use objects::{
    Bucket, Copy, Delete, DeleteMany, Download, Get, GetRanges, Head, List, ListDir, Listed, ObjectRanges,
    Open, Payload, Pending, PriceList, Put, Ranges, Reader, Writer, Written,
};
pub use plan::copies::CopySizes;
pub use progress::Progress;
pub use request::{ByteRange, CopyRequest, ListRequest, ReadRequest, RemoveRequest};
pub use stat::Stats;
