//! The arguments and the results of an upload.

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::{ObjectId, ObjectMeta, Retention, Version};

/// The metadata of a new object, and the condition of its upload. For an empty field, the store's default applies.
///
/// ```
/// use laneway_store::PutOptions;
///
/// let options = PutOptions::default().cache_control("no-store").metadata("author", "me");
/// assert_eq!(options.cache_control.as_deref(), Some("no-store"));
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct PutOptions {
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Content-Encoding`. It describes the bytes; Laneway doesn't encode them.
    pub content_encoding: Option<String>,
    /// `Cache-Control`.
    pub cache_control: Option<String>,
    /// `Content-Disposition`.
    pub content_disposition: Option<String>,
    /// `Content-Language`.
    pub content_language: Option<String>,
    /// `Expires`, on S3: the time from which caches ask again.
    pub expires: Option<SystemTime>,
    /// GCS's custom time, which lifecycle rules can refer to. A later change can only set a later time.
    pub custom_time: Option<SystemTime>,
    /// The storage class, as the store names it.
    pub storage_class: Option<String>,
    /// The user's own metadata.
    pub metadata: BTreeMap<String, String>,
    /// The condition on the destination.
    pub condition: Condition,
    /// Customer-managed key to encrypt with, instead of [`Settings::kms_key`](crate::Settings::kms_key).
    pub kms_key: Option<String>,
    /// A predefined access control list, as the store names it: `private`, `bucket-owner-full-control`, `public-read`.
    pub acl: Option<String>,
    /// Tags, on S3. A copy without tags keeps its source's tags.
    pub tags: BTreeMap<String, String>,
    /// The retention that protects the object from removal.
    pub retention: Option<Retention>,
    /// If true, a legal hold protects the object until it is lifted.
    pub legal_hold: bool,
}

impl PutOptions {
    /// Fills the empty fields of `self` with those of `before`. Metadata and tags are merged. For a name in both, the
    /// value of `self` is used.
    #[must_use]
    pub fn or(self, before: Self) -> Self {
        let join = |mut names: BTreeMap<_, _>, over| {
            names.extend(over);
            names
        };
        Self {
            content_type: self.content_type.or(before.content_type),
            content_encoding: self.content_encoding.or(before.content_encoding),
            cache_control: self.cache_control.or(before.cache_control),
            content_disposition: self.content_disposition.or(before.content_disposition),
            content_language: self.content_language.or(before.content_language),
            expires: self.expires.or(before.expires),
            custom_time: self.custom_time.or(before.custom_time),
            storage_class: self.storage_class.or(before.storage_class),
            metadata: join(before.metadata, self.metadata),
            condition: if self.condition.is_none() { before.condition } else { self.condition },
            kms_key: self.kms_key.or(before.kms_key),
            acl: self.acl.or(before.acl),
            tags: join(before.tags, self.tags),
            retention: self.retention.or(before.retention),
            legal_hold: self.legal_hold || before.legal_hold,
        }
    }

    /// Sets [`content_type`](field@Self::content_type).
    #[must_use]
    pub fn content_type(mut self, value: impl Into<String>) -> Self {
        self.content_type = Some(value.into());
        self
    }

    /// Sets [`content_encoding`](field@Self::content_encoding).
    #[must_use]
    pub fn content_encoding(mut self, value: impl Into<String>) -> Self {
        self.content_encoding = Some(value.into());
        self
    }

    /// Sets [`cache_control`](field@Self::cache_control).
    #[must_use]
    pub fn cache_control(mut self, value: impl Into<String>) -> Self {
        self.cache_control = Some(value.into());
        self
    }

    /// Sets [`content_disposition`](field@Self::content_disposition).
    #[must_use]
    pub fn content_disposition(mut self, value: impl Into<String>) -> Self {
        self.content_disposition = Some(value.into());
        self
    }

    /// Sets [`content_language`](field@Self::content_language).
    #[must_use]
    pub fn content_language(mut self, value: impl Into<String>) -> Self {
        self.content_language = Some(value.into());
        self
    }

    /// Sets [`expires`](field@Self::expires).
    #[must_use]
    pub fn expires(mut self, time: SystemTime) -> Self {
        self.expires = Some(time);
        self
    }

    /// Sets [`custom_time`](field@Self::custom_time).
    #[must_use]
    pub fn custom_time(mut self, time: SystemTime) -> Self {
        self.custom_time = Some(time);
        self
    }

    /// Sets [`storage_class`](field@Self::storage_class).
    #[must_use]
    pub fn storage_class(mut self, value: impl Into<String>) -> Self {
        self.storage_class = Some(value.into());
        self
    }

    /// Adds to [`metadata`](field@Self::metadata).
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }

    /// Sets [`condition`](field@Self::condition).
    #[must_use]
    pub fn condition(mut self, condition: Condition) -> Self {
        self.condition = condition;
        self
    }

    /// Sets [`kms_key`](field@Self::kms_key).
    #[must_use]
    pub fn kms_key(mut self, value: impl Into<String>) -> Self {
        self.kms_key = Some(value.into());
        self
    }

    /// Sets [`acl`](field@Self::acl).
    #[must_use]
    pub fn acl(mut self, value: impl Into<String>) -> Self {
        self.acl = Some(value.into());
        self
    }

    /// Adds to [`tags`](field@Self::tags).
    #[must_use]
    pub fn tag(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.insert(name.into(), value.into());
        self
    }

    /// Sets [`retention`](field@Self::retention).
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = Some(retention);
        self
    }

    /// Sets [`legal_hold`](field@Self::legal_hold).
    #[must_use]
    pub fn legal_hold(mut self, held: bool) -> Self {
        self.legal_hold = held;
        self
    }
}

impl PutOptions {
    /// Returns true if a field of the object's metadata is set.
    pub(crate) fn describes(&self) -> bool {
        self.content_type.is_some()
            || self.content_encoding.is_some()
            || self.cache_control.is_some()
            || self.content_disposition.is_some()
            || self.content_language.is_some()
            || self.expires.is_some()
            || self.custom_time.is_some()
            || !self.metadata.is_empty()
    }

    /// Returns true if a retention or a hold is set.
    pub(crate) fn is_protected(&self) -> bool {
        self.retention.is_some() || self.legal_hold
    }

    /// Returns these options, with empty fields filled in from an object. A copy needs this: if the request sets some
    /// fields, the store drops the source's other fields.
    #[must_use]
    pub fn described_like(&self, source: &ObjectMeta) -> Self {
        let mut merged = self.clone();
        let keep = |field: &mut Option<String>, old: &Option<String>| {
            if field.is_none() {
                field.clone_from(old);
            }
        };
        keep(&mut merged.content_type, &source.content_type);
        keep(&mut merged.content_encoding, &source.content_encoding);
        keep(&mut merged.cache_control, &source.cache_control);
        keep(&mut merged.content_disposition, &source.content_disposition);
        keep(&mut merged.content_language, &source.content_language);
        if merged.metadata.is_empty() {
            merged.metadata = source.metadata.clone().unwrap_or_default();
        }
        merged
    }
}

/// The condition of a write.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum Condition {
    /// No condition.
    #[default]
    None,
    /// The object doesn't exist.
    Absent,
    /// The object is in this state.
    Matches(Version),
}

/// An object to be deleted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deletion {
    /// Its key.
    pub key: String,
    /// The object is deleted only if it is in this state. `None` means any state.
    pub version: Option<Version>,
    /// The version to delete permanently, as in [`ObjectId::version`]. `None` means the live object.
    pub id: Option<Box<str>>,
}

impl Deletion {
    /// Deletes the object in any state.
    pub fn any(key: impl Into<String>) -> Self {
        Self { key: key.into(), version: None, id: None }
    }
}

impl Deletion {
    /// Returns the object's id in a bucket.
    pub(crate) fn object_id(&self, bucket: &str) -> ObjectId {
        ObjectId { version: self.id.clone(), ..ObjectId::new(bucket, &self.key) }
    }
}

impl Condition {
    /// Returns true if there is no condition.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// An unfinished multipart upload. It contains no secret, so it may be saved, and another process may continue it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Multipart {
    /// The future object.
    pub id: ObjectId,
    /// The store's id of the upload.
    pub upload_id: String,
    /// The kind of checksum that the store keeps for the parts.
    pub checksums: PartChecksums,
}

/// The checksum that a store keeps from the CRC32Cs of the parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartChecksums {
    /// The store keeps one CRC32C of the whole object.
    FullObject,
    /// The store keeps the CRC32C of the parts' CRC32Cs.
    Composite,
    /// The store keeps no CRC32C of parts.
    None,
}

/// A part that the store has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Part {
    /// The part number, from 1 to 10000.
    pub number: u32,
    /// The store's entity tag for it, as the store wrote it.
    pub etag: String,
    /// The size in bytes.
    pub size: u64,
    /// The CRC32C of its bytes. `None` for a copied part if the store didn't send it.
    pub crc32c: Option<u32>,
    /// The MD5 of its bytes. It is set if the store sends no other checksum, and has been compared with the entity tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub md5: Option<[u8; 16]>,
}

/// A part as the store lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredPart {
    /// The part number, from 1 to 10000.
    pub number: u32,
    /// The store's entity tag for it, as the store wrote it.
    pub etag: String,
    /// The size in bytes.
    pub size: u64,
    /// The CRC32C of its bytes, if the store sends it.
    pub crc32c: Option<u32>,
}

impl StoredPart {
    /// Returns true if this is the part that an earlier answer described. Servers don't always quote entity tags, so
    /// quotes are ignored.
    pub fn is_same(&self, part: &Part) -> bool {
        self.number == part.number
            && self.size == part.size
            && self.etag.trim_matches('"') == part.etag.trim_matches('"')
            && (self.crc32c.is_none() || self.crc32c == part.crc32c)
    }
}

/// A GCS resumable session. Everybody who knows its URL can write to it, so `Debug` leaves the URL out.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumable {
    /// The future object.
    pub id: ObjectId,
    /// The session's URL: a secret.
    pub url: String,
    /// The size of the whole object in bytes, if it was known when the session began.
    pub len: Option<u64>,
}

impl fmt::Debug for Resumable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resumable").field("id", &self.id).field("len", &self.len).finish_non_exhaustive()
    }
}

/// The state of a resumable session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Appended {
    /// The store has the bytes below this offset. Continue there.
    Continue {
        /// The first byte that the store doesn't have.
        next_offset: u64,
    },
    /// The object exists.
    Finished(Box<ObjectMeta>),
    /// The session has ended, and its result can't be read any more. Read the object's metadata instead.
    Ended,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_copy_is_not_told_is_taken_from_its_source() {
        let mut source = ObjectMeta::new(ObjectId::new("b", "k"), 1);
        source.content_type = Some("old/type".into());
        source.cache_control = Some("no-store".into());
        source.metadata = Some([("k".into(), "v".into())].into());
        let options = PutOptions { content_type: Some("new/type".into()), ..PutOptions::default() };
        assert!(options.describes() && !PutOptions::default().describes());
        let merged = options.described_like(&source);
        assert_eq!(merged.content_type.as_deref(), Some("new/type"));
        assert_eq!(merged.cache_control.as_deref(), Some("no-store"));
        assert_eq!(Some(merged.metadata), source.metadata);
    }

    #[test]
    fn options_keep_what_was_set_before_where_they_are_empty() {
        let before = PutOptions::default().content_type("old/type").metadata("a", "1").metadata("b", "1");
        let options = PutOptions::default().cache_control("no-store").metadata("b", "2").or(before);
        assert_eq!(options.content_type.as_deref(), Some("old/type"));
        assert_eq!(options.cache_control.as_deref(), Some("no-store"));
        assert_eq!(options.metadata, [("a".into(), "1".into()), ("b".into(), "2".into())].into());
    }

    #[test]
    fn a_listed_part_is_the_same_if_nothing_that_is_told_differs() {
        let part = Part { number: 2, etag: "\"e\"".into(), size: 5, crc32c: Some(7), md5: None };
        let listed = StoredPart { number: 2, etag: "e".into(), size: 5, crc32c: None };
        assert!(listed.is_same(&part));
        assert!(StoredPart { crc32c: Some(7), ..listed.clone() }.is_same(&part));
        assert!(!StoredPart { crc32c: Some(8), ..listed.clone() }.is_same(&part));
        assert!(!StoredPart { number: 3, ..listed.clone() }.is_same(&part));
        assert!(!StoredPart { size: 6, ..listed.clone() }.is_same(&part));
        assert!(!StoredPart { etag: "f".into(), ..listed }.is_same(&part));
    }

    #[test]
    fn a_sessions_url_stays_out_of_debug() {
        let session = Resumable { id: ObjectId::new("b", "k"), url: "https://h/secret".into(), len: None };
        assert!(!format!("{session:?}").contains("secret"));
    }
}
