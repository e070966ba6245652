//! Looks up a version before Laneway removes it. A store that ignores version ids would otherwise remove the
//! live object instead.

use http::StatusCode;
use laneway_store::{ObjectId, ObjectMeta, Store, Version, VersionNames};

use crate::Error;
use crate::location::url;

/// The version id that S3 gives to objects written while the bucket kept no versions.
const NULL: &str = "null";

/// Looks up a version, checks that the store's answer is about this version, and returns its size.
///
/// # Errors
/// The store's error; an answer about another version.
pub(crate) async fn look_at(store: &Store, id: &ObjectId) -> Result<u64, Error> {
    match store.head(id, None).await {
        Ok(meta) if is_it(store.capabilities().versions, id, &meta) => Ok(meta.size),
        Ok(meta) => {
            let answered = match (&meta.version_id, &meta.version) {
                (Some(other), _) => format!("version {other}"),
                (None, Some(Version::Generation(other))) => format!("generation {other}"),
                (None, _) => "an object without versions".to_owned(),
            };
            let message =
                format!("kept: Laneway asked for this version, but the store answered with {answered}");
            Err(Error::refused(url(store.provider(), id), message))
        }
        // S3 answers with this status for a delete marker, which can't be looked up but can be removed.
        Err(error) if error.status() == Some(StatusCode::METHOD_NOT_ALLOWED) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether an answer is about the requested version.
fn is_it(names: VersionNames, id: &ObjectId, answered: &ObjectMeta) -> bool {
    let asked = id.version.as_deref();
    match (names, &answered.version) {
        (VersionNames::Generation, Some(Version::Generation(generation))) => {
            asked == Some(generation.to_string().as_str())
        }
        (VersionNames::Generation, _) => false,
        // If a bucket has never kept versions, S3's answers contain no version id. The only version of each
        // object is then called `null`.
        (_, _) => asked == Some(answered.version_id.as_deref().unwrap_or(NULL)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_version_that_was_asked_for_is_it() {
        let id = |version: &str| ObjectId::new("b", "k").at_version(version);
        let mut answered = ObjectMeta::new(id("x"), 1);
        assert!(
            is_it(VersionNames::ETagAndId, &id("null"), &answered)
                && !is_it(VersionNames::ETagAndId, &id("v1"), &answered)
        );
        assert!(!is_it(VersionNames::Generation, &id("17"), &answered));
        answered.version_id = Some("v1".to_owned());
        assert!(
            is_it(VersionNames::ETagAndId, &id("v1"), &answered)
                && !is_it(VersionNames::ETagAndId, &id("null"), &answered)
        );
        answered.version = Some(Version::Generation(17));
        assert!(
            is_it(VersionNames::Generation, &id("17"), &answered)
                && !is_it(VersionNames::Generation, &id("18"), &answered)
        );
    }
}
