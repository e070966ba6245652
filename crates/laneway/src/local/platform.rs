//! Functions for writing files that depend on the operating system. For systems that lack these functions,
//! `docs/platforms.md` describes the differences.
//!
//! - `boot`: a number that changes with every boot of the machine. If bytes were written without a flush,
//!   they are certain to be in the file only until the machine crashes or restarts. Without this number,
//!   Laneway reads back everything that an earlier run wrote.
//! - `rename_new`: renames a file atomically, and fails if the new name exists.

#[cfg(any(not(target_os = "linux"), laneway_fallback))]
mod fallback;
#[cfg(all(target_os = "linux", not(laneway_fallback)))]
mod linux;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, linkat, unlinkat};
use rustix::io::Errno;

#[cfg(any(not(target_os = "linux"), laneway_fallback))]
use fallback as system;
#[cfg(all(target_os = "linux", not(laneway_fallback)))]
use linux as system;

pub(crate) use system::boot;

/// Renames a file within its directory, and fails if the new name exists. If the system has no such call,
/// creates a hard link with the new name, which also fails if that name exists. Then removes the old name.
pub(crate) fn rename_where_absent(directory: &OwnedFd, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
    match system::rename_new(directory, from, to) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            linkat(directory, from, directory, to, AtFlags::empty())?;
            unlinkat(directory, from, AtFlags::empty())
        }
        renamed => renamed,
    }
}

/// Flushes a directory's entries to disk. On macOS, `fsync` leaves the entries in the disk's cache. So this
/// uses the standard library's `sync_all`, which calls `F_FULLFSYNC` on macOS.
pub(crate) fn flush_directory(directory: &OwnedFd) -> io::Result<()> {
    File::from(directory.try_clone()?).sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_renamed_only_where_nothing_is() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("new"), "new").unwrap();
        fs::write(at("old"), "old").unwrap();
        let directory = OwnedFd::from(File::open(dir.path()).unwrap());
        let rename = |to: &str| rename_where_absent(&directory, OsStr::new("new"), OsStr::new(to));
        assert_eq!(rename("old"), Err(Errno::EXIST));
        assert_eq!(
            (fs::read(at("new")).unwrap(), fs::read(at("old")).unwrap()),
            (b"new".to_vec(), b"old".to_vec())
        );
        rename("free").unwrap();
        assert_eq!(fs::read(at("free")).unwrap(), b"new");
        assert!(!at("new").exists());
        flush_directory(&directory).unwrap();
    }

    #[test]
    fn a_boot_is_one_number_or_none() {
        assert_eq!(boot(), boot());
        assert_eq!(boot() == 0, cfg!(any(not(target_os = "linux"), laneway_fallback)));
    }
}
