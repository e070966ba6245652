//! Copies, moves and compositions: `copyTo` copies an object in one call. `rewriteTo` may need several calls, because
//! the configuration limits the bytes for each. `moveTo` changes an object's key within its bucket, in one step
//! (<https://cloud.google.com/storage/docs/json_api/v1/objects/move>). `compose` joins up to 32 objects of a bucket,
//! end to end, into a new object.

use std::sync::Arc;

use http::StatusCode;
use serde::Serialize;
use serde_json::Value;

use super::answer::{ApiError, ApiResult, json};
use super::resource::ObjectResource;
use super::{JsonCall, acl, check_name, conditions, describe, encryption};
use crate::checksum::{ComputedChecksums, concatenated};
use crate::objects::content::Content;
use crate::objects::object::ObjectOptions;
use crate::objects::precondition::Precondition;
use crate::objects::versions::VersionSelector;
use crate::objects::writer::WrittenContent;
use crate::objects::{Attributes, NewObject, Object, Objects, StoreError};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RewriteResource<'a> {
    kind: &'static str,
    total_bytes_rewritten: String,
    object_size: String,
    done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    rewrite_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<ObjectResource<'a>>,
}

pub(super) async fn copy(mut call: JsonCall<'_>, bucket: &str, key: &str) -> ApiResult {
    let source = source(&call)?;
    let object = carry_out(&mut call, &source, bucket, key).await?;
    Ok(json(StatusCode::OK, &ObjectResource::new(&call, bucket, &object)))
}

pub(super) async fn rewrite(mut call: JsonCall<'_>, bucket: &str, key: &str) -> ApiResult {
    let source = source(&call)?;
    let before = match call.query.value("rewriteToken") {
        Some(token) => progress(token, &source)
            .ok_or_else(|| ApiError::invalid("The rewrite token belongs to another object or call."))?,
        None => 0,
    };
    let step = call.state.config.rewrite_bytes_max.unwrap_or(u64::MAX).max(1);
    let asked = conditions::number("maxBytesRewrittenPerCall", call.query.value("maxBytesRewrittenPerCall"))?;
    let after = before.saturating_add(step.min(asked.unwrap_or(u64::MAX).max(1))).min(source.size);
    let mut answer = RewriteResource {
        kind: "storage#rewriteResponse",
        total_bytes_rewritten: after.to_string(),
        object_size: source.size.to_string(),
        done: after == source.size,
        rewrite_token: None,
        resource: None,
    };
    if !answer.done {
        answer.rewrite_token = Some(format!("{}-{after}", source.generation));
        return Ok(json(StatusCode::OK, &answer));
    }
    let object = carry_out(&mut call, &source, bucket, key).await?;
    answer.resource = Some(ObjectResource::new(&call, bucket, &object));
    Ok(json(StatusCode::OK, &answer))
}

/// Changes an object's key within its bucket.
pub(super) fn move_to(call: &JsonCall<'_>, key: &str) -> ApiResult {
    if key == call.key {
        return Err(ApiError::invalid("The source and destination of a move must differ."));
    }
    check_name(key)?;
    let source = conditions::of_source(&call.query)?;
    let destination = conditions::in_query(&call.query)?;
    let moved = call.state.objects.rename(call.bucket, call.key, key, &source, &destination);
    let object = moved.map_err(|refused| ApiError::refused(refused, call.bucket, call.key))?;
    Ok(json(StatusCode::OK, &ObjectResource::new(call, call.bucket, &object)))
}

fn source(call: &JsonCall<'_>) -> Result<Arc<Object>, ApiError> {
    let refuse = |refused| ApiError::refused(refused, call.bucket, call.key);
    // For a generation that doesn't exist any more, the answer is 404, as for one that never existed.
    let asked = conditions::number("sourceGeneration", call.query.value("sourceGeneration"))?;
    let which = asked.map_or(VersionSelector::Live, VersionSelector::Generation);
    let object = call.state.objects.find_version(call.bucket, call.key, which).map_err(refuse)?;
    encryption::admit(encryption::of_source(&call.head.headers)?.as_ref(), &object)?;
    let precondition = conditions::of_source(&call.query)?;
    precondition.check(Some(&object)).map_err(|failed| refuse(StoreError::Precondition(failed)))?;
    Ok(object)
}

/// Creates the new object from the bytes of the old one. If the request has a body, it replaces the metadata.
async fn carry_out(
    call: &mut JsonCall<'_>,
    source: &Object,
    bucket: &str,
    key: &str,
) -> Result<Arc<Object>, ApiError> {
    check_name(key)?;
    let resource = call.json_body().await?;
    let acl = acl::in_query(call, "destinationPredefinedAcl")?;
    let mut attributes = Attributes::clone(&source.attributes);
    // Encryption, access control and locks aren't copied: they come from this request.
    attributes.options =
        ObjectOptions { encryption: encryption::sent(&call.head.headers)?, acl, ..ObjectOptions::default() };
    describe(call, &mut attributes, &resource)?;
    let new = NewObject {
        attributes,
        etag: None,
        checksum: source.checksum.clone(),
        components: source.components,
        parts: None,
        part_sizes: Vec::new(),
        part_sums: Vec::new(),
        blob: None,
    };
    let precondition = conditions::in_query(&call.query)?;
    call.state
        .objects
        .commit(bucket, key, Objects::written_from(source), new, &precondition)
        .map_err(|refused| ApiError::refused(refused, bucket, key))
}

/// Returns the number of bytes that earlier calls copied, or `None` if the token is for another generation.
fn progress(token: &str, source: &Object) -> Option<u64> {
    let (generation, bytes) = token.split_once('-')?;
    let bytes = bytes.parse().ok()?;
    (generation.parse() == Ok(source.generation) && bytes < source.size).then_some(bytes)
}

const SOURCES_MAX: usize = 32;

pub(super) async fn compose(mut call: JsonCall<'_>) -> ApiResult {
    let request = call.json_body().await?;
    let sources = request["sourceObjects"].as_array().map(Vec::as_slice).unwrap_or_default();
    if sources.is_empty() || sources.len() > SOURCES_MAX {
        return Err(ApiError::invalid(format!(
            "The number of source components provided ({}) must be from 1 to {SOURCES_MAX}",
            sources.len()
        )));
    }
    let mut content = Content::default();
    let mut sums: Option<ComputedChecksums> = None;
    let mut components = 0;
    for source in sources {
        let key =
            source["name"].as_str().ok_or_else(|| ApiError::required("Required: sourceObjects[].name"))?;
        let refuse = |refused| ApiError::refused(refused, call.bucket, key);
        let which =
            match_of(&source["generation"]).map_or(VersionSelector::Live, VersionSelector::Generation);
        let object = call.state.objects.find_version(call.bucket, key, which).map_err(refuse)?;
        let precondition = Precondition {
            generation_match: match_of(&source["objectPreconditions"]["ifGenerationMatch"]),
            ..Default::default()
        };
        precondition.check(Some(&object)).map_err(|failed| refuse(StoreError::Precondition(failed)))?;
        content.extents.extend(object.content.extents.iter().cloned());
        sums = Some(match sums {
            Some(before) => concatenated(&before, &object.sums()),
            None => ComputedChecksums { md5: None, ..object.sums() },
        });
        components += object.components.unwrap_or(1);
    }
    let mut attributes = Attributes::default();
    check_name(call.key)?;
    attributes.options.acl = acl::in_query(&call, "destinationPredefinedAcl")?;
    describe(&call, &mut attributes, &request["destination"])?;
    let new = NewObject { attributes, components: Some(components), ..Default::default() };
    let written = WrittenContent { content, sums: sums.unwrap_or_default() };
    let precondition = conditions::in_query(&call.query)?;
    let object = call
        .state
        .objects
        .commit(call.bucket, call.key, written, new, &precondition)
        .map_err(|refused| ApiError::refused(refused, call.bucket, call.key))?;
    Ok(json(StatusCode::OK, &ObjectResource::new(&call, call.bucket, &object)))
}

/// Reads a generation, which may be a JSON string or a number.
fn match_of(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}
