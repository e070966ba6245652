//! Removes the folders of a removed tree. A bucket with a hierarchical namespace keeps the folders whose objects are
//! gone.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use futures_util::{StreamExt as _, stream};
use laneway_store::{ObjectId, Store};

use crate::event::Warning;
use crate::job::running::JobState;
use crate::listing::ListingSource;
use crate::location::url;
use crate::{Error, Filter, Location, RemoveRequest};

/// The maximum number of folders of one depth that Laneway removes at the same time. Each removal takes a request of
/// its own.
const AT_ONCE: usize = 64;
/// The number of folders that Laneway collects before it removes them. With names of 100 bytes, they take 1 MB.
const COLLECTED_MAX: usize = 10_000;

/// Returns whether a request removes everything below its targets, and so the folders, too.
pub(super) fn are_taken(request: &RemoveRequest) -> bool {
    request.recursive
        && !request.dry_run
        && request.files_from.is_none()
        && request.inventory.is_none()
        && request.filter == Filter::default()
}

/// Finds out which buckets have folders. It runs while the objects are removed, so the job needn't wait for it
/// afterwards.
pub(super) async fn learn(job: &JobState, targets: &[Location]) {
    let mut asked = BTreeSet::new();
    for target in targets {
        if let Some((provider, id)) = target.as_object()
            && asked.insert((provider.scheme(), id.bucket.clone()))
            && let Ok(store) = job.store(provider)
        {
            // Ignore an error, because the listing of the folders sends this request again.
            let _ = job.unless_cancelled(store.has_folders(&id.bucket)).await;
        }
    }
}

/// Removes the empty folders of a tree, the innermost first. If the key is a pattern, does so for each folder that the
/// pattern matches. Laneway never asks the store to remove a folder together with its content. So if other writers
/// create objects in a folder meanwhile, the objects and the folder stay. Returns the number of folders that it has
/// removed.
///
/// # Errors
/// If the folders can't be listed, or the job is cancelled.
pub(super) async fn remove(job: &JobState, store: &Store, at: &ObjectId) -> Result<usize, Error> {
    let tree = ListingSource::of(at.clone(), true);
    let prefix = tree.folder_prefix();
    let (mut gone, mut token) = (0, None::<String>);
    // The listing is in the order of names. So a folder is complete as soon as the listing returns a name that isn't
    // below it.
    let (mut open, mut complete) = (Vec::<String>::new(), Vec::new());
    loop {
        let page = job.unless_cancelled(store.folders(&at.bucket, &prefix, token.as_deref())).await??;
        for name in page.names.into_iter().filter(|name| tree.has_folder(name)) {
            while let Some(above) = open.pop_if(|above| !name.starts_with(above.as_str())) {
                complete.push(above);
            }
            open.push(name);
        }
        token = page.next;
        if token.is_none() {
            complete.extend(open.drain(..).rev());
        }
        if token.is_none() || complete.len() >= COLLECTED_MAX {
            gone += remove_all(job, store, &at.bucket, std::mem::take(&mut complete)).await?;
        }
        if token.is_none() {
            return Ok(gone);
        }
    }
}

async fn remove_all(
    job: &JobState,
    store: &Store,
    bucket: &str,
    mut names: Vec<String>,
) -> Result<usize, Error> {
    let depth = |name: &String| name.matches('/').count();
    names.sort_by_key(|name| Reverse(depth(name)));
    let mut gone = 0;
    for of_depth in names.chunk_by(|a, b| depth(a) == depth(b)) {
        let delete = |name: &String| {
            let name = name.clone();
            async move { (store.delete_folder(bucket, &name).await, name) }
        };
        let mut deletes = stream::iter(of_depth.iter().map(delete)).buffer_unordered(AT_ONCE);
        while let Some((deleted, name)) = job.unless_cancelled(deletes.next()).await? {
            match deleted {
                Ok(()) => gone += 1,
                Err(error) if error.is_not_found() || error.is_precondition() || error.is_invalid() => {}
                Err(error) => {
                    let target = url(store.provider(), &ObjectId::new(bucket, name));
                    job.warn(Warning { target, message: format!("the folder was not removed: {error}") })
                        .await;
                }
            }
        }
    }
    Ok(gone)
}

/// Removes the folders of trees whose objects are gone, and warns if they can't be listed.
pub(crate) async fn remove_of(job: &JobState, targets: &[Location]) {
    for target in targets {
        let Some((provider, id)) = target.as_object().filter(|(_, id)| id.version.is_none()) else {
            continue;
        };
        let Ok(store) = job.store(provider) else { continue };
        match remove(job, store, &id).await {
            Err(_) if job.cancel.is_set() => return,
            Err(error) => {
                let message = format!("its folders were not removed: {error}");
                job.warn(Warning { target: target.to_string(), message }).await;
            }
            Ok(_) => {}
        }
    }
}
