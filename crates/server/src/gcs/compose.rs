//! `compose`: joins up to 32 objects of a bucket, end to end, into a new object.

use http::StatusCode;
use serde_json::Value;

use super::answer::{ApiError, ApiResult, json};
use super::resource::ObjectResource;
use super::{JsonCall, acl, check_name, conditions, describe};
use crate::checksum::{ComputedChecksums, concatenated};
use crate::objects::content::Content;
use crate::objects::precondition::Precondition;
use crate::objects::versions::VersionSelector;
use crate::objects::writer::WrittenContent;
use crate::objects::{Attributes, NewObject, StoreError};

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
