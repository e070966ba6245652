//! `restore`: brings soft-deleted objects back (<https://cloud.google.com/storage/docs/json_api/v1/objects/restore>).

use http::Method;

use super::Gcs;
use super::head::object_path;
use crate::encode::Query;
use crate::exchange::{Exchange, Outgoing};
use crate::{Error, ErrorKind, List, ObjectId, Operation, Restoration, RestoreOptions, Version};

const NONE: &str = "no soft-deleted object has this name";

fn request(id: &ObjectId, generation: &str, options: &RestoreOptions) -> Outgoing {
    let query = Query::new()
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
            let message = "GCS restores deleted objects for good, so it takes no days and no tier";
            return Err(exchange.error(ErrorKind::Invalid, message));
        }
        let generation = match id.version.as_deref() {
            Some(generation) => generation.to_owned(),
            None => {
                self.newest_deleted(id).await?.ok_or_else(|| exchange.error(ErrorKind::NotFound, NONE))?
            }
        };
        let name = ObjectId::new(&id.bucket, &id.key);
        match exchange.send(&request(&name, &generation, options)).await {
            Ok(_) => Ok(Restoration::Readable),
            // The answer to the first attempt was lost, and the object is back.
            Err(error) if error.is_uncertain() && (error.is_precondition() || error.is_not_found()) => {
                match Box::pin(self.head(&name, None)).await {
                    Ok(_) => Ok(Restoration::Readable),
                    Err(_) => Err(error),
                }
            }
            Err(error) if error.is_precondition() && !options.overwrite => Ok(Restoration::NotNeeded),
            Err(error) => Err(error),
        }
    }

    /// Returns the newest generation of a name that was deleted.
    async fn newest_deleted(&self, id: &ObjectId) -> Result<Option<String>, Error> {
        let mut list = List { versions: true, soft_deleted: true, ..List::new(&id.bucket, &id.key) };
        // No other name sorts between the key and this one.
        list.end_before = Some(format!("{}\0", id.key));
        let mut newest = None;
        loop {
            let mut found = Vec::new();
            let page = self.list_page(&list, |objects| found.extend(objects)).await;
            let page = page.map_err(|e| e.within(Operation::Restore))?;
            for meta in found.into_iter().chain(page.objects).filter(|meta| meta.id.key == id.key) {
                if let Some(Version::Generation(generation)) = meta.version {
                    newest = newest.max(Some(generation));
                }
            }
            list.token = page.next;
            if list.token.is_none() {
                return Ok(newest.map(|generation: u64| generation.to_string()));
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
