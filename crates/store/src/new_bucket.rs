//! The settings of a new bucket.

/// The settings of a new bucket.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct NewBucket {
    /// The location of its objects: on GCS a location (`EU`, `us-central1`), on S3 the region of the requests. By
    /// default the store or the endpoint chooses it.
    pub location: Option<String>,
    /// GCS: the default storage class of its objects.
    pub storage_class: Option<String>,
}
