//! The store on disk, under one folder:
//!
//! ```text
//! buckets/BUCKET/bucket.json          the time when the bucket was created, and its settings
//! buckets/BUCKET/SHA256-OF-KEY.json   one object: key, metadata, and the extents of data files that it consists of
//! buckets/BUCKET/SHA256-OF-KEY.GENERATION.json   a noncurrent version, in the same format
//! uploads/ID/upload.json              an upload in parts that is neither completed nor aborted
//! uploads/ID/NUMBER.json              one of its parts: checksums, and the extents of data files that it consists of
//! sessions/ID.json                    a resumable session: the request that began it, and its data file
//! data/ab/NAME                        bytes, which several objects share after a copy, a compose or a multipart upload
//! ```
//!
//! An object exists from the moment when its JSON file is renamed into place. If a crash in the middle of a request
//! leaves data files that no JSON file names, the next start removes them. A session's data file grows as bytes arrive.
//! If the session continues after a restart, its checksums are computed again from the file.

use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::content::{Content, DataFile, Extent};
use super::object::Object;
use super::settings::BucketSettings;
use super::uploads::{LoadedSession, OpenUpload, SessionRecord, UploadPart};
use super::writer::WrittenContent;
use crate::checksum::{ComputedChecksums, hex};

/// The files of one store.
#[derive(Debug)]
pub(crate) struct Disk {
    root: PathBuf,
    store_open: Arc<AtomicBool>,
    next_name: AtomicU64,
    /// Called with a message when the disk becomes full. It is called again only if the disk had room in between.
    report: Option<fn(&str)>,
    is_full: AtomicBool,
}

/// The unfinished uploads and sessions that an earlier run has left on disk.
#[derive(Default)]
pub(crate) struct LoadedUploads {
    pub(crate) buckets: Vec<LoadedBucket>,
    pub(crate) uploads: Vec<OpenUpload>,
    pub(crate) sessions: Vec<LoadedSession>,
}

/// A bucket that the store on disk already has at the start.
pub(crate) struct LoadedBucket {
    pub(crate) name: String,
    pub(crate) created_us: u64,
    pub(crate) settings: BucketSettings,
    pub(crate) objects: Vec<Object>,
    pub(crate) noncurrent: Vec<Object>,
}

#[derive(Serialize, Deserialize)]
struct BucketRecord {
    created_us: u64,
    #[serde(flatten)]
    settings: BucketSettings,
}

#[derive(Serialize)]
struct SavedObject<'a> {
    object: &'a Object,
    extents: Vec<ExtentRecord>,
}

#[derive(Deserialize)]
struct LoadedObject {
    object: Object,
    extents: Vec<ExtentRecord>,
}

#[derive(Serialize, Deserialize)]
struct PartRecord {
    number: u32,
    etag: String,
    modified_us: u64,
    sums: ComputedChecksums,
    extents: Vec<ExtentRecord>,
}

#[derive(Serialize, Deserialize)]
struct ExtentRecord {
    file: String,
    offset: u64,
    len: u64,
}

impl Disk {
    /// Opens or creates the folder, and reads its content.
    pub(crate) fn open(
        root: &Path,
        now_us: u64,
        report: Option<fn(&str)>,
    ) -> io::Result<(Disk, LoadedUploads)> {
        if let Some(other) = other_entry(root)? {
            let message = format!(
                "the folder contains {other}, so it isn't a store; use an empty folder or the folder of a store"
            );
            return Err(io::Error::new(ErrorKind::AlreadyExists, message));
        }
        for folder in FOLDERS {
            fs::create_dir_all(root.join(folder))?;
        }
        let disk = Disk {
            root: root.to_owned(),
            store_open: Arc::new(AtomicBool::new(true)),
            next_name: AtomicU64::new(now_us),
            report,
            is_full: AtomicBool::new(false),
        };
        let files = disk.data_files()?;
        let mut left = LoadedUploads::default();
        for entry in fs::read_dir(root.join("buckets"))? {
            let entry = entry?;
            if let (true, Ok(name)) = (entry.file_type()?.is_dir(), entry.file_name().into_string()) {
                left.buckets.push(disk.read_bucket(name, &files)?);
            }
        }
        left.uploads = disk.read_uploads(&files)?;
        left.sessions = disk.read_sessions(&files)?;
        // Dropping this map removes data files to which no object, part or session refers.
        drop(files);
        Ok((disk, left))
    }

    pub(crate) fn create_bucket(
        &self,
        name: &str,
        created_us: u64,
        settings: &BucketSettings,
    ) -> io::Result<()> {
        fs::create_dir_all(self.bucket(name))?;
        self.describe_bucket(name, created_us, settings)
    }

    pub(crate) fn describe_bucket(
        &self,
        name: &str,
        created_us: u64,
        settings: &BucketSettings,
    ) -> io::Result<()> {
        let record = serde_json::to_vec(&BucketRecord { created_us, settings: settings.clone() })?;
        self.replace(&self.bucket(name).join("bucket.json"), &record)
    }

    pub(crate) fn delete_bucket(&self, name: &str) -> io::Result<()> {
        fs::remove_dir_all(self.bucket(name))
    }

    /// Creates a data file. The file is removed when the last reference to it is dropped.
    pub(crate) fn create_data(&self) -> io::Result<(File, Arc<DataFile>)> {
        let name = format!("{:016x}", self.next_name.fetch_add(1, Relaxed));
        let path = self.data(&name);
        let file = match File::create_new(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(path.parent().unwrap_or(&self.root))?;
                File::create_new(&path)?
            }
            created => created?,
        };
        Ok((file, Arc::new(DataFile { path, name, store_open: self.store_open.clone() })))
    }

    /// Makes this object the live object under its key.
    pub(crate) fn publish(&self, bucket: &str, object: &Object) -> io::Result<()> {
        self.write_record(&self.record(bucket, &object.key), object)
    }

    /// Saves a noncurrent version.
    pub(crate) fn set_aside(&self, bucket: &str, object: &Object) -> io::Result<()> {
        self.write_record(&self.noncurrent(bucket, &object.key, object.generation), object)
    }

    /// Deletes a noncurrent version.
    pub(crate) fn forget(&self, bucket: &str, key: &str, generation: u64) -> io::Result<()> {
        fs::remove_file(self.noncurrent(bucket, key, generation))
    }

    fn write_record(&self, path: &Path, object: &Object) -> io::Result<()> {
        let record = SavedObject { object, extents: recorded(&object.content) };
        self.replace(path, &serde_json::to_vec(&record)?)
    }

    pub(crate) fn unpublish(&self, bucket: &str, key: &str) -> io::Result<()> {
        fs::remove_file(self.record(bucket, key))
    }

    /// Closes the store: from now on, dropping an object doesn't remove its data files.
    pub(crate) fn close(&self) {
        self.store_open.store(false, Relaxed);
    }

    fn data_files(&self) -> io::Result<HashMap<String, Arc<DataFile>>> {
        let mut files = HashMap::new();
        for folder in fs::read_dir(self.root.join("data"))? {
            for entry in fs::read_dir(folder?.path())? {
                let entry = entry?;
                if let Ok(name) = entry.file_name().into_string() {
                    let number = u64::from_str_radix(&name, 16).unwrap_or(0);
                    self.next_name.fetch_max(number + 1, Relaxed);
                    let path = entry.path();
                    let store_open = self.store_open.clone();
                    files.insert(name.clone(), Arc::new(DataFile { path, name, store_open }));
                }
            }
        }
        Ok(files)
    }

    fn read_bucket(&self, name: String, files: &HashMap<String, Arc<DataFile>>) -> io::Result<LoadedBucket> {
        let folder = self.bucket(&name);
        let settings = BucketSettings::default();
        let mut found =
            LoadedBucket { name, created_us: 0, settings, objects: Vec::new(), noncurrent: Vec::new() };
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            match path.file_name().and_then(|name| name.to_str()) {
                Some("bucket.json") => {
                    let record: BucketRecord = serde_json::from_slice(&fs::read(&path)?)?;
                    (found.created_us, found.settings) = (record.created_us, record.settings);
                }
                Some(name) if name.ends_with(".json") => {
                    let record: LoadedObject = serde_json::from_slice(&fs::read(&path)?)?;
                    let mut object = record.object;
                    object.content = content(&path, record.extents, files)?;
                    match object.standing.noncurrent_us {
                        None => found.objects.push(object),
                        Some(_) => found.noncurrent.push(object),
                    }
                }
                // This file is left over from an interrupted write.
                _ => fs::remove_file(&path)?,
            }
        }
        self.undo_interrupted(&mut found)?;
        Ok(found)
    }

    /// Saves a new upload.
    pub(crate) fn begin_upload(&self, upload: &OpenUpload) -> io::Result<()> {
        let folder = self.upload(&upload.id);
        fs::create_dir_all(&folder)?;
        self.replace(&folder.join("upload.json"), &serde_json::to_vec(upload)?)
    }

    /// Saves a part of an upload.
    pub(crate) fn keep_part(&self, id: &str, part: &UploadPart) -> io::Result<()> {
        let record = PartRecord {
            number: part.number,
            etag: part.etag.clone(),
            modified_us: part.modified_us,
            sums: part.written.sums.clone(),
            extents: recorded(&part.written.content),
        };
        let path = self.upload(id).join(format!("{}.json", part.number));
        self.replace(&path, &serde_json::to_vec(&record)?)
    }

    /// Deletes an upload that was completed or aborted.
    pub(crate) fn end_upload(&self, id: &str) -> io::Result<()> {
        fs::remove_dir_all(self.upload(id))
    }

    fn read_uploads(&self, files: &HashMap<String, Arc<DataFile>>) -> io::Result<Vec<OpenUpload>> {
        let mut uploads = Vec::new();
        for entry in fs::read_dir(self.root.join("uploads"))? {
            let folder = entry?.path();
            // If this file is missing, the server was interrupted while the upload began or ended. So remove the
            // upload's other files.
            let Ok(text) = fs::read(folder.join("upload.json")) else {
                fs::remove_dir_all(&folder)?;
                continue;
            };
            let upload: OpenUpload = serde_json::from_slice(&text)?;
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
                if name.parse::<u32>().is_err() || path.extension().is_none_or(|kind| kind != "json") {
                    continue;
                }
                let PartRecord { number, etag, modified_us, sums, extents } =
                    serde_json::from_slice(&fs::read(&path)?)?;
                let written = WrittenContent { content: content(&path, extents, files)?, sums };
                upload.parts().insert(number, Arc::new(UploadPart { number, etag, written, modified_us }));
            }
            uploads.push(upload);
        }
        Ok(uploads)
    }

    /// Saves the state of a resumable session.
    pub(crate) fn keep_session(&self, id: &str, record: &SessionRecord) -> io::Result<()> {
        self.replace(&self.session(id), &serde_json::to_vec(record)?)
    }

    /// Deletes a resumable session.
    pub(crate) fn end_session(&self, id: &str) -> io::Result<()> {
        fs::remove_file(self.session(id))
    }

    fn read_sessions(&self, files: &HashMap<String, Arc<DataFile>>) -> io::Result<Vec<LoadedSession>> {
        let mut sessions = Vec::new();
        for entry in fs::read_dir(self.root.join("sessions"))? {
            let path = entry?.path();
            let id = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            if path.extension().is_none_or(|kind| kind != "json") {
                // This file is left over from an interrupted write.
                fs::remove_file(&path)?;
                continue;
            }
            let SessionRecord { data, said } = serde_json::from_slice(&fs::read(&path)?)?;
            match data.map(|name| files.get(&name).cloned()) {
                // The session's data file no longer exists, so the server was interrupted while the session ended.
                Some(None) => fs::remove_file(&path)?,
                data => sessions.push(LoadedSession { id, data: data.flatten(), said }),
            }
        }
        Ok(sessions)
    }

    /// Removes noncurrent versions that are not older than the live object. They belong to a change that was
    /// interrupted before it replaced the live object. Azure's snapshots are newer than their live object, and stay.
    fn undo_interrupted(&self, found: &mut LoadedBucket) -> io::Result<()> {
        let live: HashMap<&str, u64> =
            found.objects.iter().map(|object| (object.key.as_str(), object.generation)).collect();
        let is_of_one = |object: &Object| {
            let generation = live.get(object.key.as_str());
            !object.is_snapshot() && generation.is_some_and(|generation| object.generation >= *generation)
        };
        for object in found.noncurrent.iter().filter(|object| is_of_one(object)) {
            self.forget(&found.name, &object.key, object.generation)?;
        }
        found.noncurrent.retain(|object| !is_of_one(object));
        Ok(())
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let unfinished = path.with_extension("unfinished");
        self.noted(fs::write(&unfinished, bytes))?;
        fs::rename(&unfinished, path)
    }

    /// Returns the result of a write unchanged. If the disk has just become full, this is reported.
    pub(crate) fn noted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        let now_full = result.as_ref().err().is_some_and(is_full);
        if self.is_full.swap(now_full, Relaxed) != now_full
            && now_full
            && let Some(report) = self.report
        {
            report(&format!("the disk of {} is full, so writes fail", self.root.display()));
        }
        result
    }

    fn bucket(&self, name: &str) -> PathBuf {
        self.root.join("buckets").join(name)
    }

    fn upload(&self, id: &str) -> PathBuf {
        self.root.join("uploads").join(id)
    }

    fn session(&self, id: &str) -> PathBuf {
        self.root.join("sessions").join(format!("{id}.json"))
    }

    /// Returns the path of an object's JSON file. It contains the key's hash, because a key may be too long for a file
    /// name and may contain `..` or `//`.
    fn record(&self, bucket: &str, key: &str) -> PathBuf {
        self.bucket(bucket).join(format!("{}.json", hashed(key)))
    }

    fn noncurrent(&self, bucket: &str, key: &str, generation: u64) -> PathBuf {
        self.bucket(bucket).join(format!("{}.{generation:016x}.json", hashed(key)))
    }

    fn data(&self, name: &str) -> PathBuf {
        self.root.join("data").join(&name[name.len() - 2..]).join(name)
    }
}

/// Returns the extents of content in the form in which they are saved as JSON.
fn recorded(content: &Content) -> Vec<ExtentRecord> {
    let extents = content.extents.iter().filter_map(|extent| match extent {
        Extent::File { file, offset, len } => {
            Some(ExtentRecord { file: file.name.clone(), offset: *offset, len: *len })
        }
        Extent::Memory(_) => None,
    });
    extents.collect()
}

/// Returns the content that the JSON file at `path` describes.
fn content(
    path: &Path,
    extents: Vec<ExtentRecord>,
    files: &HashMap<String, Arc<DataFile>>,
) -> io::Result<Content> {
    let extents = extents.into_iter().map(|ExtentRecord { file, offset, len }| {
        let lost = || io::Error::other(format!("{} names {file}, which is missing", path.display()));
        Ok(Extent::File { file: files.get(&file).ok_or_else(lost)?.clone(), offset, len })
    });
    Ok(Content { extents: extents.collect::<io::Result<_>>()? })
}

/// The folders of a store.
const FOLDERS: [&str; 4] = ["buckets", "data", "sessions", "uploads"];

/// Returns the name of an entry that doesn't belong to a store, if the folder has one.
fn other_entry(root: &Path) -> io::Result<Option<String>> {
    let entries = match fs::read_dir(root) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        // The root folder of a file system has an entry `lost+found`.
        if !FOLDERS.contains(&name.as_str()) && name != "lost+found" {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Returns true if an error means that the disk or a quota is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

fn hashed(key: &str) -> String {
    hex(ring::digest::digest(&ring::digest::SHA256, key.as_bytes()).as_ref())
}

/// Returns the file and the offset of one byte of content, so that tests can damage it.
pub(crate) fn file_at(content: &Content, mut offset: u64) -> Option<(PathBuf, u64)> {
    for extent in &content.extents {
        if offset < extent.len() {
            return match extent {
                Extent::File { file, offset: start, .. } => Some((file.path.clone(), start + offset)),
                Extent::Memory(_) => None,
            };
        }
        offset -= extent.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    static REPORTS: AtomicU64 = AtomicU64::new(0);

    #[test]
    fn a_full_disk_is_reported_once_until_there_was_room() {
        let folder = tempfile::tempdir().unwrap();
        let report = |text: &str| {
            assert!(text.contains("is full"), "{text}");
            REPORTS.fetch_add(1, Relaxed);
        };
        let (disk, _) = Disk::open(folder.path(), 0, Some(report)).unwrap();
        let full = || disk.noted::<()>(Err(ErrorKind::StorageFull.into())).unwrap_err();
        for _ in 0..3 {
            assert_eq!(full().kind(), ErrorKind::StorageFull);
        }
        assert_eq!(REPORTS.load(Relaxed), 1);
        disk.noted(Ok(())).unwrap();
        full();
        assert_eq!(REPORTS.load(Relaxed), 2);
    }
}
