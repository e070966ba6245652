//! Which run of the machine this is.

use std::sync::OnceLock;

/// A number that differs after every boot of the machine; 0 where none can be had. What was written to a file without
/// being flushed is certain to be there only in the same boot.
pub(crate) fn boot() -> u64 {
    static BOOT: OnceLock<u64> = OnceLock::new();
    *BOOT.get_or_init(|| {
        std::fs::read("/proc/sys/kernel/random/boot_id")
            .map_or(0, |id| crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, &id))
    })
}
