//! Calls for single objects. Jobs, in contrast, move many objects.
//!
//! Each verb of a [`Bucket`] makes a *call*: a value with settings. Awaiting it runs the call, on any runtime
//! or none. Its `call()` does the same and blocks the thread. Dropping a call cancels it and frees its
//! resources at once.

mod attributes;
pub mod blocking;
mod bucket;
mod buckets;
mod call;
mod columns;
mod conditions;
mod copy;
mod delete;
mod fill;
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
