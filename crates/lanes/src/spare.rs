//! Lanes for bulk that would pay, for those who have large objects to claim.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

/// The lanes to spare of one origin, as its dispatcher sees them.
#[derive(Debug)]
pub(crate) struct SpareLanes {
    lanes: watch::Sender<usize>,
    claimed: Arc<AtomicUsize>,
}

impl SpareLanes {
    pub(crate) fn new() -> Self {
        Self { lanes: watch::Sender::new(0), claimed: Arc::default() }
    }

    /// Tells how many more requests for bulk would each get a lane that pays.
    pub(crate) fn set(&self, lanes: usize) {
        self.lanes.send_replace(lanes);
    }

    /// Tells once more what there is: claims have ended, and others may have looked in vain.
    pub(crate) fn set_again(&self) {
        if *self.lanes.borrow() > 0 {
            self.lanes.send_modify(|_| ());
        }
    }

    pub(crate) fn subscribe(&self) -> Spare {
        Spare { lanes: self.lanes.subscribe(), claimed: Arc::clone(&self.claimed) }
    }
}

/// The number of requests for bulk from an origin that would each get a lane that pays, beside those that there are. A large download
/// claims such lanes and asks for its object in as many more ranges.
#[derive(Debug)]
pub struct Spare {
    lanes: watch::Receiver<usize>,
    claimed: Arc<AtomicUsize>,
}

/// A lane for one more request.
#[derive(Debug)]
pub struct SpareClaim(Arc<AtomicUsize>);

tokio::task_local! {
    static CLAIM: Cell<Option<SpareClaim>>;
}

impl SpareClaim {
    /// Runs a future, whose first request has the lane: as soon as the dispatcher counts that, the claim ends.
    pub fn scope<F: Future>(claim: Option<Self>, future: F) -> impl Future<Output = F::Output> {
        // No `async fn`: that would hold the future twice.
        CLAIM.scope(Cell::new(claim), future)
    }

    /// Takes the claim of the surrounding [`scope`](Self::scope), where there is one.
    pub(crate) fn take() -> Option<Self> {
        CLAIM.try_with(Cell::take).ok().flatten()
    }
}

impl Spare {
    /// Returns a `Spare` that never has a lane, for a store without an origin.
    pub fn none() -> Self {
        SpareLanes::new().subscribe()
    }

    /// Returns how many lanes can be claimed now.
    pub fn lanes(&self) -> usize {
        self.lanes.borrow().saturating_sub(self.claimed.load(Ordering::Relaxed))
    }

    /// Claims a lane, where there is one.
    pub fn claim(&self) -> Option<SpareClaim> {
        let lanes = *self.lanes.borrow();
        let one_more = |claimed| (claimed < lanes).then_some(claimed + 1);
        self.claimed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(SpareClaim(Arc::clone(&self.claimed)))
    }

    /// Returns when a lane may have become free, or when there are fewer; never once the engine has ended.
    pub async fn changed(&mut self) {
        if self.lanes.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

impl Drop for SpareClaim {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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
        lanes.set(2);
        let (first, second) = (one.claim(), other.claim());
        assert!(first.is_some() && second.is_some() && one.claim().is_none());
        // The dispatcher counts the first of them by now.
        lanes.set(1);
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
        lanes.set(1);
        let spare = lanes.subscribe();
        let first =
            SpareClaim::scope(spare.claim(), async { (SpareClaim::take(), SpareClaim::take().is_none()) })
                .await;
        assert!(matches!(first, (Some(_), true)));
        assert!(SpareClaim::take().is_none());
    }
}
