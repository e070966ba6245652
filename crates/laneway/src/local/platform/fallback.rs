//! A system of which we use only POSIX.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

/// Boots can't be distinguished.
pub(crate) fn boot() -> u64 {
    0
}

/// Apple's systems have their own call for this rename.
#[cfg(target_vendor = "apple")]
pub(super) fn rename_new(directory: &OwnedFd, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(directory, from, directory, to, rustix::fs::RenameFlags::NOREPLACE)
}

#[cfg(not(target_vendor = "apple"))]
pub(super) fn rename_new(_: &OwnedFd, _: &OsStr, _: &OsStr) -> rustix::io::Result<()> {
    Err(rustix::io::Errno::NOSYS)
}
