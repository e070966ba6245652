//! Objects and buckets as JSON resources, and object attributes from JSON.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;
use time::OffsetDateTime;

use super::fields::Fields;
use crate::habits::Habits;
use crate::objects::asked::{Encryption, Retention};
use crate::objects::{Attributes, Bucket, Object, Versioning};

/// The location of every bucket.
pub(super) const LOCATION: &str = "US";
/// US is a multi-region.
pub(super) const LOCATION_TYPE: &str = "multi-region";
/// The characters that a key's segment in a URL may contain unescaped.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Declares a resource of optional fields with their names in JSON, and a type that tells which of them are selected.
macro_rules! resource {
    ($(#[$about:meta])* $resource:ident, $wanted:ident { $($field:ident $name:literal: $kind:ty,)* }) => {
        $(#[$about])*
        pub(crate) struct $resource<'a> {
            $($field: Option<$kind>,)*
        }

        impl Serialize for $resource<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut fields = serializer.serialize_map(None)?;
                $(if let Some(value) = &self.$field {
                    fields.serialize_entry($name, value)?;
                })*
                fields.end()
            }
        }

        /// The selected fields, looked up once for all objects of an answer.
        pub(super) struct $wanted {
            $($field: bool,)*
        }

        impl $wanted {
            pub(super) fn of(fields: &Fields) -> Self {
                Self { $($field: fields.has($name),)* }
            }
        }
    };
}

resource! {
    /// An object in the JSON API, or its selected fields. Numbers that may exceed 2^53 are strings.
    ObjectResource, Wanted {
        kind "kind": &'static str,
        id "id": String,
        self_link "selfLink": String,
        media_link "mediaLink": String,
        name "name": &'a str,
        bucket "bucket": &'a str,
        generation "generation": Text,
        metageneration "metageneration": Text,
        content_type "contentType": &'a str,
        storage_class "storageClass": &'a str,
        size "size": Text,
        md5_hash "md5Hash": String,
        crc32c "crc32c": String,
        etag "etag": String,
        time_created "timeCreated": String,
        updated "updated": String,
        time_deleted "timeDeleted": String,
        time_storage_class_updated "timeStorageClassUpdated": String,
        content_encoding "contentEncoding": &'a str,
        cache_control "cacheControl": &'a str,
        content_disposition "contentDisposition": &'a str,
        content_language "contentLanguage": &'a str,
        custom_time "customTime": &'a str,
        component_count "componentCount": u32,
        metadata "metadata": &'a BTreeMap<String, String>,
        kms_key_name "kmsKeyName": &'a str,
        customer_encryption "customerEncryption": CustomerEncryption<'a>,
        retention "retention": Keeping,
        temporary_hold "temporaryHold": bool,
    }
}

/// The customer's key that encrypts an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CustomerEncryption<'a> {
    encryption_algorithm: &'static str,
    key_sha256: &'a str,
}

/// The retention of an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Keeping {
    mode: &'static str,
    retain_until_time: String,
}

impl<'a> ObjectResource<'a> {
    pub(crate) fn new(habits: &Habits, base: &str, bucket: &'a str, object: &'a Object) -> Self {
        Self::with(&Wanted::of(&Fields::All), habits, base, bucket, object)
    }

    /// Returns a resource with the selected fields.
    pub(super) fn with(
        wanted: &Wanted,
        habits: &Habits,
        base: &str,
        bucket: &'a str,
        object: &'a Object,
    ) -> Self {
        let Object { key, generation, attributes, .. } = object;
        let escaped = || utf8_percent_encode(key, SEGMENT);
        let (created, updated) = (|| rfc3339(object.created_us), || rfc3339(object.updated_us));
        let encryption = attributes.asked.encryption.as_ref();
        ObjectResource {
            kind: wanted.kind.then_some("storage#object"),
            id: wanted.id.then(|| format!("{bucket}/{key}/{generation}")),
            self_link: wanted.self_link.then(|| format!("{base}/storage/v1/b/{bucket}/o/{}", escaped())),
            media_link: wanted.media_link.then(|| {
                let of = format!("generation={generation}&alt=media");
                format!("{base}/download/storage/v1/b/{bucket}/o/{}?{of}", escaped())
            }),
            name: wanted.name.then_some(key),
            bucket: wanted.bucket.then_some(bucket),
            generation: wanted.generation.then_some(Text(*generation)),
            metageneration: wanted.metageneration.then_some(Text(object.metageneration)),
            content_type: attributes.content_type.as_deref().filter(|_| wanted.content_type),
            storage_class: wanted.storage_class.then(|| object.storage_class()),
            size: Some(object.size).filter(|size| wanted.size && (*size > 0 || habits.empty_sizes)).map(Text),
            md5_hash: wanted.md5_hash.then(|| object.md5_base64()).flatten(),
            crc32c: wanted.crc32c.then(|| object.crc32c_base64()),
            etag: wanted.etag.then(|| object.gcs_etag()),
            time_created: wanted.time_created.then(created),
            updated: wanted.updated.then(updated),
            time_deleted: object.standing.noncurrent_us.filter(|_| wanted.time_deleted).map(rfc3339),
            time_storage_class_updated: wanted.time_storage_class_updated.then(created),
            content_encoding: attributes.content_encoding.as_deref().filter(|_| wanted.content_encoding),
            cache_control: attributes.cache_control.as_deref().filter(|_| wanted.cache_control),
            content_disposition: attributes
                .content_disposition
                .as_deref()
                .filter(|_| wanted.content_disposition),
            content_language: attributes.content_language.as_deref().filter(|_| wanted.content_language),
            custom_time: attributes.custom_time.as_deref().filter(|_| wanted.custom_time),
            component_count: object.components.filter(|_| wanted.component_count),
            metadata: Some(&attributes.metadata).filter(|metadata| !metadata.is_empty() && wanted.metadata),
            kms_key_name: match encryption {
                Some(Encryption::Managed { kms_key, .. }) if wanted.kms_key_name => kms_key.as_deref(),
                _ => None,
            },
            customer_encryption: match encryption {
                Some(Encryption::Customer { sha256, .. }) if wanted.customer_encryption => {
                    Some(CustomerEncryption { encryption_algorithm: "AES256", key_sha256: sha256 })
                }
                _ => None,
            },
            retention: attributes.asked.retention.filter(|_| wanted.retention).map(|retention| Keeping {
                mode: if retention.strict { "Locked" } else { "Unlocked" },
                retain_until_time: rfc3339(retention.until_us),
            }),
            temporary_hold: (attributes.asked.legal_hold && wanted.temporary_hold).then_some(true),
        }
    }

    /// Removes the hashes, which only a client with the object's key may see.
    pub(crate) fn hide_hashes_of(&mut self, object: &Object) {
        if matches!(object.attributes.asked.encryption, Some(Encryption::Customer { .. })) {
            self.crc32c = None;
            self.md5_hash = None;
        }
    }
}

/// A bucket in the JSON API.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BucketResource<'a> {
    kind: &'static str,
    id: &'a str,
    name: &'a str,
    self_link: String,
    location: &'static str,
    location_type: &'static str,
    storage_class: &'static str,
    metageneration: &'static str,
    project_number: &'static str,
    etag: &'static str,
    time_created: String,
    updated: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    versioning: Option<Kept>,
}

/// A bucket's versioning setting.
#[derive(Serialize)]
struct Kept {
    enabled: bool,
}

impl<'a> BucketResource<'a> {
    pub(crate) fn new(base: &str, bucket: &'a Bucket) -> BucketResource<'a> {
        let (name, created_us) = (bucket.name.as_str(), bucket.created_us);
        BucketResource {
            kind: "storage#bucket",
            id: name,
            name,
            self_link: format!("{base}/storage/v1/b/{name}"),
            location: LOCATION,
            location_type: LOCATION_TYPE,
            storage_class: "STANDARD",
            metageneration: "1",
            project_number: "0",
            etag: "CAE=",
            time_created: rfc3339(created_us),
            updated: rfc3339(created_us),
            versioning: bucket
                .versioning_said()
                .map(|versioning| Kept { enabled: versioning == Versioning::Enabled }),
        }
    }
}

/// Applies a JSON resource. Fields that it names are set, `null` clears a field, and the others are kept.
pub(crate) fn apply(attributes: &mut Attributes, resource: &Value) {
    let set = |field: &mut Option<String>, name: &str| match &resource[name] {
        Value::String(text) => *field = Some(text.clone()),
        Value::Null if resource.get(name).is_some() => *field = None,
        _ => {}
    };
    set(&mut attributes.content_type, "contentType");
    set(&mut attributes.content_encoding, "contentEncoding");
    set(&mut attributes.cache_control, "cacheControl");
    set(&mut attributes.content_disposition, "contentDisposition");
    set(&mut attributes.content_language, "contentLanguage");
    set(&mut attributes.storage_class, "storageClass");
    set(&mut attributes.custom_time, "customTime");
    if let Some(hold) = resource["temporaryHold"].as_bool() {
        attributes.asked.legal_hold = hold;
    }
    if let Some(retention) = resource.get("retention") {
        attributes.asked.retention = kept(retention);
    }
    match resource.get("metadata") {
        Some(Value::Null) => attributes.metadata.clear(),
        Some(Value::Object(entries)) => {
            for (name, value) in entries {
                match value {
                    Value::Null => drop(attributes.metadata.remove(name)),
                    Value::String(text) => drop(attributes.metadata.insert(name.clone(), text.clone())),
                    other => drop(attributes.metadata.insert(name.clone(), other.to_string())),
                }
            }
        }
        _ => {}
    }
}

fn kept(retention: &Value) -> Option<Retention> {
    let until = s3s::dto::Timestamp::parse(
        s3s::dto::TimestampFormat::DateTime,
        retention["retainUntilTime"].as_str()?,
    );
    let until = OffsetDateTime::from(until.ok()?);
    let until_us = u64::try_from(until.unix_timestamp_nanos() / 1000).ok()?;
    Some(Retention { strict: retention["mode"].as_str()? == "Locked", until_us })
}

/// Writes `2026-11-21T09:04:05.678Z`.
pub(crate) fn rfc3339(us: u64) -> String {
    let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(us) * 1000)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (year, month, day) = (moment.year(), u8::from(moment.month()), moment.day());
    let (hour, minute, second, ms) = (moment.hour(), moment.minute(), moment.second(), moment.millisecond());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// A number that is written as a string.
struct Text(u64);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_sets_clears_and_leaves() {
        let mut attributes = Attributes {
            content_type: Some("text/plain".to_owned()),
            cache_control: Some("no-store".to_owned()),
            metadata: [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())].into(),
            ..Default::default()
        };
        let patch = serde_json::json!({"cacheControl": null, "contentEncoding": "gzip", "metadata": {"a": null, "c": "3"}});
        apply(&mut attributes, &patch);
        assert_eq!(attributes.content_type.as_deref(), Some("text/plain"));
        assert_eq!(attributes.cache_control, None);
        assert_eq!(attributes.content_encoding.as_deref(), Some("gzip"));
        assert_eq!(attributes.metadata.keys().collect::<Vec<_>>(), ["b", "c"]);
    }

    #[test]
    fn times_are_rfc_3339() {
        assert_eq!(rfc3339(1_700_000_000_123_456), "2023-11-14T22:13:20.123Z");
    }
}
