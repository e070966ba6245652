//! The functions of [`platform`](super) for systems other than Linux. Except on Apple's systems, they use
//! only POSIX.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

/// Returns 0, which means that boots can't be distinguished.
pub(crate) fn boot() -> u64 {
    0
}

/// Renames a file atomically, and fails if the new name exists. Apple's systems have a call for this.
#[cfg(target_vendor = "apple")]
pub(super) fn rename_new(directory: &OwnedFd, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(directory, from, directory, to, rustix::fs::RenameFlags::NOREPLACE)
}

#[cfg(not(target_vendor = "apple"))]
pub(super) fn rename_new(_: &OwnedFd, _: &OsStr, _: &OsStr) -> rustix::io::Result<()> {
    Err(rustix::io::Errno::NOSYS)
}
