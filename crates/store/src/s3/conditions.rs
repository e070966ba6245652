//! Preconditions and versions in S3's headers, and conditional writes on endpoints that may ignore the condition.
//! Laneway checks the object before and after such a write. Another writer can still change the object between these
//! steps. [`S3::is_kept`] therefore reports whether the store itself enforces a write's condition.

use super::S3;
use super::headers::meta;
use super::write_conditions::{ConditionSupport, ConditionalWrite, PROBE_BYTES_MAX};
use crate::exchange::{Exchange, Outgoing, UnsendableHeader};
use crate::unless::http_date;
use crate::{Condition, Error, ErrorKind, ObjectId, ObjectMeta, PutOptions, Unless, Version};

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

impl S3 {
    /// Returns true if the endpoint is known to enforce the condition of this kind of write.
    pub(super) fn is_kept(&self, write: ConditionalWrite, condition: &Condition) -> bool {
        condition.is_none() || self.conditions.treatment(write) == ConditionSupport::Kept
    }

    /// Returns true if Laneway sends a put with its condition although the caller isn't allowed the HEAD before it.
    /// Laneway does so while nothing has shown how the service treats conditions. It also does so if another put has
    /// just shown that the service enforces them.
    fn goes_by_its_word(&self, write: ConditionalWrite, condition: &Condition) -> bool {
        let is_unproven = matches!(write, ConditionalWrite::Put | ConditionalWrite::PutOnto)
            && self.conditions.is_unproven(write);
        is_unproven || self.is_kept(write, condition)
    }

    /// Returns the condition to send with a write. It is [`Condition::None`] if the endpoint refuses requests with
    /// conditions.
    pub(super) fn sendable<'a>(&self, write: ConditionalWrite, condition: &'a Condition) -> &'a Condition {
        match self.conditions.treatment(write) {
            ConditionSupport::Refused => &Condition::None,
            ConditionSupport::Kept | ConditionSupport::Ignored => condition,
        }
    }

    /// Before a write, checks a condition that the endpoint may ignore, by reading the object's metadata.
    ///
    /// # Errors
    /// `Precondition` if the condition doesn't hold. If the metadata can't be read, that error is returned, because the
    /// write might replace an object that breaks the condition.
    pub(super) async fn look_before(
        &self,
        exchange: &Exchange<'_, Self>,
        write: ConditionalWrite,
        id: &ObjectId,
        condition: &Condition,
    ) -> Result<(), Error> {
        if self.is_kept(write, condition) {
            return Ok(());
        }
        match (Box::pin(self.head(id, None)).await, condition) {
            (Err(error), Condition::Absent) if error.is_not_found() => Ok(()),
            // Credentials that permit only writes can't read the object first. So send the condition, and rely on the
            // service to enforce it.
            (Err(error), _) if self.goes_by_its_word(write, condition) && error.is_permission() => Ok(()),
            (Err(error), _) => Err(error.within(exchange.operation)),
            (Ok(_), Condition::Absent) => Err(exchange.error(ErrorKind::Precondition, "the object exists")),
            (Ok(meta), Condition::Matches(version)) if meta.version.as_ref() != Some(version) => {
                Err(exchange.error(ErrorKind::Precondition, format!("{version} is gone")))
            }
            (Ok(_), _) => Ok(()),
        }
    }

    /// Finds out if an unknown service enforces the condition of a put, by sending the successful put again. The
    /// condition no longer holds, so a service that enforces it refuses the second put. A service that ignores it
    /// stores the same bytes once more. This can replace another writer's object, but only if that writer replaced ours
    /// between the two puts. If the probe shows nothing, that isn't an error, because the object has been written.
    /// Returns the metadata of the object after the last successful put.
    pub(super) async fn probe(
        &self,
        exchange: &Exchange<'_, Self>,
        outgoing: &Outgoing,
        options: &PutOptions,
        mut written: ObjectMeta,
    ) -> ObjectMeta {
        let write = ConditionalWrite::put(&options.condition);
        let Some(_probing) =
            is_harmless(outgoing, options, &written).then(|| self.conditions.probing(write)).flatten()
        else {
            return written;
        };
        match exchange.send(outgoing).await {
            Ok(sent) if sent.response.body.is_empty() && sent.response.head.header("etag").is_some() => {
                self.conditions.learn_ignored(write);
                let again = meta(&written.id, &sent.response.head);
                (written.version, written.etag) = (again.version, again.etag);
                written.version_id = again.version_id;
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(%error, "Laneway has put the object again, to test if the store enforces preconditions");
                self.conditions.learn(write, &error);
            }
        }
        written
    }

    /// After a write, compares the stored object with the written one, unless the endpoint enforces the condition
    /// itself.
    ///
    /// # Errors
    /// `Integrity` if they differ.
    pub(super) async fn look_after(
        &self,
        exchange: &Exchange<'_, Self>,
        write: ConditionalWrite,
        condition: &Condition,
        written: ObjectMeta,
    ) -> Result<ObjectMeta, Error> {
        if self.is_kept(write, condition) {
            return Ok(written);
        }
        let found = match Box::pin(self.head(&written.id, None)).await {
            Ok(found) => found,
            Err(error) if error.is_not_found() => return Err(replaced(exchange)),
            Err(error) if self.goes_by_its_word(write, condition) && error.is_permission() => {
                return Ok(written);
            }
            Err(error) => return Err(error.within(exchange.operation)),
        };
        match found.size == written.size && (written.version.is_none() || found.version == written.version) {
            true => Ok(written),
            false => Err(replaced(exchange)),
        }
    }
}

/// Returns whether a put can be sent again without harm. In a bucket with versions, the second put could create one
/// more version, which a lock might keep for years. The object that the first put made must break the condition, so
/// that a service that enforces it refuses the second put.
fn is_harmless(outgoing: &Outgoing, options: &PutOptions, written: &ObjectMeta) -> bool {
    let is_broken = match &options.condition {
        Condition::None => false,
        Condition::Absent => true,
        Condition::Matches(Version::ETag(etag)) => written.etag.as_ref().is_some_and(|made| made != etag),
        Condition::Matches(Version::Generation(_)) => false,
    };
    let has_versions = written.version_id.as_ref().is_some_and(|id| id != "null");
    is_broken && !has_versions && !options.is_protected() && outgoing.body.len() <= PROBE_BYTES_MAX
}

fn replaced(exchange: &Exchange<'_, S3>) -> Error {
    let message = "another writer wrote the object at the same time, and the store ignores preconditions: it now \
                   has the other writer's object";
    exchange.error(ErrorKind::Integrity, message)
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
