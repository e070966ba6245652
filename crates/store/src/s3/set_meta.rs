//! `set_meta`: copies an object onto itself with other metadata. An object that is too large for a single copy is
//! replaced by a multipart upload, whose parts are copied from the object itself.
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html>

use std::time::SystemTime;

use http::HeaderValue;
use laneway_lanes::ResponseHead;

use super::conditions::unquoted;
use super::copy::{self, COPY_RESULTS, CopyResult};
use super::headers::check_options;
use super::multipart::begin_request;
use super::write_conditions::ConditionalWrite;
use super::{CAPABILITIES, S3};
use crate::checksum::Comparison;
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, Outgoing};
use crate::{
    Changing, Condition, Error, ErrorKind, MetaChange, Multipart, ObjectId, ObjectMeta, Operation,
    PartChecksums, PutOptions, Version, xml,
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
}
