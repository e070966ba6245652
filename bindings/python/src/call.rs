//! How a verb's call is waited for: by a thread that lets the interpreter go, or by an event loop.

mod completions;
mod pending;

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use laneway::{Client, Error};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use self::completions::Completions;
use self::pending::Pending;
use crate::memory::UnderWay;
use crate::{error, kept, log};

/// How often a thread that waits looks whether a signal has come, such as Ctrl-C's: soon enough for a hand on a keyboard.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// What becomes of a call, to be made an object of Python's by a thread that holds the interpreter's lock.
type Answer = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// A call of the library, and what is made of what it gives.
pub(crate) struct Call {
    client: Client,
    future: BoxFuture<'static, Result<Answer, Error>>,
}

impl Call {
    /// `give` makes Python's object of what the future gives.
    pub(crate) fn new<T: Send + 'static>(
        client: &Client,
        future: impl Future<Output = Result<T, Error>> + Send + 'static,
        give: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let future = async move {
            let done = future.await?;
            let answer: Answer = Box::new(move |py| give(py, done));
            Ok(answer)
        };
        Self { client: client.clone(), future: Box::pin(future) }
    }

    /// The same, of whose answer only an error matters.
    pub(crate) fn giving_none(self) -> Self {
        let Self { client, future } = self;
        Self::new(&client, future, |py, answer| answer(py).map(|_| py.None()))
    }

    /// Waits with the interpreter's lock released. A signal's handler may raise, which ends the call.
    ///
    /// # Errors
    /// The call's, the handler's.
    pub(crate) fn wait(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        log::attend(py, false);
        let Self { client, future } = self;
        let done = blocking(py, &client, future);
        kept::release(py);
        done?(py)
    }

    /// The same where what is asked for is often here already: it is looked at first, without another thread.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn wait_if_need_be(mut self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let answer = match (&mut self.future).now_or_never() {
            Some(done) => done.map_err(|error| error::raised(py, &error))?(py),
            None => self.wait(py),
        };
        Ok(answer?.into_bound(py))
    }

    /// What an event loop's task awaits: a future of asyncio's, or under trio something that it waits for.
    ///
    /// # Errors
    /// Where no loop runs on this thread.
    pub(crate) fn awaited(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        kept::release(py);
        log::attend(py, false);
        let Self { client, future } = self;
        let under_way = UnderWay::new(&client);
        let answered = async move {
            let _under_way = under_way;
            future.await.unwrap_or_else(|error| Box::new(move |py| Err(error::raised(py, &error))))
        };
        match running_loop(py)? {
            Some(events) => Completions::of(&events)?.get().begin(py, &client, answered),
            None => Pending::begin(py, &client, answered),
        }
    }
}

/// Waits for a call.
///
/// # Errors
/// Its own; what a signal's handler raises, which ends the call.
pub(crate) fn blocking<T: Send + 'static>(
    py: Python<'_>,
    client: &Client,
    future: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> PyResult<T> {
    let mut interrupted = None;
    let done = py.detach(|| {
        client.block_on_while(future, SIGNALS_EVERY, || {
            interrupted = Python::attach(|py| py.check_signals()).err();
            interrupted.is_none()
        })
    });
    match done.map_err(|error| error::raised(py, &error))? {
        Some(done) => done.map_err(|error| error::raised(py, &error)),
        None => Err(interrupted.unwrap_or_else(error::ended)),
    }
}

/// The loop of asyncio's that runs on this thread; `None` under trio.
///
/// # Errors
/// Where neither runs.
fn running_loop(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let running = RUNNING.import(py, "asyncio", "_get_running_loop")?.call0()?;
    if !running.is_none() {
        return Ok(Some(running));
    }
    let modules = py.import("sys")?.getattr("modules")?;
    let in_trio =
        modules.contains("trio")? && py.import("trio.lowlevel")?.call_method0("in_trio_run")?.is_truthy()?;
    match in_trio {
        true => Ok(None),
        false => Err(PyRuntimeError::new_err("no running event loop: this is awaited under asyncio or trio")),
    }
}
