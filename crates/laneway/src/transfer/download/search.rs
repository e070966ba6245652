//! Finds the objects to download, and their destinations.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Arc;

use laneway_lanes::attempts::counted;
use laneway_store::{ObjectId, ObjectMeta, Provider, Store, Version};

use super::{DownloadItem, fetch_one, in_order};
use crate::event::Verified;
use crate::job::existing::EXISTS;
use crate::job::pump::{CancelledJob, ITEM_COST, ItemGroup};
use crate::job::running::{JobState, ResultObject, TransferOutcome};
use crate::job::search::{FOLDED, HeadOutcome, Search, TakenNames, asked};
use crate::listing::{ListingSource, SourceObject};
use crate::local::folder::{FilePlace, Folder, LocalDestination, is_directory, is_stream};
use crate::location::mapping::tree_prefix;
use crate::location::relative::RelativePath;
use crate::location::url;
use crate::plan::SMALL_DOWNLOAD_MAX;
use crate::transfer::{download, moved};
use crate::{CopyRequest, Error, Location, Op};

/// The number of bytes reserved for an object of unknown size. If the object isn't larger, it is collected in
/// memory.
const UNKNOWN_MAX: u64 = 256 << 10;

enum DownloadRoot {
    /// Below a folder.
    Folder(Arc<Folder>),
    /// A path that the user named. It is the path of a file, or of the folder into which a tree is
    /// downloaded.
    Named { path: PathBuf, tree: Arc<Folder> },
    /// Standard output.
    Output,
}

pub(crate) struct DownloadSearch<'a> {
    pub(crate) search: &'a mut Search,
    to: DownloadRoot,
    /// The names used so far. `None` if the destination distinguishes names that differ only in case.
    folded: Option<TakenNames>,
}

impl<'a> DownloadSearch<'a> {
    /// Returns a search for downloads. If the destination is local, `folder` is that destination.
    pub(crate) fn new(search: &'a mut Search, folder: Option<Arc<Folder>>) -> Self {
        let request = &search.request;
        let to = match (&request.destination, folder) {
            (Location::Local(_), Some(folder)) if request.is_into_folder() => DownloadRoot::Folder(folder),
            (Location::Local(path), Some(tree)) => DownloadRoot::Named { path: path.clone(), tree },
            _ => DownloadRoot::Output,
        };
        let folds = match &to {
            DownloadRoot::Folder(folder) => folder.folds_case(),
            DownloadRoot::Named { tree, .. } => request.recursive && tree.folds_case(),
            DownloadRoot::Output => false,
        };
        Self { search, to, folded: folds.then(|| TakenNames::new(true)) }
    }

    /// Starts the downloads of all objects of one source. If the source is a single object, the caller can
    /// pass the object's `size`. In `ahead`, it can pass the object's metadata, which it requested in
    /// advance.
    ///
    /// # Errors
    /// If the source can't be listed. If only a single object fails, an event reports the failure, and this
    /// function returns no error.
    pub(crate) async fn source(
        &mut self,
        provider: Provider,
        source: &ListingSource,
        size: Option<u64>,
        ahead: HeadOutcome,
    ) -> Result<(), Error> {
        let store = self.search.job.store(provider)?.clone();
        let is_folder = matches!(self.to, DownloadRoot::Folder(_));
        let name = self.search.request.tree_name(&source.bucket, &source.key);
        let tree_prefix = tree_prefix("", is_folder, &name);
        let mut objects = source.objects(&store, self.search.order());
        let mut ahead = Some(ahead).filter(Option::is_some);
        while let Some(mut page) = objects.next().await? {
            page.retain(|object| object.is_taken_by(&self.search.request.filter));
            let answers = match ahead.take() {
                Some(answer) => vec![answer],
                None => asked(&store, &page, |id| self.is_asked(&store, id)).await,
            };
            let mut group = ItemGroup::new();
            for (mut object, answer) in page.into_iter().zip(answers) {
                let is_listed = object.meta.is_some();
                match answer {
                    Some(Ok(meta)) => object.meta = Some(Box::new(meta)),
                    Some(Err(error)) => {
                        let source = url(provider, &object.id);
                        self.search.fail(Op::Download, source, error.of_line(object.line)).await;
                        continue;
                    }
                    None => {}
                }
                if let (None, Some(size)) = (&object.meta, size) {
                    object.meta = Some(Box::new(ObjectMeta::new(object.id.clone(), size)));
                }
                if self.object(&store, &tree_prefix, object, is_listed, &mut group).await.is_err() {
                    return Ok(());
                }
            }
            if self.send(&store, &mut group).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn is_asked(&self, store: &Store, id: &ObjectId) -> bool {
        is_asked(&self.search.job, &self.search.request, store, id)
    }

    /// Starts the download of an object, or adds it to `group`. An error means that the job was cancelled.
    pub(crate) async fn object(
        &mut self,
        store: &Store,
        tree_prefix: &str,
        object: SourceObject,
        is_listed: bool,
        group: &mut ItemGroup<DownloadItem>,
    ) -> Result<(), CancelledJob> {
        let SourceObject { id, meta, name, in_tree, line } = object;
        let size = meta.as_ref().map(|meta| meta.size);
        let folder = match &self.to {
            DownloadRoot::Folder(folder) => Arc::clone(folder),
            DownloadRoot::Named { tree, .. } if in_tree => Arc::clone(tree),
            // The source is an object with exactly the named key, and no other objects lie below this key.
            // Download the object into the existing folder.
            DownloadRoot::Named { path, tree }
                if self.search.request.recursive && is_directory(path.as_os_str()) =>
            {
                Arc::clone(tree)
            }
            DownloadRoot::Named { .. } | DownloadRoot::Output => {
                return self.single(store, id, meta, is_listed).await;
            }
        };
        let mut below = if in_tree { format!("{tree_prefix}{name}") } else { name };
        // An empty object whose key ends in a slash stands for a folder.
        let is_marker = size == Some(0) && (below.ends_with('/') || below.is_empty());
        if is_marker {
            below.truncate(below.trim_end_matches('/').len());
            let version = meta.and_then(|meta| meta.version);
            return self.marker(store, folder, (&id, version), below).await;
        }
        let source = || url(store.provider(), &id);
        let relative = match RelativePath::new(below) {
            Ok(relative) => relative,
            Err(e) => return self.refuse(source(), e.to_string()).await,
        };
        if !self.search.names.is_new(relative.as_str()) {
            return self.refuse(source(), format!("another source also maps to {relative}")).await;
        }
        if self.folded.as_mut().is_some_and(|folded| !folded.is_new(&relative.as_str().to_lowercase())) {
            return self.refuse(source(), FOLDED.to_owned()).await;
        }
        let item = DownloadItem { place: folder.place(&relative), id, meta, is_listed, line };
        self.search.job.progress.found(1, size.unwrap_or(0));
        self.item(store, item, size, group).await
    }

    async fn item(
        &mut self,
        store: &Store,
        item: DownloadItem,
        size: Option<u64>,
        group: &mut ItemGroup<DownloadItem>,
    ) -> Result<(), CancelledJob> {
        let Search { job, request, units, .. } = &*self.search;
        // The size of a decompressed file differs from the size of its object.
        let is_there = |place: &FilePlace| place.holds(size) || (request.decompress && place.exists());
        if let Some(begun) = job.done_before(|| item.begin(job, store)).filter(|_| is_there(&item.place)) {
            job.skip_done(begun, size.unwrap_or(0)).await;
            return Ok(());
        }
        if request.no_clobber && item.place.exists() {
            let begun = item.begin(job, store);
            job.skip(begun, size.unwrap_or(0), EXISTS).await;
            return Ok(());
        }
        if item.meta.as_ref().is_some_and(|meta| meta.archived) {
            let begun = item.begin(job, store);
            job.skip_archived(begun, size.unwrap_or(0)).await;
            return Ok(());
        }
        if request.dry_run {
            return units.small(ITEM_COST, plan(Arc::clone(job), store.clone(), item)).await;
        }
        let fetched = |item, collect_max| {
            counted(fetch_one(Arc::clone(job), Arc::clone(request), store.clone(), item, collect_max))
        };
        match size {
            Some(size) if size <= SMALL_DOWNLOAD_MAX && !request.is_undescribed() => {
                group.add(item, size);
                if group.is_full() { self.send(store, group).await } else { Ok(()) }
            }
            Some(_) => units.large(fetched(item, 0)).await,
            None => units.small(ITEM_COST + UNKNOWN_MAX as usize, fetched(item, UNKNOWN_MAX)).await,
        }
    }

    /// Downloads one object to a named destination: a file, or a pipe or device, which takes bytes only in
    /// order.
    async fn single(
        &mut self,
        store: &Store,
        id: ObjectId,
        meta: Option<Box<ObjectMeta>>,
        is_listed: bool,
    ) -> Result<(), CancelledJob> {
        let source = url(store.provider(), &id);
        let size = meta.as_ref().map(|meta| meta.size);
        let output: (String, Box<dyn Write + Send>) = match &self.to {
            // A dry run doesn't open a pipe, because that would wait for the pipe's reader.
            DownloadRoot::Named { path, .. } if self.search.request.dry_run && is_stream(path) => {
                (path.display().to_string(), Box::new(std::io::sink()))
            }
            DownloadRoot::Named { path, .. } => {
                let at = path.clone();
                match self
                    .search
                    .job
                    .engine
                    .files
                    .run(move || LocalDestination::at(&at))
                    .await
                    .and_then(|found| found)
                {
                    Ok(LocalDestination::Place(place)) => {
                        let item = DownloadItem { id, meta, is_listed, place, line: None };
                        self.search.job.progress.found(1, size.unwrap_or(0));
                        let mut group = ItemGroup::new();
                        self.item(store, item, size, &mut group).await?;
                        return self.send(store, &mut group).await;
                    }
                    Ok(LocalDestination::Stream(file)) => (path.display().to_string(), Box::new(file)),
                    Err(error) => {
                        let destination = Some(path.display().to_string());
                        self.search.job.fail(Op::Download, source, destination, error).await;
                        return Ok(());
                    }
                }
            }
            DownloadRoot::Output | DownloadRoot::Folder(_) => match standard_output() {
                Ok(file) => ("-".to_owned(), Box::new(file)),
                Err(error) => {
                    self.search.job.fail(Op::Download, source, Some("-".to_owned()), error).await;
                    return Ok(());
                }
            },
        };
        self.search.job.progress.found(1, 0);
        let (job, store) = (Arc::clone(&self.search.job), store.clone());
        if self.search.request.dry_run {
            let begun = job.begin(Op::Download, source, Some(output.0));
            match store.head(&id, None).await {
                Ok(meta) => job.planned(begun, meta.size).await,
                Err(error) => job.end(begun, 0, Err(error.into())).await,
            }
            return Ok(());
        }
        let request = Arc::clone(&self.search.request);
        self.search.units.large(counted(in_order::fetch_one(job, request, store, id, output))).await
    }

    /// Creates the folder that an empty object stands for.
    async fn marker(
        &mut self,
        store: &Store,
        folder: Arc<Folder>,
        (id, version): (&ObjectId, Option<Version>),
        below: String,
    ) -> Result<(), CancelledJob> {
        let source = url(store.provider(), id);
        if !below.is_empty()
            && let Err(e) = RelativePath::new(below.clone())
        {
            return self.refuse(source, e.to_string()).await;
        }
        self.search.job.progress.found(1, 0);
        let begun = self.search.job.begin(Op::Download, source, Some(folder.path_of(&below)));
        if self.search.request.dry_run {
            self.search.job.planned(begun, 0).await;
            return Ok(());
        }
        let created =
            self.search.job.engine.files.run(move || folder.create(&below)).await.and_then(|done| done);
        let moved = TransferOutcome {
            bytes: 0,
            verified: Verified::NotApplicable,
            atomic: true,
            made: ResultObject::default(),
        };
        let removed = match (created, self.search.request.remove_source) {
            (Ok(()), true) => moved::remove_object(store, id, version.as_ref(), true).await,
            (created, _) => created,
        };
        self.search.job.end(begun, 0, removed.map(|()| moved)).await;
        Ok(())
    }

    async fn refuse(&self, source: String, why: String) -> Result<(), CancelledJob> {
        let error = Error::refused(&source, why);
        self.search.fail(Op::Download, source, error).await;
        Ok(())
    }

    /// Starts the downloads that were collected in a group. An error means that the job was cancelled.
    pub(crate) async fn send(
        &self,
        store: &Store,
        group: &mut ItemGroup<DownloadItem>,
    ) -> Result<(), CancelledJob> {
        let Search { job, request, units, .. } = &*self.search;
        let (job, request, store) = (Arc::clone(job), Arc::clone(request), store.clone());
        group.send(units, |items| download::fetch_group(job, request, store, items)).await
    }
}

/// Returns whether Laneway must request a named object's metadata before its bytes. The metadata is needed to
/// preserve a file's attributes, because GCS doesn't send the metadata with the object's bytes. It is also
/// needed if a manifest lists the object: the metadata shows whether the object has changed since.
pub(crate) fn is_asked(job: &JobState, request: &CopyRequest, store: &Store, id: &ObjectId) -> bool {
    let is_described = request.preserve
        && !store.capabilities().get_tells_metadata
        && request.destination != Location::Standard;
    is_described || job.is_known(&url(store.provider(), id))
}

/// Downloads one object that a search has found. If the object is small, the caller has reserved memory for
/// it.
pub(crate) async fn one(job: Arc<JobState>, request: Arc<CopyRequest>, store: Store, item: DownloadItem) {
    let size = item.meta.as_ref().map_or(0, |meta| meta.size);
    if item.meta.as_ref().is_some_and(|meta| meta.archived) {
        let begun = item.begin(&job, &store);
        job.skip_archived(begun, size).await;
    } else if request.dry_run {
        plan(job, store, item).await;
    } else if size <= SMALL_DOWNLOAD_MAX && !request.is_undescribed() {
        download::fetch_group(job, request, store, vec![item]).await;
    } else {
        fetch_one(job, request, store, item, 0).await;
    }
}

/// Reports that a dry run would download an object, or why it could not.
async fn plan(job: Arc<JobState>, store: Store, item: DownloadItem) {
    let begun = item.begin(&job, &store);
    let DownloadItem { id, meta, place, .. } = item;
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

/// Returns standard output as a [`File`]. [`std::io::Stdout`] would search every chunk for line ends, and
/// report success even if the descriptor can't be written to.
fn standard_output() -> Result<File, Error> {
    let owned = std::io::stdout().as_fd().try_clone_to_owned();
    Ok(File::from(owned.map_err(|e| Error::local("-", "standard output can't be written", e))?))
}
