//! What a bucket is made as.

/// How a bucket is made.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct NewBucket {
    /// Where its objects lie: on GCS a location (`EU`, `us-central1`), on S3 the region that requests go to. What the store or
    /// its endpoint has by itself otherwise.
    pub location: Option<String>,
    /// GCS: which storage class its objects have unless they say otherwise.
    pub storage_class: Option<String>,
}
