//! Errors of the library as exceptions, which `laneway/exceptions.py` defines.

use laneway_bindings_core::failure::Failure;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

/// Makes the exception of an error's kind.
pub(crate) fn raised(py: Python<'_>, error: &laneway::Error) -> PyErr {
    failed(py, &Failure::from(error))
}

/// Makes the exception of a failure's kind.
pub(crate) fn failed(py: Python<'_>, failure: &Failure) -> PyErr {
    let details = || {
        let details = PyDict::new(py);
        details.set_item("url", &failure.url)?;
        details.set_item("status", failure.status)?;
        details.set_item("service_code", &failure.service_code)?;
        details.set_item("attempts", failure.attempts)?;
        details.set_item("is_retryable", failure.is_retryable)?;
        made(py, (failure.kind.name(), &failure.message, details).into_pyobject(py)?.into_any())
    };
    details().unwrap_or_else(|error| error)
}

/// Makes the exception of this package's own failure, with one of the library's kinds.
pub(crate) fn own(py: Python<'_>, kind: laneway::ErrorKind, message: &str) -> PyErr {
    failed(py, &Failure::own(kind, message))
}

fn made(py: Python<'_>, arguments: Bound<'_, PyAny>) -> PyResult<PyErr> {
    static OF: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let of = OF.import(py, "laneway.exceptions", "_of")?;
    Ok(PyErr::from_value(of.call1(arguments.cast_into()?)?))
}

/// Makes the exception for using a closed file or stream.
pub(crate) fn closed(why: &'static str) -> PyErr {
    PyValueError::new_err(why)
}

/// Makes the exception for a method that files of a store don't support: `io.UnsupportedOperation`.
pub(crate) fn unsupported(py: Python<'_>, method: &str) -> PyErr {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match TYPE.import(py, "io", "UnsupportedOperation") {
        Ok(kind) => PyErr::from_type(kind.clone(), format!("{method}: objects of a store don't support it")),
        Err(error) => error,
    }
}

/// Makes the exception for a call that the engine abandoned.
pub(crate) fn ended() -> PyErr {
    PyRuntimeError::new_err("the engine ended before the call was done")
}
