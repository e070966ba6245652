//! `list` and `buckets`.

use http::{HeaderValue, Method};
use serde::Deserialize;

use super::address::is_directory;
use super::conditions::unquoted;
use super::restore::{RestoreStatus, RestoreStatusSupport};
use super::{S3, restore, versions};
use crate::encode::{QueryString, decode_listed};
use crate::exchange::{Exchange, Outgoing};
use crate::listing::cutter::{Cutter, TextSearch};
use crate::listing::page::{PAGE_ASSUMED, PageParser, fetch_page};
use crate::listing::{ENTRIES_MAX, TOO_MANY, Tokens};
use crate::timestamp::rfc3339;
use crate::{Error, ErrorKind, List, ObjectId, ObjectMeta, Operation, Page, Version, xml};

/// The number of buckets on a page. If an account's quota is above 10,000 buckets, S3 lists them only in pages.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/BucketRestrictions.html>
const BUCKETS_PAGE: &str = "1000";

/// The element of an answer that shows that its keys are percent-encoded.
const URL_ENCODED: &[u8] = b"<EncodingType>url</EncodingType>";

/// The first character of a token that Laneway itself makes, because a truncated page has none. The version of the
/// request and the last key follow this character. XML can't contain this character, so no store's token begins with
/// it.
const OWN_TOKEN: char = '\0';

/// A character that sorts after all others. Appended to a common prefix, it makes a text that sorts after all keys
/// below the prefix. If a page began after the prefix alone, it could contain the same prefix again.
const BEHIND_FOLDER: char = '\u{10ffff}';

/// The version of the request for a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ListForm {
    /// ListObjects, which all services have.
    First,
    /// ListObjectsV2.
    Second,
}

impl ListForm {
    fn token(self, key: &str) -> String {
        let form = if self == Self::First { '1' } else { '2' };
        format!("{OWN_TOKEN}{form}{key}")
    }
}

/// Returns the version and the last key in a token that Laneway made itself.
fn own_token(token: &str) -> Option<(ListForm, &str)> {
    let text = token.strip_prefix(OWN_TOKEN)?;
    let first = text.strip_prefix('1').map(|key| (ListForm::First, key));
    first.or_else(|| Some((ListForm::Second, text.strip_prefix('2')?)))
}

fn request(list: &List, form: ListForm, asks_restores: bool) -> Outgoing {
    let ordered = is_ordered(list);
    let prefix = if is_directory(&list.bucket) { folder(&list.prefix) } else { list.prefix.as_str() };
    let own = list.token.as_deref().and_then(own_token);
    let token = list.token.as_deref().filter(|_| own.is_none());
    let (form, after) = match own {
        Some((form, key)) => (form, Some(key)),
        None => (form, list.start_after.as_deref().filter(|_| ordered)),
    };
    let query = match form {
        ListForm::First => QueryString::new(),
        ListForm::Second => QueryString::new().and("list-type", "2"),
    };
    let query = query
        // XML can't contain every key, but it can contain every percent-encoded key.
        .and("encoding-type", "url")
        .and_some("prefix", Some(prefix).filter(|prefix| !prefix.is_empty()))
        .and_some("delimiter", list.delimiter.as_deref())
        .and_some(if form == ListForm::First { "marker" } else { "start-after" }, after)
        .and_some("continuation-token", token)
        .and_some("max-keys", list.max.map(|max| max.to_string()).as_deref());
    let mut outgoing =
        Outgoing { expected: Some(PAGE_ASSUMED), ..Outgoing::new(Method::GET, query.to_string()) };
    if asks_restores {
        let attribute = HeaderValue::from_static(restore::ATTRIBUTE);
        outgoing.headers.insert(restore::HEADER, attribute);
    }
    outgoing
}

/// Returns true if a listing is sorted by key. Listings of directory buckets aren't. These buckets accept only folders
/// as prefixes and no `start-after`, so Laneway itself drops the entries outside the requested range. It does the same
/// for other unsorted buckets.
fn is_ordered(list: &List) -> bool {
    !is_directory(&list.bucket) && !list.is_unsorted
}

/// Returns a prefix up to and including its last slash, or an empty prefix if it has no slash.
fn folder(prefix: &str) -> &str {
    &prefix[..prefix.rfind('/').map_or(0, |slash| slash + 1)]
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct ListBucketResult {
    encoding_type: Option<String>,
    is_truncated: bool,
    next_continuation_token: Option<String>,
    /// Only ListObjectsV2 returns it.
    key_count: Option<String>,
    /// Only ListObjects returns it, and on AWS only if the request has a delimiter.
    next_marker: Option<String>,
    /// Entries that the cutter doesn't find, because their tags have a prefix or attributes.
    contents: Vec<ListedObject>,
    common_prefixes: Vec<CommonPrefix>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListedObject {
    key: String,
    size: u64,
    #[serde(rename = "ETag")]
    etag: Option<String>,
    last_modified: Option<String>,
    storage_class: Option<String>,
    restore_status: Option<RestoreStatus>,
}

impl ListedObject {
    /// Parses one entry. An entry with a duplicate field is invalid.
    fn read(entry: &[u8]) -> Result<Self, String> {
        let (mut key, mut size, mut content, mut restore) = (None, None, Self::default(), None);
        xml::leaves(entry, |depth, name, text| {
            let field = match (depth, name) {
                (1, "Key") => &mut key,
                (1, "Size") => &mut size,
                (1, "ETag") => &mut content.etag,
                (1, "LastModified") => &mut content.last_modified,
                (1, "StorageClass") => &mut content.storage_class,
                (2, name) => match restore.get_or_insert_with(RestoreStatus::default).field(name) {
                    Some(field) => field,
                    None => return Ok(()),
                },
                _ => return Ok(()),
            };
            match field.replace(text) {
                None => Ok(()),
                Some(_) => Err(format!("an entry has {name} twice")),
            }
        })?;
        let size = size.ok_or("an entry has no Size")?;
        content.key = key.ok_or("an entry has no Key")?;
        content.size = size.trim().parse().map_err(|_| format!("{size:?} isn't a size"))?;
        content.restore_status = restore.filter(|restore| *restore != RestoreStatus::default());
        Ok(content)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct CommonPrefix {
    #[serde(default)]
    pub(super) prefix: String,
}

/// Parses an answer while it arrives.
pub(super) struct S3PageParser {
    cutter: Cutter,
    /// `true` if the answer has declared that its keys are percent-encoded. MinIO declares it only at the end.
    encoded: bool,
    says_encoded: TextSearch,
    /// Entries that can't be passed on yet, because it isn't known if their keys are percent-encoded. They begin with
    /// the first key for which that makes a difference.
    held: Vec<ListedObject>,
    /// The last key.
    last: String,
    /// `true` if the answer contained entries beyond the requested end.
    beyond: bool,
    /// `true` if the request asked for the restore status.
    asked_restores: bool,
}

impl S3PageParser {
    pub(super) fn new(asked_restores: bool) -> Self {
        let (cutter, says_encoded) = (Cutter::xml("<Contents>", "</Contents>"), TextSearch::new(URL_ENCODED));
        Self {
            cutter,
            encoded: false,
            says_encoded,
            held: Vec::new(),
            last: String::new(),
            beyond: false,
            asked_restores,
        }
    }

    fn name(&self, text: String) -> Result<String, String> {
        match self.encoded {
            true => decode_listed(&text).ok_or_else(|| format!("{text:?} isn't a key")),
            false => Ok(text),
        }
    }

    fn meta(&mut self, list: &List, content: ListedObject) -> Result<Option<ObjectMeta>, String> {
        let id = ObjectId::new(&list.bucket, self.name(content.key)?);
        self.last.clone_from(&id.key);
        if !is_inside(list, &id.key) {
            self.beyond |= is_ordered(list);
            return Ok(None);
        }
        let mut meta = ObjectMeta::new(id, content.size);
        meta.etag = content.etag.as_deref().map(unquoted);
        meta.version = meta.etag.clone().map(Version::ETag);
        meta.updated = content.last_modified.as_deref().and_then(rfc3339);
        meta.storage_class = content.storage_class;
        restore::apply(&mut meta, content.restore_status, self.asked_restores);
        Ok(Some(meta))
    }
}

impl PageParser for S3PageParser {
    fn take(&mut self, list: &List, bytes: &[u8]) -> Result<Vec<ObjectMeta>, String> {
        let entries = self.cutter.take(bytes);
        self.encoded = self.says_encoded.has_come(self.cutter.rest());
        let mut objects = Vec::with_capacity(self.held.len() + entries.len());
        if self.encoded {
            for content in std::mem::take(&mut self.held) {
                objects.extend(self.meta(list, content)?);
            }
        }
        for entry in entries {
            let content = ListedObject::read(&entry)?;
            let is_doubtful = !self.held.is_empty() || content.key.contains(['%', '+']);
            match !self.encoded && is_doubtful {
                true => self.held.push(content),
                false => objects.extend(self.meta(list, content)?),
            }
        }
        match self.held.len() > ENTRIES_MAX {
            true => Err(TOO_MANY.to_owned()),
            false => Ok(objects),
        }
    }

    fn end(mut self, list: &List) -> Result<Page, String> {
        let cutter = std::mem::replace(&mut self.cutter, Cutter::xml("", ""));
        let answer: ListBucketResult = xml::answer(&cutter.into_rest(), &["ListBucketResult"])?;
        if answer.contents.len() > ENTRIES_MAX {
            return Err(TOO_MANY.to_owned());
        }
        self.encoded = answer.encoding_type.as_deref() == Some("url");
        let mut page = Page::default();
        for content in std::mem::take(&mut self.held).into_iter().chain(answer.contents) {
            page.objects.extend(self.meta(list, content)?);
        }
        for common in answer.common_prefixes {
            let prefix = self.name(common.prefix)?;
            if is_inside(list, &prefix) {
                page.prefixes.push(prefix);
            } else {
                self.beyond |= is_ordered(list);
            }
        }
        if answer.is_truncated && !self.beyond {
            let given = answer.next_continuation_token.filter(|token| !token.is_empty());
            let form = if answer.key_count.is_some() { ListForm::Second } else { ListForm::First };
            let marker = answer.next_marker.filter(|marker| !marker.is_empty());
            let marker = marker.map(|marker| self.name(marker)).transpose()?;
            page.next = match given {
                Some(token) => Some(token),
                None => Some(form.token(&self.end_of(list, &page, marker)?)),
            };
        }
        Ok(page)
    }
}

impl S3PageParser {
    /// Returns the key after which the next page begins, if a truncated page has no token.
    fn end_of(&self, list: &List, page: &Page, marker: Option<String>) -> Result<String, String> {
        let behind_folder = page.prefixes.last().map(|prefix| format!("{prefix}{BEHIND_FOLDER}"));
        let last = Some(self.last.clone()).filter(|last| !last.is_empty());
        // If the listing isn't sorted, only a marker can tell where the next page begins.
        let last = last.max(behind_folder).filter(|_| is_ordered(list));
        let end = marker
            .or(last)
            .ok_or("the listing says that it is truncated, but has no token for the next page")?;
        let before = match list.token.as_deref().and_then(own_token) {
            Some((_, key)) => Some(key),
            None => list.start_after.as_deref(),
        };
        match is_ordered(list) && before.is_some_and(|before| end.as_str() <= before) {
            true => Err(format!(
                "the listing says that it is truncated, but its next page would begin at {end:?} again"
            )),
            false => Ok(end),
        }
    }
}

fn is_inside(list: &List, key: &str) -> bool {
    list.end_before.as_deref().is_none_or(|end| key < end)
        && (is_ordered(list)
            || (key.starts_with(&list.prefix) && list.start_after.as_deref().is_none_or(|after| after < key)))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListAllMyBucketsResult {
    #[serde(default)]
    buckets: OwnedBuckets,
    continuation_token: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
struct OwnedBuckets {
    #[serde(default)]
    bucket: Vec<OwnedBucket>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OwnedBucket {
    name: String,
}

impl S3 {
    pub(crate) async fn list_page(
        &self,
        list: &List,
        mut out: impl FnMut(Vec<ObjectMeta>) + Send,
    ) -> Result<Page, Error> {
        let exchange = Exchange::bucket(self, Operation::List, &list.bucket).below(&list.prefix);
        if list.soft_deleted {
            let message = "S3 keeps no deleted objects; a bucket may keep versions";
            return Err(exchange.error(ErrorKind::Unsupported, message));
        }
        if list.versions {
            return fetch_page(
                &exchange,
                &versions::request(list),
                list,
                versions::VersionsPageParser::default,
                out,
            )
            .await;
        }
        let form = self.list_form.get().copied();
        let listed = self.list_in_form(&exchange, list, form.unwrap_or(ListForm::Second), &mut out).await;
        // The first page of a listing shows whether the endpoint supports ListObjectsV2. Later pages show nothing more.
        let is_known = form.is_some() || self.address.origin().is_none() || is_directory(&list.bucket);
        if is_known || list.token.is_some() {
            return listed;
        }
        match listed {
            Ok(page) => {
                if let Some(next) = &page.next {
                    let shown = own_token(next).map_or(ListForm::Second, |(form, _)| form);
                    let _ = self.list_form.set(shown);
                }
                Ok(page)
            }
            Err(error) if error.is_unsupported() || error.is_invalid() => {
                let listed = self.list_in_form(&exchange, list, ListForm::First, &mut out).await;
                let page = listed.map_err(|_| error)?;
                tracing::info!(
                    "the endpoint doesn't support ListObjectsV2, so ListObjects is used from now on"
                );
                let _ = self.list_form.set(ListForm::First);
                Ok(page)
            }
            Err(error) => Err(error),
        }
    }

    /// Requests a page with this version of the request. If the endpoint supports it, the restore status of the objects
    /// is requested too.
    async fn list_in_form(
        &self,
        exchange: &Exchange<'_, Self>,
        list: &List,
        form: ListForm,
        mut out: impl FnMut(Vec<ObjectMeta>) + Send,
    ) -> Result<Page, Error> {
        // Directory buckets contain nothing archived. Stores other than Amazon's may ignore the request for the restore
        // status. In their listings, a missing status wouldn't prove that an object isn't restored.
        let tells = self.restores.is_allowed() && self.conditions.lists_what_is_restored();
        let asks = tells && !is_directory(&list.bucket);
        if asks {
            let outgoing = request(list, form, true);
            match fetch_page(exchange, &outgoing, list, || S3PageParser::new(true), &mut out).await {
                Err(error) if RestoreStatusSupport::may_be_why(&error) => {}
                listed => return listed,
            }
        }
        let listed =
            fetch_page(exchange, &request(list, form, false), list, || S3PageParser::new(false), out).await;
        listed.inspect(|_| {
            if asks {
                self.restores.refused();
            }
        })
    }

    pub(crate) async fn list_buckets(&self) -> Result<Vec<String>, Error> {
        let exchange = Exchange::bucket(self, Operation::List, "");
        let (mut names, mut tokens) = (Vec::new(), Tokens::default());
        let mut token: Option<String> = None;
        let mut page = Some(BUCKETS_PAGE);
        loop {
            let query = QueryString::new().and_some("continuation-token", token.as_deref());
            let query = query.and_some("max-buckets", page);
            let sent = match exchange.send(&Outgoing::new(Method::GET, query.to_string())).await {
                // Other stores may refuse the parameter for pages of buckets, so try again without it.
                Err(error)
                    if page.is_some()
                        && token.is_none()
                        && (error.is_invalid() || error.is_unsupported()) =>
                {
                    page = None;
                    continue;
                }
                sent => sent?,
            };
            let roots = ["ListAllMyBucketsResult", "ListAllMyDirectoryBucketsResult"];
            let answer: ListAllMyBucketsResult = xml::answer(&sent.response.body, &roots)
                .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't a list of buckets: {e}")))?;
            names.extend(answer.buckets.bucket.into_iter().map(|bucket| bucket.name));
            token = tokens.next(answer.continuation_token).map_err(|e| exchange.nonsense(&sent, e))?;
            if token.is_none() {
                return Ok(names);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_a_whole_document_would_be() {
        let fields = |content: Result<ListedObject, String>| {
            let ListedObject { key, size, etag, last_modified, storage_class, restore_status } =
                content.ok()?;
            Some((key, size, etag, last_modified, storage_class, restore_status))
        };
        for inner in [
            "<Key>k</Key><Size>1</Size>",
            "<Key>a&amp;b &#233;&#x20; c</Key>\n  <Size> 7 </Size><ETag>&quot;e&quot;</ETag>",
            "<Size>1</Size><Key><![CDATA[<k>&]]> l</Key><StorageClass>GLACIER</StorageClass>             <RestoreStatus><IsRestoreInProgress>false</IsRestoreInProgress>             <RestoreExpiryDate>d</RestoreExpiryDate></RestoreStatus><LastModified>t</LastModified>",
            "<s:Key>k</s:Key><Size>1</Size><Owner><ID>i</ID><DisplayName>Key</DisplayName></Owner><Other/>",
            "<Key>a<!-- a comment -->b</Key><Size>1</Size><ETag/>",
            "<Key> k </Key><Size>18446744073709551615</Size>",
            "<Key>k</Key><Size>18446744073709551616</Size>",
            "<Key>k</Key><Size>-1</Size>",
            "<Key>k</Key><Size></Size>",
            "<Key>k</Key>",
            "<Size>1</Size>",
            "<Key>k</Key><Key>l</Key><Size>1</Size>",
            "<Key>&unknown;</Key><Size>1</Size>",
            "<Key>k</Other><Size>1</Size>",
            "<Key>k<Size>1</Size>",
        ] {
            let entry = format!("<Contents>{inner}</Contents>");
            let read = fields(ListedObject::read(entry.as_bytes()));
            assert_eq!(read, fields(xml::read(entry.as_bytes())), "{entry}");
        }
    }

    fn page(list: &List, body: &[u8]) -> Result<Page, String> {
        let mut arriving = S3PageParser::new(false);
        let mut objects = Vec::new();
        for chunk in body.chunks(40) {
            objects.extend(arriving.take(list, chunk)?);
        }
        let page = arriving.end(list)?;
        objects.extend(page.objects);
        Ok(Page { objects, ..page })
    }

    #[test]
    fn keys_that_may_be_encoded_wait_until_the_answer_says_so() {
        let list = List::new("b", "");
        let keys = |objects: Vec<ObjectMeta>| objects.into_iter().map(|o| o.id.key).collect::<Vec<_>>();
        let entry = |key| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>");
        let mut arriving = S3PageParser::new(false);
        let begin = format!(
            "<ListBucketResult><IsTruncated>false</IsTruncated>{}{}{}",
            entry("a"),
            entry("b+c"),
            entry("d")
        );
        assert_eq!(keys(arriving.take(&list, begin.as_bytes()).expect("entries")), ["a"]);
        let none = arriving.take(&list, b"<EncodingType>ur").expect("entries");
        assert!(none.is_empty());
        let rest = arriving.take(&list, b"l</EncodingType></ListBucketResult>").expect("entries");
        let page = arriving.end(&list).expect("a page");
        assert_eq!(keys(rest.into_iter().chain(page.objects).collect()), ["b c", "d"]);
    }

    #[test]
    fn entries_with_attributes_or_a_prefix_are_read_at_the_end() {
        let bodies = [
            r#"<ListBucketResult><Contents xmlns=""><Key>a</Key><Size>1</Size></Contents><IsTruncated>false</IsTruncated></ListBucketResult>"#,
            r#"<s:ListBucketResult><s:IsTruncated>false</s:IsTruncated><s:Contents><s:Key>a</s:Key><s:Size>1</s:Size></s:Contents></s:ListBucketResult>"#,
        ];
        for body in bodies {
            let page = page(&List::new("b", ""), body.as_bytes()).expect("a page");
            assert_eq!(
                page.objects.iter().map(|o| (o.id.key.as_str(), o.size)).collect::<Vec<_>>(),
                [("a", 1)]
            );
        }
    }

    const ANSWER: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix></Prefix><KeyCount>3</KeyCount>
<MaxKeys>1000</MaxKeys><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>t+/=</NextContinuationToken>
<Contents><Key>a+b%2Bc//d</Key><LastModified>2026-11-21T09:04:05.000Z</LastModified><ETag>&quot;e1&quot;</ETag><Size>3</Size><StorageClass>STANDARD</StorageClass></Contents>
<CommonPrefixes><Prefix>p%C3%A9/</Prefix></CommonPrefixes>
<Contents><Key>z</Key><LastModified>2026-11-21T09:04:05.000Z</LastModified><ETag>"e2"</ETag><ChecksumAlgorithm>CRC32C</ChecksumAlgorithm><Size>4</Size></Contents>
</ListBucketResult>"#;

    #[test]
    fn a_page_is_read_with_its_keys_decoded() {
        let page = page(&List::new("b", ""), ANSWER.as_bytes()).expect("a page");
        let keys: Vec<_> = page.objects.iter().map(|o| (o.id.key.as_str(), o.size)).collect();
        assert_eq!(keys, [("a b+c//d", 3), ("z", 4)]);
        assert_eq!(page.objects[0].version, Some(Version::ETag("e1".into())));
        assert_eq!(page.prefixes, ["pé/"]);
        assert_eq!(page.next.as_deref(), Some("t+/="));
    }

    #[test]
    fn the_listing_ends_where_it_was_asked_to() {
        let list = List { end_before: Some("q".into()), ..List::new("b", "") };
        let page = page(&list, ANSWER.as_bytes()).expect("a page");
        assert_eq!(page.objects.len(), 1);
        assert_eq!(page.next, None);
    }

    #[test]
    fn a_directory_buckets_listing_has_no_order_and_is_sifted() {
        let list = List {
            start_after: Some("p/a".into()),
            end_before: Some("p/d".into()),
            delimiter: Some("/".into()),
            ..List::new("b--usw2-az1--x-s3", "p/x")
        };
        assert_eq!(
            request(&list, ListForm::Second, false).target,
            "?list-type=2&encoding-type=url&prefix=p%2F&delimiter=%2F"
        );
        let entry = |key: &str| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>");
        let body = format!(
            "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>{}</ListBucketResult>",
            ["p/xc", "p/z", "p/b", "p/xa", "p/a"].map(entry).concat()
        );
        let list = List { start_after: None, end_before: Some("p/xb".into()), ..list };
        let page = page(&list, body.as_bytes()).expect("a page");
        assert_eq!(page.objects.iter().map(|o| o.id.key.as_str()).collect::<Vec<_>>(), ["p/xa"]);
        assert_eq!(page.next.as_deref(), Some("t"), "what is beyond may be followed by what is not");
    }

    #[test]
    fn an_empty_bucket_has_an_empty_page() {
        let body = br#"<ListBucketResult xmlns="x"><Name>b</Name><IsTruncated>false</IsTruncated></ListBucketResult>"#;
        assert_eq!(page(&List::new("b", ""), body), Ok(Page::default()));
    }

    #[test]
    fn a_listing_asks_for_encoded_keys() {
        let list =
            List { start_after: Some("a/b".into()), delimiter: Some("/".into()), ..List::new("b", "p q") };
        assert_eq!(
            request(&list, ListForm::Second, false).target,
            "?list-type=2&encoding-type=url&prefix=p%20q&delimiter=%2F&start-after=a%2Fb"
        );
        assert!(request(&list, ListForm::Second, false).headers.is_empty());
        assert_eq!(
            request(&list, ListForm::Second, true).headers["x-amz-optional-object-attributes"],
            "RestoreStatus"
        );
    }

    #[test]
    fn buckets_are_read() {
        let body = br#"<ListAllMyBucketsResult xmlns="x"><Owner><ID>1</ID></Owner><Buckets><Bucket><Name>a</Name></Bucket><Bucket><Name>b</Name></Bucket></Buckets></ListAllMyBucketsResult>"#;
        let owned: ListAllMyBucketsResult = xml::read(body).expect("an answer");
        assert_eq!(owned.buckets.bucket.iter().map(|b| b.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert!(
            xml::read::<ListAllMyBucketsResult>(
                b"<ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>"
            )
            .is_ok()
        );
    }
}
