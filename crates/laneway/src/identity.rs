//! Which file a path named, and in which state the file was.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

/// Differs between two files, and between two states of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) inode: u64,
    pub(crate) size: u64,
    /// Seconds and nanoseconds.
    pub(crate) modified: (i64, i64),
    pub(crate) changed: (i64, i64),
}

impl Identity {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether two are the same file with the same content. The time of change tells more than that: also that a name or a
    /// permission came or went.
    pub(crate) fn has_content_of(&self, other: &Self) -> bool {
        (self.inode, self.size, self.modified) == (other.inode, other.size, other.modified)
    }
}
