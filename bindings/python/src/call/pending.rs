//! A call that a coroutine awaits through a pipe of its own. It is used under trio, and for a call that is made before
//! its event loop runs.

use std::io::{PipeReader, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::{Arc, Mutex, PoisonError};

use laneway::{Client, Spawned};
use pyo3::prelude::*;

use super::CallResult;
use crate::{error, kept};

/// A running call. Dropping it cancels the call.
#[pyclass(frozen)]
pub(crate) struct PipedCall {
    answer: Arc<Mutex<Option<CallResult>>>,
    reader: PipeReader,
    running: Mutex<Option<Spawned>>,
}

impl PipedCall {
    /// Starts a call, and returns a coroutine that waits for it under asyncio or trio.
    ///
    /// # Errors
    /// Fails if no pipe can be created, or if the engine can't start.
    pub(super) fn begin<'py>(
        py: Python<'py>,
        client: &Client,
        answered: impl Future<Output = CallResult> + Send + 'static,
    ) -> PyResult<Bound<'py, PyAny>> {
        // The pipe becomes readable when the writer is dropped. This happens once the result is stored, or if the call
        // is abandoned.
        let (reader, mut writer) = std::io::pipe()?;
        let answer = Arc::new(Mutex::new(None));
        let place = Arc::clone(&answer);
        let running = client.spawn(async move {
            let answer = answered.await;
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
            let _ = writer.write(&[0]);
        });
        let running = Mutex::new(Some(running.map_err(|error| error::raised(py, &error))?));
        let pending = Bound::new(py, Self { answer, reader, running })?;
        py.import("laneway._future")?.call_method1("wait", (pending,))
    }
}

#[pymethods]
impl PipedCall {
    /// Returns a descriptor that is readable once the call is done.
    fn fileno(&self) -> RawFd {
        self.reader.as_raw_fd()
    }

    /// Returns the call's result. The call must be done.
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        kept::release(py);
        let answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        answer.ok_or_else(error::ended)?(py)
    }

    /// Ends the call.
    fn cancel(&self) {
        drop(self.running.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
