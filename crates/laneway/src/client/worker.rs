//! Runs a client's calls and jobs, and counts them.

use std::sync::Arc;

use laneway_lanes::{Tally, tally};

use crate::Error;
use crate::engine::runtime::Task;
use crate::engine::state::ClientState;

/// The engine's work thread for one client. Work counts in the client's tally, if it has one.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) state: Arc<ClientState>,
    pub(crate) tally: Option<Tally>,
}

impl Worker {
    /// Runs a task to its end, even if nobody waits for it.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.state.machinery.runtime.spawn(tally::scope(self.tally.clone(), task));
    }

    /// Runs a task to its end, or until the returned value is dropped.
    pub(crate) fn task(&self, task: impl Future<Output = ()> + Send + 'static) -> Task {
        self.state.machinery.runtime.task(tally::scope(self.tally.clone(), task))
    }

    /// Runs a task, and waits for it on the caller's executor. Dropping the wait ends the task.
    ///
    /// # Errors
    /// Those of the task; `ErrorKind::Cancelled` if the engine ended first.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        task: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        self.state.machinery.runtime.run(tally::scope(self.tally, task)).await
    }

    /// Returns a future that any thread may poll. It has the engine's timers there.
    pub(crate) fn with_timers<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        self.state.machinery.runtime.with_timers(future)
    }

    /// Does the same, but polls the task on the waiting thread if that waits for nothing else.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub(crate) async fn run_here<T: Send + 'static>(
        self,
        task: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        self.state.machinery.runtime.run_here(tally::scope(self.tally, task)).await
    }
}
