//! One side of a sync: everything below a folder or a prefix, in the byte order of names and in bounded
//! memory.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use laneway_store::{List, ObjectMeta, Store};
use tokio::sync::mpsc;

use super::compare::SideFacts;
use super::merge::LeftOutNames;
use crate::inventory::{Inventory, InventoryBatch, InventoryScope};
use crate::job::running::JobState;
use crate::listing::walk::{self, FoundFile, Links, Walk, WalkFinding, WalkOrder};
use crate::listing::{ListingPages, OrderCheck, pages};
use crate::local::preserve::PosixAttributes;
use crate::location::url;
use crate::{Error, ErrorKind, Filter, Location, Op};

#[derive(Debug)]
pub(super) struct SideEntry {
    /// The path relative to the side's folder or prefix. Its separator is `/`.
    pub(super) name: String,
    pub(super) facts: SideFacts,
    pub(super) at: EntryPlace,
}

#[derive(Debug)]
pub(super) enum EntryPlace {
    File(PathBuf),
    Object(Box<ObjectMeta>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SideRole {
    Source,
    Destination,
}

pub(super) struct Side {
    role: SideRole,
    stream: SideStream,
    ready: VecDeque<SideEntry>,
    order: OrderCheck,
    left_out: LeftOutNames,
    /// True in a job that only compares both sides. Such a job reports a file whose name can't be a key as a
    /// difference, on either side.
    is_compared: bool,
    /// True if the side has no entries. Entries that filters exclude also count.
    pub(super) is_empty: bool,
    /// True if an object has exactly the prefix as its key.
    pub(super) has_itself: bool,
}

enum SideStream {
    Tree(mpsc::Receiver<Vec<WalkFinding>>),
    Prefix { pages: ListingPages, store: Store, bucket: String, prefix: String },
    Inventory { inventory: Inventory, prefix_len: usize },
    Ended,
}

impl Side {
    /// Returns a side that walks a local folder. A destination folder may be missing, and then counts as
    /// empty.
    ///
    /// # Errors
    /// If no thread can be started for the walk.
    pub(super) fn tree(root: PathBuf, role: SideRole, links: Links, filter: &Filter) -> Result<Self, Error> {
        let is_missing = || root.symlink_metadata().is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound);
        let stream = match role == SideRole::Destination && is_missing() {
            true => SideStream::Ended,
            false => {
                let walk = Walk { links, order: WalkOrder::Names, filter: filter.clone() };
                SideStream::Tree(walk::start(root, walk, 1)?)
            }
        };
        Ok(Self::of(role, stream))
    }

    /// Marks the side as one of a job that only compares both sides.
    pub(super) fn compared(self) -> Self {
        Self { is_compared: true, ..self }
    }

    /// Returns a side that lists a prefix of a store. The prefix ends in a slash or is empty.
    ///
    /// # Errors
    /// If the bucket's listings aren't sorted.
    pub(super) fn prefix(store: &Store, bucket: &str, prefix: &str, role: SideRole) -> Result<Self, Error> {
        if !store.lists_in_order(bucket) {
            return Err(unsorted(store, bucket));
        }
        let pages = pages(store, List::new(bucket, prefix));
        let (bucket, prefix) = (bucket.to_owned(), prefix.to_owned());
        Ok(Self::of(role, SideStream::Prefix { pages, store: store.clone(), bucket, prefix }))
    }

    /// Returns a side that reads a prefix of a store from an inventory. The inventory must be in the order of
    /// keys.
    ///
    /// # Errors
    /// If the inventory can't be read.
    pub(super) fn inventory(
        job: &JobState,
        at: &Location,
        place: InventoryScope,
        role: SideRole,
    ) -> Result<Self, Error> {
        let prefix_len = place.prefix.len();
        let inventory = Inventory::start(at, &job.engine, place)?;
        Ok(Self::of(role, SideStream::Inventory { inventory, prefix_len }))
    }

    fn of(role: SideRole, stream: SideStream) -> Self {
        Self {
            role,
            stream,
            ready: VecDeque::new(),
            order: OrderCheck::default(),
            left_out: LeftOutNames::default(),
            is_compared: false,
            is_empty: true,
            has_itself: false,
        }
    }

    /// Returns the next entry, or `None` at the end. Later calls return the same entry until it is
    /// [taken](Self::take). Reports entries without a valid name.
    ///
    /// # Errors
    /// The listing's error. For a destination, also the error of an entry that can't be read, because files
    /// below it must not count as missing.
    pub(super) async fn peek(&mut self, job: &JobState) -> Result<Option<&SideEntry>, Error> {
        while self.ready.is_empty() {
            match &mut self.stream {
                SideStream::Ended => return Ok(None),
                SideStream::Tree(batches) => match batches.recv().await {
                    Some(batch) => self.found(job, batch).await?,
                    None => self.stream = SideStream::Ended,
                },
                SideStream::Inventory { inventory, prefix_len } => match inventory.next().await? {
                    Some(InventoryBatch { file, objects }) => {
                        for (line, meta) in objects {
                            let name = meta.id.key.get(*prefix_len..).unwrap_or_default().to_owned();
                            self.order.admit(&name).map_err(|why| {
                                let why =
                                    format!("{why}, but the two sides can be compared only in sorted order");
                                Error::refused(format!("{file}:{line}"), why)
                            })?;
                            match name.is_empty() {
                                true => self.has_itself = true,
                                false => self.ready.push_back(SideEntry::of_object(name, meta)),
                            }
                        }
                    }
                    None => self.stream = SideStream::Ended,
                },
                SideStream::Prefix { pages, store, bucket, prefix } => match pages.next().await {
                    Some(page) => {
                        let page = page?;
                        if page.is_unsorted {
                            return Err(unsorted(store, bucket));
                        }
                        for meta in page.objects {
                            let name = meta.id.key.get(prefix.len()..).unwrap_or_default().to_owned();
                            self.order.admit(&name).map_err(|why| {
                                Error::source(format!("{}://{bucket}/{prefix}", store.scheme()), why)
                            })?;
                            // An object with exactly the prefix as its key isn't a name below it.
                            match name.is_empty() {
                                true => self.has_itself = true,
                                false => self.ready.push_back(SideEntry::of_object(name, meta)),
                            }
                        }
                    }
                    None => self.stream = SideStream::Ended,
                },
            }
            self.is_empty &= self.ready.is_empty();
        }
        Ok(self.ready.front())
    }

    /// Returns whether the next name has not arrived yet.
    pub(super) fn is_waiting(&self) -> bool {
        self.ready.is_empty() && !matches!(self.stream, SideStream::Ended)
    }

    /// Returns whether this side left out this name, or a folder above it. Such a name may exist although the
    /// side doesn't return it.
    pub(super) fn leaves_out(&mut self, name: &str) -> bool {
        self.left_out.holds(name)
    }

    pub(super) fn take(&mut self) -> Option<SideEntry> {
        self.ready.pop_front()
    }

    async fn found(&mut self, job: &JobState, batch: Vec<WalkFinding>) -> Result<(), Error> {
        for found in batch {
            match (found, self.role) {
                (WalkFinding::File(file), _) => {
                    // After its parent was read, an entry may have changed from a file to a folder, or the
                    // reverse. Its name is then out of order, and other names would look missing.
                    self.order.admit(&file.name).map_err(|why| {
                        Error::source(
                            file.path.display().to_string(),
                            format!("changed while it was read: {why}"),
                        )
                    })?;
                    self.ready.push_back(SideEntry::of_file(file));
                }
                (WalkFinding::Failed(path, error), SideRole::Source) => {
                    job.fail(Op::Upload, path.display().to_string(), None, error).await;
                }
                (WalkFinding::Failed(path, error), SideRole::Destination)
                    if self.is_compared && error.kind() == ErrorKind::Refused =>
                {
                    job.fail(Op::Verify, path.display().to_string(), None, error).await;
                }
                // The file's name can't be a key, so the source can't have this name. Leave the file alone.
                (WalkFinding::Failed(_, error), SideRole::Destination)
                    if error.kind() == ErrorKind::Refused => {}
                (WalkFinding::Failed(_, error), SideRole::Destination) => return Err(error),
                (WalkFinding::LeftOut(name, warning), SideRole::Source) => {
                    self.left_out.add(name);
                    job.warn(warning).await;
                }
                // Anything at the destination that isn't a regular file is left alone.
                (WalkFinding::LeftOut(..), SideRole::Destination) => {}
            }
        }
        Ok(())
    }
}

fn unsorted(store: &Store, bucket: &str) -> Error {
    let bucket = format!("{}://{bucket}", store.scheme());
    let why = "lists its objects unsorted, so the two sides can't be compared; copy with cp -r instead, and add \
               --no-clobber to skip objects that exist";
    Error::refused(bucket, why)
}

impl SideEntry {
    pub(super) fn of_file(file: FoundFile) -> Self {
        let FoundFile { path, name, size, modified } = file;
        let mtime = modified.and_then(seconds);
        Self { name, facts: SideFacts { size, changed: modified, mtime }, at: EntryPlace::File(path) }
    }

    pub(super) fn of_object(name: String, meta: ObjectMeta) -> Self {
        let kept = meta.metadata.as_ref().and_then(|metadata| PosixAttributes::of_object(metadata).mtime);
        let facts = SideFacts { size: meta.size, changed: meta.updated, mtime: kept.map(|(s, _)| s) };
        Self { name, facts, at: EntryPlace::Object(Box::new(meta)) }
    }

    /// Returns the entry's path or URL, for messages.
    pub(super) fn place(&self, store: Option<&Store>) -> String {
        match (&self.at, store) {
            (EntryPlace::Object(meta), Some(store)) => url(store.provider(), &meta.id),
            (EntryPlace::Object(meta), None) => meta.id.to_string(),
            (EntryPlace::File(path), _) => path.display().to_string(),
        }
    }

    /// Returns whether the entry is an empty object that stands for a folder.
    pub(super) fn is_folder(&self) -> bool {
        self.name.ends_with('/') && self.facts.size == 0
    }
}

/// Returns the seconds since 1970, rounded down.
fn seconds(time: SystemTime) -> Option<i64> {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_secs()).ok(),
        Err(before) => {
            let before = before.duration();
            let whole = i64::try_from(before.as_secs()).ok()?;
            Some(-whole - i64::from(before.subsec_nanos() > 0))
        }
    }
}
