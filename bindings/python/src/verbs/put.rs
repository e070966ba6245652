//! Writes an object.

use std::path::PathBuf;

use laneway::Payload;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::buffer::lent;
use crate::call::LibraryCall;
use crate::meta::{options, written};
use crate::store::ObjectStore;
use crate::value::{KeyArgument, NumberArgument};

#[pymethods]
impl ObjectStore {
    /// Writes an object from a buffer, the `pathlib.Path` of a file (not a `str`), an object with `read`, or an iterable
    /// of buffers. Then checks that the store has the sent bytes. A buffer isn't copied, so it must not change until the call is done.
    /// `use_multipart`, `chunk_size` and `max_concurrency` are obstore's arguments. They have no effect, because the
    /// engine chooses parts by the object's size and the measured path.
    #[pyo3(signature = (path, file, *, attributes = None, tags = None, mode = None, use_multipart = None, chunk_size = None, max_concurrency = None))]
    #[expect(clippy::too_many_arguments, reason = "they are keyword arguments in Python")]
    fn put(
        slf: &Bound<'_, Self>,
        path: KeyArgument,
        file: &Bound<'_, PyAny>,
        attributes: Option<&Bound<'_, PyDict>>,
        tags: Option<&Bound<'_, PyDict>>,
        mode: Option<&Bound<'_, PyAny>>,
        use_multipart: Option<bool>,
        chunk_size: Option<NumberArgument>,
        max_concurrency: Option<NumberArgument>,
    ) -> PyResult<Py<PyAny>> {
        let _ = (use_multipart, chunk_size, max_concurrency);
        match payload(file)? {
            Some(payload) => put(slf.get(), &path, payload, attributes, tags, mode)?.wait(slf.py()),
            None => Ok(streamed("put", slf, (&path, file), attributes, tags, mode)?.unbind()),
        }
    }

    /// The awaitable form of `put`. `file` may also be an async iterable.
    #[pyo3(signature = (path, file, *, attributes = None, tags = None, mode = None, use_multipart = None, chunk_size = None, max_concurrency = None))]
    #[expect(clippy::too_many_arguments, reason = "they are keyword arguments in Python")]
    fn put_async<'py>(
        slf: &Bound<'py, Self>,
        path: KeyArgument,
        file: &Bound<'py, PyAny>,
        attributes: Option<&Bound<'py, PyDict>>,
        tags: Option<&Bound<'py, PyDict>>,
        mode: Option<&Bound<'py, PyAny>>,
        use_multipart: Option<bool>,
        chunk_size: Option<NumberArgument>,
        max_concurrency: Option<NumberArgument>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = (use_multipart, chunk_size, max_concurrency);
        match payload(file)? {
            Some(payload) => put(slf.get(), &path, payload, attributes, tags, mode)?.awaited(slf.py()),
            None => streamed("put_async", slf, (&path, file), attributes, tags, mode),
        }
    }
}

fn put(
    store: &ObjectStore,
    path: &str,
    payload: Payload,
    attributes: Option<&Bound<'_, PyDict>>,
    tags: Option<&Bound<'_, PyDict>>,
    mode: Option<&Bound<'_, PyAny>>,
) -> PyResult<LibraryCall> {
    let options = options(store.versions(), attributes, tags, mode)?;
    let call = store.bucket.put(path, payload).options(options).into_future();
    Ok(LibraryCall::new(store.bucket.client(), call, |py, done| Ok(written(py, &done)?.into_any().unbind())))
}

/// Returns the content if the Rust library can read it by itself, from a buffer or a file. Otherwise returns `None`,
/// because Python has to produce the content piece by piece.
fn payload(file: &Bound<'_, PyAny>) -> PyResult<Option<Payload>> {
    if let Some(bytes) = lent(file)? {
        return Ok(Some(bytes.into()));
    }
    match file.hasattr(intern!(file.py(), "__fspath__"))? {
        true => Ok(Some(Payload::file(file.extract::<PathBuf>()?))),
        false => Ok(None),
    }
}

/// Writes an object whose content Python produces piece by piece, as `laneway/_put.py` does.
fn streamed<'py>(
    name: &str,
    store: &Bound<'py, ObjectStore>,
    (path, file): (&str, &Bound<'py, PyAny>),
    attributes: Option<&Bound<'py, PyDict>>,
    tags: Option<&Bound<'py, PyDict>>,
    mode: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let arguments = PyDict::new(store.py());
    arguments.set_item("attributes", attributes)?;
    arguments.set_item("tags", tags)?;
    arguments.set_item("mode", mode)?;
    store.py().import("laneway._put")?.call_method(name, (store, path, file), Some(&arguments))
}
