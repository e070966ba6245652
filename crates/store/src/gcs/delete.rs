//! `delete`.

use futures_util::{StreamExt as _, stream};
use http::Method;

use super::Gcs;
use super::head::object_path;
use super::put::precondition;
use crate::encode::Query;
use crate::exchange::{Exchange, Outgoing};
use crate::reconcile::removed;
use crate::{Condition, Deletion, Error, ErrorKind, ObjectId, Operation};

/// Single deletes under way at once where a server has no batches: what one HTTP/2 connection carries.
const SINGLE_DELETES_MAX: usize = 100;

fn request(id: &ObjectId, condition: &Condition) -> Result<Outgoing, String> {
    let query = precondition(Query::new(), condition)?;
    Ok(Outgoing::new(Method::DELETE, format!("{}{query}", object_path(id))))
}

impl Gcs {
    pub(crate) async fn delete(&self, id: &ObjectId, condition: &Condition) -> Result<(), Error> {
        let exchange = Exchange::object(self, Operation::Delete, id);
        if *condition == Condition::Absent {
            return Err(exchange.error(ErrorKind::Invalid, "what must be absent can't be deleted"));
        }
        let outgoing = request(id, condition).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        match exchange.send(&outgoing).await {
            Ok(_) => Ok(()),
            Err(error) => removed(error, Box::pin(self.head(id, None))).await,
        }
    }

    /// Deletes by a request each, some of them at once; answers in the keys' order.
    pub(super) async fn delete_singly(&self, bucket: &str, keys: &[String]) -> Vec<Result<(), Error>> {
        let ids: Vec<ObjectId> = keys.iter().map(|key| ObjectId::new(bucket, key)).collect();
        let deletes = ids.into_iter().map(|id| async move { self.delete(&id, &Condition::None).await });
        stream::iter(deletes).buffered(SINGLE_DELETES_MAX).collect().await
    }

    pub(crate) async fn delete_many_in(&self, bucket: &str, objects: &[Deletion]) -> Vec<Result<(), Error>> {
        let objects = objects.to_vec();
        let deletes = objects.into_iter().map(|Deletion { key, version }| async move {
            let condition = version.map_or(Condition::None, Condition::Matches);
            self.delete(&ObjectId::new(bucket, key), &condition).await
        });
        stream::iter(deletes).buffered(SINGLE_DELETES_MAX).collect().await
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
    }
}
