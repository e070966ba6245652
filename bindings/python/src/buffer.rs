//! Buffers of Python's, lent to the engine and written to by it, without a copy.

#![expect(unsafe_code, reason = "buffers of Python's are raw memory")]

use std::slice;

use bytes::Bytes;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::kept::Kept;

/// Writable buffers up to this size are copied: it costs less than an export that outlasts the call would, of a `bytearray` that then
/// can't be resized for a moment, or of an `mmap` that can't be closed.
const COPIED_MAX: usize = 1 << 20;

/// Memory of an object that is kept alive, and exported so that it stays where it is.
struct Lent {
    start: *const u8,
    len: usize,
    _object: Kept,
}

// SAFETY: it is only read, by pointers that hold while the object is kept, on whatever thread.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the object is alive, its buffer exported or immutable, and its length was the buffer's. Who writes to a buffer that
        // is being sent breaks what the package's page asks of callers; the store then refuses the bytes by their checksum.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

/// The bytes of an object that has a buffer; `None` where it has none.
///
/// # Errors
/// For a buffer that isn't contiguous.
pub(crate) fn lent(object: &Bound<'_, PyAny>) -> PyResult<Option<Bytes>> {
    if let Ok(bytes) = object.cast::<crate::bytes::Bytes>() {
        return Ok(Some(bytes.get().0.clone()));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        let (start, len) = (bytes.as_bytes().as_ptr(), bytes.as_bytes().len());
        let lent = Lent { start, len, _object: Kept::new(object.clone().unbind()) };
        return Ok(Some(Bytes::from_owner(lent)));
    }
    let Ok(view) = PyMemoryView::from(object) else { return Ok(None) };
    let buffer = PyUntypedBuffer::get(&view)?;
    if !buffer.is_c_contiguous() {
        return Err(PyBufferError::new_err("the buffer is not contiguous"));
    }
    let (start, len) = (buffer.buf_ptr().cast_const().cast::<u8>(), buffer.len_bytes());
    if len == 0 {
        return Ok(Some(Bytes::new()));
    }
    let lent = Lent { start, len, _object: Kept::new(view.into_any().unbind()) };
    if !buffer.readonly() && len <= COPIED_MAX {
        return Ok(Some(Bytes::copy_from_slice(lent.as_ref())));
    }
    Ok(Some(Bytes::from_owner(lent)))
}

/// A buffer of the caller's that is written to.
pub(crate) struct Into {
    start: *mut u8,
    len: usize,
    _object: Kept,
}

// SAFETY: whoever has it is the only one in Rust that writes there, on whatever thread.
unsafe impl Send for Into {}

impl Into {
    /// # Errors
    /// For what has no buffer, or none that may be written to, or one that isn't contiguous.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let view = PyMemoryView::from(object)?;
        let buffer = PyUntypedBuffer::get(&view)?;
        if buffer.readonly() {
            return Err(PyTypeError::new_err("the buffer is read-only"));
        }
        if !buffer.is_c_contiguous() {
            return Err(PyBufferError::new_err("the buffer is not contiguous"));
        }
        let (start, len) = (buffer.buf_ptr().cast::<u8>(), buffer.len_bytes());
        Ok(Self { start, len, _object: Kept::new(view.into_any().unbind()) })
    }

    pub(crate) fn slice(&mut self) -> &mut [u8] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: the export keeps the memory where it is and as long as it was. Other threads of Python's may look at it meanwhile,
        // as at any buffer that a call fills with the lock released.
        unsafe { slice::from_raw_parts_mut(self.start, self.len) }
    }
}
