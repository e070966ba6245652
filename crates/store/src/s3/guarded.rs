//! Conditional writes on endpoints that may ignore the condition: the object is checked before and after the write.
//! Another writer can still interfere. [`S3::is_kept`] therefore tells whether the store itself kept a write's
//! condition.

use super::S3;
use super::headers::meta;
use super::write_conditions::{PROBE_BYTES_MAX, Treatment, Write};
use crate::exchange::{Exchange, Outgoing};
use crate::{Condition, Error, ErrorKind, ObjectId, ObjectMeta, PutOptions, Version};

impl S3 {
    /// Returns whether the endpoint itself keeps the condition of a write, as far as is known.
    pub(super) fn is_kept(&self, write: Write, condition: &Condition) -> bool {
        condition.is_none() || self.conditions.treatment(write) == Treatment::Kept
    }

    /// Returns whether a put may go ahead under its condition although the HEAD before it is forbidden. It may while
    /// nothing has proved how the service treats conditions, or if another put has shown meanwhile that the service
    /// keeps them.
    fn goes_by_its_word(&self, write: Write, condition: &Condition) -> bool {
        let is_unproven = matches!(write, Write::Put | Write::PutOnto) && self.conditions.is_unproven(write);
        is_unproven || self.is_kept(write, condition)
    }

    /// Returns the condition to send with a write, which is none if the endpoint refuses conditions.
    pub(super) fn sendable<'a>(&self, write: Write, condition: &'a Condition) -> &'a Condition {
        match self.conditions.treatment(write) {
            Treatment::Refused => &Condition::None,
            Treatment::Kept | Treatment::Ignored => condition,
        }
    }

    /// Compares an object with a condition that the endpoint may ignore.
    ///
    /// # Errors
    /// `Precondition` if the condition doesn't hold. An error of the comparison is returned too, because the write
    /// could then replace anything.
    pub(super) async fn look_before(
        &self,
        exchange: &Exchange<'_, Self>,
        write: Write,
        id: &ObjectId,
        condition: &Condition,
    ) -> Result<(), Error> {
        if self.is_kept(write, condition) {
            return Ok(());
        }
        match (Box::pin(self.head(id, None)).await, condition) {
            (Err(error), Condition::Absent) if error.is_not_found() => Ok(()),
            // Credentials that can only write can't check the object, so rely on a service that may keep conditions.
            (Err(error), _) if self.goes_by_its_word(write, condition) && error.is_permission() => Ok(()),
            (Err(error), _) => Err(error.within(exchange.operation)),
            (Ok(_), Condition::Absent) => Err(exchange.error(ErrorKind::Precondition, "the object exists")),
            (Ok(meta), Condition::Matches(version)) if meta.version.as_ref() != Some(version) => {
                Err(exchange.error(ErrorKind::Precondition, format!("{version} is gone")))
            }
            (Ok(_), _) => Ok(()),
        }
    }

    /// Learns whether an unknown service keeps the condition of a put, by sending the successful put again. The
    /// condition no longer holds, so a service that keeps it refuses. A service that ignores it stores the same bytes
    /// once more. That can replace another writer's object, but only one that replaced ours between the two puts. A
    /// probe that shows nothing isn't an error, because the object is written. Returns the object as the last put left
    /// it.
    pub(super) async fn probe(
        &self,
        exchange: &Exchange<'_, Self>,
        outgoing: &Outgoing,
        options: &PutOptions,
        mut written: ObjectMeta,
    ) -> ObjectMeta {
        let write = Write::put(&options.condition);
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
                tracing::debug!(%error, "the answer to a conditional write that was sent again");
                self.conditions.learn(write, &error);
            }
        }
        written
    }

    /// Compares the stored object with the written one if another writer could have interfered.
    ///
    /// # Errors
    /// `Integrity` if they differ.
    pub(super) async fn look_after(
        &self,
        exchange: &Exchange<'_, Self>,
        write: Write,
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

/// Returns whether a put can be sent again without harm. In a bucket with versions, the second put could leave one more
/// version, which a lock might keep for years. The put's own object must break the condition.
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
    let message = "another writer wrote at the same time, and the store ignores preconditions: it now holds another \
                   object than this write made";
    exchange.error(ErrorKind::Integrity, message)
}
