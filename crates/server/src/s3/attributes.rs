//! GetObjectAttributes.

use s3s::dto::*;
use s3s::{S3Result, s3_error};

use super::asked::customer_of;
use super::checksums::{kind, set_checksum};
use super::{Dialect, checksums, encryption, timestamp, versions};

pub(super) fn get(dialect: &Dialect, input: GetObjectAttributesInput) -> S3Result<GetObjectAttributesOutput> {
    let object = versions::find(dialect, &input.bucket, &input.key, input.version_id.as_deref())?;
    encryption::admit(customer_of!(input)?.as_ref(), object.attributes.asked.encryption.as_ref())?;
    let mut output = GetObjectAttributesOutput {
        last_modified: Some(timestamp(object.updated_us)),
        version_id: versions::reported(dialect, &input.bucket, &object),
        ..Default::default()
    };
    // Clients write all names into one header, which `s3s` doesn't split.
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
                // Here ObjectParts tells the number of parts, so the composite value has no suffix.
                let value = stored.value.split('-').next().unwrap_or_default().to_owned();
                set_checksum!(checksum, stored.algorithm, value);
                output.checksum = Some(checksum);
            }
            ObjectAttributes::CHECKSUM => {}
            ObjectAttributes::OBJECT_PARTS => {
                let count = object.parts.map(|parts| parts as i32);
                output.object_parts = count.map(|count| GetObjectAttributesParts {
                    total_parts_count: Some(count),
                    ..Default::default()
                });
            }
            _ => return Err(s3_error!(InvalidArgument, "Invalid attribute name specified.")),
        }
    }
    Ok(output)
}
