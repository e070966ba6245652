//! The arguments and the result of a listing.

pub(crate) mod cutter;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
pub(crate) mod page;
pub(crate) mod totals;

use std::collections::{HashMap, HashSet};
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
}
