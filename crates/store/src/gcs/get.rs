//! `get`: downloads an object's bytes as they are stored, without decompressing them.

use http::Method;
use laneway_lanes::ResponseHead;

use super::Gcs;
use super::head::{asked_generation, gone, object_path, unless_known};
use super::resource::from_head;
use crate::delivery::Delivery;
use crate::encode::QueryString;
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, Outgoing};
use crate::unless::NOT_MODIFIED;
use crate::{Error, ErrorKind, Get, GetRange, Got, ObjectId, ObjectMeta, Operation, Unless};

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
}
