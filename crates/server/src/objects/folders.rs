//! The folders of buckets with GCS's hierarchical namespace. An object's folders appear with the object, and stay when
//! it is gone. They are kept in memory, so a restart recreates only the folders of existing objects.
//! <https://cloud.google.com/storage/docs/hns-overview>

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::changes::permit;
use super::versions::ObjectTable;
use super::{Objects, StoreError, StoredBucket, check_key, now_us, read, write};

/// The folders of one bucket, with the times of their creation. Their names end in a slash. A caller that changes them
/// for a key holds the lock of the bucket's keys.
#[derive(Debug, Default)]
pub(crate) struct FolderTable(Mutex<BTreeMap<String, u64>>);

/// The reason why a call on a folder was refused.
#[derive(Debug)]
pub(crate) enum FolderError {
    /// The bucket has no hierarchical namespace.
    Flat,
    NoFolder,
    /// The folder to create, or the destination of a rename, has no parent.
    NoParent,
    Exists,
    NotEmpty,
    /// The destination of a rename is inside its source.
    Inside,
    Store(StoreError),
}

impl From<StoreError> for FolderError {
    fn from(refused: StoreError) -> FolderError {
        FolderError::Store(refused)
    }
}

impl FolderTable {
    /// Adds the folders of all live objects.
    pub(super) fn add_all(&self, keys: &ObjectTable) {
        for object in keys.live.values() {
            self.add_above(&object.key, object.created_us);
        }
    }

    /// Adds the folders above a key.
    pub(super) fn add_above(&self, key: &str, now_us: u64) {
        add_above(&mut self.map(), key, now_us);
    }

    pub(super) fn are_none(&self) -> bool {
        self.map().is_empty()
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Objects {
    /// Returns the bucket if it has a hierarchical namespace.
    pub(crate) fn bucket_with_folders(&self, bucket: &str) -> Result<Arc<StoredBucket>, FolderError> {
        let bucket = self.bucket(bucket)?;
        if bucket.settings().is_hierarchical { Ok(bucket) } else { Err(FolderError::Flat) }
    }

    /// Returns the folders whose names begin with a prefix, in order, with the times of their creation.
    pub(crate) fn folders(&self, bucket: &str, prefix: &str) -> Result<Vec<(String, u64)>, FolderError> {
        let bucket = self.bucket_with_folders(bucket)?;
        let map = bucket.folders.map();
        Ok(below(&map, prefix).map(|(name, created_us)| (name.clone(), *created_us)).collect())
    }

    /// Returns the time when a folder was created.
    pub(crate) fn folder(&self, bucket: &str, name: &str) -> Result<u64, FolderError> {
        let bucket = self.bucket_with_folders(bucket)?;
        let created_us = bucket.folders.map().get(name).copied();
        created_us.ok_or(FolderError::NoFolder)
    }

    /// Creates a folder. If its parents don't exist, creates them too if `recursive` is true, and otherwise refuses the
    /// call.
    pub(crate) fn create_folder(
        &self,
        bucket: &str,
        name: &str,
        recursive: bool,
    ) -> Result<u64, FolderError> {
        let bucket = self.bucket_with_folders(bucket)?;
        check_key(name)?;
        let mut map = bucket.folders.map();
        if map.contains_key(name) {
            return Err(FolderError::Exists);
        }
        if !recursive && !has_parent(&map, name) {
            return Err(FolderError::NoParent);
        }
        let created_us = now_us();
        add_above(&mut map, name, created_us);
        Ok(created_us)
    }

    /// Deletes a folder that holds nothing.
    pub(crate) fn delete_folder(&self, bucket: &str, name: &str) -> Result<(), FolderError> {
        let bucket = self.bucket_with_folders(bucket)?;
        let keys = read(&bucket.keys);
        let mut map = bucket.folders.map();
        if !map.contains_key(name) {
            return Err(FolderError::NoFolder);
        }
        if keys_below(&keys, name).next().is_some() || below(&map, name).nth(1).is_some() {
            return Err(FolderError::NotEmpty);
        }
        map.remove(name);
        Ok(())
    }

    /// Deletes a folder and everything below it.
    pub(crate) fn delete_folder_recursively(&self, bucket: &str, name: &str) -> Result<(), FolderError> {
        let bucket = self.bucket_with_folders(bucket)?;
        let mut keys = write(&bucket.keys);
        if !bucket.folders.map().contains_key(name) {
            return Err(FolderError::NoFolder);
        }
        let mut removed = Vec::new();
        for key in keys_below(&keys, name).collect::<Vec<_>>() {
            removed.extend(self.delete_key(&bucket, &mut keys, &key, false)?.1);
        }
        bucket.folders.map().retain(|folder, _| !folder.starts_with(name));
        drop(keys);
        self.drop_removed(removed);
        Ok(())
    }

    /// Renames a folder and everything below it in one step. If a hold or a retention protects an object there, nothing
    /// changes.
    pub(crate) fn rename_folder(&self, bucket: &str, from: &str, to: &str) -> Result<(), FolderError> {
        let bucket = self.bucket_with_folders(bucket)?;
        let mut keys = write(&bucket.keys);
        let map = bucket.folders.map();
        if !map.contains_key(from) {
            return Err(FolderError::NoFolder);
        }
        if to.starts_with(from) {
            return Err(FolderError::Inside);
        }
        if map.contains_key(to) {
            return Err(FolderError::Exists);
        }
        if !has_parent(&map, to) {
            return Err(FolderError::NoParent);
        }
        let names: Vec<String> = below(&map, from).map(|(name, _)| name.clone()).collect();
        drop(map);
        let renamed = |old: &str| format!("{to}{}", &old[from.len()..]);
        let moving: Vec<String> = keys_below(&keys, from).collect();
        for key in &moving {
            check_key(&renamed(key))?;
            let versioning = bucket.versioning();
            let deleting = keys.deleting(versioning, self.marker(key, versioning), now_us());
            permit(&bucket, &keys, key, &deleting, false)?;
        }
        let mut removed = Vec::new();
        for key in moving {
            removed.extend(self.move_key(&bucket, &mut keys, &key, &renamed(&key))?.1);
        }
        let mut map = bucket.folders.map();
        for name in names {
            map.remove(&name);
            add_above(&mut map, &renamed(&name), now_us());
        }
        drop(map);
        drop(keys);
        self.drop_removed(removed);
        Ok(())
    }
}

/// Returns the folders above a key, the outermost first. A key that ends in a slash is itself the last of these
/// folders.
fn above(key: &str) -> impl DoubleEndedIterator<Item = &str> {
    key.match_indices('/').map(|(at, _)| &key[..=at])
}

fn add_above(map: &mut BTreeMap<String, u64>, key: &str, now_us: u64) {
    // If a folder exists, those above it exist too.
    for name in above(key).rev().take_while(|name| !map.contains_key(*name)).collect::<Vec<_>>() {
        map.insert(name.to_owned(), now_us);
    }
}

fn has_parent(map: &BTreeMap<String, u64>, name: &str) -> bool {
    above(name).rev().nth(1).is_none_or(|parent| map.contains_key(parent))
}

/// Returns the folders whose names begin with a prefix.
fn below<'a>(map: &'a BTreeMap<String, u64>, prefix: &'a str) -> impl Iterator<Item = (&'a String, &'a u64)> {
    let from = (Bound::Included(prefix), Bound::Unbounded);
    map.range::<str, _>(from).take_while(move |(name, _)| name.starts_with(prefix))
}

/// Returns the keys of the live objects below a folder.
fn keys_below<'a>(keys: &'a ObjectTable, folder: &'a str) -> impl Iterator<Item = String> + 'a {
    let from = (Bound::Included(folder.as_bytes()), Bound::Unbounded);
    let live = keys.live.range::<[u8], _>(from).map(|(_, object)| object);
    live.take_while(move |object| object.key.starts_with(folder)).map(|object| object.key.clone())
}
