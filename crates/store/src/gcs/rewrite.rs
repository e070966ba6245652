//! `copy` and `compose`. A copy sends rewrite calls until GCS returns the finished object instead of a token.
//! `compose` joins up to 32 objects of one bucket
//! (<https://cloud.google.com/storage/docs/json_api/v1/objects/compose>).

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method};
use laneway_lanes::Body;
use serde::Deserialize;
use serde_json::{Value, json};

use super::get::{object_path, read_resource};
use super::put::{check_options, precondition};
use super::resource::{FIELDS, NewObjectResource, ObjectResource, text};
use super::{Gcs, set_meta};
use crate::encode::{QueryString, component};
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, Outgoing};
use crate::reconcile::landed;
use crate::{Checksums, Condition, Error, ErrorKind, ObjectId, ObjectMeta, Operation, PutOptions, Version};

/// After this many consecutive answers without progress, a rewrite is given up, because it would never end.
const FRUITLESS_MAX: u32 = 3;

/// The time limit without progress. Between locations or storage classes, a call copies for up to half a minute before
/// it answers with a token.
const NO_PROGRESS_MAX: Duration = Duration::from_secs(120);

fn request(
    from: &ObjectId,
    to: &ObjectId,
    options: &PutOptions,
    condition: &Condition,
    kms_key: Option<&str>,
    custom_time: Option<&str>,
    token: Option<&str>,
) -> Result<Outgoing, String> {
    check_options(options)?;
    let query = QueryString::new()
        .and_some("destinationKmsKeyName", options.kms_key.as_deref().or(kms_key))
        .and_some("destinationPredefinedAcl", options.acl.as_deref().map(set_meta::acl_in_json).as_deref());
    let query = match condition {
        _ if from.version.is_some() => query.and_some("sourceGeneration", from.version.as_deref()),
        Condition::None => query,
        Condition::Matches(Version::Generation(generation)) => {
            query.and("sourceGeneration", &generation.to_string())
        }
        Condition::Matches(Version::ETag(_)) => return Err("GCS compares generations, not ETags".to_owned()),
        Condition::Absent => return Err("a copy can't require that its source is absent".to_owned()),
    };
    let query = precondition(query, &options.condition)?
        .and_some("rewriteToken", token)
        .and("fields", &format!("done,rewriteToken,totalBytesRewritten,resource({FIELDS})"));
    let path =
        format!("{}/rewriteTo/b/{}/o/{}", object_path(from), component(&to.bucket), component(&to.key));
    let mut outgoing = Outgoing::new(Method::POST, format!("{path}{query}")).key_use(KeyUse::Copy);
    outgoing.no_progress = Some(NO_PROGRESS_MAX);
    let mut resource = NewObjectResource::new(options, None);
    resource.custom_time = resource.custom_time.or(custom_time.map(Into::into));
    if !resource.is_empty() {
        outgoing.headers.insert("content-type", HeaderValue::from_static("application/json"));
        outgoing.body = Body::from(Bytes::from(resource.to_json()));
    }
    Ok(outgoing)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RewriteResponse<'a> {
    #[serde(default)]
    done: bool,
    rewrite_token: Option<String>,
    #[serde(deserialize_with = "text")]
    #[serde(default)]
    total_bytes_rewritten: String,
    #[serde(borrow)]
    resource: Option<ObjectResource<'a>>,
}

/// The progress of a rewrite. A token may stay the same from one call to the next, so the number of copied bytes is
/// compared too.
#[derive(Debug, Default)]
struct RewriteProgress {
    token: Option<String>,
    bytes: String,
    /// The consecutive answers without progress.
    fruitless: u32,
}

impl RewriteProgress {
    /// Records an answer that isn't the last. Returns true if the rewrite should continue.
    fn goes_on(&mut self, token: String, bytes: String) -> bool {
        let nothing_new = self.token.as_ref() == Some(&token) && self.bytes == bytes;
        self.fruitless = if nothing_new { self.fruitless + 1 } else { 0 };
        (self.token, self.bytes) = (Some(token), bytes);
        self.fruitless < FRUITLESS_MAX
    }
}

impl Gcs {
    pub(crate) async fn copy_object(
        &self,
        from: &ObjectId,
        _known: Option<&ObjectMeta>,
        to: &ObjectId,
        options: &PutOptions,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::Copy, to);
        // If the request sets any metadata or a storage class, GCS drops all metadata that the request doesn't name. So
        // read the source's metadata first and send it all.
        let (merged, custom_time) =
            match options.describes() || options.storage_class.is_some() || options.is_protected() {
                true => {
                    let (source, custom_time) =
                        self.head_of_source(from).await.map_err(|e| e.within(Operation::Copy))?;
                    (options.described_like(&source), custom_time)
                }
                false => (options.clone(), None),
            };
        let mut progress = RewriteProgress::default();
        loop {
            let (kms_key, token) = (self.kms_key.as_deref(), progress.token.as_deref());
            let outgoing = request(from, to, &merged, condition, kms_key, custom_time.as_deref(), token)
                .map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
            let sent = match exchange.send(&outgoing).await {
                Ok(sent) => sent,
                Err(error) if error.is_precondition() && error.is_uncertain() => {
                    return match self.head_as(from, None, None, KeyUse::Source).await {
                        Ok(source) => {
                            landed(error, Box::pin(self.head(to, None)), source.size, &source.checksums).await
                        }
                        Err(_) => Err(error),
                    };
                }
                Err(error) => return Err(error),
            };
            let answer: RewriteResponse<'_> = serde_json::from_slice(&sent.response.body)
                .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't a rewrite response: {e}")))?;
            match (answer.done, answer.resource, answer.rewrite_token) {
                (true, Some(resource), _) => {
                    return resource.into_meta(to.clone(), 0).ok_or_else(|| {
                        exchange.nonsense(&sent, "the answer doesn't describe the copied object")
                    });
                }
                (false, _, Some(token)) => {
                    if !progress.goes_on(token, answer.total_bytes_rewritten) {
                        return Err(exchange.nonsense(&sent, "the rewrite makes no progress"));
                    }
                }
                _ => {
                    return Err(exchange.nonsense(
                        &sent,
                        "the answer has neither the finished object nor a token to continue",
                    ));
                }
            }
        }
    }
}

/// The maximum number of objects that one request can join.
pub(super) const SOURCES_MAX: usize = 32;

fn compose_request(
    sources: &[ObjectMeta],
    to: &ObjectId,
    options: &PutOptions,
    kms_key: Option<&str>,
) -> Result<Outgoing, String> {
    let query = QueryString::new()
        .and_some("kmsKeyName", options.kms_key.as_deref().or(kms_key))
        .and_some("destinationPredefinedAcl", options.acl.as_deref().map(set_meta::acl_in_json).as_deref());
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
        let outgoing = compose_request(sources, to, options, self.kms_key.as_deref())
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        match exchange.send(&outgoing).await {
            Ok(sent) => read_resource(&exchange, &sent, to, size),
            Err(error) => landed(error, Box::pin(self.head(to, None)), size, whole).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Condition;

    #[test]
    fn a_copy_names_both_objects_and_goes_on_by_token() {
        let (from, to) = (ObjectId::new("b", "a/b"), ObjectId::new("c", "d"));
        let options = PutOptions::default().condition(Condition::Absent);
        let source = Condition::Matches(Version::Generation(3));
        let outgoing = request(&from, &to, &options, &source, None, None, Some("t")).expect("a request");
        assert!(outgoing.target.starts_with(
            "/storage/v1/b/b/o/a%2Fb/rewriteTo/b/c/o/d?sourceGeneration=3&ifGenerationMatch=0&rewriteToken=t&fields="
        ));
        assert!(outgoing.body.is_empty());
    }

    #[test]
    fn a_rewrite_goes_on_while_bytes_or_token_change() {
        let mut progress = RewriteProgress::default();
        let mut goes_on = |token: &str, bytes: &str| progress.goes_on(token.to_owned(), bytes.to_owned());
        assert!(goes_on("t", "1") && goes_on("t", "2") && goes_on("t", "2") && goes_on("t", "2"));
        assert!(goes_on("t", "3") && goes_on("u", "3") && goes_on("u", "3") && goes_on("u", "3"));
        assert!(!goes_on("u", "3"), "the fourth in turn");
    }

    #[test]
    fn new_metadata_goes_into_the_body() {
        let id = ObjectId::new("b", "k");
        let options = PutOptions::default().content_type("a/b");
        let outgoing = request(&id, &id, &options, &Condition::None, None, None, None).expect("a request");
        assert_eq!(outgoing.body.len(), br#"{"contentType":"a/b"}"#.len() as u64);
        assert!(request(&id, &id, &options, &Condition::Absent, None, None, None).is_err());
    }

    #[test]
    fn sources_are_named_in_order_with_their_generations() {
        let source = |key: &str, generation| {
            let meta = ObjectMeta::new(ObjectId::new("b", key), 1);
            ObjectMeta { version: Some(Version::Generation(generation)), ..meta }
        };
        let options = PutOptions::default().content_type("a/b").condition(Condition::Absent);
        let outgoing =
            compose_request(&[source("x/2", 7), source("1", 8)], &ObjectId::new("b", "d/k"), &options, None)
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
            assert!(compose_request(&[], &ObjectId::new("b", "k"), &options, None).is_err(), "{options:?}");
        }
    }
}
