//! The multipart uploads of both dialects, and the resumable sessions that a store on disk saves.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::content::{Content, DataFile};
use super::disk::Disk;
use super::object::Attributes;
use super::writer::WrittenContent;
use crate::checksum::{Algorithm, concatenated, hex, md5};

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

/// One session in the form in which it is saved.
#[derive(Serialize, Deserialize)]
pub(crate) struct SessionRecord {
    /// The name of the data file with the session's bytes. `None` after they have become an object.
    pub(crate) data: Option<String>,
    pub(crate) said: Value,
}

/// A session from an earlier run of the server.
#[derive(Debug)]
pub(crate) struct LoadedSession {
    pub(crate) id: String,
    pub(crate) data: Option<Arc<DataFile>>,
    pub(crate) said: Value,
}

/// The sessions that a store on disk has saved. For a store in memory, this is always empty.
///
/// The dialect defines a session's state, which is any JSON value here.
#[derive(Debug, Default)]
pub(crate) struct SavedSessions {
    disk: Option<Arc<Disk>>,
    left: Mutex<Vec<LoadedSession>>,
}

impl SavedSessions {
    pub(super) fn on_disk(disk: Arc<Disk>, left: Vec<LoadedSession>) -> Self {
        Self { disk: Some(disk), left: Mutex::new(left) }
    }

    /// Returns the sessions of an earlier run. Later calls return none.
    pub(crate) fn take_left(&self) -> Vec<LoadedSession> {
        std::mem::take(&mut self.left.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Saves a session's state, which replaces the state saved before.
    pub(crate) fn keep(&self, id: &str, record: &SessionRecord) -> io::Result<()> {
        self.disk.as_ref().map_or(Ok(()), |disk| disk.keep_session(id, record))
    }

    /// Deletes a session.
    pub(crate) fn end(&self, id: &str) {
        if let Some(disk) = &self.disk {
            // If the file can't be removed, the session is back after the next start, and can be cancelled then.
            let _ = disk.end_session(id);
        }
    }
}

/// A part in a request that completes an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedPart {
    pub(crate) number: u32,
    /// The part's entity tag without quotes, or `None` if the client left it out.
    pub(crate) etag: Option<String>,
}

/// The reason why the named parts can't form an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AssemblyError {
    Empty,
    Order,
    Unknown { number: u32 },
    TooSmall { number: u32, size: u64 },
    Unequal { number: u32 },
}

/// Returns the named parts in order, or the reason why they can't form an object. `part_size_min` applies to all parts
/// but the last.
pub(crate) fn select_parts(
    parts: &BTreeMap<u32, Arc<UploadPart>>,
    named: &[NamedPart],
    part_size_min: u64,
) -> Result<Vec<Arc<UploadPart>>, AssemblyError> {
    if named.is_empty() {
        return Err(AssemblyError::Empty);
    }
    if !named.is_sorted_by(|a, b| a.number < b.number) {
        return Err(AssemblyError::Order);
    }
    let mut selected = Vec::with_capacity(named.len());
    for (index, name) in named.iter().enumerate() {
        let part =
            parts.get(&name.number).filter(|part| name.etag.as_ref().is_none_or(|etag| *etag == part.etag));
        let part = part.ok_or(AssemblyError::Unknown { number: name.number })?;
        let size = part.written.sums.size;
        if index + 1 < named.len() && size < part_size_min {
            return Err(AssemblyError::TooSmall { number: name.number, size });
        }
        selected.push(part.clone());
    }
    Ok(selected)
}

/// Checks that all parts but the last have the same size, and that the last isn't larger. Some services require that.
pub(crate) fn equal_parts(parts: Vec<Arc<UploadPart>>) -> Result<Vec<Arc<UploadPart>>, AssemblyError> {
    let size = |part: &Arc<UploadPart>| part.written.sums.size;
    let first = parts.first().map_or(0, size);
    let odd = parts.iter().enumerate().find(|(index, part)| {
        let last = index + 1 == parts.len();
        if last { size(part) > first } else { size(part) != first }
    });
    match odd {
        Some((_, part)) => Err(AssemblyError::Unequal { number: part.number }),
        None => Ok(parts),
    }
}

/// Joins the parts end to end. The result has no MD5, because an MD5 can't be combined from those of the parts.
pub(crate) fn join_parts(parts: &[Arc<UploadPart>]) -> WrittenContent {
    let mut content = Content::default();
    let mut sums = None;
    for part in parts {
        content.extents.extend(part.written.content.extents.iter().cloned());
        sums = Some(match sums {
            Some(before) => concatenated(&before, &part.written.sums),
            None => part.written.sums.clone(),
        });
    }
    let mut sums = sums.unwrap_or_default();
    sums.md5 = None;
    WrittenContent { content, sums }
}

/// Returns the ETag of the object: the MD5 of the N parts' MD5s, a dash, and N. If a part's MD5 isn't known, the parts'
/// ETags are used instead.
pub(crate) fn etag_of_parts(parts: &[Arc<UploadPart>]) -> String {
    let mut digests = Vec::with_capacity(parts.len() * 16);
    for part in parts {
        match part.written.sums.md5 {
            Some(md5) => digests.extend_from_slice(&md5),
            None => digests.extend_from_slice(part.etag.as_bytes()),
        }
    }
    format!("{}-{}", hex(&md5(&digests)), parts.len())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::content::Extent;
    use super::*;
    use crate::checksum::{Hasher, WantedChecksums};

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

    fn part(number: u32, bytes: &'static [u8]) -> (u32, Arc<UploadPart>) {
        let mut hasher =
            Hasher::new(WantedChecksums { md5_bytes_max: u64::MAX, crc64nvme: true, extra: None });
        hasher.update(bytes);
        let content = Content { extents: vec![Extent::Memory(Bytes::from_static(bytes))] };
        let written = WrittenContent { content, sums: hasher.finish() };
        (number, Arc::new(UploadPart { number, etag: format!("e{number}"), written, modified_us: 0 }))
    }

    fn named(numbers: &[u32]) -> Vec<NamedPart> {
        numbers.iter().map(|number| NamedPart { number: *number, etag: Some(format!("e{number}")) }).collect()
    }

    #[test]
    fn the_named_parts_are_taken_in_order_and_others_left() {
        let parts = BTreeMap::from([part(1, b"ab"), part(3, b"cd"), part(7, b"e")]);
        let selected = select_parts(&parts, &named(&[1, 7]), 0).unwrap();
        let whole = join_parts(&selected);
        assert_eq!((whole.content.size(), whole.sums.size), (3, 3));
        let mut hasher = Hasher::new(WantedChecksums { md5_bytes_max: 0, crc64nvme: false, extra: None });
        hasher.update(b"abe");
        assert_eq!(whole.sums.crc32c, hasher.finish().crc32c);
        assert!(etag_of_parts(&selected).ends_with("-2"));
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let parts = BTreeMap::from([part(1, b"ab"), part(2, b"c")]);
        assert_eq!(select_parts(&parts, &[], 0).unwrap_err(), AssemblyError::Empty);
        assert_eq!(select_parts(&parts, &named(&[2, 1]), 0).unwrap_err(), AssemblyError::Order);
        assert_eq!(select_parts(&parts, &named(&[1, 1]), 0).unwrap_err(), AssemblyError::Order);
        assert_eq!(
            select_parts(&parts, &named(&[1, 3]), 0).unwrap_err(),
            AssemblyError::Unknown { number: 3 }
        );
        let wrong = [NamedPart { number: 1, etag: Some("other".to_owned()) }];
        assert_eq!(select_parts(&parts, &wrong, 0).unwrap_err(), AssemblyError::Unknown { number: 1 });
        assert_eq!(
            select_parts(&parts, &named(&[1, 2]), 5).unwrap_err(),
            AssemblyError::TooSmall { number: 1, size: 2 }
        );
        // The last part may have any size.
        assert!(select_parts(&parts, &named(&[2]), 5).is_ok());
    }

    #[test]
    fn the_etag_is_the_md5_of_the_md5s() {
        // The output of printf hello | md5, decoded and hashed again.
        let parts = BTreeMap::from([part(1, b"hello")]);
        let selected = select_parts(&parts, &named(&[1]), 0).unwrap();
        assert_eq!(etag_of_parts(&selected), format!("{}-1", hex(&md5(&md5(b"hello")))));
    }
}
