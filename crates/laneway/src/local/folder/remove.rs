//! Removes files from a folder, also the temporary files of earlier runs. Detects whether the folder's file
//! system ignores case.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::PoisonError;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;

use super::partial::{self, PartialNames};
use super::staged::is_temporary_name;
use super::{DIRECTORY, Folder, journal};
use crate::Error;

impl Folder {
    /// Returns true if the folder's file system ignores case, so that `a` and `A` name the same file. Blocks
    /// the thread.
    pub(crate) fn folds_case(&self) -> bool {
        folds_case(&self.path)
    }

    /// Removes the file `name` below the folder. With `and_empty_folders`, also removes those of its parent
    /// directories that are then empty. Follows no symbolic link: if `name` is a link, removes the link and
    /// not its target. A missing file is no error. Blocks the thread.
    ///
    /// # Errors
    /// The file system's error.
    pub(crate) fn remove(&self, name: &str, and_empty_folders: bool) -> Result<(), Error> {
        let failed = |e| Error::local(self.path.join(name), "can't be removed", e);
        let mut components: Vec<&str> = name.split('/').collect();
        let Some(file) = components.pop() else { return Ok(()) };
        let mut above: Vec<(OwnedFd, &str)> = Vec::new();
        let mut directory = match rustix::fs::open(&self.path, DIRECTORY, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(()),
            opened => opened.map_err(failed)?,
        };
        for component in components {
            match openat(&directory, component, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
                Err(Errno::NOENT) => return Ok(()),
                opened => above.push((std::mem::replace(&mut directory, opened.map_err(failed)?), component)),
            }
        }
        match unlinkat(&directory, file, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(e) => return Err(failed(e)),
        }
        while let Some((parent, name)) = above.pop().filter(|_| and_empty_folders) {
            if unlinkat(&parent, name, AtFlags::REMOVEDIR).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// Returns true if the file system ignores case, so that `a` and `A` name the same file. To find out, looks up
/// an existing name with its case swapped. The name is that of an entry of `path`, or else of `path` itself or
/// one of its parents.
pub(crate) fn folds_case(path: &Path) -> bool {
    let inside =
        || std::fs::read_dir(path).ok()?.flatten().map(|entry| entry.path()).find_map(|p| is_folded(&p));
    let above = || path.ancestors().find_map(is_folded);
    inside().or_else(above).unwrap_or(false)
}

/// Returns whether `name` exists below a folder in exactly this case. Reads the directories, because a file
/// system that ignores case also finds a file under other names. Blocks the thread.
///
/// # Errors
/// If a directory can't be read.
pub(crate) fn has_exactly(root: &Path, name: &str) -> Result<bool, Error> {
    let mut at = root.to_owned();
    for component in name.split('/') {
        let failed = |e| Error::local(&at, "can't be read", e);
        let entries = match std::fs::read_dir(&at) {
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(false),
            entries => entries.map_err(failed)?,
        };
        let mut is_there = false;
        for entry in entries {
            is_there |= entry.map_err(failed)?.file_name() == component;
        }
        if !is_there {
            return Ok(false);
        }
        at.push(component);
    }
    Ok(true)
}

/// Swaps the case of the path's last name, and returns whether the new path leads to the same file. Returns
/// `None` if the path doesn't exist, or if its name has no letters.
fn is_folded(path: &Path) -> Option<bool> {
    let name = path.file_name()?.to_str()?;
    let swapped = other_case(name)?;
    let id = |path: &Path| path.symlink_metadata().map(|m| (m.dev(), m.ino())).ok();
    Some(id(path)? == id(&path.with_file_name(swapped)).unwrap_or_default())
}

fn other_case(name: &str) -> Option<String> {
    let swap = |c: char| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
    let swapped: String = name.chars().map(swap).collect();
    (swapped != name).then_some(swapped)
}

/// The number of bytes read from the start of a journal to find its URL. A key has at most 1024 bytes, so
/// these bytes contain the whole URL.
const HEADER_MAX: usize = 4096;

impl Folder {
    /// Removes temporary files of downloads, unless a process has locked them. Removes a file if it has no
    /// journal, because no run can resume it then. Also removes a file if `is_ours` accepts the URL of its
    /// object. Looks in the directories that received files, and in directories of the same relative paths
    /// below `name`. Blocks the thread.
    pub(crate) fn remove_leftovers(&self, name: &str, is_ours: impl Fn(&str) -> bool) {
        let Some(used) = &self.used else { return };
        for below in &std::mem::take(&mut *used.lock().unwrap_or_else(PoisonError::into_inner)) {
            for path in [below.clone(), format!("{name}/{below}")] {
                let Some(directory) = opened(&self.path, &path) else { continue };
                for part in parts(&directory) {
                    remove_leftover(&directory, &part, &is_ours);
                }
            }
        }
    }
}

/// Opens an existing directory without following links below the root.
fn opened(root: &Path, below: &str) -> Option<OwnedFd> {
    let root = rustix::fs::open(root, DIRECTORY, Mode::empty()).ok()?;
    below.split('/').filter(|name| !name.is_empty()).try_fold(root, |parent, name| {
        openat(&parent, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()).ok()
    })
}

/// Returns those temporary files in a directory whose names are derived from their destinations. Leaves out
/// files with random names, because another process may be using such a file without a lock.
fn parts(directory: &OwnedFd) -> Vec<OsString> {
    let Ok(entries) = Dir::read_from(directory) else { return Vec::new() };
    let names = entries.flatten().map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
    let is_part = |name: &OsString| {
        let mark = |name: &str| name.strip_suffix(".part")?.rsplit_once('-').map(|(_, mark)| mark.len());
        name.to_str().is_some_and(|name| is_temporary_name(name) && mark(name) == Some(16))
    };
    names.filter(is_part).collect()
}

fn remove_leftover(directory: &OwnedFd, part: &OsStr, is_ours: impl Fn(&str) -> bool) {
    let Ok(Some(_held)) = partial::hold(directory, part, OFlags::empty(), Mode::empty()) else { return };
    let bytes = part.as_bytes();
    let mut journal = bytes[..bytes.len() - "part".len()].to_vec();
    journal.extend(b"journal");
    let names = PartialNames { part: part.to_owned(), journal: OsStr::from_bytes(&journal).to_owned() };
    let header = partial::open_own(directory, &names.journal, OFlags::empty(), Mode::empty());
    let is_left = match header {
        Ok(Some(file)) => {
            let mut header = vec![0; HEADER_MAX];
            let read = file.read_at(&mut header, 0).unwrap_or(0);
            journal::url(&header[..read]).is_some_and(is_ours)
        }
        Ok(None) => false,
        // Without a journal, no run can resume the file.
        Err(e) => e.kind() == std::io::ErrorKind::NotFound,
    };
    if is_left {
        partial::remove(directory, &names);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_goes_with_the_directories_that_it_leaves_empty_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        for name in ["a/b/c/f", "a/g", "h"] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), name).unwrap();
        }
        let folder = Folder::new(&root);
        folder.remove("a/b/c/f", true).unwrap();
        assert!(root.join("a/g").is_file() && !root.join("a/b").exists());
        folder.remove("a/b/c/f", true).unwrap();
        folder.remove("a/g", true).unwrap();
        folder.remove("h", true).unwrap();
        assert_eq!(std::fs::read_dir(&root).unwrap().count(), 0, "the folder itself stays");
    }

    #[test]
    fn nothing_is_removed_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("f"), "theirs").unwrap();
        symlink(&outside, root.join("link")).unwrap();
        symlink(outside.join("f"), root.join("file")).unwrap();
        let folder = Folder::new(&root);
        assert!(folder.remove("link/f", true).is_err());
        folder.remove("file", true).unwrap();
        assert!(outside.join("f").is_file() && !root.join("file").exists());
    }

    #[test]
    fn a_name_is_what_its_directories_list() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("Dir")).unwrap();
        std::fs::write(dir.path().join("Dir/File"), "").unwrap();
        for (name, is_there) in [("Dir/File", true), ("Dir/file", false), ("dir/File", false), ("Dir", true)]
        {
            assert_eq!(has_exactly(dir.path(), name).unwrap(), is_there, "{name}");
        }
        assert!(!has_exactly(&dir.path().join("gone"), "x").unwrap(), "nothing is there any more");
    }

    #[test]
    fn a_folder_that_tells_cases_apart_is_known_as_such() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!folds_case(&dir.path().join("missing/too")));
        std::fs::write(dir.path().join("a"), "").unwrap();
        assert!(!folds_case(dir.path()));
        // Two hard links look like one file with two names, as on a file system that ignores case.
        std::fs::hard_link(dir.path().join("a"), dir.path().join("A")).unwrap();
        assert!(folds_case(dir.path()));
        assert_eq!(other_case("aB1é").as_deref(), Some("Ab1é"));
        assert_eq!(other_case("1-2"), None);
    }
}
