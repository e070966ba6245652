//! [`Bucket`], which stands for a bucket or the part of it below a prefix, and the calls that create a bucket,
//! remove it, or sign a URL of an object.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use laneway_lanes::Tally;
use laneway_store::{
    Capabilities, Method, NewBucket, ObjectId, ObjectMeta, Provider, SignOptions, SignedUrl, Store,
};

use super::call::{callable, within};
use crate::engine::settings::no_dialect;
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

/// A call that creates a bucket, made by [`Bucket::create`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct CreateBucket {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    new: NewBucket,
}

impl Bucket {
    /// Creates the bucket. GCS requires a [`project`](crate::ClientBuilder::project) for this. If a bucket of
    /// this name exists, the call fails. There is one exception: in S3's region us-east-1, the call succeeds
    /// for a bucket that the caller owns, and resets its ACLs.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # let client = laneway::Client::builder().anonymous(true).gcs_endpoint(server.url()).project("p").build()?;
    /// let bucket = client.bucket("gs://lake")?;
    /// bucket.create().call()?;
    /// assert_eq!(bucket.create().call().unwrap_err().kind(), laneway::ErrorKind::AlreadyExists);
    /// bucket.remove().call()?;
    /// # Ok::<(), laneway::Error>(())
    /// ```
    pub fn create(&self) -> CreateBucket {
        CreateBucket { bucket: self.clone(), deadline: None, new: NewBucket::default() }
    }
}

callable!(CreateBucket, ());

impl CreateBucket {
    /// Sets where the bucket's objects are stored. On GCS this is a location (`EU`, `us-central1`). On S3,
    /// the location must be the region to which the client sends requests.
    pub fn location(mut self, location: impl Into<String>) -> Self {
        self.new.location = Some(location.into());
        self
    }

    /// Sets the default storage class of the bucket's objects. Only GCS supports this.
    pub fn storage_class(mut self, class: impl Into<String>) -> Self {
        self.new.storage_class = Some(class.into());
        self
    }

    async fn run(self) -> Result<(), Error> {
        let store = self.bucket.store()?;
        let name = self.bucket.whole()?;
        let create = async { Ok(store.create_bucket(name, &self.new).await?) };
        within(self.deadline, &self.bucket.url(), create).await
    }
}

/// A call that removes a bucket, made by [`Bucket::remove`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct RemoveBucket {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
}

impl Bucket {
    /// Removes the bucket, which must be empty.
    pub fn remove(&self) -> RemoveBucket {
        RemoveBucket { bucket: self.clone(), deadline: None }
    }
}

callable!(RemoveBucket, ());

impl RemoveBucket {
    async fn run(self) -> Result<(), Error> {
        let store = self.bucket.store()?;
        let name = self.bucket.whole()?;
        let remove = async { Ok(store.delete_bucket(name).await?) };
        within(self.deadline, &self.bucket.url(), remove).await
    }
}

/// The default lifetime of a signed URL. `aws s3 presign` and `gcloud storage sign-url` have the same
/// default.
const EXPIRES: Duration = Duration::from_secs(3600);

/// A call that signs a URL of an object, made by [`Bucket::sign`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct Sign {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    key: String,
    options: SignOptions,
    now: Option<SystemTime>,
}

impl Bucket {
    /// Signs a URL. Until it expires, anyone who has the URL can send requests of one method for the object.
    /// By default it allows reads for an hour: see [`method`](Sign::method) and [`expires`](Sign::expires).
    /// Signing sends no request to the store, and the object need not exist yet. The URL doesn't allow more
    /// than the credentials do.
    ///
    /// On S3, Laneway signs with the credentials in use (Signature Version 4). If they are temporary, the URL
    /// expires with them. On GCS, it signs with the key of a service account. For the machine's service
    /// account or an impersonated one, it asks Google's IAM service to sign, which requires
    /// `roles/iam.serviceAccountTokenCreator`. The credentials of a user's login can't sign.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let key = laneway::AccessKey::new("laneway", "lanewaysecret");
    /// # let client = laneway::Client::builder().access_key(key).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// use std::time::Duration;
    ///
    /// bucket.put("notes.txt", "one line\n").await?;
    /// let signed = bucket.sign("notes.txt").expires(Duration::from_secs(600)).await?;
    /// assert!(signed.url.contains("/lake/notes.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&"));
    /// assert_eq!(signed.ends_early, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sign(&self, key: &str) -> Sign {
        let options = SignOptions { expires: EXPIRES, ..SignOptions::default() };
        Sign { bucket: self.clone(), deadline: None, key: key.to_owned(), options, now: None }
    }
}

callable!(Sign, SignedUrl);

impl Sign {
    /// Sets the method of the request that the URL allows. The default is [`Method::Get`].
    pub fn method(mut self, method: Method) -> Self {
        self.options.method = method;
        self
    }

    /// Sets the lifetime of the URL: whole seconds, from 1 s to 7 days. The default is an hour.
    pub fn expires(mut self, time: Duration) -> Self {
        self.options.expires = time;
        self
    }

    /// Adds a header to the signature. A request with this URL must send the header with exactly this value.
    /// This method can be called several times.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.options.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a query parameter, such as `versionId`, `generation` or `response-content-disposition`. This
    /// method can be called several times.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.options.query.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the time of the signature, at which the URL's lifetime begins. The default is the time of the
    /// call. With the same credentials, options and time, the call returns the same URL.
    pub fn at(mut self, time: SystemTime) -> Self {
        self.now = Some(time);
        self
    }

    async fn run(self) -> Result<SignedUrl, Error> {
        let (store, id) = (self.bucket.store()?, self.bucket.id(&self.key)?);
        within(self.deadline, &self.bucket.url_of(&self.key), async {
            let now = self.now.unwrap_or_else(SystemTime::now);
            Ok(store.sign(&id, &self.options, now).await?)
        })
        .await
    }
}
