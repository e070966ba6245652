//! CopyObject. The copy refers to the source's bytes, so nothing is read.

use std::sync::Arc;

use http::HeaderMap;
use s3s::dto::*;
use s3s::{S3ErrorCode, S3Request, S3Result, s3_error};

use super::checksums::{kind, set_checksum};
use super::object_options::{options_of, source_customer_of, tell_encryption};
use super::{
    S3Dialect, archive, checksums, conditions, encryption, put, refusal, refusals, timestamp, versions,
};
use crate::objects::{Attributes, NewObject, Object, Objects};

pub(super) fn copy(dialect: &S3Dialect, request: S3Request<CopyObjectInput>) -> S3Result<CopyObjectOutput> {
    let S3Request { input, headers, .. } = request;
    let from = source(&headers)?;
    let (bucket, key, version) = named(&from)?;
    let object = of_source(dialect, bucket, key, version)?;
    archive::admit(&object)?;
    encryption::admit(source_customer_of!(input)?.as_ref(), object.attributes.options.encryption.as_ref())?;
    let mut options = options_of!(dialect, input);
    match input.tagging_directive.as_ref().map(TaggingDirective::as_str) {
        Some(TaggingDirective::REPLACE) => {}
        _ if !options.tags.is_empty() => {
            return Err(s3_error!(
                InvalidArgument,
                "Tags are given, but the tagging directive is not REPLACE."
            ));
        }
        _ => options.tags.clone_from(&object.attributes.options.tags),
    }
    conditions::of_source(
        &object,
        input.copy_source_if_match,
        input.copy_source_if_none_match,
        input.copy_source_if_modified_since,
        input.copy_source_if_unmodified_since,
    )?;
    let precondition = match dialect.habits.copy_destination_headers {
        true => conditions::of_destination(dialect, &input.bucket, &input.key, &headers)?,
        false => conditions::of_write(
            dialect.habits.conditions.copy,
            conditions::in_header(&headers, "if-match")?,
            conditions::in_header(&headers, "if-none-match")?,
        )?,
    };
    if precondition.etag_match.is_some() {
        dialect.objects.find(&input.bucket, &input.key).map_err(refusal)?;
    }
    check_size(object.size)?;
    let directive = input.metadata_directive.as_ref().map(MetadataDirective::as_str);
    let replaces = directive == Some(MetadataDirective::REPLACE);
    let is_itself = bucket == input.bucket && key == input.key && version.is_none();
    if !replaces && is_itself && input.storage_class.is_none() {
        return Err(s3_error!(
            InvalidRequest,
            "This copy request is illegal because it is trying to copy an object to itself without changing anything."
        ));
    }
    let mut attributes = if replaces {
        Attributes {
            content_type: input.content_type,
            content_encoding: put::content_encoding(input.content_encoding),
            cache_control: input.cache_control,
            content_disposition: input.content_disposition,
            content_language: input.content_language,
            expires: put::expires(&headers),
            storage_class: None,
            metadata: input.metadata.unwrap_or_default().into_iter().collect(),
            options: options.clone(),
            ..Default::default()
        }
    } else {
        Attributes::clone(&object.attributes)
    };
    // The website redirect isn't copied from the source: it comes from this request.
    attributes.website_redirect = put::redirect(input.website_redirect_location)?;
    attributes.storage_class = input.storage_class.map(|class| class.as_str().to_owned());
    attributes.archive_status = None;
    // Encryption, access control and locks aren't copied: they come from this request.
    attributes.options = options;
    let new = NewObject {
        etag: encryption::etag(dialect, &input.bucket, attributes.options.encryption.as_ref(), object.crc32c),
        attributes,
        checksum: object.checksum.clone(),
        components: object.components,
        ..Default::default()
    };
    let written = Objects::written_from(&object);
    let copied =
        dialect.objects.commit(&input.bucket, &input.key, written, new, &precondition).map_err(refusal)?;
    let mut result = CopyObjectResult {
        e_tag: Some(ETag::Strong(copied.etag.clone())),
        last_modified: Some(timestamp(copied.created_us)),
        ..Default::default()
    };
    if dialect.habits.checksums {
        let stored = checksums::of(&copied);
        result.checksum_type = Some(kind(stored.composite));
        set_checksum!(result, stored.algorithm, stored.value);
    }
    let mut output = CopyObjectOutput {
        copy_object_result: Some(result),
        copy_source_version_id: versions::reported(dialect, bucket, &object),
        version_id: versions::reported(dialect, &input.bucket, &copied),
        ..Default::default()
    };
    tell_encryption!(output, &copied.attributes.options.encryption);
    Ok(output)
}

/// Checks that the source of a single copy call has at most 5 GiB.
fn check_size(size: u64) -> S3Result<()> {
    if size > refusals::PUT_BYTES_MAX {
        return Err(s3_error!(
            InvalidRequest,
            "The specified copy source is larger than the maximum allowable size for a copy source: 5368709120"
        ));
    }
    Ok(())
}

/// Parses `x-amz-copy-source`. S3 decodes a plus sign to a space, and s5cmd sends spaces in this form. s3s keeps the plus
/// sign, so its own parsed value can't be used (<https://github.com/aws/aws-cli/issues/614>).
pub(super) fn source(headers: &HeaderMap) -> S3Result<CopySource> {
    let header = headers.get("x-amz-copy-source").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let parsed = CopySource::parse(&header.replace('+', "%20"));
    parsed.map_err(|error| s3_error!(InvalidArgument, "Invalid copy source object key: {error}"))
}

/// Returns bucket, key and version of a source.
pub(super) fn named(source: &CopySource) -> S3Result<(&str, &str, Option<&str>)> {
    match source {
        CopySource::Bucket { bucket, key, version_id } => Ok((bucket, key, version_id.as_deref())),
        _ => Err(s3_error!(NotImplemented, "copy sources other than buckets")),
    }
}

/// Finds the object to copy.
pub(super) fn of_source(
    dialect: &S3Dialect,
    bucket: &str,
    key: &str,
    version: Option<&str>,
) -> S3Result<Arc<Object>> {
    versions::find(dialect, bucket, key, version).map_err(|error| match *error.code() {
        S3ErrorCode::MethodNotAllowed => s3_error!(
            InvalidRequest,
            "The source of a copy request may not specifically refer to a delete marker by version id."
        ),
        _ => error,
    })
}
