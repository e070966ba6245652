//! Bytes that the engine has received. Python reads them from the engine's memory, without a copy.

#![expect(unsafe_code, reason = "the buffer protocol is C's")]

use std::ffi::{c_int, c_void};
use std::ptr;

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyBufferError, PyIndexError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PySlice, PyTuple, PyType};

use crate::buffer;

/// Received bytes. They support the buffer protocol, so `memoryview`, numpy, pyarrow and `bytes()` accept
/// them.
#[pyclass(frozen, sequence, module = "laneway")]
pub(crate) struct Bytes(pub(crate) ::bytes::Bytes);

#[pymethods]
impl Bytes {
    #[new]
    #[pyo3(signature = (buffer = None, /))]
    fn new(buffer: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(buffer) = buffer else { return Ok(Self(::bytes::Bytes::new())) };
        match buffer::lent(buffer)? {
            Some(bytes) => Ok(Self(bytes)),
            None => Err(PyTypeError::new_err("a bytes-like object is required")),
        }
    }

    /// Returns `bytes`, so that `isinstance(x, bytes)` is true. Many libraries accept no other buffers.
    /// `type()` still returns `Bytes`.
    #[getter]
    fn __class__<'py>(&self, py: Python<'py>) -> Bound<'py, PyType> {
        py.get_type::<PyBytes>()
    }

    /// Returns a copy as Python's own `bytes`.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0)
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        self.to_bytes(py)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = index.cast::<PySlice>() {
            let range = slice.indices(self.0.len().try_into()?)?;
            if range.step == 1 {
                let start = usize::try_from(range.start)?;
                let bytes = self.0.slice(start..start + range.slicelength);
                return Ok(Self(bytes).into_pyobject(py)?.into_any());
            }
            // A slice with a step is rare, so let Python's own `bytes` compute it.
            let own = self.to_bytes(py).get_item(slice)?;
            let bytes = buffer::lent(&own)?.unwrap_or_default();
            return Ok(Self(bytes).into_pyobject(py)?.into_any());
        }
        let index: isize = index.extract()?;
        let place =
            if index < 0 { self.0.len().checked_add_signed(index) } else { usize::try_from(index).ok() };
        match place.and_then(|place| self.0.get(place)) {
            Some(byte) => Ok(byte.into_pyobject(py)?.into_any()),
            None => Err(PyIndexError::new_err("index out of range")),
        }
    }

    fn __contains__(&self, part: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.to_bytes(part.py()).contains(part)
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, how: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let answer = match (buffer::lent(other).ok().flatten(), how) {
            (Some(other), _) => how.matches(self.0.cmp(&other)),
            // An object without a buffer is never equal to bytes.
            (None, CompareOp::Eq) => false,
            (None, CompareOp::Ne) => true,
            (None, _) => return Ok(py.NotImplemented()),
        };
        Ok(answer.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __add__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let Some(other) = buffer::lent(other)? else { return Ok(py.NotImplemented()) };
        let joined = [&self.0[..], &other[..]].concat();
        Ok(Self(joined.into()).into_pyobject(py)?.into_any().unbind())
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        // This object equals Python `bytes` with the same content, so both must have the same hash.
        self.to_bytes(py).hash()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Bytes({})", self.to_bytes(py).repr()?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (Bound<'py, PyBytes>,)) {
        (slf.get_type().into_any(), (slf.get().to_bytes(slf.py()),))
    }

    /// # Safety
    /// Only Python may call it, with a view that it may fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no view to fill"));
        }
        let bytes = &slf.get().0;
        // Even an empty view needs an address that isn't null.
        let start = if bytes.is_empty() {
            ptr::NonNull::<u8>::dangling().as_ptr()
        } else {
            bytes.as_ptr().cast_mut()
        };
        let len = ffi::Py_ssize_t::try_from(bytes.len())?;
        // SAFETY: the caller passes a valid view to fill. The bytes don't move while the object lives, and the view
        // keeps it alive. They are immutable, because the view is marked read-only, and a request for a writable view
        // fails.
        let filled =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start.cast::<c_void>(), len, 1, flags) };
        match filled {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}

/// Adds the methods of Python's own `bytes`, which are called on a copy. If a method returns `bytes`, it returns a
/// `Bytes` here.
macro_rules! methods_of_bytes {
    ($($method:ident),+) => {
        #[pymethods]
        impl Bytes {
            $(
                #[pyo3(signature = (*arguments, **named))]
                fn $method<'py>(
                    &self,
                    arguments: &Bound<'py, PyTuple>,
                    named: Option<&Bound<'py, PyDict>>,
                ) -> PyResult<Bound<'py, PyAny>> {
                    self.as_bytes_do(stringify!($method), arguments, named)
                }
            )+
        }
    };
}

#[rustfmt::skip]
methods_of_bytes!(
    capitalize, center, count, decode, endswith, expandtabs, find, hex, index, isalnum, isalpha,
    isascii, isdigit, islower, isspace, istitle, isupper, join, ljust, lower, lstrip, partition,
    removeprefix, removesuffix, replace, rfind, rindex, rjust, rpartition, rsplit, rstrip, split,
    splitlines, startswith, strip, swapcase, title, translate, upper, zfill
);

impl Bytes {
    fn as_bytes_do<'py>(
        &self,
        method: &str,
        arguments: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = arguments.py();
        let answer = self.to_bytes(py).call_method(method, arguments, named)?;
        match answer.is_exact_instance_of::<PyBytes>() {
            true => Ok(Self(buffer::lent(&answer)?.unwrap_or_default()).into_pyobject(py)?.into_any()),
            false => Ok(answer),
        }
    }
}
