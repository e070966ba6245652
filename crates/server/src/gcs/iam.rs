//! Permissions, policies and the service account. The server enforces none of them: every caller may do everything.
//! <https://cloud.google.com/storage/docs/json_api/v1/buckets/testIamPermissions>

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::JsonCall;
use super::answer::{ApiError, ApiResult, json as answer_json};

/// Answers that the caller has all the permissions that it asks about.
pub(super) fn test_permissions(call: &JsonCall<'_>) -> ApiResult {
    find(call)?;
    let permissions: Vec<&str> = call.query.values("permissions").collect();
    if permissions.is_empty() {
        return Err(ApiError::required("Required parameter: permissions"));
    }
    let answer = json!({"kind": "storage#testIamPermissionsResponse", "permissions": permissions});
    Ok(answer_json(StatusCode::OK, &answer))
}

/// Returns or stores the policy of a bucket, which the server doesn't enforce.
pub(super) async fn policy(mut call: JsonCall<'_>) -> ApiResult {
    find(&call)?;
    if !call.key.is_empty() {
        return Err(ApiError::not_here("iam of objects"));
    }
    if call.head.method == Method::PUT {
        let policy = call.json_body().await?;
        let kept = call.state.objects.change_bucket(call.bucket, |settings| {
            settings.documents.insert("iam".to_owned(), policy.to_string());
            Ok::<_, ApiError>(())
        });
        kept.map_err(|refused| ApiError::refused(refused, call.bucket, ""))??;
    }
    let found = call.state.objects.bucket(call.bucket);
    let bucket = found.map_err(|refused| ApiError::refused(refused, call.bucket, ""))?;
    let settings = bucket.settings();
    let kept = settings.documents.get("iam").and_then(|text| serde_json::from_str(text).ok());
    let mut policy: Value = kept.unwrap_or_else(|| json!({"version": 1}));
    policy["kind"] = json!("storage#policy");
    policy["resourceId"] = json!(format!("projects/_/buckets/{}", call.bucket));
    policy["etag"] = json!(super::resource::bucket_etag(settings.metageneration));
    Ok(answer_json(StatusCode::OK, &policy))
}

/// Returns the service account, which is the same for every project.
pub(super) fn service_account() -> ApiResult {
    let account = json!({
        "kind": "storage#serviceAccount",
        "email_address": "service-0@gs-project-accounts.iam.gserviceaccount.com",
    });
    Ok(answer_json(StatusCode::OK, &account))
}

/// Returns an error if the call's bucket or object doesn't exist.
fn find(call: &JsonCall<'_>) -> Result<(), ApiError> {
    let found = match call.key {
        "" => call.state.objects.bucket(call.bucket).map(drop),
        key => call.state.objects.find(call.bucket, key).map(drop),
    };
    found.map_err(|refused| ApiError::refused(refused, call.bucket, call.key))
}
