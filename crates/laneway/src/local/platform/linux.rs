//! The functions of [`platform`](super) for Linux.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use rustix::fs::{RenameFlags, renameat_with};

/// Returns a number that identifies the current boot, or 0 if `/proc` isn't mounted.
pub(crate) fn boot() -> u64 {
    static BOOT: OnceLock<u64> = OnceLock::new();
    *BOOT.get_or_init(|| {
        std::fs::read("/proc/sys/kernel/random/boot_id")
            .map_or(0, |id| crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, &id))
    })
}

pub(super) fn rename_new(directory: &OwnedFd, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
    renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE)
}
