//! Removes the temporary files that earlier runs left in the destination of a tree.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::PoisonError;

use rustix::fs::{Dir, Mode, OFlags, openat};

use super::partial::{self, PartialNames};
use super::staged::is_temporary_name;
use super::{DIRECTORY, Folder, journal};

/// The number of bytes read from the start of a journal to find its URL. A key has at most 1024 bytes, so
/// these bytes contain the whole URL.
const HEADER_MAX: usize = 4096;

impl Folder {
    /// Removes temporary files of downloads, unless a process has locked them. Removes a file if it has no
    /// journal, because no run can resume it then. Also removes a file if `is_ours` accepts the URL of its
    /// object. Looks in the directories that received files, and in directories of the same relative paths
    /// below `name`. Blocks the thread.
    pub(crate) fn remove_leftovers(&self, name: &str, is_ours: impl Fn(&str) -> bool) {
        let Some(used) = &self.used else { return };
        for below in &std::mem::take(&mut *used.lock().unwrap_or_else(PoisonError::into_inner)) {
            for path in [below.clone(), format!("{name}/{below}")] {
                let Some(directory) = opened(&self.path, &path) else { continue };
                for part in parts(&directory) {
                    remove_leftover(&directory, &part, &is_ours);
                }
            }
        }
    }
}

/// Opens an existing directory without following links below the root.
fn opened(root: &Path, below: &str) -> Option<OwnedFd> {
    let root = rustix::fs::open(root, DIRECTORY, Mode::empty()).ok()?;
    below.split('/').filter(|name| !name.is_empty()).try_fold(root, |parent, name| {
        openat(&parent, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()).ok()
    })
}

/// Returns those temporary files in a directory whose names are derived from their destinations. Leaves out
/// files with random names, because another process may be using such a file without a lock.
fn parts(directory: &OwnedFd) -> Vec<OsString> {
    let Ok(entries) = Dir::read_from(directory) else { return Vec::new() };
    let names = entries.flatten().map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
    let is_part = |name: &OsString| {
        let mark = |name: &str| name.strip_suffix(".part")?.rsplit_once('-').map(|(_, mark)| mark.len());
        name.to_str().is_some_and(|name| is_temporary_name(name) && mark(name) == Some(16))
    };
    names.filter(is_part).collect()
}

fn remove_leftover(directory: &OwnedFd, part: &OsStr, is_ours: impl Fn(&str) -> bool) {
    let Ok(Some(_held)) = partial::hold(directory, part, OFlags::empty(), Mode::empty()) else { return };
    let bytes = part.as_bytes();
    let mut journal = bytes[..bytes.len() - "part".len()].to_vec();
    journal.extend(b"journal");
    let names = PartialNames { part: part.to_owned(), journal: OsStr::from_bytes(&journal).to_owned() };
    let header = partial::open_own(directory, &names.journal, OFlags::empty(), Mode::empty());
    let is_left = match header {
        Ok(Some(file)) => {
            let mut header = vec![0; HEADER_MAX];
            let read = file.read_at(&mut header, 0).unwrap_or(0);
            journal::url(&header[..read]).is_some_and(is_ours)
        }
        Ok(None) => false,
        // Without a journal, no run can resume the file.
        Err(e) => e.kind() == std::io::ErrorKind::NotFound,
    };
    if is_left {
        partial::remove(directory, &names);
    }
}
