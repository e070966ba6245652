//! The answer to the question which parts of an upload a store has, in the XML that S3 and GCS share.

use std::future::Future;

use serde::Deserialize;

use crate::checksum::decode_crc32c;
use crate::exchange::{Dialect, Exchange, Sent};
use crate::{Error, Multipart, Operation, StoredPart, xml};

/// Parts in one answer, which is also what both stores have by default.
const PAGE: &str = "1000";
/// More pages than 10,000 parts fill.
const PAGES_MAX: u32 = 100;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    #[serde(default)]
    is_truncated: bool,
    #[serde(default, rename = "Part")]
    parts: Vec<Listed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    part_number: u32,
    #[serde(rename = "ETag")]
    etag: String,
    size: u64,
    #[serde(rename = "ChecksumCRC32C")]
    crc32c: Option<String>,
}

impl From<Listed> for StoredPart {
    fn from(listed: Listed) -> Self {
        let crc32c = listed.crc32c.as_deref().and_then(decode_crc32c);
        Self { number: listed.part_number, etag: listed.etag, size: listed.size, crc32c }
    }
}

/// Asks page after page. `ask` sends the request with these parameters of its query.
pub(crate) async fn all<D, F>(
    dialect: &D,
    upload: &Multipart,
    ask: impl Fn([(&'static str, String); 3]) -> F,
) -> Result<Vec<StoredPart>, Error>
where
    D: Dialect,
    F: Future<Output = Result<Sent, Error>>,
{
    let exchange = Exchange::object(dialect, Operation::ListParts, &upload.id);
    let mut parts: Vec<StoredPart> = Vec::new();
    for _ in 0..PAGES_MAX {
        let after = parts.last().map_or(0, |part| part.number);
        let query = [
            ("max-parts", PAGE.to_owned()),
            ("part-number-marker", after.to_string()),
            ("uploadId", upload.upload_id.clone()),
        ];
        let sent = ask(query).await?;
        let page: Page = xml::read(&sent.response.body)
            .map_err(|e| exchange.nonsense(&sent, format!("the answer lists no parts: {e}")))?;
        let mut found: Vec<StoredPart> = page.parts.into_iter().map(StoredPart::from).collect();
        found.retain(|part| part.number > after);
        found.sort_by_key(|part| part.number);
        let is_last = !page.is_truncated || found.is_empty();
        parts.append(&mut found);
        if is_last {
            break;
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_tells_number_tag_size_and_checksum_of_parts() {
        let body = br#"<?xml version="1.0"?><ListPartsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
            <Bucket>b</Bucket><Key>k</Key><UploadId>u</UploadId><MaxParts>1000</MaxParts><IsTruncated>true</IsTruncated>
            <Part><PartNumber>1</PartNumber><LastModified>2026-01-01T00:00:00Z</LastModified><ETag>&quot;e&quot;</ETag>
            <ChecksumCRC32C>4waSgw==</ChecksumCRC32C><Size>5</Size></Part><Initiator><ID>i</ID></Initiator>
            <Part><PartNumber>3</PartNumber><ETag>"f"</ETag><Size>6</Size></Part></ListPartsResult>"#;
        let page: Page = xml::read(body).expect("a page");
        assert!(page.is_truncated);
        let parts: Vec<StoredPart> = page.parts.into_iter().map(StoredPart::from).collect();
        let part = |number, etag: &str, size, crc32c| StoredPart { number, etag: etag.into(), size, crc32c };
        assert_eq!(parts, [part(1, "\"e\"", 5, Some(0xe306_9283)), part(3, "\"f\"", 6, None)]);
    }

    #[test]
    fn an_upload_without_parts_is_an_empty_page() {
        let page: Page = xml::read(b"<ListPartsResult><Bucket>b</Bucket></ListPartsResult>").expect("a page");
        assert!(page.parts.is_empty() && !page.is_truncated);
    }
}
