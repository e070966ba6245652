//! `moveTo`: changes an object's key within its bucket, in one step.
//! <https://cloud.google.com/storage/docs/json_api/v1/objects/move>

use http::StatusCode;

use super::answer::{Answer, Problem, json};
use super::resource::ObjectResource;
use super::{JsonCall, check_name, conditions};

pub(super) fn to(call: &JsonCall<'_>, key: &str) -> Answer {
    if key == call.key {
        return Err(Problem::invalid("The source and destination of a move must differ."));
    }
    check_name(key)?;
    let source = conditions::of_source(&call.query)?;
    let destination = conditions::in_query(&call.query)?;
    let moved = call.state.objects.rename(call.bucket, call.key, key, &source, &destination);
    let object = moved.map_err(|refused| Problem::refused(refused, call.bucket, call.key))?;
    Ok(json(StatusCode::OK, &ObjectResource::new(call, call.bucket, &object)))
}
