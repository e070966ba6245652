//! What a store knows about an object.

use std::time::Duration;

use laneway_store::{ObjectMeta, Version};

use super::call::{callable, within};
use crate::{Bucket, Error};

/// Asks for an object's metadata; made by [`Bucket::head`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct Head {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    key: String,
    version: Option<Version>,
}

impl Bucket {
    /// What the store knows about an object: one request, and none of its bytes.
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
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn head(&self, key: &str) -> Head {
        Head { bucket: self.clone(), deadline: None, key: key.to_owned(), version: None }
    }
}

callable!(Head, ObjectMeta);

impl Head {
    /// Only in this state: an object that was replaced is an error.
    pub fn if_version(mut self, version: &Version) -> Self {
        self.version = Some(version.clone());
        self
    }

    async fn run(self) -> Result<ObjectMeta, Error> {
        let (store, id) = (self.bucket.store()?, self.bucket.id(&self.key)?);
        within(self.deadline, &self.bucket.url_of(&self.key), async {
            let mut meta = store.head(&id, self.version.as_ref()).await?;
            self.bucket.relative(&mut meta);
            Ok(meta)
        })
        .await
    }
}
