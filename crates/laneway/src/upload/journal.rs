//! The journal of a large upload: what the store calls it and which of its parts are there, so that the next run goes on.
//!
//! A file of lines, each of which stands alone: a checksum and a JSON record. The first record says what goes where and
//! the name of the upload, which of a resumable session is a secret; each of the others is a part that the store has.

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

use crate::folder::hold;
use crate::identity::Identity;
use crate::location::url;
use crate::plan::kept_parts::Subject;

/// Raised when what follows it changes its meaning: a journal of a newer format is left to who can read it.
const FORMAT: u32 = 1;
/// More bytes than a journal of 10,000 parts has.
const JOURNAL_MAX: u64 = 16 << 20;
/// How a journal's name ends.
const SUFFIX: &str = ".upload";
/// Nobody else's business: who knows a session's URL may write to it.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// The upload of the file at `path`, which is absolute, to an object of `store`.
pub(crate) fn subject(
    path: &Path,
    file: Identity,
    store: &Store,
    id: &ObjectId,
    options: &PutOptions,
    part_len: u64,
) -> Subject {
    let path = path.as_os_str().as_bytes().escape_ascii().to_string();
    let options = crc64(format!("{options:?} {}", store.fingerprint()).as_bytes());
    let (url, endpoint) = (url(store.provider(), id), store.endpoint());
    Subject { path, url, endpoint, file, options, part_len }
}

/// The name of an upload's journal: always the same for the same file, object and store.
fn journal_name(subject: &Subject) -> OsString {
    let key = [&*subject.path, &*subject.url, &*subject.endpoint].join("\n");
    format!("{:016x}{SUFFIX}", crc64(key.as_bytes())).into()
}

/// An upload as its store calls it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Upload {
    Multipart(Multipart),
    Session(Resumable),
}

#[derive(Debug, Serialize, Deserialize)]
enum Record {
    Begun { format: u32, subject: Subject, upload: Upload },
    Part(Part),
}

/// What the first record of every format has.
#[derive(Debug, Deserialize)]
enum First {
    Begun { format: u32 },
}

/// What a journal tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Left {
    pub(crate) subject: Subject,
    pub(crate) upload: Upload,
    pub(crate) parts: BTreeMap<u32, Part>,
}

pub(super) fn crc64(bytes: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Nvme, bytes)
}

fn line(record: &Record) -> Option<String> {
    let json = serde_json::to_string(record).ok()?;
    Some(format!("{:016x} {json}\n", crc64(json.as_bytes())))
}

fn record<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    let (check, json) = (line.get(..16)?, line.get(17..)?);
    let check = u64::from_str_radix(std::str::from_utf8(check).ok()?, 16).ok()?;
    (check == crc64(json)).then(|| serde_json::from_slice(json).ok()).flatten()
}

/// Whether the journal is of a newer format, whatever else that may hold.
pub(super) fn is_newer(bytes: &[u8]) -> bool {
    let first = bytes.split(|byte| *byte == b'\n').next().and_then(record);
    matches!(first, Some(First::Begun { format }) if format > FORMAT)
}

/// What a journal's bytes tell; `None` where they are none. A line that is torn or damaged says nothing, the others hold.
pub(super) fn read(bytes: &[u8]) -> Option<Left> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let Some(Record::Begun { format: FORMAT, subject, upload }) = record(lines.next()?) else { return None };
    let parts = lines.filter_map(record).filter_map(|record| match record {
        Record::Part(part) => Some((part.number, part)),
        Record::Begun { .. } => None,
    });
    Some(Left { subject, upload, parts: parts.collect() })
}

/// A journal that this process holds.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    folder: OwnedFd,
    name: OsString,
    /// Where the next line goes.
    end: AtomicU64,
    /// Bytes of the object that the store has.
    kept: AtomicU64,
    /// Whether its first line could be written, without which the others say nothing.
    is_good: AtomicBool,
}

impl Journal {
    /// Opens the journal of an upload in the folder, which is made where it is missing, and reads what an earlier run
    /// has left in it. `None` when another process holds it, or it is of a newer format. Blocks.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) fn open(folder: &Path, subject: &Subject) -> io::Result<Option<(Self, Option<Left>)>> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        Self::take(folder, &journal_name(subject), OFlags::CREATE)
    }

    fn take(folder: &Path, name: &OsStr, create: OFlags) -> io::Result<Option<(Self, Option<Left>)>> {
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

    /// Begins it anew, before the first part of an upload is sent. Blocks.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) fn begin(&self, subject: &Subject, upload: &Upload) -> io::Result<()> {
        self.is_good.store(false, Ordering::Relaxed);
        self.file.set_len(0)?;
        self.end.store(0, Ordering::Relaxed);
        self.kept.store(0, Ordering::Relaxed);
        self.write(&Record::Begun { format: FORMAT, subject: subject.clone(), upload: upload.clone() })?;
        self.is_good.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Goes on with it, `kept` bytes of whose upload are in the store. Blocks.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) fn go_on(&self, kept: u64) -> io::Result<()> {
        self.kept.store(kept, Ordering::Relaxed);
        // Whatever was torn at its end is a line of its own now.
        if self.end.load(Ordering::Relaxed) == 0 { Ok(()) } else { self.append(b"\n") }
    }

    /// Makes the journal count for nothing: its upload can't be gone on with.
    pub(crate) fn void(&self) {
        self.is_good.store(false, Ordering::Relaxed);
    }

    /// Writes down a part that the store has. Blocks; any number of threads may.
    pub(crate) fn part(&self, part: &Part) {
        match self.write(&Record::Part(part.clone())) {
            Ok(()) => drop(self.kept.fetch_add(part.size, Ordering::Relaxed)),
            // Without this line a later run sends the part again, which is no reason to give this one up.
            Err(e) => {
                tracing::debug!(error = %e, "a part could not be written to the journal of its upload");
            }
        }
    }

    /// Says how much of the object a session has.
    pub(crate) fn stands_at(&self, offset: u64) {
        self.kept.fetch_max(offset, Ordering::Relaxed);
    }

    /// Bytes of the object that a later run need not send.
    pub(crate) fn kept(&self) -> u64 {
        let is_good = self.is_good.load(Ordering::Relaxed);
        if is_good { self.kept.load(Ordering::Relaxed) } else { 0 }
    }

    /// Removes it. Blocks.
    pub(crate) fn remove(&self) {
        // It may be gone already, and there is nobody to tell.
        let _ = unlinkat(&self.folder, &*self.name, AtFlags::empty());
    }

    /// For how long nothing has been written to it.
    pub(crate) fn idle(&self) -> Duration {
        let modified = self.file.metadata().and_then(|metadata| metadata.modified());
        modified.map_or(Duration::ZERO, |at| SystemTime::now().duration_since(at).unwrap_or_default())
    }

    fn write(&self, record: &Record) -> io::Result<()> {
        let line = line(record).ok_or_else(|| io::Error::other("a record that is no JSON"))?;
        self.append(line.as_bytes())
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let at = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.write_all_at(bytes, at)
    }
}

impl Drop for Journal {
    /// Without its first line it says nothing to anybody: no upload was begun, or it could not be written down.
    fn drop(&mut self) {
        if !self.is_good.load(Ordering::Relaxed) {
            self.remove();
        }
    }
}

/// Journals in a folder to which nothing was written for longer than `idle`, and which no process holds: at most `max`
/// of those that `is_wanted`, or say nothing. Blocks.
pub(crate) fn abandoned(
    folder: &Path,
    idle: Duration,
    max: usize,
    is_wanted: impl Fn(&Left) -> bool,
) -> Vec<(Journal, Option<Left>)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name();
        let modified = entry.metadata().ok()?.modified().ok()?;
        let is_old = SystemTime::now().duration_since(modified).is_ok_and(|age| age > idle);
        (is_old && name.to_str()?.ends_with(SUFFIX)).then_some(name)
    });
    let taken = names.filter_map(|name| Journal::take(folder, &name, OFlags::empty()).ok().flatten());
    let old = taken.filter(|(journal, _)| journal.idle() > idle);
    old.filter(|(_, left)| left.as_ref().is_none_or(&is_wanted)).take(max).collect()
}

#[cfg(test)]
mod tests;
