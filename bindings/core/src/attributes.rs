//! Attributes of objects by the names of their headers, and options of a write.

use laneway::dialect::VersionNames;
use laneway::{Condition, ObjectMeta, PutOptions, Version};

use crate::failure::Failure;
use crate::packed::Unpacked;

/// An attribute that stores keep beside an object's bytes.
#[derive(Debug)]
pub struct Attribute {
    /// The name of its header. Stores compare it without case.
    pub header: &'static str,
    of: fn(&ObjectMeta) -> &Option<String>,
    put: fn(PutOptions, String) -> PutOptions,
}

impl Attribute {
    /// Returns its value in an object's description.
    pub fn of<'m>(&self, meta: &'m ObjectMeta) -> Option<&'m str> {
        (self.of)(meta).as_deref()
    }
}

/// All attributes that have a header of their own.
pub static ATTRIBUTES: &[Attribute] = &[
    Attribute { header: "Content-Type", of: |meta| &meta.content_type, put: PutOptions::content_type },
    Attribute {
        header: "Content-Encoding",
        of: |meta| &meta.content_encoding,
        put: PutOptions::content_encoding,
    },
    Attribute {
        header: "Content-Disposition",
        of: |meta| &meta.content_disposition,
        put: PutOptions::content_disposition,
    },
    Attribute {
        header: "Content-Language",
        of: |meta| &meta.content_language,
        put: PutOptions::content_language,
    },
    Attribute { header: "Cache-Control", of: |meta| &meta.cache_control, put: PutOptions::cache_control },
    Attribute { header: "Storage-Class", of: |meta| &meta.storage_class, put: PutOptions::storage_class },
];

fn attribute(name: &str) -> Option<&'static Attribute> {
    ATTRIBUTES.iter().find(|attribute| attribute.header.eq_ignore_ascii_case(name))
}

/// Adds attributes to a write. A name without a header of its own is the user's own metadata.
pub fn with_attributes(
    options: PutOptions,
    attributes: impl IntoIterator<Item = (String, String)>,
) -> PutOptions {
    attributes.into_iter().fold(options, |options, (name, value)| match attribute(&name) {
        Some(attribute) => (attribute.put)(options, value),
        None => options.metadata(name, value),
    })
}

/// Reads the options of a write: attributes and conditions by name, metadata, tags.
///
/// # Errors
/// For a state that the store doesn't compare; for an attribute that this library doesn't know.
pub(crate) fn put_options(names: VersionNames, from: &mut Unpacked<'_>) -> Result<PutOptions, Failure> {
    let mut options = PutOptions::default();
    for (name, value) in from.texts()? {
        options = match name {
            "if-absent" => options.condition(Condition::Absent),
            "if-version" => options.condition(Condition::Matches(version(names, value)?)),
            "acl" => options.acl(value),
            "kms-key" => options.kms_key(value),
            _ => {
                let attribute = attribute(name).ok_or_else(Failure::of_another_version)?;
                (attribute.put)(options, value.to_owned())
            }
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

/// Reads a state of an object, as conditions name it. Quotes around an ETag may be missing.
///
/// # Errors
/// For a text that is no generation, where the store counts these.
pub fn version(names: VersionNames, text: &str) -> Result<Version, Failure> {
    match names {
        VersionNames::Generation => text
            .parse()
            .map(Version::Generation)
            .map_err(|_| Failure::usage(format!("{text:?} is no generation of GCS's"))),
        _ => {
            let (weak, quoted) = text.strip_prefix("W/").map_or(("", text), |rest| ("W/", rest));
            Ok(Version::ETag(format!("{weak}{}", quoted.trim_matches('"'))))
        }
    }
}
