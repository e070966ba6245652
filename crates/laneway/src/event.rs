//! The events of a job, while it runs and at its end.

pub(crate) mod progress;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use laneway_store::PartsAlgorithm;

use crate::Error;
use crate::error::Printable;

/// An event of a job. Everything that the program `laneway` prints about a transfer comes from such events.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// An item ended.
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
    /// The action, or the omission, and its reason.
    pub message: String,
}

impl Warning {
    /// Makes the warning that a job skips a path which it has found.
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
    /// From this machine to a store.
    Upload,
    /// From a store to this machine.
    Download,
    /// From a store to a store.
    Copy,
    /// Deleted.
    Remove,
    /// Copied, between any two places, then removed at its source.
    Move,
    /// Changed in its metadata or storage class, in place.
    SetMeta,
    /// Restored from an archive.
    Restore,
    /// Read into a stream.
    Read,
    /// Compared with the item of the same name in the other place.
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
    /// The item's size in bytes. For a failed item it is the size as far as it was known.
    pub bytes: u64,
    /// The time from [`ClientBuilder::epoch`](crate::ClientBuilder::epoch) until work on the item began.
    pub start: Duration,
    /// The time from [`ClientBuilder::epoch`](crate::ClientBuilder::epoch) until work on the item ended.
    pub end: Duration,
    /// The largest number of attempts that one of its requests took.
    pub attempts: u32,
    /// True if the store itself enforced the precondition, so that no other writer could come between, or if
    /// there was no precondition. False if the store ignores preconditions. Laneway then looked at the
    /// destination before the write, and compared it afterwards.
    pub atomic: bool,
    /// The item's outcome.
    pub outcome: Outcome,
}

impl Item {
    /// Makes an item with one attempt and no other facts, for tests of code that reads items.
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
    /// It was done.
    Done {
        /// The checksum by which Laneway verified the item's bytes.
        verified: Verified,
    },
    /// The job skipped it.
    Skipped {
        /// The reason.
        why: &'static str,
    },
    /// The job was a dry run, and a real job would have begun the item.
    Planned,
    /// It was not done.
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
    /// Size only: the store gave no checksum that could be compared.
    Unverified,
    /// No bytes passed through this machine.
    NotApplicable,
}

impl Verified {
    /// Returns the value for a comparison of parts by this algorithm.
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
    /// Items that a sync found equal on both sides. They have no events of their own.
    pub unchanged: u64,
    /// Objects that a sync had to request one by one, because no listing shows their checksums or the file
    /// times in their metadata.
    pub asked: u64,
    /// Bytes of the items that were done.
    pub bytes: u64,
    /// From the job's start to its end.
    pub seconds: f64,
    /// Body bytes that crossed the network. This count and the following ones exclude other work of the same
    /// engine.
    pub network_bytes: u64,
    /// Connections opened. Other jobs may use them too: see
    /// [`Tally::connections`](crate::Tally::connections).
    pub connections: u64,
    /// TLS handshakes.
    pub handshakes: u64,
    /// Requests sent, counting every attempt.
    pub requests: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Hedges: second requests, sent because the first one is slow.
    pub hedges: u64,
    /// Items that were done without a checksum to compare.
    pub unverified: u64,
    /// Bytes of unfinished items that are kept beside their destination files or in the store. If the same
    /// request runs again, it continues with them.
    pub kept_bytes: u64,
    /// Bytes that this run didn't move, because an earlier run of the same request had moved them.
    pub resumed_bytes: u64,
    /// True if the job stopped at a failure that every other item would have met too. Examples are a missing
    /// bucket, and a store that sent nothing until the retry time was over. The other items are not counted
    /// as failed.
    pub stopped: bool,
    /// Items that were found but not done, because the job was cancelled or [`stopped`](Self::stopped).
    pub not_done: u64,
    /// True if the job ended before its search, so that there may be more items.
    pub search_cut: bool,
    /// True if the job was cancelled.
    pub interrupted: bool,
}
