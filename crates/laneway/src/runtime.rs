//! The thread that work runs on, apart from any runtime of the host program, which therefore can't stall it.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::Error;
use crate::fork::OfProcess;

/// The work thread's stack, of which memory is taken as it is used. A sync from store to store of unoptimised code needs a little more than the
/// usual 2 MiB: its futures hand each other on by value.
const STACK: usize = 8 << 20;

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
            .stack_size(STACK)
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

    /// The same, carried out by the thread that waits where that waits for nothing else ([`wait`]): this saves half of the
    /// changes of threads. What is awaited otherwise may not be polled for long, and would hold up who waits for
    /// its memory or its connection.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub(crate) async fn run_here<T: Send + 'static>(
        &self,
        task: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        if !WAITS.get() {
            return self.run(task).await;
        }
        let mut task = pin!(task);
        poll_fn(|context| {
            let _timers_are_there = self.handle.enter();
            task.as_mut().poll(context)
        })
        .await
    }
}

thread_local! {
    /// Whether this thread polls one future alone, and again whenever that is woken.
    static WAITS: Cell<bool> = const { Cell::new(false) };
}

/// A thread that sleeps between two polls.
struct Sleeping(Thread);

impl Wake for Sleeping {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits on this thread for a future, most of which it carries out itself. `goes_on` is asked every `look_every`:
/// where it denies that the future is dropped, and what is returned is `None`.
pub(crate) fn wait<F: Future>(
    future: F,
    look_every: Duration,
    mut goes_on: impl FnMut() -> bool,
) -> Option<F::Output> {
    let waker = Waker::from(Arc::new(Sleeping(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    let mut looked = Instant::now();
    loop {
        let before = WAITS.replace(true);
        let polled = future.as_mut().poll(&mut context);
        WAITS.set(before);
        if let Poll::Ready(done) = polled {
            return Some(done);
        }
        thread::park_timeout(look_every.saturating_sub(looked.elapsed()));
        if looked.elapsed() >= look_every {
            if !goes_on() {
                return None;
            }
            looked = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const FOREVER: Duration = Duration::from_secs(600);

    async fn thread() -> Result<thread::ThreadId, Error> {
        // A timer of the runtime, which is there on any thread.
        tokio::time::timeout(FOREVER, tokio::task::yield_now()).await.unwrap();
        Ok(thread::current().id())
    }

    #[test]
    fn a_call_is_carried_out_by_the_thread_that_waits_for_it_alone() {
        let runtime = Runtime::start().unwrap();
        let here = thread::current().id();
        assert_eq!(wait(runtime.run_here(thread()), FOREVER, || true).unwrap().unwrap(), here);
        assert_ne!(
            pollster::block_on(runtime.run_here(thread())).unwrap(),
            here,
            "it may wait for others too"
        );
        assert_ne!(wait(runtime.run(thread()), FOREVER, || true).unwrap().unwrap(), here);
    }

    #[test]
    fn who_waits_is_woken_and_asked_whether_to_go_on() {
        let (done, is_done) = oneshot::channel();
        let other = thread::spawn(move || done.send(5).unwrap());
        assert_eq!(wait(is_done, FOREVER, || true), Some(Ok(5)));
        other.join().unwrap();
        let (held, is_held) = oneshot::channel::<()>();
        let waits = async move {
            let _dropped_with_it = held;
            std::future::pending::<()>().await;
        };
        let mut looks = 0;
        let goes_on = || {
            looks += 1;
            looks < 3
        };
        assert_eq!(wait(waits, Duration::ZERO, goes_on), None);
        assert!(is_held.blocking_recv().is_err() && looks == 3);
    }
}
