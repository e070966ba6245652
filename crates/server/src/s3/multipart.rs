//! Multipart uploads.

mod complete;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use s3s::dto::*;
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result, s3_error};

use super::checksums::{AnnouncedChecksums, kind, name, named, set_checksum};
use super::object_options::{customer_of, options_of, source_customer_of, tell_encryption};
use super::{S3Dialect, archive, conditions, copy, encryption, put, refusal, refusals, timestamp, versions};
use crate::checksum::{Algorithm, Hasher, base64, hex};
use crate::customer_key::{KeyMatch, fits};
use crate::objects::object::{ObjectEncryption, StoredChecksum};
use crate::objects::uploads::{NamedPart, OpenUpload, UploadChecksum, UploadPart as StoredPart};
use crate::objects::writer::WrittenContent;
use crate::objects::{Attributes, now_us};
use crate::s3::list::{EntryFormat, owner};

pub(super) use complete::complete;

const PARTS_MAX: i32 = 10_000;

pub(super) fn create(
    dialect: &S3Dialect,
    request: S3Request<CreateMultipartUploadInput>,
) -> S3Result<CreateMultipartUploadOutput> {
    let S3Request { input, headers, .. } = request;
    let checksum = match &input.checksum_algorithm {
        Some(_) if !dialect.habits.checksums => None,
        Some(algorithm) => Some(chosen(named(algorithm.as_str())?, input.checksum_type.as_ref())?),
        None => None,
    };
    if let Some(UploadChecksum { algorithm: Algorithm::Crc32 | Algorithm::Crc32c, composite: false }) =
        checksum
        && !dialect.habits.full_object_crc32
    {
        return Err(s3_error!(
            NotImplemented,
            "Header 'x-amz-checksum-type' with value 'FULL_OBJECT' not implemented"
        ));
    }
    let options = options_of!(dialect, input);
    let attributes = Attributes {
        content_type: input.content_type,
        content_encoding: put::content_encoding(input.content_encoding),
        cache_control: input.cache_control,
        content_disposition: input.content_disposition,
        content_language: input.content_language,
        storage_class: input.storage_class.map(|class| class.as_str().to_owned()),
        expires: put::expires(&headers),
        website_redirect: put::redirect(input.website_redirect_location)?,
        metadata: input.metadata.unwrap_or_default().into_iter().collect(),
        options,
        ..Default::default()
    };
    let upload =
        dialect.objects.begin_upload(&input.bucket, &input.key, attributes, checksum).map_err(refusal)?;
    let mut output = CreateMultipartUploadOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(upload.id.clone()),
        checksum_algorithm: checksum.map(|checksum| ChecksumAlgorithm::from_static(name(checksum.algorithm))),
        checksum_type: checksum.map(|checksum| kind(checksum.composite)),
        ..Default::default()
    };
    tell_encryption!(output, &upload.attributes.options.encryption);
    Ok(output)
}

/// Checks that a request has the customer's key with which the upload began.
fn admit(upload: &OpenUpload, sent: Option<&ObjectEncryption>) -> S3Result<()> {
    match fits(sent, upload.attributes.options.encryption.as_ref()) {
        KeyMatch::Opens => Ok(()),
        _ => Err(encryption::other_upload()),
    }
}

pub(super) async fn part(
    dialect: &S3Dialect,
    request: S3Request<UploadPartInput>,
) -> S3Result<UploadPartOutput> {
    let S3Request { input, headers, trailing_headers, extensions, .. } = request;
    let upload = find(dialect, &input.bucket, &input.key, &input.upload_id)?;
    admit(&upload, customer_of!(input)?.as_ref())?;
    let number = part_number(input.part_number)?;
    let announced = dialect.announced(&headers)?;
    if let (Some((algorithm, _)), Some(chosen)) = (&announced.checksum, upload.checksum)
        && *algorithm != chosen.algorithm
    {
        return Err(s3_error!(
            InvalidRequest,
            "Checksum Type mismatch occurred between the upload and its part"
        ));
    }
    let wanted =
        announced.wanted(upload.checksum.map(|checksum| checksum.algorithm), dialect.config.md5_etags);
    let written = put::receive(dialect, input.body, wanted, refusals::len(&headers)).await?;
    announced.check(&written.sums, put::trailers(trailing_headers, &extensions).as_ref())?;
    let mut output = UploadPartOutput::default();
    let algorithm = announced.checksum.map(|(algorithm, _)| algorithm);
    let algorithm =
        algorithm.or(upload.checksum.map(|checksum| checksum.algorithm)).unwrap_or(Algorithm::Crc64Nvme);
    if let Some(sum) = written.sums.of(algorithm).filter(|_| dialect.habits.checksums) {
        set_checksum!(output, algorithm, base64(&sum));
    }
    tell_encryption!(output, &upload.attributes.options.encryption);
    output.e_tag = Some(ETag::Strong(keep(dialect, &upload, number, written)?.etag.clone()));
    Ok(output)
}

pub(super) fn part_copy(
    dialect: &S3Dialect,
    request: S3Request<UploadPartCopyInput>,
) -> S3Result<UploadPartCopyOutput> {
    let S3Request { input, headers, .. } = request;
    let upload = find(dialect, &input.bucket, &input.key, &input.upload_id)?;
    let number = part_number(input.part_number)?;
    let from = copy::source(&headers)?;
    let (bucket, key, version) = copy::named(&from)?;
    let source = copy::of_source(dialect, bucket, key, version)?;
    archive::admit(&source)?;
    admit(&upload, customer_of!(input)?.as_ref())?;
    encryption::admit(source_customer_of!(input)?.as_ref(), source.attributes.options.encryption.as_ref())?;
    conditions::of_source(
        &source,
        input.copy_source_if_match,
        input.copy_source_if_none_match,
        input.copy_source_if_modified_since,
        input.copy_source_if_unmodified_since,
    )?;
    let content = match input.copy_source_range {
        Some(range) => source.content.range(source_range(&range, source.size)?),
        None => source.content.clone(),
    };
    let announced = AnnouncedChecksums { checksum: None, md5: None };
    let wanted =
        announced.wanted(upload.checksum.map(|checksum| checksum.algorithm), dialect.config.md5_etags);
    let mut hasher = Hasher::new(wanted);
    let mut reader = content.clone().reader();
    while let Some(bytes) = reader.next() {
        hasher.update(&bytes.map_err(S3Error::internal_error)?);
    }
    let part = keep(dialect, &upload, number, WrittenContent { content, sums: hasher.finish() })?;
    let mut result = CopyPartResult {
        e_tag: Some(ETag::Strong(part.etag.clone())),
        last_modified: Some(timestamp(part.modified_us)),
        ..Default::default()
    };
    if let Some(checksum) = upload.checksum
        && let Some(sum) = part.written.sums.of(checksum.algorithm)
    {
        set_checksum!(result, checksum.algorithm, base64(&sum));
    }
    let mut output = UploadPartCopyOutput {
        copy_part_result: Some(result),
        copy_source_version_id: versions::reported(dialect, bucket, &source),
        ..Default::default()
    };
    tell_encryption!(output, &upload.attributes.options.encryption);
    Ok(output)
}

pub(super) fn abort(
    dialect: &S3Dialect,
    input: AbortMultipartUploadInput,
) -> S3Result<AbortMultipartUploadOutput> {
    let upload = find(dialect, &input.bucket, &input.key, &input.upload_id)?;
    dialect.objects.uploads.remove(&upload.id);
    Ok(AbortMultipartUploadOutput::default())
}

fn find(dialect: &S3Dialect, bucket: &str, key: &str, id: &str) -> S3Result<Arc<OpenUpload>> {
    dialect.objects.bucket(bucket).map_err(refusal)?;
    dialect.objects.uploads.find(bucket, key, id).ok_or_else(|| {
        s3_error!(
            NoSuchUpload,
            "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or \
             completed."
        )
    })
}

/// Reads the range of a copied part. The range must have both ends, and they must be within the source.
fn source_range(text: &str, size: u64) -> S3Result<std::ops::Range<u64>> {
    match Range::parse(text) {
        Ok(Range::Int { first, last: Some(last) }) if first <= last && last < size => Ok(first..last + 1),
        Ok(Range::Int { last: Some(_), .. }) => Err(S3Error::with_message(
            S3ErrorCode::InvalidArgument,
            format!("Range specified is not valid for source object of size: {size}"),
        )),
        _ => Err(s3_error!(
            InvalidArgument,
            "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the \
             zero-based offsets of the first and last bytes to copy"
        )),
    }
}

fn part_number(number: i32) -> S3Result<u32> {
    if !(1..=PARTS_MAX).contains(&number) {
        return Err(s3_error!(
            InvalidArgument,
            "Part number must be an integer between 1 and 10000, inclusive"
        ));
    }
    Ok(number as u32)
}

/// Returns the algorithm and the type of an upload's checksum. If the client named only the algorithm, its default type
/// is used. An error means that the algorithm doesn't support the type
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html>).
fn chosen(algorithm: Algorithm, kind: Option<&ChecksumType>) -> S3Result<UploadChecksum> {
    let composite = match kind.map(ChecksumType::as_str) {
        Some(ChecksumType::COMPOSITE) => true,
        Some(ChecksumType::FULL_OBJECT) => false,
        Some(_) => {
            return Err(s3_error!(InvalidRequest, "x-amz-checksum-type must be COMPOSITE or FULL_OBJECT"));
        }
        None => algorithm != Algorithm::Crc64Nvme,
    };
    let possible = match algorithm {
        Algorithm::Crc64Nvme => !composite,
        Algorithm::Sha1 | Algorithm::Sha256 => composite,
        Algorithm::Crc32 | Algorithm::Crc32c => true,
    };
    if possible {
        return Ok(UploadChecksum { algorithm, composite });
    }
    Err(s3_error!(InvalidRequest, "This checksum type can't be used with this checksum algorithm."))
}

fn keep(
    dialect: &S3Dialect,
    upload: &OpenUpload,
    number: u32,
    written: WrittenContent,
) -> S3Result<Arc<StoredPart>> {
    let sums = &written.sums;
    let etag = match sums.md5 {
        Some(md5) => hex(&md5),
        None => format!("{:016x}{:08x}", sums.crc64nvme.unwrap_or_default(), sums.crc32c),
    };
    let part = StoredPart { number, etag, written, modified_us: now_us() };
    dialect.objects.uploads.keep(upload, part).map_err(|error| refusal(error.into()))
}

/// The maximum number of uploads that are remembered. At this number, a new upload replaces the oldest.
const REMEMBERED: usize = 1000;

/// The result of a completed upload.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Completion {
    pub(super) upload: String,
    pub(super) bucket: String,
    pub(super) key: String,
    pub(super) parts: Vec<NamedPart>,
    pub(super) etag: String,
    pub(super) version: Option<String>,
    pub(super) checksum: Option<StoredChecksum>,
    pub(super) encryption: Option<ObjectEncryption>,
}

/// The last completed uploads.
///
/// If the answer to a completion is lost, the client sends the request again, and must get the same answer:
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html>
#[derive(Debug, Default)]
pub(super) struct Completions(Mutex<VecDeque<Completion>>);

impl Completions {
    pub(super) fn remember(&self, completion: Completion) {
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() == REMEMBERED {
            remembered.pop_front();
        }
        remembered.push_back(completion);
    }

    /// Returns the result of an upload, if it was completed from the same parts.
    pub(super) fn of(
        &self,
        upload: &str,
        bucket: &str,
        key: &str,
        parts: &[NamedPart],
    ) -> Option<Completion> {
        let remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |known: &&Completion| {
            known.upload == upload && known.bucket == bucket && known.key == key && known.parts == parts
        };
        remembered.iter().rev().find(is_it).cloned()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_a_source_has_both_ends_in_it() {
        assert_eq!(source_range("bytes=2-4", 10).unwrap(), 2..5);
        assert_eq!(source_range("bytes=0-9", 10).unwrap(), 0..10);
        for text in ["bytes=2-10", "bytes=10-11", "bytes=2-", "bytes=-3", "bytes=4-2", "2-4"] {
            let error = source_range(text, 10).unwrap_err();
            assert_eq!(*error.code(), S3ErrorCode::InvalidArgument, "{text}");
        }
    }

    #[test]
    fn an_algorithm_brings_its_usual_type_and_refuses_impossible_ones() {
        let full = ChecksumType::from_static(ChecksumType::FULL_OBJECT);
        let composite = ChecksumType::from_static(ChecksumType::COMPOSITE);
        assert!(!chosen(Algorithm::Crc64Nvme, None).unwrap().composite);
        assert!(chosen(Algorithm::Crc32c, None).unwrap().composite);
        assert!(!chosen(Algorithm::Crc32c, Some(&full)).unwrap().composite);
        for (algorithm, kind) in [(Algorithm::Sha256, &full), (Algorithm::Crc64Nvme, &composite)] {
            let refusal = chosen(algorithm, Some(kind)).map(|_| ()).unwrap_err();
            assert_eq!(*refusal.code(), S3ErrorCode::InvalidRequest);
        }
    }

    #[test]
    fn an_upload_is_known_by_its_parts_and_not_for_ever() {
        let named = |number| vec![NamedPart { number, etag: Some("e".to_owned()) }];
        let completion = |upload: usize| Completion {
            upload: upload.to_string(),
            bucket: "b".to_owned(),
            key: "k".to_owned(),
            parts: named(1),
            etag: "e-1".to_owned(),
            version: None,
            checksum: None,
            encryption: None,
        };
        let completions = Completions::default();
        completions.remember(completion(0));
        assert_eq!(completions.of("0", "b", "k", &named(1)), Some(completion(0)));
        assert_eq!(completions.of("0", "b", "k", &named(2)), None);
        assert_eq!(completions.of("0", "b", "other", &named(1)), None);
        (1..=REMEMBERED).for_each(|upload| completions.remember(completion(upload)));
        assert_eq!(completions.of("0", "b", "k", &named(1)), None);
    }
}
