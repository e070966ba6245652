//! Folders for the files of a benchmark or a demo.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::usage;

/// A folder in memory, on systems that have it. Memory is preferred, because the experiments measure the network and not the disk.
const MEMORY_BACKED: &str = "/dev/shm";

/// Creates a folder for files of `bytes` in total. The folder's name begins with `name`. If `parent` is given, the folder is created there.
/// Otherwise the folder is in memory if enough is free, or else in the system's folder for temporary files. Dropping the value removes the
/// folder.
///
/// # Errors
/// Fails if there isn't enough room or the folder can't be created.
pub fn folder(name: &str, parent: Option<&Path>, bytes: u64) -> io::Result<TempDir> {
    let shared = Path::new(MEMORY_BACKED);
    let parent = match parent {
        Some(parent) => parent.to_path_buf(),
        None if free(shared) > bytes && memory_is_plenty(bytes) => shared.to_path_buf(),
        None => std::env::temp_dir(),
    };
    let there = free(&parent);
    if there < bytes {
        let why = format!("{}: the files need {bytes} bytes, but only {there} are free", parent.display());
        return Err(io::Error::new(io::ErrorKind::StorageFull, why));
    }
    tempfile::Builder::new().prefix(name).tempdir_in(absolute(parent))
}

/// Makes the path absolute, because other processes may have another working directory.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// Returns whether twice `bytes` of memory are free, or `false` if the free memory is unknown.
fn memory_is_plenty(bytes: u64) -> bool {
    usage::memory_available().is_some_and(|free| free > bytes.saturating_mul(2))
}

/// Returns the bytes that an unprivileged user may still write, or 0 if that is unknown.
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
        assert!(
            refused.to_string().contains("the files need"),
            "the error doesn't say how much space is needed: {refused}"
        );
        assert!(super::folder("x-", Some(folder.path()), 1).unwrap().path().starts_with(folder.path()));
    }
}
