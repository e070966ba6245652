//! The engine's work thread, which runs the async tasks of clients. It is separate from any async runtime of
//! the host program, so a busy runtime can't stall it.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::Error;
use crate::engine::fork::OfProcess;

/// The size of the work thread's stack. Only pages that are used take memory. An unoptimised build moves
/// large futures over the stack. In such a build, the usual 2 MiB are slightly too small for a sync between
/// two stores.
const STACK: usize = 8 << 20;

/// An async runtime on its own thread. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Runtime {
    handle: Handle,
    /// Dropping the sender ends the thread.
    _stop: oneshot::Sender<()>,
}

/// A handle to a running task. Dropping it aborts the task.
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
    /// If the system refuses a thread or the descriptors that a runtime needs.
    pub(crate) fn start() -> Result<Self, Error> {
        let failed = |e| Error::local("the work thread", "can't be started", e);
        let runtime = Builder::new_current_thread().enable_time().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new()
            .name("laneway-work".into())
            .stack_size(STACK)
            .spawn(move || {
                // This runs the tasks until `Runtime` and its sender are dropped.
                let _ = runtime.block_on(stopped);
            })
            .map_err(failed)?;
        Ok(Self { handle, _stop: stop })
    }

    /// Runs a task to its end, even if nothing waits for it.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(task);
    }

    /// Runs a task to its end, or until the returned value is dropped.
    pub(crate) fn task(&self, task: impl Future<Output = ()> + Send + 'static) -> Task {
        Task::of(self.handle.spawn(task).abort_handle())
    }

    /// Runs a task, and waits for it on the caller's executor. Dropping the wait ends the task.
    ///
    /// # Errors
    /// The task's error; `ErrorKind::Cancelled` if the runtime ended first, or in a child that was forked
    /// before the task was done.
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

    /// Does the same as [`run`](Self::run), but polls the task on the calling thread if that thread is inside
    /// [`wait`], where it does nothing else. This saves half of the thread switches. On any other executor
    /// the task runs on the work thread, because the executor might not poll it for a long time. The task
    /// would then keep memory or a connection that other calls wait for.
    ///
    /// # Errors
    /// Fails as [`run`](Self::run) does.
    pub(crate) async fn run_here<T: Send + 'static>(
        &self,
        task: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        if !WAITS.get() {
            return self.run(task).await;
        }
        self.with_timers(task).await
    }

    /// Wraps a future so that a thread outside of this runtime can poll it. The future then uses this
    /// runtime's timers.
    pub(crate) fn with_timers<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        let handle = self.handle.clone();
        async move {
            let mut future = pin!(future);
            poll_fn(|context| {
                let _timers_are_there = handle.enter();
                future.as_mut().poll(context)
            })
            .await
        }
    }
}

thread_local! {
    /// True while [`wait`] polls a call on this thread. Then this thread does nothing else until the call is
    /// done.
    static WAITS: Cell<bool> = const { Cell::new(false) };
}

/// Restores the previous value of `WAITS` when it is dropped, even if a poll panics.
struct WaitsGuard(bool);

impl Drop for WaitsGuard {
    fn drop(&mut self) {
        WAITS.set(self.0);
    }
}

/// A thread that blocks between two polls, with the flag that wakes it.
struct ThreadWaker {
    thread: Thread,
    /// Set by a wake-up. The token of `Thread::unpark` alone isn't enough, because the polled code may itself
    /// park the thread and consume the token.
    is_woken: AtomicBool,
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Blocks this thread until a call is done, at most for `at_most`. The thread itself runs most of the call.
/// Meanwhile the thread must do nothing else, because a call that isn't polled keeps memory or a connection
/// that other calls wait for.
pub(crate) fn wait<F: Future>(call: F, at_most: Duration) -> Option<F::Output> {
    let sleeping = Arc::new(ThreadWaker { thread: thread::current(), is_woken: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&sleeping));
    let mut context = Context::from_waker(&waker);
    let mut call = pin!(call);
    let until = Instant::now() + at_most;
    loop {
        let polled = {
            let _before = WaitsGuard(WAITS.replace(true));
            call.as_mut().poll(&mut context)
        };
        if let Poll::Ready(done) = polled {
            return Some(done);
        }
        while !sleeping.is_woken.swap(false, Ordering::Acquire) {
            match until.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return None,
                left => thread::park_timeout(left),
            }
        }
    }
}

/// Blocks this thread until a call is done, without a time limit.
pub(crate) fn block_on<F: Future>(call: F) -> F::Output {
    let mut call = pin!(call);
    loop {
        if let Some(done) = wait(call.as_mut(), Duration::from_secs(3600)) {
            return done;
        }
    }
}

/// If the process may open this many descriptors or more, each limit has its usual value. Laneway uses 256 of
/// them for connections, 128 for directories of a destination, and 64 for each of four threads that walk a
/// folder. It uses another 32 for 16 large files with their journals. The remaining descriptors are for the
/// host program. If the process may open fewer, each limit on open files, directories and connections is
/// lowered in proportion.
const DESCRIPTORS_USUAL: u64 = 1024;
/// The usual limit of connections.
const CONNECTIONS_USUAL: usize = 256;

/// Returns how many descriptors this process may open for one purpose, at least one. `usual` is their number
/// if the process may open 1024 descriptors or more.
pub(crate) fn descriptors_allowed(usual: usize) -> usize {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    let limit = *LIMIT.get_or_init(|| rustix::process::getrlimit(rustix::process::Resource::Nofile).current);
    descriptor_share(usual, limit)
}

/// Returns the limit of connections, or `None` if the usual limit needn't be lowered.
pub(crate) fn connections_max() -> Option<usize> {
    Some(descriptors_allowed(CONNECTIONS_USUAL)).filter(|allowed| *allowed < CONNECTIONS_USUAL)
}

/// Returns `usual`, lowered in proportion if `limit`, the process's limit of descriptors, is low.
fn descriptor_share(usual: usize, limit: Option<u64>) -> usize {
    match limit {
        Some(limit) if limit < DESCRIPTORS_USUAL => {
            (usual as u64 * limit / DESCRIPTORS_USUAL).max(1) as usize
        }
        _ => usual,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    async fn thread() -> Result<thread::ThreadId, Error> {
        // The runtime's timers must work on any thread.
        tokio::time::timeout(LONG, tokio::task::yield_now()).await.unwrap();
        Ok(thread::current().id())
    }

    #[test]
    fn a_call_is_carried_out_by_the_thread_that_waits_for_it_alone() {
        let runtime = Runtime::start().unwrap();
        let here = thread::current().id();
        assert_eq!(wait(runtime.run_here(thread()), LONG).unwrap().unwrap(), here);
        assert_ne!(
            pollster::block_on(runtime.run_here(thread())).unwrap(),
            here,
            "it may wait for other calls too"
        );
        assert_ne!(wait(runtime.run(thread()), LONG).unwrap().unwrap(), here);
    }

    #[test]
    fn who_waits_is_woken_though_what_it_polls_has_slept() {
        let (done, is_done) = oneshot::channel();
        let other = thread::spawn(move || done.send(5).unwrap());
        let mut is_done = pin!(is_done);
        let call = poll_fn(|context| {
            let polled = is_done.as_mut().poll(context);
            // Consume a wake-up of this thread.
            thread::park_timeout(Duration::ZERO);
            polled
        });
        assert_eq!(wait(call, LONG), Some(Ok(5)));
        other.join().unwrap();
        assert_eq!(wait(std::future::pending::<()>(), Duration::from_millis(1)), None);
    }

    #[test]
    fn after_a_panic_calls_are_carried_out_elsewhere_again() {
        let panics = std::panic::catch_unwind(|| wait(async { panic!("on purpose") }, LONG));
        assert!(panics.is_err() && !WAITS.get());
    }

    #[test]
    fn a_low_limit_is_shared_out_and_a_high_one_changes_nothing() {
        assert_eq!([None, Some(1024), Some(1 << 20)].map(|limit| descriptor_share(256, limit)), [256; 3]);
        assert_eq!(descriptor_share(256, Some(256)), 64);
        // One walk with its files and connections must stay below the process's limit.
        for limit in [64, 100, 256, 1000] {
            let all = [256, 128, 64, 64, 64, 64, 32].map(|usual| descriptor_share(usual, Some(limit)));
            assert!(all.iter().sum::<usize>() as u64 <= limit * 3 / 4, "{limit}: {all:?}");
        }
        assert_eq!(descriptor_share(16, Some(3)), 1);
    }
}
