//! ListParts and ListMultipartUploads.

use std::sync::Arc;

use s3s::S3Result;
use s3s::dto::*;

use super::find;
use crate::checksum::base64;
use crate::objects::uploads::OpenUpload;
use crate::s3::checksums::{kind, name, set_checksum};
use crate::s3::list::{EntryFormat, owner};
use crate::s3::{S3Dialect, refusal, timestamp};

pub(in crate::s3) fn list_parts(dialect: &S3Dialect, input: ListPartsInput) -> S3Result<ListPartsOutput> {
    let upload = find(dialect, &input.bucket, &input.key, &input.upload_id)?;
    let after = input.part_number_marker.unwrap_or(0);
    let max = input.max_parts.unwrap_or(1000).clamp(0, 1000);
    let found: Vec<_> =
        upload.parts().values().filter(|part| i64::from(part.number) > i64::from(after)).cloned().collect();
    let shown = &found[..found.len().min(max as usize)];
    let parts = shown.iter().map(|part| {
        let mut shown = Part {
            e_tag: Some(ETag::Strong(part.etag.clone())),
            last_modified: Some(timestamp(part.modified_us)),
            part_number: Some(part.number as i32),
            size: Some(part.written.sums.size as i64),
            ..Default::default()
        };
        if let Some(checksum) = upload.checksum
            && let Some(sum) = part.written.sums.of(checksum.algorithm)
        {
            set_checksum!(shown, checksum.algorithm, base64(&sum));
        }
        shown
    });
    Ok(ListPartsOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(input.upload_id),
        checksum_algorithm: upload
            .checksum
            .map(|checksum| ChecksumAlgorithm::from_static(name(checksum.algorithm))),
        checksum_type: upload.checksum.map(|checksum| kind(checksum.composite)),
        part_number_marker: Some(after),
        max_parts: Some(max),
        is_truncated: Some(found.len() > shown.len()),
        next_part_number_marker: shown.last().map(|part| part.number as i32),
        parts: Some(parts.collect()),
        initiator: Some(initiator()),
        owner: Some(owner()),
        storage_class: Some(StorageClass::from(class(&upload))),
        ..Default::default()
    })
}

/// An entry of a listing of uploads.
enum ListedUpload {
    Whole(Arc<OpenUpload>),
    Prefix(String),
}

pub(in crate::s3) fn list_uploads(
    dialect: &S3Dialect,
    input: ListMultipartUploadsInput,
) -> S3Result<ListMultipartUploadsOutput> {
    dialect.objects.bucket(&input.bucket).map_err(refusal)?;
    let max = input.max_uploads.unwrap_or(1000).clamp(0, 1000);
    let entries = entries(dialect, &input);
    let shown = &entries[..entries.len().min(max as usize)];
    let write = EntryFormat::of(input.encoding_type.as_ref());
    let mut uploads = Vec::new();
    let mut prefixes = Vec::new();
    for entry in shown {
        match entry {
            ListedUpload::Whole(upload) => uploads.push(MultipartUpload {
                checksum_algorithm: upload
                    .checksum
                    .map(|checksum| ChecksumAlgorithm::from_static(name(checksum.algorithm))),
                checksum_type: upload.checksum.map(|checksum| kind(checksum.composite)),
                initiated: Some(timestamp(upload.initiated_us)),
                initiator: Some(initiator()),
                key: Some(write.text(&upload.key)),
                owner: Some(owner()),
                storage_class: Some(StorageClass::from(class(upload))),
                upload_id: Some(upload.id.clone()),
            }),
            ListedUpload::Prefix(prefix) => prefixes.push(CommonPrefix { prefix: Some(write.text(prefix)) }),
        }
    }
    let truncated = max > 0 && entries.len() > shown.len();
    let last = shown.last().filter(|_| truncated);
    Ok(ListMultipartUploadsOutput {
        bucket: Some(input.bucket),
        common_prefixes: Some(prefixes),
        delimiter: write.delimiter(input.delimiter),
        prefix: Some(write.text(&input.prefix.unwrap_or_default())),
        key_marker: Some(write.text(&input.key_marker.unwrap_or_default())),
        upload_id_marker: Some(input.upload_id_marker.unwrap_or_default()),
        max_uploads: Some(max),
        is_truncated: Some(truncated),
        next_key_marker: last.map(|entry| match entry {
            ListedUpload::Whole(upload) => write.text(&upload.key),
            ListedUpload::Prefix(prefix) => write.text(prefix),
        }),
        next_upload_id_marker: last.and_then(|entry| match entry {
            ListedUpload::Whole(upload) => Some(upload.id.clone()),
            ListedUpload::Prefix(_) => None,
        }),
        encoding_type: input.encoding_type,
        uploads: Some(uploads),
        ..Default::default()
    })
}

/// Returns the entries after the markers: uploads, and the common prefixes of the uploads whose keys contain the
/// delimiter.
fn entries(dialect: &S3Dialect, input: &ListMultipartUploadsInput) -> Vec<ListedUpload> {
    let prefix = input.prefix.as_deref().unwrap_or_default();
    let delimiter = input.delimiter.as_deref().unwrap_or_default();
    let key_marker = input.key_marker.as_deref().unwrap_or_default();
    // S3 ignores `upload-id-marker` if there is no `key-marker`.
    let id_marker = input.upload_id_marker.as_ref().filter(|_| !key_marker.is_empty());
    // True once the loop has passed the upload that `upload-id-marker` names. This matters only for uploads whose key is
    // `key-marker`. It is true from the start if the request has no `upload-id-marker`.
    let mut past_upload = id_marker.is_none();
    let mut entries = Vec::new();
    for upload in dialect.objects.uploads.of(&input.bucket) {
        if upload.key == key_marker && !past_upload {
            past_upload = Some(&upload.id) == id_marker;
            continue;
        }
        if upload.key.as_str() < key_marker || (upload.key == key_marker && id_marker.is_none()) {
            continue;
        }
        let Some(rest) = upload.key.strip_prefix(prefix) else { continue };
        let folded = rest.find(delimiter).filter(|_| !delimiter.is_empty());
        match folded.map(|at| &upload.key[..prefix.len() + at + delimiter.len()]) {
            None => entries.push(ListedUpload::Whole(upload)),
            Some(folder) if folder == key_marker => {}
            Some(folder) if matches!(entries.last(), Some(ListedUpload::Prefix(last)) if last == folder) => {}
            Some(folder) => entries.push(ListedUpload::Prefix(folder.to_owned())),
        }
    }
    entries
}

fn class(upload: &OpenUpload) -> String {
    upload.attributes.storage_class.clone().unwrap_or_else(|| "STANDARD".to_owned())
}

fn initiator() -> Initiator {
    let Owner { display_name, id } = owner();
    Initiator { display_name, id }
}
