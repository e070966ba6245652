//! The store on disk, under one folder:
//!
//! ```text
//! buckets/BUCKET/bucket.json          when the bucket was created
//! buckets/BUCKET/SHA256-OF-KEY.json   one object: key, metadata, and the stretches of data files it is made of
//! data/ab/NAME                        bytes; objects share them after a copy, a compose or a multipart upload
//! ```
//!
//! Renaming an object's JSON into place is the moment at which it exists. Data files that no JSON names (a crash in
//! the middle of an upload) are removed at the next start, so uploads in parts don't outlive the server.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use super::content::{Content, DataFile, Extent};
use super::object::Object;
use crate::checksum::hex;

/// The files of one store.
#[derive(Debug)]
pub(crate) struct Disk {
    root: PathBuf,
    store_open: Arc<AtomicBool>,
    next_name: AtomicU64,
}

/// One bucket as found at the start.
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) created_us: u64,
    pub(crate) objects: Vec<Object>,
}

#[derive(Serialize, Deserialize)]
struct BucketRecord {
    created_us: u64,
}

#[derive(Serialize)]
struct ObjectRecord<'a> {
    object: &'a Object,
    extents: Vec<ExtentRecord>,
}

#[derive(Deserialize)]
struct OwnedObjectRecord {
    object: Object,
    extents: Vec<ExtentRecord>,
}

#[derive(Serialize, Deserialize)]
struct ExtentRecord {
    file: String,
    offset: u64,
    len: u64,
}

impl Disk {
    /// Opens or creates the folder and reads what is in it.
    pub(crate) fn open(root: &Path, now_us: u64) -> io::Result<(Disk, Vec<Found>)> {
        fs::create_dir_all(root.join("buckets"))?;
        fs::create_dir_all(root.join("data"))?;
        let disk = Disk {
            root: root.to_owned(),
            store_open: Arc::new(AtomicBool::new(true)),
            next_name: AtomicU64::new(now_us),
        };
        let mut files = disk.data_files()?;
        let mut found = Vec::new();
        for entry in fs::read_dir(root.join("buckets"))? {
            let entry = entry?;
            if let (true, Ok(name)) = (entry.file_type()?.is_dir(), entry.file_name().into_string()) {
                found.push(disk.read_bucket(name, &mut files)?);
            }
        }
        // What no object has taken a second reference to goes with this map.
        drop(files);
        Ok((disk, found))
    }

    pub(crate) fn create_bucket(&self, name: &str, created_us: u64) -> io::Result<()> {
        let folder = self.bucket(name);
        fs::create_dir_all(&folder)?;
        self.replace(&folder.join("bucket.json"), &serde_json::to_vec(&BucketRecord { created_us })?)
    }

    pub(crate) fn delete_bucket(&self, name: &str) -> io::Result<()> {
        fs::remove_dir_all(self.bucket(name))
    }

    /// A new data file, removed again unless an object comes to show it.
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

    /// Makes the object the one that exists under its key.
    pub(crate) fn publish(&self, bucket: &str, object: &Object) -> io::Result<()> {
        let extents = object.content.extents.iter().filter_map(|extent| match extent {
            Extent::File { file, offset, len } => {
                Some(ExtentRecord { file: file.name.clone(), offset: *offset, len: *len })
            }
            Extent::Memory(_) => None,
        });
        let record = ObjectRecord { object, extents: extents.collect() };
        self.replace(&self.record(bucket, &object.key), &serde_json::to_vec(&record)?)
    }

    pub(crate) fn unpublish(&self, bucket: &str, key: &str) -> io::Result<()> {
        fs::remove_file(self.record(bucket, key))
    }

    /// From now on dropping an object no longer removes its bytes.
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

    fn read_bucket(&self, name: String, files: &mut HashMap<String, Arc<DataFile>>) -> io::Result<Found> {
        let folder = self.bucket(&name);
        let mut found = Found { name, created_us: 0, objects: Vec::new() };
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            match path.file_name().and_then(|name| name.to_str()) {
                Some("bucket.json") => {
                    found.created_us = serde_json::from_slice::<BucketRecord>(&fs::read(&path)?)?.created_us;
                }
                Some(name) if name.ends_with(".json") => {
                    let record: OwnedObjectRecord = serde_json::from_slice(&fs::read(&path)?)?;
                    let mut object = record.object;
                    for ExtentRecord { file, offset, len } in record.extents {
                        let lost =
                            || io::Error::other(format!("{} names {file}, which is missing", path.display()));
                        let file = files.get(&file).ok_or_else(lost)?.clone();
                        object.content.extents.push(Extent::File { file, offset, len });
                    }
                    found.objects.push(object);
                }
                // The rest of an interrupted write.
                _ => fs::remove_file(&path)?,
            }
        }
        Ok(found)
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let unfinished = path.with_extension("unfinished");
        fs::write(&unfinished, bytes)?;
        fs::rename(&unfinished, path)
    }

    fn bucket(&self, name: &str) -> PathBuf {
        self.root.join("buckets").join(name)
    }

    /// Keys may be longer than file names, hold `..`, `//` or anything; their hash never does.
    fn record(&self, bucket: &str, key: &str) -> PathBuf {
        let hash = ring::digest::digest(&ring::digest::SHA256, key.as_bytes());
        self.bucket(bucket).join(format!("{}.json", hex(hash.as_ref())))
    }

    fn data(&self, name: &str) -> PathBuf {
        self.root.join("data").join(&name[name.len() - 2..]).join(name)
    }
}

/// The files behind a content, for tests that damage them.
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
