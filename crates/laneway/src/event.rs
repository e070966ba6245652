//! The events of a job, while it runs and at its end.

use std::fmt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use laneway_lanes::Tally;
use laneway_store::PartsAlgorithm;

use crate::Error;
use crate::error::Printable;

/// An event of a job. The program `laneway` prints its reports of transfers from these events.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// An item ended, in success or failure.
    Item(Item),
    /// The job left something out that the caller may have wanted, or did something differently than
    /// requested.
    Warning(Warning),
    /// The job ended. No event follows.
    Done(Summary),
}

/// A warning: the job left something out that the caller may have wanted, or did something differently than
/// requested.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Warning {
    /// The path or URL that the warning concerns.
    pub target: String,
    /// A sentence on what the job left out or did differently, and why.
    pub message: String,
}

impl Warning {
    /// Makes the warning about a path that a job's search found and that the job skips.
    pub(crate) fn left_out(path: &Path, why: &str) -> Self {
        Self { target: path.display().to_string(), message: format!("skipped: {why}") }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", Printable(&self.target), self.message)
    }
}

/// The operation on an item.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Op {
    /// A copy from this machine to a store.
    Upload,
    /// A copy from a store to this machine.
    Download,
    /// A copy from a store to a store.
    Copy,
    /// The removal of the item.
    Remove,
    /// A copy in any direction, followed by the removal of the source.
    Move,
    /// A change of the item's metadata or storage class, in place.
    SetMeta,
    /// The restoration of the item: from an archive on S3, or after its deletion on GCS.
    Restore,
    /// A read that passes the item's bytes to the caller.
    Read,
    /// A comparison with the item of the same name on the other side.
    Verify,
}

impl Op {
    /// Returns `upload`, `download`, `copy`, `remove`, `move`, `setmeta`, `restore`, `read` or `verify`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Download => "download",
            Self::Copy => "copy",
            Self::Remove => "remove",
            Self::Move => "move",
            Self::SetMeta => "setmeta",
            Self::Restore => "restore",
            Self::Read => "read",
            Self::Verify => "verify",
        }
    }
}

/// The report of an item that has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Item {
    /// The operation.
    pub op: Op,
    /// The path or URL of the item's source.
    pub source: String,
    /// The path or URL of the item's destination.
    pub destination: Option<String>,
    /// The item's size in bytes. For a failed item, 0 if the size was not yet known.
    pub bytes: u64,
    /// The time from [`ClientBuilder::epoch`](crate::ClientBuilder::epoch) until work on the item began.
    pub start: Duration,
    /// The time from [`ClientBuilder::epoch`](crate::ClientBuilder::epoch) until work on the item ended.
    pub end: Duration,
    /// The largest number of attempts that one of the item's requests took.
    pub attempts: u32,
    /// True if there was no precondition, or if the store itself enforced it, so that no other write could
    /// happen between check and write. False if the store may ignore preconditions. Laneway then checked the
    /// destination itself, before the write and once more afterwards.
    pub atomic: bool,
    /// The item's outcome.
    pub outcome: Outcome,
}

impl Item {
    /// Makes an item with one attempt, no destination and no bytes, for tests of code that reads items.
    pub fn new(op: Op, source: impl Into<String>, outcome: Outcome) -> Self {
        Self {
            op,
            source: source.into(),
            destination: None,
            bytes: 0,
            start: Duration::ZERO,
            end: Duration::ZERO,
            attempts: 1,
            atomic: true,
            outcome,
        }
    }
}

/// The outcome of an item.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The item was done.
    Done {
        /// The checksum by which Laneway verified the item's bytes.
        verified: Verified,
    },
    /// The job skipped the item.
    Skipped {
        /// The reason for skipping it.
        why: &'static str,
    },
    /// The job was a dry run, and a real job would have begun the item.
    Planned,
    /// The item failed.
    Failed(Error),
}

/// The comparison that verified an item's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Verified {
    /// CRC32C of the whole object.
    Crc32c,
    /// CRC64/NVME of the whole object.
    Crc64nvme,
    /// CRC32 of the whole object.
    Crc32,
    /// MD5 of the whole object.
    Md5,
    /// The CRC32C of each part, and the CRC32C of these checksums.
    Composite,
    /// The CRC32 of each part, and the CRC32 of these checksums.
    CompositeCrc32,
    /// The SHA-256 of each part, and the SHA-256 of these checksums.
    CompositeSha256,
    /// The SHA-1 of each part, and the SHA-1 of these checksums.
    CompositeSha1,
    /// The MD5 of each part, and the MD5 of these checksums: an ETag that ends in the number of parts.
    CompositeMd5,
    /// The checksums that the store computed of the bytes while it sent them, range by range. It keeps no checksum
    /// of the whole object that Laneway can compute.
    InTransit,
    /// Only the size was compared, because the store reported no checksum that Laneway can compute.
    Unverified,
    /// There was nothing to verify, because no bytes passed through this machine.
    NotApplicable,
}

impl Verified {
    /// Returns the value for bytes that were verified part by part with this algorithm.
    pub(crate) fn of_parts(algorithm: PartsAlgorithm) -> Self {
        match algorithm {
            PartsAlgorithm::Crc32c => Self::Composite,
            PartsAlgorithm::Crc32 => Self::CompositeCrc32,
            PartsAlgorithm::Sha256 => Self::CompositeSha256,
            PartsAlgorithm::Sha1 => Self::CompositeSha1,
            PartsAlgorithm::Md5 => Self::CompositeMd5,
        }
    }
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Crc32c => "crc32c",
            Self::Crc64nvme => "crc64nvme",
            Self::Crc32 => "crc32",
            Self::Md5 => "md5",
            Self::Composite => "crc32c-parts",
            Self::CompositeCrc32 => "crc32-parts",
            Self::CompositeSha256 => "sha256-parts",
            Self::CompositeSha1 => "sha1-parts",
            Self::CompositeMd5 => "md5-parts",
            Self::InTransit => "in-transit",
            Self::Unverified => "unverified",
            Self::NotApplicable => "not-applicable",
        })
    }
}

/// The totals of a job.
#[derive(Clone, PartialEq, Default, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// Items that were done. In a dry run, items that would have been done.
    pub files: u64,
    /// Items that failed.
    pub failed: u64,
    /// Items that were skipped.
    pub skipped: u64,
    /// Items that a sync removed at its destination, or would have removed in a dry run.
    /// [`files`](Self::files) doesn't include them.
    pub removed: u64,
    /// Items that a sync found equal on both sides. The job reports no events for them.
    pub unchanged: u64,
    /// Objects whose metadata a sync requested one by one. A sync needs such requests for checksums and file
    /// times that listings don't show, and for the names of a list
    /// ([`SyncRequest::files_from`](field@crate::SyncRequest::files_from)).
    pub asked: u64,
    /// Bytes of the items that were done.
    pub bytes: u64,
    /// The time from the job's start to its end, in seconds.
    pub seconds: f64,
    /// Bytes of request and response bodies that crossed the network. The numbers of network bytes,
    /// connections, handshakes, requests, retries and hedges include only this job's work.
    pub network_bytes: u64,
    /// Connections that were opened for the job's requests. Other jobs may use them too: see
    /// [`Tally::connections`](crate::Tally::connections).
    pub connections: u64,
    /// TLS handshakes.
    pub handshakes: u64,
    /// Requests sent, counting every attempt.
    pub requests: u64,
    /// Retries: the attempts of requests after their first.
    pub retries: u64,
    /// Hedged requests: second requests that Laneway sent because the first one was slow.
    pub hedges: u64,
    /// Items that were done without a checksum to compare.
    pub unverified: u64,
    /// Bytes of unfinished items that are kept, in files next to their destinations or in unfinished uploads
    /// in the store. If the same request runs again, it transfers only the missing bytes.
    pub kept_bytes: u64,
    /// Bytes that this run didn't transfer, because an interrupted run of the same request had transferred
    /// them.
    pub resumed_bytes: u64,
    /// True if the job stopped early, at a failure that would also have affected every other item. Examples
    /// are a missing bucket, and a store that sent nothing until the retry time was over. The other items are
    /// not counted as failed.
    pub stopped: bool,
    /// Items that were found but not done, because the job was cancelled or [`stopped`](Self::stopped).
    pub not_done: u64,
    /// True if the job ended before it had found all items, so that there may be more of them.
    pub search_cut: bool,
    /// True if the job was cancelled.
    pub interrupted: bool,
}

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
