//! Reads and changes the metadata of an object, and deletes the object.

use http::StatusCode;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::answer::{ApiError, ApiResult, empty, json};
use super::resource::ObjectResource;
use super::{JsonCall, acl, conditions, describe, encryption, media};
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
}
