//! Converts an object's attributes and tags between object_store and the library.

use laneway::dialect::Capabilities;
use laneway::{ObjectMeta, PutOptions};
use percent_encoding::percent_decode_str;

use super::errors::not_supported;
use super::object_store::{Attribute, Attributes, Result, TagSet};

/// Converts attributes and tags to the library's options of an upload.
///
/// # Errors
/// Fails for an unknown attribute, and for tags on GCS, whose objects can't have tags.
pub(super) fn put_options(can: &Capabilities, attributes: Attributes, tags: &TagSet) -> Result<PutOptions> {
    if !can.has_tags && !tags.encoded().is_empty() {
        return Err(not_supported("objects of this store can't have tags; use metadata instead"));
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
            other => return Err(not_supported(format!("Laneway doesn't support the attribute {other:?}"))),
        }
    }
    // object_store encodes tags as a URL's query string (`a=1&b=2`).
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
