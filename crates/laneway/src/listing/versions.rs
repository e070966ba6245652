//! Lists all versions, one page after the other. A page may end between two versions of a key, so the pages
//! can't be requested in parallel.

use std::collections::HashSet;

use laneway_lanes::tally;
use laneway_store::{List, ObjectId, Page, Store};
use tokio::sync::mpsc;

use super::arriving::{EntryBatch, ListingStream};
use crate::Error;
use crate::location::url;

/// The maximum number of pages that may wait for their reader.
const WAITING_MAX: usize = 2;

pub(super) fn chained(store: &Store, list: List) -> ListingStream {
    let (out, arrived) = mpsc::channel(WAITING_MAX);
    let mut chain = PageChain::in_order(store, list);
    let (store, url) = (store.clone(), chain.url.clone());
    tokio::spawn(tally::scope(tally::current(), async move {
        let ended = fetch(&store, &mut chain, &out).await;
        // Sending fails only if the reader is gone.
        let _ = out.send(ended.map(|()| None)).await;
    }));
    ListingStream::filled(arrived, url)
}

async fn fetch(
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
    use super::*;

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
