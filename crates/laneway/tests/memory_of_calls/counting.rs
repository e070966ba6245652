//! The system's allocator, which counts the bytes that are allocated and not freed.

#![expect(unsafe_code, reason = "an allocator is one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub(crate) struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn held() -> usize {
    HELD.load(Relaxed)
}

// SAFETY: each call goes to the system's allocator with the same arguments. `realloc` and `alloc_zeroed` are built on
// these.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller upholds the system allocator's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}
