//! [`Bucket`], which stands for a bucket or the part of it below a prefix.

use std::fmt;
use std::sync::Arc;

use laneway_lanes::Tally;
use laneway_store::{Capabilities, ObjectId, ObjectMeta, Provider, Store};

use crate::engine::state::no_dialect;
use crate::location::url;
use crate::{Client, Error, Location};

/// A bucket, or the part of a bucket below a prefix. The caller passes keys without the prefix, and Laneway
/// puts the prefix before them. Clones are cheap, because they share their content.
///
/// Laneway sends keys exactly as they are given. It adds no slash between prefix and key, so a prefix that
/// stands for a folder must end in a slash.
#[derive(Clone)]
pub struct Bucket(Arc<BucketCore>);

struct BucketCore {
    client: Client,
    provider: Provider,
    capabilities: Capabilities,
    bucket: String,
    prefix: String,
}

impl Client {
    /// Returns the bucket in a URL such as `gs://lake`, or the part of a bucket below the prefix in a URL
    /// such as `s3://lake/warehouse/`. Sends no request.
    ///
    /// # Errors
    /// If the text isn't a URL of a store, or names no bucket.
    pub fn bucket(&self, at: &str) -> Result<Bucket, Error> {
        match at.parse()? {
            Location::Object { provider, bucket, key } if !bucket.is_empty() => {
                let capabilities = self.capabilities(provider).ok_or_else(|| no_dialect(provider))?.clone();
                Ok(Bucket(Arc::new(BucketCore {
                    client: self.clone(),
                    provider,
                    capabilities,
                    bucket,
                    prefix: key,
                })))
            }
            _ => Err(Error::usage(
                at,
                "names no bucket; use a URL such as gs://BUCKET, s3://BUCKET or s3://BUCKET/PREFIX/",
            )),
        }
    }
}

impl Bucket {
    /// Returns the bucket's URL, with the prefix.
    pub fn url(&self) -> String {
        self.url_of("")
    }

    /// Returns the bucket's name, without scheme and prefix.
    pub fn name(&self) -> &str {
        &self.0.bucket
    }

    /// Returns the prefix that Laneway puts before every key. The prefix is empty for the whole bucket.
    pub fn prefix(&self) -> &str {
        &self.0.prefix
    }

    /// Returns the provider whose protocol the store speaks.
    pub fn provider(&self) -> Provider {
        self.0.provider
    }

    /// Returns the features that the bucket's store supports.
    pub fn capabilities(&self) -> &Capabilities {
        &self.0.capabilities
    }

    /// Returns the part of this bucket below a longer prefix: `prefix` is appended to this bucket's own.
    #[must_use]
    pub fn below(&self, prefix: &str) -> Self {
        let BucketCore { client, provider, capabilities, bucket, .. } = &*self.0;
        let prefix = format!("{}{prefix}", self.0.prefix);
        Self(Arc::new(BucketCore {
            client: client.clone(),
            provider: *provider,
            capabilities: capabilities.clone(),
            bucket: bucket.clone(),
            prefix,
        }))
    }

    /// Returns the client whose engine carries out this bucket's calls.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// Returns the same bucket with a tally. Laneway adds the requests and bytes of the returned bucket's
    /// calls to `tally`, and to no earlier tally. Several calls and jobs can share a tally. For example, a
    /// tally can count a single call, all calls for one user, or a table scan.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// let tally = laneway::Tally::default();
    /// bucket.counted(&tally).put("notes.txt", "one line\n").await?;
    /// assert_eq!((tally.requests(), tally.retries(), tally.bytes_sent()), (1, 0, 9));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A [watched](Tally::watched) tally reports progress:
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// let moved = Arc::new(AtomicU64::new(0));
    /// let bar = Arc::clone(&moved);
    /// let progress = laneway::Tally::watched(move |bytes| drop(bar.fetch_max(bytes, Ordering::Relaxed)));
    /// bucket.counted(&progress).put("large", vec![7; 1 << 20]).await?;
    /// assert_eq!(moved.load(Ordering::Relaxed), 1 << 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn counted(&self, tally: &Tally) -> Self {
        let BucketCore { client, provider, capabilities, bucket, prefix } = &*self.0;
        let (client, bucket, prefix) = (client.counted(tally), bucket.clone(), prefix.clone());
        Self(Arc::new(BucketCore {
            client,
            provider: *provider,
            capabilities: capabilities.clone(),
            bucket,
            prefix,
        }))
    }

    pub(super) fn store(&self) -> Result<Store, Error> {
        self.0.client.state()?.store(self.0.provider).cloned()
    }

    /// Returns the id of the object with this key below the prefix.
    ///
    /// # Errors
    /// If the key is empty.
    pub(super) fn id(&self, key: &str) -> Result<ObjectId, Error> {
        match self.0.prefix.is_empty() && key.is_empty() {
            true => Err(Error::usage(self.url(), "the key of an object can't be empty")),
            false => Ok(ObjectId::new(&self.0.bucket, format!("{}{key}", self.0.prefix))),
        }
    }

    /// Returns the bucket's name, for calls that concern the whole bucket.
    ///
    /// # Errors
    /// If this is only the part of a bucket below a prefix.
    pub(super) fn whole(&self) -> Result<&str, Error> {
        match self.0.prefix.is_empty() {
            true => Ok(&self.0.bucket),
            false => Err(Error::usage(self.url(), "this URL has a prefix; name the whole bucket")),
        }
    }

    /// Removes the bucket's prefix from the key in an object's metadata, because callers use keys without it.
    pub(super) fn relative(&self, meta: &mut ObjectMeta) {
        let prefix = self.0.prefix.len();
        if meta.id.key.starts_with(&self.0.prefix) {
            meta.id.key.drain(..prefix);
        }
    }

    pub(super) fn url_of(&self, key: &str) -> String {
        let BucketCore { provider, bucket, prefix, .. } = &*self.0;
        url(*provider, &ObjectId::new(bucket, format!("{prefix}{key}")))
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bucket").field(&self.url()).finish()
    }
}
