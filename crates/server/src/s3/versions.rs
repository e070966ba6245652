//! Versions, in a store that keeps none: each object is its only one, `null`.

use s3s::dto::*;
use s3s::{S3Result, s3_error};

use super::list::Writing;
use super::{Dialect, checksums, list, refusal, timestamp};
use crate::objects::listing::From as Start;

/// The version of what was written without versioning.
pub(super) const NULL: &str = "null";

/// Refuses any version that isn't the only one.
pub(super) fn only(version: Option<&str>) -> S3Result<()> {
    match version {
        None | Some(NULL) => Ok(()),
        Some(_) => Err(s3_error!(NoSuchVersion, "The specified version does not exist.")),
    }
}

/// ListObjectVersions.
pub(super) fn list(dialect: &Dialect, input: ListObjectVersionsInput) -> S3Result<ListObjectVersionsOutput> {
    let key_marker = input.key_marker.clone().unwrap_or_default();
    if key_marker.is_empty() && input.version_id_marker.as_ref().is_some_and(|marker| !marker.is_empty()) {
        return Err(s3_error!(
            InvalidArgument,
            "A version-id marker cannot be specified without a key marker."
        ));
    }
    // There is nothing of a key behind its only version.
    let start = list::behind(&key_marker, input.delimiter.as_deref());
    let query = list::query(input.prefix.as_deref(), input.delimiter.as_deref(), start, input.max_keys)?;
    let max_keys = query.max as i32;
    let mut page = dialect.objects.list(&input.bucket, &query).map_err(refusal)?;
    let write = Writing::of(input.encoding_type.as_ref());
    let next_key = page.next.take().and_then(|next| match next {
        Start::After(key) | Start::AfterPrefix(key) => Some(write.text(&key)),
        Start::Start | Start::At(_) => None,
    });
    let versions = page.objects.iter().map(|object| {
        let checksum = checksums::of(object);
        ObjectVersion {
            checksum_algorithm: Some(vec![ChecksumAlgorithm::from_static(checksums::name(
                checksum.algorithm,
            ))]),
            checksum_type: Some(checksums::kind(checksum.composite)),
            e_tag: Some(ETag::Strong(object.etag.clone())),
            is_latest: Some(true),
            key: Some(write.text(&object.key)),
            last_modified: Some(timestamp(object.updated_us)),
            size: Some(object.size as i64),
            storage_class: Some(ObjectVersionStorageClass::from(object.storage_class().to_owned())),
            version_id: Some(NULL.to_owned()),
            ..Default::default()
        }
    });
    let prefixes = page.prefixes.iter().map(|prefix| CommonPrefix { prefix: Some(write.text(prefix)) });
    Ok(ListObjectVersionsOutput {
        versions: Some(versions.collect()),
        common_prefixes: Some(prefixes.collect()),
        name: Some(input.bucket),
        prefix: Some(write.text(input.prefix.as_deref().unwrap_or_default())),
        delimiter: input.delimiter.map(|delimiter| write.text(&delimiter)),
        encoding_type: input.encoding_type,
        key_marker: Some(write.text(&key_marker)),
        version_id_marker: Some(input.version_id_marker.unwrap_or_default()),
        max_keys: Some(max_keys),
        is_truncated: Some(next_key.is_some()),
        next_version_id_marker: next_key.as_ref().map(|_| NULL.to_owned()),
        next_key_marker: next_key,
        ..Default::default()
    })
}

/// GetBucketVersioning: nothing for a bucket that never had any, else that it is suspended.
pub(super) fn get(dialect: &Dialect, input: GetBucketVersioningInput) -> S3Result<GetBucketVersioningOutput> {
    let bucket = dialect.objects.bucket(&input.bucket).map_err(refusal)?;
    let suspended = bucket.versioning_suspended.load(std::sync::atomic::Ordering::Relaxed);
    let status = suspended.then(|| BucketVersioningStatus::from_static(BucketVersioningStatus::SUSPENDED));
    Ok(GetBucketVersioningOutput { status, ..Default::default() })
}

/// PutBucketVersioning, as far as it asks for no versions.
pub(super) fn put(dialect: &Dialect, input: PutBucketVersioningInput) -> S3Result<PutBucketVersioningOutput> {
    let bucket = dialect.objects.bucket(&input.bucket).map_err(refusal)?;
    let wanted = input.versioning_configuration;
    match wanted.status.as_ref().map(BucketVersioningStatus::as_str) {
        Some(BucketVersioningStatus::SUSPENDED) if wanted.mfa_delete.is_none() => {
            bucket.versioning_suspended.store(true, std::sync::atomic::Ordering::Relaxed);
            Ok(PutBucketVersioningOutput::default())
        }
        Some(BucketVersioningStatus::ENABLED | BucketVersioningStatus::SUSPENDED) => {
            Err(s3_error!(NotImplemented, "This store keeps no versions."))
        }
        _ => Err(s3_error!(
            IllegalVersioningConfigurationException,
            "The Versioning element must be specified"
        )),
    }
}
