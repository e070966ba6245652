//! Time limits that don't depend on an async runtime, because the caller's runtime may not be tokio or may have no
//! timers.

use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::sync::oneshot;

/// The log target for a slow source of credentials. Fields: `source`, `after_ms`, and `cause` if a likely cause is
/// known.
pub const SLOW_CREDENTIALS: &str = "laneway::credentials";

/// If a source of credentials takes longer than this, a log message tells the user what the program is waiting for.
const SLOW: Duration = Duration::from_secs(5);

/// The same limit for a metadata service, which is one network hop away and normally answers within milliseconds.
const SLOW_METADATA: Duration = Duration::from_secs(2);

/// Returns the future's output, or `None` if it takes longer than the limit. Each call starts a thread as its timer.
/// Requests for credentials are rare, so a thread is cheap enough. If the thread can't start, there is no limit.
pub(crate) async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let (ring, alarm) = oneshot::channel::<()>();
    let (_cancels, cancelled) = channel::<()>();
    let wait = move || {
        if cancelled.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            let _ = ring.send(());
        }
    };
    if Builder::new().spawn(wait).is_err() {
        // The timer's thread couldn't start, so the future is awaited without a limit.
        return Some(future.await);
    }
    match select(pin!(future), alarm).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(_) => None,
    }
}

/// Returns the future's output. If the source of credentials takes longer than [`SLOW`], one log message reports it.
pub(super) async fn reported_when_slow<F: Future>(source: &str, future: F) -> F::Output {
    let tell = || {
        let after_ms = SLOW.as_millis() as u64;
        tracing::warn!(target: SLOW_CREDENTIALS, source, after_ms, "slow");
    };
    reported_after(SLOW, tell, future).await
}

/// Returns the future's output. If a metadata service takes longer than [`SLOW_METADATA`], one log message reports it,
/// with a likely cause.
pub(super) async fn explained_when_slow<F: Future>(source: &str, cause: &str, future: F) -> F::Output {
    let tell = || {
        let after_ms = SLOW_METADATA.as_millis() as u64;
        tracing::warn!(target: SLOW_CREDENTIALS, source, cause, after_ms, "slow");
    };
    reported_after(SLOW_METADATA, tell, future).await
}

async fn reported_after<F: Future>(limit: Duration, tell: impl FnOnce(), future: F) -> F::Output {
    let mut future = pin!(future);
    if let Some(output) = within(limit, future.as_mut()).await {
        return output;
    }
    tell();
    future.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_never_ends_is_given_up() {
        assert_eq!(within(Duration::from_millis(1), std::future::pending::<()>()).await, None);
        assert_eq!(within(Duration::from_secs(60), async { 5 }).await, Some(5));
    }

    #[tokio::test]
    async fn a_slow_source_is_told_of_and_waited_for() {
        let (report, answer) = oneshot::channel();
        let tell = || report.send(5).expect("the source waits for it");
        assert_eq!(reported_after(Duration::from_millis(1), tell, answer).await, Ok(5));
        let never = || panic!("it answered in time");
        assert_eq!(reported_after(Duration::from_secs(60), never, async { 6 }).await, 6);
    }
}
