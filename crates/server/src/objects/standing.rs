//! What an object is among the versions of its key.

use serde::{Deserialize, Serialize};

/// What an object is as a version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Whether it was written with versioning on. Without, its version is `null`.
    pub has_id: bool,
    /// S3's note that the key was deleted.
    pub is_delete_marker: bool,
    /// Since when it is noncurrent, in microseconds since 1970.
    pub noncurrent_us: Option<u64>,
}
