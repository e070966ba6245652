//! GetObject, HeadObject and GetObjectAttributes.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use http::{Response, StatusCode};
use s3s::dto::*;
use s3s::{S3Error, S3ErrorCode, S3Response, S3Result, s3_error};

use super::buckets::is_directory;
use super::checksums::{kind, set_checksum};
use super::object_options::{customer_of, tell_encryption, tell_lock};
use super::{
    S3Dialect, ambiguous, archive, buckets, checksums, conditions, encryption, refusal_to_read, timestamp,
    versions,
};
use crate::body::{ObjectStream, ResponseBody};
use crate::fault::answer::RangeFault;
use crate::objects::object::ObjectEncryption;
use crate::objects::{Object, StoreError};

pub(super) fn get(dialect: &S3Dialect, input: GetObjectInput) -> S3Result<S3Response<GetObjectOutput>> {
    let etags = conditions::etags(input.if_match, input.if_none_match);
    let object = find(dialect, &input.bucket, &input.key, input.version_id.as_deref(), &etags)?;
    conditions::dates(&object, &etags, input.if_modified_since, input.if_unmodified_since)
        .map_err(|error| with_state(error, &object))?;
    archive::admit(&object)?;
    let options = &object.attributes.options;
    encryption::admit(customer_of!(input)?.as_ref(), options.encryption.as_ref())?;
    admit_decryption(dialect, &object)?;
    let range = match input.part_number.filter(|_| dialect.habits.part_numbers) {
        Some(number) => part(&object, number)?,
        None => within(input.range, object.size)?,
    };
    let attributes = &object.attributes;
    let mut output = GetObjectOutput {
        accept_ranges: Some("bytes".to_owned()),
        cache_control: attributes.cache_control.clone(),
        content_disposition: attributes.content_disposition.clone(),
        content_encoding: attributes.content_encoding.clone(),
        content_language: attributes.content_language.clone(),
        content_length: Some(range.as_ref().map_or(object.size, |range| range.end - range.start) as i64),
        content_type: Some(content_type(&object)),
        e_tag: Some(ETag::Strong(object.etag.clone())),
        last_modified: Some(timestamp(object.created_us)),
        metadata: metadata(&object),
        parts_count: input
            .part_number
            .filter(|_| dialect.habits.part_numbers)
            .and(object.parts.map(|parts| parts as i32)),
        restore: archive::header(&object),
        storage_class: storage_class(&input.bucket, &object),
        tag_count: Some(options.tags.len() as i32).filter(|count| *count > 0),
        version_id: versions::reported(dialect, &input.bucket, &object),
        website_redirect_location: attributes.website_redirect.clone(),
        ..Default::default()
    };
    tell_encryption!(output, &options.encryption);
    tell_lock!(output, options);
    // The checksums are those of the whole object, so S3 leaves them out of answers to a range.
    if range.is_none() && dialect.tells_checksums() && enabled(input.checksum_mode.as_ref()) {
        let stored = checksums::of(&object);
        output.checksum_type = Some(kind(stored.composite));
        set_checksum!(output, stored.algorithm, stored.value);
    }
    let content = match range {
        Some(range) => {
            output.content_range = Some(format!("bytes {}-{}/{}", range.start, range.end - 1, object.size));
            object.content.range(range)
        }
        None => object.content.clone(),
    };
    output.body = Some(StreamingBlob::new(ObjectStream(content.reader())));
    Ok(ambiguous::about(with_expiry(S3Response::new(output), &object), &object))
}

pub(super) fn head(dialect: &S3Dialect, input: HeadObjectInput) -> S3Result<S3Response<HeadObjectOutput>> {
    let etags = conditions::etags(input.if_match, input.if_none_match);
    let object = find(dialect, &input.bucket, &input.key, input.version_id.as_deref(), &etags)?;
    conditions::dates(&object, &etags, input.if_modified_since, input.if_unmodified_since)
        .map_err(|error| with_state(error, &object))?;
    let options = &object.attributes.options;
    encryption::admit(customer_of!(input)?.as_ref(), options.encryption.as_ref())?;
    // If KMS encrypts an object, its checksum is encrypted too. So the caller needs permission to use the key.
    if enabled(input.checksum_mode.as_ref()) {
        admit_decryption(dialect, &object)?;
    }
    let range = match input.part_number.filter(|_| dialect.habits.part_numbers) {
        Some(number) => part(&object, number)?,
        None => within(input.range, object.size)?,
    };
    let attributes = &object.attributes;
    let mut output = HeadObjectOutput {
        accept_ranges: Some("bytes".to_owned()),
        archive_status: archive::tier(&object),
        cache_control: attributes.cache_control.clone(),
        content_disposition: attributes.content_disposition.clone(),
        content_encoding: attributes.content_encoding.clone(),
        content_language: attributes.content_language.clone(),
        content_length: Some(range.as_ref().map_or(object.size, |range| range.end - range.start) as i64),
        content_type: Some(content_type(&object)),
        e_tag: Some(ETag::Strong(object.etag.clone())),
        last_modified: Some(timestamp(object.created_us)),
        metadata: metadata(&object),
        parts_count: input
            .part_number
            .filter(|_| dialect.habits.part_numbers)
            .and(object.parts.map(|parts| parts as i32)),
        restore: archive::header(&object),
        storage_class: storage_class(&input.bucket, &object),
        version_id: versions::reported(dialect, &input.bucket, &object),
        website_redirect_location: attributes.website_redirect.clone(),
        ..Default::default()
    };
    tell_encryption!(output, &options.encryption);
    tell_lock!(output, options);
    if range.is_none() && dialect.tells_checksums() && enabled(input.checksum_mode.as_ref()) {
        let stored = checksums::of(&object);
        output.checksum_type = Some(kind(stored.composite));
        set_checksum!(output, stored.algorithm, stored.value);
    }
    let mut answer = match range {
        Some(range) => {
            output.content_range = Some(format!("bytes {}-{}/{}", range.start, range.end - 1, object.size));
            S3Response::with_status(output, StatusCode::PARTIAL_CONTENT)
        }
        None => S3Response::new(output),
    };
    // `s3s` has no field for this header.
    if !options.tags.is_empty() {
        answer.headers.insert("x-amz-tagging-count", options.tags.len().into());
    }
    Ok(ambiguous::about(with_expiry(answer, &object), &object))
}

/// Adds the `Expires` header that the object's writer sent.
fn with_expiry<T>(mut answer: S3Response<T>, object: &Object) -> S3Response<T> {
    if let Some(Ok(expires)) = object.attributes.expires.as_deref().map(http::HeaderValue::try_from) {
        answer.headers.insert(http::header::EXPIRES, expires);
    }
    answer
}

/// Returns an error if KMS encrypts the object and the caller isn't allowed to use the key.
fn admit_decryption(dialect: &S3Dialect, object: &Object) -> S3Result<()> {
    let is_kms = matches!(&object.attributes.options.encryption, Some(ObjectEncryption::Managed { algorithm, .. }) if algorithm.starts_with("aws:kms"));
    match is_kms && !dialect.habits.may_decrypt {
        true => Err(s3_error!(AccessDenied, "Access Denied")),
        false => Ok(()),
    }
}

fn find(
    dialect: &S3Dialect,
    bucket: &str,
    key: &str,
    version: Option<&str>,
    etags: &crate::objects::precondition::Precondition,
) -> S3Result<Arc<Object>> {
    let object = versions::find(dialect, bucket, key, version)?;
    etags
        .check(Some(&object))
        .map_err(|failed| with_state(refusal_to_read(StoreError::Precondition(failed)), &object))?;
    Ok(object)
}

/// Adds `ETag` and `Last-Modified` to a 304, as RFC 9110 (15.4.5) demands.
fn with_state(mut error: S3Error, object: &Object) -> S3Error {
    if *error.code() == S3ErrorCode::NotModified {
        let modified = UNIX_EPOCH + Duration::from_micros(object.created_us);
        let lines = [
            (http::header::ETAG, format!("\"{}\"", object.etag)),
            (http::header::LAST_MODIFIED, httpdate::fmt_http_date(modified)),
        ];
        let lines = lines.into_iter().filter_map(|(name, value)| Some((name, value.try_into().ok()?)));
        error.set_headers(lines.collect());
    }
    error
}

/// Returns the range of a part of the object. An object that was written in one request counts as a single part. The
/// result is `None` for an empty part.
fn part(object: &Object, number: i32) -> S3Result<Option<std::ops::Range<u64>>> {
    let whole = [object.size];
    let sizes = if object.part_sizes.is_empty() { &whole[..] } else { &object.part_sizes };
    let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    match index.and_then(|index| Some((index, sizes.get(index)?))) {
        Some((index, size)) => {
            let start: u64 = sizes[..index].iter().sum();
            Ok((*size > 0).then_some(start..start + size))
        }
        None => Err(s3_error!(InvalidRange, "The requested partnumber is not satisfiable")),
    }
}

/// Applies a fault to the requested range.
pub(super) fn befallen(range: Option<Range>, fault: RangeFault) -> Option<Range> {
    match (fault, range?) {
        (RangeFault::Ignored, _) => None,
        (RangeFault::Shifted, Range::Int { first, last }) => {
            Some(Range::Int { first: first + 1, last: last.map(|last| last.saturating_add(1)) })
        }
        (RangeFault::Shifted, Range::Suffix { length }) => {
            Some(Range::Suffix { length: length.saturating_sub(1).max(1) })
        }
    }
}

/// Returns the requested range as byte positions in the object, or an error if the object has none of these bytes.
pub(super) fn within(range: Option<Range>, size: u64) -> S3Result<Option<std::ops::Range<u64>>> {
    let range = match range {
        None => return Ok(None),
        Some(Range::Int { first, last }) => first..last.map_or(size, |last| last.saturating_add(1).min(size)),
        // If the last bytes of an empty object are requested, S3 answers 200 with an empty body.
        Some(Range::Suffix { length }) if length > 0 && size == 0 => return Ok(None),
        Some(Range::Suffix { length }) => size.saturating_sub(length)..size,
    };
    if range.start < range.end {
        return Ok(Some(range));
    }
    let mut error =
        S3Error::with_message(S3ErrorCode::InvalidRange, "The requested range is not satisfiable");
    if let Ok(value) = http::HeaderValue::try_from(format!("bytes */{size}")) {
        error.set_headers([(http::header::CONTENT_RANGE, value)].into_iter().collect());
    }
    Err(error)
}

fn enabled(mode: Option<&ChecksumMode>) -> bool {
    mode.is_some_and(|mode| mode.as_str().eq_ignore_ascii_case(ChecksumMode::ENABLED))
}

fn content_type(object: &Object) -> String {
    object.attributes.content_type.clone().unwrap_or_else(|| "binary/octet-stream".to_owned())
}

fn metadata(object: &Object) -> Option<Metadata> {
    let metadata = &object.attributes.metadata;
    (!metadata.is_empty())
        .then(|| metadata.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Returns the storage class, which S3 leaves out if it is STANDARD.
fn storage_class(bucket: &str, object: &Object) -> Option<StorageClass> {
    if is_directory(bucket) {
        return Some(StorageClass::from_static(buckets::DIRECTORY_STORAGE_CLASS));
    }
    let class = object.attributes.storage_class.clone().filter(|class| class != StorageClass::STANDARD);
    class.map(StorageClass::from)
}

/// The maximum number of parts on a page.
const PARTS_MAX: i32 = 1000;

pub(super) fn attributes(
    dialect: &S3Dialect,
    input: GetObjectAttributesInput,
) -> S3Result<GetObjectAttributesOutput> {
    if !dialect.habits.object_attributes {
        return Err(s3_error!(NotImplemented));
    }
    let object = versions::find(dialect, &input.bucket, &input.key, input.version_id.as_deref())?;
    encryption::admit(customer_of!(input)?.as_ref(), object.attributes.options.encryption.as_ref())?;
    let mut output = GetObjectAttributesOutput {
        last_modified: Some(timestamp(object.created_us)),
        version_id: versions::reported(dialect, &input.bucket, &object),
        ..Default::default()
    };
    // Clients write all names into one header, separated by commas, and `s3s` doesn't split it.
    let names = input.object_attributes.iter().flat_map(|names| names.as_str().split(',')).map(str::trim);
    for name in names {
        match name {
            ObjectAttributes::ETAG => output.e_tag = Some(ETag::Strong(object.etag.clone())),
            ObjectAttributes::OBJECT_SIZE => output.object_size = Some(object.size as i64),
            ObjectAttributes::STORAGE_CLASS => {
                output.storage_class = Some(StorageClass::from(object.storage_class().to_owned()));
            }
            ObjectAttributes::CHECKSUM if dialect.tells_checksums() => {
                let stored = checksums::of(&object);
                let mut checksum =
                    Checksum { checksum_type: Some(kind(stored.composite)), ..Default::default() };
                // In this answer, ObjectParts contains the number of parts, so a composite checksum has no suffix `-N`.
                let value = stored.value.split('-').next().unwrap_or_default().to_owned();
                set_checksum!(checksum, stored.algorithm, value);
                output.checksum = Some(checksum);
            }
            ObjectAttributes::CHECKSUM => {}
            ObjectAttributes::OBJECT_PARTS => {
                let page = (input.part_number_marker, input.max_parts);
                output.object_parts = object.parts.map(|count| attribute_parts(&object, count as i32, page));
            }
            _ => return Err(s3_error!(InvalidArgument, "Invalid attribute name specified.")),
        }
    }
    Ok(output)
}

/// Returns the answer with its ETag without quotes, as S3 writes it in this document.
pub(super) async fn unquoted(answer: Response<ResponseBody>) -> Response<ResponseBody> {
    if !answer.status().is_success() {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    let bytes = body.collect().await.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).replace("<ETag>\"", "<ETag>").replace("\"</ETag>", "</ETag>");
    head.headers.insert(http::header::CONTENT_LENGTH, text.len().into());
    Response::from_parts(head, ResponseBody::whole(text))
}

/// Returns the parts after a marker. If the parts were uploaded without checksums, the answer contains only their
/// number. [S3](https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectAttributesParts.html)
fn attribute_parts(
    object: &Object,
    count: i32,
    (marker, max): (Option<i32>, Option<i32>),
) -> GetObjectAttributesParts {
    let mut listed =
        GetObjectAttributesParts { total_parts_count: Some(count), ..GetObjectAttributesParts::default() };
    let Some(stored) = object.checksum.as_ref().filter(|_| !object.part_sums.is_empty()) else {
        return listed;
    };
    let (after, max) = (marker.unwrap_or(0).max(0), max.unwrap_or(PARTS_MAX).clamp(0, PARTS_MAX));
    let all = object.part_sizes.iter().zip(&object.part_sums).enumerate();
    let page: Vec<ObjectPart> = all
        .skip(after as usize)
        .take(max as usize)
        .map(|(index, (size, sum))| {
            let mut part = ObjectPart {
                part_number: Some(index as i32 + 1),
                size: Some(*size as i64),
                ..ObjectPart::default()
            };
            set_checksum!(part, stored.algorithm, sum.clone());
            part
        })
        .collect();
    let last = page.last().and_then(|part| part.part_number).unwrap_or(after);
    listed.is_truncated = Some((last as usize) < object.part_sizes.len());
    listed.next_part_number_marker = Some(last);
    listed.part_number_marker = Some(after);
    listed.max_parts = Some(max);
    listed.parts = Some(page);
    listed
}
