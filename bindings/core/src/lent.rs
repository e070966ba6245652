//! Memory of the host language that a call may use.

#![expect(unsafe_code, reason = "the host passes its memory as an address and a length")]

use std::slice;
use std::sync::Arc;

use bytes::Bytes;

use crate::call::PendingAnswer;

/// The memory that the host passes with a call.
pub enum Memory {
    /// No memory.
    None,
    /// The host's own memory, which the call reads or writes.
    Lent(LentMemory),
    /// The host's own memory, in one block for each of several ranges.
    Several(Vec<LentMemory>),
    /// A copy of the host's bytes, which the call reads.
    Copied(Vec<u8>),
}

impl Memory {
    /// Returns the memory as the body of a request.
    pub(crate) fn into_bytes(self) -> Bytes {
        match self {
            Self::None | Self::Several(_) => Bytes::new(),
            Self::Lent(lent) => Bytes::from_owner(lent),
            Self::Copied(bytes) => bytes.into(),
        }
    }
}

/// Memory of the host. Until the event of the call's end, the host keeps the memory in place and passes it to no other
/// call. This value is one of the owners of the call's `PendingAnswer`, so this event comes only after this value is
/// dropped.
pub struct LentMemory {
    start: *mut u8,
    len: usize,
    _ending: Arc<PendingAnswer>,
}

// SAFETY: the memory isn't tied to a thread, and it stays valid as long as this value lives (see `new`).
unsafe impl Send for LentMemory {}
// SAFETY: through a shared reference, the memory is only read.
unsafe impl Sync for LentMemory {}

impl LentMemory {
    /// Lends memory to the call that ends with `ending`.
    ///
    /// # Safety
    /// There must be `len` bytes at `start` that stay valid until the listener takes the call's end from its events.
    pub unsafe fn new(start: *mut u8, len: usize, ending: &Arc<PendingAnswer>) -> Self {
        Self { start, len, _ending: Arc::clone(ending) }
    }

    /// Returns whether no two of these blocks of memory overlap.
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
        // SAFETY: the bytes stay valid as long as this value lives (see `new`). If the program changes them meanwhile,
        // Laneway sends wrong bytes. The store then refuses these bytes, because they don't match the checksum.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

impl AsMut<[u8]> for LentMemory {
    fn as_mut(&mut self) -> &mut [u8] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: as above. No other call uses these bytes, because the host lends them to one call only. If a thread
        // of the host reads the memory meanwhile, it may see a half-filled buffer.
        unsafe { slice::from_raw_parts_mut(self.start, self.len) }
    }
}
