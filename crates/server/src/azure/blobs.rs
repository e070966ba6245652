//! Get Blob, Get Blob Properties, Put Blob, Delete Blob, and the steps that all writes of blobs share.

use std::ops::Range;
use std::sync::Arc;

use http::header::{CONTENT_LENGTH, RANGE};
use http::{HeaderMap, Response, StatusCode};

use super::answer::{empty, insert};
use super::conditions::{BlobConditions, etag};
use super::containers::{describe_metadata, metadata};
use super::error::{BlobError, BlobResult};
use super::{BlobCall, copies, properties, tags, timestamp};
use crate::body::{ResponseBody, StructuredReader};
use crate::checksum::{ComputedChecksums, Hasher, WantedChecksums, base64, from_base64};
use crate::fault::answer::RangeFault;
use crate::habits::AzureHabits;
use crate::objects::blob::BlobProperties;
use crate::objects::content::Content;
use crate::objects::precondition::Precondition;
use crate::objects::versions::{VersionSelector, VersionSuccessor, Versioning};
use crate::objects::writer::WrittenContent;
use crate::objects::{Attributes, NewObject, Object, StoreError, now_us};

/// The largest blob of one Put Blob, and the largest range with a checksum of its own.
const PUT_BYTES_MAX: u64 = 5000 << 20;
const CHECKED_RANGE_BYTES_MAX: u64 = 4 << 20;
/// The header that asks for a structured body, its only value, and the first version of the service that has it.
const STRUCTURED_BODY: &str = "x-ms-structured-body";
const STRUCTURED_FORMAT: &str = "XSM/1.0; properties=crc64";
const STRUCTURED_BODY_VERSION: &str = "2025-01-05";
/// The size of a page, and the largest page blob of this store, which writes its zeros.
const PAGE_BYTES: usize = 512;
const PAGE_BLOB_BYTES_MAX: usize = 16 << 20;
/// The content type of a blob whose writer names none.
const DEFAULT_TYPE: &str = "application/octet-stream";
/// The maximum length of a blob's name.
const NAME_CHARS_MAX: usize = 1024;

/// The checksums that a request announces for its body.
#[derive(Debug)]
pub(super) struct BodyChecksums {
    md5: Option<Vec<u8>>,
    crc64: Option<u64>,
    habits: AzureHabits,
}

impl BodyChecksums {
    pub(super) fn in_headers(call: &BlobCall<'_>) -> Result<BodyChecksums, BlobError> {
        // This store doesn't read structured bodies, and their frames aren't content.
        if call.header(STRUCTURED_BODY).is_some() {
            return Err(BlobError::new("UnsupportedHeader").with("HeaderName", STRUCTURED_BODY));
        }
        let (md5, crc64) = ("content-md5", "x-ms-content-crc64");
        let md5 = match call.header(md5) {
            None => None,
            Some(text) => match from_base64(text).filter(|md5| md5.len() == 16) {
                Some(md5) => Some(md5),
                None => return Err(BlobError::of_header("InvalidMd5", "Content-MD5", text)),
            },
        };
        let crc64 = match call.header(crc64) {
            None => None,
            Some(text) => {
                let bytes = from_base64(text).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
                let bytes = bytes.ok_or_else(|| BlobError::of_header("InvalidHeaderValue", crc64, text))?;
                Some(u64::from_le_bytes(bytes))
            }
        };
        let habits = call.state.habits;
        if crc64.is_some() && !habits.crc64 {
            return Err(BlobError::new("FeatureNotSupported"));
        }
        if md5.is_some() && crc64.is_some() {
            return Err(BlobError::new("BothCrc64AndMd5HeaderPresent"));
        }
        Ok(BodyChecksums { md5, crc64, habits })
    }

    fn check(&self, sums: &ComputedChecksums) -> Result<(), BlobError> {
        if let (Some(expected), Some(md5)) = (&self.md5, sums.md5)
            && *expected != md5
        {
            if !self.habits.md5_mismatch {
                return Err(BlobError::new("InvalidOperation").saying("Provided contentMD5 doesn't match."));
            }
            return Err(BlobError::new("Md5Mismatch")
                .with("UserSpecifiedMd5", base64(expected))
                .with("ServerCalculatedMd5", base64(&md5)));
        }
        if let (Some(expected), Some(crc64)) = (self.crc64, sums.crc64nvme)
            && expected != crc64
        {
            return Err(BlobError::new("Crc64Mismatch")
                .with("UserSpecifiedCrc64", base64(&expected.to_le_bytes()))
                .with("ServerCalculatedCrc64", base64(&crc64.to_le_bytes())));
        }
        Ok(())
    }

    pub(super) fn check_bytes(&self, bytes: &[u8]) -> Result<(), BlobError> {
        let mut hasher = Hasher::new(ALL_CHECKSUMS);
        hasher.update(bytes);
        self.check(&hasher.finish())
    }

    /// Returns true if the answer repeats the MD5 instead of the CRC64.
    pub(super) fn has_md5(&self) -> bool {
        self.md5.is_some()
    }
}

pub(super) const ALL_CHECKSUMS: WantedChecksums =
    WantedChecksums { md5_bytes_max: u64::MAX, crc64nvme: true, extra: None };

/// Stores the bytes of a body and checks them. If a check fails, the bytes are discarded. `with_md5` is true if the MD5
/// is needed even if the client sent none.
pub(super) async fn receive(
    call: &mut BlobCall<'_>,
    expected: &BodyChecksums,
    bytes_max: u64,
    with_md5: bool,
) -> Result<WrittenContent, BlobError> {
    if call.body.expected().is_some_and(|expected| expected > bytes_max) {
        return Err(BlobError::new("RequestBodyTooLarge").with("MaxLimit", bytes_max.to_string()));
    }
    let md5_bytes_max = if with_md5 || expected.md5.is_some() { u64::MAX } else { 0 };
    let wanted = WantedChecksums { md5_bytes_max, ..ALL_CHECKSUMS };
    let mut writer = call.state.objects.writer(wanted, call.body.expected());
    while let Some(bytes) = call.body.next().await {
        let bytes = bytes.map_err(BlobError::interrupted)?;
        writer.write(&bytes).map_err(|error| BlobError::io(&error))?;
        if writer.size() > bytes_max {
            return Err(BlobError::new("RequestBodyTooLarge").with("MaxLimit", bytes_max.to_string()));
        }
    }
    let written = writer.finish();
    expected.check(&written.sums)?;
    Ok(written)
}

/// Returns the version that a read asks for: the live blob, a snapshot, or a version.
pub(super) fn selector(call: &BlobCall<'_>) -> Result<VersionSelector, BlobError> {
    for name in ["snapshot", "versionid"] {
        if let Some(text) = call.query.value(name).filter(|text| !text.is_empty()) {
            let generation = timestamp::parse(text)
                .ok_or_else(|| BlobError::of_parameter("InvalidQueryParameterValue", name, text))?;
            return Ok(VersionSelector::Generation(generation));
        }
    }
    Ok(VersionSelector::Live)
}

/// Returns the blob that a request is about, after a check of conditions and lease.
pub(super) fn find(call: &BlobCall<'_>) -> Result<Arc<Object>, BlobError> {
    let (container, blob) = (&call.target.container, &call.target.blob);
    let which = selector(call)?;
    let object = match call.state.objects.find_version(container, blob, which) {
        Err(StoreError::NoObject | StoreError::DeleteMarker(_)) => return Err(missing(call)),
        found => found?,
    };
    if call.query.has("snapshot") != object.is_snapshot() && which != VersionSelector::Live {
        return Err(BlobError::new("BlobNotFound"));
    }
    // A blob that doesn't exist is reported before its conditions are checked.
    BlobConditions::in_headers(&call.head.headers)?.check_read(&object)?;
    if which == VersionSelector::Live {
        call.state.leases.check_read(container, blob, call.lease_id())?;
    }
    Ok(object)
}

/// Returns the error for a blob that doesn't exist.
fn missing(call: &BlobCall<'_>) -> BlobError {
    let has_condition = call.header("if-match").is_some();
    match has_condition && !call.state.habits.missing_before_conditions {
        true => BlobError::new("ConditionNotMet"),
        false => BlobError::new("BlobNotFound"),
    }
}

pub(super) fn get(call: &BlobCall<'_>) -> BlobResult {
    let object = find(call)?;
    if properties::is_archived(&object, now_us()) {
        return Err(BlobError::new("BlobArchived"));
    }
    let (wants_md5, wants_crc64) =
        (is_true(call, "x-ms-range-get-content-md5"), is_true(call, "x-ms-range-get-content-crc64"));
    let range = match range(call)? {
        None => None,
        Some(asked) => {
            let end = asked.end.min(object.size);
            if asked.start >= end {
                let name = http::header::CONTENT_RANGE;
                return Err(
                    BlobError::new("InvalidRange").with_header(name, format!("bytes */{}", object.size))
                );
            }
            Some(asked.start..end)
        }
    };
    if wants_crc64 && !call.state.habits.range_crc64 {
        return Err(BlobError::new("FeatureNotSupported"));
    }
    if wants_md5 || wants_crc64 {
        let name = if wants_md5 { "x-ms-range-get-content-md5" } else { "x-ms-range-get-content-crc64" };
        let is_allowed =
            range.as_ref().is_some_and(|range| range.end - range.start <= CHECKED_RANGE_BYTES_MAX);
        if !is_allowed || (wants_md5 && wants_crc64) {
            return Err(BlobError::of_header("InvalidHeaderValue", name, "true"));
        }
    }
    let content =
        range.as_ref().map_or_else(|| object.content.clone(), |range| object.content.range(range.clone()));
    let sums = match wants_md5 || wants_crc64 {
        true => Some(sums_of(&content).map_err(|error| BlobError::io(&error))?),
        false => None,
    };
    let len = range.as_ref().map_or(object.size, |range| range.end - range.start);
    let mut answer = Response::new(ResponseBody::empty());
    let headers = answer.headers_mut();
    describe(call, headers, &object);
    *answer.body_mut() = if wants_structured_body(call)? {
        let reader = StructuredReader::new(content.reader());
        headers.insert(CONTENT_LENGTH, reader.left().into());
        insert(headers, STRUCTURED_BODY, STRUCTURED_FORMAT);
        headers.insert("x-ms-structured-content-length", len.into());
        ResponseBody::structured(reader)
    } else {
        headers.insert(CONTENT_LENGTH, len.into());
        ResponseBody::object(content.reader())
    };
    let headers = answer.headers_mut();
    if range.is_none()
        && let Some(whole) = headers.get("content-md5").cloned()
    {
        headers.insert("x-ms-blob-content-md5", whole);
    }
    if range.is_none()
        && !call.state.habits.suffix_ranges_ignored
        && let Some(last) = call.header(RANGE.as_str()).and_then(|text| text.strip_prefix("bytes=-"))
    {
        insert(headers, "content-range", &format!("bytes NaN-{last}/{}", object.size));
        *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
        return Ok(answer);
    }
    if let Some(range) = range {
        // The header tells the checksum of the body, and the body is only a part of the blob.
        if let Some(whole) = headers.remove("content-md5") {
            headers.insert("x-ms-blob-content-md5", whole);
        }
        insert(headers, "content-range", &format!("bytes {}-{}/{}", range.start, range.end - 1, object.size));
        *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    let headers = answer.headers_mut();
    if let Some(md5) = sums.as_ref().and_then(|sums| sums.md5).filter(|_| wants_md5) {
        insert(headers, "content-md5", &base64(&md5));
    }
    if let Some(crc64) = sums.and_then(|sums| sums.crc64nvme).filter(|_| wants_crc64) {
        insert(headers, "x-ms-content-crc64", &base64(&crc64.to_le_bytes()));
    }
    Ok(answer)
}

/// Returns true if the answer has a structured body. Older versions of the service ignore the request for one.
fn wants_structured_body(call: &BlobCall<'_>) -> Result<bool, BlobError> {
    let asked = call.header(STRUCTURED_BODY).filter(|_| call.version() >= STRUCTURED_BODY_VERSION);
    match asked.filter(|_| call.state.habits.structured_bodies) {
        None => Ok(false),
        Some(format) if format.eq_ignore_ascii_case(STRUCTURED_FORMAT) => Ok(true),
        Some(format) => Err(BlobError::of_header("InvalidHeaderValue", STRUCTURED_BODY, format)),
    }
}

fn is_true(call: &BlobCall<'_>, name: &str) -> bool {
    call.header(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// Returns the range that a read asks for. The service has no ranges from the end of a blob. It ignores a `Range` that it
/// doesn't know, as HTTP permits, and refuses such an `x-ms-range`.
fn range(call: &BlobCall<'_>) -> Result<Option<Range<u64>>, BlobError> {
    let own = "x-ms-range";
    let range = match call.header(own) {
        Some(text) => match parse_range(text) {
            Some(range) => Some(range),
            None => return Err(BlobError::of_header("InvalidHeaderValue", own, text)),
        },
        None => call.header(RANGE.as_str()).and_then(parse_range),
    };
    Ok(match call.head.extensions.get() {
        None => range,
        Some(RangeFault::Ignored) => None,
        Some(RangeFault::Shifted) => range.map(|range| range.start + 1..range.end.saturating_add(1)),
    })
}

fn parse_range(text: &str) -> Option<Range<u64>> {
    let (first, last) = text.trim().strip_prefix("bytes=")?.split_once('-')?;
    let first: u64 = first.trim().parse().ok()?;
    match last.trim() {
        "" => Some(first..u64::MAX),
        last => {
            let last: u64 = last.parse().ok()?;
            (first <= last).then(|| first..last.saturating_add(1))
        }
    }
}

/// Computes the checksums of content.
pub(super) fn sums_of(content: &Content) -> std::io::Result<ComputedChecksums> {
    let mut hasher = Hasher::new(ALL_CHECKSUMS);
    let mut reader = content.clone().reader();
    while let Some(bytes) = reader.next() {
        hasher.update(&bytes?);
    }
    Ok(hasher.finish())
}

pub(super) fn head(call: &BlobCall<'_>) -> BlobResult {
    let object = find(call)?;
    let mut answer = Response::new(ResponseBody::empty());
    if call.query.value("comp") == Some("metadata") {
        let headers = answer.headers_mut();
        describe_metadata(headers, &object.attributes.metadata);
        describe_write(headers, &object);
        headers.insert(CONTENT_LENGTH, 0.into());
        return Ok(answer);
    }
    describe(call, answer.headers_mut(), &object);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_LENGTH, object.size.into());
    properties::describe_tier(headers, &object);
    Ok(answer)
}

/// Returns the Content-MD5 of a blob: the one that a client has set, or else that of its content.
pub(super) fn content_md5(object: &Object) -> Option<String> {
    match &object.blob().content_md5 {
        Some(md5) => Some(md5.clone()).filter(|md5| !md5.is_empty()),
        None => object.md5_base64(),
    }
}

/// Returns the content type of a blob. It is empty if a client removed it.
pub(super) fn content_type(object: &Object) -> &str {
    object.attributes.content_type.as_deref().unwrap_or(DEFAULT_TYPE)
}

/// Adds the headers of Get Blob and Get Blob Properties.
fn describe(call: &BlobCall<'_>, headers: &mut HeaderMap, object: &Object) {
    let attributes = &object.attributes;
    describe_write(headers, object);
    let overrides = [
        ("content-type", "rsct", Some(content_type(object))),
        ("content-encoding", "rsce", attributes.content_encoding.as_deref()),
        ("content-language", "rscl", attributes.content_language.as_deref()),
        ("cache-control", "rscc", attributes.cache_control.as_deref()),
        ("content-disposition", "rscd", attributes.content_disposition.as_deref()),
    ];
    for (name, parameter, value) in overrides {
        // A SAS token may replace these headers. It has been verified, and includes these parameters.
        let of_token = call.query.value(parameter).filter(|_| call.query.has("sig"));
        if let Some(value) = of_token.or(value).filter(|value| !value.is_empty()) {
            insert(headers, name, value);
        }
    }
    if let Some(md5) = content_md5(object) {
        insert(headers, "content-md5", &md5);
    }
    insert(headers, "accept-ranges", "bytes");
    insert(headers, "x-ms-creation-time", &timestamp::http(object.created_us));
    insert(headers, "x-ms-blob-type", object.blob().kind());
    match object.blob().kind() {
        "PageBlob" => insert(headers, "x-ms-blob-sequence-number", "0"),
        "AppendBlob" => {
            insert(headers, "x-ms-blob-committed-block-count", &object.blob().blocks.len().to_string())
        }
        _ => {}
    }
    insert(headers, "x-ms-server-encrypted", "true");
    describe_metadata(headers, &attributes.metadata);
    let tag_count = attributes.options.tags.len();
    if tag_count > 0 {
        headers.insert("x-ms-tag-count", tag_count.into());
    }
    if object.standing.has_id && !object.is_snapshot() {
        insert(headers, "x-ms-version-id", &timestamp::precise(object.generation));
        if object.standing.noncurrent_us.is_none() {
            insert(headers, "x-ms-is-current-version", "true");
        }
    }
    if !object.is_snapshot() && object.standing.noncurrent_us.is_none() {
        call.state.leases.describe(headers, &call.target.container, &call.target.blob);
    }
    copies::describe(headers, object);
}

/// Adds the tag and the time of a blob.
pub(super) fn describe_write(headers: &mut HeaderMap, object: &Object) {
    insert(headers, "etag", &etag(object));
    insert(headers, "last-modified", &timestamp::http(object.updated_us));
}

/// Returns the answer to a write that made a new blob.
pub(super) fn created(object: &Object) -> Response<ResponseBody> {
    let mut answer = empty(StatusCode::CREATED);
    let headers = answer.headers_mut();
    describe_write(headers, object);
    insert(headers, "x-ms-request-server-encrypted", "true");
    if object.standing.has_id {
        insert(headers, "x-ms-version-id", &timestamp::precise(object.generation));
    }
    answer
}

/// Adds the checksum of a request's body to its answer.
pub(super) fn describe_sums(headers: &mut HeaderMap, sums: &ComputedChecksums, with_md5: bool) {
    if let Some(md5) = sums.md5.filter(|_| with_md5) {
        insert(headers, "content-md5", &base64(&md5));
    }
    if let Some(crc64) = sums.crc64nvme {
        insert(headers, "x-ms-content-crc64", &base64(&crc64.to_le_bytes()));
    }
}

/// Returns the attributes and the properties in the headers of a request that writes a blob.
pub(super) fn attributes(call: &BlobCall<'_>) -> Result<(Attributes, BlobProperties), BlobError> {
    let (mut attributes, content_md5) = content_headers(call, true)?;
    attributes.content_type.get_or_insert_with(|| DEFAULT_TYPE.to_owned());
    attributes.metadata = metadata(&call.head.headers)?;
    if let Some(text) = call.header("x-ms-tags") {
        if !call.access.permits("t") {
            return Err(BlobError::new("AuthorizationPermissionMismatch"));
        }
        attributes.options.tags = tags::in_header(text)?;
    }
    let mut properties = BlobProperties { content_md5, ..BlobProperties::default() };
    if let Some(tier) = properties::tier_in_header(call)? {
        properties.tier_changed_us = Some(now_us());
        attributes.storage_class = Some(tier);
    }
    Ok((attributes, properties))
}

/// Returns the properties that become headers of reads, and the Content-MD5. `falls_back` is true if the standard headers
/// apply where the headers with `x-ms-blob-` are missing.
pub(super) fn content_headers(
    call: &BlobCall<'_>,
    falls_back: bool,
) -> Result<(Attributes, Option<String>), BlobError> {
    let text = |own: &str, standard: &str| {
        let value = call.header(own).or_else(|| call.header(standard).filter(|_| falls_back));
        value.filter(|value| !value.is_empty()).map(str::to_owned)
    };
    // The service doesn't compare this MD5 with the content of a committed block list.
    let md5 = "x-ms-blob-content-md5";
    let content_md5 = match call.header(md5) {
        Some(text) if from_base64(text).is_none() => {
            return Err(BlobError::of_header("InvalidMd5", md5, text));
        }
        md5 => md5.map(str::to_owned),
    };
    let attributes = Attributes {
        content_type: text("x-ms-blob-content-type", "content-type"),
        content_encoding: text("x-ms-blob-content-encoding", "content-encoding"),
        content_language: text("x-ms-blob-content-language", "content-language"),
        content_disposition: call.header("x-ms-blob-content-disposition").map(str::to_owned),
        cache_control: text("x-ms-blob-cache-control", "cache-control"),
        ..Attributes::default()
    };
    Ok((attributes, content_md5))
}

/// Returns an error if the service permits no blob to have the name.
pub(super) fn check_name(call: &BlobCall<'_>) -> Result<(), BlobError> {
    match (1..=NAME_CHARS_MAX).contains(&call.target.blob.chars().count()) {
        true => Ok(()),
        false => Err(BlobError::new("InvalidResourceName")),
    }
}

pub(super) async fn put(call: &mut BlobCall<'_>) -> BlobResult {
    check_name(call)?;
    let name = "x-ms-blob-type";
    let kind = match call.required_header(name)? {
        "BlockBlob" => None,
        kind @ ("AppendBlob" | "PageBlob") => Some(kind.to_owned()),
        other => return Err(BlobError::of_header("InvalidHeaderValue", name, other)),
    };
    let (attributes, mut properties) = attributes(call)?;
    if kind.is_some() {
        properties.kind = kind;
        return put_without_content(call, &attributes, &properties);
    }
    let mut expected = BodyChecksums::in_headers(call)?;
    if let Some(md5) = call.header("x-ms-blob-content-md5") {
        // In this request, the property is compared with the content, and Content-MD5 is not.
        let md5 = from_base64(md5).filter(|md5| md5.len() == 16);
        expected.md5 = Some(md5.ok_or_else(|| BlobError::new("InvalidMd5"))?);
    }
    if call.header("x-ms-structured-body").is_some() {
        return Err(BlobError::new("NotImplemented").with("Operation", "structured bodies of uploads"));
    }
    // The bucket is looked up first, so that no body is received for a container that doesn't exist.
    call.state.objects.bucket_to_write(&call.target.container)?;
    let written = receive(call, &expected, PUT_BYTES_MAX, true).await?;
    let sums = written.sums.clone();
    let stored = store(call, &written, |_| NewObject {
        attributes: attributes.clone(),
        blob: Some(Box::new(properties.clone())),
        ..NewObject::default()
    })?;
    super::blocks::discard(call);
    let mut answer = created(&stored);
    describe_sums(answer.headers_mut(), &sums, true);
    Ok(answer)
}

/// Creates an append blob, or a page blob of zeros. The store lacks the operations that write to them later.
fn put_without_content(
    call: &BlobCall<'_>,
    attributes: &Attributes,
    properties: &BlobProperties,
) -> BlobResult {
    let mut writer = call.state.objects.writer(ALL_CHECKSUMS, None);
    if properties.kind.as_deref() == Some("PageBlob") {
        let name = "x-ms-blob-content-length";
        let text = call.required_header(name)?;
        let size = text.parse::<usize>().ok().filter(|size| size.is_multiple_of(PAGE_BYTES));
        let size = size.ok_or_else(|| BlobError::of_header("InvalidHeaderValue", name, text))?;
        if size > PAGE_BLOB_BYTES_MAX {
            return Err(BlobError::new("NotImplemented").with("Operation", "page blobs above 16 MiB"));
        }
        writer.write(&vec![0; size]).map_err(|error| BlobError::io(&error))?;
    }
    let mut properties = properties.clone();
    // Only block blobs get an MD5 by themselves.
    properties.content_md5.get_or_insert_default();
    let stored = store(call, &writer.finish(), |_| NewObject {
        attributes: attributes.clone(),
        blob: Some(Box::new(properties.clone())),
        ..NewObject::default()
    })?;
    Ok(created(&stored))
}

/// Returns the live blob of a write, if it exists.
pub(super) fn present(call: &BlobCall<'_>) -> Result<Option<Arc<Object>>, BlobError> {
    match call.state.objects.find(&call.target.container, &call.target.blob) {
        Ok(object) => Ok(Some(object)),
        Err(StoreError::NoObject | StoreError::DeleteMarker(_)) => Ok(None),
        Err(refused) => Err(refused.into()),
    }
}

/// Checks if a write may replace the blob, or create it.
fn check_replacement(call: &BlobCall<'_>, present: Option<&Object>) -> Result<(), BlobError> {
    BlobConditions::in_headers(&call.head.headers)?.check_creation(present)?;
    call.state.leases.check_write(&call.target.container, &call.target.blob, call.lease_id())?;
    let appends = call.query.value("comp") == Some("appendblock");
    match present {
        Some(_) if !appends && !call.access.permits("w") => Err(BlobError::new("UnauthorizedBlobOverwrite")),
        Some(object) if copies::is_pending(object) => Err(BlobError::new("PendingCopyOperation")),
        _ => Ok(()),
    }
}

/// Stores content as the blob of a request, if conditions and lease permit it at that moment. `new` gets the blob that it
/// replaces.
pub(super) fn store(
    call: &BlobCall<'_>,
    written: &WrittenContent,
    new: impl Fn(Option<&Object>) -> NewObject,
) -> Result<Arc<Object>, BlobError> {
    let (container, blob) = (&call.target.container, &call.target.blob);
    call.state.objects.bucket_to_write(container)?;
    loop {
        let present = present(call)?;
        check_replacement(call, present.as_deref())?;
        // The store writes only if the blob hasn't changed since the check. Otherwise everything is checked again.
        let unchanged = unchanged(present.as_deref());
        let new = new(present.as_deref());
        match call.state.objects.commit(container, blob, written.clone(), new, &unchanged) {
            Err(StoreError::Precondition(_)) => {}
            result => return result.map_err(BlobError::from),
        }
    }
}

/// Returns the condition that a blob is still the same.
fn unchanged(present: Option<&Object>) -> Precondition {
    Precondition {
        generation_match: Some(present.map_or(0, |object| object.generation)),
        metageneration_match: present.map(|object| object.metageneration),
        ..Precondition::default()
    }
}

pub(super) fn delete(call: &BlobCall<'_>) -> BlobResult {
    let objects = &call.state.objects;
    let (container, blob) = (&call.target.container, &call.target.blob);
    let mut answer = empty(StatusCode::ACCEPTED);
    insert(answer.headers_mut(), "x-ms-delete-type-permanent", "true");
    let snapshots = call.header("x-ms-delete-snapshots");
    let which = selector(call)?;
    if which != VersionSelector::Live {
        if snapshots.is_some() {
            return Err(BlobError::of_header(
                "InvalidHeaderValue",
                "x-ms-delete-snapshots",
                snapshots.unwrap_or_default(),
            ));
        }
        // A version can be removed only after the blob itself was deleted, which makes it a previous version.
        if find(call)?.standing.noncurrent_us.is_none() {
            return Err(BlobError::new("OperationNotAllowedOnRootBlob"));
        }
        let successor = VersionSuccessor::Nobody;
        objects.delete_version(container, blob, which, successor, &Precondition::default(), false)?;
        return Ok(answer);
    }
    if let Some(other) = snapshots.filter(|value| !matches!(*value, "include" | "only")) {
        return Err(BlobError::of_header("InvalidHeaderValue", "x-ms-delete-snapshots", other));
    }
    loop {
        let present = present(call)?.ok_or_else(|| missing(call))?;
        BlobConditions::in_headers(&call.head.headers)?.check_write(Some(&present))?;
        let own: Vec<_> = objects
            .noncurrent(container, blob)?
            .into_iter()
            .filter(|version| version.is_snapshot())
            .collect();
        if snapshots != Some("only") {
            call.state.leases.check_write(container, blob, call.lease_id())?;
            if copies::is_pending(&present) {
                return Err(BlobError::new("PendingCopyOperation"));
            }
        }
        if snapshots.is_none() && !own.is_empty() {
            return Err(BlobError::new("SnapshotsPresent"));
        }
        for snapshot in own {
            let which = VersionSelector::Generation(snapshot.generation);
            let successor = VersionSuccessor::Nobody;
            objects.delete_version(container, blob, which, successor, &Precondition::default(), false)?;
        }
        if snapshots == Some("only") {
            return Ok(answer);
        }
        match objects.delete(container, blob, &unchanged(Some(&present))) {
            Err(StoreError::Precondition(_)) => {}
            Ok(_) => {
                call.state.leases.forget(container, blob);
                super::blocks::discard(call);
                let keeps = objects.bucket(container)?;
                let is_kept = keeps.versioning() == Versioning::Enabled || keeps.settings().soft_delete_s > 0;
                if is_kept {
                    insert(answer.headers_mut(), "x-ms-delete-type-permanent", "false");
                }
                return Ok(answer);
            }
            Err(refused) => return Err(refused.into()),
        }
    }
}

/// Undelete Blob. It does nothing to a blob that isn't deleted, as at the service.
pub(super) fn undelete(call: &BlobCall<'_>) -> BlobResult {
    if present(call)?.is_some() {
        return Ok(empty(StatusCode::OK));
    }
    let (objects, container, blob) = (&call.state.objects, &call.target.container, &call.target.blob);
    let deleted = objects.newest_deleted(container, blob)?;
    let (deleted, _) =
        deleted.into_iter().find(|(object, _)| object.key == *blob).ok_or_else(|| missing(call))?;
    objects.restore_deleted(container, blob, deleted.generation, &Precondition::default())?;
    Ok(empty(StatusCode::OK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ranges_from_an_offset_are_known() {
        assert_eq!(parse_range("bytes=2-5"), Some(2..6));
        assert_eq!(parse_range("bytes=2-"), Some(2..u64::MAX));
        for text in ["bytes=-5", "bytes=5-2", "bytes=1-2,4-5", "items=1-2", "bytes=0--1", ""] {
            assert_eq!(parse_range(text), None, "{text}");
        }
    }
}
