//! The settings of a bucket that Laneway reads and writes, as JSON in the provider's own form.

/// A setting of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BucketSetting {
    /// The setting that keeps versions: `{"enabled": true}` on GCS, `{"Status": "Enabled"}` on S3.
    Versioning,
    /// The rules that remove objects or change their class: `{"rule": [...]}` on GCS, `{"Rules": [...]}` on S3, as
    /// `gcloud storage` and `aws s3api` have them.
    Lifecycle,
}
