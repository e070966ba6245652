//! Entry points for the fuzzers, which parse the input as the answers of an S3 server.

use http::{Method, StatusCode};
use laneway_lanes::ResponseHead;

use super::conditions::unquoted;
use super::{delete_many, failure, headers, list, versions};
use crate::drawn_head::drawn_head;
use crate::listing::fuzzing::{page, page_in_any_chunks};
use crate::{List, ObjectId, ObjectMeta};

/// Parses two pages of a listing: the input as it is, and a document with one key for each line of the input.
pub fn s3_listing(input: &[u8]) {
    let list = List::new("b", "");
    page_in_any_chunks(&list, input, || list::S3PageParser::new(false));
    page_in_any_chunks(&list, input, versions::VersionsPageParser::default);
    let Ok(text) = std::str::from_utf8(input) else { return };
    let keys: Vec<&str> = text.lines().filter(|key| crate::encode::xml_text(key).is_some()).collect();
    let entry = |key: &&str| {
        let key = crate::encode::xml_text(key).unwrap_or_default();
        let (size, etag) = (key.len(), format!("<ETag>{key}</ETag>"));
        format!("<Contents><Key>{key}</Key><Size> {size} </Size>{etag}</Contents>")
    };
    let entries: String = keys.iter().map(entry).collect();
    let document = format!("<ListBucketResult><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>");
    let found = page(&list, document.as_bytes(), 11, list::S3PageParser::new(false)).expect("a page");
    let fields = |meta: ObjectMeta| (meta.id.key, meta.size, meta.etag.unwrap_or_default());
    let found: Vec<_> = found.objects.into_iter().map(fields).collect();
    // The entries must equal those that quick-xml reads from the whole document. White space around an element's text
    // isn't compared.
    assert_eq!(found, oracle(&document), "{document}");
    assert_eq!(found.len(), keys.len(), "{document}");
}

/// Parses the whole document at once with quick-xml, and returns its keys, sizes and ETags.
fn oracle(document: &str) -> Vec<(String, u64, String)> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Whole {
        #[serde(default)]
        contents: Vec<Content>,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Content {
        key: String,
        size: u64,
        #[serde(rename = "ETag")]
        etag: String,
    }
    let whole: Whole = quick_xml::de::from_str(document).expect("a document");
    whole.contents.into_iter().map(|content| (content.key, content.size, unquoted(&content.etag))).collect()
}

/// Parses the input as the body of an error answer, with any error status.
pub fn s3_error(input: &[u8]) {
    let Some((status, body)) = input.split_first() else { return };
    let status = StatusCode::from_u16(400 + u16::from(*status) % 200).expect("a status");
    for method in [Method::GET, Method::HEAD] {
        let head = ResponseHead { status, headers: http::HeaderMap::new() };
        let read = failure::read(&method, &head, body);
        let _ = (failure::kind(&read), failure::is_elsewhere(&read), failure::is_stale(&read));
        let _ = (failure::may_be_skewed(&read), failure::is_conflict(&read), crate::judge::is_passing(&read));
        let _ = failure::inside(&head, body);
    }
    let _ = delete_many::errors(body);
}

/// Parses the headers that describe an object: checksums, versions, times and protection.
pub fn s3_headers(input: &[u8]) {
    let head = drawn_head(input);
    let meta = headers::meta(&ObjectId::new("b", "k"), &head);
    let sums = headers::checksums(&head);
    assert!(sums.crc32c.is_none() || sums.parts.is_none(), "both a part's and the whole's");
    assert_eq!(meta.etag.is_some(), meta.version.is_some());
}
