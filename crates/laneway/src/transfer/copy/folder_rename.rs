//! Moves a whole tree by renaming its folder, in GCS buckets with a hierarchical namespace.

use std::sync::Arc;
use std::time::Duration;

use laneway_store::{List, ObjectId, PutOptions, Store};

use crate::event::Verified;
use crate::job::running::{JobState, ResultObject, TransferOutcome};
use crate::listing::{folder_prefix, pages};
use crate::location::mapping::name_of_key;
use crate::location::url;
use crate::{CopyRequest, Error, Location, Op};

/// The pauses between questions about a rename under way. Most take less than a second.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];

/// A tree and its new name, both with a slash at the end, in one bucket.
struct Tree {
    bucket: String,
    from: String,
    to: String,
}

/// Returns the tree of a request that moves exactly one whole tree within a bucket, and changes nothing else.
fn tree(request: &CopyRequest) -> Option<(Tree, laneway_store::Provider)> {
    let [source @ Location::Object { provider, bucket, key }] = &request.sources[..] else { return None };
    let Location::Object { provider: to_provider, bucket: to_bucket, key: to_key } = &request.destination
    else {
        return None;
    };
    let is_whole = request.recursive
        && request.remove_source
        && request.filter.is_empty()
        && request.files_from.is_none()
        && request.inventory.is_none()
        && request.manifest.is_none()
        && !request.contents
        && !request.dry_run;
    let is_within = provider == to_provider && bucket == to_bucket && !key.is_empty() && !source.is_pattern();
    if !is_whole || !is_within || request.put != PutOptions::default() {
        return None;
    }
    let to = match request.is_into_folder() {
        true => format!("{}{}/", folder_prefix(to_key), name_of_key(bucket, key.trim_end_matches('/'))),
        false => folder_prefix(to_key),
    };
    let from = folder_prefix(key);
    let is_free = !to.starts_with(&from) && !from.starts_with(&to) && to != "/";
    is_free.then(|| (Tree { bucket: bucket.clone(), from, to }, *provider))
}

/// Renames the folder of a tree, and reports each of its objects. Returns false if the objects must be moved one
/// by one: in a flat bucket, or if the new name is taken.
///
/// # Errors
/// The store's error for a rename that had begun.
pub(super) async fn rename(job: &Arc<JobState>, request: &CopyRequest) -> Result<bool, Error> {
    let Some((Tree { bucket, from, to }, provider)) = tree(request) else { return Ok(false) };
    let store = job.store(provider)?;
    let begun = job.unless_cancelled(store.rename_folder(&bucket, &from, &to)).await??;
    let Some(operation) = begun else { return Ok(false) };
    let mut pauses = PAUSES.into_iter();
    let mut pause = PAUSES[0];
    while !job.unless_cancelled(store.is_operation_done(&bucket, &operation)).await?? {
        pause = pauses.next().unwrap_or(pause);
        job.unless_cancelled(tokio::time::sleep(pause)).await?;
    }
    report(job, store, &Tree { bucket, from, to }).await?;
    Ok(true)
}

/// Reports the objects below the new name as moved.
async fn report(job: &JobState, store: &Store, tree: &Tree) -> Result<(), Error> {
    let mut pages = pages(store, List::new(&tree.bucket, &tree.to));
    while let Some(page) = pages.next().await {
        for meta in page?.objects {
            let name = meta.id.key.get(tree.to.len()..).unwrap_or_default();
            let source = ObjectId::new(&tree.bucket, format!("{}{name}", tree.from));
            job.progress.found(1, meta.size);
            job.progress.moved(meta.size);
            let provider = store.provider();
            let begun = job.begin(Op::Copy, url(provider, &source), Some(url(provider, &meta.id)));
            let made = ResultObject::of(&meta);
            let moved =
                TransferOutcome { bytes: meta.size, verified: Verified::NotApplicable, atomic: true, made };
            job.end(begun, meta.size, Ok(moved)).await;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_tree_that_changes_nothing_but_its_name_is_renamed() {
        let request = |from: &str, to: &str| {
            let request = CopyRequest::new(vec![from.parse().unwrap()], to.parse().unwrap());
            request.recursive(true).remove_source(true)
        };
        let renamed = |request: &CopyRequest| tree(request).map(|(tree, _)| (tree.from, tree.to));
        let names = |from: &str, to: &str| Some((from.to_owned(), to.to_owned()));
        assert_eq!(renamed(&request("gs://b/a", "gs://b/c")), names("a/", "c/"));
        assert_eq!(renamed(&request("gs://b/x/a/", "gs://b/c/")), names("x/a/", "c/a/"));
        assert_eq!(renamed(&request("gs://b/a", "gs://b/a/b")), None, "inside itself");
        assert_eq!(renamed(&request("gs://b/a", "gs://other/c")), None);
        assert_eq!(renamed(&request("gs://b", "gs://b/c")), None);
        assert_eq!(renamed(&request("gs://b/a", "gs://b/c").remove_source(false)), None);
        let described = request("gs://b/a", "gs://b/c").put(PutOptions::default().content_type("a/b"));
        assert_eq!(renamed(&described), None);
    }
}
