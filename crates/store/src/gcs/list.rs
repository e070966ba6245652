//! `list` and `buckets`.

use http::header::{ACCEPT_ENCODING, USER_AGENT};
use http::{HeaderValue, Method};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Gcs;
use super::resource::{FIELDS, FIELDS_OF_VERSIONS, ObjectResource};
use crate::encode::{QueryString, component};
use crate::exchange::{Exchange, HTML, Outgoing};
use crate::listing::cutter::{Cutter, TextSearch};
use crate::listing::page::{PAGE_ASSUMED, PageParser, fetch_page};
use crate::listing::{ENTRIES_MAX, TOO_MANY, Tokens};
use crate::{Error, ErrorKind, List, ObjectId, ObjectMeta, Operation, Page};

/// The value of `kind` in a page of objects. All other fields of a page are optional. So without a check of the kind,
/// an error or a proxy's page with status 200 would be read as an empty page.
const OBJECTS: &str = "storage#objects";
/// The kind as it appears in the page's JSON.
const OBJECTS_QUOTED: &[u8] = b"\"storage#objects\"";
/// The kind of a page of buckets.
const BUCKETS: &str = "storage#buckets";

fn request(list: &List) -> Outgoing {
    let query = QueryString::new()
        .and_some("prefix", Some(list.prefix.as_str()).filter(|prefix| !prefix.is_empty()))
        .and_some("delimiter", list.delimiter.as_deref())
        // With `startOffset` the listing includes this key itself, so it is left out when the page is read.
        .and_some("startOffset", list.start_after.as_deref())
        .and_some("endOffset", list.end_before.as_deref())
        .and_some("pageToken", list.token.as_deref())
        .and_some("maxResults", list.max.map(|max| max.to_string()).as_deref())
        .and_some("versions", (list.versions && !list.soft_deleted).then_some("true"))
        .and_some("softDeleted", list.soft_deleted.then_some("true"))
        .and("projection", "noAcl")
        .and("fields", &fields(list));
    let target = format!("/storage/v1/b/{}/o{query}", component(&list.bucket));
    Outgoing { expected: Some(PAGE_ASSUMED), ..Outgoing::new(Method::GET, target) }
}

/// Asks for an answer compressed with gzip, which has a tenth of the bytes. Google compresses answers only if the
/// `User-Agent` contains "gzip" (<https://cloud.google.com/storage/docs/json_api#gzip>).
fn packed(mut outgoing: Outgoing, user_agent: &HeaderValue) -> Outgoing {
    let agent = [user_agent.as_bytes(), b" (gzip)"].concat();
    if let Ok(agent) = HeaderValue::from_bytes(&agent) {
        outgoing.headers.insert(USER_AGENT, agent);
        outgoing.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    }
    outgoing
}

fn fields(list: &List) -> String {
    match list.versions {
        true => format!("kind,nextPageToken,prefixes,items({FIELDS},{FIELDS_OF_VERSIONS})"),
        false => format!("kind,nextPageToken,prefixes,items({FIELDS})"),
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ObjectsResponse {
    kind: Option<String>,
    prefixes: Vec<String>,
    next_page_token: Option<String>,
    /// Entries that the cutter didn't find. This happens if the array's name is written with JSON escapes.
    items: Option<Vec<IgnoredAny>>,
}

/// Parses one answer while it arrives.
pub(super) struct GcsPageParser {
    cutter: Cutter,
    /// Objects that arrived before the answer's kind was known. Normally there are none, because stores send the kind
    /// first.
    held: Vec<ObjectMeta>,
    /// Searches for the kind in the text outside the entries. At the end of the page, Laneway also checks that this
    /// text is the value of `kind`.
    names_kind: TextSearch,
}

impl GcsPageParser {
    pub(super) fn new() -> Self {
        Self { cutter: Cutter::json("items"), held: Vec::new(), names_kind: TextSearch::new(OBJECTS_QUOTED) }
    }
}

impl PageParser for GcsPageParser {
    fn take(&mut self, list: &List, bytes: &[u8]) -> Result<Vec<ObjectMeta>, String> {
        let items = self.cutter.take(bytes);
        self.held.reserve(items.len());
        for item in items {
            let item: ObjectResource<'_> = serde_json::from_slice(&item).map_err(|e| e.to_string())?;
            let name = item.name();
            if list.start_after.as_deref() == Some(&*name) {
                continue;
            }
            let id = ObjectId::new(&list.bucket, &*name);
            let meta = if list.versions { item.into_version(id) } else { item.into_meta(id, 0) };
            self.held.push(meta.ok_or_else(|| format!("the size or generation of {name} isn't a number"))?);
        }
        match self.names_kind.has_come(self.cutter.rest()) {
            true => Ok(std::mem::take(&mut self.held)),
            false if self.held.len() > ENTRIES_MAX => Err(TOO_MANY.to_owned()),
            false => Ok(Vec::new()),
        }
    }

    fn end(self, _: &List) -> Result<Page, String> {
        let rest = self.cutter.into_rest();
        if rest.trim_ascii_start().starts_with(b"<") {
            return Err(HTML.to_owned());
        }
        let answer: ObjectsResponse = serde_json::from_slice(&rest).map_err(|e| e.to_string())?;
        if answer.kind.as_deref() != Some(OBJECTS) {
            return Err(format!("its kind isn't {OBJECTS}"));
        }
        if answer.items.is_some_and(|items| !items.is_empty()) {
            return Err("its entries can't be read".to_owned());
        }
        Ok(Page {
            objects: self.held,
            prefixes: answer.prefixes,
            next: answer.next_page_token.filter(|token| !token.is_empty()),
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct BucketList {
    kind: Option<String>,
    items: Vec<ListedBucket>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
struct ListedBucket {
    name: String,
}

impl Gcs {
    pub(crate) async fn list_page(
        &self,
        list: &List,
        out: impl FnMut(Vec<ObjectMeta>) + Send,
    ) -> Result<Page, Error> {
        let exchange = Exchange::bucket(self, Operation::List, &list.bucket).below(&list.prefix);
        let outgoing = packed(request(list), self.lanes.user_agent());
        fetch_page(&exchange, &outgoing, list, GcsPageParser::new, out).await
    }

    pub(crate) async fn list_buckets(&self) -> Result<Vec<String>, Error> {
        let exchange = Exchange::bucket(self, Operation::List, "");
        let Some(project) = self.project.as_deref() else {
            let message = "no Google Cloud project is set: give --project, or set GOOGLE_CLOUD_PROJECT";
            return Err(exchange.error(ErrorKind::Invalid, message));
        };
        let (mut names, mut tokens) = (Vec::new(), Tokens::default());
        let mut token: Option<String> = None;
        loop {
            let query = QueryString::new()
                .and("project", project)
                .and_some("pageToken", token.as_deref())
                .and("fields", "kind,nextPageToken,items(name)");
            let sent = exchange.send(&Outgoing::new(Method::GET, format!("/storage/v1/b{query}"))).await?;
            let answer: BucketList = serde_json::from_slice(&sent.response.body)
                .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't a list of buckets: {e}")))?;
            if answer.kind.as_deref() != Some(BUCKETS) {
                let message = format!("the answer isn't a list of buckets: its kind isn't {BUCKETS}");
                return Err(exchange.nonsense(&sent, message));
            }
            names.extend(answer.items.into_iter().map(|bucket| bucket.name));
            token = tokens.next(answer.next_page_token).map_err(|e| exchange.nonsense(&sent, e))?;
            if token.is_none() {
                return Ok(names);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(list: &List, body: &[u8]) -> Result<Page, String> {
        let mut arriving = GcsPageParser::new();
        let mut objects = arriving.take(list, body)?;
        let page = arriving.end(list)?;
        objects.extend(page.objects);
        Ok(Page { objects, ..page })
    }

    #[test]
    fn a_listing_asks_only_for_what_it_reads() {
        let list = List { delimiter: Some("/".into()), max: Some(2), ..List::new("b", "a b/") };
        let target = request(&list).target;
        assert!(target.starts_with(
            "/storage/v1/b/b/o?prefix=a%20b%2F&delimiter=%2F&maxResults=2&projection=noAcl&fields=kind%2CnextPageToken%2C"
        ));
    }

    #[test]
    fn a_page_is_read_without_the_key_that_it_starts_after() {
        let body = br#"{"kind":"storage#objects","nextPageToken":"t","prefixes":["p/"],"items":[
            {"name":"a","bucket":"b","size":"1","generation":"1"},{"name":"a//b","bucket":"b","size":"2","generation":"2"}]}"#;
        let list = List { start_after: Some("a".into()), ..List::new("b", "") };
        let page = page(&list, body).expect("a page");
        assert_eq!(page.objects.iter().map(|o| o.id.key.as_str()).collect::<Vec<_>>(), ["a//b"]);
        assert_eq!(page.prefixes, ["p/"]);
        assert_eq!(page.next.as_deref(), Some("t"));
    }

    #[test]
    fn versions_of_a_key_are_told_apart_by_their_generations() {
        let body =
            br#"{"kind":"storage#objects","items":[{"name":"a","size":"1","generation":"1","timeDeleted":"2026-01-01T00:00:00Z"},
            {"name":"a","size":"2","generation":"2"}]}"#;
        let list = List { versions: true, ..List::new("b", "") };
        assert!(request(&list).target.contains("versions=true&"));
        let page = page(&list, body).expect("a page");
        let seen: Vec<_> = page.objects.iter().map(|o| (o.id.to_string(), o.is_latest)).collect();
        assert_eq!(seen, [("b/a#1".to_owned(), Some(false)), ("b/a#2".to_owned(), Some(true))]);
    }

    #[test]
    fn one_empty_object_whose_size_is_left_out_does_not_fail_the_page() {
        let body = br#"{"kind":"storage#objects","items":[{"name":"a","generation":"1"},{"name":"b","size":"2","generation":"2"}]}"#;
        let page = page(&List::new("b", ""), body).expect("a page");
        assert_eq!(page.objects.iter().map(|o| o.size).collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn an_empty_bucket_has_an_empty_page() {
        assert_eq!(page(&List::new("b", ""), br#"{"kind":"storage#objects"}"#), Ok(Page::default()));
    }

    #[test]
    fn what_does_not_say_that_it_is_a_page_is_none() {
        for body in [
            "<html>",
            "{}",
            "[]",
            "null",
            r#"{"message":"x"}"#,
            r#"{"fault":{}}"#,
            r#"{"error":{"code":500}}"#,
            r#"{"kind":"storage#buckets","items":[]}"#,
            r#"{"prefixes":["storage#objects"]}"#,
        ] {
            assert!(page(&List::new("b", ""), body.as_bytes()).is_err(), "{body}");
        }
    }

    #[test]
    fn entries_are_handed_on_only_once_the_page_has_said_that_it_is_one() {
        let list = List::new("b", "");
        let mut arriving = GcsPageParser::new();
        let mut take = |bytes: &str| arriving.take(&list, bytes.as_bytes()).expect("entries").len();
        assert_eq!(
            take(r#"{"kind":"storage#objects","items":[{"name":"a","size":"1","generation":"1"},{"#),
            1
        );
        assert_eq!(take(r#""name":"b","size":"1","generation":"1"}"#), 1);
        let mut arriving = GcsPageParser::new();
        let entries = br#"{"items":[{"name":"a","size":"1","generation":"1"}]"#;
        assert_eq!(arriving.take(&list, entries), Ok(Vec::new()), "it may be anything's");
        assert_eq!(arriving.take(&list, br#","kind":"storage#objects"}"#).expect("entries").len(), 1);
        assert_eq!(arriving.end(&list), Ok(Page::default()));
    }
}
