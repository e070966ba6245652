//! Objects that are being written, as files.

use std::ffi::CString;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use laneway::{Client, Error, Writer};
use laneway_bindings_core::fork::Turns;
use pyo3::exceptions::{PyResourceWarning, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::buffer::lent;
use crate::call::LibraryCall;
use crate::kept::DroppableObject;
use crate::meta::written;
use crate::{call, error};

/// The part that `WritableFile` and `AsyncWritableFile` share.
pub(crate) struct Writable {
    client: Client,
    name: String,
    /// The writer, or `None` once the object was completed or aborted.
    writer: Turns<Option<Writer>>,
    is_closed: AtomicBool,
    /// The number of bytes that were written.
    position: AtomicU64,
    /// The process that opened the file.
    process: u32,
}

impl Writable {
    pub(crate) fn new(client: Client, name: &str, writer: Writer) -> Self {
        let writer = Turns::new(Some(writer));
        let name = name.to_owned();
        let (is_closed, position) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { client, name, writer, is_closed, position, process: process::id() }
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    fn write(&self, buffer: &Bound<'_, PyAny>) -> PyResult<LibraryCall> {
        if self.is_closed() {
            return Err(error::closed("I/O operation on closed file"));
        }
        let Some(bytes) = lent(buffer)? else {
            return Err(PyTypeError::new_err("a bytes-like object is required"));
        };
        let (line, len) = (call::turn(&self.writer, buffer.py())?, bytes.len());
        self.position.fetch_add(len as u64, Ordering::Relaxed);
        let put_in = async move {
            if let Some(mut turn) = line.turn().await
                && let Some(writer) = turn.as_mut()
            {
                writer.write(&bytes).await?;
            }
            Ok::<_, Error>(len)
        };
        Ok(LibraryCall::new(&self.client, put_in, |py, len| Ok(len.into_pyobject(py)?.into_any().unbind())))
    }

    /// Completes the object. If the file is closed already, does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<LibraryCall> {
        self.is_closed.store(true, Ordering::Relaxed);
        let line = call::turn(&self.writer, py)?;
        let finished = async move {
            let writer = line.turn().await.and_then(|mut turn| turn.take());
            match writer {
                Some(writer) => writer.finish().await.map(Some),
                None => Ok(None),
            }
        };
        Ok(LibraryCall::new(&self.client, finished, |py, done| match done {
            Some(done) => Ok(written(py, &done)?.into_any().unbind()),
            None => Ok(py.None()),
        }))
    }

    /// Aborts the upload.
    fn abort(&self, py: Python<'_>) -> PyResult<LibraryCall> {
        self.is_closed.store(true, Ordering::Relaxed);
        let line = call::turn(&self.writer, py)?;
        let given_up = async move {
            let writer = line.turn().await.and_then(|mut turn| turn.take());
            if let Some(writer) = writer {
                writer.abort().await;
            }
            Ok::<_, Error>(())
        };
        Ok(LibraryCall::new(&self.client, given_up, |py, ()| Ok(py.None())))
    }
}

/// Defines the methods that never wait for the network, for both classes.
macro_rules! methods {
    ($file:ident) => {
        #[pymethods]
        impl $file {
            /// Returns whether the file was closed or aborted.
            #[getter]
            fn closed(&self) -> bool {
                self.0.is_closed()
            }

            /// Returns how many bytes were written.
            fn tell(&self) -> u64 {
                self.0.position.load(Ordering::Relaxed)
            }

            /// Returns the object's path in the store.
            #[getter]
            fn name(&self) -> &str {
                &self.0.name
            }

            #[getter]
            fn mode(&self) -> &'static str {
                "wb"
            }

            fn __repr__(&self) -> String {
                format!("<laneway.{} name={:?} mode='wb'>", stringify!($file), self.0.name)
            }

            fn readable(&self) -> bool {
                false
            }

            fn seekable(&self) -> bool {
                false
            }

            fn writable(&self) -> bool {
                true
            }
        }
    };
}

methods!(WritableFile);
methods!(AsyncWritableFile);

/// A file whose written bytes become a new object. The object becomes visible when the file is closed.
#[pyclass(frozen, module = "laneway")]
pub(crate) struct WritableFile(pub(crate) Writable);

#[pymethods]
impl WritableFile {
    /// Writes bytes, and returns their number. Waits while too many written bytes are still unsent.
    #[pyo3(signature = (buffer, /))]
    fn write<'py>(&self, buffer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.0.write(buffer)?.wait_if_need_be(buffer.py())
    }

    /// Completes the object, and checks that the store has the written bytes. Returns the object's `e_tag`, `version`
    /// and so on.
    fn close(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.close(py)?.wait(py)
    }

    /// Aborts the upload. Nothing is left in the store.
    fn abort(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.abort(py)?.wait(py)
    }

    /// Writes several buffers, one after the other.
    #[pyo3(signature = (lines, /))]
    fn writelines(&self, lines: &Bound<'_, PyAny>) -> PyResult<()> {
        for line in lines.try_iter()? {
            self.write(&line?)?;
        }
        Ok(())
    }

    /// Does nothing, because the object is visible only after `close`.
    fn flush(&self) {}

    fn isatty(&self) -> bool {
        false
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*raised))]
    fn __exit__(&self, py: Python<'_>, raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        match raised.get_item(0)?.is_none() {
            true => self.close(py)?,
            false => self.abort(py)?,
        };
        Ok(())
    }
}

impl Drop for WritableFile {
    /// Warns about a file that was neither closed nor aborted, as Python's own files do. Its object is never written.
    /// A forked child doesn't warn about its copy of a file, because its parent may still write the object.
    fn drop(&mut self) {
        if self.0.is_closed() || self.0.process != process::id() {
            return;
        }
        let text = format!(
            "unclosed file <laneway.WritableFile name={:?}>: its object was not written",
            self.0.name
        );
        let Ok(text) = CString::new(text) else { return };
        Python::try_attach(|py| {
            // The file may be dropped while an exception is raised, which a warning must not replace.
            let raised = PyErr::take(py);
            if let Err(error) = PyErr::warn(py, &py.get_type::<PyResourceWarning>(), &text, 1) {
                error.write_unraisable(py, None);
            }
            if let Some(raised) = raised {
                raised.restore(py);
            }
        });
    }
}

refused!(WritableFile: detach, fileno, read, read1, readall, readinto, readline, readlines, seek, truncate);

/// A file whose written bytes become a new object. Its writes are awaited. The object becomes visible when the file is
/// closed.
#[pyclass(frozen, module = "laneway")]
pub(crate) struct AsyncWritableFile(pub(crate) Writable);

#[pymethods]
impl AsyncWritableFile {
    /// Writes bytes, and returns their number. Waits while too many written bytes are still unsent.
    #[pyo3(signature = (buffer, /))]
    fn write<'py>(&self, buffer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.0.write(buffer)?.awaited(buffer.py())
    }

    /// Completes the object, and checks that the store has the written bytes. Returns the object's `e_tag`, `version`
    /// and so on.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.close(py)?.awaited(py)
    }

    /// Aborts the upload. Nothing is left in the store.
    fn abort<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.abort(py)?.awaited(py)
    }

    /// Does nothing, because the object is visible only after `close`.
    fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        LibraryCall::new(&self.0.client, async { Ok(()) }, |py, ()| Ok(py.None())).awaited(py)
    }

    /// Returns the file itself, so that `await store.open_writer_async(path)` works as it does with
    /// `open_reader_async`.
    fn __await__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        Self::__aenter__(slf)?.call_method0("__await__")
    }

    fn __aenter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        let itself = DroppableObject::new(slf.clone().into_any().unbind());
        LibraryCall::new(&slf.get().0.client, async { Ok(()) }, move |py, ()| Ok(itself.object(py)))
            .awaited(slf.py())
    }

    #[pyo3(signature = (*raised))]
    fn __aexit__<'py>(&self, py: Python<'py>, raised: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let call = match raised.get_item(0)?.is_none() {
            true => self.0.close(py)?,
            false => self.0.abort(py)?,
        };
        call.giving_none().awaited(py)
    }
}
