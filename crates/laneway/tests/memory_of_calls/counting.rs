//! The system's allocator, which counts what it has given and not been given back.

#![expect(unsafe_code, reason = "an allocator is one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub(crate) struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn held() -> usize {
    HELD.load(Relaxed)
}

// SAFETY: everything is the system allocator's, which is asked as this is; `realloc` and `alloc_zeroed` are made of these.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller keeps what the system's asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}
