//! An object that is open for reads.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future;
use laneway::{Client, Error, ObjectMeta, Reader};
use pyo3::exceptions::{PyStopAsyncIteration, PyStopIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::buffer::Into;
use crate::bytes::Bytes;
use crate::call::Call;
use crate::turns::{Held, Turns};
use crate::{error, meta};

/// How much is looked at for the end of a line at a time.
const LINE: usize = 8 << 10;

/// What both kinds of files are made of.
pub(crate) struct Readable {
    client: Client,
    meta: ObjectMeta,
    reader: Turns<Reader>,
    is_closed: AtomicBool,
}

impl Readable {
    pub(crate) fn new(client: Client, reader: Reader) -> Self {
        let meta = reader.meta().clone();
        Self { client, meta, reader: Turns::new(reader), is_closed: AtomicBool::new(false) }
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// A call that has the reader for itself.
    fn with<T: Send + 'static, F: Future<Output = Result<T, Error>> + Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(Held<Reader>) -> F + Send + 'static,
        give: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Call> {
        if self.is_closed() {
            return Err(error::closed("I/O operation on closed file"));
        }
        let line = self.reader.line(py)?;
        let done = async move {
            match line.turn().await {
                Some(reader) => work(reader).await.map(Some),
                None => Ok(None),
            }
        };
        Ok(Call::new(&self.client, done, |py, done| give(py, done.ok_or_else(error::ended)?)))
    }

    fn read(&self, py: Python<'_>, size: Option<i64>) -> PyResult<Call> {
        let most = size.and_then(|size| u64::try_from(size).ok());
        let read = move |mut reader: Held<Reader>| async move {
            let (start, size) = (reader.position(), reader.size());
            let end = most.map_or(size, |most| start.saturating_add(most).min(size));
            match end.saturating_sub(start) {
                0 => Ok(::bytes::Bytes::new()),
                // The rest is known to be wanted, and comes at once.
                _ if most.is_none() => {
                    let bytes = reader.read_range(start..end).await?;
                    reader.set_position(end);
                    Ok(bytes)
                }
                len => {
                    let mut bytes = vec![0; len as usize];
                    fill(&mut reader, &mut bytes).await?;
                    Ok(bytes.into())
                }
            }
        };
        self.with(py, read, |py, bytes| Ok(PyBytes::new(py, &bytes).into_any().unbind()))
    }

    fn readinto(&self, buffer: &Bound<'_, PyAny>) -> PyResult<Call> {
        let mut into = Into::new(buffer)?;
        let read = move |mut reader: Held<Reader>| async move {
            let left = reader.size().saturating_sub(reader.position());
            let buffer = into.slice();
            let len = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            fill(&mut reader, &mut buffer[..len]).await?;
            Ok(len)
        };
        self.with(buffer.py(), read, |py, read| Ok(read.into_pyobject(py)?.into_any().unbind()))
    }

    fn readline(
        &self,
        py: Python<'_>,
        size: Option<i64>,
        give: impl FnOnce(Python<'_>, Vec<u8>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Call> {
        let most = size.and_then(|size| usize::try_from(size).ok()).unwrap_or(usize::MAX);
        let read = move |mut reader: Held<Reader>| async move { line(&mut reader, most).await };
        self.with(py, read, give)
    }

    fn readlines(&self, py: Python<'_>, hint: Option<i64>) -> PyResult<Call> {
        let most = hint
            .filter(|hint| *hint > 0)
            .map_or(usize::MAX, |hint| usize::try_from(hint).unwrap_or(usize::MAX));
        let read = move |mut reader: Held<Reader>| async move {
            let (mut lines, mut len) = (Vec::new(), 0);
            while len < most {
                let line = line(&mut reader, usize::MAX).await?;
                if line.is_empty() {
                    break;
                }
                len += line.len();
                lines.push(line);
            }
            Ok(lines)
        };
        self.with(py, read, |py, lines| {
            let lines: Vec<_> = lines.iter().map(|line| PyBytes::new(py, line)).collect();
            Ok(lines.into_pyobject(py)?.into_any().unbind())
        })
    }

    fn seek(&self, py: Python<'_>, offset: i64, whence: i32) -> PyResult<Call> {
        let sought = move |mut reader: Held<Reader>| {
            let from = match whence {
                0 => 0,
                1 => reader.position(),
                _ => reader.size(),
            };
            let place = from.checked_add_signed(offset);
            if let Some(place) = place {
                reader.set_position(place);
            }
            future::ok(place)
        };
        if !(0..=2).contains(&whence) {
            return Err(PyValueError::new_err(format!("invalid whence ({whence}, should be 0, 1 or 2)")));
        }
        self.with(py, sought, |py, place| {
            let place = place.ok_or_else(|| PyValueError::new_err("negative seek position"))?;
            Ok(place.into_pyobject(py)?.into_any().unbind())
        })
    }

    fn tell(&self, py: Python<'_>) -> PyResult<Call> {
        let place = |reader: Held<Reader>| future::ok(reader.position());
        self.with(py, place, |py, place| Ok(place.into_pyobject(py)?.into_any().unbind()))
    }

    fn read_ranges(&self, py: Python<'_>, starts: Vec<u64>, ends: Vec<u64>) -> PyResult<Call> {
        if starts.len() != ends.len() {
            return Err(PyValueError::new_err(format!("{} starts and {} ends", starts.len(), ends.len())));
        }
        let ranges: Vec<_> = starts.into_iter().zip(ends).map(|(start, end)| start..end).collect();
        let read = move |reader: Held<Reader>| reader.read_ranges(ranges);
        self.with(py, read, |py, ranges| {
            let ranges: Vec<Bytes> = ranges.into_iter().map(Bytes).collect();
            Ok(ranges.into_pyobject(py)?.into_any().unbind())
        })
    }
}

/// A line with its end, or the last one without; at most so many bytes.
async fn line(reader: &mut Reader, most: usize) -> Result<Vec<u8>, Error> {
    let mut line = Vec::new();
    while line.len() < most {
        let at = reader.position();
        let chunk = reader.chunk(LINE.min(most - line.len())).await?;
        match chunk.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                line.extend_from_slice(&chunk[..=end]);
                // What was read beyond is still at hand.
                reader.set_position(at + end as u64 + 1);
                break;
            }
            None if chunk.is_empty() => break,
            None => line.extend_from_slice(&chunk),
        }
    }
    Ok(line)
}

async fn fill(reader: &mut Reader, buffer: &mut [u8]) -> Result<(), Error> {
    let mut at = 0;
    while at < buffer.len() {
        let chunk = reader.chunk(buffer.len() - at).await?;
        if chunk.is_empty() {
            break;
        }
        buffer[at..at + chunk.len()].copy_from_slice(&chunk);
        at += chunk.len();
    }
    Ok(())
}

/// An object as a file.
#[pyclass(frozen, module = "laneway")]
pub(crate) struct ReadableFile(pub(crate) Readable);

/// An object as a file whose reads are awaited.
#[pyclass(frozen, module = "laneway")]
pub(crate) struct AsyncReadableFile(pub(crate) Readable);

/// The methods of both, which differ in how the call is waited for.
macro_rules! methods {
    ($file:ident, $answer:ident) => {
        #[pymethods]
        impl $file {
            /// The next `size` bytes, fewer at the end; all that are left where no size is given.
            #[pyo3(signature = (size = None, /))]
            fn read<'py>(&self, py: Python<'py>, size: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
                self.0.read(py, size)?.$answer(py)
            }

            /// All bytes that are left.
            #[pyo3(signature = ())]
            fn readall<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                self.0.read(py, None)?.$answer(py)
            }

            /// Fills a buffer of the caller's, and says with how many bytes: fewer than there is room for at the end.
            #[pyo3(signature = (buffer, /))]
            fn readinto<'py>(
                &self,
                py: Python<'py>,
                buffer: &Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                self.0.readinto(buffer)?.$answer(py)
            }

            /// The next line, with its end.
            #[pyo3(signature = (size = None, /))]
            fn readline<'py>(&self, py: Python<'py>, size: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
                let line =
                    self.0.readline(py, size, |py, line| Ok(PyBytes::new(py, &line).into_any().unbind()));
                line?.$answer(py)
            }

            /// The lines that are left, until they are `hint` bytes.
            #[pyo3(signature = (hint = None, /))]
            fn readlines<'py>(&self, py: Python<'py>, hint: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
                self.0.readlines(py, hint)?.$answer(py)
            }

            /// Goes on elsewhere, and says where.
            #[pyo3(signature = (offset, whence = 0, /))]
            fn seek<'py>(&self, py: Python<'py>, offset: i64, whence: i32) -> PyResult<Bound<'py, PyAny>> {
                self.0.seek(py, offset, whence)?.$answer(py)
            }

            /// Where reading goes on.
            #[pyo3(signature = ())]
            fn tell<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                self.0.tell(py)?.$answer(py)
            }

            /// Ranges of the object, by as few requests as pay; the place where reading goes on stays.
            #[pyo3(signature = (*, starts, ends))]
            fn read_ranges<'py>(
                &self,
                py: Python<'py>,
                starts: Vec<u64>,
                ends: Vec<u64>,
            ) -> PyResult<Bound<'py, PyAny>> {
                self.0.read_ranges(py, starts, ends)?.$answer(py)
            }

            /// What the store told of the object when it was opened.
            #[getter]
            fn meta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                meta::described(py, &self.0.meta)
            }

            /// Its size in bytes.
            #[getter]
            fn size(&self) -> u64 {
                self.0.meta.size
            }

            /// Whether it was closed.
            #[getter]
            fn closed(&self) -> bool {
                self.0.is_closed()
            }

            /// Nothing is read from it any more.
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

#[pymethods]
impl ReadableFile {
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
