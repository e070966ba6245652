//! Python buffers that the engine reads or writes directly, without a copy.

#![expect(unsafe_code, reason = "Python's buffers are raw memory")]

use std::slice;

use bytes::Bytes;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::kept::DroppableObject;

/// Writable buffers up to this size are copied. Without a copy, the engine may hold the buffer even after the call has
/// ended. Until the engine releases it, a `bytearray` can't be resized, and an `mmap` can't be closed.
const COPIED_MAX: usize = 1 << 20;

/// The memory of a Python object. The object is kept alive, and its buffer is exported, so that the memory doesn't
/// move.
struct BorrowedBuffer {
    start: *const u8,
    len: usize,
    _object: DroppableObject,
}

// SAFETY: the memory is only read, and the pointer is valid for as long as `_object` is kept.
unsafe impl Send for BorrowedBuffer {}
// SAFETY: as above.
unsafe impl Sync for BorrowedBuffer {}

impl AsRef<[u8]> for BorrowedBuffer {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the object is alive, its buffer is exported or immutable, and `len` was the buffer's length. The
        // package's README forbids programs to write to the buffer meanwhile. If a program does, the store refuses the
        // bytes, because their checksum is wrong.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

/// Returns the bytes of an object that supports the buffer protocol, or `None` if it doesn't.
///
/// # Errors
/// Fails if the buffer isn't contiguous.
pub(crate) fn lent(object: &Bound<'_, PyAny>) -> PyResult<Option<Bytes>> {
    if let Ok(bytes) = object.cast::<crate::bytes::Bytes>() {
        return Ok(Some(bytes.get().0.clone()));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        let (start, len) = (bytes.as_bytes().as_ptr(), bytes.as_bytes().len());
        let lent = BorrowedBuffer { start, len, _object: DroppableObject::new(object.clone().unbind()) };
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
    let lent = BorrowedBuffer { start, len, _object: DroppableObject::new(view.into_any().unbind()) };
    if !buffer.readonly() && len <= COPIED_MAX {
        return Ok(Some(Bytes::copy_from_slice(lent.as_ref())));
    }
    Ok(Some(Bytes::from_owner(lent)))
}

/// A buffer of the caller, into which the engine writes.
pub(crate) struct WritableBuffer {
    start: *mut u8,
    len: usize,
    _object: DroppableObject,
}

// SAFETY: only the owner of this value writes to the memory from Rust, and it may do so on any thread.
unsafe impl Send for WritableBuffer {}

impl WritableBuffer {
    /// # Errors
    /// Fails if the object has no buffer, or one that is read-only or not contiguous.
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
        Ok(Self { start, len, _object: DroppableObject::new(view.into_any().unbind()) })
    }

    /// Keeps only the first `len` bytes of the buffer.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    pub(crate) fn slice(&mut self) -> &mut [u8] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: the export keeps the memory at its address and length. Other Python threads may read it meanwhile, as
        // they may with any call that fills a buffer and releases the interpreter's lock.
        unsafe { slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl AsMut<[u8]> for WritableBuffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self.slice()
    }
}
