//! Direct access to the store for tests, without requests: they can put, read, damage and restore objects.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::content::Extent;
use super::object::{Availability, Restore};
use super::precondition::Precondition;
use super::versions::{VersionSelector, Versioning};
use super::{Attributes, NewObject, Object, Objects, StoreError, disk, now_us, read, write};
use crate::checksum::WantedChecksums;

impl Objects {
    /// Stores bytes under a key as a plain upload would. It creates the bucket if it is missing.
    ///
    /// # Errors
    /// Returns the disk's error, or refuses an unusable bucket name.
    pub fn put(&self, bucket: &str, key: &str, bytes: &[u8]) -> io::Result<Arc<Object>> {
        self.put_with(bucket, key, bytes, Attributes::default())
    }

    /// Stores bytes with metadata.
    ///
    /// # Errors
    /// As for [`Objects::put`].
    pub fn put_with(
        &self,
        bucket: &str,
        key: &str,
        bytes: &[u8],
        attributes: Attributes,
    ) -> io::Result<Arc<Object>> {
        let put = || {
            match self.create_bucket_named(bucket) {
                Ok(()) | Err(StoreError::BucketExists) => {}
                Err(error) => return Err(error),
            }
            let wanted = WantedChecksums { md5_bytes_max: u64::MAX, crc64nvme: true, extra: None };
            let mut writer = self.writer(wanted, Some(bytes.len() as u64));
            writer.write(bytes)?;
            let new = NewObject { attributes, ..Default::default() };
            self.commit(bucket, key, writer.finish(), new, &Precondition::default())
        };
        put().map_err(|refused| match refused {
            StoreError::Io(error) => error,
            other => io::Error::other(format!("{other:?}")),
        })
    }

    /// Returns the metadata of an object.
    pub fn object(&self, bucket: &str, key: &str) -> Option<Arc<Object>> {
        self.find(bucket, key).ok()
    }

    /// Returns the whole content of an object.
    ///
    /// # Errors
    /// `NotFound` if the object doesn't exist, or the disk's error.
    pub fn read(&self, bucket: &str, key: &str) -> io::Result<Vec<u8>> {
        let object = self.object(bucket, key).ok_or(io::ErrorKind::NotFound)?;
        let mut reader = object.content.clone().reader();
        let mut bytes = Vec::with_capacity(object.size as usize);
        while let Some(chunk) = reader.next() {
            bytes.extend_from_slice(&chunk?);
        }
        Ok(bytes)
    }

    /// Flips one bit of the stored content and leaves the checksums unchanged, as a failing disk would.
    ///
    /// # Errors
    /// `NotFound` if the object or byte doesn't exist, or the disk's error.
    pub fn corrupt(&self, bucket: &str, key: &str, offset: u64) -> io::Result<()> {
        let found = self.bucket(bucket).map_err(|_| io::ErrorKind::NotFound)?;
        let mut keys = write(&found.keys);
        let object = keys.live.get_mut(key.as_bytes()).ok_or(io::ErrorKind::NotFound)?;
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

    /// Returns all keys of a bucket in byte order. A bucket that doesn't exist has none.
    pub fn keys(&self, bucket: &str) -> Vec<String> {
        let Ok(bucket) = self.bucket(bucket) else { return Vec::new() };
        let keys = read(&bucket.keys);
        keys.live.values().map(|object| object.key.clone()).collect()
    }

    /// Deletes an object. Returns true if it existed.
    pub fn remove(&self, bucket: &str, key: &str) -> bool {
        self.delete(bucket, key, &Precondition::default()).is_ok()
    }

    /// Sets whether an existing bucket keeps versions from now on.
    ///
    /// # Errors
    /// `NotFound` if the bucket doesn't exist, or the disk's error.
    pub fn keep_versions(&self, bucket: &str, versioning: Versioning) -> io::Result<()> {
        self.set_versioning(bucket, versioning).map_err(|refused| match refused {
            StoreError::Io(error) => error,
            _ => io::ErrorKind::NotFound.into(),
        })
    }

    /// Turns on object locks for an existing bucket, so that objects can have a retention and a legal hold. This also
    /// turns on versioning.
    ///
    /// # Errors
    /// As for [`Objects::keep_versions`].
    pub fn allow_locks(&self, bucket: &str) -> io::Result<()> {
        self.keep_versions(bucket, Versioning::Enabled)?;
        let allowed = self.change_bucket(bucket, |settings| {
            settings.locks = true;
            Ok::<_, std::convert::Infallible>(())
        });
        allowed.map(|_| ()).map_err(|refused| io::Error::other(format!("{refused:?}")))
    }

    /// Lets a bucket keep deleted objects for a week: GCS's soft deletion.
    ///
    /// # Errors
    /// As for [`Objects::keep_versions`].
    pub fn keep_deleted(&self, bucket: &str) -> io::Result<()> {
        let kept = self.change_bucket(bucket, |settings| {
            settings.soft_delete_s = 7 * 86_400;
            Ok::<_, std::convert::Infallible>(())
        });
        kept.map(|_| ()).map_err(|refused| io::Error::other(format!("{refused:?}")))
    }

    /// Gives an existing bucket GCS's hierarchical namespace. At Google, only a new bucket can get it.
    ///
    /// # Errors
    /// As for [`Objects::keep_versions`].
    pub fn make_hierarchical(&self, bucket: &str) -> io::Result<()> {
        let made = self.change_bucket(bucket, |settings| {
            settings.is_hierarchical = true;
            Ok::<_, std::convert::Infallible>(())
        });
        made.map(|_| ()).map_err(|refused| io::Error::other(format!("{refused:?}")))
    }

    /// Returns all versions of a key, oldest first, including delete markers.
    pub fn versions(&self, bucket: &str, key: &str) -> Vec<Arc<Object>> {
        let Ok(bucket) = self.bucket(bucket) else { return Vec::new() };
        let keys = read(&bucket.keys);
        keys.noncurrent(key).iter().chain(keys.live(key)).cloned().collect()
    }

    /// Restores an archived object at once, for this many days. Returns true if it was archived.
    pub fn restore(&self, bucket: &str, key: &str, days: u32) -> bool {
        let now = now_us();
        let copied = self.restore_if(bucket, key, VersionSelector::Live, |object| match object.place(now) {
            Availability::AtHand => Err(()),
            Availability::Archive { .. } | Availability::Copied { .. } => Ok((Restore::copy(now, days), ())),
        });
        copied.is_ok_and(|restored| restored.is_ok())
    }
}
