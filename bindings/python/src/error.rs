//! Errors of the library as exceptions, which `laneway/exceptions.py` defines.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// An error as the exception of its kind.
pub(crate) fn raised(py: Python<'_>, error: &laneway::Error) -> PyErr {
    // The name of a file that isn't there is one that isn't found.
    let kind = if error.is_not_found() { laneway::ErrorKind::NotFound } else { error.kind() };
    let details = || {
        let details = PyDict::new(py);
        details.set_item("url", error.url())?;
        details.set_item("status", error.status())?;
        details.set_item("service_code", error.service_code())?;
        details.set_item("attempts", error.attempts())?;
        details.set_item("is_retryable", error.is_retryable())?;
        made(py, (kind.name(), error.to_string(), details).into_pyobject(py)?.into_any())
    };
    details().unwrap_or_else(|error| error)
}

/// A failure of this package's own, of a kind of the library's.
pub(crate) fn own(py: Python<'_>, kind: laneway::ErrorKind, message: &str) -> PyErr {
    let arguments = (kind.name(), message, PyDict::new(py)).into_pyobject(py).map(Bound::into_any);
    arguments.and_then(|arguments| made(py, arguments)).unwrap_or_else(|error| error)
}

fn made(py: Python<'_>, arguments: Bound<'_, PyAny>) -> PyResult<PyErr> {
    static OF: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let of = OF.import(py, "laneway.exceptions", "_of")?;
    Ok(PyErr::from_value(of.call1(arguments.cast_into()?)?))
}

/// What uses a file or a stream that can't be used any more.
pub(crate) fn closed(why: &'static str) -> PyErr {
    PyValueError::new_err(why)
}

/// A call that the engine gave up by itself.
pub(crate) fn ended() -> PyErr {
    PyRuntimeError::new_err("the engine ended before the call was done")
}
