//! Changes objects, each in one step. A reader sees the state before the step or after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::object::{Restore, VersionState, opaque_etag};
use super::precondition::Precondition;
use super::versions::{ObjectTable, VersionSelector, VersionStep, VersionSuccessor, Versioning};
use super::writer::WrittenContent;
use super::{
    Attributes, NewObject, Object, Objects, StoreError, StoredBucket, admit, check_key, now_us, precondition,
    write,
};
use crate::checksum::hex;

/// The result of a delete.
#[derive(Debug, Clone)]
pub(crate) enum RemovalResult {
    /// The object has been deleted.
    Gone,
    /// The object, or the named version of it, has been deleted.
    Version(Arc<Object>),
    /// A delete marker has become the newest version.
    Marked(Arc<Object>),
}

impl Objects {
    /// Stores the written bytes as the object under a key, if the precondition holds at that moment.
    pub(crate) fn commit(
        &self,
        bucket: &str,
        key: &str,
        written: WrittenContent,
        new: NewObject,
        precondition: &Precondition,
    ) -> Result<Arc<Object>, StoreError> {
        let bucket = self.bucket_to_write(bucket)?;
        check_key(key)?;
        let mut keys = write(&bucket.keys);
        precondition.check(keys.live(key).map(|object| &**object)).map_err(StoreError::Precondition)?;
        let mut new = new;
        let versioning = {
            let settings = bucket.settings();
            admit(&settings, &new.attributes.options)?;
            settings.complete(&mut new.attributes.options, now_us());
            settings.versioning()
        };
        let object = self.generation(key, written, new, versioning);
        let steps = keys.writing(versioning, object.clone(), now_us());
        let replaced = self.carry_out(&bucket, &mut keys, key, steps, false)?;
        drop(keys);
        // If this was the last reference to a large file, dropping it takes time. So drop it after the lock was
        // released.
        self.drop_removed(replaced);
        Ok(object)
    }

    /// Drops objects. If many bytes have been freed since the last time, their memory is returned to the system.
    pub(super) fn drop_removed(&self, removed: Vec<Arc<Object>>) {
        let size = removed.iter().map(|object| object.size).sum();
        drop(removed);
        if self.disk.is_none() {
            self.freed.add(size);
        }
    }

    /// Returns a new generation of an object. It isn't stored under its key yet.
    fn generation(
        &self,
        key: &str,
        written: WrittenContent,
        new: NewObject,
        versioning: Versioning,
    ) -> Arc<Object> {
        let generation = self.next_generation();
        let now = now_us();
        let WrittenContent { content, sums } = written;
        let etag = new
            .etag
            .or_else(|| sums.md5.map(|md5| hex(&md5)))
            .unwrap_or_else(|| opaque_etag(generation, sums.crc32c));
        Arc::new(Object {
            size: sums.size,
            crc32c: sums.crc32c,
            crc64nvme: sums.crc64nvme,
            md5: sums.md5,
            etag,
            components: new.components,
            parts: new.parts,
            part_sizes: new.part_sizes,
            part_sums: new.part_sums,
            attributes: new.attributes.shared(),
            created_us: now,
            updated_us: now,
            standing: VersionState { has_id: versioning == Versioning::Enabled, ..VersionState::default() },
            checksum: new.checksum,
            blob: new.blob,
            content,
            ..Object::empty(key, generation)
        })
    }

    pub(super) fn marker(&self, key: &str, versioning: Versioning) -> Arc<Object> {
        let now = now_us();
        let standing = VersionState {
            has_id: versioning == Versioning::Enabled,
            is_delete_marker: true,
            noncurrent_us: Some(now),
        };
        let generation = self.next_generation();
        Arc::new(Object { created_us: now, updated_us: now, standing, ..Object::empty(key, generation) })
    }

    /// Carries out steps, unless a hold or a retention forbids one. If the bucket has soft deletion, it keeps the objects
    /// that they delete. Returns the objects that were removed. `bypasses` is true if retentions of the mode GOVERNANCE
    /// are to be ignored.
    pub(super) fn carry_out(
        &self,
        bucket: &StoredBucket,
        keys: &mut ObjectTable,
        key: &str,
        steps: Vec<VersionStep>,
        bypasses: bool,
    ) -> Result<Vec<Arc<Object>>, StoreError> {
        let deleted = permit(bucket, keys, key, &steps, bypasses)?;
        let mut gone = self.take_steps(bucket, keys, key, steps)?;
        let retention_s = bucket.settings().soft_delete_s;
        gone.extend(bucket.soft_deleted.keep(deleted, retention_s, now_us()));
        Ok(gone)
    }

    /// Applies steps, first on disk and then in memory. Returns the objects that were removed.
    fn take_steps(
        &self,
        bucket: &StoredBucket,
        keys: &mut ObjectTable,
        key: &str,
        steps: Vec<VersionStep>,
    ) -> Result<Vec<Arc<Object>>, StoreError> {
        let is_hierarchical = bucket.settings().is_hierarchical;
        let mut gone = Vec::new();
        for step in steps {
            if let Some(disk) = &self.disk {
                match &step {
                    VersionStep::SetAside(object) => disk.set_aside(&bucket.name, object)?,
                    VersionStep::Show(object) => disk.publish(&bucket.name, object)?,
                    VersionStep::Hide => disk.unpublish(&bucket.name, key)?,
                    VersionStep::Drop(generation) => disk.forget(&bucket.name, key, *generation)?,
                }
            }
            if is_hierarchical && matches!(step, VersionStep::Show(_)) {
                bucket.folders.add_above(key, now_us());
            }
            gone.extend(keys.apply(key, step));
        }
        Ok(gone)
    }

    /// Changes an object's key within its bucket. In one step, a new generation appears under the new key, and the old
    /// key disappears.
    pub(crate) fn rename(
        &self,
        bucket: &str,
        from: &str,
        to: &str,
        source: &Precondition,
        destination: &Precondition,
    ) -> Result<Arc<Object>, StoreError> {
        let bucket = self.bucket(bucket)?;
        let mut keys = write(&bucket.keys);
        let old = keys.live(from).ok_or(StoreError::NoObject)?;
        source.check(Some(old)).map_err(StoreError::Precondition)?;
        destination.check(keys.live(to).map(|object| &**object)).map_err(StoreError::Precondition)?;
        let (object, removed) = self.move_key(&bucket, &mut keys, from, to)?;
        drop(keys);
        self.drop_removed(removed);
        Ok(object)
    }

    /// Changes an object's key. The caller holds the lock of the keys. Also returns the removed objects.
    pub(super) fn move_key(
        &self,
        bucket: &StoredBucket,
        keys: &mut ObjectTable,
        from: &str,
        to: &str,
    ) -> Result<(Arc<Object>, Vec<Arc<Object>>), StoreError> {
        check_key(to)?;
        let old = keys.live(from).cloned().ok_or(StoreError::NoObject)?;
        let new = NewObject {
            attributes: Attributes::clone(&old.attributes),
            checksum: old.checksum.clone(),
            components: old.components,
            ..Default::default()
        };
        let versioning = bucket.versioning();
        let object = self.generation(to, Objects::written_from(&old), new, versioning);
        let writing = keys.writing(versioning, object.clone(), now_us());
        let deleting = keys.deleting(versioning, self.marker(from, versioning), now_us());
        permit(bucket, keys, from, &deleting, false)?;
        let mut removed = self.carry_out(bucket, keys, to, writing, false)?;
        // Soft deletion doesn't keep the old key: <https://cloud.google.com/storage/docs/json_api/v1/objects/move>.
        removed.extend(self.take_steps(bucket, keys, from, deleting)?);
        bucket.deletions.note(from, now_us());
        Ok((object, removed))
    }

    /// Changes the attributes of an object, unless `change` returns an error. The generation stays the same, and the
    /// metageneration is incremented.
    pub(crate) fn patch<E>(
        &self,
        bucket: &str,
        key: &str,
        which: VersionSelector,
        precondition: &Precondition,
        change: impl FnOnce(&mut Attributes) -> Result<(), E>,
    ) -> Result<Result<Arc<Object>, E>, StoreError> {
        let bucket = self.bucket(bucket)?;
        let mut keys = write(&bucket.keys);
        let present = keys.find(key, which).filter(|object| !object.standing.is_delete_marker).cloned();
        precondition.check(present.as_deref()).map_err(StoreError::Precondition)?;
        let mut object = Object::clone(&*present.ok_or(StoreError::NoObject)?);
        if let Err(refusal) = change(Arc::make_mut(&mut object.attributes)) {
            return Ok(Err(refusal));
        }
        admit(&bucket.settings(), &object.attributes.options)?;
        object.metageneration += 1;
        object.updated_us = now_us();
        self.put_back(&bucket, &mut keys, object).map(Ok)
    }

    /// Replaces an object by the changed object. It stays live or noncurrent.
    pub(super) fn put_back(
        &self,
        bucket: &StoredBucket,
        keys: &mut ObjectTable,
        object: Object,
    ) -> Result<Arc<Object>, StoreError> {
        let object = Arc::new(object);
        let step = match object.standing.noncurrent_us {
            None => VersionStep::Show(object.clone()),
            Some(_) => VersionStep::SetAside(object.clone()),
        };
        self.carry_out(bucket, keys, &object.key, vec![step], false)?;
        Ok(object)
    }

    /// Records the restoration of an archived object, unless `decide` returns an error. The object's metageneration and
    /// times don't change.
    pub(crate) fn restore_if<T, E>(
        &self,
        bucket: &str,
        key: &str,
        which: VersionSelector,
        decide: impl FnOnce(&Object) -> Result<(Restore, T), E>,
    ) -> Result<Result<T, E>, StoreError> {
        let bucket = self.bucket(bucket)?;
        let mut keys = write(&bucket.keys);
        let present = keys.find(key, which).filter(|object| !object.standing.is_delete_marker);
        let object = present.cloned().ok_or(StoreError::NoObject)?;
        let (restore, answer) = match decide(&object) {
            Ok(decided) => decided,
            Err(refusal) => return Ok(Err(refusal)),
        };
        self.put_back(&bucket, &mut keys, Object { restore: Some(restore), ..Object::clone(&object) })?;
        Ok(Ok(answer))
    }

    /// Deletes an object that must exist. If versions are kept, it becomes noncurrent.
    pub(crate) fn delete(
        &self,
        bucket: &str,
        key: &str,
        precondition: &Precondition,
    ) -> Result<RemovalResult, StoreError> {
        self.delete_if(bucket, key, precondition, false, |keys| keys.live(key).is_some())
    }

    /// Deletes an object as S3 does: if versions are kept, a key that doesn't exist gets a delete marker too.
    pub(crate) fn delete_or_mark(
        &self,
        bucket: &str,
        key: &str,
        precondition: &Precondition,
        bypasses: bool,
    ) -> Result<RemovalResult, StoreError> {
        let marks = self.bucket(bucket)?.versioning() != Versioning::Off && precondition.is_none();
        self.delete_if(bucket, key, precondition, bypasses, |keys| marks || keys.live(key).is_some())
    }

    fn delete_if(
        &self,
        bucket: &str,
        key: &str,
        precondition: &Precondition,
        bypasses: bool,
        can_be: impl FnOnce(&ObjectTable) -> bool,
    ) -> Result<RemovalResult, StoreError> {
        let bucket = self.bucket(bucket)?;
        let mut keys = write(&bucket.keys);
        if !can_be(&keys) {
            return Err(StoreError::NoObject);
        }
        precondition.check(keys.live(key).map(|object| &**object)).map_err(StoreError::Precondition)?;
        let (deleted, removed) = self.delete_key(&bucket, &mut keys, key, bypasses)?;
        drop(keys);
        self.drop_removed(removed);
        Ok(deleted)
    }

    /// Deletes an object. The caller holds the lock of the keys. Also returns the removed objects.
    pub(super) fn delete_key(
        &self,
        bucket: &StoredBucket,
        keys: &mut ObjectTable,
        key: &str,
        bypasses: bool,
    ) -> Result<(RemovalResult, Vec<Arc<Object>>), StoreError> {
        let versioning = bucket.versioning();
        let marker = self.marker(key, versioning);
        let steps = keys.deleting(versioning, marker.clone(), now_us());
        let removed = self.carry_out(bucket, keys, key, steps, bypasses)?;
        bucket.deletions.note(key, now_us());
        let deleted =
            if versioning == Versioning::Off { RemovalResult::Gone } else { RemovalResult::Marked(marker) };
        Ok((deleted, removed))
    }

    /// Deletes one version permanently.
    pub(crate) fn delete_version(
        &self,
        bucket: &str,
        key: &str,
        which: VersionSelector,
        heir: VersionSuccessor,
        precondition: &Precondition,
        bypasses: bool,
    ) -> Result<RemovalResult, StoreError> {
        let bucket = self.bucket(bucket)?;
        let mut keys = write(&bucket.keys);
        let is_shown =
            |object: &&Arc<Object>| heir == VersionSuccessor::Newest || !object.standing.is_delete_marker;
        let target = keys.find(key, which).filter(is_shown).cloned().ok_or(StoreError::NoObject)?;
        precondition.check(Some(&target)).map_err(StoreError::Precondition)?;
        let marker = self.marker(key, Versioning::Enabled);
        let steps = keys.removing(key, which, heir, marker).ok_or(StoreError::NoObject)?;
        let removed = self.carry_out(&bucket, &mut keys, key, steps, bypasses)?;
        bucket.deletions.note(key, now_us());
        drop(keys);
        self.drop_removed(removed);
        Ok(RemovalResult::Version(target))
    }
}

/// Returns the objects that steps would delete permanently, or an error if a hold or a retention protects an object that
/// they would delete or replace.
pub(super) fn permit(
    bucket: &StoredBucket,
    keys: &ObjectTable,
    key: &str,
    steps: &[VersionStep],
    bypasses: bool,
) -> Result<Vec<Arc<Object>>, StoreError> {
    let (removed, archived) = keys.losses(key, steps);
    let (settings, now_us) = (bucket.settings(), now_us());
    let kept = removed
        .iter()
        .find_map(|object| precondition::against_removal(&settings, object, bypasses, now_us))
        .or_else(|| archived.as_deref().and_then(precondition::against_archival));
    kept.map_or(Ok(removed), |kept| Err(StoreError::Protected(kept)))
}

/// Counts the bytes freed since memory was last returned to the system. Without this, the allocator of glibc would keep
/// freed memory for itself.
#[derive(Debug, Default)]
pub(super) struct FreedBytes(AtomicU64);

/// Memory is returned only after this many bytes were freed, because each call examines all free blocks and takes
/// milliseconds.
const GIVEN_BACK_BYTES_MIN: u64 = 64 << 20;

impl FreedBytes {
    pub(super) fn add(&self, bytes: u64) {
        if self.is_due(bytes) {
            heap::give_back();
        }
    }

    /// Counts freed bytes. Returns true if there are enough of them to return memory to the system now.
    fn is_due(&self, bytes: u64) -> bool {
        let before = self.0.fetch_add(bytes.min(GIVEN_BACK_BYTES_MIN), Relaxed);
        let is_due = before.saturating_add(bytes) >= GIVEN_BACK_BYTES_MIN;
        if is_due {
            self.0.store(0, Relaxed);
        }
        is_due
    }
}

mod heap {
    #![allow(unsafe_code, reason = "the allocator has no safe interface for it")]

    pub(super) fn give_back() {
        // SAFETY: any thread may call `malloc_trim` at any time. Its only argument is a number, and it changes only
        // memory that is already free.
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_after_every_64_mib() {
        let freed = FreedBytes::default();
        assert!(!freed.is_due(GIVEN_BACK_BYTES_MIN - 1));
        assert!(freed.is_due(1));
        assert!(!freed.is_due(GIVEN_BACK_BYTES_MIN - 1), "it counts from nothing again");
        assert!(freed.is_due(u64::MAX));
    }
}
