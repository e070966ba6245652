//! `list` and `buckets`.

use http::Method;
use serde::Deserialize;

use super::S3;
use super::conditions::unquoted;
use crate::encode::{Query, decode_listed};
use crate::exchange::{Exchange, Outgoing};
use crate::timestamp::rfc3339;
use crate::{Error, List, ObjectId, ObjectMeta, Operation, Page, Version, xml};

fn request(list: &List) -> Outgoing {
    let query = Query::new()
        .and("list-type", "2")
        // XML can't hold every key; percent-encoded ones it can.
        .and("encoding-type", "url")
        .and_some("prefix", Some(list.prefix.as_str()).filter(|prefix| !prefix.is_empty()))
        .and_some("delimiter", list.delimiter.as_deref())
        .and_some("start-after", list.start_after.as_deref())
        .and_some("continuation-token", list.token.as_deref())
        .and_some("max-keys", list.max.map(|max| max.to_string()).as_deref());
    Outgoing::new(Method::GET, query.to_string())
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct Answer {
    encoding_type: Option<String>,
    is_truncated: bool,
    next_continuation_token: Option<String>,
    contents: Vec<Content>,
    common_prefixes: Vec<CommonPrefix>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Content {
    key: String,
    size: u64,
    #[serde(rename = "ETag")]
    etag: Option<String>,
    last_modified: Option<String>,
    storage_class: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CommonPrefix {
    #[serde(default)]
    prefix: String,
}

fn page(list: &List, body: &[u8]) -> Result<Page, String> {
    let answer: Answer = xml::read(body)?;
    let encoded = answer.encoding_type.as_deref() == Some("url");
    let name = |text: String| match encoded {
        true => decode_listed(&text).ok_or_else(|| format!("{text:?} is no key")),
        false => Ok(text),
    };
    let inside = |key: &str| list.end_before.as_deref().is_none_or(|end| key < end);
    let mut page = Page::default();
    let mut beyond = false;
    for content in answer.contents {
        let id = ObjectId::new(&list.bucket, name(content.key)?);
        if !inside(&id.key) {
            beyond = true;
            continue;
        }
        let mut meta = ObjectMeta::new(id, content.size);
        meta.etag = content.etag.as_deref().map(unquoted);
        meta.version = meta.etag.clone().map(Version::ETag);
        meta.updated = content.last_modified.as_deref().and_then(rfc3339);
        meta.storage_class = content.storage_class;
        page.objects.push(meta);
    }
    for common in answer.common_prefixes {
        let prefix = name(common.prefix)?;
        if inside(&prefix) {
            page.prefixes.push(prefix);
        } else {
            beyond = true;
        }
    }
    if answer.is_truncated && !beyond {
        page.next = answer.next_continuation_token.filter(|token| !token.is_empty());
        if page.next.is_none() {
            return Err("the listing goes on, but doesn't say where".to_owned());
        }
    }
    Ok(page)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Owned {
    #[serde(default)]
    buckets: Buckets,
    continuation_token: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
struct Buckets {
    #[serde(default)]
    bucket: Vec<Bucket>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Bucket {
    name: String,
}

impl S3 {
    pub(crate) async fn list(&self, list: &List) -> Result<Page, Error> {
        let exchange = Exchange::bucket(self, Operation::List, &list.bucket);
        let sent = exchange.send(&request(list)).await?;
        page(list, &sent.response.body)
            .map_err(|e| exchange.nonsense(&sent, format!("the answer is no listing: {e}")))
    }

    pub(crate) async fn buckets(&self) -> Result<Vec<String>, Error> {
        let exchange = Exchange::bucket(self, Operation::List, "");
        let mut names = Vec::new();
        let mut token: Option<String> = None;
        loop {
            let query = Query::new().and_some("continuation-token", token.as_deref());
            let sent = exchange.send(&Outgoing::new(Method::GET, query.to_string())).await?;
            let answer: Owned = xml::read(&sent.response.body)
                .map_err(|e| exchange.nonsense(&sent, format!("the answer is no list of buckets: {e}")))?;
            names.extend(answer.buckets.bucket.into_iter().map(|bucket| bucket.name));
            match answer.continuation_token.filter(|token| !token.is_empty()) {
                Some(next) => token = Some(next),
                None => return Ok(names),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn an_empty_bucket_has_an_empty_page() {
        let body = br#"<ListBucketResult xmlns="x"><Name>b</Name><IsTruncated>false</IsTruncated></ListBucketResult>"#;
        assert_eq!(page(&List::new("b", ""), body), Ok(Page::default()));
    }

    #[test]
    fn a_listing_asks_for_encoded_keys() {
        let list =
            List { start_after: Some("a/b".into()), delimiter: Some("/".into()), ..List::new("b", "p q") };
        assert_eq!(
            request(&list).target,
            "?list-type=2&encoding-type=url&prefix=p%20q&delimiter=%2F&start-after=a%2Fb"
        );
    }

    #[test]
    fn buckets_are_read() {
        let body = br#"<ListAllMyBucketsResult xmlns="x"><Owner><ID>1</ID></Owner><Buckets><Bucket><Name>a</Name></Bucket><Bucket><Name>b</Name></Bucket></Buckets></ListAllMyBucketsResult>"#;
        let owned: Owned = xml::read(body).expect("an answer");
        assert_eq!(owned.buckets.bucket.iter().map(|b| b.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert!(xml::read::<Owned>(b"<ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>").is_ok());
    }
}
