//! Which destinations exist already, for jobs that leave those alone: asked before anything is sent. A page of a listing
//! answers for up to a thousand neighbouring keys, a HEAD for one.
//!
//! What a page listed is remembered as a stretch of the keyspace, of which every key is known to exist or not. Whoever asks
//! in the order of the keys needs few stretches at a time, so that few are kept, whatever the number of objects. What comes
//! into being later is the business of the precondition that goes with each write.

use std::collections::VecDeque;

use futures_util::future::{BoxFuture, FutureExt, ready};
use futures_util::{StreamExt, stream};
use laneway_store::{List, ObjectId, Page, Store};

use crate::running::{Begun, Moved, Running};
use crate::{CopyRequest, Error};

/// Why a destination is left alone.
pub(crate) const EXISTS: &str = "the destination exists";
/// The same where the store says so and doesn't let it be looked up.
const SAID_TO_EXIST: &str = "the store says that the destination exists";
/// Stretches that are kept: some 64,000 keys, a few MiB.
const STRETCHES_MAX: usize = 64;
/// From how many keys of a tree on a listing is asked, which costs as much as a HEAD or two.
const LISTED_MIN: usize = 2;
/// From how many keys on that were named one by one: they need not be neighbours.
const NAMED_LISTED_MIN: usize = 32;
/// A page that answers for fewer of many keys shows that other objects lie between them.
const POOR: usize = 8;
/// After so many poor pages the rest of the keys are asked for one by one.
const POOR_MAX: usize = 2;
/// HEADs under way at once.
const HEADS_MAX: usize = 64;
/// The longest key that a store takes, in bytes; nothing longer is asked for.
const KEY_MAX: usize = 1024;

/// What is known of the destinations of a job.
#[derive(Debug, Default)]
pub(crate) struct Existing {
    /// Where the listings are made: bucket and prefix.
    place: (String, String),
    stretches: VecDeque<Stretch>,
    /// Set once a listing was refused, or was of no use.
    is_unlisted: bool,
}

/// Neighbouring keys.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Stretch {
    from: String,
    /// The last key of it; `None` where it reaches to the end of the prefix.
    to: Option<String>,
    /// Those that exist, in order.
    keys: Vec<String>,
}

impl Stretch {
    /// What a page says of the keys from `from` on. `None` where it says nothing of them, or isn't in order.
    fn of(from: &str, page: &Page) -> Option<Self> {
        let keys: Vec<String> = page.objects.iter().map(|meta| meta.id.key.clone()).collect();
        if !keys.is_sorted() {
            return None;
        }
        let to = match page.next {
            Some(_) => Some(keys.last().filter(|last| last.as_str() >= from)?.clone()),
            None => None,
        };
        Some(Self { from: from.to_owned(), to, keys })
    }

    fn knows(&self, key: &str) -> bool {
        key >= self.from.as_str() && self.to.as_deref().is_none_or(|to| key <= to)
    }

    fn has(&self, key: &str) -> bool {
        self.keys.binary_search_by(|known| known.as_str().cmp(key)).is_ok()
    }
}

impl Existing {
    /// Which of these objects of one bucket exist, in their order. `tree` is the prefix that they are under if they are
    /// part of a tree. What can't be found out counts as missing.
    pub(crate) async fn among(&mut self, store: &Store, ids: &[&ObjectId], tree: Option<&str>) -> Vec<bool> {
        let Some(first) = ids.first() else { return Vec::new() };
        let listed_min = if tree.is_some() { LISTED_MIN } else { NAMED_LISTED_MIN };
        let mut keys: Vec<&str> = ids.iter().map(|id| id.key.as_str()).collect();
        keys.sort_unstable();
        // What a pattern matches of a tree lies beside it.
        let is_below = |tree: &&str| keys.iter().all(|key| key.starts_with(tree));
        let prefix = tree.filter(is_below).unwrap_or_else(|| common_prefix(&keys));
        self.look_at(&first.bucket, prefix);
        self.list(store, &keys, listed_min).await;
        let answers: Vec<BoxFuture<'static, bool>> = ids
            .iter()
            .map(|id| match self.known(&id.key) {
                Some(known) => ready(known).boxed(),
                None => head(store.clone(), (*id).clone()).boxed(),
            })
            .collect();
        stream::iter(answers).buffered(HEADS_MAX).collect().await
    }

    /// Forgets what is known of another place.
    fn look_at(&mut self, bucket: &str, prefix: &str) {
        if self.place.0 != bucket || self.place.1 != prefix {
            *self = Self { place: (bucket.to_owned(), prefix.to_owned()), ..Self::default() };
        }
    }

    /// Asks for pages as long as each answers for many of the keys, which are in order.
    async fn list(&mut self, store: &Store, keys: &[&str], listed_min: usize) {
        let mut poor = 0;
        // A page without order says nothing of the keys between those that it has.
        self.is_unlisted |= !store.lists_in_order(&self.place.0);
        while !self.is_unlisted && poor < POOR_MAX {
            let mut unknown = keys.iter().filter(|key| self.known(key).is_none());
            let Some(first) = unknown.next() else { return };
            let left = 1 + unknown.count();
            if left < listed_min {
                return;
            }
            let (bucket, prefix) = &self.place;
            let mut list = List::new(bucket, prefix);
            // The first page begins where the prefix does: a prefix that is new, or has few objects, fits into it.
            let is_first = self.stretches.is_empty();
            let first = if is_first { prefix } else { *first };
            if !is_first {
                list.start_after = before(first).filter(|before| before.as_str() > prefix.as_str());
            }
            let stretch = match store.list(&list).await {
                Ok(page) => Stretch::of(first, &page),
                Err(error) => {
                    tracing::debug!(%error, "destinations are asked for one by one");
                    None
                }
            };
            match stretch {
                Some(stretch) => self.keep(stretch),
                None => self.is_unlisted = true,
            }
            let answered = left - keys.iter().filter(|key| self.known(key).is_none()).count();
            poor += usize::from(!is_first && answered < POOR.min(left));
        }
    }

    fn keep(&mut self, stretch: Stretch) {
        if self.stretches.len() == STRETCHES_MAX {
            self.stretches.pop_front();
        }
        self.stretches.push_back(stretch);
    }

    /// Whether the object exists, if a listing has shown it.
    fn known(&self, key: &str) -> Option<bool> {
        if key.len() > KEY_MAX {
            return Some(false);
        }
        if !key.starts_with(&self.place.1) {
            return None;
        }
        self.stretches.iter().rev().find(|stretch| stretch.knows(key)).map(|stretch| stretch.has(key))
    }
}

/// Ends an item that was to become an object: a destination that exists already is skipped where that was asked for. Whether
/// it exists is looked up first: stores refuse for other reasons too, and some by the same status.
pub(crate) async fn end(
    job: &Running,
    request: &CopyRequest,
    (begun, bytes): (Begun, u64),
    result: Result<Moved, Error>,
    (store, id): (&Store, &ObjectId),
) {
    match result {
        Err(error) if request.no_clobber && (error.is_precondition() || error.is_conflict()) => {
            match store.head(id, None).await {
                Ok(_) => job.skip(begun, bytes, EXISTS).await,
                // Who may write may not always look.
                Err(look) if look.is_permission() && error.is_precondition() => {
                    job.skip(begun, bytes, SAID_TO_EXIST).await;
                }
                Err(_) => job.end(begun, bytes, Err(error)).await,
            }
        }
        result => job.end(begun, bytes, result).await,
    }
}

/// Asks for one object. Who may write may not always ask, and whatever else is wrong the write will tell.
async fn head(store: Store, id: ObjectId) -> bool {
    store.head(&id, None).await.is_ok()
}

/// A text that sorts just before a key: hardly any other key lies between. `None` for the empty key.
fn before(key: &str) -> Option<String> {
    let (at, last) = key.char_indices().next_back()?;
    let mut before = key[..at].to_owned();
    // The code points of surrogates are no characters.
    let less = match last as u32 {
        0 => None,
        0xe000 => char::from_u32(0xd7ff),
        code => char::from_u32(code - 1),
    };
    if let Some(less) = less {
        before.push(less);
        if before.len() + char::MAX.len_utf8() <= KEY_MAX {
            before.push(char::MAX);
        }
    }
    Some(before)
}

/// What keys in order begin with in common, up to a slash.
fn common_prefix<'a>(keys: &[&'a str]) -> &'a str {
    let (Some(first), Some(last)) = (keys.first(), keys.last()) else { return "" };
    let len = first.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
    let common = &first.as_bytes()[..len];
    let end = common.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    &first[..end]
}

#[cfg(test)]
mod tests {
    use laneway_store::ObjectMeta;

    use super::*;

    fn page(keys: &[&str], is_last: bool) -> Page {
        let objects = keys.iter().map(|key| ObjectMeta::new(ObjectId::new("b", *key), 1)).collect();
        Page { objects, prefixes: Vec::new(), next: (!is_last).then(|| "t".to_owned()) }
    }

    #[test]
    fn a_page_tells_of_every_key_between_where_it_was_asked_from_and_its_last() {
        let stretch = Stretch::of("b", &page(&["b", "d"], false)).unwrap();
        for (key, expected) in
            [("a", None), ("b", Some(true)), ("c", Some(false)), ("d", Some(true)), ("e", None)]
        {
            assert_eq!(stretch.knows(key).then(|| stretch.has(key)), expected, "{key}");
        }
    }

    #[test]
    fn the_last_page_tells_of_all_behind_it() {
        assert!(Stretch::of("b", &page(&["c"], true)).unwrap().knows("z"));
        let empty = Stretch::of("b", &page(&[], true)).unwrap();
        assert!(empty.knows("c") && !empty.has("c"));
    }

    #[test]
    fn pages_that_are_in_no_order_or_begin_elsewhere_are_not_believed() {
        assert_eq!(Stretch::of("b", &page(&["d", "c"], true)), None);
        assert_eq!(Stretch::of("b", &page(&["a"], false)), None, "it ends before");
        assert_eq!(Stretch::of("b", &page(&[], false)), None);
    }

    #[test]
    fn few_stretches_are_kept_and_those_of_another_place_forgotten() {
        let mut existing = Existing::default();
        existing.look_at("b", "p/");
        for n in 0..2 * STRETCHES_MAX {
            let key = format!("p/{n:04}");
            existing.keep(Stretch::of(&key, &page(&[&key], false)).unwrap());
        }
        assert_eq!(existing.stretches.len(), STRETCHES_MAX);
        assert_eq!((existing.known("p/0000"), existing.known("p/0127")), (None, Some(true)));
        assert_eq!(existing.known("q/0127"), None, "the prefix is all that was listed");
        existing.look_at("b", "q/");
        assert_eq!(existing.known("p/0127"), None);
    }

    #[test]
    fn a_key_is_listed_from_just_before_it() {
        for key in ["a", "p/k", "p/é", "\u{e000}", "p/\u{10ffff}", "p/\u{1}"] {
            let before = before(key).unwrap();
            assert!(before.as_str() < key, "{key:?}: {before:?}");
        }
        assert_eq!(before("p/b").as_deref(), Some("p/a\u{10ffff}"));
        assert_eq!((before("p/\u{0}").as_deref(), before("")), (Some("p/"), None));
        assert!(before(&"k".repeat(KEY_MAX)).unwrap().len() <= KEY_MAX);
    }

    #[test]
    fn named_keys_are_listed_under_the_folder_that_they_share() {
        assert_eq!(common_prefix(&["p/q/a", "p/q/ab", "p/qr"]), "p/");
        assert_eq!(common_prefix(&["p/é/1", "p/è/2"]), "p/");
        assert_eq!(common_prefix(&["a", "b"]), "");
        assert_eq!(common_prefix(&["p/a"]), "p/");
    }
}
