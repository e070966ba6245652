//! Memory of Java's direct buffers, for as long as a call takes.

#![expect(unsafe_code, reason = "Java's memory is known by address and length")]

use std::slice;
use std::sync::Arc;

use crate::call::Ending;

/// A part of a direct buffer that was lent to a call. Java keeps the buffer, and hands it to nobody else, until the call's end is told,
/// which can't be before this is dropped: it has a share in the end.
pub(crate) struct Lent {
    start: *mut u8,
    len: usize,
    _ending: Arc<Ending>,
}

// SAFETY: the memory is of no thread, and stays where it is for as long as this lives (see `new`).
unsafe impl Send for Lent {}
// SAFETY: shared, it is only read.
unsafe impl Sync for Lent {}

impl Lent {
    /// # Safety
    /// From `start` on there have to be `len` bytes of a direct buffer, which `dev.laneway.Call` keeps from being collected until it
    /// hears of the call's end.
    pub(crate) unsafe fn new(start: *mut u8, len: usize, ending: &Arc<Ending>) -> Self {
        Self { start, len, _ending: Arc::clone(ending) }
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the bytes are there for as long as this lives, by `new`. A program that changes them meanwhile sends others than it
        // means, which a checksum of what was read before tells the store.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

impl AsMut<[u8]> for Lent {
    fn as_mut(&mut self) -> &mut [u8] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: as above; and whoever has this for writing is the only one here that uses the bytes, since each call is lent a part of
        // its own. Threads of Java's that look at the buffer meanwhile see what a program sees of any buffer that is read into.
        unsafe { slice::from_raw_parts_mut(self.start, self.len) }
    }
}
