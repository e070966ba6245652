//! What a listing asks and answers.

pub(crate) mod arriving;
pub(crate) mod cutter;

use crate::ObjectMeta;

/// One page of a listing.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct List {
    /// The bucket.
    pub bucket: String,
    /// Only keys that start so.
    pub prefix: String,
    /// Keys that hold this after the prefix are rolled up into [`Page::prefixes`].
    pub delimiter: Option<String>,
    /// Only keys that sort after this one; the key itself is left out.
    pub start_after: Option<String>,
    /// Only keys that sort before this one. GCS stops there by itself, of S3's pages the rest is cut off.
    pub end_before: Option<String>,
    /// [`Page::next`] of the page before.
    pub token: Option<String>,
    /// At most so many entries; stores give at most 1000.
    pub max: Option<u32>,
}

impl List {
    /// Everything under a prefix.
    pub fn new(bucket: impl Into<String>, prefix: impl Into<String>) -> Self {
        Self { bucket: bucket.into(), prefix: prefix.into(), ..Self::default() }
    }
}

/// What a page of a listing holds.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Page {
    /// Objects in the order of their keys' bytes.
    pub objects: Vec<ObjectMeta>,
    /// Common prefixes, up to and including the delimiter.
    pub prefixes: Vec<String>,
    /// What to ask the next page with; `None` after the last one.
    pub next: Option<String>,
}
