//! A range of an object.

use std::ops::Range;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::bytes::Bytes;
use crate::call::Call;
use crate::store::ObjectStore;

#[pymethods]
impl ObjectStore {
    /// Reads bytes from `start` on, up to `end` or so many as `length` says.
    #[pyo3(signature = (path, *, start, end = None, length = None))]
    fn get_range(
        &self,
        py: Python<'_>,
        path: &str,
        start: u64,
        end: Option<u64>,
        length: Option<u64>,
    ) -> PyResult<Py<PyAny>> {
        get_range(self, path, between(start, end, length)?).wait(py)
    }

    /// As `get_range`, to be awaited.
    #[pyo3(signature = (path, *, start, end = None, length = None))]
    fn get_range_async<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        start: u64,
        end: Option<u64>,
        length: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        get_range(self, path, between(start, end, length)?).awaited(py)
    }
}

fn get_range(store: &ObjectStore, path: &str, range: Range<u64>) -> Call {
    let call = store.bucket.get_ranges(path, [range]).into_future();
    Call::new(store.bucket.client(), call, |py, ranges| {
        let bytes = ranges.into_iter().next().unwrap_or_default();
        Ok(Bytes(bytes).into_pyobject(py)?.into_any().unbind())
    })
}

/// A range by its end or its length.
///
/// # Errors
/// Where neither is given, or both are; for a range that no number holds.
pub(super) fn between(start: u64, end: Option<u64>, length: Option<u64>) -> PyResult<Range<u64>> {
    match (end, length) {
        (Some(end), None) => Ok(start..end),
        (None, Some(length)) => match start.checked_add(length) {
            Some(end) => Ok(start..end),
            None => Err(PyValueError::new_err("the range is too long")),
        },
        _ => Err(PyTypeError::new_err("a range has either an end or a length")),
    }
}
