//! The journal of a large upload. The journal holds the store's name for the upload, and the upload's stored
//! parts. The name is the id of a multipart upload, or the URL of a resumable session. After an interruption,
//! the next run continues the upload from the journal.
//!
//! The journal is a file of lines. Each line has a checksum and a JSON record, and is valid by itself. The
//! first record has the upload's name and its [`UploadSubject`], such as the file and the object. A session's URL
//! is secret. Each further record describes a stored part.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crc_fast::CrcAlgorithm;
use laneway_store::{Multipart, ObjectId, Part, PutOptions, Resumable, Store};
use rustix::fs::{AtFlags, Mode, OFlags, unlinkat};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::local::folder::hold;
use crate::location::{FileIdentity, url};
use crate::plan::parts::UploadSubject;

/// The version of the format. Raise it when a record changes its meaning. A journal in a newer format is left
/// alone.
const FORMAT: u32 = 1;
/// The maximum size in bytes of a journal that Laneway reads. A journal of 10,000 parts is smaller.
const JOURNAL_MAX: u64 = 16 << 20;
/// The ending of a journal's name.
const SUFFIX: &str = ".upload";
/// Only the owner may read a journal, because anyone with a session's URL can write to the session.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Describes the upload of the file at `path`, which is absolute, to an object of `store`.
pub(crate) fn subject(
    path: &Path,
    file: FileIdentity,
    store: &Store,
    id: &ObjectId,
    options: &PutOptions,
    part_len: u64,
) -> UploadSubject {
    let path = path.as_os_str().as_bytes().escape_ascii().to_string();
    let options = crc64(format!("{options:?} {}", store.fingerprint()).as_bytes());
    let (url, endpoint) = (url(store.provider(), id), store.endpoint());
    UploadSubject { path, url, endpoint, file, options, part_len }
}

/// Returns the name of an upload's journal. The name is always the same for the same file, object and store.
fn journal_name(subject: &UploadSubject) -> OsString {
    let key = [&*subject.path, &*subject.url, &*subject.endpoint].join("\n");
    format!("{:016x}{SUFFIX}", crc64(key.as_bytes())).into()
}

/// An upload, identified by the store's name for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum StoreUpload {
    Multipart(Multipart),
    Session(Resumable),
}

#[derive(Debug, Serialize, Deserialize)]
enum JournalRecord {
    Begun { format: u32, subject: UploadSubject, upload: StoreUpload },
    Part(Part),
}

/// The fields that the first record has in every format.
#[derive(Debug, Deserialize)]
enum FirstRecord {
    Begun { format: u32 },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct JournalContent {
    pub(crate) subject: UploadSubject,
    pub(crate) upload: StoreUpload,
    pub(crate) parts: BTreeMap<u32, Part>,
}

pub(super) fn crc64(bytes: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Nvme, bytes)
}

fn line(record: &JournalRecord) -> Option<String> {
    let json = serde_json::to_string(record).ok()?;
    Some(format!("{:016x} {json}\n", crc64(json.as_bytes())))
}

fn record<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    let (check, json) = (line.get(..16)?, line.get(17..)?);
    let check = u64::from_str_radix(std::str::from_utf8(check).ok()?, 16).ok()?;
    (check == crc64(json)).then(|| serde_json::from_slice(json).ok()).flatten()
}

/// Returns whether a newer version of Laneway wrote the journal. Looks only at the format number, which every
/// format has in its first record.
pub(super) fn is_newer(bytes: &[u8]) -> bool {
    let first = bytes.split(|byte| *byte == b'\n').next().and_then(record);
    matches!(first, Some(FirstRecord::Begun { format }) if format > FORMAT)
}

/// Parses a journal. Returns `None` if the bytes aren't a journal. Ignores incomplete or damaged lines. The
/// other lines stay valid.
pub(super) fn read(bytes: &[u8]) -> Option<JournalContent> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let Some(JournalRecord::Begun { format: FORMAT, subject, upload }) = record(lines.next()?) else {
        return None;
    };
    let parts = lines.filter_map(record).filter_map(|record| match record {
        JournalRecord::Part(part) => Some((part.number, part)),
        JournalRecord::Begun { .. } => None,
    });
    Some(JournalContent { subject, upload, parts: parts.collect() })
}

/// A journal that this process has opened and locked.
#[derive(Debug)]
pub(crate) struct UploadJournal {
    file: File,
    folder: OwnedFd,
    name: OsString,
    /// The offset of the next line.
    end: AtomicU64,
    /// The number of the object's bytes that the store has.
    kept: AtomicU64,
    /// True if the first line could be written. Without the first line, the other lines have no effect.
    is_good: AtomicBool,
}

impl UploadJournal {
    /// Opens the journal of an upload, and reads the content that an earlier run left. Creates the folder if
    /// it is missing. Returns `None` if another process has locked the journal, or if it has a newer format.
    /// Blocks the thread.
    ///
    /// # Errors
    /// The file system's error.
    pub(crate) fn open(
        folder: &Path,
        subject: &UploadSubject,
    ) -> io::Result<Option<(Self, Option<JournalContent>)>> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        Self::take(folder, &journal_name(subject), OFlags::CREATE)
    }

    fn take(
        folder: &Path,
        name: &OsStr,
        create: OFlags,
    ) -> io::Result<Option<(Self, Option<JournalContent>)>> {
        let folder = OwnedFd::from(File::open(folder)?);
        let Some(file) = hold(&folder, name, create, PRIVATE)? else { return Ok(None) };
        let len = file.metadata()?.len();
        let mut bytes = vec![0; if len > JOURNAL_MAX { 0 } else { len as usize }];
        file.read_exact_at(&mut bytes, 0)?;
        if is_newer(&bytes) {
            return Ok(None);
        }
        let (end, kept) = (AtomicU64::new(len), AtomicU64::new(0));
        let (left, name) = (read(&bytes), name.to_owned());
        let is_good = AtomicBool::new(left.is_some());
        Ok(Some((Self { file, folder, name, end, kept, is_good }, left)))
    }

    /// Empties the journal and begins it again, before the first part of an upload is sent. Blocks the
    /// thread.
    ///
    /// # Errors
    /// The file system's error.
    pub(crate) fn begin(&self, subject: &UploadSubject, upload: &StoreUpload) -> io::Result<()> {
        self.is_good.store(false, Ordering::Relaxed);
        self.file.set_len(0)?;
        self.end.store(0, Ordering::Relaxed);
        self.kept.store(0, Ordering::Relaxed);
        self.write(&JournalRecord::Begun {
            format: FORMAT,
            subject: subject.clone(),
            upload: upload.clone(),
        })?;
        self.is_good.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Continues a journal that an earlier run left. The store already has `kept` bytes of its upload. Blocks
    /// the thread.
    ///
    /// # Errors
    /// The file system's error.
    pub(crate) fn go_on(&self, kept: u64) -> io::Result<()> {
        self.kept.store(kept, Ordering::Relaxed);
        // An earlier run may have stopped in the middle of a line. Begin a new line, so that readers ignore
        // only the incomplete line.
        if self.end.load(Ordering::Relaxed) == 0 { Ok(()) } else { self.append(b"\n") }
    }

    /// Makes the journal invalid, because its upload can't be continued.
    pub(crate) fn void(&self) {
        self.is_good.store(false, Ordering::Relaxed);
    }

    /// Records a stored part. Several threads may call this at the same time. Blocks the thread.
    pub(crate) fn part(&self, part: &Part) {
        match self.write(&JournalRecord::Part(part.clone())) {
            Ok(()) => drop(self.kept.fetch_add(part.size, Ordering::Relaxed)),
            // Continue: without this line, a later run only has to send the part again.
            Err(e) => {
                tracing::debug!(error = %e, "a part could not be written to the journal of its upload");
            }
        }
    }

    /// Records that the store has the first `offset` bytes of a session's object.
    pub(crate) fn stands_at(&self, offset: u64) {
        self.kept.fetch_max(offset, Ordering::Relaxed);
    }

    /// Returns how many bytes of the object a later run need not send.
    pub(crate) fn kept(&self) -> u64 {
        let is_good = self.is_good.load(Ordering::Relaxed);
        if is_good { self.kept.load(Ordering::Relaxed) } else { 0 }
    }

    pub(crate) fn remove(&self) {
        // The journal may be gone already, so ignore the error.
        let _ = unlinkat(&self.folder, &*self.name, AtFlags::empty());
    }

    /// Returns the time since the last write to the journal.
    pub(crate) fn idle(&self) -> Duration {
        let modified = self.file.metadata().and_then(|metadata| metadata.modified());
        modified.map_or(Duration::ZERO, |at| SystemTime::now().duration_since(at).unwrap_or_default())
    }

    fn write(&self, record: &JournalRecord) -> io::Result<()> {
        let line = line(record).ok_or_else(|| io::Error::other("a record can't be written as JSON"))?;
        self.append(line.as_bytes())
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let at = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.write_all_at(bytes, at)
    }
}

impl Drop for UploadJournal {
    /// Removes a journal without a valid first line, because a later run can't use it. Either no upload
    /// began, or its name could not be recorded, or it can't be continued.
    fn drop(&mut self) {
        if !self.is_good.load(Ordering::Relaxed) {
            self.remove();
        }
    }
}

/// Finds the journals in a folder that were last written more than `idle` ago, and locks them. Leaves out
/// journals that another process has locked. Returns at most `max` journals, and only those that are invalid or
/// that `is_wanted` accepts. Blocks the thread.
pub(crate) fn abandoned(
    folder: &Path,
    idle: Duration,
    max: usize,
    is_wanted: impl Fn(&JournalContent) -> bool,
) -> Vec<(UploadJournal, Option<JournalContent>)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name();
        let modified = entry.metadata().ok()?.modified().ok()?;
        let is_old = SystemTime::now().duration_since(modified).is_ok_and(|age| age > idle);
        (is_old && name.to_str()?.ends_with(SUFFIX)).then_some(name)
    });
    let taken = names.filter_map(|name| UploadJournal::take(folder, &name, OFlags::empty()).ok().flatten());
    let old = taken.filter(|(journal, _)| journal.idle() > idle);
    old.filter(|(_, left)| left.as_ref().is_none_or(&is_wanted)).take(max).collect()
}

#[cfg(test)]
mod tests;
