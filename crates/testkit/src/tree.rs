//! Generates trees of files from a seed and compares them, makes random bytes, waits for changes in a folder, and reads
//! journals of interrupted transfers.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::fs::inotify::{CreateFlags, WatchFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::Running;

/// File names that caused problems in some program, store or URL.
pub const AWKWARD_NAMES: &[&str] = &[
    "with space",
    " leading and trailing ",
    "plus+sign",
    "percent%",
    "percent%2Fencoded",
    "percent%zz",
    "question?mark",
    "hash#mark",
    "ampersand&equals=",
    "star*",
    "[brackets]",
    "{braces}",
    "semi;colon",
    "co:lon",
    "quote'single",
    "quote\"double",
    "back\\slash",
    "tilde~",
    "-dash",
    "--double-dash",
    ".hidden",
    "...",
    "UPPER",
    "upper",
    "äöü-composed",
    "a\u{308}-decomposed",
    "日本語",
    "🛣 lane",
    "dollar$HOME",
    "at@sign",
    "comma,",
    "angle<>",
    "pipe|",
    "caret^",
    "back`tick",
];

/// The sizes in bytes of the files in a generated tree. They are near the limits of small files, buffers and slices.
const SIZES: &[usize] = &[0, 1, 17, 4095, 4096, 4700, 65_536, 100_001];

/// Returns the names of all files below a folder, sorted.
pub fn files_below(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("read") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path.strip_prefix(root).expect("below").display().to_string()),
            }
        }
    }
    found.sort();
    found
}

/// Fills `root` with `files` files in nested folders, including the awkward names. Returns their total size in bytes.
/// The same seed makes the same tree.
pub fn seed_tree(root: &Path, seed: u64, files: usize) -> u64 {
    let mut bytes = 0;
    for n in 0..files {
        let folder = match n % 4 {
            0 => root.to_path_buf(),
            1 => root.join(format!("d{}", n % 7)),
            2 => root.join(format!("d{}/deep/er {}", n % 5, n % 3)),
            _ => root.join(AWKWARD_NAMES[(n / 4) % AWKWARD_NAMES.len()].trim()).join("inside"),
        };
        let name = match AWKWARD_NAMES.get(n) {
            Some(name) => format!("{name}.f"),
            None => format!("file-{n:05}"),
        };
        let content = random_bytes(seed.wrapping_add(n as u64), SIZES[n % SIZES.len()]);
        bytes += content.len() as u64;
        fs::create_dir_all(&folder).expect("the folder is made");
        fs::write(folder.join(name), content).expect("the file is written");
    }
    bytes
}

/// Returns the differences between two trees: one line for each file that is missing, extra, or has other bytes.
pub fn differences(expected: &Path, found: &Path) -> Vec<String> {
    let (expected, mut found) = (files(expected), files(found));
    let mut lines = Vec::new();
    for (name, path) in expected {
        match found.remove(&name) {
            None => lines.push(format!("missing: {}", name.display())),
            Some(other) if !same_bytes(&path, &other) => lines.push(format!("differs: {}", name.display())),
            Some(_) => {}
        }
    }
    lines.extend(found.into_keys().map(|name| format!("extra: {}", name.display())));
    lines
}

fn same_bytes(a: &Path, b: &Path) -> bool {
    fs::read(a).expect("the first file is read") == fs::read(b).expect("the second file is read")
}

/// Returns every file below `root`, by its relative path.
fn files(root: &Path) -> BTreeMap<PathBuf, PathBuf> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder is read") {
            let path = entry.expect("the entry is read").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).expect("it lies below the root").to_path_buf();
                found.insert(name, path);
            }
        }
    }
    found
}

/// Returns `len` bytes that depend only on `seed` (splitmix64).
pub fn random_bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// The longest wait for a change. No test waits that long, even on a slow machine.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// Watches a folder for changes.
#[derive(Debug)]
pub struct Changes(OwnedFd);

impl Changes {
    /// Begins to watch a folder, but not the folders in it.
    pub fn of(folder: &Path) -> Self {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).expect("inotify is there");
        let changes = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVE | WatchFlags::DELETE;
        inotify::add_watch(&inotify, folder, changes).expect("the folder is watched");
        Self(inotify)
    }

    /// Waits until `is_so` returns true. Calls `is_so` whenever a file in the folder has changed.
    #[track_caller]
    pub fn wait_until(&self, mut is_so: impl FnMut() -> bool) {
        assert!(self.wait(None, &mut is_so));
    }

    /// Waits until `is_so` returns true while a program runs. Returns false if the program ended first.
    #[track_caller]
    pub fn wait_while_runs(&self, running: &Running, mut is_so: impl FnMut() -> bool) -> bool {
        let pid = Pid::from_raw(running.id() as i32).expect("a process's number");
        let end = pidfd_open(pid, PidfdFlags::empty()).expect("the program can be waited for");
        self.wait(Some(end.as_fd()), &mut is_so)
    }

    #[track_caller]
    fn wait(&self, end: Option<BorrowedFd<'_>>, is_so: &mut dyn FnMut() -> bool) -> bool {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            // Discard the pending events before the check, so that the next wait notices a change that happens during
            // the check.
            self.forget();
            if is_so() {
                return true;
            }
            let mut fds = vec![PollFd::new(&self.0, PollFlags::IN)];
            fds.extend(end.iter().map(|end| PollFd::new(end, PollFlags::IN)));
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            match poll(&mut fds, Some(&left)) {
                Ok(0) => panic!("the expected change never happened"),
                Ok(_) if fds.get(1).is_some_and(|end| !end.revents().is_empty()) => return false,
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => panic!("waiting for changes: {e}"),
            }
        }
    }

    fn forget(&self) {
        let mut events = [0; 16 << 10];
        while rustix::io::read(&self.0, &mut events).is_ok_and(|read| read > 0) {}
    }
}

/// Returns the number of bytes that the journal in a folder records as done, or 0 without a journal.
///
/// It deliberately doesn't use the library's own parser. The header has a magic number, four bytes, and the object's
/// size, URL and version with their lengths. It is padded to a multiple of 32 bytes. Records of 32 bytes follow, each
/// with the length of a finished range at byte 24.
pub fn claimed(folder: &Path) -> u64 {
    let mut paths = fs::read_dir(folder).expect("read").map(|entry| entry.expect("an entry").path());
    let journal = paths.find(|path| path.extension().is_some_and(|e| e == "journal"));
    let Some(bytes) = journal.and_then(|path| fs::read(path).ok()) else { return 0 };
    let number = |at: usize| {
        bytes.get(at..at + 4).map_or(0, |four| u32::from_le_bytes(four.try_into().expect("four")) as usize)
    };
    let url = number(28);
    let header = (32 + url + 4 + number(32 + url)).next_multiple_of(32);
    bytes
        .get(header..)
        .unwrap_or_default()
        .chunks_exact(32)
        .fold(0, |sum, record| sum + u64::from(u32::from_le_bytes(record[24..28].try_into().expect("four"))))
}

/// Returns the sizes of the parts in a folder's upload journals. Each line of these journals is a checksum and a JSON
/// object.
pub fn recorded_parts(folder: &Path) -> Vec<u64> {
    let paths = fs::read_dir(folder).expect("read").map(|entry| entry.expect("an entry").path());
    let journals: Vec<String> = paths.filter_map(|path| fs::read_to_string(path).ok()).collect();
    let records = journals.iter().flat_map(|text| text.lines()).filter_map(|line| line.split_once(' '));
    let records = records.filter_map(|(_, json)| serde_json::from_str::<serde_json::Value>(json).ok());
    records.filter_map(|record| record["Part"]["size"].as_u64()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_tree() {
        let (a, b) = (tempfile::tempdir().expect("a"), tempfile::tempdir().expect("b"));
        assert_eq!(seed_tree(a.path(), 7, 60), seed_tree(b.path(), 7, 60));
        assert_eq!(differences(a.path(), b.path()), Vec::<String>::new());
    }

    #[test]
    fn every_kind_of_difference_is_named() {
        let (a, b) = (tempfile::tempdir().expect("a"), tempfile::tempdir().expect("b"));
        for (root, name, bytes) in
            [(&a, "same", "1"), (&b, "same", "1"), (&a, "other", "1"), (&b, "other", "2")]
        {
            fs::write(root.path().join(name), bytes).expect("written");
        }
        fs::write(a.path().join("only-a"), "").expect("written");
        fs::write(b.path().join("only-b"), "").expect("written");
        assert_eq!(differences(a.path(), b.path()), ["missing: only-a", "differs: other", "extra: only-b"]);
    }
}
