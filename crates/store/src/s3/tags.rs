//! `tags`: an object's tags, their change, and the header with the tags of a new object.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Method;
use laneway_lanes::Body;
use serde::Deserialize;

use super::S3;
use super::head::object_target;
use crate::checksum::{encode_md5, md5_of};
use crate::encode::{QueryString, component, xml_text};
use crate::exchange::{Exchange, Outgoing};
use crate::{Error, ErrorKind, ObjectId, Operation, xml};

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

/// Writes the document that replaces an object's tags.
fn document(tags: &BTreeMap<String, String>) -> Option<String> {
    let mut text = String::from("<Tagging xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><TagSet>");
    for (key, value) in tags {
        let (key, value) = (xml_text(key)?, xml_text(value)?);
        text += &format!("<Tag><Key>{key}</Key><Value>{value}</Value></Tag>");
    }
    text += "</TagSet></Tagging>";
    Some(text)
}

impl S3 {
    /// Replaces an object's tags. S3 also accepts an empty set.
    pub(super) async fn write_tags(
        &self,
        id: &ObjectId,
        tags: &BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let exchange = Exchange::object(self, Operation::SetMeta, id);
        let unsendable = || exchange.error(ErrorKind::Invalid, "a tag holds control characters");
        let mut outgoing =
            Outgoing::new(Method::PUT, object_target(id, &QueryString::new().and("tagging", "")));
        outgoing.body = Body::from(Bytes::from(document(tags).ok_or_else(unsendable)?));
        let md5 = md5_of(&outgoing.body).map(encode_md5);
        let outgoing = outgoing
            .header("content-type", "application/xml")
            .and_then(|outgoing| outgoing.header_some("content-md5", md5.as_deref()))
            .map_err(|e| exchange.unsendable(&e))?;
        exchange.send(&outgoing).await.map(drop)
    }

    pub(crate) async fn read_tags(&self, id: &ObjectId) -> Result<BTreeMap<String, String>, Error> {
        let exchange = Exchange::object(self, Operation::Tags, id);
        let outgoing = Outgoing::new(Method::GET, object_target(id, &QueryString::new().and("tagging", "")));
        let sent = exchange.send(&outgoing).await?;
        let answer: Tagging = xml::answer(&sent.response.body, &["Tagging"])
            .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't a list of tags: {e}")))?;
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
        let written = document(&tags).expect("a document");
        let back: Tagging = xml::answer(written.as_bytes(), &["Tagging"]).expect("tags");
        assert_eq!(back.tag_set.tag.len(), 2);
        assert!(document(&[("\u{1}".to_owned(), String::new())].into()).is_none());
        let body = b"<Tagging xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><TagSet><Tag><Key>team</Key><Value>a b</Value></Tag>\
                     <Tag><Key>x=y</Key><Value>1&amp;2</Value></Tag></TagSet></Tagging>";
        let read: Tagging = xml::read(body).expect("tags");
        assert_eq!(read.tag_set.tag.into_iter().map(|t| (t.key, t.value)).collect::<BTreeMap<_, _>>(), tags);
        let none: Tagging = xml::read(b"<Tagging><TagSet/></Tagging>").expect("no tags");
        assert!(none.tag_set.tag.is_empty());
    }
}
