//! Removes a bucket.

use std::time::Duration;

use super::call::{callable, within};
use crate::{Bucket, Error};

/// Removes a bucket; made by [`Bucket::remove`].
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
