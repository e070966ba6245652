//! Requests of a client's jobs.

mod byte_range;
mod check;
mod put_options;
mod restore;
mod set_meta;
mod setters;
mod sync;
mod verify;

use laneway_store::{Capabilities, PutOptions};

use crate::event::Verified;
use crate::local::preserve::Preserve;
use crate::location::mapping::{SourceName, name_of_key};
use crate::manifest::{Settings, Subject};
use crate::{Filter, Gzip, Location, Manifest};
use setters::setters;

pub use byte_range::ByteRange;
pub use restore::RestoreRequest;
pub use set_meta::SetMetaRequest;
pub use sync::SyncRequest;
pub use verify::VerifyRequest;

/// Copies sources to a destination. Their locations decide whether the job uploads, downloads or copies
/// between stores.
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
    /// The sources. Keys with `*`, `?` or `[` are patterns.
    pub sources: Vec<Location>,
    /// The destination. Its text decides whether it is a folder (a bucket's root, a trailing slash). An
    /// existing local folder counts too, unless the only source is a tree.
    pub destination: Location,
    /// Copies directories and prefixes with their content.
    pub recursive: bool,
    /// Removes each source once its copy is verified.
    pub remove_source: bool,
    /// Also removes a source if only the size of its copy could be compared, because the store reports no
    /// suitable checksum.
    pub allow_unverified: bool,
    /// Only reports what would be done.
    pub dry_run: bool,
    /// Leaves existing destinations as they are.
    pub no_clobber: bool,
    /// Flushes each file and its directory to disk before its item counts as done.
    pub durable: bool,
    /// Keeps partial transfers when the job is cancelled: the bytes of large downloads beside their
    /// destinations, and the stored parts of large uploads
    /// ([`ClientBuilder::upload_journals`](crate::ClientBuilder::upload_journals)). If the same request runs
    /// again, it continues with them. Laneway always keeps transfers that a network failure or the end of the
    /// process interrupts.
    pub keep_partial: bool,
    /// Also enters directories through symbolic links. Links to files are always followed.
    pub follow_symlinks: bool,
    /// Copies the content of a tree directly into the destination folder, not into a folder with the tree's
    /// name.
    pub contents: bool,
    /// Chooses which items of trees are copied, by their names below the top of the tree. Sources that aren't
    /// trees are always copied.
    pub filter: Filter,
    /// Keeps the modification time, mode and owner of files as metadata of their objects, under the names
    /// that `gcloud storage` (GCS) and rclone (S3) read. Downloads set them on files, the owner only if the
    /// process may.
    pub preserve: bool,
    /// Always sets a file's modification time if a listing shows it in the object's metadata.
    pub(crate) sets_times: bool,
    /// The properties of new objects. An empty content type is guessed from the name.
    pub put: PutOptions,
    /// Chooses the local files that are compressed during upload.
    pub gzip: Gzip,
    /// Decompresses downloaded objects with `Content-Encoding` gzip or zstd, after their stored bytes were
    /// compared. The file then has another size than the object.
    pub decompress: bool,
    /// The expected size of a source with unknown length: standard input or a pipe. It is only needed for
    /// more than 156 GiB if the store wants parts of equal size, and for more than 6 TiB otherwise.
    pub expect_size: Option<u64>,
    /// The manifest, such as a file ([`PathBuf`](std::path::PathBuf)). Laneway appends each item's outcome to
    /// it as a line of JSON. If the same request runs again with the same file, it skips items that are done
    /// and whose sources are unchanged. Checking a source takes no request if a listing or a walk of a folder
    /// shows it anyway. Laneway refuses a file of another job, or with a broken line.
    pub manifest: Option<Manifest>,
    /// A list of names to copy, instead of everything below the one source. Each line of a file, or of
    /// standard input, is a name below the source. Empty lines and lines that begin with `#` or `;` are
    /// ignored. A request with such a list takes no filter.
    pub files_from: Option<Location>,
    /// An inventory that replaces the listing of the one source. It is a file or an object: the
    /// `manifest.json` of S3 Inventory or of a Storage Insights report, or the output of `ls -r --json`. The
    /// data files of a local manifest lie beside it. Those of a manifest in a store lie where the manifest
    /// says.
    pub inventory: Option<Location>,
}

impl CopyRequest {
    /// Makes a plain copy.
    pub fn new(sources: Vec<Location>, destination: Location) -> Self {
        Self {
            sources,
            // A destination is never a version, so `#` is a part of its key.
            destination: destination.as_written(),
            recursive: false,
            remove_source: false,
            allow_unverified: false,
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
            decompress: false,
            expect_size: None,
            manifest: None,
            files_from: None,
            inventory: None,
        }
    }

    setters! {
        recursive: bool,
        remove_source: bool,
        allow_unverified: bool,
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
        decompress: bool,
        files_from: some Location,
        inventory: into Location,
        manifest: into Manifest,
        expect_size: some u64,
    }

    /// Returns whether a move may remove the source after this comparison of the copy.
    pub(crate) fn is_enough(&self, verified: Verified) -> bool {
        self.allow_unverified || verified != Verified::Unverified
    }

    /// Returns which properties of the source's objects are set on files, besides their bytes.
    pub(crate) fn preserves(&self, from: &Capabilities) -> Preserve {
        match (self.preserve, self.sets_times, from.list_tells_metadata) {
            (true, ..) => Preserve::All,
            // If listings don't show the time, setting it would make the file look older than its object.
            (false, true, true) => Preserve::Times,
            (false, ..) => Preserve::Nothing,
        }
    }

    /// Returns the name under which a tree below a key enters a folder.
    pub(crate) fn tree_name(&self, bucket: &str, key: &str) -> SourceName {
        match self.contents {
            true => SourceName::Contents,
            false => SourceName::Named(name_of_key(bucket, key).to_owned()),
        }
    }

    /// Returns the description of this job for its manifest.
    pub(crate) fn subject(&self, added: &str) -> Subject {
        let settings = Settings {
            put: &self.put,
            gzip: Some(&self.gzip),
            decompress: self.decompress,
            preserve: self.preserve,
            added,
        };
        let job = if self.remove_source { "move" } else { "copy" };
        Subject::new(job, &self.sources, Some(&self.destination)).making(&settings)
    }
}

/// Removes objects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RemoveRequest {
    /// Objects, patterns, or prefixes with [`recursive`](Self::recursive).
    pub targets: Vec<Location>,
    /// Removes prefixes with everything under them.
    pub recursive: bool,
    /// Permanently removes all versions that the buckets keep, also noncurrent ones and delete markers. A
    /// filter on sizes or times spares delete markers. Otherwise a version that the filter spares could
    /// become the live object again.
    pub all_versions: bool,
    /// Counts a missing object as removed.
    pub missing_is_fine: bool,
    /// Only reports what would be removed.
    pub dry_run: bool,
    /// Chooses which objects under prefixes are removed, by their names below the prefix. Objects that are
    /// targets themselves are always removed.
    pub filter: Filter,
    /// As [`CopyRequest::manifest`].
    pub manifest: Option<Manifest>,
    /// As [`CopyRequest::files_from`], below the one target and without a filter. Without a target, the lines are whole URLs.
    pub files_from: Option<Location>,
    /// An inventory that replaces the listing of the one target, as [`CopyRequest::inventory`].
    pub inventory: Option<Location>,
}

impl RemoveRequest {
    /// Removes these objects, and the objects that match these patterns. In a bucket that keeps versions, the
    /// live version becomes noncurrent.
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

    /// Returns the description of this job for its manifest.
    pub(crate) fn subject(&self) -> Subject {
        Subject::new("remove", &self.targets, None)
    }
}

/// Lists objects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListRequest {
    /// A prefix, an object or a pattern. Without a bucket, the buckets are listed.
    pub at: Location,
    /// Lists everything under the prefix instead of one level.
    pub recursive: bool,
    /// Lists all versions that the bucket keeps, each with [`ObjectId::version`](crate::ObjectId::version).
    /// For each key, GCS lists the oldest version first; S3 lists the newest first, and its delete markers.
    /// Pages are requested one after the other.
    pub all_versions: bool,
    /// Lists the versions that were deleted and can be restored, on GCS, in place of the objects.
    pub soft_deleted: bool,
    /// Chooses which objects under the prefix are listed, by their names below the prefix. Needs
    /// [`recursive`](Self::recursive).
    pub filter: Filter,
    /// Lists in the byte order of the keys, if the store has an order. Without this setting, entries are
    /// returned as they arrive.
    pub in_order: bool,
    /// An inventory that replaces the listing, as [`CopyRequest::inventory`]. Needs
    /// [`recursive`](Self::recursive). With [`in_order`](Self::in_order), the first line of the inventory
    /// that is out of order ends the listing with an error.
    pub inventory: Option<Location>,
}

impl ListRequest {
    /// Lists one level.
    pub fn new(at: Location) -> Self {
        let at = at.as_written();
        let filter = Filter::default();
        Self {
            at,
            recursive: false,
            all_versions: false,
            soft_deleted: false,
            filter,
            in_order: true,
            inventory: None,
        }
    }

    setters! {
        all_versions: bool,
        in_order: bool,
        inventory: into Location,
        recursive: bool,
        soft_deleted: bool,
        filter: Filter,
    }
}

/// Reads an object, or ranges of it, in order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadRequest {
    /// The object.
    pub at: Location,
    /// The byte ranges, in the order of the output. Ranges may overlap or repeat. None means the whole
    /// object.
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
