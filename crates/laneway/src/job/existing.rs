//! Finds out which destinations exist, for jobs that skip existing destinations. Laneway looks up several
//! destinations at once, before it writes them. One page of a listing shows which of up to a thousand
//! neighbouring keys exist. A HEAD shows this for only one key.
//!
//! Laneway remembers each listed page as a stretch: an interval of keys, together with the existing keys in
//! it. Items come in the order of their keys, so a few stretches are enough for any number of objects. Each
//! write also has a precondition, because an object can appear after the lookup.

use std::collections::VecDeque;

use futures_util::future::{BoxFuture, FutureExt, ready};
use futures_util::{StreamExt, stream};
use laneway_store::{List, ObjectId, Page, Store};

use crate::job::running::{ActiveItem, JobState, TransferOutcome};
use crate::{CopyRequest, Error};

/// The reason with which a job skips an item whose destination exists.
pub(crate) const EXISTS: &str = "the destination exists";
/// The reason with which a job skips an item if the store says that the destination exists. Laneway
/// couldn't check this, because the credentials don't permit reading.
const SAID_TO_EXIST: &str = "the store says that the destination exists";
/// The maximum number of remembered stretches. This number of stretches holds about 64,000 keys, which take a
/// few MiB.
const STRETCHES_MAX: usize = 64;
/// The minimum number of keys of one tree for which Laneway requests a page of a listing instead of HEADs. A
/// page costs as much as one or two HEADs.
const LISTED_MIN: usize = 2;
/// The minimum number of keys for which Laneway requests a page of a listing, if the caller named the keys
/// one by one. Such keys can lie far apart, so that a page shows only few of them.
const NAMED_LISTED_MIN: usize = 32;
/// A page is poor if it shows fewer than this many of the wanted keys, because many other objects lie between
/// them.
const POOR: usize = 8;
/// After this many poor pages, Laneway sends a HEAD for each remaining key.
const POOR_MAX: usize = 2;
/// The maximum number of concurrent HEAD requests.
const HEADS_MAX: usize = 64;
/// The maximum length in bytes of a key that stores accept. Longer keys can't exist, so Laneway doesn't look
/// them up.
const KEY_MAX: usize = 1024;

/// Remembers which of a job's destinations exist.
#[derive(Debug, Default)]
pub(crate) struct ExistingKeys {
    /// The bucket and prefix that the stretches belong to.
    place: (String, String),
    stretches: VecDeque<ListedStretch>,
    /// True if Laneway must send HEADs because pages can't show which keys exist. The reason is that the
    /// store lists without order, a listing failed, or a page was out of order or ended before the wanted
    /// key.
    is_unlisted: bool,
}

/// An interval of the keyspace in which all existing keys are known.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ListedStretch {
    from: String,
    /// The last key of the stretch; `None` if it reaches to the end of the prefix.
    to: Option<String>,
    /// The keys that exist, in order.
    keys: Vec<String>,
}

impl ListedStretch {
    /// Returns the stretch from `from` to the page's last key, or to the end of the prefix if no page
    /// follows. Returns `None` if the page isn't in order, or ends before `from`.
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

impl ExistingKeys {
    /// Returns whether each of these objects exists. All of them must be in the same bucket. If they belong
    /// to a tree, `tree` is the tree's prefix. If a lookup fails, the object counts as missing.
    pub(crate) async fn among(&mut self, store: &Store, ids: &[&ObjectId], tree: Option<&str>) -> Vec<bool> {
        let Some(first) = ids.first() else { return Vec::new() };
        let listed_min = if tree.is_some() { LISTED_MIN } else { NAMED_LISTED_MIN };
        let mut keys: Vec<&str> = ids.iter().map(|id| id.key.as_str()).collect();
        keys.sort_unstable();
        // Use the tree's prefix only if all keys lie below it. The matches of a pattern may also lie
        // elsewhere.
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

    /// Sets the bucket and prefix for the following lookups. Forgets all stretches if these belong to another
    /// bucket or prefix.
    fn look_at(&mut self, bucket: &str, prefix: &str) {
        if self.place.0 != bucket || self.place.1 != prefix {
            *self = Self { place: (bucket.to_owned(), prefix.to_owned()), ..Self::default() };
        }
    }

    /// Requests pages of a listing for `keys`, which must be in order. Stops when a HEAD for each remaining
    /// key is cheaper.
    async fn list(&mut self, store: &Store, keys: &[&str], listed_min: usize) {
        let mut poor = 0;
        // In a listing without order, a key that is missing on a page may follow on a later page. So a page
        // can't show that a key doesn't exist.
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
            // The first page begins at the prefix's start. If all objects of the prefix fit into one page,
            // this page shows them all.
            let is_first = self.stretches.is_empty();
            let first = if is_first { prefix } else { *first };
            if !is_first {
                list.start_after = before(first).filter(|before| before.as_str() > prefix.as_str());
            }
            let stretch = match store.list(&list).await {
                Ok(page) => ListedStretch::of(first, &page),
                Err(error) => {
                    tracing::debug!(%error, "destinations can't be listed, so they are looked up one by one");
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

    fn keep(&mut self, stretch: ListedStretch) {
        if self.stretches.len() == STRETCHES_MAX {
            self.stretches.pop_front();
        }
        self.stretches.push_back(stretch);
    }

    /// Returns whether the object exists, or `None` if no stretch covers its key.
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

/// Reports the end of an item whose destination is an object. If `no_clobber` is set and the destination
/// exists, the failed write becomes a skipped item. Laneway looks the destination up first, because a store
/// can refuse a write with the same status for other reasons.
pub(crate) async fn end(
    job: &JobState,
    request: &CopyRequest,
    (begun, bytes): (ActiveItem, u64),
    result: Result<TransferOutcome, Error>,
    (store, id): (&Store, &ObjectId),
) {
    match result {
        Err(error) if request.no_clobber && (error.is_precondition() || error.is_conflict()) => {
            match store.head(id, None).await {
                Ok(_) => job.skip(begun, bytes, EXISTS).await,
                // The credentials may permit writing an object but not reading its metadata.
                Err(look) if look.is_permission() && error.is_precondition() => {
                    job.skip(begun, bytes, SAID_TO_EXIST).await;
                }
                Err(_) => job.end(begun, bytes, Err(error)).await,
            }
        }
        result => job.end(begun, bytes, result).await,
    }
}

/// Looks up one object. If the lookup fails, the object counts as missing: the credentials may permit only
/// writing. Any other problem also makes the write fail.
async fn head(store: Store, id: ObjectId) -> bool {
    store.head(&id, None).await.is_ok()
}

/// Returns a text that sorts just before a key. A listing that starts after this text includes the key.
/// Hardly any other key lies between the text and the key. Returns `None` for the empty key.
fn before(key: &str) -> Option<String> {
    let (at, last) = key.char_indices().next_back()?;
    let mut before = key[..at].to_owned();
    // Skip the surrogates (U+D800 to U+DFFF), because they aren't characters.
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

/// Returns the longest prefix that ends in a slash and that all of the ordered keys share. Returns the empty
/// text if they share none.
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
        let stretch = ListedStretch::of("b", &page(&["b", "d"], false)).unwrap();
        for (key, expected) in
            [("a", None), ("b", Some(true)), ("c", Some(false)), ("d", Some(true)), ("e", None)]
        {
            assert_eq!(stretch.knows(key).then(|| stretch.has(key)), expected, "{key}");
        }
    }

    #[test]
    fn the_last_page_tells_of_all_behind_it() {
        assert!(ListedStretch::of("b", &page(&["c"], true)).unwrap().knows("z"));
        let empty = ListedStretch::of("b", &page(&[], true)).unwrap();
        assert!(empty.knows("c") && !empty.has("c"));
    }

    #[test]
    fn pages_that_are_in_no_order_or_begin_elsewhere_are_not_believed() {
        assert_eq!(ListedStretch::of("b", &page(&["d", "c"], true)), None);
        assert_eq!(ListedStretch::of("b", &page(&["a"], false)), None, "it ends before");
        assert_eq!(ListedStretch::of("b", &page(&[], false)), None);
    }

    #[test]
    fn few_stretches_are_kept_and_those_of_another_place_forgotten() {
        let mut existing = ExistingKeys::default();
        existing.look_at("b", "p/");
        for n in 0..2 * STRETCHES_MAX {
            let key = format!("p/{n:04}");
            existing.keep(ListedStretch::of(&key, &page(&[&key], false)).unwrap());
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
