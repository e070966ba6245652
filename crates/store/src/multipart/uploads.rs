//! Lists the unfinished multipart uploads of a bucket, which were begun but neither completed nor aborted.
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html>,
//! <https://cloud.google.com/storage/docs/xml-api/get-bucket-uploads>

use std::collections::HashSet;

use serde::Deserialize;

use super::MultipartDialect;
use crate::encode::{QueryString, decode_listed};
use crate::exchange::Exchange;
use crate::{Error, ErrorKind, Multipart, ObjectId, Operation, PartChecksums, xml};

/// The maximum number of pages, of a thousand uploads each. The limit stops the listing of a store whose pages never
/// end.
const PAGES_MAX: u32 = 1000;

/// Returns all unfinished uploads of keys with a prefix, sorted by key.
///
/// # Errors
/// Returns the store's error, or an error for pages that repeat or never end.
pub(crate) async fn list<D: MultipartDialect>(
    dialect: &D,
    bucket: &str,
    prefix: &str,
) -> Result<Vec<Multipart>, Error> {
    let exchange = Exchange::bucket(dialect, Operation::ListUploads, bucket);
    let (mut uploads, mut marker, mut seen) = (Vec::new(), (None, None), HashSet::new());
    for _ in 0..PAGES_MAX {
        let query = query(prefix, &marker);
        let sent = exchange.send(&D::about_all(bucket, &query)).await?;
        let page = read(&sent.response.body).map_err(|e| exchange.nonsense(&sent, e))?;
        for upload in page.uploads {
            let key = key(upload.key, page.is_encoded).map_err(|e| exchange.nonsense(&sent, e))?;
            let checksums = granted(upload.algorithm.as_deref(), upload.kind.as_deref());
            uploads.push(Multipart {
                id: ObjectId::new(bucket, key),
                upload_id: upload.id,
                checksums: checksums.unwrap_or(D::CHECKSUMS_UNTOLD),
            });
        }
        let Some(key_marker) = page.next else { return Ok(uploads) };
        let key_marker = key(key_marker, page.is_encoded).map_err(|e| exchange.nonsense(&sent, e))?;
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

fn query(prefix: &str, (key, id): &(Option<String>, Option<String>)) -> QueryString {
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
fn key(listed: String, is_encoded: bool) -> Result<String, String> {
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

fn read(body: &[u8]) -> Result<UploadsPage, String> {
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

    #[test]
    fn reads_a_page_of_uploads_and_the_start_of_the_next_page() {
        let page = read(
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
                (key(upload.key.clone(), page.is_encoded).expect("a key"), upload.id.as_str(), sums)
            })
            .collect();
        let expected =
            [("a".to_owned(), "u1", Some(PartChecksums::FullObject)), ("a b".to_owned(), "u2", None)];
        assert_eq!(found, expected);
        assert_eq!((page.next.as_deref(), page.next_id.as_deref()), (Some("a%20b"), Some("u2")));
    }

    #[test]
    fn what_is_no_page_of_uploads_is_not_taken_for_an_empty_one() {
        assert!(read(b"<Error><Code>AccessDenied</Code></Error>").is_err());
        let endless =
            b"<ListMultipartUploadsResult><IsTruncated>true</IsTruncated></ListMultipartUploadsResult>";
        assert!(read(endless).is_err(), "more follow from nowhere");
        let empty = b"<ListMultipartUploadsResult><Bucket>b</Bucket></ListMultipartUploadsResult>";
        let empty = read(empty).expect("a page");
        assert!(empty.uploads.is_empty() && empty.next.is_none());
    }

    #[test]
    fn checksums_of_other_kinds_than_ours_are_none() {
        assert_eq!(granted(Some("SHA256"), Some("COMPOSITE")), Some(PartChecksums::None));
        assert_eq!(granted(Some("CRC32C"), None), Some(PartChecksums::Composite));
    }
}
