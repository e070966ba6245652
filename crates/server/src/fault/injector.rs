//! Selects the faults for the requests of a running server. The faults can be replaced while it runs.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use super::Faults;
use super::select::{Effects, Selection};
use crate::counters::LiveCounters;
use crate::verb::Verb;

/// The faults of a server, and the counters of faults that were applied.
pub(crate) struct FaultInjector {
    selection: Mutex<Selection>,
    /// The number of times that the faults have been replaced.
    replaced: watch::Sender<u64>,
    seed: u64,
    started: Instant,
    tally: Arc<LiveCounters>,
}

impl FaultInjector {
    pub(crate) fn new(faults: Faults, seed: u64, tally: &Arc<LiveCounters>) -> FaultInjector {
        FaultInjector {
            selection: Mutex::new(Selection::new(faults, seed)),
            replaced: watch::Sender::new(0),
            seed,
            started: Instant::now(),
            tally: tally.clone(),
        }
    }

    /// Counts a request, and selects its faults.
    pub(crate) fn effects(&self, verb: Verb, key: &str) -> Effects {
        self.tally.verbs[verb as usize].fetch_add(1, Relaxed);
        self.draw(verb, key)
    }

    /// Selects the faults for a request about one key.
    fn draw(&self, verb: Verb, key: &str) -> Effects {
        let mut selection = self.selection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut effects = selection.select(self.started.elapsed(), verb, key);
        effects.drawn = *self.replaced.borrow();
        drop(selection);
        self.tally.faults_fired.fetch_add(effects.fired, Relaxed);
        self.tally.tell();
        effects
    }

    /// Returns the status that a fault sets for one of the keys in a bulk delete. The answer to a bulk delete has a
    /// status for each key, but can't express other faults.
    pub(crate) fn refused_removal(&self, key: &str) -> Option<u16> {
        self.draw(Verb::Delete, key).status.map(|refusal| refusal.status)
    }

    /// Replaces the faults.
    pub(crate) fn replace(&self, faults: Faults) {
        let selection = Selection::new(faults, self.seed);
        let mut now = self.selection.lock().unwrap_or_else(PoisonError::into_inner);
        *now = selection;
        self.replaced.send_modify(|round| *round += 1);
    }

    /// Waits until the number of replacements of the faults differs from `drawn`.
    pub(crate) fn replaced(&self, drawn: u64) -> impl Future<Output = ()> + Send + 'static {
        let mut replaced = self.replaced.subscribe();
        async move {
            // An error means that the server has ended. Then its faults have ended too.
            let _ = replaced.wait_for(|round| *round != drawn).await;
        }
    }
}
