//! Uploads in parts, of both dialects.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::object::Attributes;
use super::writer::Written;
use crate::checksum::Algorithm;

/// Most uploads that are begun and neither completed nor aborted: who begins more is refused until some are. Each keeps its key and metadata,
/// some KiB.
const UPLOADS_MAX: usize = 10_000;

/// One upload that has been begun and neither completed nor aborted.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) id: String,
    pub(crate) bucket: String,
    pub(crate) key: String,
    pub(crate) attributes: Attributes,
    pub(crate) checksum: Option<UploadChecksum>,
    pub(crate) initiated_us: u64,
    pub(crate) parts: Mutex<BTreeMap<u32, Arc<Part>>>,
}

/// The kind of checksum that an S3 client chose at the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UploadChecksum {
    pub(crate) algorithm: Algorithm,
    pub(crate) composite: bool,
}

/// One part; sending the same number again replaces it.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) number: u32,
    /// Without quotes.
    pub(crate) etag: String,
    pub(crate) written: Written,
    pub(crate) modified_us: u64,
}

impl Upload {
    pub(crate) fn parts(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<Part>>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of all parts that have come.
    pub(crate) fn size(&self) -> u64 {
        self.parts().values().map(|part| part.written.content.size()).sum()
    }
}

/// All uploads of a store. They live in memory only; a restart forgets them.
#[derive(Debug, Default)]
pub(crate) struct Uploads(Mutex<HashMap<String, Arc<Upload>>>);

impl Uploads {
    /// Keeps it; `None` where there are too many.
    pub(crate) fn insert(&self, upload: Upload) -> Option<Arc<Upload>> {
        let mut map = self.map();
        if map.len() >= UPLOADS_MAX {
            return None;
        }
        let upload = Arc::new(upload);
        map.insert(upload.id.clone(), upload.clone());
        Some(upload)
    }

    /// The upload of that id, if it is for that key.
    pub(crate) fn find(&self, bucket: &str, key: &str, id: &str) -> Option<Arc<Upload>> {
        self.map().get(id).filter(|upload| upload.bucket == bucket && upload.key == key).cloned()
    }

    pub(crate) fn remove(&self, id: &str) -> Option<Arc<Upload>> {
        self.map().remove(id)
    }

    /// The uploads of a bucket, by key and then by age.
    pub(crate) fn of(&self, bucket: &str) -> Vec<Arc<Upload>> {
        let mut uploads: Vec<_> =
            self.map().values().filter(|upload| upload.bucket == bucket).cloned().collect();
        uploads.sort_by(|a, b| (&a.key, a.initiated_us, &a.id).cmp(&(&b.key, b.initiated_us, &b.id)));
        uploads
    }

    pub(crate) fn len(&self) -> usize {
        self.map().len()
    }

    fn map(&self) -> MutexGuard<'_, HashMap<String, Arc<Upload>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_completes_is_kept_up_to_a_number() {
        let uploads = Uploads::default();
        let upload = |number: usize| Upload {
            id: number.to_string(),
            bucket: "b".to_owned(),
            key: "k".to_owned(),
            attributes: Attributes::default(),
            checksum: None,
            initiated_us: 0,
            parts: Default::default(),
        };
        assert!((0..UPLOADS_MAX).all(|number| uploads.insert(upload(number)).is_some()));
        assert!(uploads.insert(upload(UPLOADS_MAX)).is_none());
        uploads.remove("7");
        assert!(uploads.insert(upload(UPLOADS_MAX)).is_some());
        assert_eq!(uploads.len(), UPLOADS_MAX);
    }
}
