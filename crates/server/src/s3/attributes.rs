//! GetObjectAttributes.

use http::Response;
use s3s::dto::*;
use s3s::{S3Result, s3_error};

use super::checksums::{kind, set_checksum};
use super::object_options::customer_of;
use super::{S3Dialect, checksums, encryption, timestamp, versions};
use crate::body::ResponseBody;
use crate::objects::Object;

/// The maximum number of parts on a page.
const PARTS_MAX: i32 = 1000;

pub(super) fn get(
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
                output.object_parts = object.parts.map(|count| parts(&object, count as i32, page));
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
fn parts(object: &Object, count: i32, (marker, max): (Option<i32>, Option<i32>)) -> GetObjectAttributesParts {
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
