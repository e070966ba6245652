//! Listings by URL, with patterns, as the `ls` command needs them.

use std::collections::HashSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use laneway_store::{List, ObjectId, ObjectMeta, Provider, Store};
use tokio::sync::mpsc;

use crate::engine::fork::OfProcess;
use crate::engine::settings::ClientState;
use crate::inventory::{Inventory, InventoryScope};
use crate::listing::{KeyOrder, OrderCheck, folder_prefix, pages, pages_in, versions_of};
use crate::location::pattern::Pattern;
use crate::location::url;
use crate::{Error, Filter, ListRequest, Location};

/// The number of batches that may wait for the caller to read them. A batch has at most one page's entries.
/// When that many batches wait, the listing pauses.
const PORTIONS_WAITING_MAX: usize = 2;

/// An entry of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Entry {
    /// An object.
    Object(Box<ObjectMeta>),
    /// A common prefix, as a URL that ends in a slash.
    Prefix(String),
    /// A bucket's name.
    Bucket(String),
}

/// A running listing: a stream of its entries. Laneway fetches a limited number of pages before the caller
/// asks for them. Dropping the listing ends its requests. In the child of a `fork`, the next entry of a
/// listing that the parent began is an error.
#[derive(Debug)]
pub struct Listing {
    entries: OfProcess<EntryStream>,
    /// True once all entries have been sent. If the channel closes earlier, the task that sends them has
    /// died, and the listing ends with an error.
    is_whole: Arc<AtomicBool>,
    at: String,
    /// The filter, and the number of bytes at the start of each key that the filter ignores.
    filter: (Filter, usize),
    is_over: bool,
}

#[derive(Debug)]
struct EntryStream {
    portions: mpsc::Receiver<Result<Vec<Entry>, Error>>,
    /// Entries of the last batch that haven't been read yet.
    rest: std::vec::IntoIter<Entry>,
}

impl Listing {
    pub(crate) fn new(
        engine: Arc<ClientState>,
        request: ListRequest,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (out, mut listing) = Self::begun(request.at.to_string());
        listing.filter = (request.filter.clone(), top_len(&request.at));
        let is_whole = Arc::clone(&listing.is_whole);
        let fill = async move {
            match fill(&engine, &request, &out).await {
                Ok(()) => is_whole.store(true, Ordering::Release),
                Err(ListingEnd::Unheard) => {}
                // Sending fails only if the caller has dropped the listing. In that case the error isn't
                // needed.
                Err(ListingEnd::Failed(error)) => drop(out.send(Err(error)).await),
            }
        };
        (listing, fill)
    }

    pub(crate) fn failed(error: Error) -> Self {
        let (out, listing) = Self::begun(String::new());
        // This can't fail, because the channel is empty and has room for the error.
        let _ = out.try_send(Err(error));
        listing
    }

    fn begun(at: String) -> (EntrySender, Self) {
        let (out, portions) = mpsc::channel(PORTIONS_WAITING_MAX);
        let entries = OfProcess::new(EntryStream { portions, rest: Vec::new().into_iter() });
        (out, Self { entries, is_whole: Arc::default(), at, filter: Default::default(), is_over: false })
    }

    /// Returns the next entry, or `None` at the end. The listing ends after an error.
    pub async fn next(&mut self) -> Option<Result<Entry, Error>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Does the same as [`next`](Self::next), and blocks the thread. Don't call it on a thread that runs
    /// async tasks.
    pub fn next_blocking(&mut self) -> Option<Result<Entry, Error>> {
        while !self.is_over {
            let Some(coming) = self.entries.get_mut() else { return Some(Err(self.forked())) };
            if let Some(entry) = coming.rest.next() {
                return Some(Ok(entry));
            }
            let portion = coming.portions.blocking_recv();
            if let Some(error) = self.take(portion) {
                return Some(Err(error));
            }
        }
        None
    }

    fn is_meant(&self, entry: &Entry) -> bool {
        let Entry::Object(meta) = entry else { return true };
        let (filter, top_len) = &self.filter;
        filter.is_empty()
            || filter.takes(meta.id.key.get(*top_len..).unwrap_or_default(), meta.size, meta.updated)
    }

    /// Takes the next batch from the channel. Returns the error if the listing ends with one.
    fn take(&mut self, portion: Option<Result<Vec<Entry>, Error>>) -> Option<Error> {
        let error = match portion {
            Some(Ok(mut entries)) => {
                entries.retain(|entry| self.is_meant(entry));
                self.entries.get_mut()?.rest = entries.into_iter();
                return None;
            }
            Some(Err(error)) => Some(error),
            None if self.is_whole.load(Ordering::Acquire) => None,
            None => Some(Error::cancelled(&self.at)),
        };
        self.is_over = true;
        error
    }

    /// Returns the error for a child of the process that began the listing.
    fn forked(&mut self) -> Error {
        self.is_over = true;
        Error::forked(&self.at)
    }
}

impl Stream for Listing {
    type Item = Result<Entry, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while !self.is_over {
            let Some(coming) = self.entries.get_mut() else { return Poll::Ready(Some(Err(self.forked()))) };
            if let Some(entry) = coming.rest.next() {
                return Poll::Ready(Some(Ok(entry)));
            }
            let portion = ready!(coming.portions.poll_recv(context));
            if let Some(error) = self.take(portion) {
                return Poll::Ready(Some(Err(error)));
            }
        }
        Poll::Ready(None)
    }
}

/// Returns the number of bytes at the start of each key that a filter ignores: the prefix, or the folders
/// that a pattern names without wildcards.
fn top_len(at: &Location) -> usize {
    match at {
        Location::Object { key, .. } => match Pattern::parse(key) {
            Some(pattern) => pattern.literal_prefix().rfind('/').map_or(0, |slash| slash + 1),
            None => folder_prefix(key).len(),
        },
        Location::Local(_) | Location::Version { .. } | Location::Standard => 0,
    }
}

/// The reason why a listing ends early.
enum ListingEnd {
    Failed(Error),
    Unheard,
}

impl<E: Into<Error>> From<E> for ListingEnd {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

type EntrySender = mpsc::Sender<Result<Vec<Entry>, Error>>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ListingDepth {
    /// Only the level directly below the prefix.
    Level,
    /// All levels, with the objects in this order.
    All(KeyOrder),
}

impl ListingDepth {
    fn of(request: &ListRequest) -> Self {
        match (request.recursive, request.in_order) {
            (false, _) => Self::Level,
            (true, true) => Self::All(KeyOrder::Keys),
            (true, false) => Self::All(KeyOrder::Arrival),
        }
    }

    fn order(self) -> KeyOrder {
        match self {
            Self::Level => KeyOrder::Keys,
            Self::All(order) => order,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct ListingScope<'a> {
    depth: ListingDepth,
    all_versions: bool,
    soft_deleted: bool,
    request: &'a ListRequest,
}

async fn fill(engine: &ClientState, request: &ListRequest, out: &EntrySender) -> Result<(), ListingEnd> {
    let Location::Object { provider, bucket, key } = &request.at else {
        return Err(Error::usage(request.at.to_string(), "only objects in a store can be listed").into());
    };
    request.check()?;
    if let Some(inventory) = &request.inventory {
        let place =
            InventoryScope { provider: *provider, bucket: bucket.clone(), prefix: folder_prefix(key) };
        return given(request, Inventory::start(inventory, engine, place)?, out).await;
    }
    let store = engine.store(*provider)?;
    if bucket.is_empty() {
        let buckets = store.buckets().await?;
        return send(out, buckets.into_iter().map(Entry::Bucket).collect()).await;
    }
    let depth = ListingDepth::of(request);
    let soft_deleted = request.soft_deleted;
    let what =
        ListingScope { depth, all_versions: request.all_versions || soft_deleted, soft_deleted, request };
    // A pattern that ends in a slash lists the content of the folders that match, as `ls */` does in a shell.
    if let Some(pattern) = key.strip_suffix('/').and_then(Pattern::parse) {
        let folders = folders(store, bucket, &pattern).await?;
        for folder in &folders {
            level(store, *provider, bucket, folder, what, out).await?;
        }
        if !folders.is_empty() {
            return Ok(());
        }
    }
    if let Some(pattern) = Pattern::parse(key)
        && matching(store, bucket, &pattern, what, out).await?
    {
        return Ok(());
    }
    level(store, *provider, bucket, key, what, out).await
}

async fn given(request: &ListRequest, mut inventory: Inventory, out: &EntrySender) -> Result<(), ListingEnd> {
    let mut order = OrderCheck::default();
    let mut found = top_len(&request.at) == 0;
    while let Some(batch) = inventory.next().await? {
        found = true;
        let mut portion = Vec::with_capacity(batch.objects.len());
        for (line, meta) in batch.objects {
            if request.in_order {
                order
                    .admit(&meta.id.key)
                    .map_err(|why| Error::refused(format!("{}:{line}", batch.file), why))?;
            }
            if request.includes(&meta.id.key) {
                portion.push(Entry::Object(Box::new(meta)));
            }
        }
        send(out, portion).await?;
    }
    if found {
        return Ok(());
    }
    Err(Error::not_found(request.at.to_string(), "the inventory lists nothing below this URL").into())
}

/// Returns the folders that match a pattern, each with its trailing slash, in order.
async fn folders(store: &Store, bucket: &str, pattern: &Pattern) -> Result<Vec<String>, ListingEnd> {
    let mut list = List::new(bucket, pattern.literal_prefix());
    if pattern.is_one_level() {
        list.delimiter = Some("/".to_owned());
    }
    let mut found: Vec<String> = Vec::new();
    let mut pages = pages(store, list);
    while let Some(page) = pages.next().await {
        let page = page?;
        found
            .extend(page.prefixes.into_iter().filter(|prefix| pattern.matches(prefix.trim_end_matches('/'))));
        for object in &page.objects {
            let Some(folder) = pattern.matching_folder(&object.id.key) else { continue };
            if found.last().and_then(|last| last.strip_suffix('/')) != Some(folder) {
                found.push(format!("{folder}/"));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Lists the entries that match a pattern. Returns false if there are none.
async fn matching(
    store: &Store,
    bucket: &str,
    pattern: &Pattern,
    ListingScope { depth, all_versions, soft_deleted, .. }: ListingScope<'_>,
    out: &EntrySender,
) -> Result<bool, ListingEnd> {
    let mut list =
        List { versions: all_versions, soft_deleted, ..List::new(bucket, pattern.literal_prefix()) };
    if pattern.is_one_level() && depth == ListingDepth::Level {
        list.delimiter = Some("/".to_owned());
    }
    let mut found = false;
    let mut seen = Folders::new(store.lists_in_order(bucket));
    let mut pages = pages_in(store, list, depth.order());
    let folder_url = |folder: &str| url(store.provider(), &ObjectId::new(bucket, folder));
    while let Some(page) = pages.next().await {
        let page = page?;
        if page.is_unsorted {
            seen.remember_all();
        }
        let folders = page.prefixes.iter().filter(|prefix| pattern.matches(prefix.trim_end_matches('/')));
        let mut portion: Vec<Entry> = folders.map(|folder| Entry::Prefix(folder_url(folder))).collect();
        for object in page.objects {
            match pattern.matching_folder(&object.id.key) {
                Some(folder) if depth == ListingDepth::Level && !pattern.matches(&object.id.key) => {
                    found = true;
                    if seen.is_new(folder) {
                        portion.push(Entry::Prefix(folder_url(&format!("{folder}/"))));
                    }
                }
                None if !pattern.matches(&object.id.key) => {}
                _ => portion.push(Entry::Object(Box::new(object))),
            }
        }
        found |= !portion.is_empty();
        send(out, portion).await?;
    }
    Ok(found)
}

/// The folders that were already listed, so that each is listed once. In a listing in order, all keys of a
/// folder follow each other, so it is enough to remember the last folder.
enum Folders {
    Last(String),
    All(HashSet<String>),
}

impl Folders {
    fn new(in_order: bool) -> Self {
        if in_order { Self::Last(String::new()) } else { Self::All(HashSet::new()) }
    }

    /// Starts to remember all folders, because the listing turned out to have no order.
    fn remember_all(&mut self) {
        if let Self::Last(last) = self {
            *self = Self::All(HashSet::from([std::mem::take(last)]));
        }
    }

    fn is_new(&mut self, folder: &str) -> bool {
        match self {
            Self::Last(last) if last == folder => false,
            Self::Last(last) => {
                folder.clone_into(last);
                true
            }
            Self::All(seen) => seen.insert(folder.to_owned()),
        }
    }
}

/// Lists one level, or everything, below a prefix. Also lists the object whose key is exactly the prefix, if
/// it exists.
async fn level(
    store: &Store,
    provider: Provider,
    bucket: &str,
    key: &str,
    ListingScope { depth, all_versions, soft_deleted, request }: ListingScope<'_>,
    out: &EntrySender,
) -> Result<(), ListingEnd> {
    let mut list = List { versions: all_versions, soft_deleted, ..List::new(bucket, folder_prefix(key)) };
    list.start_after.clone_from(&request.start_after);
    list.end_before.clone_from(&request.end_before);
    if depth == ListingDepth::Level {
        list.delimiter = Some("/".to_owned());
    }
    let mut pages = pages_in(store, list, depth.order());
    // Look up the object and list the prefix concurrently, to save a round trip.
    let id = ObjectId::new(bucket, key);
    let mut found = false;
    let first = if key.is_empty() || key.ends_with('/') || !request.includes(key) {
        pages.next().await
    } else if all_versions {
        found = own_versions(store, versions_of(bucket, key, soft_deleted), out).await?;
        pages.next().await
    } else {
        let (object, first) = tokio::join!(store.head(&id, None), pages.next());
        match object {
            Ok(meta) => {
                found = true;
                send(out, vec![Entry::Object(Box::new(meta))]).await?;
            }
            Err(e) if e.is_not_found() => {}
            // The caller may be allowed to list objects but not to read them. So if the page has entries,
            // ignore the error of the lookup.
            Err(e) if matches!(&first, Some(Ok(page)) if !page.objects.is_empty() || !page.prefixes.is_empty()) =>
            {
                tracing::debug!(error = %e, "the object whose key is the prefix can't be looked up");
            }
            Err(e) => return Err(e.into()),
        }
        first
    };
    let mut next = first;
    while let Some(page) = next {
        let page = page?;
        let prefixes = page.prefixes.into_iter();
        let prefixes = prefixes.map(|prefix| Entry::Prefix(url(provider, &ObjectId::new(bucket, prefix))));
        let objects = page.objects.into_iter().map(|object| Entry::Object(Box::new(object)));
        let portion: Vec<Entry> = prefixes.chain(objects).collect();
        found |= !portion.is_empty();
        send(out, portion).await?;
        next = pages.next().await;
    }
    if found || key.is_empty() || request.has_bounds() {
        return Ok(());
    }
    Err(Error::not_found(url(provider, &id), "there is no such object or prefix").into())
}

/// Lists the versions of the object whose key is exactly the prefix. Returns false if there are none.
async fn own_versions(store: &Store, list: List, out: &EntrySender) -> Result<bool, ListingEnd> {
    let key = list.prefix.clone();
    let mut pages = pages(store, list);
    let mut found = false;
    while let Some(page) = pages.next().await {
        let objects = page?.objects;
        // The key itself sorts before all longer keys that begin with it. So once another key has arrived,
        // the listing has returned all versions of this key.
        let is_over = objects.last().is_some_and(|last| last.id.key != key);
        let own = objects.into_iter().filter(|object| object.id.key == key);
        let portion: Vec<Entry> = own.map(|object| Entry::Object(Box::new(object))).collect();
        found |= !portion.is_empty();
        send(out, portion).await?;
        if is_over {
            break;
        }
    }
    Ok(found)
}

async fn send(out: &EntrySender, portion: Vec<Entry>) -> Result<(), ListingEnd> {
    out.send(Ok(portion)).await.map_err(|_| ListingEnd::Unheard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_that_nobody_fills_any_more_is_an_error_and_no_end() {
        let one = || Ok(vec![Entry::Prefix("s3://b/a/".to_owned())]);
        let (out, mut lost) = Listing::begun("s3://b/".to_owned());
        out.try_send(one()).unwrap();
        drop(out);
        assert!(lost.next_blocking().unwrap().is_ok());
        let error = lost.next_blocking().unwrap().unwrap_err();
        assert!(error.is_cancelled() && error.to_string().contains("s3://b/"), "{error}");
        assert!(lost.next_blocking().is_none());

        let (out, mut whole) = Listing::begun("s3://b/".to_owned());
        out.try_send(one()).unwrap();
        whole.is_whole.store(true, Ordering::Release);
        drop(out);
        assert!(whole.next_blocking().unwrap().is_ok() && whole.next_blocking().is_none());

        let mut failed = Listing::failed(Error::cancelled("s3://b/"));
        assert!(failed.next_blocking().unwrap().is_err() && failed.next_blocking().is_none());
    }

    #[test]
    fn a_folder_is_told_once_also_where_a_listing_has_no_order() {
        let seen = |in_order, folders: &[&'static str]| {
            let mut seen = Folders::new(in_order);
            folders.iter().copied().filter(|folder| seen.is_new(folder)).collect::<Vec<_>>()
        };
        assert_eq!(seen(true, &["a", "a", "b"]), ["a", "b"]);
        assert_eq!(seen(false, &["a", "b", "a"]), ["a", "b"]);
    }
}
