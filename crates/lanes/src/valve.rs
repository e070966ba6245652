//! Limits the rate of bulk (requests above 1 MiB) while small requests are outstanding. The dispatcher sets the rate.

use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::pace::Pace;
use crate::threads::atomic::{AtomicBool, Ordering};
use crate::threads::{Mutex, MutexGuard, PoisonError};

/// The rate limit for all bulk in one direction.
#[derive(Debug, Default)]
pub(crate) struct Valve {
    is_narrow: AtomicBool,
    pace: Mutex<Option<Pace>>,
    opened: Notify,
}

impl Valve {
    /// Sets the limit to a rate in bytes per second. `None` lifts the limit.
    pub(crate) fn set(&self, rate: Option<u64>) {
        *self.lock() = rate.map(Pace::new);
        self.is_narrow.store(rate.is_some(), Ordering::Release);
        if rate.is_none() {
            self.opened.notify_waiters();
        }
    }

    /// Counts `bytes` of bulk that have just moved. Waits until more may move.
    pub(crate) async fn pass(&self, bytes: usize) {
        if !self.is_narrow.load(Ordering::Acquire) {
            return;
        }
        let mut opened = std::pin::pin!(self.opened.notified());
        // Register for the notification before the check. Otherwise this could miss that the limit is lifted in between.
        opened.as_mut().enable();
        let pause = self.lock().as_mut().map_or(Duration::ZERO, |pace| pace.take(Instant::now(), bytes));
        if !pause.is_zero() {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = opened => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Pace>> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn an_open_valve_lets_everything_pass() {
        let valve = Valve::default();
        assert!(valve.pass(1 << 30).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_at_a_narrow_valve_goes_on_when_it_opens() {
        let valve = Valve::default();
        valve.set(Some(1));
        let mut waiting = std::pin::pin!(valve.pass(1 << 30));
        assert!(waiting.as_mut().now_or_never().is_none());
        valve.set(None);
        waiting.await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_narrow_valve_keeps_its_rate() {
        let valve = Valve::default();
        valve.set(Some(1_000_000));
        let start = tokio::time::Instant::now();
        valve.pass(500_000).await;
        assert!(start.elapsed() >= Duration::from_millis(490), "{:?}", start.elapsed());
    }
}
