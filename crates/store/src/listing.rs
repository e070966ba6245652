//! The arguments and the result of a listing.

pub(crate) mod arriving;
pub(crate) mod cutter;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;

use std::collections::HashSet;

use crate::ObjectMeta;

/// The most entries of a page. Stores send 1000, and some can be configured for a few thousand. A page with more ends
/// the listing: in memory each entry takes twenty times the 50 bytes that it takes on the network.
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
    /// Keys with this delimiter after the prefix are rolled up into [`Page::prefixes`].
    pub delimiter: Option<String>,
    /// Lists only keys that sort after this one. The key itself is left out.
    pub start_after: Option<String>,
    /// Lists only keys that sort before this one. GCS stops there by itself; the rest of an S3 page is cut off.
    pub end_before: Option<String>,
    /// [`Page::next`] of the previous page.
    pub token: Option<String>,
    /// The most entries of the page. Stores send at most 1000.
    pub max: Option<u32>,
    /// Lists all versions that the bucket keeps, those of one key together. GCS sends the oldest first. S3 sends the
    /// newest first, with its delete markers.
    pub versions: bool,
}

impl List {
    /// Lists all objects with a prefix.
    pub fn new(bucket: impl Into<String>, prefix: impl Into<String>) -> Self {
        Self { bucket: bucket.into(), prefix: prefix.into(), ..Self::default() }
    }
}

/// The page tokens of a listing so far.
#[derive(Debug, Default)]
pub(crate) struct Tokens(HashSet<String>);

impl Tokens {
    /// Returns the token of the next page, or `None` after the last page. A repeated token would bring the same pages
    /// for ever.
    ///
    /// # Errors
    /// Fails if the token has come before.
    pub(crate) fn next(&mut self, token: Option<String>) -> Result<Option<String>, &'static str> {
        match token.filter(|token| !token.is_empty()) {
            Some(token) if !self.0.insert(token.clone()) => {
                Err("the answer goes on with a page that has come before")
            }
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

#[cfg(test)]
mod tests {
    use super::*;

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
