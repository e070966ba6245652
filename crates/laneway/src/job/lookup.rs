//! Looks up the sizes of objects that the user named one by one. For many objects, a listing shows the sizes
//! sooner than the answers to the objects' own requests. With the sizes, Laneway can download small objects
//! without waiting for large ones.

use std::collections::HashMap;

use laneway_lanes::tally;
use laneway_store::{List, ObjectId, ObjectMeta, Provider, Store};
use tokio::sync::mpsc;

use crate::job::running::JobState;
use crate::listing::ListingSource;
use crate::{CopyRequest, Location};

/// The minimum number of named objects for a listing. Downloads of fewer objects would all have begun before
/// the listing's answer arrives.
const NAMED_MIN: usize = 32;
/// The maximum number of pages to read for each thousand named objects. If these pages don't show all named
/// objects, most of the listed keys aren't wanted, and further pages would be a waste.
const PAGES_FOR_A_THOUSAND: usize = 2;

type SizesByKey = Vec<(String, u64)>;

/// The sizes that a lookup has found so far, for the objects that a request names.
pub(crate) struct Sizes {
    /// The sizes that arrive from the lookup, page by page. The first sizes arrive several round trips before
    /// the last ones, so Laneway uses them before the lookup ends.
    coming: Option<mpsc::UnboundedReceiver<SizesByKey>>,
    known: HashMap<String, u64>,
}

impl Sizes {
    /// Starts to look up the objects that the request names one by one, if there are enough of them.
    pub(crate) fn begin(job: &JobState, request: &CopyRequest) -> Self {
        let is_named = |source: &&Location| match source {
            Location::Object { bucket, key, .. } => {
                let is_given = request.files_from.is_some() || request.inventory.is_some();
                !is_given && !ListingSource::of(ObjectId::new(bucket, key), request.recursive).is_listed()
            }
            _ => false,
        };
        let lookup = Lookup::of(request.sources.iter().filter(is_named)).filter(|_| !request.dry_run);
        let store = lookup.as_ref().and_then(|lookup| job.store(lookup.provider).ok()).cloned();
        let coming = lookup.zip(store).map(|(lookup, store)| {
            let (out, coming) = mpsc::unbounded_channel();
            // Open connections for the downloads while the listing is under way.
            store.anticipate(&lookup.list.bucket, lookup.keys);
            tokio::spawn(tally::scope(tally::current(), async move { lookup.find(&store, &out).await }));
            coming
        });
        Self { coming, known: HashMap::new() }
    }

    /// Waits for the size of a named object and returns it. Returns `None` if the lookup ends without finding
    /// the object.
    pub(crate) async fn of(&mut self, key: &str) -> Option<u64> {
        loop {
            if let Some(size) = self.known.get(key) {
                return Some(*size);
            }
            match self.coming.as_mut()?.recv().await {
                Some(found) => self.known.extend(found),
                None => self.coming = None,
            }
        }
    }
}

/// The listing that covers many named objects of one bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Lookup {
    provider: Provider,
    list: List,
    /// The number of keys to look up.
    keys: usize,
    pages_max: usize,
}

impl Lookup {
    /// Returns the lookup for sources that are single objects. Returns `None` if there are too few of them,
    /// or if they lie in several buckets.
    fn of<'a>(sources: impl Iterator<Item = &'a Location>) -> Option<Self> {
        let (mut place, mut keys): (Option<(Provider, &str)>, Vec<&str>) = (None, Vec::new());
        for source in sources {
            let Location::Object { provider, bucket, key } = source else { return None };
            if *place.get_or_insert((*provider, bucket)) != (*provider, bucket.as_str()) {
                return None;
            }
            keys.push(key);
        }
        let (provider, bucket) = place.filter(|_| keys.len() >= NAMED_MIN)?;
        let (first, last) = (keys.iter().min()?, keys.iter().max()?);
        let prefix = common_prefix(first, last);
        let mut list = List::new(bucket, prefix);
        // Skip keys that sort before the first wanted key. Start after this key without its last character,
        // because the shorter key sorts before it.
        list.start_after = shortened(first).filter(|after| after.len() > prefix.len()).map(str::to_owned);
        // `end_before` excludes its key, so append a space. The listing then includes the last wanted key and
        // ends right after it.
        list.end_before = Some(format!("{last} "));
        let pages_max = keys.len().div_ceil(1000) * PAGES_FOR_A_THOUSAND;
        Some(Self { provider, list, keys: keys.len(), pages_max })
    }

    /// Requests the pages. Ignores a failure of the listing, because the answers to the downloads also show
    /// the sizes.
    async fn find(mut self, store: &Store, out: &mpsc::UnboundedSender<SizesByKey>) {
        let found = |objects: Vec<ObjectMeta>| {
            // Sending fails only if the job was cancelled, which drops the receiver.
            let _ = out.send(objects.into_iter().map(|meta| (meta.id.key, meta.size)).collect());
        };
        for _ in 0..self.pages_max {
            let Ok(page) = store.list_arriving(&self.list, found).await else { return };
            found(page.objects);
            match page.next {
                Some(next) => self.list.token = Some(next),
                None => return,
            }
        }
    }
}

/// Returns the longest common prefix of both keys, in whole characters.
fn common_prefix<'a>(first: &'a str, last: &str) -> &'a str {
    let len = first.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
    &first[..first.floor_char_boundary(len)]
}

fn shortened(key: &str) -> Option<&str> {
    key.char_indices().next_back().map(|(at, _)| &key[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(keys: impl Iterator<Item = String>) -> Vec<Location> {
        keys.map(|key| format!("s3://b/{key}").parse().unwrap()).collect()
    }

    #[test]
    fn many_objects_of_one_place_are_looked_up_by_one_listing() {
        let sources = named((0..200).map(|i| format!("mix/s{i:03}")));
        let lookup = Lookup::of(sources.iter()).unwrap();
        assert_eq!(lookup.list.prefix, "mix/s");
        assert_eq!(lookup.list.start_after.as_deref(), Some("mix/s00"));
        assert_eq!(lookup.list.end_before.as_deref(), Some("mix/s199 "));
        assert_eq!(lookup.pages_max, 2);
    }

    #[test]
    fn every_key_lies_between_the_bounds() {
        for keys in [["a", "b"], ["é/1", "è/2"], ["x", "x/y"], ["p/1", "p/1"]] {
            let all = (0..NAMED_MIN).map(|i| keys[i % 2].to_owned());
            let list = Lookup::of(named(all).iter()).unwrap().list;
            for key in keys {
                assert!(key.starts_with(&list.prefix), "{key}: {list:?}");
                assert!(list.start_after.as_deref().is_none_or(|after| after < key), "{key}: {list:?}");
                assert!(list.end_before.as_deref().is_some_and(|before| key < before), "{key}: {list:?}");
            }
        }
    }

    #[test]
    fn few_objects_or_several_buckets_are_not_looked_up() {
        assert!(Lookup::of(named((0..NAMED_MIN - 1).map(|i| i.to_string())).iter()).is_none());
        let mut sources = named((0..NAMED_MIN).map(|i| i.to_string()));
        sources.push("s3://other/k".parse().unwrap());
        assert!(Lookup::of(sources.iter()).is_none());
    }
}
