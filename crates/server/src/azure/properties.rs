//! Changes of a blob that don't change its content: properties, metadata, access tier, tags, lease and snapshot.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};

use super::answer::{XmlElement, XmlWriter, empty, insert};
use super::blobs::{self, describe_write};
use super::conditions::{BlobConditions, ResourceState, etag};
use super::containers::metadata;
use super::error::{BlobError, BlobResult};
use super::{BlobCall, tags, timestamp};
use crate::objects::blob::Rehydration;
use crate::objects::versions::Versioning;
use crate::objects::{Attributes, NewObject, Object, Objects, now_us};

/// The access tiers of block blobs.
const TIERS: [&str; 4] = ["Hot", "Cool", "Cold", "Archive"];

/// Returns the tier of a blob and true if a client has set it. Without that, the account's default applies.
pub(super) fn tier(object: &Object, now_us: u64) -> (&str, bool) {
    match &object.blob().rehydration {
        Some(rehydration) if rehydration.ready_us <= now_us => (&rehydration.tier, true),
        _ => {
            let tier = object.attributes.storage_class.as_deref().filter(|tier| TIERS.contains(tier));
            (tier.unwrap_or("Hot"), tier.is_some())
        }
    }
}

/// Returns true if a blob can't be read because it is in the archive tier.
pub(super) fn is_archived(object: &Object, now_us: u64) -> bool {
    tier(object, now_us).0 == "Archive"
}

/// Returns the state of a blob that leaves the archive tier, such as `rehydrate-pending-to-hot`, and the priority.
pub(super) fn archive_status(object: &Object, now_us: u64) -> Option<(String, &str)> {
    let rehydration =
        object.blob().rehydration.as_ref().filter(|rehydration| rehydration.ready_us > now_us)?;
    let status = format!("rehydrate-pending-to-{}", rehydration.tier.to_ascii_lowercase());
    Some((status, &rehydration.priority))
}

/// Adds the headers about the access tier.
pub(super) fn describe_tier(headers: &mut HeaderMap, object: &Object) {
    let (tier, is_set) = tier(object, now_us());
    insert(headers, "x-ms-access-tier", tier);
    insert(headers, "x-ms-access-tier-inferred", if is_set { "false" } else { "true" });
    if let Some(changed_us) = object.blob().tier_changed_us {
        insert(headers, "x-ms-access-tier-change-time", &timestamp::http(changed_us));
    }
    if let Some((status, priority)) = archive_status(object, now_us()) {
        insert(headers, "x-ms-archive-status", &status);
        insert(headers, "x-ms-rehydrate-priority", priority);
    }
}

/// Returns the tier in the header of a request, if it has one.
pub(super) fn tier_in_header(call: &BlobCall<'_>) -> Result<Option<String>, BlobError> {
    let name = "x-ms-access-tier";
    let Some(text) = call.header(name) else { return Ok(None) };
    let tier = TIERS.into_iter().find(|tier| tier.eq_ignore_ascii_case(text));
    tier.map(|tier| Some(tier.to_owned()))
        .ok_or_else(|| BlobError::of_header("InvalidHeaderValue", name, text))
}

/// Checks conditions and lease of a change, under the lock of the store.
fn check(call: &BlobCall<'_>, object: &Object) -> Result<(), BlobError> {
    BlobConditions::in_headers(&call.head.headers)?.check_write(Some(object))?;
    call.state.leases.check_write(&call.target.container, &call.target.blob, call.lease_id())
}

/// Changes a blob, and returns it.
fn change(
    call: &BlobCall<'_>,
    change: impl FnOnce(&mut Object) -> Result<(), BlobError>,
) -> Result<Arc<Object>, BlobError> {
    let which = blobs::selector(call)?;
    let changed = call.state.objects.change(&call.target.container, &call.target.blob, which, |object| {
        check(call, object)?;
        change(object)
    });
    let (object, ()) = changed??;
    Ok(object)
}

/// Records that metadata or properties have changed. The blob then has a new tag and a new time.
fn touch(object: &mut Object) {
    object.metageneration += 1;
    object.updated_us = now_us();
}

pub(super) fn set_properties(call: &BlobCall<'_>) -> BlobResult {
    let (own, content_md5) = blobs::content_headers(call, false)?;
    let object = change(call, |object| {
        // Properties that the request doesn't name are removed.
        let attributes = Arc::make_mut(&mut object.attributes);
        attributes.content_type = Some(own.content_type.unwrap_or_default());
        attributes.content_encoding = own.content_encoding;
        attributes.content_language = own.content_language;
        attributes.content_disposition = own.content_disposition;
        attributes.cache_control = own.cache_control;
        object.blob_mut().content_md5 = Some(content_md5.unwrap_or_default());
        touch(object);
        Ok(())
    })?;
    let mut answer = empty(StatusCode::OK);
    describe_write(answer.headers_mut(), &object);
    Ok(answer)
}

pub(super) fn set_metadata(call: &BlobCall<'_>) -> BlobResult {
    let metadata = metadata(&call.head.headers)?;
    let keeps_versions =
        call.state.objects.bucket(&call.target.container)?.versioning() == Versioning::Enabled;
    let object = match keeps_versions {
        false => change(call, |object| {
            Arc::make_mut(&mut object.attributes).metadata = metadata;
            touch(object);
            Ok(())
        })?,
        // With versioning, the change makes a new version with the same content.
        true => {
            let present = blobs::present(call)?.ok_or_else(|| BlobError::new("BlobNotFound"))?;
            blobs::store(call, &Objects::written_from(&present), |_| NewObject {
                attributes: Attributes {
                    metadata: metadata.clone(),
                    ..Attributes::clone(&present.attributes)
                },
                blob: present.blob.clone(),
                ..NewObject::default()
            })?
        }
    };
    let mut answer = empty(StatusCode::OK);
    let headers = answer.headers_mut();
    describe_write(headers, &object);
    insert(headers, "x-ms-request-server-encrypted", "true");
    if object.standing.has_id {
        insert(headers, "x-ms-version-id", &timestamp::precise(object.generation));
    }
    Ok(answer)
}

pub(super) fn set_tier(call: &BlobCall<'_>) -> BlobResult {
    let name = "x-ms-access-tier";
    call.required_header(name)?;
    let wanted = tier_in_header(call)?.unwrap_or_default();
    let priority = match call.header("x-ms-rehydrate-priority") {
        None => "Standard",
        Some(priority @ ("Standard" | "High")) => priority,
        Some(other) => {
            return Err(BlobError::of_header("InvalidHeaderValue", "x-ms-rehydrate-priority", other));
        }
    };
    let takes_us = call.state.config.rehydration_takes.as_micros() as u64;
    let which = blobs::selector(call)?;
    let (container, blob) = (&call.target.container, &call.target.blob);
    let changed = call.state.objects.change(container, blob, which, |object| {
        let now = now_us();
        BlobConditions::in_headers(&call.head.headers)?.check_write(Some(object))?;
        call.state.leases.check_read(container, blob, call.lease_id())?;
        if let Some((_, present)) = archive_status(object, now) {
            // While a blob leaves the archive, only the priority can be raised.
            let raises = present == "Standard" && priority == "High";
            let rehydration = object.blob_mut().rehydration.as_mut().filter(|_| raises);
            let rehydration = rehydration.filter(|rehydration| rehydration.tier == wanted);
            rehydration.ok_or_else(|| BlobError::new("BlobBeingRehydrated"))?.priority = priority.to_owned();
            return Ok(true);
        }
        let leaves_archive = is_archived(object, now) && wanted != "Archive";
        let properties = object.blob_mut();
        if leaves_archive {
            let priority = priority.to_owned();
            properties.rehydration =
                Some(Rehydration { tier: wanted.clone(), priority, ready_us: now + takes_us });
            return Ok(true);
        }
        properties.rehydration = None;
        properties.tier_changed_us = Some(now);
        Arc::make_mut(&mut object.attributes).storage_class = Some(wanted.clone());
        Ok::<bool, BlobError>(false)
    });
    let (_, is_pending) = changed??;
    Ok(empty(if is_pending { StatusCode::ACCEPTED } else { StatusCode::OK }))
}

pub(super) fn tags(call: &BlobCall<'_>) -> BlobResult {
    let object = blobs::find(call)?;
    let mut document = XmlWriter::new();
    document.begin("Tags");
    write_tags(&mut document, &object.attributes.options.tags);
    Ok(document.answer())
}

/// Writes the tags of a blob as `TagSet`.
pub(super) fn write_tags<'a>(
    document: &mut XmlWriter,
    tags: impl IntoIterator<Item = (&'a String, &'a String)>,
) {
    document.begin("TagSet");
    for (name, value) in tags {
        document.begin("Tag");
        document.element("Key", name);
        document.element("Value", value);
        document.end();
    }
    document.end();
}

pub(super) async fn set_tags(call: &mut BlobCall<'_>) -> BlobResult {
    let bytes = call.document().await?;
    let document = XmlElement::parse(&bytes, "Tags")?;
    let set = document.child("TagSet").ok_or_else(|| BlobError::new("InvalidXmlDocument"))?;
    let text = |tag: &XmlElement, name: &str| tag.text_of(name).unwrap_or_default().to_owned();
    let tags = tags::checked(set.children.iter().map(|tag| (text(tag, "Key"), text(tag, "Value"))))?;
    change(call, |object| {
        // Tags don't belong to the blob's tag and time.
        Arc::make_mut(&mut object.attributes).options.tags = tags;
        Ok(())
    })?;
    Ok(empty(StatusCode::NO_CONTENT))
}

pub(super) fn lease(call: &BlobCall<'_>) -> BlobResult {
    let (container, blob) = (&call.target.container, &call.target.blob);
    let present = blobs::present(call)?.ok_or_else(|| BlobError::new("BlobNotFound"))?;
    BlobConditions::in_headers(&call.head.headers)?.check_write(Some(&present))?;
    let resource = ResourceState::of(&present);
    call.state.leases.act(container, blob, &call.head.headers, &resource, || call.state.guid())
}

pub(super) fn snapshot(call: &BlobCall<'_>) -> BlobResult {
    let own = metadata(&call.head.headers)?;
    let (container, blob) = (&call.target.container, &call.target.blob);
    let made = call.state.objects.snapshot(container, blob, |object| {
        BlobConditions::in_headers(&call.head.headers)?.check_write(Some(object))?;
        call.state.leases.check_read(container, blob, call.lease_id())?;
        if !own.is_empty() {
            Arc::make_mut(&mut object.attributes).metadata = own;
        }
        Ok::<(), BlobError>(())
    });
    let snapshot = made??;
    let mut answer = empty(StatusCode::CREATED);
    let headers = answer.headers_mut();
    insert(headers, "x-ms-snapshot", &timestamp::precise(snapshot.generation));
    insert(headers, "etag", &etag(&snapshot));
    insert(headers, "last-modified", &timestamp::http(snapshot.updated_us));
    insert(headers, "x-ms-request-server-encrypted", "true");
    Ok(answer)
}
