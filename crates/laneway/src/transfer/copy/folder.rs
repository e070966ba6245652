//! Moves a whole tree by one request, if the store has folders and can rename them.

use std::time::Duration;

use laneway_store::{FolderRename, ObjectId};

use super::{CopyEnds, CopyItem};
use crate::event::Warning;
use crate::job::running::{JobState, ResultObject, TransferOutcome};
use crate::job::search::Search;
use crate::listing::ListingSource;
use crate::location::url;
use crate::{Error, Verified};

/// The first pause between two requests for the state of a rename, and the longest one. Each pause is twice as
/// long as the one before. gcsfuse asks every 500 ms.
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
    let mut state = ends.to.rename_folder(bucket, &from, prefix).await?;
    let mut pause = FIRST_PAUSE;
    while let FolderRename::Running(operation) = state {
        let next = async {
            tokio::time::sleep(pause).await;
            ends.to.folder_rename(bucket, &operation).await
        };
        state = match job.unless_cancelled(next).await {
            Ok(state) => state?,
            Err(cancelled) => {
                let target = url(ends.to.provider(), &ObjectId::new(bucket, from));
                let message = format!("the store goes on renaming this folder to {prefix}");
                job.warn(Warning { target, message }).await;
                return Err(cancelled);
            }
        };
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    if let FolderRename::Refused(reason) = state {
        tracing::info!(bucket, folder = from, reason, "the objects of the folder are moved one by one");
        return Ok(false);
    }
    report(search, ends, &from, ObjectId::new(bucket, prefix)).await?;
    Ok(true)
}

/// Reports each object of a renamed folder as moved. The store has copied no bytes, so there is nothing to verify.
async fn report(search: &Search, ends: &CopyEnds, from: &str, to: ObjectId) -> Result<(), Error> {
    let job = &*search.job;
    let mut objects = ListingSource::of(to, true).objects(&ends.to, search.order());
    loop {
        let page = match objects.next().await {
            // The folder was empty.
            Err(error) if error.is_not_found() => return Ok(()),
            page => page?,
        };
        let Some(page) = page else { return Ok(()) };
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
}
