//! Walks a directory. Passes files to the receiver in batches while the walk continues, so memory stays
//! bounded for any size of tree.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, Metadata, ReadDir};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::sync::mpsc;

use crate::engine::runtime;
use crate::local::folder::is_temporary_name;
use crate::{Error, Filter, Warning};

const BATCH_MAX: usize = 256;
/// Number of batches that may wait for the receiver. Beyond this number, the walk waits.
const BATCHES_WAITING_MAX: usize = 8;
/// The maximum number of nested directories that a thread keeps open. Deeper directories wait until these are
/// read.
const OPEN_MAX: usize = 64;

/// A finding of a walk.
#[derive(Debug)]
pub(crate) enum WalkFinding {
    /// A file, or a link to a file.
    File(FoundFile),
    /// An entry that can't be read. The walk continues.
    Failed(PathBuf, Error),
    /// An entry that is left out together with everything below it. The fields are its path relative to the
    /// walk's root, and the warning.
    LeftOut(String, Warning),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FoundFile {
    pub(crate) path: PathBuf,
    /// The file's path relative to the walk's root. Its separator is `/`.
    pub(crate) name: String,
    pub(crate) size: u64,
    /// The file's modification time, if the file system reports it.
    pub(crate) modified: Option<SystemTime>,
}

/// The symbolic links that a walk follows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Links {
    /// Links to files. Other links are left out with a warning.
    #[default]
    ToFiles,
    /// Links to files and to directories.
    All,
    /// No links. Each link is left out with a warning.
    None,
}

/// The order in which the receiver gets the files.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum WalkOrder {
    /// In the order of discovery.
    #[default]
    Any,
    /// The files of each directory in the order of their names, the directories in any order.
    Directory,
    /// All in the byte order of their names, as stores list keys: files in `a` come after `a-b` and before
    /// `a0`. This order needs a single thread.
    Names,
}

#[derive(Clone, Default, Debug)]
pub(crate) struct Walk {
    pub(crate) links: Links,
    pub(crate) order: WalkOrder,
    /// Directories that the filter leaves out completely are not read. The caller applies the filter to
    /// files.
    pub(crate) filter: Filter,
}

/// Starts to walk `root` on separate threads. Dropping the receiver ends them.
///
/// # Errors
/// If no thread can be started.
pub(crate) fn start(
    root: PathBuf,
    walk: Walk,
    threads_max: usize,
) -> Result<mpsc::Receiver<Vec<WalkFinding>>, Error> {
    let threads_max = if walk.order == WalkOrder::Names { 1 } else { threads_max.max(1) };
    let (out, batches) = mpsc::channel(BATCHES_WAITING_MAX);
    let first = Directory { path: root.clone(), name: String::new(), above: None };
    let shared = Arc::new(SharedWalk {
        state: Mutex::new(WalkState { queue: VecDeque::from([first]), threads: 0, idle: 0, finished: false }),
        wake: Condvar::new(),
        threads_max,
        walk,
    });
    shared
        .grow(&out)
        .map_err(|e| Error::local(&root, "can't be read, because no thread could be started", e))?;
    Ok(batches)
}

/// A directory that is still to be read.
struct Directory {
    path: PathBuf,
    name: String,
    above: Option<Arc<AncestorChain>>,
}

/// The ids (device and inode) of the directories above a directory. With these ids, the walk detects a
/// link that leads back up. The ids are kept only if the walk follows links.
struct AncestorChain {
    id: (u64, u64),
    above: Option<Arc<AncestorChain>>,
}

impl AncestorChain {
    fn holds(&self, id: (u64, u64)) -> bool {
        self.id == id || self.above.as_ref().is_some_and(|above| above.holds(id))
    }
}

struct SharedWalk {
    state: Mutex<WalkState>,
    wake: Condvar,
    threads_max: usize,
    walk: Walk,
}

struct WalkState {
    queue: VecDeque<Directory>,
    threads: usize,
    idle: usize,
    finished: bool,
}

impl SharedWalk {
    /// Starts one more thread.
    fn grow(self: &Arc<Self>, out: &mpsc::Sender<Vec<WalkFinding>>) -> io::Result<()> {
        let (shared, out) = (Arc::clone(self), out.clone());
        self.lock().threads += 1;
        let spawned = std::thread::Builder::new().name("laneway-walk".into()).spawn(move || {
            let mut walker = Walker { shared, out, batch: Vec::new() };
            while let Some(directory) = walker.next_shared() {
                if walker.descend(directory).is_err() || walker.flush().is_err() {
                    break;
                }
            }
            walker.leave();
        });
        spawned.map(drop).inspect_err(|_| self.lock().threads -= 1)
    }

    /// Locks the state. No code that can panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, WalkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Entries {
    Unread(ReadDir),
    InOrder(std::vec::IntoIter<io::Result<fs::DirEntry>>),
}

impl Entries {
    fn of(entries: ReadDir, walk: &Walk) -> Self {
        if walk.order == WalkOrder::Any {
            return Self::Unread(entries);
        }
        let mut entries: Vec<_> = entries.collect();
        // Reading a directory ends at its first error. So sort the error after all entries.
        entries.sort_by_cached_key(|entry| match entry {
            Ok(entry) => (false, sorted_as(entry, walk)),
            Err(_) => (true, Default::default()),
        });
        Self::InOrder(entries.into_iter())
    }

    fn next(&mut self) -> Option<io::Result<fs::DirEntry>> {
        match self {
            Self::Unread(entries) => entries.next(),
            Self::InOrder(entries) => entries.next(),
        }
    }
}

/// Returns the sort key of an entry among its siblings. A directory sorts with a slash at its end, like the
/// keys below it.
fn sorted_as(entry: &fs::DirEntry, walk: &Walk) -> OsString {
    let mut name = entry.file_name();
    let is_directory = || match entry.file_type() {
        Ok(kind) if kind.is_symlink() && walk.links == Links::All => entry.path().is_dir(),
        kind => kind.is_ok_and(|kind| kind.is_dir()),
    };
    if walk.order == WalkOrder::Names && is_directory() {
        name.push("/");
    }
    name
}

/// The receiver is gone.
struct ReceiverGone;

struct Walker {
    shared: Arc<SharedWalk>,
    out: mpsc::Sender<Vec<WalkFinding>>,
    batch: Vec<WalkFinding>,
}

impl Walker {
    /// Waits for a directory from another thread. Returns `None` when all threads are done.
    fn next_shared(&mut self) -> Option<Directory> {
        let mut state = self.shared.lock();
        loop {
            if let Some(directory) = state.queue.pop_front() {
                return Some(directory);
            }
            if state.idle + 1 == state.threads {
                state.finished = true;
                self.shared.wake.notify_all();
            }
            if state.finished {
                return None;
            }
            state.idle += 1;
            state = self.shared.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    fn leave(&mut self) {
        let mut state = self.shared.lock();
        state.threads -= 1;
        drop(state);
        self.shared.wake.notify_all();
    }

    /// Reads a directory and everything below it, except directories that idle threads take over.
    fn descend(&mut self, directory: Directory) -> Result<(), ReceiverGone> {
        let mut open: Vec<(Directory, Entries)> = Vec::new();
        let mut deferred = Vec::new();
        let mut next = Some(directory);
        loop {
            if let Some(directory) = next.take() {
                match fs::read_dir(&directory.path) {
                    Ok(entries) => open.push((directory, Entries::of(entries, &self.shared.walk))),
                    Err(e) => {
                        let error = Error::local(&directory.path, "can't be read", e);
                        self.tell(WalkFinding::Failed(directory.path, error))?;
                    }
                }
            }
            // If this many directories are open, read deeper directories later. A walk in the order of names
            // can't read them later.
            let is_deep = open.len() >= runtime::descriptors_allowed(OPEN_MAX)
                && self.shared.walk.order != WalkOrder::Names;
            let Some((directory, entries)) = open.last_mut() else {
                next = deferred.pop();
                if next.is_none() {
                    return Ok(());
                }
                continue;
            };
            match entries.next() {
                Some(Ok(entry)) => {
                    let Some(below) = self.look_at(directory, &entry)? else { continue };
                    match self.share(below) {
                        None => {}
                        Some(below) if is_deep => deferred.push(below),
                        Some(below) => next = Some(below),
                    }
                }
                Some(Err(e)) => {
                    let error = Error::local(&directory.path, "can't be read to its end", e);
                    let path = directory.path.clone();
                    self.tell(WalkFinding::Failed(path, error))?;
                    open.pop();
                }
                None => drop(open.pop()),
            }
        }
    }

    /// Gives a directory to an idle thread, or to a new thread if the limit allows one. Otherwise returns the
    /// directory.
    fn share(&self, directory: Directory) -> Option<Directory> {
        let mut state = self.shared.lock();
        if state.idle > state.queue.len() {
            state.queue.push_back(directory);
            drop(state);
            self.shared.wake.notify_one();
            return None;
        }
        if state.threads >= self.shared.threads_max {
            return Some(directory);
        }
        state.queue.push_back(directory);
        drop(state);
        if self.shared.grow(&self.out).is_ok() {
            return None;
        }
        self.shared.lock().queue.pop_back()
    }

    /// Reports an entry, or returns it if it is a directory to read.
    fn look_at(
        &mut self,
        parent: &Directory,
        entry: &fs::DirEntry,
    ) -> Result<Option<Directory>, ReceiverGone> {
        let path = entry.path();
        let file_name = entry.file_name();
        let Some(file_name) = file_name.to_str() else {
            let error =
                Error::refused(path.display().to_string(), "the name is not UTF-8, so it can't be a key");
            return self.tell(WalkFinding::Failed(path, error)).map(|()| None);
        };
        let mut name = String::with_capacity(parent.name.len() + 1 + file_name.len());
        if !parent.name.is_empty() {
            name.push_str(&parent.name);
            name.push('/');
        }
        name.push_str(file_name);
        let links = self.shared.walk.links;
        let metadata = entry.metadata().and_then(|metadata| match metadata.is_symlink() {
            true if links == Links::None => Ok((metadata, true)),
            true => Ok((fs::metadata(&path)?, true)),
            false => Ok((metadata, false)),
        });
        let (metadata, is_link) = match metadata {
            Ok(found) => found,
            Err(e) => {
                let what =
                    if path.is_symlink() { "the link is broken" } else { "its attributes can't be read" };
                let error = Error::local(&path, what, e);
                return self.tell(WalkFinding::Failed(path, error)).map(|()| None);
            }
        };
        if metadata.is_file() && is_temporary_name(file_name) {
            let why = "it is the partial file of a download";
            return self.tell(WalkFinding::LeftOut(name, Warning::left_out(&path, why))).map(|()| None);
        }
        if metadata.is_file() {
            let (size, modified) = (metadata.len(), metadata.modified().ok());
            return self.tell(WalkFinding::File(FoundFile { path, name, size, modified })).map(|()| None);
        }
        if metadata.is_dir() && self.shared.walk.filter.leaves_out_all_below(&name) {
            return Ok(None);
        }
        if metadata.is_symlink() {
            let why = "it is a symbolic link";
            return self.tell(WalkFinding::LeftOut(name, Warning::left_out(&path, why))).map(|()| None);
        }
        if !metadata.is_dir() {
            let why = "it is not a regular file";
            return self.tell(WalkFinding::LeftOut(name, Warning::left_out(&path, why))).map(|()| None);
        }
        if is_link && links != Links::All {
            let why = "it is a link to a directory; --follow-symlinks follows it";
            return self.tell(WalkFinding::LeftOut(name, Warning::left_out(&path, why))).map(|()| None);
        }
        if links != Links::All {
            return Ok(Some(Directory { path, name, above: None }));
        }
        self.enter_following(parent, path, name, &metadata)
    }

    /// Enters a directory in a walk that follows links, unless the directory is one of its own ancestors.
    fn enter_following(
        &mut self,
        parent: &Directory,
        path: PathBuf,
        name: String,
        metadata: &Metadata,
    ) -> Result<Option<Directory>, ReceiverGone> {
        let above = match &parent.above {
            Some(above) => Some(Arc::clone(above)),
            None => directory_id(&parent.path).map(|id| Arc::new(AncestorChain { id, above: None })),
        };
        let id = (metadata.dev(), metadata.ino());
        if above.as_ref().is_some_and(|above| above.holds(id)) {
            let why = "the link leads back to a directory above it";
            return self.tell(WalkFinding::LeftOut(name, Warning::left_out(&path, why))).map(|()| None);
        }
        Ok(Some(Directory { path, name, above: Some(Arc::new(AncestorChain { id, above })) }))
    }

    fn tell(&mut self, found: WalkFinding) -> Result<(), ReceiverGone> {
        self.batch.push(found);
        if self.batch.len() >= BATCH_MAX { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ReceiverGone> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.out.blocking_send(std::mem::take(&mut self.batch)).map_err(|_| ReceiverGone)
    }
}

fn directory_id(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|m| (m.dev(), m.ino()))
}

#[cfg(test)]
mod tests;
