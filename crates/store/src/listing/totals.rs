//! Counts pages and keys of a store's listings.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The totals of all listings of objects so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Listings {
    /// The pages received, including pages with keys outside the requested range.
    pub pages: u64,
    /// The peak number of concurrent page requests, counted over all listings of the store.
    pub at_once: u64,
    /// The keys and common prefixes in the pages, without those outside the requested range.
    pub keys: u64,
}

/// The counters behind [`Listings`].
#[derive(Debug, Default)]
pub(crate) struct ListingTally {
    pages: AtomicU64,
    under_way: AtomicU64,
    at_once: AtomicU64,
    keys: AtomicU64,
}

/// Counts a page request as running until this value is dropped.
#[derive(Debug)]
pub(crate) struct PageInFlight<'a>(&'a ListingTally);

impl ListingTally {
    pub(crate) fn ask(&self) -> PageInFlight<'_> {
        let under_way = self.under_way.fetch_add(1, Relaxed) + 1;
        self.at_once.fetch_max(under_way, Relaxed);
        PageInFlight(self)
    }

    pub(crate) fn snapshot(&self) -> Listings {
        Listings {
            pages: self.pages.load(Relaxed),
            at_once: self.at_once.load(Relaxed),
            keys: self.keys.load(Relaxed),
        }
    }
}

impl PageInFlight<'_> {
    /// Adds received keys to the total.
    pub(crate) fn came(&self, keys: usize) {
        self.0.keys.fetch_add(keys as u64, Relaxed);
    }

    /// Adds the received page to the total.
    pub(crate) fn ended(&self) {
        self.0.pages.fetch_add(1, Relaxed);
    }
}

impl Drop for PageInFlight<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_pages_on_arrival_and_concurrent_ones_while_requested() {
        let tally = ListingTally::default();
        let (one, two) = (tally.ask(), tally.ask());
        one.came(3);
        two.came(4);
        one.ended();
        drop((one, two));
        drop(tally.ask());
        assert_eq!(tally.snapshot(), Listings { pages: 1, at_once: 2, keys: 7 });
    }
}
