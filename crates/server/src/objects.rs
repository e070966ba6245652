//! The one store behind both dialects: buckets, objects and uploads in parts.
//!
//! The index (keys and metadata) is always in memory; the bytes are in memory or in files. An object is never
//! changed: a write makes a new generation and puts it in the old one's place, so whoever reads the old one reads it
//! to its end.

pub(crate) mod asked;
pub(crate) mod assembly;
pub(crate) mod bucket_name;
pub(crate) mod content;
mod deletions;
pub(crate) mod disk;
pub(crate) mod glob;
pub(crate) mod listing;
pub(crate) mod object;
pub(crate) mod precondition;
pub(crate) mod restore;
pub(crate) mod uploads;
pub(crate) mod writer;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::checksum::{Wanted, hex};
use crate::config::Storage;
use content::Extent;
use deletions::Deletions;
use disk::Disk;
use listing::{Index, Page, Query};
pub use object::{Attributes, Object};
use object::{StoredChecksum, opaque_etag};
use precondition::{Failed, Precondition};
use restore::{Place, Restore};
use uploads::{Upload, UploadChecksum, Uploads};
use writer::{Writer, Written};

/// The store of a server. Its public methods let a test look behind the protocols: put, read and damage objects.
#[derive(Debug)]
pub struct Objects {
    buckets: RwLock<BTreeMap<String, Arc<Bucket>>>,
    disk: Option<Arc<Disk>>,
    last_generation: AtomicU64,
    create_buckets: bool,
    pub(crate) uploads: Uploads,
}

#[derive(Debug)]
pub(crate) struct Bucket {
    pub(crate) name: String,
    pub(crate) created_us: u64,
    /// Whether somebody has suspended versioning, which it never had. Forgotten at a restart.
    pub(crate) versioning_suspended: AtomicBool,
    objects: RwLock<Index>,
    deletions: Deletions,
}

/// Why the store did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Refused {
    NoBucket,
    NoObject,
    BucketExists,
    BucketNotEmpty,
    BadBucketName,
    Precondition(Failed),
    Io(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::Io(error)
    }
}

/// What a new object is, besides its bytes.
#[derive(Debug, Default)]
pub(crate) struct NewObject {
    pub(crate) attributes: Attributes,
    /// `None`: the MD5 if it is known, else an opaque one.
    pub(crate) etag: Option<String>,
    pub(crate) checksum: Option<StoredChecksum>,
    pub(crate) components: Option<u32>,
    pub(crate) parts: Option<u32>,
    pub(crate) part_sizes: Vec<u64>,
}

impl Objects {
    pub(crate) fn open(storage: &Storage, create_buckets: bool) -> io::Result<Objects> {
        let mut objects = Objects {
            buckets: RwLock::default(),
            disk: None,
            last_generation: AtomicU64::new(0),
            create_buckets,
            uploads: Uploads::default(),
        };
        if let Storage::Disk(root) = storage {
            let (disk, found) = Disk::open(root, now_us())?;
            let mut buckets = BTreeMap::new();
            for bucket in found {
                let newest = bucket.objects.iter().map(|object| object.generation).max().unwrap_or(0);
                objects.last_generation.fetch_max(newest, Relaxed);
                let index =
                    bucket.objects.into_iter().map(|object| (object.key.as_bytes().into(), Arc::new(object)));
                let (name, created_us) = (bucket.name.clone(), bucket.created_us);
                let bucket = Bucket {
                    name,
                    created_us,
                    versioning_suspended: AtomicBool::new(false),
                    objects: RwLock::new(index.collect()),
                    deletions: Deletions::default(),
                };
                buckets.insert(bucket.name.clone(), Arc::new(bucket));
            }
            objects.buckets = RwLock::new(buckets);
            objects.disk = Some(Arc::new(disk));
        }
        Ok(objects)
    }

    /// Stores bytes under a key as a plain upload would, creating the bucket if it is missing.
    ///
    /// # Errors
    /// What the disk answers, or an unusable bucket name.
    pub fn put(&self, bucket: &str, key: &str, bytes: &[u8]) -> io::Result<Arc<Object>> {
        self.put_with(bucket, key, bytes, Attributes::default())
    }

    /// The same with metadata.
    ///
    /// # Errors
    /// As [`Objects::put`].
    pub fn put_with(
        &self,
        bucket: &str,
        key: &str,
        bytes: &[u8],
        attributes: Attributes,
    ) -> io::Result<Arc<Object>> {
        let put = || {
            match self.create_bucket_named(bucket) {
                Ok(()) | Err(Refused::BucketExists) => {}
                Err(error) => return Err(error),
            }
            let wanted = Wanted { md5_bytes_max: u64::MAX, crc64nvme: true, extra: None };
            let mut writer = self.writer(wanted, Some(bytes.len() as u64));
            writer.write(bytes)?;
            let new = NewObject { attributes, ..Default::default() };
            self.commit(bucket, key, writer.finish(), new, &Precondition::default())
        };
        put().map_err(|refused| match refused {
            Refused::Io(error) => error,
            other => io::Error::other(format!("{other:?}")),
        })
    }

    /// The metadata of an object.
    pub fn object(&self, bucket: &str, key: &str) -> Option<Arc<Object>> {
        self.find(bucket, key).ok()
    }

    /// The whole content of an object.
    ///
    /// # Errors
    /// What the disk answers; an object that doesn't exist is `NotFound`.
    pub fn read(&self, bucket: &str, key: &str) -> io::Result<Vec<u8>> {
        let object = self.object(bucket, key).ok_or(io::ErrorKind::NotFound)?;
        let mut reader = object.content.clone().reader();
        let mut bytes = Vec::with_capacity(object.size as usize);
        while let Some(chunk) = reader.next() {
            bytes.extend_from_slice(&chunk?);
        }
        Ok(bytes)
    }

    /// Flips one bit of the stored content and leaves the checksums as they were, like a disk that rots.
    ///
    /// # Errors
    /// `NotFound` if there is no such object or byte, or what the disk answers.
    pub fn corrupt(&self, bucket: &str, key: &str, offset: u64) -> io::Result<()> {
        let found = self.bucket(bucket).map_err(|_| io::ErrorKind::NotFound)?;
        let mut index = write(&found.objects);
        let object = index.get_mut(key.as_bytes()).ok_or(io::ErrorKind::NotFound)?;
        if offset >= object.size {
            return Err(io::ErrorKind::NotFound.into());
        }
        if let Some((path, at)) = disk::file_at(&object.content, offset) {
            let mut bytes = std::fs::read(&path)?;
            bytes[at as usize] ^= 1;
            return std::fs::write(&path, bytes);
        }
        let mut damaged = Object::clone(object);
        let mut before = damaged.content.range(0..offset);
        let byte = damaged.content.range(offset..offset + 1);
        let after = damaged.content.range(offset + 1..damaged.size);
        for extent in byte.extents {
            if let Extent::Memory(bytes) = extent {
                before.extents.push(Extent::Memory(Bytes::copy_from_slice(&[bytes[0] ^ 1])));
            }
        }
        before.extents.extend(after.extents);
        damaged.content = before;
        *object = Arc::new(damaged);
        Ok(())
    }

    /// All keys of a bucket in byte order; none if there is no such bucket.
    pub fn keys(&self, bucket: &str) -> Vec<String> {
        let Ok(bucket) = self.bucket(bucket) else { return Vec::new() };
        let index = read(&bucket.objects);
        index.values().map(|object| object.key.clone()).collect()
    }

    /// Removes an object; answers whether there was one.
    pub fn remove(&self, bucket: &str, key: &str) -> bool {
        self.delete(bucket, key, &Precondition::default()).is_ok()
    }

    /// Restores an archived object at once, for so many days; answers whether it was archived.
    pub fn restore(&self, bucket: &str, key: &str, days: u32) -> bool {
        let now = now_us();
        let copied = self.restore_if(bucket, key, |object| match object.place(now) {
            Place::AtHand => Err(()),
            Place::Archive { .. } | Place::Copied { .. } => Ok((Restore::copy(now, days), ())),
        });
        copied.is_ok_and(|restored| restored.is_ok())
    }

    pub(crate) fn writer(&self, wanted: Wanted, expected: Option<u64>) -> Writer {
        Writer::new(self.disk.as_ref(), wanted, expected)
    }

    pub(crate) fn create_bucket_named(&self, name: &str) -> Result<(), Refused> {
        if !usable_bucket_name(name) {
            return Err(Refused::BadBucketName);
        }
        let mut buckets = write(&self.buckets);
        if buckets.contains_key(name) {
            return Err(Refused::BucketExists);
        }
        let bucket = Bucket {
            name: name.to_owned(),
            created_us: now_us(),
            versioning_suspended: AtomicBool::new(false),
            objects: RwLock::default(),
            deletions: Deletions::default(),
        };
        if let Some(disk) = &self.disk {
            disk.create_bucket(name, bucket.created_us)?;
        }
        buckets.insert(name.to_owned(), Arc::new(bucket));
        Ok(())
    }

    pub(crate) fn delete_bucket(&self, name: &str) -> Result<(), Refused> {
        let mut buckets = write(&self.buckets);
        let bucket = buckets.get(name).ok_or(Refused::NoBucket)?;
        if !read(&bucket.objects).is_empty() {
            return Err(Refused::BucketNotEmpty);
        }
        if let Some(disk) = &self.disk {
            disk.delete_bucket(name)?;
        }
        buckets.remove(name);
        Ok(())
    }

    pub(crate) fn buckets(&self) -> Vec<Arc<Bucket>> {
        read(&self.buckets).values().cloned().collect()
    }

    pub(crate) fn bucket(&self, name: &str) -> Result<Arc<Bucket>, Refused> {
        read(&self.buckets).get(name).cloned().ok_or(Refused::NoBucket)
    }

    /// The bucket to write to, created first if the configuration says so.
    pub(crate) fn bucket_to_write(&self, name: &str) -> Result<Arc<Bucket>, Refused> {
        match self.bucket(name) {
            Err(Refused::NoBucket) if self.create_buckets => {
                match self.create_bucket_named(name) {
                    Ok(()) | Err(Refused::BucketExists) => {}
                    Err(error) => return Err(error),
                }
                self.bucket(name)
            }
            found => found,
        }
    }

    pub(crate) fn find(&self, bucket: &str, key: &str) -> Result<Arc<Object>, Refused> {
        let bucket = self.bucket(bucket)?;
        read(&bucket.objects).get(key.as_bytes()).cloned().ok_or(Refused::NoObject)
    }

    pub(crate) fn list(&self, bucket: &str, query: &Query) -> Result<Page, Refused> {
        let bucket = self.bucket(bucket)?;
        Ok(listing::page(&read(&bucket.objects), query))
    }

    /// Makes written bytes the object under a key, if the precondition holds at that moment.
    pub(crate) fn commit(
        &self,
        bucket: &str,
        key: &str,
        written: Written,
        new: NewObject,
        precondition: &Precondition,
    ) -> Result<Arc<Object>, Refused> {
        let bucket = self.bucket_to_write(bucket)?;
        let mut index = write(&bucket.objects);
        let present = index.get(key.as_bytes());
        precondition.check(present.map(|object| &**object)).map_err(Refused::Precondition)?;
        let object = self.generation(key, written, new);
        if let Some(disk) = &self.disk {
            disk.publish(&bucket.name, &object)?;
        }
        let replaced = index.insert(key.as_bytes().into(), object.clone());
        drop(index);
        // Outside the lock, because dropping the last reader of a large file takes its time.
        drop(replaced);
        Ok(object)
    }

    /// A new generation, which nobody can see yet.
    fn generation(&self, key: &str, written: Written, new: NewObject) -> Arc<Object> {
        let generation = self.next_generation();
        let now = now_us();
        let Written { content, sums } = written;
        let etag = new
            .etag
            .or_else(|| sums.md5.map(|md5| hex(&md5)))
            .unwrap_or_else(|| opaque_etag(generation, sums.crc32c));
        Arc::new(Object {
            key: key.to_owned(),
            size: sums.size,
            generation,
            metageneration: 1,
            crc32c: sums.crc32c,
            crc64nvme: sums.crc64nvme,
            md5: sums.md5,
            etag,
            components: new.components,
            parts: new.parts,
            part_sizes: new.part_sizes,
            attributes: new.attributes,
            restore: None,
            created_us: now,
            updated_us: now,
            checksum: new.checksum,
            content,
        })
    }

    /// Gives an object another key in its bucket: a new generation there and none where it was, at one moment.
    pub(crate) fn rename(
        &self,
        bucket: &str,
        from: &str,
        to: &str,
        source: &Precondition,
        destination: &Precondition,
    ) -> Result<Arc<Object>, Refused> {
        let bucket = self.bucket(bucket)?;
        let mut index = write(&bucket.objects);
        let old = index.get(from.as_bytes()).cloned().ok_or(Refused::NoObject)?;
        source.check(Some(&old)).map_err(Refused::Precondition)?;
        let present = index.get(to.as_bytes());
        destination.check(present.map(|object| &**object)).map_err(Refused::Precondition)?;
        let new = NewObject {
            attributes: old.attributes.clone(),
            checksum: old.checksum.clone(),
            components: old.components,
            ..Default::default()
        };
        let object = self.generation(to, Objects::written_from(&old), new);
        if let Some(disk) = &self.disk {
            disk.publish(&bucket.name, &object)?;
            disk.unpublish(&bucket.name, from)?;
        }
        let replaced = index.insert(to.as_bytes().into(), object.clone());
        let removed = index.remove(from.as_bytes());
        bucket.deletions.note(from, now_us());
        drop(index);
        drop((replaced, removed));
        Ok(object)
    }

    /// Changes the attributes of an object: the same generation, the next metageneration.
    pub(crate) fn patch(
        &self,
        bucket: &str,
        key: &str,
        precondition: &Precondition,
        change: impl FnOnce(&mut Attributes),
    ) -> Result<Arc<Object>, Refused> {
        let bucket = self.bucket(bucket)?;
        let mut index = write(&bucket.objects);
        let present = index.get(key.as_bytes()).cloned();
        precondition.check(present.as_deref()).map_err(Refused::Precondition)?;
        let mut object = Object::clone(&*present.ok_or(Refused::NoObject)?);
        change(&mut object.attributes);
        object.metageneration += 1;
        object.updated_us = now_us();
        let object = Arc::new(object);
        if let Some(disk) = &self.disk {
            disk.publish(&bucket.name, &object)?;
        }
        index.insert(key.as_bytes().into(), object.clone());
        Ok(object)
    }

    /// Restores an archived object unless that is refused. Nothing else of it changes.
    pub(crate) fn restore_if<T, E>(
        &self,
        bucket: &str,
        key: &str,
        decide: impl FnOnce(&Object) -> Result<(Restore, T), E>,
    ) -> Result<Result<T, E>, Refused> {
        let bucket = self.bucket(bucket)?;
        let mut index = write(&bucket.objects);
        let object = index.get_mut(key.as_bytes()).ok_or(Refused::NoObject)?;
        let (restore, answer) = match decide(object) {
            Ok(decided) => decided,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let restored = Arc::new(Object { restore: Some(restore), ..Object::clone(object) });
        if let Some(disk) = &self.disk {
            disk.publish(&bucket.name, &restored)?;
        }
        *object = restored;
        Ok(Ok(answer))
    }

    pub(crate) fn delete(&self, bucket: &str, key: &str, precondition: &Precondition) -> Result<(), Refused> {
        let bucket = self.bucket(bucket)?;
        let mut index = write(&bucket.objects);
        let present = index.get(key.as_bytes()).ok_or(Refused::NoObject)?;
        precondition.check(Some(present)).map_err(Refused::Precondition)?;
        if let Some(disk) = &self.disk {
            disk.unpublish(&bucket.name, key)?;
        }
        let removed = index.remove(key.as_bytes());
        bucket.deletions.note(key, now_us());
        drop(index);
        drop(removed);
        Ok(())
    }

    /// Whether a key's object was deleted at or after that moment, as far as it is remembered.
    pub(crate) fn deleted_since(&self, bucket: &str, key: &str, since_us: u64) -> bool {
        self.bucket(bucket).is_ok_and(|bucket| bucket.deletions.since(key, since_us))
    }

    /// A new object of existing bytes; nothing is read or copied.
    pub(crate) fn written_from(object: &Object) -> Written {
        Written { content: object.content.clone(), sums: object.sums() }
    }

    pub(crate) fn begin_upload(
        &self,
        bucket: &str,
        key: &str,
        attributes: Attributes,
        checksum: Option<UploadChecksum>,
    ) -> Result<Arc<Upload>, Refused> {
        let bucket = self.bucket_to_write(bucket)?;
        Ok(self.uploads.insert(Upload {
            id: self.unguessable_id(),
            bucket: bucket.name.clone(),
            key: key.to_owned(),
            attributes,
            checksum,
            initiated_us: now_us(),
            parts: Default::default(),
        }))
    }

    /// An id for uploads and sessions: whoever knows it may go on with it, so it is random.
    pub(crate) fn unguessable_id(&self) -> String {
        use ring::rand::SecureRandom;
        let mut id = [0; 24];
        if ring::rand::SystemRandom::new().fill(&mut id).is_err() {
            // Without randomness ids are only unique, which a demo store can live with.
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
        if let Some(disk) = &self.disk {
            disk.close();
        }
    }
}

/// Microseconds since 1970.
pub(crate) fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_micros() as u64)
}

/// The name is also a folder's name, and must not lead out of its place.
pub(crate) fn usable_bucket_name(name: &str) -> bool {
    (1..=222).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

// A panic in another request doesn't make the index untrue: it is changed in single steps.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stores(folder: &std::path::Path) -> [Objects; 2] {
        let disk = Storage::Disk(folder.to_owned());
        [Objects::open(&Storage::Memory, false).unwrap(), Objects::open(&disk, false).unwrap()]
    }

    #[test]
    fn every_key_is_kept_exactly() {
        let folder = tempfile::tempdir().unwrap();
        let long = "x".repeat(1024);
        let mut keys =
            vec!["", "a//b", "a/", "%41", "a b+c", "ä/日本", "..", "../../etc/passwd", "/", "a\0b", &long];
        keys.sort_unstable();
        for store in stores(folder.path()) {
            for key in &keys {
                store.put("b", key, key.as_bytes()).unwrap();
            }
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
        let first = Objects::open(&disk, false).unwrap();
        let stored = first.put_with("b", "a//b", b"bytes", attributes).unwrap();
        first.put("b", "gone", b"x").unwrap();
        first.remove("b", "gone");
        drop(first);
        let second = Objects::open(&disk, false).unwrap();
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
        drop(Objects::open(&disk, false).unwrap());
        let orphan = folder.path().join("data/00/0000000000000100");
        std::fs::create_dir_all(orphan.parent().unwrap()).unwrap();
        std::fs::write(&orphan, "half an upload").unwrap();
        drop(Objects::open(&disk, false).unwrap());
        assert!(!orphan.exists());
    }

    #[test]
    fn an_unfinished_write_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let store = Objects::open(&Storage::Disk(folder.path().to_owned()), false).unwrap();
        let wanted = Wanted { md5_bytes_max: 0, crc64nvme: false, extra: None };
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
            let store = Objects::open(&Storage::Memory, create).unwrap();
            assert_eq!(store.bucket_to_write("b").is_ok(), expected);
        }
        assert!(!usable_bucket_name("..") && !usable_bucket_name("a/b") && !usable_bucket_name(""));
    }
}
