//! Copies as they are asked for: what the two ends are decides who carries them out.

mod across;
mod tags;
mod within;

use std::sync::Arc;

use laneway_lanes::attempts::counted;
use laneway_store::{Condition, List, ObjectId, Provider, Store, Version};

use crate::event::Verified;
use crate::existing::Existing;
use crate::folder;
use crate::glob;
use crate::listing::{Source, SourceObject, folder_prefix};
use crate::location::url;
use crate::lookup::Sizes;
use crate::mapping::{self, SourceName, name_of_key, single_key, tree_prefix};
use crate::names::Names;
use crate::plan::parts::object_max;
use crate::pump::{GROUP_MAX, ITEM_COST, Unit, Units, pump, units};
use crate::running::{Begun, Moved, Running};
use crate::upload::Terms;
use crate::{CopyRequest, Error, Location, Op, download, upload};

/// Carries out a copy request to its last event.
pub(crate) async fn run(job: Arc<Running>, request: CopyRequest) {
    let op = match (&request.sources[..], &request.destination) {
        ([Location::Object { .. }, ..], Location::Object { .. }) => Op::Copy,
        (_, Location::Object { .. }) => Op::Upload,
        _ => Op::Download,
    };
    match request.check() {
        Err(error) => {
            let source = request.sources.first().map(ToString::to_string).unwrap_or_default();
            job.fail(op, source, Some(request.destination.to_string()), error).await;
        }
        Ok(()) => {
            if op == Op::Upload {
                job.progress.sends_over(&job.engine.lanes);
            }
            let (units, found) = units();
            let search = async {
                // A search that is given up because the job was cancelled has nothing to tell.
                let _ = job.unless_cancelled(search(&job, &request, units)).await;
                job.progress.scanned();
            };
            tokio::join!(search, pump(&job, found));
        }
    }
    job.finish().await;
}

impl CopyRequest {
    /// Checks what can be checked before anything is asked of a store. [`Client::copy`](crate::Client::copy) does so
    /// by itself, and tells the error as its first item.
    ///
    /// # Errors
    /// `ErrorKind::Usage`.
    pub fn check(&self) -> Result<(), Error> {
        mapping::check(&self.sources, &self.destination, download::is_folder(&self.destination))?;
        if self.recursive && self.destination == Location::Standard {
            return Err(Error::usage("-", "standard output takes one object, not a tree"));
        }
        self.check_gzip()?;
        self.check_expect_size()?;
        self.check_local()?;
        for source in &self.sources {
            if source.is_object() && source.is_written_as_folder() && !self.recursive {
                return Err(Error::usage(
                    source.to_string(),
                    "names a folder; -r copies it with what it holds",
                ));
            }
            self.check_not_into_itself(source)?;
        }
        Ok(())
    }

    /// What the disk says about local ends: several files can't become one object, and a folder can't be where a file is.
    fn check_local(&self) -> Result<(), Error> {
        for source in &self.sources {
            let Location::Local(path) = source else { continue };
            if !self.destination.is_written_as_folder() && glob::is_pattern(path) {
                let message = "a pattern may match several files and needs a folder: end it with a slash";
                return Err(Error::usage(self.destination.to_string(), message));
            }
        }
        let needs_folder = self.recursive || self.destination.is_written_as_folder();
        match &self.destination {
            Location::Local(path) if needs_folder => match folder::file_in_the_way(path) {
                Some(file) => {
                    let message = format!("{} is a file, and a folder is needed there", file.display());
                    Err(Error::refused(self.destination.to_string(), message))
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Compressing files can't be meant where no file goes into a store.
    fn check_gzip(&self) -> Result<(), Error> {
        let is_upload =
            self.destination.is_object() && self.sources.iter().any(|s| matches!(s, Location::Local(_)));
        if !self.gzip.is_empty() && !is_upload {
            let destination = self.destination.to_string();
            return Err(Error::usage(
                destination,
                "only local files on their way into a store are compressed",
            ));
        }
        if !self.gzip.is_empty()
            && let Some(encoding) = &self.put.content_encoding
        {
            let why =
                format!("the content encoding {encoding:?} can't be given to files that are compressed");
            return Err(Error::usage(self.destination.to_string(), why));
        }
        Ok(())
    }

    /// A size can only be expected of what goes into a store, and only one that an object may have.
    fn check_expect_size(&self) -> Result<(), Error> {
        let Some(expected) = self.expect_size else { return Ok(()) };
        let refused = |why: &str| Err(Error::usage(format!("{expected} bytes"), why.to_owned()));
        let is_stream = |source: &Location| matches!(source, Location::Local(_) | Location::Standard);
        match &self.destination {
            Location::Object { provider, .. } if expected > object_max(*provider) => {
                refused("expected, which is more than an object may have")
            }
            Location::Object { .. } if self.sources.iter().any(is_stream) => Ok(()),
            _ => refused("expected, where no stream goes into a store"),
        }
    }

    fn check_not_into_itself(&self, source: &Location) -> Result<(), Error> {
        let (
            Location::Object { provider, bucket, key },
            Location::Object { provider: to_provider, bucket: to_bucket, key: to_key },
        ) = (source, &self.destination)
        else {
            return Ok(());
        };
        let is_folder = self.destination.is_written_as_folder();
        let name = SourceName::Named(name_of_key(bucket, key).to_owned());
        let (from, to) = match self.recursive {
            true => (folder_prefix(key), tree_prefix(to_key, is_folder, &name)),
            false => (key.clone(), single_key(to_key, is_folder, name_of_key(bucket, key))),
        };
        let is_itself = match self.recursive {
            true => mapping::is_into_itself((*provider, bucket, &from), (*to_provider, to_bucket, &to)),
            false => (provider, bucket, &from) == (to_provider, to_bucket, &to),
        };
        match is_itself {
            true => Err(Error::usage(
                source.to_string(),
                format!("can't be copied to itself ({})", self.destination),
            )),
            false => Ok(()),
        }
    }
}

/// Finds everything that is to be copied.
async fn search(job: &Arc<Running>, request: &CopyRequest, units: Units) {
    let is_pattern = |source: &Location| match source {
        Location::Object { key, .. } => crate::pattern::Pattern::parse(key).is_some(),
        Location::Local(path) => glob::is_pattern(path),
        Location::Standard => false,
    };
    let may_meet = request.sources.len() > 1 || request.sources.iter().any(is_pattern);
    let names = Names::new(may_meet);
    match &request.destination {
        Location::Object { provider, bucket, key } => {
            let terms = Arc::new(Terms::new(request));
            let mut up = upload::Search {
                job: Arc::clone(job),
                request,
                terms: Arc::clone(&terms),
                units: units.clone(),
                names,
                provider: *provider,
                bucket,
                key,
                existing: request.no_clobber.then(Existing::default),
            };
            let paths: Vec<_> = request
                .sources
                .iter()
                .filter_map(|source| match source {
                    Location::Local(path) => Some(path.clone()),
                    _ => None,
                })
                .collect();
            if request.dry_run
                && let Err(error) = look_at(job, *provider, bucket, key).await
            {
                let source = request.sources.first().map(ToString::to_string).unwrap_or_default();
                return job.fail(Op::Copy, source, Some(request.destination.to_string()), error).await;
            }
            if let Err(error) = up.paths(&paths).await {
                let source = paths.first().map(|path| path.display().to_string()).unwrap_or_default();
                job.fail(Op::Upload, source, Some(request.destination.to_string()), error).await;
            }
            let to = Destination { provider: *provider, bucket, key };
            for source in &request.sources {
                let result = match source {
                    Location::Standard => up.standard_input().await,
                    Location::Object { provider, bucket, key } => {
                        let source = listed(bucket, key, request);
                        let mut across = Search { job, request, terms: &terms, units: &units, to: &to };
                        across.source(*provider, &source, &mut up.names, &mut up.existing).await
                    }
                    Location::Local(_) => Ok(()),
                };
                if let Err(error) = result {
                    let op = if source.is_object() { Op::Copy } else { Op::Upload };
                    job.fail(op, source.to_string(), Some(request.destination.to_string()), error).await;
                }
            }
        }
        Location::Local(_) | Location::Standard => {
            let mut down = download::Search::new(Arc::clone(job), request, units, names);
            let mut sizes = Sizes::begin(job, request);
            for source in &request.sources {
                let Location::Object { provider, bucket, key } = source else { continue };
                let from = listed(bucket, key, request);
                let size = if from.is_listed() { None } else { sizes.of(key).await };
                if let Err(error) = down.source(*provider, &from, size).await {
                    let destination = Some(request.destination.to_string());
                    job.fail(Op::Download, source.to_string(), destination, error).await;
                }
            }
        }
    }
}

/// Asks whether objects could be put under a key, for a job that only tells what it would do: a bucket that is missing, or a
/// store that can't be reached or doesn't know us, would fail all of it. Who may write need not be allowed to list.
async fn look_at(job: &Running, provider: Provider, bucket: &str, key: &str) -> Result<(), Error> {
    let list = List { max: Some(1), ..List::new(bucket, key) };
    match job.store(provider)?.list(&list).await {
        Err(error) if !error.is_permission() => Err(error.into()),
        _ => Ok(()),
    }
}

fn listed(bucket: &str, key: &str, request: &CopyRequest) -> Source {
    Source { bucket: bucket.to_owned(), key: key.to_owned(), recursive: request.recursive }
}

struct Destination<'a> {
    provider: Provider,
    bucket: &'a str,
    key: &'a str,
}

/// One object and the object it becomes.
#[derive(Debug)]
struct Target {
    from: SourceObject,
    to: ObjectId,
}

/// Finds what is to be copied from store to store.
struct Search<'a> {
    job: &'a Arc<Running>,
    request: &'a CopyRequest,
    terms: &'a Arc<Terms>,
    units: &'a Units,
    to: &'a Destination<'a>,
}

/// What all copies between the same two stores have in common.
#[derive(Clone, Debug)]
struct Ends {
    from: Store,
    to: Store,
    terms: Arc<Terms>,
    remove_source: bool,
}

impl Search<'_> {
    async fn source(
        &mut self,
        provider: Provider,
        source: &Source,
        names: &mut Names,
        existing: &mut Option<Existing>,
    ) -> Result<(), Error> {
        let ends = Ends {
            from: self.job.store(provider)?.as_source(),
            to: self.job.store(self.to.provider)?.clone(),
            terms: Arc::clone(self.terms),
            remove_source: self.request.remove_source,
        };
        let is_folder = self.to.key.is_empty() || self.to.key.ends_with('/');
        let name = SourceName::Named(name_of_key(&source.bucket, &source.key).to_owned());
        let prefix = tree_prefix(self.to.key, is_folder, &name);
        let tree = source.recursive.then_some(prefix.as_str());
        let mut objects = source.objects(&ends.from);
        while let Some(page) = objects.next().await? {
            let mut group = Vec::new();
            for from in page {
                let key = match from.in_tree {
                    true => format!("{prefix}{}", from.name),
                    false => single_key(self.to.key, is_folder, &from.name),
                };
                let target = Target { to: ObjectId::new(self.to.bucket, key), from };
                group.extend(self.admit(&ends, target, names).await);
                if group.len() >= GROUP_MAX && self.send(&ends, &mut group, existing, tree).await.is_err() {
                    return Ok(());
                }
            }
            if self.send(&ends, &mut group, existing, tree).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Refuses a copy, or only tells it, where that is what has to be done.
    async fn admit(&self, ends: &Ends, target: Target, names: &mut Names) -> Option<Target> {
        let size = target.size();
        let source = url(ends.from.provider(), &target.from.id);
        let destination = url(self.to.provider, &target.to);
        if source == destination {
            let error = Error::refused(&source, "can't be copied to itself");
            self.job.fail(Op::Copy, source, Some(destination), error).await;
            return None;
        }
        if !names.is_new(&target.to.key) {
            let error = Error::refused(&source, format!("another source maps to {destination} too"));
            self.job.fail(Op::Copy, source, Some(destination), error).await;
            return None;
        }
        self.job.progress.found(1, size);
        Some(target)
    }

    async fn send(
        &self,
        ends: &Ends,
        group: &mut Vec<Target>,
        existing: &mut Option<Existing>,
        tree: Option<&str>,
    ) -> Result<(), Cancelled> {
        let mut targets = std::mem::take(group);
        if let Some(existing) = existing {
            targets = self.unless_existing(ends, targets, existing, tree).await?;
        }
        targets = self.unless_archived(ends, targets).await;
        if self.request.dry_run {
            let (cost, planned) = (ITEM_COST, std::mem::take(&mut targets));
            let run = Box::pin(plan(Arc::clone(self.job), ends.clone(), planned));
            self.units.send(Unit::Small { cost, run }).await.map_err(|_| Cancelled)?;
        }
        if targets.is_empty() {
            return Ok(());
        }
        let cost = targets.len() * ITEM_COST;
        let (job, ends) = (Arc::clone(self.job), ends.clone());
        if ends.from.provider() == ends.to.provider() {
            let sizes = job.engine.copy_sizes;
            let (large, small): (Vec<_>, Vec<_>) =
                targets.into_iter().partition(|target| within::is_large(target, sizes));
            for target in large {
                let run = counted(within::copy_one(Arc::clone(&job), ends.clone(), target));
                self.units.send(Unit::Large(Box::pin(run))).await.map_err(|_| Cancelled)?;
            }
            let run = Box::pin(within::copy_group(job, ends, small));
            return self.units.send(Unit::Small { cost, run }).await.map_err(|_| Cancelled);
        }
        for target in targets {
            let unit = across::unit(Arc::clone(&job), ends.clone(), target);
            self.units.send(unit).await.map_err(|_| Cancelled)?;
        }
        Ok(())
    }
}

impl Search<'_> {
    /// The targets whose destinations don't exist; the others are reported as skipped.
    async fn unless_existing(
        &self,
        ends: &Ends,
        targets: Vec<Target>,
        existing: &mut Existing,
        tree: Option<&str>,
    ) -> Result<Vec<Target>, Cancelled> {
        let ids: Vec<&ObjectId> = targets.iter().map(|target| &target.to).collect();
        let asked = self.job.unless_cancelled(existing.among(&ends.to, &ids, tree)).await;
        let mut left = Vec::with_capacity(targets.len());
        for (target, exists) in targets.into_iter().zip(asked.map_err(|_| Cancelled)?) {
            if exists {
                let begun = ends.begin(self.job, &target);
                self.job.skip(begun, target.size(), upload::EXISTS).await;
            } else {
                left.push(target);
            }
        }
        Ok(left)
    }
}

impl Search<'_> {
    /// The targets that can be read as far as the listing says; the others are told of.
    async fn unless_archived(&self, ends: &Ends, targets: Vec<Target>) -> Vec<Target> {
        let is_archived = |target: &Target| target.from.meta.as_ref().is_some_and(|meta| meta.archived);
        let (archived, left): (Vec<_>, Vec<_>) = targets.into_iter().partition(is_archived);
        for target in archived {
            let begun = ends.begin(self.job, &target);
            self.job.skip_archived(begun, target.size()).await;
        }
        left
    }
}

/// Tells what would be copied. What was named is asked for, because it may not be there.
async fn plan(job: Arc<Running>, ends: Ends, targets: Vec<Target>) {
    for target in targets {
        let begun = ends.begin(&job, &target);
        let size = match &target.from.meta {
            Some(meta) => Ok(meta.size),
            None => ends.from.head(&target.from.id, None).await.map(|meta| meta.size),
        };
        match size {
            Ok(size) => job.planned(begun, size).await,
            Err(error) => job.end(begun, 0, Err(error.into())).await,
        }
    }
}

/// The job takes no more units.
struct Cancelled;

impl Target {
    /// Its size, as far as it is known.
    fn size(&self) -> u64 {
        self.from.meta.as_ref().map_or(0, |meta| meta.size)
    }
}

impl Ends {
    fn begin(&self, job: &Running, target: &Target) -> Begun {
        let source = url(self.from.provider(), &target.from.id);
        job.begin(Op::Copy, source, Some(url(self.to.provider(), &target.to)))
    }

    /// Ends an item: of a move, the source is removed first.
    async fn finish(
        &self,
        job: &Running,
        target: &Target,
        begun: Begun,
        result: Result<(Moved, Option<Version>), Error>,
    ) {
        let result = match result {
            Ok((moved, version)) if self.remove_source => {
                remove_source(&self.from, &target.from.id, version.as_ref(), moved.verified)
                    .await
                    .map(|()| moved)
            }
            result => result.map(|(moved, _)| moved),
        };
        match result {
            Err(error) if error.is_archived() && target.from.meta.is_some() => {
                job.end_listed(begun, target.size(), Err(error)).await;
            }
            result => self.end(job, target, begun, result).await,
        }
    }

    /// Ends an item whose source is gone where it was to go.
    async fn end(&self, job: &Running, target: &Target, begun: Begun, result: Result<Moved, Error>) {
        let size = target.size();
        self.terms.end(job, begun, size, result, (&self.to, &target.to)).await;
    }
}

/// Removes the source of a move, provided that its copy was verified and that nobody has replaced it meanwhile.
///
/// # Errors
/// What the store says, or that the copy was not verified.
pub(crate) async fn remove_source(
    store: &Store,
    id: &ObjectId,
    version: Option<&Version>,
    verified: Verified,
) -> Result<(), Error> {
    if verified == Verified::Unverified {
        return Err(Error::unverified(url(store.provider(), id)));
    }
    let condition = version.cloned().map_or(Condition::None, Condition::Matches);
    source_removed(store, id, store.delete(id, &condition).await)
}

/// What it means for a move how the removal of its source ended.
fn source_removed(
    store: &Store,
    id: &ObjectId,
    result: Result<(), laneway_store::Error>,
) -> Result<(), Error> {
    match result {
        // Somebody else has removed it.
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) if error.is_precondition() => Err(Error::replaced(url(store.provider(), id))),
        removed => Ok(removed?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sources: &[&str], destination: &str, recursive: bool) -> Result<(), Error> {
        let sources = sources.iter().map(|s| s.parse().unwrap()).collect();
        CopyRequest { recursive, ..CopyRequest::new(sources, destination.parse().unwrap()) }.check()
    }

    #[test]
    fn a_folder_in_a_store_needs_the_recursive_flag() {
        assert!(check(&["gs://b/p/"], "x", false).unwrap_err().to_string().contains("-r"));
        assert!(check(&["gs://b"], "x", false).is_err() && check(&["gs://b"], "x", true).is_ok());
    }

    #[test]
    fn standard_output_takes_one_object() {
        assert!(
            check(&["gs://b/p"], "-", true).is_err() && check(&["gs://b/p", "gs://b/q"], "-", false).is_err()
        );
        assert!(check(&["gs://b/p"], "-", false).is_ok());
    }

    #[test]
    fn nothing_is_copied_onto_or_into_itself() {
        assert!(check(&["gs://b/k"], "gs://b/k", false).is_err());
        assert!(check(&["gs://b/k"], "gs://b/", false).is_err());
        assert!(check(&["gs://b/k"], "s3://b/k", false).is_ok());
        assert!(check(&["gs://b/a"], "gs://b/a/b", true).is_err());
        assert!(check(&["gs://b/a"], "gs://b/ab", true).is_ok());
        assert!(check(&["gs://b/a/c"], "gs://b/a/", true).is_err());
    }
}
