//! Writes objects and buckets as JSON resources, and reads object attributes from JSON.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::answer::ApiError;
use super::bucket_fields::storage_class;
use super::fields::Fields;
use super::{JsonCall, acl};
use crate::checksum::base64;
use crate::habits::Habits;
use crate::objects::object::ObjectEncryption;
use crate::objects::precondition::policy_ends;
use crate::objects::settings::RetentionPolicy;
use crate::objects::{Attributes, Object, StoredBucket, Versioning};

/// The location of a bucket whose creation named no location.
pub(super) const LOCATION: &str = "US";
/// The characters to escape when a key is written as a segment of a URL's path.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Declares two types: a resource of optional fields with their names in JSON, and a set of flags, one for each field.
/// A flag is true if a request selects the field.
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

        /// A set of flags, one for each field. A flag is true if the field is selected. The flags are computed once for
        /// all objects of an answer.
        pub(super) struct $wanted {
            $($field: bool,)*
        }

        impl $wanted {
            fn of(fields: &Fields) -> Self {
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
        generation "generation": NumberText,
        metageneration "metageneration": NumberText,
        content_type "contentType": &'a str,
        storage_class "storageClass": &'a str,
        size "size": NumberText,
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
        customer_encryption "customerEncryption": CustomerEncryptionResource<'a>,
        retention "retention": RetentionResource,
        temporary_hold "temporaryHold": bool,
        event_based_hold "eventBasedHold": bool,
        retention_expiration_time "retentionExpirationTime": String,
        acl "acl": Vec<acl::AclEntry>,
    }
}

impl Wanted {
    /// Returns the fields of a bucket's objects that a call selects.
    pub(super) fn by(call: &JsonCall<'_>, bucket: &str, fields: &Fields) -> Wanted {
        let bucket = call.state.objects.bucket(bucket);
        let has_lists = call.is_full() && bucket.is_ok_and(|bucket| !bucket.settings().has_uniform_access());
        let wanted = Wanted::of(fields);
        Wanted { acl: wanted.acl && has_lists, ..wanted }
    }
}

/// The customer's key that encrypts an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CustomerEncryptionResource<'a> {
    encryption_algorithm: &'static str,
    key_sha256: &'a str,
}

/// The retention of an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RetentionResource {
    mode: &'static str,
    retain_until_time: String,
}

impl<'a> ObjectResource<'a> {
    /// Returns the resource of an object in this bucket, for the answer to a call.
    pub(crate) fn new(call: &JsonCall<'_>, bucket: &'a str, object: &'a Object) -> Self {
        let policy = call.state.objects.bucket(bucket).ok().and_then(|bucket| bucket.settings().policy);
        let (habits, base) = (&call.state.habits, call.base_url());
        Self::with(&Wanted::by(call, bucket, &Fields::All), habits, &base, bucket, policy, object)
    }

    /// Returns a resource with the selected fields, for a bucket with this policy.
    pub(super) fn with(
        wanted: &Wanted,
        habits: &Habits,
        base: &str,
        bucket: &'a str,
        policy: Option<RetentionPolicy>,
        object: &'a Object,
    ) -> Self {
        let Object { key, generation, attributes, .. } = object;
        let escaped = || utf8_percent_encode(key, SEGMENT);
        let (created, updated) = (|| rfc3339(object.created_us), || rfc3339(object.updated_us));
        let encryption = attributes.options.encryption.as_ref();
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
            generation: wanted.generation.then_some(NumberText(*generation)),
            metageneration: wanted.metageneration.then_some(NumberText(object.metageneration)),
            content_type: attributes.content_type.as_deref().filter(|_| wanted.content_type),
            storage_class: wanted.storage_class.then(|| object.storage_class()),
            size: Some(object.size)
                .filter(|size| wanted.size && (*size > 0 || habits.empty_sizes))
                .map(NumberText),
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
                Some(ObjectEncryption::Managed { kms_key, .. }) if wanted.kms_key_name => kms_key.as_deref(),
                _ => None,
            },
            customer_encryption: match encryption {
                Some(ObjectEncryption::Customer { sha256, .. }) if wanted.customer_encryption => {
                    Some(CustomerEncryptionResource { encryption_algorithm: "AES256", key_sha256: sha256 })
                }
                _ => None,
            },
            retention: attributes.options.retention.filter(|_| wanted.retention).map(|retention| {
                RetentionResource {
                    mode: if retention.strict { "Locked" } else { "Unlocked" },
                    retain_until_time: rfc3339(retention.until_us),
                }
            }),
            temporary_hold: attributes.options.temporary_hold.filter(|_| wanted.temporary_hold),
            event_based_hold: attributes.options.event_hold.filter(|_| wanted.event_based_hold),
            retention_expiration_time: wanted
                .retention_expiration_time
                .then(|| policy_ends(policy, object))
                .flatten()
                .map(rfc3339),
            acl: wanted.acl.then(|| acl::of_object(attributes.options.acl.as_deref())),
        }
    }

    /// Removes the hashes of an object under a customer's key, because only clients with the key may see them.
    pub(crate) fn hide_hashes_of(&mut self, object: &Object) {
        if matches!(object.attributes.options.encryption, Some(ObjectEncryption::Customer { .. })) {
            self.crc32c = None;
            self.md5_hash = None;
        }
    }
}

/// Returns a bucket in the JSON API, with its access control lists if `is_full`.
pub(super) fn bucket_resource(base: &str, bucket: &StoredBucket, is_full: bool) -> Value {
    let name = bucket.name.as_str();
    let settings = bucket.settings();
    let location = super::buckets::location(&settings);
    let mut resource = json!({
        "kind": "storage#bucket",
        "id": name,
        "name": name,
        "selfLink": format!("{base}/storage/v1/b/{name}"),
        "location": location,
        "locationType": super::buckets::location_type(location),
        "storageClass": "STANDARD",
        "metageneration": settings.metageneration.to_string(),
        "projectNumber": "0",
        "etag": bucket_etag(settings.metageneration),
        "timeCreated": rfc3339(bucket.created_us),
        "updated": rfc3339(settings.updated_us.max(bucket.created_us)),
        "iamConfiguration": {},
        "softDeletePolicy": {"retentionDurationSeconds": settings.soft_delete_s.to_string()},
    });
    for (name, value) in &settings.fields {
        resource[name] = value.clone();
    }
    if is_full && !settings.has_uniform_access() {
        resource["acl"] = json!(acl::of_bucket(settings.acl.as_deref()));
        resource["defaultObjectAcl"] = json!(acl::of_object(settings.object_acl.as_deref()));
    }
    let access = &mut resource["iamConfiguration"];
    for (name, default) in [
        ("uniformBucketLevelAccess", json!({"enabled": false})),
        ("publicAccessPrevention", json!("inherited")),
    ] {
        if access[name].is_null() {
            access[name] = default;
        }
    }
    // Add the setting under its older name too.
    access["bucketPolicyOnly"] = access["uniformBucketLevelAccess"].clone();
    if let Some(versioning) = settings.versioning {
        resource["versioning"] = json!({"enabled": versioning == Versioning::Enabled});
    }
    if settings.is_hierarchical {
        resource["hierarchicalNamespace"] = json!({"enabled": true});
    }
    if let Some(is_on) = settings.event_hold {
        resource["defaultEventBasedHold"] = json!(is_on);
    }
    if !settings.cors.is_empty() {
        resource["cors"] = super::bucket_fields::cors_resource(&settings.cors);
    }
    if settings.locks {
        resource["objectRetention"] = json!({"mode": "Enabled"});
    }
    if let Some(policy) = settings.policy {
        let RetentionPolicy { period_s, effective_us, is_locked } = policy;
        resource["retentionPolicy"] =
            json!({"retentionPeriod": period_s.to_string(), "effectiveTime": rfc3339(effective_us)});
        if is_locked {
            resource["retentionPolicy"]["isLocked"] = json!(true);
        }
    }
    resource
}

/// Returns a bucket's ETag. Like GCS, it encodes the metageneration as the first field of a protocol buffer.
pub(super) fn bucket_etag(metageneration: u64) -> String {
    let mut bytes = vec![0x08];
    let mut rest = metageneration;
    while rest >= 0x80 {
        bytes.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    base64(&bytes)
}

/// The fields of an object that only the service writes, or that other code reads. [`apply`] ignores them, because
/// clients often send back a resource that they have read.
const NOT_APPLIED: [&str; 30] = [
    "acl",
    "bucket",
    "componentCount",
    "crc32c",
    "customerEncryption",
    "etag",
    "eventBasedHold",
    "generation",
    "hardDeleteTime",
    "id",
    "kind",
    "kmsKeyName",
    "md5Hash",
    "mediaLink",
    "metageneration",
    "name",
    "owner",
    "restoreToken",
    "retention",
    "retentionExpirationTime",
    "selfLink",
    "size",
    "softDeleteTime",
    "temporaryHold",
    "timeCreated",
    "timeDeleted",
    "timeFinalized",
    "timeStorageClassUpdated",
    "updated",
    "isHeld",
];

/// The fields of an object that [`apply`] sets.
const APPLIED: [&str; 8] = [
    "cacheControl",
    "contentDisposition",
    "contentEncoding",
    "contentLanguage",
    "contentType",
    "customTime",
    "metadata",
    "storageClass",
];

/// Applies a JSON resource. Fields that it names are set, `null` clears a field, and the others are kept. If a field
/// belongs to a feature that this store lacks, the result is an error.
pub(crate) fn apply(attributes: &mut Attributes, resource: &Value) -> Result<(), ApiError> {
    let is_known = |name: &str| APPLIED.contains(&name) || NOT_APPLIED.contains(&name);
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    let mut fields = resource.as_object().into_iter().flatten();
    if let Some((name, _)) = fields.find(|(name, value)| !is_known(name) && !is_empty(value)) {
        return Err(ApiError::not_here(name));
    }
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
    set(&mut attributes.custom_time, "customTime");
    if let Some(class) = resource["storageClass"].as_str() {
        attributes.storage_class = Some(storage_class(class)?);
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
    Ok(())
}

/// Writes `2026-11-21T09:04:05.678Z`.
pub(crate) fn rfc3339(us: u64) -> String {
    let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(us) * 1000)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (year, month, day) = (moment.year(), u8::from(moment.month()), moment.day());
    let (hour, minute, second, ms) = (moment.hour(), moment.minute(), moment.second(), moment.millisecond());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// A number that is written to JSON as a string.
struct NumberText(u64);

impl Serialize for NumberText {
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
        apply(&mut attributes, &patch).unwrap();
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
