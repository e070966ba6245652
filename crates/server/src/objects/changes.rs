//! What changes objects, each in one step: a reader sees the state before it or the one after it.

use std::sync::Arc;

use super::object::opaque_etag;
use super::precondition::Precondition;
use super::restore::Restore;
use super::writer::Written;
use super::{Attributes, NewObject, Object, Objects, Refused, now_us, write};
use crate::checksum::hex;

impl Objects {
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
}
