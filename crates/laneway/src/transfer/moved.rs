//! Finishes a move: after the copy is verified, removes the source, but only in the version that was copied.

use std::io;
use std::path::Path;

use http::StatusCode;
use laneway_store::{Condition, ObjectId, ObjectMeta, Store, Version, VersionNames};

use crate::Error;
use crate::location::{FileIdentity, url};

/// Removes the source object of a move. The copy must be verified as the request demands, and the source must
/// still have the copied version.
///
/// # Errors
/// The store's error, or an error if the copy was not verified.
pub(crate) async fn remove_object(
    store: &Store,
    id: &ObjectId,
    version: Option<&Version>,
    is_enough: bool,
) -> Result<(), Error> {
    if !is_enough {
        return Err(Error::unverified(url(store.provider(), id)));
    }
    if id.version.is_some() {
        look_at_version(store, id).await?;
    }
    let condition = version.cloned().map_or(Condition::None, Condition::Matches);
    removed_object(store, id, store.delete(id, &condition).await)
}

/// Converts the store's result of deleting a move's source. A source that is already gone counts as removed.
///
/// # Errors
/// If the source still exists, or another object has replaced it.
pub(crate) fn removed_object(
    store: &Store,
    id: &ObjectId,
    result: Result<(), laneway_store::Error>,
) -> Result<(), Error> {
    match result {
        // Another program has removed the source, so the move is complete.
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) if error.is_precondition() => Err(Error::replaced(url(store.provider(), id))),
        removed => Ok(removed?),
    }
}

/// Removes a file, unless its content has changed since it was copied. Blocks the thread.
///
/// # Errors
/// If the file was replaced, or the file system refuses.
pub(crate) fn remove_file(path: &Path, copied: FileIdentity) -> Result<(), Error> {
    let failed = |e| Error::local(path, "copied, but can't be removed", e);
    match std::fs::metadata(path) {
        Ok(now) if !FileIdentity::of(&now).has_content_of(&copied) => {
            return Err(Error::replaced(path.display().to_string()));
        }
        // If the path is a symbolic link whose target was moved earlier, the error is `NotFound`. Remove the
        // link all the same.
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    std::fs::remove_file(path).map_err(failed)
}

/// The version id that S3 gives to objects written while the bucket kept no versions.
const NULL: &str = "null";

/// Looks up a version, checks that the store's answer is about this version, and returns its size. A store
/// that ignores version ids would otherwise remove the live object instead.
///
/// # Errors
/// The store's error; an answer about another version.
pub(crate) async fn look_at_version(store: &Store, id: &ObjectId) -> Result<u64, Error> {
    match store.head(id, None).await {
        Ok(meta) if is_version(store.capabilities().versions, id, &meta) => Ok(meta.size),
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
fn is_version(names: VersionNames, id: &ObjectId, answered: &ObjectMeta) -> bool {
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
    fn a_file_that_was_replaced_after_it_was_copied_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let identity = || FileIdentity::of(&std::fs::metadata(&path).unwrap());
        std::fs::write(&path, "old").unwrap();
        let copied = identity();
        std::fs::write(&path, "newer").unwrap();
        let error = remove_file(&path, copied).unwrap_err();
        assert!(
            error.kind() == crate::ErrorKind::Source && error.to_string().contains("replaced meanwhile"),
            "{error}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), b"newer");
        // A hard link changes the file's status time but not its content.
        let copied = identity();
        std::fs::hard_link(&path, dir.path().join("g")).unwrap();
        std::os::unix::fs::symlink(&path, dir.path().join("link")).unwrap();
        remove_file(&path, copied).unwrap();
        remove_file(&dir.path().join("link"), copied).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "the other name");
    }

    #[test]
    fn only_the_version_that_was_asked_for_is_it() {
        let id = |version: &str| ObjectId::new("b", "k").at_version(version);
        let mut answered = ObjectMeta::new(id("x"), 1);
        assert!(
            is_version(VersionNames::ETagAndId, &id("null"), &answered)
                && !is_version(VersionNames::ETagAndId, &id("v1"), &answered)
        );
        assert!(!is_version(VersionNames::Generation, &id("17"), &answered));
        answered.version_id = Some("v1".to_owned());
        assert!(
            is_version(VersionNames::ETagAndId, &id("v1"), &answered)
                && !is_version(VersionNames::ETagAndId, &id("null"), &answered)
        );
        answered.version = Some(Version::Generation(17));
        assert!(
            is_version(VersionNames::Generation, &id("17"), &answered)
                && !is_version(VersionNames::Generation, &id("18"), &answered)
        );
    }
}
