//! The arguments and the result of a listing, and the counts of pages and keys.

pub(crate) mod cutter;
pub(crate) mod page;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use crate::ObjectMeta;

/// The maximum number of entries in a page. A page with more is an error, because a hostile server could exhaust
/// memory: an entry of 50 bytes on the network takes twenty times as much in memory. Stores send 1000 entries, and some
/// can be configured for a few thousand.
pub(crate) const ENTRIES_MAX: usize = 50_000;

/// The error for a page with more entries.
pub(crate) const TOO_MANY: &str = "it has more than 50000 entries";

/// A request for one page of a listing.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct List {
    /// The bucket.
    pub bucket: String,
    /// Lists only keys with this prefix.
    pub prefix: String,
    /// Keys that contain this delimiter after the prefix aren't listed. Their common prefixes are in
    /// [`Page::prefixes`].
    pub delimiter: Option<String>,
    /// Lists only keys that sort after this one. The key itself is left out.
    pub start_after: Option<String>,
    /// Lists only keys that sort before this one. GCS applies this bound itself. S3 doesn't, so Laneway drops the keys
    /// beyond it from each page.
    pub end_before: Option<String>,
    /// [`Page::next`] of the previous page.
    pub token: Option<String>,
    /// The maximum number of entries in the page. Stores send at most 1000.
    pub max: Option<u32>,
    /// If true, lists all versions that the bucket keeps, grouped by key. GCS sends the oldest first. S3 sends the
    /// newest first, with its delete markers.
    pub versions: bool,
    /// If true, lists only the deleted versions that can still be restored. Only GCS has such versions. Needs
    /// [`versions`](Self::versions).
    pub soft_deleted: bool,
    /// True for an S3 bucket whose keys arrive in no order. Laneway then doesn't send `start_after` to the store, but
    /// compares each entry with the bounds itself. [`Store::list`](crate::Store::list) sets this field for buckets that
    /// are known to be unsorted.
    pub is_unsorted: bool,
}

impl List {
    /// Lists all objects with a prefix.
    pub fn new(bucket: impl Into<String>, prefix: impl Into<String>) -> Self {
        Self { bucket: bucket.into(), prefix: prefix.into(), ..Self::default() }
    }
}

/// The limits of a bucket's listings that the store's answers have shown.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ListingLimits {
    /// True if the keys aren't sorted.
    pub is_unsorted: bool,
    /// True if a bucket policy allows the caller's own prefix, but refuses longer ones.
    pub refuses_longer_prefixes: bool,
    /// True if a bucket policy refuses requests that choose the length of a page.
    pub refuses_max: bool,
}

impl ListingLimits {
    /// Combines two sets of limits: a limit is true if it is true in one of them.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            is_unsorted: self.is_unsorted | other.is_unsorted,
            refuses_longer_prefixes: self.refuses_longer_prefixes | other.refuses_longer_prefixes,
            refuses_max: self.refuses_max | other.refuses_max,
        }
    }
}

/// The maximum number of buckets whose limits are remembered. If there are more, all limits are forgotten and learned
/// again.
const BUCKETS_MAX: usize = 1024;

/// The known limits, by bucket.
#[derive(Debug, Default)]
pub(crate) struct LimitsByBucket(Mutex<HashMap<String, ListingLimits>>);

impl LimitsByBucket {
    pub(crate) fn of(&self, bucket: &str) -> ListingLimits {
        let limits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        limits.get(bucket).copied().unwrap_or_default()
    }

    pub(crate) fn learn(&self, bucket: &str, learned: ListingLimits) {
        let mut limits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = limits.get(bucket).copied().unwrap_or_default();
        if known.and(learned) == known {
            return;
        }
        tracing::info!(
            bucket,
            ?learned,
            "later listings of this bucket respect the limits that its answers have shown"
        );
        if limits.len() >= BUCKETS_MAX && !limits.contains_key(bucket) {
            limits.clear();
        }
        limits.insert(bucket.to_owned(), known.and(learned));
    }
}

/// The page tokens that a listing has had so far.
#[derive(Debug, Default)]
pub(crate) struct Tokens(HashSet<String>);

impl Tokens {
    /// Returns the token of the next page, or `None` after the last page. A repeated token is an error, because the
    /// same pages would follow for ever.
    ///
    /// # Errors
    /// Fails if an earlier page had the same token.
    pub(crate) fn next(&mut self, token: Option<String>) -> Result<Option<String>, &'static str> {
        match token.filter(|token| !token.is_empty()) {
            Some(token) if !self.0.insert(token.clone()) => Err("the listing repeats an earlier page"),
            token => Ok(token),
        }
    }
}

/// A page of a listing.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Page {
    /// The objects in the order of their keys' bytes. In a listing of versions, each has its
    /// [version](crate::ObjectId::version).
    pub objects: Vec<ObjectMeta>,
    /// The common prefixes, up to and including the delimiter.
    pub prefixes: Vec<String>,
    /// The token for the next page, or `None` after the last one.
    pub next: Option<String>,
}

/// A page of a listing of folders.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FolderPage {
    /// The names in the order of their bytes. Each ends in a slash.
    pub names: Vec<String>,
    /// The token for the next page, or `None` after the last one.
    pub next: Option<String>,
}

/// The state of the rename of a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FolderRename {
    /// The folder has its new name.
    Done,
    /// The store is still renaming the folder. The text names its operation, for
    /// [`Store::folder_rename`](crate::Store::folder_rename).
    Running(String),
    /// The folder keeps its old name. The text is the reason.
    Refused(String),
}

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

/// Helps fuzzers to check pages that arrive split at any byte.
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing {
    use super::page::PageParser;
    use super::{List, Page};

    /// The lengths of the chunks in which a document arrives. The first one is the whole document.
    pub(crate) const CHUNKS: [usize; 4] = [usize::MAX, 1, 7, 64];

    /// Checks that parsing a page gives the same result for all lengths of the chunks.
    pub(crate) fn page_in_any_chunks<R: PageParser>(list: &List, body: &[u8], reader: impl Fn() -> R) {
        let whole = page(list, body, CHUNKS[0], reader());
        for chunk_bytes in &CHUNKS[1..] {
            // If a page has several errors, the chunk length may decide which one is reported. So the errors themselves
            // aren't compared.
            assert_eq!(
                page(list, body, *chunk_bytes, reader()).ok(),
                whole.clone().ok(),
                "chunks of {chunk_bytes}"
            );
        }
    }

    pub(crate) fn page(
        list: &List,
        body: &[u8],
        chunk_bytes: usize,
        mut reader: impl PageParser,
    ) -> Result<Page, String> {
        let mut objects = Vec::new();
        for chunk in body.chunks(chunk_bytes) {
            objects.extend(reader.take(list, chunk)?);
        }
        let page = reader.end(list)?;
        objects.extend(page.objects);
        Ok(Page { objects, ..page })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_remembered_for_a_bounded_number_of_buckets() {
        let limits = LimitsByBucket::default();
        let unsorted = ListingLimits { is_unsorted: true, ..ListingLimits::default() };
        let fixed = ListingLimits { refuses_max: true, ..ListingLimits::default() };
        limits.learn("b", unsorted);
        limits.learn("b", fixed);
        assert_eq!((limits.of("b"), limits.of("c")), (unsorted.and(fixed), ListingLimits::default()));
        (0..BUCKETS_MAX).for_each(|n| limits.learn(&n.to_string(), fixed));
        assert_eq!((limits.of("b"), limits.of("1023")), (ListingLimits::default(), fixed));
    }

    #[test]
    fn a_page_that_has_come_before_is_not_asked_for_again() {
        let mut tokens = Tokens::default();
        let mut next = |token: &str| tokens.next(Some(token.to_owned()));
        assert_eq!(next("a"), Ok(Some("a".to_owned())));
        assert_eq!(next("b"), Ok(Some("b".to_owned())));
        assert!(next("a").is_err());
        assert_eq!(next(""), Ok(None));
        assert_eq!(tokens.next(None), Ok(None));
    }

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
