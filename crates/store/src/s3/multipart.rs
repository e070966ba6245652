//! Multipart uploads. The server keeps one CRC32C of the whole where it can (`FULL_OBJECT`), else that of the parts'
//! CRC32Cs (`COMPOSITE`), else none; what it can is seen once and remembered.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, header};
use laneway_lanes::{Body, Head};
use serde::Deserialize;

use super::S3;
use super::address::is_directory;
use super::checksum_support::demands_checksum;
use super::conditions::{on_write, unquoted};
use super::head::object_target;
use super::headers::{checked, checksums, describe, md5};
use super::write_conditions::Write;
use crate::checksum::{
    composite, decode_composite, decode_crc32c, decode_crc64, encode_crc32c, encode_md5, md5_of_part,
};
use crate::encode::{Query, xml_text};
use crate::encryption::Keyed;
use crate::exchange::{Exchange, Outgoing, Unsendable};
use crate::reconcile::{compared, landed, unread};
use crate::{
    Checksums, Condition, Error, ErrorKind, Multipart, ObjectId, ObjectMeta, Operation, Part, PartChecksums,
    PutOptions, StoredPart, Version, stored_parts, xml,
};

/// S3 may take minutes to put many parts together.
const COMPLETE_NO_PROGRESS_MAX: Duration = Duration::from_secs(600);

fn begin_request(
    id: &ObjectId,
    options: &PutOptions,
    kms_key: Option<&str>,
    wish: PartChecksums,
) -> Result<Outgoing, Unsendable> {
    let query = Query::new().and("uploads", "");
    let outgoing =
        describe(Outgoing::new(Method::POST, object_target(id, &query)), options, kms_key)?.keyed(Keyed::New);
    match wish {
        PartChecksums::FullObject => outgoing
            .header("x-amz-checksum-algorithm", "CRC32C")?
            .header("x-amz-checksum-type", "FULL_OBJECT"),
        PartChecksums::Composite => outgoing.header("x-amz-checksum-algorithm", "CRC32C"),
        PartChecksums::None => Ok(outgoing),
    }
}

/// What the server took of the wish: it repeats what it understood.
fn granted(head: &Head) -> PartChecksums {
    let is =
        |name: &str, value: &str| head.header(name).is_some_and(|found| found.eq_ignore_ascii_case(value));
    if !is("x-amz-checksum-algorithm", "CRC32C") {
        PartChecksums::None
    } else if is("x-amz-checksum-type", "FULL_OBJECT") {
        PartChecksums::FullObject
    } else {
        PartChecksums::Composite
    }
}

fn part_request(upload: &Multipart, number: u32, body: Body, crc32c: u32) -> Result<Outgoing, Unsendable> {
    let query = Query::new().and("partNumber", &number.to_string()).and("uploadId", &upload.upload_id);
    let mut outgoing = Outgoing::new(Method::PUT, object_target(&upload.id, &query)).keyed(Keyed::Object);
    outgoing.body = body;
    if upload.checksums == PartChecksums::None {
        return Ok(outgoing);
    }
    checked(outgoing, crc32c)
}

fn complete_request(
    upload: &Multipart,
    parts: &[Part],
    whole: &Checksums,
    condition: &Condition,
) -> Result<Outgoing, String> {
    let document = parts_document(upload, parts).ok_or("a part's ETag holds control characters")?;
    let query = Query::new().and("uploadId", &upload.upload_id);
    // An object that was begun with checksums is completed with its key too.
    let mut outgoing = Outgoing::new(Method::POST, object_target(&upload.id, &query)).keyed(Keyed::Object);
    outgoing.headers.insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/xml"));
    outgoing.body = Body::from(Bytes::from(document));
    outgoing.no_progress = Some(COMPLETE_NO_PROGRESS_MAX);
    outgoing.doubtful = true;
    outgoing.conflict_is_final = true;
    if upload.checksums == PartChecksums::FullObject
        && let Some(crc32c) = whole.crc32c
    {
        outgoing = outgoing
            .header("x-amz-checksum-type", "FULL_OBJECT")
            .and_then(|o| o.header("x-amz-checksum-crc32c", &encode_crc32c(crc32c)))
            .map_err(|e| e.to_string())?;
    }
    on_write(outgoing, condition)
}

fn parts_document(upload: &Multipart, parts: &[Part]) -> Option<String> {
    let mut parts: Vec<&Part> = parts.iter().collect();
    parts.sort_by_key(|part| part.number);
    let mut xml = String::from("<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for part in parts {
        let etag = xml_text(&part.etag)?;
        xml.push_str(&format!("<Part><PartNumber>{}</PartNumber><ETag>{etag}</ETag>", part.number));
        if let Some(crc32c) = part.crc32c.filter(|_| upload.checksums != PartChecksums::None) {
            xml.push_str(&format!("<ChecksumCRC32C>{}</ChecksumCRC32C>", encode_crc32c(crc32c)));
        }
        xml.push_str("</Part>");
    }
    xml.push_str("</CompleteMultipartUpload>");
    Some(xml)
}

/// What the store must hold afterwards, as far as either side can know it.
fn expected(upload: &Multipart, parts: &[Part], whole: &Checksums) -> Checksums {
    let mut sums = whole.clone();
    if upload.checksums == PartChecksums::Composite {
        let mut parts: Vec<&Part> = parts.iter().collect();
        parts.sort_by_key(|part| part.number);
        let crcs: Option<Vec<u32>> = parts.iter().map(|part| part.crc32c).collect();
        sums.parts = crcs.map(|crcs| composite(crcs.into_iter()));
    }
    sums
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Initiated {
    upload_id: String,
}

#[derive(Deserialize)]
struct Completed {
    #[serde(rename = "ETag")]
    etag: Option<String>,
    #[serde(rename = "ChecksumCRC32C")]
    crc32c: Option<String>,
    #[serde(rename = "ChecksumCRC64NVME")]
    crc64nvme: Option<String>,
    #[serde(rename = "ChecksumType")]
    kind: Option<String>,
}

impl Completed {
    fn checksums(&self) -> Checksums {
        let mut sums = Checksums::default();
        let composite = self.kind.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case("COMPOSITE"));
        match self.crc32c.as_deref() {
            Some(value) if composite || value.contains('-') => sums.parts = decode_composite(value),
            Some(value) => sums.crc32c = decode_crc32c(value),
            None => {}
        }
        sums.crc64nvme = self.crc64nvme.as_deref().and_then(decode_crc64);
        sums
    }
}

impl S3 {
    pub(crate) async fn begin(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
        let exchange = Exchange::object(self, Operation::Begin, id);
        let mut climb = self.checksums.parts.climb();
        loop {
            let outgoing = begin_request(id, options, self.kms_key.as_deref(), climb.rung())
                .map_err(|e| exchange.unsendable(&e))?;
            let sent = match exchange.send(&outgoing).await {
                Ok(sent) => sent,
                Err(error) if climb.descend(&error) => continue,
                Err(error) => return Err(error),
            };
            climb.settle();
            let answer: Initiated = xml::read(&sent.response.body)
                .map_err(|e| exchange.nonsense(&sent, format!("the answer names no upload: {e}")))?;
            let checksums = granted(&sent.response.head);
            return Ok(Multipart { id: id.clone(), upload_id: answer.upload_id, checksums });
        }
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
        let outgoing =
            part_request(upload, number, body.clone(), crc32c).map_err(|e| exchange.unsendable(&e))?;
        let sent = match exchange.send(&outgoing).await {
            // Of an upload that was begun without checksums, an object lock demands at least that of each part.
            Err(error) if upload.checksums == PartChecksums::None && demands_checksum(&error) => {
                let Some(md5) = md5_of_part(body.clone()).await else { return Err(error) };
                let outgoing = outgoing.header("content-md5", &encode_md5(md5));
                exchange.send(&outgoing.map_err(|e| exchange.unsendable(&e))?).await?
            }
            sent => sent?,
        };
        let damaged = |name: &str| {
            let message =
                format!("the store's {name} of part {number} differs from that of the bytes that were sent");
            exchange.error(ErrorKind::Integrity, message).after(sent.attempts, sent.elapsed)
        };
        if checksums(&sent.response.head).crc32c.is_some_and(|stored| stored != crc32c) {
            return Err(damaged("crc32c"));
        }
        let md5 = match self.md5_of_etag(upload, &sent.response.head) {
            Some(stored) => md5_of_part(body).await.map(|computed| (computed, stored)),
            None => None,
        };
        if md5.is_some_and(|(computed, stored)| computed != stored) {
            return Err(damaged("md5"));
        }
        let etag = sent.response.head.header("etag").map(str::to_owned);
        let etag = etag.ok_or_else(|| exchange.nonsense(&sent, "the answer to a part has no ETag"))?;
        Ok(Part { number, etag, size, crc32c: Some(crc32c), md5: md5.map(|(computed, _)| computed) })
    }

    /// The MD5 that a part's ETag is, where nothing cheaper is told of the part: by it alone what has arrived can be
    /// verified. Of parts that are encrypted with a key of their own, and of directory buckets, the ETag is none.
    fn md5_of_etag(&self, upload: &Multipart, head: &Head) -> Option<[u8; 16]> {
        let is_opaque = self.kms_key.is_some()
            || self.encryption.customer_key.is_some()
            || is_directory(&upload.id.bucket)
            || upload.checksums != PartChecksums::None;
        md5(head).filter(|_| !is_opaque && checksums(head).is_empty())
    }

    pub(crate) async fn list_parts(&self, upload: &Multipart) -> Result<Vec<StoredPart>, Error> {
        let exchange = &Exchange::object(self, Operation::ListParts, &upload.id);
        let ask = |query| async move {
            let target = object_target(&upload.id, &Query::of(query));
            exchange.send(&Outgoing::new(Method::GET, target).keyed(Keyed::Object)).await
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
        let sent = loop {
            self.look_before(&exchange, Write::Complete, &upload.id, condition).await?;
            let sendable = self.sendable(Write::Complete, condition);
            let outgoing = complete_request(upload, parts, whole, sendable)
                .map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
            match exchange.send(&outgoing).await {
                Err(error) if !sendable.is_none() && self.conditions.learn(Write::Complete, &error) => {}
                sent => break sent,
            }
        };
        let size = parts.iter().map(|part| part.size).sum();
        let sums = expected(upload, parts, whole);
        let meta = match sent {
            Ok(sent) => match xml::read::<Completed>(&sent.response.body) {
                Ok(answer) => {
                    let mut meta = ObjectMeta::new(upload.id.clone(), size);
                    meta.etag = answer.etag.as_deref().map(unquoted);
                    meta.version = meta.etag.clone().map(Version::ETag);
                    meta.checksums = answer.checksums();
                    if meta.checksums.is_empty() {
                        meta = self.described_or(meta).await.map_err(|e| e.within(Operation::Complete))?;
                    }
                    meta
                }
                Err(e) => {
                    let error = exchange.nonsense(&sent, format!("the answer completes nothing: {e}"));
                    unread(error, Box::pin(self.head(&upload.id, None)), size, &sums).await?
                }
            },
            Err(error) => landed(error, Box::pin(self.head(&upload.id, None)), size, &sums).await?,
        };
        let written = compared(&exchange, meta, size, &sums)?;
        self.look_after(&exchange, Write::Complete, condition, written).await
    }

    pub(crate) async fn abort(&self, upload: &Multipart) -> Result<(), Error> {
        let exchange = Exchange::object(self, Operation::Abort, &upload.id);
        let query = Query::new().and("uploadId", &upload.upload_id);
        match exchange.send(&Outgoing::new(Method::DELETE, object_target(&upload.id, &query))).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() && error.is_uncertain() => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, StatusCode};

    use super::*;
    use crate::CompositeCrc32c;

    fn upload(checksums: PartChecksums) -> Multipart {
        Multipart { id: ObjectId::new("b", "k"), upload_id: "u".into(), checksums }
    }

    fn part(number: u32, crc32c: u32) -> Part {
        Part { number, etag: format!("\"e{number}\""), size: 5, crc32c: Some(crc32c), md5: None }
    }

    #[test]
    fn an_upload_wishes_for_one_checksum_of_the_whole() {
        let id = ObjectId::new("b", "k");
        let begin = |wish| begin_request(&id, &PutOptions::default(), None, wish).expect("a request").headers;
        assert_eq!(begin(PartChecksums::FullObject)["x-amz-checksum-type"], "FULL_OBJECT");
        assert_eq!(begin(PartChecksums::Composite)["x-amz-checksum-algorithm"], "CRC32C");
        assert!(begin(PartChecksums::None).is_empty());
    }

    #[test]
    fn the_server_says_what_it_understood() {
        let answer = |headers: &[(&'static str, &'static str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.insert(*name, HeaderValue::from_static(value));
            }
            granted(&Head { status: StatusCode::OK, headers: map })
        };
        let algorithm = ("x-amz-checksum-algorithm", "CRC32C");
        assert_eq!(answer(&[algorithm, ("x-amz-checksum-type", "FULL_OBJECT")]), PartChecksums::FullObject);
        assert_eq!(answer(&[algorithm]), PartChecksums::Composite);
        assert_eq!(answer(&[]), PartChecksums::None);
    }

    #[test]
    fn completing_names_parts_in_order_with_their_checksums() {
        let whole = Checksums::crc32c(0xe306_9283);
        let parts = [part(2, 1), part(1, 0xe306_9283)];
        let request =
            complete_request(&upload(PartChecksums::FullObject), &parts, &whole, &Condition::Absent);
        let request = request.expect("a request");
        assert_eq!(request.headers["x-amz-checksum-crc32c"], "4waSgw==");
        assert_eq!(request.headers["if-none-match"], "*");
        let document = parts_document(&upload(PartChecksums::FullObject), &parts).expect("a document");
        let (first, second) = (document.find("<PartNumber>1<"), document.find("<PartNumber>2<"));
        assert!(first.is_some() && first < second, "{document}");
        assert!(document.contains("<ETag>&quot;e1&quot;</ETag><ChecksumCRC32C>4waSgw==</ChecksumCRC32C>"));
        // One in 4 billion parts has a CRC32C of 0, which is none the less its checksum.
        let zero = parts_document(&upload(PartChecksums::Composite), &[part(1, 0)]).expect("a document");
        assert!(zero.contains("<ChecksumCRC32C>AAAAAA==</ChecksumCRC32C>"), "{zero}");
        let untold = [Part { crc32c: None, ..part(1, 0) }];
        let document = parts_document(&upload(PartChecksums::Composite), &untold).expect("a document");
        assert!(!document.contains("Checksum"), "{document}");
        assert_eq!(expected(&upload(PartChecksums::Composite), &untold, &Checksums::default()).parts, None);
        let plain = parts_document(&upload(PartChecksums::None), &parts).expect("a document");
        assert!(!plain.contains("Checksum"));
    }

    #[test]
    fn a_composite_is_expected_of_who_keeps_composites() {
        let parts = [part(2, 2), part(1, 1)];
        let whole = Checksums::crc32c(9);
        let sums = expected(&upload(PartChecksums::Composite), &parts, &whole);
        assert_eq!(sums.parts.map(|p| p.parts), Some(2));
        assert_eq!(sums.parts, Some(composite([1, 2].into_iter())));
        assert_eq!(expected(&upload(PartChecksums::FullObject), &parts, &whole), whole);
    }

    #[test]
    fn a_completed_uploads_checksum_is_of_the_kind_it_says() {
        let read = |body: &[u8]| xml::read::<Completed>(body).expect("an answer").checksums();
        let body = b"<CompleteMultipartUploadResult><Location>l</Location><ETag>\"e-2\"</ETag><ChecksumCRC32C>4waSgw==</ChecksumCRC32C><ChecksumType>FULL_OBJECT</ChecksumType></CompleteMultipartUploadResult>";
        assert_eq!(read(body).crc32c, Some(0xe306_9283));
        let body = b"<CompleteMultipartUploadResult><ETag>\"e-2\"</ETag><ChecksumCRC32C>4waSgw==-2</ChecksumCRC32C></CompleteMultipartUploadResult>";
        assert_eq!(read(body).parts, Some(CompositeCrc32c { value: 0xe306_9283, parts: 2 }));
    }
}
