//! Converts between object_store's ETags and the library's versions.

use laneway::dialect::VersionNames;
use laneway::{Bucket, Condition, ObjectMeta, Version};

use super::object_store::path::Path;
use super::object_store::{self, PutMode, Result, UpdateVersion};

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
