//! Objects that a source means, page by page as the store lists them.

use laneway_lanes::tally;
use laneway_store::{List, ObjectId, ObjectMeta, Page, Store};
use tokio::sync::mpsc;

use crate::Error;
use crate::mapping::name_of_key;
use crate::pattern::Pattern;

/// Pages that wait for their reader; one more is being fetched meanwhile.
const PAGES_WAITING_MAX: usize = 1;

/// An object that a source means.
#[derive(Clone, Debug)]
pub(crate) struct SourceObject {
    pub(crate) id: ObjectId,
    /// What the listing tells of it; `None` where the user named it and nothing was asked yet.
    pub(crate) meta: Option<Box<ObjectMeta>>,
    /// What it is called at a destination, or below it.
    pub(crate) name: String,
    /// Whether it is part of a tree, so that [`name`](Self::name) is below the tree's own name.
    pub(crate) in_tree: bool,
}

/// A source in a store.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) bucket: String,
    /// A key, a prefix or a pattern.
    pub(crate) key: String,
    pub(crate) recursive: bool,
}

/// Begins to fetch pages, which count where the listing does.
fn spawn(pages: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(tally::scope(tally::current(), pages));
}

/// All pages of a listing, the next one fetched while one is looked at. Dropped, it ends the listing.
pub(crate) struct Pages {
    pages: mpsc::Receiver<Result<Page, laneway_store::Error>>,
    url: String,
    is_over: bool,
}

impl Pages {
    /// The next page. After an error nothing follows.
    pub(crate) async fn next(&mut self) -> Option<Result<Page, Error>> {
        if self.is_over {
            return None;
        }
        // Where the pages end before the last one, whoever fetched them is gone.
        let page = match self.pages.recv().await {
            Some(page) => page.map_err(Error::from),
            None => Err(Error::cancelled(&self.url)),
        };
        self.is_over = page.as_ref().map_or(true, |page| page.next.is_none());
        Some(page)
    }
}

/// Begins to fetch the pages of a listing.
pub(crate) fn pages(store: &Store, mut list: List) -> Pages {
    let (out, pages) = mpsc::channel(PAGES_WAITING_MAX);
    let pages = Pages { pages, url: url_of(store, &list), is_over: false };
    let store = store.clone();
    spawn(async move {
        loop {
            let page = tokio::select! {
                page = store.list(&list) => page,
                () = out.closed() => return,
            };
            let next = page.as_ref().ok().and_then(|page| page.next.clone());
            if out.send(page).await.is_err() || next.is_none() {
                return;
            }
            list.token = next;
        }
    });
    pages
}

fn url_of(store: &Store, list: &List) -> String {
    format!("{}://{}/{}", store.scheme(), list.bucket, list.prefix)
}

/// The objects of a page, some at a time as they arrive.
type Arriving = mpsc::UnboundedReceiver<Result<Arrived, laneway_store::Error>>;

/// What arrives of a listing at a time.
struct Arrived {
    objects: Vec<ObjectMeta>,
    /// Whether nothing follows: where the channels end without that, whoever filled them is gone.
    is_last: bool,
}

/// The objects of all pages of a listing as they arrive, the next page asked for while one is looked at. Dropping the
/// receiver ends it.
fn arriving(store: &Store, mut list: List) -> mpsc::Receiver<Arriving> {
    let (out, pages) = mpsc::channel(PAGES_WAITING_MAX);
    let store = store.clone();
    spawn(async move {
        loop {
            // Unbounded, but a page holds a thousand.
            let (objects, page) = mpsc::unbounded_channel();
            if out.send(page).await.is_err() {
                return;
            }
            let hand_on = |arrived| drop(objects.send(Ok(Arrived { objects: arrived, is_last: false })));
            let page = tokio::select! {
                page = store.list_arriving(&list, hand_on) => page,
                () = out.closed() => return,
            };
            let next = page.as_ref().ok().and_then(|page| page.next.clone());
            // Where nobody reads the page any more, nobody asks for the next one.
            drop(objects.send(page.map(|page| Arrived { objects: page.objects, is_last: next.is_none() })));
            if next.is_none() {
                return;
            }
            list.token = next;
        }
    });
    pages
}

impl Source {
    /// Whether one listing of it may name many objects.
    pub(crate) fn is_listed(&self) -> bool {
        self.recursive || self.key.is_empty() || self.pattern().is_some()
    }

    /// Begins to look for the objects that the source means.
    pub(crate) fn objects(&self, store: &Store) -> Objects {
        if !self.is_listed() {
            return Objects { source: self.clone(), state: State::Named, scheme: store.scheme() };
        }
        let pattern = self.pattern();
        let prefix = match &pattern {
            Some(pattern) => pattern.literal_prefix().to_owned(),
            None => folder_prefix(&self.key),
        };
        let mut list = List::new(&self.bucket, &prefix);
        if !self.recursive && pattern.as_ref().is_some_and(Pattern::is_one_level) {
            list.delimiter = Some("/".to_owned());
        }
        let url = url_of(store, &list);
        let pages = Listed { pages: arriving(store, list), page: None, url, is_over: false };
        let listed = Matched { pages, pattern, prefix_len: prefix.len(), is_empty: true };
        Objects { source: self.clone(), state: State::Listed(listed), scheme: store.scheme() }
    }

    fn pattern(&self) -> Option<Pattern> {
        Pattern::parse(self.key.strip_suffix('/').unwrap_or(&self.key))
    }

    fn itself(&self) -> SourceObject {
        SourceObject {
            name: name_of_key(&self.bucket, &self.key).to_owned(),
            id: ObjectId::new(&self.bucket, &self.key),
            meta: None,
            in_tree: false,
        }
    }

    fn matched(&self, pattern: &Pattern, meta: ObjectMeta) -> Option<SourceObject> {
        let key = &meta.id.key;
        let name = match pattern.matching_folder(key).filter(|_| self.recursive) {
            // A matching folder comes with its name, as if it had been named.
            Some(folder) => key[folder.rfind('/').map_or(0, |slash| slash + 1)..].to_owned(),
            // A slash at its end says that a folder is meant.
            None if !self.key.ends_with('/') && pattern.matches(key) => {
                name_of_key(&self.bucket, key).to_owned()
            }
            None => return None,
        };
        Some(SourceObject { id: meta.id.clone(), meta: Some(Box::new(meta)), name, in_tree: false })
    }
}

/// The objects that a source means, page by page.
pub(crate) struct Objects {
    source: Source,
    state: State,
    scheme: &'static str,
}

enum State {
    Named,
    Listed(Matched),
    Ended,
}

/// What of a listing is meant.
struct Matched {
    pages: Listed,
    pattern: Option<Pattern>,
    prefix_len: usize,
    is_empty: bool,
}

/// All objects of a listing as they arrive.
struct Listed {
    pages: mpsc::Receiver<Arriving>,
    page: Option<Arriving>,
    url: String,
    is_over: bool,
}

impl Listed {
    /// The next objects of this page or of the one after it. After an error nothing follows.
    async fn arrived(&mut self) -> Option<Result<Vec<ObjectMeta>, Error>> {
        while !self.is_over {
            if let Some(page) = &mut self.page
                && let Some(arrived) = page.recv().await
            {
                self.is_over = arrived.as_ref().map_or(true, |arrived| arrived.is_last);
                return Some(arrived.map(|arrived| arrived.objects).map_err(Error::from));
            }
            self.page = self.pages.recv().await;
            if self.page.is_none() {
                self.is_over = true;
                return Some(Err(Error::cancelled(&self.url)));
            }
        }
        None
    }
}

impl Objects {
    /// The next objects; `None` at the end. A name that matches nothing is handed on as it stands, so that asking
    /// for it gives the store's own answer.
    ///
    /// # Errors
    /// What the listing says, or that nothing lies under a prefix.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<SourceObject>>, Error> {
        let Self { source, state, scheme } = self;
        if let State::Listed(listed) = state {
            while let Some(objects) = listed.pages.arrived().await {
                let (pattern, prefix_len) = (&listed.pattern, listed.prefix_len);
                let objects = objects?.into_iter().filter_map(|meta| match pattern {
                    Some(pattern) => source.matched(pattern, meta),
                    None => Some(in_tree(meta, prefix_len)),
                });
                let objects: Vec<_> = objects.collect();
                if !objects.is_empty() {
                    listed.is_empty = false;
                    return Ok(Some(objects));
                }
            }
        }
        let is_unanswered = match state {
            State::Named => true,
            State::Listed(listed) => listed.is_empty && !source.key.is_empty(),
            State::Ended => false,
        };
        *state = State::Ended;
        if !is_unanswered {
            return Ok(None);
        }
        if source.recursive && source.key.ends_with('/') {
            let target = format!("{scheme}://{}/{}", source.bucket, source.key);
            return Err(Error::not_found(target, "no object lies under this prefix"));
        }
        Ok(Some(vec![source.itself()]))
    }
}

/// The prefix of everything inside the folder `key`.
pub(crate) fn folder_prefix(key: &str) -> String {
    if key.is_empty() || key.ends_with('/') { key.to_owned() } else { format!("{key}/") }
}

fn in_tree(meta: ObjectMeta, prefix_len: usize) -> SourceObject {
    let name = meta.id.key.get(prefix_len..).unwrap_or_default().to_owned();
    SourceObject { id: meta.id.clone(), meta: Some(Box::new(meta)), name, in_tree: true }
}

#[cfg(test)]
mod tests {
    use pollster::block_on;

    use super::*;

    fn matched(pattern: &str, recursive: bool, key: &str) -> Option<String> {
        let source = Source { bucket: "b".into(), key: pattern.into(), recursive };
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

    fn page(next: Option<&str>) -> Page {
        Page { objects: vec![object()], prefixes: Vec::new(), next: next.map(str::to_owned) }
    }

    fn object() -> ObjectMeta {
        ObjectMeta::new(ObjectId::new("b", "k"), 0)
    }

    #[test]
    fn pages_that_nobody_fetches_any_more_are_an_error_and_no_end() {
        let begun = || {
            let (out, pages) = mpsc::channel(4);
            (out, Pages { pages, url: "s3://b/k".to_owned(), is_over: false })
        };
        let (out, mut lost) = begun();
        out.try_send(Ok(page(Some("more")))).unwrap();
        drop(out);
        assert!(block_on(lost.next()).unwrap().is_ok());
        let error = block_on(lost.next()).unwrap().unwrap_err();
        assert!(error.is_cancelled() && error.url() == Some("s3://b/k"), "{error}");
        assert!(block_on(lost.next()).is_none());
        let (out, mut whole) = begun();
        out.try_send(Ok(page(None))).unwrap();
        drop(out);
        assert!(block_on(whole.next()).unwrap().is_ok() && block_on(whole.next()).is_none());
    }

    #[test]
    fn a_page_that_nobody_goes_on_with_is_an_error_and_no_end() {
        let arrived = |is_last| Ok(Arrived { objects: vec![object()], is_last });
        let begun = |is_last| {
            let (out, pages) = mpsc::channel(1);
            let (objects, page) = mpsc::unbounded_channel();
            assert!(objects.send(arrived(false)).is_ok() && objects.send(arrived(is_last)).is_ok());
            assert!(out.try_send(page).is_ok());
            Listed { pages, page: None, url: "s3://b/k".to_owned(), is_over: false }
        };
        let mut lost = begun(false);
        for _ in 0..2 {
            assert_eq!(block_on(lost.arrived()).unwrap().unwrap().len(), 1);
        }
        let error = block_on(lost.arrived()).unwrap().unwrap_err();
        assert!(error.is_cancelled() && error.url() == Some("s3://b/k"), "{error}");
        assert!(block_on(lost.arrived()).is_none());
        let mut whole = begun(true);
        assert!((0..2).all(|_| block_on(whole.arrived()).is_some_and(|arrived| arrived.is_ok())));
        assert!(block_on(whole.arrived()).is_none());
    }

    #[test]
    fn a_folder_prefix_ends_in_exactly_one_slash() {
        assert_eq!([folder_prefix(""), folder_prefix("a"), folder_prefix("a/")], ["", "a/", "a/"]);
    }
}
