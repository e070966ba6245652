//! Removes the folders of a removed tree. A bucket with a hierarchical namespace keeps them when their objects are gone.

use std::cmp::Reverse;

use futures_util::{StreamExt as _, stream};
use laneway_store::{ObjectId, Store};

use crate::event::Warning;
use crate::job::running::JobState;
use crate::listing::folder_prefix;
use crate::location::url;
use crate::{Error, Filter, RemoveRequest};

/// The folders of one depth that are removed at once. Each takes a request of its own.
const AT_ONCE: usize = 64;

/// Returns whether a request takes everything below its targets, and with it the folders.
pub(super) fn are_taken(request: &RemoveRequest) -> bool {
    request.recursive
        && !request.dry_run
        && request.files_from.is_none()
        && request.inventory.is_none()
        && request.filter == Filter::default()
}

/// Removes the empty folders below a prefix, the innermost first. Laneway doesn't ask the store to remove a folder with
/// its content: objects that other writers put there meanwhile stay, and so do their folders. Returns how many folders
/// are gone.
///
/// # Errors
/// If the folders can't be listed, or the job is cancelled.
pub(super) async fn remove(job: &JobState, store: &Store, at: &ObjectId) -> Result<usize, Error> {
    let mut names = job.unless_cancelled(store.folders(&at.bucket, &folder_prefix(&at.key))).await??;
    let depth = |name: &String| name.matches('/').count();
    names.sort_by_key(|name| Reverse(depth(name)));
    let mut gone = 0;
    for of_depth in names.chunk_by(|a, b| depth(a) == depth(b)) {
        let delete = |name: &String| {
            let name = name.clone();
            async move { (store.delete_folder(&at.bucket, &name).await, name) }
        };
        let mut deletes = stream::iter(of_depth.iter().map(delete)).buffer_unordered(AT_ONCE);
        while let Some((deleted, name)) = job.unless_cancelled(deletes.next()).await? {
            match deleted {
                Ok(()) => gone += 1,
                Err(error) if error.is_not_found() || error.is_precondition() || error.is_invalid() => {}
                Err(error) => {
                    let target = url(store.provider(), &ObjectId::new(&at.bucket, name));
                    job.warn(Warning { target, message: format!("the folder stays: {error}") }).await;
                }
            }
        }
    }
    Ok(gone)
}
