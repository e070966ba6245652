//! The result of calls that write an object.

use laneway_store::{Checksums, Version};

use crate::event::Verified;
use crate::transfer::upload::PutOutcome;

/// Describes an object that a call has written. Fields that the store doesn't report are `None` or empty.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Written {
    /// The object's version, for [`if_version`](crate::Put::if_version).
    pub version: Option<Version>,
    /// The object's size in bytes.
    pub size: u64,
    /// The checksums that the store reports.
    pub checksums: Checksums,
    /// The kind of checksum that was equal for the stored object and the sent bytes.
    pub verified: Verified,
    /// True if there was no condition, or if the store itself enforced it, so that no other write could
    /// happen between check and write.
    pub atomic: bool,
}

impl From<PutOutcome> for Written {
    fn from(PutOutcome { moved, meta }: PutOutcome) -> Self {
        Self {
            version: meta.version,
            size: moved.bytes,
            checksums: meta.checksums,
            verified: moved.verified,
            atomic: moved.atomic,
        }
    }
}
