//! `restore`: brings soft-deleted objects back (<https://cloud.google.com/storage/docs/json_api/v1/objects/restore>).

use http::Method;

use super::Gcs;
use super::head::object_path;
use crate::encode::QueryString;
use crate::exchange::{Exchange, Outgoing};
use crate::reconcile::landed;
use crate::{Error, ErrorKind, List, ObjectId, ObjectMeta, Operation, Restoration, RestoreOptions};

const NONE: &str = "no soft-deleted object has this name";

fn request(id: &ObjectId, generation: &str, options: &RestoreOptions) -> Outgoing {
    let query = QueryString::new()
        .and("generation", generation)
        .and_some("ifGenerationMatch", (!options.overwrite).then_some("0"))
        .and("fields", "name,generation");
    Outgoing::new(Method::POST, format!("{}/restore{query}", object_path(id)))
}

impl Gcs {
    pub(crate) async fn restore_deleted(
        &self,
        id: &ObjectId,
        options: &RestoreOptions,
    ) -> Result<Restoration, Error> {
        let exchange = Exchange::object(self, Operation::Restore, id);
        if options.days.is_some() || options.tier.is_some() {
            let message = "GCS restores deleted objects permanently, so it accepts neither days nor a tier";
            return Err(exchange.error(ErrorKind::Invalid, message));
        }
        // The deleted object's checksum must be known before the request. When the store restores the object, it
        // forgets the deleted one. If the answer is lost, only the checksum distinguishes the restored object from
        // another live one.
        let deleted = self.deleted_object(id).await?;
        let generation = deleted.id.version.as_deref().unwrap_or_default();
        let name = ObjectId::new(&id.bucket, &id.key);
        let error = match exchange.send(&request(&name, generation, options)).await {
            Ok(_) => return Ok(Restoration::Readable),
            Err(error) => error,
        };
        let restored =
            landed(error, Box::pin(self.head(&name, None)), deleted.size, &deleted.checksums).await;
        match restored {
            Ok(_) => Ok(Restoration::Readable),
            Err(error) if error.is_precondition() && !options.overwrite => Ok(Restoration::NotNeeded),
            Err(error) => Err(error),
        }
    }

    /// Returns the deleted object in the generation that the version names, or else in its newest one.
    pub(crate) async fn deleted_object(&self, id: &ObjectId) -> Result<ObjectMeta, Error> {
        let mut list = List { versions: true, soft_deleted: true, ..List::new(&id.bucket, &id.key) };
        // No other name sorts between the key and this bound.
        list.end_before = Some(format!("{}\0", id.key));
        let is_asked = |meta: &ObjectMeta| {
            meta.id.key == id.key && (id.version.is_none() || id.version == meta.id.version)
        };
        let generation = |meta: &ObjectMeta| meta.id.version.as_deref()?.parse::<u64>().ok();
        let mut newest: Option<ObjectMeta> = None;
        loop {
            let mut found = Vec::new();
            let page = self.list_page(&list, |objects| found.extend(objects)).await;
            let page = page.map_err(|e| e.within(Operation::Restore))?;
            let found = found.into_iter().chain(page.objects).filter(is_asked);
            newest = newest.into_iter().chain(found).max_by_key(generation);
            list.token = page.next;
            if list.token.is_none() {
                let exchange = Exchange::object(self, Operation::Restore, id);
                return newest.ok_or_else(|| exchange.error(ErrorKind::NotFound, NONE));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restoration_replaces_nothing_unless_it_may() {
        let id = ObjectId::new("b", "a/b");
        let kept = request(&id, "7", &RestoreOptions::default()).target;
        assert_eq!(
            kept,
            "/storage/v1/b/b/o/a%2Fb/restore?generation=7&ifGenerationMatch=0&fields=name%2Cgeneration"
        );
        let replaced = request(&id, "7", &RestoreOptions::default().overwrite(true)).target;
        assert!(!replaced.contains("ifGenerationMatch"), "{replaced}");
    }
}
