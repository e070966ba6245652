//! Removes a single object, or the objects of a stream of keys.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{self, BoxStream, Stream, StreamExt as _};
use laneway_store::{Condition, Deletion, Version};

use super::call::{callable, within};
use crate::{Bucket, Error};

/// A call that removes an object, made by [`Bucket::delete`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct Delete {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    key: String,
    condition: Condition,
}

impl Bucket {
    /// Removes an object. If it doesn't exist, GCS reports an error and S3 reports success.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// bucket.put("notes.txt", "one line\n").await?;
    /// bucket.delete("notes.txt").await?;
    /// assert!(bucket.head("notes.txt").await.is_err_and(|error| error.is_not_found()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delete(&self, key: &str) -> Delete {
        let condition = Condition::None;
        Delete { bucket: self.clone(), deadline: None, key: key.to_owned(), condition }
    }

    /// Removes the objects whose keys a stream yields. Laneway sends full batches (1000 keys per request on
    /// S3, 100 on GCS), several of them at the same time. The returned stream yields each key with its
    /// outcome, in the order of the caller's keys. Laneway removes objects only as fast as the caller takes
    /// outcomes. Dropping the returned stream ends the removals.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// use futures_util::{StreamExt as _, stream};
    ///
    /// bucket.put("a", "").await?;
    /// let mut removed = bucket.delete_many(stream::iter(["a".to_owned()]));
    /// while let Some((key, outcome)) = removed.next().await {
    ///     outcome.inspect_err(|error| eprintln!("{key}: {error}"))?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delete_many<K>(&self, keys: K) -> DeleteMany
    where
        K: Stream<Item = String> + Send + 'static,
    {
        DeleteMany(outcomes(self.clone(), keys).boxed())
    }
}

callable!(Delete, ());

impl Delete {
    /// Removes the object only if this is its current version. If the object was replaced, it stays and the
    /// call fails.
    pub fn if_version(mut self, version: &Version) -> Self {
        self.condition = Condition::Matches(version.clone());
        self
    }

    async fn run(self) -> Result<(), Error> {
        let (store, id) = (self.bucket.store()?, self.bucket.id(&self.key)?);
        within(self.deadline, &self.bucket.url_of(&self.key), async {
            Ok(store.delete(&id, &self.condition).await?)
        })
        .await
    }
}

/// The outcomes of [`Bucket::delete_many`].
#[must_use = "nothing is removed until the outcomes are taken"]
pub struct DeleteMany(BoxStream<'static, (String, Result<(), Error>)>);

impl DeleteMany {
    /// Returns the next key and its outcome, or `None` at the end. Blocks the thread, and polls the caller's
    /// stream of keys on this thread. Don't call it on a thread that runs async tasks.
    pub fn next_blocking(&mut self) -> Option<(String, Result<(), Error>)> {
        pollster::block_on(self.0.next())
    }
}

impl Stream for DeleteMany {
    /// A key as the caller's stream yielded it, and its outcome.
    type Item = (String, Result<(), Error>);

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(context)
    }
}

impl fmt::Debug for DeleteMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeleteMany").finish_non_exhaustive()
    }
}

/// The maximum number of keys in all concurrent batches together. Stores count each key of a batch as a
/// request, as Google documents for [its batches]. S3 allows 3500 writes per second for each prefix, and has
/// throttled [fifty concurrent DeleteObjects][icechunk] of 1000 keys each. If a store throttles, Laneway
/// slows down.
///
/// [its batches]: https://cloud.google.com/storage/docs/batch
/// [icechunk]: https://github.com/earth-mover/icechunk/pull/2408
const KEYS_AT_ONCE: usize = 5000;

fn outcomes(
    bucket: Bucket,
    keys: impl Stream<Item = String> + Send + 'static,
) -> impl Stream<Item = (String, Result<(), Error>)> + Send {
    // `remove` fails for the whole batch if the store can't be used or the engine has ended. Errors can't be
    // cloned, so each key then gets a new error: the store's, or else that the call was cancelled.
    let batch = bucket.store().map_or(1, |store| store.delete_many_max());
    let remove = move |keys: Vec<String>| {
        let bucket = bucket.clone();
        async move {
            let results = remove(bucket.clone(), keys.clone()).await.unwrap_or_else(|lost| {
                let cause = |_| Err(bucket.store().err().unwrap_or_else(|| Error::cancelled(bucket.url())));
                drop(lost);
                keys.iter().map(cause).collect()
            });
            stream::iter(keys.into_iter().zip(results))
        }
    };
    keys.chunks(batch).map(remove).buffered((KEYS_AT_ONCE / batch).max(1)).flatten()
}

/// Removes a batch of keys, and returns an outcome for each of them.
///
/// # Errors
/// Errors that concern no single key: a store that can't be made from the settings, or an engine that has
/// ended.
async fn remove(bucket: Bucket, keys: Vec<String>) -> Result<Vec<Result<(), Error>>, Error> {
    let client = bucket.client().clone();
    let batch = async move {
        let store = bucket.store()?;
        let named: Vec<Result<Deletion, Error>> =
            keys.iter().map(|key| Ok(Deletion::any(bucket.id(key)?.key))).collect();
        let objects: Vec<Deletion> = named.iter().filter_map(|one| one.as_ref().ok().cloned()).collect();
        let mut results = match objects.is_empty() {
            true => Vec::new(),
            false => store.delete_many(bucket.name(), &objects).await,
        }
        .into_iter();
        let outcome = |one: Result<Deletion, Error>| {
            let Deletion { key, .. } = one?;
            // The store returns one result for each key, so the results don't run out.
            results.next().map_or_else(|| Err(Error::cancelled(key)), |result| Ok(result?))
        };
        Ok(named.into_iter().map(outcome).collect())
    };
    client.worker()?.run(batch).await
}
