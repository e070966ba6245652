//! A system of which no more is known than what POSIX promises.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

/// One boot can't be distinguished from another.
pub(crate) fn boot() -> u64 {
    0
}

/// Apple's has a rename of its own.
#[cfg(target_vendor = "apple")]
pub(super) fn rename_new(directory: &OwnedFd, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(directory, from, directory, to, rustix::fs::RenameFlags::NOREPLACE)
}

#[cfg(not(target_vendor = "apple"))]
pub(super) fn rename_new(_: &OwnedFd, _: &OsStr, _: &OsStr) -> rustix::io::Result<()> {
    Err(rustix::io::Errno::NOSYS)
}
