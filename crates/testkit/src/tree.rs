//! Trees of files: generated from a seed, and compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::random_bytes;

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

/// Sizes around those of small files, buffers and slices, in bytes.
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
