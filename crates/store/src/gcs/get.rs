//! `get` and `head`: downloads an object's bytes as they are stored, without decompressing them, and reads its
//! resource, the JSON document with its metadata.

use http::Method;
use laneway_lanes::ResponseHead;
use serde::Deserialize;

use super::Gcs;
use super::resource::{FIELDS, ObjectResource, from_head};
use crate::delivery::Delivery;
use crate::encode::{QueryString, component};
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, ExchangeResponse, Outgoing};
use crate::unless::NOT_MODIFIED;
use crate::{Error, ErrorKind, Get, GetRange, Got, ObjectId, ObjectMeta, Operation, Unless, Version};

fn request(
    id: &ObjectId,
    generation: Option<&str>,
    range: Option<&GetRange>,
    unless: Option<&Unless>,
    expected: Option<u64>,
) -> Result<Outgoing, String> {
    let query = QueryString::new().and("alt", "media").and_some("generation", generation);
    let mut outgoing = unless_known(Method::GET, object_path(id), query, unless)?;
    // Without this header GCS decompresses objects with `Content-Encoding: gzip`, and then ignores the range.
    outgoing.headers.insert("accept-encoding", http::HeaderValue::from_static("gzip"));
    if let Some(range) = range {
        outgoing.headers.insert("range", range.header());
    }
    outgoing.expected = expected;
    Ok(outgoing)
}

/// Reads the object's metadata from a media answer's headers. For objects that aren't public, `Cache-Control` describes
/// the answer and not the object (<https://cloud.google.com/storage/docs/json_api/v1/parameters#cachecontrol>).
/// Google's service leaves out user metadata. So Laneway ignores both, even if another server sends them.
fn described(id: &ObjectId, head: &ResponseHead) -> ObjectMeta {
    ObjectMeta { cache_control: None, metadata: None, ..from_head(id, head) }
}

impl Gcs {
    pub(crate) async fn download(&self, get: &Get<'_>, key_use: KeyUse) -> Result<Got, Error> {
        let exchange = Exchange::object(self, Operation::Get, get.id);
        // A media request can't carry a condition on time, so a request for the metadata checks the time first.
        if let Some(unless @ Unless::ModifiedSince(_)) = get.unless {
            let meta = self.head_as(get.id, get.version, None, key_use).await;
            if unless.is_met(&meta.map_err(|e| e.within(Operation::Get))?) {
                return Err(exchange.error(ErrorKind::NotModified, NOT_MODIFIED));
            }
        }
        let generation =
            asked_generation(get.id, get.version).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let outgoing = request(get.id, generation.as_deref(), get.range.as_ref(), get.unless, get.expected)
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?
            .key_use(key_use);
        let delivery = Delivery::new(described, get);
        let sent =
            exchange.carry(&outgoing, Some(&delivery)).await.map_err(|e| gone(e, get.id, get.version))?;
        exchange.got(sent, &delivery)
    }
}

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
fn asked_generation(id: &ObjectId, pinned: Option<&Version>) -> Result<Option<String>, String> {
    match &id.version {
        Some(version) => Ok(Some(version.to_string())),
        None => generation(pinned),
    }
}

/// Returns a request on the condition that the object isn't in the state that the reader already has. The JSON API has
/// no condition on time, so the caller must compare the time in the answer.
fn unless_known(
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

fn head_request(
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
pub(super) fn read_resource(
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
        let outgoing = head_request(id, generation.as_deref(), unless, "timeCreated")
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?
            .key_use(key_use);
        let sent = exchange.send(&outgoing).await.map_err(|e| gone(e, id, version))?;
        read_resource(&exchange, &sent, id, 0)
    }

    /// Returns the metadata of a copy's source, and its custom time. A rewrite that sets any metadata drops the custom
    /// time, so the request must repeat it.
    pub(super) async fn head_of_source(&self, id: &ObjectId) -> Result<(ObjectMeta, Option<String>), Error> {
        let exchange = Exchange::object(self, Operation::Head, id);
        let outgoing = head_request(id, id.version.as_deref(), None, "customTime")
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?
            .key_use(KeyUse::Source);
        let sent = exchange.send(&outgoing).await?;
        let meta = read_resource(&exchange, &sent, id, 0)?;
        let UncopiedFields { custom_time } = serde_json::from_slice(&sent.response.body).unwrap_or_default();
        Ok((meta, custom_time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_range_asks_for_the_stored_bytes() {
        let request = request(&ObjectId::new("b", "k"), Some("5"), Some(&(10..20).into()), None, Some(10));
        let request = request.expect("a request");
        assert_eq!(request.target, "/storage/v1/b/b/o/k?alt=media&generation=5");
        assert_eq!(request.headers.get("range").and_then(|v| v.to_str().ok()), Some("bytes=10-19"));
        assert_eq!(request.headers.get("accept-encoding").and_then(|v| v.to_str().ok()), Some("gzip"));
        assert_eq!(request.expected, Some(10));
    }

    #[test]
    fn the_whole_is_asked_for_without_a_range() {
        let request = request(&ObjectId::new("b", "k"), None, None, None, None).expect("a request");
        assert_eq!(request.target, "/storage/v1/b/b/o/k?alt=media");
        assert!(!request.headers.contains_key("range"));
    }

    #[test]
    fn a_version_is_asked_for_whatever_it_is_pinned_to() {
        let id = ObjectId::new("b", "k").at_version("12");
        let pinned = Version::Generation(12);
        assert_eq!(asked_generation(&id, Some(&pinned)), Ok(Some("12".to_owned())));
        assert_eq!(asked_generation(&ObjectId::new("b", "k"), None), Ok(None));
    }

    #[test]
    fn a_key_is_one_segment_of_the_path() {
        let request = head_request(&ObjectId::new("b", "/a//b c/"), Some("17"), None, "timeCreated")
            .expect("a request");
        assert!(
            request.target.starts_with("/storage/v1/b/b/o/%2Fa%2F%2Fb%20c%2F?generation=17&fields=bucket%2C")
        );
        assert_eq!(request.method, Method::GET);
    }
}
