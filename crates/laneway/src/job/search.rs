//! Code that several searches of copy jobs share: those for uploads, for downloads, and for copies between
//! stores.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _, stream};
use laneway_store::{ObjectId, ObjectMeta, Provider, Store};

use crate::job::existing::{EXISTS, ExistingKeys};
use crate::job::pump::{CancelledJob, Units};
use crate::job::running::{ActiveItem, JobState};
use crate::listing::{KeyOrder, ListingSource, SourceObject, glob};
use crate::location::pattern::Pattern;
use crate::{CopyRequest, Error, Location, Op};

/// The maximum number of concurrent lookups of named objects. The names come in batches of 256, so a batch
/// takes two round trips.
const ASKED_AT_ONCE: usize = 128;

/// The result of a HEAD request for an object, or `None` if Laneway sent no such request.
pub(crate) type HeadOutcome = Option<Result<ObjectMeta, Error>>;

/// The destination of a copy to a store: a key, or a prefix of the new keys.
#[derive(Clone, Copy)]
pub(crate) struct Prefix<'a> {
    pub(crate) provider: Provider,
    pub(crate) bucket: &'a str,
    pub(crate) key: &'a str,
}

impl Prefix<'_> {
    pub(crate) fn is_folder(&self) -> bool {
        self.key.is_empty() || self.key.ends_with('/')
    }
}

/// Sends a HEAD for each wanted object of a page, if no listing has shown the object's metadata. Many of
/// these requests run concurrently. Returns the results in the page's order.
pub(crate) async fn asked(
    store: &Store,
    page: &[SourceObject],
    is_wanted: impl Fn(&ObjectId) -> bool,
) -> Vec<HeadOutcome> {
    let is_asked = |object: &&SourceObject| object.meta.is_none() && is_wanted(&object.id);
    let ids = page.iter().map(|object| Some(object).filter(is_asked).map(|object| object.id.clone()));
    let ids: Vec<Option<ObjectId>> = ids.collect();
    if ids.iter().all(Option::is_none) {
        return ids.into_iter().map(|_| None).collect();
    }
    let ask = |id: Option<ObjectId>| async move { Some(store.head(&id?, None).await.map_err(Error::from)) };
    stream::iter(ids).map(ask).buffered(ASKED_AT_ONCE).collect().await
}

/// Returns the sources of a job in their order. Sends a HEAD for each wanted source that is a single
/// object. The HEADs for the next sources run concurrently. `store` returns the store that receives a HEAD.
pub(crate) fn asked_ahead<'a>(
    request: &'a CopyRequest,
    store: impl Fn(Provider) -> Result<Store, Error> + 'a,
    is_wanted: impl Fn(&Store, &ObjectId) -> bool + 'a,
) -> impl Stream<Item = (&'a Location, HeadOutcome)> + 'a {
    let is_single = request.files_from.is_none() && request.inventory.is_none();
    let object = move |source: &Location| {
        let (provider, id) = source.as_object().filter(|_| is_single)?;
        let is_one = !ListingSource::of(id.clone(), request.recursive).is_listed();
        let store = is_one.then(|| store(provider))?;
        let is_wanted = store.as_ref().map_or(true, |store| is_wanted(store, &id));
        is_wanted.then_some((store, id))
    };
    let ask = move |source: &'a Location| {
        let object = object(source);
        async move {
            let Some((store, id)) = object else { return (source, None) };
            let asked = match store {
                Ok(store) => store.head(&id, None).await.map_err(Error::from),
                Err(error) => Err(error),
            };
            (source, Some(asked))
        }
    };
    stream::iter(&request.sources).map(ask).buffered(ASKED_AT_ONCE)
}

/// A search for the items of a copy job.
pub(crate) struct Search {
    pub(crate) job: Arc<JobState>,
    pub(crate) request: Arc<CopyRequest>,
    pub(crate) units: Units,
    pub(crate) names: TakenNames,
    /// Finds existing destinations, if the job skips them.
    pub(crate) existing: Option<ExistingKeys>,
}

impl Search {
    pub(crate) fn new(job: Arc<JobState>, request: Arc<CopyRequest>, units: Units) -> Self {
        let is_pattern = |source: &Location| match source {
            Location::Object { key, .. } => Pattern::parse(key).is_some(),
            Location::Local(path) => glob::is_pattern(path),
            Location::Version { .. } | Location::Standard => false,
        };
        let may_meet = request.sources.len() > 1 || request.sources.iter().any(is_pattern);
        let existing = (request.no_clobber && request.destination.is_object()).then(ExistingKeys::default);
        Self { job, request, units, names: TakenNames::new(may_meet), existing }
    }

    /// Returns the order in which the job reads listings. With `no_clobber`, this is the order of keys.
    /// Destinations that are looked up together are then neighbours, so one page shows many of them.
    pub(crate) fn order(&self) -> KeyOrder {
        if self.request.no_clobber { KeyOrder::Keys } else { KeyOrder::Arrival }
    }

    /// Reports a failure that happened before an item could begin.
    pub(crate) async fn fail(&self, op: Op, source: String, error: Error) {
        let destination = Some(self.request.destination.to_string());
        self.job.fail(op, source, destination, error).await;
    }

    /// Returns the targets whose destinations don't exist, and reports the others as skipped. `begin` returns
    /// a skipped target's item and size. If the destinations are part of a tree, `tree` is their common
    /// prefix.
    ///
    /// # Errors
    /// If the job was cancelled.
    pub(crate) async fn unless_existing<T>(
        &mut self,
        store: &Store,
        targets: Vec<T>,
        tree: Option<&str>,
        id: impl Fn(&T) -> &ObjectId,
        begin: impl Fn(&JobState, &T) -> (ActiveItem, u64),
    ) -> Result<Vec<T>, CancelledJob> {
        let Some(existing) = &mut self.existing else { return Ok(targets) };
        let ids: Vec<&ObjectId> = targets.iter().map(id).collect();
        let asked = self.job.unless_cancelled(existing.among(store, &ids, tree)).await;
        let mut left = Vec::with_capacity(targets.len());
        for (target, exists) in targets.into_iter().zip(asked.map_err(|_| CancelledJob)?) {
            if exists {
                let (begun, size) = begin(&self.job, &target);
                self.job.skip(begun, size, EXISTS).await;
            } else {
                left.push(target);
            }
        }
        Ok(left)
    }
}

/// The reason why a job refuses a name that the destination's file system treats as equal to another one.
pub(crate) const FOLDED: &str =
    "the destination has a name that differs only in case, and its file system treats both names as the same";

/// The names already used as destinations. To save memory, a name is stored as a keyed hash of 64 bits, which
/// takes 8 to 16 bytes. The chance that two of ten million names have the same hash is about 1 in 400,000.
#[derive(Debug, Default)]
pub(crate) struct TakenNames {
    /// `None` if no two sources can collide.
    taken: Option<HashSet<u64>>,
    keys: RandomState,
}

impl TakenNames {
    /// Returns an empty set for a job. `may_meet` says that two sources of the job can have the same
    /// destination. Several sources can have the same destination. So can the matches of a pattern, because
    /// objects from several folders go into one. In a single tree, all names differ, so no names are
    /// recorded.
    pub(crate) fn new(may_meet: bool) -> Self {
        Self { taken: may_meet.then(HashSet::new), keys: RandomState::new() }
    }

    /// Records a name. Returns false if it was recorded already.
    pub(crate) fn is_new(&mut self, name: &str) -> bool {
        match &mut self.taken {
            Some(taken) => taken.insert(self.keys.hash_one(name)),
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_once() {
        let mut names = TakenNames::new(true);
        assert!(names.is_new("a") && names.is_new("b") && !names.is_new("a"));
    }

    #[test]
    fn a_single_tree_keeps_no_names() {
        let mut names = TakenNames::new(false);
        assert!(names.is_new("a") && names.is_new("a"));
    }
}
