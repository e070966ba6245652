//! The type [`Store`] and its verbs. Reads and writes have their own files.

mod reads;
mod writes;

use std::sync::Arc;

use http::StatusCode;
use laneway_lanes::{Lanes, Path, Spare};
use serde_json::Value;

use crate::azure::Azure;
use crate::gcs::Gcs;
use crate::listing::{LimitsByBucket, ListingTally};
use crate::s3::S3;
use crate::{
    BucketSetting, Capabilities, Condition, Dialect, Error, ErrorKind, FolderPage, FolderRename, Listings,
    NewBucket, Operation, Provider, ReadAs, Requests, Settings,
};

/// A client of one provider, with an endpoint and credentials. Each verb takes the bucket as an argument. Clones share
/// all state.
///
/// Every verb retries errors that may be temporary; the crate's `judge` module has the rules. Every error names the
/// verb, the object, the number of attempts and the time that they took.
#[derive(Clone, Debug)]
pub struct Store {
    dialect: Arc<dyn Dialect>,
    lanes: Lanes,
    /// Selects the customer's key that reads send.
    read: ReadAs,
    listings: Arc<ListingTally>,
    /// The limits of the listings of each bucket, as far as answers have shown them.
    limits: Arc<LimitsByBucket>,
}

/// Returns the capabilities of a cloud's stores. Returns `None` for a caller's own dialect, whose capabilities only its
/// [`Store`] knows.
pub fn capabilities_of(provider: Provider) -> Option<&'static Capabilities> {
    match provider {
        Provider::Gcs => Some(&crate::gcs::CAPABILITIES),
        Provider::S3 => Some(&crate::s3::CAPABILITIES),
        Provider::Azure => Some(&crate::azure::CAPABILITIES),
        Provider::Other(_) => None,
    }
}

impl Store {
    /// Returns a store whose requests use `lanes`. It sends no request and doesn't search for credentials yet.
    ///
    /// # Errors
    /// `Invalid` if the endpoint isn't a URL.
    pub fn new(provider: Provider, settings: &Settings, lanes: Lanes) -> Result<Self, Error> {
        let dialect: Arc<dyn Dialect> = match provider {
            Provider::Gcs => Gcs::new(settings, lanes.clone())?,
            Provider::S3 => S3::new(settings, lanes.clone())?,
            Provider::Azure => Azure::new(settings, lanes.clone())?,
            Provider::Other(_) => {
                let message = format!("no dialect is registered for {}://", provider.scheme());
                return Err(Error::new(ErrorKind::Invalid, Operation::Open, message));
            }
        };
        Ok(Self::of(dialect, lanes))
    }

    /// Returns a store with the caller's own dialect. `lanes` are the lanes that the caller's other stores also use.
    pub fn of(dialect: Arc<dyn Dialect>, lanes: Lanes) -> Self {
        Self { dialect, lanes, read: ReadAs::Object, listings: Arc::default(), limits: Arc::default() }
    }

    /// Returns the same store as the source of copies: its reads send
    /// [`Encryption::source_customer_key`](crate::Encryption).
    #[must_use]
    pub fn as_source(&self) -> Self {
        Self { read: ReadAs::CopySource, ..self.clone() }
    }

    /// Returns the kind of store.
    pub fn provider(&self) -> Provider {
        self.dialect.provider()
    }

    /// Returns the capabilities of this kind of store.
    pub fn capabilities(&self) -> &Capabilities {
        self.dialect.capabilities()
    }

    /// Returns the scheme of its URLs: `gs`, `s3`, `az`, or that of the caller's dialect.
    pub fn scheme(&self) -> &'static str {
        self.provider().scheme()
    }

    /// Returns the URL of the requests, without credentials. The URL of a store is the same for all buckets and
    /// regions.
    pub fn endpoint(&self) -> String {
        self.dialect.endpoint()
    }

    /// Returns a digest of the settings that a store adds to each upload ([`Settings::kms_key`], [`Settings::headers`],
    /// who pays). The settings can't be recovered from it. An upload must not be resumed if the digest has changed,
    /// because the object would be different.
    pub fn fingerprint(&self) -> String {
        self.dialect.fingerprint()
    }

    /// Returns the lanes of its requests, with their measurements and counters.
    pub fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Announces how many requests for the bucket's objects will follow, so that connections open before the requests
    /// are ready. 0 cancels the announcement.
    pub fn anticipate(&self, bucket: &str, requests: usize) {
        self.dialect.anticipate(bucket, requests)
    }

    /// Returns the measurements of the network path to the bucket's objects: round trip, protocol and rate.
    pub async fn path(&self, bucket: &str) -> Path {
        self.dialect.path(bucket).await
    }

    /// Returns the number of additional large requests for the bucket's objects that would raise the rate, because each
    /// would get its own lane. The answer may change at any time.
    pub async fn spare(&self, bucket: &str) -> Spare {
        self.dialect.spare(bucket).await
    }

    /// Returns true if the store itself enforces the condition of a write (put, complete, copy, delete), so that no
    /// other writer can change the object in between. Some S3 endpoints are known not to enforce it, or have shown that
    /// they don't. For those, Laneway compares the object before and after the write.
    pub fn keeps(&self, operation: Operation, condition: &Condition) -> bool {
        self.dialect.keeps(operation, condition)
    }

    /// Returns the totals of this store's listings so far.
    pub fn listings(&self) -> Listings {
        self.listings.snapshot()
    }

    /// Returns the numbers of requests sent so far, by the classes of the store's price list.
    pub fn requests(&self) -> Requests {
        self.dialect.requests()
    }
}

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
