//! `set_meta`, `tags` and `restore`: changes a blob's properties, metadata, tags and tier, each with its own request
//! (<https://learn.microsoft.com/rest/api/storageservices/set-blob-properties>).

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Method;
use laneway_lanes::Body;
use serde::Deserialize;

use super::Azure;
use super::copy::still;
use super::headers::{blob_target, metadata, on_write, properties, unquoted};
use crate::checksum::encode_md5;
use crate::encode::{QueryString, xml_text};
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, ExchangeResponse, Outgoing};
use crate::{
    Condition, Error, ErrorKind, List, MetaChange, ObjectId, ObjectMeta, Operation, PutOptions, Restoration,
    RestoreOptions, Version, xml,
};

/// The tier to which a blob is restored from the archive.
const RESTORED_TIER: &str = "Hot";

fn about(method: Method, id: &ObjectId, comp: &str) -> Outgoing {
    Outgoing::new(method, blob_target(id, QueryString::new().and("comp", comp)))
}

/// Returns the request that replaces all properties. It repeats the MD5, which the service would otherwise remove.
fn properties_request(
    id: &ObjectId,
    options: &PutOptions,
    md5: Option<[u8; 16]>,
    condition: &Condition,
) -> Result<Outgoing, String> {
    let outgoing = properties(about(Method::PUT, id, "properties"), options)
        .and_then(|outgoing| outgoing.header_some("x-ms-blob-content-md5", md5.map(encode_md5).as_deref()))
        .map_err(|e| e.to_string())?;
    on_write(outgoing, condition)
}

fn tags_document(tags: &BTreeMap<String, String>) -> Result<String, String> {
    let mut document = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><Tags><TagSet>");
    for (name, value) in tags {
        let unsendable = || format!("the tag {name:?} has control characters");
        let (name, value) = (xml_text(name).ok_or_else(unsendable)?, xml_text(value).ok_or_else(unsendable)?);
        document.push_str(&format!("<Tag><Key>{name}</Key><Value>{value}</Value></Tag>"));
    }
    document.push_str("</TagSet></Tags>");
    Ok(document)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Tags {
    #[serde(default)]
    tag_set: BlobTagSet,
}

#[derive(Deserialize, Default)]
struct BlobTagSet {
    #[serde(default, rename = "Tag")]
    tags: Vec<BlobTag>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BlobTag {
    key: String,
    #[serde(default)]
    value: String,
}

/// Returns the new state of a blob whose properties or metadata were set.
///
/// # Errors
/// Returns `Server` for a success without an ETag, which doesn't come from the service but from a proxy.
fn changed_state(exchange: &Exchange<'_, Azure>, sent: &ExchangeResponse) -> Result<Version, Error> {
    match sent.response.head.header("etag") {
        Some(etag) => Ok(Version::ETag(unquoted(etag))),
        None => Err(exchange.nonsense(sent, "the answer to the change has no ETag")),
    }
}

/// Checks the answer to a change of tags or of the tier, which has no ETag.
///
/// # Errors
/// Returns `Server` for a success with a body, which doesn't come from the service but from a proxy.
fn check_empty(exchange: &Exchange<'_, Azure>, sent: &ExchangeResponse) -> Result<(), Error> {
    match sent.response.body.is_empty() {
        true => Ok(()),
        false => Err(exchange.nonsense(sent, "the answer to the change has a body")),
    }
}

/// Checks that Azure supports a change.
///
/// # Errors
/// Names a property that Azure lacks.
fn check_change(change: &MetaChange) -> Result<(), String> {
    let lacks = |what: &str| Err(format!("Laneway doesn't support {what} on Azure"));
    match change {
        _ if change.expires.is_some() => lacks("the header Expires"),
        _ if change.custom_time.is_some() => lacks("a custom time"),
        _ if change.acl.is_some() => lacks("access control lists"),
        _ => Ok(()),
    }
}

impl Azure {
    /// Changes an object's metadata. Properties, metadata, tags and tier take one request each, so a failure can leave the
    /// change half made. The requests for properties and metadata demand the state that was read before. The service has no
    /// such condition for tags and tier.
    pub(super) async fn change_meta(&self, id: &ObjectId, change: &MetaChange) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::SetMeta, id);
        let invalid = |why: String| exchange.error(ErrorKind::Invalid, why);
        check_change(change).map_err(|why| exchange.error(ErrorKind::Unsupported, why))?;
        // The service reads names of metadata without their case, and sends them as names of headers.
        let change = &change.in_lower_case();
        if change.describes() {
            let found = self.head_of(id, None).await.map_err(|e| e.within(Operation::SetMeta))?;
            let new = change.applied(&found);
            super::headers::check_options(&PutOptions {
                metadata: new.metadata.clone(),
                ..PutOptions::default()
            })
            .map_err(invalid)?;
            let mut state = found.version.clone();
            let old = MetaChange::default().applied(&found);
            if !has_same_properties(&new, &old) {
                let condition = still(state.as_ref());
                let changed = self.set_properties(&exchange, id, &new, found.checksums.md5, &condition);
                state = Some(changed.await?);
            }
            if new.metadata != old.metadata {
                let outgoing = about(Method::PUT, id, "metadata").key_use(KeyUse::Object);
                let outgoing = metadata(outgoing, &new.metadata).map_err(|e| exchange.unsendable(&e))?;
                let outgoing = on_write(outgoing, &still(state.as_ref())).map_err(invalid)?;
                changed_state(&exchange, &exchange.send(&outgoing).await?)?;
            }
        }
        if let Some(tags) = &change.tags {
            let document = tags_document(tags).map_err(invalid)?;
            let outgoing = about(Method::PUT, id, "tags")
                .header("content-type", "application/xml")
                .map_err(|e| exchange.unsendable(&e))?;
            let outgoing = Outgoing { body: Body::from(Bytes::from(document)), ..outgoing };
            check_empty(&exchange, &exchange.send(&outgoing).await?)?;
        }
        if let Some(tier) = change.storage_class.as_deref().filter(|tier| !tier.is_empty()) {
            self.set_tier(&exchange, id, tier, None).await?;
        }
        self.head_of(id, None).await.map_err(|e| e.within(Operation::SetMeta))
    }

    /// Replaces all properties of a blob, and returns its new state.
    pub(super) async fn set_properties(
        &self,
        exchange: &Exchange<'_, Self>,
        id: &ObjectId,
        options: &PutOptions,
        md5: Option<[u8; 16]>,
        condition: &Condition,
    ) -> Result<Version, Error> {
        let outgoing = properties_request(id, options, md5, condition)
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        changed_state(exchange, &exchange.send(&outgoing).await?)
    }

    async fn set_tier(
        &self,
        exchange: &Exchange<'_, Self>,
        id: &ObjectId,
        tier: &str,
        priority: Option<&str>,
    ) -> Result<(), Error> {
        let outgoing = about(Method::PUT, id, "tier")
            .header("x-ms-access-tier", tier)
            .and_then(|outgoing| outgoing.header_some("x-ms-rehydrate-priority", priority))
            .map_err(|e| exchange.unsendable(&e))?;
        check_empty(exchange, &exchange.send(&outgoing).await?)
    }

    pub(super) async fn read_tags(&self, id: &ObjectId) -> Result<BTreeMap<String, String>, Error> {
        let exchange = Exchange::object(self, Operation::Tags, id);
        let sent = exchange.send(&about(Method::GET, id, "tags")).await?;
        let tags: Tags = xml::answer(&sent.response.body, &["Tags"])
            .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't a list of tags: {e}")))?;
        Ok(tags.tag_set.tags.into_iter().map(|tag| (tag.key, tag.value)).collect())
    }

    /// Restores a blob from the archive tier to the hot tier, where it stays.
    pub(super) async fn restore_blob(
        &self,
        id: &ObjectId,
        options: &RestoreOptions,
    ) -> Result<Restoration, Error> {
        let exchange = Exchange::object(self, Operation::Restore, id);
        if options.days.is_some() {
            let message = "a blob stays restored on Azure, so leave out the days";
            return Err(exchange.error(ErrorKind::Invalid, message));
        }
        let found = match self.head_of(id, None).await {
            Err(error) if error.is_not_found() && !error.is_missing_bucket() && id.version.is_none() => {
                return self.undelete(&exchange, id).await;
            }
            found => found.map_err(|e| e.within(Operation::Restore))?,
        };
        if found.archive_status.is_some() {
            return Ok(Restoration::UnderWay);
        }
        if !found.archived {
            return Ok(Restoration::NotNeeded);
        }
        self.set_tier(&exchange, id, RESTORED_TIER, options.tier.as_deref()).await?;
        Ok(Restoration::Begun)
    }

    /// Brings back a deleted blob.
    async fn undelete(&self, exchange: &Exchange<'_, Self>, id: &ObjectId) -> Result<Restoration, Error> {
        let target = blob_target(id, QueryString::new().and("comp", "undelete"));
        exchange.send(&Outgoing::new(Method::PUT, target)).await?;
        match self.head_of(id, None).await {
            // In an account with versions, the service brings back the blob's versions but not the blob.
            Err(error) if error.is_not_found() => {
                let message =
                    "the service has brought back the blob's versions; copy the one that should be the blob";
                Err(exchange.error(ErrorKind::NotFound, message))
            }
            found => found.map(|_| Restoration::Readable).map_err(|e| e.within(Operation::Restore)),
        }
    }

    /// Returns the metadata of a deleted blob that [`restore_blob`](Self::restore_blob) would bring back.
    pub(super) async fn deleted_blob(&self, id: &ObjectId) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::Restore, id);
        let list = List { versions: true, soft_deleted: true, ..List::new(&id.bucket, &id.key) };
        let mut found = None;
        // The blob with the prefix itself as its name is listed first.
        let take = |metas: Vec<ObjectMeta>| {
            found = found.take().or_else(|| metas.into_iter().find(|meta| meta.id.key == id.key));
        };
        self.list_page(&list, take).await.map_err(|e| e.within(Operation::Restore))?;
        found.ok_or_else(|| exchange.error(ErrorKind::NotFound, "there is neither a blob nor a deleted one"))
    }
}

/// Returns true if two sets of options have the same properties, apart from metadata, tags and tier.
fn has_same_properties(one: &PutOptions, other: &PutOptions) -> bool {
    let properties = |options: &PutOptions| {
        [
            options.content_type.clone(),
            options.content_encoding.clone(),
            options.cache_control.clone(),
            options.content_disposition.clone(),
            options.content_language.clone(),
        ]
    };
    properties(one) == properties(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_properties_keeps_the_md5_and_demands_the_state() {
        let options = PutOptions::default().content_type("text/plain");
        let state = Condition::Matches(Version::ETag("0x1".to_owned()));
        let id = ObjectId::new("abc", "k");
        let set = properties_request(&id, &options, Some([0; 16]), &state).expect("a request");
        assert_eq!(set.target, "/abc/k?comp=properties");
        assert_eq!(set.headers["x-ms-blob-content-md5"], "AAAAAAAAAAAAAAAAAAAAAA==");
        assert_eq!(set.headers["if-match"], "\"0x1\"");
    }

    #[test]
    fn tags_are_written_and_read_as_xml() {
        let tags = BTreeMap::from([("a&b".to_owned(), "<c>".to_owned())]);
        let document = tags_document(&tags).expect("a document");
        let read: Tags = xml::answer(document.as_bytes(), &["Tags"]).expect("tags");
        assert_eq!((read.tag_set.tags[0].key.as_str(), read.tag_set.tags[0].value.as_str()), ("a&b", "<c>"));
        let none: Tags = xml::answer(b"<Tags><TagSet /></Tags>", &["Tags"]).expect("tags");
        assert!(none.tag_set.tags.is_empty());
    }

    #[test]
    fn a_change_that_azure_lacks_is_refused_by_name() {
        assert!(check_change(&MetaChange::default().acl("private")).is_err_and(|why| why.contains("access")));
        assert_eq!(check_change(&MetaChange::default().content_type("a/b")), Ok(()));
    }
}
