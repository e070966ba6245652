//! Spare lanes are further connections that would make large transfers faster. A caller with a large object can claim some of them, and
//! uses each for one more request.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

/// The number of an origin's spare lanes, which the dispatcher sets.
#[derive(Debug)]
pub(crate) struct SpareLanes {
    lanes: watch::Sender<LaneCount>,
    claimed: Arc<AtomicUsize>,
}

impl SpareLanes {
    pub(crate) fn new() -> Self {
        Self { lanes: watch::Sender::new(LaneCount::default()), claimed: Arc::default() }
    }

    /// Sets how many more bulk requests (above 1 MiB) would raise the total rate, each on a lane of its own.
    /// `open` of these lanes are open and idle.
    pub(crate) fn set(&self, lanes: usize, open: usize) {
        self.lanes.send_replace(LaneCount { lanes, open });
    }

    /// Notifies callers again although the number of spare lanes hasn't changed. Some claims have ended, so a caller that found no lane
    /// before may find one now.
    pub(crate) fn set_again(&self) {
        if self.lanes.borrow().lanes > 0 {
            self.lanes.send_modify(|_| ());
        }
    }

    pub(crate) fn subscribe(&self) -> Spare {
        Spare { lanes: self.lanes.subscribe(), claimed: Arc::clone(&self.claimed) }
    }
}

/// A number of lanes. `open` is the number of those that are open and idle.
#[derive(Clone, Copy, Default, Debug)]
struct LaneCount {
    lanes: usize,
    open: usize,
}

/// The number of further bulk requests (above 1 MiB) to an origin that would raise the total rate, each on a lane of its own. A large
/// download claims such lanes, and requests one more range of its object for each of them.
#[derive(Debug)]
pub struct Spare {
    lanes: watch::Receiver<LaneCount>,
    claimed: Arc<AtomicUsize>,
}

/// A claimed lane for one more request.
#[derive(Debug)]
pub struct SpareClaim {
    claimed: Arc<AtomicUsize>,
    is_open: bool,
}

tokio::task_local! {
    static CLAIM: Cell<Option<SpareClaim>>;
}

impl SpareClaim {
    /// Runs a future whose first request uses the claimed lane. The claim ends when the dispatcher counts that request.
    pub fn scope<F: Future>(claim: Option<Self>, future: F) -> impl Future<Output = F::Output> {
        // This isn't an `async fn`, because its state would contain the future twice.
        CLAIM.scope(Cell::new(claim), future)
    }

    /// Returns whether the lane is open. Otherwise it must be dialled first.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Takes the claim of the surrounding [`scope`](Self::scope), if there is one.
    pub(crate) fn take() -> Option<Self> {
        CLAIM.try_with(Cell::take).ok().flatten()
    }
}

impl Spare {
    /// Returns a `Spare` that never has a lane, for a store without a network, such as one in memory.
    pub fn none() -> Self {
        SpareLanes::new().subscribe()
    }

    /// Returns how many lanes can be claimed now.
    pub fn lanes(&self) -> usize {
        self.lanes.borrow().lanes.saturating_sub(self.claimed.load(Ordering::Relaxed))
    }

    /// Claims a lane, if there is one.
    pub fn claim(&self) -> Option<SpareClaim> {
        let LaneCount { lanes, open } = *self.lanes.borrow();
        let one_more = |claimed| (claimed < lanes).then_some(claimed + 1);
        let before = self.claimed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(SpareClaim { claimed: Arc::clone(&self.claimed), is_open: before < open })
    }

    /// Resolves when the number of lanes has changed, or when a lane may have become free. It never resolves once the engine has ended.
    pub async fn changed(&mut self) {
        if self.lanes.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

impl Drop for SpareClaim {
    fn drop(&mut self) {
        self.claimed.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_lane_is_claimed_once_by_whoever_comes_first() {
        let lanes = SpareLanes::new();
        let (one, other) = (lanes.subscribe(), lanes.subscribe());
        assert!(one.claim().is_none());
        lanes.set(2, 1);
        let (first, second) = (one.claim(), other.claim());
        assert!(first.as_ref().is_some_and(SpareClaim::is_open), "one of two lanes is open");
        assert!(second.as_ref().is_some_and(|claim| !claim.is_open()) && one.claim().is_none());
        // By now, the dispatcher has counted the request of the first claim.
        lanes.set(1, 0);
        drop(first);
        assert_eq!((one.lanes(), one.claim().is_none()), (0, true), "the second is on its way");
        let mut waiting = other;
        waiting.changed().now_or_never();
        drop(second);
        lanes.set_again();
        assert!(waiting.changed().now_or_never().is_some(), "it is told");
        assert_eq!(waiting.lanes(), 1);
    }

    #[tokio::test]
    async fn the_first_request_of_a_scope_has_the_claim() {
        let lanes = SpareLanes::new();
        lanes.set(1, 0);
        let spare = lanes.subscribe();
        let first =
            SpareClaim::scope(spare.claim(), async { (SpareClaim::take(), SpareClaim::take().is_none()) })
                .await;
        assert!(matches!(first, (Some(_), true)));
        assert!(SpareClaim::take().is_none());
    }
}
