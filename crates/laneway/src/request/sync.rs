//! The request for a sync of a folder or prefix.

use laneway_store::PutOptions;

use super::setters::setters;
use crate::listing::folder_prefix;
use crate::listing::names_from::LineRules;
use crate::local::folder;
use crate::location::mapping::is_into_itself;
use crate::manifest::{ManifestSubject, ObjectSettings};
use crate::{CopyRequest, Error, Filter, Location, Manifest};

/// A request for a sync, which copies the differences between a source and a destination. The source and the
/// destination are each a local folder or a prefix in a store, but they can't both be local.
///
/// A sync copies an item if it is missing at the destination, has another size there, or counts as older
/// there. The *file time* of a local file is its modification time. An object has a file time if
/// [`preserve`](Self::preserve) stored it in the metadata and listings show the metadata, as those of GCS do.
/// If both sides have a file time, the item counts as older if these times differ. Otherwise, it counts as
/// older if the destination's time is before the source's. The time of an object is then the time of its
/// upload.
///
/// If an item has the same size and counts as older, the sync compares checksums, and copies the item only if
/// they differ. The sync copies the item without this comparison if the copy also sets the file time: with
/// [`preserve`](Self::preserve), or if it downloads an object that has a file time. With
/// [`checksum`](Self::checksum), it compares the checksums of all items of equal size.
///
/// ```
/// use laneway::{Filter, SyncRequest};
///
/// let request = SyncRequest::new("photos".parse()?, "s3://lake/photos".parse()?);
/// let request = request.delete(true).max_delete(100).filter(Filter::default().exclude("*.tmp")?);
/// assert!(request.delete && request.max_delete == Some(100));
/// # Ok::<(), laneway::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SyncRequest {
    /// The folder or prefix whose content is copied. Its own name isn't added to the paths at the
    /// destination.
    pub source: Location,
    /// The folder or prefix that receives the content.
    pub destination: Location,
    /// Removes items at the destination that the source doesn't have. The job does this after all copies, and
    /// only if none of them failed.
    pub delete: bool,
    /// Allows removals even if the source is empty.
    pub allow_empty: bool,
    /// Allows removals even if the destination's only entry is a folder with the source's name. Usually such
    /// a folder is an earlier copy of the source, and the user gave the wrong destination. The sync would
    /// copy the source's content next to the folder, and then remove the folder.
    pub force: bool,
    /// The maximum number of items to remove. If a sync would remove more, it removes none.
    pub max_delete: Option<u64>,
    /// Only reports the copies and removals that a real sync would make.
    pub dry_run: bool,
    /// Compares items of equal size by a checksum that both sides have. For this, Laneway reads local files,
    /// and sends a HEAD for each object whose listing shows no checksum. If the two sides have no kind of
    /// checksum in common, it compares times.
    pub checksum: bool,
    /// Compares only the sizes of items.
    pub size_only: bool,
    /// Skips items that are newer at the destination, even if their sizes differ.
    pub update: bool,
    /// Copies only items that already exist at the destination.
    pub existing: bool,
    /// Copies only items that don't exist at the destination.
    pub ignore_existing: bool,
    /// Chooses the items to compare, copy and remove. Excluded items are neither copied nor removed.
    pub filter: Filter,
    /// Stores the modification time, mode and owner of files with their objects, and sets these attributes on
    /// downloaded files. Even without this setting, a download sets the modification time if a listing shows
    /// it.
    pub preserve: bool,
    /// Also copies the content of directories that symbolic links lead to. Symbolic links to files are
    /// followed, unless [`ignore_symlinks`](field@Self::ignore_symlinks) is set.
    pub follow_symlinks: bool,
    /// Ignores all symbolic links.
    pub ignore_symlinks: bool,
    /// The same as [`CopyRequest::durable`].
    pub durable: bool,
    /// The same as [`CopyRequest::keep_partial`].
    pub keep_partial: bool,
    /// The properties of new objects.
    pub put: PutOptions,
    /// The same as [`CopyRequest::manifest`].
    pub manifest: Option<Manifest>,
    /// An inventory that Laneway reads instead of listing the source: see [`CopyRequest::inventory`]. An
    /// inventory can't be combined with [`delete`](field@Self::delete).
    pub inventory: Option<Location>,
    /// A list of the names to sync. The list is a file or [`Location::Standard`], and each line is a path
    /// relative to the source and the destination. Laneway then lists neither side, and looks up each name on
    /// both. If the source doesn't have a name, the item fails. With [`delete`](field@Self::delete), the sync
    /// instead removes the name at the destination.
    pub files_from: Option<Location>,
}

impl SyncRequest {
    /// Returns a request that copies the differences and removes nothing.
    pub fn new(source: Location, destination: Location) -> Self {
        Self {
            source: source.as_written(),
            destination: destination.as_written(),
            delete: false,
            allow_empty: false,
            force: false,
            max_delete: None,
            dry_run: false,
            checksum: false,
            size_only: false,
            update: false,
            existing: false,
            ignore_existing: false,
            filter: Filter::default(),
            preserve: false,
            follow_symlinks: false,
            ignore_symlinks: false,
            durable: false,
            keep_partial: false,
            put: PutOptions::default(),
            manifest: None,
            inventory: None,
            files_from: None,
        }
    }

    setters! {
        files_from: some Location,
        inventory: into Location,
        manifest: into Manifest,
        delete: bool,
        allow_empty: bool,
        force: bool,
        max_delete: some u64,
        dry_run: bool,
        checksum: bool,
        size_only: bool,
        update: bool,
        existing: bool,
        ignore_existing: bool,
        filter: Filter,
        preserve: bool,
        follow_symlinks: bool,
        ignore_symlinks: bool,
        durable: bool,
        keep_partial: bool,
        put: PutOptions,
    }

    /// Returns the description of this job, by which its manifest is recognised.
    pub(crate) fn subject(&self, added: &str) -> ManifestSubject {
        let settings =
            ObjectSettings { put: &self.put, gzip: None, decompress: false, preserve: self.preserve, added };
        ManifestSubject::new("sync", std::slice::from_ref(&self.source), Some(&self.destination))
            .making(&settings)
    }

    /// Checks these settings without contacting a store. [`Client::sync`](crate::Client::sync) also calls
    /// this, and reports the error as the job's first item.
    ///
    /// # Errors
    /// `ErrorKind::Usage`; `Refused` if a file exists where a folder is needed.
    pub fn check(&self) -> Result<(), Error> {
        if let Some(names) = &self.files_from {
            let why = match (&self.inventory, names.is_object()) {
                (Some(_), _) => "an inventory and a list of names can't be combined",
                (None, true) => {
                    "the list of names must be a local file, or - for standard input; it can't be an object"
                }
                (None, false) => "",
            };
            if !why.is_empty() {
                return Err(Error::usage(names.to_string(), why));
            }
        }
        if let Some(at) = &self.inventory
            && !self.source.is_object()
        {
            return Err(Error::usage(
                at.to_string(),
                "a sync with an inventory needs a bucket or prefix as its source",
            ));
        }
        if let Some(at) = self.inventory.as_ref().filter(|_| self.delete) {
            let why = "the inventory lacks objects that were written to the source later, so --delete could remove their copies; sync without --delete or without the inventory";
            return Err(Error::usage(at.to_string(), why));
        }
        for end in [&self.source, &self.destination] {
            match end {
                Location::Standard => {
                    return Err(Error::usage("-", "a stream can't be synced"));
                }
                Location::Object { bucket, .. } if bucket.is_empty() => {
                    return Err(Error::usage(end.to_string(), "the URL names no bucket"));
                }
                _ => {}
            }
        }
        if self.source.is_pattern() {
            let why = "a pattern can't be synced; give a folder or prefix, with --include and --exclude";
            return Err(Error::usage(self.source.to_string(), why));
        }
        match (self.existing && self.ignore_existing, self.follow_symlinks && self.ignore_symlinks) {
            (true, _) => return Err(self.usage("--existing and --ignore-existing cannot be combined")),
            (_, true) => return Err(self.usage("--follow-symlinks and --ignore-symlinks cannot be combined")),
            _ => {}
        }
        match (&self.source, &self.destination) {
            (Location::Local(_), Location::Local(_)) => {
                Err(self.usage("one end of a sync has to be in a store (gs://, s3:// or az://)"))
            }
            (Location::Local(path), _) => match std::fs::metadata(path) {
                Ok(metadata) if !metadata.is_dir() => {
                    Err(Error::usage(path.display().to_string(), "is not a folder; use cp to copy a file"))
                }
                Ok(_) => Ok(()),
                Err(e) => Err(Error::local(path, "can't be read", e)),
            },
            (_, Location::Local(path)) => match folder::file_in_the_way(path) {
                Some(file) => {
                    let message = format!("{} is a file, but a folder is needed there", file.display());
                    Err(Error::refused(self.destination.to_string(), message))
                }
                None => Ok(()),
            },
            (
                Location::Object { provider, bucket, key },
                Location::Object { provider: to, bucket: to_bucket, key: to_key },
            ) => {
                let (key, to_key) = (folder_prefix(key), folder_prefix(to_key));
                let ends = ((*provider, &bucket[..], &key[..]), (*to, &to_bucket[..], &to_key[..]));
                match is_into_itself(ends.0, ends.1) || is_into_itself(ends.1, ends.0) {
                    true => Err(self.usage("the source and the destination overlap")),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Returns the rules for reading the lines of [`files_from`](field@Self::files_from). If names may be
    /// removed, each line must be exactly a name, without spaces around it.
    pub(crate) fn reading(&self) -> LineRules {
        if self.delete { LineRules::Exact } else { LineRules::Rclone }
    }

    fn usage(&self, why: &str) -> Error {
        Error::usage(self.destination.to_string(), why)
    }

    /// Returns the copy request for the copies of this sync.
    pub(crate) fn copying(&self) -> CopyRequest {
        let request = CopyRequest::new(vec![self.source.clone()], self.destination.clone());
        let mut request = request
            .recursive(true)
            .contents(true)
            .dry_run(self.dry_run)
            .no_clobber(self.ignore_existing)
            .durable(self.durable)
            .keep_partial(self.keep_partial)
            .follow_symlinks(self.follow_symlinks)
            .preserve(self.preserve)
            .put(self.put.clone());
        request.sets_times = true;
        request.inventory.clone_from(&self.inventory);
        request
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn check(source: &str, destination: &str) -> Result<(), Error> {
        SyncRequest::new(source.parse().unwrap(), destination.parse().unwrap()).check()
    }

    #[test]
    fn ends_that_overlap_are_refused_whichever_is_inside_the_other() {
        for (source, destination) in [
            ("gs://b", "gs://b/p"),
            ("gs://b/p", "gs://b"),
            ("gs://b/p", "gs://b/p/"),
            ("s3://b/p/q/", "s3://b/p"),
        ] {
            let error = check(source, destination).unwrap_err();
            assert!(error.is_usage() && error.to_string().contains("overlap"), "{error}");
        }
        assert!(check("gs://b/p", "gs://b/pq").is_ok() && check("gs://b/p", "s3://b/p").is_ok());
    }

    #[test]
    fn what_is_no_folder_or_prefix_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "").unwrap();
        let file = file.to_str().unwrap();
        for (source, destination, why) in [
            ("-", "gs://b", "stream"),
            ("gs://b", "-", "stream"),
            ("gs://", "s3://b", "bucket"),
            ("gs://b/*.txt", "s3://b", "pattern"),
            (".", "/tmp/x", "one end"),
            (file, "gs://b", "not a folder"),
            ("gs://b", file, "is a file"),
            ("/nonexistent/x", "gs://b", "can't be read"),
        ] {
            let error = check(source, destination).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn wishes_that_contradict_each_other_are_refused() {
        let request = || SyncRequest::new("gs://b".parse().unwrap(), "s3://b".parse().unwrap());
        assert!(request().existing(true).ignore_existing(true).check().unwrap_err().is_usage());
        assert!(request().follow_symlinks(true).ignore_symlinks(true).check().unwrap_err().is_usage());
    }

    #[test]
    fn names_come_from_a_file_alone() {
        let request = || SyncRequest::new("gs://b".parse().unwrap(), "s3://b".parse().unwrap());
        assert!(request().files_from(Location::Standard).check().is_ok());
        assert!(request().files_from("gs://b/names".parse().unwrap()).check().unwrap_err().is_usage());
        let both = request().files_from(Location::Standard).inventory(PathBuf::from("i"));
        assert!(both.check().unwrap_err().is_usage());
        assert_eq!(
            (request().reading(), request().delete(true).reading()),
            (LineRules::Rclone, LineRules::Exact)
        );
    }

    #[test]
    fn nothing_is_removed_by_an_inventory_which_is_older_than_what_came_since() {
        let request = SyncRequest::new("gs://b".parse().unwrap(), "s3://b".parse().unwrap())
            .inventory(PathBuf::from("i"));
        assert!(request.check().is_ok());
        let error = request.delete(true).check().unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("written to the source later"), "{error}");
    }
}
