//! The multipart uploads of both dialects.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::disk::Disk;
use super::object::Attributes;
use super::writer::WrittenContent;
use crate::checksum::Algorithm;

/// The maximum number of unfinished uploads. When it is reached, no new upload can begin until one is completed or
/// aborted. Each takes some KiB of memory for its key and metadata.
const UPLOADS_MAX: usize = 10_000;

/// An unfinished upload, which was begun but neither completed nor aborted.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OpenUpload {
    pub(crate) id: String,
    pub(crate) bucket: String,
    pub(crate) key: String,
    pub(crate) attributes: Attributes,
    pub(crate) checksum: Option<UploadChecksum>,
    pub(crate) initiated_us: u64,
    #[serde(skip)]
    pub(crate) parts: Mutex<BTreeMap<u32, Arc<UploadPart>>>,
}

/// The kind of checksum that an S3 client chose when the upload began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UploadChecksum {
    pub(crate) algorithm: Algorithm,
    pub(crate) composite: bool,
}

/// A part of an upload. A later part with the same number replaces it.
#[derive(Debug)]
pub(crate) struct UploadPart {
    pub(crate) number: u32,
    /// The entity tag without quotes.
    pub(crate) etag: String,
    pub(crate) written: WrittenContent,
    pub(crate) modified_us: u64,
}

impl OpenUpload {
    pub(crate) fn parts(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<UploadPart>>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of bytes of all received parts.
    pub(crate) fn size(&self) -> u64 {
        self.parts().values().map(|part| part.written.content.size()).sum()
    }
}

/// All uploads of a store. With a store on disk, they survive a restart.
#[derive(Debug, Default)]
pub(crate) struct Uploads {
    map: Mutex<HashMap<String, Arc<OpenUpload>>>,
    disk: Option<Arc<Disk>>,
}

impl Uploads {
    /// Returns the uploads of a store on disk, including those of an earlier run.
    pub(crate) fn on_disk(disk: Arc<Disk>, left: Vec<OpenUpload>) -> Self {
        let left = left.into_iter().map(|upload| (upload.id.clone(), Arc::new(upload)));
        Self { map: Mutex::new(left.collect()), disk: Some(disk) }
    }

    /// Adds an upload, or returns `None` if the limit is reached.
    pub(crate) fn insert(&self, upload: OpenUpload) -> io::Result<Option<Arc<OpenUpload>>> {
        let mut map = self.map();
        if map.len() >= UPLOADS_MAX {
            return Ok(None);
        }
        if let Some(disk) = &self.disk {
            disk.begin_upload(&upload)?;
        }
        let upload = Arc::new(upload);
        map.insert(upload.id.clone(), upload.clone());
        Ok(Some(upload))
    }

    /// Saves a part. It replaces an earlier part with the same number.
    pub(crate) fn keep(&self, upload: &OpenUpload, part: UploadPart) -> io::Result<Arc<UploadPart>> {
        let mut parts = upload.parts();
        if let Some(disk) = &self.disk {
            disk.keep_part(&upload.id, &part)?;
        }
        let part = Arc::new(part);
        parts.insert(part.number, part.clone());
        Ok(part)
    }

    /// Returns the upload with this id, if it is for this key.
    pub(crate) fn find(&self, bucket: &str, key: &str, id: &str) -> Option<Arc<OpenUpload>> {
        self.map().get(id).filter(|upload| upload.bucket == bucket && upload.key == key).cloned()
    }

    pub(crate) fn remove(&self, id: &str) {
        let removed = self.map().remove(id);
        if let (Some(disk), Some(_)) = (&self.disk, &removed) {
            // If its files can't be removed, the upload is back after the next start, and can be aborted then.
            let _ = disk.end_upload(id);
        }
    }

    /// Returns the uploads of a bucket, sorted by key and then by age.
    pub(crate) fn of(&self, bucket: &str) -> Vec<Arc<OpenUpload>> {
        let mut uploads: Vec<_> =
            self.map().values().filter(|upload| upload.bucket == bucket).cloned().collect();
        uploads.sort_by(|a, b| (&a.key, a.initiated_us, &a.id).cmp(&(&b.key, b.initiated_us, &b.id)));
        uploads
    }

    pub(crate) fn len(&self) -> usize {
        self.map().len()
    }

    fn map(&self) -> MutexGuard<'_, HashMap<String, Arc<OpenUpload>>> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_completes_is_kept_up_to_a_number() {
        let uploads = Uploads::default();
        let upload = |number: usize| OpenUpload {
            id: number.to_string(),
            bucket: "b".to_owned(),
            key: "k".to_owned(),
            attributes: Attributes::default(),
            checksum: None,
            initiated_us: 0,
            parts: Default::default(),
        };
        let is_kept = |number| uploads.insert(upload(number)).unwrap().is_some();
        assert!((0..UPLOADS_MAX).all(is_kept));
        assert!(!is_kept(UPLOADS_MAX));
        uploads.remove("7");
        assert!(is_kept(UPLOADS_MAX));
        assert_eq!(uploads.len(), UPLOADS_MAX);
    }
}
