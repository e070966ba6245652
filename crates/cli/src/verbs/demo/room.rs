//! Where the demo keeps its files.

use std::path::{Path, PathBuf};

use anyhow::bail;
use tempfile::TempDir;

use crate::quantity;

/// Memory-backed, where it exists: the demo shows the way over the network, not the disk.
const MEMORY_BACKED: &str = "/dev/shm";

/// A folder for files of `bytes` in all, removed when dropped. It lies in memory only where plenty of that is left.
///
/// # Errors
/// When there is not enough room anywhere.
pub(super) fn folder(bytes: u64) -> anyhow::Result<TempDir> {
    let shared = Path::new(MEMORY_BACKED);
    let roomy = free(shared) > bytes && memory_available() > bytes.saturating_mul(2);
    let parent = if roomy { PathBuf::from(shared) } else { std::env::temp_dir() };
    if free(&parent) < bytes {
        bail!(
            "{}: {} are needed for the demo's files and {} are free; --size makes the large object smaller",
            parent.display(),
            quantity::size(bytes),
            quantity::size(free(&parent)),
        );
    }
    Ok(tempfile::Builder::new().prefix("laneway-demo-").tempdir_in(parent)?)
}

/// Bytes that an unprivileged user may still write; none where that can't be told.
fn free(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize))
}

/// Bytes of memory that programs can still have, as Linux estimates it; none elsewhere.
fn memory_available() -> u64 {
    std::fs::read_to_string("/proc/meminfo").map_or(0, |text| available_in(&text))
}

fn available_in(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_in_kibibytes() {
        let text = "MemTotal:       24689764 kB\nMemFree:        21000000 kB\nMemAvailable:   22000000 kB\n";
        assert_eq!(available_in(text), 22_000_000 * 1024);
        assert_eq!(available_in("MemTotal: 1 kB\n"), 0);
    }
}
