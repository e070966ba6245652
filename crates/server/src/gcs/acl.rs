//! Access: predefined access control lists, permissions, policies and the service account. The server enforces none of
//! them: every caller may do everything. So by default it accepts only lists that give nobody but the owner and the
//! project access (<https://cloud.google.com/storage/docs/access-control/lists#predefined-acl>).

use http::{Method, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};

use super::JsonCall;
use super::answer::{ApiError, ApiResult, json as answer_json};
use crate::objects::object::{ACCOUNT, Group, granted};

/// The names of the lists in both APIs. The second value is true if a list grants access only to the owner and the
/// project.
const PREDEFINED: [(&str, bool); 14] = [
    ("private", true),
    ("projectPrivate", true),
    ("project-private", true),
    ("bucketOwnerRead", true),
    ("bucket-owner-read", true),
    ("bucketOwnerFullControl", true),
    ("bucket-owner-full-control", true),
    ("authenticatedRead", false),
    ("authenticated-read", false),
    ("publicRead", false),
    ("public-read", false),
    ("publicReadWrite", false),
    ("public-read-write", false),
    ("aws-exec-read", false),
];

/// Checks the predefined list in a parameter or header. If `accepts` is true, lists that grant access to others are
/// accepted too, without being enforced.
pub(crate) fn check(accepts: bool, name: &str, value: Option<&str>) -> Result<(), ApiError> {
    let Some(value) = value else { return Ok(()) };
    match PREDEFINED.iter().find(|(known, _)| *known == value) {
        None => Err(ApiError::invalid(format!("Invalid argument for {name}: '{value}'"))),
        Some((_, is_private)) if *is_private || accepts => Ok(()),
        Some(_) => Err(ApiError::not_here(&format!("{name} {value}"))),
    }
}

/// Reads and checks the predefined list in a parameter of a call.
pub(super) fn in_query(call: &JsonCall<'_>, name: &str) -> Result<Option<String>, ApiError> {
    let value = call.query.value(name);
    check(call.state.accept_unenforced, name, value)?;
    Ok(value.map(str::to_owned))
}

/// An entry of a list in a resource.
#[derive(Serialize)]
pub(super) struct AclEntry {
    kind: &'static str,
    entity: String,
    role: &'static str,
}

fn owner() -> String {
    format!("user-{ACCOUNT}")
}

/// Returns the entries of an object's list. Objects have no role for writers.
pub(super) fn of_object(acl: Option<&str>) -> Vec<AclEntry> {
    entries("storage#objectAccessControl", acl, "READER")
}

/// Returns the entries of a bucket's list.
pub(super) fn of_bucket(acl: Option<&str>) -> Vec<AclEntry> {
    entries("storage#bucketAccessControl", acl, "WRITER")
}

fn entries(kind: &'static str, acl: Option<&str>, writer: &'static str) -> Vec<AclEntry> {
    let of_group = granted(acl).map(|(group, writes)| {
        let entity = match group {
            Group::AllUsers => "allUsers",
            Group::AuthenticatedUsers => "allAuthenticatedUsers",
        };
        AclEntry { kind, entity: entity.to_owned(), role: if writes { writer } else { "READER" } }
    });
    std::iter::once(AclEntry { kind, entity: owner(), role: "OWNER" }).chain(of_group).collect()
}

/// Returns the predefined list whose entries are in a resource. A client that sends back a resource also sends the
/// entries that it has read.
pub(super) fn in_resource(accepts: bool, name: &str, list: &Value) -> Result<Option<String>, ApiError> {
    let entries = match list {
        Value::Null => return Ok(None),
        Value::Array(entries) if entries.is_empty() => return Ok(None),
        Value::Array(entries) => entries,
        _ => return Err(ApiError::not_here(name)),
    };
    let others = entries.iter().filter(|entry| entry["entity"] != owner());
    let others: Vec<_> = others
        .map(|entry| [&entry["entity"], &entry["role"]].map(|text| text.as_str().unwrap_or_default()))
        .collect();
    let predefined = match others[..] {
        [] => "private",
        [["allUsers", "READER"]] => "publicRead",
        [["allUsers", "WRITER"]] => "publicReadWrite",
        [["allAuthenticatedUsers", "READER"]] => "authenticatedRead",
        _ => return Err(ApiError::not_here(name)),
    };
    check(accepts, name, Some(predefined))?;
    Ok(Some(predefined.to_owned()))
}

/// Answers that the caller has all the permissions that it asks about.
///
/// <https://cloud.google.com/storage/docs/json_api/v1/buckets/testIamPermissions>
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
