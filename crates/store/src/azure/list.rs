//! `list`: List Blobs (<https://learn.microsoft.com/rest/api/storageservices/list-blobs>).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderName, HeaderValue, Method};
use memchr::memmem::{find, rfind};
use percent_encoding::percent_decode_str;

use super::Azure;
use super::headers::{ARCHIVE, container_of, date, unquoted};
use crate::checksum::decode_md5;
use crate::encode::QueryString;
use crate::exchange::{Exchange, Outgoing};
use crate::listing::cutter::Cutter;
use crate::listing::page::{PAGE_ASSUMED, PageParser, fetch_page};
use crate::xml::{self, XmlStep};
use crate::{Error, List, ObjectId, ObjectMeta, Operation, Page, Version};

/// The first version of the protocol in which a listing can start at a key (`startFrom`).
const START_VERSION: &str = "2026-02-06";

/// The attribute of a name that XML can't contain. The name is percent-encoded.
const ENCODED: &[u8] = b"<Name Encoded=\"true\">";

fn request(list: &List, starts_at_key: bool) -> Outgoing {
    let start = start_of(list).filter(|_| starts_at_key);
    let include = match (list.soft_deleted, list.versions) {
        (true, _) => "metadata,deleted",
        (false, true) => "metadata,versions",
        (false, false) => "metadata",
    };
    let query = QueryString::new()
        .and("restype", "container")
        .and("comp", "list")
        .and("include", include)
        .and_some("prefix", Some(list.prefix.as_str()).filter(|prefix| !prefix.is_empty()))
        .and_some("delimiter", list.delimiter.as_deref())
        .and_some("startFrom", start)
        .and_some("marker", list.token.as_deref())
        .and_some("maxresults", list.max.map(|max| max.max(1).to_string()).as_deref());
    let target = format!("/{}{query}", container_of(&list.bucket));
    let mut outgoing = Outgoing { expected: Some(PAGE_ASSUMED), ..Outgoing::new(Method::GET, target) };
    if start.is_some() {
        let version = HeaderValue::from_static(START_VERSION);
        outgoing.headers.insert(HeaderName::from_static("x-ms-version"), version);
    }
    outgoing
}

/// Returns the key at which a listing starts. A key before the prefix changes nothing.
fn start_of(list: &List) -> Option<&str> {
    list.start_after.as_deref().filter(|start| *start > list.prefix.as_str())
}

/// One entry of a listing.
#[derive(Default)]
struct ListedBlob {
    name: Option<String>,
    fields: BTreeMap<String, String>,
    metadata: BTreeMap<String, String>,
}

impl ListedBlob {
    /// Parses a `Blob` element.
    fn read(entry: &[u8]) -> Result<Self, String> {
        let mut blob = Self::default();
        let (entry, metadata) = without_metadata(entry);
        if let Some(metadata) = metadata {
            xml::leaves(metadata, |depth, name, text| {
                if depth == 1 {
                    // Headers have these names in lower case.
                    blob.metadata.insert(name.to_ascii_lowercase(), text);
                }
                Ok(())
            })?;
        }
        let is_encoded = find(&entry, ENCODED).is_some();
        xml::leaves(&entry, |depth, name, text| {
            if (depth, name) == (1, "Name") {
                return match blob.name.replace(decoded(text, is_encoded)?) {
                    None => Ok(()),
                    Some(_) => Err("an entry has Name twice".to_owned()),
                };
            }
            // The properties lie one level deeper than the other fields, and none of them has the same name.
            match blob.fields.insert(name.to_owned(), text) {
                None => Ok(()),
                Some(_) if depth > 2 => Ok(()),
                Some(_) => Err(format!("an entry has {name} twice")),
            }
        })?;
        Ok(blob)
    }

    /// Returns true if the entry is a directory of an account with a hierarchical namespace. Laneway has no such objects.
    fn is_directory(&self) -> bool {
        self.fields.get("ResourceType").is_some_and(|kind| kind == "directory")
            || self.metadata.get("hdi_isfolder").is_some_and(|folder| folder.eq_ignore_ascii_case("true"))
    }

    fn is_deleted(&self) -> bool {
        self.fields.get("Deleted").is_some_and(|deleted| deleted == "true")
    }

    fn meta(mut self, list: &List) -> Result<ObjectMeta, String> {
        let name = self.name.take().ok_or("an entry has no Name")?;
        let size = self.take("Content-Length").ok_or("an entry has no Content-Length")?;
        let size = size.trim().parse().map_err(|_| format!("{size:?} isn't a size"))?;
        let id = ObjectId::new(&list.bucket, name);
        let version_id = self.take("VersionId");
        let id = match version_id.as_deref().filter(|_| list.versions) {
            Some(version) => id.at_version(version),
            None => id,
        };
        let mut meta = ObjectMeta::new(id, size);
        meta.version_id = version_id;
        // A version that isn't the live one lacks this element.
        let is_latest = self.take("IsCurrentVersion").is_some_and(|is| is == "true");
        meta.is_latest = list.versions.then_some(is_latest);
        meta.soft_deleted = date(self.take("DeletedTime").as_deref());
        meta.etag = self.take("Etag").as_deref().map(unquoted);
        meta.version = meta.etag.clone().map(Version::ETag);
        meta.updated = date(self.take("Last-Modified").as_deref());
        meta.created = date(self.take("Creation-Time").as_deref());
        meta.checksums.md5 = self.take("Content-MD5").as_deref().and_then(decode_md5);
        meta.content_type = self.take("Content-Type");
        meta.content_encoding = self.take("Content-Encoding");
        meta.content_language = self.take("Content-Language");
        meta.cache_control = self.take("Cache-Control");
        meta.content_disposition = self.take("Content-Disposition");
        meta.storage_class = self.take("AccessTier");
        meta.archived = meta.storage_class.as_deref() == Some(ARCHIVE);
        meta.archive_status = self.take("ArchiveStatus");
        meta.restore = meta.archive_status.clone();
        meta.kms_key = self.take("EncryptionScope");
        meta.tags = self.take("TagCount").and_then(|count| count.parse().ok());
        meta.metadata = Some(self.metadata);
        Ok(meta)
    }

    fn take(&mut self, name: &str) -> Option<String> {
        self.fields.remove(name).filter(|value| !value.is_empty())
    }
}

/// Returns a listed name as it is in the store.
fn decoded(text: String, is_encoded: bool) -> Result<String, String> {
    match is_encoded {
        false => Ok(text),
        true => match percent_decode_str(&text).decode_utf8() {
            Ok(name) => Ok(name.into_owned()),
            Err(_) => Err(format!("{text:?} isn't a key")),
        },
    }
}

/// Splits the user's metadata from an entry. The names of metadata may be the same as those of properties, and even
/// `Metadata`. So the metadata ends at the last closing tag of this name.
fn without_metadata(entry: &[u8]) -> (Vec<u8>, Option<&[u8]>) {
    const CLOSE: &[u8] = b"</Metadata>";
    let found = find(entry, b"<Metadata>").or_else(|| find(entry, b"<Metadata "));
    let end = found.and_then(|start| Some(start + rfind(&entry[start..], CLOSE)? + CLOSE.len()));
    match (found, end) {
        (Some(start), Some(end)) => ([&entry[..start], &entry[end..]].concat(), Some(&entry[start..end])),
        _ => (entry.to_vec(), None),
    }
}

/// Parses an answer while it arrives.
pub(super) struct AzurePageParser {
    cutter: Cutter,
    /// True once an entry beyond the requested end has arrived.
    is_beyond: bool,
    /// True until the first entry shows if the listing starts where the request asked.
    must_check_start: bool,
    /// Set if the listing begins before the requested key.
    ignores_start: Arc<AtomicBool>,
}

impl AzurePageParser {
    fn new(must_check_start: bool, ignores_start: Arc<AtomicBool>) -> Self {
        let cutter = Cutter::xml("<Blob>", "</Blob>");
        Self { cutter, is_beyond: false, must_check_start, ignores_start }
    }

    /// Returns true if the caller asked for this key or common prefix.
    fn is_wanted(&mut self, list: &List, key: &str) -> bool {
        let is_prefix = list.delimiter.as_deref().is_some_and(|delimiter| key.ends_with(delimiter));
        if std::mem::take(&mut self.must_check_start)
            && let Some(start) = start_of(list)
            // A common prefix stands for its last key, which may lie behind the start.
            && key < start
            && !(is_prefix && start.starts_with(key))
        {
            self.ignores_start.store(true, Ordering::Relaxed);
        }
        let is_beyond = list.end_before.as_deref().is_some_and(|end| key >= end);
        self.is_beyond |= is_beyond;
        let is_before = list
            .start_after
            .as_deref()
            .is_some_and(|start| key <= start && !(is_prefix && key < start && start.starts_with(key)));
        !is_beyond && !is_before
    }

    fn object(&mut self, list: &List, entry: &[u8]) -> Result<Option<ObjectMeta>, String> {
        let blob = ListedBlob::read(entry)?;
        // A listing of deleted blobs also has those that aren't deleted.
        let is_left_out = blob.is_directory() || blob.is_deleted() != list.soft_deleted;
        let meta = blob.meta(list)?;
        let is_wanted = self.is_wanted(list, &meta.id.key);
        Ok(Some(meta).filter(|_| is_wanted && !is_left_out))
    }
}

impl PageParser for AzurePageParser {
    fn take(&mut self, list: &List, bytes: &[u8]) -> Result<Vec<ObjectMeta>, String> {
        let mut objects = Vec::new();
        for entry in self.cutter.take(bytes) {
            objects.extend(self.object(list, &entry)?);
        }
        Ok(objects)
    }

    fn end(mut self, list: &List) -> Result<Page, String> {
        let cutter = std::mem::replace(&mut self.cutter, Cutter::xml("", ""));
        let rest = cutter.into_rest();
        let mut page = Page::default();
        let (mut names, mut next, mut is_root, mut prefixes) = (Vec::new(), None, true, 0);
        let mut is_ended = false;
        let is_encoded = prefix_codings(&rest);
        xml::elements(&rest, |step| {
            match step {
                XmlStep::Begin(name) => {
                    if std::mem::take(&mut is_root) && name != "EnumerationResults" {
                        return Err(format!("it begins with <{name}>"));
                    }
                    if name == "Blob" {
                        return Err("an entry doesn't end".to_owned());
                    }
                    names.push(name.to_owned());
                }
                XmlStep::End(text) => {
                    let name = names.pop().unwrap_or_default();
                    match (name.as_str(), names.last().map(String::as_str)) {
                        ("Name", Some("BlobPrefix")) => {
                            let is_encoded = is_encoded.get(prefixes).copied().unwrap_or(false);
                            prefixes += 1;
                            page.prefixes.push(decoded(text.to_owned(), is_encoded)?);
                        }
                        ("NextMarker", Some("EnumerationResults")) => next = Some(text.to_owned()),
                        ("EnumerationResults", None) => is_ended = true,
                        _ => {}
                    }
                }
            }
            Ok(())
        })?;
        match (is_root, is_ended) {
            (true, _) => return Err("it isn't XML".to_owned()),
            (false, false) => return Err("the document doesn't end".to_owned()),
            (false, true) => {}
        }
        let prefixes = std::mem::take(&mut page.prefixes);
        page.prefixes = prefixes.into_iter().filter(|prefix| self.is_wanted(list, prefix)).collect();
        page.next = next.filter(|next| !next.is_empty() && !self.is_beyond);
        Ok(page)
    }
}

/// Returns for each common prefix in a document if its name is percent-encoded.
fn prefix_codings(rest: &[u8]) -> Vec<bool> {
    let mut codings = Vec::new();
    let mut rest = rest;
    while let Some(at) = find(rest, b"<BlobPrefix>") {
        rest = &rest[at + b"<BlobPrefix>".len()..];
        codings.push(rest.trim_ascii_start().starts_with(ENCODED));
    }
    codings
}

impl Azure {
    /// Returns true if listings of this bucket can start at a key, as far as is known.
    pub(super) fn starts_listings_at_keys(&self, bucket: &str) -> bool {
        !self.ignores_start.load(Ordering::Relaxed) && !self.address.is_onelake(bucket)
    }

    pub(super) async fn list_page(
        &self,
        list: &List,
        mut out: impl FnMut(Vec<ObjectMeta>) + Send,
    ) -> Result<Page, Error> {
        let exchange = Exchange::bucket(self, Operation::List, &list.bucket).below(&list.prefix);
        let starts = self.starts_listings_at_keys(&list.bucket) && start_of(list).is_some();
        match self.page(&exchange, list, starts, &mut out).await {
            // An older server refuses the version in which listings can start at a key.
            Err(error) if starts && (error.is_invalid() || error.is_unsupported()) => {
                let page = self.page(&exchange, list, false, &mut out).await.map_err(|_| error)?;
                self.ignore_start();
                Ok(page)
            }
            listed => listed,
        }
    }

    async fn page(
        &self,
        exchange: &Exchange<'_, Self>,
        list: &List,
        starts: bool,
        out: impl FnMut(Vec<ObjectMeta>) + Send,
    ) -> Result<Page, Error> {
        let ignores = Arc::new(AtomicBool::new(false));
        let must_check = starts && list.token.is_none();
        let parser = || AzurePageParser::new(must_check, Arc::clone(&ignores));
        let page = fetch_page(exchange, &request(list, starts), list, parser, out).await?;
        if ignores.load(Ordering::Relaxed) {
            self.ignore_start();
        }
        Ok(page)
    }

    /// Remembers that listings of this endpoint can't start at a key. From now on, each listing is one chain of pages.
    fn ignore_start(&self) {
        if !self.ignores_start.swap(true, Ordering::Relaxed) {
            tracing::info!(
                "the endpoint can't start listings at a key, so later listings aren't read in parallel"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(list: &List, body: &str, check: bool) -> Result<(Vec<ObjectMeta>, Page, bool), String> {
        let ignores = Arc::new(AtomicBool::new(false));
        let mut parser = AzurePageParser::new(check, Arc::clone(&ignores));
        let mut objects = Vec::new();
        for chunk in body.as_bytes().chunks(7) {
            objects.extend(parser.take(list, chunk)?);
        }
        let page = parser.end(list)?;
        Ok((objects, page, ignores.load(Ordering::Relaxed)))
    }

    fn blob(name: &str) -> String {
        format!("<Blob><Name>{name}</Name><Properties><Content-Length>1</Content-Length></Properties></Blob>")
    }

    fn document(blobs: &str, next: &str) -> String {
        format!(
            "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"https://a/\" \
             ContainerName=\"abc\"><Blobs>{blobs}</Blobs><NextMarker>{next}</NextMarker></EnumerationResults>"
        )
    }

    fn keys(objects: &[ObjectMeta]) -> Vec<&str> {
        objects.iter().map(|object| object.id.key.as_str()).collect()
    }

    #[test]
    fn reads_state_checksum_tier_and_metadata_of_an_entry() {
        let entry = "<Blob><Name>a &amp; b</Name><Properties><Creation-Time>Sun, 29 Nov 2026 09:00:00 GMT</Creation-Time>\
            <Last-Modified>Sun, 29 Nov 2026 09:00:00 GMT</Last-Modified><Etag>0x8D1</Etag><Content-Length>5</Content-Length>\
            <Content-Type>text/plain</Content-Type><Content-Encoding /><Content-MD5>XrY7u+Ae7tCTyyK7j1rNww==</Content-MD5>\
            <AccessTier>Archive</AccessTier></Properties><Metadata><Etag>mine</Etag><mtime>17</mtime></Metadata>\
            <OrMetadata /></Blob>";
        let list = List::new("abc", "");
        let (objects, page, _) = page(&list, &document(entry, ""), false).expect("a page");
        let object = &objects[0];
        assert_eq!((object.id.key.as_str(), object.size), ("a & b", 5));
        assert_eq!(object.version, Some(Version::ETag("0x8D1".to_owned())));
        assert!(object.checksums.md5.is_some() && object.archived && object.updated.is_some());
        assert_eq!(object.content_encoding, None);
        let metadata = object.metadata.as_ref().expect("metadata");
        assert_eq!((metadata["etag"].as_str(), metadata["mtime"].as_str()), ("mine", "17"));
        assert_eq!(page.next, None);
    }

    #[test]
    fn metadata_may_have_the_names_of_the_listings_own_elements() {
        let entry = "<Blob><Name>a</Name><Properties><Content-Length>1</Content-Length></Properties><Metadata>\
            <Blob>1</Blob><Metadata>2</Metadata><Name>3</Name></Metadata><Tags><TagSet /></Tags><OrMetadata /></Blob>";
        let list = List::new("abc", "");
        let (objects, ..) = page(&list, &document(&[entry, &blob("b")].concat(), ""), false).expect("a page");
        assert_eq!(keys(&objects), ["a", "b"]);
        let metadata = objects[0].metadata.as_ref().expect("metadata");
        assert_eq!((&*metadata["blob"], &*metadata["metadata"], &*metadata["name"]), ("1", "2", "3"));
    }

    #[test]
    fn names_that_xml_cannot_contain_are_decoded() {
        let blobs = format!(
            "<Blob><Name Encoded=\"true\">a%EF%BF%BE%25</Name><Properties><Content-Length>1</Content-Length></Properties></Blob>{}",
            blob("b%25")
        );
        let prefixes = "<BlobPrefix><Name Encoded=\"true\">c%EF%BF%BF/</Name></BlobPrefix><BlobPrefix><Name>d%25/</Name></BlobPrefix>";
        let list = List { delimiter: Some("/".to_owned()), ..List::new("abc", "") };
        let (objects, page, _) =
            page(&list, &document(&format!("{blobs}{prefixes}"), "m"), false).expect("a page");
        assert_eq!(keys(&objects), ["a\u{fffe}%", "b%25"]);
        assert_eq!(page.prefixes, ["c\u{ffff}/", "d%25/"]);
        assert_eq!(page.next.as_deref(), Some("m"));
    }

    #[test]
    fn a_listing_starts_inclusively_so_the_start_itself_is_dropped() {
        let list = List {
            start_after: Some("b".to_owned()),
            end_before: Some("d".to_owned()),
            ..List::new("abc", "")
        };
        let sent = request(&list, true);
        assert!(sent.target.contains("startFrom=b"), "{}", sent.target);
        assert_eq!(sent.headers["x-ms-version"], START_VERSION);
        let blobs = [blob("b"), blob("c"), blob("d")].concat();
        let (objects, page, ignores) = page(&list, &document(&blobs, "next"), true).expect("a page");
        assert_eq!((keys(&objects), page.next, ignores), (vec!["c"], None, false));
    }

    #[test]
    fn a_server_that_ignores_the_start_is_found_out() {
        let list = List { start_after: Some("b".to_owned()), ..List::new("abc", "") };
        let blobs = [blob("a"), blob("c")].concat();
        let (objects, _, ignores) = page(&list, &document(&blobs, ""), true).expect("a page");
        assert_eq!((keys(&objects), ignores), (vec!["c"], true));
        assert!(!request(&list, false).target.contains("startFrom"));
        let inside = List {
            start_after: Some("a/b".to_owned()),
            delimiter: Some("/".to_owned()),
            ..List::new("abc", "")
        };
        let folder = "<BlobPrefix><Name>a/</Name></BlobPrefix>";
        let (_, page, ignores) = page(&inside, &document(folder, ""), true).expect("a page");
        assert_eq!((page.prefixes, ignores), (vec!["a/".to_owned()], false));
    }

    #[test]
    fn directories_of_a_hierarchical_account_are_left_out() {
        let directory = "<Blob><Name>d</Name><Properties><Content-Length>0</Content-Length><ResourceType>directory</ResourceType>\
            </Properties></Blob><Blob><Name>e</Name><Properties><Content-Length>0</Content-Length></Properties>\
            <Metadata><hdi_isfolder>true</hdi_isfolder></Metadata></Blob>";
        let (objects, ..) = page(&List::new("abc", ""), &document(directory, ""), false).expect("a page");
        assert!(objects.is_empty());
    }

    #[test]
    fn versions_have_their_ids_and_the_live_one_is_marked() {
        let version = |id: &str, current: &str| {
            format!(
                "<Blob><Name>a</Name><VersionId>{id}</VersionId>{current}<Properties><Content-Length>1</Content-Length></Properties></Blob>"
            )
        };
        let blobs = [version("v1", ""), version("v2", "<IsCurrentVersion>true</IsCurrentVersion>")].concat();
        let list = List { versions: true, ..List::new("abc", "") };
        let (objects, ..) = page(&list, &document(&blobs, ""), false).expect("a page");
        let found: Vec<_> = objects.iter().map(|o| (o.id.version.as_deref(), o.is_latest)).collect();
        assert_eq!(found, [(Some("v1"), Some(false)), (Some("v2"), Some(true))]);
    }

    #[test]
    fn answers_that_are_no_listing_are_refused() {
        let list = List::new("abc", "");
        for body in ["", "{}", "<html></html>", "<Error><Code>X</Code></Error>"] {
            assert!(page(&list, body, false).is_err(), "{body}");
        }
        let whole = document(&blob("a"), "");
        for cut in [whole.len() / 2, whole.len() - 3] {
            assert!(page(&list, &whole[..cut], false).is_err(), "{cut}");
        }
    }
}
