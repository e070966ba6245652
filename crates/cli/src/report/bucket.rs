//! What became of a bucket as a whole.

use serde::Serialize;

/// As the record of kind `bucket`.
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
