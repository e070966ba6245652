//! `If-Match` and its kind.

use s3s::dto::{ETagCondition, Timestamp};
use s3s::{S3Result, s3_error};

use crate::objects::Object;
use crate::objects::precondition::{ETags, Precondition};

pub(super) fn etags(matches: Option<ETagCondition>, differs: Option<ETagCondition>) -> Precondition {
    Precondition { etag_match: matches.map(tags), etag_none_match: differs.map(tags), ..Default::default() }
}

/// The dates of a read: like HTTP, each is looked at only where no ETag is.
pub(super) fn dates(
    object: &Object,
    etags: &Precondition,
    modified_since: Option<Timestamp>,
    unmodified_since: Option<Timestamp>,
) -> S3Result<()> {
    // HTTP dates have whole seconds.
    let modified = (object.updated_us / 1_000_000) as i64;
    let seconds = |timestamp: Timestamp| time::OffsetDateTime::from(timestamp).unix_timestamp();
    if etags.etag_match.is_none() && unmodified_since.is_some_and(|since| modified > seconds(since)) {
        return Err(s3_error!(PreconditionFailed, "The object was modified since"));
    }
    if etags.etag_none_match.is_none() && modified_since.is_some_and(|since| modified <= seconds(since)) {
        return Err(s3_error!(NotModified));
    }
    Ok(())
}

fn tags(condition: ETagCondition) -> ETags {
    match condition {
        ETagCondition::Any => ETags::Any,
        ETagCondition::ETag(tag) => ETags::One(tag.into_value()),
    }
}
