//! Calls on the folders of buckets with a hierarchical namespace.
//! <https://cloud.google.com/storage/docs/json_api/v1/folders>

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::JsonCall;
use super::answer::{ApiError, ApiResult, empty, json as answer_json};
use super::conditions;
use super::resource::rfc3339;
use crate::objects::folders::FolderError;
use crate::route::FolderCall;

const ENTRIES_MAX: u64 = 1000;

/// The metageneration of every folder, because this store can't change their metadata.
const METAGENERATION: u64 = 1;

pub(super) async fn answer(mut call: JsonCall<'_>, folder: FolderCall) -> ApiResult {
    let bucket = call.state.objects.bucket_with_folders(call.bucket);
    bucket.map_err(|refused| problem(&call, "", refused))?;
    match (call.head.method.clone(), folder) {
        (Method::GET, FolderCall::All) => list(&call),
        (Method::POST, FolderCall::All) => {
            let resource = call.json_body().await?;
            let name = resource["name"].as_str().ok_or_else(|| ApiError::required("Required: name"))?;
            insert(&call, &with_slash(name))
        }
        (Method::GET, FolderCall::One(name)) => get(&call, &with_slash(&name)),
        (Method::DELETE, FolderCall::One(name)) => delete(&call, &with_slash(&name)),
        (Method::POST, FolderCall::DeleteRecursive(name)) => delete_recursive(&call, &with_slash(&name)),
        (Method::POST, FolderCall::Rename(from, to)) => rename(&call, &with_slash(&from), &with_slash(&to)),
        (Method::GET, FolderCall::Operation(id)) => {
            Ok(answer_json(StatusCode::OK, &operation(&call, &id, true)))
        }
        _ => Err(ApiError::not_allowed()),
    }
}

fn list(call: &JsonCall<'_>) -> ApiResult {
    let value = |name| call.query.value(name).filter(|value| !value.is_empty());
    let prefix = value("prefix").unwrap_or_default();
    let (after, from, end) = (value("pageToken"), value("startOffset"), value("endOffset"));
    let max = conditions::number("pageSize", value("pageSize"))?.unwrap_or(ENTRIES_MAX).clamp(1, ENTRIES_MAX);
    let depth_max = match value("delimiter") {
        None => usize::MAX,
        Some("/") => 1,
        Some(_) => return Err(ApiError::invalid("The delimiter of folders can only be '/'.")),
    };
    let folders = call.state.objects.folders(call.bucket, prefix);
    let folders = folders.map_err(|refused| problem(call, prefix, refused))?;
    let mut found = folders.iter().filter(|(name, _)| {
        name[prefix.len()..].matches('/').count() <= depth_max
            && after.is_none_or(|after| name.as_str() > after)
            && from.is_none_or(|from| name.as_str() >= from)
            && end.is_none_or(|end| name.as_str() < end)
    });
    let items: Vec<Value> = found
        .by_ref()
        .take(max as usize)
        .map(|(name, created_us)| resource(call, name, *created_us))
        .collect();
    let mut listing = json!({"kind": "storage#folders"});
    if let Some(last) = found.next().and(items.last()) {
        listing["nextPageToken"] = last["name"].clone();
    }
    if !items.is_empty() {
        listing["items"] = items.into();
    }
    Ok(answer_json(StatusCode::OK, &listing))
}

fn insert(call: &JsonCall<'_>, name: &str) -> ApiResult {
    let created = call.state.objects.create_folder(call.bucket, name, call.query.is_true("recursive"));
    let created_us = created.map_err(|refused| problem(call, name, refused))?;
    Ok(answer_json(StatusCode::OK, &resource(call, name, created_us)))
}

fn get(call: &JsonCall<'_>, name: &str) -> ApiResult {
    let created_us = admitted(call, name, "if")?;
    Ok(answer_json(StatusCode::OK, &resource(call, name, created_us)))
}

fn delete(call: &JsonCall<'_>, name: &str) -> ApiResult {
    admitted(call, name, "if")?;
    let deleted = call.state.objects.delete_folder(call.bucket, name);
    deleted.map_err(|refused| problem(call, name, refused))?;
    Ok(empty(StatusCode::NO_CONTENT))
}

fn delete_recursive(call: &JsonCall<'_>, name: &str) -> ApiResult {
    admitted(call, name, "if")?;
    let deleted = call.state.objects.delete_folder_recursively(call.bucket, name);
    deleted.map_err(|refused| problem(call, name, refused))?;
    Ok(answer_json(StatusCode::OK, &operation(call, "delete-1", false)))
}

/// Renames a folder and everything below it. The source must exist, and the destination must not.
fn rename(call: &JsonCall<'_>, from: &str, to: &str) -> ApiResult {
    admitted(call, from, "ifSource")?;
    let renamed = call.state.objects.rename_folder(call.bucket, from, to);
    renamed.map_err(|refused| problem(call, from, refused))?;
    Ok(answer_json(StatusCode::OK, &operation(call, "rename-1", false)))
}

/// Returns the creation time of a folder that exists and meets the call's preconditions, whose names begin with
/// `condition`.
fn admitted(call: &JsonCall<'_>, name: &str, condition: &str) -> Result<u64, ApiError> {
    let created = call.state.objects.folder(call.bucket, name);
    let created_us = created.map_err(|refused| problem(call, name, refused))?;
    conditions::on_metageneration(&call.query, condition, METAGENERATION)?;
    Ok(created_us)
}

fn problem(call: &JsonCall<'_>, name: &str, refused: FolderError) -> ApiError {
    match refused {
        FolderError::Flat => ApiError::conflict("The bucket does not support hierarchical namespace."),
        FolderError::NoFolder => ApiError::not_found(format!("No such folder: {}/{name}", call.bucket)),
        FolderError::NoParent => ApiError::not_found("The parent folder does not exist."),
        FolderError::Exists => ApiError::conflict("The folder already exists."),
        FolderError::NotEmpty => ApiError::conflict("The folder you tried to delete is not empty."),
        FolderError::Inside => ApiError::invalid("A folder cannot be renamed to a place inside itself."),
        FolderError::Store(refused) => ApiError::refused(refused, call.bucket, name),
    }
}

/// Returns the resource of an operation. Every operation is done at once. But, as for a long operation, only the answer
/// to a later request for its state says so.
fn operation(call: &JsonCall<'_>, id: &str, done: bool) -> Value {
    let name = format!("projects/_/buckets/{}/operations/{id}", call.bucket);
    let mut operation = json!({
        "kind": "storage#operation",
        "name": name,
        "selfLink": format!("{}/storage/v1/b/{}/operations/{id}", call.base_url(), call.bucket),
    });
    if done {
        operation["done"] = true.into();
        operation["response"] = json!({});
    }
    operation
}

/// Adds the slash at the end of a folder's name, if it is missing.
fn with_slash(name: &str) -> String {
    if name.ends_with('/') { name.to_owned() } else { format!("{name}/") }
}

fn resource(call: &JsonCall<'_>, name: &str, created_us: u64) -> Value {
    let created = rfc3339(created_us);
    json!({
        "kind": "storage#folder",
        "id": format!("{}/{name}", call.bucket),
        "selfLink": format!("{}/storage/v1/b/{}/folders/{name}", call.base_url(), call.bucket),
        "name": name,
        "bucket": call.bucket,
        "metageneration": METAGENERATION.to_string(),
        "createTime": created,
        "updateTime": created,
    })
}
