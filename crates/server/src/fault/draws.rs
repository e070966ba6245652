//! Selects the faults of a running server's requests, until the faults are replaced.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use super::Faults;
use super::select::{Effects, Selection};
use crate::counters::Tally;
use crate::verb::Verb;

/// The faults of a server, and the counters of those that fired.
pub(crate) struct Draws {
    selection: Mutex<Selection>,
    /// The number of times that the faults have been replaced.
    replaced: watch::Sender<u64>,
    seed: u64,
    started: Instant,
    tally: Arc<Tally>,
}

impl Draws {
    pub(crate) fn new(faults: Faults, seed: u64, tally: &Arc<Tally>) -> Draws {
        Draws {
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

    /// Selects the faults of a request for one key.
    fn draw(&self, verb: Verb, key: &str) -> Effects {
        let mut selection = self.selection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut effects = selection.select(self.started.elapsed(), verb, key);
        effects.drawn = *self.replaced.borrow();
        drop(selection);
        self.tally.faults_fired.fetch_add(effects.fired, Relaxed);
        self.tally.tell();
        effects
    }

    /// Returns the status that faults demand for one of the keys that a bulk delete removes. Other faults can't be
    /// expressed in its answer.
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

    /// Waits until the faults of round `drawn` have been replaced.
    pub(crate) fn replaced(&self, drawn: u64) -> impl Future<Output = ()> + Send + 'static {
        let mut replaced = self.replaced.subscribe();
        async move {
            // A server that ends also ends its faults.
            let _ = replaced.wait_for(|round| *round != drawn).await;
        }
    }
}
