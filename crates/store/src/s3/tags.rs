//! `tags`: an object's tags, and the header with the tags of a new object.

use std::collections::BTreeMap;

use http::Method;
use serde::Deserialize;

use super::S3;
use super::head::object_target;
use crate::encode::{Query, component};
use crate::exchange::{Exchange, Outgoing};
use crate::{Error, ObjectId, Operation, xml};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Tagging {
    #[serde(default)]
    tag_set: TagSet,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct TagSet {
    tag: Vec<Tag>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Tag {
    key: String,
    #[serde(default)]
    value: String,
}

/// Encodes tags for `x-amz-tagging`, like the query of a URL.
pub(super) fn header(tags: &BTreeMap<String, String>) -> Option<String> {
    let pairs = tags.iter().map(|(key, value)| format!("{}={}", component(key), component(value)));
    (!tags.is_empty()).then(|| pairs.collect::<Vec<_>>().join("&"))
}

impl S3 {
    pub(crate) async fn read_tags(&self, id: &ObjectId) -> Result<BTreeMap<String, String>, Error> {
        let exchange = Exchange::object(self, Operation::Tags, id);
        let outgoing = Outgoing::new(Method::GET, object_target(id, &Query::new().and("tagging", "")));
        let sent = exchange.send(&outgoing).await?;
        let answer: Tagging = xml::answer(&sent.response.body, &["Tagging"])
            .map_err(|e| exchange.nonsense(&sent, format!("the answer holds no tags: {e}")))?;
        Ok(answer.tag_set.tag.into_iter().map(|tag| (tag.key, tag.value)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_encoded_in_the_header_and_read_from_the_document() {
        let tags: BTreeMap<_, _> =
            [("team", "a b"), ("x=y", "1&2")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        assert_eq!(header(&tags).as_deref(), Some("team=a%20b&x%3Dy=1%262"));
        assert_eq!(header(&BTreeMap::new()), None);
        let body = b"<Tagging xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><TagSet><Tag><Key>team</Key><Value>a b</Value></Tag>\
                     <Tag><Key>x=y</Key><Value>1&amp;2</Value></Tag></TagSet></Tagging>";
        let read: Tagging = xml::read(body).expect("tags");
        assert_eq!(read.tag_set.tag.into_iter().map(|t| (t.key, t.value)).collect::<BTreeMap<_, _>>(), tags);
        let none: Tagging = xml::read(b"<Tagging><TagSet/></Tagging>").expect("no tags");
        assert!(none.tag_set.tag.is_empty());
    }
}
