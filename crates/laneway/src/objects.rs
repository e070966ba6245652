//! Calls for single objects. For many objects at once, there are jobs.
//!
//! Each method of a [`Bucket`] that sends requests returns a *call*: a value with setters for its options.
//! Awaiting the value runs the call, on any async runtime or none. Its `call()` method does the same and
//! blocks the thread. Dropping a running call cancels it and frees its resources at once.

mod attributes;
pub mod blocking;
mod bucket;
mod buckets;
mod call;
mod columns;
mod conditions;
mod copy;
mod delete;
mod get;
mod handed;
mod head;
mod list;
mod multipart;
mod open;
mod put;
mod ranges;
mod read;
mod read_ahead;
mod reader;
mod sign;
mod writer;
mod written;

pub use bucket::Bucket;
pub use buckets::{CreateBucket, RemoveBucket};
pub use call::Pending;
#[cfg(feature = "fuzzing")]
pub use columns::fuzzing::parquet_footer;
pub use copy::CopyObject;
pub use delete::{Delete, DeleteMany};
pub use get::{Download, Get};
pub use head::Head;
pub use list::{List, ListDir, Listed};
pub use multipart::{
    AbortMultipart, BeginMultipart, CompleteMultipart, ListMultipart, Multipart, SendPart, UploadedPart,
};
pub use open::Open;
pub use put::{Payload, Put};
pub use ranges::{FilledRange, GetRanges, ObjectRanges, PriceList, RangeBuffers, Ranges, RangesInto};
pub use reader::Reader;
pub use sign::Sign;
pub use writer::Writer;
pub use written::Written;
