//! The requests from which a client starts jobs and listings.

mod byte_range;
mod check;
mod put_options;
mod setters;
mod sync;

use std::path::PathBuf;

use laneway_store::{Capabilities, Condition, MetaChange, PutOptions, RestoreOptions};

use crate::event::Verified;
use crate::local::preserve::Preserve;
use crate::location::mapping::{SourceName, name_of_key};
use crate::manifest::{ManifestSubject, ObjectSettings};
use crate::{Error, Filter, Gzip, Location, Manifest};
pub use byte_range::ByteRange;
use setters::setters;
pub use sync::SyncRequest;

/// A request to copy sources to a destination. The job uploads, downloads or copies between stores, depending
/// on their locations.
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
    /// The destination. The destination counts as a folder if it names a whole bucket, ends in a slash, or is
    /// a local path whose last component is `.` or `..`. An existing local folder also counts as a folder,
    /// unless the source is a single tree.
    pub destination: Location,
    /// Copies directories and prefixes with their content.
    pub recursive: bool,
    /// Makes the job a move: removes each source after its copy was verified.
    pub remove_source: bool,
    /// In a move, also removes a source if only the size of its copy could be compared, because the store
    /// reports no suitable checksum.
    pub allow_unverified: bool,
    /// Only reports the copies that a real job would make.
    pub dry_run: bool,
    /// Skips items whose destination exists.
    pub no_clobber: bool,
    /// Flushes each downloaded file and its directory to disk before the item counts as done.
    pub durable: bool,
    /// Keeps the bytes of partial transfers when the job is cancelled. Laneway keeps the bytes of large
    /// downloads in files next to their destinations. The bytes of large uploads stay in the store as parts,
    /// which requires [`ClientBuilder::upload_journals`](crate::ClientBuilder::upload_journals). If the same
    /// request runs again, it continues with these bytes. If a network failure or the end of the process
    /// interrupts a transfer, Laneway keeps its bytes even without this setting.
    pub keep_partial: bool,
    /// Also copies the content of directories that symbolic links lead to. Symbolic links to files are always
    /// followed.
    pub follow_symlinks: bool,
    /// Copies the content of a tree directly into the destination folder. Without this setting, Laneway
    /// copies the content into a subfolder of the destination folder that has the tree's name.
    pub contents: bool,
    /// Chooses which items of trees are copied. The filter sees each item's path relative to the tree.
    /// Sources that aren't trees are always copied.
    pub filter: Filter,
    /// Stores the modification time, mode and owner of files in the metadata of their objects, under the
    /// names that `gcloud storage` (on GCS) and rclone (on S3) use. Downloads set these attributes on files,
    /// but the owner only if the system permits it.
    pub preserve: bool,
    /// Sets the modification time of a downloaded file if a listing shows it in the object's metadata, even
    /// without `preserve`.
    pub(crate) sets_times: bool,
    /// The properties of new objects. If the content type is empty, Laneway guesses it from the name.
    pub put: PutOptions,
    /// Chooses the local files that Laneway compresses during upload.
    pub gzip: Gzip,
    /// Decompresses downloaded objects whose `Content-Encoding` is gzip or zstd. Laneway compares checksums
    /// of the compressed bytes, as the store keeps them. The file's size then differs from the object's.
    pub decompress: bool,
    /// The expected size in bytes of a source of unknown length: standard input or a pipe. Laneway uses it to
    /// choose the size of the parts. Set it for sources above 156 GiB if the store requires parts of equal
    /// size, and otherwise for sources above 6 TiB.
    pub expect_size: Option<u64>,
    /// The manifest, such as a file ([`PathBuf`](std::path::PathBuf)). Laneway appends each item's outcome to
    /// it as a line of JSON. If the same request runs again with the same file, Laneway skips the items that
    /// are done and whose sources are unchanged. Listings show whether a source is unchanged. For a source
    /// that the caller names individually, Laneway requests the metadata to find out. Laneway refuses a
    /// manifest that belongs to another job or has a broken line.
    pub manifest: Option<Manifest>,
    /// A list of the names to copy, instead of everything below the source. The list is a file or standard
    /// input, and each line is a path relative to the only source. Laneway ignores empty lines, and lines
    /// that begin with `#` or `;`. The list can't be combined with a filter.
    pub files_from: Option<Location>,
    /// An inventory that Laneway reads instead of listing the only source. The inventory is a file or an
    /// object: the `manifest.json` of S3 Inventory or of a Storage Insights report, or the output of `ls -r
    /// --json`. If the manifest is a local file, Laneway looks for its data files in the same folder, in
    /// `data` and in `../data`. It also looks for them at their keys in a local copy of the bucket. If the
    /// manifest is in a store, Laneway reads the data files from the locations that the manifest names.
    pub inventory: Option<Location>,
}

impl CopyRequest {
    /// Returns a request with these sources and this destination, and with all options off.
    pub fn new(sources: Vec<Location>, destination: Location) -> Self {
        Self {
            sources,
            // A version can't be a destination, so a `#` is a part of the key.
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

    /// Returns whether a move may remove the source of a copy that was verified in this way.
    pub(crate) fn is_enough(&self, verified: Verified) -> bool {
        self.allow_unverified || verified != Verified::Unverified
    }

    /// Returns whether the request changes nothing but the names of objects.
    pub(crate) fn is_rename(&self) -> bool {
        self.remove_source && self.put.clone().condition(Condition::None) == PutOptions::default()
    }

    /// Returns whether the request moves its only source with everything below it, and changes nothing but the names.
    pub(crate) fn renames_tree(&self) -> bool {
        self.is_rename() && self.takes_whole_tree() && self.sources.len() == 1 && self.manifest.is_none()
    }

    /// Returns whether the request includes everything below its sources.
    pub(crate) fn takes_whole_tree(&self) -> bool {
        let is_whole = self.filter.is_empty() && self.files_from.is_none() && self.inventory.is_none();
        self.recursive && !self.dry_run && is_whole
    }

    /// Returns which attributes in the metadata of the source's objects a download sets on files.
    pub(crate) fn preserves(&self, from: &Capabilities) -> Preserve {
        match (self.preserve, self.sets_times, from.list_tells_metadata) {
            (true, ..) => Preserve::All,
            // If listings don't show the file times that objects keep as metadata, don't set these times. A
            // later sync would compare the file's time with the object's upload time, and the file would look
            // older.
            (false, true, true) => Preserve::Times,
            (false, ..) => Preserve::Nothing,
        }
    }

    /// Returns the name of the subfolder that a tree below a key gets in a destination folder.
    pub(crate) fn tree_name(&self, bucket: &str, key: &str) -> SourceName {
        match self.contents {
            true => SourceName::Contents,
            false => SourceName::Named(name_of_key(bucket, key).to_owned()),
        }
    }

    /// Returns the description of this job, by which its manifest is recognised.
    pub(crate) fn subject(&self, added: &str) -> ManifestSubject {
        let settings = ObjectSettings {
            put: &self.put,
            gzip: Some(&self.gzip),
            decompress: self.decompress,
            preserve: self.preserve,
            added,
        };
        let job = if self.remove_source { "move" } else { "copy" };
        ManifestSubject::new(job, &self.sources, Some(&self.destination)).making(&settings)
    }
}

/// A request to remove objects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RemoveRequest {
    /// The objects and patterns to remove. With [`recursive`](Self::recursive), also prefixes.
    pub targets: Vec<Location>,
    /// Removes all objects below the prefixes in `targets`.
    pub recursive: bool,
    /// Permanently removes all versions that the buckets keep, including noncurrent ones and delete markers.
    /// With a filter on sizes or times, delete markers are never removed. Otherwise a version that the filter
    /// excludes could become the live object again.
    pub all_versions: bool,
    /// If a target doesn't exist, reports it as removed instead of as failed.
    pub missing_is_fine: bool,
    /// Only reports the objects that a real job would remove.
    pub dry_run: bool,
    /// Chooses which objects below a prefix are removed. The filter sees each object's name relative to the
    /// prefix. Objects that are targets themselves are always removed.
    pub filter: Filter,
    /// The same as [`CopyRequest::manifest`].
    pub manifest: Option<Manifest>,
    /// A list of the names to remove, instead of everything below the only target: see
    /// [`CopyRequest::files_from`]. If there is no target, each line is a URL.
    pub files_from: Option<Location>,
    /// An inventory that Laneway reads instead of listing the only target: see [`CopyRequest::inventory`].
    pub inventory: Option<Location>,
}

impl RemoveRequest {
    /// Returns a request that removes these targets. A target is an object, or a pattern for objects. If the
    /// bucket keeps versions, the removed version stays as a noncurrent one.
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

    /// Returns the description of this job, by which its manifest is recognised.
    pub(crate) fn subject(&self) -> ManifestSubject {
        ManifestSubject::new("remove", &self.targets, None)
    }
}

/// A request to list objects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListRequest {
    /// The prefix, object or pattern to list. If it has no bucket, the job lists the buckets.
    pub at: Location,
    /// Lists everything under the prefix instead of one level.
    pub recursive: bool,
    /// Lists all versions that the bucket keeps, each with its
    /// [`ObjectId::version`](crate::ObjectId::version). For each key, GCS lists the oldest version first. S3
    /// lists the newest first, and also lists delete markers. Laneway requests the pages one after the other.
    pub all_versions: bool,
    /// On GCS, lists the deleted versions that can be restored, instead of the existing objects.
    pub soft_deleted: bool,
    /// Chooses which objects are listed. The filter sees each object's name relative to the prefix. A filter
    /// requires [`recursive`](Self::recursive).
    pub filter: Filter,
    /// Yields the entries in the byte order of their keys, if the store lists them in order. Without this
    /// setting, the listing yields entries as they arrive.
    pub in_order: bool,
    /// An inventory that Laneway reads instead of a listing: see [`CopyRequest::inventory`]. An inventory
    /// requires [`recursive`](Self::recursive). With [`in_order`](Self::in_order), the listing ends with an
    /// error at the first line of the inventory that is out of order.
    pub inventory: Option<Location>,
    /// Lists only keys that sort after this one. The key need not exist. It includes the prefix. A bound
    /// requires [`recursive`](Self::recursive), and `at` must not be a pattern.
    pub start_after: Option<String>,
    /// Lists only keys that sort before this one, under the same conditions as
    /// [`start_after`](Self::start_after).
    pub end_before: Option<String>,
}

impl ListRequest {
    /// Returns a request that lists one level, in order.
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
            start_after: None,
            end_before: None,
        }
    }

    setters! {
        all_versions: bool,
        end_before: some String,
        in_order: bool,
        inventory: into Location,
        recursive: bool,
        soft_deleted: bool,
        start_after: some String,
        filter: Filter,
    }

    /// Returns whether the request lists only a range of keys. Such a range may be empty.
    pub(crate) fn has_bounds(&self) -> bool {
        self.start_after.is_some() || self.end_before.is_some()
    }

    /// Returns whether a key lies between the bounds of the request.
    pub(crate) fn includes(&self, key: &str) -> bool {
        self.start_after.as_deref().is_none_or(|bound| key > bound)
            && self.end_before.as_deref().is_none_or(|bound| key < bound)
    }
}

/// A request to read an object, or ranges of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadRequest {
    /// The object to read.
    pub at: Location,
    /// The byte ranges to read, in the order of the output. Ranges may overlap or repeat. If the list is
    /// empty, the whole object is read.
    pub ranges: Vec<ByteRange>,
}

impl ReadRequest {
    /// Returns a request that reads the whole object.
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

/// A request to change the metadata and the storage class of objects in place.
///
/// ```
/// use laneway::{MetaChange, SetMetaRequest};
///
/// let change = MetaChange::default().cache_control("no-store");
/// let request = SetMetaRequest::new(vec!["gs://lake/site/".parse()?], change).recursive(true);
/// assert!(request.check().is_ok());
/// # Ok::<(), laneway::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SetMetaRequest {
    /// The objects and patterns to change. With [`recursive`](Self::recursive), also prefixes.
    pub targets: Vec<Location>,
    /// The change to make to each object.
    pub change: MetaChange,
    /// Changes all objects below the prefixes in `targets`.
    pub recursive: bool,
    /// Only reports the objects that a real job would change.
    pub dry_run: bool,
    /// Chooses which objects below a prefix are changed. The filter sees each object's name relative to the
    /// prefix. Objects that are targets themselves are always changed.
    pub filter: Filter,
}

impl SetMetaRequest {
    /// Returns a request that makes `change` to these targets. A target is an object, or a pattern for
    /// objects.
    pub fn new(targets: Vec<Location>, change: MetaChange) -> Self {
        Self { targets, change, recursive: false, dry_run: false, filter: Filter::default() }
    }

    setters! {
        recursive: bool,
        dry_run: bool,
        filter: Filter,
    }

    /// Checks the request without contacting a store. [`Client::set_meta`](crate::Client::set_meta) also
    /// calls this, and reports the error as the job's first item.
    ///
    /// # Errors
    /// `ErrorKind::Usage`.
    pub fn check(&self) -> Result<(), Error> {
        if self.targets.is_empty() || self.change.is_empty() {
            return Err(Error::usage("", "there is nothing to change"));
        }
        for target in &self.targets {
            let why = match target {
                Location::Object { bucket, .. } if bucket.is_empty() => "the URL names no bucket",
                Location::Object { .. } if target.is_written_as_folder() && !self.recursive => {
                    "names a folder; use -r to change what it holds"
                }
                Location::Object { .. } | Location::Version { .. } => continue,
                Location::Local(_) | Location::Standard => "only objects in a store can be changed",
            };
            return Err(Error::usage(target.to_string(), why));
        }
        Ok(())
    }
}

/// A request to compare everything below two folders or prefixes: names, sizes, and a checksum that both
/// sides have. Laneway takes the checksums of objects from listings, and reads local files to compute theirs.
///
/// ```
/// use laneway::VerifyRequest;
///
/// let request = VerifyRequest::new("gs://lake/2026".parse()?, "s3://copy/2026".parse()?);
/// assert!(request.report("report.csv").check().is_ok());
/// # Ok::<(), laneway::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerifyRequest {
    /// The source, a folder or prefix.
    pub source: Location,
    /// The destination, which should have the same content.
    pub destination: Location,
    /// Chooses which items are compared.
    pub filter: Filter,
    /// Reads local files and compares their checksums. If a listing doesn't show the checksum of an object
    /// that is compared with a file, Laneway sends a HEAD for it. Without this setting, files are compared
    /// only by name and size.
    pub read: bool,
    /// A CSV file to which Laneway writes a row for each name. The file has the columns of completion reports
    /// by S3 Batch Operations: `Bucket, Key, VersionId, TaskStatus, ErrorCode, HTTPStatusCode,
    /// ResultMessage`. Until the comparison ends, the file's name ends in `.unfinished`.
    pub report: Option<PathBuf>,
    /// An inventory that Laneway reads instead of listing the source: see
    /// [`CopyRequest::inventory`](crate::CopyRequest::inventory).
    pub source_inventory: Option<Location>,
    /// An inventory that Laneway reads instead of listing the destination.
    pub destination_inventory: Option<Location>,
}

impl VerifyRequest {
    /// Returns a request that compares names, sizes and checksums.
    pub fn new(source: Location, destination: Location) -> Self {
        Self {
            source,
            destination,
            filter: Filter::default(),
            read: true,
            report: None,
            source_inventory: None,
            destination_inventory: None,
        }
    }

    setters! {
        filter: Filter,
        read: bool,
        report: into PathBuf,
        source_inventory: into Location,
        destination_inventory: into Location,
    }

    /// Checks the request without contacting a store. [`Client::verify`](crate::Client::verify) also calls
    /// this, and reports the error as the job's first item.
    ///
    /// # Errors
    /// `ErrorKind::Usage`.
    pub fn check(&self) -> Result<(), Error> {
        for place in [&self.source, &self.destination] {
            match place {
                Location::Standard | Location::Version { .. } => {
                    return Err(Error::usage(place.to_string(), "is not a folder"));
                }
                Location::Object { bucket, .. } if bucket.is_empty() => {
                    return Err(Error::usage(place.to_string(), "the URL names no bucket"));
                }
                Location::Object { .. } if place.is_pattern() => {
                    return Err(Error::usage(
                        place.to_string(),
                        "patterns can't be compared; give folders or prefixes",
                    ));
                }
                Location::Local(path) if !path.exists() => {
                    return Err(Error::usage(place.to_string(), "does not exist"));
                }
                Location::Local(path) if !path.is_dir() => {
                    return Err(Error::usage(place.to_string(), "is a file; give a folder"));
                }
                _ => {}
            }
        }
        for (place, inventory) in
            [(&self.source, &self.source_inventory), (&self.destination, &self.destination_inventory)]
        {
            if inventory.is_some() && !place.is_object() {
                return Err(Error::usage(
                    place.to_string(),
                    "an inventory can only replace the listing of a bucket or prefix",
                ));
            }
        }
        match self.source == self.destination && self.source_inventory == self.destination_inventory {
            true => Err(Error::usage(self.source.to_string(), "can't be compared with itself")),
            false => Ok(()),
        }
    }
}

/// A request to restore objects. On S3, it makes archived objects readable again. On GCS, it restores deleted
/// objects.
///
/// ```
/// use laneway::{RestoreOptions, RestoreRequest};
///
/// let options = RestoreOptions::default().days(7).tier("Bulk");
/// let request = RestoreRequest::new(vec!["s3://lake/2019/".parse()?], options).recursive(true);
/// assert!(request.check().is_ok());
/// # Ok::<(), laneway::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RestoreRequest {
    /// The objects, versions and patterns to restore. With [`recursive`](Self::recursive), also prefixes.
    pub targets: Vec<Location>,
    /// The options of each restoration, such as the number of days and the tier.
    pub options: RestoreOptions,
    /// Restores all archived (S3) or deleted (GCS) objects below the prefixes in `targets`.
    pub recursive: bool,
    /// Only reports the objects that a real job would restore.
    pub dry_run: bool,
    /// Chooses which objects below a prefix are restored. The filter sees each object's name relative to the
    /// prefix. Objects that are targets themselves are always restored.
    pub filter: Filter,
}

impl RestoreRequest {
    /// Returns a request that restores these targets. A target is an object, a version, or a pattern for
    /// objects.
    pub fn new(targets: Vec<Location>, options: RestoreOptions) -> Self {
        Self { targets, options, recursive: false, dry_run: false, filter: Filter::default() }
    }

    setters! {
        recursive: bool,
        dry_run: bool,
        filter: Filter,
    }

    /// Checks the request without contacting a store. [`Client::restore`](crate::Client::restore) also calls
    /// this, and reports the error as the job's first item.
    ///
    /// # Errors
    /// `ErrorKind::Usage`.
    pub fn check(&self) -> Result<(), Error> {
        if self.targets.is_empty() {
            return Err(Error::usage("", "there is nothing to restore"));
        }
        if self.options.days == Some(0) {
            return Err(Error::usage("", "a restored copy must stay for at least one day"));
        }
        for target in &self.targets {
            let why = match target {
                Location::Object { bucket, .. } if bucket.is_empty() => "the URL names no bucket",
                Location::Object { .. } if target.is_written_as_folder() && !self.recursive => {
                    "names a folder; use -r to restore what it holds"
                }
                Location::Object { .. } | Location::Version { .. } => continue,
                Location::Local(_) | Location::Standard => "only objects in a store can be restored",
            };
            return Err(Error::usage(target.to_string(), why));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_needs_the_recursive_flag_and_a_change_something_that_changes() {
        let request = |target: &str| {
            SetMetaRequest::new(vec![target.parse().unwrap()], MetaChange::default().content_type("a/b"))
        };
        assert!(request("gs://b/p/").check().unwrap_err().is_usage());
        assert!(request("gs://b/p/").recursive(true).check().is_ok());
        assert!(request("/etc/passwd").check().unwrap_err().is_usage());
        let nothing = SetMetaRequest { change: MetaChange::default(), ..request("gs://b/k") };
        assert!(nothing.check().unwrap_err().is_usage());
    }

    #[test]
    fn a_folder_needs_the_recursive_flag_and_a_copy_at_least_a_day() {
        let request = |target: &str| {
            RestoreRequest::new(vec![target.parse().unwrap()], RestoreOptions::default().days(1))
        };
        assert!(request("s3://b/p/").check().unwrap_err().is_usage());
        assert!(request("s3://b/p/").recursive(true).check().is_ok());
        assert!(request("/etc/passwd").check().unwrap_err().is_usage());
        let never = RestoreRequest { options: RestoreOptions::default().days(0), ..request("s3://b/k") };
        assert!(never.check().unwrap_err().is_usage());
    }
}
