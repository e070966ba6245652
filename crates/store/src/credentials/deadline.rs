//! A deadline that needs no runtime: the caller's may have no timers, or not be tokio's.

use std::future::Future;
use std::pin::pin;
use std::thread;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::sync::oneshot;

/// The future's output, or `None` when it takes longer. A thread sleeps for each call, which is meant for the rare
/// question whether a metadata server is there.
pub(super) async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let (ring, alarm) = oneshot::channel::<()>();
    thread::spawn(move || {
        thread::sleep(limit);
        let _ = ring.send(());
    });
    match select(pin!(future), alarm).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_never_ends_is_given_up() {
        assert_eq!(within(Duration::from_millis(1), std::future::pending::<()>()).await, None);
        assert_eq!(within(Duration::from_secs(60), async { 5 }).await, Some(5));
    }
}
