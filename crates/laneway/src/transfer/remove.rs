//! Removes objects. Laneway sends batches of deletes while it is still listing.

pub(crate) mod folders;
mod markers;

use std::sync::Arc;

use futures_util::future::join;
use futures_util::{StreamExt as _, stream};
use laneway_lanes::attempts::counted;
use laneway_store::{Condition, Deletion, ObjectId, Provider, Store, Version, VersionNames};

use crate::event::Verified;
use crate::job::pump::{CancelledJob, ITEM_COST, Units, pump_all};
use crate::job::running::{ActiveItem, JobState, ResultObject, TransferOutcome};
use crate::listing::names_from::{LineRules, ListedName, NameList};
use crate::listing::{KeyOrder, ListingSource, SourceObject};
use crate::location::url;
use crate::manifest::Targets;
use crate::transfer::moved;
use crate::{Error, Location, Op, RemoveRequest};
use markers::{BatchHandle, Markers};

/// The estimated memory, in bytes, of each key in a batch.
pub(crate) const KEY_COST: usize = 2 << 10;

/// The maximum number of concurrent lookups of versions. Laneway looks up versions before it removes them.
const LOOKS_MAX: usize = 16;

/// Carries out a remove request. Returns after the job's last event.
pub(crate) async fn run(job: Arc<JobState>, request: RemoveRequest) {
    match request.check() {
        Err(error) => {
            let source = request.targets.first().map(ToString::to_string).unwrap_or_default();
            job.fail(Op::Remove, source, None, error).await;
        }
        Ok(()) => {
            let manifest = request.manifest.as_ref();
            let targets = Targets::of(&request.targets, request.recursive || request.all_versions);
            let (subject, is_dry) = (request.subject(), request.dry_run);
            if let Err(error) = job.keep_manifest_taking(targets, manifest, subject, is_dry).await {
                let target = error.url().unwrap_or_default().to_owned();
                job.fail(Op::Remove, target, None, error).await;
                return job.finish().await;
            }
            if request.missing_is_fine {
                job.takes_missing();
            }
            let removing = pump_all(&job, |units| search(&job, &request, units));
            if folders::are_taken(&request) {
                join(removing, folders::learn(&job, &request.targets)).await;
                folders::remove_of(&job, &request.targets).await;
            } else {
                removing.await;
            }
            job.tell_where_nothing_is_left(&request.filter, &request.targets).await;
        }
    }
    job.finish().await;
}

async fn search(job: &Arc<JobState>, request: &RemoveRequest, units: Units) {
    if let Some(names) = request.files_from.as_ref().filter(|_| request.targets.is_empty())
        && let Err(error) = search_urls(job, names, request, &units).await
    {
        job.fail(Op::Remove, names.to_string(), None, error).await;
    }
    for target in &request.targets {
        let Some((provider, id)) = target.as_object() else { continue };
        let source = ListingSource {
            all_versions: request.all_versions,
            names: request.files_from.clone().map(|names| (names, LineRules::Exact)),
            inventory: request.inventory.clone().map(|at| (at, Arc::clone(&job.engine))),
            ..ListingSource::of(id, request.recursive)
        };
        if let Err(error) = search_one(job, provider, &source, request, &units).await
            && !(request.missing_is_fine && error.is_not_found() && !error.is_about_bucket())
        {
            job.fail(Op::Remove, target.to_string(), None, error).await;
        }
    }
}

/// Removes the folders of a tree without objects. Returns whether it has removed any.
async fn has_removed_folders(
    job: &Arc<JobState>,
    store: &Store,
    source: &ListingSource,
    request: &RemoveRequest,
) -> bool {
    let at = ObjectId::new(&source.bucket, &source.key);
    folders::are_taken(request) && folders::remove(job, store, &at).await.is_ok_and(|gone| gone > 0)
}

async fn search_one(
    job: &Arc<JobState>,
    provider: Provider,
    source: &ListingSource,
    request: &RemoveRequest,
    units: &Units,
) -> Result<(), Error> {
    let store = job.store(provider)?;
    let mut objects = source.objects(store, KeyOrder::Arrival);
    let mut batches = Batches::new(store.delete_many_max());
    let mut markers = Markers::default();
    // An inventory may be days old, so remove only the versions that it lists.
    let is_bound = request.inventory.is_some();
    let ended = loop {
        let arrived: Vec<_> = match objects.next().await {
            Ok(Some(arrived)) => {
                arrived.into_iter().filter(|object| object.is_taken_by(&request.filter)).collect()
            }
            Ok(None) => break Ok(()),
            Err(error) if error.is_not_found() && has_removed_folders(job, store, source, request).await => {
                break Ok(());
            }
            Err(error) => break Err(error),
        };
        // No object lies below the key, so the listing takes it for an object's key. But it may also be the
        // name of a tree of empty folders.
        if let [SourceObject { id, meta: None, .. }] = &arrived[..]
            && id.version.is_none()
            && has_removed_folders(job, store, source, request).await
            && job.unless_cancelled(store.head(id, None)).await?.is_err_and(|error| error.is_not_found())
        {
            continue;
        }
        if let Some(error) = request.inventory.as_ref().and_then(|_| unbound(store, &arrived)) {
            break Err(error);
        }
        job.progress.found(arrived.len() as u64, 0);
        if request.dry_run {
            let run = counted(plan(Arc::clone(job), store.clone(), arrived));
            if units.small(ITEM_COST, run).await.is_err() {
                return Ok(());
            }
            continue;
        }
        for batch in batches.full(markers.take(arrived)) {
            if send(job, store, batch, Some(&markers), is_bound, units).await.is_err() {
                return Ok(());
            }
        }
        if markers.is_full()
            && send_rest(job, store, &mut batches, &mut markers, false, is_bound, units).await.is_err()
        {
            return Ok(());
        }
    };
    // Remove the objects that the listing found, even if it failed later. Only the delete markers of the last
    // key then stay. Ignore an error here: it only means that the job was cancelled.
    let _ = send_rest(job, store, &mut batches, &mut markers, ended.is_ok(), is_bound, units).await;
    ended
}

/// Returns an error if the inventory doesn't say which version of an object to remove. Laneway might
/// otherwise remove a version that was written after the inventory was made.
fn unbound(store: &Store, objects: &[SourceObject]) -> Option<Error> {
    let names = store.capabilities().versions;
    let version = |object: &SourceObject| object.meta.as_ref().and_then(|meta| meta.version.clone());
    let is_bound = |object: &&SourceObject| {
        matches!(
            (names, version(object)),
            (VersionNames::Generation, Some(Version::Generation(_)))
                | (VersionNames::ETagAndId, Some(Version::ETag(_)))
        )
    };
    let object = objects.iter().find(|object| !is_bound(object))?;
    let wanted = match names {
        VersionNames::Generation => "generation",
        _ => "ETag",
    };
    let why = format!("the inventory lacks its {wanted}, so a newer version could be removed by mistake");
    Some(Error::refused(url(store.provider(), &object.id), why))
}

/// Removes the versions that still wait for a full batch. Once all versions are gone, removes the delete
/// markers of the same keys.
async fn send_rest(
    job: &Arc<JobState>,
    store: &Store,
    batches: &mut Batches,
    markers: &mut Markers,
    is_all: bool,
    is_bound: bool,
    units: &Units,
) -> Result<(), CancelledJob> {
    send(job, store, batches.rest(), Some(markers), is_bound, units).await?;
    if markers.is_empty() {
        return Ok(());
    }
    let (gone, kept) = markers.settled(is_all).await?;
    for marker in kept {
        let begun = begin(job, store, &marker.id);
        let why = "the delete marker is kept: without it, a version that could not be removed would become the live object again";
        let error = Error::refused(url(store.provider(), &marker.id), why);
        job.end(begun, 0, Err(error)).await;
    }
    let mut gone = gone.into_iter().peekable();
    while gone.peek().is_some() {
        let batch = gone.by_ref().take(store.delete_many_max()).collect();
        send(job, store, batch, None, false, units).await?;
    }
    Ok(())
}

/// Removes the objects whose full URLs a file lists. Consecutive lines with the same bucket go into one
/// batch.
async fn search_urls(
    job: &Arc<JobState>,
    names: &Location,
    request: &RemoveRequest,
    units: &Units,
) -> Result<(), Error> {
    let mut names = NameList::start(names, LineRules::Exact)?;
    let mut waiting: Vec<SourceObject> = Vec::new();
    let mut at = None;
    let ended = loop {
        let named = match names.next().await {
            Ok(Some(named)) => named,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        for ListedName { name, line } in named {
            let (provider, id) = match object_of(&name) {
                Ok(object) => object,
                Err(error) => {
                    job.fail(Op::Remove, name, None, error.of_line(Some(line))).await;
                    continue;
                }
            };
            let store = job.store(provider)?;
            let place = Some((provider, id.bucket.clone()));
            if (at != place || waiting.len() >= store.delete_many_max())
                && flush(job, at.as_ref(), &mut waiting, request, units).await?.is_err()
            {
                return Ok(());
            }
            at = place;
            waiting.push(SourceObject { id, meta: None, name, in_tree: true, line: Some(line) });
        }
    };
    // Ignore an error here: it only means that the job was cancelled.
    let _ = flush(job, at.as_ref(), &mut waiting, request, units).await?;
    ended
}

/// Returns the object or version that a URL names.
fn object_of(url: &str) -> Result<(Provider, ObjectId), Error> {
    match url.parse::<Location>()?.as_object() {
        Some((provider, id)) if !id.key.is_empty() => Ok((provider, id)),
        _ => {
            Err(Error::usage(url, "this is not an object's URL, such as gs://bucket/key or s3://bucket/key"))
        }
    }
}

async fn flush(
    job: &Arc<JobState>,
    at: Option<&(Provider, String)>,
    waiting: &mut Vec<SourceObject>,
    request: &RemoveRequest,
    units: &Units,
) -> Result<Result<(), CancelledJob>, Error> {
    let Some((provider, _)) = at else { return Ok(Ok(())) };
    let store = job.store(*provider)?;
    let batch = std::mem::take(waiting);
    job.progress.found(batch.len() as u64, 0);
    Ok(match request.dry_run {
        true => units.small(ITEM_COST, counted(plan(Arc::clone(job), store.clone(), batch))).await,
        false => send(job, store, batch, None, false, units).await,
    })
}

/// Collects objects into batches of `size` objects each.
#[derive(Debug)]
struct Batches {
    waiting: Vec<SourceObject>,
    size: usize,
}

impl Batches {
    fn new(size: usize) -> Self {
        Self { waiting: Vec::new(), size }
    }

    /// Adds some objects, and returns the batches that are full now.
    fn full(&mut self, arrived: Vec<SourceObject>) -> Vec<Vec<SourceObject>> {
        self.waiting.extend(arrived);
        let mut full = Vec::new();
        while self.waiting.len() >= self.size {
            let rest = self.waiting.split_off(self.size);
            full.push(std::mem::replace(&mut self.waiting, rest));
        }
        full
    }

    /// Returns the remaining objects, which don't fill a batch.
    fn rest(&mut self) -> Vec<SourceObject> {
        std::mem::take(&mut self.waiting)
    }
}

async fn send(
    job: &Arc<JobState>,
    store: &Store,
    batch: Vec<SourceObject>,
    markers: Option<&Markers>,
    is_bound: bool,
    units: &Units,
) -> Result<(), CancelledJob> {
    if batch.is_empty() {
        return Ok(());
    }
    let cost = ITEM_COST + batch.len() * KEY_COST;
    let above = markers.map(Markers::above);
    units.small(cost, counted(remove(Arc::clone(job), store.clone(), batch, above, is_bound))).await
}

/// Reports what a dry run would remove. Laneway looks up objects that the user named, because they may not
/// exist. If the caller has no permission for the lookup, it reports the object without its size.
async fn plan(job: Arc<JobState>, store: Store, targets: Vec<SourceObject>) {
    for target in targets {
        let begun = ActiveItem { line: target.line, ..begin(&job, &store, &target.id) };
        let size = match target.meta {
            Some(meta) => Ok(meta.size),
            None if target.id.version.is_some() => moved::look_at_version(&store, &target.id).await,
            None => match store.head(&target.id, None).await {
                Ok(meta) => Ok(meta.size),
                Err(error) if error.is_permission() => Ok(0),
                Err(error) => Err(error.into()),
            },
        };
        match size {
            Ok(size) => job.planned(begun, size).await,
            Err(error) => job.end(begun, 0, Err(error)).await,
        }
    }
}

fn begin(job: &JobState, store: &Store, id: &ObjectId) -> ActiveItem {
    job.begin(Op::Remove, url(store.provider(), id), None)
}

/// Removes a batch. With `is_bound`, removes each object only if it still has the version that the inventory
/// lists.
async fn remove(
    job: Arc<JobState>,
    store: Store,
    targets: Vec<SourceObject>,
    above: Option<BatchHandle>,
    is_bound: bool,
) {
    let mut begun = Vec::with_capacity(targets.len());
    let mut objects = Vec::with_capacity(targets.len());
    let is_listed = targets.iter().all(|target| target.meta.is_some());
    let mut sizes = Vec::with_capacity(targets.len());
    let mut bucket = String::new();
    let mut named = None;
    for target in targets {
        begun.push(ActiveItem { line: target.line, ..begin(&job, &store, &target.id) });
        sizes.push(target.meta.as_ref().map_or(0, |meta| meta.size));
        named = Some(target.id.clone()).filter(|_| !is_listed);
        let version = target.meta.and_then(|meta| meta.version).filter(|_| is_bound);
        objects.push(Deletion { id: target.id.version, version, ..Deletion::any(target.id.key) });
        bucket = target.id.bucket;
    }
    let results = match (&objects[..], &named) {
        ([_], Some(id)) => vec![remove_named(&store, id, job.is_missing_fine()).await],
        _ => remove_together(&store, &bucket, &objects, is_listed).await,
    };
    if let Some(above) = above {
        let is_left = |error: &Error| !error.is_not_found();
        let ends = objects.iter().zip(&results);
        above
            .end(ends.filter(|(_, end)| end.as_ref().is_err_and(is_left)).map(|(object, _)| &object.key[..]));
    }
    for ((begun, result), size) in begun.into_iter().zip(results).zip(sizes) {
        let moved = TransferOutcome {
            bytes: size,
            verified: Verified::NotApplicable,
            atomic: true,
            made: ResultObject::default(),
        };
        let result = result.map_err(|error| match is_bound && error.is_precondition() {
            true => Error::source(
                begun.source.clone(),
                "replaced since the inventory was made; the new version is kept",
            ),
            false => error,
        });
        job.end(begun, size, result.map(|()| moved)).await;
    }
}

/// Removes listed objects, each given with its size. In a dry run, only reports them. An object that another
/// program has already removed counts as removed. An object that was replaced after the listing stays.
pub(crate) async fn batch(
    job: &JobState,
    store: &Store,
    bucket: &str,
    objects: Vec<(Deletion, u64)>,
    dry_run: bool,
) {
    let (objects, sizes): (Vec<_>, Vec<_>) = objects.into_iter().unzip();
    let ids: Vec<_> = objects.iter().map(|object| ObjectId::new(bucket, &object.key)).collect();
    let begun: Vec<_> = ids.iter().map(|id| begin(job, store, id)).collect();
    if dry_run {
        for (begun, size) in begun.into_iter().zip(sizes) {
            job.planned(begun, size).await;
        }
        return;
    }
    let results = store.delete_many(bucket, &objects).await;
    for (((begun, result), size), id) in begun.into_iter().zip(results).zip(sizes).zip(&ids) {
        let moved = TransferOutcome {
            bytes: size,
            verified: Verified::NotApplicable,
            atomic: true,
            made: ResultObject::default(),
        };
        job.end(begun, size, moved::removed_object(store, id, result).map(|()| moved)).await;
    }
}

/// Removes many objects of a bucket with few requests. Versions that the user named are looked up first,
/// because a store that ignores versions would remove the live object instead.
async fn remove_together(
    store: &Store,
    bucket: &str,
    objects: &[Deletion],
    is_listed: bool,
) -> Vec<Result<(), Error>> {
    let look = |object: Deletion| async move {
        match object.id {
            Some(version) if !is_listed => {
                let id = ObjectId::new(bucket, object.key).at_version(version);
                moved::look_at_version(store, &id).await.map(drop)
            }
            _ => Ok(()),
        }
    };
    let mut ends: Vec<_> = stream::iter(objects.to_vec()).map(look).buffered(LOOKS_MAX).collect().await;
    let known: Vec<_> = objects
        .iter()
        .zip(&ends)
        .filter(|(_, looked)| looked.is_ok())
        .map(|(object, _)| object.clone())
        .collect();
    let removed = store.delete_many(bucket, &known).await;
    for (end, removed) in ends.iter_mut().filter(|looked| looked.is_ok()).zip(removed) {
        *end = removed.map_err(Error::from);
    }
    ends
}

/// Removes an object that the user named. A missing object is an error, unless `is_missing_fine`. If the
/// store reports success even for a missing object, Laneway looks the object up first. If the credentials
/// permit deletes but not this lookup, the answer to the delete decides.
async fn remove_named(store: &Store, id: &ObjectId, is_missing_fine: bool) -> Result<(), Error> {
    if id.version.is_some() {
        moved::look_at_version(store, id).await?;
    } else if !store.capabilities().delete_tells_missing && !is_missing_fine {
        match store.head(id, None).await {
            Err(error) if !error.is_permission() => return Err(error.into()),
            _ => {}
        }
    }
    Ok(store.delete(id, &Condition::None).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: &str, recursive: bool) -> Result<(), Error> {
        RemoveRequest::new(vec![target.parse().unwrap()]).recursive(recursive).check()
    }

    #[test]
    fn a_bucket_or_a_folder_is_not_removed_without_the_recursive_flag() {
        assert!(
            check("gs://b", false).unwrap_err().is_usage()
                && check("gs://b/p/", false).unwrap_err().is_usage()
        );
        assert!(check("gs://b", true).is_ok() && check("gs://b/p", false).is_ok());
    }

    #[test]
    fn batches_are_full_however_a_listing_arrives() {
        let object = |i: usize| SourceObject {
            id: ObjectId::new("b", i.to_string()),
            meta: None,
            name: String::new(),
            line: None,
            in_tree: true,
        };
        for portion in [1, 22, 100, 999] {
            let mut batches = Batches::new(100);
            let all: Vec<_> = (0..1050).map(object).collect();
            let full: Vec<_> = all.chunks(portion).flat_map(|some| batches.full(some.to_vec())).collect();
            assert!(full.len() == 10 && full.iter().all(|batch| batch.len() == 100), "{portion}");
            let rest = batches.rest();
            assert_eq!((rest.len(), rest[0].id.key.as_str()), (50, "1000"));
        }
    }

    #[test]
    fn only_objects_are_removed() {
        assert!(
            check("/etc/passwd", true).unwrap_err().is_usage()
                && check("gs://", true).unwrap_err().is_usage()
        );
    }
}
