//! ListParts and ListMultipartUploads.

use s3s::S3Result;
use s3s::dto::*;

use super::find;
use crate::checksum::base64;
use crate::s3::checksums::{kind, name, set_checksum};
use crate::s3::{Dialect, refusal, timestamp};

pub(in crate::s3) fn list_parts(dialect: &Dialect, input: ListPartsInput) -> S3Result<ListPartsOutput> {
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
        ..Default::default()
    })
}

pub(in crate::s3) fn list_uploads(
    dialect: &Dialect,
    input: ListMultipartUploadsInput,
) -> S3Result<ListMultipartUploadsOutput> {
    dialect.objects.bucket(&input.bucket).map_err(refusal)?;
    let prefix = input.prefix.clone().unwrap_or_default();
    let max = input.max_uploads.unwrap_or(1000).clamp(0, 1000);
    let key_marker = input.key_marker.clone().unwrap_or_default();
    // True past the marker's key, or on that key and past the marker's upload.
    let mut past_upload = input.upload_id_marker.is_none();
    let found: Vec<_> = dialect
        .objects
        .uploads
        .of(&input.bucket)
        .into_iter()
        .filter(|upload| upload.key.starts_with(&prefix))
        .filter(|upload| {
            if upload.key == key_marker && !past_upload {
                past_upload = Some(&upload.id) == input.upload_id_marker.as_ref();
                return false;
            }
            upload.key > key_marker || (upload.key == key_marker && input.upload_id_marker.is_some())
        })
        .collect();
    let shown = &found[..found.len().min(max as usize)];
    let uploads = shown.iter().map(|upload| MultipartUpload {
        checksum_algorithm: upload
            .checksum
            .map(|checksum| ChecksumAlgorithm::from_static(name(checksum.algorithm))),
        checksum_type: upload.checksum.map(|checksum| kind(checksum.composite)),
        initiated: Some(timestamp(upload.initiated_us)),
        key: Some(upload.key.clone()),
        upload_id: Some(upload.id.clone()),
        ..Default::default()
    });
    let truncated = found.len() > shown.len();
    let last = shown.last().filter(|_| truncated);
    Ok(ListMultipartUploadsOutput {
        bucket: Some(input.bucket),
        prefix: input.prefix,
        key_marker: input.key_marker,
        upload_id_marker: input.upload_id_marker,
        max_uploads: Some(max),
        is_truncated: Some(truncated),
        next_key_marker: last.map(|upload| upload.key.clone()),
        next_upload_id_marker: last.map(|upload| upload.id.clone()),
        uploads: Some(uploads.collect()),
        ..Default::default()
    })
}
