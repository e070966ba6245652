//! How far a job is, as plain numbers that a progress bar polls.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use laneway_lanes::Lanes;

/// A running job's counters. Reading them costs the job nothing.
#[derive(Debug, Default)]
pub struct Progress {
    items_found: AtomicU64,
    bytes_found: AtomicU64,
    scan_complete: AtomicBool,
    items_done: AtomicU64,
    bytes_done: AtomicU64,
    bytes_there: AtomicU64,
    sending: OnceLock<Sending>,
}

/// Where the bytes of requests that are still under way are counted.
#[derive(Debug)]
struct Sending {
    lanes: Lanes,
    before: u64,
}

impl Progress {
    /// Items found so far.
    pub fn items_found(&self) -> u64 {
        self.items_found.load(Ordering::Relaxed)
    }

    /// Bytes of those whose size is known.
    pub fn bytes_found(&self) -> u64 {
        self.bytes_found.load(Ordering::Relaxed)
    }

    /// Whether nothing more will be found.
    pub fn scan_complete(&self) -> bool {
        self.scan_complete.load(Ordering::Relaxed)
    }

    /// Items that ended, well or not.
    pub fn items_done(&self) -> u64 {
        self.items_done.load(Ordering::Relaxed)
    }

    /// Bytes that an earlier run of the same request had moved, and this one does not move again.
    pub fn bytes_there(&self) -> u64 {
        self.bytes_there.load(Ordering::Relaxed)
    }

    /// Bytes moved, those of unfinished items and those that [were there](Self::bytes_there) too. While uploads are under way
    /// this is what the engine has sent, and a little too much where something had to be sent again or another job sends beside
    /// this one.
    pub fn bytes_done(&self) -> u64 {
        let done = self.bytes_done.load(Ordering::Relaxed);
        let Some(Sending { lanes, before }) = self.sending.get() else { return done };
        let sent = lanes.counters().bytes_sent.saturating_sub(*before) + self.bytes_there();
        sent.min(self.bytes_found()).max(done)
    }

    /// Counts what the engine sends from now on as moved before it is confirmed.
    pub(crate) fn sends_over(&self, lanes: &Lanes) {
        let before = lanes.counters().bytes_sent;
        let _ = self.sending.set(Sending { lanes: lanes.clone(), before });
    }

    pub(crate) fn found(&self, items: u64, bytes: u64) {
        self.items_found.fetch_add(items, Ordering::Relaxed);
        self.bytes_found.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn sized(&self, bytes: u64) {
        self.bytes_found.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn scanned(&self) {
        self.scan_complete.store(true, Ordering::Relaxed);
    }

    pub(crate) fn ended(&self) {
        self.items_done.fetch_add(1, Ordering::Relaxed);
    }

    /// What was moved turned out to be wrong, and is moved again.
    pub(crate) fn taken_back(&self, bytes: u64) {
        let less = |done: u64| Some(done.saturating_sub(bytes));
        let _ = self.bytes_done.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Counts what need not be moved, because an earlier run has.
    pub(crate) fn there(&self, bytes: u64) {
        self.bytes_there.fetch_add(bytes, Ordering::Relaxed);
        self.bytes_done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What an earlier run had moved has to be moved again after all.
    pub(crate) fn not_there(&self, bytes: u64) {
        let less = |there: u64| Some(there.saturating_sub(bytes));
        let _ = self.bytes_there.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    pub(crate) fn moved(&self, bytes: u64) {
        self.bytes_done.fetch_add(bytes, Ordering::Relaxed);
    }
}
