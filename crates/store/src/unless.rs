//! Conditions with which a store sends an object only if it isn't in the state that the reader already has.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{ObjectMeta, Version};

/// The state of an object that the reader already has. While the object is still in that state, the read fails with
/// [`ErrorKind::NotModified`](crate::ErrorKind::NotModified).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unless {
    /// The object is in this state, as in `If-None-Match`. GCS accepts a generation, or the entity tag of
    /// [`ObjectMeta::etag`]. S3 accepts an entity tag.
    Version(Version),
    /// The object hasn't changed after this time, in whole seconds, as in `If-Modified-Since`. GCS's JSON API has no
    /// such header (<https://cloud.google.com/storage/docs/request-preconditions>). On GCS, Laneway therefore first
    /// reads the object's metadata with a separate request. The download can then return bytes of the state that this
    /// request found, or of a newer one.
    ModifiedSince(SystemTime),
}

impl Unless {
    /// Returns true if this metadata describes the state that the reader has.
    pub fn is_met(&self, meta: &ObjectMeta) -> bool {
        match self {
            Self::Version(Version::ETag(etag)) => {
                let found = match &meta.version {
                    Some(Version::ETag(etag)) => Some(etag),
                    _ => meta.etag.as_ref(),
                };
                found.is_some_and(|found| is_alike(found, etag))
            }
            Self::Version(version) => meta.version.as_ref() == Some(version),
            Self::ModifiedSince(since) => {
                meta.updated.is_some_and(|updated| seconds(updated) <= seconds(*since))
            }
        }
    }
}

/// The error message if Laneway itself, and not the store, finds that the object hasn't changed.
pub(crate) const NOT_MODIFIED: &str =
    "the object hasn't changed since the version or time that the request named";

/// Compares two entity tags weakly: they are equal, or differ only in the mark of a weak tag (RFC 9110, 13.1.2).
fn is_alike(one: &str, other: &str) -> bool {
    let strong = |etag| str::strip_prefix(etag, "W/").unwrap_or(etag);
    strong(one) == strong(other)
}

/// Returns a time in the format of HTTP headers, limited to the years from 1970 to 9999.
pub(crate) fn http_date(time: SystemTime) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds(time).min(LAST_SECOND)))
}

/// The end of the year 9999, in seconds since 1970.
const LAST_SECOND: u64 = 253_402_300_799;

/// Returns the whole seconds since 1970, the resolution of dates in headers. A time before 1970 is 0.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).as_ref().map_or(0, Duration::as_secs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ObjectId;

    fn meta() -> ObjectMeta {
        let mut meta = ObjectMeta::new(ObjectId::new("b", "k"), 5);
        meta.version = Some(Version::Generation(7));
        meta.etag = Some("CAE=".into());
        meta.updated = Some(UNIX_EPOCH + Duration::from_millis(5_750));
        meta
    }

    #[test]
    fn a_state_is_known_by_generation_entity_tag_or_time() {
        let at = |ms| Unless::ModifiedSince(UNIX_EPOCH + Duration::from_millis(ms));
        for known in [
            Unless::Version(Version::Generation(7)),
            Unless::Version(Version::ETag("CAE=".into())),
            Unless::Version(Version::ETag("W/CAE=".into())),
            at(5_000),
            at(9_000),
        ] {
            assert!(known.is_met(&meta()), "{known:?}");
            assert!(
                !known.is_met(&ObjectMeta::new(ObjectId::new("b", "k"), 5)),
                "nothing is known: {known:?}"
            );
        }
        for other in
            [Unless::Version(Version::Generation(8)), Unless::Version(Version::ETag("x".into())), at(4_999)]
        {
            assert!(!other.is_met(&meta()), "{other:?}");
        }
    }

    #[test]
    fn every_time_has_a_date() {
        assert_eq!(http_date(UNIX_EPOCH - Duration::from_secs(9)), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date(UNIX_EPOCH + Duration::from_secs(1 << 40)), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(http_date(UNIX_EPOCH + Duration::from_secs(784_111_777)), "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
