//! `head`: the object's resource.

use http::Method;

use super::Gcs;
use super::resource::{FIELDS, Resource};
use crate::encode::{Query, component};
use crate::encryption::Keyed;
use crate::exchange::{Exchange, Outgoing, Sent};
use crate::{Error, ErrorKind, ObjectId, ObjectMeta, Operation, Version};

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

fn request(id: &ObjectId, generation: Option<&str>) -> Outgoing {
    let query = Query::new().and_some("generation", generation).and("fields", FIELDS);
    Outgoing::new(Method::GET, format!("{}{query}", object_path(id)))
}

/// Reads an object resource out of an answer; `size` is what the object has where the answer doesn't say.
pub(super) fn read(
    exchange: &Exchange<'_, Gcs>,
    sent: &Sent,
    id: &ObjectId,
    size: u64,
) -> Result<ObjectMeta, Error> {
    let resource: Resource = serde_json::from_slice(&sent.response.body)
        .map_err(|e| exchange.nonsense(sent, format!("the answer is no object resource: {e}")))?;
    resource
        .into_meta(id.clone(), size)
        .ok_or_else(|| exchange.nonsense(sent, "the answer describes no object, or another one"))
}

/// A pinned generation that isn't found has been replaced or deleted: what was asked for doesn't hold any more.
pub(super) fn gone(error: Error, version: Option<&Version>) -> Error {
    match version {
        Some(version) if error.is_not_found() => {
            error.but(ErrorKind::Precondition, format!("{version} is gone"))
        }
        _ => error,
    }
}

impl Gcs {
    /// What the store knows of an object, with its own key.
    pub(crate) async fn head(&self, id: &ObjectId, version: Option<&Version>) -> Result<ObjectMeta, Error> {
        self.head_as(id, version, Keyed::Object).await
    }

    /// Without its key the checksums of an object that a customer's key encrypts are left out.
    pub(crate) async fn head_as(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        keyed: Keyed,
    ) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::Head, id);
        let generation = generation(version).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let sent = exchange
            .send(&request(id, generation.as_deref()).keyed(keyed))
            .await
            .map_err(|e| gone(e, version))?;
        read(&exchange, &sent, id, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_segment_of_the_path() {
        let request = request(&ObjectId::new("b", "/a//b c/"), Some("17"));
        assert!(
            request.target.starts_with("/storage/v1/b/b/o/%2Fa%2F%2Fb%20c%2F?generation=17&fields=bucket%2C")
        );
        assert_eq!(request.method, Method::GET);
    }
}
