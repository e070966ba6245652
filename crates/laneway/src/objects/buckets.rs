//! Creates and removes buckets.

use std::time::Duration;

use laneway_store::NewBucket;

use super::call::{callable, within};
use crate::{Bucket, Error};

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
