//! What a job tells while it runs and at its end.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use laneway_store::PartsAlgorithm;

use crate::Error;
use crate::error::Printable;

/// One thing that happened. Everything that the program prints about a transfer is made of these.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// An item ended.
    Item(Item),
    /// Something was left out that the caller may have meant, or done differently than asked.
    Warning(Warning),
    /// The job ended; nothing follows.
    Done(Summary),
}

/// Something was left out that the caller may have meant, or done differently than asked.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Warning {
    /// What it is about: a path or a URL.
    pub target: String,
    /// What was done, or not, and why.
    pub message: String,
}

impl Warning {
    /// A path that is no part of the job, although it lies where the job looks.
    pub(crate) fn left_out(path: &Path, why: &str) -> Self {
        Self { target: path.display().to_string(), message: format!("skipped: {why}") }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", Printable(&self.target), self.message)
    }
}

/// What was done with an item.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Op {
    /// From this machine into a store.
    Upload,
    /// From a store to this machine.
    Download,
    /// From a store into a store.
    Copy,
    /// Deleted.
    Remove,
    /// Copied, wherever the two ends are, and removed from where it was.
    Move,
    /// Described otherwise, where it is.
    SetMeta,
    /// Read to a stream.
    Read,
    /// Compared with another place's.
    Verify,
}

impl Op {
    /// `upload`, `download`, `copy`, `remove`, `move`, `setmeta`, `read` or `verify`.
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

/// An item's end.
#[derive(Debug)]
#[non_exhaustive]
pub struct Item {
    /// What was done.
    pub op: Op,
    /// Path or URL it came from.
    pub source: String,
    /// Path or URL it went to.
    pub destination: Option<String>,
    /// Its size in bytes; of a failed item, what is known of it.
    pub bytes: u64,
    /// When work on it began, since [`ClientBuilder::epoch`](crate::ClientBuilder::epoch).
    pub start: Duration,
    /// When it ended, likewise.
    pub end: Duration,
    /// Most attempts that one of its requests took.
    pub attempts: u32,
    /// Whether the store itself kept the precondition that was asked for, so that no other writer could come between; true
    /// where none was. Some stores pass preconditions over: there the destination was looked up before, and compared after.
    pub atomic: bool,
    /// How it ended.
    pub outcome: Outcome,
}

impl Item {
    /// An item of one attempt, of which nothing else is known: for tests of what reads items.
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

/// How an item ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// Done.
    Done {
        /// What its bytes were compared by.
        verified: Verified,
    },
    /// Left as it was.
    Skipped {
        /// Why.
        why: &'static str,
    },
    /// Would have been done, were this no dry run.
    Planned,
    /// Not done.
    Failed(Error),
}

/// What an item's bytes were compared by.
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
    /// The CRC32C of each part, and of those.
    Composite,
    /// The CRC32 of each part, and of those.
    CompositeCrc32,
    /// The SHA-256 of each part, and of those.
    CompositeSha256,
    /// The SHA-1 of each part, and of those.
    CompositeSha1,
    /// The MD5 of each part, and of those: an ETag with a number.
    CompositeMd5,
    /// Size only: the store gave no checksum that can be compared.
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

/// What a job did.
#[derive(Clone, PartialEq, Default, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// Items that were done (in a dry run: planned).
    pub files: u64,
    /// Items that failed.
    pub failed: u64,
    /// Items that were left as they were.
    pub skipped: u64,
    /// What a sync has removed at its destination (in a dry run: would have), which is not among the [`files`](Self::files).
    pub removed: u64,
    /// What a sync found to be the same on both sides. No event tells of each.
    pub unchanged: u64,
    /// Objects that a sync had to ask for one by one, because no listing tells their checksums, or the times that they carry.
    pub asked: u64,
    /// Bytes of the items that were done.
    pub bytes: u64,
    /// From the job's start to its end.
    pub seconds: f64,
    /// Body bytes that crossed the network. This and the counts below are the job's own, whatever else its engine did meanwhile.
    pub network_bytes: u64,
    /// Connections opened (of those that other jobs use too: see [`Tally::connections`](crate::Tally::connections)).
    pub connections: u64,
    /// TLS handshakes.
    pub handshakes: u64,
    /// Requests sent, every attempt counted.
    pub requests: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Hedges: second requests for what a slow first one is to bring.
    pub hedges: u64,
    /// Items that were done without a checksum to compare.
    pub unverified: u64,
    /// Bytes of items that were not done which stay, beside the files they are to become or in the store: the same
    /// request goes on with them.
    pub kept_bytes: u64,
    /// Bytes that an earlier run of the same request had moved, and this one did not move again.
    pub resumed_bytes: u64,
    /// Whether the job ended at a failure that every other item would have met too, such as a missing bucket or a store that has
    /// given nothing for as long as is tried again. Those are not counted as failed.
    pub stopped: bool,
    /// Items that were found and not done, because the job was cancelled or [`stopped`](Self::stopped) before.
    pub not_done: u64,
    /// Whether there may be more of those, which were not found yet.
    pub search_cut: bool,
    /// Whether the job was cancelled.
    pub interrupted: bool,
}
