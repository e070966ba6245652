//! One generation of an object: its metadata and its content.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use super::blob::BlobProperties;
use super::content::Content;
use super::options::ObjectOptions;
use super::restore::Restore;
use crate::checksum::{Algorithm, ComputedChecksums, base64, hex};

/// The metadata that the writer of an object sets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Attributes {
    /// The header `Content-Type`.
    pub content_type: Option<String>,
    /// The header `Content-Encoding`.
    pub content_encoding: Option<String>,
    /// The header `Cache-Control`.
    pub cache_control: Option<String>,
    /// The header `Content-Disposition`.
    pub content_disposition: Option<String>,
    /// The header `Content-Language`.
    pub content_language: Option<String>,
    /// The storage class. The default is STANDARD.
    pub storage_class: Option<String>,
    /// The archive tier of an object of the class INTELLIGENT_TIERING: `ARCHIVE_ACCESS` or `DEEP_ARCHIVE_ACCESS`.
    #[serde(default)]
    pub archive_status: Option<String>,
    /// GCS's `customTime`, an RFC 3339 time that its writer chose.
    #[serde(default)]
    pub custom_time: Option<String>,
    /// The header `Expires`, exactly as the writer sent it.
    #[serde(default)]
    pub expires: Option<String>,
    /// S3's `x-amz-website-redirect-location`: the location to which a website redirects visitors.
    #[serde(default)]
    pub website_redirect: Option<String>,
    /// User metadata.
    pub metadata: BTreeMap<String, String>,
    /// Encryption, access control, tags and locks.
    // The JSON files of existing stores contain this field under the name `asked`.
    #[serde(default, rename = "asked")]
    pub options: ObjectOptions,
}

impl Attributes {
    /// Returns the attributes in the form in which objects keep them. Objects without attributes share one value,
    /// because there may be millions of them.
    pub(crate) fn shared(self) -> Arc<Attributes> {
        static NONE: LazyLock<Arc<Attributes>> = LazyLock::new(Arc::default);
        if self == **NONE { NONE.clone() } else { Arc::new(self) }
    }
}

/// Serializes the attributes of each object separately, although objects may share them in memory.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::Attributes;

    pub(super) fn serialize<S: Serializer>(attributes: &Arc<Attributes>, to: S) -> Result<S::Ok, S::Error> {
        Attributes::serialize(attributes, to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Attributes>, D::Error> {
        Attributes::deserialize(from).map(Attributes::shared)
    }
}

/// The state of one version of a key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionState {
    /// True if the version was written with versioning enabled. Otherwise S3 shows its id as `null`.
    pub has_id: bool,
    /// True if the version is a delete marker, with which S3 records that the key was deleted.
    pub is_delete_marker: bool,
    /// The time when the version became noncurrent, in microseconds since 1970.
    pub noncurrent_us: Option<u64>,
}

/// One generation of an object. It never changes: a write makes a new generation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Object {
    /// The exact key.
    pub key: String,
    /// The size in bytes.
    pub size: u64,
    /// The generation. It strictly increases over the whole store. It is the time in microseconds since 1970, unless
    /// the clock went back.
    pub generation: u64,
    /// The metageneration. It starts at 1, and grows by one with each change of metadata.
    pub metageneration: u64,
    /// CRC32C of the content.
    pub crc32c: u32,
    /// CRC64NVME of the content, if it was computed.
    pub crc64nvme: Option<u64>,
    /// MD5 of the content. Composite, multipart and large GCS objects have none.
    pub md5: Option<[u8; 16]>,
    /// The S3 ETag, without quotes.
    pub etag: String,
    /// The number of components of a GCS composite object.
    pub components: Option<u32>,
    /// The number of parts of an S3 multipart object.
    pub parts: Option<u32>,
    /// The sizes of the parts.
    #[serde(default)]
    pub(crate) part_sizes: Vec<u64>,
    /// The base64 checksum of each part, if the parts were uploaded with checksums.
    #[serde(default)]
    pub(crate) part_sums: Vec<String>,
    /// The metadata that its writer set.
    #[serde(with = "shared")]
    pub attributes: Arc<Attributes>,
    #[serde(default)]
    pub(crate) restore: Option<Restore>,
    /// The time of creation, in microseconds since 1970. It is S3's `Last-Modified`, which tags, locks and access control
    /// lists don't change.
    pub created_us: u64,
    /// The time of the last change, in microseconds since 1970.
    pub updated_us: u64,
    /// The state of this generation among the versions of its key.
    #[serde(default)]
    pub standing: VersionState,
    pub(crate) checksum: Option<StoredChecksum>,
    /// The properties that only Azure has.
    #[serde(default)]
    pub(crate) blob: Option<Box<BlobProperties>>,
    #[serde(skip)]
    pub(crate) content: Content,
}

/// The checksum that S3 returns for an object, with the algorithm that the writer chose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredChecksum {
    pub(crate) algorithm: Algorithm,
    /// The value in the header, with `-N` for composites.
    pub(crate) value: String,
    pub(crate) composite: bool,
}

impl Object {
    /// Returns an empty object without metadata.
    pub(crate) fn empty(key: &str, generation: u64) -> Object {
        Object {
            key: key.to_owned(),
            size: 0,
            generation,
            metageneration: 1,
            crc32c: 0,
            crc64nvme: None,
            md5: None,
            etag: String::new(),
            components: None,
            parts: None,
            part_sizes: Vec::new(),
            part_sums: Vec::new(),
            attributes: Attributes::default().shared(),
            restore: None,
            created_us: 0,
            updated_us: 0,
            standing: VersionState::default(),
            checksum: None,
            blob: None,
            content: Content::default(),
        }
    }

    /// Returns the CRC32C in base64, as in JSON metadata and `x-goog-hash`.
    pub(crate) fn crc32c_base64(&self) -> String {
        base64(&self.crc32c.to_be_bytes())
    }

    pub(crate) fn md5_base64(&self) -> Option<String> {
        self.md5.map(|md5| base64(&md5))
    }

    /// Returns the JSON API's ETag, which changes with metadata too.
    pub(crate) fn gcs_etag(&self) -> String {
        let mut state = [0; 12];
        state[..8].copy_from_slice(&self.generation.to_be_bytes());
        state[8..].copy_from_slice(&(self.metageneration as u32).to_be_bytes());
        base64(&state)
    }

    pub(crate) fn storage_class(&self) -> &str {
        self.attributes.storage_class.as_deref().unwrap_or("STANDARD")
    }

    pub(crate) fn sums(&self) -> ComputedChecksums {
        ComputedChecksums {
            size: self.size,
            crc32c: self.crc32c,
            crc64nvme: self.crc64nvme,
            md5: self.md5,
            extra: None,
        }
    }
}

/// Returns the ETag of an object whose MD5 isn't known. It is opaque, and ends in `-1` so that clients don't take it
/// for an MD5.
pub(crate) fn opaque_etag(generation: u64, crc32c: u32) -> String {
    let mut state = [0; 16];
    state[..8].copy_from_slice(&generation.to_be_bytes());
    state[12..].copy_from_slice(&crc32c.to_be_bytes());
    format!("{}-1", hex(&state))
}
