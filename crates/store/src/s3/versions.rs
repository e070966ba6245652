//! Lists all versions of objects with ListObjectVersions.
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectVersions.html>

use http::Method;
use memchr::memmem::find;
use serde::Deserialize;

use super::conditions::unquoted;
use super::list::CommonPrefix;
use crate::encode::{QueryString, decode_listed};
use crate::exchange::Outgoing;
use crate::listing::page::{PAGE_ASSUMED, PageParser};
use crate::listing::{ENTRIES_MAX, TOO_MANY};
use crate::timestamp::rfc3339;
use crate::{List, ObjectId, ObjectMeta, Page, Version, xml};

/// The tags around entries. The third value is true for delete markers. Versions and markers are mixed, and only their
/// order shows which one is older.
const TAGS: [(&str, &str, bool); 2] =
    [("<Version>", "</Version>", false), ("<DeleteMarker>", "</DeleteMarker>", true)];

pub(super) fn request(list: &List) -> Outgoing {
    let (id, key) = match list.token.as_deref().and_then(|token| token.split_once('\0')) {
        Some((id, key)) => (Some(id).filter(|id| !id.is_empty()), Some(key)),
        None => (None, list.start_after.as_deref()),
    };
    let query = QueryString::new()
        .and("versions", "")
        .and("encoding-type", "url")
        .and_some("prefix", Some(list.prefix.as_str()).filter(|prefix| !prefix.is_empty()))
        .and_some("delimiter", list.delimiter.as_deref())
        .and_some("key-marker", key)
        .and_some("version-id-marker", id)
        .and_some("max-keys", list.max.map(|max| max.to_string()).as_deref());
    Outgoing { expected: Some(PAGE_ASSUMED), ..Outgoing::new(Method::GET, query.to_string()) }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct ListVersionsResult {
    encoding_type: Option<String>,
    is_truncated: bool,
    next_key_marker: Option<String>,
    next_version_id_marker: Option<String>,
    common_prefixes: Vec<CommonPrefix>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListedVersion {
    key: String,
    version_id: String,
    #[serde(default)]
    is_latest: bool,
    #[serde(default)]
    size: u64,
    #[serde(rename = "ETag")]
    etag: Option<String>,
    last_modified: Option<String>,
    storage_class: Option<String>,
}

/// Collects the chunks of an answer, and parses it when it is complete.
#[derive(Default)]
pub(super) struct VersionsPageParser(Vec<u8>);

impl PageParser for VersionsPageParser {
    fn take(&mut self, _: &List, bytes: &[u8]) -> Result<Vec<ObjectMeta>, String> {
        self.0.extend_from_slice(bytes);
        Ok(Vec::new())
    }

    fn end(self, list: &List) -> Result<Page, String> {
        let (entries, rest) = cut(&self.0)?;
        if entries.len() > ENTRIES_MAX {
            return Err(TOO_MANY.to_owned());
        }
        let answer: ListVersionsResult = xml::answer(&rest, &["ListVersionsResult"])?;
        let is_encoded = answer.encoding_type.as_deref() == Some("url");
        let name = |text: String| match is_encoded {
            true => decode_listed(&text).ok_or_else(|| format!("{text:?} isn't a key")),
            false => Ok(text),
        };
        let is_inside = |key: &str| list.end_before.as_deref().is_none_or(|end| key < end);
        let mut page = Page::default();
        let mut is_beyond = false;
        for (entry, is_marker) in entries {
            let entry: ListedVersion = xml::read(entry)?;
            let id = ObjectId::new(&list.bucket, name(entry.key)?).at_version(entry.version_id.as_str());
            if !is_inside(&id.key) {
                is_beyond = true;
                continue;
            }
            let mut meta = ObjectMeta::new(id, entry.size);
            meta.etag = entry.etag.as_deref().map(unquoted);
            meta.version = meta.etag.clone().map(Version::ETag);
            meta.updated = entry.last_modified.as_deref().and_then(rfc3339);
            meta.storage_class = entry.storage_class;
            meta.version_id = Some(entry.version_id);
            meta.is_latest = Some(entry.is_latest);
            meta.delete_marker = is_marker;
            page.objects.push(meta);
        }
        for common in answer.common_prefixes {
            let prefix = name(common.prefix)?;
            match is_inside(&prefix) {
                true => page.prefixes.push(prefix),
                false => is_beyond = true,
            }
        }
        if answer.is_truncated && !is_beyond {
            let missing =
                || "the listing says that it is truncated, but has no token for the next page".to_owned();
            let key = answer.next_key_marker.filter(|key| !key.is_empty()).ok_or_else(missing)?;
            let id = answer.next_version_id_marker.unwrap_or_default();
            page.next = Some(format!("{id}\0{}", name(key)?));
        }
        Ok(page)
    }
}

/// Returns the entries, and the document without them. An entry's second value is true if it is a delete marker.
#[expect(clippy::type_complexity, reason = "both results come from one pass over the document")]
fn cut(mut document: &[u8]) -> Result<(Vec<(&[u8], bool)>, Vec<u8>), String> {
    let (mut entries, mut rest) = (Vec::new(), Vec::new());
    loop {
        let next = TAGS.iter().filter_map(|tags| Some((find(document, tags.0.as_bytes())?, tags)));
        let Some((at, (_, close, is_marker))) = next.min_by_key(|(at, _)| *at) else {
            rest.extend_from_slice(document);
            return Ok((entries, rest));
        };
        let end =
            find(&document[at..], close.as_bytes()).ok_or("an entry has no closing tag")? + at + close.len();
        rest.extend_from_slice(&document[..at]);
        entries.push((&document[at..end], *is_marker));
        document = &document[end..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<ListVersionsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><EncodingType>url</EncodingType>
<IsTruncated>true</IsTruncated><NextKeyMarker>c+d</NextKeyMarker><NextVersionIdMarker>v1</NextVersionIdMarker>
<DeleteMarker><Key>a</Key><VersionId>v3</VersionId><IsLatest>true</IsLatest><LastModified>2026-11-21T09:04:05.000Z</LastModified></DeleteMarker>
<Version><Key>a</Key><VersionId>v2</VersionId><IsLatest>false</IsLatest><ETag>&quot;e&quot;</ETag><Size>3</Size></Version>
<Version><Key>c+d</Key><VersionId>null</VersionId><IsLatest>true</IsLatest><Size>0</Size></Version>
<CommonPrefixes><Prefix>p%C3%A9/</Prefix></CommonPrefixes></ListVersionsResult>"#;

    fn page(list: &List) -> Result<Page, String> {
        let mut arriving = VersionsPageParser::default();
        for half in ANSWER.as_bytes().chunks(100) {
            assert!(arriving.take(list, half)?.is_empty());
        }
        arriving.end(list)
    }

    #[test]
    fn versions_and_markers_come_in_the_order_of_the_answer() {
        let list = List { versions: true, ..List::new("b", "") };
        let page = page(&list).expect("a page");
        let seen: Vec<_> =
            page.objects.iter().map(|o| (o.id.to_string(), o.is_latest, o.delete_marker)).collect();
        assert_eq!(
            seen,
            [
                ("b/a#v3".to_owned(), Some(true), true),
                ("b/a#v2".to_owned(), Some(false), false),
                ("b/c d#null".to_owned(), Some(true), false),
            ]
        );
        assert_eq!((page.objects[1].etag.as_deref(), page.objects[1].size), (Some("e"), 3));
        assert_eq!(page.prefixes, ["p\u{e9}/"]);
        let next = List { token: page.next, ..list };
        assert_eq!(
            request(&next).target,
            "?versions=&encoding-type=url&key-marker=c%20d&version-id-marker=v1"
        );
    }

    #[test]
    fn the_listing_ends_where_it_was_asked_to() {
        let list = List { versions: true, end_before: Some("b".into()), ..List::new("b", "") };
        let page = page(&list).expect("a page");
        assert_eq!((page.objects.len(), page.next), (2, None));
    }

    #[test]
    fn an_entry_without_an_end_is_no_listing() {
        assert!(cut(b"<R><Version><Key>a</Key></R>").is_err());
    }
}
