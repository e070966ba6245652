//! `rename`: moves an object within its bucket, in one request and one step
//! (<https://cloud.google.com/storage/docs/json_api/v1/objects/move>).

use std::time::Instant;

use http::Method;

use super::Gcs;
use super::head::{object_path, read};
use super::put::precondition;
use super::resource::FIELDS;
use crate::checksum::Comparison;
use crate::encode::{Query, component};
use crate::exchange::{Exchange, Outgoing};
use crate::{Condition, Error, ErrorKind, ObjectId, ObjectMeta, Operation, Version};

/// The message about a missing object. A server without this request says something else.
const NO_OBJECT: &str = "No such object";

fn request(from: &ObjectId, to: &ObjectId, source: &Condition, onto: &Condition) -> Result<Outgoing, String> {
    let query = match source {
        Condition::None => Query::new(),
        Condition::Matches(Version::Generation(generation)) => {
            Query::new().and("ifSourceGenerationMatch", &generation.to_string())
        }
        _ => return Err("GCS compares generations, not ETags".to_owned()),
    };
    let query = precondition(query, onto)?.and("fields", FIELDS);
    let target = format!("{}/moveTo/o/{}{query}", object_path(from), component(&to.key));
    Ok(Outgoing::new(Method::POST, target))
}

impl Gcs {
    /// Moves an object whose metadata may be known. Returns `None` if a copy and a removal must do it: between buckets,
    /// with a key for new objects, and where the server or the caller's role lacks this request.
    pub(crate) async fn move_object(
        &self,
        from: &ObjectId,
        known: Option<&ObjectMeta>,
        to: &ObjectId,
        onto: &Condition,
    ) -> Result<Option<ObjectMeta>, Error> {
        let has_own_key = self.kms_key.is_some()
            || self.encryption.customer_key.is_some()
            || self.encryption.source_customer_key.is_some();
        let is_plain = from.bucket == to.bucket && from.key != to.key && from.version.is_none();
        if !is_plain || has_own_key || self.lacks_move.has(&from.bucket, Instant::now()) {
            return Ok(None);
        }
        let exchange = Exchange::object(self, Operation::Copy, to);
        let source = known.and_then(|meta| meta.version.clone()).map_or(Condition::None, Condition::Matches);
        let outgoing = request(from, to, &source, onto).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        match exchange.send(&outgoing).await {
            Ok(sent) => read(&exchange, &sent, to, known.map_or(0, |meta| meta.size)).map(Some),
            Err(error) if error.is_uncertain() && (error.is_not_found() || error.is_precondition()) => {
                self.moved(error, from, known, to).await.map(Some)
            }
            Err(error) if error.is_not_found() && error.message().contains(NO_OBJECT) => Err(error),
            Err(error)
                if error.is_not_found()
                    || error.is_permission()
                    || error.is_invalid()
                    || error.is_unsupported() =>
            {
                tracing::info!(bucket = from.bucket, %error, "objects are moved by copies from now on");
                self.lacks_move.add(&from.bucket, Instant::now());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Checks a move whose first answer was lost. It is done if the source is gone and the destination has its bytes.
    async fn moved(
        &self,
        error: Error,
        from: &ObjectId,
        known: Option<&ObjectMeta>,
        to: &ObjectId,
    ) -> Result<ObjectMeta, Error> {
        let Some(known) = known else { return Err(error) };
        let is_gone = matches!(Box::pin(self.head(from, None)).await, Err(found) if found.is_not_found());
        match Box::pin(self.head(to, None)).await {
            Ok(meta)
                if is_gone
                    && meta.size == known.size
                    && meta.checksums.compare(&known.checksums) == Comparison::Equal =>
            {
                Ok(meta)
            }
            _ => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_is_bound_to_both_generations() {
        let (from, to) = (ObjectId::new("b", "a/b"), ObjectId::new("b", "c d"));
        let source = Condition::Matches(Version::Generation(7));
        let outgoing = request(&from, &to, &source, &Condition::Absent).expect("a request");
        assert_eq!(outgoing.method, Method::POST);
        assert!(outgoing.target.starts_with(
            "/storage/v1/b/b/o/a%2Fb/moveTo/o/c%20d?ifSourceGenerationMatch=7&ifGenerationMatch=0&fields="
        ));
    }
}
