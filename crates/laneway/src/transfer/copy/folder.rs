//! Moves a whole tree by one request, if the store has folders and can rename them.

use std::time::Duration;

use laneway_store::{FolderRename, List, ObjectId};

use super::{CopyEnds, CopyItem};
use crate::event::Warning;
use crate::job::running::{ResultObject, TransferOutcome};
use crate::job::search::Search;
use crate::listing::ListingSource;
use crate::location::url;
use crate::{Error, Verified};

/// The first and the longest pause between requests for the state of a rename. Each pause is twice as long as the
/// previous one, up to the longest. gcsfuse sends such requests every 500 ms.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Lets the store rename the folder of a tree, if the request moves the tree as it is. Then reports each object
/// below the new name, `prefix`. Returns false if the objects must be moved one by one.
///
/// # Errors
/// The store's error if the state of the folder is unknown, and the error of a cancelled job.
pub(super) async fn rename(
    search: &Search,
    ends: &CopyEnds,
    source: &ListingSource,
    prefix: &str,
) -> Result<bool, Error> {
    let (job, bucket, from) = (&*search.job, source.bucket.as_str(), source.folder_prefix());
    let is_tree = !source.key.is_empty() && !source.is_pattern() && source.version.is_none();
    if !is_tree
        || !ends.request.renames_tree()
        || !job.unless_cancelled(ends.to.has_folders(bucket)).await??
    {
        return Ok(false);
    }
    // An object can have the same name as an empty folder. In that case, the user means the object.
    let first = List { max: Some(1), ..List::new(bucket, &from) };
    if job.unless_cancelled(ends.from.list(&first)).await??.objects.is_empty() {
        return Ok(false);
    }
    let warn = async |message: String| {
        let target = url(ends.to.provider(), &ObjectId::new(bucket, &from));
        job.warn(Warning { target, message }).await;
    };
    // A cancelled job waits for this answer. Otherwise Laneway would not know if the rename has begun.
    let mut state = ends.to.rename_folder(bucket, &from, prefix).await?;
    let mut pause = FIRST_PAUSE;
    while let FolderRename::Running(operation) = state {
        let next = async {
            tokio::time::sleep(pause).await;
            Ok::<_, Error>(ends.to.folder_rename(bucket, &operation).await?)
        };
        state = match job.unless_cancelled(next).await.flatten() {
            Ok(state) => state,
            Err(error) => {
                warn(format!(
                    "the store has begun to rename this folder to {prefix}, and may still complete the rename"
                ))
                .await;
                return Err(error);
            }
        };
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    if let FolderRename::Refused(reason) = state {
        tracing::info!(bucket, folder = from, reason, "the objects of the folder are moved one by one");
        return Ok(false);
    }
    match report(search, ends, &from, ObjectId::new(bucket, prefix)).await {
        Ok(()) => Ok(true),
        Err(error) => {
            warn(format!("the store has renamed this folder to {prefix}, but its objects can't be listed"))
                .await;
            Err(error)
        }
    }
}

/// Reports each object of a renamed folder as moved. The store has copied no bytes, so there is nothing to verify.
async fn report(search: &Search, ends: &CopyEnds, from: &str, to: ObjectId) -> Result<(), Error> {
    let job = &*search.job;
    let mut objects = ListingSource::of(to, true).objects(&ends.to, search.order());
    while let Some(page) = job.unless_cancelled(objects.next()).await.flatten()? {
        for mut object in page {
            let Some(meta) = object.meta.clone() else { continue };
            let to = std::mem::replace(&mut object.id.key, format!("{from}{}", object.name));
            let item = CopyItem { to: ObjectId::new(&object.id.bucket, to), from: object };
            job.progress.found(1, meta.size);
            let begun = ends.begin(job, &item);
            job.progress.moved(meta.size);
            let made = ResultObject::of(&meta);
            let verified = Verified::NotApplicable;
            let moved = TransferOutcome { bytes: meta.size, verified, atomic: true, made };
            ends.end(job, &item, begun, Ok(moved)).await;
        }
    }
    Ok(())
}
