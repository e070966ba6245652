//! `ifGenerationMatch` and similar conditions, from the query (JSON) or the headers (XML), and HTTP's own conditions on
//! reads (<https://cloud.google.com/storage/docs/request-preconditions>).

use std::time::{Duration, UNIX_EPOCH};

use http::HeaderMap;

use super::answer::ApiError;
use crate::objects::StoreError;
use crate::objects::precondition::{FailedCondition, Precondition};
use crate::query::Query;

/// Reads the preconditions of a JSON call on the object in its URL.
pub(crate) fn in_query(query: &Query) -> Result<Precondition, ApiError> {
    let number = |name| number(name, query.value(name));
    Ok(Precondition {
        generation_match: number("ifGenerationMatch")?,
        generation_not_match: number("ifGenerationNotMatch")?,
        metageneration_match: number("ifMetagenerationMatch")?,
        metageneration_not_match: number("ifMetagenerationNotMatch")?,
        ..Default::default()
    })
}

/// Reads the preconditions of a copy on its source. `sourceGeneration` isn't a precondition, because it selects the
/// object to copy.
pub(crate) fn of_source(query: &Query) -> Result<Precondition, ApiError> {
    let number = |name| number(name, query.value(name));
    Ok(Precondition {
        generation_match: number("ifSourceGenerationMatch")?,
        generation_not_match: number("ifSourceGenerationNotMatch")?,
        metageneration_match: number("ifSourceMetagenerationMatch")?,
        metageneration_not_match: number("ifSourceMetagenerationNotMatch")?,
        ..Default::default()
    })
}

/// Checks the preconditions of a JSON call on the metageneration of a bucket or folder. Their names begin with `prefix`.
pub(super) fn on_metageneration(query: &Query, prefix: &str, metageneration: u64) -> Result<(), ApiError> {
    let number = |suffix: &str| {
        let name = format!("{prefix}Metageneration{suffix}");
        number(&name, query.value(&name))
    };
    if number("Match")?.is_some_and(|wanted| wanted != metageneration) {
        return Err(ApiError::refused(StoreError::Precondition(FailedCondition::Match), "", ""));
    }
    if number("NotMatch")? == Some(metageneration) {
        return Err(ApiError::refused_to_read(StoreError::Precondition(FailedCondition::NotMatch), "", ""));
    }
    Ok(())
}

/// Reads the preconditions of an XML request.
pub(crate) fn in_headers(headers: &HeaderMap) -> Result<Precondition, ApiError> {
    let number = |name| number(name, headers.get(name).and_then(|value| value.to_str().ok()));
    Ok(Precondition {
        generation_match: number("x-goog-if-generation-match")?,
        metageneration_match: number("x-goog-if-metageneration-match")?,
        ..Default::default()
    })
}

/// Checks a reader's `If-Match` and `If-None-Match` against this API's entity tag. In the JSON API, entity tags have no
/// quotes.
pub(crate) fn on_etag(headers: &HeaderMap, etag: &str) -> Result<(), FailedCondition> {
    let names = |name: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let mut tags =
            values.flat_map(|value| value.split(',')).map(|tag| tag.trim().trim_start_matches("W/"));
        headers.contains_key(name).then(|| tags.any(|tag| tag == "*" || tag.trim_matches('"') == etag))
    };
    if names("if-match") == Some(false) {
        return Err(FailedCondition::Match);
    }
    if names("if-none-match") == Some(true) { Err(FailedCondition::NotMatch) } else { Ok(()) }
}

/// Checks `If-Modified-Since` and `If-Unmodified-Since`, which the XML API supports. As HTTP demands, each is ignored
/// if the corresponding condition on the entity tag is present.
pub(crate) fn on_date(headers: &HeaderMap, updated_us: u64) -> Result<(), FailedCondition> {
    let updated = UNIX_EPOCH + Duration::from_secs(updated_us / 1_000_000);
    let date = |name: &str, etag: &str| {
        let value = headers.get(name).filter(|_| !headers.contains_key(etag))?;
        httpdate::parse_http_date(value.to_str().ok()?).ok()
    };
    if date("if-unmodified-since", "if-match").is_some_and(|since| updated > since) {
        return Err(FailedCondition::Match);
    }
    let is_known = date("if-modified-since", "if-none-match").is_some_and(|since| updated <= since);
    if is_known { Err(FailedCondition::NotMatch) } else { Ok(()) }
}

/// Reads a number from a parameter, if the parameter exists.
pub(crate) fn number(name: &str, value: Option<&str>) -> Result<Option<u64>, ApiError> {
    let Some(value) = value else { return Ok(None) };
    let refuse = || ApiError::invalid(format!("Invalid value '{value}' for {name}: a number was expected"));
    value.parse().map(Some).map_err(|_| refuse())
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn an_entity_tag_is_compared_with_and_without_quotes() {
        for same in ["e", "\"e\"", "W/\"e\"", "\"a\", \"e\"", "*"] {
            assert_eq!(
                on_etag(&headers(&[("if-none-match", same)]), "e"),
                Err(FailedCondition::NotMatch),
                "{same}"
            );
            assert_eq!(on_etag(&headers(&[("if-match", same)]), "e"), Ok(()), "{same}");
        }
        assert_eq!(on_etag(&headers(&[("if-none-match", "f")]), "e"), Ok(()));
        assert_eq!(on_etag(&headers(&[("if-match", "f")]), "e"), Err(FailedCondition::Match));
    }

    #[test]
    fn a_date_has_whole_seconds_and_gives_way_to_an_entity_tag() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let second = 784_111_777_000_000;
        let since = headers(&[("if-modified-since", date)]);
        assert_eq!(on_date(&since, second + 999_999), Err(FailedCondition::NotMatch));
        assert_eq!(on_date(&since, second + 1_000_000), Ok(()));
        let until = headers(&[("if-unmodified-since", date)]);
        assert_eq!(on_date(&until, second + 1_000_000), Err(FailedCondition::Match));
        assert_eq!(on_date(&until, second), Ok(()));
        let both = headers(&[("if-modified-since", date), ("if-none-match", "e")]);
        assert_eq!(on_date(&both, second), Ok(()));
    }
}
