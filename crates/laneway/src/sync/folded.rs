//! Names at a destination that takes those for one which differ only in case.

use crate::names::Names;

/// The names of a sync by what such a destination makes of them.
#[derive(Debug)]
pub(super) struct Folded {
    given: Names,
    spared: Names,
}

impl Folded {
    pub(super) fn new() -> Self {
        Self { given: Names::new(true), spared: Names::new(true) }
    }

    /// Takes a name for what is, or will be, at the destination; false where another one was given it.
    pub(super) fn is_given(&mut self, name: &str) -> bool {
        self.given.is_new(&name.to_lowercase())
    }

    /// Takes note of a name that the source has: what it is at the destination isn't to go under another one.
    pub(super) fn spare(&mut self, name: &str) {
        self.spared.is_new(&name.to_lowercase());
    }

    /// Whether a name may be removed: none that the source has is, to the destination, the same.
    pub(super) fn may_go(&self, name: &str) -> bool {
        !self.spared.is_taken(&name.to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_source_has_under_one_name_does_not_go_under_another() {
        let mut folded = Folded::new();
        assert!(folded.is_given("Read.me") && !folded.is_given("read.ME"));
        folded.spare("Kept");
        assert!(folded.is_given("kept"), "what was only spared is no other source's");
        assert!(!folded.may_go("KEPT") && folded.may_go("other"));
    }
}
