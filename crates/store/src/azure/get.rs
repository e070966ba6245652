//! `head` and `get`: reads objects and their metadata.

use std::sync::atomic::Ordering;

use http::{HeaderValue, Method};

use super::headers::{blob_target, meta, on_read, range_md5, structured_len};
use super::{Azure, STRUCTURED_BODY};
use crate::delivery::{Delivery, is_no_object, structured_body};
use crate::encode::QueryString;
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, Outgoing};
use crate::{Error, ErrorKind, Get, GetRange, Got, ObjectId, ObjectMeta, Operation, Unless, Version};

/// The number of attempts to read the end of a blob that another writer replaces meanwhile.
const REPLACED_MAX: u32 = 3;

/// The header that asks for the MD5 of a range, and the largest such range.
const RANGE_MD5: &str = "x-ms-range-get-content-md5";
const MD5_RANGE_MAX: u64 = 4 << 20;

/// Returns the request for a blob's properties. It carries no `If-Match`: the service answers 404 to a missing blob and
/// emulators answer 412, so Laneway compares the ETag itself.
fn head_request(id: &ObjectId, unless: Option<&Unless>) -> Result<Outgoing, String> {
    on_read(Outgoing::new(Method::HEAD, blob_target(id, QueryString::new())), None, unless)
}

/// Returns true if the service answers with the MD5 of this range on request. It refuses to do so for longer ranges.
fn may_have_md5(range: Option<&GetRange>) -> bool {
    matches!(range, Some(GetRange::Bounded(range)) if range.end - range.start <= MD5_RANGE_MAX)
}

/// Returns the request for a blob's bytes with checksums: in a structured body, or the MD5 of the range.
fn get_request(
    id: &ObjectId,
    version: Option<&Version>,
    range: Option<&GetRange>,
    unless: Option<&Unless>,
    expected: Option<u64>,
    by_md5: bool,
) -> Result<Outgoing, String> {
    let mut outgoing = Outgoing::new(Method::GET, blob_target(id, QueryString::new()));
    outgoing.expected = expected;
    let (name, value) = match by_md5 {
        true => (RANGE_MD5, "true"),
        false => (STRUCTURED_BODY, structured_body::FORMAT),
    };
    outgoing.headers.insert(name, HeaderValue::from_static(value));
    if let Some(range) = range {
        outgoing.headers.insert("range", range.header());
    }
    on_read(outgoing, version, unless)
}

impl Azure {
    /// Returns an object's metadata, read with the key of this store's own objects.
    pub(super) async fn head_of(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
    ) -> Result<ObjectMeta, Error> {
        self.head_as(id, version, None, KeyUse::Object).await
    }

    pub(super) async fn head_as(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        unless: Option<&Unless>,
        key_use: KeyUse,
    ) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::Head, id);
        let outgoing =
            head_request(id, unless).map_err(|e| exchange.error(ErrorKind::Invalid, e))?.key_use(key_use);
        let sent = exchange.send(&outgoing).await?;
        if sent.response.head.content_length().is_none() {
            return Err(exchange.nonsense(&sent, "the answer has no Content-Length"));
        }
        let meta = meta(id, &sent.response.head);
        if is_no_object(&meta) {
            let message = "the answer has none of the headers that describe an object";
            return Err(exchange.nonsense(&sent, message));
        }
        match version {
            Some(wanted) if meta.version.as_ref() != Some(wanted) => {
                Err(exchange.error(ErrorKind::Precondition, format!("{wanted} is gone")))
            }
            _ => Ok(meta),
        }
    }

    pub(super) async fn download(&self, get: &Get<'_>, key_use: KeyUse) -> Result<Got, Error> {
        match get.range {
            Some(GetRange::Last(len)) => self.download_end(get, len, key_use).await,
            _ => self.download_range(get, key_use).await,
        }
    }

    async fn download_range(&self, get: &Get<'_>, key_use: KeyUse) -> Result<Got, Error> {
        let exchange = Exchange::object(self, Operation::Get, get.id);
        let delivery = Delivery::new(meta, get);
        let Get { id, version, unless, expected, .. } = *get;
        let lacks_structured = self.lacks_structured_bodies.load(Ordering::Relaxed);
        let by_md5 = lacks_structured && may_have_md5(get.range.as_ref());
        let delivery = match by_md5 {
            true => delivery.range_md5(range_md5),
            false => delivery.structured(structured_len),
        };
        let outgoing = get_request(id, version, get.range.as_ref(), unless, expected, by_md5)
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?
            .key_use(key_use);
        let sent = exchange.carry(&outgoing, Some(&delivery)).await?;
        if !by_md5 {
            let is_plain = sent.response.head.header(STRUCTURED_BODY).is_none();
            self.lacks_structured_bodies.store(is_plain, Ordering::Relaxed);
        }
        exchange.got(sent, &delivery)
    }

    /// Downloads the last bytes of an object. The service has no such ranges, and Azurite answers them with the first
    /// bytes. So Laneway first reads the object's size.
    async fn download_end(&self, get: &Get<'_>, len: u64, key_use: KeyUse) -> Result<Got, Error> {
        let mut attempts = 0;
        loop {
            let found = self.head_as(get.id, get.version, get.unless, key_use).await?;
            if found.size == 0 {
                let message = "the object is empty";
                return Err(
                    Exchange::object(self, Operation::Get, get.id).error(ErrorKind::InvalidRange, message)
                );
            }
            let range = found.size.saturating_sub(len)..found.size;
            let version = get.version.or(found.version.as_ref());
            let bounded = Get { range: Some(range.into()), version, ..get.clone() };
            attempts += 1;
            match self.download_range(&bounded, key_use).await {
                Err(error) if error.is_precondition() && get.version.is_none() && attempts < REPLACED_MAX => {
                }
                got => return got,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_sends_no_condition_on_its_state() {
        let head = head_request(&ObjectId::new("abc", "k"), None).expect("a request");
        assert!(head.headers.is_empty());
    }

    #[test]
    fn a_get_is_pinned_to_its_version_and_range() {
        let (id, version) = (ObjectId::new("abc", "k"), Version::ETag("0x1".to_owned()));
        let range = GetRange::Bounded(2..5);
        let get = get_request(&id, Some(&version), Some(&range), None, Some(3), false).expect("a request");
        assert_eq!(
            (&get.headers["if-match"], &get.headers["range"]),
            (&http::HeaderValue::from_static("\"0x1\""), &http::HeaderValue::from_static("bytes=2-4"))
        );
    }
}
