//! Soft deletion: lists and restores deleted objects, and reads a bucket's policy for them.
//! <https://cloud.google.com/storage/docs/soft-delete>

use http::StatusCode;
use serde_json::{Value, json};

use super::answer::{ApiError, ApiResult, json as answer_json};
use super::resource::{ObjectResource, rfc3339};
use super::{JsonCall, conditions, list};

/// The shortest and the longest retention. 0 turns soft deletion off.
const SECONDS: std::ops::RangeInclusive<u64> = 7 * 86_400..=90 * 86_400;

/// Reads the seconds in `softDeletePolicy`. The result is 0 if there is no policy, or no number in it.
pub(super) fn seconds(policy: &Value) -> Result<u64, ApiError> {
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
    number.filter(|number| *number == 0 || SECONDS.contains(number)).ok_or_else(|| {
        ApiError::invalid(format!(
            "Soft delete retention duration must be 0, or from 7 to 90 days in whole seconds, and not {seconds}."
        ))
    })
}

/// Lists deleted objects.
pub(super) fn list(call: &JsonCall<'_>) -> ApiResult {
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
    let mut listing = json!({"kind": "storage#objects", "items": items.collect::<Vec<_>>()});
    if !page.prefixes.is_empty() {
        listing["prefixes"] = page.prefixes.into();
    }
    if let Some(next) = page.next {
        listing["nextPageToken"] = next.to_token().into();
    }
    Ok(answer_json(StatusCode::OK, &listing))
}

/// Restores a deleted object as a new generation.
/// <https://cloud.google.com/storage/docs/json_api/v1/objects/restore>
pub(super) fn restore(call: &JsonCall<'_>) -> ApiResult {
    let generation = conditions::number("generation", call.query.value("generation"))?;
    let generation = generation.ok_or_else(|| ApiError::required("Required parameter: generation"))?;
    let precondition = conditions::in_query(&call.query)?;
    let restored = call.state.objects.restore_deleted(call.bucket, call.key, generation, &precondition);
    let object = restored.map_err(|refused| ApiError::refused(refused, call.bucket, call.key))?;
    Ok(answer_json(StatusCode::OK, &ObjectResource::new(call, call.bucket, &object)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_duration_or_0_turns_soft_deletion_off() {
        let policy = |seconds: Value| json!({"retentionDurationSeconds": seconds});
        for off in [Value::Null, json!({}), policy(Value::Null), policy(json!(0)), policy(json!("0"))] {
            assert_eq!(seconds(&off).ok(), Some(0), "{off}");
        }
        for on in [policy(json!(604_800)), policy(json!("604800"))] {
            assert_eq!(seconds(&on).ok(), Some(604_800), "{on}");
        }
        for wrong in
            [json!("7d"), json!(-604_800), json!(604_800.5), json!("60"), json!(7_776_001), json!([])]
        {
            assert!(seconds(&policy(wrong.clone())).is_err(), "{wrong}");
        }
        assert!(seconds(&json!("604800")).is_err());
    }
}
