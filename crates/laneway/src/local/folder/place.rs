//! The destination of one file, and checks of it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;

use super::partial::{self, Partial, TakeUp};
use super::staged::{IS_A_DIRECTORY, Staged};
use super::{Folder, kind};
use crate::Error;
use crate::content::checksum::Run;
use crate::local::platform::flush_directory;

/// The most symbolic links that are followed to a destination, the same number as in Linux.
const LINKS_MAX: usize = 40;

#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(super) folder: Arc<Folder>,
    pub(super) directory: String,
    pub(super) name: OsString,
}

/// A single destination that the user named.
pub(crate) enum Destination {
    /// A regular file, which is replaced as a whole, or nothing yet.
    Place(Place),
    /// A pipe, terminal or device. It is written in order, and never replaced.
    Stream(File),
}

impl Destination {
    /// Returns the destination at the path that the user named for one object. Follows links.
    ///
    /// # Errors
    /// If the path is a directory, or can't be looked at.
    pub(crate) fn at(path: &Path) -> Result<Self, Error> {
        let failed = |e| Error::local(path, "can't be looked at", e);
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(e) => return Err(failed(e)),
        };
        match metadata {
            Some(m) if m.is_dir() => Err(Error::refused(path.display().to_string(), "is a directory")),
            Some(m) if !m.is_file() => std::fs::OpenOptions::new()
                .write(true)
                .open(path)
                .map(Self::Stream)
                .map_err(|e| Error::local(path, "can't be opened for writing", e)),
            _ => {
                let target = follow(path)?;
                let name = target
                    .file_name()
                    .ok_or_else(|| Error::refused(path.display().to_string(), "names no file"))?;
                let folder = Folder::new(target.parent().unwrap_or(Path::new("")));
                Ok(Self::Place(Place { folder, directory: String::new(), name: name.to_owned() }))
            }
        }
    }
}

impl Place {
    /// Returns the path, for messages.
    pub(crate) fn path(&self) -> PathBuf {
        // Keep "." out of messages.
        let mut path =
            if self.folder.path == Path::new(".") { PathBuf::new() } else { self.folder.path.clone() };
        if !self.directory.is_empty() {
            path.push(&self.directory);
        }
        path.push(&self.name);
        path
    }

    pub(crate) fn exists(&self) -> bool {
        self.path().symlink_metadata().is_ok()
    }

    /// Returns whether a file of this size exists at the place.
    pub(crate) fn holds(&self, size: Option<u64>) -> bool {
        self.path().metadata().is_ok_and(|there| there.is_file() && Some(there.len()) == size)
    }

    /// Checks whether a file could be put here, without touching anything.
    ///
    /// # Errors
    /// Those of [`stage`](Self::stage).
    pub(crate) fn look(&self) -> Result<(), Error> {
        let path = self.path();
        let refused = |why: &str| Err(Error::refused(path.display().to_string(), why));
        match path.symlink_metadata() {
            Ok(found) if found.is_dir() => return refused(IS_A_DIRECTORY),
            Ok(found) if !found.is_file() => return refused("is not a regular file"),
            _ => {}
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        if let Some(file) = file_in_the_way(folder) {
            return refused(&format!("{} is a file, but a directory is needed there", file.display()));
        }
        let there = folder.ancestors().find(|at| at.is_dir());
        let there = there.filter(|at| !at.as_os_str().is_empty()).unwrap_or(Path::new("."));
        rustix::fs::access(there, rustix::fs::Access::WRITE_OK)
            .map_err(|e| Error::local(&path, "can't be created", e))
    }

    /// Begins a new file of `size` bytes under a temporary name beside the place.
    ///
    /// # Errors
    /// If a directory, a link or a device is in the way, or the file system refuses.
    pub(crate) fn stage(&self, size: u64) -> Result<Staged, Error> {
        Staged::create(self, self.clear()?, size)
    }

    /// Continues the temporary file that an earlier run began beside the place, or begins one that a later
    /// run can continue. Also returns the ranges that the file already has, by first byte. Blocks while it
    /// reads back a file from before the machine's last boot.
    ///
    /// # Errors
    /// Those of [`stage`](Self::stage).
    pub(crate) fn resume(&self, how: &TakeUp<'_>) -> Result<(Staged, Vec<(u64, Run)>), Error> {
        let directory = self.clear()?;
        let names = partial::Names::of(&self.name, &how.subject.url);
        match partial::take_up(&directory, &names, how) {
            Ok(Some(Partial { file, journal, done })) => {
                Ok((Staged::resumed(self, directory, names, (file, journal)), done))
            }
            not => {
                if let Err(e) = not {
                    tracing::debug!(error = %e, "a temporary file that could be resumed can't be opened");
                }
                Ok((Staged::create(self, directory, how.subject.size)?, Vec::new()))
            }
        }
    }

    /// Returns whether an earlier run left a partial download of `url` for this place. Blocks.
    pub(crate) fn is_begun(&self, url: &str) -> bool {
        // Look at the directory first, because `Folder::directory` would create it.
        self.path().parent().is_some_and(|parent| parent.as_os_str().is_empty() || parent.is_dir())
            && self
                .folder
                .directory(&self.directory)
                .is_ok_and(|directory| partial::exists(&directory, &partial::Names::of(&self.name, url)))
    }

    /// Removes the temporary files that an earlier download of `url` left for this place. Blocks.
    pub(crate) fn forget(&self, url: &str) {
        if let Ok(directory) = self.folder.directory(&self.directory) {
            partial::discard(&directory, &partial::Names::of(&self.name, url));
        }
    }

    /// Flushes the names in the place's directory to disk, and the names of the directories above it.
    pub(super) fn flush(&self, directory: &OwnedFd) -> io::Result<()> {
        flush_directory(directory)?;
        self.folder.flush_above(&self.directory)
    }

    /// Returns the directory, if a file can be put at the place.
    fn clear(&self) -> Result<Arc<OwnedFd>, Error> {
        let directory = self.folder.directory(&self.directory)?;
        let refused = |why| Err(Error::refused(self.path().display().to_string(), why));
        match statat(&*directory, &*self.name, AtFlags::SYMLINK_NOFOLLOW).map(|s| kind(&s)) {
            Ok(FileType::RegularFile) | Err(Errno::NOENT) => {}
            Ok(FileType::Directory) => return refused(IS_A_DIRECTORY),
            Ok(FileType::Symlink) => {
                return refused("is a symbolic link; nothing is written through links below the destination");
            }
            Ok(_) => return refused("is not a regular file"),
            Err(e) => return Err(Error::local(self.path(), "can't be looked at", e)),
        }
        Ok(directory)
    }
}

/// Follows links to their final path. A dangling link leads to the path that it names.
fn follow(path: &Path) -> Result<PathBuf, Error> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match std::fs::read_link(&path) {
            // `join` lets an absolute target replace the path.
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(Error::refused(path.display().to_string(), "leads through too many symbolic links"))
}

/// Returns the file, if any, that stands at `path` or above it, where a folder would have to be.
pub(crate) fn file_in_the_way(path: &Path) -> Option<PathBuf> {
    // Drop a trailing slash, because with it only folders are found.
    let path: PathBuf = path.components().collect();
    let there = path.ancestors().find_map(|at| Some((at, std::fs::metadata(at).ok()?)));
    there.filter(|(_, metadata)| !metadata.is_dir()).map(|(at, _)| at.to_owned())
}
