//! Managed folders: folders with their own permissions. This store keeps only their names, and only in memory.
//! <https://cloud.google.com/storage/docs/json_api/v1/managedFolders>

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::{Method, StatusCode};
use serde::Serialize;

use super::JsonCall;
use super::answer::{ApiError, ApiResult, empty, json};
use super::conditions;
use super::resource::rfc3339;
use crate::objects::now_us;

const ENTRIES_MAX: u64 = 1000;

/// The creation times of the folders, by bucket and name.
#[derive(Debug, Default)]
pub(crate) struct ManagedFolders(Mutex<BTreeMap<(String, String), u64>>);

impl ManagedFolders {
    pub(crate) fn clear(&self) {
        self.map().clear();
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<(String, String), u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ManagedFolderResource {
    kind: &'static str,
    id: String,
    self_link: String,
    name: String,
    bucket: String,
    metageneration: &'static str,
    create_time: String,
    update_time: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ManagedFoldersResource {
    kind: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    items: Vec<ManagedFolderResource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

pub(super) async fn answer(mut call: JsonCall<'_>, name: Option<String>) -> ApiResult {
    let bucket = call.state.objects.bucket(call.bucket);
    bucket.map_err(|refused| ApiError::refused(refused, call.bucket, ""))?;
    match (call.head.method.clone(), name) {
        (Method::GET, None) => list(&call),
        (Method::POST, None) => {
            let resource = call.json_body().await?;
            let name = resource["name"].as_str().ok_or_else(|| ApiError::required("Required: name"))?;
            insert(&call, &with_slash(name))
        }
        (Method::GET, Some(name)) => get(&call, &with_slash(&name)),
        (Method::DELETE, Some(name)) => delete(&call, &with_slash(&name)),
        _ => Err(ApiError::not_allowed()),
    }
}

fn list(call: &JsonCall<'_>) -> ApiResult {
    let value = |name| call.query.value(name).filter(|value| !value.is_empty());
    let prefix = value("prefix").unwrap_or_default();
    let after = value("pageToken");
    let max = conditions::number("pageSize", value("pageSize"))?.unwrap_or(ENTRIES_MAX).clamp(1, ENTRIES_MAX);
    let map = call.state.managed_folders.map();
    let mut found = map
        .iter()
        .filter(|((bucket, name), _)| bucket == call.bucket && name.starts_with(prefix))
        .filter(|((_, name), _)| after.is_none_or(|after| name.as_str() > after));
    let items: Vec<ManagedFolderResource> = found
        .by_ref()
        .take(max as usize)
        .map(|((_, name), created_us)| resource(call, name, *created_us))
        .collect();
    let next_page_token = found.next().and(items.last()).map(|last| last.name.clone());
    Ok(json(
        StatusCode::OK,
        &ManagedFoldersResource { kind: "storage#managedFolders", items, next_page_token },
    ))
}

fn insert(call: &JsonCall<'_>, name: &str) -> ApiResult {
    let mut map = call.state.managed_folders.map();
    let key = (call.bucket.to_owned(), name.to_owned());
    if map.contains_key(&key) {
        return Err(ApiError::conflict("The managed folder you tried to create already exists."));
    }
    let created_us = now_us();
    map.insert(key, created_us);
    Ok(json(StatusCode::OK, &resource(call, name, created_us)))
}

fn get(call: &JsonCall<'_>, name: &str) -> ApiResult {
    let key = (call.bucket.to_owned(), name.to_owned());
    let created_us = call.state.managed_folders.map().get(&key).copied();
    let created_us = created_us.ok_or_else(|| missing(name))?;
    Ok(json(StatusCode::OK, &resource(call, name, created_us)))
}

fn delete(call: &JsonCall<'_>, name: &str) -> ApiResult {
    let occupied =
        crate::objects::listing::ListingQuery { prefix: name.to_owned(), max: 1, ..Default::default() };
    let inside = call.state.objects.list(call.bucket, &occupied);
    let inside = inside.map_err(|refused| ApiError::refused(refused, call.bucket, ""))?;
    if !inside.objects.is_empty() && !call.query.is_true("allowNonEmpty") {
        return Err(ApiError::conflict("The managed folder you tried to delete is not empty."));
    }
    let removed = call.state.managed_folders.map().remove(&(call.bucket.to_owned(), name.to_owned()));
    removed.map(|_| empty(StatusCode::NO_CONTENT)).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> ApiError {
    ApiError::not_found(format!("No such managed folder: {name}"))
}

/// Adds the slash at the end of a managed folder's name, if it is missing.
fn with_slash(name: &str) -> String {
    if name.ends_with('/') { name.to_owned() } else { format!("{name}/") }
}

fn resource(call: &JsonCall<'_>, name: &str, created_us: u64) -> ManagedFolderResource {
    let created = rfc3339(created_us);
    ManagedFolderResource {
        kind: "storage#managedFolder",
        id: format!("{}/{name}", call.bucket),
        self_link: format!("{}/storage/v1/b/{}/managedFolders/{name}", call.base_url(), call.bucket),
        name: name.to_owned(),
        bucket: call.bucket.to_owned(),
        metageneration: "1",
        create_time: created.clone(),
        update_time: created,
    }
}
