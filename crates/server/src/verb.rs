//! The verbs of requests, for fault rules and counters.

/// The verb of a request. Both dialects have the same verbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Downloads an object or a range of it.
    Get,
    /// Uploads a whole object in one request (GCS `media` and `multipart`, S3 PutObject).
    Put,
    /// Deletes one object. Each key of a bulk delete also counts as a delete, but the only fault that can apply to it
    /// is a status.
    Delete,
    /// Deletes many objects in one request (S3 DeleteObjects).
    DeleteMany,
    /// Lists a page of objects.
    List,
    /// Requests the metadata of an object.
    Head,
    /// Copies inside the store (GCS `rewriteTo`, `copyTo` and `moveTo`, S3 CopyObject and UploadPartCopy).
    Copy,
    /// Begins a multipart upload or a resumable session.
    Begin,
    /// Uploads one part of a multipart upload, or one chunk of a resumable session.
    Part,
    /// Completes a multipart upload.
    Complete,
    /// Aborts a multipart upload or cancels a resumable session.
    Abort,
    /// Requests the state of a resumable session, or lists parts or uploads.
    Status,
    /// Concatenates objects of the store (GCS `compose`).
    Compose,
    /// Changes metadata (GCS `patch` and `update`).
    Patch,
    /// Uses the batch endpoint of GCS. The calls inside a batch are also counted by their own verbs.
    Batch,
    /// Any request about buckets.
    Bucket,
    /// Any other request, including unknown ones.
    Other,
}

impl Verb {
    pub(crate) const COUNT: usize = Verb::ALL.len();
    /// Every verb, in the enum's order.
    pub const ALL: [Verb; 17] = [
        Verb::Get,
        Verb::Put,
        Verb::Delete,
        Verb::DeleteMany,
        Verb::List,
        Verb::Head,
        Verb::Copy,
        Verb::Begin,
        Verb::Part,
        Verb::Complete,
        Verb::Abort,
        Verb::Status,
        Verb::Compose,
        Verb::Patch,
        Verb::Batch,
        Verb::Bucket,
        Verb::Other,
    ];

    /// Returns the verb's name in rules and counters.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::Put => "put",
            Verb::Delete => "delete",
            Verb::DeleteMany => "delete-many",
            Verb::List => "list",
            Verb::Head => "head",
            Verb::Copy => "copy",
            Verb::Begin => "begin",
            Verb::Part => "part",
            Verb::Complete => "complete",
            Verb::Abort => "abort",
            Verb::Status => "status-query",
            Verb::Compose => "compose",
            Verb::Patch => "patch",
            Verb::Batch => "batch",
            Verb::Bucket => "bucket",
            Verb::Other => "other",
        }
    }

    /// Returns true if the request carries the object's bytes. In a fault for such a request, `@N` counts the bytes of
    /// the request and not those of the answer.
    pub(crate) fn uploads(self) -> bool {
        matches!(self, Verb::Put | Verb::Part)
    }
}
