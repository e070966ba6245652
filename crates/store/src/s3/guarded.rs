//! Conditional writes on endpoints that may ignore the condition: the object is checked before and after the write.
//! Another writer can still interfere. [`S3::is_kept`] therefore tells whether the store itself kept a write's
//! condition.

use super::S3;
use super::write_conditions::{Treatment, Write};
use crate::exchange::Exchange;
use crate::{Condition, Error, ErrorKind, ObjectId, ObjectMeta};

impl S3 {
    /// Returns whether the endpoint itself keeps the condition of a write, as far as is known.
    pub(super) fn is_kept(&self, write: Write, condition: &Condition) -> bool {
        condition.is_none() || self.conditions.treatment(write) == Treatment::Kept
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
            (Err(error), _) => Err(error.within(exchange.operation)),
            (Ok(_), Condition::Absent) => Err(exchange.error(ErrorKind::Precondition, "the object exists")),
            (Ok(meta), Condition::Matches(version)) if meta.version.as_ref() != Some(version) => {
                Err(exchange.error(ErrorKind::Precondition, format!("{version} is gone")))
            }
            (Ok(_), _) => Ok(()),
        }
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
            Err(error) => return Err(error.within(exchange.operation)),
        };
        match found.size == written.size && (written.version.is_none() || found.version == written.version) {
            true => Ok(written),
            false => Err(replaced(exchange)),
        }
    }
}

fn replaced(exchange: &Exchange<'_, S3>) -> Error {
    let message = "another writer came between, and the store passes preconditions over: what is there now was not \
                   written here";
    exchange.error(ErrorKind::Integrity, message)
}
