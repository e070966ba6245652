//! `put`: Put Blob writes an object with one request (<https://learn.microsoft.com/rest/api/storageservices/put-blob>).

use http::Method;
use laneway_lanes::{Body, ResponseHead};

use super::Azure;
use super::blocks::BlockDigest;
use super::headers::{blob_target, check_options, date, describe, on_write, unquoted};
use crate::checksum::{decode_md5, encode_md5};
use crate::encode::QueryString;
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, Outgoing};
use crate::reconcile::{compared, landed};
use crate::{Checksums, Error, ErrorKind, ObjectId, ObjectMeta, Operation, PutOptions, Version};

fn request(
    id: &ObjectId,
    body: Body,
    md5: Option<[u8; 16]>,
    options: &PutOptions,
) -> Result<Outgoing, String> {
    check_options(options)?;
    let outgoing = Outgoing::new(Method::PUT, blob_target(id, QueryString::new())).key_use(KeyUse::New);
    let outgoing = Outgoing { body, ..outgoing }
        .header("x-ms-blob-type", "BlockBlob")
        .and_then(|outgoing| outgoing.header_some("content-md5", md5.map(encode_md5).as_deref()))
        .and_then(|outgoing| describe(outgoing, options))
        .map_err(|e| e.to_string())?;
    on_write(outgoing, &options.condition)
}

/// Returns the metadata of a written blob, as far as the answer contains it.
pub(super) fn written(id: &ObjectId, head: &ResponseHead, size: u64, options: &PutOptions) -> ObjectMeta {
    let mut meta = ObjectMeta::new(ObjectId::new(&id.bucket, &id.key), size);
    meta.etag = head.header("etag").map(unquoted);
    meta.version = meta.etag.clone().map(Version::ETag);
    meta.version_id = head.header("x-ms-version-id").map(str::to_owned);
    meta.updated = date(head.header("last-modified"));
    meta.content_type = options.content_type.clone();
    meta
}

impl Azure {
    /// Returns the options of a new object, with the encryption scope of the settings unless the caller chose another.
    pub(super) fn with_scope(&self, options: &PutOptions) -> PutOptions {
        let kms_key = options.kms_key.clone().or_else(|| self.kms_key.clone());
        PutOptions { kms_key, ..options.clone() }
    }

    pub(super) async fn upload(
        &self,
        id: &ObjectId,
        body: Body,
        sums: &Checksums,
        options: &PutOptions,
    ) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::Put, id);
        let size = body.len();
        // The service compares the MD5 with the bytes and keeps it, so that downloads can be verified. It has no CRC32C, so
        // Laneway compares that of the caller while it computes the MD5.
        let Some(digest) = BlockDigest::of(&body, true).await else {
            let message = "the bytes can't be read to compute their checksum";
            return Err(exchange.error(ErrorKind::Integrity, message));
        };
        if sums.crc32c.is_some_and(|crc32c| crc32c != digest.crc32c) {
            let message = "the bytes changed before they were sent";
            return Err(exchange.error(ErrorKind::Integrity, message));
        }
        let md5 = sums.md5.or(digest.md5);
        let sums = &Checksums { md5, ..sums.clone() };
        let options = &self.with_scope(options);
        let outgoing = request(id, body, md5, options).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let meta = match exchange.send(&outgoing).await {
            // A success without an ETag doesn't come from the service, but from a proxy.
            Ok(sent) if sent.response.head.header("etag").is_none() => {
                let error = exchange.nonsense(&sent, "the answer to the PUT has no ETag");
                let head = Box::pin(self.head_of(id, None));
                crate::reconcile::unread(error, head, size, sums).await?
            }
            Ok(sent) => {
                let head = &sent.response.head;
                let mut meta = written(id, head, size, options);
                meta.checksums.md5 = head.header("content-md5").and_then(decode_md5);
                meta
            }
            Err(error) => landed(error, Box::pin(self.head_of(id, None)), size, sums).await?,
        };
        compared(&exchange, meta, size, sums)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::Condition;

    #[test]
    fn a_put_carries_its_md5_its_type_and_its_condition() {
        let options = PutOptions::default()
            .content_type("text/plain")
            .storage_class("Cool")
            .metadata("mtime", "1")
            .tag("a b", "c&d")
            .condition(Condition::Absent);
        let body = Body::from(Bytes::from_static(b"hello"));
        let id = ObjectId::new("abc", "k");
        let put = request(&id, body, Some([0; 16]), &options).expect("a request");
        assert_eq!((put.method.as_str(), put.target.as_str()), ("PUT", "/abc/k"));
        for (name, value) in [
            ("x-ms-blob-type", "BlockBlob"),
            ("content-md5", "AAAAAAAAAAAAAAAAAAAAAA=="),
            ("x-ms-blob-content-type", "text/plain"),
            ("x-ms-access-tier", "Cool"),
            ("x-ms-meta-mtime", "1"),
            ("x-ms-tags", "a%20b=c%26d"),
            ("if-none-match", "*"),
        ] {
            assert_eq!(put.headers[name], value, "{name}");
        }
    }

    #[test]
    fn options_that_azure_lacks_are_refused_by_name() {
        let put = |options| request(&ObjectId::new("abc", "k"), Body::empty(), None, &options);
        let refused = put(PutOptions::default().acl("private")).expect_err("refused");
        assert!(refused.contains("access control lists"), "{refused}");
        assert!(put(PutOptions::default().legal_hold(true)).is_err());
    }
}
