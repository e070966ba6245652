//! Converts errors of the library to exceptions, whose classes are in `laneway/exceptions.py`.

use laneway_bindings_core::failure::Failure;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

/// Creates the exception for an error.
pub(crate) fn raised(py: Python<'_>, error: &laneway::Error) -> PyErr {
    failed(py, &Failure::from(error))
}

/// Creates the exception for a failure.
pub(crate) fn failed(py: Python<'_>, failure: &Failure) -> PyErr {
    let details = || {
        let details = PyDict::new(py);
        details.set_item("url", &failure.url)?;
        details.set_item("status", failure.status)?;
        details.set_item("service_code", &failure.service_code)?;
        details.set_item("attempts", failure.attempts)?;
        details.set_item("is_retryable", failure.is_retryable)?;
        details.set_item("errno", failure.system_code)?;
        made(py, (failure.kind.name(), &failure.message, details).into_pyobject(py)?.into_any())
    };
    details().unwrap_or_else(|error| error)
}

/// Creates the exception for a failure that this package itself detects. `kind` is one of the library's kinds of
/// errors.
pub(crate) fn own(py: Python<'_>, kind: laneway::ErrorKind, message: &str) -> PyErr {
    failed(py, &Failure::own(kind, message))
}

fn made(py: Python<'_>, arguments: Bound<'_, PyAny>) -> PyResult<PyErr> {
    static OF: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let of = OF.import(py, "laneway.exceptions", "_of")?;
    Ok(PyErr::from_value(of.call1(arguments.cast_into()?)?))
}

/// Returns a message of the library, with the program's options replaced by this package's.
pub(crate) fn in_python<'py>(py: Python<'py>, message: &str) -> PyResult<Bound<'py, PyAny>> {
    static IN_PYTHON: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    IN_PYTHON.import(py, "laneway.exceptions", "in_python")?.call1((message,))
}

/// Creates the exception for using a closed file or stream.
pub(crate) fn closed(why: &'static str) -> PyErr {
    PyValueError::new_err(why)
}

/// Creates the exception for a method of Python's files that objects don't support: `io.UnsupportedOperation`.
pub(crate) fn unsupported(py: Python<'_>, method: &str) -> PyErr {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match TYPE.import(py, "io", "UnsupportedOperation") {
        Ok(kind) => PyErr::from_type(kind.clone(), format!("{method}: objects of a store don't support it")),
        Err(error) => error,
    }
}

/// Creates the exception for a call that was lost, because the engine ended.
pub(crate) fn ended() -> PyErr {
    PyRuntimeError::new_err("the engine ended before the call was done")
}
