//! The state of an object among the versions of its key.

use serde::{Deserialize, Serialize};

/// The state of an object as a version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// True if it was written with versioning enabled. Otherwise its version is `null`.
    pub has_id: bool,
    /// True if it is S3's marker that the key was deleted.
    pub is_delete_marker: bool,
    /// The time since when it is noncurrent, in microseconds since 1970.
    pub noncurrent_us: Option<u64>,
}
