//! Changes to the metadata of an object that stays in place.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use http::HeaderMap;

use crate::{Condition, ObjectId, ObjectMeta, PutOptions, Version};

/// A change of an object's metadata. `None` keeps a field, and `Some` with an empty text clears it. An empty
/// [`metadata`](Self::metadata) or [`removed`](Self::removed) changes nothing.
///
/// ```
/// use laneway_store::MetaChange;
///
/// let change = MetaChange::default().cache_control("no-store").metadata("author", "me").removed("draft");
/// assert!(!change.is_empty());
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct MetaChange {
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
    /// `Expires`, on S3.
    pub expires: Option<SystemTime>,
    /// GCS's custom time. A change can only set a later time.
    pub custom_time: Option<SystemTime>,
    /// The storage class, as the store names it.
    pub storage_class: Option<String>,
    /// The user metadata to add or replace.
    pub metadata: BTreeMap<String, String>,
    /// The names of user metadata to remove.
    pub removed: BTreeSet<String>,
    /// A predefined access control list, as the store names it: `private`, `bucket-owner-full-control`.
    pub acl: Option<String>,
    /// The tags that replace all tags of the object, on S3. An empty map removes all tags.
    pub tags: Option<BTreeMap<String, String>>,
    /// If true, all user metadata that isn't in [`metadata`](Self::metadata) is removed.
    pub clears_metadata: bool,
}

impl MetaChange {
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

    /// Adds to [`removed`](field@Self::removed).
    #[must_use]
    pub fn removed(mut self, name: impl Into<String>) -> Self {
        self.removed.insert(name.into());
        self
    }

    /// Sets [`clears_metadata`](field@Self::clears_metadata).
    #[must_use]
    pub fn clears_metadata(mut self, clears: bool) -> Self {
        self.clears_metadata = clears;
        self
    }

    /// Sets [`acl`](field@Self::acl).
    #[must_use]
    pub fn acl(mut self, value: impl Into<String>) -> Self {
        self.acl = Some(value.into());
        self
    }

    /// Sets [`tags`](field@Self::tags).
    #[must_use]
    pub fn tags(mut self, tags: BTreeMap<String, String>) -> Self {
        self.tags = Some(tags);
        self
    }

    /// Returns the part of the change that concerns access and tags. Every store can apply this part without a new
    /// object.
    #[must_use]
    pub fn access_only(&self) -> Self {
        Self { acl: self.acl.clone(), tags: self.tags.clone(), ..Self::default() }
    }

    /// Returns true if S3 needs a copy of the object for the change.
    pub fn rewrites(&self) -> bool {
        *self != self.access_only()
    }

    /// Returns true if the change is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if the change affects more than the storage class, access and tags.
    pub(crate) fn describes(&self) -> bool {
        !Self { storage_class: None, acl: None, tags: None, ..self.clone() }.is_empty()
    }

    /// Returns the change with the names of metadata in lower case, because S3 stores them as names of headers.
    pub(crate) fn in_lower_case(&self) -> Self {
        let lower = |name: &String| name.to_lowercase();
        Self {
            metadata: self.metadata.iter().map(|(name, value)| (lower(name), value.clone())).collect(),
            removed: self.removed.iter().map(lower).collect(),
            ..self.clone()
        }
    }

    /// Returns the complete metadata that an object has after the change.
    pub fn applied(&self, meta: &ObjectMeta) -> PutOptions {
        let of = |new: &Option<String>, old: &Option<String>| match new {
            None => old.clone(),
            Some(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        };
        let mut metadata = match self.clears_metadata {
            true => BTreeMap::new(),
            false => meta.metadata.clone().unwrap_or_default(),
        };
        metadata.retain(|name, _| !self.removed.contains(name));
        metadata.extend(self.metadata.clone());
        PutOptions {
            content_type: of(&self.content_type, &meta.content_type),
            content_encoding: of(&self.content_encoding, &meta.content_encoding),
            cache_control: of(&self.cache_control, &meta.cache_control),
            content_disposition: of(&self.content_disposition, &meta.content_disposition),
            content_language: of(&self.content_language, &meta.content_language),
            expires: self.expires,
            custom_time: self.custom_time,
            storage_class: of(&self.storage_class, &meta.storage_class),
            metadata,
            kms_key: meta.kms_key.clone(),
            retention: meta.retention,
            legal_hold: meta.legal_hold,
            ..PutOptions::default()
        }
    }
}

/// An object whose metadata is changed with several requests: its state when it was read, and its new metadata.
#[derive(Clone, Debug)]
pub struct Changing {
    pub(crate) id: ObjectId,
    pub(crate) meta: ObjectMeta,
    /// The headers of the answer that described the object. They contain fields that [`ObjectMeta`] doesn't have.
    pub(crate) headers: HeaderMap,
    pub(crate) options: PutOptions,
}

impl Changing {
    /// Returns a change of the object `found`. `options` are its new metadata: see [`MetaChange::applied`].
    pub fn new(found: ObjectMeta, options: PutOptions) -> Self {
        Self { id: found.id.clone(), meta: found, headers: HeaderMap::new(), options }
    }

    /// Returns the object as it was found.
    pub fn found(&self) -> &ObjectMeta {
        &self.meta
    }

    /// Returns the new metadata of the object.
    pub fn options(&self) -> &PutOptions {
        &self.options
    }

    /// Sets the tags of the changed object. An upload doesn't keep the old tags.
    #[must_use]
    pub fn tags(mut self, tags: BTreeMap<String, String>) -> Self {
        self.options.tags = tags;
        self
    }

    /// Returns the condition that the object is still in the state that was found. Returns [`Condition::None`] if that
    /// state is unknown or a weak entity tag, which can't be a condition.
    pub fn condition(&self) -> Condition {
        match &self.meta.version {
            Some(Version::ETag(tag)) if tag.starts_with("W/") => Condition::None,
            version => version.clone().map_or(Condition::None, Condition::Matches),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_sets_clears_and_leaves() {
        let mut meta = ObjectMeta::new(ObjectId::new("b", "k"), 1);
        meta.content_type = Some("text/plain".into());
        meta.cache_control = Some("no-store".into());
        meta.storage_class = Some("STANDARD_IA".into());
        meta.metadata = Some([("a", "1"), ("b", "2"), ("c", "3")].map(|(k, v)| (k.into(), v.into())).into());
        let change = MetaChange::default().cache_control("").content_language("de");
        let after = change.metadata("B", "4").removed("A").in_lower_case().applied(&meta);
        assert_eq!(after.content_type.as_deref(), Some("text/plain"));
        assert_eq!((after.cache_control, after.content_language.as_deref()), (None, Some("de")));
        assert_eq!(after.storage_class.as_deref(), Some("STANDARD_IA"));
        assert_eq!(after.metadata, [("b", "4"), ("c", "3")].map(|(k, v)| (k.into(), v.into())).into());
        let cleared = MetaChange::default().clears_metadata(true).metadata("d", "5").applied(&meta);
        assert_eq!(cleared.metadata, [("d".to_owned(), "5".to_owned())].into());
        assert!(MetaChange::default().is_empty() && !MetaChange::default().storage_class("X").describes());
    }
}
