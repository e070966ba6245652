//! What listings of a store cost.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What listings of objects have taken so far, all of them together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Listings {
    /// Pages that came, those too whose keys lay beyond what was asked for.
    pub pages: u64,
    /// Most pages that were asked for at once, in as many places of the keyspace or for as many listings.
    pub at_once: u64,
    /// Keys and common prefixes that the pages held, as far as they were asked for.
    pub keys: u64,
}

/// [`Listings`] as they are counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pages: AtomicU64,
    under_way: AtomicU64,
    at_once: AtomicU64,
    keys: AtomicU64,
}

/// A page that is asked for, until it is dropped.
#[derive(Debug)]
pub(crate) struct Asked<'a>(&'a Tally);

impl Tally {
    pub(crate) fn ask(&self) -> Asked<'_> {
        let under_way = self.under_way.fetch_add(1, Relaxed) + 1;
        self.at_once.fetch_max(under_way, Relaxed);
        Asked(self)
    }

    pub(crate) fn snapshot(&self) -> Listings {
        Listings {
            pages: self.pages.load(Relaxed),
            at_once: self.at_once.load(Relaxed),
            keys: self.keys.load(Relaxed),
        }
    }
}

impl Asked<'_> {
    /// Counts keys that have come.
    pub(crate) fn came(&self, keys: usize) {
        self.0.keys.fetch_add(keys as u64, Relaxed);
    }

    /// Counts the page.
    pub(crate) fn ended(&self) {
        self.0.pages.fetch_add(1, Relaxed);
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_count_when_they_have_come_and_side_by_side_while_they_are_asked_for() {
        let tally = Tally::default();
        let (one, two) = (tally.ask(), tally.ask());
        one.came(3);
        two.came(4);
        one.ended();
        drop((one, two));
        drop(tally.ask());
        assert_eq!(tally.snapshot(), Listings { pages: 1, at_once: 2, keys: 7 });
    }
}
