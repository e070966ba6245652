//! Threads for file operations. On the network's threads, these blocking operations would delay all
//! transfers.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::Error;
use crate::engine::threads::{Builder, Condvar, Mutex, MutexGuard, PoisonError};

type FileTask = Box<dyn FnOnce() + Send>;

/// A bounded pool of threads. A new thread starts when a task arrives and no thread is idle. The threads take
/// tasks in the order of their arrival.
#[derive(Clone)]
pub(crate) struct FileThreads {
    shared: Arc<SharedQueue>,
}

struct SharedQueue {
    state: Mutex<FileQueue>,
    wake: Condvar,
    threads_max: usize,
}

#[derive(Default)]
struct FileQueue {
    queue: VecDeque<FileTask>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl FileThreads {
    pub(crate) fn new(threads_max: usize) -> Self {
        let shared =
            SharedQueue { state: Mutex::default(), wake: Condvar::new(), threads_max: threads_max.max(1) };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the number of threads for a machine with this many cores. The pool has more threads than the
    /// machine has cores, because a disk serves several requests at once. But a read from the page cache
    /// occupies a core, so a much larger number of threads wouldn't help.
    pub(crate) fn threads_for(cores: usize) -> usize {
        (2 * cores).clamp(4, 16)
    }

    /// Runs `task` on one of the threads. The task runs even if the returned future is dropped.
    ///
    /// # Errors
    /// If the task panics, if no thread can be started, or after [`close`](Self::close).
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, receiver) = oneshot::channel();
        self.push(Box::new(move || {
            let _ = sender.send(catch_unwind(AssertUnwindSafe(task)).map_err(panic_text));
        }))?;
        match receiver.await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(text)) => Err(Error::source("a file operation", format!("panicked: {text}"))),
            Err(_) => Err(Error::cancelled("a file operation")),
        }
    }

    fn push(&self, task: FileTask) -> Result<(), Error> {
        let mut state = lock(&self.shared.state);
        if state.closed {
            // The threads may have ended already, so that no thread would run the task.
            return Err(Error::cancelled("a file operation"));
        }
        let is_short = state.idle <= state.queue.len() && state.threads < self.shared.threads_max;
        if is_short {
            let shared = Arc::clone(&self.shared);
            match Builder::new().name("laneway-file".into()).spawn(move || serve(&shared)) {
                Ok(_) => state.threads += 1,
                Err(e) if state.threads == 0 => {
                    return Err(Error::local("a file thread", "can't be started", e));
                }
                // No further thread could start, but an existing one will run the task.
                Err(_) => {}
            }
        }
        state.queue.push_back(task);
        drop(state);
        self.shared.wake.notify_one();
        Ok(())
    }

    /// Refuses further tasks, and ends the threads once the queue is empty.
    pub(crate) fn close(&self) {
        lock(&self.shared.state).closed = true;
        self.shared.wake.notify_all();
    }
}

fn serve(shared: &SharedQueue) {
    let mut state = lock(&shared.state);
    loop {
        if let Some(task) = state.queue.pop_front() {
            drop(state);
            task();
            state = lock(&shared.state);
        } else if state.closed {
            return;
        } else {
            state.idle += 1;
            state = shared.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

/// Locks a mutex. Ignores poisoning, because no code that can panic runs under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn panic_text(panic: Box<dyn Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => {
            panic.downcast::<&str>().map_or_else(|_| "unknown".to_owned(), |text| (*text).to_owned())
        }
    }
}

impl std::fmt::Debug for FileThreads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileThreads").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn work_that_panics_is_an_error_and_the_thread_goes_on() {
        let files = FileThreads::new(1);
        let error = block(files.run(|| panic!("torn"))).unwrap_err();
        assert!(error.to_string().contains("torn"));
        assert_eq!(block(files.run(|| 5)).unwrap(), 5);
        files.close();
    }

    #[test]
    fn work_that_comes_after_the_end_is_an_error() {
        let files = FileThreads::new(1);
        assert_eq!(block(files.run(|| 5)).unwrap(), 5);
        files.close();
        assert_eq!(block(files.run(|| 6)).unwrap_err().kind(), crate::ErrorKind::Cancelled);
    }

    #[test]
    fn more_work_than_threads_is_all_done() {
        let files = FileThreads::new(3);
        let sum = block(async {
            let all = (0..100u64).map(|i| files.run(move || i));
            futures_util::future::try_join_all(all).await.map(|done| done.iter().sum::<u64>())
        });
        assert_eq!(sum.unwrap(), 4950);
        assert!(lock(&files.shared.state).threads <= 3);
    }
}
