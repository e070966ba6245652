//! CompleteMultipartUpload.

use std::sync::Arc;

use s3s::dto::*;
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result, s3_error};

use super::{admit, find};
use crate::checksum::{Algorithm, base64, of_bytes};
use crate::objects::object::{ObjectEncryption, StoredChecksum};
use crate::objects::uploads::{
    AssemblyError, NamedPart, OpenUpload, UploadChecksum, UploadPart as StoredPart,
};
use crate::objects::writer::WrittenContent;
use crate::objects::{NewObject, uploads};
use crate::s3::buckets::is_directory;
use crate::s3::checksums::{ALGORITHMS, header, kind, name, set_checksum};
use crate::s3::multipart::Completion;
use crate::s3::object_options::customer_of;
use crate::s3::{S3Dialect, conditions, encryption, refusal, versions};

pub(in crate::s3) fn complete(
    dialect: &S3Dialect,
    request: S3Request<CompleteMultipartUploadInput>,
) -> S3Result<CompleteMultipartUploadOutput> {
    let S3Request { input, headers, .. } = request;
    let precondition =
        conditions::of_write(dialect.habits.conditions.complete, input.if_match, input.if_none_match)?;
    // If the parts have checksums, S3 needs the customer's key to combine them.
    let key = customer_of!(input)?;
    let listed = input.multipart_upload.and_then(|upload| upload.parts).unwrap_or_default();
    let names = listed.iter().map(|part| {
        let number = part.part_number.and_then(|number| u32::try_from(number).ok());
        let etag = part.e_tag.as_ref().map(|etag| etag.value().to_owned());
        number
            .map(|number| NamedPart { number, etag })
            .ok_or_else(|| s3_error!(MalformedXML, "a part has no number"))
    });
    let names = names.collect::<S3Result<Vec<NamedPart>>>()?;
    let upload = match find(dialect, &input.bucket, &input.key, &input.upload_id) {
        Ok(upload) => upload,
        Err(error) => {
            let again = dialect.habits.completes_again;
            let known = || dialect.completions.of(&input.upload_id, &input.bucket, &input.key, &names);
            return again.then(known).flatten().map(completed).ok_or(error);
        }
    };
    if key.is_some() || upload.checksum.is_some() {
        admit(&upload, key.as_ref())?;
    }
    let parts = uploads::select_parts(&upload.parts(), &names, dialect.config.part_size_min)
        .and_then(|parts| if dialect.habits.equal_parts { uploads::equal_parts(parts) } else { Ok(parts) })
        .map_err(misfit)?;
    for (listed, part) in listed.iter().zip(&parts) {
        check_listed(listed, part)?;
    }
    let written = uploads::join_parts(&parts);
    if input.mpu_object_size.is_some_and(|size| size as u64 != written.sums.size) {
        return Err(s3_error!(
            InvalidRequest,
            "The provided 'x-amz-mp-object-size' does not match what was computed"
        ));
    }
    let checksum = if dialect.habits.checksums { whole_checksum(&upload, &parts, &written)? } else { None };
    for algorithm in ALGORITHMS.into_iter().filter(|_| dialect.habits.checksums) {
        let Some(claimed) = headers.get(header(algorithm)).and_then(|value| value.to_str().ok()) else {
            continue;
        };
        let same = checksum.as_ref().is_some_and(|checksum| {
            checksum.algorithm == algorithm
                && (checksum.value == claimed || checksum.value.split('-').next() == Some(claimed))
        });
        if !same {
            let message =
                format!("The {} you specified did not match the calculated checksum.", name(algorithm));
            return Err(S3Error::with_message(S3ErrorCode::BadDigest, message));
        }
    }
    let new = NewObject {
        attributes: upload.attributes.clone(),
        etag: Some(match is_directory(&input.bucket) {
            true => encryption::opaque_etag(written.sums.crc32c),
            false => uploads::etag_of_parts(&parts),
        }),
        checksum: checksum.clone(),
        components: None,
        parts: Some(parts.len() as u32),
        part_sizes: parts.iter().map(|part| part.written.sums.size).collect(),
        part_sums: part_sums(&upload, &parts),
        blob: None,
    };
    dialect.conflict(&input.bucket, &input.key, &precondition, upload.initiated_us).inspect_err(|_| {
        dialect.objects.uploads.remove(&upload.id);
    })?;
    let object =
        dialect.objects.commit(&input.bucket, &input.key, written, new, &precondition).map_err(refusal)?;
    dialect.objects.uploads.remove(&upload.id);
    let completion = Completion {
        upload: upload.id.clone(),
        version: versions::reported(dialect, &input.bucket, &object),
        bucket: input.bucket,
        key: input.key,
        parts: names,
        etag: object.etag.clone(),
        checksum,
        encryption: object.attributes.options.encryption.clone(),
    };
    dialect.completions.remember(completion.clone());
    Ok(completed(completion))
}

fn completed(completion: Completion) -> CompleteMultipartUploadOutput {
    let mut output = CompleteMultipartUploadOutput {
        location: Some(format!("/{}/{}", completion.bucket, completion.key)),
        bucket: Some(completion.bucket),
        key: Some(completion.key),
        e_tag: Some(ETag::Strong(completion.etag)),
        version_id: completion.version,
        ..Default::default()
    };
    if let Some(ObjectEncryption::Managed { algorithm, kms_key, bucket_key }) = completion.encryption {
        output.server_side_encryption = Some(ServerSideEncryption::from(algorithm));
        output.ssekms_key_id = kms_key;
        output.bucket_key_enabled = bucket_key.then_some(true);
    }
    if let Some(checksum) = completion.checksum {
        output.checksum_type = Some(kind(checksum.composite));
        set_checksum!(output, checksum.algorithm, checksum.value);
    }
    output
}

fn check_listed(listed: &CompletedPart, part: &StoredPart) -> S3Result<()> {
    let claims = [
        (Algorithm::Crc32, &listed.checksum_crc32),
        (Algorithm::Crc32c, &listed.checksum_crc32c),
        (Algorithm::Crc64Nvme, &listed.checksum_crc64nvme),
        (Algorithm::Sha1, &listed.checksum_sha1),
        (Algorithm::Sha256, &listed.checksum_sha256),
    ];
    for (algorithm, claimed) in claims {
        if let (Some(claimed), Some(sum)) = (claimed, part.written.sums.of(algorithm))
            && base64(&sum) != *claimed
        {
            let message = format!("The {} of part {} does not match.", name(algorithm), part.number);
            return Err(S3Error::with_message(S3ErrorCode::InvalidPart, message));
        }
    }
    Ok(())
}

/// Returns the checksums of the parts. The result is empty if the upload was begun without checksums, or if a part has
/// none.
fn part_sums(upload: &OpenUpload, parts: &[Arc<StoredPart>]) -> Vec<String> {
    let sum = |part: &Arc<StoredPart>| {
        let sum = part.written.sums.of(upload.checksum?.algorithm)?;
        Some(base64(&sum))
    };
    parts.iter().map(sum).collect::<Option<_>>().unwrap_or_default()
}

/// Returns the checksum of the whole object, with the algorithm and type that the client chose when the upload began.
/// The default is CRC64NVME.
fn whole_checksum(
    upload: &OpenUpload,
    parts: &[Arc<StoredPart>],
    written: &WrittenContent,
) -> S3Result<Option<StoredChecksum>> {
    let usual = UploadChecksum { algorithm: Algorithm::Crc64Nvme, composite: false };
    let UploadChecksum { algorithm, composite } = upload.checksum.unwrap_or(usual);
    if !composite {
        return Ok(written.sums.of(algorithm).map(|sum| StoredChecksum {
            algorithm,
            value: base64(&sum),
            composite,
        }));
    }
    let mut sums = Vec::new();
    for part in parts {
        let sum = part.written.sums.of(algorithm);
        sums.extend(sum.ok_or_else(|| {
            s3_error!(InvalidRequest, "The upload was created using a checksum that a part lacks")
        })?);
    }
    let value = format!("{}-{}", base64(&of_bytes(algorithm, &sums)), parts.len());
    Ok(Some(StoredChecksum { algorithm, value, composite }))
}

fn misfit(misfit: AssemblyError) -> S3Error {
    match misfit {
        AssemblyError::Empty => s3_error!(MalformedXML, "You must specify at least one part"),
        AssemblyError::Order => {
            s3_error!(
                InvalidPartOrder,
                "The list of parts was not in ascending order. Parts must be ordered by part number."
            )
        }
        AssemblyError::Unknown { number } => S3Error::with_message(
            S3ErrorCode::InvalidPart,
            format!("Part {number} could not be found, or its entity tag does not match."),
        ),
        AssemblyError::Unequal { .. } => {
            s3_error!(InvalidPart, "All non-trailing parts must have the same length.")
        }
        AssemblyError::TooSmall { number, size } => S3Error::with_message(
            S3ErrorCode::EntityTooSmall,
            format!(
                "Your proposed upload is smaller than the minimum allowed size: part {number} has {size} bytes"
            ),
        ),
    }
}
