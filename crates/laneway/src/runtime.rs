//! The thread that work runs on, apart from any runtime of the host program, which therefore can't stall it.

use std::future::Future;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::Error;
use crate::fork::OfProcess;

/// A runtime on a thread of its own. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Runtime {
    handle: Handle,
    /// Dropped, it ends the thread.
    _stop: oneshot::Sender<()>,
}

/// A task under way. Dropped, it is ended.
#[derive(Debug)]
pub(crate) struct Task(OfProcess<AbortHandle>);

impl Task {
    fn of(handle: AbortHandle) -> Self {
        Self(OfProcess::new(handle))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(task) = self.0.get() {
            task.abort();
        }
    }
}

impl Runtime {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system refuses a thread or the descriptors that a runtime needs.
    pub(crate) fn start() -> Result<Self, Error> {
        let failed = |e| Error::local("the work thread", "can't be started", e);
        let runtime = Builder::new_current_thread().enable_time().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new()
            .name("laneway-work".into())
            .spawn(move || {
                // Its only outcome is that the sender was dropped.
                let _ = runtime.block_on(stopped);
            })
            .map_err(failed)?;
        Ok(Self { handle, _stop: stop })
    }

    /// Runs a task to its end, whether or not anybody waits for it.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(task);
    }

    /// Runs a task to its end, or until what is returned is dropped.
    pub(crate) fn task(&self, task: impl Future<Output = ()> + Send + 'static) -> Task {
        Task::of(self.handle.spawn(task).abort_handle())
    }

    /// Runs a task and waits for it on whatever the caller runs on. Dropping the wait ends the task.
    ///
    /// # Errors
    /// Those of the task; `ErrorKind::Cancelled` when the runtime ended first, and in a child of a `fork` that came meanwhile.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let running = self.handle.spawn(task);
        let _ends_with_this = Task::of(running.abort_handle());
        match OfProcess::new(running).await.ok_or_else(|| Error::forked("the request"))? {
            Ok(done) => done,
            Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
            Err(_) => Err(Error::cancelled("the request")),
        }
    }

    /// Runs a task and waits for it, blocking the thread.
    ///
    /// # Errors
    /// `ErrorKind::Cancelled` when the runtime ended first.
    pub(crate) fn wait_for<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Error> {
        // Not tokio's own blocking receive: that one panics on a thread of a host's runtime.
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.handle.spawn(async move {
            let _ = sender.send(task.await);
        });
        receiver.recv().map_err(|_| Error::cancelled("the request"))
    }
}
