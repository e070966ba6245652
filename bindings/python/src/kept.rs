//! Python's objects in the hands of the engine's threads.
//!
//! To give one back takes the interpreter's lock, for which those threads must not wait. So they lay it on a pile, which the next call
//! that holds the lock clears. The pile has no lock: a child of a `fork` may come while somebody lays something down.

#![expect(unsafe_code, reason = "a pile without a lock is made of raw pointers")]

use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::prelude::*;

/// An object that any thread may drop, at any time.
pub(crate) struct Kept(ManuallyDrop<Py<PyAny>>);

struct Node {
    _object: Py<PyAny>,
    next: *mut Node,
}

static PILE: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());

impl Kept {
    pub(crate) fn new(object: Py<PyAny>) -> Self {
        Self(ManuallyDrop::new(object))
    }

    pub(crate) fn object(&self, py: Python<'_>) -> Py<PyAny> {
        self.0.clone_ref(py)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: nobody uses it after its drop.
        let object = unsafe { ManuallyDrop::take(&mut self.0) };
        let node = Box::into_raw(Box::new(Node { _object: object, next: PILE.load(Ordering::Relaxed) }));
        loop {
            // SAFETY: the node is this thread's alone until the exchange below succeeds.
            let next = unsafe { (*node).next };
            match PILE.compare_exchange_weak(next, node, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                // SAFETY: as above.
                Err(now) => unsafe { (*node).next = now },
            }
        }
    }
}

/// Gives back what was laid down.
pub(crate) fn release(_py: Python<'_>) {
    if PILE.load(Ordering::Relaxed).is_null() {
        return;
    }
    let mut next = PILE.swap(ptr::null_mut(), Ordering::Acquire);
    while !next.is_null() {
        // SAFETY: each node came out of a box, and the swap has made the whole pile this thread's.
        let node = unsafe { Box::from_raw(next) };
        next = node.next;
    }
}
