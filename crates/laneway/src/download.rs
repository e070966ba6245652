//! From a store to this machine.

mod claims;
mod composite;
pub(crate) mod in_order;
mod large;
mod new_bytes;
mod opening;
mod range_writer;
mod small;

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Arc;

use laneway_store::{ObjectId, ObjectMeta, Provider, Store, Version};

use crate::event::Verified;
use crate::folder::{Destination, Folder, Place, Placing, is_directory, is_stream};
use crate::listing::{Source, SourceObject};
use crate::location::url;
use crate::mapping::{SourceName, name_of_key, tree_prefix};
use crate::names::Names;
use crate::plan::SMALL_DOWNLOAD_MAX;
use crate::pump::{GROUP_COST_MAX, GROUP_MAX, ITEM_COST, Unit, Units};
use crate::relative::Relative;
use crate::running::{Begun, Moved, Running};
use crate::{CopyRequest, Error, Location, Op};

use large::Fetched;
pub(crate) use large::log_second_try;
pub(crate) use range_writer::{Into, Pinned, RangeWriter};

/// What is reserved for an object of unknown size: up to this many bytes it is collected in memory.
const UNKNOWN_MAX: u64 = 256 << 10;

/// One object and the file it becomes.
#[derive(Debug)]
pub(crate) struct Target {
    id: ObjectId,
    meta: Option<Box<ObjectMeta>>,
    /// Whether a listing has brought it, and no user named it.
    is_listed: bool,
    place: Place,
    terms: Terms,
}

/// What all downloads of a job have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) placing: Placing,
    /// Whether what has come of a large object stays when the job is cancelled.
    pub(crate) keep_partial: bool,
    remove_source: bool,
}

impl Target {
    fn begin(&self, job: &Running, store: &Store) -> Begun {
        let destination = self.place.path().display().to_string();
        job.begin(Op::Download, url(store.provider(), &self.id), Some(destination))
    }
}

/// What objects are downloaded to.
enum To {
    /// Below a folder.
    Folder(Arc<Folder>),
    /// A file that the user named, or, of a tree, the folder that it becomes.
    Named { path: PathBuf, tree: Arc<Folder> },
    /// Standard output.
    Output,
}

/// Whether a local destination is a folder: it is written as one, or it is there.
pub(crate) fn is_folder(destination: &Location) -> bool {
    match destination {
        Location::Local(path) => destination.is_written_as_folder() || is_directory(path.as_os_str()),
        other => other.is_written_as_folder(),
    }
}

/// Finds what is to be downloaded.
pub(crate) struct Search<'a> {
    job: Arc<Running>,
    request: &'a CopyRequest,
    terms: Terms,
    units: Units,
    names: Names,
    to: To,
}

impl<'a> Search<'a> {
    pub(crate) fn new(job: Arc<Running>, request: &'a CopyRequest, units: Units, names: Names) -> Self {
        let to = match &request.destination {
            Location::Local(path) if is_folder(&request.destination) => To::Folder(Folder::new(path)),
            Location::Local(path) => To::Named { path: path.clone(), tree: Folder::new(path) },
            Location::Object { .. } | Location::Standard => To::Output,
        };
        let CopyRequest { durable, no_clobber: only_absent, keep_partial, remove_source, .. } = *request;
        let terms = Terms { placing: Placing { durable, only_absent }, keep_partial, remove_source };
        Self { job, request, terms, units, names, to }
    }

    /// Looks through one source, or sends the one object that it is on its way, of a size that may be known.
    ///
    /// # Errors
    /// What its listing says. Errors of single objects are reported as theirs.
    pub(crate) async fn source(
        &mut self,
        provider: Provider,
        source: &Source,
        size: Option<u64>,
    ) -> Result<(), Error> {
        let store = self.job.store(provider)?.clone();
        let is_folder = matches!(self.to, To::Folder(_));
        let name = SourceName::Named(name_of_key(&source.bucket, &source.key).to_owned());
        let tree_prefix = tree_prefix("", is_folder, &name);
        let mut objects = source.objects(&store);
        while let Some(page) = objects.next().await? {
            let mut group = Group::default();
            for mut object in page {
                let is_listed = object.meta.is_some();
                if let (None, Some(size)) = (&object.meta, size) {
                    object.meta = Some(Box::new(ObjectMeta::new(object.id.clone(), size)));
                }
                if self.object(&store, &tree_prefix, object, is_listed, &mut group).await.is_err() {
                    return Ok(());
                }
            }
            if group.send(&self.job, &store, &self.units).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sends an object on its way. An error means that the job was cancelled.
    async fn object(
        &mut self,
        store: &Store,
        tree_prefix: &str,
        object: SourceObject,
        is_listed: bool,
        group: &mut Group,
    ) -> Result<(), Cancelled> {
        let SourceObject { id, meta, name, in_tree } = object;
        let size = meta.as_ref().map(|meta| meta.size);
        let folder = match &self.to {
            To::Folder(folder) => Arc::clone(folder),
            To::Named { tree, .. } if in_tree => Arc::clone(tree),
            To::Named { .. } | To::Output => return self.single(store, id, meta, is_listed).await,
        };
        let mut below = if in_tree { format!("{tree_prefix}{name}") } else { name };
        // A key that ends in a slash and holds nothing stands for a folder.
        let is_marker = size == Some(0) && (below.ends_with('/') || below.is_empty());
        if is_marker {
            below.truncate(below.trim_end_matches('/').len());
            let version = meta.and_then(|meta| meta.version);
            return self.marker(store, folder, (&id, version), below).await;
        }
        let source = || url(store.provider(), &id);
        let relative = match Relative::new(below) {
            Ok(relative) => relative,
            Err(e) => return self.refuse(source(), e.to_string()).await,
        };
        if !self.names.is_new(relative.as_str()) {
            return self.refuse(source(), format!("another source maps to {relative} too")).await;
        }
        let target = Target { place: folder.place(&relative), id, meta, is_listed, terms: self.terms };
        self.job.progress.found(1, size.unwrap_or(0));
        self.target(store, target, size, group).await
    }

    async fn target(
        &mut self,
        store: &Store,
        target: Target,
        size: Option<u64>,
        group: &mut Group,
    ) -> Result<(), Cancelled> {
        if self.request.no_clobber && target.place.exists() {
            let begun = target.begin(&self.job, store);
            self.job.skip(begun, size.unwrap_or(0), crate::upload::EXISTS).await;
            return Ok(());
        }
        if target.meta.as_ref().is_some_and(|meta| meta.archived) {
            let begun = target.begin(&self.job, store);
            self.job.skip_archived(begun, size.unwrap_or(0)).await;
            return Ok(());
        }
        if self.request.dry_run {
            let run = plan(Arc::clone(&self.job), store.clone(), target);
            return self.send(Unit::Small { cost: ITEM_COST, run: Box::pin(run) }).await;
        }
        match size {
            Some(size) if size <= SMALL_DOWNLOAD_MAX => {
                group.targets.push(target);
                group.cost += ITEM_COST + size as usize;
                if group.is_full() { group.send(&self.job, store, &self.units).await } else { Ok(()) }
            }
            Some(_) => {
                let run = fetch_one(Arc::clone(&self.job), store.clone(), target, 0);
                self.send(Unit::Large(Box::pin(run))).await
            }
            None => {
                let run = fetch_one(Arc::clone(&self.job), store.clone(), target, UNKNOWN_MAX);
                let cost = ITEM_COST + UNKNOWN_MAX as usize;
                self.send(Unit::Small { cost, run: Box::pin(run) }).await
            }
        }
    }

    /// One object to a destination that was named: a file, or what takes bytes only in order.
    async fn single(
        &mut self,
        store: &Store,
        id: ObjectId,
        meta: Option<Box<ObjectMeta>>,
        is_listed: bool,
    ) -> Result<(), Cancelled> {
        let source = url(store.provider(), &id);
        let size = meta.as_ref().map(|meta| meta.size);
        let output: (String, Box<dyn Write + Send>) = match &self.to {
            // To open a pipe is to wait for its reader.
            To::Named { path, .. } if self.request.dry_run && is_stream(path) => {
                (path.display().to_string(), Box::new(std::io::sink()))
            }
            To::Named { path, .. } => {
                let at = path.clone();
                match self.job.engine.files.run(move || Destination::at(&at)).await.and_then(|found| found) {
                    Ok(Destination::Place(place)) => {
                        let target = Target { id, meta, is_listed, place, terms: self.terms };
                        self.job.progress.found(1, size.unwrap_or(0));
                        let mut group = Group::default();
                        self.target(store, target, size, &mut group).await?;
                        return group.send(&self.job, store, &self.units).await;
                    }
                    Ok(Destination::Stream(file)) => (path.display().to_string(), Box::new(file)),
                    Err(error) => {
                        let destination = Some(path.display().to_string());
                        self.job.fail(Op::Download, source, destination, error).await;
                        return Ok(());
                    }
                }
            }
            To::Output | To::Folder(_) => match standard_output() {
                Ok(file) => ("-".to_owned(), Box::new(file)),
                Err(error) => {
                    self.job.fail(Op::Download, source, Some("-".to_owned()), error).await;
                    return Ok(());
                }
            },
        };
        self.job.progress.found(1, 0);
        let (job, store) = (Arc::clone(&self.job), store.clone());
        if self.request.dry_run {
            let begun = job.begin(Op::Download, source, Some(output.0));
            match store.head(&id, None).await {
                Ok(meta) => job.planned(begun, meta.size).await,
                Err(error) => job.end(begun, 0, Err(error.into())).await,
            }
            return Ok(());
        }
        let remove_source = self.request.remove_source;
        self.send(Unit::Large(Box::pin(stream_one(job, store, id, output, remove_source)))).await
    }

    /// A folder that a store holds as an empty object.
    async fn marker(
        &mut self,
        store: &Store,
        folder: Arc<Folder>,
        (id, version): (&ObjectId, Option<Version>),
        below: String,
    ) -> Result<(), Cancelled> {
        let source = url(store.provider(), id);
        if !below.is_empty()
            && let Err(e) = Relative::new(below.clone())
        {
            return self.refuse(source, e.to_string()).await;
        }
        self.job.progress.found(1, 0);
        let begun = self.job.begin(Op::Download, source, Some(folder.path_of(&below)));
        if self.request.dry_run {
            self.job.planned(begun, 0).await;
            return Ok(());
        }
        let created = self.job.engine.files.run(move || folder.create(&below)).await.and_then(|done| done);
        let moved = Moved { bytes: 0, attempts: 0, verified: Verified::NotApplicable, atomic: true };
        let removed = match (created, self.request.remove_source) {
            (Ok(()), true) => crate::copy::remove_source(store, id, version.as_ref(), moved.verified).await,
            (created, _) => created,
        };
        self.job.end(begun, 0, removed.map(|()| moved)).await;
        Ok(())
    }

    async fn refuse(&self, source: String, why: String) -> Result<(), Cancelled> {
        let error = Error::refused(&source, why);
        let destination = Some(self.request.destination.to_string());
        self.job.fail(Op::Download, source, destination, error).await;
        Ok(())
    }

    async fn send(&self, unit: Unit) -> Result<(), Cancelled> {
        self.units.send(unit).await.map_err(|_| Cancelled)
    }
}

/// The job takes no more units.
struct Cancelled;

/// Small objects that are begun together.
#[derive(Default)]
struct Group {
    targets: Vec<Target>,
    cost: usize,
}

impl Group {
    fn is_full(&self) -> bool {
        self.targets.len() >= GROUP_MAX || self.cost >= GROUP_COST_MAX
    }

    async fn send(&mut self, job: &Arc<Running>, store: &Store, units: &Units) -> Result<(), Cancelled> {
        let Self { targets, cost } = std::mem::take(self);
        if targets.is_empty() {
            return Ok(());
        }
        let run = small::fetch_group(Arc::clone(job), store.clone(), targets);
        units.send(Unit::Small { cost, run: Box::pin(run) }).await.map_err(|_| Cancelled)
    }
}

/// Tells what would be downloaded, or why it could not be.
async fn plan(job: Arc<Running>, store: Store, target: Target) {
    let begun = target.begin(&job, &store);
    let Target { id, meta, place, .. } = target;
    let size = match meta {
        Some(meta) => Ok(meta.size),
        None => store.head(&id, None).await.map(|meta| meta.size).map_err(Error::from),
    };
    let looked = job.engine.files.run(move || place.look()).await;
    match size.and_then(|size| looked?.map(|()| size)) {
        Ok(size) => job.planned(begun, size).await,
        Err(error) => job.end(begun, 0, Err(error)).await,
    }
}

/// Fetches one object into a file.
async fn fetch_one(job: Arc<Running>, store: Store, target: Target, collect_max: u64) {
    let begun = target.begin(&job, &store);
    let (meta, place) = (target.meta.clone(), target.place.clone());
    let result = large::fetch(&job, &store, &target.id, meta, place, collect_max, target.terms).await;
    finish(&job, &store, target, begun, result).await;
}

/// Fetches one object to what takes bytes only in order.
async fn stream_one(
    job: Arc<Running>,
    store: Store,
    id: ObjectId,
    (name, output): (String, Box<dyn Write + Send>),
    remove_source: bool,
) {
    let begun = job.begin(Op::Download, url(store.provider(), &id), Some(name.clone()));
    let (chunks, taken) = in_order::chunks();
    let written = tokio::sync::oneshot::channel();
    let writer = std::thread::Builder::new().name("laneway-write".into()).spawn(move || {
        let _ = written.0.send(write_all(taken, output, &name));
    });
    let fetched = match writer {
        Ok(_) => job
            .unless_cancelled(in_order::fetch(&job, &store, &id, in_order::Wish::default(), chunks))
            .await
            .and_then(|fetched| fetched),
        Err(e) => Err(Error::local("the writing thread", "can't be started", e)),
    };
    // The writer's error is the cause where there is one: it makes the fetch end as cancelled. A job that was
    // cancelled does not wait for whoever reads the pipe.
    let result = match job.cancel.is_set() {
        true => fetched,
        false => match written.1.await {
            Ok(Err(error)) => Err(error),
            _ => fetched,
        },
    };
    let result = match result {
        Ok(fetched) => remove_moved(&store, &id, fetched, remove_source).await,
        Err(error) => Err(error),
    };
    job.end(begun, 0, result).await;
}

/// Standard output as a file of its own: [`std::io::Stdout`] looks for line ends in every chunk, and takes a descriptor
/// that can't be written for one that takes everything.
fn standard_output() -> Result<File, Error> {
    let owned = std::io::stdout().as_fd().try_clone_to_owned();
    Ok(File::from(owned.map_err(|e| Error::local("-", "standard output can't be written", e))?))
}

/// Writes chunks until there are no more. Blocks.
pub(crate) fn write_all(
    mut chunks: tokio::sync::mpsc::Receiver<in_order::Chunk>,
    mut output: impl Write,
    name: &str,
) -> Result<(), Error> {
    let failed = |e| Error::local(name, "can't be written", e);
    while let Some(chunk) = chunks.blocking_recv() {
        output.write_all(&chunk.bytes).map_err(failed)?;
    }
    output.flush().map_err(failed)
}

/// Ends an item: of a move, the source is removed first.
async fn finish(job: &Running, store: &Store, target: Target, begun: Begun, result: Result<Fetched, Error>) {
    let size = target.meta.as_ref().map_or(0, |meta| meta.size);
    let result = match result {
        Ok(fetched) => remove_moved(store, &target.id, fetched, target.terms.remove_source).await,
        Err(error) => Err(error),
    };
    match target.is_listed {
        true => job.end_listed(begun, size, result).await,
        false => job.end(begun, size, result).await,
    }
}

async fn remove_moved(
    store: &Store,
    id: &ObjectId,
    fetched: Fetched,
    remove_source: bool,
) -> Result<Moved, Error> {
    if remove_source {
        crate::copy::remove_source(store, id, fetched.version.as_ref(), fetched.moved.verified).await?;
    }
    Ok(fetched.moved)
}
