//! `If-Match` and similar conditions.

use s3s::dto::{ETagCondition, Timestamp};
use s3s::{S3Result, s3_error};

use super::S3Dialect;
use crate::habits::Treatment;
use crate::objects::Object;
use crate::objects::precondition::{ETags, Precondition};

/// Returns the conditions of a write, or none if the imitated service ignores them.
pub(super) fn of_write(
    treatment: Treatment,
    matches: Option<ETagCondition>,
    differs: Option<ETagCondition>,
) -> S3Result<Precondition> {
    match treatment {
        Treatment::Honoured => Ok(etags(matches, differs)),
        Treatment::Refused if matches.is_some() || differs.is_some() => Err(s3_error!(
            NotImplemented,
            "A header you provided implies functionality that is not implemented."
        )),
        Treatment::Ignored | Treatment::Refused => Ok(Precondition::default()),
    }
}

impl S3Dialect {
    /// Returns the error for a conflict if the key was deleted during a conditional write, which began at `begun_us`.
    /// S3 reports this case as a conflict.
    pub(super) fn conflict(
        &self,
        bucket: &str,
        key: &str,
        precondition: &Precondition,
        begun_us: u64,
    ) -> S3Result<()> {
        let conflicts = self.habits.conflicts && !precondition.is_none();
        if conflicts && self.objects.deleted_since(bucket, key, begun_us) {
            return Err(s3_error!(
                ConditionalRequestConflict,
                "The conditional request cannot succeed due to a conflicting operation against this resource."
            ));
        }
        Ok(())
    }
}

pub(super) fn etags(matches: Option<ETagCondition>, differs: Option<ETagCondition>) -> Precondition {
    Precondition { etag_match: matches.map(tags), etag_none_match: differs.map(tags), ..Default::default() }
}

/// Checks the dates of a read. As HTTP demands, each is ignored if the corresponding condition on the ETag is present.
pub(super) fn dates(
    object: &Object,
    etags: &Precondition,
    modified_since: Option<Timestamp>,
    unmodified_since: Option<Timestamp>,
) -> S3Result<()> {
    // Dates in HTTP have whole seconds, so compare whole seconds.
    let modified = (object.created_us / 1_000_000) as i64;
    let seconds = |timestamp: Timestamp| time::OffsetDateTime::from(timestamp).unix_timestamp();
    if etags.etag_match.is_none() && unmodified_since.is_some_and(|since| modified > seconds(since)) {
        return Err(s3_error!(PreconditionFailed, "The object was modified since"));
    }
    if etags.etag_none_match.is_none() && modified_since.is_some_and(|since| modified <= seconds(since)) {
        return Err(s3_error!(NotModified));
    }
    Ok(())
}

/// Checks the conditions on the source of a copy. A failed condition gets 412 and never 304, which is only for reads.
pub(super) fn of_source(
    source: &Object,
    matches: Option<ETagCondition>,
    differs: Option<ETagCondition>,
    modified_since: Option<Timestamp>,
    unmodified_since: Option<Timestamp>,
) -> S3Result<()> {
    let etags = etags(matches, differs);
    let holds =
        etags.check(Some(source)).is_ok() && dates(source, &etags, modified_since, unmodified_since).is_ok();
    if holds {
        return Ok(());
    }
    Err(s3_error!(PreconditionFailed, "At least one of the pre-conditions you specified did not hold"))
}

/// Reads R2's conditions on the destination of a copy. The dates are checked now. The ETags are checked when the copy
/// is stored.
pub(super) fn of_destination(
    dialect: &S3Dialect,
    bucket: &str,
    key: &str,
    headers: &http::HeaderMap,
) -> S3Result<Precondition> {
    let tags = etags(
        in_header(headers, "cf-copy-destination-if-match")?,
        in_header(headers, "cf-copy-destination-if-none-match")?,
    );
    let date = |name| {
        let text = headers.get(name)?.to_str().ok()?;
        httpdate::parse_http_date(text).ok().map(Timestamp::from)
    };
    let modified_since = date("cf-copy-destination-if-modified-since");
    let unmodified_since = date("cf-copy-destination-if-unmodified-since");
    if let Some(present) = dialect.objects.object(bucket, key) {
        dates(&present, &tags, modified_since, unmodified_since)
            .map_err(|_| s3_error!(PreconditionFailed, "The destination doesn't meet the condition"))?;
    }
    Ok(tags)
}

/// Reads an ETag from a header that `s3s` doesn't parse.
pub(super) fn in_header(headers: &http::HeaderMap, name: &str) -> S3Result<Option<ETagCondition>> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    ETagCondition::parse_http_header(value.as_bytes())
        .map(Some)
        .map_err(|_| s3_error!(InvalidArgument, "The ETag in {name} is malformed"))
}

fn tags(condition: ETagCondition) -> ETags {
    match condition {
        ETagCondition::Any => ETags::Any,
        ETagCondition::ETag(tag) => ETags::One(tag.into_value()),
    }
}
