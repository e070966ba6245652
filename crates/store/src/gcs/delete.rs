//! `delete`.

use http::Method;

use super::Gcs;
use super::head::object_path;
use super::put::precondition;
use crate::delete_many::DeleteDialect;
use crate::encode::QueryString;
use crate::exchange::{Exchange, Outgoing};
use crate::reconcile::{gone, removed};
use crate::{Condition, Error, ErrorKind, ObjectId, Operation};

fn request(id: &ObjectId, condition: &Condition) -> Result<Outgoing, String> {
    let query = precondition(QueryString::new().and_some("generation", id.version.as_deref()), condition)?;
    Ok(Outgoing::new(Method::DELETE, format!("{}{query}", object_path(id))))
}

/// Returns true if the answer to a delete has no content. fake-gcs-server always sends a JSON document, which is `null`
/// if there is no content.
fn says_nothing(body: &[u8]) -> bool {
    matches!(body.trim_ascii(), b"" | b"null")
}

impl DeleteDialect for Gcs {
    async fn delete(&self, id: &ObjectId, condition: &Condition) -> Result<(), Error> {
        let exchange = Exchange::object(self, Operation::Delete, id);
        if *condition == Condition::Absent {
            return Err(
                exchange.error(ErrorKind::Invalid, "a delete can't require that the object is absent")
            );
        }
        let outgoing = request(id, condition).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        match exchange.send(&outgoing).await {
            Ok(sent) if says_nothing(&sent.response.body) => Ok(()),
            Ok(sent) => {
                let error = exchange
                    .nonsense(&sent, "the answer to DELETE has a body, so it doesn't come from a store");
                gone(error, Box::pin(self.head(id, None))).await
            }
            Err(error) => removed(error, Box::pin(self.head(id, None))).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;

    #[test]
    fn a_delete_may_be_bound_to_a_generation() {
        let id = ObjectId::new("b", "a/b");
        let plain = request(&id, &Condition::None).expect("a request");
        assert_eq!(plain.target, "/storage/v1/b/b/o/a%2Fb");
        let bound = request(&id, &Condition::Matches(Version::Generation(9))).expect("a request");
        assert_eq!(bound.target, "/storage/v1/b/b/o/a%2Fb?ifGenerationMatch=9");
        assert_eq!(bound.method, Method::DELETE);
        let version = request(&id.at_version("7"), &Condition::None).expect("a request");
        assert_eq!(version.target, "/storage/v1/b/b/o/a%2Fb?generation=7");
    }
}
