//! Restores objects. Laneway sends the requests while it is still listing.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use laneway_lanes::attempts::counted;
use laneway_store::{ObjectId, Provider, Restoration, Store};

use crate::event::Verified;
use crate::job::pump::{CancelledJob, ItemGroup, Units, pump_all};
use crate::job::running::{JobState, ResultObject, TransferOutcome};
use crate::listing::{KeyOrder, ListingSource, SourceObject};
use crate::location::url;
use crate::{Error, Op, RestoreRequest};

/// Carries out a restore request. Returns after the job's last event.
pub(crate) async fn run(job: Arc<JobState>, request: RestoreRequest) {
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

async fn search(job: &Arc<JobState>, request: &Arc<RestoreRequest>, units: Units) {
    for target in &request.targets {
        let Some((provider, id)) = target.as_object() else { continue };
        let mut source = ListingSource::of(id, request.recursive);
        if source.is_listed() && job.store(provider).is_ok_and(Store::restores_deleted) {
            (source.all_versions, source.soft_deleted) = (true, true);
        }
        if let Err(error) = search_one(job, provider, &source, request, &units).await {
            job.fail(Op::Restore, target.to_string(), None, error).await;
        }
    }
}

async fn search_one(
    job: &Arc<JobState>,
    provider: Provider,
    source: &ListingSource,
    request: &Arc<RestoreRequest>,
    units: &Units,
) -> Result<(), Error> {
    let store = job.store(provider)?;
    let mut objects = source.objects(store, KeyOrder::Arrival);
    let mut newest = NewestOfName::default();
    let mut group = ItemGroup::new();
    loop {
        let arrived = objects.next().await?;
        let is_over = arrived.is_none();
        let arrived = arrived.unwrap_or_default().into_iter();
        let taken: Vec<_> = arrived.filter(|object| object.is_taken_by(&request.filter)).collect();
        let taken = if source.soft_deleted { newest.of(taken, is_over) } else { taken };
        for object in taken {
            job.progress.found(1, 0);
            group.add(object, 0);
            if group.is_full() && send(job, store, request, &mut group, units).await.is_err() {
                return Ok(());
            }
        }
        if send(job, store, request, &mut group, units).await.is_err() || is_over {
            return Ok(());
        }
    }
}

/// Chooses the newest deleted version of each name. A listing returns all versions of a name one after the
/// other.
#[derive(Default)]
struct NewestOfName(Option<SourceObject>);

impl NewestOfName {
    /// Takes the next listed versions, and returns the newest version of each name that is completely listed.
    /// If `is_over`, the listing has ended.
    fn of(&mut self, versions: Vec<SourceObject>, is_over: bool) -> Vec<SourceObject> {
        let mut chosen = Vec::new();
        for version in versions {
            match self.0.replace(version) {
                Some(last) if self.0.as_ref().is_some_and(|next| next.id.key != last.id.key) => {
                    chosen.push(last)
                }
                Some(last) if self.0.as_ref().is_some_and(|next| generation(next) < generation(&last)) => {
                    self.0 = Some(last);
                }
                _ => {}
            }
        }
        if is_over {
            chosen.extend(self.0.take());
        }
        chosen
    }
}

fn generation(object: &SourceObject) -> Option<u64> {
    object.id.version.as_deref()?.parse().ok()
}

async fn send(
    job: &Arc<JobState>,
    store: &Store,
    request: &Arc<RestoreRequest>,
    group: &mut ItemGroup<SourceObject>,
    units: &Units,
) -> Result<(), CancelledJob> {
    let (job, store, request) = (Arc::clone(job), store.clone(), Arc::clone(request));
    let restore = move |objects: Vec<SourceObject>| async move {
        let one = |object| counted(one(&job, &store, &request, object));
        let mut restored: FuturesUnordered<_> = objects.into_iter().map(one).collect();
        while restored.next().await.is_some() {}
    };
    group.send(units, restore).await
}

const NOT_NEEDED: &str = "it isn't archived";
const EXISTS: &str = "an object with this name exists; use --overwrite to replace it";
const UNDER_WAY: &str = "it is already being restored";

/// Restores one object. In a dry run, only reports it. If the listing shows that the object isn't archived,
/// sends no request.
async fn one(job: &JobState, store: &Store, request: &RestoreRequest, object: SourceObject) {
    let begun = job.begin(Op::Restore, url(store.provider(), &object.id), None);
    let size = object.meta.as_ref().map_or(0, |meta| meta.size);
    let is_deleted = store.restores_deleted();
    if !is_deleted && object.meta.as_ref().is_some_and(|meta| !meta.may_be_archived()) {
        return job.skip(begun, size, NOT_NEEDED).await;
    }
    if request.dry_run {
        return match look(store, request, &object).await {
            Ok((size, None)) => job.planned(begun, size).await,
            Ok((size, Some(why))) => job.skip(begun, size, why).await,
            Err(error) => job.end(begun, 0, Err(error.into())).await,
        };
    }
    let moved = match store.restore(&object.id, &request.options).await {
        Ok(Restoration::NotNeeded) if is_deleted => return job.skip(begun, size, EXISTS).await,
        Ok(Restoration::NotNeeded) => return job.skip(begun, size, NOT_NEEDED).await,
        Ok(Restoration::UnderWay) => return job.skip(begun, size, UNDER_WAY).await,
        Ok(_) => {
            let made = ResultObject::default();
            Ok(TransferOutcome { bytes: 0, verified: Verified::NotApplicable, atomic: true, made })
        }
        Err(error) => Err(Error::from(error)),
    };
    job.end(begun, size, moved).await;
}

/// Returns the size of an object. If a restore would skip the object, also returns the reason.
async fn look(
    store: &Store,
    request: &RestoreRequest,
    object: &SourceObject,
) -> Result<(u64, Option<&'static str>), laneway_store::Error> {
    if store.restores_deleted() {
        let size = match &object.meta {
            Some(meta) => meta.size,
            None => store.find_deleted(&object.id).await?.size,
        };
        let name = ObjectId::new(&object.id.bucket, &object.id.key);
        let exists = !request.options.overwrite && store.head(&name, None).await.is_ok();
        return Ok((size, exists.then_some(EXISTS)));
    }
    match &object.meta {
        Some(meta) => Ok((meta.size, None)),
        None => match store.head(&object.id, None).await {
            // A store may bring back a deleted object by the same request.
            Err(error) if error.is_not_found() => {
                let deleted = store.find_deleted(&object.id).await;
                deleted.map(|meta| (meta.size, None)).map_err(|_| error)
            }
            found => found.map(|meta| (meta.size, (!meta.may_be_archived()).then_some(NOT_NEEDED))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_each_name_is_chosen_across_pages() {
        let version = |text: &str| {
            let (key, generation) = text.split_once('#').unwrap();
            let id = ObjectId::new("b", key).at_version(generation);
            SourceObject { id, meta: None, name: key.to_owned(), in_tree: true, line: None }
        };
        let mut newest = NewestOfName::default();
        let mut chosen = Vec::new();
        for (page, is_over) in
            [(&["a#1", "a#9"][..], false), (&["a#3", "b#2", "c#1"], false), (&["c#4"], true)]
        {
            chosen.extend(newest.of(page.iter().map(|text| version(text)).collect(), is_over));
        }
        let chosen: Vec<_> = chosen.iter().map(|object| object.id.to_string()).collect();
        assert_eq!(chosen, ["b/a#9", "b/b#2", "b/c#4"]);
    }
}
