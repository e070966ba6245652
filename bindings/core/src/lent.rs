//! Memory of the host language that is lent to a call.

#![expect(unsafe_code, reason = "the host's memory is known by address and length")]

use std::slice;
use std::sync::Arc;

use bytes::Bytes;

use crate::call::Ending;

/// Memory that comes with a call.
pub enum Memory {
    /// None comes along.
    None,
    /// The host's own, to be read or written by the verb.
    Lent(LentMemory),
    /// The same for each of several ranges.
    Several(Vec<LentMemory>),
    /// A copy, to be read.
    Copied(Vec<u8>),
}

impl Memory {
    /// Makes a body of it.
    pub(crate) fn into_bytes(self) -> Bytes {
        match self {
            Self::None | Self::Several(_) => Bytes::new(),
            Self::Lent(lent) => Bytes::from_owner(lent),
            Self::Copied(bytes) => bytes.into(),
        }
    }
}

/// Bytes of the host's. The host keeps them in place, and hands them to no other call, until the end of this call is announced. That can't be before
/// this is dropped: it has a share in the end.
pub struct LentMemory {
    start: *mut u8,
    len: usize,
    _ending: Arc<Ending>,
}

// SAFETY: the memory is of no thread, and stays where it is for as long as this lives (see `new`).
unsafe impl Send for LentMemory {}
// SAFETY: shared, it is only read.
unsafe impl Sync for LentMemory {}

impl LentMemory {
    /// Lends memory to the call of an end.
    ///
    /// # Safety
    /// From `start` on there have to be `len` bytes that stay valid until the listener takes the end of the call from its events.
    pub unsafe fn new(start: *mut u8, len: usize, ending: &Arc<Ending>) -> Self {
        Self { start, len, _ending: Arc::clone(ending) }
    }

    /// Returns whether no two of them share a byte.
    pub(crate) fn are_apart(several: &[Self]) -> bool {
        let place = |lent: &Self| (lent.start.addr(), lent.start.addr() + lent.len);
        let mut places: Vec<_> = several.iter().filter(|lent| lent.len > 0).map(place).collect();
        places.sort_unstable();
        places.is_sorted_by(|one, next| one.1 <= next.0)
    }
}

impl AsRef<[u8]> for LentMemory {
    fn as_ref(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the bytes are there for as long as this lives, by `new`. A program that changes them meanwhile sends others than it
        // means, and the store refuses them by the checksum of those that were read before.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

impl AsMut<[u8]> for LentMemory {
    fn as_mut(&mut self) -> &mut [u8] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: as above. The owner of this is the only one here that uses the bytes, since each call is lent a part of its own.
        // Threads of the host that look at the memory meanwhile see what a program sees of any buffer that is read into.
        unsafe { slice::from_raw_parts_mut(self.start, self.len) }
    }
}
