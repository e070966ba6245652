//! The program `laneway`, which the Python package contains and starts by its entry point.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the program with a command line, and returns its exit status.
#[pyfunction]
#[pyo3(signature = (line, /))]
pub(crate) fn program(py: Python<'_>, line: Vec<OsString>) -> u8 {
    py.detach(|| laneway_cli::run(line))
}
