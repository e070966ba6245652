//! Reads the fields of a bucket's JSON resource. If this store doesn't implement a field, the request is refused with
//! an error that names it. <https://cloud.google.com/storage/docs/json_api/v1/buckets>

use serde_json::{Map, Value, json};

use super::answer::ApiError;
use crate::objects::Versioning;
use crate::objects::settings::{BucketSettings, CorsRule, RetentionPolicy};

/// The fields that only the service writes. They are ignored in requests, because clients send them back with the
/// others.
const OUTPUT_ONLY: [&str; 20] = [
    "etag",
    "generation",
    "hardDeleteTime",
    "id",
    "kind",
    "locationType",
    "metageneration",
    "name",
    "objectRetention",
    "owner",
    "projectNumber",
    "projectTeam",
    "satisfiesPZI",
    "satisfiesPZS",
    "selfLink",
    "softDeleteTime",
    "timeCreated",
    "updated",
    "isUnreachable",
    "unreachable",
];

/// The fields that can be changed after a bucket was created. If an update doesn't name one of these fields, it removes
/// the field.
const MUTABLE: [&str; 10] = [
    "billing",
    "cors",
    "defaultEventBasedHold",
    "labels",
    "lifecycle",
    "logging",
    "retentionPolicy",
    "versioning",
    "website",
    "rpo",
];

/// Storage classes of buckets and objects: <https://cloud.google.com/storage/docs/storage-classes>.
pub(super) const STORAGE_CLASSES: [&str; 8] = [
    "STANDARD",
    "NEARLINE",
    "COLDLINE",
    "ARCHIVE",
    "REGIONAL",
    "MULTI_REGIONAL",
    "DURABLE_REDUCED_AVAILABILITY",
    "RAPID",
];

const PERIOD_S_MAX: u64 = 3_155_760_000;

const LABELS_MAX: usize = 64;

const LABEL_CHARS_MAX: usize = 63;

/// The kind of request that contains the resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BucketWrite {
    Insert,
    Patch,
    /// The request replaces all fields that can be changed.
    Update,
}

/// The properties of a request that decide which changes are allowed.
#[derive(Debug, Clone, Copy)]
pub(super) struct BucketWriter {
    pub(super) kind: BucketWrite,
    /// True if fields without an effect are stored instead of refused.
    pub(super) accepts: bool,
    pub(super) now_us: u64,
}

/// Applies a resource to a bucket's settings.
pub(super) fn apply(
    settings: &mut BucketSettings,
    bucket: &str,
    resource: &Map<String, Value>,
    sender: BucketWriter,
) -> Result<(), ApiError> {
    let kind = sender.kind;
    if kind == BucketWrite::Update {
        for name in MUTABLE.into_iter().filter(|name| !resource.contains_key(*name)) {
            set(settings, bucket, name, &Value::Null, sender)?;
        }
    }
    for (name, value) in resource {
        set(settings, bucket, name, value, sender)?;
    }
    if kind == BucketWrite::Insert && settings.is_hierarchical && !settings.has_uniform_access() {
        return Err(ApiError::invalid(
            "Hierarchical namespace buckets must use uniform bucket-level access.",
        ));
    }
    Ok(())
}

fn set(
    settings: &mut BucketSettings,
    bucket: &str,
    name: &str,
    value: &Value,
    BucketWriter { kind, accepts, now_us }: BucketWriter,
) -> Result<(), ApiError> {
    let refuse = |what: &str| Err(ApiError::not_here(what));
    match name {
        name if OUTPUT_ONLY.contains(&name) => Ok(()),
        "versioning" => match flag(value, name, "enabled")? {
            Some(is_on) => {
                settings.versioning = Some(if is_on { Versioning::Enabled } else { Versioning::Off });
                Ok(())
            }
            // For an empty `versioning` object, a PATCH changes nothing, and an UPDATE turns versioning off.
            None if kind == BucketWrite::Update && settings.versioning.is_some() => {
                settings.versioning = Some(Versioning::Off);
                Ok(())
            }
            None => Ok(()),
        },
        "retentionPolicy" => retention_policy(settings, bucket, value, now_us),
        "defaultEventBasedHold" => {
            settings.event_hold = match value {
                Value::Null => settings.event_hold.map(|_| false),
                Value::Bool(is_on) => Some(*is_on),
                _ => return Err(not_a(name, "boolean")),
            };
            Ok(())
        }
        "location" if kind == BucketWrite::Insert => {
            let text = value.as_str().ok_or_else(|| not_a(name, "string"))?.to_ascii_uppercase();
            settings.fields.insert(name.to_owned(), Value::String(text));
            Ok(())
        }
        // The location can't be changed, but an UPDATE may contain the present one.
        "location" => match value.as_str() {
            Some(text) if text.eq_ignore_ascii_case(super::buckets::location(settings)) => Ok(()),
            _ => Err(ApiError::invalid("The location of a bucket cannot be changed.")),
        },
        "storageClass" => {
            let class = storage_class(value.as_str().ok_or_else(|| not_a(name, "string"))?)?;
            settings.fields.insert(name.to_owned(), Value::String(class));
            Ok(())
        }
        "labels" => labels(settings, value, kind),
        "billing" => kept_flag(settings, name, "requesterPays", value),
        "iamConfiguration" => access(settings, value),
        "cors" => {
            settings.cors = cors_rules(value)?;
            Ok(())
        }
        "website" => {
            let is_known = |name: &String| ["mainPageSuffix", "notFoundPage"].contains(&name.as_str());
            match value {
                Value::Null => keep(settings, name, None),
                Value::Object(fields) if fields.keys().all(is_known) => {
                    let fields: Map<_, _> =
                        fields.iter().filter(|(_, value)| !value.is_null()).map(own).collect();
                    keep(settings, name, (!fields.is_empty()).then_some(Value::Object(fields)));
                }
                _ => return Err(not_a(name, "object of mainPageSuffix and notFoundPage")),
            }
            Ok(())
        }
        "softDeletePolicy" => {
            settings.soft_delete_s = super::metadata::soft_delete_seconds(value)?;
            Ok(())
        }
        // The namespace is chosen when the bucket is made.
        "hierarchicalNamespace" => {
            let is_on = flag(value, name, "enabled")?.unwrap_or(false);
            match kind {
                _ if settings.is_hierarchical == is_on => Ok(()),
                BucketWrite::Insert => {
                    settings.is_hierarchical = is_on;
                    Ok(())
                }
                _ => Err(ApiError::invalid("The hierarchical namespace of a bucket cannot be changed.")),
            }
        }
        // Switching Autoclass off is accepted and needs no action.
        "autoclass" => match flag(value, name, "enabled")? {
            Some(true) => refuse(name),
            _ => Ok(()),
        },
        "rpo" if value.is_null() || value == "DEFAULT" => Ok(()),
        "lifecycle" if value["rule"].as_array().is_none_or(Vec::is_empty) => {
            keep(settings, name, None);
            Ok(())
        }
        "lifecycle" if accepts => {
            keep(settings, name, Some(value.clone()));
            Ok(())
        }
        "acl" | "defaultObjectAcl" => {
            let list = super::acl::in_resource(accepts, name, value)?;
            let kept = if name == "acl" { &mut settings.acl } else { &mut settings.object_acl };
            *kept = list.or(kept.take());
            Ok(())
        }
        _ if value.is_null() => Ok(()),
        _ if value.as_object().is_some_and(Map::is_empty) => Ok(()),
        name => refuse(name),
    }
}

/// Applies `retentionPolicy`. If the present policy is locked, it can only be extended.
fn retention_policy(
    settings: &mut BucketSettings,
    bucket: &str,
    value: &Value,
    now_us: u64,
) -> Result<(), ApiError> {
    let is_locked = settings.policy.is_some_and(|policy| policy.is_locked);
    let period = match value {
        Value::Null if is_locked => {
            let message = format!("Bucket '{bucket}' has a locked Retention Policy which cannot be removed.");
            return Err(ApiError::retained(message));
        }
        Value::Null => {
            settings.policy = None;
            return Ok(());
        }
        Value::Object(fields) => match fields.get("retentionPeriod") {
            None => return Ok(()),
            Some(period) => number(period).ok_or_else(|| not_a("retentionPeriod", "number"))?,
        },
        _ => return Err(not_a("retentionPolicy", "object")),
    };
    if !(1..=PERIOD_S_MAX).contains(&period) {
        return Err(ApiError::invalid(
            "Retention policy must have a retention period greater than 0 and less than 100 years.",
        ));
    }
    if settings.policy.is_some_and(|policy| is_locked && period < policy.period_s) {
        let message =
            format!("Cannot reduce retention duration of a locked Retention Policy for bucket '{bucket}'.");
        return Err(ApiError::forbidden(message));
    }
    let effective_us = settings.policy.map_or(now_us, |policy| policy.effective_us);
    settings.policy = Some(RetentionPolicy { period_s: period, effective_us, is_locked });
    Ok(())
}

/// Applies labels: a string sets one, `null` removes one, and an empty object removes all.
fn labels(settings: &mut BucketSettings, value: &Value, kind: BucketWrite) -> Result<(), ApiError> {
    let changes = match value {
        Value::Null => &Map::new(),
        Value::Object(changes) => changes,
        _ => return Err(not_a("labels", "object")),
    };
    let present = settings.fields.get("labels").and_then(Value::as_object);
    let mut labels = match present {
        Some(present) if !changes.is_empty() && kind == BucketWrite::Patch => present.clone(),
        _ => Map::new(),
    };
    for (key, value) in changes {
        let invalid = || ApiError::invalid(format!("Invalid user label: {key}"));
        let is_word = |text: &str| {
            text.chars().count() <= LABEL_CHARS_MAX
                && text.chars().all(|c| (c.is_alphanumeric() && !c.is_uppercase()) || matches!(c, '_' | '-'))
        };
        if !is_word(key) || !key.chars().next().is_some_and(char::is_alphabetic) {
            return Err(invalid());
        }
        match value {
            Value::Null => drop(labels.remove(key)),
            Value::String(text) if is_word(text) => drop(labels.insert(key.clone(), value.clone())),
            _ => return Err(invalid()),
        }
    }
    if labels.len() > LABELS_MAX {
        let message =
            format!("Attempt to create a bucket with {} labels, maximum is {LABELS_MAX}", labels.len());
        return Err(ApiError::invalid(message));
    }
    keep(settings, "labels", (!labels.is_empty()).then_some(Value::Object(labels)));
    Ok(())
}

/// Applies `iamConfiguration`. Its fields are only stored, because the server has no access control that they could
/// change.
fn access(settings: &mut BucketSettings, value: &Value) -> Result<(), ApiError> {
    let Some(changes) = value.as_object() else {
        return if value.is_null() { Ok(()) } else { Err(not_a("iamConfiguration", "object")) };
    };
    let mut access = settings.fields.get("iamConfiguration").cloned().unwrap_or_else(|| json!({}));
    for (name, value) in changes {
        match (name.as_str(), value) {
            ("uniformBucketLevelAccess" | "bucketPolicyOnly", _) => {
                if let Some(is_on) = flag(value, name, "enabled")? {
                    access["uniformBucketLevelAccess"] = json!({"enabled": is_on});
                }
            }
            ("publicAccessPrevention", Value::String(text))
                if ["inherited", "unspecified", "enforced"].contains(&text.as_str()) =>
            {
                let text = if text == "unspecified" { "inherited" } else { text };
                access[name.as_str()] = json!(text);
            }
            ("publicAccessPrevention", _) => return Err(not_a(name, "known value")),
            (name, _) => return Err(ApiError::not_here(&format!("iamConfiguration.{name}"))),
        }
    }
    settings.fields.insert("iamConfiguration".to_owned(), access);
    Ok(())
}

/// Returns the canonical name of a storage class.
pub(super) fn storage_class(text: &str) -> Result<String, ApiError> {
    let class = text.to_ascii_uppercase();
    match STORAGE_CLASSES.contains(&class.as_str()) {
        true => Ok(class),
        false => Err(ApiError::invalid(format!("Invalid storage class \"{text}\""))),
    }
}

fn kept_flag(settings: &mut BucketSettings, name: &str, inner: &str, value: &Value) -> Result<(), ApiError> {
    match flag(value, name, inner)? {
        Some(is_on) => keep(settings, name, Some(json!({inner: is_on}))),
        None if value.is_null() => keep(settings, name, None),
        None => {}
    }
    Ok(())
}

/// Reads `{"enabled": true}`. Returns `None` for `null` and for an empty object.
fn flag(value: &Value, name: &str, inner: &str) -> Result<Option<bool>, ApiError> {
    match (&value[inner], value) {
        (Value::Bool(is_on), _) => Ok(Some(*is_on)),
        (Value::Null, Value::Null | Value::Object(_)) => Ok(None),
        _ => Err(not_a(&format!("{name}.{inner}"), "boolean")),
    }
}

fn keep(settings: &mut BucketSettings, name: &str, value: Option<Value>) {
    match value {
        Some(value) => drop(settings.fields.insert(name.to_owned(), value)),
        None => drop(settings.fields.remove(name)),
    }
}

fn own((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

/// Reads a number, which may be a string.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn not_a(name: &str, kind: &str) -> ApiError {
    ApiError::invalid(format!("Invalid value for {name}: a {kind} was expected"))
}

/// Reads the CORS rules in a bucket's resource.
///
/// <https://cloud.google.com/storage/docs/cross-origin>
pub(super) fn cors_rules(value: &Value) -> Result<Vec<CorsRule>, ApiError> {
    let rules = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(rules) => rules,
        _ => return Err(ApiError::invalid("Invalid value for cors: a list was expected")),
    };
    rules.iter().map(cors_rule).collect()
}

fn cors_rule(rule: &Value) -> Result<CorsRule, ApiError> {
    let fields = rule.as_object().ok_or_else(|| ApiError::invalid("A CORS rule is no JSON object."))?;
    let mut read = CorsRule::default();
    for (name, value) in fields {
        let invalid = || ApiError::invalid(format!("Invalid value for cors.{name}"));
        let list = || {
            let items = value.as_array().ok_or_else(invalid)?.iter();
            items
                .map(|item| item.as_str().map(str::to_owned).ok_or_else(invalid))
                .collect::<Result<Vec<_>, _>>()
        };
        match name.as_str() {
            "origin" => read.origins = list()?,
            "method" => read.methods = list()?,
            // In GCS, `responseHeader` lists both the headers that a page may read and those that it may
            // send.
            "responseHeader" => {
                read.exposed = list()?;
                read.headers.clone_from(&read.exposed);
            }
            "maxAgeSeconds" => {
                let seconds = value.as_u64().or_else(|| value.as_str()?.parse().ok());
                read.max_age_s =
                    Some(seconds.and_then(|seconds| seconds.try_into().ok()).ok_or_else(invalid)?);
            }
            _ => return Err(invalid()),
        }
    }
    Ok(read)
}

/// Returns the rules in the JSON format of the service.
pub(super) fn cors_resource(rules: &[CorsRule]) -> Value {
    let rules = rules.iter().map(|rule| {
        let mut fields = json!({"origin": rule.origins, "method": rule.methods});
        if !rule.exposed.is_empty() {
            fields["responseHeader"] = json!(rule.exposed);
        }
        if let Some(seconds) = rule.max_age_s {
            fields["maxAgeSeconds"] = json!(seconds);
        }
        fields
    });
    Value::Array(rules.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(
        before: &BucketSettings,
        kind: BucketWrite,
        resource: Value,
    ) -> Result<BucketSettings, ApiError> {
        let mut settings = before.clone();
        let sender = BucketWriter { kind, accepts: false, now_us: 7 };
        apply(&mut settings, "b", resource.as_object().unwrap(), sender).map(|()| settings)
    }

    #[test]
    fn labels_are_merged_and_an_empty_object_removes_them() {
        let before = BucketSettings::default();
        let before = after(&before, BucketWrite::Insert, json!({"labels": {"a": "1", "b": "2"}})).unwrap();
        let merged = after(&before, BucketWrite::Patch, json!({"labels": {"a": null, "c": "3"}})).unwrap();
        assert_eq!(merged.fields["labels"], json!({"b": "2", "c": "3"}));
        let updated = after(&before, BucketWrite::Update, json!({"labels": {"c": "3"}})).unwrap();
        assert_eq!(updated.fields["labels"], json!({"c": "3"}));
        let empty = after(&before, BucketWrite::Patch, json!({"labels": {}})).unwrap();
        assert!(!empty.fields.contains_key("labels"));
        for wrong in [json!({"Upper": "x"}), json!({"1": "x"}), json!({"a": "x y"}), json!({"a": 1})] {
            assert!(after(&before, BucketWrite::Patch, json!({"labels": wrong})).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_locked_policy_grows_and_neither_shrinks_nor_goes() {
        let before = BucketSettings::default();
        let policy = |seconds: &str| json!({"retentionPolicy": {"retentionPeriod": seconds}});
        let mut before = after(&before, BucketWrite::Insert, policy("60")).unwrap();
        assert_eq!(before.policy.unwrap().effective_us, 7);
        assert_eq!(after(&before, BucketWrite::Patch, policy("5")).unwrap().policy.unwrap().period_s, 5);
        assert!(after(&before, BucketWrite::Patch, policy("0")).is_err());
        assert!(
            after(&before, BucketWrite::Patch, json!({"retentionPolicy": null})).unwrap().policy.is_none()
        );
        before.policy.as_mut().unwrap().is_locked = true;
        assert!(after(&before, BucketWrite::Patch, policy("61")).unwrap().policy.unwrap().is_locked);
        for (change, reason) in
            [(policy("59"), "forbidden"), (json!({"retentionPolicy": null}), "retentionPolicyNotMet")]
        {
            let problem = after(&before, BucketWrite::Patch, change).unwrap_err();
            assert_eq!((problem.status.as_u16(), &*problem.reason), (403, reason));
        }
        assert!(
            after(&before, BucketWrite::Update, json!({})).is_err(),
            "an update without the policy removes it"
        );
    }

    #[test]
    fn what_is_not_here_is_refused_by_name_and_its_default_is_taken() {
        let settings = BucketSettings::default();
        for (field, on, off) in [
            ("autoclass", json!({"enabled": true}), json!({"enabled": false})),
            ("lifecycle", json!({"rule": [{"action": {"type": "Delete"}}]}), json!({"rule": []})),
            ("logging", json!({"logBucket": "l"}), json!(null)),
            ("encryption", json!({"defaultKmsKeyName": "k"}), json!({})),
            ("acl", json!([{"entity": "allUsers"}]), json!([])),
            ("rpo", json!("ASYNC_TURBO"), json!("DEFAULT")),
            ("noSuchField", json!(1), json!(null)),
        ] {
            let problem = after(&settings, BucketWrite::Insert, json!({field: on})).unwrap_err();
            assert_eq!(problem.status.as_u16(), 501, "{field}");
            assert!(problem.message.contains(field), "{}", problem.message);
            assert!(after(&settings, BucketWrite::Insert, json!({field: off})).is_ok(), "{field}");
        }
    }

    #[test]
    fn what_is_kept_is_checked() {
        let settings = BucketSettings::default();
        let made = json!({"location": "europe-west3", "storageClass": "nearline", "billing": {"requesterPays": true},
            "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": true}, "publicAccessPrevention": "enforced"},
            "website": {"mainPageSuffix": "index.html"}});
        let made = after(&settings, BucketWrite::Insert, made).unwrap();
        assert_eq!(made.fields["location"], "EUROPE-WEST3");
        assert_eq!(made.fields["storageClass"], "NEARLINE");
        assert_eq!(made.fields["iamConfiguration"]["uniformBucketLevelAccess"]["enabled"], true);
        assert!(after(&made, BucketWrite::Patch, json!({"location": "US"})).is_err());
        assert!(after(&made, BucketWrite::Patch, json!({"location": "europe-west3"})).is_ok());
        for wrong in [
            json!({"storageClass": "BOGUS"}),
            json!({"iamConfiguration": {"publicAccessPrevention": "never"}}),
            json!({"website": {"index": "i"}}),
            json!({"billing": {"requesterPays": "yes"}}),
        ] {
            assert!(after(&made, BucketWrite::Patch, wrong.clone()).is_err(), "{wrong}");
        }
    }
}
