//! What the searches for a copy job's items share, whatever their direction.

use std::sync::Arc;

use laneway_store::{ObjectId, Provider, Store};

use crate::existing::{EXISTS, Existing};
use crate::listing::Order;
use crate::names::Names;
use crate::pattern::Pattern;
use crate::pump::{Cancelled, Units};
use crate::running::{Begun, Running};
use crate::{CopyRequest, Error, Location, Op, glob};

/// Where objects are put: under a key, or what their keys begin with.
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

/// A search for the items of a copy job.
pub(crate) struct Search {
    pub(crate) job: Arc<Running>,
    pub(crate) request: Arc<CopyRequest>,
    pub(crate) units: Units,
    pub(crate) names: Names,
    /// Where objects that exist are left alone: what is known of them.
    pub(crate) existing: Option<Existing>,
}

impl Search {
    pub(crate) fn new(job: Arc<Running>, request: Arc<CopyRequest>, units: Units) -> Self {
        let is_pattern = |source: &Location| match source {
            Location::Object { key, .. } => Pattern::parse(key).is_some(),
            Location::Local(path) => glob::is_pattern(path),
            Location::Version { .. } | Location::Standard => false,
        };
        let may_meet = request.sources.len() > 1 || request.sources.iter().any(is_pattern);
        let existing = (request.no_clobber && request.destination.is_object()).then(Existing::default);
        Self { job, request, units, names: Names::new(may_meet), existing }
    }

    /// In which order listings are gone through: what is there already is looked up by neighbouring keys.
    pub(crate) fn order(&self) -> Order {
        if self.request.no_clobber { Order::Keys } else { Order::Arrival }
    }

    /// Reports what never became an item.
    pub(crate) async fn fail(&self, op: Op, source: String, error: Error) {
        let destination = Some(self.request.destination.to_string());
        self.job.fail(op, source, destination, error).await;
    }

    /// The targets whose destinations don't exist; the others are reported as skipped, with the size that `begin` says.
    /// `tree` is the prefix of all destinations if they are part of a tree.
    ///
    /// # Errors
    /// When the job was cancelled.
    pub(crate) async fn unless_existing<T>(
        &mut self,
        store: &Store,
        targets: Vec<T>,
        tree: Option<&str>,
        id: impl Fn(&T) -> &ObjectId,
        begin: impl Fn(&Running, &T) -> (Begun, u64),
    ) -> Result<Vec<T>, Cancelled> {
        let Some(existing) = &mut self.existing else { return Ok(targets) };
        let ids: Vec<&ObjectId> = targets.iter().map(id).collect();
        let asked = self.job.unless_cancelled(existing.among(store, &ids, tree)).await;
        let mut left = Vec::with_capacity(targets.len());
        for (target, exists) in targets.into_iter().zip(asked.map_err(|_| Cancelled)?) {
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
