//! The settings of a new bucket.

/// The settings of a new bucket.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct NewBucket {
    /// The place where the bucket keeps its objects: on GCS a location (`EU`, `us-central1`), on S3 the region to which
    /// the requests go. By default the store or the endpoint chooses it.
    pub location: Option<String>,
    /// The default storage class of the bucket's objects. Only GCS supports it.
    pub storage_class: Option<String>,
}
