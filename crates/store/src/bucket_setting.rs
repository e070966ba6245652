//! The settings of a bucket that Laneway reads and writes, as JSON in the provider's own form.

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
