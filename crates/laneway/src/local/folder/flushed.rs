//! The directory names that have been flushed to disk.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

/// The most names that are remembered. Those of more directories are flushed again with each file.
const NAMES_MAX: usize = 1 << 16;

/// The names that a job has flushed, and those that it still must flush.
#[derive(Default, Debug)]
pub(super) struct Flushed {
    /// Directories whose names were flushed, by their path below the folder.
    below: HashSet<String>,
    /// Directories on the way to the folder in which another was created, and that were not flushed since.
    pub(super) made_in: BTreeSet<PathBuf>,
}

impl Flushed {
    pub(super) fn has(&self, below: &str) -> bool {
        self.below.contains(below)
    }

    pub(super) fn insert(&mut self, below: &str) {
        if self.below.len() < NAMES_MAX {
            self.below.insert(below.to_owned());
        }
    }
}
