//! Waits for a verb's call: on a thread that releases the interpreter's lock, or in an event loop.

mod completions;
mod pending;

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use laneway::{Client, Error};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use self::completions::Completions;
use self::pending::Pending;
use crate::memory::UnderWay;
use crate::{error, kept, log};

/// The interval in which a waiting thread checks for signals, such as Ctrl-C's. A person at a keyboard doesn't notice
/// it.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// The result of a call. A thread that holds the interpreter's lock makes a Python object of it.
type Answer = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// A call of the library, and the conversion of its result.
pub(crate) struct Call {
    client: Client,
    future: BoxFuture<'static, Result<Answer, Error>>,
}

impl Call {
    /// Makes a call. `give` converts the future's result to a Python object.
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

    /// Returns the same call with `None` as its result. Only its error matters.
    pub(crate) fn giving_none(self) -> Self {
        let Self { client, future } = self;
        Self::new(&client, future, |py, answer| answer(py).map(|_| py.None()))
    }

    /// Waits with the interpreter's lock released. A signal's handler may raise, which ends the call.
    ///
    /// # Errors
    /// The call's error, or the handler's.
    pub(crate) fn wait(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        log::attend(py, false);
        let Self { client, future } = self;
        let done = blocking(py, &client, future);
        kept::release(py);
        done?(py)
    }

    /// Does the same for a result that is often here already. It checks that first, without another thread.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub(crate) fn wait_if_need_be(mut self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let answer = match (&mut self.future).now_or_never() {
            Some(done) => done.map_err(|error| error::raised(py, &error))?(py),
            None => self.wait(py),
        };
        Ok(answer?.into_bound(py))
    }

    /// Returns an awaitable for an event loop's task: a future of asyncio's, or a coroutine if no such loop runs.
    ///
    /// # Errors
    /// If the system gives no pipe, or the engine can't start.
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
/// The call's error, or that of a signal's handler, which ends the call.
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

/// Returns the asyncio loop that runs on this thread. `None` means trio, or that the loop begins later, as with
/// `asyncio.run(store.get_async(path))`.
fn running_loop(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let running = RUNNING.import(py, "asyncio", "_get_running_loop")?.call0()?;
    Ok((!running.is_none()).then_some(running))
}
