//! What requests ask for, in words that rules of faults and counters share.

/// What a request asks for, the same word for both dialects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// The content of an object, or a range of it.
    Get,
    /// A whole object in one request (GCS `media` and `multipart`, S3 PutObject).
    Put,
    /// One object removed; of those that are removed in one request, each key by itself, as far as a status goes.
    Delete,
    /// Many objects removed in one request (S3 DeleteObjects).
    DeleteMany,
    /// A page of a listing.
    List,
    /// The metadata of an object.
    Head,
    /// A copy inside the store (GCS `rewriteTo` and `copyTo`, S3 CopyObject and UploadPartCopy).
    Copy,
    /// The beginning of a multipart upload or of a resumable session.
    Begin,
    /// One part of a multipart upload, or one chunk of a resumable session.
    Part,
    /// The completion of a multipart upload.
    Complete,
    /// A multipart upload or resumable session given up.
    Abort,
    /// How far a resumable session has come, or which parts and uploads exist.
    Status,
    /// Objects of the store concatenated (GCS `compose`).
    Compose,
    /// Changed metadata (GCS `patch` and `update`).
    Patch,
    /// The batch endpoint of GCS; the calls inside it count as themselves too.
    Batch,
    /// Anything about buckets.
    Bucket,
    /// Everything else, unknown requests included.
    Other,
}

impl Verb {
    pub(crate) const COUNT: usize = Verb::ALL.len();
    /// Every verb, in the order in which the enum declares them.
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

    /// The word that stands for the verb in rules and counters.
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

    /// Whether the bytes that matter travel in the request: faults `@N` then count those.
    pub(crate) fn uploads(self) -> bool {
        matches!(self, Verb::Put | Verb::Part)
    }
}
