//! `delete`.

use http::Method;

use super::S3;
use super::conditions::on_write;
use super::head::object_target;
use super::write_conditions::ConditionalWrite;
use crate::delete_many::DeleteDialect;
use crate::encode::QueryString;
use crate::exchange::{Exchange, Outgoing};
use crate::reconcile::{gone, removed};
use crate::{Condition, Error, ErrorKind, ObjectId, Operation, Version};

fn request(id: &ObjectId, condition: &Condition) -> Result<Outgoing, String> {
    on_write(Outgoing::new(Method::DELETE, object_target(id, &QueryString::new())), condition)
}

/// Returns true if a version is a weak entity tag. It can't be sent as a condition, because `If-Match` uses strong
/// comparison.
pub(super) fn is_weak(version: Option<&Version>) -> bool {
    matches!(version, Some(Version::ETag(etag)) if etag.starts_with("W/"))
}

impl DeleteDialect for S3 {
    /// Deletes an object. If the endpoint may ignore a condition on deletes, or refuses this one, Laneway first reads
    /// the object's metadata and compares it. S3 answers 403 to `If-Match` if the caller isn't allowed `GetObject`. In
    /// this case too, Laneway first compares the object, and then deletes it without the condition.
    async fn delete(&self, id: &ObjectId, condition: &Condition) -> Result<(), Error> {
        let exchange = Exchange::object(self, Operation::Delete, id);
        if *condition == Condition::Absent {
            return Err(
                exchange.error(ErrorKind::Invalid, "a delete can't require that the object is absent")
            );
        }
        let version = match condition {
            Condition::Matches(version) => Some(version),
            Condition::None | Condition::Absent => None,
        };
        let mut sent = if is_weak(version) {
            &Condition::None
        } else {
            self.sendable(ConditionalWrite::Delete, condition)
        };
        if sent.is_none() && !condition.is_none() {
            self.compare(&exchange, id, condition).await?;
        } else {
            self.look_before(&exchange, ConditionalWrite::Delete, id, condition).await?;
        }
        loop {
            let outgoing = request(id, sent).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
            let error = match exchange.send(&outgoing).await {
                Ok(sent) if sent.response.body.is_empty() => return Ok(()),
                Ok(sent) => {
                    let error = exchange
                        .nonsense(&sent, "the answer to DELETE has a body, so it doesn't come from a store");
                    return gone(error, Box::pin(self.head(id, None))).await;
                }
                Err(error) => error,
            };
            let error = match removed(error, Box::pin(self.head(id, None))).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let may_be_about_it = !sent.is_none()
                && (self.conditions.learn(ConditionalWrite::Delete, &error) || error.is_permission());
            if !may_be_about_it {
                return Err(error);
            }
            self.compare(&exchange, id, condition).await?;
            sent = &Condition::None;
        }
    }
}

impl S3 {
    /// Compares the present object with the version that the caller wants to delete.
    ///
    /// # Errors
    /// `Precondition` if they differ.
    async fn compare(
        &self,
        exchange: &Exchange<'_, Self>,
        id: &ObjectId,
        condition: &Condition,
    ) -> Result<(), Error> {
        let Condition::Matches(version) = condition else { return Ok(()) };
        let meta = self.head(id, None).await.map_err(|e| e.within(Operation::Delete))?;
        match meta.version.as_ref() == Some(version) {
            true => Ok(()),
            false => Err(exchange.error(ErrorKind::Precondition, format!("{version} is gone"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delete_may_be_bound_to_a_tag() {
        let condition = Condition::Matches(Version::ETag("e".into()));
        let request = request(&ObjectId::new("b", "k"), &condition).expect("a request");
        assert_eq!(request.headers["if-match"], "\"e\"");
        assert_eq!(request.target, "/k");
    }
}
