//! What a new object is to be, as `dev.laneway.PutOptions` writes it.

use laneway::dialect::VersionNames;
use laneway::{Condition, PutOptions};

use crate::described::version;
use crate::failure::Failure;
use crate::packed::Unpacked;

/// # Errors
/// For a state that the store doesn't compare.
pub(crate) fn put(names: VersionNames, from: &mut Unpacked<'_>) -> Result<PutOptions, Failure> {
    let mut options = PutOptions::default();
    for (name, value) in from.texts()? {
        options = match name {
            "if-absent" => options.condition(Condition::Absent),
            "if-version" => options.condition(Condition::Matches(version(names, value)?)),
            "content-type" => options.content_type(value),
            "content-encoding" => options.content_encoding(value),
            "content-disposition" => options.content_disposition(value),
            "content-language" => options.content_language(value),
            "cache-control" => options.cache_control(value),
            "storage-class" => options.storage_class(value),
            "acl" => options.acl(value),
            "kms-key" => options.kms_key(value),
            _ => return Err(Failure::of_another_version()),
        };
    }
    for (name, value) in from.texts()? {
        options = options.metadata(name, value);
    }
    for (name, value) in from.texts()? {
        options = options.tag(name, value);
    }
    Ok(options)
}
