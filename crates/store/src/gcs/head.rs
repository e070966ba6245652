//! `head`: the object's resource.

use http::Method;

use super::Gcs;
use super::resource::{FIELDS, Resource};
use crate::encode::{Query, component};
use crate::encryption::Keyed;
use crate::exchange::{Exchange, Outgoing, Sent};
use crate::{Error, ErrorKind, ObjectId, ObjectMeta, Operation, Unless, Version};

/// The path of an object in the JSON API.
pub(super) fn object_path(id: &ObjectId) -> String {
    format!("/storage/v1/b/{}/o/{}", component(&id.bucket), component(&id.key))
}

/// The generation a version names; an ETag is no name for a state of a GCS object.
pub(super) fn generation(version: Option<&Version>) -> Result<Option<String>, String> {
    match version {
        None => Ok(None),
        Some(Version::Generation(generation)) => Ok(Some(generation.to_string())),
        Some(Version::ETag(_)) => Err("GCS pins objects by generation, not by ETag".to_owned()),
    }
}

/// The generation that a read is for: the object's own, or the one that it is pinned to.
pub(super) fn asked_generation(id: &ObjectId, pinned: Option<&Version>) -> Result<Option<String>, String> {
    match &id.version {
        Some(version) => Ok(Some(version.to_string())),
        None => generation(pinned),
    }
}

/// A read of what the reader doesn't have. Whoever asks about a time compares it with the answer: the JSON API can't.
pub(super) fn unless_known(
    method: Method,
    path: String,
    query: Query,
    unless: Option<&Unless>,
) -> Result<Outgoing, String> {
    let (generation, etag) = match unless {
        Some(Unless::Version(Version::Generation(generation))) => (Some(generation.to_string()), None),
        Some(Unless::Version(Version::ETag(etag))) => (None, Some(etag.as_str())),
        Some(Unless::ModifiedSince(_)) | None => (None, None),
    };
    let query = query.and_some("ifGenerationNotMatch", generation.as_deref());
    // Without quotes, as GCS gives it in its answers.
    let outgoing = Outgoing::new(method, format!("{path}{query}")).header_some("if-none-match", etag);
    outgoing.map_err(|e| e.to_string())
}

fn request(id: &ObjectId, generation: Option<&str>, unless: Option<&Unless>) -> Result<Outgoing, String> {
    let query =
        Query::new().and_some("generation", generation).and("fields", &format!("{FIELDS},timeCreated"));
    unless_known(Method::GET, object_path(id), query, unless)
}

/// Reads an object resource out of an answer; `size` is what the object has where the answer doesn't say.
pub(super) fn read(
    exchange: &Exchange<'_, Gcs>,
    sent: &Sent,
    id: &ObjectId,
    size: u64,
) -> Result<ObjectMeta, Error> {
    let resource: Resource<'_> = serde_json::from_slice(&sent.response.body)
        .map_err(|e| exchange.nonsense(sent, format!("the answer is no object resource: {e}")))?;
    resource
        .into_meta(id.clone(), size)
        .ok_or_else(|| exchange.nonsense(sent, "the answer describes no object, or another one"))
}

/// A pinned generation that isn't found has been replaced or deleted: what was asked for doesn't hold any more.
pub(super) fn gone(error: Error, id: &ObjectId, version: Option<&Version>) -> Error {
    match version {
        Some(version) if error.is_not_found() && id.version.is_none() => {
            error.but(ErrorKind::Precondition, format!("{version} is gone"))
        }
        _ => error,
    }
}

impl Gcs {
    /// What the store knows of an object, with its own key.
    pub(crate) async fn head(&self, id: &ObjectId, version: Option<&Version>) -> Result<ObjectMeta, Error> {
        self.head_as(id, version, None, Keyed::Object).await
    }

    /// Without its key the checksums of an object that a customer's key encrypts are left out.
    pub(crate) async fn head_as(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        unless: Option<&Unless>,
        keyed: Keyed,
    ) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::Head, id);
        let generation = asked_generation(id, version).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let outgoing = request(id, generation.as_deref(), unless)
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?
            .keyed(keyed);
        let sent = exchange.send(&outgoing).await.map_err(|e| gone(e, id, version))?;
        read(&exchange, &sent, id, 0)
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
        let request = request(&ObjectId::new("b", "/a//b c/"), Some("17"), None).expect("a request");
        assert!(
            request.target.starts_with("/storage/v1/b/b/o/%2Fa%2F%2Fb%20c%2F?generation=17&fields=bucket%2C")
        );
        assert_eq!(request.method, Method::GET);
    }
}
