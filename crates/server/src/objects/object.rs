//! One generation of an object: its metadata, its content, and the properties that its writer requested. The store
//! keeps and returns these properties, and implements them only as far as a demo store needs.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use super::blob::BlobProperties;
use super::content::Content;
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

/// The id of the account that owns everything.
pub(crate) const ACCOUNT: &str = "000000000000";

/// Encryption, access control, tags and locks. The store encrypts nothing, but it compares a customer's key and
/// enforces locks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObjectOptions {
    /// The object's encryption, if the writer requested one.
    pub encryption: Option<ObjectEncryption>,
    /// The predefined access control list.
    pub acl: Option<String>,
    /// S3's tags.
    pub tags: BTreeMap<String, String>,
    /// The retention of the object.
    pub retention: Option<RetentionLock>,
    /// S3's legal hold; `None` if it was never set.
    #[serde(default)]
    pub legal_hold: Option<bool>,
    /// GCS's temporary hold; `None` if it was never set.
    #[serde(default)]
    pub temporary_hold: Option<bool>,
    /// GCS's event-based hold; `None` if it was never set.
    #[serde(default)]
    pub event_hold: Option<bool>,
    /// The time when the event-based hold was released, in microseconds since 1970.
    #[serde(default)]
    pub event_released_us: Option<u64>,
}

/// The encryption of an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ObjectEncryption {
    /// Encryption with a key that the store manages.
    Managed {
        /// The algorithm: `AES256`, `aws:kms` or `aws:kms:dsse`.
        algorithm: String,
        /// The key of the key management service.
        kms_key: Option<String>,
        /// True if S3 uses a bucket key.
        bucket_key: bool,
    },
    /// Encryption with the customer's own key. The store keeps only hashes of the key, in base64.
    Customer {
        /// The MD5 of the key, which S3's answers contain.
        md5: String,
        /// The SHA-256 of the key, which GCS's answers contain.
        sha256: String,
    },
}

/// The retention of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionLock {
    /// True for `COMPLIANCE` or `Locked`, false for `GOVERNANCE` or `Unlocked`.
    pub strict: bool,
    /// The end of the retention, in microseconds since 1970.
    pub until_us: u64,
}

/// A group of users besides the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    AllUsers,
    AuthenticatedUsers,
}

/// Returns the group to which a predefined access control list grants access, and true if it may write. `None` means that the list
/// grants access only to the owner. The JSON API spells the names in another way (`publicRead`) than S3 and the XML API
/// (`public-read`).
pub(crate) fn granted(acl: Option<&str>) -> Option<(Group, bool)> {
    match acl?.replace('-', "").to_ascii_lowercase().as_str() {
        "publicread" => Some((Group::AllUsers, false)),
        "publicreadwrite" => Some((Group::AllUsers, true)),
        "authenticatedread" => Some((Group::AuthenticatedUsers, false)),
        _ => None,
    }
}

const DAY_US: u64 = 24 * 60 * 60 * 1_000_000;

/// A restoration that a client has requested.
///
/// Restoration from S3's archives. An archived object can be read only after a client has requested its restoration,
/// which makes a temporary copy. [S3](https://docs.aws.amazon.com/AmazonS3/latest/userguide/restoring-objects.html)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Restore {
    /// The time from which the copy can be read, in microseconds since 1970.
    ready_us: u64,
    /// The time when the copy is removed. `None` if the object itself leaves the archive, as objects of the class
    /// INTELLIGENT_TIERING do.
    ends_us: Option<u64>,
}

impl Restore {
    /// Returns the restoration to a copy that can be read from `ready_us` on, for this many days. As on S3, the last
    /// day ends at midnight.
    pub(crate) fn copy(ready_us: u64, days: u32) -> Restore {
        let days_over = (ready_us / DAY_US).saturating_add(u64::from(days)) + 1;
        Restore { ready_us, ends_us: Some(days_over.saturating_mul(DAY_US)) }
    }

    /// Returns a restoration after which the object itself has left the archive, at `ready_us`.
    pub(crate) fn for_good(ready_us: u64) -> Restore {
        Restore { ready_us, ends_us: None }
    }
}

/// The place of an object's bytes at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Availability {
    /// The object isn't archived, like most objects.
    AtHand,
    /// The object is in an archive. `restoring` is true if a restoration is running.
    Archive { restoring: bool },
    /// The object is in an archive, but has a copy that can be read until this time, in microseconds since 1970.
    Copied { until_us: u64 },
}

impl Object {
    /// Returns the object's place at `now_us`, in microseconds since 1970.
    pub(crate) fn place(&self, now_us: u64) -> Availability {
        let is_class = matches!(self.storage_class(), "GLACIER" | "DEEP_ARCHIVE");
        if !is_class && self.attributes.archive_status.is_none() {
            return Availability::AtHand;
        }
        match self.restore {
            Some(restore) if now_us < restore.ready_us => Availability::Archive { restoring: true },
            Some(Restore { ends_us: None, .. }) => Availability::AtHand,
            Some(Restore { ends_us: Some(until_us), .. }) if now_us < until_us => {
                Availability::Copied { until_us }
            }
            _ => Availability::Archive { restoring: false },
        }
    }

    /// Returns S3's name of the archive tier of an INTELLIGENT_TIERING object, or `None` if the object isn't archived
    /// at `now_us`.
    pub(crate) fn archive_tier(&self, now_us: u64) -> Option<&str> {
        let in_archive = matches!(self.place(now_us), Availability::Archive { .. });
        self.attributes.archive_status.as_deref().filter(|_| in_archive)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::Storage;
    use crate::objects::{Attributes, Objects};

    const HOUR_US: u64 = DAY_US / 24;

    fn object(class: &str, tier: Option<&str>, restore: Option<Restore>) -> Object {
        let attributes = Attributes {
            storage_class: Some(class.to_owned()),
            archive_status: tier.map(str::to_owned),
            ..Attributes::default()
        };
        let store = Objects::open(&Storage::Memory, true, false).unwrap();
        let object = Arc::unwrap_or_clone(store.put_with("b", "k", b"x", attributes).unwrap());
        Object { restore, ..object }
    }

    #[test]
    fn a_copy_comes_and_goes() {
        for class in ["GLACIER", "DEEP_ARCHIVE"] {
            assert_eq!(object(class, None, None).place(0), Availability::Archive { restoring: false });
            let restored = object(class, None, Some(Restore::copy(5 * HOUR_US, 2)));
            assert_eq!(restored.place(5 * HOUR_US - 1), Availability::Archive { restoring: true });
            let until_us = 3 * DAY_US;
            assert_eq!(restored.place(5 * HOUR_US), Availability::Copied { until_us });
            assert_eq!(restored.place(until_us - 1), Availability::Copied { until_us });
            assert_eq!(restored.place(until_us), Availability::Archive { restoring: false });
        }
        assert_eq!(object("GLACIER_IR", None, None).place(0), Availability::AtHand);
    }

    #[test]
    fn what_is_tiered_leaves_its_archive() {
        let tier = Some("ARCHIVE_ACCESS");
        let archived = object("INTELLIGENT_TIERING", tier, None);
        assert_eq!(
            (archived.place(0), archived.archive_tier(0)),
            (Availability::Archive { restoring: false }, tier)
        );
        let restored = object("INTELLIGENT_TIERING", tier, Some(Restore::for_good(HOUR_US)));
        assert_eq!(
            (restored.place(0), restored.archive_tier(0)),
            (Availability::Archive { restoring: true }, tier)
        );
        assert_eq!((restored.place(HOUR_US), restored.archive_tier(HOUR_US)), (Availability::AtHand, None));
        assert_eq!(restored.place(1000 * DAY_US), Availability::AtHand);
    }
}
