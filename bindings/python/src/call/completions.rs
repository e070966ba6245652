//! Calls of an asyncio loop. Tasks of the loop await their results.
//!
//! The engine's threads never wait for the interpreter's lock. They put results into a queue, and write to a pipe that
//! the loop watches.

use std::collections::HashMap;
use std::io::{PipeReader, PipeWriter, Read as _};
use std::os::fd::AsRawFd as _;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laneway::{Client, Spawned};
use laneway_bindings_core::events::Queue;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use super::CallResult;
use crate::{error, kept};

/// The calls of one loop. It is stored as an attribute of the loop, so it is dropped with the loop.
#[pyclass(frozen)]
pub(crate) struct LoopCalls {
    process: u32,
    queue: Arc<ResultQueue>,
    reader: PipeReader,
    futures: Mutex<Futures>,
    /// The keyword arguments with which futures are created.
    arguments: Py<PyDict>,
}

#[derive(Default)]
struct Futures {
    last: u64,
    waiting: HashMap<u64, Py<PyAny>>,
}

/// Finished calls, by number.
type ResultQueue = Queue<(u64, CallResult), PipeWriter>;

/// The sender for a call's result. If it is dropped without sending one, because the engine ended, it sends an error.
struct Reply {
    queue: Arc<ResultQueue>,
    number: u64,
    is_given: bool,
}

impl Reply {
    fn give(mut self, answer: CallResult) {
        self.is_given = true;
        self.queue.push((self.number, answer));
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.is_given {
            self.queue.push((self.number, Box::new(|_| Err(error::ended()))));
        }
    }
}

impl LoopCalls {
    /// Returns the object for a loop. Creates it at the loop's first call.
    ///
    /// # Errors
    /// Fails if no pipe can be created, or the loop can't watch it.
    pub(super) fn of<'py>(events: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        let py = events.py();
        let name = intern!(py, "_laneway_completions");
        if let Some(had) = events.getattr_opt(name)? {
            let had = had.cast_into::<Self>()?;
            // A forked child may continue its parent's loop. It then needs its own queue and pipe.
            if had.get().process == process::id() {
                return Ok(had);
            }
        }
        let (reader, writer) = std::io::pipe()?;
        let arguments = PyDict::new(py);
        arguments.set_item("loop", events)?;
        let made = Self {
            process: process::id(),
            queue: Arc::new(Queue::new(writer)),
            reader,
            futures: Mutex::default(),
            arguments: arguments.unbind(),
        };
        let descriptor = made.reader.as_raw_fd();
        let made = Bound::new(py, made)?;
        events.call_method1("add_reader", (descriptor, made.getattr("_complete")?))?;
        events.setattr(name, &made)?;
        Ok(made)
    }

    /// Starts a call, and returns the future that its result completes.
    ///
    /// # Errors
    /// Fails if the engine can't start.
    pub(super) fn begin<'py>(
        &self,
        py: Python<'py>,
        client: &Client,
        answered: impl Future<Output = CallResult> + Send + 'static,
    ) -> PyResult<Bound<'py, PyAny>> {
        static FUTURE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let future =
            FUTURE.import(py, "laneway._future", "Future")?.call((), Some(self.arguments.bind(py)))?;
        let number = {
            let mut futures = lock(&self.futures);
            futures.last += 1;
            futures.last
        };
        let reply = Reply { queue: Arc::clone(&self.queue), number, is_given: false };
        let running = py
            .detach(|| client.spawn(async move { reply.give(answered.await) }))
            .map_err(|error| error::raised(py, &error))?;
        future.setattr(intern!(py, "running"), CallCanceller(Mutex::new(Some(running))))?;
        lock(&self.futures).waiting.insert(number, future.clone().unbind());
        Ok(future)
    }
}

#[pymethods]
impl LoopCalls {
    /// Completes the futures whose results have arrived. The loop calls it when the pipe is readable.
    fn _complete(&self, py: Python<'_>) -> PyResult<()> {
        // This doesn't block, because the pipe has a byte: the loop has seen it, and nothing else reads from the pipe.
        (&self.reader).read_exact(&mut [0])?;
        let done = self.queue.take();
        for (number, answer) in done {
            let Some(future) = lock(&self.futures).waiting.remove(&number) else { continue };
            let future = future.bind(py);
            if future.call_method0(intern!(py, "done"))?.is_truthy()? {
                continue;
            }
            match answer(py) {
                Ok(result) => future.call_method1(intern!(py, "set_result"), (result,))?,
                Err(error) => future.call_method1(intern!(py, "set_exception"), (error,))?,
            };
        }
        kept::release(py);
        Ok(())
    }
}

/// Cancels the call of a cancelled future.
#[pyclass(frozen)]
struct CallCanceller(Mutex<Option<Spawned>>);

#[pymethods]
impl CallCanceller {
    /// Cancels the call, which frees its connection.
    fn cancel(&self) {
        drop(lock(&self.0).take());
    }
}

/// Locks a mutex of this module. These mutexes are held only briefly, and never while a thread waits for the
/// interpreter's lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
