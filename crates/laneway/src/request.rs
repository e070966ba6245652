//! What a client is asked to do.

mod byte_range;
mod check;
mod set_meta;
mod setters;
mod sync;
mod verify;

use laneway_store::{Capabilities, PutOptions};

use crate::manifest::{Settings, Subject};
use crate::mapping::{SourceName, name_of_key};
use crate::preserve::Preserve;
use crate::{Filter, Gzip, Location, Manifest};
use setters::setters;

pub use byte_range::ByteRange;
pub use set_meta::SetMetaRequest;
pub use sync::SyncRequest;
pub use verify::VerifyRequest;

/// Copies sources to a destination: uploads, downloads, copies between stores, each as the two ends say.
///
/// ```
/// use laneway::CopyRequest;
///
/// let request = CopyRequest::new(vec!["photos".parse()?], "s3://lake/photos/".parse()?);
/// let request = request.recursive(true).no_clobber(true);
/// # assert!(request.recursive && request.no_clobber);
/// # Ok::<(), laneway::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
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
    /// What a tree holds goes straight into a destination that is written as a folder, and not below the tree's own name.
    pub contents: bool,
    /// Which of what trees hold is copied, by its names below their tops. Sources that are no trees are copied in any case.
    pub filter: Filter,
    /// Keep the time of change, the mode and the owner of files as metadata of the objects that they become, under the names that
    /// `gcloud storage` (GCS) and rclone (S3) read, and set on files what objects carry of these. An owner is set where that is permitted.
    pub preserve: bool,
    /// Whether times of change that listings show objects to carry are set on files in any case.
    pub(crate) sets_times: bool,
    /// What new objects are to be; an empty content type is guessed from the name.
    pub put: PutOptions,
    /// Which local files are compressed on their way into a store.
    pub gzip: Gzip,
    /// How many bytes a source will bring whose length can't be seen: standard input, a pipe. Only needed where they are
    /// more than 156 GiB and the store wants parts of one size, or more than 6 TiB.
    pub expect_size: Option<u64>,
    /// A file ([`PathBuf`](std::path::PathBuf)) to which each item's outcome is written as it comes, a line of JSON each. The same request with the same file leaves out what
    /// is done, after a look at the source that costs no request where a listing or a walk has it anyway. A file of another job, or with a
    /// broken line, is refused.
    pub manifest: Option<Manifest>,
    /// What of the one source is copied, instead of all that lies below it: a file, or standard input, that has a name below the source in each
    /// line. Empty lines are passed over, and those that begin with `#` or `;`. A request with such a list takes no filter.
    pub files_from: Option<Location>,
    /// What stands for the listing of the one source: the `manifest.json` of S3 Inventory or of a Storage Insights report, whose data files
    /// lie beside it (of one in a store: where it says), or what `ls -r --json` prints. A file, or an object.
    pub inventory: Option<Location>,
}

impl CopyRequest {
    /// A plain copy.
    pub fn new(sources: Vec<Location>, destination: Location) -> Self {
        Self {
            sources,
            // No version is ever written, so that it is a part of the key.
            destination: destination.as_written(),
            recursive: false,
            remove_source: false,
            dry_run: false,
            no_clobber: false,
            durable: false,
            keep_partial: false,
            follow_symlinks: false,
            contents: false,
            filter: Filter::default(),
            preserve: false,
            sets_times: false,
            put: PutOptions::default(),
            gzip: Gzip::default(),
            expect_size: None,
            manifest: None,
            files_from: None,
            inventory: None,
        }
    }

    setters! {
        recursive: bool,
        remove_source: bool,
        dry_run: bool,
        no_clobber: bool,
        durable: bool,
        keep_partial: bool,
        follow_symlinks: bool,
        contents: bool,
        filter: Filter,
        preserve: bool,
        put: PutOptions,
        gzip: Gzip,
        files_from: some Location,
        inventory: into Location,
        manifest: into Manifest,
        expect_size: some u64,
    }

    /// What of files besides their bytes is set on them, of what the objects of a store carry.
    pub(crate) fn preserves(&self, from: &Capabilities) -> Preserve {
        match (self.preserve, self.sets_times, from.list_tells_metadata) {
            (true, ..) => Preserve::All,
            // A time that no listing shows would make the file look older than its object.
            (false, true, true) => Preserve::Times,
            (false, ..) => Preserve::Nothing,
        }
    }

    /// The name that a tree below a key brings along into a folder.
    pub(crate) fn tree_name(&self, bucket: &str, key: &str) -> SourceName {
        match self.contents {
            true => SourceName::Contents,
            false => SourceName::Named(name_of_key(bucket, key).to_owned()),
        }
    }

    /// Whose manifest it keeps.
    pub(crate) fn subject(&self, added: &str) -> Subject {
        let settings = Settings { put: &self.put, gzip: Some(&self.gzip), preserve: self.preserve, added };
        let job = if self.remove_source { "move" } else { "copy" };
        Subject::new(job, &self.sources, Some(&self.destination)).making(&settings)
    }
}

/// Removes objects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RemoveRequest {
    /// Objects, patterns, or with [`recursive`](Self::recursive) prefixes.
    pub targets: Vec<Location>,
    /// Whether prefixes are removed with everything under them.
    pub recursive: bool,
    /// Whether all versions go that the buckets keep, noncurrent ones and delete markers too, and for good. A filter that looks at sizes or
    /// times takes no delete markers: what it leaves below them would be the object again.
    pub all_versions: bool,
    /// Whether an object that isn't there counts as removed.
    pub missing_is_fine: bool,
    /// Only tell what would be removed.
    pub dry_run: bool,
    /// Which of what lies under prefixes is removed, by its names below them. Objects that are named are removed in any case.
    pub filter: Filter,
    /// As [`CopyRequest::manifest`].
    pub manifest: Option<Manifest>,
    /// As [`CopyRequest::files_from`], below the one target and without a filter; without a target the lines are whole URLs.
    pub files_from: Option<Location>,
    /// What stands for the listing of the one target: the `manifest.json` of S3 Inventory or of a Storage Insights report, whose data files
    /// lie beside it (of one in a store: where it says), or what `ls -r --json` prints. A file, or an object.
    pub inventory: Option<Location>,
}

impl RemoveRequest {
    /// Removes objects, or what matches patterns. Of a bucket that keeps versions what is live becomes a noncurrent one.
    pub fn new(targets: Vec<Location>) -> Self {
        Self {
            targets,
            recursive: false,
            all_versions: false,
            missing_is_fine: false,
            dry_run: false,
            filter: Filter::default(),
            manifest: None,
            files_from: None,
            inventory: None,
        }
    }

    setters! {
        files_from: some Location,
        inventory: into Location,
        manifest: into Manifest,
        recursive: bool,
        all_versions: bool,
        missing_is_fine: bool,
        dry_run: bool,
        filter: Filter,
    }

    /// Whose manifest it keeps.
    pub(crate) fn subject(&self) -> Subject {
        Subject::new("remove", &self.targets, None)
    }
}

/// Lists objects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListRequest {
    /// A prefix, an object, a pattern; without a bucket, the buckets.
    pub at: Location,
    /// Whether everything under the prefix is listed instead of one level.
    pub recursive: bool,
    /// Whether all versions are listed that the bucket keeps, each with [`ObjectId::version`](crate::ObjectId::version): of each key
    /// GCS's oldest first, S3's newest first with its delete markers. They come in one chain of pages.
    pub all_versions: bool,
    /// With [`recursive`](Self::recursive): which of what lies under the prefix is listed, by its names below it.
    pub filter: Filter,
    /// Whether the order of the keys' bytes is wanted, as far as the store has it. Without it nothing waits for what comes before.
    pub in_order: bool,
    /// With [`recursive`](Self::recursive): what stands for the listing, as [`CopyRequest::inventory`]. With
    /// [`in_order`](Self::in_order) its first line out of order ends it.
    pub inventory: Option<Location>,
}

impl ListRequest {
    /// Lists one level.
    pub fn new(at: Location) -> Self {
        let at = at.as_written();
        let filter = Filter::default();
        Self { at, recursive: false, all_versions: false, filter, in_order: true, inventory: None }
    }

    setters! {
        all_versions: bool,
        in_order: bool,
        inventory: into Location,
        recursive: bool,
        filter: Filter,
    }
}

/// Reads an object, or ranges of it, in order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadRequest {
    /// The object.
    pub at: Location,
    /// Which bytes, in the order in which they are wanted, each range as often as it is named, whether they overlap or not; none for the
    /// whole object.
    pub ranges: Vec<ByteRange>,
}

impl ReadRequest {
    /// Reads the whole object.
    pub fn new(at: Location) -> Self {
        Self { at, ranges: Vec::new() }
    }

    /// Sets [`ranges`](field@Self::ranges).
    #[must_use]
    pub fn ranges(mut self, ranges: impl IntoIterator<Item = ByteRange>) -> Self {
        self.ranges = ranges.into_iter().collect();
        self
    }
}
