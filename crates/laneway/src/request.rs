//! What a client is asked to do.

mod byte_range;
mod check;

use laneway_store::PutOptions;

use crate::{Gzip, Location};

pub use byte_range::ByteRange;

/// Copies sources to a destination: uploads, downloads, copies between stores, each as the two ends say.
#[derive(Clone, Debug)]
pub struct CopyRequest {
    /// What is copied. Keys with `*`, `?` or `[` are patterns.
    pub sources: Vec<Location>,
    /// Where to. Whether it is a folder is decided by its text (a bucket's root, a trailing slash); only of a local
    /// one it is looked up.
    pub destination: Location,
    /// Whether directories and prefixes are copied with what they hold.
    pub recursive: bool,
    /// Whether each source is removed once its copy is verified.
    pub remove_source: bool,
    /// Only tell what would be done.
    pub dry_run: bool,
    /// Leave destinations that exist as they are.
    pub no_clobber: bool,
    /// Flush files and their directories to disk before an item counts as done.
    pub durable: bool,
    /// When the job is cancelled, leave what has come of large objects beside their destinations, and in the store what
    /// it has of large files ([`ClientBuilder::upload_journals`](crate::ClientBuilder::upload_journals)), where the same request
    /// goes on with it. What a failure of the network or the end of the process interrupts is kept in any case.
    pub keep_partial: bool,
    /// Enter directories through symbolic links too. Links to files are followed in any case.
    pub follow_symlinks: bool,
    /// What new objects are to be; an empty content type is guessed from the name.
    pub put: PutOptions,
    /// Which local files are compressed on their way into a store.
    pub gzip: Gzip,
    /// How many bytes a source will bring whose length can't be seen: standard input, a pipe. Only needed where they are
    /// more than 156 GiB and the store wants parts of one size, or more than 6 TiB.
    pub expect_size: Option<u64>,
}

impl CopyRequest {
    /// A plain copy.
    pub fn new(sources: Vec<Location>, destination: Location) -> Self {
        Self {
            sources,
            destination,
            recursive: false,
            remove_source: false,
            dry_run: false,
            no_clobber: false,
            durable: false,
            keep_partial: false,
            follow_symlinks: false,
            put: PutOptions::default(),
            gzip: Gzip::default(),
            expect_size: None,
        }
    }
}

/// Removes objects.
#[derive(Clone, Debug)]
pub struct RemoveRequest {
    /// Objects, patterns, or with [`recursive`](Self::recursive) prefixes.
    pub targets: Vec<Location>,
    /// Whether prefixes are removed with everything under them.
    pub recursive: bool,
    /// Only tell what would be removed.
    pub dry_run: bool,
}

/// Lists objects.
#[derive(Clone, Debug)]
pub struct ListRequest {
    /// A prefix, an object, a pattern; without a bucket, the buckets.
    pub at: Location,
    /// Whether everything under the prefix is listed instead of one level.
    pub recursive: bool,
}

/// Reads an object, or ranges of it, in order.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// The object.
    pub at: Location,
    /// Which bytes, in the order in which they are wanted, each range as often as it is named, whether they overlap or not; none for the
    /// whole object.
    pub ranges: Vec<ByteRange>,
}
