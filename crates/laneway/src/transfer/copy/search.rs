//! Finds the objects to copy from store to store.

use std::sync::Arc;

use laneway_lanes::attempts::counted;
use laneway_store::{ObjectId, Provider};

use super::{CopyEnds, CopyItem, across, within};
use crate::job::pump::{CancelledJob, ItemGroup};
use crate::job::running::JobState;
use crate::job::search::{HeadOutcome, Prefix, Search, asked};
use crate::listing::ListingSource;
use crate::location::mapping::{single_key, tree_prefix};
use crate::location::url;
use crate::transfer::copy;
use crate::{Error, Op};

/// Finds the objects to copy from store to store.
pub(crate) struct CopySearch<'a> {
    search: &'a mut Search,
    to: Prefix<'a>,
}

impl<'a> CopySearch<'a> {
    pub(crate) fn new(search: &'a mut Search, to: Prefix<'a>) -> Self {
        Self { search, to }
    }

    pub(crate) fn search(&self) -> &Search {
        self.search
    }

    /// Starts the copies of all objects of one source. If the source is a single object, `ahead` can contain
    /// its metadata, which was requested in advance.
    ///
    /// # Errors
    /// If the source can't be listed. If only a single object fails, an event reports the failure, and this
    /// function returns no error.
    pub(super) async fn source(
        &mut self,
        provider: Provider,
        source: &ListingSource,
        ahead: HeadOutcome,
    ) -> Result<(), Error> {
        let ends = CopyEnds {
            from: self.search.job.store(provider)?.as_source(),
            to: self.search.job.store(self.to.provider)?.clone(),
            request: Arc::clone(&self.search.request),
        };
        let is_folder = self.to.is_folder();
        let name = self.search.request.tree_name(&source.bucket, &source.key);
        let prefix = tree_prefix(self.to.key, is_folder, &name);
        let tree = source.recursive.then_some(prefix.as_str());
        let is_one_bucket = ends.is_within() && source.bucket == self.to.bucket;
        if is_one_bucket && copy::rename_folder(self.search, &ends, source, &prefix).await? {
            return Ok(());
        }
        let mut objects = source.objects(&ends.from, self.search.order());
        let mut ahead = Some(ahead).filter(Option::is_some);
        while let Some(mut page) = objects.next().await? {
            page.retain(|from| from.is_taken_by(&self.search.request.filter));
            // If there is a manifest, request each object's metadata. The next run compares the metadata with
            // the manifest, to skip unchanged objects.
            let answers = match ahead.take() {
                Some(answer) => vec![answer],
                None => asked(&ends.from, &page, |_| self.search.job.has_manifest()).await,
            };
            let mut group = ItemGroup::new();
            for (mut from, answer) in page.into_iter().zip(answers) {
                // If the metadata can't be read, try the copy all the same. If the copy fails too, its error
                // names the cause.
                if let Some(Ok(meta)) = answer {
                    from.meta = Some(Box::new(meta));
                }
                let key = match from.in_tree {
                    true => format!("{prefix}{}", from.name),
                    false => single_key(self.to.key, is_folder, &from.name),
                };
                let item = CopyItem { to: ObjectId::new(self.to.bucket, key), from };
                if let Some(item) = self.admit(&ends, item).await {
                    group.add(item, 0);
                }
                if group.is_full() && self.send(&ends, &mut group, tree).await.is_err() {
                    return Ok(());
                }
            }
            if self.send(&ends, &mut group, tree).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the item if it is to be copied. Otherwise reports that the copy is refused, or that it is
    /// skipped because a manifest lists it as done.
    pub(crate) async fn admit(&mut self, ends: &CopyEnds, item: CopyItem) -> Option<CopyItem> {
        let source = url(ends.from.provider(), &item.from.id);
        let destination = url(self.to.provider, &item.to);
        let why = if source == destination {
            "can't be copied to itself".to_owned()
        } else if !self.search.names.is_new(&item.to.key) {
            format!("another source also maps to {destination}")
        } else {
            self.search.job.progress.found(1, item.size());
            if let Some(begun) = self.search.job.done_before(|| ends.begin(&self.search.job, &item)) {
                self.search.job.skip_done(begun, item.size()).await;
                return None;
            }
            return Some(item);
        };
        let error = Error::refused(&source, why);
        self.search.job.fail(Op::Copy, source, Some(destination), error).await;
        None
    }

    /// Starts the copies of a group. In a dry run, only reports them. Skips archived objects and, if the
    /// request says so, objects that exist at the destination. The object's size and the two stores decide
    /// how it is copied.
    ///
    /// # Errors
    /// If the job was cancelled.
    pub(crate) async fn send(
        &mut self,
        ends: &CopyEnds,
        found: &mut ItemGroup<CopyItem>,
        tree: Option<&str>,
    ) -> Result<(), CancelledJob> {
        let begin = |job: &JobState, item: &CopyItem| (ends.begin(job, item), item.size());
        let found = found.take();
        let items = self.search.unless_existing(&ends.to, found, tree, |item| &item.to, begin).await?;
        let Search { job, request, units, .. } = &*self.search;
        let mut group = ItemGroup::new();
        for item in items {
            if item.from.meta.as_ref().is_some_and(|meta| meta.archived) {
                job.skip_archived(ends.begin(job, &item), item.size()).await;
            } else if request.dry_run {
                group.add(item, 0);
            } else if !ends.is_within() {
                across::send(units, job, ends, item).await?;
            } else if within::is_large(&item, job.engine.copy_sizes, ends.from.capabilities()) {
                units.large(counted(within::copy_one(Arc::clone(job), ends.clone(), item))).await?;
            } else {
                group.add(item, 0);
            }
        }
        let (job, ends) = (Arc::clone(job), ends.clone());
        match request.dry_run {
            true => group.send(units, |items| plan(job, ends, items)).await,
            false => group.send(units, |items| within::copy_group(job, ends, items)).await,
        }
    }
}

/// Copies one object that a search has found. If the object is small, the caller has reserved memory for it.
pub(crate) async fn one(job: Arc<JobState>, ends: CopyEnds, item: CopyItem) {
    if item.from.meta.as_ref().is_some_and(|meta| meta.archived) {
        job.skip_archived(ends.begin(&job, &item), item.size()).await;
    } else if ends.request.dry_run {
        plan(job, ends, vec![item]).await;
    } else if ends.is_within() {
        within::copy_one(job, ends, item).await;
    } else {
        across::copy_one(job, ends, item).await;
    }
}

/// Reports what a dry run would copy. Requests the metadata of objects that the user named, because they may
/// not exist.
async fn plan(job: Arc<JobState>, ends: CopyEnds, items: Vec<CopyItem>) {
    for item in items {
        let begun = ends.begin(&job, &item);
        let size = match &item.from.meta {
            Some(meta) => Ok(meta.size),
            None => ends.from.head(&item.from.id, None).await.map(|meta| meta.size),
        };
        match size {
            Ok(size) => job.planned(begun, size).await,
            Err(error) => job.end(begun, 0, Err(error.into())).await,
        }
    }
}
