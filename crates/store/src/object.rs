//! What an object is: its name, its state, what the store says about it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Checksums, Retention};

/// The kind of a store. It decides how URLs are read and which settings apply, and nothing else: see
/// [`Capabilities`](crate::Capabilities).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Provider {
    /// Google Cloud Storage: the JSON API, and the XML API for parallel multipart uploads.
    Gcs,
    /// Amazon S3 and what speaks its protocol.
    S3,
    /// A store that speaks a [`Dialect`](crate::Dialect) of the caller's, under the scheme of its URLs: see [`Provider::other`].
    Other(ReservedScheme),
}

impl Provider {
    /// The clouds whose dialects come with this crate.
    pub const CLOUDS: [Self; 2] = [Self::Gcs, Self::S3];

    /// Reserves a scheme for a dialect of the caller's, so that URLs of that scheme are read as objects of such a store. A scheme
    /// stays reserved until the process ends.
    ///
    /// # Errors
    /// [`NotAScheme`] for what is no scheme in lower case, or means something else.
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

    /// Returns the kind of store that a URL's scheme, in lower case, names.
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

    /// The scheme of its URLs: `gs`, `s3`, or the one that was reserved.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Gcs => "gs",
            Self::S3 => "s3",
            Self::Other(ReservedScheme(scheme)) => scheme,
        }
    }
}

/// The scheme of a dialect of the caller's. [`Provider::other`] alone makes one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReservedScheme(&'static str);

/// Schemes that mean a cloud or a path, or will.
const TAKEN: [&str; 10] = ["gs", "s3", "gcs", "file", "http", "https", "az", "azure", "abfs", "abfss"];

/// Schemes of dialects of the caller's. One costs its few bytes until the process ends.
static RESERVED: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// A text that can't be the scheme of a dialect: it isn't one in lower case, or means something else already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a dialect's scheme is a letter and then letters, digits, +, - and . in lower case, and none that Laneway uses itself"
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

/// The name of an object. The key is what the store holds, never normalised; `Display` doesn't escape it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ObjectId {
    /// The bucket.
    pub bucket: String,
    /// The key, at most 1024 bytes of UTF-8.
    pub key: String,
    /// One of the versions that a bucket keeps of the key, by the store's own name for it: a GCS generation in digits, an S3 version
    /// id. `None` is the live object. What is read by it is that version; what is deleted by it is gone for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Box<str>>,
}

impl ObjectId {
    /// The object `key` in `bucket`.
    pub fn new(bucket: impl Into<String>, key: impl Into<String>) -> Self {
        Self { bucket: bucket.into(), key: key.into(), version: None }
    }

    /// One version of it.
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

/// Which state of an object is meant: what changes with every write to its key.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Version {
    /// A GCS generation.
    Generation(u64),
    /// An S3 entity tag, without quotes; a weak one keeps its `W/`.
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

/// What a store says about an object. What it leaves out is `None` or empty.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ObjectMeta {
    /// Its name.
    pub id: ObjectId,
    /// Size of the whole object in bytes, as stored.
    pub size: u64,
    /// Its state.
    pub version: Option<Version>,
    /// S3: which of the versions that its bucket keeps it is, by the store's own name.
    pub version_id: Option<String>,
    /// In a listing of versions: whether it is what its key alone names.
    pub is_latest: Option<bool>,
    /// In a listing of versions: whether it is no object, but S3's note that its key was deleted.
    pub delete_marker: bool,
    /// Checksums of the whole object, as stored.
    pub checksums: Checksums,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Content-Encoding` as stored.
    pub content_encoding: Option<String>,
    /// `Cache-Control`; also `None` where the answer doesn't tell, as [`metadata`](Self::metadata) shows.
    pub cache_control: Option<String>,
    /// `Content-Disposition`.
    pub content_disposition: Option<String>,
    /// `Content-Language`.
    pub content_language: Option<String>,
    /// When it was last changed.
    pub updated: Option<SystemTime>,
    /// When it was created, where the store tells that besides: GCS does so to a `head`. To S3 whatever changes is another object.
    pub created: Option<SystemTime>,
    /// Storage class in the store's own words.
    pub storage_class: Option<String>,
    /// The user's own metadata; names in lower case on S3. `None` where the answer isn't about it: then [`cache_control`](Self::cache_control)
    /// isn't told either. So it is with GCS's answers to reads and S3's listings; a `head` always tells both.
    pub metadata: Option<BTreeMap<String, String>>,
    /// GCS: counts changes to the metadata of this generation.
    pub metageneration: Option<u64>,
    /// The entity tag as the store gives it, without quotes; on S3 the same as [`version`](Self::version).
    pub etag: Option<String>,
    /// Customer-managed key that encrypts the object, in the store's own words.
    pub kms_key: Option<String>,
    /// How the object is encrypted, in the store's own words: `AES256`, `aws:kms`, `aws:kms:dsse`; with a customer's own
    /// key `customer AES256`.
    pub encryption: Option<String>,
    /// The customer's own key that encrypts the object, by the hash that the store keeps of it.
    pub customer_key: Option<String>,
    /// Whether a key of the bucket stands between object and KMS key.
    pub bucket_key: bool,
    /// How many tags the object has, where the store says.
    pub tags: Option<u32>,
    /// Until when it can't be removed.
    pub retention: Option<Retention>,
    /// Whether it can't be removed until its hold is lifted.
    pub legal_hold: bool,
    /// Whether it is known to lie in an archive, from which it has to be restored before it can be read.
    pub archived: bool,
    /// The archive of an intelligently tiered object, in the store's own words.
    pub archive_status: Option<String>,
    /// How far its restoring is, or until when it stays restored, in the store's own words.
    pub restore: Option<String>,
}

impl ObjectMeta {
    /// An object about which only name and size are known.
    pub fn new(id: ObjectId, size: u64) -> Self {
        Self {
            id,
            size,
            version: None,
            version_id: None,
            is_latest: None,
            delete_marker: false,
            checksums: Checksums::default(),
            content_type: None,
            content_encoding: None,
            cache_control: None,
            content_disposition: None,
            content_language: None,
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
