//! Listings of a bucket.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use laneway_store::ObjectMeta;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::engine::fork::OfProcess;
use crate::engine::runtime::Task;
use crate::listing::{self, KeyOrder, PageChain};
use crate::{Bucket, Error};

/// The maximum number of pages whose entries wait for the caller. While that many pages wait, Laneway passes
/// on no entries of further pages, although it may already have requested them.
const PAGES_WAITING_MAX: usize = 2;

/// A stream of the objects below a prefix, made by [`Bucket::list`]. The stream yields objects while pages
/// arrive. It sends no request before it is polled, and none after it is dropped. The stream ends after an
/// error.
#[derive(Debug)]
#[must_use = "nothing is listed until the stream is read"]
pub struct List(BucketListing);

/// A stream of the entries directly below a prefix, made by [`Bucket::list_dir`]. It works like [`List`].
#[derive(Debug)]
#[must_use = "nothing is listed until the stream is read"]
pub struct ListDir(BucketListing);

/// An entry of [`ListDir`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Listed {
    /// An object.
    Object(Box<ObjectMeta>),
    /// The common prefix of keys on deeper levels. It ends in a slash, and can be passed to
    /// [`Bucket::list_dir`].
    Prefix(String),
}

impl Bucket {
    /// Lists the objects whose keys begin with `prefix`, in the byte order of their keys. Directory buckets
    /// of S3, and a few stores such as Storj, list them in no particular order. The returned keys don't
    /// include the bucket's own prefix, so they can be passed to the other methods.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// use futures_util::TryStreamExt as _;
    ///
    /// bucket.put("logs/1", "").await?;
    /// bucket.put("logs/2", "").await?;
    /// let mut logs = bucket.list("logs/");
    /// while let Some(meta) = logs.try_next().await? {
    ///     println!("{:>12} {}", meta.size, meta.id.key);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn list(&self, prefix: &str) -> List {
        List(BucketListing::new(self, prefix, None))
    }

    /// Lists the entries directly below `prefix`, which usually ends in a slash. The entries are the objects
    /// on this level, and the common prefixes of objects on deeper levels. The two kinds are mixed in no
    /// particular order.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// use futures_util::TryStreamExt as _;
    ///
    /// bucket.put("logs/1", "").await?;
    /// let below: Vec<_> = bucket.list_dir("").try_collect().await?;
    /// assert_eq!(below, [laneway::Listed::Prefix("logs/".to_owned())]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn list_dir(&self, prefix: &str) -> ListDir {
        ListDir(BucketListing::new(self, prefix, Some("/".to_owned())))
    }
}

impl List {
    /// Lists only keys that sort after this one. The key need not exist.
    pub fn start_after(mut self, key: &str) -> Self {
        self.0.start_after(key);
        self
    }

    /// Lists at most this many objects. Laneway requests no more from the store than needed, one page at a
    /// time.
    pub fn limit(mut self, objects: u64) -> Self {
        self.0.limit = Some(objects);
        self
    }

    /// Returns the next object, or `None` at the end. Blocks the thread. Don't call it on a thread that runs
    /// async tasks.
    pub fn next_blocking(&mut self) -> Option<Result<ObjectMeta, Error>> {
        loop {
            match self.0.next_blocking()? {
                Ok(Listed::Object(meta)) => return Some(Ok(*meta)),
                Ok(Listed::Prefix(_)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Stream for List {
    type Item = Result<ObjectMeta, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match ready!(self.0.poll_entry(context)) {
                Some(Ok(Listed::Object(meta))) => return Poll::Ready(Some(Ok(*meta))),
                // This doesn't happen, because a listing without a delimiter has no prefixes.
                Some(Ok(Listed::Prefix(_))) => {}
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl ListDir {
    /// Lists only keys and prefixes that sort after this key. The key need not exist.
    pub fn start_after(mut self, key: &str) -> Self {
        self.0.start_after(key);
        self
    }

    /// Lists at most this many entries. Laneway requests no more from the store than needed, one page at a
    /// time.
    pub fn limit(mut self, entries: u64) -> Self {
        self.0.limit = Some(entries);
        self
    }

    /// Returns the next entry, or `None` at the end. Blocks the thread. Don't call it on a thread that runs
    /// async tasks.
    pub fn next_blocking(&mut self) -> Option<Result<Listed, Error>> {
        self.0.next_blocking()
    }
}

impl Stream for ListDir {
    type Item = Result<Listed, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_entry(context)
    }
}

/// The pages of a listing. The engine's thread fetches them before the caller asks for them.
#[derive(Debug)]
struct BucketListing {
    bucket: Bucket,
    list: laneway_store::List,
    arriving: Option<OfProcess<EntryReceiver>>,
    entries: VecDeque<Listed>,
    limit: Option<u64>,
    is_over: bool,
}

#[derive(Debug)]
struct EntryReceiver {
    batches: mpsc::UnboundedReceiver<ListMessage>,
    /// Dropping it ends the listing.
    _task: Option<Task>,
}

/// A message from the task that requests the pages.
#[derive(Debug)]
enum ListMessage {
    /// Entries as they arrive. The last entries of a page carry the page's permit. When the caller takes
    /// these entries, the permit becomes free for a further page.
    Entries(Vec<Listed>, Option<OwnedSemaphorePermit>),
    Failed(Error),
    Over,
}

impl BucketListing {
    fn new(bucket: &Bucket, prefix: &str, delimiter: Option<String>) -> Self {
        let prefix = format!("{}{prefix}", bucket.prefix());
        let list = laneway_store::List { delimiter, ..laneway_store::List::new(bucket.name(), prefix) };
        Self {
            bucket: bucket.clone(),
            list,
            arriving: None,
            entries: VecDeque::new(),
            limit: None,
            is_over: false,
        }
    }

    fn start_after(&mut self, key: &str) {
        self.list.start_after = Some(format!("{}{key}", self.bucket.prefix()));
    }

    fn poll_entry(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Listed, Error>>> {
        loop {
            if let Some(entry) = self.entries.pop_front() {
                return Poll::Ready(Some(Ok(entry)));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            let some = match self.arriving() {
                Some(arriving) => ready!(arriving.batches.poll_recv(context)),
                None => Some(self.forked()),
            };
            if let Some(error) = self.take(some) {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }

    fn next_blocking(&mut self) -> Option<Result<Listed, Error>> {
        loop {
            if let Some(entry) = self.entries.pop_front() {
                return Some(Ok(entry));
            }
            if self.is_over {
                return None;
            }
            let some = match self.arriving() {
                Some(arriving) => arriving.batches.blocking_recv(),
                None => Some(self.forked()),
            };
            if let Some(error) = self.take(some) {
                return Some(Err(error));
            }
        }
    }

    /// Takes a batch from the channel. Returns the error if the listing ends with one.
    fn take(&mut self, some: Option<ListMessage>) -> Option<Error> {
        match some {
            Some(ListMessage::Entries(entries, _page)) => self.entries.extend(entries),
            Some(ListMessage::Failed(error)) => {
                self.is_over = true;
                return Some(error);
            }
            Some(ListMessage::Over) => self.is_over = true,
            // The channel closed without `Over`, so the task has died and the listing is incomplete.
            None => {
                self.is_over = true;
                return Some(Error::cancelled(self.bucket.url()));
            }
        }
        None
    }

    /// Returns the error for a listing that the parent of this process began before a `fork`.
    fn forked(&self) -> ListMessage {
        ListMessage::Failed(Error::forked(self.bucket.url()))
    }

    /// Returns the channel of the entries. Starts the listing at the first call. Returns `None` if the parent
    /// of this process began the listing before a `fork`.
    fn arriving(&mut self) -> Option<&mut EntryReceiver> {
        let (bucket, list, limit) = (&self.bucket, &self.list, self.limit);
        let begin = || {
            let (out, batches) = mpsc::unbounded_channel();
            let task = match bucket.client().worker() {
                Ok(worker) => Some(match limit {
                    None => worker.task(fill(bucket.clone(), list.clone(), out)),
                    Some(limit) => worker.task(few(bucket.clone(), list.clone(), limit, out)),
                }),
                Err(error) => {
                    // This can't fail, because the receiver still exists.
                    drop(out.send(ListMessage::Failed(error)));
                    None
                }
            };
            OfProcess::new(EntryReceiver { batches, _task: task })
        };
        self.arriving.get_or_insert_with(begin).get_mut()
    }
}

async fn fill(bucket: Bucket, list: laneway_store::List, out: mpsc::UnboundedSender<ListMessage>) {
    let store = match bucket.store() {
        Ok(store) => store,
        Err(error) => return drop(out.send(ListMessage::Failed(error))),
    };
    let pages = Arc::new(Semaphore::new(PAGES_WAITING_MAX));
    let mut listing = listing::arriving(&store, list, KeyOrder::Keys);
    loop {
        // This can't fail, because the semaphore is never closed.
        let Ok(permit) = Arc::clone(&pages).acquire_owned().await else { return };
        let mut permit = Some(permit);
        while permit.is_some() {
            let arrived = match listing.next().await {
                Some(Ok(arrived)) => arrived,
                Some(Err(error)) => return drop(out.send(ListMessage::Failed(error))),
                None => return drop(out.send(ListMessage::Over)),
            };
            let entries = entries(&bucket, arrived.prefixes, arrived.objects);
            let page = permit.take_if(|_| arrived.ends_page);
            if out.send(ListMessage::Entries(entries, page)).is_err() {
                return;
            }
        }
    }
}

/// Lists the first `left` entries, one page after the other, so that it requests no page that isn't needed.
async fn few(
    bucket: Bucket,
    list: laneway_store::List,
    mut left: u64,
    out: mpsc::UnboundedSender<ListMessage>,
) {
    let listed = async {
        let store = bucket.store()?;
        let mut pages = PageChain::new(&store, list);
        while left > 0 {
            pages.list.max = Some(page_max(store.capabilities().lists_start_key, &pages.list, left));
            let Some(page) = pages.next(&store).await? else { break };
            let mut entries = entries(&bucket, page.prefixes, page.objects);
            entries.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            left -= entries.len() as u64;
            if out.send(ListMessage::Entries(entries, None)).is_err() {
                break;
            }
        }
        Ok::<_, Error>(())
    };
    let end = listed.await.map_or_else(ListMessage::Failed, |()| ListMessage::Over);
    // Ignore an error: the caller may have dropped the listing.
    drop(out.send(end));
}

/// The maximum number of entries on a page, both on GCS and on S3.
const PAGE_MAX: u64 = 1000;

/// Returns the number of entries to request for a page if the caller wants `wanted` more.
fn page_max(lists_start_key: bool, list: &laneway_store::List, wanted: u64) -> u32 {
    // If the store counts the key `start_after` as an entry of the first page, request one entry more,
    // because the listing drops this key.
    let begins_before = lists_start_key && list.start_after.is_some() && list.token.is_none();
    wanted.saturating_add(begins_before.into()).min(PAGE_MAX) as u32
}

/// Returns the entries of a page, with keys relative to the bucket's prefix.
fn entries(bucket: &Bucket, prefixes: Vec<String>, objects: Vec<ObjectMeta>) -> Vec<Listed> {
    let below =
        |prefix: String| Listed::Prefix(prefix.strip_prefix(bucket.prefix()).unwrap_or(&prefix).to_owned());
    let relative = |mut meta: ObjectMeta| {
        bucket.relative(&mut meta);
        Listed::Object(Box::new(meta))
    };
    prefixes.into_iter().map(below).chain(objects.into_iter().map(relative)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_entries_are_asked_for_than_are_wanted_and_may_be_left_out() {
        let list = laneway_store::List::new("b", "p/");
        let after = laneway_store::List { start_after: Some("p/k".to_owned()), ..list.clone() };
        let next = laneway_store::List { token: Some("t".to_owned()), ..after.clone() };
        for (lists_start_key, list, max) in
            [(false, &list, 7), (false, &after, 7), (true, &list, 7), (true, &after, 8), (true, &next, 7)]
        {
            assert_eq!(page_max(lists_start_key, list, 7), max, "{lists_start_key} {list:?}");
            assert_eq!(page_max(lists_start_key, list, u64::MAX), 1000);
        }
    }
}
