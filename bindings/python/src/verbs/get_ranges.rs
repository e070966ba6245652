//! Reads several ranges of an object.

use std::ops::Range;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::get_range::between;
use crate::bytes::Bytes;
use crate::call::LibraryCall;
use crate::store::ObjectStore;
use crate::value::{KeyArgument, NumberArgument};

#[pymethods]
impl ObjectStore {
    /// Reads several ranges of an object, which may be in any order. Laneway joins neighbouring ranges into one request
    /// if that is faster. `coalesce` is obstore's largest gap between joined ranges. It has no effect, because the engine
    /// chooses the gap.
    #[pyo3(signature = (path, *, starts, ends = None, lengths = None, coalesce = None))]
    fn get_ranges(
        &self,
        py: Python<'_>,
        path: KeyArgument,
        starts: Vec<NumberArgument>,
        ends: Option<Vec<NumberArgument>>,
        lengths: Option<Vec<NumberArgument>>,
        coalesce: Option<NumberArgument>,
    ) -> PyResult<Py<PyAny>> {
        let _ = coalesce;
        get_ranges(self, &path, ranges(starts, ends, lengths)?).wait(py)
    }

    /// The awaitable form of `get_ranges`.
    #[pyo3(signature = (path, *, starts, ends = None, lengths = None, coalesce = None))]
    fn get_ranges_async<'py>(
        &self,
        py: Python<'py>,
        path: KeyArgument,
        starts: Vec<NumberArgument>,
        ends: Option<Vec<NumberArgument>>,
        lengths: Option<Vec<NumberArgument>>,
        coalesce: Option<NumberArgument>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = coalesce;
        get_ranges(self, &path, ranges(starts, ends, lengths)?).awaited(py)
    }
}

fn get_ranges(store: &ObjectStore, path: &str, ranges: Vec<Range<u64>>) -> LibraryCall {
    let call = store.bucket.get_ranges(path, ranges).into_future();
    LibraryCall::new(store.bucket.client(), call, |py, ranges| {
        let ranges: Vec<Bytes> = ranges.into_iter().map(Bytes).collect();
        Ok(ranges.into_pyobject(py)?.into_any().unbind())
    })
}

fn ranges(
    starts: Vec<NumberArgument>,
    ends: Option<Vec<NumberArgument>>,
    lengths: Option<Vec<NumberArgument>>,
) -> PyResult<Vec<Range<u64>>> {
    let is_end = ends.is_some();
    let (Some(others), false) = (ends.or(lengths.clone()), is_end && lengths.is_some()) else {
        return Err(PyTypeError::new_err("give either ends or lengths"));
    };
    if starts.len() != others.len() {
        let message = format!(
            "{} starts and {} {}: give one for each start",
            starts.len(),
            others.len(),
            if is_end { "ends" } else { "lengths" }
        );
        return Err(PyValueError::new_err(message));
    }
    let both = starts.into_iter().zip(others);
    both.map(|(NumberArgument(start), NumberArgument(other))| match is_end {
        true => between(start, Some(other), None),
        false => between(start, None, Some(other)),
    })
    .collect()
}
