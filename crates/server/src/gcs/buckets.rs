//! Buckets.

use http::StatusCode;
use serde::Serialize;
use serde_json::Value;

use super::JsonCall;
use super::answer::{Answer, Problem, empty, json};
use super::resource::{BucketResource, LOCATION, LOCATION_TYPE};
use crate::objects::bucket_name::is_allowed_by_gcs;
use crate::objects::{Refused, Versioning};

#[derive(Serialize)]
struct Buckets<'a> {
    kind: &'static str,
    items: Vec<BucketResource<'a>>,
}

pub(super) fn list(call: &JsonCall<'_>) -> Answer {
    let buckets = call.state.objects.buckets();
    let prefix = call.query.value("prefix").unwrap_or_default();
    let base = call.base_url();
    let items = buckets
        .iter()
        .filter(|bucket| bucket.name.starts_with(prefix))
        .map(|bucket| BucketResource::new(&base, bucket))
        .collect();
    Ok(json(StatusCode::OK, &Buckets { kind: "storage#buckets", items }))
}

pub(super) async fn insert(mut call: JsonCall<'_>) -> Answer {
    let resource = call.json_body().await?;
    let name = resource["name"].as_str().ok_or_else(|| Problem::required("Required: name"))?;
    let refuse = |refused| Problem::refused(refused, name, "");
    if !is_allowed_by_gcs(name) {
        return Err(refuse(Refused::BadBucketName));
    }
    let versioning = resource.get("versioning").map(versioning).transpose()?;
    call.state.objects.create_bucket_with(name, versioning.flatten()).map_err(refuse)?;
    let bucket = call.state.objects.bucket(name).map_err(refuse)?;
    Ok(json(StatusCode::OK, &BucketResource::new(&call.base_url(), &bucket)))
}

/// PATCH of a bucket. Only versioning can be changed, and any other field is refused rather than ignored.
pub(super) async fn patch(mut call: JsonCall<'_>) -> Answer {
    let refuse = |refused| Problem::refused(refused, call.bucket, "");
    let bucket = call.state.objects.bucket(call.bucket).map_err(refuse)?;
    let change = call.json_body().await?;
    let fields = change.as_object().ok_or_else(|| Problem::invalid("The change is no JSON object."))?;
    if fields.keys().any(|name| name != "versioning") {
        return Err(Problem::not_implemented());
    }
    if let Some(value) = fields.get("versioning") {
        let wanted = versioning(value)?.unwrap_or_default();
        let refuse = |refused| Problem::refused(refused, call.bucket, "");
        call.state.objects.set_versioning(call.bucket, wanted).map_err(refuse)?;
    }
    Ok(json(StatusCode::OK, &BucketResource::new(&call.base_url(), &bucket)))
}

/// Reads `{"enabled": true}`. `null` changes nothing.
fn versioning(value: &Value) -> Result<Option<Versioning>, Problem> {
    match (&value["enabled"], value) {
        (Value::Bool(true), _) => Ok(Some(Versioning::Enabled)),
        (Value::Bool(false), _) => Ok(Some(Versioning::Off)),
        (Value::Null, Value::Null | Value::Object(_)) => Ok(None),
        _ => Err(Problem::invalid("Invalid value for versioning.enabled: a boolean was expected")),
    }
}

pub(super) fn get(call: &JsonCall<'_>) -> Answer {
    let found = call.state.objects.bucket(call.bucket);
    let bucket = found.map_err(|refused| Problem::refused(refused, call.bucket, ""))?;
    Ok(json(StatusCode::OK, &BucketResource::new(&call.base_url(), &bucket)))
}

pub(super) fn delete(call: &JsonCall<'_>) -> Answer {
    let deleted = call.state.objects.delete_bucket(call.bucket);
    deleted.map_err(|refused| Problem::refused(refused, call.bucket, ""))?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// Returns a bucket's location, and that its hierarchical namespace is off.
/// <https://cloud.google.com/storage/docs/json_api/v1/buckets/getStorageLayout>
pub(super) fn storage_layout(call: &JsonCall<'_>) -> Answer {
    let found = call.state.objects.bucket(call.bucket);
    found.map_err(|refused| Problem::refused(refused, call.bucket, ""))?;
    let layout = serde_json::json!({
        "kind": "storage#storageLayout",
        "bucket": call.bucket,
        "location": LOCATION,
        "locationType": LOCATION_TYPE,
        "hierarchicalNamespace": {"enabled": false},
    });
    Ok(json(StatusCode::OK, &layout))
}
