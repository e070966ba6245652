//! What a known server can and can't: the one place where the suite says so.

use laneway_store::Provider;

/// Something that not every server can, or does in its own way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Capability {
    /// Checksums are checked, kept, and told by answers to writes.
    Checksums,
    /// A write may be bound to what is there.
    ConditionalPut,
    /// The whole object's checksum comes with an unranged download.
    ChecksumOnGet,
    /// And with a ranged one.
    ChecksumOnRange,
    /// `a//b` is another key than `a/b`.
    DoubleSlashKeys,
    /// `a/./b` and `a/../b` are keys.
    DotSegments,
    /// Parts of a key between slashes may be longer than 255 bytes.
    LongComponents,
    /// Start and end of a listing are taken.
    OrderedOffsets,
    /// Deleting what isn't there is answered with 404.
    DeleteTellsMissing,
    /// A delete may be bound to a version.
    ConditionalDelete,
    /// A copy may be bound to its source's version.
    SourceConditions,
    /// A copy may be bound to its destination's absence.
    ConditionalCopy,
    /// Multipart uploads, whose parts are checked.
    MultipartUpload,
    /// Uploads under way are listed by what their keys begin with.
    UploadsByPrefix,
    /// None of them.
    NoMultipartUpload,
    /// An object or part whose checksum is wrong is refused.
    WrongChecksum,
    /// An upload that has been aborted is answered with 404.
    NoSuchUpload,
    /// A multipart upload may be completed under a precondition.
    ConditionalComplete,
    /// A part may be copied from another object.
    PartCopy,
    /// GCS's resumable sessions.
    GcsSessions,
    /// A session can be asked where it stands without being ended by it.
    ResumableStatus,
    /// A cancelled session is gone.
    SessionCancel,
    /// A session is begun under a precondition.
    ConditionalResumable,
    /// What is stored with `Content-Encoding: gzip` is given back so.
    StoresGzip,
    /// `Cache-Control` is kept.
    CacheControl,
    /// `Content-Language` is kept.
    ContentLanguage,
}

use Capability::*;

/// A server and what it lacks of what its dialect has.
struct Server {
    name: &'static str,
    dialect: Provider,
    lacks: &'static [Capability],
}

/// Neither checksums nor conditions on writes.
const PLAIN: &[Capability] = &[
    Checksums,
    ChecksumOnGet,
    WrongChecksum,
    ConditionalPut,
    ConditionalComplete,
    ConditionalCopy,
    ConditionalDelete,
];

const SERVERS: [Server; 14] = [
    Server { name: "embedded", dialect: Provider::Gcs, lacks: &[] },
    Server { name: "embedded", dialect: Provider::S3, lacks: &[] },
    // The embedded server with the habits of others: what is left of each dialect at those.
    Server { name: "like gcs", dialect: Provider::Gcs, lacks: &[] },
    Server { name: "like s3", dialect: Provider::S3, lacks: &[] },
    Server { name: "like r2", dialect: Provider::S3, lacks: &[ConditionalCopy, ConditionalDelete] },
    Server { name: "like b2", dialect: Provider::S3, lacks: PLAIN },
    Server { name: "like minio", dialect: Provider::S3, lacks: &[ConditionalCopy, ConditionalDelete] },
    Server { name: "like gcs-interop", dialect: Provider::S3, lacks: PLAIN },
    Server { name: "like gcs", dialect: Provider::S3, lacks: PLAIN },
    Server { name: "google", dialect: Provider::Gcs, lacks: &[] },
    Server { name: "aws", dialect: Provider::S3, lacks: &[] },
    Server {
        // 1.56.1: no XML uploads; compares generations on writes, but not on deletes, copies and sessions' ends.
        name: "fake-gcs-server",
        dialect: Provider::Gcs,
        lacks: &[MultipartUpload, ConditionalDelete, ConditionalCopy, ResumableStatus, SessionCancel],
    },
    Server {
        // RELEASE.2025-09: keys are paths of a file system; parts copied into an upload with checksums are refused; uploads are listed of whole
        // keys only.
        name: "minio",
        dialect: Provider::S3,
        lacks: &[
            DoubleSlashKeys,
            DotSegments,
            LongComponents,
            UploadsByPrefix,
            ConditionalDelete,
            ConditionalCopy,
            PartCopy,
        ],
    },
    Server {
        // 5.2.5: keeps checksums only where a header of the SDKs says so, and believes them; looks at no conditions of copies;
        // answers 500 for uploads that it doesn't know.
        name: "moto",
        dialect: Provider::S3,
        lacks: &[Checksums, ChecksumOnGet, ConditionalCopy, SourceConditions, WrongChecksum, NoSuchUpload],
    },
];

/// Capabilities that a dialect with multipart uploads and without sessions lacks.
const SESSIONS: &[Capability] =
    &[NoMultipartUpload, GcsSessions, ConditionalResumable, ResumableStatus, SessionCancel];

/// What the dialect itself doesn't have.
fn foreign(provider: Provider) -> &'static [Capability] {
    match provider {
        Provider::Gcs => &[ConditionalComplete, PartCopy],
        _ => &[
            ChecksumOnRange,
            GcsSessions,
            ConditionalResumable,
            ResumableStatus,
            SessionCancel,
            DeleteTellsMissing,
        ],
    }
}

/// Whether a server has a capability in a dialect.
pub(crate) fn has(server: &str, provider: Provider, capability: Capability) -> bool {
    if let Provider::Other(_) = provider {
        return !SESSIONS.contains(&capability);
    }
    let known = SERVERS.iter().find(|known| known.name == server && known.dialect == provider);
    let lacks = known.unwrap_or_else(|| panic!("unknown {provider:?} server {server}")).lacks;
    if capability == NoMultipartUpload {
        return lacks.contains(&MultipartUpload);
    }
    !lacks.contains(&capability) && !foreign(provider).contains(&capability)
}
