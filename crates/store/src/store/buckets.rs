//! Buckets as a whole.

use http::StatusCode;

use super::Store;
use crate::{Error, NewBucket};

impl Store {
    /// The names of the buckets that the credentials own; on GCS those of [`Settings::project`](crate::Settings::project).
    ///
    /// # Errors
    /// `Invalid` on GCS when no project is known.
    pub async fn buckets(&self) -> Result<Vec<String>, Error> {
        self.dialect.buckets().await
    }

    /// Makes a bucket; on GCS in [`Settings::project`](crate::Settings::project).
    ///
    /// # Errors
    /// `AlreadyExists` when there is one of that name, whoever owns it.
    pub async fn create_bucket(&self, bucket: &str, new: &NewBucket) -> Result<(), Error> {
        match self.dialect.create_bucket(bucket, new).await {
            // The answer that was lost may have said so.
            Err(error) if error.is_uncertain() && is_ours(&error) => Ok(()),
            Err(error) if error.status() == Some(StatusCode::CONFLICT) => Err(error.existing()),
            done => done,
        }
    }

    /// Removes a bucket that is empty.
    ///
    /// # Errors
    /// `NotFound` when there is none, `Invalid` when something lies in it.
    pub async fn delete_bucket(&self, bucket: &str) -> Result<(), Error> {
        match self.dialect.delete_bucket(bucket).await {
            Err(error) if error.is_uncertain() && error.is_not_found() => Ok(()),
            done => done,
        }
    }
}

/// Whether a bucket is said to exist and to be whose who asks.
fn is_ours(error: &Error) -> bool {
    error.code() == Some("BucketAlreadyOwnedByYou") || error.to_string().contains("you already own it")
}
