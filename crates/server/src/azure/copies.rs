//! Copy Blob, which may be pending, its abortion, and Put Blob From URL.
//!
//! The source of a copy is a URL of this server. The store fetches nothing from other servers.

use std::ops::Range;
use std::sync::Arc;

use http::{HeaderMap, Method, Request, StatusCode, Uri};

use super::answer::{empty, insert};
use super::authorization::authorize_source;
use super::blobs::{self};
use super::conditions::BlobConditions;
use super::error::{BlobError, BlobResult};
use super::{BlobCall, BlobTarget, properties, timestamp};
use crate::checksum::{ComputedChecksums, Hasher, base64, from_base64};
use crate::objects::blob::{BlobCopy, BlobProperties, CopyStatus};
use crate::objects::content::Content;
use crate::objects::versions::VersionSelector;
use crate::objects::writer::WrittenContent;
use crate::objects::{Attributes, NewObject, Object, Objects, now_us};
use crate::query::Query;

/// Returns true if a copy to the blob hasn't ended.
pub(super) fn is_pending(object: &Object) -> bool {
    object.blob().copy.as_ref().is_some_and(|copy| copy.status == CopyStatus::Pending)
}

fn status_name(status: CopyStatus) -> &'static str {
    match status {
        CopyStatus::Pending => "pending",
        CopyStatus::Success => "success",
        CopyStatus::Aborted => "aborted",
    }
}

/// The fields of a copy, with the names of headers and of elements in listings.
pub(super) fn fields(object: &Object) -> Vec<(&'static str, &'static str, String)> {
    let Some(copy) = &object.blob().copy else { return Vec::new() };
    let done = if copy.status == CopyStatus::Success { copy.size } else { 0 };
    let mut fields = vec![
        ("x-ms-copy-id", "CopyId", copy.id.clone()),
        ("x-ms-copy-source", "CopySource", copy.source.clone()),
        ("x-ms-copy-status", "CopyStatus", status_name(copy.status).to_owned()),
        ("x-ms-copy-progress", "CopyProgress", format!("{done}/{}", copy.size)),
    ];
    if copy.status != CopyStatus::Pending {
        fields.push(("x-ms-copy-completion-time", "CopyCompletionTime", timestamp::http(copy.ended_us)));
    }
    fields
}

/// Adds the headers about the last copy to a blob.
pub(super) fn describe(headers: &mut HeaderMap, object: &Object) {
    for (name, _, value) in fields(object) {
        insert(headers, name, &value);
    }
}

/// Returns the blob that a copy reads. `in_account` is true if the authorization of the request also covers sources in the
/// same account, as in Copy Blob. The other operations read the source as a request of its own would.
pub(super) fn source(call: &BlobCall<'_>, in_account: bool) -> Result<Arc<Object>, BlobError> {
    let name = "x-ms-copy-source";
    let text = call.required_header(name)?;
    let invalid = || BlobError::of_header("InvalidHeaderValue", name, text);
    let uri: Uri = text.parse().map_err(|_| invalid())?;
    if uri.host().is_none() {
        return Err(invalid());
    }
    let request = Request::builder().method(Method::GET).uri(uri).body(());
    let (head, ()) = request.map_err(|_| invalid())?.into_parts();
    let query = Query::parse(head.uri.query());
    let unverified = || BlobError::new("CannotVerifyCopySource");
    let target = BlobTarget::of(&head, &query, call.state.account()).ok_or_else(unverified)?;
    let by_token = call
        .header("x-ms-copy-source-authorization")
        .and_then(|value| value.split_once(' '))
        .is_some_and(|(scheme, token)| scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty());
    if target.account != call.target.account || target.blob.is_empty() {
        return Err(unverified());
    }
    if (!by_token && !in_account) || query.has("sig") {
        authorize_source(call.state, &query, &target).map_err(|refused| {
            // The service reports the error of its own request for the source.
            let status = refused.status().as_u16();
            BlobError::of_status(status, Some("CannotVerifyCopySource"))
                .saying(refused.message())
                .with("CopySourceErrorCode", refused.code())
        })?;
    }
    let generation = ["snapshot", "versionid"].iter().find_map(|name| query.value(name));
    let which = match generation.map(timestamp::parse) {
        None => VersionSelector::Live,
        Some(Some(generation)) => VersionSelector::Generation(generation),
        Some(None) => return Err(invalid()),
    };
    let found = call.state.objects.find_version(&target.container, &target.blob, which);
    let object = found.map_err(|refused| match in_account {
        true => BlobError::from(refused),
        false => unverified(),
    })?;
    BlobConditions::on_source(&call.head.headers)?.check_source(&object)?;
    if let Some(id) = call.header("x-ms-source-lease-id") {
        call.state.leases.check_read(&target.container, &target.blob, Some(id))?;
    }
    if is_pending(&object) {
        return Err(BlobError::new("PendingCopyOperation"));
    }
    Ok(object)
}

/// Parses `x-ms-source-range`.
pub(super) fn source_range(text: &str, size: u64) -> Result<Range<u64>, BlobError> {
    let parts = text.strip_prefix("bytes=").and_then(|range| range.split_once('-'));
    let range = parts.and_then(|(first, last)| {
        let first: u64 = first.parse().ok()?;
        let last: u64 = if last.is_empty() { size.checked_sub(1)? } else { last.parse().ok()? };
        (first <= last).then(|| first..last.saturating_add(1).min(size))
    });
    match range {
        None => Err(BlobError::of_header("InvalidHeaderValue", "x-ms-source-range", text)),
        Some(range) if range.start >= size => Err(BlobError::new("InvalidRange")),
        Some(range) => Ok(range),
    }
}

/// Checks the checksum of the source that a request announces.
pub(super) fn check_source_sums(call: &BlobCall<'_>, sums: &ComputedChecksums) -> Result<(), BlobError> {
    for (name, actual, code) in [
        ("x-ms-source-content-md5", sums.md5.map(|md5| md5.to_vec()), "Md5Mismatch"),
        ("x-ms-source-content-crc64", sums.crc64nvme.map(|crc| crc.to_le_bytes().to_vec()), "Crc64Mismatch"),
    ] {
        let (Some(text), Some(actual)) = (call.header(name), actual) else { continue };
        let expected =
            from_base64(text).ok_or_else(|| BlobError::of_header("InvalidHeaderValue", name, text))?;
        if expected != actual {
            return Err(BlobError::new(code));
        }
    }
    Ok(())
}

/// Returns the attributes and properties of a copy: those of the source, and those that the request replaces.
fn attributes(call: &BlobCall<'_>, source: &Object) -> Result<(Attributes, BlobProperties), BlobError> {
    let (own, properties) = blobs::attributes(call)?;
    let mut attributes = Attributes::clone(&source.attributes);
    attributes.storage_class = own.storage_class;
    // Tags are copied only if the request asks for that.
    attributes.options = own.options;
    if call.header("x-ms-copy-source-tag-option") == Some("COPY") {
        if call.header("x-ms-tags").is_some() {
            return Err(BlobError::new("BothUserTagsAndSourceTagsCopyPresent"));
        }
        attributes.options.tags.clone_from(&source.attributes.options.tags);
    }
    if !own.metadata.is_empty() {
        attributes.metadata = own.metadata;
    }
    let of_source = source.blob();
    let content_md5 = of_source.content_md5.clone();
    let (kind, blocks) = (of_source.kind.clone(), of_source.blocks.clone());
    Ok((attributes, BlobProperties { kind, content_md5, blocks, ..properties }))
}

/// Put Blob From URL: a copy that has ended when the answer is sent.
pub(super) fn put_from_url(call: &BlobCall<'_>) -> BlobResult {
    blobs::check_name(call)?;
    if call.required_header("x-ms-blob-type")? != "BlockBlob" {
        return Err(BlobError::new("InvalidBlobType"));
    }
    let source = source(call, false)?;
    if properties::is_archived(&source, now_us()) {
        return Err(BlobError::new("BlobArchived"));
    }
    let (mut attributes, mut properties) = attributes(call, &source)?;
    properties.blocks = Vec::new();
    let (own, content_md5) = blobs::content_headers(call, false)?;
    let copies_properties =
        call.header("x-ms-copy-source-blob-properties").is_none_or(|value| value != "false");
    if !copies_properties {
        let metadata = std::mem::take(&mut attributes.metadata);
        let options = std::mem::take(&mut attributes.options);
        let storage_class = attributes.storage_class.take();
        attributes = Attributes { metadata, options, storage_class, ..Attributes::default() };
    }
    for (present, own) in [
        (&mut attributes.content_type, own.content_type),
        (&mut attributes.content_encoding, own.content_encoding),
        (&mut attributes.content_language, own.content_language),
        (&mut attributes.content_disposition, own.content_disposition),
        (&mut attributes.cache_control, own.cache_control),
    ] {
        if own.is_some() {
            *present = own;
        }
    }
    let sums = blobs::sums_of(&source.content).map_err(|error| BlobError::io(&error))?;
    check_source_sums(call, &sums)?;
    if let Some(md5) = &content_md5
        && sums.md5.map(|sum| base64(&sum)).as_ref() != Some(md5)
    {
        return Err(BlobError::new("Md5Mismatch"));
    }
    properties.content_md5 = None;
    let written = WrittenContent { content: source.content.clone(), sums: sums.clone() };
    let stored = blobs::store(call, &written, |_| NewObject {
        attributes: attributes.clone(),
        blob: Some(Box::new(properties.clone())),
        ..NewObject::default()
    })?;
    super::blocks::discard(call);
    let mut answer = blobs::created(&stored);
    blobs::describe_sums(answer.headers_mut(), &sums, true);
    Ok(answer)
}

/// Copy Blob: the copy may end later than the answer is sent.
pub(super) fn copy(call: &BlobCall<'_>) -> BlobResult {
    blobs::check_name(call)?;
    let source = source(call, true)?;
    let (attributes, mut properties) = attributes(call, &source)?;
    if properties::is_archived(&source, now_us()) && attributes.storage_class.is_none() {
        return Err(BlobError::new("BlobArchived"));
    }
    let is_sync = call.header("x-ms-requires-sync").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if is_sync && call.header("x-ms-source-content-md5").is_some() {
        check_source_sums(call, &blobs::sums_of(&source.content).map_err(|error| BlobError::io(&error))?)?;
    }
    let takes = call.state.config.copies_take;
    let is_pending = !is_sync && !takes.is_zero();
    let id = call.state.guid();
    let from = call.header("x-ms-copy-source").unwrap_or_default();
    let status = if is_pending { CopyStatus::Pending } else { CopyStatus::Success };
    // The signature of a SAS token isn't shown to readers of the copy.
    let shown = from.split('?').next().unwrap_or_default().to_owned();
    properties.copy =
        Some(BlobCopy { id: id.clone(), source: shown, status, size: source.size, ended_us: now_us() });
    let complete = properties.clone();
    let whole = Objects::written_from(&source);
    let written = match is_pending {
        true => {
            properties.blocks = Vec::new();
            properties.content_md5 = Some(String::new());
            let sums = Hasher::new(blobs::ALL_CHECKSUMS).finish();
            WrittenContent { content: Content::default(), sums }
        }
        false => whole.clone(),
    };
    let stored = blobs::store(call, &written, |_| NewObject {
        attributes: attributes.clone(),
        blob: Some(Box::new(properties.clone())),
        ..NewObject::default()
    })?;
    super::blocks::discard(call);
    if is_pending {
        let objects = call.state.objects.clone();
        let (container, blob) = (call.target.container.clone(), call.target.blob.clone());
        tokio::spawn(async move {
            tokio::time::sleep(takes).await;
            complete_copy(&objects, &container, &blob, &complete, whole);
        });
    }
    let mut answer = empty(StatusCode::ACCEPTED);
    let headers = answer.headers_mut();
    blobs::describe_write(headers, &stored);
    insert(headers, "x-ms-copy-id", &id);
    insert(headers, "x-ms-copy-status", status_name(status));
    if is_sync {
        let sums = blobs::sums_of(&source.content).map_err(|error| BlobError::io(&error))?;
        blobs::describe_sums(headers, &sums, call.header("x-ms-source-content-md5").is_some());
    }
    if stored.standing.has_id {
        insert(headers, "x-ms-version-id", &timestamp::precise(stored.generation));
    }
    Ok(answer)
}

/// Ends a copy, unless it was aborted or its blob was replaced.
fn complete_copy(
    objects: &Objects,
    container: &str,
    blob: &str,
    complete: &BlobProperties,
    whole: WrittenContent,
) {
    let id = complete.copy.as_ref().map(|copy| copy.id.as_str());
    // An error means that the blob or its container no longer exists, so that the copy has nowhere to go.
    let _ = objects.change(container, blob, VersionSelector::Live, |object| {
        let is_ours = is_pending(object) && object.blob().copy.as_ref().map(|copy| copy.id.as_str()) == id;
        if !is_ours {
            return Err(());
        }
        let mut properties = complete.clone();
        if let Some(copy) = &mut properties.copy {
            copy.status = CopyStatus::Success;
            copy.ended_us = now_us();
        }
        object.size = whole.sums.size;
        object.crc32c = whole.sums.crc32c;
        object.crc64nvme = whole.sums.crc64nvme;
        object.md5 = whole.sums.md5;
        object.content = whole.content;
        object.blob = Some(Box::new(properties));
        object.metageneration += 1;
        object.updated_us = now_us();
        Ok(())
    });
}

pub(super) fn abort(call: &BlobCall<'_>) -> BlobResult {
    let action = "x-ms-copy-action";
    if !call.required_header(action)?.eq_ignore_ascii_case("abort") {
        return Err(BlobError::of_header(
            "InvalidHeaderValue",
            action,
            call.header(action).unwrap_or_default(),
        ));
    }
    let id = call.query.value("copyid").ok_or_else(|| {
        BlobError::new("MissingRequiredQueryParameter").with("QueryParameterName", "copyid")
    })?;
    let (container, blob) = (&call.target.container, &call.target.blob);
    call.state.leases.check_write(container, blob, call.lease_id())?;
    let aborted = call.state.objects.change(container, blob, VersionSelector::Live, |object| {
        if !is_pending(object) {
            return Err(BlobError::new("NoPendingCopyOperation"));
        }
        let copy = object.blob_mut().copy.as_mut().filter(|copy| copy.id == id);
        let copy = copy.ok_or_else(|| BlobError::new("CopyIdMismatch"))?;
        copy.status = CopyStatus::Aborted;
        copy.ended_us = now_us();
        Ok(())
    });
    aborted??;
    Ok(empty(StatusCode::NO_CONTENT))
}
