//! The folders of buckets with a hierarchical namespace. An object's folders appear with the object, and stay when it
//! is gone. This store keeps them in memory.
//! <https://cloud.google.com/storage/docs/json_api/v1/folders>

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::JsonCall;
use super::answer::{Answer, Problem, empty, json as answer_json};
use super::conditions;
use super::resource::rfc3339;
use crate::objects::listing::Query;
use crate::objects::precondition::Precondition;
use crate::objects::settings::BucketSettings;
use crate::objects::{Objects, Refused, now_us};
use crate::route::FolderCall;

const ENTRIES_MAX: u64 = 1000;

/// The creation times, by bucket and name.
#[derive(Debug, Default)]
pub(crate) struct FolderTable(Mutex<BTreeMap<(String, String), u64>>);

impl FolderTable {
    pub(crate) fn clear(&self) {
        self.map().clear();
    }

    /// Keeps the folders of an object that is about to leave them.
    pub(super) fn keep(&self, objects: &Objects, bucket: &str, key: &str) {
        if is_hierarchical(objects, bucket) {
            let mut map = self.map();
            for name in above(key) {
                map.entry((bucket.to_owned(), name)).or_insert_with(now_us);
            }
        }
    }

    /// Returns true if a bucket has a folder, with or without objects in it.
    pub(super) fn are_in(&self, bucket: &str) -> bool {
        self.map().keys().any(|(of, _)| of == bucket)
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<(String, String), u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if a bucket's settings turn the hierarchical namespace on.
pub(super) fn is_on(settings: &BucketSettings) -> bool {
    settings.fields.get("hierarchicalNamespace").is_some_and(|field| field["enabled"] == true)
}

fn is_hierarchical(objects: &Objects, bucket: &str) -> bool {
    objects.bucket(bucket).is_ok_and(|bucket| is_on(&bucket.settings()))
}

/// Returns the folders above a key, the outermost first.
fn above(key: &str) -> impl Iterator<Item = String> + '_ {
    key.match_indices('/').map(|(at, _)| key[..=at].to_owned())
}

pub(super) async fn answer(mut call: JsonCall<'_>, folder: FolderCall) -> Answer {
    let bucket = call.state.objects.bucket(call.bucket);
    bucket.map_err(|refused| Problem::refused(refused, call.bucket, ""))?;
    if !is_hierarchical(&call.state.objects, call.bucket) {
        return Err(Problem::conflict("The bucket does not support hierarchical namespace."));
    }
    match (call.head.method.clone(), folder) {
        (Method::GET, FolderCall::All) => list(&call),
        (Method::POST, FolderCall::All) => {
            let resource = call.json_body().await?;
            let name = resource["name"].as_str().ok_or_else(|| Problem::required("Required: name"))?;
            insert(&call, &with_slash(name))
        }
        (Method::GET, FolderCall::One(name)) => get(&call, &with_slash(&name)),
        (Method::DELETE, FolderCall::One(name)) => delete(&call, &with_slash(&name)),
        (Method::POST, FolderCall::DeleteRecursive(name)) => delete_recursive(&call, &with_slash(&name)),
        (Method::POST, FolderCall::Rename(from, to)) => rename(&call, &with_slash(&from), &with_slash(&to)),
        (Method::GET, FolderCall::Operation(id)) => {
            Ok(answer_json(StatusCode::OK, &operation(&call, &id, true)))
        }
        _ => Err(Problem::not_allowed()),
    }
}

/// Returns the names of all folders of the bucket that begin with a prefix.
fn names(call: &JsonCall<'_>, prefix: &str) -> Result<BTreeSet<String>, Problem> {
    let map = call.state.folders.map();
    let kept = map.keys().filter(|(bucket, _)| bucket == call.bucket).map(|(_, name)| name.clone());
    let mut names: BTreeSet<String> = kept.collect();
    drop(map);
    for key in keys(call, "")? {
        names.extend(above(&key));
    }
    names.retain(|name| name.starts_with(prefix));
    Ok(names)
}

/// Returns the keys of all objects below a folder.
fn keys(call: &JsonCall<'_>, prefix: &str) -> Result<Vec<String>, Problem> {
    let all = Query { prefix: prefix.to_owned(), max: usize::MAX, ..Query::default() };
    let page = call.state.objects.list(call.bucket, &all);
    let page = page.map_err(|refused| Problem::refused(refused, call.bucket, ""))?;
    Ok(page.objects.iter().map(|object| object.key.clone()).collect())
}

fn list(call: &JsonCall<'_>) -> Answer {
    let value = |name| call.query.value(name).filter(|value| !value.is_empty());
    let prefix = value("prefix").unwrap_or_default();
    let after = value("pageToken");
    let max = conditions::number("pageSize", value("pageSize"))?.unwrap_or(ENTRIES_MAX).clamp(1, ENTRIES_MAX);
    let names = names(call, prefix)?;
    let is_child =
        |name: &&String| value("delimiter") != Some("/") || name[prefix.len()..].matches('/').count() <= 1;
    let mut found =
        names.iter().filter(is_child).filter(|name| after.is_none_or(|after| name.as_str() > after));
    let items: Vec<Value> = found.by_ref().take(max as usize).map(|name| resource(call, name)).collect();
    let mut listing = json!({"kind": "storage#folders"});
    if let Some(last) = found.next().and(items.last()) {
        listing["nextPageToken"] = last["name"].clone();
    }
    if !items.is_empty() {
        listing["items"] = items.into();
    }
    Ok(answer_json(StatusCode::OK, &listing))
}

fn insert(call: &JsonCall<'_>, name: &str) -> Answer {
    let names = names(call, "")?;
    if names.contains(name) {
        return Err(Problem::conflict("The folder you tried to create already exists."));
    }
    let is_recursive = call.query.is_true("recursive");
    if !is_recursive && above(name).any(|above| above != name && !names.contains(&above)) {
        return Err(Problem::not_found("A parent folder of the folder does not exist."));
    }
    let mut map = call.state.folders.map();
    for name in above(name) {
        map.entry((call.bucket.to_owned(), name)).or_insert_with(now_us);
    }
    drop(map);
    Ok(answer_json(StatusCode::OK, &resource(call, name)))
}

fn get(call: &JsonCall<'_>, name: &str) -> Answer {
    exists(call, name)?;
    Ok(answer_json(StatusCode::OK, &resource(call, name)))
}

fn exists(call: &JsonCall<'_>, name: &str) -> Result<(), Problem> {
    match names(call, name)?.contains(name) {
        true => Ok(()),
        false => Err(Problem::not_found(format!("No such folder: {}/{name}", call.bucket))),
    }
}

fn delete(call: &JsonCall<'_>, name: &str) -> Answer {
    exists(call, name)?;
    if names(call, name)?.len() > 1 || !keys(call, name)?.is_empty() {
        return Err(Problem::conflict("The folder you tried to delete is not empty."));
    }
    call.state.folders.map().remove(&(call.bucket.to_owned(), name.to_owned()));
    Ok(empty(StatusCode::NO_CONTENT))
}

fn delete_recursive(call: &JsonCall<'_>, name: &str) -> Answer {
    exists(call, name)?;
    for key in keys(call, name)? {
        let removed = call.state.objects.delete(call.bucket, &key, &Precondition::default());
        removed.map_err(|refused| Problem::refused(refused, call.bucket, &key))?;
    }
    call.state.folders.map().retain(|(bucket, folder), _| bucket != call.bucket || !folder.starts_with(name));
    Ok(answer_json(StatusCode::OK, &operation(call, "delete-1", false)))
}

/// Renames a folder and everything below it. The source must exist, and the destination must not.
fn rename(call: &JsonCall<'_>, from: &str, to: &str) -> Answer {
    exists(call, from)?;
    if to.starts_with(from) {
        return Err(Problem::invalid("A folder cannot be renamed to a place inside itself."));
    }
    let all = names(call, "")?;
    if all.contains(to) {
        return Err(Problem::conflict("The destination folder already exists."));
    }
    if above(to).any(|above| above != to && !all.contains(&above)) {
        return Err(Problem::not_found("The parent folder of the destination does not exist."));
    }
    let any = Precondition::default();
    for key in keys(call, from)? {
        let new = format!("{to}{}", &key[from.len()..]);
        let moved = call.state.objects.rename(call.bucket, &key, &new, &any, &any);
        moved.map_err(|refused: Refused| Problem::refused(refused, call.bucket, &key))?;
    }
    let mut map = call.state.folders.map();
    map.retain(|(bucket, folder), _| bucket != call.bucket || !folder.starts_with(from));
    for name in all.iter().filter(|name| name.starts_with(from)) {
        map.insert((call.bucket.to_owned(), format!("{to}{}", &name[from.len()..])), now_us());
    }
    drop(map);
    Ok(answer_json(StatusCode::OK, &operation(call, "rename-1", false)))
}

/// Returns an operation. Each is done at once, and says so only when it is asked for, as a long one does.
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

fn resource(call: &JsonCall<'_>, name: &str) -> Value {
    let key = (call.bucket.to_owned(), name.to_owned());
    let created = rfc3339(*call.state.folders.map().entry(key).or_insert_with(now_us));
    json!({
        "kind": "storage#folder",
        "id": format!("{}/{name}", call.bucket),
        "selfLink": format!("{}/storage/v1/b/{}/folders/{name}", call.base_url(), call.bucket),
        "name": name,
        "bucket": call.bucket,
        "metageneration": "1",
        "createTime": created,
        "updateTime": created,
    })
}
