//! Changes objects' metadata. Laneway sends the changes while it is still listing.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use laneway_lanes::attempts::counted;
use laneway_store::{MetaChange, ObjectId, ObjectMeta, PartChecksums, Provider, Store};

use crate::event::Verified;
use crate::job::pump::{ItemGroup, Units, pump_all};
use crate::job::running::{JobState, ResultObject, TransferOutcome};
use crate::listing::{KeyOrder, ListingSource, SourceObject};
use crate::location::url;
use crate::transfer::copy::{fill, tags_of};
use crate::transfer::upload::{CONFLICTS_MAX, StoreUpload, begun};
use crate::{Error, Op, SetMetaRequest};

/// Carries out a request to change metadata. Returns after the job's last event.
pub(crate) async fn run(job: Arc<JobState>, request: SetMetaRequest) {
    match request.check() {
        Err(error) => {
            let source = request.targets.first().map(ToString::to_string).unwrap_or_default();
            job.fail(Op::SetMeta, source, None, error).await;
        }
        Ok(()) => {
            let request = Arc::new(request);
            pump_all(&job, |units| search(&job, &request, units)).await;
            job.tell_where_nothing_is_left(&request.filter, &request.targets).await;
        }
    }
    job.finish().await;
}

async fn search(job: &Arc<JobState>, request: &Arc<SetMetaRequest>, units: Units) {
    for target in &request.targets {
        let Some((provider, id)) = target.as_object() else { continue };
        let source = ListingSource::of(id, request.recursive);
        if let Err(error) = search_one(job, provider, &source, request, &units).await {
            job.fail(Op::SetMeta, target.to_string(), None, error).await;
        }
    }
}

async fn search_one(
    job: &Arc<JobState>,
    provider: Provider,
    source: &ListingSource,
    request: &Arc<SetMetaRequest>,
    units: &Units,
) -> Result<(), Error> {
    let store = job.store(provider)?;
    let mut objects = source.objects(store, KeyOrder::Arrival);
    while let Some(arrived) = objects.next().await? {
        let mut group = ItemGroup::new();
        for object in arrived.into_iter().filter(|object| object.is_taken_by(&request.filter)) {
            job.progress.found(1, 0);
            if request.change.rewrites() && is_known_large(job, store, &object) && !request.dry_run {
                let (job, store, request) = (Arc::clone(job), store.clone(), Arc::clone(request));
                let run = async move { one(&job, &store, &request, object).await };
                if units.large(counted(run)).await.is_err() {
                    return Ok(());
                }
                continue;
            }
            group.add(object, 0);
            if group.is_full() && send(job, store, request, &mut group, units).await.is_err() {
                return Ok(());
            }
        }
        if send(job, store, request, &mut group, units).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

async fn send(
    job: &Arc<JobState>,
    store: &Store,
    request: &Arc<SetMetaRequest>,
    group: &mut ItemGroup<SourceObject>,
    units: &Units,
) -> Result<(), crate::job::pump::CancelledJob> {
    let (job, store, request) = (Arc::clone(job), store.clone(), Arc::clone(request));
    let change = move |objects: Vec<SourceObject>| async move {
        let one = |object| counted(one(&job, &store, &request, object));
        let mut changes: FuturesUnordered<_> = objects.into_iter().map(one).collect();
        while changes.next().await.is_some() {}
    };
    group.send(units, change).await
}

/// Changes one object. A dry run only reports the object. If the user named the object, so that no listing has
/// shown that it exists, the dry run looks it up first.
async fn one(job: &JobState, store: &Store, request: &SetMetaRequest, object: SourceObject) {
    let begun = job.begin(Op::SetMeta, url(store.provider(), &object.id), None);
    let size = object.meta.as_ref().map(|meta| meta.size);
    if request.dry_run {
        let size = match size {
            Some(size) => Ok(size),
            None => store.head(&object.id, None).await.map(|meta| meta.size),
        };
        return match size {
            Ok(size) => job.planned(begun, size).await,
            Err(error) => job.end(begun, 0, Err(error.into())).await,
        };
    }
    let changed = match request.change.rewrites() && is_known_large(job, store, &object) {
        true => change_large(job, store, &object.id, &request.change).await,
        false => match store.set_meta(&object.id, &request.change).await {
            Err(error) if is_found_large(job, store, &object, &error).await => {
                change_large(job, store, &object.id, &request.change).await
            }
            changed => changed.map_err(Error::from),
        },
    };
    let moved = changed.map(|meta| {
        let made = ResultObject::of(&meta);
        TransferOutcome { bytes: 0, verified: Verified::NotApplicable, atomic: true, made }
    });
    match size {
        Some(size) => job.end_listed(begun, size, moved).await,
        None => job.end(begun, 0, moved).await,
    }
}

/// Returns whether the listing shows that an object is too large to copy in one request.
fn is_known_large(job: &JobState, store: &Store, object: &SourceObject) -> bool {
    let is_large = |meta: &ObjectMeta| job.engine.copy_sizes.is_large(meta.size, store.capabilities());
    object.id.version.is_none() && object.meta.as_deref().is_some_and(is_large)
}

/// Returns whether a named object is too large to copy in one request. The store has refused to change the
/// object in one request, with this `error`. Requests the object's size, which was unknown until then.
async fn is_found_large(
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

/// Changes an object's metadata. Fails if another writer replaces the object at the same time. A multipart
/// upload replaces the object with the same bytes: the store copies each part from the object itself.
///
/// # Errors
/// `Precondition` if the object was replaced meanwhile; `Unsupported` if the store ignores the new metadata.
async fn change_large(
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
