//! Copies and renames single objects.

use std::time::Duration;

use laneway_store::{ObjectId, PutOptions};

use super::call::{callable, cleaning, job, within};
use super::setters::{conditional_write, describable};
use crate::{Bucket, Error, Written};

/// A call that copies or renames an object, made by [`Bucket::copy`] and [`Bucket::rename`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct CopyObject {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    from: String,
    to: (Bucket, String),
    options: PutOptions,
    /// True if the source is removed after the copy.
    is_move: bool,
}

impl Bucket {
    /// Copies an object of any size within the bucket. The store itself copies the bytes. They pass through
    /// this machine only if the store can't copy them. The copy has the source's properties, except those
    /// that the caller sets.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// bucket.put("a", "bytes").await?;
    /// bucket.copy("a", "b").if_absent().await?;
    /// assert_eq!(bucket.head("b").await?.size, 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn copy(&self, from: &str, to: &str) -> CopyObject {
        self.copied(from, to, false)
    }

    /// Renames an object: copies it, then removes the source if it is still the version that was copied. If
    /// another write has replaced the source, or the copy can't be verified, the source stays and the call
    /// fails. Between the copy and the removal, other readers see both objects. Within a GCS bucket, one
    /// request does both in one step, unless the call also sets metadata.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// bucket.put("a", "bytes").await?;
    /// bucket.rename("a", "b").await?;
    /// assert!(bucket.head("a").await.is_err_and(|error| error.is_not_found()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rename(&self, from: &str, to: &str) -> CopyObject {
        self.copied(from, to, true)
    }

    fn copied(&self, from: &str, to: &str, is_move: bool) -> CopyObject {
        let (to, options) = ((self.clone(), to.to_owned()), PutOptions::default());
        CopyObject { bucket: self.clone(), deadline: None, from: from.to_owned(), to, options, is_move }
    }
}

callable!(CopyObject, Written);
conditional_write!(CopyObject);
describable!(CopyObject);

impl CopyObject {
    /// Copies into another bucket, below its prefix. If that bucket is at another provider, the bytes pass
    /// through this machine.
    pub fn into(mut self, bucket: &Bucket) -> Self {
        self.to.0 = bucket.clone();
        self
    }

    async fn run(self) -> Result<Written, Error> {
        let Self { bucket, deadline, from, to: (other, to), options, is_move } = self;
        let (owner, job) = job(&bucket)?;
        let end = |bucket: &Bucket, key: &str| Ok::<_, Error>((bucket.store()?, bucket.id(key)?));
        let (from, to, url): ((_, ObjectId), _, _) =
            (end(&bucket, &from)?, end(&other, &to)?, other.url_of(&to));
        let place = |bucket: &Bucket, id: &ObjectId| (bucket.provider(), id.clone());
        if is_move && place(&bucket, &from.1) == place(&other, &to.1) {
            return Err(Error::usage(url, "can't be renamed to itself"));
        }
        let copy = async move { crate::transfer::copy::object(&job, from, to, options, is_move).await };
        Ok(within(deadline, &url, cleaning(bucket.client(), owner, copy)).await?.into())
    }
}
