//! Finds the objects and files of a source by listings and walks. Filters and lists of names choose among
//! them.

mod arriving;
pub(crate) mod filter;
pub(crate) mod glob;
pub(crate) mod names_from;
pub(crate) mod walk;

use std::cmp::Ordering;
use std::sync::Arc;

use laneway_store::{List, ObjectId, ObjectMeta, Store};

use crate::engine::settings::ClientState;
use crate::inventory::{Inventory, InventoryBatch, InventoryScope};
use crate::listing::names_from::{LineRules, ListedName, NameList};
use crate::location::mapping::name_of_key;
use crate::location::pattern::Pattern;
pub(crate) use crate::plan::keyspace::KeyOrder;
use crate::{Error, Filter, Location};
pub(crate) use arriving::{EntryBatch, ListingStream, PageChain};

#[derive(Clone, Debug)]
pub(crate) struct SourceObject {
    pub(crate) id: ObjectId,
    /// The object's metadata from the listing. `None` if the user named the object and Laneway hasn't
    /// requested its metadata yet.
    pub(crate) meta: Option<Box<ObjectMeta>>,
    /// The name that the object gets at a destination, or its path below the destination.
    pub(crate) name: String,
    /// True if the object is part of a tree. Its [`name`](Self::name) is then relative to the tree, without
    /// the tree's own name.
    pub(crate) in_tree: bool,
    /// If a list of names contained the object, the line of the list, as `FILE:LINE`. Errors mention it.
    pub(crate) line: Option<Box<str>>,
}

impl SourceObject {
    /// Returns whether a filter includes the object. Objects that the user named are always included. A
    /// filter on sizes or times includes no delete marker. If the marker were removed, a version that the
    /// filter excludes would become the live object again.
    pub(crate) fn is_taken_by(&self, filter: &Filter) -> bool {
        self.meta.as_ref().is_none_or(|meta| {
            !(meta.delete_marker && filter.looks_at_facts())
                && filter.takes(&self.name, meta.size, meta.updated)
        })
    }

    /// Returns whether the object is one of S3's delete markers.
    pub(crate) fn is_delete_marker(&self) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.delete_marker)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ListingSource {
    pub(crate) bucket: String,
    /// A key, a prefix or a pattern.
    pub(crate) key: String,
    pub(crate) recursive: bool,
    /// The version, if the source is a single version.
    pub(crate) version: Option<Box<str>>,
    /// True if the source includes all versions.
    pub(crate) all_versions: bool,
    /// True if the source includes only versions that were deleted and can be restored. Then
    /// [`all_versions`](Self::all_versions) is true, too.
    pub(crate) soft_deleted: bool,
    /// A list of names that replaces the listing.
    pub(crate) names: Option<(Location, LineRules)>,
    /// An inventory that replaces the listing, and the client that reads the inventory from a store.
    pub(crate) inventory: Option<(Location, Arc<ClientState>)>,
}

/// All pages of a listing. Dropping it ends the listing.
pub(crate) struct ListingPages(ListingStream);

impl ListingPages {
    /// Returns the entries up to the end of the next page. After an error, no more entries follow.
    pub(crate) async fn next(&mut self) -> Option<Result<EntryBatch, Error>> {
        let mut page = EntryBatch::default();
        while !page.ends_page {
            match self.0.next().await? {
                Ok(arrived) => {
                    page.objects.extend(arrived.objects);
                    page.prefixes.extend(arrived.prefixes);
                    page.ends_page = arrived.ends_page;
                    page.is_unsorted = arrived.is_unsorted;
                }
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(page))
    }
}

/// Begins to fetch the pages of a listing. The pages come in the order of their keys, if the store lists in
/// that order.
pub(crate) fn pages(store: &Store, list: List) -> ListingPages {
    pages_in(store, list, KeyOrder::Keys)
}

pub(crate) fn pages_in(store: &Store, list: List, order: KeyOrder) -> ListingPages {
    ListingPages(arriving(store, list, order))
}

pub(crate) fn arriving(store: &Store, list: List, order: KeyOrder) -> ListingStream {
    match list.versions {
        true => arriving::chained(store, list),
        false => arriving::arriving(store, list, order),
    }
}

/// Returns the request that lists all versions of one key, and of the keys that begin with it.
pub(crate) fn versions_of(bucket: &str, key: &str, soft_deleted: bool) -> List {
    List { versions: true, soft_deleted, ..List::new(bucket, key) }
}

impl ListingSource {
    /// Returns the source that a user named.
    pub(crate) fn of(id: ObjectId, recursive: bool) -> Self {
        let ObjectId { bucket, key, version, .. } = id;
        Self {
            bucket,
            key,
            recursive,
            version,
            all_versions: false,
            soft_deleted: false,
            names: None,
            inventory: None,
        }
    }

    /// Returns whether the source must be listed, because it may be several objects.
    pub(crate) fn is_listed(&self) -> bool {
        if self.names.is_some() || self.inventory.is_some() {
            return true;
        }
        let is_many = self.recursive || self.all_versions || self.key.is_empty() || self.pattern().is_some();
        is_many && self.version.is_none()
    }

    /// Starts to find the objects of the source. `order` says in which order they are returned.
    pub(crate) fn objects(&self, store: &Store, order: KeyOrder) -> SourceObjects {
        if let Some((names, reading)) = &self.names {
            let state = ListingState::Given {
                names: NameList::start(names, *reading),
                prefix: folder_prefix(&self.key),
            };
            return SourceObjects { source: self.clone(), state, scheme: store.scheme() };
        }
        if let Some((at, engine)) = &self.inventory {
            let (bucket, prefix) = (self.bucket.clone(), folder_prefix(&self.key));
            let prefix_len = prefix.len();
            let place = InventoryScope { provider: store.provider(), bucket, prefix };
            let state =
                ListingState::Inventory { inventory: Inventory::start(at, engine, place), prefix_len };
            return SourceObjects { source: self.clone(), state, scheme: store.scheme() };
        }
        if !self.is_listed() {
            return SourceObjects {
                source: self.clone(),
                state: ListingState::Named,
                scheme: store.scheme(),
            };
        }
        let pattern = self.pattern();
        let prefix = match &pattern {
            // One listing returns the versions of the key itself and those of the objects below it.
            None if self.all_versions => self.key.clone(),
            _ => self.folder_prefix(),
        };
        let mut list = List { versions: self.all_versions, ..List::new(&self.bucket, &prefix) };
        list.soft_deleted = self.soft_deleted;
        if pattern.is_none() && self.all_versions && !self.key.is_empty() && !self.key.ends_with('/') {
            // Leave out other keys that begin with this key, such as `key2` for `key`. `0` sorts right after
            // `/`, so `key0` ends the listing after the keys below `key/`. A space ends the listing right
            // after the key itself.
            list.end_before = Some(format!("{}{}", self.key, if self.recursive { '0' } else { ' ' }));
        }
        if !self.recursive && pattern.as_ref().is_some_and(Pattern::is_one_level) {
            list.delimiter = Some("/".to_owned());
        }
        let pattern_is_none = pattern.is_none();
        let listed = MatchedListing {
            listing: arriving(store, list, order),
            pattern,
            prefix_len: if pattern_is_none { folder_prefix(&self.key).len() } else { prefix.len() },
            is_empty: true,
        };
        SourceObjects { source: self.clone(), state: ListingState::Listed(listed), scheme: store.scheme() }
    }

    pub(crate) fn is_pattern(&self) -> bool {
        self.pattern().is_some()
    }

    fn pattern(&self) -> Option<Pattern> {
        Pattern::parse(self.key.strip_suffix('/').unwrap_or(&self.key))
    }

    /// Returns the common prefix of the names of all folders in this tree.
    pub(crate) fn folder_prefix(&self) -> String {
        self.pattern().map_or_else(|| folder_prefix(&self.key), |pattern| pattern.literal_prefix().to_owned())
    }

    /// Returns whether a folder is in this tree. The name ends in a slash.
    pub(crate) fn has_folder(&self, name: &str) -> bool {
        match self.pattern() {
            Some(pattern) => pattern.matching_folder(name).is_some(),
            None => name.starts_with(&folder_prefix(&self.key)),
        }
    }

    fn itself(&self) -> SourceObject {
        let mut id = ObjectId::new(&self.bucket, &self.key);
        id.version.clone_from(&self.version);
        let name = name_of_key(&self.bucket, &self.key).to_owned();
        SourceObject { name, id, meta: None, in_tree: false, line: None }
    }

    /// Returns the version that `meta` describes, if it is of the key itself or, with
    /// [`recursive`](Self::recursive), of an object below the key.
    fn version(&self, meta: ObjectMeta, prefix_len: usize) -> Option<SourceObject> {
        if meta.id.key == self.key {
            return Some(SourceObject { id: meta.id.clone(), meta: Some(Box::new(meta)), ..self.itself() });
        }
        let is_below = self.recursive && meta.id.key.starts_with(&folder_prefix(&self.key));
        is_below.then(|| in_tree(meta, prefix_len))
    }

    fn matched(&self, pattern: &Pattern, meta: ObjectMeta) -> Option<SourceObject> {
        let key = &meta.id.key;
        let name = match pattern.matching_folder(key).filter(|_| self.recursive) {
            // Objects in a matching folder get names relative to it, as if the user had named the folder.
            Some(folder) => key[folder.rfind('/').map_or(0, |slash| slash + 1)..].to_owned(),
            // A pattern with a slash at the end matches only folders.
            None if !self.key.ends_with('/') && pattern.matches(key) => {
                name_of_key(&self.bucket, key).to_owned()
            }
            None => return None,
        };
        Some(SourceObject {
            id: meta.id.clone(),
            meta: Some(Box::new(meta)),
            name,
            in_tree: false,
            line: None,
        })
    }
}

pub(crate) struct SourceObjects {
    source: ListingSource,
    state: ListingState,
    scheme: &'static str,
}

enum ListingState {
    Named,
    Listed(MatchedListing),
    Given { names: Result<NameList, Error>, prefix: String },
    Inventory { inventory: Result<Inventory, Error>, prefix_len: usize },
    Ended,
}

/// A listing, and the pattern that chooses among its keys.
struct MatchedListing {
    listing: ListingStream,
    pattern: Option<Pattern>,
    prefix_len: usize,
    is_empty: bool,
}

impl SourceObjects {
    /// Returns the next objects, or `None` at the end. If nothing matches a pattern or lies below a prefix,
    /// returns an object with this pattern or prefix as its key. The store's answer to a request for it then
    /// shows whether the object exists.
    ///
    /// # Errors
    /// The listing's error. `NotFound` if nothing lies below a prefix that ends in a slash, or if there are
    /// no versions.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<SourceObject>>, Error> {
        let Self { source, state, scheme } = self;
        if let ListingState::Listed(listed) = state {
            while let Some(arrived) = listed.listing.next().await {
                let (pattern, prefix_len) = (&listed.pattern, listed.prefix_len);
                let objects = arrived?.objects.into_iter().filter_map(|meta| match pattern {
                    Some(pattern) => source.matched(pattern, meta),
                    None if source.all_versions => source.version(meta, prefix_len),
                    None => Some(in_tree(meta, prefix_len)),
                });
                let objects: Vec<_> = objects.collect();
                if !objects.is_empty() {
                    listed.is_empty = false;
                    return Ok(Some(objects));
                }
            }
        }
        if let ListingState::Given { names, prefix } = state {
            let next = match names {
                Ok(names) => names.next().await,
                Err(error) => Err(error.again(source.bucket.clone())),
            };
            let ended = !matches!(next, Ok(Some(_)));
            let named = |named: ListedName| SourceObject {
                id: ObjectId::new(&source.bucket, format!("{prefix}{}", named.name)),
                meta: None,
                name: named.name,
                in_tree: true,
                line: Some(named.line),
            };
            let objects = next.map(|batch| batch.map(|batch| batch.into_iter().map(named).collect()));
            if ended {
                *state = ListingState::Ended;
            }
            return objects;
        }
        if let ListingState::Inventory { inventory, prefix_len } = state {
            let next = match inventory {
                Ok(inventory) => inventory.next().await,
                Err(error) => Err(error.again(source.bucket.clone())),
            };
            let ended = !matches!(next, Ok(Some(_)));
            let listed = |batch: InventoryBatch| {
                batch.objects.into_iter().map(|(_, meta)| in_tree(meta, *prefix_len)).collect()
            };
            let objects = next.map(|batch| batch.map(listed));
            if ended {
                *state = ListingState::Ended;
            }
            return objects;
        }
        let is_unanswered = match state {
            ListingState::Named => true,
            ListingState::Given { .. } | ListingState::Inventory { .. } => false,
            ListingState::Listed(listed) => listed.is_empty && !source.key.is_empty(),
            ListingState::Ended => false,
        };
        *state = ListingState::Ended;
        if !is_unanswered {
            return Ok(None);
        }
        if source.all_versions {
            let target = format!("{scheme}://{}/{}", source.bucket, source.key);
            let why =
                if source.soft_deleted { "no deleted object can be restored" } else { "it has no versions" };
            return Err(Error::not_found(target, why));
        }
        if source.recursive && source.key.ends_with('/') {
            let target = format!("{scheme}://{}/{}", source.bucket, source.key);
            return Err(Error::not_found(target, "no object lies under this prefix"));
        }
        Ok(Some(vec![source.itself()]))
    }
}

/// Returns the common prefix of all keys inside the folder `key`.
pub(crate) fn folder_prefix(key: &str) -> String {
    if key.is_empty() || key.ends_with('/') { key.to_owned() } else { format!("{key}/") }
}

fn in_tree(meta: ObjectMeta, prefix_len: usize) -> SourceObject {
    let name = meta.id.key.get(prefix_len..).unwrap_or_default().to_owned();
    SourceObject { id: meta.id.clone(), meta: Some(Box::new(meta)), name, in_tree: true, line: None }
}

/// Checks that names come in order. If a listing goes backwards or repeats names, a missing name doesn't
/// prove that the object is missing.
#[derive(Debug, Default)]
pub(crate) struct OrderCheck {
    last: Option<String>,
}

impl OrderCheck {
    /// Checks the next name.
    ///
    /// # Errors
    /// A message that says how the order is wrong.
    pub(crate) fn admit(&mut self, name: &str) -> Result<(), String> {
        let Some(last) = &mut self.last else {
            self.last = Some(name.to_owned());
            return Ok(());
        };
        match name.cmp(last.as_str()) {
            Ordering::Greater => {
                last.clear();
                last.push_str(name);
                Ok(())
            }
            Ordering::Equal => Err(format!("the listing names {name:?} twice")),
            Ordering::Less => Err(format!("the listing is unsorted: {name:?} comes after {last:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(pattern: &str, recursive: bool, key: &str) -> Option<String> {
        let source = ListingSource::of(ObjectId::new("b", pattern), recursive);
        let parsed = source.pattern().unwrap();
        source.matched(&parsed, ObjectMeta::new(ObjectId::new("b", key), 0)).map(|object| object.name)
    }

    #[test]
    fn a_matching_object_brings_its_last_component() {
        assert_eq!(matched("p/a*", false, "p/abc").as_deref(), Some("abc"));
        assert_eq!(matched("p/a*", false, "p/abc/d"), None);
        assert_eq!(matched("**", false, "x/y/z").as_deref(), Some("z"));
    }

    #[test]
    fn a_matching_folder_comes_with_its_name_when_asked_for() {
        assert_eq!(matched("p/a*", true, "p/abc/d/e").as_deref(), Some("abc/d/e"));
        assert_eq!(matched("p/a*", true, "p/abc").as_deref(), Some("abc"));
        assert_eq!(matched("p/a*/", true, "p/abc/d").as_deref(), Some("abc/d"));
        assert_eq!(matched("p/a*/", true, "p/abc"), None);
    }

    #[test]
    fn a_folder_prefix_ends_in_exactly_one_slash() {
        assert_eq!([folder_prefix(""), folder_prefix("a"), folder_prefix("a/")], ["", "a/", "a/"]);
    }

    #[test]
    fn a_name_that_comes_back_or_goes_back_is_an_error() {
        let mut order = OrderCheck::default();
        assert!(["a", "a-b", "a/b", "ab", "é"].iter().all(|name| order.admit(name).is_ok()));
        assert!(order.admit("é").unwrap_err().contains("twice"));
        assert!(order.admit("b").unwrap_err().contains("unsorted"));
    }
}
