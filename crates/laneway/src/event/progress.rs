//! The progress of a job, as plain numbers that a progress bar polls.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use laneway_lanes::Tally;

/// A running job's counters. Reading them doesn't slow the job down.
#[derive(Debug, Default)]
pub struct Progress {
    items_found: AtomicU64,
    bytes_found: AtomicU64,
    scan_complete: AtomicBool,
    items_done: AtomicU64,
    bytes_done: AtomicU64,
    bytes_there: AtomicU64,
    tally: OnceLock<Tally>,
    /// True if bytes count as transferred once they are sent, before the store confirms them.
    counts_sent: AtomicBool,
}

impl Progress {
    /// Returns the number of items found so far.
    pub fn items_found(&self) -> u64 {
        self.items_found.load(Ordering::Relaxed)
    }

    /// Returns the total size of the items found so far, without those of unknown size.
    pub fn bytes_found(&self) -> u64 {
        self.bytes_found.load(Ordering::Relaxed)
    }

    /// Returns whether all items have been found.
    pub fn scan_complete(&self) -> bool {
        self.scan_complete.load(Ordering::Relaxed)
    }

    /// Returns the number of items that ended, in success or failure.
    pub fn items_done(&self) -> u64 {
        self.items_done.load(Ordering::Relaxed)
    }

    /// Returns the bytes that this run needn't transfer, because an interrupted run of the same request has
    /// transferred them.
    pub fn bytes_there(&self) -> u64 {
        self.bytes_there.load(Ordering::Relaxed)
    }

    /// Returns the bytes transferred so far, including those of unfinished items and those of [an earlier
    /// run](Self::bytes_there). In an upload these are the bytes sent, without the bytes of failed attempts.
    pub fn bytes_done(&self) -> u64 {
        let done = self.bytes_done.load(Ordering::Relaxed);
        if !self.counts_sent.load(Ordering::Relaxed) {
            return done;
        }
        // A byte is counted as sent before it is counted as lost. So reading the lost bytes first ensures
        // that the difference isn't negative.
        let lost = self.tally().bytes_lost();
        let sent = self.tally().bytes_sent().saturating_sub(lost) + self.bytes_there();
        sent.min(self.bytes_found()).max(done)
    }

    /// Returns the tally of the job's own requests. It doesn't include other work of the same engine.
    pub fn tally(&self) -> &Tally {
        self.tally.get_or_init(Tally::default)
    }

    /// Sets the tally of the job's requests.
    pub(crate) fn counts_in(&self, tally: &Tally) {
        // This can't fail, because the job sets the tally before anything reads it.
        let _ = self.tally.set(tally.clone());
    }

    /// Makes bytes count as transferred once they are sent, before the store confirms them.
    pub(crate) fn counts_sent(&self) {
        self.counts_sent.store(true, Ordering::Relaxed);
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

    /// Subtracts transferred bytes that turned out to be wrong. Laneway transfers them again.
    pub(crate) fn taken_back(&self, bytes: u64) {
        let less = |done: u64| Some(done.saturating_sub(bytes));
        let _ = self.bytes_done.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Subtracts an object whose bytes turned out to be wrong, both from the found and from the transferred
    /// bytes. Laneway starts it again from the beginning, and counts it again.
    pub(crate) fn begun_again(&self, bytes: u64) {
        let less = |found: u64| Some(found.saturating_sub(bytes));
        let _ = self.bytes_found.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.taken_back(bytes);
    }

    /// Counts bytes that this run needn't transfer, because an earlier run has transferred them.
    pub(crate) fn there(&self, bytes: u64) {
        self.bytes_there.fetch_add(bytes, Ordering::Relaxed);
        self.bytes_done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts bytes of an earlier run that must be transferred again after all.
    pub(crate) fn not_there(&self, bytes: u64) {
        let less = |there: u64| Some(there.saturating_sub(bytes));
        let _ = self.bytes_there.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    pub(crate) fn moved(&self, bytes: u64) {
        self.bytes_done.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_is_begun_again_counts_once() {
        let progress = Progress::default();
        for _ in 0..2 {
            progress.sized(10);
            progress.moved(10);
            assert_eq!((progress.bytes_found(), progress.bytes_done()), (10, 10));
            progress.begun_again(10);
        }
        assert_eq!((progress.bytes_found(), progress.bytes_done()), (0, 0));
    }
}
