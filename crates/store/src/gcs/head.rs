//! `head`: reads an object's resource, the JSON document with its metadata.

use http::Method;
use serde::Deserialize;

use super::Gcs;
use super::resource::{FIELDS, ObjectResource};
use crate::encode::{QueryString, component};
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, ExchangeResponse, Outgoing};
use crate::{Error, ErrorKind, ObjectId, ObjectMeta, Operation, Unless, Version};

/// Returns the path of an object in the JSON API.
pub(super) fn object_path(id: &ObjectId) -> String {
    format!("/storage/v1/b/{}/o/{}", component(&id.bucket), component(&id.key))
}

/// Returns the generation that a version names. An entity tag is an error, because GCS can't read an object by its
/// entity tag.
pub(super) fn generation(version: Option<&Version>) -> Result<Option<String>, String> {
    match version {
        None => Ok(None),
        Some(Version::Generation(generation)) => Ok(Some(generation.to_string())),
        Some(Version::ETag(_)) => Err("GCS compares generations, not ETags".to_owned()),
    }
}

/// Returns the generation to read: the one that the object's id names, or else the one to which the caller pinned the
/// read.
pub(super) fn asked_generation(id: &ObjectId, pinned: Option<&Version>) -> Result<Option<String>, String> {
    match &id.version {
        Some(version) => Ok(Some(version.to_string())),
        None => generation(pinned),
    }
}

/// Returns a request on the condition that the object isn't in the state that the reader already has. The JSON API has
/// no condition on time, so the caller must compare the time in the answer.
pub(super) fn unless_known(
    method: Method,
    path: String,
    query: QueryString,
    unless: Option<&Unless>,
) -> Result<Outgoing, String> {
    let (generation, etag) = match unless {
        Some(Unless::Version(Version::Generation(generation))) => (Some(generation.to_string()), None),
        Some(Unless::Version(Version::ETag(etag))) => (None, Some(etag.as_str())),
        Some(Unless::ModifiedSince(_)) | None => (None, None),
    };
    let query = query.and_some("ifGenerationNotMatch", generation.as_deref());
    // GCS sends entity tags without quotes, and expects them back without quotes.
    let outgoing = Outgoing::new(method, format!("{path}{query}")).header_some("if-none-match", etag);
    outgoing.map_err(|e| e.to_string())
}

fn request(
    id: &ObjectId,
    generation: Option<&str>,
    unless: Option<&Unless>,
    extra: &str,
) -> Result<Outgoing, String> {
    let query =
        QueryString::new().and_some("generation", generation).and("fields", &format!("{FIELDS},{extra}"));
    unless_known(Method::GET, object_path(id), query, unless)
}

/// Reads an object resource from an answer. `size` is used if the answer doesn't contain the size.
pub(super) fn read(
    exchange: &Exchange<'_, Gcs>,
    sent: &ExchangeResponse,
    id: &ObjectId,
    size: u64,
) -> Result<ObjectMeta, Error> {
    let resource: ObjectResource<'_> = serde_json::from_slice(&sent.response.body)
        .map_err(|e| exchange.nonsense(sent, format!("the answer isn't an object resource: {e}")))?;
    resource
        .into_meta(id.clone(), size)
        .ok_or_else(|| exchange.nonsense(sent, "the answer doesn't describe the requested object"))
}

/// Turns "not found" into a failed precondition if the read was pinned to a generation, because that generation was
/// replaced or deleted.
pub(super) fn gone(error: Error, id: &ObjectId, version: Option<&Version>) -> Error {
    match version {
        Some(version) if error.is_not_found() && id.version.is_none() => {
            error.but(ErrorKind::Precondition, format!("{version} is gone"))
        }
        _ => error,
    }
}

/// Fields that a rewrite doesn't copy unless the request repeats them.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct UncopiedFields {
    custom_time: Option<String>,
}

impl Gcs {
    /// Returns the metadata of an object. The request carries the customer's key of this store's own objects, if there
    /// is one.
    pub(crate) async fn head(&self, id: &ObjectId, version: Option<&Version>) -> Result<ObjectMeta, Error> {
        self.head_as(id, version, None, KeyUse::Object).await
    }

    /// Returns the metadata of an object. If a customer's key encrypts the object, GCS sends its checksums only if the
    /// request carries this key.
    pub(crate) async fn head_as(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        unless: Option<&Unless>,
        key_use: KeyUse,
    ) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::Head, id);
        let generation = asked_generation(id, version).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let outgoing = request(id, generation.as_deref(), unless, "timeCreated")
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?
            .key_use(key_use);
        let sent = exchange.send(&outgoing).await.map_err(|e| gone(e, id, version))?;
        read(&exchange, &sent, id, 0)
    }

    /// Returns the metadata of a copy's source, and its custom time. A rewrite that sets any metadata drops the custom
    /// time, so the request must repeat it.
    pub(super) async fn head_of_source(&self, id: &ObjectId) -> Result<(ObjectMeta, Option<String>), Error> {
        let exchange = Exchange::object(self, Operation::Head, id);
        let outgoing = request(id, id.version.as_deref(), None, "customTime")
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?
            .key_use(KeyUse::Source);
        let sent = exchange.send(&outgoing).await?;
        let meta = read(&exchange, &sent, id, 0)?;
        let UncopiedFields { custom_time } = serde_json::from_slice(&sent.response.body).unwrap_or_default();
        Ok((meta, custom_time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_asked_for_whatever_it_is_pinned_to() {
        let id = ObjectId::new("b", "k").at_version("12");
        let pinned = Version::Generation(12);
        assert_eq!(asked_generation(&id, Some(&pinned)), Ok(Some("12".to_owned())));
        assert_eq!(asked_generation(&ObjectId::new("b", "k"), None), Ok(None));
    }

    #[test]
    fn a_key_is_one_segment_of_the_path() {
        let request =
            request(&ObjectId::new("b", "/a//b c/"), Some("17"), None, "timeCreated").expect("a request");
        assert!(
            request.target.starts_with("/storage/v1/b/b/o/%2Fa%2F%2Fb%20c%2F?generation=17&fields=bucket%2C")
        );
        assert_eq!(request.method, Method::GET);
    }
}
