//! Changes the metadata of objects that are too large to copy in one request. A multipart upload replaces the
//! object with the same bytes: the store copies each part from the object itself.

use laneway_store::{MetaChange, ObjectId, ObjectMeta, PartChecksums, Store};

use crate::Error;
use crate::job::running::JobState;
use crate::listing::SourceObject;
use crate::transfer::copy::{fill, tags_of};
use crate::transfer::upload::{CONFLICTS_MAX, StoreUpload, begun};

/// Returns whether the listing shows that an object is too large to copy in one request.
pub(super) fn is_known(job: &JobState, store: &Store, object: &SourceObject) -> bool {
    let is_large = |meta: &ObjectMeta| job.engine.copy_sizes.is_large(meta.size, store.capabilities());
    object.id.version.is_none() && object.meta.as_deref().is_some_and(is_large)
}

/// Returns whether a named object is too large to copy in one request. The store has refused to change the
/// object in one request, with this `error`. Requests the object's size, which was unknown until then.
pub(super) async fn is_found(
    job: &JobState,
    store: &Store,
    object: &SourceObject,
    error: &laneway_store::Error,
) -> bool {
    let is_refused = error.is_unsupported() || error.is_invalid();
    let can = store.capabilities();
    let may_be = is_refused && can.copy_bytes_max.is_some() && object.id.version.is_none();
    let large = |meta: ObjectMeta| job.engine.copy_sizes.is_large(meta.size, can);
    object.meta.is_none() && may_be && store.head(&object.id, None).await.is_ok_and(large)
}

/// Changes an object's metadata. Fails if another writer replaces the object at the same time.
///
/// # Errors
/// `Precondition` if the object was replaced meanwhile; `Unsupported` if the store ignores the new metadata.
pub(super) async fn change(
    job: &JobState,
    store: &Store,
    id: &ObjectId,
    change: &MetaChange,
) -> Result<ObjectMeta, Error> {
    let mut checked = true;
    let mut conflicts = 0;
    loop {
        match change_once(job, store, id, change, checked).await {
            // MinIO refuses to copy parts into an upload with checksums. Try again without them.
            Err(CopyFailure { error, had_checksums: true }) if is_refused(&error) => checked = false,
            Err(CopyFailure { error, .. }) if error.is_conflict() && conflicts < CONFLICTS_MAX => {
                conflicts += 1
            }
            Ok(_) if !change.access_only().is_empty() => {
                return Ok(store.set_meta(id, &change.access_only()).await?);
            }
            done => return done.map_err(|failed| failed.error),
        }
    }
}

struct CopyFailure {
    error: Error,
    had_checksums: bool,
}

impl From<Error> for CopyFailure {
    fn from(error: Error) -> Self {
        Self { error, had_checksums: false }
    }
}

impl From<laneway_store::Error> for CopyFailure {
    fn from(error: laneway_store::Error) -> Self {
        Error::from(error).into()
    }
}

fn is_refused(error: &Error) -> bool {
    error.as_store().is_some_and(|error| error.is_invalid() || error.is_unsupported())
}

async fn change_once(
    job: &JobState,
    store: &Store,
    id: &ObjectId,
    change: &MetaChange,
    checked: bool,
) -> Result<ObjectMeta, CopyFailure> {
    let changing = job.unless_cancelled(store.changing(id, change)).await??;
    let tags = tags_of(job, store, id, changing.found()).await?;
    let changing = changing.tags(tags);
    let upload = begun(job, store, store.begin_change(&changing, checked), StoreUpload::Multipart).await??;
    let had_checksums = upload.checksums != PartChecksums::None;
    let found = changing.found();
    let parts = job.engine.copy_sizes.parts(found.size, store.capabilities().parts);
    let ranges = parts.map(|(_, range)| (id, found, range)).collect();
    let filled = fill(job, store, ranges, &upload, found.checksums.crc32c, &changing.condition()).await;
    let made = filled.map_err(|error| CopyFailure { error, had_checksums })?;
    Ok(store.changed(&changing, &made).await?)
}
