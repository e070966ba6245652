//! From this machine into a store.

mod gzip;
mod input;
mod journal;
mod large;
mod parts;
mod session;
mod small;
mod source;
mod unfinished;
mod verify;

use std::ffi::OsStr;
use std::fs::Metadata;
use std::io::{self, Read};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use laneway_lanes::attempts::counted;
use laneway_store::{Condition, ObjectId, ObjectMeta, Provider, PutOptions, Store};

use crate::content_type;
use crate::event::Verified;
use crate::existing::Existing;
use crate::glob;
use crate::location::url;
use crate::mapping::{SourceName, name_of_path, single_key, tree_prefix};
use crate::names::Names;
use crate::plan::SMALL_UPLOAD_MAX;
use crate::pump::{GROUP_COST_MAX, GROUP_MAX, ITEM_COST, Unit, Units};
use crate::running::{Begun, Moved, Running};
use crate::walk::{self, Found, FoundFile};
use crate::{CopyRequest, Error, Op, Warning};

pub use gzip::Gzip;
pub(crate) use journal::{Identity, Subject};
pub(crate) use parts::{CONFLICTS_MAX, Input, Parts, ReadyPart};
pub(crate) use verify::{put as put_verified, verify};

/// Why a destination is left alone.
pub(crate) const EXISTS: &str = "the destination exists";

/// The same where the store says so and doesn't let it be looked up.
const SAID_TO_EXIST: &str = "the store says that the destination exists";

/// Local sources that are looked at together.
const SOURCES_AT_ONCE: usize = 256;

/// One file and the object it becomes.
#[derive(Debug)]
pub(crate) struct Target {
    path: PathBuf,
    size: u64,
    id: ObjectId,
}

/// What all uploads of a job have in common.
#[derive(Debug)]
pub(crate) struct Terms {
    put: PutOptions,
    gzip: Gzip,
    no_clobber: bool,
    remove_source: bool,
    keep_partial: bool,
    /// How long a stream will be, if the caller knows.
    expect_size: Option<u64>,
}

impl Terms {
    pub(crate) fn new(request: &CopyRequest) -> Self {
        let mut put = request.put.clone();
        if request.no_clobber && put.condition.is_none() {
            put.condition = Condition::Absent;
        }
        let gzip = request.gzip.clone();
        let CopyRequest { no_clobber, remove_source, keep_partial, expect_size, .. } = *request;
        Self { put, gzip, no_clobber, remove_source, keep_partial, expect_size }
    }

    /// What a copy that the store carries out is to be; what is empty is kept as it is.
    pub(crate) fn copy_options(&self) -> PutOptions {
        self.put.clone()
    }

    /// What the copy of an object is to be: as it is, except for what was asked for.
    pub(crate) fn options_of(&self, source: &ObjectMeta, guessed: &PutOptions) -> PutOptions {
        let asked = &self.put;
        let either =
            |asked: &Option<String>, theirs: &Option<String>| asked.clone().or_else(|| theirs.clone());
        PutOptions {
            content_type: either(&asked.content_type, &source.content_type).or(guessed.content_type.clone()),
            content_encoding: either(&asked.content_encoding, &source.content_encoding),
            cache_control: either(&asked.cache_control, &source.cache_control),
            content_disposition: either(&asked.content_disposition, &source.content_disposition),
            content_language: either(&asked.content_language, &source.content_language),
            metadata: if asked.metadata.is_empty() {
                source.metadata.clone()
            } else {
                asked.metadata.clone()
            },
            ..asked.clone()
        }
    }

    /// Ends an item: a destination that exists already is skipped where that was asked for. That it exists is looked up
    /// before it is said: stores refuse for other reasons too, and some by the same status.
    pub(crate) async fn end(
        &self,
        job: &Running,
        begun: Begun,
        bytes: u64,
        result: Result<Moved, Error>,
        (store, id): (&Store, &ObjectId),
    ) {
        match result {
            Err(error) if self.no_clobber && (error.is_precondition() || error.is_conflict()) => {
                match store.head(id, None).await {
                    Ok(_) => job.skip(begun, bytes, EXISTS).await,
                    // Who may write may not always look.
                    Err(look) if look.is_permission() && error.is_precondition() => {
                        job.skip(begun, bytes, SAID_TO_EXIST).await;
                    }
                    Err(_) => job.end(begun, bytes, Err(error)).await,
                }
            }
            result => job.end(begun, bytes, result).await,
        }
    }

    /// What the object `key` is to be.
    pub(crate) fn options(&self, key: &str) -> PutOptions {
        let mut put = self.put.clone();
        if put.content_type.is_none() {
            put.content_type = content_type::guess(key).map(str::to_owned);
        }
        put
    }

    /// What the object of a file is to be: where the key has no extension, the file's guesses its type.
    fn options_of_file(&self, target: &Target) -> PutOptions {
        self.options_of_source(&target.id.key, &target.path)
    }

    fn options_of_source(&self, key: &str, path: &Path) -> PutOptions {
        let mut put = self.options(key);
        if put.content_type.is_none() {
            let name = path.file_name().and_then(OsStr::to_str);
            put.content_type = name.and_then(content_type::guess).map(str::to_owned);
        }
        if self.gzip.takes(path) { gzip::described(put) } else { put }
    }
}

impl Target {
    fn begin(&self, job: &Running, store: &Store) -> Begun {
        let source = self.path.display().to_string();
        job.begin(Op::Upload, source, Some(url(store.provider(), &self.id)))
    }
}

/// A local source, as the disk has it.
struct Named {
    path: PathBuf,
    /// Whether a pattern has brought it.
    is_matched: bool,
    metadata: Result<Metadata, Error>,
}

impl Named {
    /// What a path means. Blocks.
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

/// Finds what is to be uploaded.
pub(crate) struct Search<'a> {
    pub(crate) job: Arc<Running>,
    pub(crate) request: &'a CopyRequest,
    pub(crate) terms: Arc<Terms>,
    pub(crate) units: Units,
    pub(crate) names: Names,
    pub(crate) provider: Provider,
    pub(crate) bucket: &'a str,
    pub(crate) key: &'a str,
    /// Where destinations that exist are left alone: what is known of them.
    pub(crate) existing: Option<Existing>,
}

impl Search<'_> {
    /// Looks through local sources.
    ///
    /// # Errors
    /// For a store that can't be used. Errors of single sources are reported as theirs.
    pub(crate) async fn paths(&mut self, paths: &[PathBuf]) -> Result<(), Error> {
        let store = self.job.store(self.provider)?.clone();
        let mut group = Group::default();
        for some in paths.chunks(SOURCES_AT_ONCE) {
            let owned = some.to_vec();
            let look = move || owned.into_iter().flat_map(Named::of).collect::<Vec<_>>();
            for Named { path, is_matched, metadata } in self.job.engine.files.run(look).await? {
                let sent = match metadata {
                    Ok(m) if m.is_dir() && is_matched && !self.request.recursive => {
                        let why = "it is a directory; -r copies it with what it holds";
                        self.job.warn(Warning::left_out(&path, why)).await;
                        Ok(())
                    }
                    Ok(m) if m.is_dir() && self.request.recursive => self.tree(&store, path).await?,
                    Ok(m) if m.is_dir() => {
                        let why = "is a directory; -r copies it with what it holds";
                        self.fail(path, |name| Error::usage(name, why)).await
                    }
                    Ok(m) if !m.is_file() => self.special(&store, path).await,
                    Ok(m) => self.file(&store, path, m.len(), &mut group).await,
                    Err(error) => self.fail(path, |_| error).await,
                };
                if sent.is_err() {
                    return Ok(());
                }
            }
            if self.ask(&store, &mut group, None).await.is_err() {
                return Ok(());
            }
        }
        // An error means that the job was cancelled.
        let _ = group.send(self, &store).await;
        Ok(())
    }

    /// Sends standard input on its way.
    ///
    /// # Errors
    /// For a store that can't be used.
    pub(crate) async fn standard_input(&mut self) -> Result<(), Error> {
        let store = self.job.store(self.provider)?.clone();
        let id = ObjectId::new(self.bucket, self.key);
        let options = self.terms.options(self.key);
        let stream = input::Stream { name: "-".to_owned(), input: Box::new(standard_input()?), found: 0 };
        let _ = self.stream(&store, stream, id, options).await;
        Ok(())
    }

    fn is_folder(&self) -> bool {
        self.key.is_empty() || self.key.ends_with('/')
    }

    /// The object that a single source becomes.
    fn single(&self, path: &Path) -> Result<ObjectId, Error> {
        let refused = |why| Err(Error::refused(path.display().to_string(), why));
        match name_of_path(path) {
            SourceName::Named(name) => {
                Ok(ObjectId::new(self.bucket, single_key(self.key, self.is_folder(), &name)))
            }
            SourceName::NotUtf8 if !self.is_folder() => Ok(ObjectId::new(self.bucket, self.key)),
            SourceName::NotUtf8 => refused("the name is not UTF-8 and can't be a key"),
            SourceName::Contents => refused("names no file"),
        }
    }

    async fn file(
        &mut self,
        store: &Store,
        path: PathBuf,
        size: u64,
        group: &mut Group,
    ) -> Result<(), Cancelled> {
        match self.single(&path) {
            Ok(id) => self.target(store, Target { path, size, id }, group).await,
            Err(error) => self.fail(path, |_| error).await,
        }
    }

    /// A pipe or a device that was named: read to its end.
    async fn special(&mut self, store: &Store, path: PathBuf) -> Result<(), Cancelled> {
        let id = match self.single(&path) {
            Ok(id) => id,
            Err(error) => return self.fail(path, |_| error).await,
        };
        let name = path.display().to_string();
        let at = path.clone();
        match self.job.engine.files.run(move || std::fs::File::open(at)).await {
            Ok(Ok(file)) => {
                let options = self.terms.options_of_source(&id.key, &path);
                let input: Box<dyn Read + Send> = match self.terms.gzip.takes(&path) {
                    true => Box::new(gzip::compressed(file)),
                    false => Box::new(file),
                };
                self.stream(store, input::Stream { name, input, found: 0 }, id, options).await
            }
            Ok(Err(e)) => self.fail(path.clone(), |_| Error::local(path, "can't be opened", e)).await,
            Err(error) => self.fail(path, |_| error).await,
        }
    }

    async fn stream(
        &mut self,
        store: &Store,
        stream: input::Stream,
        id: ObjectId,
        options: PutOptions,
    ) -> Result<(), Cancelled> {
        self.job.progress.found(1, 0);
        let begun = self.job.begin(Op::Upload, stream.name.clone(), Some(url(store.provider(), &id)));
        if let Some(existing) = &mut self.existing
            && existing.among(store, &[&id], None).await == [true]
        {
            self.job.skip(begun, 0, EXISTS).await;
            return Ok(());
        }
        if self.request.dry_run {
            self.job.planned(begun, 0).await;
            return Ok(());
        }
        let (job, terms, store) = (Arc::clone(&self.job), Arc::clone(&self.terms), store.clone());
        let run = async move {
            let result = input::upload(&job, &store, stream, &id, &options, terms.expect_size).await;
            terms.end(&job, begun, 0, result, (&store, &id)).await;
        };
        self.send(Unit::Large(Box::pin(counted(run)))).await
    }

    async fn tree(&mut self, store: &Store, root: PathBuf) -> Result<Result<(), Cancelled>, Error> {
        let name = name_of_path(&root);
        if name == SourceName::NotUtf8 && self.is_folder() {
            return Ok(self
                .fail(root, |at| Error::refused(at, "the name is not UTF-8 and can't be a key"))
                .await);
        }
        let prefix = tree_prefix(self.key, self.is_folder(), &name);
        let threads = self.job.engine.cores.min(4);
        // What is asked for in order is answered by few pages.
        let in_order = self.existing.is_some();
        let mut batches = walk::start(root, self.request.follow_symlinks, in_order, threads)?;
        while let Some(batch) = batches.recv().await {
            let mut group = Group::default();
            for found in batch {
                let sent = match found {
                    Found::File(FoundFile { path, name, size }) => {
                        let mut key = String::with_capacity(prefix.len() + name.len());
                        key.push_str(&prefix);
                        key.push_str(&name);
                        let id = ObjectId::new(self.bucket, key);
                        self.target(store, Target { path, size, id }, &mut group).await
                    }
                    Found::Failed(path, error) => self.fail(path, |_| error).await,
                    Found::LeftOut(warning) => {
                        self.job.warn(warning).await;
                        Ok(())
                    }
                };
                if sent.is_err() {
                    return Ok(Err(Cancelled));
                }
            }
            let asked = self.ask(store, &mut group, Some(&prefix)).await;
            if asked.is_err() || group.send(self, store).await.is_err() {
                return Ok(Err(Cancelled));
            }
        }
        Ok(Ok(()))
    }

    async fn target(&mut self, store: &Store, target: Target, group: &mut Group) -> Result<(), Cancelled> {
        if !self.names.is_new(&target.id.key) {
            let destination = url(store.provider(), &target.id);
            return self
                .fail(target.path, |name| {
                    Error::refused(name, format!("another source maps to {destination} too"))
                })
                .await;
        }
        self.job.progress.found(1, target.size);
        if self.existing.is_some() {
            group.unasked.push(target);
            return Ok(());
        }
        self.admit(store, target, group).await
    }

    /// Leaves those of a group's targets alone whose destinations exist. `tree` is the prefix of all of them.
    async fn ask(&mut self, store: &Store, group: &mut Group, tree: Option<&str>) -> Result<(), Cancelled> {
        let Some(existing) = &mut self.existing else { return Ok(()) };
        let unasked = std::mem::take(&mut group.unasked);
        let ids: Vec<&ObjectId> = unasked.iter().map(|target| &target.id).collect();
        let exist =
            self.job.unless_cancelled(existing.among(store, &ids, tree)).await.map_err(|_| Cancelled)?;
        for (target, exists) in unasked.into_iter().zip(exist) {
            if exists {
                let begun = target.begin(&self.job, store);
                self.job.skip(begun, target.size, EXISTS).await;
            } else {
                self.admit(store, target, group).await?;
            }
        }
        Ok(())
    }

    /// Sends a target on its way, or only tells of it.
    async fn admit(&mut self, store: &Store, target: Target, group: &mut Group) -> Result<(), Cancelled> {
        if self.request.dry_run {
            let begun = target.begin(&self.job, store);
            let path = target.path.clone();
            let open = move || match std::fs::File::open(&path) {
                Ok(_) => Ok(()),
                Err(e) => Err(Error::local(&path, "can't be opened", e)),
            };
            match self.job.engine.files.run(open).await.and_then(|opened| opened) {
                Ok(()) => self.job.planned(begun, target.size).await,
                Err(error) => self.job.end(begun, target.size, Err(error)).await,
            }
            return Ok(());
        }
        if target.size <= SMALL_UPLOAD_MAX {
            group.cost += ITEM_COST + target.size as usize;
            group.targets.push(target);
            return if group.is_full() { group.send(self, store).await } else { Ok(()) };
        }
        let run = upload_large(Arc::clone(&self.job), store.clone(), target, Arc::clone(&self.terms));
        self.send(Unit::Large(Box::pin(counted(run)))).await
    }

    async fn fail(&self, path: PathBuf, error: impl FnOnce(String) -> Error) -> Result<(), Cancelled> {
        let name = path.display().to_string();
        let error = error(name.clone());
        let destination = Some(self.request.destination.to_string());
        self.job.fail(Op::Upload, name, destination, error).await;
        Ok(())
    }

    async fn send(&self, unit: Unit) -> Result<(), Cancelled> {
        self.units.send(unit).await.map_err(|_| Cancelled)
    }
}

/// The job takes no more units.
struct Cancelled;

/// Small files that are begun together.
#[derive(Default)]
struct Group {
    targets: Vec<Target>,
    cost: usize,
    /// Those of which it is still to be found out whether they exist.
    unasked: Vec<Target>,
}

impl Group {
    fn is_full(&self) -> bool {
        self.targets.len() >= GROUP_MAX || self.cost >= GROUP_COST_MAX
    }

    async fn send(&mut self, search: &Search<'_>, store: &Store) -> Result<(), Cancelled> {
        let (targets, cost) = (std::mem::take(&mut self.targets), std::mem::take(&mut self.cost));
        if targets.is_empty() {
            return Ok(());
        }
        let (job, terms) = (Arc::clone(&search.job), Arc::clone(&search.terms));
        let run = small::upload_group(job, store.clone(), targets, terms);
        search.send(Unit::Small { cost, run: Box::pin(run) }).await
    }
}

async fn upload_large(job: Arc<Running>, store: Store, target: Target, terms: Arc<Terms>) {
    let begun = target.begin(&job, &store);
    let result = large::upload(&job, &store, &target, &terms).await;
    let result = remove_moved(&job, &terms, target.path, result).await;
    terms.end(&job, begun, target.size, result, (&store, &target.id)).await;
}

/// Of a move, removes the file once its copy is verified, in the state that was copied.
async fn remove_moved(
    job: &Running,
    terms: &Terms,
    path: PathBuf,
    result: Result<(Moved, Identity), Error>,
) -> Result<Moved, Error> {
    let (moved, copied) = result?;
    if !terms.remove_source {
        return Ok(moved);
    }
    if moved.verified == Verified::Unverified {
        return Err(Error::unverified(path.display().to_string()));
    }
    job.engine.files.run(move || remove_copied(&path, copied)).await??;
    Ok(moved)
}

/// Removes a file unless it has another content than when it was copied. Blocks.
fn remove_copied(path: &Path, copied: Identity) -> Result<(), Error> {
    let failed = |e| Error::local(path, "copied, but can't be removed", e);
    match std::fs::metadata(path) {
        Ok(now) if !Identity::of(&now).has_content_of(&copied) => {
            return Err(Error::replaced(path.display().to_string()));
        }
        // A link to a file that was moved before it leads nowhere.
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    std::fs::remove_file(path).map_err(failed)
}

/// Standard input as a file of its own: [`std::io::Stdin`] takes a descriptor that can't be read for one at its end, and an
/// empty object would be stored.
fn standard_input() -> Result<std::fs::File, Error> {
    let owned = std::io::stdin().as_fd().try_clone_to_owned();
    Ok(std::fs::File::from(owned.map_err(|e| Error::local("-", "standard input can't be read", e))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_replaced_after_it_was_copied_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let identity = || Identity::of(&std::fs::metadata(&path).unwrap());
        std::fs::write(&path, "old").unwrap();
        let copied = identity();
        std::fs::write(&path, "newer").unwrap();
        let error = remove_copied(&path, copied).unwrap_err();
        assert!(
            error.kind() == crate::ErrorKind::Source && error.to_string().contains("replaced meanwhile"),
            "{error}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), b"newer");
        // Another name for it changes the file's times and none of its content.
        let copied = identity();
        std::fs::hard_link(&path, dir.path().join("g")).unwrap();
        std::os::unix::fs::symlink(&path, dir.path().join("link")).unwrap();
        remove_copied(&path, copied).unwrap();
        remove_copied(&dir.path().join("link"), copied).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "the other name");
    }
}
