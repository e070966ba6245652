//! Conditional headers.
//! <https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations>

use http::HeaderMap;

use super::error::BlobError;
use super::tags::TagFilter;
use super::timestamp;
use crate::objects::Object;

/// The conditions of a request on a blob or a container.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct BlobConditions {
    if_match: Option<String>,
    if_none_match: Option<String>,
    modified_since_us: Option<u64>,
    unmodified_since_us: Option<u64>,
    tags: Option<TagFilter>,
}

/// The state of a blob or a container that conditions are compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResourceState {
    /// The entity tag with its quotes.
    pub(super) etag: String,
    pub(super) modified_us: u64,
}

impl ResourceState {
    pub(super) fn of(object: &Object) -> ResourceState {
        ResourceState { etag: etag(object), modified_us: object.updated_us }
    }
}

/// Returns the entity tag of a blob, with its quotes. A snapshot has the tag that its blob had.
pub(super) fn etag(object: &Object) -> String {
    let generation = object.blob().snapshot_of.unwrap_or(object.generation);
    tag(generation + object.metageneration - 1)
}

/// Returns an entity tag in the format of the service.
pub(super) fn tag(number: u64) -> String {
    format!("\"0x8D{number:013X}\"")
}

impl BlobConditions {
    pub(super) fn in_headers(headers: &HeaderMap) -> Result<BlobConditions, BlobError> {
        BlobConditions::named(
            headers,
            ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "x-ms-if-tags"],
        )
    }

    /// Returns the conditions on the source of a copy.
    pub(super) fn on_source(headers: &HeaderMap) -> Result<BlobConditions, BlobError> {
        BlobConditions::named(
            headers,
            [
                "x-ms-source-if-match",
                "x-ms-source-if-none-match",
                "x-ms-source-if-modified-since",
                "x-ms-source-if-unmodified-since",
                "x-ms-source-if-tags",
            ],
        )
    }

    fn named(headers: &HeaderMap, names: [&str; 5]) -> Result<BlobConditions, BlobError> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let time = |name: &str| match text(name) {
            None => Ok(None),
            Some(value) => timestamp::parse_http(&value)
                .map(Some)
                .ok_or_else(|| BlobError::of_header("InvalidHeaderValue", name, &value)),
        };
        let [if_match, if_none_match, modified, unmodified, tags] = names;
        Ok(BlobConditions {
            if_match: text(if_match),
            if_none_match: text(if_none_match),
            modified_since_us: time(modified)?,
            unmodified_since_us: time(unmodified)?,
            tags: match text(tags) {
                None => None,
                Some(filter) => Some(
                    TagFilter::of_condition(&filter)
                        .map_err(|_| BlobError::of_header("InvalidHeaderValue", tags, &filter))?,
                ),
            },
        })
    }

    /// Checks the conditions of a write. `present` is the blob before the write, if it exists.
    pub(super) fn check_write(&self, present: Option<&Object>) -> Result<(), BlobError> {
        self.check_tags(present)?;
        self.check_state(present.map(ResourceState::of).as_ref())
    }

    /// Checks the conditions of a write that may create a blob. Only here, `If-None-Match: *` has an effect.
    pub(super) fn check_creation(&self, present: Option<&Object>) -> Result<(), BlobError> {
        let excludes_all = self.if_none_match.as_ref().is_some_and(|tags| tags.trim() == "*");
        if excludes_all && present.is_some() {
            return Err(BlobError::new("BlobAlreadyExists"));
        }
        self.check_write(present)
    }

    pub(super) fn check_state(&self, present: Option<&ResourceState>) -> Result<(), BlobError> {
        let failed = || BlobError::new("ConditionNotMet");
        if self.if_match.as_ref().is_some_and(|tags| !is_one_of(tags, present)) {
            return Err(failed());
        }
        if let Some(tags) = &self.if_none_match
            && tags.trim() != "*"
            && is_one_of(tags, present)
        {
            return Err(failed());
        }
        let Some(present) = present else { return Ok(()) };
        if self.was_modified(present) == Some(false) || self.is_unmodified(present) == Some(false) {
            return Err(failed());
        }
        Ok(())
    }

    /// Checks the conditions of a read.
    pub(super) fn check_read(&self, object: &Object) -> Result<(), BlobError> {
        self.check_tags(Some(object))?;
        self.check_read_state(&ResourceState::of(object))
    }

    fn check_read_state(&self, present: &ResourceState) -> Result<(), BlobError> {
        let failed = || BlobError::new("ConditionNotMet");
        if self.if_match.as_ref().is_some_and(|tags| !is_one_of(tags, Some(present))) {
            return Err(failed());
        }
        if let Some(tags) = &self.if_none_match {
            if tags.trim() == "*" {
                return Err(BlobError::new("UnsatisfiableCondition"));
            }
            if is_one_of(tags, Some(present)) {
                return Err(failed().not_modified());
            }
        }
        if self.was_modified(present) == Some(false) {
            return Err(failed().not_modified());
        }
        if self.is_unmodified(present) == Some(false) {
            return Err(failed());
        }
        Ok(())
    }

    /// Checks the conditions on a copy's source.
    pub(super) fn check_source(&self, source: &Object) -> Result<(), BlobError> {
        self.check_write(Some(source)).map_err(|_| BlobError::new("SourceConditionNotMet"))
    }

    fn check_tags(&self, present: Option<&Object>) -> Result<(), BlobError> {
        let holds = |filter: &TagFilter| {
            present.is_some_and(|object| filter.matches(&object.attributes.options.tags, None))
        };
        match &self.tags {
            Some(filter) if !holds(filter) => Err(BlobError::new("ConditionNotMet")),
            _ => Ok(()),
        }
    }

    fn was_modified(&self, present: &ResourceState) -> Option<bool> {
        self.modified_since_us.map(|since| in_seconds(present.modified_us) > in_seconds(since))
    }

    fn is_unmodified(&self, present: &ResourceState) -> Option<bool> {
        self.unmodified_since_us.map(|since| in_seconds(present.modified_us) <= in_seconds(since))
    }
}

/// Returns a time in whole seconds, the unit of HTTP dates.
fn in_seconds(us: u64) -> u64 {
    us / 1_000_000
}

/// Returns true if the tag of a resource is in a list of tags. Clients may leave out the quotes.
fn is_one_of(tags: &str, present: Option<&ResourceState>) -> bool {
    let Some(present) = present else { return false };
    tags.split(',')
        .map(str::trim)
        .any(|tag| tag == "*" || tag.trim_matches('"') == present.etag.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(headers: &[(&'static str, &str)]) -> BlobConditions {
        let headers = headers.iter().map(|(name, value)| {
            (http::HeaderName::from_static(name), http::HeaderValue::from_str(value).unwrap())
        });
        BlobConditions::in_headers(&headers.collect()).unwrap()
    }

    fn blob() -> Object {
        Object { updated_us: 1_369_353_600_500_000, metageneration: 2, ..Object::empty("k", 16) }
    }

    fn codes(headers: &[(&'static str, &str)]) -> [String; 3] {
        let conditions = conditions(headers);
        let code = |result: Result<(), BlobError>| {
            result
                .err()
                .map_or(String::new(), |error| format!("{} {}", error.status().as_u16(), error.code()))
        };
        [
            code(conditions.check_read(&blob())),
            code(conditions.check_creation(Some(&blob()))),
            code(conditions.check_creation(None)),
        ]
    }

    #[test]
    fn a_failed_condition_has_the_status_of_its_kind() {
        let tag = etag(&blob());
        let (not_modified, failed) = ("304 ConditionNotMet", "412 ConditionNotMet");
        for (name, value, expected) in [
            ("if-match", tag.as_str(), ["", "", failed]),
            ("if-match", "0x8D0000000000011", ["", "", failed]),
            ("if-match", "\"0x1\"", [failed, failed, failed]),
            ("if-none-match", tag.as_str(), [not_modified, failed, ""]),
            ("if-none-match", "\"0x1\"", ["", "", ""]),
            ("if-none-match", "*", ["400 UnsatisfiableCondition", "409 BlobAlreadyExists", ""]),
            ("if-modified-since", "Fri, 24 May 2013 00:00:00 GMT", [not_modified, failed, ""]),
            ("if-modified-since", "Thu, 23 May 2013 23:59:59 GMT", ["", "", ""]),
            ("if-unmodified-since", "Fri, 24 May 2013 00:00:00 GMT", ["", "", ""]),
            ("if-unmodified-since", "Thu, 23 May 2013 23:59:59 GMT", [failed, failed, ""]),
        ] {
            assert_eq!(codes(&[(name, value)]), expected, "{name}: {value}");
        }
    }
}
