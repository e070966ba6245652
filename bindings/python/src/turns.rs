//! Values that calls use one after the other, taken with the interpreter's lock held.

use laneway_bindings_core::fork::{Line, Turns};
use pyo3::prelude::*;

use crate::error;

/// Joins the queue for a value.
///
/// # Errors
/// In a child of a `fork` whose parent had a call under way.
pub(crate) fn line<T>(turns: &Turns<T>, _py: Python<'_>) -> PyResult<Line<T>> {
    turns.line().ok_or_else(|| error::closed("it is closed, or was being used when this process was forked"))
}
