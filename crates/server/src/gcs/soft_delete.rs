//! Soft deletion: a deleted object can be listed and restored until its bucket's retention is over. This store keeps
//! deleted objects in memory, and doesn't keep overwritten ones.
//! <https://cloud.google.com/storage/docs/soft-delete>

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use serde_json::{Value, json};

use super::answer::{Answer, Problem, json as answer_json};
use super::resource::{ObjectResource, rfc3339};
use super::{JsonCall, conditions};
use crate::objects::settings::BucketSettings;
use crate::objects::{Attributes, NewObject, Object, Objects, now_us};

const ENTRIES_MAX: u64 = 1000;

/// The shortest and the longest retention. 0 turns soft deletion off.
const SECONDS: std::ops::RangeInclusive<u64> = 7 * 86_400..=90 * 86_400;

/// The deleted objects with the times of their deletion, by bucket, key and generation.
#[derive(Debug, Default)]
pub(crate) struct SoftDeleted(Mutex<BTreeMap<(String, String, u64), (Arc<Object>, u64)>>);

impl SoftDeleted {
    pub(crate) fn clear(&self) {
        self.map().clear();
    }

    /// Keeps an object that is about to be deleted, if its bucket keeps such objects.
    pub(super) fn keep(&self, objects: &Objects, bucket: &str, key: &str) {
        let keeps = objects.bucket(bucket).is_ok_and(|bucket| seconds(&bucket.settings()) > 0);
        if keeps && let Ok(object) = objects.find(bucket, key) {
            let id = (bucket.to_owned(), key.to_owned(), object.generation);
            self.map().insert(id, (object, now_us()));
        }
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<(String, String, u64), (Arc<Object>, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the time for which a bucket keeps deleted objects. 0 means that it keeps none.
fn seconds(settings: &BucketSettings) -> u64 {
    settings.fields.get("softDeletePolicy").map_or(0, duration)
}

fn duration(policy: &Value) -> u64 {
    let seconds = &policy["retentionDurationSeconds"];
    seconds.as_u64().or_else(|| seconds.as_str()?.parse().ok()).unwrap_or(0)
}

/// Reads `softDeletePolicy`, and returns the value to keep.
pub(super) fn policy(value: &Value) -> Result<Option<Value>, Problem> {
    match duration(value) {
        0 => Ok(None),
        seconds if SECONDS.contains(&seconds) => {
            Ok(Some(json!({"retentionDurationSeconds": seconds.to_string()})))
        }
        _ => Err(Problem::invalid("Soft delete retention duration must be 0, or from 7 to 90 days.")),
    }
}

/// Lists deleted objects. Tokens are the numbers of the entries before.
pub(super) fn list(call: &JsonCall<'_>) -> Answer {
    let bucket = call.state.objects.bucket(call.bucket);
    let bucket = bucket.map_err(|refused| Problem::refused(refused, call.bucket, ""))?;
    let retention_us = seconds(&bucket.settings()) * 1_000_000;
    if retention_us == 0 {
        return Err(Problem::invalid("bucket soft delete policy must be set."));
    }
    let value = |name| call.query.value(name).filter(|value| !value.is_empty());
    let prefix = value("prefix").unwrap_or_default();
    let (from, end) = (value("startOffset"), value("endOffset"));
    let skipped = conditions::number("pageToken", value("pageToken"))?.unwrap_or(0) as usize;
    let max = conditions::number("maxResults", value("maxResults"))?.unwrap_or(ENTRIES_MAX).min(ENTRIES_MAX);
    let map = call.state.soft_deleted.map();
    let mut found = map.iter().filter(|((of, key, _), _)| {
        of == call.bucket
            && key.starts_with(prefix)
            && from.is_none_or(|from| key.as_str() >= from)
            && end.is_none_or(|end| key.as_str() < end)
    });
    let items: Vec<Value> = found
        .by_ref()
        .skip(skipped)
        .take(max as usize)
        .map(|(_, (object, deleted_us))| {
            let mut item =
                serde_json::to_value(ObjectResource::new(call, call.bucket, object)).unwrap_or_default();
            item["softDeleteTime"] = rfc3339(*deleted_us).into();
            item["hardDeleteTime"] = rfc3339(deleted_us + retention_us).into();
            item
        })
        .collect();
    let mut listing = json!({"kind": "storage#objects"});
    if found.next().is_some() {
        listing["nextPageToken"] = (skipped + items.len()).to_string().into();
    }
    listing["items"] = items.into();
    Ok(answer_json(StatusCode::OK, &listing))
}

/// Restores a deleted object as a new generation.
/// <https://cloud.google.com/storage/docs/json_api/v1/objects/restore>
pub(super) fn restore(call: &JsonCall<'_>) -> Answer {
    let generation = conditions::number("generation", call.query.value("generation"))?;
    let generation = generation.ok_or_else(|| Problem::required("Required parameter: generation"))?;
    let id = (call.bucket.to_owned(), call.key.to_owned(), generation);
    let kept = call.state.soft_deleted.map().get(&id).map(|(object, _)| object.clone());
    let old = kept.ok_or_else(|| {
        Problem::not_found(format!("No such soft-deleted object: {}/{}", call.bucket, call.key))
    })?;
    let new = NewObject {
        attributes: Attributes::clone(&old.attributes),
        checksum: old.checksum.clone(),
        components: old.components,
        ..Default::default()
    };
    let precondition = conditions::in_query(&call.query)?;
    call.state.soft_deleted.keep(&call.state.objects, call.bucket, call.key);
    let restored =
        call.state.objects.commit(call.bucket, call.key, Objects::written_from(&old), new, &precondition);
    let object = restored.map_err(|refused| Problem::refused(refused, call.bucket, call.key))?;
    call.state.soft_deleted.map().remove(&id);
    Ok(answer_json(StatusCode::OK, &ObjectResource::new(call, call.bucket, &object)))
}
