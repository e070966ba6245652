//! Computes the state of a disk after a power cut, from the calls that a program had made by then.
//!
//! A file system may lose everything that wasn't flushed: a file's bytes since its last flush, and changes of names
//! since the last flush of their directory. It may also keep any of it. Here it loses one kind, the other, or both, and
//! always all of that kind.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::Call;

/// The unflushed data that is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Changes of names: files were not made, renamed or removed.
    Names,
    /// Bytes: files hold zeros.
    Bytes,
    /// Both.
    NamesAndBytes,
    /// Bytes, except in journals, which are small and may have been written back in time.
    BytesButJournals,
}

impl Loss {
    /// All kinds of loss.
    pub const ALL: [Self; 4] = [Self::Names, Self::Bytes, Self::NamesAndBytes, Self::BytesButJournals];
}

/// Undoes the changes that a program made in a folder by these `calls` and never flushed. `kept` is the folder that was
/// passed to [`SystemCalls::keeping`](crate::SystemCalls::keeping).
pub fn cut_power(calls: &[Call], kept: &Path, loss: Loss) {
    let done: Vec<&Call> =
        calls.iter().filter(|call| call.returned.is_some_and(|number| number >= 0)).collect();
    let written = written(&done, kept);
    if matches!(loss, Loss::Names | Loss::NamesAndBytes) {
        lose_names(&done, kept);
    }
    if loss != Loss::Names {
        let folders: BTreeSet<&Path> = done.iter().filter_map(|call| call.path.parent()).collect();
        for folder in folders {
            lose_bytes(folder, kept, &written, loss == Loss::BytesButJournals);
        }
    }
}

/// Returns the inodes of the files that were written to.
fn written(done: &[&Call], kept: &Path) -> HashSet<u64> {
    let mut paths = HashSet::<PathBuf>::new();
    let mut inodes = HashSet::new();
    let inode = |path: &Path| fs::symlink_metadata(path).ok().map(|metadata| metadata.ino());
    for call in done {
        match &*call.name {
            "create" | "write" | "truncate" => {
                paths.insert(call.path.clone());
            }
            "rename" if paths.remove(&call.path) => {
                paths.insert(call.to.clone());
            }
            "unlink" if paths.remove(&call.path) => inodes.extend(inode(&lost(kept, call))),
            _ => {}
        }
    }
    inodes.extend(paths.iter().filter_map(|path| inode(path)));
    inodes
}

/// Returns the copy of the file that lost its name by a call.
fn lost(kept: &Path, call: &Call) -> PathBuf {
    kept.join(format!("{}.lost", call.number))
}

fn lose_names(done: &[&Call], kept: &Path) {
    let mut flushed = HashSet::<&Path>::new();
    // The latest call comes first. Its flush preserves earlier changes.
    for call in done.iter().rev() {
        let folder = call.path.parent().unwrap_or(Path::new("/"));
        match &*call.name {
            "flush-names" => {
                flushed.insert(&call.path);
            }
            _ if flushed.contains(folder) => {}
            // Everything made below it is lost with it, flushed or not.
            "mkdir" => drop(fs::remove_dir_all(&call.path)),
            "create" => drop(fs::remove_file(&call.path)),
            "rename" => {
                fs::rename(&call.to, &call.path).expect("renamed back");
                give_back(&lost(kept, call), &call.to);
            }
            "link" => drop(fs::remove_file(&call.to)),
            "unlink" => give_back(&lost(kept, call), &call.path),
            _ => {}
        }
    }
}

fn give_back(lost: &Path, to: &Path) {
    if lost.exists() {
        fs::rename(lost, to).expect("renamed back");
    }
}

fn lose_bytes(folder: &Path, kept: &Path, written: &HashSet<u64>, but_journals: bool) {
    // The folder itself may be lost.
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        let metadata = fs::symlink_metadata(&path).expect("it is there");
        let is_journal = path.extension().is_some_and(|extension| extension == "journal");
        if !metadata.is_file() || !written.contains(&metadata.ino()) || but_journals && is_journal {
            continue;
        }
        let flushed = fs::read(kept.join(format!("{}.flushed", metadata.ino())));
        fs::write(&path, flushed.unwrap_or_else(|_| vec![0; metadata.len() as usize])).expect("written");
    }
}
