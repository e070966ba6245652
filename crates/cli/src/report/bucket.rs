//! The outcome of an operation on a whole bucket.

use serde::Serialize;

/// The record of kind `bucket`.
#[derive(Serialize, Debug)]
pub(crate) struct BucketRecord<'a> {
    kind: &'static str,
    url: &'a str,
    /// `made` or `removed`.
    outcome: &'static str,
}

impl<'a> BucketRecord<'a> {
    pub(crate) fn new(url: &'a str, outcome: &'static str) -> Self {
        Self { kind: "bucket", url, outcome }
    }
}
