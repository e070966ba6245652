//! Restores objects. Requests go out while the listings still run.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use laneway_lanes::attempts::counted;
use laneway_store::{Provider, Restoration, Store};

use crate::event::Verified;
use crate::job::pump::{Cancelled, Group, Units, pump_all};
use crate::job::running::{Made, Moved, Running};
use crate::listing::{Order, Source, SourceObject};
use crate::location::url;
use crate::{Error, Op, RestoreRequest};

/// Carries out a request up to its last event.
pub(crate) async fn run(job: Arc<Running>, request: RestoreRequest) {
    match request.check() {
        Err(error) => {
            let source = request.targets.first().map(ToString::to_string).unwrap_or_default();
            job.fail(Op::Restore, source, None, error).await;
        }
        Ok(()) => {
            let request = Arc::new(request);
            pump_all(&job, |units| search(&job, &request, units)).await;
            job.tell_where_nothing_is_left(&request.filter, &request.targets).await;
        }
    }
    job.finish().await;
}

async fn search(job: &Arc<Running>, request: &Arc<RestoreRequest>, units: Units) {
    for target in &request.targets {
        let Some((provider, id)) = target.as_object() else { continue };
        let source = Source::of(id, request.recursive);
        if let Err(error) = search_one(job, provider, &source, request, &units).await {
            job.fail(Op::Restore, target.to_string(), None, error).await;
        }
    }
}

async fn search_one(
    job: &Arc<Running>,
    provider: Provider,
    source: &Source,
    request: &Arc<RestoreRequest>,
    units: &Units,
) -> Result<(), Error> {
    let store = job.store(provider)?;
    let mut objects = source.objects(store, Order::Arrival);
    while let Some(arrived) = objects.next().await? {
        let mut group = Group::new();
        for object in arrived.into_iter().filter(|object| object.is_taken_by(&request.filter)) {
            job.progress.found(1, 0);
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
    job: &Arc<Running>,
    store: &Store,
    request: &Arc<RestoreRequest>,
    group: &mut Group<SourceObject>,
    units: &Units,
) -> Result<(), Cancelled> {
    let (job, store, request) = (Arc::clone(job), store.clone(), Arc::clone(request));
    let restore = move |objects: Vec<SourceObject>| async move {
        let one = |object| counted(one(&job, &store, &request, object));
        let mut restored: FuturesUnordered<_> = objects.into_iter().map(one).collect();
        while restored.next().await.is_some() {}
    };
    group.send(units, restore).await
}

const NOT_NEEDED: &str = "it is in no archive";
const UNDER_WAY: &str = "it is already being restored";

/// Restores one object, or only reports it. An object that a listing shows to be readable takes no request.
async fn one(job: &Running, store: &Store, request: &RestoreRequest, object: SourceObject) {
    let begun = job.begin(Op::Restore, url(store.provider(), &object.id), None);
    let size = object.meta.as_ref().map_or(0, |meta| meta.size);
    if object.meta.as_ref().is_some_and(|meta| !meta.may_be_archived()) {
        return job.skip(begun, size, NOT_NEEDED).await;
    }
    if request.dry_run {
        let looked = match object.meta {
            Some(_) => Ok(size),
            None => store.head(&object.id, None).await.map(|meta| meta.size),
        };
        return match looked {
            Ok(size) => job.planned(begun, size).await,
            Err(error) => job.end(begun, 0, Err(error.into())).await,
        };
    }
    let moved = match store.restore(&object.id, &request.options).await {
        Ok(Restoration::NotNeeded) => return job.skip(begun, size, NOT_NEEDED).await,
        Ok(Restoration::UnderWay) => return job.skip(begun, size, UNDER_WAY).await,
        Ok(_) => {
            let made = Made::default();
            Ok(Moved { bytes: 0, verified: Verified::NotApplicable, atomic: true, made })
        }
        Err(error) => Err(Error::from(error)),
    };
    job.end(begun, size, moved).await;
}
