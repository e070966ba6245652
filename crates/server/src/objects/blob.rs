//! The properties of an object that only Azure Blob Storage has, and its snapshots.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::listing::{self, ListingPage, ListingQuery};
use super::versions::{VersionSelector, VersionStep};
use super::{Object, Objects, StoreError, now_us, write};

/// The properties of an object that only Azure has. Objects of the other dialects have none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct BlobProperties {
    /// The type of the blob, if it isn't a block blob: `AppendBlob` or `PageBlob`.
    pub(crate) kind: Option<String>,
    /// The property Content-MD5, in base64. It is empty if a client removed it. `None` means the content's own MD5.
    pub(crate) content_md5: Option<String>,
    /// The blocks of a blob that a block list committed.
    pub(crate) blocks: Vec<CommittedBlock>,
    /// The last copy to this blob.
    pub(crate) copy: Option<BlobCopy>,
    /// The time when the access tier was set, in microseconds since 1970.
    pub(crate) tier_changed_us: Option<u64>,
    pub(crate) rehydration: Option<Rehydration>,
    /// For a snapshot, the generation of the blob from which it was made.
    pub(crate) snapshot_of: Option<u64>,
}

impl BlobProperties {
    /// Returns the type of the blob.
    pub(crate) fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or("BlockBlob")
    }
}

/// A block of a committed blob. The content of the blob has the blocks one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommittedBlock {
    /// The id in base64, as the client sent it.
    pub(crate) id: String,
    pub(crate) size: u64,
}

/// A copy of another blob to this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BlobCopy {
    pub(crate) id: String,
    /// The URL of the source.
    pub(crate) source: String,
    pub(crate) status: CopyStatus,
    /// The size of the source.
    pub(crate) size: u64,
    /// The time when the copy ended, in microseconds since 1970.
    pub(crate) ended_us: u64,
}

/// The state of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CopyStatus {
    Pending,
    Success,
    Aborted,
}

/// The move of a blob out of the archive tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rehydration {
    /// The tier of the blob after the move.
    pub(crate) tier: String,
    /// `Standard` or `High`.
    pub(crate) priority: String,
    /// The time when the blob can be read, in microseconds since 1970.
    pub(crate) ready_us: u64,
}

/// The settings of a bucket that only Azure's containers have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ContainerSettings {
    pub(crate) metadata: BTreeMap<String, String>,
    /// The access of anonymous requests: `container` or `blob`. `None` means that there is none.
    pub(crate) public_access: Option<String>,
    pub(crate) policies: Vec<AccessPolicy>,
}

/// A stored access policy, which SAS tokens name instead of their own limits. Empty fields leave a limit to the token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AccessPolicy {
    pub(crate) id: String,
    pub(crate) starts: String,
    pub(crate) expires: String,
    pub(crate) permissions: String,
}

impl Object {
    /// Returns the properties that only Azure has.
    pub(crate) fn blob(&self) -> &BlobProperties {
        const NONE: &BlobProperties = &BlobProperties {
            kind: None,
            content_md5: None,
            blocks: Vec::new(),
            copy: None,
            tier_changed_us: None,
            rehydration: None,
            snapshot_of: None,
        };
        self.blob.as_deref().unwrap_or(NONE)
    }

    /// Returns the same properties, to change them.
    pub(crate) fn blob_mut(&mut self) -> &mut BlobProperties {
        self.blob.get_or_insert_default()
    }

    pub(crate) fn is_snapshot(&self) -> bool {
        self.blob().snapshot_of.is_some()
    }
}

impl Objects {
    /// Changes an object, unless `change` returns an error. Generation, metageneration and times stay the same unless
    /// `change` sets them.
    pub(crate) fn change<T, E>(
        &self,
        bucket: &str,
        key: &str,
        which: VersionSelector,
        change: impl FnOnce(&mut Object) -> Result<T, E>,
    ) -> Result<Result<(Arc<Object>, T), E>, StoreError> {
        let bucket = self.bucket(bucket)?;
        let mut keys = write(&bucket.keys);
        let present = keys.find(key, which).filter(|object| !object.standing.is_delete_marker);
        let mut object = Object::clone(present.ok_or(StoreError::NoObject)?);
        let result = match change(&mut object) {
            Ok(result) => result,
            Err(refusal) => return Ok(Err(refusal)),
        };
        self.put_back(&bucket, &mut keys, object).map(|object| Ok((object, result)))
    }

    /// Makes a snapshot of a live object: a noncurrent version with a generation of its own. `change` may return an error, or
    /// change the snapshot.
    pub(crate) fn snapshot<E>(
        &self,
        bucket: &str,
        key: &str,
        change: impl FnOnce(&mut Object) -> Result<(), E>,
    ) -> Result<Result<Arc<Object>, E>, StoreError> {
        let bucket = self.bucket(bucket)?;
        let mut keys = write(&bucket.keys);
        let mut object = Object::clone(keys.live(key).ok_or(StoreError::NoObject)?);
        if let Err(refusal) = change(&mut object) {
            return Ok(Err(refusal));
        }
        let base = object.generation;
        object.generation = self.next_generation();
        object.standing.has_id = true;
        object.standing.noncurrent_us = Some(now_us());
        object.blob_mut().snapshot_of = Some(base);
        let object = Arc::new(object);
        self.carry_out(&bucket, &mut keys, key, vec![VersionStep::SetAside(object.clone())], false)?;
        Ok(Ok(object))
    }

    /// Deletes a bucket with everything in it, as Azure deletes a container.
    pub(crate) fn delete_bucket_with_objects(&self, name: &str) -> Result<(), StoreError> {
        let mut buckets = write(&self.buckets);
        if !buckets.contains_key(name) {
            return Err(StoreError::NoBucket);
        }
        for upload in self.uploads.of(name) {
            self.uploads.remove(&upload.id);
        }
        if let Some(disk) = &self.disk {
            disk.delete_bucket(name)?;
        }
        let removed = buckets.remove(name);
        drop(buckets);
        drop(removed);
        self.freed.add(u64::MAX);
        Ok(())
    }

    /// Lists one page of a bucket's live objects and of more objects, whose keys aren't live.
    pub(crate) fn list_with(
        &self,
        bucket: &str,
        query: &ListingQuery,
        more: Vec<Arc<Object>>,
    ) -> Result<ListingPage, StoreError> {
        let bucket = self.bucket(bucket)?;
        let mut index = super::read(&bucket.keys).live.clone();
        for object in more {
            index.entry(object.key.as_bytes().into()).or_insert(object);
        }
        Ok(listing::page(&index, query))
    }

    /// Returns the versions of a key that aren't live, oldest first, including snapshots but not delete markers.
    pub(crate) fn noncurrent(&self, bucket: &str, key: &str) -> Result<Vec<Arc<Object>>, StoreError> {
        let bucket = self.bucket(bucket)?;
        let keys = super::read(&bucket.keys);
        let all = keys.noncurrent(key).iter().filter(|object| !object.standing.is_delete_marker);
        Ok(all.cloned().collect())
    }
}
