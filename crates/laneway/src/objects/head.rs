//! Requests an object's metadata.

use std::time::Duration;

use laneway_store::{ObjectMeta, Unless, Version};

use super::call::{callable, within};
use super::conditions::conditional;
use crate::{Bucket, Error};

/// A call that requests an object's metadata, made by [`Bucket::head`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct Head {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    key: String,
    version: Option<Version>,
    unless: Option<Unless>,
}

impl Bucket {
    /// Requests an object's metadata, in a single request that doesn't fetch the object's bytes.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// bucket.put("notes.txt", "one line\n").await?;
    /// let meta = bucket.head("notes.txt").await?;
    /// assert_eq!((meta.size, meta.content_type.as_deref()), (9, Some("text/plain")));
    ///
    /// let updated = meta.updated.ok_or("the store reports no time")?;
    /// let again = bucket.head("notes.txt").if_modified_since(updated).await;
    /// assert_eq!(again.unwrap_err().kind(), laneway::ErrorKind::NotModified);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn head(&self, key: &str) -> Head {
        Head { bucket: self.clone(), deadline: None, key: key.to_owned(), version: None, unless: None }
    }
}

callable!(Head, ObjectMeta);
conditional!(Head);

impl Head {
    async fn run(self) -> Result<ObjectMeta, Error> {
        let (store, id) = (self.bucket.store()?, self.bucket.id(&self.key)?);
        within(self.deadline, &self.bucket.url_of(&self.key), async {
            let version = self.version.as_ref();
            let mut meta = match &self.unless {
                None => store.head(&id, version).await?,
                Some(unless) => store.head_unless(&id, version, unless).await?,
            };
            self.bucket.relative(&mut meta);
            Ok(meta)
        })
        .await
    }
}
