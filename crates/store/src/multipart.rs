//! Multipart uploads, in the protocol that S3 defines and GCS's XML API copies
//! (<https://cloud.google.com/storage/docs/multipart-uploads>). Only the names of the headers differ.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, header};
use laneway_lanes::{Body, ResponseHead};
use serde::Deserialize;

use crate::checksum::{decode_crc32c, encode_crc32c};
use crate::encode::{QueryString, decode_listed, xml_text};
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, ExchangeResponse, HttpDialect, Outgoing, UnsendableHeader};
use crate::{Error, ErrorKind, Multipart, ObjectId, Operation, Part, PartChecksums, StoredPart, xml};

/// The time limit without progress for the completion. A store may take minutes to complete an upload of many parts,
/// and sends nothing until then.
const COMPLETE_NO_PROGRESS_MAX: Duration = Duration::from_secs(600);

/// The number of parts on one page of a list of parts. It is also the default of both stores.
const PAGE: &str = "1000";

/// The maximum number of pages of a list of parts. 10,000 parts fill only 10 pages, so only a faulty store reaches this
/// limit.
const PAGES_MAX: u32 = 100;

/// The names of the root element of a list of parts: that of the services, and that of moto 5.2.
const LISTED_PARTS: [&str; 2] = ["ListPartsResult", "ListPartsResponse"];

/// The differences between the dialects' multipart protocols.
pub(crate) trait MultipartDialect: HttpDialect + Sized {
    /// The attributes of the root element in the document that completes an upload.
    const NAMESPACE: &str;

    /// True if the document that completes an upload repeats the parts' checksums, for uploads with checksums.
    const REPEATS_CHECKSUMS: bool;

    /// Returns a request about one upload of an object.
    fn about(method: Method, id: &ObjectId, query: &QueryString) -> Outgoing;

    /// Returns a request about all uploads of a bucket.
    fn about_all(bucket: &str, query: &QueryString) -> Outgoing;

    /// The kind of checksums that an upload is assumed to have if the listing of uploads doesn't name it.
    const CHECKSUMS_UNTOLD: PartChecksums;

    /// Adds the body's checksum to the request.
    fn checked(outgoing: Outgoing, crc32c: u32) -> Result<Outgoing, UnsendableHeader>;

    /// Returns the CRC32C that the store computed from the received bytes, if the answer contains it.
    fn crc32c_of(answer: &ResponseHead) -> Option<u32>;

    async fn part(&self, upload: &Multipart, number: u32, body: Body, crc32c: u32) -> Result<Part, Error> {
        let exchange = Exchange::object(self, Operation::Part, &upload.id);
        let size = body.len();
        let outgoing =
            part_request::<Self>(upload, number, body, crc32c).map_err(|e| exchange.unsendable(&e))?;
        part_of(&exchange, &exchange.send(&outgoing).await?, number, size, crc32c)
    }

    /// Returns the parts that the store has, sorted by number.
    async fn list_parts(&self, upload: &Multipart) -> Result<Vec<StoredPart>, Error> {
        Ok(self.listed_parts(upload).await?.into_iter().map(StoredPart::from).collect())
    }

    /// Returns the parts as the listing describes them, by number.
    async fn listed_parts(&self, upload: &Multipart) -> Result<Vec<ListedPart>, Error> {
        let exchange = Exchange::object(self, Operation::ListParts, &upload.id);
        let mut parts: Vec<ListedPart> = Vec::new();
        for _ in 0..PAGES_MAX {
            let after = parts.last().map_or(0, |part| part.part_number);
            let query = QueryString::new()
                .and("max-parts", PAGE)
                .and("part-number-marker", &after.to_string())
                .and("uploadId", &upload.upload_id);
            let outgoing = Self::about(Method::GET, &upload.id, &query).key_use(KeyUse::Object);
            let sent = exchange.send(&outgoing).await?;
            let page: ListPartsResult = xml::answer(&sent.response.body, &LISTED_PARTS)
                .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't a list of parts: {e}")))?;
            let mut found = page.parts;
            found.retain(|part| part.part_number > after);
            found.sort_by_key(|part| part.part_number);
            let is_last = !page.is_truncated || found.is_empty();
            parts.append(&mut found);
            if is_last {
                break;
            }
        }
        Ok(parts)
    }

    async fn abort(&self, upload: &Multipart) -> Result<(), Error> {
        let exchange = Exchange::object(self, Operation::Abort, &upload.id);
        let query = QueryString::new().and("uploadId", &upload.upload_id);
        match exchange.send(&Self::about(Method::DELETE, &upload.id, &query)).await {
            Err(error) if error.is_not_found() && error.is_uncertain() => Ok(()),
            sent => sent.map(drop),
        }
    }
}

/// Returns the query of a request that uploads a part.
pub(crate) fn part_query(upload: &Multipart, number: u32) -> QueryString {
    QueryString::new().and("partNumber", &number.to_string()).and("uploadId", &upload.upload_id)
}

/// The maximum number of attempts to begin an upload if the answers are successes without an upload id. A single such
/// answer may come from a proxy or be damaged. The limit is low, because each attempt may leave an unfinished upload at
/// the store under an id that Laneway doesn't know.
pub(crate) const BEGINNINGS_MAX: u32 = 3;

/// Returns the upload id from the answer that began an upload.
pub(crate) fn upload_id(answer: &[u8]) -> Result<String, String> {
    let InitiateMultipartUploadResult { upload_id } =
        xml::answer(answer, &["InitiateMultipartUploadResult"])?;
    if upload_id.is_empty() { Err("its name is empty".to_owned()) } else { Ok(upload_id) }
}

/// Returns the request that sends a part, with its checksum if the upload has checksums.
pub(crate) fn part_request<D: MultipartDialect>(
    upload: &Multipart,
    number: u32,
    body: Body,
    crc32c: u32,
) -> Result<Outgoing, UnsendableHeader> {
    let outgoing = D::about(Method::PUT, &upload.id, &part_query(upload, number)).key_use(KeyUse::Object);
    let outgoing = Outgoing { body, ..outgoing };
    if upload.checksums == PartChecksums::None { Ok(outgoing) } else { D::checked(outgoing, crc32c) }
}

/// Returns the part that an answer describes, after comparing it with the bytes that were sent.
///
/// # Errors
/// Returns `Integrity` if its checksum differs.
pub(crate) fn part_of<D: MultipartDialect>(
    exchange: &Exchange<'_, D>,
    sent: &ExchangeResponse,
    number: u32,
    size: u64,
    crc32c: u32,
) -> Result<Part, Error> {
    if D::crc32c_of(&sent.response.head).is_some_and(|stored| stored != crc32c) {
        return Err(damaged(exchange, sent, number, "crc32c"));
    }
    let etag = sent.response.head.header("etag").map(str::to_owned);
    let etag = etag.ok_or_else(|| exchange.nonsense(sent, "the answer to a part has no ETag"))?;
    Ok(Part { number, etag, size, crc32c: Some(crc32c), md5: None })
}

/// Returns the error for a part whose bytes differ at the store.
pub(crate) fn damaged<D: HttpDialect>(
    exchange: &Exchange<'_, D>,
    sent: &ExchangeResponse,
    number: u32,
    name: &str,
) -> Error {
    let message =
        format!("the store's {name} of part {number} differs from the {name} of the bytes that were sent");
    exchange.error(ErrorKind::Integrity, message).after(sent.attempts, sent.elapsed)
}

/// Returns the request that completes an upload from its parts. `sha256s` has the SHA-256s of the parts in base64, if
/// the upload was begun with that algorithm.
///
/// # Errors
/// Fails if an entity tag can't be written in XML.
pub(crate) fn complete_request<D: MultipartDialect>(
    upload: &Multipart,
    parts: &[Part],
    sha256s: &BTreeMap<u32, String>,
) -> Result<Outgoing, String> {
    let document = document::<D>(upload, parts, sha256s).ok_or("a part's ETag holds control characters")?;
    let query = QueryString::new().and("uploadId", &upload.upload_id);
    // If an upload was begun with a customer's key, S3 needs the key to complete it too.
    let mut outgoing = D::about(Method::POST, &upload.id, &query).key_use(KeyUse::Object);
    outgoing.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    outgoing.body = Body::from(Bytes::from(document));
    outgoing.no_progress = Some(COMPLETE_NO_PROGRESS_MAX);
    outgoing.doubtful = true;
    Ok(outgoing)
}

/// Returns the parts in the order of their numbers.
pub(crate) fn in_order(parts: &[Part]) -> Vec<&Part> {
    let mut parts: Vec<&Part> = parts.iter().collect();
    parts.sort_by_key(|part| part.number);
    parts
}

fn document<D: MultipartDialect>(
    upload: &Multipart,
    parts: &[Part],
    sha256s: &BTreeMap<u32, String>,
) -> Option<String> {
    let repeats_checksums = D::REPEATS_CHECKSUMS && upload.checksums != PartChecksums::None;
    let mut xml = format!("<CompleteMultipartUpload{}>", D::NAMESPACE);
    for part in in_order(parts) {
        let etag = xml_text(&part.etag)?;
        xml.push_str(&format!("<Part><PartNumber>{}</PartNumber><ETag>{etag}</ETag>", part.number));
        if let Some(crc32c) = part.crc32c.filter(|_| repeats_checksums) {
            xml.push_str(&format!("<ChecksumCRC32C>{}</ChecksumCRC32C>", encode_crc32c(crc32c)));
        }
        if let Some(sha256) = sha256s.get(&part.number) {
            xml.push_str(&format!("<ChecksumSHA256>{}</ChecksumSHA256>", xml_text(sha256)?));
        }
        xml.push_str("</Part>");
    }
    xml.push_str("</CompleteMultipartUpload>");
    Some(xml)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct InitiateMultipartUploadResult {
    upload_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListPartsResult {
    #[serde(default)]
    is_truncated: bool,
    #[serde(default, rename = "Part")]
    parts: Vec<ListedPart>,
}

/// A part in a page of the listing.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ListedPart {
    pub(crate) part_number: u32,
    #[serde(rename = "ETag")]
    pub(crate) etag: String,
    size: u64,
    #[serde(rename = "ChecksumCRC32C")]
    crc32c: Option<String>,
    /// In base64.
    #[serde(rename = "ChecksumSHA256")]
    pub(crate) sha256: Option<String>,
}

impl From<ListedPart> for StoredPart {
    fn from(listed: ListedPart) -> Self {
        let crc32c = listed.crc32c.as_deref().and_then(decode_crc32c);
        Self { number: listed.part_number, etag: listed.etag, size: listed.size, crc32c }
    }
}

/// The maximum number of pages, of a thousand uploads each. The limit stops the listing of a store whose pages never
/// end.
const UPLOAD_PAGES_MAX: u32 = 1000;

/// Returns all unfinished uploads of keys with a prefix, sorted by key
/// (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html>,
/// <https://cloud.google.com/storage/docs/xml-api/get-bucket-uploads>).
///
/// # Errors
/// Returns the store's error, or an error for pages that repeat or never end.
pub(crate) async fn list_uploads<D: MultipartDialect>(
    dialect: &D,
    bucket: &str,
    prefix: &str,
) -> Result<Vec<Multipart>, Error> {
    let exchange = Exchange::bucket(dialect, Operation::ListUploads, bucket);
    let (mut uploads, mut marker, mut seen) = (Vec::new(), (None, None), HashSet::new());
    for _ in 0..UPLOAD_PAGES_MAX {
        let query = uploads_query(prefix, &marker);
        let sent = exchange.send(&D::about_all(bucket, &query)).await?;
        let page = read_uploads(&sent.response.body).map_err(|e| exchange.nonsense(&sent, e))?;
        for upload in page.uploads {
            let key = uploads_key(upload.key, page.is_encoded).map_err(|e| exchange.nonsense(&sent, e))?;
            let checksums = granted(upload.algorithm.as_deref(), upload.kind.as_deref());
            uploads.push(Multipart {
                id: ObjectId::new(bucket, key),
                upload_id: upload.id,
                checksums: checksums.unwrap_or(D::CHECKSUMS_UNTOLD),
            });
        }
        let Some(key_marker) = page.next else { return Ok(uploads) };
        let key_marker = uploads_key(key_marker, page.is_encoded).map_err(|e| exchange.nonsense(&sent, e))?;
        let next = (Some(key_marker), page.next_id);
        if !seen.insert(next.clone()) {
            return Err(exchange.nonsense(
                &sent,
                "the listing of uploads repeats itself: two pages name the same next page",
            ));
        }
        marker = next;
    }
    Err(exchange.error(ErrorKind::Server, "the listing of uploads has no end"))
}

fn uploads_query(prefix: &str, (key, id): &(Option<String>, Option<String>)) -> QueryString {
    QueryString::new()
        .and("uploads", "")
        // XML can't contain every key, so ask for percent-encoded keys.
        .and("encoding-type", "url")
        .and_some("prefix", Some(prefix).filter(|prefix| !prefix.is_empty()))
        .and_some("key-marker", key.as_deref())
        .and_some("upload-id-marker", id.as_deref())
}

/// Decodes a listed key.
///
/// # Errors
/// Fails if the decoded bytes aren't UTF-8.
fn uploads_key(listed: String, is_encoded: bool) -> Result<String, String> {
    match is_encoded {
        true => decode_listed(&listed).ok_or_else(|| format!("the key {listed:?} isn't UTF-8 text")),
        false => Ok(listed),
    }
}

/// Returns the kind of checksums that a listing names for an upload, or `None` if it names none.
fn granted(algorithm: Option<&str>, kind: Option<&str>) -> Option<PartChecksums> {
    let is = |found: Option<&str>, value: &str| found.is_some_and(|found| found.eq_ignore_ascii_case(value));
    match (algorithm, is(kind, "FULL_OBJECT")) {
        (None, _) => None,
        (Some(_), _) if !is(algorithm, "CRC32C") => Some(PartChecksums::None),
        (Some(_), true) => Some(PartChecksums::FullObject),
        (Some(_), false) => Some(PartChecksums::Composite),
    }
}

struct UploadsPage {
    uploads: Vec<UploadElement>,
    is_encoded: bool,
    next: Option<String>,
    next_id: Option<String>,
}

fn read_uploads(body: &[u8]) -> Result<UploadsPage, String> {
    let answer: ListMultipartUploadsResult = xml::answer(body, &["ListMultipartUploadsResult"])
        .map_err(|e| format!("the answer isn't a list of uploads: {e}"))?;
    let some = |text: Option<String>| text.filter(|text| !text.is_empty());
    let next = some(answer.next_key_marker).filter(|_| answer.is_truncated);
    if answer.is_truncated && next.is_none() {
        return Err("a page of uploads says that more follow, but not where they begin".to_owned());
    }
    Ok(UploadsPage {
        uploads: answer.uploads,
        is_encoded: answer.encoding_type.is_some_and(|encoding| encoding == "url"),
        next,
        next_id: some(answer.next_upload_id_marker),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListMultipartUploadsResult {
    #[serde(default)]
    is_truncated: bool,
    encoding_type: Option<String>,
    next_key_marker: Option<String>,
    next_upload_id_marker: Option<String>,
    #[serde(default, rename = "Upload")]
    uploads: Vec<UploadElement>,
}

#[derive(Deserialize)]
struct UploadElement {
    #[serde(rename = "Key")]
    key: String,
    #[serde(rename = "UploadId")]
    id: String,
    #[serde(rename = "ChecksumAlgorithm")]
    algorithm: Option<String>,
    #[serde(rename = "ChecksumType")]
    kind: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcs::Gcs;
    use crate::s3::S3;

    fn upload(checksums: PartChecksums) -> Multipart {
        Multipart { id: ObjectId::new("b", "a//b c"), upload_id: "u/1".into(), checksums }
    }

    fn part(number: u32, crc32c: u32) -> Part {
        Part { number, etag: format!("\"e{number}\""), size: 5, crc32c: Some(crc32c), md5: None }
    }

    #[test]
    fn a_part_carries_its_checksum() {
        let of = |part: Result<Outgoing, UnsendableHeader>| part.expect("a request");
        let whole = upload(PartChecksums::FullObject);
        let gcs = of(part_request::<Gcs>(&whole, 3, Body::from("x"), 0xe306_9283));
        assert_eq!(gcs.target, "/b/a//b%20c?partNumber=3&uploadId=u%2F1");
        assert_eq!(gcs.headers["x-goog-hash"], "crc32c=4waSgw==");
        let s3 = of(part_request::<S3>(&whole, 3, Body::from("x"), 0xe306_9283));
        assert_eq!(s3.target, "/a//b%20c?partNumber=3&uploadId=u%2F1");
        assert_eq!(s3.headers["x-amz-checksum-crc32c"], "4waSgw==");
        let bare = of(part_request::<S3>(&upload(PartChecksums::None), 3, Body::from("x"), 7));
        assert!(bare.headers.is_empty());
    }

    #[test]
    fn completes_parts_in_order_with_the_checksums_that_the_dialect_repeats() {
        let whole = upload(PartChecksums::FullObject);
        let parts = [part(2, 1), part(1, 0xe306_9283)];
        assert_eq!(
            document::<Gcs>(&whole, &parts, &BTreeMap::new()).as_deref(),
            Some(
                "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>&quot;e1&quot;</ETag></Part>\
                 <Part><PartNumber>2</PartNumber><ETag>&quot;e2&quot;</ETag></Part></CompleteMultipartUpload>"
            )
        );
        let of = |checksums, parts: &[Part]| {
            document::<S3>(&upload(checksums), parts, &BTreeMap::new()).expect("a document")
        };
        let named = of(PartChecksums::FullObject, &parts);
        let (first, second) = (named.find("<PartNumber>1<"), named.find("<PartNumber>2<"));
        assert!(first.is_some() && first < second, "{named}");
        assert!(named.contains("<ETag>&quot;e1&quot;</ETag><ChecksumCRC32C>4waSgw==</ChecksumCRC32C>"));
        // One in 4 billion parts has a CRC32C of 0, which is a valid checksum.
        let zero = of(PartChecksums::Composite, &[part(1, 0)]);
        assert!(zero.contains("<ChecksumCRC32C>AAAAAA==</ChecksumCRC32C>"), "{zero}");
        let unknown = of(PartChecksums::Composite, &[Part { crc32c: None, ..part(1, 0) }]);
        assert!(!unknown.contains("Checksum"), "{unknown}");
        assert!(!of(PartChecksums::None, &parts).contains("Checksum"));
    }

    #[test]
    fn an_upload_without_a_name_was_not_begun() {
        let answer = |id| {
            format!(
                "<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
            )
        };
        assert_eq!(upload_id(answer("u").as_bytes()).as_deref(), Ok("u"));
        assert!(upload_id(answer("").as_bytes()).is_err() && upload_id(b"<html>").is_err());
    }

    #[test]
    fn a_page_tells_number_tag_size_and_checksum_of_parts() {
        let body = br#"<?xml version="1.0"?><ListPartsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
            <Bucket>b</Bucket><Key>k</Key><UploadId>u</UploadId><MaxParts>1000</MaxParts><IsTruncated>true</IsTruncated>
            <Part><PartNumber>1</PartNumber><LastModified>2026-01-01T00:00:00Z</LastModified><ETag>&quot;e&quot;</ETag>
            <ChecksumCRC32C>4waSgw==</ChecksumCRC32C><Size>5</Size></Part><Initiator><ID>i</ID></Initiator>
            <Part><PartNumber>3</PartNumber><ETag>"f"</ETag><Size>6</Size></Part></ListPartsResult>"#;
        let page: ListPartsResult = xml::read(body).expect("a page");
        assert!(page.is_truncated);
        let parts: Vec<StoredPart> = page.parts.into_iter().map(StoredPart::from).collect();
        let part = |number, etag: &str, size, crc32c| StoredPart { number, etag: etag.into(), size, crc32c };
        assert_eq!(parts, [part(1, "\"e\"", 5, Some(0xe306_9283)), part(3, "\"f\"", 6, None)]);
    }

    #[test]
    fn an_upload_without_parts_is_an_empty_page() {
        for root in ["ListPartsResult", "ListPartsResponse"] {
            let body = format!("<{root}><Bucket>b</Bucket></{root}>");
            let page: ListPartsResult = xml::answer(body.as_bytes(), &LISTED_PARTS).expect("a page");
            assert!(page.parts.is_empty() && !page.is_truncated);
        }
        assert!(xml::answer::<ListPartsResult>(b"<html></html>", &LISTED_PARTS).is_err());
    }

    #[test]
    fn reads_a_page_of_uploads_and_the_start_of_the_next_page() {
        let page = read_uploads(
            br#"<?xml version="1.0"?><ListMultipartUploadsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
            <Bucket>b</Bucket><EncodingType>url</EncodingType><NextKeyMarker>a%20b</NextKeyMarker>
            <NextUploadIdMarker>u2</NextUploadIdMarker><IsTruncated>true</IsTruncated>
            <Upload><Key>a</Key><UploadId>u1</UploadId><Initiator><ID>i</ID></Initiator>
            <ChecksumAlgorithm>CRC32C</ChecksumAlgorithm><ChecksumType>FULL_OBJECT</ChecksumType></Upload>
            <Upload><Key>a%20b</Key><UploadId>u2</UploadId></Upload></ListMultipartUploadsResult>"#,
        )
        .expect("a page");
        let found: Vec<_> = page
            .uploads
            .iter()
            .map(|upload| {
                let sums = granted(upload.algorithm.as_deref(), upload.kind.as_deref());
                (uploads_key(upload.key.clone(), page.is_encoded).expect("a key"), upload.id.as_str(), sums)
            })
            .collect();
        let expected =
            [("a".to_owned(), "u1", Some(PartChecksums::FullObject)), ("a b".to_owned(), "u2", None)];
        assert_eq!(found, expected);
        assert_eq!((page.next.as_deref(), page.next_id.as_deref()), (Some("a%20b"), Some("u2")));
    }

    #[test]
    fn what_is_no_page_of_uploads_is_not_taken_for_an_empty_one() {
        assert!(read_uploads(b"<Error><Code>AccessDenied</Code></Error>").is_err());
        let endless =
            b"<ListMultipartUploadsResult><IsTruncated>true</IsTruncated></ListMultipartUploadsResult>";
        assert!(read_uploads(endless).is_err(), "more follow from nowhere");
        let empty = b"<ListMultipartUploadsResult><Bucket>b</Bucket></ListMultipartUploadsResult>";
        let empty = read_uploads(empty).expect("a page");
        assert!(empty.uploads.is_empty() && empty.next.is_none());
    }

    #[test]
    fn checksums_of_other_kinds_than_ours_are_none() {
        assert_eq!(granted(Some("SHA256"), Some("COMPOSITE")), Some(PartChecksums::None));
        assert_eq!(granted(Some("CRC32C"), None), Some(PartChecksums::Composite));
    }
}
