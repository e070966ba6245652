//! Changes objects' metadata. Laneway sends the changes while it is still listing.

mod large;

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use laneway_lanes::attempts::counted;
use laneway_store::{Provider, Store};

use crate::event::Verified;
use crate::job::pump::{ItemGroup, Units, pump_all};
use crate::job::running::{JobState, ResultObject, TransferOutcome};
use crate::listing::{KeyOrder, ListingSource, SourceObject};
use crate::location::url;
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
            if request.change.rewrites() && large::is_known(job, store, &object) && !request.dry_run {
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
    let changed = match request.change.rewrites() && large::is_known(job, store, &object) {
        true => large::change(job, store, &object.id, &request.change).await,
        false => match store.set_meta(&object.id, &request.change).await {
            Err(error) if large::is_found(job, store, &object, &error).await => {
                large::change(job, store, &object.id, &request.change).await
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
