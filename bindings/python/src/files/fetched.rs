//! Ranges of an open file that are read in the background.

use std::ops::Range;

use laneway::{Client, Reader};
use pyo3::prelude::*;

use super::begun::Begun;
use crate::bytes::Bytes;

/// Ranges that are being read. Dropping it cancels the reads.
#[pyclass(frozen, module = "laneway")]
pub(crate) struct Fetched(Begun<Vec<::bytes::Bytes>>);

impl Fetched {
    /// # Errors
    /// Fails if the engine can't start.
    pub(super) fn begin(
        py: Python<'_>,
        client: &Client,
        reader: &Reader,
        ranges: Vec<Range<u64>>,
    ) -> PyResult<Self> {
        Begun::new(py, client, reader.read_ranges(ranges)).map(Self)
    }
}

#[pymethods]
impl Fetched {
    fn __repr__(&self) -> String {
        format!("<laneway.Fetched done={}>", self.0.is_done())
    }

    /// Waits for the ranges, and returns them. It can be called once, and only in the process that started the reads.
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.result(py, |py, ranges| {
            let ranges: Vec<Bytes> = ranges.into_iter().map(Bytes).collect();
            Ok(ranges.into_pyobject(py)?.into_any().unbind())
        })
    }
}
