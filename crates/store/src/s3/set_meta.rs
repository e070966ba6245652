//! `set_meta`: copies an object onto itself with other metadata, and changes its tags and its access control list. An
//! object that is too large for a single copy is replaced by a multipart upload, whose parts are copied from the
//! object itself. <https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html>

use std::collections::BTreeMap;
use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderValue, Method};
use laneway_lanes::{Body, ResponseHead};
use serde::Deserialize;

use super::conditions::unquoted;
use super::copy::{COPY_RESULTS, CopyResult};
use super::get::object_target;
use super::headers::check_options;
use super::multipart::begin_request;
use super::write_conditions::ConditionalWrite;
use super::{CAPABILITIES, S3, copy};
use crate::checksum::{Comparison, encode_md5, md5_of};
use crate::encode::{QueryString, component, xml_text};
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, Outgoing};
use crate::{
    AccessGrant, Changing, Condition, Error, ErrorKind, MetaChange, Multipart, ObjectId, ObjectMeta,
    Operation, PartChecksums, PutOptions, Version, xml,
};

/// Headers that a copy with new metadata would lose, and that a [`MetaChange`] can't set. They are sent with the values
/// that a HEAD returned.
const KEPT: [&str; 5] = [
    "expires",
    "x-amz-website-redirect-location",
    "x-amz-server-side-encryption",
    "x-amz-server-side-encryption-aws-kms-key-id",
    "x-amz-server-side-encryption-bucket-key-enabled",
];

impl Changing {
    /// Reads the object's state from the answer to a HEAD. A retention that has ended by `now` is left out, because S3
    /// refuses to set it again.
    fn of_head(
        id: &ObjectId,
        (meta, head): (ObjectMeta, ResponseHead),
        change: &MetaChange,
        now: SystemTime,
    ) -> Self {
        let applied = change.in_lower_case().applied(&meta);
        let retention = applied.retention.filter(|retention| retention.until > now);
        // The KMS key isn't set here, because `keeping` copies its header from the HEAD's answer.
        let options = PutOptions { retention, kms_key: None, ..applied };
        Self { id: id.clone(), meta, headers: head.headers, options }
    }

    fn request(&self, onto: &Condition, kms_key: Option<&str>) -> Result<Outgoing, String> {
        let kms_key = self.kms_key(kms_key);
        let mut outgoing =
            copy::request(&self.id, &self.id, &self.options, onto, &self.condition(), kms_key)?;
        outgoing.headers.insert("x-amz-metadata-directive", HeaderValue::from_static("REPLACE"));
        self.keeping(outgoing)
    }

    /// Returns the request that begins an upload onto the object.
    fn upload_request(&self, kms_key: Option<&str>, wish: PartChecksums) -> Result<Outgoing, String> {
        check_options(&self.options)?;
        let begin = begin_request(&self.id, &self.options, self.kms_key(kms_key), wish);
        self.keeping(begin.map_err(|e| e.to_string())?)
    }

    /// Returns the KMS key for new objects, or `None` if this object is already encrypted. Its encryption is then kept.
    fn kms_key<'k>(&self, of_new: Option<&'k str>) -> Option<&'k str> {
        of_new.filter(|_| self.meta.encryption.is_none())
    }

    fn keeping(&self, mut outgoing: Outgoing) -> Result<Outgoing, String> {
        for name in KEPT {
            let Some(value) = self.headers.get(name) else { continue };
            if outgoing.headers.contains_key(name) {
                continue;
            }
            // The signature covers the value as text, so a value that isn't ASCII can't be sent again.
            let value = value
                .to_str()
                .map_err(|_| format!("the header {name} isn't ASCII text, so it can't be sent again"))?;
            outgoing = outgoing.header(name, value).map_err(|e| e.to_string())?;
        }
        Ok(outgoing)
    }

    /// Returns true if the found object is the result of this change: it has equal checksums and the requested
    /// metadata.
    fn is_made(&self, found: &ObjectMeta) -> bool {
        found.checksums.compare(&self.meta.checksums) == Comparison::Equal && self.is_described(found)
    }

    fn is_described(&self, found: &ObjectMeta) -> bool {
        found.size == self.meta.size && self.differing(found).is_empty()
    }

    /// Returns the names of the fields in which the found metadata differs from the requested metadata.
    fn differing(&self, found: &ObjectMeta) -> Vec<&'static str> {
        let options = &self.options;
        let class = |class: &Option<String>| class.clone().filter(|class| class != "STANDARD");
        // If the request has no content type, S3 sets one itself, so any type is right.
        let is_typed = options.content_type.is_none() || found.content_type == options.content_type;
        let same = [
            ("content type", is_typed),
            ("content encoding", found.content_encoding == options.content_encoding),
            ("cache control", found.cache_control == options.cache_control),
            ("content disposition", found.content_disposition == options.content_disposition),
            ("content language", found.content_language == options.content_language),
            ("storage class", class(&found.storage_class) == class(&options.storage_class)),
            ("metadata", found.metadata.as_ref() == Some(&options.metadata)),
        ];
        same.into_iter().filter(|(_, is_same)| !is_same).map(|(name, _)| name).collect()
    }
}

impl S3 {
    pub(crate) async fn look_at_change(&self, id: &ObjectId, change: &MetaChange) -> Result<Changing, Error> {
        let answer = self.head_answer(id, None, None, KeyUse::Object).await;
        let answer = answer.map_err(|e| e.within(Operation::SetMeta))?;
        Ok(Changing::of_head(id, answer, change, self.clock.at(SystemTime::now())))
    }

    /// Begins an upload onto the object. If `checked` is true, the upload has the best checksums that the endpoint
    /// supports, and otherwise none. Some stores, such as MinIO, can't copy a part into an upload with checksums.
    pub(crate) async fn begin_change_upload(
        &self,
        changing: &Changing,
        checked: bool,
    ) -> Result<Multipart, Error> {
        // The success of a request without checksums doesn't show which checksums the endpoint accepts, so it must not
        // be recorded in `checksums.parts`.
        let forms = if checked { &self.checksums.parts } else { &self.checksums.chosen };
        let exchange = Exchange::object(self, Operation::SetMeta, &changing.id);
        let build = |form| {
            let request = changing.upload_request(self.kms_key.as_deref(), form);
            request.map_err(|e| exchange.error(ErrorKind::Invalid, e))
        };
        self.begin_as(&changing.id, forms, build).await.map_err(|e| e.within(Operation::SetMeta))
    }

    /// Reads the object after its upload was completed, and checks its metadata. `made` is the result of the
    /// completion, which may have described another writer's object with the same bytes. A store may also have ignored
    /// fields that it doesn't support.
    pub(crate) async fn changed_object(
        &self,
        changing: &Changing,
        made: &ObjectMeta,
    ) -> Result<ObjectMeta, Error> {
        let found = self.head(&changing.id, None).await.map_err(|e| e.within(Operation::SetMeta))?;
        if changing.is_described(&found) {
            return Ok(found);
        }
        let exchange = Exchange::object(self, Operation::SetMeta, &changing.id);
        let is_ours = made.version.is_some() && found.version == made.version;
        Err(match is_ours && found.size == changing.meta.size {
            true => {
                let differing = changing.differing(&found).join(", ");
                let message =
                    format!("its upload was completed, but the store didn't accept the new {differing}");
                exchange.error(ErrorKind::Unsupported, message)
            }
            false => exchange.error(ErrorKind::Precondition, "another writer replaced it at the same time"),
        })
    }

    pub(crate) async fn change_meta(&self, id: &ObjectId, change: &MetaChange) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::SetMeta, id);
        if id.version.is_some() {
            let message = "S3 can't change a version: each change makes a new version";
            return Err(exchange.error(ErrorKind::Unsupported, message));
        }
        let described = match change.rewrites() {
            true => Some(self.change_description(&exchange, id, change).await?),
            false => None,
        };
        // Write the tags and the access control list after the copy. The copy may restore the old tags, and it gets the
        // access control list of a new object.
        if let Some(tags) = &change.tags {
            self.write_tags(id, tags).await?;
        }
        if let Some(acl) = &change.acl {
            self.write_acl(id, acl).await?;
        }
        match described {
            Some(meta) => Ok(meta),
            None => self.head(id, None).await.map_err(|e| e.within(Operation::SetMeta)),
        }
    }

    /// Copies the object onto itself with another description.
    async fn change_description(
        &self,
        exchange: &Exchange<'_, Self>,
        id: &ObjectId,
        change: &MetaChange,
    ) -> Result<ObjectMeta, Error> {
        let changing = self.look_at_change(id, change).await?;
        if CAPABILITIES.copy_bytes_max.is_some_and(|max| changing.meta.size > max) {
            let message = "it is larger than 5 GiB, the maximum that S3 copies in one request";
            return Err(exchange.error(ErrorKind::Unsupported, message));
        }
        // The same condition applies to source and destination, because both are this object, and another writer may
        // have replaced it.
        let condition = changing.condition();
        let build = |onto: &Condition| changing.request(onto, self.kms_key.as_deref());
        let sent = match self.send_copy(exchange, id, &condition, &condition, build).await {
            // If the first attempt succeeded, the object has a new ETag, so the second attempt failed its condition.
            Err(error) if error.is_precondition() && error.is_uncertain() => {
                return match Box::pin(self.head(id, None)).await {
                    Ok(found) if changing.is_made(&found) => Ok(found),
                    _ => Err(error),
                };
            }
            sent => sent?,
        };
        let copied: CopyResult = xml::answer(&sent.response.body, &COPY_RESULTS)
            .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't a copy result: {e}")))?;
        let mut changed = ObjectMeta::new(id.clone(), changing.meta.size);
        changed.etag = copied.etag.as_deref().map(unquoted);
        changed.version = changed.etag.clone().map(Version::ETag);
        changed.metadata = Some(changing.options.metadata);
        self.look_after(exchange, ConditionalWrite::Copy, &condition, changed).await
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AccessControlPolicy {
    #[serde(default)]
    access_control_list: GrantList,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct GrantList {
    grant: Vec<GrantElement>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GrantElement {
    #[serde(default)]
    grantee: Grantee,
    #[serde(default)]
    permission: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Grantee {
    #[serde(rename = "ID")]
    id: Option<String>,
    #[serde(rename = "URI")]
    uri: Option<String>,
    email_address: Option<String>,
}

impl From<GrantElement> for AccessGrant {
    fn from(element: GrantElement) -> Self {
        let Grantee { id, uri, email_address } = element.grantee;
        // A group's URI ends in its name.
        let group = uri.map(|uri| uri.rsplit('/').next().unwrap_or_default().to_owned());
        let grantee = group.or(id).or(email_address).unwrap_or_default();
        Self { grantee, permission: element.permission }
    }
}

/// Access control lists of objects: GetObjectAcl and PutObjectAcl
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html>). By default, Amazon disables them in
/// new buckets.
fn acl_target(id: &ObjectId) -> String {
    object_target(id, &QueryString::new().and("acl", ""))
}

impl S3 {
    pub(crate) async fn read_acl(&self, id: &ObjectId) -> Result<Vec<AccessGrant>, Error> {
        let exchange = Exchange::object(self, Operation::Access, id);
        let sent = exchange.send(&Outgoing::new(Method::GET, acl_target(id))).await?;
        let policy: AccessControlPolicy = xml::answer(&sent.response.body, &["AccessControlPolicy"])
            .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't an access control list: {e}")))?;
        Ok(policy.access_control_list.grant.into_iter().map(AccessGrant::from).collect())
    }

    async fn write_acl(&self, id: &ObjectId, acl: &str) -> Result<(), Error> {
        let exchange = Exchange::object(self, Operation::SetMeta, id);
        let outgoing = Outgoing::new(Method::PUT, acl_target(id)).header("x-amz-acl", acl);
        let outgoing = outgoing.map_err(|e| exchange.error(ErrorKind::Invalid, e.to_string()))?;
        exchange.send(&outgoing).await.map(drop)
    }
}

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
pub(super) fn tags_header(tags: &BTreeMap<String, String>) -> Option<String> {
    let pairs = tags.iter().map(|(key, value)| format!("{}={}", component(key), component(value)));
    (!tags.is_empty()).then(|| pairs.collect::<Vec<_>>().join("&"))
}

/// Writes the document that replaces an object's tags.
fn tags_document(tags: &BTreeMap<String, String>) -> Option<String> {
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
    async fn write_tags(&self, id: &ObjectId, tags: &BTreeMap<String, String>) -> Result<(), Error> {
        let exchange = Exchange::object(self, Operation::SetMeta, id);
        let unsendable = || exchange.error(ErrorKind::Invalid, "a tag holds control characters");
        let mut outgoing =
            Outgoing::new(Method::PUT, object_target(id, &QueryString::new().and("tagging", "")));
        outgoing.body = Body::from(Bytes::from(tags_document(tags).ok_or_else(unsendable)?));
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
    use http::{HeaderMap, StatusCode};

    use super::*;
    use crate::s3::headers::meta;

    const HEAD: [(&str, &str); 12] = [
        ("content-length", "1"),
        ("etag", "\"e\""),
        ("content-type", "text/plain"),
        ("x-amz-storage-class", "STANDARD_IA"),
        ("x-amz-meta-kept", "1"),
        ("x-amz-checksum-crc32c", "4waSgw=="),
        ("expires", "Thu, 01 Dec 2033 16:00:00 GMT"),
        ("x-amz-website-redirect-location", "/there"),
        ("x-amz-server-side-encryption", "aws:kms:dsse"),
        ("x-amz-server-side-encryption-aws-kms-key-id", "k"),
        ("x-amz-object-lock-mode", "GOVERNANCE"),
        ("x-amz-object-lock-retain-until-date", "2027-01-31T00:00:00Z"),
    ];

    fn changing(id: &ObjectId, change: &MetaChange, now: &str) -> Changing {
        let headers: HeaderMap = HEAD
            .map(|(name, value)| (name.parse().expect("a name"), HeaderValue::from_static(value)))
            .into_iter()
            .collect();
        let head = ResponseHead { status: StatusCode::OK, headers };
        Changing::of_head(
            id,
            (meta(id, &head), head),
            change,
            crate::timestamp::rfc3339(now).expect("a time"),
        )
    }

    #[test]
    fn what_is_not_mentioned_is_sent_again() {
        let id = ObjectId::new("b", "a b");
        let change = MetaChange::default().cache_control("no-store");
        let changing = changing(&id, &change, "2027-01-30T00:00:00Z");
        let request = changing.request(&changing.condition(), Some("another key")).expect("a request");
        assert_eq!(request.target, "/a%20b");
        for (name, value) in [
            ("x-amz-copy-source", "/b/a%20b"),
            ("x-amz-copy-source-if-match", "\"e\""),
            ("if-match", "\"e\""),
            ("x-amz-metadata-directive", "REPLACE"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(request.headers[name], value, "{name}");
        }
        for (name, value) in HEAD.into_iter().filter(|(name, _)| !matches!(*name, "content-length" | "etag"))
        {
            if name != "x-amz-checksum-crc32c" {
                assert_eq!(request.headers[name], value, "{name}");
            }
        }
        assert!(!request.headers.contains_key("x-amz-tagging-directive"), "tags stay");
    }

    #[test]
    fn an_upload_onto_the_object_says_the_same_as_a_copy() {
        let id = ObjectId::new("b", "a b");
        let change = MetaChange::default().cache_control("no-store");
        let changing =
            changing(&id, &change, "2027-01-30T00:00:00Z").tags([("team".to_owned(), "a".to_owned())].into());
        let request =
            changing.upload_request(Some("another key"), PartChecksums::FullObject).expect("a request");
        assert_eq!(request.target, "/a%20b?uploads=");
        assert_eq!(request.headers["cache-control"], "no-store");
        assert_eq!(request.headers["x-amz-tagging"], "team=a");
        assert_eq!(request.headers["x-amz-checksum-type"], "FULL_OBJECT");
        for (name, value) in HEAD {
            if !matches!(name, "content-length" | "etag" | "x-amz-checksum-crc32c") {
                assert_eq!(request.headers[name], value, "{name}");
            }
        }
        assert!(!request.headers.keys().any(|name| name.as_str().starts_with("x-amz-copy")));
    }

    #[test]
    fn an_upload_onto_the_object_refuses_a_custom_time_as_a_copy_does() {
        let id = ObjectId::new("b", "k");
        let change = MetaChange { custom_time: Some(SystemTime::UNIX_EPOCH), ..MetaChange::default() };
        let changing = changing(&id, &change, "2027-01-30T00:00:00Z");
        assert!(changing.request(&Condition::None, None).is_err());
        assert!(changing.upload_request(None, PartChecksums::None).is_err());
    }

    #[test]
    fn a_lock_that_has_run_out_is_not_set_again() {
        let id = ObjectId::new("b", "k");
        let change = MetaChange::default().clears_metadata(true).content_type("");
        let changing = changing(&id, &change, "2027-01-31T00:00:00Z");
        let request = changing.request(&Condition::None, None).expect("a request");
        assert!(!request.headers.keys().any(|name| name.as_str().starts_with("x-amz-object-lock-")));
        assert!(!request.headers.contains_key("if-match") && !request.headers.contains_key("content-type"));
        assert_eq!(request.headers["x-amz-metadata-directive"], "REPLACE", "also where nothing is left");
    }

    #[test]
    fn only_equal_bytes_of_the_same_description_are_the_change() {
        let id = ObjectId::new("b", "k");
        let changing = changing(&id, &MetaChange::default().cache_control("a"), "2027-01-31T00:00:00Z");
        let mut found = changing.meta.clone();
        assert!(!changing.is_made(&found), "as it was");
        found.cache_control = Some("a".into());
        found.version = Some(Version::ETag("other".into()));
        assert!(changing.is_made(&found));
        found.checksums.crc32c = Some(1);
        assert!(!changing.is_made(&found), "another writer's");
        assert!(changing.differing(&found).is_empty());
        found.cache_control = None;
        found.storage_class = None;
        assert_eq!(changing.differing(&found), ["cache control", "storage class"]);
    }

    #[test]
    fn a_grant_names_an_account_or_a_group() {
        let body = b"<AccessControlPolicy xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Owner><ID>o</ID></Owner>\
            <AccessControlList><Grant><Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"CanonicalUser\">\
            <ID>o</ID></Grantee><Permission>FULL_CONTROL</Permission></Grant><Grant><Grantee><URI>\
            http://acs.amazonaws.com/groups/global/AllUsers</URI></Grantee><Permission>READ</Permission></Grant>\
            </AccessControlList></AccessControlPolicy>";
        let policy: AccessControlPolicy = xml::answer(body, &["AccessControlPolicy"]).expect("a policy");
        let grants: Vec<_> = policy.access_control_list.grant.into_iter().map(AccessGrant::from).collect();
        let grant = |grantee: &str, permission: &str| AccessGrant {
            grantee: grantee.to_owned(),
            permission: permission.to_owned(),
        };
        assert_eq!(grants, [grant("o", "FULL_CONTROL"), grant("AllUsers", "READ")]);
    }

    #[test]
    fn tags_are_encoded_in_the_header_and_read_from_the_document() {
        let tags: BTreeMap<_, _> =
            [("team", "a b"), ("x=y", "1&2")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        assert_eq!(tags_header(&tags).as_deref(), Some("team=a%20b&x%3Dy=1%262"));
        assert_eq!(tags_header(&BTreeMap::new()), None);
        let written = tags_document(&tags).expect("a document");
        let back: Tagging = xml::answer(written.as_bytes(), &["Tagging"]).expect("tags");
        assert_eq!(back.tag_set.tag.len(), 2);
        assert!(tags_document(&[("\u{1}".to_owned(), String::new())].into()).is_none());
        let body = b"<Tagging xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><TagSet><Tag><Key>team</Key><Value>a b</Value></Tag>\
                     <Tag><Key>x=y</Key><Value>1&amp;2</Value></Tag></TagSet></Tagging>";
        let read: Tagging = xml::read(body).expect("tags");
        assert_eq!(read.tag_set.tag.into_iter().map(|t| (t.key, t.value)).collect::<BTreeMap<_, _>>(), tags);
        let none: Tagging = xml::read(b"<Tagging><TagSet/></Tagging>").expect("no tags");
        assert!(none.tag_set.tag.is_empty());
    }
}
