//! What a write says when it is done.

use laneway_store::{Checksums, Version};

use crate::event::Verified;
use crate::upload::Sent;

/// An object as it was written. What the store leaves out is `None` or empty.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Written {
    /// Its state: what [`if_version`](crate::Put::if_version) takes.
    pub version: Option<Version>,
    /// Its size in bytes.
    pub size: u64,
    /// The checksums that the store tells of it.
    pub checksums: Checksums,
    /// By which of them it was compared with what was sent.
    pub verified: Verified,
    /// Whether the store itself kept the condition that was asked for, so that no other writer could come between; true
    /// where none was.
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
