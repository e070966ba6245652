//! Deletes many objects with few requests. This code is shared by both dialects.

use std::future::Future;

use futures_util::{StreamExt as _, stream};

use crate::exchange::{Exchange, ExchangeResponse, HttpDialect};
use crate::judge::{self, ErrorResponse};
use crate::{Condition, Deletion, Error, ErrorKind, ObjectId, Operation};

/// The outcome for one object of a request that deletes many.
pub(crate) enum DeleteOutcome {
    Deleted,
    Failed(ErrorResponse),
    /// The delete failed but may succeed later, or the answer doesn't mention the object. A separate request then
    /// deletes it.
    RetrySeparately {
        /// True if the request may have deleted the object despite the failure.
        may_be_gone: bool,
    },
}

/// The error if one request for several objects failed as a whole. Each object is then deleted separately.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchFailure {
    /// True if the request may have deleted some objects despite the failure.
    pub(crate) may_be_gone: bool,
}

impl From<Error> for BatchFailure {
    fn from(error: Error) -> Self {
        Self { may_be_gone: error.is_uncertain() }
    }
}

/// A dialect that can delete a single object.
pub(crate) trait DeleteDialect: HttpDialect + Sized {
    /// Deletes an object only if it is in the state that `condition` names.
    fn delete(&self, id: &ObjectId, condition: &Condition) -> impl Future<Output = Result<(), Error>> + Send;
}

/// A dialect that can delete several objects with one request.
pub(crate) trait BatchDeleteDialect: DeleteDialect {
    /// The service's maximum number of objects in one request.
    const OBJECTS_MAX: usize;

    /// The maximum number of concurrent requests that each delete a single object.
    const SINGLE_DELETES_MAX: usize;

    /// Returns true if one request can delete these objects.
    fn can_delete_together(&self, objects: &[Deletion]) -> bool;

    /// Sends one request for all of these objects, and returns the outcome of each.
    fn delete_together(
        &self,
        exchange: &Exchange<'_, Self>,
        objects: &[Deletion],
    ) -> impl Future<Output = Result<(Vec<DeleteOutcome>, ExchangeResponse), BatchFailure>> + Send;

    /// Deletes the objects, and returns the outcomes in the objects' order.
    async fn delete_many(&self, bucket: &str, objects: &[Deletion]) -> Vec<Result<(), Error>> {
        if !self.can_delete_together(objects) {
            return self.delete_singly(bucket, objects).await;
        }
        let mut results = Vec::with_capacity(objects.len());
        for objects in objects.chunks(Self::OBJECTS_MAX) {
            results.extend(self.delete_some(bucket, objects).await);
        }
        results
    }

    async fn delete_some(&self, bucket: &str, objects: &[Deletion]) -> Vec<Result<(), Error>> {
        let [first, _, ..] = objects else {
            // For a single object, a bulk request would save nothing.
            return self.delete_singly(bucket, objects).await;
        };
        // Objects that are removed together were usually listed together, so most of them share a folder. Use the first
        // object's folder for throttling.
        let exchange = Exchange::bucket(self, Operation::Delete, bucket).below(&first.key);
        let (fates, sent) = match self.delete_together(&exchange, objects).await {
            Ok(answered) => answered,
            Err(BatchFailure { may_be_gone }) => {
                let results = self.delete_singly(bucket, objects).await;
                return results.into_iter().map(|result| or_gone(result, may_be_gone)).collect();
            }
        };
        let mut results = Vec::with_capacity(objects.len());
        let (mut places, mut alone) = (Vec::new(), Vec::new());
        for (object, fate) in objects.iter().zip(fates) {
            results.push(match fate {
                DeleteOutcome::Failed(failure) => {
                    let id = object.object_id(bucket);
                    Err(Exchange::object(self, Operation::Delete, &id)
                        .error(self.kind(&failure), sent.secrets.cleared(failure.message))
                        .answered(failure.status, sent.secrets.cleared_code(failure.code))
                        .after(sent.attempts, sent.elapsed))
                }
                DeleteOutcome::Deleted => Ok(()),
                DeleteOutcome::RetrySeparately { may_be_gone } => {
                    places.push((results.len(), may_be_gone));
                    alone.push(object.clone());
                    Ok(())
                }
            });
        }
        for ((place, may_be_gone), result) in places.into_iter().zip(self.delete_singly(bucket, &alone).await)
        {
            if let Some(at) = results.get_mut(place) {
                *at = or_gone(result, may_be_gone);
            }
        }
        results
    }

    /// Deletes each object with a separate request. Several requests run at the same time.
    async fn delete_singly(&self, bucket: &str, objects: &[Deletion]) -> Vec<Result<(), Error>> {
        let objects = objects.to_vec();
        let deletes = objects.into_iter().map(|object| async move {
            let id = object.object_id(bucket);
            let condition = object.version.map_or(Condition::None, Condition::Matches);
            self.delete(&id, &condition).await
        });
        stream::iter(deletes).buffered(Self::SINGLE_DELETES_MAX).collect().await
    }
}

/// Turns the error "not found" into success if an earlier request may have deleted the object.
fn or_gone(result: Result<(), Error>, may_be_gone: bool) -> Result<(), Error> {
    result.or_else(|error| match may_be_gone && error.is_not_found() && !error.is_missing_bucket() {
        true => Ok(()),
        false => Err(error),
    })
}

/// Decides what happens to an object that a request for many objects failed to delete. If the failure may be temporary,
/// a separate request tries again.
pub(crate) fn fate(kind: ErrorKind, failure: ErrorResponse) -> DeleteOutcome {
    let is_throttled = kind == ErrorKind::Throttled;
    if is_throttled || judge::is_passing(&failure) {
        DeleteOutcome::RetrySeparately { may_be_gone: !is_throttled }
    } else {
        DeleteOutcome::Failed(failure)
    }
}
