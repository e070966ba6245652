//! Reads an object's bytes: all at once, as a stream, or into a buffer of the caller.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use laneway::dialect::VersionNames;
use laneway::{Client, Download, Error, ErrorKind, Get, ObjectMeta};
use laneway_bindings_core::fork::Turns;
use pyo3::exceptions::{PyStopAsyncIteration, PyStopIteration, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::get_ranges::between;
use crate::buffer::WritableBuffer;
use crate::bytes::Bytes;
use crate::call::LibraryCall;
use crate::meta::{self, version};
use crate::store::ObjectStore;
use crate::value::{KeyArgument, NumberArgument};
use crate::{call, error};

/// The default size of `stream`'s chunks.
const CHUNK: u64 = 10 << 20;

#[pymethods]
impl ObjectStore {
    /// Reads an object. The result has the object's metadata, and its methods return the bytes. With `into`, the bytes
    /// are read into that buffer, and the result is their number. Nothing else may write to the buffer meanwhile.
    #[pyo3(signature = (path, *, options = None, into = None))]
    fn get(
        &self,
        py: Python<'_>,
        path: KeyArgument,
        options: Option<&Bound<'_, PyDict>>,
        into: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        get(self, &path, options, into)?.wait(py)
    }

    /// The awaitable form of `get`.
    #[pyo3(signature = (path, *, options = None, into = None))]
    fn get_async<'py>(
        &self,
        py: Python<'py>,
        path: KeyArgument,
        options: Option<&Bound<'py, PyDict>>,
        into: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        get(self, &path, options, into)?.awaited(py)
    }
}

fn get(
    store: &ObjectStore,
    path: &str,
    options: Option<&Bound<'_, PyDict>>,
    into: Option<&Bound<'_, PyAny>>,
) -> PyResult<LibraryCall> {
    let mut call = store.bucket.get(path);
    for (name, value) in options.into_iter().flatten() {
        call = with(call, store.versions(), &name.extract::<String>()?, &value)?;
    }
    if let Some(buffer) = into {
        return Ok(read_into(store, call, WritableBuffer::new(buffer)?));
    }
    let client = store.bucket.client().clone();
    Ok(LibraryCall::new(store.bucket.client(), call.into_future(), move |py, download| {
        let (meta, range) = (download.meta().clone(), download.range());
        let body = Mutex::new(Some(download));
        let result = GetResult { client, meta, range: (range.start, range.end), body };
        Ok(result.into_pyobject(py)?.into_any().unbind())
    }))
}

/// Returns a call that reads the bytes into the caller's buffer. Its result is the number of bytes.
pub(super) fn read_into(store: &ObjectStore, call: Get, mut into: WritableBuffer) -> LibraryCall {
    let read = async move {
        let download = call.into_future().await?;
        let range = download.range();
        let (wanted, room) = (range.end - range.start, into.slice().len());
        match wanted > room as u64 {
            true => Ok(Err((wanted, room))),
            false => fill(download, into).await.map(Ok),
        }
    };
    LibraryCall::new(store.bucket.client(), read, |py, read| {
        let read = read.map_err(|(wanted, room)| too_small(wanted, room))?;
        Ok(read.into_pyobject(py)?.into_any().unbind())
    })
}

/// Reads all bytes into a buffer that is large enough. Returns their number.
async fn fill(mut download: Download, mut into: WritableBuffer) -> Result<usize, Error> {
    let mut at = 0;
    while let Some(chunk) = download.chunk().await? {
        // This can't go out of bounds. `download` returns no more bytes than its range has, and the caller has checked
        // that these fit.
        into.slice()[at..at + chunk.len()].copy_from_slice(&chunk);
        at += chunk.len();
    }
    Ok(at)
}

pub(super) fn too_small(wanted: u64, room: usize) -> PyErr {
    PyValueError::new_err(format!("{wanted} bytes don't fit into a buffer of {room}"))
}

/// Adds one of the caller's options to a call.
fn with(call: Get, names: VersionNames, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Get> {
    let py = value.py();
    if value.is_none() {
        return Ok(call);
    }
    let state = |by_generation: bool| match (names, by_generation) {
        (VersionNames::Generation, true) => version(py, names, &value.extract::<String>()?),
        (VersionNames::Generation, false) => {
            let message = format!("{name}: GCS compares generations, not ETags; use the option 'version'");
            Err(error::own(py, ErrorKind::Unsupported, &message))
        }
        (_, false) => version(py, names, &value.extract::<String>()?),
        (_, true) => {
            let message = format!(
                "{name}: on S3 and Azure, a version can't be read by its id yet; use 'if_match' with an ETag"
            );
            Err(error::own(py, ErrorKind::Unsupported, &message))
        }
    };
    match name {
        "range" => ranged(call, value),
        "version" => Ok(call.if_version(&state(true)?)),
        "if_match" => Ok(call.if_version(&state(false)?)),
        // Both GCS and S3 compare an ETag here.
        "if_none_match" => {
            Ok(call.unless_version(&version(py, VersionNames::ETagAndId, &value.extract::<String>()?)?))
        }
        "if_modified_since" => Ok(call.if_modified_since(value.extract::<SystemTime>()?)),
        "if_unmodified_since" | "head" => {
            let instead = if name == "head" { "use the verb head" } else { "use 'if_match'" };
            Err(error::own(py, ErrorKind::Unsupported, &format!("get has no option {name}: {instead}")))
        }
        _ => Err(PyValueError::new_err(format!("get has no option {name:?}"))),
    }
}

/// Adds a range to a call. The range is `(start, end)`, `[start, end]`, `{"offset": n}` or `{"suffix": n}`.
fn ranged(call: Get, value: &Bound<'_, PyAny>) -> PyResult<Get> {
    let is_pair = value.cast::<PyTuple>().is_ok() || value.cast::<PyList>().is_ok();
    if is_pair && value.len()? == 2 {
        let [NumberArgument(start), NumberArgument(end)] = value.extract()?;
        return Ok(call.range(between(start, Some(end), None)?));
    }
    let number =
        |name| value.cast::<PyDict>().ok().and_then(|range| range.get_item(name).transpose()).transpose();
    if let Some(offset) = number("offset")? {
        return Ok(call.range(offset.extract::<NumberArgument>()?.0..));
    }
    match number("suffix")? {
        Some(suffix) => Ok(call.last(suffix.extract::<NumberArgument>()?.0)),
        None => Err(PyTypeError::new_err(
            "a range must be (start, end), {'offset': first_byte} or {'suffix': number_of_bytes}",
        )),
    }
}

/// An object that is being read. Its bytes can be read only once.
#[pyclass(frozen, module = "laneway")]
pub(crate) struct GetResult {
    client: Client,
    meta: ObjectMeta,
    #[pyo3(get)]
    range: (u64, u64),
    /// This mutex is only locked while the interpreter's lock is held.
    body: Mutex<Option<Download>>,
}

#[pymethods]
impl GetResult {
    /// Returns the object's metadata, as it came with the bytes.
    #[getter]
    fn meta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        meta::described(py, &self.meta)
    }

    /// Returns those attributes of the object that came with the bytes. On GCS, the answer has no user metadata and no
    /// `Cache-Control` of the object. `head` returns the metadata.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        meta::attributes(py, &self.meta)
    }

    /// Returns all bytes. They stay in the engine's memory, without a copy.
    fn bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.whole()?.wait_if_need_be(py)
    }

    /// The awaitable form of `bytes`.
    fn bytes_async<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.whole()?.awaited(py)
    }

    /// Reads all bytes into a buffer of the caller, which must be large enough. Returns their number.
    #[pyo3(signature = (buffer, /))]
    fn readinto(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.into(buffer)?.wait(py)
    }

    /// The awaitable form of `readinto`. Nothing else may write to the buffer meanwhile.
    #[pyo3(signature = (buffer, /))]
    fn readinto_async<'py>(
        &self,
        py: Python<'py>,
        buffer: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.into(buffer)?.awaited(py)
    }

    /// Returns an iterator over the bytes as they arrive, for `for` and `async for`. All chunks but the last have at
    /// least `min_chunk_size` bytes.
    #[pyo3(signature = (min_chunk_size = NumberArgument(CHUNK)), text_signature = "($self, min_chunk_size=10485760)")]
    fn stream(&self, min_chunk_size: NumberArgument) -> PyResult<BytesStream> {
        let min_chunk_size = usize::try_from(min_chunk_size.0.max(1)).unwrap_or(usize::MAX);
        let download = Turns::new(self.take()?);
        Ok(BytesStream {
            client: self.client.clone(),
            path: self.meta.id.key.clone(),
            download,
            min_chunk_size,
        })
    }

    fn __repr__(&self) -> String {
        let (path, (start, end)) = (&self.meta.id.key, self.range);
        format!("<laneway.GetResult path={path:?} size={} range=({start}, {end})>", self.meta.size)
    }

    fn __iter__(&self) -> PyResult<BytesStream> {
        self.stream(NumberArgument(CHUNK))
    }

    fn __aiter__(&self) -> PyResult<BytesStream> {
        self.stream(NumberArgument(CHUNK))
    }
}

impl GetResult {
    fn take(&self) -> PyResult<Download> {
        let download = self.body.lock().unwrap_or_else(PoisonError::into_inner).take();
        download.ok_or_else(|| error::closed("the bytes of this result have already been read"))
    }

    fn whole(&self) -> PyResult<LibraryCall> {
        let download = self.take()?;
        Ok(LibraryCall::new(&self.client, download.bytes(), |py, bytes| {
            Ok(Bytes(bytes).into_pyobject(py)?.into_any().unbind())
        }))
    }

    fn into(&self, buffer: &Bound<'_, PyAny>) -> PyResult<LibraryCall> {
        let mut into = WritableBuffer::new(buffer)?;
        let wanted = self.range.1 - self.range.0;
        let room = into.slice().len();
        if (room as u64) < wanted {
            return Err(too_small(wanted, room));
        }
        let read = fill(self.take()?, into);
        Ok(LibraryCall::new(&self.client, read, |py, read| Ok(read.into_pyobject(py)?.into_any().unbind())))
    }
}

/// An iterator over an object's bytes as they arrive.
#[pyclass(frozen, module = "laneway")]
pub(crate) struct BytesStream {
    client: Client,
    path: String,
    download: Turns<Download>,
    min_chunk_size: usize,
}

#[pymethods]
impl BytesStream {
    fn __repr__(&self) -> String {
        format!("<laneway.BytesStream path={:?}>", self.path)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let next = self.next(py, |py, bytes| match bytes.is_empty() {
            true => Err(PyStopIteration::new_err(())),
            false => Ok(Bytes(bytes).into_pyobject(py)?.into_any().unbind()),
        });
        next?.wait_if_need_be(py)
    }

    fn __anext__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let next = self.next(py, |py, bytes| match bytes.is_empty() {
            true => Err(PyStopAsyncIteration::new_err(())),
            false => Ok(Bytes(bytes).into_pyobject(py)?.into_any().unbind()),
        });
        next?.awaited(py)
    }
}

impl BytesStream {
    fn next(
        &self,
        py: Python<'_>,
        give: impl FnOnce(Python<'_>, ::bytes::Bytes) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<LibraryCall> {
        let (line, least) = (call::turn(&self.download, py)?, self.min_chunk_size);
        let next = async move {
            let mut download = line.turn().await;
            let (mut len, mut chunks) = (0, Vec::new());
            if let Some(download) = &mut download {
                while len < least
                    && let Some(chunk) = download.chunk().await?
                {
                    len += chunk.len();
                    chunks.push(chunk);
                }
            }
            // If there is only one chunk, return it without a copy.
            Ok::<_, Error>(match chunks.len() {
                0 | 1 => chunks.pop().unwrap_or_default(),
                _ => ::bytes::Bytes::from(chunks.concat()),
            })
        };
        Ok(LibraryCall::new(&self.client, next, give))
    }
}
