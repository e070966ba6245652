//! Python objects that the engine's threads hold.
//!
//! Releasing one takes the interpreter's lock, for which those threads must not wait. So they put it on a
//! pile, which the next call that holds the lock clears.

#![expect(unsafe_code, reason = "an object is moved out of what is dropped")]

use std::mem::ManuallyDrop;

use laneway_bindings_core::fork::Pile;
use pyo3::prelude::*;

/// An object that any thread may drop at any time.
pub(crate) struct Kept(ManuallyDrop<Py<PyAny>>);

static PILE: Pile<Py<PyAny>> = Pile::new();

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
        // SAFETY: nothing uses it after its drop.
        PILE.lay_down(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

/// Releases the objects on the pile.
pub(crate) fn release(_py: Python<'_>) {
    drop(PILE.take());
}
