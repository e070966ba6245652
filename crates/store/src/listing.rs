//! What a listing asks and answers.

pub(crate) mod arriving;
pub(crate) mod cutter;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;

use std::collections::HashSet;

use crate::ObjectMeta;

/// Most entries of a page. Stores send 1000, some a few thousand where they are set up so; a page with more ends the listing, since each
/// takes twenty times the memory that its 50 bytes did on their way.
pub(crate) const ENTRIES_MAX: usize = 50_000;

/// What is wrong with a page that has more.
pub(crate) const TOO_MANY: &str = "it has more than 50000 entries";

/// One page of a listing.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct List {
    /// The bucket.
    pub bucket: String,
    /// Only keys that start so.
    pub prefix: String,
    /// Keys that hold this after the prefix are rolled up into [`Page::prefixes`].
    pub delimiter: Option<String>,
    /// Only keys that sort after this one; the key itself is left out.
    pub start_after: Option<String>,
    /// Only keys that sort before this one. GCS stops there by itself, of S3's pages the rest is cut off.
    pub end_before: Option<String>,
    /// [`Page::next`] of the page before.
    pub token: Option<String>,
    /// At most so many entries; stores give at most 1000.
    pub max: Option<u32>,
    /// All versions that the bucket keeps, of each key together: GCS's oldest first, S3's newest first with its delete markers.
    pub versions: bool,
}

impl List {
    /// Everything under a prefix.
    pub fn new(bucket: impl Into<String>, prefix: impl Into<String>) -> Self {
        Self { bucket: bucket.into(), prefix: prefix.into(), ..Self::default() }
    }
}

/// The tokens by which an answer of several pages goes on.
#[derive(Debug, Default)]
pub(crate) struct Tokens(HashSet<String>);

impl Tokens {
    /// The token of the next page, or none after the last. A token that has come before would bring the same pages for ever.
    ///
    /// # Errors
    /// What is wrong then.
    pub(crate) fn next(&mut self, token: Option<String>) -> Result<Option<String>, &'static str> {
        match token.filter(|token| !token.is_empty()) {
            Some(token) if !self.0.insert(token.clone()) => {
                Err("the answer goes on with a page that has come before")
            }
            token => Ok(token),
        }
    }
}

/// What a page of a listing holds.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Page {
    /// Objects in the order of their keys' bytes; of a listing of versions each with its [version](crate::ObjectId::version).
    pub objects: Vec<ObjectMeta>,
    /// Common prefixes, up to and including the delimiter.
    pub prefixes: Vec<String>,
    /// What to ask the next page with; `None` after the last one.
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
