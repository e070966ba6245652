//! Buckets.

use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::{ApiError, ApiResult, empty, json as answer_json};
use super::bucket_fields::{BucketWrite, BucketWriter};
use super::resource::{LOCATION, bucket_resource};
use super::{JsonCall, acl, bucket_fields, conditions};
use crate::objects::settings::{BucketSettings, is_allowed_by_gcs};
use crate::objects::{StoreError, now_us};

/// The maximum number of buckets on a page: <https://cloud.google.com/storage/docs/json_api/v1/buckets/list>.
const BUCKETS_MAX: u64 = 1000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BucketsResource {
    kind: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    items: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

pub(super) fn list(call: &JsonCall<'_>) -> ApiResult {
    let max = conditions::number("maxResults", call.query.value("maxResults"))?.unwrap_or(BUCKETS_MAX);
    let max = max.clamp(1, BUCKETS_MAX) as usize;
    let prefix = call.query.value("prefix").unwrap_or_default();
    let after = call.query.value("pageToken").unwrap_or_default();
    let mut buckets = call.state.objects.buckets();
    // This server doesn't keep deleted buckets, so their list is empty.
    if call.query.is_true("softDeleted") {
        buckets.clear();
    }
    buckets.retain(|bucket| bucket.name.starts_with(prefix) && bucket.name.as_str() > after);
    buckets.sort_by(|a, b| a.name.cmp(&b.name));
    // A token is the last name of its page. Clients must treat it as opaque.
    let next_page_token = buckets.get(max).and_then(|_| buckets.get(max - 1)).map(|last| last.name.clone());
    buckets.truncate(max);
    let base = call.base_url();
    let items = buckets.iter().map(|bucket| bucket_resource(&base, bucket, call.is_full())).collect();
    Ok(answer_json(StatusCode::OK, &BucketsResource { kind: "storage#buckets", items, next_page_token }))
}

pub(super) async fn insert(mut call: JsonCall<'_>) -> ApiResult {
    let resource = call.json_body().await?;
    let name = resource["name"].as_str().ok_or_else(|| ApiError::required("Required: name"))?;
    if !is_allowed_by_gcs(name) {
        return Err(ApiError::refused(StoreError::BadBucketName, name, ""));
    }
    let locks = call.query.is_true("enableObjectRetention");
    let mut settings = BucketSettings { locks, ..BucketSettings::default() };
    change(&call, &mut settings, name, &resource, BucketWrite::Insert)?;
    let refuse = |refused| ApiError::refused(refused, name, "");
    call.state.objects.create_bucket_with(name, settings).map_err(refuse)?;
    answer(&call, name)
}

/// Handles PATCH, which changes the fields that it names, and PUT (`update`), which replaces all fields that can be
/// changed.
pub(super) async fn patch(mut call: JsonCall<'_>, kind: BucketWrite) -> ApiResult {
    let resource = call.json_body().await?;
    let found = call.state.objects.bucket(call.bucket);
    found.map_err(|refused| ApiError::refused(refused, call.bucket, ""))?;
    let is_empty = resource.as_object().is_some_and(|fields| fields.is_empty());
    let changed = call.state.objects.change_bucket(call.bucket, |settings| {
        conditions::on_metageneration(&call.query, "if", settings.metageneration).map_err(Some)?;
        if is_empty && kind == BucketWrite::Patch {
            return Err(None);
        }
        change(&call, settings, call.bucket, &resource, kind).map_err(Some)
    });
    match changed.map_err(|refused| ApiError::refused(refused, call.bucket, ""))? {
        // If nothing changes, the metageneration stays the same.
        Ok(()) | Err(None) => answer(&call, call.bucket),
        Err(Some(problem)) => Err(problem),
    }
}

fn change(
    call: &JsonCall<'_>,
    settings: &mut BucketSettings,
    name: &str,
    resource: &Value,
    kind: BucketWrite,
) -> Result<(), ApiError> {
    let fields = resource.as_object().ok_or_else(|| ApiError::invalid("The bucket is no JSON object."))?;
    settings.acl = acl::in_query(call, "predefinedAcl")?.or(settings.acl.take());
    settings.object_acl = acl::in_query(call, "predefinedDefaultObjectAcl")?.or(settings.object_acl.take());
    let sender = BucketWriter { kind, accepts: call.state.accept_unenforced, now_us: now_us() };
    bucket_fields::apply(settings, name, fields, sender)
}

/// Locks the retention policy. After that, its period can only be increased.
pub(super) fn lock_retention_policy(call: &JsonCall<'_>) -> ApiResult {
    let name = "ifMetagenerationMatch";
    if call.query.value(name).is_none() {
        return Err(ApiError::required(format!("Required parameter: {name}")));
    }
    let locked = call.state.objects.change_bucket(call.bucket, |settings| {
        let policy = settings.policy.as_mut().filter(|policy| !policy.is_locked).ok_or_else(|| {
            let bucket = call.bucket;
            ApiError::invalid(format!("Bucket '{bucket}' does not have an unlocked retention policy."))
        })?;
        policy.is_locked = true;
        conditions::on_metageneration(&call.query, "if", settings.metageneration)
    });
    locked.map_err(|refused| ApiError::refused(refused, call.bucket, ""))??;
    answer(call, call.bucket)
}

pub(super) fn get(call: &JsonCall<'_>) -> ApiResult {
    let found = call.state.objects.bucket(call.bucket);
    let bucket = found.map_err(|refused| ApiError::refused(refused, call.bucket, ""))?;
    conditions::on_metageneration(&call.query, "if", bucket.settings().metageneration)?;
    answer(call, call.bucket)
}

pub(super) fn delete(call: &JsonCall<'_>) -> ApiResult {
    let found = call.state.objects.bucket(call.bucket);
    let bucket = found.map_err(|refused| ApiError::refused(refused, call.bucket, ""))?;
    conditions::on_metageneration(&call.query, "if", bucket.settings().metageneration)?;
    let deleted = call.state.objects.delete_bucket(call.bucket);
    deleted.map_err(|refused| ApiError::refused(refused, call.bucket, ""))?;
    Ok(empty(StatusCode::NO_CONTENT))
}

fn answer(call: &JsonCall<'_>, name: &str) -> ApiResult {
    let found = call.state.objects.bucket(name);
    let bucket = found.map_err(|refused| ApiError::refused(refused, name, ""))?;
    Ok(answer_json(StatusCode::OK, &bucket_resource(&call.base_url(), &bucket, call.is_full())))
}

/// Returns a bucket's location.
pub(super) fn location(settings: &BucketSettings) -> &str {
    settings.fields.get("location").and_then(Value::as_str).unwrap_or(LOCATION)
}

/// Returns the type of a location. Names of regions, such as EUROPE-WEST3, contain a hyphen or end in a digit.
pub(super) fn location_type(location: &str) -> &'static str {
    match location {
        "US" | "EU" | "ASIA" => "multi-region",
        location if location.contains('-') => "region",
        _ => "dual-region",
    }
}

/// Returns a bucket's location, and whether its namespace is hierarchical.
/// <https://cloud.google.com/storage/docs/json_api/v1/buckets/getStorageLayout>
pub(super) fn storage_layout(call: &JsonCall<'_>) -> ApiResult {
    let found = call.state.objects.bucket(call.bucket);
    let bucket = found.map_err(|refused| ApiError::refused(refused, call.bucket, ""))?;
    let settings = bucket.settings();
    let layout = json!({
        "kind": "storage#storageLayout",
        "bucket": call.bucket,
        "location": location(&settings),
        "locationType": location_type(location(&settings)),
        "hierarchicalNamespace": {"enabled": settings.is_hierarchical},
    });
    Ok(answer_json(StatusCode::OK, &layout))
}
