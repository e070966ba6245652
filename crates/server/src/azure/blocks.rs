//! Put Block, Put Block From URL, Put Block List and Get Block List.
//!
//! The uncommitted blocks of a blob are an upload of the store. Each is a part, whose tag is the block's id.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};

use http::StatusCode;
use ring::digest::{SHA256, digest};

use super::answer::{XmlElement, XmlWriter, empty, insert};
use super::blobs::{self, ALL_CHECKSUMS, BodyChecksums};
use super::conditions::BlobConditions;
use super::error::{BlobError, BlobResult};
use super::{BlobCall, copies, timestamp};
use crate::checksum::{Hasher, concatenated, from_base64, hex};
use crate::objects::blob::CommittedBlock;
use crate::objects::content::Content;
use crate::objects::uploads::{OpenUpload, UploadPart};
use crate::objects::writer::WrittenContent;
use crate::objects::{Attributes, NewObject, Object, StoreError, now_us};

/// The limits of the service.
const BLOCK_BYTES_MAX: u64 = 4000 << 20;
const APPENDED_BYTES_MAX: u64 = 100 << 20;
const COMMITTED_MAX: usize = 50_000;
const UNCOMMITTED_MAX: usize = 100_000;
const ID_BYTES_MAX: usize = 64;

/// Returns the id of the upload with a blob's uncommitted blocks.
fn upload_id(container: &str, blob: &str) -> String {
    let name = format!("{container}/{blob}");
    format!("blocks-{}", hex(digest(&SHA256, name.as_bytes()).as_ref()))
}

/// Returns the uncommitted blocks of the request's blob, if there are any.
fn uncommitted(call: &BlobCall<'_>) -> Option<Arc<OpenUpload>> {
    let (container, blob) = (&call.target.container, &call.target.blob);
    call.state.objects.uploads.find(container, blob, &upload_id(container, blob))
}

/// Returns the blobs of a container that have uncommitted blocks.
pub(super) fn uncommitted_blobs(call: &BlobCall<'_>) -> Vec<Arc<Object>> {
    let uploads = call.state.objects.uploads.of(&call.target.container).into_iter();
    let ours = uploads.filter(|upload| upload.id == upload_id(&upload.bucket, &upload.key));
    ours.map(|upload| Arc::new(Object { updated_us: upload.initiated_us, ..Object::empty(&upload.key, 0) }))
        .collect()
}

/// Discards the uncommitted blocks of the request's blob.
pub(super) fn discard(call: &BlobCall<'_>) {
    let _held = call.state.block_lists.lock().unwrap_or_else(PoisonError::into_inner);
    call.state.objects.uploads.remove(&upload_id(&call.target.container, &call.target.blob));
}

/// Returns the length of a block id before it was encoded.
fn id_bytes(id: &str) -> Option<usize> {
    from_base64(id).map(|bytes| bytes.len())
}

/// Returns the block id in the query.
fn block_id(call: &BlobCall<'_>) -> Result<String, BlobError> {
    let name = "blockid";
    let id = call
        .query
        .value(name)
        .ok_or_else(|| BlobError::new("MissingRequiredQueryParameter").with("QueryParameterName", name))?;
    match from_base64(id) {
        Some(bytes) if (1..=ID_BYTES_MAX).contains(&bytes.len()) => Ok(id.to_owned()),
        _ => Err(BlobError::of_parameter("InvalidQueryParameterValue", name, id)
            .with("Reason", "Not a valid base64 string.")),
    }
}

pub(super) async fn put(call: &mut BlobCall<'_>) -> BlobResult {
    blobs::check_name(call)?;
    let id = block_id(call)?;
    let expected = BodyChecksums::in_headers(call)?;
    if call.header("x-ms-structured-body").is_some() {
        return Err(BlobError::new("NotImplemented").with("Operation", "structured bodies of uploads"));
    }
    check_write(call)?;
    let written = blobs::receive(call, &expected, BLOCK_BYTES_MAX, false).await?;
    if written.content.size() == 0 {
        return Err(BlobError::of_header("InvalidHeaderValue", "Content-Length", "0"));
    }
    add(call, id, written, expected.has_md5())
}

pub(super) fn put_from_url(call: &BlobCall<'_>) -> BlobResult {
    blobs::check_name(call)?;
    let id = block_id(call)?;
    check_write(call)?;
    let source = copies::source(call, false)?;
    let size = source.size;
    let range = match call.header("x-ms-source-range") {
        None => 0..size,
        Some(text) => copies::source_range(text, size)?,
    };
    if range.end - range.start > BLOCK_BYTES_MAX {
        return Err(BlobError::new("RequestBodyTooLarge").with("MaxLimit", BLOCK_BYTES_MAX.to_string()));
    }
    let content = source.content.range(range);
    let written = written(content)?;
    copies::check_source_sums(call, &written.sums)?;
    let with_md5 = call.header("x-ms-source-content-md5").is_some();
    add(call, id, written, with_md5)
}

/// Computes the checksums of content that is already in the store.
fn written(content: Content) -> Result<WrittenContent, BlobError> {
    let sums = blobs::sums_of(&content).map_err(|error| BlobError::io(&error))?;
    Ok(WrittenContent { content, sums })
}

/// Append Block: adds bytes to the end of an append blob.
pub(super) async fn append(call: &mut BlobCall<'_>) -> BlobResult {
    let expected = BodyChecksums::in_headers(call)?;
    let added = blobs::receive(call, &expected, APPENDED_BYTES_MAX, false).await?;
    let number = |name: &str| match call.header(name) {
        None => Ok(None),
        Some(text) => match text.parse::<u64>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(BlobError::of_header("InvalidHeaderValue", name, text)),
        },
    };
    let at = number("x-ms-blob-condition-appendpos")?;
    let size_max = number("x-ms-blob-condition-maxsize")?;
    let call = &*call;
    // Appends to one blob must not lose each other.
    let _held = call.state.block_lists.lock().unwrap_or_else(PoisonError::into_inner);
    let present = blobs::present(call)?.ok_or_else(|| BlobError::new("BlobNotFound"))?;
    let mut properties = present.blob().clone();
    if properties.kind() != "AppendBlob" {
        return Err(BlobError::new("InvalidBlobType"));
    }
    if at.is_some_and(|at| at != present.size) {
        return Err(BlobError::new("AppendPositionConditionNotMet"));
    }
    let size = present.size + added.sums.size;
    if size_max.is_some_and(|most| size > most) {
        return Err(BlobError::new("MaxBlobSizeConditionNotMet"));
    }
    if properties.blocks.len() >= COMMITTED_MAX {
        return Err(BlobError::new("BlockCountExceedsLimit"));
    }
    properties.blocks.push(CommittedBlock { id: String::new(), size: added.sums.size });
    let mut content = present.content.clone();
    content.extents.extend(added.content.extents);
    let whole = WrittenContent { content, sums: concatenated(&present.sums(), &added.sums) };
    let stored = blobs::store(call, &whole, |_| NewObject {
        attributes: Attributes::clone(&present.attributes),
        blob: Some(Box::new(properties.clone())),
        ..NewObject::default()
    })?;
    let mut answer = blobs::created(&stored);
    let headers = answer.headers_mut();
    insert(headers, "x-ms-blob-append-offset", &present.size.to_string());
    insert(headers, "x-ms-blob-committed-block-count", &properties.blocks.len().to_string());
    blobs::describe_sums(headers, &added.sums, expected.has_md5());
    Ok(answer)
}

fn check_write(call: &BlobCall<'_>) -> Result<(), BlobError> {
    call.state.objects.bucket_to_write(&call.target.container)?;
    call.state.leases.check_write(&call.target.container, &call.target.blob, call.lease_id())
}

/// Adds a block to the uncommitted blocks of a blob.
fn add(call: &BlobCall<'_>, id: String, written: WrittenContent, with_md5: bool) -> BlobResult {
    let sums = written.sums.clone();
    let _held = call.state.block_lists.lock().unwrap_or_else(PoisonError::into_inner);
    let upload = match uncommitted(call) {
        Some(upload) => upload,
        None => begin(call)?,
    };
    let (first_len, own, next, count) = {
        let parts = upload.parts();
        let first = parts.values().next().map(|part| id_bytes(&part.etag));
        let own = parts.values().find(|part| part.etag == id).map(|part| part.number);
        (first, own, parts.keys().next_back().map_or(1, |last| last + 1), parts.len())
    };
    // All ids of a blob have the same length.
    if first_len.is_some_and(|len| len != id_bytes(&id)) {
        return Err(BlobError::new("InvalidBlobOrBlock"));
    }
    if own.is_none() && count >= UNCOMMITTED_MAX {
        return Err(BlobError::new("BlockCountExceedsLimit"));
    }
    let part = UploadPart { number: own.unwrap_or(next), etag: id, written, modified_us: now_us() };
    call.state.objects.uploads.keep(&upload, part).map_err(|error| BlobError::io(&error))?;
    let mut answer = empty(StatusCode::CREATED);
    let headers = answer.headers_mut();
    insert(headers, "x-ms-request-server-encrypted", "true");
    blobs::describe_sums(headers, &sums, with_md5);
    if with_md5 {
        headers.remove("x-ms-content-crc64");
    }
    Ok(answer)
}

fn begin(call: &BlobCall<'_>) -> Result<Arc<OpenUpload>, BlobError> {
    let (container, blob) = (&call.target.container, &call.target.blob);
    let upload = OpenUpload {
        id: upload_id(container, blob),
        bucket: container.clone(),
        key: blob.clone(),
        attributes: Attributes::default(),
        checksum: None,
        initiated_us: now_us(),
        parts: Default::default(),
    };
    let upload = call.state.objects.uploads.insert(upload).map_err(StoreError::from)?;
    upload.ok_or(StoreError::TooManyUploads).map_err(BlobError::from)
}

/// A block in the list that a client commits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListedBlock {
    id: String,
    may_be_committed: bool,
    may_be_uncommitted: bool,
}

fn parse(bytes: &[u8]) -> Result<Vec<ListedBlock>, BlobError> {
    let document = XmlElement::parse(bytes, "BlockList")?;
    let blocks = document.children.into_iter().map(|child| {
        let (may_be_committed, may_be_uncommitted) = match child.name.as_str() {
            "Committed" => (true, false),
            "Uncommitted" => (false, true),
            "Latest" => (true, true),
            _ => return Err(BlobError::new("InvalidXmlDocument")),
        };
        Ok(ListedBlock { id: child.text.trim().to_owned(), may_be_committed, may_be_uncommitted })
    });
    let blocks: Vec<_> = blocks.collect::<Result<_, _>>()?;
    if blocks.len() > COMMITTED_MAX { Err(BlobError::new("BlockListTooLong")) } else { Ok(blocks) }
}

pub(super) async fn put_list(call: &mut BlobCall<'_>) -> BlobResult {
    blobs::check_name(call)?;
    // In this request, the standard headers describe the document and not the blob.
    let (mut attributes, mut properties) = blobs::attributes(call)?;
    let (of_blob, _) = blobs::content_headers(call, false)?;
    attributes.content_type = of_blob.content_type;
    attributes.content_encoding = of_blob.content_encoding;
    attributes.content_language = of_blob.content_language;
    attributes.cache_control = of_blob.cache_control;
    // The MD5 of the blob isn't computed, so without the header it has none.
    properties.content_md5.get_or_insert_default();
    let bytes = call.document().await?;
    let listed = parse(&bytes)?;
    let call = &*call;
    let _held = call.state.block_lists.lock().unwrap_or_else(PoisonError::into_inner);
    let upload = uncommitted(call);
    let new: HashMap<String, Arc<UploadPart>> = upload
        .iter()
        .flat_map(|upload| {
            upload.parts().values().map(|part| (part.etag.clone(), part.clone())).collect::<Vec<_>>()
        })
        .collect();
    let present = blobs::present(call)?;
    let old = committed(present.as_deref());
    let mut content = Content::default();
    let mut sums = None;
    let mut blocks = Vec::with_capacity(listed.len());
    for block in listed {
        let uncommitted =
            new.get(&block.id).filter(|_| block.may_be_uncommitted).map(|part| part.written.clone());
        let found = match (uncommitted, old.get(block.id.as_str()).filter(|_| block.may_be_committed)) {
            (Some(found), _) => found,
            (None, Some(found)) => written(found.clone())?,
            (None, None) => return Err(BlobError::new("InvalidBlockList")),
        };
        blocks.push(CommittedBlock { id: block.id, size: found.content.size() });
        content.extents.extend(found.content.extents);
        sums = Some(match sums {
            None => found.sums,
            Some(before) => concatenated(&before, &found.sums),
        });
    }
    let mut sums = sums.unwrap_or_else(|| Hasher::new(ALL_CHECKSUMS).finish());
    sums.md5 = None;
    properties.blocks = blocks;
    let whole = WrittenContent { content, sums };
    let stored = blobs::store(call, &whole, |_| NewObject {
        attributes: attributes.clone(),
        blob: Some(Box::new(properties.clone())),
        ..NewObject::default()
    })?;
    if let Some(upload) = upload {
        call.state.objects.uploads.remove(&upload.id);
    }
    let mut answer = blobs::created(&stored);
    let mut hasher = Hasher::new(ALL_CHECKSUMS);
    hasher.update(&bytes);
    blobs::describe_sums(answer.headers_mut(), &hasher.finish(), call.header("content-md5").is_some());
    Ok(answer)
}

/// Returns the content of each committed block of a blob.
fn committed(object: Option<&Object>) -> BTreeMap<&str, Content> {
    let mut blocks = BTreeMap::new();
    let mut start = 0;
    for block in
        object.iter().flat_map(|object| object.blob().blocks.iter().map(move |block| (object, block)))
    {
        let (object, block) = block;
        blocks.insert(block.id.as_str(), object.content.range(start..start + block.size));
        start += block.size;
    }
    blocks
}

pub(super) fn list(call: &BlobCall<'_>) -> BlobResult {
    let kind = call.query.value("blocklisttype").unwrap_or("committed").to_ascii_lowercase();
    if !matches!(kind.as_str(), "committed" | "uncommitted" | "all") {
        return Err(BlobError::of_parameter("InvalidQueryParameterValue", "blocklisttype", &kind));
    }
    call.state.objects.bucket(&call.target.container)?;
    let which = blobs::selector(call)?;
    let found = call.state.objects.find_version(&call.target.container, &call.target.blob, which);
    let object = match found {
        Ok(object) => Some(object),
        Err(StoreError::NoObject | StoreError::DeleteMarker(_)) => None,
        Err(refused) => return Err(refused.into()),
    };
    let upload = uncommitted(call);
    if object.is_none() && upload.is_none() {
        return Err(BlobError::new("BlobNotFound"));
    }
    call.state.leases.check_read(&call.target.container, &call.target.blob, call.lease_id())?;
    if let Some(object) = &object {
        BlobConditions::in_headers(&call.head.headers)?.check_read(object)?;
    }
    let mut document = XmlWriter::new();
    document.begin("BlockList");
    if kind != "uncommitted" {
        document.begin("CommittedBlocks");
        for block in object.iter().flat_map(|object| &object.blob().blocks) {
            write(&mut document, &block.id, block.size);
        }
        document.end();
    }
    if kind != "committed" {
        document.begin("UncommittedBlocks");
        let mut parts: Vec<_> =
            upload.iter().flat_map(|upload| upload.parts().values().cloned().collect::<Vec<_>>()).collect();
        // The service sorts uncommitted blocks by their ids.
        parts.sort_by(|a, b| a.etag.cmp(&b.etag));
        for part in &parts {
            write(&mut document, &part.etag, part.written.content.size());
        }
        document.end();
    }
    let mut answer = document.answer();
    let headers = answer.headers_mut();
    if let Some(object) = object {
        insert(headers, "etag", &super::conditions::etag(&object));
        insert(headers, "last-modified", &timestamp::http(object.updated_us));
        insert(headers, "x-ms-blob-content-length", &object.size.to_string());
    } else {
        insert(headers, "x-ms-blob-content-length", "0");
    }
    Ok(answer)
}

fn write(document: &mut XmlWriter, id: &str, size: u64) {
    document.begin("Block");
    document.element("Name", id);
    document.element("Size", &size.to_string());
    document.end();
}
