//! The attributes of objects by the names of their headers, and the options of a write.

use laneway::dialect::VersionNames;
use laneway::{Condition, ObjectMeta, PutOptions, Version};

use crate::failure::Failure;
use crate::packed::Unpacked;

/// An attribute that stores keep with an object.
#[derive(Debug)]
pub struct Attribute {
    /// The name of the attribute's header, in any case.
    pub header: &'static str,
    of: fn(&ObjectMeta) -> &Option<String>,
    put: fn(PutOptions, String) -> PutOptions,
}

impl Attribute {
    /// Returns the attribute's value in an object's metadata.
    pub fn of<'m>(&self, meta: &'m ObjectMeta) -> Option<&'m str> {
        (self.of)(meta).as_deref()
    }
}

/// All attributes that have a header. Everything else is user metadata.
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

/// Adds attributes to a write. Names that aren't in [`ATTRIBUTES`] become user metadata.
pub fn with_attributes(
    options: PutOptions,
    attributes: impl IntoIterator<Item = (String, String)>,
) -> PutOptions {
    attributes.into_iter().fold(options, |options, (name, value)| match attribute(&name) {
        Some(attribute) => (attribute.put)(options, value),
        None => options.metadata(name, value),
    })
}

/// Unpacks the options of a write: first attributes and conditions by name, then user metadata, then tags.
///
/// # Errors
/// Fails for a condition on a version that the store can't compare, for two conditions, and for an unknown attribute.
pub(crate) fn put_options(names: VersionNames, from: &mut Unpacked<'_>) -> Result<PutOptions, Failure> {
    let mut options = PutOptions::default();
    let attributes = from.texts()?;
    let has = |wanted| attributes.iter().any(|(name, _)| *name == wanted);
    if has("if-absent") && has("if-version") {
        return Err(Failure::usage("if-absent and if-version cannot be combined: a write has one condition"));
    }
    for (name, value) in attributes {
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

/// Parses the version of an object for a condition. The text is a GCS generation, or an ETag with or without quotes.
///
/// # Errors
/// Fails if the store names versions by generation and the text isn't a generation.
pub fn version(names: VersionNames, text: &str) -> Result<Version, Failure> {
    match names {
        VersionNames::Generation => text
            .parse()
            .map(Version::Generation)
            .map_err(|_| Failure::usage(format!("{text:?} isn't a GCS generation"))),
        _ => {
            let (weak, quoted) = text.strip_prefix("W/").map_or(("", text), |rest| ("W/", rest));
            Ok(Version::ETag(format!("{weak}{}", quoted.trim_matches('"'))))
        }
    }
}
