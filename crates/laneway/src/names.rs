//! Which destinations a job has given away, so that no two sources share one.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// Why a name is refused that a file system takes for one that it has.
pub(crate) const FOLDED: &str = "the destination has a name that differs only in case";

/// Destinations already taken. Names are remembered by 64 bits of a keyed hash, 8 to 16 bytes each: among ten million
/// names the chance that two are mistaken for one is about 1 in 400,000.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// `None` where no two sources can meet.
    taken: Option<HashSet<u64>>,
    keys: RandomState,
}

impl Names {
    /// For a job of so many sources. One tree maps its names one to one, and needs no memory of them; several
    /// sources, and patterns that flatten folders, do.
    pub(crate) fn new(may_meet: bool) -> Self {
        Self { taken: may_meet.then(HashSet::new), keys: RandomState::new() }
    }

    /// Takes a name; false when it was taken already.
    pub(crate) fn is_new(&mut self, name: &str) -> bool {
        match &mut self.taken {
            Some(taken) => taken.insert(self.keys.hash_one(name)),
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_once() {
        let mut names = Names::new(true);
        assert!(names.is_new("a") && names.is_new("b") && !names.is_new("a"));
    }

    #[test]
    fn a_single_tree_keeps_no_names() {
        let mut names = Names::new(false);
        assert!(names.is_new("a") && names.is_new("a"));
    }
}
