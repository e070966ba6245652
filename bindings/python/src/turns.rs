//! Access to values that only one call at a time may use, such as the reader of an open file.

use laneway_bindings_core::fork::{TurnTicket, Turns};
use pyo3::prelude::*;

use crate::error;

/// Joins the queue for a value. The interpreter's lock must be held.
///
/// # Errors
/// Fails if the value is closed, or in a forked child if a call was using the value at the time of the `fork`.
pub(crate) fn line<T>(turns: &Turns<T>, _py: Python<'_>) -> PyResult<TurnTicket<T>> {
    turns.line().ok_or_else(|| {
        error::closed("this object is closed, or another call was using it when this process was forked")
    })
}
