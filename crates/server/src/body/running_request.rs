//! Counts the requests that are running.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::counters::LiveCounters;
use crate::verb::Verb;

/// A running request, which is counted until this value is dropped.
pub(crate) struct RunningRequest {
    tally: Arc<LiveCounters>,
    on_connection: Arc<std::sync::atomic::AtomicU64>,
    verb: Option<Verb>,
}

impl RunningRequest {
    pub(crate) fn begin(
        tally: &Arc<LiveCounters>,
        on_connection: &Arc<std::sync::atomic::AtomicU64>,
    ) -> RunningRequest {
        let now = tally.requests_now.fetch_add(1, Relaxed) + 1;
        tally.requests_peak.fetch_max(now, Relaxed);
        let streams = on_connection.fetch_add(1, Relaxed) + 1;
        tally.streams_peak.fetch_max(streams, Relaxed);
        RunningRequest { tally: tally.clone(), on_connection: on_connection.clone(), verb: None }
    }

    /// Counts the request under its verb too, when the verb is known.
    pub(crate) fn asking(mut self, verb: Verb) -> RunningRequest {
        let now = self.tally.verbs_now[verb as usize].fetch_add(1, Relaxed) + 1;
        self.tally.verbs_peak[verb as usize].fetch_max(now, Relaxed);
        self.verb = Some(verb);
        self
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.tally.requests_now.fetch_sub(1, Relaxed);
        if let Some(verb) = self.verb {
            self.tally.verbs_now[verb as usize].fetch_sub(1, Relaxed);
        }
        self.on_connection.fetch_sub(1, Relaxed);
    }
}
