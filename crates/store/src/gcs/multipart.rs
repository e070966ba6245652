//! Parallel multipart uploads, which only the XML API has.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Method};
use laneway_lanes::Body;
use serde::Deserialize;

use super::Gcs;
use super::acl;
use super::put::{NO_TAGS, OCTETS};
use super::resource::{from_head, hashes};
use crate::checksum::encode_crc32c;
use crate::encode::{Query, component, path, xml_text};
use crate::encryption::Keyed;
use crate::exchange::{Dialect as _, Exchange, Outgoing, Sent, Unsendable};
use crate::reconcile::{compared, landed};
use crate::{
    Checksums, Condition, Error, ErrorKind, Multipart, ObjectId, ObjectMeta, Operation, Part, PartChecksums,
    PutOptions, StoredPart, stored_parts, xml,
};

/// Completing an upload of many parts can take minutes in which nothing is sent.
const COMPLETE_NO_PROGRESS_MAX: Duration = Duration::from_secs(600);

/// A request of the XML API. Its paths look like S3's, which servers that speak both dialects tell apart by the
/// headers; Google's clients name themselves in this one. A customer's key comes with each request of an upload.
fn xml_request(method: Method, id: &ObjectId, query: &Query) -> Outgoing {
    let mut outgoing = Outgoing::new(method, format!("/{}/{}{query}", component(&id.bucket), path(&id.key)))
        .keyed(Keyed::Object);
    outgoing.headers.insert(
        HeaderName::from_static("x-goog-api-client"),
        HeaderValue::from_static(concat!("laneway/", env!("CARGO_PKG_VERSION"))),
    );
    outgoing
}

fn begin_request(id: &ObjectId, options: &PutOptions, kms_key: Option<&str>) -> Result<Outgoing, Unsendable> {
    let mut outgoing = xml_request(Method::POST, id, &Query::new().and("uploads", ""))
        .header("content-type", options.content_type.as_deref().unwrap_or(OCTETS))?
        .header_some("content-encoding", options.content_encoding.as_deref())?
        .header_some("cache-control", options.cache_control.as_deref())?
        .header_some("content-disposition", options.content_disposition.as_deref())?
        .header_some("content-language", options.content_language.as_deref())?
        .header_some("x-goog-storage-class", options.storage_class.as_deref())?
        .header_some("x-goog-encryption-kms-key-name", options.kms_key.as_deref().or(kms_key))?
        .header_some("x-goog-acl", options.acl.as_deref().map(acl::in_xml).as_deref())?;
    for (name, value) in &options.metadata {
        let unsendable = || Unsendable(format!("metadata {name:?}"));
        let header = HeaderName::try_from(format!("x-goog-meta-{name}")).map_err(|_| unsendable())?;
        outgoing.headers.insert(header, HeaderValue::from_str(value).map_err(|_| unsendable())?);
    }
    Ok(outgoing)
}

fn part_request(upload: &Multipart, number: u32, body: Body, crc32c: u32) -> Result<Outgoing, Unsendable> {
    let query = Query::new().and("partNumber", &number.to_string()).and("uploadId", &upload.upload_id);
    let mut outgoing = xml_request(Method::PUT, &upload.id, &query)
        .header("x-goog-hash", &format!("crc32c={}", encode_crc32c(crc32c)))?;
    outgoing.body = body;
    Ok(outgoing)
}

fn complete_request(upload: &Multipart, parts: &[Part]) -> Option<Outgoing> {
    let query = Query::new().and("uploadId", &upload.upload_id);
    let mut outgoing = xml_request(Method::POST, &upload.id, &query);
    outgoing.body = Body::from(Bytes::from(parts_document(parts)?));
    outgoing.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    outgoing.no_progress = Some(COMPLETE_NO_PROGRESS_MAX);
    outgoing.doubtful = true;
    Some(outgoing)
}

/// `<CompleteMultipartUpload>` with the parts in the order of their numbers. `None` for a tag that no XML can hold.
fn parts_document(parts: &[Part]) -> Option<String> {
    let mut parts: Vec<&Part> = parts.iter().collect();
    parts.sort_by_key(|part| part.number);
    let mut xml = String::from("<CompleteMultipartUpload>");
    for part in parts {
        let etag = xml_text(&part.etag)?;
        xml.push_str(&format!("<Part><PartNumber>{}</PartNumber><ETag>{etag}</ETag></Part>", part.number));
    }
    xml.push_str("</CompleteMultipartUpload>");
    Some(xml)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Initiated {
    upload_id: String,
}

fn may_not(exchange: &Exchange<'_, Gcs>) -> Error {
    exchange.error(ErrorKind::Unsupported, "the credentials allow no multipart uploads to this bucket")
}

impl Gcs {
    pub(crate) async fn begin(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
        let exchange = Exchange::object(self, Operation::Begin, id);
        if !options.condition.is_none() {
            let message = "GCS multipart uploads take no preconditions; a resumable upload does";
            return Err(exchange.error(ErrorKind::Unsupported, message));
        }
        if !options.tags.is_empty() {
            return Err(exchange.error(ErrorKind::Invalid, NO_TAGS));
        }
        if options.is_protected() {
            let message = "GCS multipart uploads take no retention; a resumable upload does";
            return Err(exchange.error(ErrorKind::Unsupported, message));
        }
        if !self.supports_multipart() {
            return Err(self.no_multipart(&exchange));
        }
        if self.multipart_refused.has(&id.bucket) {
            return Err(may_not(&exchange));
        }
        let outgoing =
            begin_request(id, options, self.kms_key.as_deref()).map_err(|e| exchange.unsendable(&e))?;
        let sent = match exchange.send(&outgoing).await {
            Ok(sent) => sent,
            // GCS says no in XML; a server that knows no XML uploads says it in its own way.
            Err(error) if error.status().is_some_and(|s| matches!(s.as_u16(), 400 | 404 | 405 | 501)) => {
                let speaks_xml =
                    error.code().is_some_and(|code| code.starts_with(|c: char| c.is_ascii_uppercase()));
                if speaks_xml && !error.is_unsupported() {
                    return Err(error);
                }
                self.lacks_multipart.store(true, Ordering::Release);
                return Err(self.no_multipart(&exchange));
            }
            // Roles made before there were multipart uploads allow objects to be made, and these not
            // (<https://cloud.google.com/storage/docs/access-control/iam-permissions#multipart_upload_permissions>).
            Err(error) if error.is_permission() => {
                tracing::debug!(%error, "large objects go through resumable sessions");
                self.multipart_refused.add(&id.bucket);
                return Err(may_not(&exchange));
            }
            Err(error) => return Err(error),
        };
        match xml::read::<Initiated>(&sent.response.body) {
            Ok(answer) if !answer.upload_id.is_empty() => Ok(Multipart {
                id: id.clone(),
                upload_id: answer.upload_id,
                checksums: PartChecksums::FullObject,
            }),
            _ => {
                self.lacks_multipart.store(true, Ordering::Release);
                Err(self.no_multipart(&exchange))
            }
        }
    }

    fn no_multipart(&self, exchange: &Exchange<'_, Self>) -> Error {
        let server = &self.endpoint.origin;
        exchange.error(ErrorKind::Unsupported, format!("{server} knows no XML multipart uploads"))
    }

    pub(crate) async fn part(
        &self,
        upload: &Multipart,
        number: u32,
        body: Body,
        crc32c: u32,
    ) -> Result<Part, Error> {
        let exchange = Exchange::object(self, Operation::Part, &upload.id);
        let size = body.len();
        let outgoing = part_request(upload, number, body, crc32c).map_err(|e| exchange.unsendable(&e))?;
        let sent = exchange.send(&outgoing).await?;
        if hashes(&sent.response.head).crc32c.is_some_and(|stored| stored != crc32c) {
            let message =
                format!("the store's crc32c of part {number} differs from that of the bytes that were sent");
            return Err(exchange.error(ErrorKind::Integrity, message).after(sent.attempts, sent.elapsed));
        }
        let etag = sent.response.head.header("etag").map(str::to_owned);
        let etag = etag.ok_or_else(|| exchange.nonsense(&sent, "the answer to a part has no ETag"))?;
        Ok(Part { number, etag, size, crc32c: Some(crc32c), md5: None })
    }

    pub(crate) async fn list_parts(&self, upload: &Multipart) -> Result<Vec<StoredPart>, Error> {
        let exchange = &Exchange::object(self, Operation::ListParts, &upload.id);
        let ask = |query| async move {
            exchange.send(&xml_request(Method::GET, &upload.id, &Query::of(query))).await
        };
        stored_parts::all(self, upload, ask).await
    }

    pub(crate) async fn complete(
        &self,
        upload: &Multipart,
        parts: &[Part],
        whole: &Checksums,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::Complete, &upload.id);
        if !condition.is_none() {
            let message = "GCS multipart uploads take no preconditions; a resumable upload does";
            return Err(exchange.error(ErrorKind::Unsupported, message));
        }
        let size = parts.iter().map(|part| part.size).sum();
        let outgoing = complete_request(upload, parts)
            .ok_or_else(|| exchange.error(ErrorKind::Invalid, "a part's ETag holds control characters"))?;
        let meta = match exchange.send(&outgoing).await {
            Ok(sent) => self.completed(&upload.id, size, &sent).await?,
            Err(error) => landed(error, Box::pin(self.head(&upload.id, None)), size, whole).await?,
        };
        compared(&exchange, meta, size, whole)
    }

    /// The answer's own headers where they hold generation and checksum, else the object's resource.
    async fn completed(&self, id: &ObjectId, size: u64, sent: &Sent) -> Result<ObjectMeta, Error> {
        let mut meta = from_head(id, &sent.response.head);
        if meta.version.is_none() || meta.checksums.crc32c.is_none() {
            match self.head(id, None).await {
                // Who may write an object may not always read it.
                Err(error) if error.is_permission() => {}
                described => return described,
            }
        }
        // The headers that describe a body describe the answer's XML here.
        meta.size = size;
        meta.content_type = None;
        meta.etag = None;
        meta.updated = None;
        Ok(meta)
    }

    pub(crate) async fn abort(&self, upload: &Multipart) -> Result<(), Error> {
        let exchange = Exchange::object(self, Operation::Abort, &upload.id);
        let query = Query::new().and("uploadId", &upload.upload_id);
        match exchange.send(&xml_request(Method::DELETE, &upload.id, &query)).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() && error.is_uncertain() => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upload() -> Multipart {
        Multipart {
            id: ObjectId::new("b", "a//b c"),
            upload_id: "u/1".into(),
            checksums: PartChecksums::FullObject,
        }
    }

    #[test]
    fn an_upload_begins_with_everything_that_the_object_will_be() {
        let mut options = PutOptions { content_type: Some("text/plain".into()), ..PutOptions::default() };
        options.metadata.insert("k".into(), "v".into());
        let request = begin_request(&upload().id, &options, Some("p/key")).expect("a request");
        assert_eq!(request.target, "/b/a//b%20c?uploads=");
        assert_eq!(request.headers["x-goog-meta-k"], "v");
        assert_eq!(request.headers["x-goog-encryption-kms-key-name"], "p/key");
    }

    #[test]
    fn metadata_that_no_header_can_carry_is_refused() {
        let mut options = PutOptions::default();
        options.metadata.insert("k".into(), "a\nb".into());
        assert!(begin_request(&upload().id, &options, None).is_err());
        options.metadata.clear();
        options.metadata.insert("k k".into(), "v".into());
        assert!(begin_request(&upload().id, &options, None).is_err());
    }

    #[test]
    fn a_part_carries_its_checksum() {
        let request = part_request(&upload(), 3, Body::from("x"), 0xe306_9283).expect("a request");
        assert_eq!(request.target, "/b/a//b%20c?partNumber=3&uploadId=u%2F1");
        assert_eq!(request.headers["x-goog-hash"], "crc32c=4waSgw==");
    }

    #[test]
    fn parts_are_completed_in_the_order_of_their_numbers() {
        let part =
            |number| Part { number, etag: format!("\"e{number}\""), size: 1, crc32c: Some(0), md5: None };
        assert_eq!(
            parts_document(&[part(2), part(1)]).as_deref(),
            Some(
                "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>&quot;e1&quot;</ETag></Part>\
                 <Part><PartNumber>2</PartNumber><ETag>&quot;e2&quot;</ETag></Part></CompleteMultipartUpload>"
            )
        );
    }
}
