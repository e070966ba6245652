//! The server's counters, without locks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::verb::Verb;

/// A snapshot of a server's counters since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerCounters {
    /// TCP connections accepted.
    pub connections: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// The peak number of open connections.
    pub connections_peak: u64,
    /// TLS handshakes completed.
    pub tls_handshakes: u64,
    /// Connections that agreed on HTTP/2.
    pub h2_connections: u64,
    /// Requests whose head was read, including those with faults.
    pub requests: u64,
    /// Requests by verb (`get`, `put`, ...). Verbs without requests are absent.
    pub requests_by_verb: BTreeMap<&'static str, u64>,
    /// The peak number of concurrent requests on a single connection. On HTTP/2, each request is a stream.
    pub streams_peak: u64,
    /// The peak number of concurrent requests in the whole server.
    pub requests_peak: u64,
    /// The peak number of concurrent requests for each verb. Verbs without requests are absent.
    pub peak_by_verb: BTreeMap<&'static str, u64>,
    /// Bytes read from sockets, including TLS and framing.
    pub bytes_in: u64,
    /// Bytes written to sockets, including TLS and framing.
    pub bytes_out: u64,
    /// Segments that the simulated path lost and sent again, in both directions. A segment that was lost twice counts
    /// twice.
    pub segments_lost: u64,
    /// Faults that fired.
    pub faults_fired: u64,
    /// Multipart uploads (S3 and GCS XML) that were begun and neither completed nor aborted.
    pub multipart_open: u64,
    /// GCS resumable sessions that were begun and neither finished nor cancelled.
    pub resumable_open: u64,
}

/// The live counters behind [`ServerCounters`].
#[derive(Debug, Default)]
pub(crate) struct LiveCounters {
    connections: AtomicU64,
    pub(crate) connections_open: AtomicU64,
    connections_peak: AtomicU64,
    pub(crate) tls_handshakes: AtomicU64,
    pub(crate) h2_connections: AtomicU64,
    pub(crate) verbs: [AtomicU64; Verb::COUNT],
    verbs_now: [AtomicU64; Verb::COUNT],
    verbs_peak: [AtomicU64; Verb::COUNT],
    streams_peak: AtomicU64,
    requests_now: AtomicU64,
    requests_peak: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) faults_fired: AtomicU64,
    /// The lock that belongs to the condition variable, on which threads wait for changes of the counters.
    watch: Mutex<()>,
    changed: Condvar,
}

impl LiveCounters {
    /// Counts an accepted connection.
    pub(crate) fn accepted(&self) {
        self.connections.fetch_add(1, Relaxed);
        let open = self.connections_open.fetch_add(1, Relaxed) + 1;
        self.connections_peak.fetch_max(open, Relaxed);
    }

    /// Wakes the threads that wait for changes of the counters.
    pub(crate) fn tell(&self) {
        // Another thread may have checked the counters but not yet begun to wait. That thread holds the lock until it
        // waits. So this thread takes the lock before it notifies: then the other thread is already waiting, and the
        // notification wakes it.
        drop(self.watch.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits until `is_so` returns true, and calls it after each [`tell`](Self::tell). Returns false if `timeout`
    /// passes first.
    pub(crate) fn wait_until(&self, timeout: Duration, mut is_so: impl FnMut() -> bool) -> bool {
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(watch, timeout, |()| !is_so());
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    pub(crate) fn snapshot(
        &self,
        segments_lost: u64,
        multipart_open: usize,
        resumable_open: usize,
    ) -> ServerCounters {
        let by_name = |counts: &[AtomicU64]| -> BTreeMap<&'static str, u64> {
            Verb::ALL
                .iter()
                .map(|verb| (verb.name(), counts[*verb as usize].load(Relaxed)))
                .filter(|(_, count)| *count > 0)
                .collect()
        };
        let by_verb = by_name(&self.verbs);
        ServerCounters {
            connections: self.connections.load(Relaxed),
            connections_open: self.connections_open.load(Relaxed),
            connections_peak: self.connections_peak.load(Relaxed),
            tls_handshakes: self.tls_handshakes.load(Relaxed),
            h2_connections: self.h2_connections.load(Relaxed),
            requests: by_verb.values().sum(),
            requests_by_verb: by_verb,
            streams_peak: self.streams_peak.load(Relaxed),
            requests_peak: self.requests_peak.load(Relaxed),
            peak_by_verb: by_name(&self.verbs_peak),
            bytes_in: self.bytes_in.load(Relaxed),
            bytes_out: self.bytes_out.load(Relaxed),
            segments_lost,
            faults_fired: self.faults_fired.load(Relaxed),
            multipart_open: multipart_open as u64,
            resumable_open: resumable_open as u64,
        }
    }
}

/// A running request, which is counted until this value is dropped.
pub(crate) struct RunningRequest {
    tally: Arc<LiveCounters>,
    on_connection: Arc<AtomicU64>,
    verb: Option<Verb>,
}

impl RunningRequest {
    pub(crate) fn begin(tally: &Arc<LiveCounters>, on_connection: &Arc<AtomicU64>) -> RunningRequest {
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
