//! The destinations that a job has used. With them, the job detects two sources with the same destination.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// The reason why a job refuses a name that the destination's file system treats as equal to another one.
pub(crate) const FOLDED: &str =
    "the destination has a name that differs only in case, and its file system treats both names as the same";

/// The names already used as destinations. To save memory, a name is stored as a keyed hash of 64 bits, which
/// takes 8 to 16 bytes. The chance that two of ten million names have the same hash is about 1 in 400,000.
#[derive(Debug, Default)]
pub(crate) struct TakenNames {
    /// `None` if no two sources can collide.
    taken: Option<HashSet<u64>>,
    keys: RandomState,
}

impl TakenNames {
    /// Returns an empty set for a job. `may_meet` says that two sources of the job can have the same
    /// destination. Several sources can have the same destination. So can the matches of a pattern, because
    /// objects from several folders go into one. In a single tree, all names differ, so no names are
    /// recorded.
    pub(crate) fn new(may_meet: bool) -> Self {
        Self { taken: may_meet.then(HashSet::new), keys: RandomState::new() }
    }

    /// Records a name. Returns false if it was recorded already.
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
        let mut names = TakenNames::new(true);
        assert!(names.is_new("a") && names.is_new("b") && !names.is_new("a"));
    }

    #[test]
    fn a_single_tree_keeps_no_names() {
        let mut names = TakenNames::new(false);
        assert!(names.is_new("a") && names.is_new("a"));
    }
}
