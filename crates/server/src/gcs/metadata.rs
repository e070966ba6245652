//! Metadata of one object: read, changed, and removed with the object.

use http::StatusCode;

use super::answer::{Answer, Problem, empty, json};
use super::resource::{ObjectResource, apply};
use super::{JsonCall, conditions, media};
use crate::objects::Attributes;
use crate::objects::precondition::Precondition;

pub(super) fn get(call: &JsonCall<'_>) -> Answer {
    let precondition = conditions::in_query(&call.query)?;
    let generation = conditions::number("generation", call.query.value("generation"))?;
    let object = media::find(call.shared, call.bucket, call.key, generation, &precondition)?;
    Ok(json(StatusCode::OK, &ObjectResource::new(&call.base_url(), call.bucket, &object)))
}

/// PATCH changes what it names; PUT (`update`) replaces all that can be changed.
pub(super) async fn patch(mut call: JsonCall<'_>) -> Answer {
    let change = call.json_body().await?;
    let precondition = pinned(&call)?;
    let replaces = call.head.method == http::Method::PUT;
    let object = call
        .shared
        .objects
        .patch(call.bucket, call.key, &precondition, |attributes| {
            if replaces {
                *attributes =
                    Attributes { storage_class: attributes.storage_class.take(), ..Default::default() };
            }
            apply(attributes, &change);
        })
        .map_err(|refused| Problem::refused(refused, call.bucket, call.key))?;
    Ok(json(StatusCode::OK, &ObjectResource::new(&call.base_url(), call.bucket, &object)))
}

pub(super) fn delete(call: &JsonCall<'_>) -> Answer {
    let precondition = pinned(call)?;
    let deleted = call.shared.objects.delete(call.bucket, call.key, &precondition);
    deleted.map_err(|refused| Problem::refused(refused, call.bucket, call.key))?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// The preconditions, with the generation that the URL names: one that isn't there is 404 and not 412.
fn pinned(call: &JsonCall<'_>) -> Result<Precondition, Problem> {
    let mut precondition = conditions::in_query(&call.query)?;
    if let Some(generation) = conditions::number("generation", call.query.value("generation"))? {
        media::find(call.shared, call.bucket, call.key, Some(generation), &Precondition::default())?;
        precondition.generation_match.get_or_insert(generation);
    }
    Ok(precondition)
}
