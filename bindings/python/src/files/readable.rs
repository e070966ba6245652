//! Objects that are open for reading, as files.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future;
use laneway::{Client, Error, ObjectMeta, Reader};
use laneway_bindings_core::fork::{TurnGuard, Turns};
use pyo3::exceptions::{PyOSError, PyStopAsyncIteration, PyStopIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::FetchedRanges;
use crate::buffer::WritableBuffer;
use crate::bytes::Bytes;
use crate::call::LibraryCall;
use crate::value::NumberArgument;
use crate::{call, error, meta};

/// The number of bytes that are read and searched at a time to find the end of a line.
const LINE: usize = 8 << 10;

/// The part that `ReadableFile` and `AsyncReadableFile` share.
///
/// A read begins at the file's position, and moves this position before it waits for the bytes. So threads such as
/// DuckDB's, which keep the interpreter's lock between a seek and a read, can share a file. Each thread then gets the
/// bytes at its own position, even if another thread's read takes long.
pub(crate) struct Readable {
    client: Client,
    meta: ObjectMeta,
    /// The file's size, which is the object's size unless the caller chose another one.
    size: u64,
    position: Arc<AtomicU64>,
    /// The reader that reads ahead. One read at a time uses it.
    reader: Turns<Reader>,
    /// A reader for reads that come while `reader` is in use. It is locked only while the interpreter's lock is held,
    /// so no thread holds it when the process forks.
    beside: Mutex<Reader>,
    is_closed: AtomicBool,
}

/// The range that a read has reserved by moving the file's position.
struct ReservedRange {
    bytes: Range<u64>,
    position: Arc<AtomicU64>,
    is_read: bool,
}

impl ReservedRange {
    /// Waits for the read and returns its result. If the read fails or is dropped, the file's position moves back.
    async fn unless_lost<T>(mut self, read: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let done = read.await;
        self.is_read = done.is_ok();
        done
    }
}

/// Moves the position back if the read failed or was abandoned, unless the position was changed again meanwhile.
impl Drop for ReservedRange {
    fn drop(&mut self) {
        if !self.is_read {
            let Range { start, end } = self.bytes;
            let _ = self.position.compare_exchange(end, start, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

impl Readable {
    pub(crate) fn new(client: Client, reader: Reader, size: Option<u64>) -> Self {
        let (meta, beside) = (reader.meta().clone(), Mutex::new(reader.again()));
        let size = size.unwrap_or(meta.size);
        let (position, is_closed) = (Arc::default(), AtomicBool::new(false));
        Self { client, meta, size, position, reader: Turns::new(reader), beside, is_closed }
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// # Errors
    /// Fails if the file is closed.
    fn check_open(&self) -> PyResult<()> {
        match self.is_closed() {
            true => Err(error::closed("I/O operation on closed file")),
            false => Ok(()),
        }
    }

    /// # Errors
    /// Fails if the range ends after the object does, because the caller chose too large a size for the file.
    fn check_range(&self, range: &Range<u64>) -> PyResult<()> {
        let Self { meta: ObjectMeta { size, id, .. }, .. } = self;
        match range.end.min(self.size) > *size {
            true => Err(PyOSError::new_err(format!(
                "{id}: the range {}..{} reaches beyond the object's {size} bytes",
                range.start, range.end
            ))),
            false => Ok(()),
        }
    }

    fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    fn beside(&self, _py: Python<'_>) -> MutexGuard<'_, Reader> {
        self.beside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a call that is done, with a position as its result.
    fn known(&self, place: u64) -> LibraryCall {
        LibraryCall::new(&self.client, future::ok(place), |py, place| {
            Ok(place.into_pyobject(py)?.into_any().unbind())
        })
    }

    /// Reserves the next bytes for a read, up to `most` bytes. The interpreter's lock is held, so no other thread
    /// reserves the same bytes.
    fn take(&self, _py: Python<'_>, most: u64) -> ReservedRange {
        let start = self.position();
        let end = start.saturating_add(most).min(self.size).max(start);
        self.position.store(end, Ordering::Relaxed);
        ReservedRange { bytes: start..end, position: Arc::clone(&self.position), is_read: false }
    }

    /// Returns a call that uses the reader alone, at the file's position. `work` reads, and `give` converts its
    /// result.
    fn with<T: Send + 'static, F: Future<Output = Result<(T, TurnGuard<Reader>), Error>> + Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(TurnGuard<Reader>) -> F + Send + 'static,
        give: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<LibraryCall> {
        self.check_open()?;
        let (line, position) = (call::turn(&self.reader, py)?, Arc::clone(&self.position));
        let done = async move {
            let Some(mut reader) = line.turn().await else { return Ok(None) };
            let start = position.load(Ordering::Relaxed);
            reader.set_position(start);
            let (done, reader) = work(reader).await?;
            let end = reader.position();
            // Don't move the position if another thread has changed it meanwhile.
            let _ = position.compare_exchange(start, end, Ordering::Relaxed, Ordering::Relaxed);
            Ok(Some(done))
        };
        Ok(LibraryCall::new(&self.client, done, |py, done| give(py, done.ok_or_else(error::ended)?)))
    }

    fn read(&self, py: Python<'_>, size: Option<i64>) -> PyResult<LibraryCall> {
        self.check_open()?;
        let most = size.and_then(|size| u64::try_from(size).ok());
        let taken = self.take(py, most.unwrap_or(u64::MAX));
        let read = taken.bytes.clone();
        let read = taken.unless_lost(self.bytes(py, read, most.is_none())?);
        Ok(LibraryCall::new(&self.client, read, |py, bytes| Ok(PyBytes::new(py, &bytes).into_any().unbind())))
    }

    /// Reads from `start` on. The file's own position doesn't move.
    fn read_at(&self, py: Python<'_>, start: u64, size: u64) -> PyResult<LibraryCall> {
        self.check_open()?;
        let end = start.saturating_add(size).min(self.size).max(start);
        let read = self.bytes(py, start..end, false)?;
        Ok(LibraryCall::new(&self.client, read, |py, bytes| Ok(PyBytes::new(py, &bytes).into_any().unbind())))
    }

    /// Reads bytes. Uses `reader`, which reads ahead, unless another read is using it. For the rest of a file
    /// (`is_rest`), uses a request of its own, because no bytes would be left to read ahead.
    fn bytes(
        &self,
        py: Python<'_>,
        range: Range<u64>,
        is_rest: bool,
    ) -> PyResult<impl Future<Output = Result<::bytes::Bytes, Error>> + Send + use<>> {
        self.check_range(&range)?;
        let line = call::turn(&self.reader, py)?;
        let beside = self.beside(py).read_range(range.clone());
        Ok(async move {
            if range.is_empty() {
                return Ok(::bytes::Bytes::new());
            }
            match line.at_once().filter(|_| !is_rest) {
                Some(mut reader) => {
                    reader.set_position(range.start);
                    let (_, bytes) = reader.next_into(vec![0; (range.end - range.start) as usize]).await?;
                    Ok(bytes.into())
                }
                None => beside.await,
            }
        })
    }

    fn readinto(&self, buffer: &Bound<'_, PyAny>) -> PyResult<LibraryCall> {
        self.check_open()?;
        let (py, mut into) = (buffer.py(), WritableBuffer::new(buffer)?);
        let line = call::turn(&self.reader, py)?;
        let taken = self.take(py, into.slice().len() as u64);
        let range = taken.bytes.clone();
        self.check_range(&range)?;
        let beside = self.beside(py).read_range(range.clone());
        let read = async move {
            let len = (range.end - range.start) as usize;
            into.truncate(len);
            match line.at_once() {
                _ if range.is_empty() => {}
                Some(mut reader) => {
                    reader.set_position(range.start);
                    reader.next_into(into).await?;
                }
                None => into.slice().copy_from_slice(&beside.await?),
            }
            Ok(len)
        };
        let read = taken.unless_lost(read);
        Ok(LibraryCall::new(&self.client, read, |py, read| Ok(read.into_pyobject(py)?.into_any().unbind())))
    }

    fn readline(
        &self,
        py: Python<'_>,
        size: Option<i64>,
        give: impl FnOnce(Python<'_>, Vec<u8>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<LibraryCall> {
        let most = size.and_then(|size| usize::try_from(size).ok()).unwrap_or(usize::MAX);
        let end = self.size;
        let read = move |mut reader: TurnGuard<Reader>| async move {
            let most = most.min(end.saturating_sub(reader.position()) as usize);
            Ok((line(&mut reader, most).await?, reader))
        };
        self.with(py, read, give)
    }

    fn readlines(&self, py: Python<'_>, hint: Option<i64>) -> PyResult<LibraryCall> {
        let most = hint
            .filter(|hint| *hint > 0)
            .map_or(usize::MAX, |hint| usize::try_from(hint).unwrap_or(usize::MAX));
        let end = self.size;
        let read = move |mut reader: TurnGuard<Reader>| async move {
            let (mut lines, mut len) = (Vec::new(), 0);
            while len < most {
                let most = end.saturating_sub(reader.position()) as usize;
                let line = line(&mut reader, most).await?;
                if line.is_empty() {
                    break;
                }
                len += line.len();
                lines.push(line);
            }
            Ok((lines, reader))
        };
        self.with(py, read, |py, lines| {
            let lines: Vec<_> = lines.iter().map(|line| PyBytes::new(py, line)).collect();
            Ok(lines.into_pyobject(py)?.into_any().unbind())
        })
    }

    fn seek(&self, offset: i64, whence: i32) -> PyResult<LibraryCall> {
        self.check_open()?;
        let from = match whence {
            0 => 0,
            1 => self.position(),
            2 => self.size,
            _ => {
                let message = format!("invalid whence ({whence}, should be 0, 1 or 2)");
                return Err(PyValueError::new_err(message));
            }
        };
        let place = from.checked_add_signed(offset);
        let place = place.ok_or_else(|| PyValueError::new_err("negative seek position"))?;
        self.position.store(place, Ordering::Relaxed);
        Ok(self.known(place))
    }

    fn tell(&self) -> PyResult<LibraryCall> {
        self.check_open()?;
        Ok(self.known(self.position()))
    }

    /// # Errors
    /// Fails if the lengths of the lists differ, or the file is closed.
    fn ranges(&self, starts: Vec<NumberArgument>, ends: Vec<NumberArgument>) -> PyResult<Vec<Range<u64>>> {
        self.check_open()?;
        match starts.len() == ends.len() {
            true => Ok(starts.into_iter().zip(ends).map(|(start, end)| start.0..end.0).collect()),
            false => Err(PyValueError::new_err(format!(
                "{} starts and {} ends: give one end for each start",
                starts.len(),
                ends.len()
            ))),
        }
    }

    fn read_ranges(
        &self,
        py: Python<'_>,
        starts: Vec<NumberArgument>,
        ends: Vec<NumberArgument>,
    ) -> PyResult<LibraryCall> {
        let read = self.beside(py).read_ranges(self.ranges(starts, ends)?);
        Ok(LibraryCall::new(&self.client, read, |py, ranges| {
            let ranges: Vec<Bytes> = ranges.into_iter().map(Bytes).collect();
            Ok(ranges.into_pyobject(py)?.into_any().unbind())
        }))
    }
}

/// Reads a line with its newline, or the last line without one. Reads at most `most` bytes.
async fn line(reader: &mut Reader, most: usize) -> Result<Vec<u8>, Error> {
    let mut line = Vec::new();
    while line.len() < most {
        let at = reader.position();
        let chunk = reader.chunk(LINE.min(most - line.len())).await?;
        match chunk.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                line.extend_from_slice(&chunk[..=end]);
                // The bytes after the newline stay in the reader's buffer, so the next read gets them from there.
                reader.set_position(at + end as u64 + 1);
                break;
            }
            None if chunk.is_empty() => break,
            None => line.extend_from_slice(&chunk),
        }
    }
    Ok(line)
}

/// An object as a file for reading.
#[pyclass(frozen, module = "laneway")]
pub(crate) struct ReadableFile(pub(crate) Readable);

/// An object as a file for reading. Its reads are awaited.
#[pyclass(frozen, module = "laneway")]
pub(crate) struct AsyncReadableFile(pub(crate) Readable);

/// Defines the methods of both classes, which only differ in how they wait for the call.
macro_rules! methods {
    ($file:ident, $answer:ident) => {
        #[pymethods]
        impl $file {
            /// Reads the next `size` bytes, or fewer at the end of the object. Without a size, reads all that are left.
            #[pyo3(signature = (size = None, /))]
            fn read<'py>(&self, py: Python<'py>, size: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
                self.0.read(py, size)?.$answer(py)
            }

            /// Does the same as `read`, because this file has no raw file below it.
            #[pyo3(signature = (size = None, /))]
            fn read1<'py>(&self, py: Python<'py>, size: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
                self.0.read(py, size)?.$answer(py)
            }

            /// Reads all bytes that are left.
            #[pyo3(signature = ())]
            fn readall<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                self.0.read(py, None)?.$answer(py)
            }

            /// Fills a buffer of the caller. Returns the number of bytes, which is smaller than the buffer only at the
            /// end of the object.
            #[pyo3(signature = (buffer, /))]
            fn readinto<'py>(
                &self,
                py: Python<'py>,
                buffer: &Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                self.0.readinto(buffer)?.$answer(py)
            }

            /// Reads the next line, with its newline.
            #[pyo3(signature = (size = None, /))]
            fn readline<'py>(&self, py: Python<'py>, size: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
                let line =
                    self.0.readline(py, size, |py, line| Ok(PyBytes::new(py, &line).into_any().unbind()));
                line?.$answer(py)
            }

            /// Reads lines up to the end of the object. With a `hint`, stops once the lines have this many bytes.
            #[pyo3(signature = (hint = None, /))]
            fn readlines<'py>(&self, py: Python<'py>, hint: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
                self.0.readlines(py, hint)?.$answer(py)
            }

            /// Moves to another position, and returns it.
            #[pyo3(signature = (offset, whence = 0, /))]
            fn seek<'py>(&self, py: Python<'py>, offset: i64, whence: i32) -> PyResult<Bound<'py, PyAny>> {
                self.0.seek(offset, whence)?.$answer(py)
            }

            /// Returns the position of the next read.
            #[pyo3(signature = ())]
            fn tell<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                self.0.tell()?.$answer(py)
            }

            /// Reads ranges of the object. Laneway joins ranges into one request if that is faster. The file's position
            /// doesn't move.
            #[pyo3(signature = (*, starts, ends))]
            fn read_ranges<'py>(
                &self,
                py: Python<'py>,
                starts: Vec<NumberArgument>,
                ends: Vec<NumberArgument>,
            ) -> PyResult<Bound<'py, PyAny>> {
                self.0.read_ranges(py, starts, ends)?.$answer(py)
            }

            /// Returns the object's metadata from the time when the file was opened.
            #[getter]
            fn meta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                meta::described(py, &self.0.meta)
            }

            /// Returns the object's path in the store.
            #[getter]
            fn name(&self) -> &str {
                &self.0.meta.id.key
            }

            #[getter]
            fn mode(&self) -> &'static str {
                "rb"
            }

            fn __repr__(&self) -> String {
                format!("<laneway.{} name={:?} mode='rb'>", stringify!($file), self.0.meta.id.key)
            }

            /// Returns the object's size in bytes.
            #[getter]
            fn size(&self) -> u64 {
                self.0.size
            }

            /// Returns whether the file is closed.
            #[getter]
            fn closed(&self) -> bool {
                self.0.is_closed()
            }

            /// Closes the file.
            fn close(&self) {
                self.0.close();
            }

            fn readable(&self) -> bool {
                true
            }

            fn seekable(&self) -> bool {
                true
            }

            fn writable(&self) -> bool {
                false
            }
        }
    };
}

methods!(ReadableFile, wait_if_need_be);
methods!(AsyncReadableFile, awaited);
refused!(ReadableFile: detach, fileno, truncate, write, writelines);

#[pymethods]
impl ReadableFile {
    /// Starts to read ranges in the background. `result()` of the returned object waits for them.
    #[pyo3(signature = (*, starts, ends))]
    fn fetch(
        &self,
        py: Python<'_>,
        starts: Vec<NumberArgument>,
        ends: Vec<NumberArgument>,
    ) -> PyResult<FetchedRanges> {
        FetchedRanges::begin(py, &self.0.client, &self.0.beside(py), self.0.ranges(starts, ends)?)
    }

    /// Does the same as `readinto`.
    #[pyo3(signature = (buffer, /))]
    fn readinto1<'py>(&self, py: Python<'py>, buffer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.readinto(py, buffer)
    }

    /// Reads `size` bytes from `start` on, or fewer at the end of the object. The file's own position doesn't move.
    #[pyo3(signature = (start, size, /))]
    fn read_at<'py>(
        &self,
        py: Python<'py>,
        start: NumberArgument,
        size: NumberArgument,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.0.read_at(py, start.0, size.0)?.wait_if_need_be(py)
    }

    fn flush(&self) {}

    fn isatty(&self) -> bool {
        false
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>) {
        self.0.close();
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let next = self.0.readline(py, None, |py, line| match line.is_empty() {
            true => Err(PyStopIteration::new_err(())),
            false => Ok(PyBytes::new(py, &line).into_any().unbind()),
        });
        next?.wait_if_need_be(py)
    }
}

#[pymethods]
impl AsyncReadableFile {
    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __anext__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let next = self.0.readline(py, None, |py, line| match line.is_empty() {
            true => Err(PyStopAsyncIteration::new_err(())),
            false => Ok(PyBytes::new(py, &line).into_any().unbind()),
        });
        next?.awaited(py)
    }
}
