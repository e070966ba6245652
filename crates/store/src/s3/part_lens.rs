//! Reads the sizes of the parts from which an object was uploaded: `part_len` and `part_lens`.

use std::sync::atomic::Ordering;

use http::Method;
use serde::Deserialize;

use super::S3;
use super::conditions::{on_read, unquoted};
use super::head::object_target;
use crate::encode::QueryString;
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, Outgoing};
use crate::{Error, ErrorKind, ObjectId, Operation, Version, xml};

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
            let outgoing = request(id, marker).map_err(|e| exchange.unsendable(&e))?.key_use(key_use);
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

fn request(id: &ObjectId, marker: Option<u32>) -> Result<Outgoing, crate::exchange::UnsendableHeader> {
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
    fn the_parts_of_a_page_are_read_and_the_next_page_is_asked_for() {
        let id = ObjectId::new("b", "k").at_version("v");
        let first = request(&id, None).expect("a request");
        assert_eq!(first.target, "/k?attributes=&versionId=v");
        assert!(!first.headers.contains_key("x-amz-part-number-marker"));
        assert_eq!(request(&id, Some(1000)).expect("a request").headers["x-amz-part-number-marker"], "1000");
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
