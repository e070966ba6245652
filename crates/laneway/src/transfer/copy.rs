//! Carries out copy requests. The kinds of source and destination decide which module does the work.

mod across;
mod search;
mod within;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use laneway_store::{FolderRename, List, ObjectId, ObjectMeta, PutOptions, Store};

use crate::event::Warning;
use crate::job::existing;
use crate::job::lookup::Sizes;
use crate::job::pump::pump_all;
use crate::job::running::{ActiveItem, JobState, ResultObject, TransferOutcome};
use crate::job::search::{Prefix, Search, asked_ahead};
use crate::listing::names_from::LineRules;
use crate::listing::{ListingSource, SourceObject, folder_prefix};
use crate::local::folder::Folder;
use crate::location::mapping::name_of_key;
use crate::location::url;
use crate::manifest::Targets;
use crate::transfer::download::{DownloadSearch, is_asked};
use crate::transfer::moved;
use crate::transfer::remove::folders;
use crate::transfer::upload::{PutOutcome, UploadSearch};
use crate::{CopyRequest, Error, Location, Op, Verified};
use across::{CopyOutcome, FinishedCopy};
pub(crate) use search::{CopySearch, one};
pub(crate) use within::fill;

/// Carries out a copy request. Returns after the job's last event.
pub(crate) async fn run(job: Arc<JobState>, request: CopyRequest) {
    let op = match (&request.sources[..], &request.destination) {
        ([source, ..], Location::Object { .. }) if source.is_object() => Op::Copy,
        (_, Location::Object { .. }) => Op::Upload,
        _ => Op::Download,
    };
    match request.check() {
        Err(error) => {
            let source = request.sources.first().map(ToString::to_string).unwrap_or_default();
            job.fail(op, source, Some(request.destination.to_string()), error).await;
        }
        Ok(()) => {
            let manifest = request.manifest.as_ref();
            let subject = request.subject(&job.added_at(&request.destination));
            let taken_from = if request.remove_source { &request.sources[..] } else { &[] };
            let targets = Targets::of(taken_from, request.recursive);
            if let Err(error) = job.keep_manifest_taking(targets, manifest, subject, request.dry_run).await {
                let target = error.url().unwrap_or_default().to_owned();
                job.fail(op, target, None, error).await;
                return job.finish().await;
            }
            if op == Op::Upload {
                job.progress.counts_sent();
            }
            let request = Arc::new(request.with_condition());
            let search = |units| Search::new(Arc::clone(&job), Arc::clone(&request), units);
            let folder = match &request.destination {
                Location::Local(path) => Some(Folder::noting(path)),
                _ => None,
            };
            pump_all(&job, |units| look_through(search(units), folder.clone())).await;
            if takes_folders(&job, &request) {
                folders::remove_of(&job, &request.sources).await;
            }
            job.tell_where_nothing_is_left(&request.filter, &request.sources).await;
            if let Some(folder) = folder {
                remove_leftovers(&job, &request, folder).await;
            }
        }
    }
    job.finish().await;
}

/// Returns whether the job has moved whole trees. A bucket with a hierarchical namespace keeps the folders of
/// such trees, so the job must remove them, too.
fn takes_folders(job: &JobState, request: &CopyRequest) -> bool {
    request.remove_source && request.takes_whole_tree() && has_ended_well(job)
}

/// Returns whether the job has ended without a failure, and was neither stopped nor cancelled.
fn has_ended_well(job: &JobState) -> bool {
    job.failed() == 0 && !job.is_stopped() && !job.cancel.is_set()
}

/// Removes temporary files that earlier downloads of this tree left. If the object of such a file no longer
/// exists, nothing else would remove the file. Earlier versions of Laneway put a tree into a subfolder with
/// the tree's name if the destination folder existed, so this function looks into that subfolder too.
async fn remove_leftovers(job: &JobState, request: &CopyRequest, folder: Arc<Folder>) {
    let is_whole = request.filter.is_empty() && request.files_from.is_none() && !request.dry_run;
    let [Location::Object { provider, bucket, key }] = &request.sources[..] else { return };
    if !request.recursive || request.sources[0].is_pattern() || !is_whole || !has_ended_well(job) {
        return;
    }
    let tree = url(*provider, &ObjectId::new(bucket, folder_prefix(key)));
    let name = name_of_key(bucket, key).to_owned();
    let removing = move || folder.remove_leftovers(&name, |url| url.starts_with(&tree));
    // Ignore errors: a file that stays does no harm, and the copy is done.
    drop(job.engine.files.run(removing).await);
}

/// Copies or moves one object for a library call. If source and destination are in the same store, that store
/// copies the bytes itself.
///
/// # Errors
/// The stores' errors. In a move, also an error if the source could not be removed.
pub(crate) async fn object(
    job: &JobState,
    (from, source): (Store, ObjectId),
    (to, id): (Store, ObjectId),
    put: PutOptions,
    is_move: bool,
) -> Result<PutOutcome, Error> {
    let at = |store: &Store, id: &ObjectId| Location::named(store.provider(), id);
    let request = CopyRequest::new(vec![at(&from, &source)], at(&to, &id)).put(put).remove_source(is_move);
    let from_object =
        SourceObject { id: source, meta: None, name: String::new(), in_tree: false, line: None };
    let item = CopyItem { from: from_object, to: id };
    let ends = CopyEnds { from: from.as_source(), to, request: Arc::new(request) };
    let FinishedCopy { sent, version, is_moved } = match ends.is_within() {
        true => within::copy_for_call(job, &ends, &item).await?,
        false => across::any(job, &ends, &item).await?,
    };
    if is_move && !is_moved {
        let is_enough = ends.request.is_enough(sent.moved.verified);
        let removal = moved::remove_object(&ends.from, &item.from.id, version.as_ref(), is_enough);
        job.unless_cancelled(removal).await??;
    }
    Ok(sent)
}

async fn look_through(mut search: Search, folder: Option<Arc<Folder>>) {
    let request = Arc::clone(&search.request);
    match &request.destination {
        Location::Object { provider, bucket, key } => {
            into_a_store(&mut search, Prefix { provider: *provider, bucket, key }).await;
        }
        Location::Local(_) | Location::Version { .. } | Location::Standard => {
            let job = Arc::clone(&search.job);
            let mut sizes = Sizes::begin(&job, &request);
            let store = |provider| job.store(provider).cloned();
            let ahead = asked_ahead(&request, store, |store, id| is_asked(&job, &request, store, id));
            let mut ahead = std::pin::pin!(ahead);
            let mut downloads = DownloadSearch::new(&mut search, folder);
            while let Some((source, answer)) = ahead.next().await {
                let Some((provider, id)) = source.as_object() else { continue };
                let from = listed(&downloads.search.job, id, &request);
                let is_looked_up = !from.is_listed() && from.version.is_none();
                let size = if is_looked_up { sizes.of(&from.key).await } else { None };
                if let Err(error) = downloads.source(provider, &from, size, answer).await {
                    downloads.search.fail(Op::Download, source.to_string(), error).await;
                }
            }
        }
    }
}

async fn into_a_store(search: &mut Search, to: Prefix<'_>) {
    let request = Arc::clone(&search.request);
    let paths: Vec<_> = request
        .sources
        .iter()
        .filter_map(|source| match source {
            Location::Local(path) => Some(path.clone()),
            _ => None,
        })
        .collect();
    if request.dry_run
        && let Err(error) = look_at(&search.job, to).await
    {
        let source = request.sources.first().map(ToString::to_string).unwrap_or_default();
        return search.fail(Op::Copy, source, error).await;
    }
    if let Err(error) = (UploadSearch { search, to }).paths(&paths).await {
        let source = paths.first().map(|path| path.display().to_string()).unwrap_or_default();
        search.fail(Op::Upload, source, error).await;
    }
    let job = Arc::clone(&search.job);
    // If there is a manifest, request each source's metadata. The next run compares the metadata with the
    // manifest, to skip unchanged sources.
    let store = |provider| Ok(job.store(provider)?.as_source());
    let ahead = asked_ahead(&request, store, |_, _| job.has_manifest());
    let mut ahead = std::pin::pin!(ahead);
    while let Some((source, answer)) = ahead.next().await {
        let result = match source {
            Location::Standard => (UploadSearch { search, to }).standard_input().await,
            Location::Local(_) => Ok(()),
            Location::Object { .. } | Location::Version { .. } => match source.as_object() {
                Some((provider, id)) => {
                    let source = listed(&search.job, id, &request);
                    CopySearch::new(search, to).source(provider, &source, answer).await
                }
                None => Ok(()),
            },
        };
        if let Err(error) = result {
            let op = if source.is_object() { Op::Copy } else { Op::Upload };
            search.fail(op, source.to_string(), error).await;
        }
    }
}

/// Lists the destination in a dry run, to find out whether the whole job would fail: the bucket may be missing,
/// the store unreachable, or the credentials invalid. A denied listing isn't an error, because the credentials
/// may permit writing but not listing.
async fn look_at(job: &JobState, to: Prefix<'_>) -> Result<(), Error> {
    let list = List { max: Some(1), ..List::new(to.bucket, to.key) };
    match job.store(to.provider)?.list(&list).await {
        Err(error) if !error.is_permission() => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns how to list one of the request's sources.
fn listed(job: &JobState, id: ObjectId, request: &CopyRequest) -> ListingSource {
    let names = request.files_from.clone().map(|names| (names, LineRules::Rclone));
    let inventory = request.inventory.clone().map(|at| (at, Arc::clone(&job.engine)));
    ListingSource { names, inventory, ..ListingSource::of(id, request.recursive) }
}

/// An object to copy, and the destination of its copy.
#[derive(Debug)]
pub(crate) struct CopyItem {
    from: SourceObject,
    to: ObjectId,
}

/// The stores of source and destination, and the request. All copies of one source share them.
#[derive(Clone, Debug)]
pub(crate) struct CopyEnds {
    from: Store,
    to: Store,
    request: Arc<CopyRequest>,
}

impl CopyItem {
    pub(crate) fn new(from: SourceObject, to: ObjectId) -> Self {
        Self { from, to }
    }

    /// Returns the object's size, or 0 if it is unknown.
    fn size(&self) -> u64 {
        self.from.meta.as_ref().map_or(0, |meta| meta.size)
    }
}

impl CopyEnds {
    /// Returns whether source and destination are in the same store, which can copy the objects itself.
    fn is_within(&self) -> bool {
        self.from.provider() == self.to.provider() && self.from.capabilities().copies
    }

    pub(crate) fn new(from: Store, to: Store, request: Arc<CopyRequest>) -> Self {
        Self { from, to, request }
    }

    pub(crate) fn from(&self) -> &Store {
        &self.from
    }

    pub(crate) fn to(&self) -> &Store {
        &self.to
    }

    fn begin(&self, job: &JobState, item: &CopyItem) -> ActiveItem {
        let source = url(self.from.provider(), &item.from.id);
        let state = item.from.meta.as_ref().and_then(|meta| job.state_of(meta.version.as_ref(), meta.size));
        let line = item.from.line.clone();
        ActiveItem { state, line, ..job.begin(Op::Copy, source, Some(url(self.to.provider(), &item.to))) }
    }

    /// Reports an item's result. In a move, first removes the source, and reports an error if the removal fails.
    async fn finish(&self, job: &JobState, item: &CopyItem, begun: ActiveItem, result: CopyOutcome) {
        let result = match result {
            Ok(FinishedCopy { sent, version, is_moved }) => {
                let mut moved = sent.moved;
                moved.made.source = version.clone();
                let removed = match self.request.remove_source && !is_moved {
                    true => {
                        let is_enough = self.request.is_enough(moved.verified);
                        moved::remove_object(&self.from, &item.from.id, version.as_ref(), is_enough).await
                    }
                    false => Ok(()),
                };
                removed.map(|()| moved)
            }
            Err(error) => Err(error),
        };
        match result {
            Err(error) if error.is_archived() && item.from.meta.is_some() => {
                job.end_listed(begun, item.size(), Err(error)).await;
            }
            result => self.end(job, item, begun, result).await,
        }
    }

    /// Reports an item's result. In a move, the caller has already removed the source.
    async fn end(
        &self,
        job: &JobState,
        item: &CopyItem,
        begun: ActiveItem,
        result: Result<TransferOutcome, Error>,
    ) {
        let begun = (begun, item.size());
        existing::end(job, &self.request, begun, result, (&self.to, &item.to)).await;
    }
}

/// The first and the longest pause between requests for the state of a rename. Each pause is twice as long as the
/// previous one, up to the longest. gcsfuse sends such requests every 500 ms.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Lets the store rename the folder of a tree, if the request moves the tree as it is. Then reports each object
/// below the new name, `prefix`. Returns false if the objects must be moved one by one.
///
/// # Errors
/// The store's error if the state of the folder is unknown, and the error of a cancelled job.
async fn rename_folder(
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
    match report_renamed(search, ends, &from, ObjectId::new(bucket, prefix)).await {
        Ok(()) => Ok(true),
        Err(error) => {
            warn(format!("the store has renamed this folder to {prefix}, but its objects can't be listed"))
                .await;
            Err(error)
        }
    }
}

/// Reports each object of a renamed folder as moved. The store has copied no bytes, so there is nothing to verify.
async fn report_renamed(search: &Search, ends: &CopyEnds, from: &str, to: ObjectId) -> Result<(), Error> {
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

/// Returns the tags for a copy: the tags of its source, unless the user sets others. A store copies the tags
/// itself only if the copy takes a single request.
///
/// # Errors
/// Fails as [`tags_of`] does.
async fn kept_tags(
    job: &JobState,
    ends: &CopyEnds,
    item: &CopyItem,
    source: &ObjectMeta,
) -> Result<BTreeMap<String, String>, Error> {
    let given = &ends.request.put.tags;
    let both_have_tags = [&ends.from, &ends.to].into_iter().all(|store| store.capabilities().has_tags);
    match !given.is_empty() || !both_have_tags {
        true => Ok(given.clone()),
        false => tags_of(job, &ends.from, &item.from.id, source).await,
    }
}

/// Returns an object's tags.
///
/// # Errors
/// The store's error. If the object isn't known to have tags, two errors don't count. If the permission is
/// denied, this function only warns. If the store doesn't support tags, it ignores the error.
pub(crate) async fn tags_of(
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
