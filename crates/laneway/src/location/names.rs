//! The destinations that a job has used, so that no two sources share one.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// The reason for refusing a name that the file system treats as equal to another one.
pub(crate) const FOLDED: &str = "the destination has a name that differs only in case";

/// Destinations already used. Names are stored as 64 bits of a keyed hash, 8 to 16 bytes each. Among ten
/// million names, the chance of one collision is about 1 in 400,000.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// `None` if no two sources can collide.
    taken: Option<HashSet<u64>>,
    keys: RandomState,
}

impl Names {
    /// Returns an empty set for a job. One tree maps its names one to one, so it needs no record of them.
    /// Several sources, and patterns that flatten folders, may collide.
    pub(crate) fn new(may_meet: bool) -> Self {
        Self { taken: may_meet.then(HashSet::new), keys: RandomState::new() }
    }

    /// Records a name. Returns false if it was recorded before.
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
