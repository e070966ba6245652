//! Where files of a benchmark or a demo lie.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::proc;

/// Memory-backed, where it exists: what is measured is the way over the network, not the disk.
const MEMORY_BACKED: &str = "/dev/shm";

/// A new folder for files of `bytes` in all, whose name begins with `name`, removed when dropped: below `parent`, or in memory where plenty of that is
/// left, or among the temporary files.
///
/// # Errors
/// When there is not enough room, or no folder can be made.
pub fn folder(name: &str, parent: Option<&Path>, bytes: u64) -> io::Result<TempDir> {
    let shared = Path::new(MEMORY_BACKED);
    let parent = match parent {
        Some(parent) => parent.to_path_buf(),
        None if free(shared) > bytes && memory_is_plenty(bytes) => shared.to_path_buf(),
        None => std::env::temp_dir(),
    };
    let there = free(&parent);
    if there < bytes {
        let why = format!("{}: {bytes} bytes are needed and {there} are free", parent.display());
        return Err(io::Error::new(io::ErrorKind::StorageFull, why));
    }
    tempfile::Builder::new().prefix(name).tempdir_in(absolute(parent))
}

/// Other processes may stand in another folder.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// Whether twice as many bytes of memory are free; not where that isn't known.
fn memory_is_plenty(bytes: u64) -> bool {
    proc::memory_available().is_some_and(|free| free > bytes.saturating_mul(2))
}

/// Bytes that an unprivileged user may still write; none where that can't be told.
fn free(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_room_is_said_before_anything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let refused = super::folder("x-", Some(folder.path()), u64::MAX).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
        assert!(refused.to_string().contains("bytes are needed"), "{refused}");
        assert!(super::folder("x-", Some(folder.path()), 1).unwrap().path().starts_with(folder.path()));
    }
}
