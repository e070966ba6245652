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
    let url = url(store.provider(), &ObjectId::new(&list.bucket, &list.prefix));
    let (store, at) = (store.clone(), url.clone());
    tokio::spawn(tally::scope(tally::current(), async move {
        let ended = fetch(&store, list, &at, &out).await;
        // Sending fails only if the reader is gone.
        let _ = out.send(ended.map(|()| None)).await;
    }));
    ListingStream::filled(arrived, url)
}

async fn fetch(
    store: &Store,
    mut list: List,
    url: &str,
    out: &mpsc::Sender<Result<Option<EntryBatch>, Error>>,
) -> Result<(), Error> {
    let mut chain = PageChain::default();
    loop {
        let page = store.list(&list).await?;
        chain
            .goes_on(page.objects.iter().map(|object| object.id.key.as_str()), page.next.as_deref())
            .map_err(|why| Error::disorder(url, why))?;
        let Page { objects, prefixes, next } = page;
        let arrived = EntryBatch { objects, prefixes, ends_page: true, is_unsorted: false };
        if out.send(Ok(Some(arrived))).await.is_err() {
            return Ok(());
        }
        match next {
            Some(next) => list.token = Some(next),
            None => return Ok(()),
        }
    }
}

/// The state of a chain of pages. It detects a chain that never ends or loses entries.
#[derive(Debug, Default)]
struct PageChain {
    last: String,
    tokens: HashSet<String>,
}

impl PageChain {
    fn goes_on<'a>(&mut self, keys: impl Iterator<Item = &'a str>, next: Option<&str>) -> Result<(), String> {
        for key in keys {
            if key < self.last.as_str() {
                return Err(format!("the listing goes backwards, from {:?} to {key:?}", self.last));
            }
            if key != self.last {
                key.clone_into(&mut self.last);
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
        let mut chain = PageChain::default();
        assert!(chain.goes_on(["a", "a", "b"].into_iter(), Some("t")).is_ok());
        assert!(
            chain.goes_on(["b", "c"].into_iter(), Some("u")).is_ok(),
            "versions of one key may span pages"
        );
        assert!(chain.goes_on(["d"].into_iter(), Some("t")).is_err());
        assert!(chain.goes_on(["c"].into_iter(), None).is_err());
    }
}
