//! Preconditions and versions in S3's headers.

use crate::exchange::{Outgoing, UnsendableHeader};
use crate::unless::http_date;
use crate::{Condition, Unless, Version};

/// The error for a condition on a generation, which exists only on GCS.
pub(super) const NO_GENERATIONS: &str = "S3 compares ETags, not generations";

/// Adds the headers of a write's precondition.
pub(super) fn on_write(outgoing: Outgoing, condition: &Condition) -> Result<Outgoing, String> {
    let sent = match condition {
        Condition::None => Ok(outgoing),
        Condition::Absent => outgoing.header("if-none-match", "*"),
        Condition::Matches(Version::ETag(etag)) => outgoing.header("if-match", &quoted(etag)),
        Condition::Matches(Version::Generation(_)) => return Err(NO_GENERATIONS.to_owned()),
    };
    sent.map_err(|e| e.to_string())
}

/// Adds the headers that pin a read to a version. `If-Match` uses strong comparison, so it can't carry a weak entity
/// tag. For a weak tag, Laneway sends no condition, but compares the tag in the answer.
pub(super) fn on_read(
    outgoing: Outgoing,
    version: Option<&Version>,
    unless: Option<&Unless>,
) -> Result<Outgoing, String> {
    let sent: Result<Outgoing, UnsendableHeader> = match version {
        None => Ok(outgoing),
        Some(Version::ETag(etag)) if etag.starts_with("W/") => Ok(outgoing),
        Some(Version::ETag(etag)) => outgoing.header("if-match", &quoted(etag)),
        Some(Version::Generation(_)) => return Err(NO_GENERATIONS.to_owned()),
    };
    let outgoing = sent.map_err(|e| e.to_string())?;
    let sent = match unless {
        None => Ok(outgoing),
        Some(Unless::Version(Version::ETag(etag))) => outgoing.header("if-none-match", &quoted(etag)),
        Some(Unless::Version(Version::Generation(_))) => return Err(NO_GENERATIONS.to_owned()),
        Some(Unless::ModifiedSince(since)) => outgoing.header("if-modified-since", &http_date(*since)),
    };
    sent.map_err(|e| e.to_string())
}

/// Returns an entity tag in quotes, as headers carry it.
pub(super) fn quoted(etag: &str) -> String {
    match etag.strip_prefix("W/") {
        Some(weak) => format!("W/\"{weak}\""),
        None => format!("\"{etag}\""),
    }
}

/// Returns an entity tag without its quotes: the reverse of [`quoted`].
pub(super) fn unquoted(etag: &str) -> String {
    let etag = etag.trim();
    match etag.strip_prefix("W/") {
        Some(weak) => format!("W/{}", weak.trim_matches('"')),
        None => etag.trim_matches('"').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[test]
    fn quotes_are_for_the_wire_only() {
        for wire in ["\"abc-2\"", "W/\"abc\""] {
            assert_eq!(quoted(&unquoted(wire)), wire);
        }
        assert_eq!(unquoted("abc"), "abc");
    }

    #[test]
    fn conditions_become_headers() {
        let outgoing = || Outgoing::new(Method::PUT, "/k");
        let absent = on_write(outgoing(), &Condition::Absent).expect("a request");
        assert_eq!(absent.headers["if-none-match"], "*");
        let version = Version::ETag("e".into());
        assert_eq!(
            on_write(outgoing(), &Condition::Matches(version.clone())).expect("a request").headers["if-match"],
            "\"e\""
        );
        assert_eq!(
            on_read(outgoing(), Some(&version), None).expect("a request").headers["if-match"],
            "\"e\""
        );
        assert!(on_read(outgoing(), Some(&Version::Generation(1)), None).is_err());
    }

    #[test]
    fn a_weak_tag_is_not_asked_for() {
        let weak = Version::ETag("W/e".into());
        assert!(
            on_read(Outgoing::new(Method::GET, "/k"), Some(&weak), None)
                .expect("a request")
                .headers
                .is_empty()
        );
    }
}
