//! Names at a destination that treats names as equal if they differ only in case.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// The names of a sync, folded in case. One set has 63 bits of a keyed hash of each. The last bit
/// distinguishes names at the destination from other names of the source.
#[derive(Debug, Default)]
pub(super) struct Folded {
    names: HashSet<u64>,
    keys: RandomState,
}

impl Folded {
    /// Takes a name that is, or will be, at the destination. Returns false if an equal one was taken.
    pub(super) fn is_given(&mut self, name: &str) -> bool {
        let (spared, given) = self.marks(name);
        self.names.remove(&spared);
        self.names.insert(given)
    }

    /// Notes a name of the source, whatever the filters say. An equal name at the destination must not be
    /// removed.
    pub(super) fn spare(&mut self, name: &str) {
        let (spared, given) = self.marks(name);
        if !self.names.contains(&given) {
            self.names.insert(spared);
        }
    }

    /// Returns whether a name may be removed: no name of the source is equal to it.
    pub(super) fn may_go(&self, name: &str) -> bool {
        let (spared, given) = self.marks(name);
        !self.names.contains(&spared) && !self.names.contains(&given)
    }

    /// Returns the set's entries for a name of the source, and for a name at the destination.
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
