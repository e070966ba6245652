//! A call that runs in the background. Its result is fetched later.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use laneway::{Client, Error, Spawned};
use pyo3::prelude::*;
use tokio::sync::oneshot;

use crate::call::Call;
use crate::error;

/// A call in the background. Dropping it cancels the call.
pub(super) struct Begun<T> {
    client: Client,
    coming: Mutex<Option<Coming<T>>>,
    is_done: Arc<AtomicBool>,
}

struct Coming<T> {
    given: oneshot::Receiver<Result<T, Error>>,
    running: Spawned,
}

impl<T: Send + 'static> Begun<T> {
    /// # Errors
    /// Fails if the engine can't start.
    pub(super) fn new(
        py: Python<'_>,
        client: &Client,
        call: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> PyResult<Self> {
        let ((done, given), is_done) = (oneshot::channel(), Arc::<AtomicBool>::default());
        let is_over = Arc::clone(&is_done);
        let running = client.spawn(async move {
            // Sending fails if the receiver was dropped, which is fine.
            drop(done.send(call.await));
            is_over.store(true, Ordering::Release);
        });
        let running = running.map_err(|error| error::raised(py, &error))?;
        Ok(Self { client: client.clone(), coming: Mutex::new(Some(Coming { given, running })), is_done })
    }

    /// Returns whether the call is done.
    pub(super) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    /// Waits for the call's result, and returns it. It can be called once, and only in the process that started the
    /// call.
    ///
    /// # Errors
    /// Returns the call's error, or an exception if the result was returned before.
    pub(super) fn result(
        &self,
        py: Python<'_>,
        give: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Py<PyAny>> {
        let coming = self.coming.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Coming { given, running } =
            coming.ok_or_else(|| error::closed("the result has already been returned"))?;
        let done = async move {
            let given = given.await;
            drop(running);
            given.ok().transpose()
        };
        Call::new(&self.client, done, |py, given| give(py, given.ok_or_else(error::ended)?)).wait(py)
    }
}
