//! Converts between the library and object_store: versions and ETags, attributes and tags, and errors.

use laneway::dialect::{Capabilities, VersionNames};
use laneway::{Bucket, Condition, ErrorKind, ObjectMeta, PutOptions, Version};
use percent_encoding::percent_decode_str;

use super::object_store::path::Path;
use super::object_store::{self, Attribute, Attributes, Error, PutMode, Result, TagSet, UpdateVersion};

/// Returns the ETag that object_store sees for a version: on S3 the store's ETag without quotes, on GCS the generation.
/// Conditions on GCS use generations, and conditions on S3 use ETags.
pub(super) fn e_tag(version: Option<&Version>) -> Option<String> {
    match version? {
        Version::Generation(generation) => Some(generation.to_string()),
        Version::ETag(e_tag) => Some(e_tag.clone()),
        _ => None,
    }
}

/// Returns the version that an ETag, with or without quotes, stands for. Returns `None` if no object of this store can
/// have this ETag.
pub(super) fn version(names: VersionNames, e_tag: &str) -> Option<Version> {
    let bare = e_tag.trim().trim_matches('"');
    match names {
        VersionNames::Generation => bare.parse().ok().map(Version::Generation),
        _ => Some(Version::ETag(bare.to_owned())).filter(|_| !bare.is_empty()),
    }
}

/// Returns true if an object's ETag is in a condition's list of ETags, which are separated by commas. The list `*`
/// stands for any ETag.
pub(super) fn is_one_of(list: &str, meta: &ObjectMeta) -> bool {
    let own = e_tag(meta.version.as_ref());
    list.trim() == "*" || list.split(',').any(|one| own.as_deref() == Some(one.trim().trim_matches('"')))
}

/// Converts the mode of a put to the library's condition.
///
/// # Errors
/// Fails for an update without an ETag, or with an ETag that no object of the store can have.
pub(super) fn condition(bucket: &Bucket, location: &Path, mode: PutMode) -> Result<Condition> {
    match mode {
        PutMode::Overwrite => Ok(Condition::None),
        PutMode::Create => Ok(Condition::Absent),
        PutMode::Update(UpdateVersion { e_tag, version: number }) => {
            let Some(named) = e_tag.or(number) else {
                let source = "PutMode::Update needs the ETag of the object that it replaces".into();
                return Err(object_store::Error::Generic { store: "Laneway", source });
            };
            version(bucket.capabilities().versions, &named).map(Condition::Matches).ok_or_else(|| {
                object_store::Error::Precondition {
                    path: location.to_string(),
                    source: format!("{named:?} isn't a version that an object of {} can have", bucket.url())
                        .into(),
                }
            })
        }
    }
}

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

/// Converts the error of a request for the object at a location.
pub(super) fn error(location: &Path, error: laneway::Error) -> Error {
    let path = location.to_string();
    let kind = error.kind();
    let source = Box::new(error);
    match kind {
        ErrorKind::NotFound => Error::NotFound { path, source },
        ErrorKind::AlreadyExists => Error::AlreadyExists { path, source },
        ErrorKind::Precondition => Error::Precondition { path, source },
        ErrorKind::NotModified => Error::NotModified { path, source },
        ErrorKind::Permission => Error::PermissionDenied { path, source },
        ErrorKind::Unauthenticated => Error::Unauthenticated { path, source },
        ErrorKind::Unsupported => Error::NotSupported { source },
        _ => Error::Generic { store: "Laneway", source },
    }
}

/// Converts the error of a `PutMode::Update`. A missing object becomes `Precondition`, because the version to be
/// replaced doesn't exist.
pub(super) fn update_error(location: &Path, failure: laneway::Error) -> Error {
    match failure.kind() {
        ErrorKind::NotFound => Error::Precondition { path: location.to_string(), source: Box::new(failure) },
        _ => error(location, failure),
    }
}

/// Converts the error of an upload's end. `NotFound` means that the store no longer has the upload, and not that an object is
/// missing, so it becomes `Generic`. On Azure, this happens if another upload of the same object has ended first.
pub(super) fn upload_error(location: &Path, failure: laneway::Error) -> Error {
    match failure.kind() {
        ErrorKind::NotFound => Error::Generic { store: "Laneway", source: Box::new(failure) },
        _ => error(location, failure),
    }
}

/// Converts the error of a copy. `AlreadyExists` names the destination, and other errors name the source.
pub(super) fn copy_error(from: &Path, to: &Path, failure: laneway::Error) -> Error {
    match failure.kind() {
        ErrorKind::AlreadyExists => error(to, failure),
        _ => error(from, failure),
    }
}

/// Returns the error for something that Laneway doesn't support.
pub(super) fn not_supported(why: impl Into<String>) -> Error {
    Error::NotSupported { source: why.into().into() }
}
