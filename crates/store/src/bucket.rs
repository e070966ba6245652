//! The settings of buckets, as JSON in the provider's own form.

/// The settings of a new bucket.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct NewBucket {
    /// The place where the bucket keeps its objects: on GCS a location (`EU`, `us-central1`), on S3 the region to which
    /// the requests go. By default the store or the endpoint chooses it.
    pub location: Option<String>,
    /// The default storage class of the bucket's objects. Only GCS supports it.
    pub storage_class: Option<String>,
}

/// A setting of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BucketSetting {
    /// Versioning, with which a bucket keeps old versions of its objects: `{"enabled": true}` on GCS,
    /// `{"Status": "Enabled"}` on S3.
    Versioning,
    /// The rules that remove objects or change their class. On GCS the JSON is that of `gcloud storage`
    /// (`{"rule": [...]}`). On S3 it is that of `aws s3api` (`{"Rules": [...]}`).
    Lifecycle,
}
