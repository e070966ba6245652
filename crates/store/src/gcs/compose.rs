//! `compose`: joins up to 32 objects of one bucket (<https://cloud.google.com/storage/docs/json_api/v1/objects/compose>).

use bytes::Bytes;
use http::{HeaderValue, Method};
use laneway_lanes::Body;
use serde_json::{Value, json};

use super::head::{object_path, read};
use super::put::{check_options, precondition};
use super::resource::{FIELDS, NewObjectResource};
use super::{Gcs, acl};
use crate::encode::QueryString;
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, Outgoing};
use crate::reconcile::landed;
use crate::{Checksums, Error, ErrorKind, ObjectId, ObjectMeta, Operation, PutOptions, Version};

/// The maximum number of objects that one request can join.
pub(super) const SOURCES_MAX: usize = 32;

fn request(
    sources: &[ObjectMeta],
    to: &ObjectId,
    options: &PutOptions,
    kms_key: Option<&str>,
) -> Result<Outgoing, String> {
    let query = QueryString::new()
        .and_some("kmsKeyName", options.kms_key.as_deref().or(kms_key))
        .and_some("destinationPredefinedAcl", options.acl.as_deref().map(acl::in_json).as_deref());
    check_options(options)?;
    let query = precondition(query, &options.condition)?.and("fields", FIELDS);
    let source = |meta: &ObjectMeta| match &meta.version {
        Some(Version::Generation(generation)) => {
            json!({"name": meta.id.key, "generation": generation.to_string()})
        }
        _ => json!({"name": meta.id.key}),
    };
    let destination: Value =
        serde_json::from_str(&NewObjectResource::new(options, None).to_json()).map_err(|e| e.to_string())?;
    let document =
        json!({"sourceObjects": sources.iter().map(source).collect::<Vec<_>>(), "destination": destination});
    let target = format!("{}/compose{query}", object_path(to));
    let mut outgoing = Outgoing::new(Method::POST, target).key_use(KeyUse::Object);
    outgoing.headers.insert("content-type", HeaderValue::from_static("application/json"));
    outgoing.body = Body::from(Bytes::from(document.to_string()));
    Ok(outgoing)
}

impl Gcs {
    pub(crate) async fn compose_objects(
        &self,
        sources: &[ObjectMeta],
        to: &ObjectId,
        options: &PutOptions,
        whole: &Checksums,
    ) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::Compose, to);
        let size = sources.iter().map(|meta| meta.size).sum();
        let outgoing = request(sources, to, options, self.kms_key.as_deref())
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        match exchange.send(&outgoing).await {
            Ok(sent) => read(&exchange, &sent, to, size),
            Err(error) => landed(error, Box::pin(self.head(to, None)), size, whole).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Condition;

    #[test]
    fn sources_are_named_in_order_with_their_generations() {
        let source = |key: &str, generation| {
            let meta = ObjectMeta::new(ObjectId::new("b", key), 1);
            ObjectMeta { version: Some(Version::Generation(generation)), ..meta }
        };
        let options = PutOptions::default().content_type("a/b").condition(Condition::Absent);
        let outgoing =
            request(&[source("x/2", 7), source("1", 8)], &ObjectId::new("b", "d/k"), &options, None)
                .expect("a request");
        assert!(outgoing.target.starts_with("/storage/v1/b/b/o/d%2Fk/compose?ifGenerationMatch=0&fields="));
        let Some(laneway_lanes::Segment::Memory(body)) = outgoing.body.segments().first() else {
            panic!("a document")
        };
        let document: Value = serde_json::from_slice(body).expect("JSON");
        assert_eq!(document["sourceObjects"][0], json!({"name": "x/2", "generation": "7"}));
        assert_eq!(document["destination"], json!({"contentType": "a/b"}));
    }

    #[test]
    fn refuses_properties_that_gcs_lacks() {
        let tags = [("a".to_owned(), "b".to_owned())].into();
        let tagged = PutOptions { tags, ..PutOptions::default() };
        let expires = Some(std::time::SystemTime::UNIX_EPOCH);
        let expiring = PutOptions { expires, ..PutOptions::default() };
        for options in [tagged, expiring] {
            assert!(request(&[], &ObjectId::new("b", "k"), &options, None).is_err(), "{options:?}");
        }
    }
}
