//! Attributes and tags of an object.

use laneway::dialect::Capabilities;
use laneway::{ObjectMeta, PutOptions};
use percent_encoding::percent_decode_str;

use super::errors::not_supported;
use super::object_store::{Attribute, Attributes, Result, TagSet};

/// Returns attributes and tags as the library takes them.
///
/// # Errors
/// Fails for an unknown attribute, and for tags on GCS, which has none.
pub(super) fn put_options(can: &Capabilities, attributes: Attributes, tags: &TagSet) -> Result<PutOptions> {
    if !can.has_tags && !tags.encoded().is_empty() {
        return Err(not_supported("objects of this store have no tags, only metadata"));
    }
    let mut options = PutOptions::default();
    for (attribute, value) in &attributes {
        let value = value.to_string();
        match attribute {
            Attribute::CacheControl => options.cache_control = Some(value),
            Attribute::ContentDisposition => options.content_disposition = Some(value),
            Attribute::ContentEncoding => options.content_encoding = Some(value),
            Attribute::ContentLanguage => options.content_language = Some(value),
            Attribute::ContentType => options.content_type = Some(value),
            Attribute::StorageClass => options.storage_class = Some(value),
            Attribute::Metadata(name) => drop(options.metadata.insert(name.to_string(), value)),
            other => return Err(not_supported(format!("the attribute {other:?} isn't known to Laneway"))),
        }
    }
    // Tags are encoded as in a query.
    let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    for tag in tags.encoded().split('&').filter(|tag| !tag.is_empty()) {
        let (name, value) = tag.split_once('=').unwrap_or((tag, ""));
        options.tags.insert(decoded(name), decoded(value));
    }
    Ok(options)
}

/// Returns an object's metadata as attributes.
pub(super) fn attributes(meta: &ObjectMeta) -> Attributes {
    let mut attributes = Attributes::new();
    let named = [
        (Attribute::CacheControl, &meta.cache_control),
        (Attribute::ContentDisposition, &meta.content_disposition),
        (Attribute::ContentEncoding, &meta.content_encoding),
        (Attribute::ContentLanguage, &meta.content_language),
        (Attribute::ContentType, &meta.content_type),
    ];
    for (attribute, value) in named {
        if let Some(value) = value {
            attributes.insert(attribute, value.clone().into());
        }
    }
    for (name, value) in meta.metadata.iter().flatten() {
        attributes.insert(Attribute::Metadata(name.clone().into()), value.clone().into());
    }
    attributes
}
