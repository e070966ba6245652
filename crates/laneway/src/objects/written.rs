//! The result of a write.

use laneway_store::{Checksums, Version};

use crate::event::Verified;
use crate::transfer::upload::Sent;

/// Describes the written object. Fields that the store leaves out are `None` or empty.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Written {
    /// The object's version, for [`if_version`](crate::Put::if_version).
    pub version: Option<Version>,
    /// The object's size in bytes.
    pub size: u64,
    /// The checksums that the store reports.
    pub checksums: Checksums,
    /// The checksum by which Laneway compared the stored object with the bytes that were sent.
    pub verified: Verified,
    /// True if the store itself enforced the condition, so that no other writer could come between, or if
    /// there was no condition.
    pub atomic: bool,
}

impl From<Sent> for Written {
    fn from(Sent { moved, meta }: Sent) -> Self {
        Self {
            version: meta.version,
            size: moved.bytes,
            checksums: meta.checksums,
            verified: moved.verified,
            atomic: moved.atomic,
        }
    }
}
