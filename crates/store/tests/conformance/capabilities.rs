//! The capabilities of the known servers. No other part of the suite knows them.

use laneway_store::Provider;

/// A capability that only some servers have, or that they implement in different ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Capability {
    /// The server checks and keeps checksums, and returns them in answers to writes.
    Checksums,
    /// The checksums that the server keeps are CRC32Cs.
    Crc32c,
    /// A write may have a condition on the current object.
    ConditionalPut,
    /// A download of a whole object has the object's checksum.
    ChecksumOnGet,
    /// A download of a range has the object's checksum.
    ChecksumOnRange,
    /// `a//b` is a different key from `a/b`.
    DoubleSlashKeys,
    /// `a/./b` and `a/../b` are keys.
    DotSegments,
    /// A segment of a key between slashes may be longer than 255 bytes.
    LongComponents,
    /// A listing may have a start and an end.
    OrderedOffsets,
    /// Deleting an object that doesn't exist returns 404.
    DeleteTellsMissing,
    /// A delete may have a condition on the version.
    ConditionalDelete,
    /// A copy may have a condition on its source's version.
    SourceConditions,
    /// A copy may have the condition that its destination doesn't exist.
    ConditionalCopy,
    /// Multipart uploads, with checked parts.
    MultipartUpload,
    /// Unfinished uploads can be listed by the prefix of their keys.
    UploadsByPrefix,
    /// No multipart uploads.
    NoMultipartUpload,
    /// The server refuses an object or a part with a wrong checksum.
    WrongChecksum,
    /// An aborted upload returns 404.
    NoSuchUpload,
    /// The completion of a multipart upload may have a condition.
    ConditionalComplete,
    /// A part may be a copy of another object.
    PartCopy,
    /// GCS's resumable sessions.
    GcsSessions,
    /// The state of a session can be requested without ending it.
    ResumableStatus,
    /// A cancelled session no longer exists.
    SessionCancel,
    /// A session may begin with a condition.
    ConditionalResumable,
    /// An object with `Content-Encoding: gzip` is returned as it is stored.
    StoresGzip,
    /// The server keeps `Cache-Control`.
    CacheControl,
    /// The server keeps `Content-Language`.
    ContentLanguage,
}

use Capability::*;

/// A server, and the capabilities of its dialect that it lacks.
struct Server {
    name: &'static str,
    dialect: Provider,
    lacks: &'static [Capability],
}

/// A server without checksums and without conditions on writes.
const PLAIN: &[Capability] = &[
    Checksums,
    ChecksumOnGet,
    WrongChecksum,
    ConditionalPut,
    ConditionalComplete,
    ConditionalCopy,
    ConditionalDelete,
];

const SERVERS: [Server; 19] = [
    Server { name: "embedded", dialect: Provider::Gcs, lacks: &[] },
    Server { name: "embedded", dialect: Provider::S3, lacks: &[] },
    Server { name: "embedded", dialect: Provider::Azure, lacks: &[] },
    Server { name: "azure", dialect: Provider::Azure, lacks: &[] },
    // 3.37.0.
    Server { name: "azurite", dialect: Provider::Azure, lacks: &[] },
    // The embedded server with the habits of other services, which support only a part of each dialect.
    Server { name: "like gcs", dialect: Provider::Gcs, lacks: &[] },
    Server { name: "like s3", dialect: Provider::S3, lacks: &[] },
    Server { name: "like r2", dialect: Provider::S3, lacks: &[ConditionalCopy, ConditionalDelete] },
    Server { name: "like b2", dialect: Provider::S3, lacks: PLAIN },
    Server { name: "like minio", dialect: Provider::S3, lacks: &[ConditionalCopy, ConditionalDelete] },
    Server { name: "like gcs-interop", dialect: Provider::S3, lacks: PLAIN },
    Server { name: "like gcs", dialect: Provider::S3, lacks: PLAIN },
    Server { name: "like azurite", dialect: Provider::Azure, lacks: &[] },
    // It has no CRC64s, so nothing proves the bytes of a multipart upload.
    Server { name: "like azurite-3.35", dialect: Provider::Azure, lacks: &[Checksums] },
    Server { name: "google", dialect: Provider::Gcs, lacks: &[] },
    Server { name: "aws", dialect: Provider::S3, lacks: &[] },
    Server {
        // 1.56.1: no XML uploads. It compares generations on writes, but not on deletes, copies and ends of sessions.
        name: "fake-gcs-server",
        dialect: Provider::Gcs,
        lacks: &[MultipartUpload, ConditionalDelete, ConditionalCopy, ResumableStatus, SessionCancel],
    },
    Server {
        // RELEASE.2025-09: keys are paths of a file system. It refuses parts that are copied into an upload with
        // checksums. It lists uploads of whole keys only.
        name: "minio",
        dialect: Provider::S3,
        lacks: &[DoubleSlashKeys, DotSegments, LongComponents, UploadsByPrefix, PartCopy],
    },
    Server {
        // 5.2.5: it keeps checksums only if a header of the SDKs asks for them, and doesn't verify them. It ignores
        // conditions on the sources of copies, and returns 500 for unknown uploads.
        name: "moto",
        dialect: Provider::S3,
        lacks: &[Checksums, ChecksumOnGet, SourceConditions, WrongChecksum, NoSuchUpload],
    },
];

/// The capabilities that a dialect with multipart uploads and without sessions lacks.
const SESSIONS: &[Capability] =
    &[NoMultipartUpload, GcsSessions, ConditionalResumable, ResumableStatus, SessionCancel];

/// The capabilities that the dialect itself lacks.
fn foreign(provider: Provider) -> &'static [Capability] {
    match provider {
        Provider::Gcs => &[ConditionalComplete, PartCopy],
        // Azure keeps only MD5s. It has no uploads with names, so they can neither be listed nor aborted.
        Provider::Azure => &[
            Crc32c,
            DotSegments,
            GcsSessions,
            ConditionalResumable,
            ResumableStatus,
            SessionCancel,
            UploadsByPrefix,
            NoSuchUpload,
        ],
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

/// Returns true if a server has a capability in a dialect.
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
