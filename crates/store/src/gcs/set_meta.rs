//! `set_meta`: changes metadata with a patch, and the storage class with a rewrite.
//! <https://cloud.google.com/storage/docs/json_api/v1/objects/patch> It also reads an object's grants, and spells
//! predefined access control lists for GCS's two APIs.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderValue, Method};
use laneway_lanes::Body;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Gcs;
use super::get::{object_path, read_resource};
use super::put::NO_TAGS;
use super::resource::FIELDS;
use crate::encode::QueryString;
use crate::exchange::{Exchange, Outgoing};
use crate::timestamp::to_rfc3339;
use crate::{
    AccessGrant, Condition, Error, ErrorKind, MetaChange, ObjectId, ObjectMeta, Operation, PutOptions,
};

/// Returns the body of a patch. `null` clears a field, and fields that aren't named are kept. `present` is the object's
/// current user metadata. To clear all of it, the patch must name each of its fields.
fn resource(change: &MetaChange, present: &BTreeMap<String, String>) -> Value {
    let mut resource = Map::new();
    let fields = [
        ("contentType", &change.content_type),
        ("contentEncoding", &change.content_encoding),
        ("cacheControl", &change.cache_control),
        ("contentDisposition", &change.content_disposition),
        ("contentLanguage", &change.content_language),
    ];
    for (name, text) in fields {
        match text.as_deref() {
            None => {}
            Some("") => drop(resource.insert(name.to_owned(), Value::Null)),
            Some(text) => drop(resource.insert(name.to_owned(), text.into())),
        }
    }
    if let Some(time) = change.custom_time {
        resource.insert("customTime".to_owned(), to_rfc3339(time).into());
    }
    let mut metadata = Map::new();
    let cleared = present.keys().filter(|_| change.clears_metadata);
    metadata.extend(cleared.chain(&change.removed).map(|name| (name.clone(), Value::Null)));
    metadata.extend(change.metadata.iter().map(|(name, value)| (name.clone(), value.as_str().into())));
    if !metadata.is_empty() {
        resource.insert("metadata".to_owned(), Value::Object(metadata));
    }
    Value::Object(resource)
}

fn request(id: &ObjectId, resource: &Value, acl: Option<&str>, metageneration: Option<u64>) -> Outgoing {
    let query = QueryString::new()
        .and_some("predefinedAcl", acl.map(acl_in_json).as_deref())
        .and_some("generation", id.version.as_deref())
        .and_some("ifMetagenerationMatch", metageneration.map(|n| n.to_string()).as_deref())
        .and("fields", FIELDS);
    let mut outgoing = Outgoing::new(Method::PATCH, format!("{}{query}", object_path(id)));
    outgoing.headers.insert("content-type", HeaderValue::from_static("application/json"));
    outgoing.body = Body::from(Bytes::from(resource.to_string()));
    outgoing
}

/// Returns true if an object is the result of patching `before` with this change. Each patch increments the
/// metageneration. So an object with the next metageneration and the requested values has been patched once, with this
/// change.
fn is_result(meta: &ObjectMeta, before: &ObjectMeta, change: &MetaChange) -> bool {
    let patch = MetaChange { storage_class: None, acl: None, ..change.clone() };
    meta.version == before.version
        && meta.metageneration == before.metageneration.map(|metageneration| metageneration + 1)
        && change.custom_time.is_none_or(|time| meta.custom_time == Some(time))
        && MetaChange::default().applied(meta) == MetaChange { custom_time: None, ..patch }.applied(before)
}

/// Returns a key's name without its version. An object's metadata names the version of the key that encrypts it. A new
/// object must use the newest version, so the request names only the key.
fn key_without_version(key: &str) -> &str {
    key.split_once("/cryptoKeyVersions/").map_or(key, |(key, _)| key)
}

impl Gcs {
    /// Changes an object's metadata and storage class. The patch is sent first, and then a rewrite copies its result to
    /// the new class.
    pub(crate) async fn change_meta(&self, id: &ObjectId, change: &MetaChange) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::SetMeta, id);
        if change.storage_class.is_some() && id.version.is_some() {
            let message = "the storage class of a version can't be changed: a rewrite would make this version the live one";
            return Err(exchange.error(ErrorKind::Unsupported, message));
        }
        if change.expires.is_some() {
            let message = "GCS has no Expires: set Cache-Control";
            return Err(exchange.error(ErrorKind::Unsupported, message));
        }
        if change.tags.is_some() {
            return Err(exchange.error(ErrorKind::Unsupported, NO_TAGS));
        }
        let patches = change.describes() || change.acl.is_some();
        let present = match change.clears_metadata || !patches {
            true => Some(self.head(id, None).await.map_err(|e| e.within(Operation::SetMeta))?),
            false => None,
        };
        let meta = match (patches, present) {
            (false, Some(present)) => present,
            (_, present) => {
                let known = present.as_ref().and_then(|meta| meta.metadata.clone()).unwrap_or_default();
                let metageneration = present.as_ref().and_then(|meta| meta.metageneration);
                let outgoing = request(id, &resource(change, &known), change.acl.as_deref(), metageneration);
                match (exchange.send(&outgoing).await, present) {
                    (Ok(sent), _) => read_resource(&exchange, &sent, id, 0)?,
                    // The answer to the first attempt was lost, and the second attempt failed because the first had
                    // already changed the object.
                    (Err(error), Some(before)) if error.is_precondition() && error.is_uncertain() => {
                        match Box::pin(self.head(id, None)).await {
                            Ok(meta) if is_result(&meta, &before, change) => meta,
                            _ => return Err(error),
                        }
                    }
                    (Err(error), _) => return Err(error),
                }
            }
        };
        match &change.storage_class {
            Some(class) if meta.storage_class.as_ref() != Some(class) => {
                let condition = meta.version.clone().map_or(Condition::None, Condition::Matches);
                let mut options =
                    PutOptions::default().storage_class(class.as_str()).condition(condition.clone());
                options.kms_key = meta.kms_key.as_deref().map(|key| key_without_version(key).to_owned());
                // The rewrite makes a new object, which gets the bucket's default list unless the request names one.
                options.acl.clone_from(&change.acl);
                let rewritten = self.copy_object(id, None, id, &options, &condition).await;
                rewritten.map_err(|e| e.within(Operation::SetMeta))
            }
            _ => Ok(meta),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct AccessList {
    acl: Vec<AccessEntry>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct AccessEntry {
    entity: String,
    role: String,
}

impl Gcs {
    /// Returns an object's grants. In a bucket with uniform access, objects have none.
    pub(crate) async fn read_acl(&self, id: &ObjectId) -> Result<Vec<AccessGrant>, Error> {
        let exchange = Exchange::object(self, Operation::Access, id);
        let query = QueryString::new()
            .and_some("generation", id.version.as_deref())
            .and("projection", "full")
            .and("fields", "acl(entity,role)");
        let sent = exchange.send(&Outgoing::new(Method::GET, format!("{}{query}", object_path(id)))).await?;
        let list: AccessList = serde_json::from_slice(&sent.response.body)
            .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't an access control list: {e}")))?;
        let grant = |entry: AccessEntry| AccessGrant { grantee: entry.entity, permission: entry.role };
        Ok(list.acl.into_iter().map(grant).collect())
    }
}

/// Returns the JSON API's spelling, such as `publicRead`.
pub(super) fn acl_in_json(acl: &str) -> String {
    let mut words = acl.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut name, word| {
        let mut letters = word.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
        name
    })
}

/// Returns the XML API's spelling, such as `public-read`.
pub(super) fn acl_in_xml(acl: &str) -> String {
    let mut name = String::with_capacity(acl.len() + 4);
    for letter in acl.chars() {
        if letter.is_ascii_uppercase() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_next_metageneration_with_the_change_is_its_result() {
        let object = |metageneration, metadata: &[(&str, &str)]| {
            let mut meta = ObjectMeta::new(ObjectId::new("b", "k"), 1);
            meta.metageneration = Some(metageneration);
            meta.metadata = Some(metadata.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect());
            meta
        };
        let change = MetaChange::default().clears_metadata(true).metadata("a", "2").storage_class("NEARLINE");
        let before = object(3, &[("a", "1"), ("b", "1")]);
        for (meta, expected) in [
            (object(4, &[("a", "2")]), true),
            (object(5, &[("a", "2")]), false),
            (object(4, &[("a", "2"), ("b", "1")]), false),
        ] {
            assert_eq!(is_result(&meta, &before, &change), expected, "{meta:?}");
        }
    }

    #[test]
    fn a_patch_says_what_changes_and_nothing_else() {
        let change =
            MetaChange::default().cache_control("").content_type("a/b").metadata("n", "v").removed("gone");
        assert_eq!(
            resource(&change, &[("kept".to_owned(), "1".to_owned())].into()),
            json!({"contentType": "a/b", "cacheControl": null, "metadata": {"gone": null, "n": "v"}})
        );
        let cleared = MetaChange::default().clears_metadata(true).metadata("a", "2");
        let present = [("a", "1"), ("b", "1")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        assert_eq!(resource(&cleared, &present), json!({"metadata": {"a": "2", "b": null}}));
        let outgoing =
            request(&ObjectId::new("b", "k").at_version("7"), &json!({}), Some("public-read"), Some(3));
        assert!(outgoing.target.starts_with(
            "/storage/v1/b/b/o/k?predefinedAcl=publicRead&generation=7&ifMetagenerationMatch=3&fields="
        ));
    }

    #[test]
    fn both_ways_of_writing_are_understood() {
        for (json, xml) in [
            ("publicRead", "public-read"),
            ("bucketOwnerFullControl", "bucket-owner-full-control"),
            ("private", "private"),
        ] {
            assert_eq!((acl_in_json(xml).as_str(), acl_in_json(json).as_str()), (json, json));
            assert_eq!((acl_in_xml(json).as_str(), acl_in_xml(xml).as_str()), (xml, xml));
        }
    }
}
