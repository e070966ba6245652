//! Requests the pages of a listing that [`Keyspace`] plans, and passes their entries to the reader as they
//! arrive.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use laneway_lanes::tally;
use laneway_store::{List, ListingLimits, ObjectId, ObjectMeta, Page, Store};
use tokio::sync::mpsc;

use crate::Error;
use crate::location::url;
use crate::plan::keyspace::{
    End, EntryKind, KeyOrder, Keyspace, ListingBounds, ListingFault, PageRequest, StretchId,
};

/// The maximum number of batches in the channel to the reader. A batch is at most a page. Further pages wait
/// in the [`WaitingBatches`].
const WAITING_MAX: usize = 2;
/// Laneway cuts a listing into stretches: ranges of keys that it lists in parallel. The key at a cut belongs
/// to the stretch before the cut, but a request brings only keys before its end. So the request's end is the
/// cut's key followed by this character. Keys between the cut and this end belong to the next stretch.
const BEHIND: char = ' ';

/// The maximum number of returned keys that a listing remembers. If the store turns out to list in no order,
/// the listing starts again and skips these keys. Together they take about 3 MiB.
const REMEMBERED_MAX: usize = 65_536;

/// A batch of a listing's entries.
#[derive(Debug, Default)]
pub(crate) struct EntryBatch {
    /// Objects in the order of their keys, if the store lists in that order.
    pub(crate) objects: Vec<ObjectMeta>,
    pub(crate) prefixes: Vec<String>,
    pub(crate) ends_page: bool,
    /// True if the store turned out to list in no order. The keys are then in the order of their arrival.
    pub(crate) is_unsorted: bool,
}

/// All entries of a listing, as they arrive. Dropping this ends the listing.
#[derive(Debug)]
pub(crate) struct ListingStream {
    /// `None` marks the end. If the channel closes without it, the task that fills it has died.
    arrived: mpsc::Receiver<Result<Option<EntryBatch>, Error>>,
    url: String,
    is_over: bool,
}

impl ListingStream {
    /// Returns a listing whose batches come from this channel.
    pub(super) fn filled(arrived: mpsc::Receiver<Result<Option<EntryBatch>, Error>>, url: String) -> Self {
        Self { arrived, url, is_over: false }
    }

    /// Returns the next batch. After an error, no more batches follow.
    pub(crate) async fn next(&mut self) -> Option<Result<EntryBatch, Error>> {
        if self.is_over {
            return None;
        }
        let arrived = match self.arrived.recv().await {
            Some(arrived) => arrived.transpose(),
            None => Some(Err(Error::cancelled(&self.url))),
        };
        self.is_over = !matches!(arrived, Some(Ok(_)));
        arrived
    }
}

pub(crate) fn arriving(store: &Store, list: List, order: KeyOrder) -> ListingStream {
    let (out, arrived) = mpsc::channel(WAITING_MAX);
    let url = url(store.provider(), &ObjectId::new(&list.bucket, &list.prefix));
    let store = store.clone();
    // Add the task's requests to the caller's tally of requests and bytes.
    tokio::spawn(tally::scope(tally::current(), async move { fetch(&store, &list, order, out).await }));
    ListingStream { arrived, url, is_over: false }
}

/// The answer to a request for a page, and the time that it took. The reader may have received some of the
/// page's objects before the page was complete.
type PageArrival = (StretchId, Result<Page, laneway_store::Error>, Duration);

async fn fetch(
    store: &Store,
    list: &List,
    order: KeyOrder,
    out: mpsc::Sender<Result<Option<EntryBatch>, Error>>,
) {
    let limits = store.listing_limits(&list.bucket);
    let is_sorted = store.lists_in_order(&list.bucket);
    let by_key = !store.capabilities().tokens_are_keys && !limits.refuses_longer_prefixes;
    let mut keyspace = Keyspace::new(listed(list), order, is_sorted, by_key);
    if !store.starts_at_keys(&list.bucket) {
        keyspace = keyspace.in_one_chain();
    }
    let mut shelf = WaitingBatches { order, lines: HashMap::new() };
    let mut handed = PassedEntries::new(is_sorted, limits.is_unsorted);
    let (mut ahead, mut coming) = mpsc::unbounded_channel();
    let mut pages = FuturesUnordered::new();
    let mut learned = ListingLimits::default();
    let mut failure = None;
    loop {
        while failure.is_none()
            && let Some(ask) = keyspace.ask()
        {
            pages.push(page(store, list, ask, ahead.clone()));
        }
        let is_ready = shelf.has_next(&keyspace);
        if !is_ready && (failure.is_some() || keyspace.is_over()) {
            if failure.is_none() {
                store.learn_listing_limits(&list.bucket, learned);
            }
            // This fails only if the reader is gone.
            drop(out.send(failure.map_or(Ok(None), Err)).await);
            return;
        }
        let took = tokio::select! {
            biased;
            room = out.reserve(), if is_ready => {
                let Ok(room) = room else { return };
                let arrived = shelf.take(&mut keyspace).map(|arrived| handed.pass(arrived)).transpose();
                arrived.map(|arrived| {
                    if let Some(arrived) = arrived {
                        room.send(Ok(Some(arrived)));
                    }
                })
            }
            () = out.closed(), if !is_ready => return,
            Some((stretch, objects)) = coming.recv(), if failure.is_none() => {
                shelf.put(&mut keyspace, stretch, objects)
            }
            Some(came) = pages.next(), if failure.is_none() => {
                // Objects of this page may still wait in the channel. Take them before the page is ended.
                let mut took = Ok(());
                while let Ok((stretch, objects)) = coming.try_recv() {
                    took = took.and_then(|()| shelf.put(&mut keyspace, stretch, objects));
                }
                match (took, came) {
                    (Ok(()), (stretch, Err(error), time))
                        if error.is_permission() && keyspace.refused(stretch) =>
                    {
                        learned.refuses_longer_prefixes = true;
                        shelf.end_page(&mut keyspace, stretch, Page::default(), time)
                    }
                    (Ok(()), (_, Err(error), _)) => {
                        failure = Some(error.into());
                        Ok(())
                    }
                    (Ok(()), (stretch, Ok(page), time)) => shelf.end_page(&mut keyspace, stretch, page, time),
                    (Err(disorder), _) => Err(disorder),
                }
            }
        };
        let Err(disorder) = took else { continue };
        if disorder.is_of_order() && handed.begins_again() {
            // The store doesn't list in the order of keys. So start the listing again, as one chain of pages
            // that accepts any order.
            learned.is_unsorted = true;
            store.learn_listing_limits(&list.bucket, learned);
            pages = FuturesUnordered::new();
            (ahead, coming) = mpsc::unbounded_channel();
            keyspace = Keyspace::new(listed(list), KeyOrder::Arrival, false, false);
            shelf = WaitingBatches { order: KeyOrder::Arrival, lines: HashMap::new() };
            continue;
        }
        let about = ObjectId::new(&list.bucket, disorder.key().unwrap_or(&list.prefix));
        failure = Some(Error::disorder(url(store.provider(), &about), disorder.to_string()));
    }
}

fn listed(list: &List) -> ListingBounds {
    ListingBounds {
        prefix: list.prefix.clone(),
        delimiter: list.delimiter.clone(),
        start_after: list.start_after.clone(),
        end_before: list.end_before.clone(),
    }
}

/// The entries that were passed to the reader.
struct PassedEntries {
    /// The keys are two digests of each key or prefix that was passed to the reader. The value is true if the
    /// entry arrived in an unsorted listing.
    known: HashMap<(u64, u64), bool>,
    digests: (RandomState, RandomState),
    is_sorted: bool,
    /// True if this or an earlier listing found that the store lists in no order.
    was_found_out: bool,
    /// True if there were too many entries to remember them all.
    has_forgotten: bool,
}

impl PassedEntries {
    fn new(is_sorted: bool, was_found_out: bool) -> Self {
        let digests = (RandomState::new(), RandomState::new());
        Self { known: HashMap::new(), digests, is_sorted, was_found_out, has_forgotten: false }
    }

    /// Returns a batch without the entries that the reader already has.
    ///
    /// # Errors
    /// If a listing without order repeats an entry.
    fn pass(&mut self, mut arrived: EntryBatch) -> Result<EntryBatch, ListingFault> {
        arrived.is_unsorted = self.was_found_out;
        let mut repeated = None;
        let mut is_new = |key: &str| {
            self.is_new(key).unwrap_or_else(|| {
                repeated = Some(key.to_owned());
                false
            })
        };
        arrived.objects.retain(|object| is_new(&object.id.key));
        arrived.prefixes.retain(|prefix| is_new(prefix));
        match repeated {
            Some(key) => Err(ListingFault::Backwards(key.clone(), key)),
            None => Ok(arrived),
        }
    }

    /// Returns true if an entry is new, and false if the reader already has it. Returns `None` if an unsorted
    /// listing repeats the entry.
    fn is_new(&mut self, key: &str) -> Option<bool> {
        if self.is_sorted && self.has_forgotten {
            return Some(true);
        }
        let digest = (self.digests.0.hash_one(key), self.digests.1.hash_one(key));
        if !self.is_sorted
            && let Some(has_come) = self.known.get_mut(&digest)
        {
            return (!std::mem::replace(has_come, true)).then_some(false);
        }
        if self.known.len() < REMEMBERED_MAX {
            self.known.insert(digest, !self.is_sorted);
        } else {
            self.has_forgotten = true;
            if self.is_sorted {
                self.known = HashMap::new();
            }
        }
        Some(true)
    }

    /// Begins the listing again as an unsorted one, with one page after the other. Returns false if the
    /// listing is already unsorted, or if the reader already has too many entries. The new listing must skip
    /// these entries, but Laneway doesn't remember all of them.
    fn begins_again(&mut self) -> bool {
        let may = self.is_sorted && !self.has_forgotten;
        self.is_sorted &= !may;
        self.was_found_out |= may;
        may
    }
}

async fn page(
    store: &Store,
    list: &List,
    ask: PageRequest,
    ahead: mpsc::UnboundedSender<(StretchId, Vec<ObjectMeta>)>,
) -> PageArrival {
    let end_before = match ask.end {
        End::Open => None,
        End::Before(end) => Some(end),
        End::At(end) => Some(format!("{end}{BEHIND}")),
    };
    let PageRequest { prefix, start_after, token, max, .. } = ask;
    let list = List { prefix, start_after, end_before, token, max: max.or(list.max), ..list.clone() };
    let asked = Instant::now();
    // The channel is unbounded, but a page has at most a thousand objects. Sending fails only if the listing
    // is over.
    let page = store.list_arriving(&list, |objects| drop(ahead.send((ask.stretch, objects)))).await;
    (ask.stretch, page, asked.elapsed())
}

/// Batches that have arrived and wait for the reader.
struct WaitingBatches {
    order: KeyOrder,
    /// The queues of batches. If the reader wants the order of keys, there is one queue for each stretch, and
    /// otherwise one queue for all stretches.
    lines: HashMap<Option<StretchId>, VecDeque<(StretchId, EntryBatch)>>,
}

impl WaitingBatches {
    fn put(
        &mut self,
        keyspace: &mut Keyspace,
        stretch: StretchId,
        mut objects: Vec<ObjectMeta>,
    ) -> Result<(), ListingFault> {
        let taken = keyspace.came(
            stretch,
            EntryKind::Objects,
            objects.iter().map(|object| object.id.key.as_str()),
        )?;
        objects.truncate(taken);
        if !objects.is_empty() {
            self.add(stretch, EntryBatch { objects, ..EntryBatch::default() });
        }
        Ok(())
    }

    fn end_page(
        &mut self,
        keyspace: &mut Keyspace,
        stretch: StretchId,
        page: Page,
        time: Duration,
    ) -> Result<(), ListingFault> {
        let Page { mut objects, mut prefixes, next } = page;
        let taken = keyspace.came(
            stretch,
            EntryKind::Objects,
            objects.iter().map(|object| object.id.key.as_str()),
        )?;
        objects.truncate(taken);
        let taken = keyspace.came(stretch, EntryKind::Prefixes, prefixes.iter().map(String::as_str))?;
        prefixes.truncate(taken);
        keyspace.ended(stretch, next, time)?;
        self.add(stretch, EntryBatch { objects, prefixes, ends_page: true, is_unsorted: false });
        Ok(())
    }

    fn add(&mut self, stretch: StretchId, arrived: EntryBatch) {
        let line = (self.order == KeyOrder::Keys).then_some(stretch);
        self.lines.entry(line).or_default().push_back((stretch, arrived));
    }

    /// Returns the queue from which the next batch comes.
    fn line(&self, keyspace: &Keyspace) -> Option<StretchId> {
        keyspace.front().filter(|_| self.order == KeyOrder::Keys)
    }

    fn has_next(&self, keyspace: &Keyspace) -> bool {
        self.lines.contains_key(&self.line(keyspace))
    }

    /// Returns the next entries, at most up to the end of a page.
    fn take(&mut self, keyspace: &mut Keyspace) -> Option<EntryBatch> {
        let key = self.line(keyspace);
        let line = self.lines.get_mut(&key)?;
        let (stretch, mut arrived) = line.pop_front()?;
        while !arrived.ends_page
            && line.front().is_some_and(|(next, _)| *next == stretch)
            && let Some((_, more)) = line.pop_front()
        {
            arrived.objects.extend(more.objects);
            arrived.prefixes.extend(more.prefixes);
            arrived.ends_page = more.ends_page;
        }
        if line.is_empty() {
            self.lines.remove(&key);
        }
        if arrived.ends_page {
            keyspace.taken(stretch);
        }
        Some(arrived)
    }
}

/// The maximum number of pages that may wait for their reader.
const PAGES_WAITING_MAX: usize = 2;

/// A page may end between two versions of a key, so the pages can't be requested in parallel.
pub(super) fn chained(store: &Store, list: List) -> ListingStream {
    let (out, arrived) = mpsc::channel(PAGES_WAITING_MAX);
    let mut chain = PageChain::in_order(store, list);
    let (store, url) = (store.clone(), chain.url.clone());
    tokio::spawn(tally::scope(tally::current(), async move {
        let ended = fetch_chained(&store, &mut chain, &out).await;
        // Sending fails only if the reader is gone.
        let _ = out.send(ended.map(|()| None)).await;
    }));
    ListingStream::filled(arrived, url)
}

async fn fetch_chained(
    store: &Store,
    chain: &mut PageChain,
    out: &mpsc::Sender<Result<Option<EntryBatch>, Error>>,
) -> Result<(), Error> {
    while let Some(Page { objects, prefixes, .. }) = chain.next(store).await? {
        let arrived = EntryBatch { objects, prefixes, ends_page: true, is_unsorted: false };
        if out.send(Ok(Some(arrived))).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// A listing that requests one page after the other. It detects a chain that never ends or loses entries.
#[derive(Debug)]
pub(crate) struct PageChain {
    /// The request for the next page.
    pub(crate) list: List,
    url: String,
    /// The last key so far, if the keys must be in order.
    last: Option<String>,
    tokens: HashSet<String>,
    is_over: bool,
}

impl PageChain {
    /// Returns a listing whose keys may have any order.
    pub(crate) fn new(store: &Store, list: List) -> Self {
        let url = url(store.provider(), &ObjectId::new(&list.bucket, &list.prefix));
        Self { list, url, last: None, tokens: HashSet::new(), is_over: false }
    }

    /// Returns a listing whose keys must be in order. Keys may repeat.
    fn in_order(store: &Store, list: List) -> Self {
        Self { last: Some(String::new()), ..Self::new(store, list) }
    }

    /// Requests the next page. Returns `None` after the last page.
    ///
    /// # Errors
    /// The store's error; a page that has come before, or keys that aren't in order.
    pub(crate) async fn next(&mut self, store: &Store) -> Result<Option<Page>, Error> {
        if self.is_over {
            return Ok(None);
        }
        let page = store.list(&self.list).await?;
        self.goes_on(page.objects.iter().map(|object| object.id.key.as_str()), page.next.as_deref())
            .map_err(|why| Error::disorder(&self.url, why))?;
        self.is_over = page.next.is_none();
        self.list.token.clone_from(&page.next);
        Ok(Some(page))
    }

    fn goes_on<'a>(&mut self, keys: impl Iterator<Item = &'a str>, next: Option<&str>) -> Result<(), String> {
        if let Some(last) = &mut self.last {
            for key in keys {
                if key < last.as_str() {
                    return Err(format!("the listing goes backwards, from {last:?} to {key:?}"));
                }
                if key != last {
                    key.clone_into(last);
                }
            }
        }
        match next.is_some_and(|token| !self.tokens.insert(token.to_owned())) {
            true => Err("the listing repeats an earlier page".to_owned()),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use pollster::block_on;

    use super::*;

    fn begun() -> (mpsc::Sender<Result<Option<EntryBatch>, Error>>, ListingStream) {
        let (out, arrived) = mpsc::channel(4);
        (out, ListingStream { arrived, url: "s3://b/k".to_owned(), is_over: false })
    }

    #[test]
    fn a_listing_that_nobody_goes_on_with_is_an_error_and_no_end() {
        let one = || Ok(Some(EntryBatch { ends_page: true, ..EntryBatch::default() }));
        let (out, mut lost) = begun();
        assert!(out.try_send(one()).is_ok());
        drop(out);
        assert!(block_on(lost.next()).unwrap().is_ok());
        let error = block_on(lost.next()).unwrap().unwrap_err();
        assert!(error.is_cancelled() && error.url() == Some("s3://b/k"), "{error}");
        assert!(block_on(lost.next()).is_none());
        let (out, mut whole) = begun();
        assert!(out.try_send(one()).is_ok() && out.try_send(Ok(None)).is_ok());
        drop(out);
        assert!(block_on(whole.next()).unwrap().is_ok() && block_on(whole.next()).is_none());
    }

    #[test]
    fn a_chain_without_order_returns_each_entry_once() {
        let batch = |keys: &[&str]| {
            let objects = keys.iter().map(|key| ObjectMeta::new(ObjectId::new("b", *key), 0)).collect();
            EntryBatch { objects, prefixes: vec!["p/".to_owned()], ..EntryBatch::default() }
        };
        let keys =
            |arrived: EntryBatch| arrived.objects.into_iter().map(|meta| meta.id.key).collect::<Vec<_>>();
        let mut handed = PassedEntries::new(true, false);
        assert_eq!(keys(handed.pass(batch(&["b", "d"])).unwrap()), ["b", "d"]);
        assert!(handed.begins_again() && !handed.begins_again());
        let again = handed.pass(batch(&["d", "c", "b"])).unwrap();
        assert!(again.is_unsorted && again.prefixes.is_empty());
        assert_eq!(keys(again), ["c"]);
        for repeated in ["c", "b"] {
            assert!(handed.pass(EntryBatch { prefixes: Vec::new(), ..batch(&[repeated]) }).is_err());
        }
        let mut long = PassedEntries::new(true, false);
        let keys: Vec<_> = (0..=REMEMBERED_MAX).map(|n| n.to_string()).collect();
        assert!(keys.iter().all(|key| long.is_new(key) == Some(true)));
        assert!(!long.begins_again(), "too many to leave them out");
    }

    #[test]
    fn what_arrived_of_a_page_is_handed_on_together() {
        let listed = || ListingBounds::default();
        let object = |key: &str| ObjectMeta::new(ObjectId::new("b", key), 0);
        for order in [KeyOrder::Keys, KeyOrder::Arrival] {
            let mut keyspace = Keyspace::new(listed(), order, true, false);
            let mut shelf = WaitingBatches { order, lines: HashMap::new() };
            let first = keyspace.ask().unwrap().stretch;
            shelf.put(&mut keyspace, first, vec![object("a"), object("b")]).unwrap();
            let arrived = shelf.take(&mut keyspace).unwrap();
            assert_eq!((arrived.objects.len(), arrived.ends_page), (2, false));
            assert!(!shelf.has_next(&keyspace));
            shelf.put(&mut keyspace, first, vec![object("c")]).unwrap();
            let rest = Page { objects: vec![object("d")], ..Page::default() };
            shelf.end_page(&mut keyspace, first, rest, Duration::ZERO).unwrap();
            let arrived = shelf.take(&mut keyspace).unwrap();
            assert_eq!((arrived.objects.len(), arrived.ends_page), (2, true));
            assert!(keyspace.is_over() && !shelf.has_next(&keyspace));
        }
    }

    #[test]
    fn a_chain_that_repeats_itself_or_goes_backwards_is_found_out() {
        let chain = |last| PageChain {
            list: List::new("b", ""),
            url: String::new(),
            last,
            tokens: HashSet::new(),
            is_over: false,
        };
        let mut any_order = chain(None);
        assert!(any_order.goes_on(["b", "a"].into_iter(), Some("t")).is_ok());
        assert!(any_order.goes_on(["c"].into_iter(), Some("t")).is_err());
        let mut chain = chain(Some(String::new()));
        assert!(chain.goes_on(["a", "a", "b"].into_iter(), Some("t")).is_ok());
        assert!(
            chain.goes_on(["b", "c"].into_iter(), Some("u")).is_ok(),
            "versions of one key may span pages"
        );
        assert!(chain.goes_on(["d"].into_iter(), Some("t")).is_err());
        assert!(chain.goes_on(["c"].into_iter(), None).is_err());
    }
}
