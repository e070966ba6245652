//! Calls for single objects. For many objects at once, there are jobs.
//!
//! Each method of a [`Bucket`] that sends requests returns a *call*: a value with setters for its options.
//! Awaiting the value runs the call, on any async runtime or none. Its `call()` method does the same and
//! blocks the thread. Dropping a running call cancels it and frees its resources at once.

pub mod blocking;
mod bucket;
mod call;
mod columns;
mod copy;
mod delete;
mod get;
mod list;
mod multipart;
mod open;
mod put;
mod ranges;
mod read;
mod read_ahead;
mod reader;
mod setters;
mod writer;

pub use bucket::{Bucket, CreateBucket, RemoveBucket, Sign};
pub use call::Pending;
#[cfg(feature = "fuzzing")]
pub use columns::fuzzing::parquet_footer;
pub use copy::CopyObject;
pub use delete::{Delete, DeleteMany};
pub use get::{Download, Get, Head};
pub use list::{List, ListDir, Listed};
pub use multipart::{
    AbortMultipart, BeginMultipart, CompleteMultipart, ListMultipart, Multipart, SendPart, UploadedPart,
};
pub use open::Open;
pub use put::{Payload, Put, Written};
pub use ranges::{FilledRange, GetRanges, ObjectRanges, PriceList, RangeBuffers, Ranges, RangesInto};
pub use reader::Reader;
pub use writer::Writer;
