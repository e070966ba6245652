//! Reads and changes the metadata of an object, and deletes the object. Lists and restores soft-deleted objects, and
//! reads a bucket's policy for them.

use http::StatusCode;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::answer::{ApiError, ApiResult, empty, json};
use super::resource::{ObjectResource, rfc3339};
use super::{JsonCall, acl, conditions, describe, encryption, list, media};
use crate::objects::versions::{VersionSelector, VersionSuccessor};
use crate::objects::{Attributes, StoreError};

pub(super) fn get(call: &JsonCall<'_>) -> ApiResult {
    let precondition = conditions::in_query(&call.query)?;
    let generation = conditions::number("generation", call.query.value("generation"))?;
    let object = media::find(call.state, call.bucket, call.key, generation, &precondition)?;
    conditions::on_etag(&call.head.headers, &object.gcs_etag()).map_err(|failed| {
        ApiError::refused_to_read(StoreError::Precondition(failed), call.bucket, call.key)
    })?;
    let key = encryption::sent(&call.head.headers)?;
    let mut resource = ObjectResource::new(call, call.bucket, &object);
    match key {
        Some(key) => encryption::admit(Some(&key), &object)?,
        None => resource.hide_hashes_of(&object),
    }
    Ok(json(StatusCode::OK, &resource))
}

/// Handles PATCH, which changes the fields that it names, and PUT (`update`), which replaces all fields that can be
/// changed.
pub(super) async fn patch(mut call: JsonCall<'_>) -> ApiResult {
    let change = call.json_body().await?;
    let precondition = conditions::in_query(&call.query)?;
    let which = version(&call)?;
    let replaces = call.head.method == http::Method::PUT;
    let present = call.state.objects.find_version(call.bucket, call.key, which);
    let present = present.map_err(|refused| ApiError::refused(refused, call.bucket, call.key))?;
    let list = acl::in_query(&call, "predefinedAcl")?;
    custom_time_goes_on(present.attributes.custom_time.as_deref(), &change, replaces)?;
    let object = call
        .state
        .objects
        .patch(call.bucket, call.key, which, &precondition, |attributes| {
            if replaces {
                // A PUT removes holds and retentions only if it names them, so keep the present ones.
                let kept = Attributes {
                    storage_class: attributes.storage_class.take(),
                    options: attributes.options.clone(),
                    ..Default::default()
                };
                *attributes = kept;
            }
            if list.is_some() {
                attributes.options.acl = list;
            }
            describe(&call, attributes, &change)
        })
        .map_err(|refused| ApiError::refused(refused, call.bucket, call.key))??;
    Ok(json(StatusCode::OK, &ObjectResource::new(&call, call.bucket, &object)))
}

pub(super) fn delete(call: &JsonCall<'_>) -> ApiResult {
    let precondition = conditions::in_query(&call.query)?;
    let objects = &call.state.objects;
    let deleted = match version(call)? {
        VersionSelector::Live => objects.delete(call.bucket, call.key, &precondition),
        which => objects.delete_version(
            call.bucket,
            call.key,
            which,
            VersionSuccessor::Nobody,
            &precondition,
            false,
        ),
    };
    deleted.map_err(|refused| ApiError::refused(refused, call.bucket, call.key))?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// Checks a change of `customTime`. It can be set and moved forward, but neither removed nor moved back.
/// <https://cloud.google.com/storage/docs/metadata#custom-time>
fn custom_time_goes_on(
    present: Option<&str>,
    change: &serde_json::Value,
    replaces: bool,
) -> Result<(), ApiError> {
    let moment = |text: &str| OffsetDateTime::parse(text, &Rfc3339).ok();
    let new = match change.get("customTime") {
        Some(serde_json::Value::String(text)) => Some(
            moment(text)
                .ok_or_else(|| ApiError::invalid(format!("Invalid value for customTime: '{text}'")))?,
        ),
        Some(_) => None,
        None if replaces => None,
        None => return Ok(()),
    };
    match (present.and_then(moment), new) {
        (Some(old), Some(new)) if new < old => {
            Err(ApiError::invalid("Custom time can't be set to a time before the present one."))
        }
        (Some(_), None) => Err(ApiError::invalid("Custom time can't be removed once it is set.")),
        _ => Ok(()),
    }
}

/// Reads the version in the URL. For a version that doesn't exist, the answer is 404 and not 412.
fn version(call: &JsonCall<'_>) -> Result<VersionSelector, ApiError> {
    let generation = conditions::number("generation", call.query.value("generation"))?;
    Ok(generation.map_or(VersionSelector::Live, VersionSelector::Generation))
}

/// The shortest and the longest retention. 0 turns soft deletion off.
const SOFT_DELETE_SECONDS: std::ops::RangeInclusive<u64> = 7 * 86_400..=90 * 86_400;

/// Reads the seconds in `softDeletePolicy`. The result is 0 if there is no policy, or no number in it.
pub(super) fn soft_delete_seconds(policy: &Value) -> Result<u64, ApiError> {
    let seconds = match policy {
        Value::Null => return Ok(0),
        Value::Object(fields) => fields.get("retentionDurationSeconds").unwrap_or(&Value::Null),
        _ => return Err(ApiError::invalid("Invalid value for softDeletePolicy: an object was expected")),
    };
    let number = match seconds {
        Value::Null => Some(0),
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    };
    number.filter(|number| *number == 0 || SOFT_DELETE_SECONDS.contains(number)).ok_or_else(|| {
        ApiError::invalid(format!(
            "Soft delete retention duration must be 0, or from 7 to 90 days in whole seconds, and not {seconds}."
        ))
    })
}

/// Lists deleted objects.
///
/// <https://cloud.google.com/storage/docs/soft-delete>
pub(super) fn list_deleted(call: &JsonCall<'_>) -> ApiResult {
    let bucket = call.state.objects.bucket(call.bucket);
    let bucket = bucket.map_err(|refused| ApiError::refused(refused, call.bucket, ""))?;
    if bucket.settings().soft_delete_s == 0 {
        return Err(ApiError::invalid("bucket soft delete policy must be set."));
    }
    let listed = call.state.objects.list_deleted(call.bucket, &list::query(call)?);
    let (page, times) = listed.map_err(|refused| ApiError::refused(refused, call.bucket, ""))?;
    let items = page.objects.iter().zip(times).map(|(object, times)| {
        let resource = ObjectResource::new(call, call.bucket, object);
        let mut item = serde_json::to_value(resource).unwrap_or_default();
        item["softDeleteTime"] = rfc3339(times.deleted_us).into();
        item["hardDeleteTime"] = rfc3339(times.ends_us).into();
        item
    });
    let mut listing = serde_json::json!({"kind": "storage#objects", "items": items.collect::<Vec<_>>()});
    if !page.prefixes.is_empty() {
        listing["prefixes"] = page.prefixes.into();
    }
    if let Some(next) = page.next {
        listing["nextPageToken"] = next.to_token().into();
    }
    Ok(json(StatusCode::OK, &listing))
}

/// Restores a deleted object as a new generation.
/// <https://cloud.google.com/storage/docs/json_api/v1/objects/restore>
pub(super) fn restore_deleted(call: &JsonCall<'_>) -> ApiResult {
    let generation = conditions::number("generation", call.query.value("generation"))?;
    let generation = generation.ok_or_else(|| ApiError::required("Required parameter: generation"))?;
    let precondition = conditions::in_query(&call.query)?;
    let restored = call.state.objects.restore_deleted(call.bucket, call.key, generation, &precondition);
    let object = restored.map_err(|refused| ApiError::refused(refused, call.bucket, call.key))?;
    Ok(json(StatusCode::OK, &ObjectResource::new(call, call.bucket, &object)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn custom_time_is_set_and_moved_on_and_nothing_else() {
        let old = Some("2026-01-02T00:00:00Z");
        let change = |time: serde_json::Value| json!({"customTime": time});
        let allowed =
            |present, change: &serde_json::Value| custom_time_goes_on(present, change, false).is_ok();
        assert!(allowed(None, &change(json!("2026-01-01T00:00:00Z"))));
        assert!(allowed(old, &change(json!("2026-01-02T01:00:00+01:00"))));
        assert!(allowed(old, &json!({})));
        assert!(!allowed(old, &change(json!("2026-01-01T23:59:59.999Z"))));
        assert!(!allowed(old, &change(json!(null))));
        assert!(!allowed(None, &change(json!("soon"))));
        assert!(
            custom_time_goes_on(old, &json!({}), true).is_err(),
            "an update that leaves it out removes it"
        );
    }

    #[test]
    fn only_a_missing_duration_or_0_turns_soft_deletion_off() {
        let policy = |seconds: Value| serde_json::json!({"retentionDurationSeconds": seconds});
        for off in [
            Value::Null,
            serde_json::json!({}),
            policy(Value::Null),
            policy(serde_json::json!(0)),
            policy(serde_json::json!("0")),
        ] {
            assert_eq!(soft_delete_seconds(&off).ok(), Some(0), "{off}");
        }
        for on in [policy(serde_json::json!(604_800)), policy(serde_json::json!("604800"))] {
            assert_eq!(soft_delete_seconds(&on).ok(), Some(604_800), "{on}");
        }
        for wrong in [
            serde_json::json!("7d"),
            serde_json::json!(-604_800),
            serde_json::json!(604_800.5),
            serde_json::json!("60"),
            serde_json::json!(7_776_001),
            serde_json::json!([]),
        ] {
            assert!(soft_delete_seconds(&policy(wrong.clone())).is_err(), "{wrong}");
        }
        assert!(soft_delete_seconds(&serde_json::json!("604800")).is_err());
    }
}
