//! The events of a job, while it runs and at its end.

pub(crate) mod progress;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use laneway_store::PartsAlgorithm;

use crate::Error;
use crate::error::Printable;

/// An event of a job. The program prints nothing about a transfer that isn't in its events.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// An item ended.
    Item(Item),
    /// Something was left out that the caller may have meant, or was done differently than requested.
    Warning(Warning),
    /// The job ended. No event follows.
    Done(Summary),
}

/// A warning: something was left out that the caller may have meant, or was done differently than requested.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Warning {
    /// The path or URL that the warning concerns.
    pub target: String,
    /// The action, or the omission, and its reason.
    pub message: String,
}

impl Warning {
    /// A path lies where the job looks, but isn't part of the job.
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
    /// Read into a stream.
    Read,
    /// Compared with the other place's item.
    Verify,
}

impl Op {
    /// Returns `upload`, `download`, `copy`, `remove`, `move`, `setmeta`, `read` or `verify`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Download => "download",
            Self::Copy => "copy",
            Self::Remove => "remove",
            Self::Move => "move",
            Self::SetMeta => "setmeta",
            Self::Read => "read",
            Self::Verify => "verify",
        }
    }
}

/// The end of an item.
#[derive(Debug)]
#[non_exhaustive]
pub struct Item {
    /// The operation.
    pub op: Op,
    /// Path or URL of its source.
    pub source: String,
    /// Path or URL of its destination.
    pub destination: Option<String>,
    /// Its size in bytes; for a failed item, the size as far as it is known.
    pub bytes: u64,
    /// When work on it began, since [`ClientBuilder::epoch`](crate::ClientBuilder::epoch).
    pub start: Duration,
    /// When work on it ended, likewise.
    pub end: Duration,
    /// The largest number of attempts that one of its requests took.
    pub attempts: u32,
    /// True if the store itself enforced the precondition, so that no other writer could come between, or if
    /// there was no precondition. Some stores ignore preconditions. There Laneway looked at the destination
    /// before the write, and compared it afterwards.
    pub atomic: bool,
    /// Its outcome.
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
        /// The checksum by which its bytes were verified.
        verified: Verified,
    },
    /// It was left as it was.
    Skipped {
        /// The reason.
        why: &'static str,
    },
    /// A dry run would have done it.
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
    /// The CRC32 of each part, and of those.
    CompositeCrc32,
    /// The SHA-256 of each part, and of those.
    CompositeSha256,
    /// The SHA-1 of each part, and of those.
    CompositeSha1,
    /// The MD5 of each part, and of those: an ETag with a number.
    CompositeMd5,
    /// Size only: the store gave no checksum that could be compared.
    Unverified,
    /// No bytes passed through this machine.
    NotApplicable,
}

impl Verified {
    /// By the digests of parts.
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
    /// Items that were done; in a dry run, items that would have been.
    pub files: u64,
    /// Items that failed.
    pub failed: u64,
    /// Items that were left as they were.
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
    /// Body bytes that crossed the network. This count and those below are the job's own, whatever else its
    /// engine did meanwhile.
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
    /// Hedges: second requests beside a first one that is slow.
    pub hedges: u64,
    /// Items that were done without a checksum to compare.
    pub unverified: u64,
    /// Bytes that are kept of items that were not done, beside their destination files or in the store. The
    /// same request continues with them.
    pub kept_bytes: u64,
    /// Bytes that an earlier run of the same request had moved, and this run did not move again.
    pub resumed_bytes: u64,
    /// True if the job stopped at a failure that every other item would have met too. Examples are a missing
    /// bucket, and a store that gave nothing until the retry time was over. The other items are not counted
    /// as failed.
    pub stopped: bool,
    /// Items that were found but not done, because the job was cancelled or [`stopped`](Self::stopped)
    /// before.
    pub not_done: u64,
    /// True if there may be more items that were not found yet.
    pub search_cut: bool,
    /// True if the job was cancelled.
    pub interrupted: bool,
}
