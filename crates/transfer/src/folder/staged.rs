//! A file that is being written beside its destination.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::Error;
use crate::relative::NAME_MAX;

/// How often another temporary name is tried when one exists.
const NAMES_TRIED_MAX: u32 = 16;

/// Why no file can be put where a directory is.
pub(super) const IS_A_DIRECTORY: &str = "is a directory, and a file of that name is needed";

/// A file under a temporary name in its destination's directory. Dropped without [`commit`](Self::commit), it is
/// removed.
#[derive(Debug)]
pub(crate) struct Staged {
    file: File,
    /// Held while a thread writes. A file system lets one thread at a time write into a file, and on Linux the others
    /// spin meanwhile: of a download over two lanes that was a tenth of the CPU time.
    writing: Mutex<()>,
    directory: Arc<OwnedFd>,
    temporary: OsString,
    name: OsString,
    path: PathBuf,
    /// Whether the temporary name is gone: renamed or removed.
    settled: AtomicBool,
}

impl Staged {
    pub(super) fn create(
        directory: Arc<OwnedFd>,
        name: &OsStr,
        size: u64,
        path: PathBuf,
    ) -> Result<Self, Error> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mut attempt = 0;
        let (fd, temporary) = loop {
            let temporary = temporary_name(name, RandomState::new().hash_one(attempt) as u32);
            // The kernel takes the umask off this mode.
            match openat(&*directory, &*temporary, flags, Mode::from_raw_mode(0o666)) {
                Ok(fd) => break (fd, temporary),
                Err(Errno::EXIST) if attempt < NAMES_TRIED_MAX => attempt += 1,
                Err(e) => return Err(Error::local(path, "can't be created", e)),
            }
        };
        let (file, name) = (File::from(fd), name.to_owned());
        let staged = Self {
            file,
            writing: Mutex::new(()),
            directory,
            temporary,
            name,
            path,
            settled: AtomicBool::new(false),
        };
        staged.set_len(size)?;
        Ok(staged)
    }

    /// Gives the file its size at once. Blocks are not reserved: `fallocate` costs 0.1 s a GiB on memory-backed file
    /// systems, and others fill a sparse file as fast.
    fn set_len(&self, size: u64) -> Result<(), Error> {
        if size == 0 {
            return Ok(());
        }
        self.file.set_len(size).map_err(|e| Error::local(&self.path, "can't be given its size", e))
    }

    /// Writes at an offset; any number of threads may.
    ///
    /// # Errors
    /// What the file system says, a full disk for one.
    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.file.write_all_at(bytes, offset).map_err(|e| Error::local(&self.path, "can't be written", e))
    }

    /// Puts the file in its place, replacing what is there; with `durable` it is on the disk before this returns.
    ///
    /// # Errors
    /// What the file system says; the destination is as it was then.
    pub(crate) fn commit(&self, durable: bool) -> Result<(), Error> {
        if durable {
            self.file.sync_all().map_err(|e| Error::local(&self.path, "can't be flushed", e))?;
        }
        let renamed = renameat(&*self.directory, &*self.temporary, &*self.directory, &*self.name);
        renamed.map_err(|e| match e {
            // It was made since the file was begun: another object lies below this one's name.
            Errno::ISDIR => Error::refused(self.path.display().to_string(), IS_A_DIRECTORY),
            e => Error::local(&self.path, "can't be put in its place", e),
        })?;
        self.settled.store(true, Ordering::Release);
        if durable {
            rustix::fs::fsync(&*self.directory)
                .map_err(|e| Error::local(&self.path, "its directory can't be flushed", e))?;
        }
        Ok(())
    }

    /// Removes the file unless it was put in its place. For when others still hold it.
    pub(crate) fn abandon(&self) {
        if !self.settled.swap(true, Ordering::AcqRel) {
            // It may be gone already, and there is nobody to tell.
            let _ = unlinkat(&*self.directory, &*self.temporary, AtFlags::empty());
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        self.abandon();
    }
}

/// `.NAME.laneway-XXXXXXXX.part`, with NAME shortened so that the whole fits into a directory entry.
fn temporary_name(name: &OsStr, random: u32) -> OsString {
    let suffix = format!(".laneway-{random:08x}.part");
    let room = NAME_MAX - 1 - suffix.len();
    let bytes = name.as_bytes();
    let mut end = bytes.len().min(room);
    // Some file systems refuse a character that is cut in two.
    while end < bytes.len() && end > 0 && bytes[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    let mut temporary = OsString::from(".");
    temporary.push(OsStr::from_bytes(&bytes[..end]));
    temporary.push(suffix);
    temporary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_are_hidden_and_fit_a_directory_entry() {
        assert_eq!(temporary_name(OsStr::new("k.txt"), 0xbeef), ".k.txt.laneway-0000beef.part");
        let long = temporary_name(OsStr::new(&"ü".repeat(127)), 1);
        assert!(long.len() <= NAME_MAX && long.to_str().is_some());
    }
}
