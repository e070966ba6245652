//! Waits for a call of the library: on a thread that releases the interpreter's lock, or in an event loop.

mod completions;

use std::io::{PipeReader, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use laneway::{Client, Error, Spawned};
use laneway_bindings_core::fork::{TurnTicket, Turns};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use self::completions::LoopCalls;
use crate::memory::CallCounter;
use crate::{error, kept, log};

/// A waiting thread checks for signals, such as Ctrl-C, at this interval. A user doesn't notice such a short delay.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// The result of a call, as a function that makes the Python object. It runs on a thread that holds the interpreter's
/// lock.
type CallResult = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// A call of the library, and the conversion of its result.
pub(crate) struct LibraryCall {
    client: Client,
    future: BoxFuture<'static, Result<CallResult, Error>>,
}

impl LibraryCall {
    /// Makes a call. `give` converts the future's result to a Python object.
    pub(crate) fn new<T: Send + 'static>(
        client: &Client,
        future: impl Future<Output = Result<T, Error>> + Send + 'static,
        give: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let future = async move {
            let done = future.await?;
            let answer: CallResult = Box::new(move |py| give(py, done));
            Ok(answer)
        };
        Self { client: client.clone(), future: Box::pin(future) }
    }

    /// Returns the same call, but with `None` as its result if it succeeds.
    pub(crate) fn giving_none(self) -> Self {
        let Self { client, future } = self;
        Self::new(&client, future, |py, answer| answer(py).map(|_| py.None()))
    }

    /// Waits for the call, with the interpreter's lock released. If a signal's handler raises an exception, the call
    /// ends.
    ///
    /// # Errors
    /// Returns the call's error, or the exception of a signal's handler.
    pub(crate) fn wait(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        log::attend(py, false);
        let Self { client, future } = self;
        let done = blocking(py, &client, future);
        kept::release(py);
        done?(py)
    }

    /// Does the same as [`wait`](Self::wait) for a call that is often done at once. It first checks for a result on
    /// this thread.
    ///
    /// # Errors
    /// Fails in the same cases as [`wait`](Self::wait).
    pub(crate) fn wait_if_need_be(mut self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let answer = match (&mut self.future).now_or_never() {
            Some(done) => done.map_err(|error| error::raised(py, &error))?(py),
            None => self.wait(py),
        };
        Ok(answer?.into_bound(py))
    }

    /// Returns an awaitable: an `asyncio.Future` if an asyncio loop runs on this thread, otherwise a coroutine (under
    /// trio, for example).
    ///
    /// # Errors
    /// Fails if no pipe can be created, or if the engine can't start.
    pub(crate) fn awaited(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        kept::release(py);
        log::attend(py, false);
        let Self { client, future } = self;
        let under_way = CallCounter::new(&client);
        let answered = async move {
            let _under_way = under_way;
            future.await.unwrap_or_else(|error| Box::new(move |py| Err(error::raised(py, &error))))
        };
        match running_loop(py)? {
            Some(events) => LoopCalls::of(&events)?.get().begin(py, &client, answered),
            None => PipedCall::begin(py, &client, answered),
        }
    }
}

/// Waits for a call.
///
/// # Errors
/// Returns the call's error, or the exception of a signal's handler, which ends the call.
fn blocking<T: Send + 'static>(
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

/// Returns the asyncio loop that runs on this thread. It is `None` under trio, and if the loop starts later, as with
/// `asyncio.run(store.get_async(path))`.
fn running_loop(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let running = RUNNING.import(py, "asyncio", "_get_running_loop")?.call0()?;
    Ok((!running.is_none()).then_some(running))
}

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
    fn begin<'py>(
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

/// Joins the queue for a value. The interpreter's lock must be held.
///
/// # Errors
/// Fails if the value is closed, or in a forked child if a call was using the value at the time of the `fork`.
pub(crate) fn turn<T>(turns: &Turns<T>, _py: Python<'_>) -> PyResult<TurnTicket<T>> {
    turns.line().ok_or_else(|| {
        error::closed("this object is closed, or another call was using it when this process was forked")
    })
}
