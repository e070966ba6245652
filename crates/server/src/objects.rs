//! The store behind both dialects: buckets, objects and multipart uploads.
//!
//! The index (keys and metadata) is always in memory. The bytes are in memory or in files. An object never changes: a
//! write puts a new generation in its place, so a reader of the old generation can read it to the end.

pub(crate) mod blob;
mod changes;
pub(crate) mod content;
mod direct_access;
pub(crate) mod disk;
pub(crate) mod folders;
pub(crate) mod listing;
pub(crate) mod object;
pub(crate) mod precondition;
pub(crate) mod settings;
pub(crate) mod soft_deleted;
pub(crate) mod uploads;
pub(crate) mod versions;
pub(crate) mod writer;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use self::precondition::Protection;
use self::uploads::SavedSessions;
use crate::checksum::{WantedChecksums, hex};
use crate::config::Storage;
use blob::BlobProperties;
pub(crate) use changes::RemovalResult;
use content::DataFile;
use disk::Disk;
use folders::FolderTable;
use listing::{ListingPage, ListingQuery, Order};
use object::StoredChecksum;
pub use object::{Attributes, Object, VersionState};
use precondition::FailedCondition;
use settings::BucketSettings;
use soft_deleted::SoftDeleted;
use uploads::{OpenUpload, UploadChecksum, Uploads};
pub use versions::Versioning;
use versions::{ObjectTable, VersionSelector, VersionStep};
use writer::{ContentWriter, WrittenContent};

/// The store of a server. Tests use its public methods to put, read and damage objects directly, without requests.
#[derive(Debug)]
pub struct Objects {
    buckets: RwLock<BTreeMap<String, Arc<StoredBucket>>>,
    disk: Option<Arc<Disk>>,
    last_generation: AtomicU64,
    create_buckets: bool,
    /// If true, new buckets keep versions.
    versions: bool,
    freed: changes::FreedBytes,
    pub(crate) uploads: Uploads,
    pub(crate) sessions: SavedSessions,
}

#[derive(Debug)]
pub(crate) struct StoredBucket {
    pub(crate) name: String,
    pub(crate) created_us: u64,
    settings: RwLock<BucketSettings>,
    keys: RwLock<ObjectTable>,
    folders: FolderTable,
    soft_deleted: SoftDeleted,
    deletions: Deletions,
}

impl StoredBucket {
    fn new(name: String, created_us: u64, settings: BucketSettings, keys: ObjectTable) -> StoredBucket {
        let folders = FolderTable::default();
        if settings.is_hierarchical {
            folders.add_all(&keys);
        }
        let (settings, keys) = (RwLock::new(settings), RwLock::new(keys));
        StoredBucket {
            name,
            created_us,
            settings,
            keys,
            folders,
            soft_deleted: SoftDeleted::default(),
            deletions: Deletions::default(),
        }
    }

    /// Locks the bucket's settings for reading.
    pub(crate) fn settings(&self) -> RwLockReadGuard<'_, BucketSettings> {
        read(&self.settings)
    }

    /// Returns whether versions are kept.
    pub(crate) fn versioning(&self) -> Versioning {
        self.settings().versioning()
    }
}

/// The reason why the store refused a request.
#[derive(Debug)]
pub(crate) enum StoreError {
    NoBucket,
    NoObject,
    /// The requested version is a delete marker, or no version was requested and the newest one is a delete marker.
    DeleteMarker(Arc<Object>),
    BucketExists,
    BucketNotEmpty,
    BadBucketName,
    /// The key is longer than [`KEY_BYTES_MAX`].
    KeyTooLong,
    Precondition(FailedCondition),
    /// A hold or a retention protects the object.
    Protected(Protection),
    /// The request sets a retention or a legal hold, but the bucket has no locks.
    NoLocks,
    /// The limit of unfinished uploads is reached.
    TooManyUploads,
    Io(io::Error),
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> StoreError {
        StoreError::Io(error)
    }
}

/// The properties of a new object other than its bytes.
#[derive(Debug, Default)]
pub(crate) struct NewObject {
    pub(crate) attributes: Attributes,
    /// The entity tag. `None` means the MD5 if it is known, and otherwise an opaque tag.
    pub(crate) etag: Option<String>,
    pub(crate) checksum: Option<StoredChecksum>,
    pub(crate) components: Option<u32>,
    pub(crate) parts: Option<u32>,
    pub(crate) part_sizes: Vec<u64>,
    /// The base64 checksum of each part, if the upload has checksums.
    pub(crate) part_sums: Vec<String>,
    /// The properties that only Azure has.
    pub(crate) blob: Option<Box<BlobProperties>>,
}

impl Objects {
    #[cfg(test)]
    pub(crate) fn open(storage: &Storage, create_buckets: bool, versions: bool) -> io::Result<Objects> {
        Self::reporting(storage, create_buckets, versions, None)
    }

    /// Opens a store. `report` is called with a message if the disk is full.
    pub(crate) fn reporting(
        storage: &Storage,
        create_buckets: bool,
        versions: bool,
        report: Option<fn(&str)>,
    ) -> io::Result<Objects> {
        let mut objects = Objects {
            buckets: RwLock::default(),
            disk: None,
            last_generation: AtomicU64::new(0),
            create_buckets,
            versions,
            freed: changes::FreedBytes::default(),
            uploads: Uploads::default(),
            sessions: SavedSessions::default(),
        };
        if let Storage::Disk(root) = storage {
            let (disk, left) = Disk::open(root, now_us(), report)?;
            let mut buckets = BTreeMap::new();
            for bucket in left.buckets {
                let all = bucket.objects.iter().chain(&bucket.noncurrent);
                objects
                    .last_generation
                    .fetch_max(all.map(|object| object.generation).max().unwrap_or(0), Relaxed);
                let mut keys = ObjectTable::default();
                for object in bucket.objects {
                    keys.apply(&object.key.clone(), VersionStep::Show(Arc::new(object)));
                }
                for object in bucket.noncurrent {
                    keys.apply(&object.key.clone(), VersionStep::SetAside(Arc::new(object)));
                }
                let bucket = StoredBucket::new(bucket.name, bucket.created_us, bucket.settings, keys);
                buckets.insert(bucket.name.clone(), Arc::new(bucket));
            }
            objects.buckets = RwLock::new(buckets);
            let disk = Arc::new(disk);
            objects.uploads = Uploads::on_disk(disk.clone(), left.uploads);
            objects.sessions = SavedSessions::on_disk(disk.clone(), left.sessions);
            objects.disk = Some(disk);
        }
        Ok(objects)
    }

    pub(crate) fn writer(&self, wanted: WantedChecksums, expected: Option<u64>) -> ContentWriter {
        ContentWriter::new(self.disk.as_ref(), wanted, expected)
    }

    /// Returns a writer that continues a data file of an earlier run. It reads the file's bytes once, to compute their
    /// checksums.
    pub(crate) fn writer_after(
        &self,
        wanted: WantedChecksums,
        data: Arc<DataFile>,
    ) -> io::Result<ContentWriter> {
        let disk = self.disk.as_ref().ok_or_else(|| io::Error::other("the store has no files"))?;
        ContentWriter::after(disk, wanted, data)
    }

    /// From now on, uploads and sessions leave their bytes on disk when they are dropped, so that the next run can
    /// continue them.
    pub(crate) fn close(&self) {
        if let Some(disk) = &self.disk {
            disk.close();
        }
    }

    pub(crate) fn create_bucket_named(&self, name: &str) -> Result<(), StoreError> {
        self.create_bucket_with(name, BucketSettings::default())
    }

    /// Creates a bucket with these settings.
    pub(crate) fn create_bucket_with(&self, name: &str, settings: BucketSettings) -> Result<(), StoreError> {
        if !usable_bucket_name(name) {
            return Err(StoreError::BadBucketName);
        }
        let mut buckets = write(&self.buckets);
        if buckets.contains_key(name) {
            return Err(StoreError::BucketExists);
        }
        let created_us = now_us();
        let versioning = settings.versioning.or(self.versions.then_some(Versioning::Enabled));
        let settings = BucketSettings { versioning, updated_us: created_us, ..settings };
        if let Some(disk) = &self.disk {
            disk.create_bucket(name, created_us, &settings)?;
        }
        let bucket = StoredBucket::new(name.to_owned(), created_us, settings, ObjectTable::default());
        buckets.insert(name.to_owned(), Arc::new(bucket));
        Ok(())
    }

    pub(crate) fn delete_bucket(&self, name: &str) -> Result<(), StoreError> {
        let mut buckets = write(&self.buckets);
        let bucket = buckets.get(name).ok_or(StoreError::NoBucket)?;
        if !read(&bucket.keys).is_empty() || !bucket.folders.are_none() {
            return Err(StoreError::BucketNotEmpty);
        }
        if let Some(disk) = &self.disk {
            disk.delete_bucket(name)?;
        }
        buckets.remove(name);
        Ok(())
    }

    /// Changes the settings of a bucket, unless `change` returns an error. Each change increments the metageneration.
    pub(crate) fn change_bucket<E>(
        &self,
        name: &str,
        change: impl FnOnce(&mut BucketSettings) -> Result<(), E>,
    ) -> Result<Result<(), E>, StoreError> {
        let bucket = self.bucket(name)?;
        // Lock the keys so that no write runs during the change. Every version is then written entirely before or after
        // the change.
        let keys = write(&bucket.keys);
        let present = bucket.settings().clone();
        let mut settings = present.clone();
        if let Err(refusal) = change(&mut settings) {
            return Ok(Err(refusal));
        }
        settings.metageneration = present.metageneration + 1;
        settings.updated_us = now_us();
        if let Some(disk) = &self.disk {
            disk.describe_bucket(name, bucket.created_us, &settings)?;
        }
        if settings.is_hierarchical && !present.is_hierarchical {
            bucket.folders.add_all(&keys);
        }
        *write(&bucket.settings) = settings;
        Ok(Ok(()))
    }

    /// Sets whether a bucket keeps versions from now on.
    pub(crate) fn set_versioning(&self, name: &str, versioning: Versioning) -> Result<(), StoreError> {
        let set = self.change_bucket(name, |settings| {
            settings.versioning = Some(versioning);
            Ok::<_, std::convert::Infallible>(())
        });
        set.map(|_| ())
    }

    /// Deletes everything, even if holds or locks protect it.
    pub(crate) fn clear(&self) -> Result<(), StoreError> {
        let mut buckets = write(&self.buckets);
        for name in buckets.keys() {
            for upload in self.uploads.of(name) {
                self.uploads.remove(&upload.id);
            }
            if let Some(disk) = &self.disk {
                disk.delete_bucket(name)?;
            }
        }
        buckets.clear();
        self.freed.add(u64::MAX);
        Ok(())
    }

    pub(crate) fn buckets(&self) -> Vec<Arc<StoredBucket>> {
        read(&self.buckets).values().cloned().collect()
    }

    pub(crate) fn bucket(&self, name: &str) -> Result<Arc<StoredBucket>, StoreError> {
        read(&self.buckets).get(name).cloned().ok_or(StoreError::NoBucket)
    }

    /// Returns the bucket to write to. If it doesn't exist and the configuration allows it, it is created.
    pub(crate) fn bucket_to_write(&self, name: &str) -> Result<Arc<StoredBucket>, StoreError> {
        match self.bucket(name) {
            Err(StoreError::NoBucket) if self.create_buckets => {
                match self.create_bucket_named(name) {
                    Ok(()) | Err(StoreError::BucketExists) => {}
                    Err(error) => return Err(error),
                }
                self.bucket(name)
            }
            found => found,
        }
    }

    pub(crate) fn find(&self, bucket: &str, key: &str) -> Result<Arc<Object>, StoreError> {
        self.find_version(bucket, key, VersionSelector::Live)
    }

    /// Returns one version of an object.
    pub(crate) fn find_version(
        &self,
        bucket: &str,
        key: &str,
        which: VersionSelector,
    ) -> Result<Arc<Object>, StoreError> {
        let bucket = self.bucket(bucket)?;
        let keys = read(&bucket.keys);
        match keys.find(key, which) {
            Some(object) if object.standing.is_delete_marker => Err(StoreError::DeleteMarker(object.clone())),
            Some(object) => Ok(object.clone()),
            None if which != VersionSelector::Live => Err(StoreError::NoObject),
            None => Err(match keys.noncurrent(key).last() {
                Some(newest) if newest.standing.is_delete_marker => StoreError::DeleteMarker(newest.clone()),
                _ => StoreError::NoObject,
            }),
        }
    }

    pub(crate) fn list(&self, bucket: &str, query: &ListingQuery) -> Result<ListingPage, StoreError> {
        let bucket = self.bucket(bucket)?;
        Ok(listing::page(&read(&bucket.keys).live, query))
    }

    /// Returns a page of all versions.
    pub(crate) fn list_versions(
        &self,
        bucket: &str,
        query: &ListingQuery,
        order: Order,
    ) -> Result<ListingPage, StoreError> {
        let bucket = self.bucket(bucket)?;
        Ok(listing::page_of_versions(&read(&bucket.keys), query, order))
    }

    /// Returns true if the store remembers that it deleted the object of a key at or after this time.
    pub(crate) fn deleted_since(&self, bucket: &str, key: &str, since_us: u64) -> bool {
        self.bucket(bucket).is_ok_and(|bucket| bucket.deletions.since(key, since_us))
    }

    /// Returns the content for a new object with the bytes of an existing one. Both share the bytes, so none are
    /// copied.
    pub(crate) fn written_from(object: &Object) -> WrittenContent {
        WrittenContent { content: object.content.clone(), sums: object.sums() }
    }

    pub(crate) fn begin_upload(
        &self,
        bucket: &str,
        key: &str,
        attributes: Attributes,
        checksum: Option<UploadChecksum>,
    ) -> Result<Arc<OpenUpload>, StoreError> {
        let bucket = self.bucket_to_write(bucket)?;
        check_key(key)?;
        admit(&bucket.settings(), &attributes.options)?;
        let upload = self.uploads.insert(OpenUpload {
            id: self.unguessable_id(),
            bucket: bucket.name.clone(),
            key: key.to_owned(),
            attributes,
            checksum,
            initiated_us: now_us(),
            parts: Default::default(),
        })?;
        upload.ok_or(StoreError::TooManyUploads)
    }

    /// Returns a random id for an upload or a session. It must not be guessable, because everybody who knows it can
    /// continue the upload.
    pub(crate) fn unguessable_id(&self) -> String {
        use ring::rand::SecureRandom;
        let mut id = [0; 24];
        if ring::rand::SystemRandom::new().fill(&mut id).is_err() {
            // If the system has no random numbers, the id is unique but easy to guess. That is enough for a demo store.
            id[..8].copy_from_slice(&self.next_generation().to_be_bytes());
        }
        hex(&id)
    }

    fn next_generation(&self) -> u64 {
        let now = now_us();
        let previous = self
            .last_generation
            .fetch_update(Relaxed, Relaxed, |last| Some(now.max(last + 1)))
            .unwrap_or_else(|last| last);
        now.max(previous + 1)
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        self.close();
    }
}

/// Returns microseconds since 1970.
pub(crate) fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_micros() as u64)
}

/// The maximum length of a key in bytes, in both services.
const KEY_BYTES_MAX: usize = 1024;

fn check_key(key: &str) -> Result<(), StoreError> {
    if key.len() > KEY_BYTES_MAX { Err(StoreError::KeyTooLong) } else { Ok(()) }
}

/// Returns an error if a request sets a retention or a legal hold in a bucket without locks.
fn admit(settings: &BucketSettings, options: &object::ObjectOptions) -> Result<(), StoreError> {
    let is_locked = options.retention.is_some() || options.legal_hold.is_some();
    if is_locked && !settings.locks { Err(StoreError::NoLocks) } else { Ok(()) }
}

/// Returns true if a bucket's name can be used. With a store on disk it is also a folder's name, so it must not lead to
/// another folder.
pub(crate) fn usable_bucket_name(name: &str) -> bool {
    // Azure has three containers whose names begin with `$`.
    matches!(name, "$root" | "$web" | "$logs")
        || (1..=222).contains(&name.len())
            && !name.starts_with('.')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

// Ignores that another thread panicked while it held the lock. The index is changed in single steps, so a panic doesn't
// leave it corrupt.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// The maximum number of deletions that are remembered for each bucket. Older ones are forgotten, so later writes don't
/// conflict with them.
const REMEMBERED_MAX: usize = 1000;

/// The latest deletions of a bucket.
#[derive(Debug, Default)]
pub(crate) struct Deletions(Mutex<VecDeque<(Box<str>, u64)>>);

impl Deletions {
    pub(crate) fn note(&self, key: &str, now_us: u64) {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.len() == REMEMBERED_MAX {
            latest.pop_front();
        }
        latest.push_back((key.into(), now_us));
    }

    pub(crate) fn since(&self, key: &str, since_us: u64) -> bool {
        let latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        latest.iter().rev().any(|(deleted, at_us)| **deleted == *key && *at_us >= since_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stores(folder: &std::path::Path) -> [Objects; 2] {
        let disk = Storage::Disk(folder.to_owned());
        [Objects::open(&Storage::Memory, false, false).unwrap(), Objects::open(&disk, false, false).unwrap()]
    }

    #[test]
    fn every_key_is_kept_exactly() {
        let folder = tempfile::tempdir().unwrap();
        let long = "x".repeat(1024);
        let longer = "x".repeat(1025);
        let mut keys =
            vec!["", "a//b", "a/", "%41", "a b+c", "ä/日本", "..", "../../etc/passwd", "/", "a\0b", &long];
        keys.sort_unstable();
        for store in stores(folder.path()) {
            for key in &keys {
                store.put("b", key, key.as_bytes()).unwrap();
            }
            assert!(store.put("b", &longer, b"").is_err());
            assert_eq!(store.keys("b"), keys);
            for key in &keys {
                assert_eq!(store.read("b", key).unwrap(), key.as_bytes());
            }
        }
    }

    #[test]
    fn generations_strictly_increase() {
        let folder = tempfile::tempdir().unwrap();
        for store in stores(folder.path()) {
            let generations: Vec<u64> =
                (0..100).map(|_| store.put("b", "k", b"").unwrap().generation).collect();
            assert!(generations.is_sorted_by(|a, b| a < b));
        }
    }

    #[test]
    fn a_reader_of_the_old_generation_reads_it_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        for store in stores(folder.path()) {
            store.put("b", "k", b"old").unwrap();
            let old = store.object("b", "k").unwrap();
            store.put("b", "k", b"new!").unwrap();
            store.remove("b", "k");
            let mut reader = old.content.clone().reader();
            assert_eq!(reader.next().unwrap().unwrap(), "old");
        }
    }

    #[test]
    fn a_store_on_disk_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Storage::Disk(folder.path().to_owned());
        let metadata = [("colour".to_owned(), "red".to_owned())].into();
        let attributes = Attributes { metadata, ..Default::default() };
        let first = Objects::open(&disk, false, false).unwrap();
        let stored = first.put_with("b", "a//b", b"bytes", attributes).unwrap();
        first.put("b", "gone", b"x").unwrap();
        first.remove("b", "gone");
        drop(first);
        let second = Objects::open(&disk, false, false).unwrap();
        let found = second.object("b", "a//b").unwrap();
        assert_eq!((found.generation, &found.attributes), (stored.generation, &stored.attributes));
        assert_eq!(second.read("b", "a//b").unwrap(), b"bytes");
        assert_eq!(second.keys("b"), ["a//b"]);
        assert!(second.put("b", "a//b", b"").unwrap().generation > stored.generation);
    }

    #[test]
    fn bytes_that_no_object_shows_are_removed_at_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Storage::Disk(folder.path().to_owned());
        drop(Objects::open(&disk, false, false).unwrap());
        let orphan = folder.path().join("data/00/0000000000000100");
        std::fs::create_dir_all(orphan.parent().unwrap()).unwrap();
        std::fs::write(&orphan, "half an upload").unwrap();
        drop(Objects::open(&disk, false, false).unwrap());
        assert!(!orphan.exists());
    }

    #[test]
    fn an_unfinished_write_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let store = Objects::open(&Storage::Disk(folder.path().to_owned()), false, false).unwrap();
        let wanted = WantedChecksums { md5_bytes_max: 0, crc64nvme: false, extra: None };
        let mut writer = store.writer(wanted, None);
        writer.write(b"half").unwrap();
        drop(writer);
        let files = std::fs::read_dir(folder.path().join("data")).unwrap().flatten();
        assert_eq!(files.flat_map(|folder| std::fs::read_dir(folder.path()).unwrap()).count(), 0);
    }

    #[test]
    fn damage_changes_the_bytes_and_not_the_checksum() {
        let folder = tempfile::tempdir().unwrap();
        for store in stores(folder.path()) {
            let before = store.put("b", "k", b"abc").unwrap().crc32c;
            store.corrupt("b", "k", 1).unwrap();
            assert_eq!(store.read("b", "k").unwrap(), b"acc");
            assert_eq!(store.object("b", "k").unwrap().crc32c, before);
        }
    }

    #[test]
    fn buckets_are_made_on_demand_only_when_told_to() {
        for (create, expected) in [(false, false), (true, true)] {
            let store = Objects::open(&Storage::Memory, create, false).unwrap();
            assert_eq!(store.bucket_to_write("b").is_ok(), expected);
        }
        assert!(!usable_bucket_name("..") && !usable_bucket_name("a/b") && !usable_bucket_name(""));
    }

    #[test]
    fn only_a_later_deletion_of_the_same_key_counts() {
        let deletions = Deletions::default();
        deletions.note("a", 5);
        assert!(deletions.since("a", 5) && deletions.since("a", 4));
        assert!(!deletions.since("a", 6) && !deletions.since("b", 0));
        for at in 0..REMEMBERED_MAX as u64 {
            deletions.note("c", at);
        }
        assert!(!deletions.since("a", 0), "the oldest is forgotten");
    }
}
