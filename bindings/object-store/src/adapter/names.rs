//! Converts between object_store's ETags and the library's versions.

use laneway::dialect::VersionNames;
use laneway::{Bucket, Condition, ObjectMeta, Version};

use super::object_store::path::Path;
use super::object_store::{self, PutMode, Result, UpdateVersion};

/// Returns a state as an ETag: S3's own without quotes, or GCS's generation, because a condition on GCS is by
/// generation and on S3 by ETag.
pub(super) fn e_tag(version: Option<&Version>) -> Option<String> {
    match version? {
        Version::Generation(generation) => Some(generation.to_string()),
        Version::ETag(e_tag) => Some(e_tag.clone()),
        _ => None,
    }
}

/// Returns the state that an ETag names, with or without quotes. `None` if it isn't a state of this store's objects.
pub(super) fn version(names: VersionNames, e_tag: &str) -> Option<Version> {
    let bare = e_tag.trim().trim_matches('"');
    match names {
        VersionNames::Generation => bare.parse().ok().map(Version::Generation),
        _ => Some(Version::ETag(bare.to_owned())).filter(|_| !bare.is_empty()),
    }
}

/// Returns true if an object is in one of the states of a condition: ETags separated by commas, or `*` for any.
pub(super) fn is_one_of(list: &str, meta: &ObjectMeta) -> bool {
    let own = e_tag(meta.version.as_ref());
    list.trim() == "*" || list.split(',').any(|one| own.as_deref() == Some(one.trim().trim_matches('"')))
}

/// Returns a write's condition.
///
/// # Errors
/// Fails for an update without a state, or with a state that no object of the store can be in.
pub(super) fn condition(bucket: &Bucket, location: &Path, mode: PutMode) -> Result<Condition> {
    match mode {
        PutMode::Overwrite => Ok(Condition::None),
        PutMode::Create => Ok(Condition::Absent),
        PutMode::Update(UpdateVersion { e_tag, version: number }) => {
            let Some(named) = e_tag.or(number) else {
                let source = "an update names the ETag that it replaces".into();
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
