//! Finds the tags for copies that take several requests. A store copies the tags itself only if the copy
//! takes a single request.

use std::collections::BTreeMap;

use laneway_store::{ObjectId, ObjectMeta, Store};

use super::{CopyEnds, CopyItem};
use crate::Error;
use crate::event::Warning;
use crate::job::running::JobState;
use crate::location::url;

/// Returns the tags for a copy: the tags of its source, unless the user sets others.
///
/// # Errors
/// Fails as [`of`] does.
pub(super) async fn kept(
    job: &JobState,
    ends: &CopyEnds,
    item: &CopyItem,
    source: &ObjectMeta,
) -> Result<BTreeMap<String, String>, Error> {
    let given = &ends.request.put.tags;
    let both_have_tags = [&ends.from, &ends.to].into_iter().all(|store| store.capabilities().has_tags);
    match !given.is_empty() || !both_have_tags {
        true => Ok(given.clone()),
        false => of(job, &ends.from, &item.from.id, source).await,
    }
}

/// Returns an object's tags.
///
/// # Errors
/// The store's error. If the object isn't known to have tags, two errors don't count. If the permission is
/// denied, this function only warns. If the store doesn't support tags, it ignores the error.
pub(crate) async fn of(
    job: &JobState,
    store: &Store,
    id: &ObjectId,
    meta: &ObjectMeta,
) -> Result<BTreeMap<String, String>, Error> {
    match job.unless_cancelled(store.tags(id)).await? {
        Ok(tags) => return Ok(tags),
        Err(error) if meta.tags.is_some_and(|count| count > 0) => return Err(error.into()),
        Err(error) if error.is_permission() => {
            let target = url(store.provider(), id);
            let message = "its tags can't be read: if it has any, the copy lacks them".to_owned();
            job.warn(Warning { target, message }).await;
        }
        // A store that doesn't support tags answers with one of these errors.
        Err(error) if error.is_unsupported() || error.is_invalid() || error.is_not_found() => {}
        Err(error) => return Err(error.into()),
    }
    Ok(BTreeMap::new())
}
