//! `ifGenerationMatch` and its kind, from the query (JSON) or the headers (XML).

use http::HeaderMap;

use super::answer::Problem;
use crate::objects::precondition::Precondition;
use crate::query::Query;

/// The preconditions of a JSON call on the object that its URL names.
pub(crate) fn in_query(query: &Query) -> Result<Precondition, Problem> {
    let number = |name| number(name, query.value(name));
    Ok(Precondition {
        generation_match: number("ifGenerationMatch")?,
        generation_not_match: number("ifGenerationNotMatch")?,
        metageneration_match: number("ifMetagenerationMatch")?,
        metageneration_not_match: number("ifMetagenerationNotMatch")?,
        ..Default::default()
    })
}

/// The preconditions of a copy on its source.
pub(crate) fn of_source(query: &Query) -> Result<Precondition, Problem> {
    let number = |name| number(name, query.value(name));
    Ok(Precondition {
        generation_match: number("ifSourceGenerationMatch")?.or(number("sourceGeneration")?),
        generation_not_match: number("ifSourceGenerationNotMatch")?,
        metageneration_match: number("ifSourceMetagenerationMatch")?,
        metageneration_not_match: number("ifSourceMetagenerationNotMatch")?,
        ..Default::default()
    })
}

/// The preconditions of an XML request.
pub(crate) fn in_headers(headers: &HeaderMap) -> Result<Precondition, Problem> {
    let number = |name| number(name, headers.get(name).and_then(|value| value.to_str().ok()));
    Ok(Precondition {
        generation_match: number("x-goog-if-generation-match")?,
        metageneration_match: number("x-goog-if-metageneration-match")?,
        ..Default::default()
    })
}

/// A number in a parameter, if it is there at all.
pub(crate) fn number(name: &str, value: Option<&str>) -> Result<Option<u64>, Problem> {
    let Some(value) = value else { return Ok(None) };
    let refuse = || Problem::invalid(format!("Invalid value '{value}' for {name}: a number was expected"));
    value.parse().map(Some).map_err(|_| refuse())
}
