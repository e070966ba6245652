//! Reads one or several ranges of an object.

use std::ops::Range;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::get::{read_into, too_small};
use crate::buffer::WritableBuffer;
use crate::bytes::Bytes;
use crate::call::LibraryCall;
use crate::store::ObjectStore;
use crate::value::{KeyArgument, NumberArgument};

#[pymethods]
impl ObjectStore {
    /// Reads several ranges of an object, which may be in any order. Laneway joins neighbouring ranges into one request
    /// if that is faster. A range beyond the object's end returns the bytes up to the end. `coalesce` is obstore's largest
    /// gap between joined ranges. It has no effect, because the engine chooses the gap.
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

#[pymethods]
impl ObjectStore {
    /// Reads the bytes from `start` up to `end`, or `length` bytes from `start`. With `into`, the bytes are read into
    /// that buffer, and the result is their number. If neither `end` nor `length` is given, the buffer is filled.
    /// Nothing else may write to the buffer meanwhile. A range beyond the object's end returns the bytes up to the end.
    #[pyo3(signature = (path, *, start, end = None, length = None, into = None))]
    fn get_range(
        &self,
        py: Python<'_>,
        path: KeyArgument,
        start: NumberArgument,
        end: Option<NumberArgument>,
        length: Option<NumberArgument>,
        into: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        get_range(self, &path, start.0, (offset(end), offset(length)), into)?.wait(py)
    }

    /// The awaitable form of `get_range`.
    #[pyo3(signature = (path, *, start, end = None, length = None, into = None))]
    fn get_range_async<'py>(
        &self,
        py: Python<'py>,
        path: KeyArgument,
        start: NumberArgument,
        end: Option<NumberArgument>,
        length: Option<NumberArgument>,
        into: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        get_range(self, &path, start.0, (offset(end), offset(length)), into)?.awaited(py)
    }
}

fn offset(count: Option<NumberArgument>) -> Option<u64> {
    count.map(|count| count.0)
}

fn get_range(
    store: &ObjectStore,
    path: &str,
    start: u64,
    (end, length): (Option<u64>, Option<u64>),
    into: Option<&Bound<'_, PyAny>>,
) -> PyResult<LibraryCall> {
    let Some(buffer) = into else { return Ok(whole(store, path, between(start, end, length)?)) };
    let mut into = WritableBuffer::new(buffer)?;
    let room = into.slice().len();
    let range = match (end, length) {
        (None, None) => between(start, None, Some(room as u64))?,
        _ => between(start, end, length)?,
    };
    match range.end.saturating_sub(range.start) {
        // For an empty range, send no request.
        0 => Ok(LibraryCall::new(store.bucket.client(), async { Ok(()) }, |py, ()| {
            Ok(0_usize.into_pyobject(py)?.into_any().unbind())
        })),
        wanted if wanted > room as u64 => Err(too_small(wanted, room)),
        _ => Ok(read_into(store, store.bucket.get(path).range(range), into)),
    }
}

fn whole(store: &ObjectStore, path: &str, range: Range<u64>) -> LibraryCall {
    let call = store.bucket.get_ranges(path, [range]).into_future();
    LibraryCall::new(store.bucket.client(), call, |py, ranges| {
        let bytes = ranges.into_iter().next().unwrap_or_default();
        Ok(Bytes(bytes).into_pyobject(py)?.into_any().unbind())
    })
}

/// Returns the range from `start` to `end`, or of `length` bytes.
///
/// # Errors
/// Fails unless exactly one of `end` and `length` is given, or if the range overflows.
pub(super) fn between(start: u64, end: Option<u64>, length: Option<u64>) -> PyResult<Range<u64>> {
    match (end, length) {
        (Some(end), None) => Ok(start..end),
        (None, Some(length)) => match start.checked_add(length) {
            Some(end) => Ok(start..end),
            None => Err(PyValueError::new_err("the range is too long")),
        },
        _ => Err(PyTypeError::new_err("give either an end or a length")),
    }
}
