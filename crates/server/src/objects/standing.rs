//! The state of an object among the versions of its key.

use serde::{Deserialize, Serialize};

/// The state of one version of a key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// True if the version was written with versioning enabled. Otherwise S3 shows its id as `null`.
    pub has_id: bool,
    /// True if the version is a delete marker, with which S3 records that the key was deleted.
    pub is_delete_marker: bool,
    /// The time when the version became noncurrent, in microseconds since 1970.
    pub noncurrent_us: Option<u64>,
}
