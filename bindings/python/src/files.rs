//! Objects as files. They have the methods of Python's own files, as far as these make sense for objects. Reads and
//! openings can also run in the background, and their results are fetched later.

/// Adds the methods of Python's files that objects don't support. They raise `io.UnsupportedOperation`.
macro_rules! refused {
    ($file:ident: $($method:ident),+) => {
        #[pymethods]
        impl $file {
            $(
                #[pyo3(signature = (*_arguments))]
                fn $method(&self, py: Python<'_>, _arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
                    Err(crate::error::unsupported(py, stringify!($method)))
                }
            )+
        }
    };
}

mod readable;
mod writable;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use laneway::{Client, Error, Open, Reader, Spawned};
use pyo3::prelude::*;
use tokio::sync::oneshot;

use crate::bytes::Bytes;
use crate::call::LibraryCall;
use crate::error;
pub(crate) use readable::{AsyncReadableFile, Readable, ReadableFile};
pub(crate) use writable::{AsyncWritableFile, Writable, WritableFile};

/// Ranges that are being read. Dropping this value cancels the reads.
#[pyclass(frozen, name = "Fetched", module = "laneway")]
pub(crate) struct FetchedRanges(BackgroundCall<Vec<::bytes::Bytes>>);

impl FetchedRanges {
    /// # Errors
    /// Fails if the engine can't start.
    fn begin(py: Python<'_>, client: &Client, reader: &Reader, ranges: Vec<Range<u64>>) -> PyResult<Self> {
        BackgroundCall::new(py, client, reader.read_ranges(ranges)).map(Self)
    }
}

#[pymethods]
impl FetchedRanges {
    fn __repr__(&self) -> String {
        format!("<laneway.Fetched done={}>", self.0.is_done())
    }

    /// Waits for the ranges, and returns them. This method can be called once, and only in the process that started
    /// the reads.
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.result(py, |py, ranges| {
            let ranges: Vec<Bytes> = ranges.into_iter().map(Bytes).collect();
            Ok(ranges.into_pyobject(py)?.into_any().unbind())
        })
    }
}

/// A file that is being opened. Dropping this value cancels the opening.
#[pyclass(frozen, name = "Opening", module = "laneway")]
pub(crate) struct OpeningFile {
    client: Client,
    begun: BackgroundCall<Reader>,
}

impl OpeningFile {
    /// # Errors
    /// Fails if the engine can't start.
    pub(crate) fn begin(py: Python<'_>, client: &Client, open: Open) -> PyResult<Self> {
        let begun = BackgroundCall::new(py, client, open.into_future())?;
        Ok(Self { client: client.clone(), begun })
    }
}

#[pymethods]
impl OpeningFile {
    fn __repr__(&self) -> String {
        format!("<laneway.Opening done={}>", self.begun.is_done())
    }

    /// Returns whether the file is open.
    fn is_done(&self) -> bool {
        self.begun.is_done()
    }

    /// Waits until the file is open, and returns it. This method can be called once, and only in the process that
    /// started to open the file.
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let client = self.client.clone();
        self.begun.result(py, move |py, reader| {
            Ok(ReadableFile(Readable::new(client, reader, None)).into_pyobject(py)?.into_any().unbind())
        })
    }
}

/// A call in the background. Dropping this value cancels the call.
struct BackgroundCall<T> {
    client: Client,
    coming: Mutex<Option<RunningCall<T>>>,
    is_done: Arc<AtomicBool>,
}

struct RunningCall<T> {
    given: oneshot::Receiver<Result<T, Error>>,
    running: Spawned,
}

impl<T: Send + 'static> BackgroundCall<T> {
    /// # Errors
    /// Fails if the engine can't start.
    fn new(
        py: Python<'_>,
        client: &Client,
        call: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> PyResult<Self> {
        let ((done, given), is_done) = (oneshot::channel(), Arc::<AtomicBool>::default());
        let is_over = Arc::clone(&is_done);
        let running = client.spawn(async move {
            // Sending fails if the receiver was dropped. Ignore this error.
            drop(done.send(call.await));
            is_over.store(true, Ordering::Release);
        });
        let running = running.map_err(|error| error::raised(py, &error))?;
        Ok(Self { client: client.clone(), coming: Mutex::new(Some(RunningCall { given, running })), is_done })
    }

    /// Returns whether the call is done.
    fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    /// Waits for the call's result, and returns it. This method can be called once, and only in the process that
    /// started the call.
    ///
    /// # Errors
    /// Returns the call's error, or an exception if the result was returned before.
    fn result(
        &self,
        py: Python<'_>,
        give: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Py<PyAny>> {
        let coming = self.coming.lock().unwrap_or_else(PoisonError::into_inner).take();
        let RunningCall { given, running } =
            coming.ok_or_else(|| error::closed("the result has already been returned"))?;
        let done = async move {
            let given = given.await;
            drop(running);
            given.ok().transpose()
        };
        LibraryCall::new(&self.client, done, |py, given| give(py, given.ok_or_else(error::ended)?)).wait(py)
    }
}
