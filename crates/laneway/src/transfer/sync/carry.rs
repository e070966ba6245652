//! Starts the copies of a sync. The copies run like the items of a copy job: as uploads, downloads or copies
//! between stores.

use std::sync::Arc;

use laneway_lanes::attempts::counted;
use laneway_store::{ObjectId, Store};

use super::compare::By;
use super::content::{Content, Unknown, is_of_time, is_same};
use super::side::{At, Entry};
use crate::job::pump::{Cancelled, Group, ITEM_COST, Units};
use crate::job::running::{Begun, Running};
use crate::job::search::{Prefix, Search};
use crate::listing::{SourceObject, folder_prefix};
use crate::local::folder::Folder;
use crate::location::relative::Relative;
use crate::location::url;
use crate::transfer::copy::{self, Copies, Ends};
use crate::transfer::download::{self, Downloads};
use crate::transfer::upload::{self, Uploads, Waiting};
use crate::{CopyRequest, Error, Location, Op, SyncRequest};

/// The maximum size, in bytes, of an item that reserves memory for its content before it begins.
const SMALL_MAX: u64 = crate::plan::SMALL_UPLOAD_MAX;

pub(super) struct Carrier<'a> {
    direction: Direction<'a>,
    source: Option<Store>,
    unknown: Arc<Unknown>,
}

enum Direction<'a> {
    Up { uploads: Uploads<'a>, to: Store, bucket: String, prefix: String, waiting: Waiting },
    Down { downloads: Downloads<'a>, from: Store, folder: Arc<Folder>, group: Group<download::Item> },
    Across { copies: Copies<'a>, ends: Ends, bucket: String, prefix: String, group: Group<copy::Item> },
}

impl<'a> Carrier<'a> {
    /// Returns a carrier that copies from a request's source to its destination.
    ///
    /// # Errors
    /// If a store can't be used.
    pub(super) fn new(
        search: &'a mut Search,
        request: &'a SyncRequest,
        unknown: Arc<Unknown>,
    ) -> Result<Self, Error> {
        let source = match &request.source {
            Location::Object { provider, .. } => Some(search.job.store(*provider)?.as_source()),
            _ => None,
        };
        let direction = match (&request.destination, &source) {
            (Location::Object { provider, bucket, key }, source) => {
                let to = search.job.store(*provider)?.clone();
                let at = Prefix { provider: *provider, bucket, key };
                let (bucket, prefix) = (bucket.clone(), folder_prefix(key));
                match source {
                    Some(from) => {
                        let ends = Ends::new(from.clone(), to, Arc::clone(&search.request));
                        let copies = Copies::new(search, at);
                        Direction::Across { copies, ends, bucket, prefix, group: Group::new() }
                    }
                    None => {
                        let uploads = Uploads { search, to: at };
                        Direction::Up { uploads, to, bucket, prefix, waiting: Waiting::new() }
                    }
                }
            }
            (Location::Local(path), Some(from)) => {
                let folder = Folder::new(path);
                let downloads = Downloads::new(search, Some(Arc::clone(&folder)));
                Direction::Down { downloads, from: from.clone(), folder, group: Group::new() }
            }
            (destination, _) => return Err(Error::usage(destination.to_string(), "can't be synced to")),
        };
        Ok(Self { direction, source, unknown })
    }

    pub(super) fn source(&self) -> Option<&Store> {
        self.source.as_ref()
    }

    /// Returns the item that reports an entry's outcome if the entry isn't copied.
    pub(super) fn begin(&self, job: &Running, entry: &Entry) -> Begun {
        let (op, destination) = match &self.direction {
            Direction::Up { to, bucket, prefix, .. } => {
                (Op::Upload, url(to.provider(), &key(bucket, prefix, entry)))
            }
            Direction::Across { ends, bucket, prefix, .. } => {
                (Op::Copy, url(ends.to().provider(), &key(bucket, prefix, entry)))
            }
            Direction::Down { folder, .. } => (Op::Download, folder.path_of(&entry.name)),
        };
        let state = match &entry.at {
            At::File(_) => job.state_of_file(entry.facts.changed, entry.facts.size),
            At::Object(meta) => job.state_of(meta.version.as_ref(), meta.size),
        };
        Begun { state, ..job.begin(op, entry.place(self.source()), Some(destination)) }
    }

    /// Reports that a dry run would copy an entry.
    ///
    /// # Errors
    /// Never fails. It returns a result only to have the same type as [`copy`](Self::copy).
    pub(super) async fn plan(&self, job: &Running, entry: Entry) -> Result<(), Cancelled> {
        job.progress.found(1, entry.facts.size);
        job.planned(self.begin(job, &entry), entry.facts.size).await;
        Ok(())
    }

    /// Starts the copy of an entry, or adds it to a group that starts later.
    ///
    /// # Errors
    /// If the job was cancelled.
    pub(super) async fn copy(&mut self, entry: Entry) -> Result<(), Cancelled> {
        let size = entry.facts.size;
        match (&mut self.direction, entry.at) {
            (Direction::Up { uploads, to, bucket, prefix, waiting }, At::File(path)) => {
                let id = ObjectId::new(bucket.clone(), format!("{prefix}{}", entry.name));
                uploads.item(to, upload::Item::new(path, (size, entry.facts.changed), id), waiting).await
            }
            (Direction::Down { downloads, from, group, .. }, At::Object(meta)) => {
                let object = listed(entry.name, meta);
                downloads.object(from, "", object, true, group).await
            }
            (Direction::Across { copies, ends, bucket, prefix, group }, At::Object(meta)) => {
                let to = ObjectId::new(bucket.clone(), format!("{prefix}{}", entry.name));
                if let Some(item) = copies.admit(ends, copy::Item::new(listed(entry.name, meta), to)).await {
                    group.add(item, 0);
                }
                if group.is_full() { copies.send(ends, group, None).await } else { Ok(()) }
            }
            // Other combinations don't occur, because a source has only files or only objects.
            _ => Ok(()),
        }
    }

    /// Starts a comparison of both sides, followed by a copy if they differ. Equal items are only counted.
    ///
    /// # Errors
    /// If the job was cancelled.
    pub(super) async fn compare(&mut self, source: Entry, there: Entry, by: By) -> Result<(), Cancelled> {
        let size = source.facts.size;
        let times = (source.facts, there.facts);
        let Some((job, request, units, copying)) = self.one(&source) else { return self.copy(source).await };
        let begun = self.begin(&job, &source);
        let unknown = Arc::clone(&self.unknown);
        let ends = match &self.direction {
            Direction::Up { to, .. } => (None, Some(to.clone())),
            Direction::Down { from, .. } => (Some(from.clone()), None),
            Direction::Across { ends, .. } => (Some(ends.from().clone()), Some(ends.to().clone())),
        };
        let (Some(from), Some(to)) = (Content::of(source.at, ends.0), Content::of(there.at, ends.1)) else {
            return Ok(());
        };
        let run = counted(async move {
            let same = match by {
                By::Checksum | By::Content => is_same(&job, by, &unknown, (from, to), times).await,
                By::Time => is_of_time(&job, from, times.1).await,
            };
            match same {
                Ok(true) => job.unchanged(1),
                Ok(false) => {
                    job.progress.found(1, size);
                    copying.run(Arc::clone(&job), request).await;
                }
                Err(error) => {
                    job.progress.found(1, size);
                    job.end(begun, size, Err(error)).await;
                }
            }
        });
        match size <= SMALL_MAX {
            true => units.small(ITEM_COST + size as usize, run).await,
            false => units.large(run).await,
        }
    }

    /// Returns the copy to run after the comparison of an entry, or `None` if no file can have its name.
    fn one(&self, entry: &Entry) -> Option<(Arc<Running>, Arc<CopyRequest>, Units, SingleCopy)> {
        let (search, one) = match (&self.direction, &entry.at) {
            (Direction::Up { uploads, to, bucket, prefix, .. }, At::File(path)) => {
                let id = key(bucket, prefix, entry);
                let item = upload::Item::new(path.clone(), (entry.facts.size, entry.facts.changed), id);
                (&*uploads.search, SingleCopy::Up(to.clone(), item))
            }
            (Direction::Down { downloads, from, folder, .. }, At::Object(meta)) => {
                let place = folder.place(&Relative::new(entry.name.clone()).ok()?);
                let item = download::Item::listed(meta.clone(), place);
                (&*downloads.search, SingleCopy::Down(from.clone(), item))
            }
            (Direction::Across { copies, ends, bucket, prefix, .. }, At::Object(meta)) => {
                let from = listed(entry.name.clone(), meta.clone());
                let item = copy::Item::new(from, key(bucket, prefix, entry));
                (copies.search(), SingleCopy::Across(ends.clone(), item))
            }
            _ => return None,
        };
        Some((Arc::clone(&search.job), Arc::clone(&search.request), search.units.clone(), one))
    }

    /// Starts the copies that were collected in a group.
    ///
    /// # Errors
    /// If the job was cancelled.
    pub(super) async fn flush(&mut self) -> Result<(), Cancelled> {
        match &mut self.direction {
            Direction::Up { uploads, to, waiting, .. } => uploads.send_group(to, waiting).await,
            Direction::Down { downloads, from, group, .. } => downloads.send(from, group).await,
            Direction::Across { copies, ends, group, .. } => copies.send(ends, group, None).await,
        }
    }
}

enum SingleCopy {
    Up(Store, upload::Item),
    Down(Store, download::Item),
    Across(Ends, copy::Item),
}

impl SingleCopy {
    async fn run(self, job: Arc<Running>, request: Arc<CopyRequest>) {
        match self {
            Self::Up(store, item) => upload::one(job, request, store, item).await,
            Self::Down(store, item) => download::one(job, request, store, item).await,
            Self::Across(ends, item) => copy::one(job, ends, item).await,
        }
    }
}

fn key(bucket: &str, prefix: &str, entry: &Entry) -> ObjectId {
    ObjectId::new(bucket, format!("{prefix}{}", entry.name))
}

fn listed(name: String, meta: Box<laneway_store::ObjectMeta>) -> SourceObject {
    SourceObject { id: meta.id.clone(), meta: Some(meta), name, in_tree: true, line: None }
}
