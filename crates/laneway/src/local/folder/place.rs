//! The destination of a single file, and the checks before Laneway writes to it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;

use super::partial::{self, PartialFile, PartialRequest};
use super::staged::{IS_A_DIRECTORY, StagedFile};
use super::{Folder, kind};
use crate::Error;
use crate::content::checksum::RangeChecksums;
use crate::local::platform::flush_directory;

/// The maximum number of consecutive symbolic links that Laneway follows to a destination. Linux has the same
/// limit.
const LINKS_MAX: usize = 40;

#[derive(Clone, Debug)]
pub(crate) struct FilePlace {
    pub(super) folder: Arc<Folder>,
    pub(super) directory: String,
    pub(super) name: OsString,
}

/// The destination at a path that the user gave for a single object.
pub(crate) enum LocalDestination {
    /// A path at which nothing exists, or a regular file. The download replaces the file as a whole.
    Place(FilePlace),
    /// A pipe, terminal or device. The download writes to it in order, and never replaces it.
    Stream(File),
}

impl LocalDestination {
    /// Returns the destination at the path that the user gave for a single object. Follows symbolic links.
    ///
    /// # Errors
    /// If the path is a directory, or its attributes can't be read.
    pub(crate) fn at(path: &Path) -> Result<Self, Error> {
        let failed = |e| Error::local(path, "its attributes can't be read", e);
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
                let name = target.file_name().ok_or_else(|| {
                    Error::refused(path.display().to_string(), "doesn't end in a file name")
                })?;
                let folder = Folder::new(target.parent().unwrap_or(Path::new("")));
                Ok(Self::Place(FilePlace { folder, directory: String::new(), name: name.to_owned() }))
            }
        }
    }
}

impl FilePlace {
    /// Returns the path, for messages.
    pub(crate) fn path(&self) -> PathBuf {
        // Leave out the folder `.`, so that messages show `name` instead of `./name`.
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

    /// Returns whether a file of this size exists here.
    pub(crate) fn holds(&self, size: Option<u64>) -> bool {
        self.path().metadata().is_ok_and(|there| there.is_file() && Some(there.len()) == size)
    }

    /// Checks whether a file could be created here. Dry runs use this function, because it changes nothing on
    /// disk.
    ///
    /// # Errors
    /// Fails as [`stage`](Self::stage) does.
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

    /// Creates a new file of `size` bytes in the destination's directory, under a temporary name.
    ///
    /// # Errors
    /// If the destination exists and is a directory, a link or a device, or if the file system refuses.
    pub(crate) fn stage(&self, size: u64) -> Result<StagedFile, Error> {
        StagedFile::create(self, self.clear()?, size, "")
    }

    /// Continues the partial file of an earlier run, or begins one that a later run can continue. Also
    /// returns the ranges of bytes that the file already has, each with its offset. If the file was written
    /// before the machine's last boot, blocks while it reads the file back.
    ///
    /// # Errors
    /// Fails as [`stage`](Self::stage) does.
    pub(crate) fn resume(
        &self,
        how: &PartialRequest<'_>,
    ) -> Result<(StagedFile, Vec<(u64, RangeChecksums)>), Error> {
        let directory = self.clear()?;
        let names = partial::PartialNames::of(&self.name, &how.subject.url);
        match partial::take_up(&directory, &names, how) {
            Ok(Some(PartialFile { file, journal, done })) => {
                Ok((StagedFile::resumed(self, directory, names, (file, journal)), done))
            }
            not => {
                if let Err(e) = not {
                    tracing::debug!(error = %e, "the partial file of an earlier download can't be opened, so the download starts again");
                }
                Ok((StagedFile::create(self, directory, how.subject.size, "")?, Vec::new()))
            }
        }
    }

    /// Returns whether an earlier run left a partial file of `url` for this destination. Blocks the thread.
    pub(crate) fn is_begun(&self, url: &str) -> bool {
        // Check first that the directory exists, because `Folder::directory` would create it.
        self.path().parent().is_some_and(|parent| parent.as_os_str().is_empty() || parent.is_dir())
            && self.folder.directory(&self.directory).is_ok_and(|directory| {
                partial::exists(&directory, &partial::PartialNames::of(&self.name, url))
            })
    }

    /// Removes the partial file and the journal that an earlier download of `url` left for this destination.
    /// Blocks the thread.
    pub(crate) fn forget(&self, url: &str) {
        if let Ok(directory) = self.folder.directory(&self.directory) {
            partial::discard(&directory, &partial::PartialNames::of(&self.name, url));
        }
    }

    /// Flushes to disk the entries of the file's directory, and the entries of the directories above it.
    pub(super) fn flush(&self, directory: &OwnedFd) -> io::Result<()> {
        flush_directory(directory)?;
        self.folder.flush_above(&self.directory)
    }

    /// Returns the open directory, if the destination is a regular file or doesn't exist.
    fn clear(&self) -> Result<Arc<OwnedFd>, Error> {
        let directory = self.folder.directory(&self.directory)?;
        let refused = |why| Err(Error::refused(self.path().display().to_string(), why));
        match statat(&*directory, &*self.name, AtFlags::SYMLINK_NOFOLLOW).map(|s| kind(&s)) {
            Ok(FileType::RegularFile) | Err(Errno::NOENT) => {}
            Ok(FileType::Directory) => return refused(IS_A_DIRECTORY),
            Ok(FileType::Symlink) => {
                return refused(
                    "is a symbolic link; Laneway writes nothing through links below the destination",
                );
            }
            Ok(_) => return refused("is not a regular file"),
            Err(e) => return Err(Error::local(self.path(), "its attributes can't be read", e)),
        }
        Ok(directory)
    }
}

/// If `path` is a symbolic link, returns the path to which it finally leads. This path need not exist.
fn follow(path: &Path) -> Result<PathBuf, Error> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match std::fs::read_link(&path) {
            // If the target is absolute, `join` returns the target alone.
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(Error::refused(path.display().to_string(), "leads through too many symbolic links"))
}

/// Returns the file that prevents the creation of the folder `path`, if `path` or one of its parents is a
/// file.
pub(crate) fn file_in_the_way(path: &Path) -> Option<PathBuf> {
    // Drop a trailing slash. With the slash, the system would find only folders, and no file.
    let path: PathBuf = path.components().collect();
    let there = path.ancestors().find_map(|at| Some((at, std::fs::metadata(at).ok()?)));
    there.filter(|(_, metadata)| !metadata.is_dir()).map(|(at, _)| at.to_owned())
}
