//! `get` and `head`: downloads an object or a range of it, and reads its metadata and the sizes of its parts.

use std::sync::atomic::Ordering;

use http::{HeaderValue, Method};
use laneway_lanes::ResponseHead;
use serde::Deserialize;

use super::S3;
use super::conditions::{on_read, unquoted};
use super::headers::meta;
use crate::delivery::{Delivery, is_no_object};
use crate::encode::{QueryString, path};
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, Outgoing};
use crate::{Error, ErrorKind, Get, GetRange, Got, ObjectId, ObjectMeta, Operation, Unless, Version, xml};

fn request(
    id: &ObjectId,
    version: Option<&Version>,
    range: Option<&GetRange>,
    unless: Option<&Unless>,
    expected: Option<u64>,
    sums: bool,
) -> Result<Outgoing, String> {
    let mut outgoing = Outgoing::new(Method::GET, object_target(id, &QueryString::new()));
    outgoing.expected = expected;
    match range {
        Some(range) => {
            outgoing.headers.insert("range", range.header());
        }
        // S3 sends no checksum with a range, so don't request one.
        None if !sums => {}
        None => {
            outgoing.headers.insert("x-amz-checksum-mode", HeaderValue::from_static("ENABLED"));
        }
    }
    on_read(outgoing, version, unless)
}

impl S3 {
    pub(crate) async fn download(&self, get: &Get<'_>, key_use: KeyUse) -> Result<Got, Error> {
        let exchange = Exchange::object(self, Operation::Get, get.id);
        let delivery = Delivery::new(self.etags.reader(), get);
        let mut attempt = self.checksums.reads.attempt();
        let sent = loop {
            let Get { id, version, unless, expected, .. } = *get;
            let outgoing = request(id, version, get.range.as_ref(), unless, expected, attempt.form())
                .map_err(|e| exchange.error(ErrorKind::Invalid, e))?
                .key_use(key_use);
            match exchange.carry(&outgoing, Some(&delivery)).await {
                // A request for a range doesn't request a checksum, so there is no simpler form to try.
                Err(error) if get.range.is_none() && attempt.fall_back(&error) => {}
                sent => break sent?,
            }
        };
        if get.range.is_none() {
            attempt.settle();
        }
        exchange.got(sent, &delivery)
    }
}

/// Returns the target of an object or its version, relative to its bucket.
pub(super) fn object_target(id: &ObjectId, query: &QueryString) -> String {
    let query = query.clone().and_some("versionId", id.version.as_deref());
    format!("/{}{query}", path(&id.key))
}

fn head_request(
    id: &ObjectId,
    version: Option<&Version>,
    unless: Option<&Unless>,
    sums: bool,
) -> Result<Outgoing, String> {
    let outgoing = Outgoing::new(Method::HEAD, object_target(id, &QueryString::new()));
    let mode = sums.then_some("ENABLED");
    let outgoing = outgoing.header_some("x-amz-checksum-mode", mode).map_err(|e| e.to_string())?;
    on_read(outgoing, version, unless)
}

impl S3 {
    /// Reads the metadata of the object that was just written. If the credentials permit writing but not reading, it
    /// returns `written`.
    pub(super) async fn described_or(&self, written: ObjectMeta) -> Result<ObjectMeta, Error> {
        match self.head(&written.id, None).await {
            Err(error) if error.is_permission() => Ok(written),
            // If one of the answers has no ETag, the versions can't be compared, so assume that they are the same.
            Ok(described)
                if described.version.is_some()
                    && written.version.is_some()
                    && described.version != written.version =>
            {
                let exchange = Exchange::object(self, Operation::Head, &written.id);
                Err(exchange.error(ErrorKind::Precondition, "another writer has replaced the object"))
            }
            Ok(described) => Ok(ObjectMeta { version: described.version.or(written.version), ..described }),
            Err(error) => Err(error),
        }
    }

    /// Returns an object's metadata. The request carries the customer's key of this store's own objects, if there is
    /// one.
    pub(crate) async fn head(&self, id: &ObjectId, version: Option<&Version>) -> Result<ObjectMeta, Error> {
        self.head_as(id, version, None, KeyUse::Object).await
    }

    pub(crate) async fn head_as(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        unless: Option<&Unless>,
        key_use: KeyUse,
    ) -> Result<ObjectMeta, Error> {
        self.head_answer(id, version, unless, key_use).await.map(|(meta, _)| meta)
    }

    /// Returns an object's metadata and the answer's head. The head contains headers that [`ObjectMeta`] has no field
    /// for.
    pub(super) async fn head_answer(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        unless: Option<&Unless>,
        key_use: KeyUse,
    ) -> Result<(ObjectMeta, ResponseHead), Error> {
        let exchange = Exchange::object(self, Operation::Head, id);
        let mut attempt = self.checksums.reads.attempt();
        let sent = loop {
            let outgoing = head_request(id, version, unless, attempt.form())
                .map_err(|e| exchange.error(ErrorKind::Invalid, e))?
                .key_use(key_use);
            match exchange.send(&outgoing).await {
                Err(error) if attempt.fall_back(&error) => {}
                // If KMS encrypts the object, its checksum can only be read with permission to use the key. So try
                // again without the checksum.
                Err(error) if error.is_permission() && attempt.form() => {
                    let plain = head_request(id, version, unless, false)
                        .map_err(|e| exchange.error(ErrorKind::Invalid, e))?
                        .key_use(key_use);
                    let sent = exchange.send(&plain).await;
                    break sent.map_err(|second| if second.is_permission() { error } else { second })?;
                }
                sent => {
                    let sent = sent?;
                    attempt.settle();
                    break sent;
                }
            }
        };
        if sent.response.head.content_length().is_none() {
            return Err(exchange.nonsense(&sent, "the answer has no Content-Length"));
        }
        let meta = self.etags.read(meta(id, &sent.response.head));
        if is_no_object(&meta) {
            return Err(
                exchange.nonsense(&sent, "the answer has none of the headers that describe an object")
            );
        }
        match version {
            Some(wanted) if meta.version.as_ref() != Some(wanted) => {
                Err(exchange.error(ErrorKind::Precondition, format!("{wanted} is gone")))
            }
            _ => Ok((meta, sent.response.head)),
        }
    }
}

/// The maximum number of parts that one answer lists.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectAttributes.html>
const PARTS_MAX: &str = "1000";

/// The root element in S3's documentation, and the one that S3 really sends.
const ROOTS: [&str; 2] = ["GetObjectAttributesOutput", "GetObjectAttributesResponse"];

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ObjectAttributes {
    #[serde(rename = "ETag")]
    etag: Option<String>,
    object_parts: Option<ObjectParts>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ObjectParts {
    #[serde(default)]
    is_truncated: bool,
    next_part_number_marker: Option<u32>,
    #[serde(default)]
    part: Vec<ObjectPart>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ObjectPart {
    part_number: u32,
    size: u64,
}

impl S3 {
    /// Returns the size in bytes of one part of a multipart object. Returns `None` if the server ignores part numbers.
    pub(crate) async fn len_of_part(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        number: u32,
        key_use: KeyUse,
    ) -> Result<Option<u64>, Error> {
        let exchange = Exchange::object(self, Operation::Head, id);
        let query = QueryString::new().and("partNumber", &number.to_string());
        let outgoing = on_read(Outgoing::new(Method::HEAD, object_target(id, &query)), version, None)
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?
            .key_use(key_use);
        let sent = exchange.send(&outgoing).await?;
        let head = &sent.response.head;
        let is_part = head.status.as_u16() == 206 || head.headers.contains_key("x-amz-mp-parts-count");
        Ok(head.content_length().filter(|_| is_part))
    }

    /// Returns the size in bytes of each part; `None` if the store doesn't list the parts. S3 lists parts only if they
    /// have checksums.
    pub(crate) async fn lens_of_parts(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        key_use: KeyUse,
    ) -> Result<Option<Vec<u64>>, Error> {
        if self.lacks_attributes.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let exchange = Exchange::object(self, Operation::Head, id);
        let mut lens = Vec::new();
        let mut marker = None;
        loop {
            let outgoing =
                attributes_request(id, marker).map_err(|e| exchange.unsendable(&e))?.key_use(key_use);
            let sent = exchange.send(&outgoing).await?;
            let answer: ObjectAttributes = xml::answer(&sent.response.body, &ROOTS).map_err(|e| {
                // A store that doesn't know this request may answer it with the whole object. So never send it again.
                self.lacks_attributes.store(true, Ordering::Relaxed);
                exchange.nonsense(&sent, format!("the answer doesn't contain the object's attributes: {e}"))
            })?;
            let of = answer.etag.map(|etag| Version::ETag(unquoted(&etag)));
            if version.is_some_and(|version| of.as_ref() != Some(version)) {
                return Err(exchange.error(ErrorKind::Precondition, "another writer has replaced the object"));
            }
            let Some(page) = answer.object_parts else { return Ok(None) };
            for part in page.part {
                // If the answer left out a part, the sizes of all later parts would be assigned to the wrong numbers.
                if part.part_number as usize != lens.len() + 1 {
                    return Ok(None);
                }
                lens.push(part.size);
            }
            let next = page.next_part_number_marker.filter(|_| page.is_truncated);
            if page.is_truncated && next <= marker {
                return Err(exchange
                    .nonsense(&sent, "the list of parts is truncated, but has no marker for the next page"));
            }
            marker = next;
            if marker.is_none() {
                return Ok(Some(lens).filter(|lens| !lens.is_empty()));
            }
        }
    }
}

fn attributes_request(
    id: &ObjectId,
    marker: Option<u32>,
) -> Result<Outgoing, crate::exchange::UnsendableHeader> {
    let query = QueryString::new().and("attributes", "");
    let marker = marker.map(|marker| marker.to_string());
    Outgoing::new(Method::GET, object_target(id, &query))
        .header("x-amz-object-attributes", "ETag,ObjectParts")?
        .header("x-amz-max-parts", PARTS_MAX)?
        .header_some("x-amz-part-number-marker", marker.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_is_asked_for_with_its_checksum_and_a_range_without() {
        let id = ObjectId::new("b", "k");
        let whole = request(&id, None, None, None, None, true).expect("a request");
        assert_eq!(whole.headers["x-amz-checksum-mode"], "ENABLED");
        assert!(!whole.headers.contains_key("range"));
        let version = Version::ETag("e".into());
        let part =
            request(&id, Some(&version), Some(&(5..6).into()), None, Some(1), true).expect("a request");
        assert!(!part.headers.contains_key("x-amz-checksum-mode"));
        assert_eq!(part.headers["range"], "bytes=5-5");
        assert_eq!(part.headers["if-match"], "\"e\"");
    }

    #[test]
    fn a_head_asks_for_checksums() {
        let id = ObjectId::new("b", "a//b c");
        let version = head_request(&id.clone().at_version("v+1"), None, None, false).expect("a request");
        assert_eq!(version.target, "/a//b%20c?versionId=v%2B1");
        let asking = head_request(&id, None, None, true).expect("a request");
        assert_eq!(asking.target, "/a//b%20c");
        assert_eq!(asking.headers["x-amz-checksum-mode"], "ENABLED");
        assert!(head_request(&id, None, None, false).expect("a request").headers.is_empty());
    }

    #[test]
    fn the_parts_of_a_page_are_read_and_the_next_page_is_asked_for() {
        let id = ObjectId::new("b", "k").at_version("v");
        let first = attributes_request(&id, None).expect("a request");
        assert_eq!(first.target, "/k?attributes=&versionId=v");
        assert!(!first.headers.contains_key("x-amz-part-number-marker"));
        assert_eq!(
            attributes_request(&id, Some(1000)).expect("a request").headers["x-amz-part-number-marker"],
            "1000"
        );
        let body = b"<GetObjectAttributesResponse><ETag>e-2</ETag><ObjectParts><IsTruncated>true</IsTruncated>\
            <MaxParts>1</MaxParts><NextPartNumberMarker>1</NextPartNumberMarker><PartNumberMarker>0</PartNumberMarker>\
            <Part><ChecksumCRC32>AAAAAA==</ChecksumCRC32><PartNumber>1</PartNumber><Size>5</Size></Part>\
            <PartsCount>2</PartsCount></ObjectParts></GetObjectAttributesResponse>";
        let page =
            xml::answer::<ObjectAttributes>(body, &ROOTS).expect("attributes").object_parts.expect("parts");
        assert!(page.is_truncated && page.next_part_number_marker == Some(1));
        assert_eq!((page.part[0].part_number, page.part[0].size), (1, 5));
    }
}
