//! Names at a destination that takes those for one which differ only in case.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// The names of a sync by what such a destination makes of them, each by 63 bits of a keyed hash in one set: its last bit says whether
/// the name was given away, or is one that the source has besides.
#[derive(Debug, Default)]
pub(super) struct Folded {
    names: HashSet<u64>,
    keys: RandomState,
}

impl Folded {
    /// Takes a name for what is, or will be, at the destination; false where another one was given it.
    pub(super) fn is_given(&mut self, name: &str) -> bool {
        let (spared, given) = self.marks(name);
        self.names.remove(&spared);
        self.names.insert(given)
    }

    /// Takes note of a name that the source has, whatever filters make of it: what it is at the destination isn't to go under another one.
    pub(super) fn spare(&mut self, name: &str) {
        let (spared, given) = self.marks(name);
        if !self.names.contains(&given) {
            self.names.insert(spared);
        }
    }

    /// Whether a name may be removed: none that the source has is, to the destination, the same.
    pub(super) fn may_go(&self, name: &str) -> bool {
        let (spared, given) = self.marks(name);
        !self.names.contains(&spared) && !self.names.contains(&given)
    }

    /// What stands in the set for a name of the source, and for one that was given away.
    fn marks(&self, name: &str) -> (u64, u64) {
        let hash = self.keys.hash_one(name.to_lowercase());
        (hash & !1, hash | 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_source_has_under_one_name_does_not_go_under_another() {
        let mut folded = Folded::default();
        assert!(folded.is_given("Read.me") && !folded.is_given("read.ME"));
        folded.spare("Kept");
        assert!(folded.is_given("kept"), "what was only spared is no other source's");
        assert!(!folded.may_go("KEPT") && folded.may_go("other"));
        folded.spare("READ.me");
        assert!(!folded.is_given("Read.Me"), "what was given away stays so");
    }
}
