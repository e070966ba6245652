//! Verbs for whole buckets and their folders.

use http::StatusCode;
use serde_json::Value;

use super::Store;
use crate::{BucketSetting, Error, FolderPage, FolderRename, NewBucket};

impl Store {
    /// Lists the names of the buckets that the credentials own, or on GCS the buckets of
    /// [`Settings::project`](crate::Settings::project).
    ///
    /// # Errors
    /// `Invalid` on GCS if no project is set.
    pub async fn buckets(&self) -> Result<Vec<String>, Error> {
        self.dialect.buckets().await
    }

    /// Creates a bucket. On GCS, the bucket belongs to [`Settings::project`](crate::Settings::project).
    ///
    /// # Errors
    /// `AlreadyExists` if a bucket of that name exists, even if another account owns it.
    pub async fn create_bucket(&self, bucket: &str, new: &NewBucket) -> Result<(), Error> {
        match self.dialect.create_bucket(bucket, new).await {
            // An earlier attempt, whose answer was lost, may have created the bucket.
            Err(error) if error.is_uncertain() && is_ours(&error) => Ok(()),
            Err(error) if error.status() == Some(StatusCode::CONFLICT) => Err(error.existing()),
            done => done,
        }
    }

    /// Returns a setting of a bucket, as JSON in the provider's own form. If the bucket has no such setting, the result
    /// is an empty JSON object.
    ///
    /// # Errors
    /// `NotFound`; `Permission`; `Unsupported` if the store has no such setting.
    pub async fn bucket_setting(&self, bucket: &str, setting: BucketSetting) -> Result<Value, Error> {
        self.dialect.bucket_setting(bucket, setting).await
    }

    /// Replaces a setting of a bucket, or removes it if `value` is `None`.
    ///
    /// # Errors
    /// As for [`bucket_setting`](Self::bucket_setting); `Invalid` for a value that the store refuses.
    pub async fn set_bucket_setting(
        &self,
        bucket: &str,
        setting: BucketSetting,
        value: Option<&Value>,
    ) -> Result<(), Error> {
        self.dialect.set_bucket_setting(bucket, setting, value).await
    }

    /// Returns true if a bucket can have [folders](Self::folders) in addition to its objects. The answer is remembered.
    ///
    /// # Errors
    /// Returns the store's error. If the caller isn't permitted to ask, that isn't an error, and the result is false.
    pub async fn has_folders(&self, bucket: &str) -> Result<bool, Error> {
        self.dialect.has_folders(bucket).await
    }

    /// Returns a page of the bucket's folders whose names begin with a prefix. Each name ends in a slash. Only GCS
    /// buckets with a hierarchical namespace have folders, in addition to objects. `token` is [`FolderPage::next`] of
    /// the previous page.
    ///
    /// # Errors
    /// `Permission` if the caller lacks the separate permission that this request needs.
    pub async fn folders(
        &self,
        bucket: &str,
        prefix: &str,
        token: Option<&str>,
    ) -> Result<FolderPage, Error> {
        self.dialect.folders(bucket, prefix, token).await
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// `NotFound` if it doesn't exist; `Invalid` or `Precondition` if something is in it; `Unsupported` if the store has
    /// no folders.
    pub async fn delete_folder(&self, bucket: &str, folder: &str) -> Result<(), Error> {
        self.dialect.delete_folder(bucket, folder).await
    }

    /// Begins to rename a folder together with everything below it. Both names end in a slash. The store does so in one
    /// step, and the bytes of the objects stay where they are. The result is `Refused` if the store has no folders, or
    /// if a folder already has the new name. It is also `Refused` if the store or the caller's role doesn't permit the
    /// rename. The objects can then be moved one by one.
    ///
    /// # Errors
    /// Returns the store's error if the state of the folder is unknown.
    pub async fn rename_folder(&self, bucket: &str, from: &str, to: &str) -> Result<FolderRename, Error> {
        self.dialect.rename_folder(bucket, from, to).await
    }

    /// Returns the state of a rename that [`rename_folder`](Self::rename_folder) has begun.
    ///
    /// # Errors
    /// Returns the store's error. The rename may then be running, or have ended.
    pub async fn folder_rename(&self, bucket: &str, operation: &str) -> Result<FolderRename, Error> {
        self.dialect.folder_rename(bucket, operation).await
    }

    /// Removes an empty bucket.
    ///
    /// # Errors
    /// `NotFound` if it doesn't exist, `Invalid` if it isn't empty.
    pub async fn delete_bucket(&self, bucket: &str) -> Result<(), Error> {
        match self.dialect.delete_bucket(bucket).await {
            Err(error) if error.is_uncertain() && error.is_not_found() => Ok(()),
            done => done,
        }
    }
}

/// Returns true if the error says that the bucket exists and belongs to the caller.
fn is_ours(error: &Error) -> bool {
    // A container belongs to the account that the request went to.
    matches!(error.code(), Some("BucketAlreadyOwnedByYou" | "ContainerAlreadyExists"))
        || error.to_string().contains("you already own it")
}
