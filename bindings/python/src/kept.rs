//! Python objects that the engine's threads own and may drop.
//!
//! Releasing a Python object needs the interpreter's lock. The engine's threads must not wait for this lock. So they
//! put the object on a list (`PILE`). The next call from Python holds the lock, and releases all objects on this
//! list.

#![expect(unsafe_code, reason = "`drop` moves the object out of the value")]

use std::mem::ManuallyDrop;

use laneway_bindings_core::fork::Pile;
use pyo3::prelude::*;

/// An object that any thread may drop at any time.
pub(crate) struct DroppableObject(ManuallyDrop<Py<PyAny>>);

static PILE: Pile<Py<PyAny>> = Pile::new();

impl DroppableObject {
    pub(crate) fn new(object: Py<PyAny>) -> Self {
        Self(ManuallyDrop::new(object))
    }

    pub(crate) fn object(&self, py: Python<'_>) -> Py<PyAny> {
        self.0.clone_ref(py)
    }
}

impl Drop for DroppableObject {
    fn drop(&mut self) {
        // SAFETY: `drop` runs once, and nothing uses the object after it.
        PILE.lay_down(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

/// Releases all objects on the list.
pub(crate) fn release(_py: Python<'_>) {
    drop(PILE.take());
}
