//! An object's name, state, metadata and permissions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Checksums;
use crate::timestamp::rfc3339;

/// The kind of a store. It decides only which URLs and settings apply to the store. All other differences are in
/// [`Capabilities`](crate::Capabilities).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Provider {
    /// Google Cloud Storage: the JSON API, and the XML API for parallel multipart uploads.
    Gcs,
    /// Amazon S3 and stores with its protocol.
    S3,
    /// Azure Blob Storage. Its containers are Laneway's buckets.
    Azure,
    /// A store with the caller's own [`Dialect`](crate::Dialect), named by the scheme of its URLs (see
    /// [`Provider::other`]).
    Other(ReservedScheme),
}

impl Provider {
    /// The clouds whose dialects come with this crate.
    pub const CLOUDS: [Self; 3] = [Self::Gcs, Self::S3, Self::Azure];

    /// Reserves a scheme for a caller's dialect, so that URLs of that scheme are read as objects of such a store. A
    /// scheme stays reserved until the process ends.
    ///
    /// # Errors
    /// [`NotAScheme`] if the text isn't a scheme in lower case, or already means something else.
    pub fn other(scheme: &str) -> Result<Self, NotAScheme> {
        let is_scheme = scheme.starts_with(|c: char| c.is_ascii_lowercase())
            && scheme.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b));
        if !is_scheme || TAKEN.contains(&scheme) {
            return Err(NotAScheme);
        }
        let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = reserved.iter().copied().find(|known| *known == scheme);
        Ok(Self::Other(ReservedScheme(known.unwrap_or_else(|| {
            let scheme: &'static str = Box::leak(scheme.into());
            reserved.push(scheme);
            scheme
        }))))
    }

    /// Returns the kind of store for the scheme of a URL. The scheme must be in lower case.
    pub fn of_scheme(scheme: &str) -> Option<Self> {
        if let Some(cloud) = Self::CLOUDS.into_iter().find(|cloud| cloud.scheme() == scheme) {
            return Some(cloud);
        }
        let reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
        reserved
            .iter()
            .copied()
            .find(|known| *known == scheme)
            .map(|known| Self::Other(ReservedScheme(known)))
    }

    /// Returns the scheme of its URLs: `gs`, `s3`, `az`, or the reserved one.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Gcs => "gs",
            Self::S3 => "s3",
            Self::Azure => "az",
            Self::Other(ReservedScheme(scheme)) => scheme,
        }
    }
}

/// The scheme of a caller's dialect. Only [`Provider::other`] makes one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReservedScheme(&'static str);

/// Schemes that name a cloud or a path now, or may do so in the future.
const TAKEN: [&str; 10] = ["gs", "s3", "gcs", "file", "http", "https", "az", "azure", "abfs", "abfss"];

/// The schemes that callers have reserved. The few bytes of their names are never freed.
static RESERVED: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// The error for a text that can't be a dialect's scheme: it isn't a scheme in lower case, or already has another
/// meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a dialect's scheme must be a letter followed by letters, digits, +, - and ., all in lower case, and not a scheme that Laneway itself uses"
)]
pub struct NotAScheme;

impl Serialize for Provider {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Gcs => "gcs",
            other => other.scheme(),
        })
    }
}

impl<'de> Deserialize<'de> for Provider {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let scheme = if name == "gcs" { "gs" } else { &name };
        Self::of_scheme(scheme).ok_or_else(|| D::Error::custom(format!("no store is called {name:?}")))
    }
}

/// The name of an object. The key is exactly the key in the store. It is never normalised, and `Display` doesn't escape
/// it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ObjectId {
    /// The bucket.
    pub bucket: String,
    /// The key, at most 1024 bytes of UTF-8.
    pub key: String,
    /// One of the versions that a bucket keeps of the key, by the store's id. On GCS it is a generation in digits, and on
    /// Azure a time. `None` is the live object. A read with a version returns that version, and a delete removes that
    /// version permanently.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Box<str>>,
}

impl ObjectId {
    /// Returns the object `key` in `bucket`.
    pub fn new(bucket: impl Into<String>, key: impl Into<String>) -> Self {
        Self { bucket: bucket.into(), key: key.into(), version: None }
    }

    /// Returns one version of the object.
    #[must_use]
    pub fn at_version(mut self, version: impl Into<Box<str>>) -> Self {
        self.version = Some(version.into());
        self
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.bucket, self.key)?;
        self.version.as_ref().map_or(Ok(()), |version| write!(f, "#{version}"))
    }
}

/// The state of an object, which changes with every write to its key.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Version {
    /// A GCS generation.
    Generation(u64),
    /// An entity tag of S3 or Azure, without quotes; a weak one keeps its `W/`.
    ETag(String),
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Generation(generation) => write!(f, "generation {generation}"),
            Self::ETag(etag) => write!(f, "ETag {etag}"),
        }
    }
}

/// An object's metadata, as far as the store's answer contains it. A field that the store leaves out is `None` or
/// empty.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ObjectMeta {
    /// Its name.
    pub id: ObjectId,
    /// Size of the whole object in bytes, as stored.
    pub size: u64,
    /// Its state.
    pub version: Option<Version>,
    /// S3: the id of this version in its bucket.
    pub version_id: Option<String>,
    /// In a listing of versions: true if this is the live version.
    pub is_latest: Option<bool>,
    /// In a listing of versions: true if this isn't an object but a delete marker, with which S3 records that the key
    /// was deleted.
    pub delete_marker: bool,
    /// In a listing of soft-deleted versions: the time of the deletion.
    pub soft_deleted: Option<SystemTime>,
    /// In the same listing: the time from which the version can't be restored any more.
    pub hard_deleted: Option<SystemTime>,
    /// Checksums of the whole object, as stored.
    pub checksums: Checksums,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Content-Encoding` as stored.
    pub content_encoding: Option<String>,
    /// `Cache-Control`. It is also `None` if the answer doesn't include it. [`metadata`](Self::metadata) is then `None`
    /// too.
    pub cache_control: Option<String>,
    /// `Content-Disposition`.
    pub content_disposition: Option<String>,
    /// `Content-Language`.
    pub content_language: Option<String>,
    /// `Expires`, on S3, as the store sends it.
    pub expires: Option<String>,
    /// GCS's custom time.
    pub custom_time: Option<SystemTime>,
    /// The time of the last change.
    pub updated: Option<SystemTime>,
    /// The time of creation, if the store sends it separately, as GCS does in a `head`. On S3 every change makes a new
    /// object.
    pub created: Option<SystemTime>,
    /// The storage class, as the store names it.
    pub storage_class: Option<String>,
    /// The user metadata, with names in lower case on S3. It is `None` if the answer doesn't include it, and then
    /// [`cache_control`](Self::cache_control) isn't included either. GCS's answers to reads and S3's listings include
    /// neither. A `head` always includes both.
    pub metadata: Option<BTreeMap<String, String>>,
    /// GCS: the number of metadata changes of this generation.
    pub metageneration: Option<u64>,
    /// The entity tag without quotes. On S3 it equals [`version`](Self::version).
    pub etag: Option<String>,
    /// The customer-managed key that encrypts the object, as the store names it.
    pub kms_key: Option<String>,
    /// The encryption, as the store names it: `AES256`, `aws:kms` or `aws:kms:dsse`. With a customer's own key it is
    /// `customer AES256`.
    pub encryption: Option<String>,
    /// The hash of the customer's own key that encrypts the object, as the store keeps it.
    pub customer_key: Option<String>,
    /// True if S3 uses a bucket key between the object and the KMS key.
    pub bucket_key: bool,
    /// The number of tags, if the store sends it.
    pub tags: Option<u32>,
    /// The retention that protects the object from removal.
    pub retention: Option<Retention>,
    /// True if a legal hold protects the object until it is lifted.
    pub legal_hold: bool,
    /// True if the object is known to be in an archive and must be restored before it can be read.
    pub archived: bool,
    /// The archive tier of an object of the class INTELLIGENT_TIERING, as the store names it.
    pub archive_status: Option<String>,
    /// The progress of its restoration, or the time until which it stays restored, in the store's own words.
    pub restore: Option<String>,
}

impl ObjectMeta {
    /// Returns true if the object may have to be restored before it can be read. A listing doesn't say if an object of
    /// the class INTELLIGENT_TIERING is in an archive, so every such object may be.
    pub fn may_be_archived(&self) -> bool {
        let class = self.storage_class.as_deref();
        self.archived
            || self.restore.is_some()
            || matches!(class, Some("GLACIER" | "DEEP_ARCHIVE" | "INTELLIGENT_TIERING"))
    }

    /// Returns an object of which only name and size are known.
    pub fn new(id: ObjectId, size: u64) -> Self {
        Self {
            id,
            size,
            version: None,
            version_id: None,
            is_latest: None,
            delete_marker: false,
            soft_deleted: None,
            hard_deleted: None,
            checksums: Checksums::default(),
            content_type: None,
            content_encoding: None,
            cache_control: None,
            content_disposition: None,
            content_language: None,
            expires: None,
            custom_time: None,
            updated: None,
            created: None,
            storage_class: None,
            metadata: None,
            metageneration: None,
            etag: None,
            kms_key: None,
            encryption: None,
            customer_key: None,
            bucket_key: false,
            tags: None,
            retention: None,
            legal_hold: false,
            archived: false,
            archive_status: None,
            restore: None,
        }
    }
}

/// A permission that an access control list grants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessGrant {
    /// The account or group, as the store names it: an S3 account's id, `AllUsers`, `user-a@b.example`.
    pub grantee: String,
    /// The permission, as the store names it: `READ`, `FULL_CONTROL`, `OWNER`.
    pub permission: String,
}

/// A setting that protects an object until a given time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Retention {
    /// The strictness of the retention.
    pub mode: RetentionMode,
    /// The end of the retention.
    pub until: SystemTime,
}

impl Retention {
    /// Returns a retention of this mode until this time.
    pub const fn new(mode: RetentionMode, until: SystemTime) -> Self {
        Self { mode, until }
    }

    /// Reads a time (`2027-01-31T12:00:00Z`), or a day, which means midnight UTC.
    pub fn time(text: &str) -> Option<SystemTime> {
        let is_day = text.len() == "2027-01-31".len();
        if is_day { rfc3339(&format!("{text}T00:00:00Z")) } else { rfc3339(text) }
    }
}

/// The strictness of a retention.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RetentionMode {
    /// A user with a special permission may shorten the retention: S3's `GOVERNANCE`, GCS's `Unlocked`.
    Governance,
    /// No user may shorten the retention: S3's `COMPLIANCE`, GCS's `Locked`.
    Compliance,
}

impl RetentionMode {
    /// Returns its name on S3: `GOVERNANCE` or `COMPLIANCE`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Governance => "GOVERNANCE",
            Self::Compliance => "COMPLIANCE",
        }
    }

    /// Returns the mode with this [`name`](Self::name) or GCS name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        match () {
            () if is("GOVERNANCE") || is("Unlocked") => Some(Self::Governance),
            () if is("COMPLIANCE") || is("Locked") => Some(Self::Compliance),
            () => None,
        }
    }

    /// Returns its name on GCS: `Unlocked` or `Locked`.
    pub(crate) fn gcs_name(self) -> &'static str {
        match self {
            Self::Governance => "Unlocked",
            Self::Compliance => "Locked",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_day_or_a_moment() {
        assert_eq!(Retention::time("2027-01-31"), Retention::time("2027-01-31T00:00:00Z"));
        assert!(Retention::time("2027-01-31").is_some() && Retention::time("soon").is_none());
    }

    #[test]
    fn modes_have_a_name_on_each_store() {
        for mode in [RetentionMode::Governance, RetentionMode::Compliance] {
            assert_eq!(RetentionMode::named(mode.name()), Some(mode));
            assert_eq!(RetentionMode::named(mode.gcs_name()), Some(mode));
            assert_eq!(RetentionMode::named(&mode.name().to_lowercase()), Some(mode));
        }
        assert_eq!(RetentionMode::named("FOREVER"), None);
    }
}
