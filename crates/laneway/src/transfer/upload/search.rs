//! Finds the files to upload: files, trees, pipes, standard input.

use std::fs::Metadata;
use std::io::Read;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use laneway_lanes::attempts::counted;
use laneway_store::{ObjectId, PutOptions, Store};

use super::{UploadItem, input, upload_large};
use crate::content::encoding;
use crate::job::existing::{self, EXISTS};
use crate::job::pump::{CancelledJob, ItemGroup};
use crate::job::running::JobState;
use crate::job::search::{Prefix, Search};
use crate::listing::glob;
use crate::listing::names_from::{LineRules, ListedName, NameList};
use crate::listing::walk::{self, FoundFile, Links, Walk, WalkFinding, WalkOrder};
use crate::local::preserve::PosixAttributes;
use crate::location::mapping::{SourceName, name_of_path, single_key, tree_prefix};
use crate::location::relative::RelativePath;
use crate::location::url;
use crate::plan::SMALL_UPLOAD_MAX;
use crate::transfer::upload;
use crate::{CopyRequest, Error, Op, Warning};

/// The number of local sources whose metadata is read in one batch.
const SOURCES_AT_ONCE: usize = 256;

/// A local source, as found on disk.
struct LocalSource {
    path: PathBuf,
    /// True if the path is the match of a pattern.
    is_matched: bool,
    metadata: Result<Metadata, Error>,
}

impl LocalSource {
    /// Returns the sources that a path denotes: the path itself, or the matches of a pattern. Blocks the
    /// thread.
    fn of(path: PathBuf) -> Vec<Self> {
        let look = |path: PathBuf, is_matched| {
            let metadata = std::fs::metadata(&path).map_err(|e| Error::local(&path, "can't be read", e));
            Self { path, is_matched, metadata }
        };
        if !glob::is_pattern(&path) {
            return vec![look(path, false)];
        }
        match glob::expanded(path.clone()) {
            Ok(paths) => paths.into_iter().map(|path| look(path, true)).collect(),
            Err(error) => vec![Self { path, is_matched: true, metadata: Err(error) }],
        }
    }
}

/// A file from a list of names, as found on disk.
struct ListedFile {
    path: PathBuf,
    name: String,
    found: Result<(u64, Option<SystemTime>), Error>,
    line: Box<str>,
}

impl ListedFile {
    /// Looks up a name below a folder. Blocks the thread.
    fn at(root: &Path, ListedName { name, line }: ListedName) -> Self {
        let path = root.join(&name);
        let found = match RelativePath::new(name.clone()) {
            Err(e) => Err(Error::refused(path.display().to_string(), e.to_string())),
            Ok(_) => match std::fs::metadata(&path) {
                Ok(m) if m.is_file() => Ok((m.len(), m.modified().ok())),
                Ok(_) => Err(Error::refused(path.display().to_string(), "is not a file")),
                Err(e) => Err(Error::local(&path, "can't be read", e)),
            },
        };
        Self { path, name, found, line }
    }
}

pub(crate) struct UploadSearch<'a> {
    pub(crate) search: &'a mut Search,
    pub(crate) to: Prefix<'a>,
}

/// Files that were found and whose uploads have not started yet.
pub(crate) struct WaitingUploads {
    /// Small files whose uploads begin together.
    group: ItemGroup<UploadItem>,
    /// Files whose destinations must still be looked up.
    unasked: Vec<UploadItem>,
}

impl WaitingUploads {
    pub(crate) fn new() -> Self {
        Self { group: ItemGroup::new(), unasked: Vec::new() }
    }
}

impl UploadSearch<'_> {
    /// Starts the uploads of local sources: files, folders, pipes and devices.
    ///
    /// # Errors
    /// If the store can't be used. If only a single source fails, an event reports the failure, and this
    /// function returns no error.
    pub(crate) async fn paths(&mut self, paths: &[PathBuf]) -> Result<(), Error> {
        let store = self.search.job.store(self.to.provider)?.clone();
        let mut waiting = WaitingUploads::new();
        for some in paths.chunks(SOURCES_AT_ONCE) {
            let owned = some.to_vec();
            let look = move || owned.into_iter().flat_map(LocalSource::of).collect::<Vec<_>>();
            for LocalSource { path, is_matched, metadata } in self.search.job.engine.files.run(look).await? {
                let sent = match metadata {
                    Ok(m) if m.is_dir() && self.search.request.files_from.is_some() => {
                        self.names(&store, path).await?
                    }
                    Ok(m) if m.is_file() && is_matched && !self.takes(&path, &m) => Ok(()),
                    Ok(m) if m.is_dir() && is_matched && !self.search.request.recursive => {
                        let why = "it is a directory; use -r to copy it";
                        self.search.job.warn(Warning::left_out(&path, why)).await;
                        Ok(())
                    }
                    Ok(m) if m.is_dir() && self.search.request.recursive => self.tree(&store, path).await?,
                    Ok(m) if m.is_dir() => {
                        let why = "is a directory; use -r to copy it";
                        self.fail(path, |name| Error::usage(name, why)).await
                    }
                    Ok(m) if !m.is_file() => self.special(&store, path).await,
                    Ok(m) => self.file(&store, path, (m.len(), m.modified().ok()), &mut waiting).await,
                    Err(error) => self.fail(path, |_| error).await,
                };
                if sent.is_err() {
                    return Ok(());
                }
            }
            if self.ask(&store, &mut waiting, None).await.is_err() {
                return Ok(());
            }
        }
        // Ignore an error here: it only means that the job was cancelled.
        let _ = self.send_group(&store, &mut waiting).await;
        Ok(())
    }

    /// Starts the upload of standard input.
    ///
    /// # Errors
    /// If a store can't be used.
    pub(crate) async fn standard_input(&mut self) -> Result<(), Error> {
        let store = self.search.job.store(self.to.provider)?.clone();
        let id = ObjectId::new(self.to.bucket, self.to.key);
        let options = self.search.request.options(self.to.key);
        let stream =
            input::InputStream { name: "-".to_owned(), input: Box::new(standard_input()?), found: 0 };
        let _ = self.stream(&store, stream, id, options).await;
        Ok(())
    }

    /// Returns whether the filter includes a file that matched a pattern.
    fn takes(&self, path: &Path, metadata: &Metadata) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.search.request.filter.takes(&name, metadata.len(), metadata.modified().ok())
    }

    /// Returns the id of the object that receives a single source.
    fn single(&self, path: &Path) -> Result<ObjectId, Error> {
        let refused = |why| Err(Error::refused(path.display().to_string(), why));
        match name_of_path(path) {
            SourceName::Named(name) => {
                Ok(ObjectId::new(self.to.bucket, single_key(self.to.key, self.to.is_folder(), &name)))
            }
            SourceName::NotUtf8 if !self.to.is_folder() => Ok(ObjectId::new(self.to.bucket, self.to.key)),
            SourceName::NotUtf8 => refused("the name is not UTF-8, so it can't be a key"),
            SourceName::Contents => refused("names no file"),
        }
    }

    async fn file(
        &mut self,
        store: &Store,
        path: PathBuf,
        found: (u64, Option<SystemTime>),
        waiting: &mut WaitingUploads,
    ) -> Result<(), CancelledJob> {
        match self.single(&path) {
            Ok(id) => self.item(store, UploadItem::new(path, found, id), waiting).await,
            Err(error) => self.fail(path, |_| error).await,
        }
    }

    /// Uploads a named pipe or device, which is read to its end.
    async fn special(&mut self, store: &Store, path: PathBuf) -> Result<(), CancelledJob> {
        let id = match self.single(&path) {
            Ok(id) => id,
            Err(error) => return self.fail(path, |_| error).await,
        };
        let name = path.display().to_string();
        let at = path.clone();
        match self.search.job.engine.files.run(move || std::fs::File::open(at)).await {
            Ok(Ok(file)) => {
                let options = self.search.request.options_of_file(
                    store.capabilities().file_attributes,
                    &id.key,
                    &path,
                    PosixAttributes::default(),
                );
                let input: Box<dyn Read + Send> = match self.search.request.gzip.takes(&path) {
                    true => Box::new(encoding::compressed(file)),
                    false => Box::new(file),
                };
                self.stream(store, input::InputStream { name, input, found: 0 }, id, options).await
            }
            Ok(Err(e)) => self.fail(path.clone(), |_| Error::local(path, "can't be opened", e)).await,
            Err(error) => self.fail(path, |_| error).await,
        }
    }

    async fn stream(
        &mut self,
        store: &Store,
        stream: input::InputStream,
        id: ObjectId,
        options: PutOptions,
    ) -> Result<(), CancelledJob> {
        self.search.job.progress.found(1, 0);
        let begun = self.search.job.begin(Op::Upload, stream.name.clone(), Some(url(store.provider(), &id)));
        if let Some(existing) = &mut self.search.existing
            && existing.among(store, &[&id], None).await == [true]
        {
            self.search.job.skip(begun, 0, EXISTS).await;
            return Ok(());
        }
        if self.search.request.dry_run {
            self.search.job.planned(begun, 0).await;
            return Ok(());
        }
        let (job, request) = (Arc::clone(&self.search.job), Arc::clone(&self.search.request));
        let store = store.clone();
        self.search
            .units
            .large(counted(async move {
                let result = input::upload(&job, &store, stream, &id, &options, request.expect_size).await;
                existing::end(&job, &request, (begun, 0), result, (&store, &id)).await;
            }))
            .await
    }

    /// Starts the uploads of the files below a folder whose names are in a list.
    async fn names(&mut self, store: &Store, root: PathBuf) -> Result<Result<(), CancelledJob>, Error> {
        let Some(from) = self.search.request.files_from.clone() else { return Ok(Ok(())) };
        let name = match self.search.request.contents {
            true => SourceName::Contents,
            false => name_of_path(&root),
        };
        let prefix = tree_prefix(self.to.key, self.to.is_folder(), &name);
        let mut names = NameList::start(&from, LineRules::Rclone)?;
        while let Some(batch) = names.next().await? {
            let mut waiting = WaitingUploads::new();
            let root = root.clone();
            let look =
                move || batch.into_iter().map(|named| ListedFile::at(&root, named)).collect::<Vec<_>>();
            for ListedFile { path, name, found, line } in self.search.job.engine.files.run(look).await? {
                let sent = match found {
                    Ok(found) => {
                        let id = ObjectId::new(self.to.bucket, format!("{prefix}{name}"));
                        self.item(store, UploadItem::new(path, found, id), &mut waiting).await
                    }
                    Err(error) => self.fail(path, |_| error.of_line(Some(line))).await,
                };
                if sent.is_err() {
                    return Ok(Err(CancelledJob));
                }
            }
            if self.send_found(store, waiting, &prefix).await.is_err() {
                return Ok(Err(CancelledJob));
            }
        }
        Ok(Ok(()))
    }

    /// Starts the uploads of some files of a tree. All keys of the tree begin with `prefix`.
    async fn send_found(
        &mut self,
        store: &Store,
        mut waiting: WaitingUploads,
        prefix: &str,
    ) -> Result<(), CancelledJob> {
        self.ask(store, &mut waiting, Some(prefix)).await?;
        self.send_group(store, &mut waiting).await
    }

    async fn tree(&mut self, store: &Store, root: PathBuf) -> Result<Result<(), CancelledJob>, Error> {
        let name = match self.search.request.contents {
            true => SourceName::Contents,
            false => name_of_path(&root),
        };
        if name == SourceName::NotUtf8 && self.to.is_folder() {
            return Ok(self
                .fail(root, |at| Error::refused(at, "the name is not UTF-8, so it can't be a key"))
                .await);
        }
        let prefix = tree_prefix(self.to.key, self.to.is_folder(), &name);
        let threads = self.search.job.engine.cores.min(4);
        // If the job skips existing objects, walk in the order of names. A few pages of a listing then show
        // which destinations of a batch exist.
        let order = if self.search.existing.is_some() { WalkOrder::Directory } else { WalkOrder::Any };
        let links = if self.search.request.follow_symlinks { Links::All } else { Links::ToFiles };
        let filter = self.search.request.filter.clone();
        let mut batches = walk::start(root, Walk { links, order, filter }, threads)?;
        while let Some(batch) = batches.recv().await {
            let mut waiting = WaitingUploads::new();
            for found in batch {
                let sent = match found {
                    WalkFinding::File(FoundFile { name, size, modified, .. })
                        if !self.search.request.filter.takes(&name, size, modified) =>
                    {
                        Ok(())
                    }
                    WalkFinding::File(FoundFile { path, name, size, modified }) => {
                        let mut key = String::with_capacity(prefix.len() + name.len());
                        key.push_str(&prefix);
                        key.push_str(&name);
                        let id = ObjectId::new(self.to.bucket, key);
                        self.item(store, UploadItem::new(path, (size, modified), id), &mut waiting).await
                    }
                    WalkFinding::Failed(path, error) => self.fail(path, |_| error).await,
                    WalkFinding::LeftOut(_, warning) => {
                        self.search.job.warn(warning).await;
                        Ok(())
                    }
                };
                if sent.is_err() {
                    return Ok(Err(CancelledJob));
                }
            }
            if self.send_found(store, waiting, &prefix).await.is_err() {
                return Ok(Err(CancelledJob));
            }
        }
        Ok(Ok(()))
    }

    /// Starts the upload of a file, or adds the file to `waiting`.
    ///
    /// # Errors
    /// If the job was cancelled.
    pub(crate) async fn item(
        &mut self,
        store: &Store,
        item: UploadItem,
        waiting: &mut WaitingUploads,
    ) -> Result<(), CancelledJob> {
        if !self.search.names.is_new(&item.id.key) {
            let destination = url(store.provider(), &item.id);
            return self
                .fail(item.path, |name| {
                    Error::refused(name, format!("another source also maps to {destination}"))
                })
                .await;
        }
        self.search.job.progress.found(1, item.size);
        if let Some(begun) = self.search.job.done_before(|| item.begin(&self.search.job, store)) {
            self.search.job.skip_done(begun, item.size).await;
            return Ok(());
        }
        if self.search.existing.is_some() {
            waiting.unasked.push(item);
            return Ok(());
        }
        self.admit(store, item, waiting).await
    }

    /// Looks up the destinations of waiting files. Skips the files whose destinations exist, and admits the
    /// others. For files of a tree, `tree` is the prefix of all destinations.
    async fn ask(
        &mut self,
        store: &Store,
        waiting: &mut WaitingUploads,
        tree: Option<&str>,
    ) -> Result<(), CancelledJob> {
        let begin = |job: &JobState, item: &UploadItem| (item.begin(job, store), item.size);
        let unasked = std::mem::take(&mut waiting.unasked);
        for item in self.search.unless_existing(store, unasked, tree, |item| &item.id, begin).await? {
            self.admit(store, item, waiting).await?;
        }
        Ok(())
    }

    async fn admit(
        &mut self,
        store: &Store,
        item: UploadItem,
        waiting: &mut WaitingUploads,
    ) -> Result<(), CancelledJob> {
        let Search { job, request, units, .. } = &*self.search;
        if request.dry_run {
            plan(job, store, item).await;
            return Ok(());
        }
        if item.size <= SMALL_UPLOAD_MAX {
            let size = item.size;
            waiting.group.add(item, size);
            return if waiting.group.is_full() { self.send_group(store, waiting).await } else { Ok(()) };
        }
        let run = upload_large(Arc::clone(job), Arc::clone(request), store.clone(), item);
        units.large(counted(run)).await
    }

    /// Starts the uploads of the small files that were collected into a group.
    ///
    /// # Errors
    /// If the job was cancelled.
    pub(crate) async fn send_group(
        &self,
        store: &Store,
        waiting: &mut WaitingUploads,
    ) -> Result<(), CancelledJob> {
        let Search { job, request, units, .. } = &*self.search;
        let (job, request, store) = (Arc::clone(job), Arc::clone(request), store.clone());
        waiting.group.send(units, |items| upload::upload_group(job, request, store, items)).await
    }

    async fn fail(&self, path: PathBuf, error: impl FnOnce(String) -> Error) -> Result<(), CancelledJob> {
        let name = path.display().to_string();
        let error = error(name.clone());
        self.search.fail(Op::Upload, name, error).await;
        Ok(())
    }
}

/// Reports that a dry run would upload a file, or why it could not.
async fn plan(job: &JobState, store: &Store, item: UploadItem) {
    let begun = item.begin(job, store);
    let path = item.path.clone();
    let open = move || match std::fs::File::open(&path) {
        Ok(_) => Ok(()),
        Err(e) => Err(Error::local(&path, "can't be opened", e)),
    };
    match job.engine.files.run(open).await.and_then(|opened| opened) {
        Ok(()) => job.planned(begun, item.size).await,
        Err(error) => job.end(begun, item.size, Err(error)).await,
    }
}

/// Uploads one file that a search has found. If the file is small, the caller has reserved memory for it.
pub(crate) async fn one(job: Arc<JobState>, request: Arc<CopyRequest>, store: Store, item: UploadItem) {
    if request.dry_run {
        plan(&job, &store, item).await;
    } else if item.size <= SMALL_UPLOAD_MAX {
        upload::upload_group(job, request, store, vec![item]).await;
    } else {
        upload_large(job, request, store, item).await;
    }
}

/// Returns standard input as a file. [`std::io::Stdin`] would report the end of the input, not an error, if
/// the descriptor can't be read. Laneway would then store an empty object.
fn standard_input() -> Result<std::fs::File, Error> {
    let owned = std::io::stdin().as_fd().try_clone_to_owned();
    Ok(std::fs::File::from(owned.map_err(|e| Error::local("-", "standard input can't be read", e))?))
}
