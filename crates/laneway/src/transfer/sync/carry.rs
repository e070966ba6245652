//! Starts the copies of a sync. The copies run like the items of a copy job: as uploads, downloads or copies
//! between stores.

use std::sync::Arc;

use laneway_lanes::attempts::counted;
use laneway_store::{ObjectId, Store};

use super::compare::ComparisonMethod;
use super::content::{ContentSource, IncomparableCount, is_of_time, is_same};
use super::side::{EntryPlace, SideEntry};
use crate::job::pump::{CancelledJob, ITEM_COST, ItemGroup, Units};
use crate::job::running::{ActiveItem, JobState};
use crate::job::search::{Prefix, Search};
use crate::listing::{SourceObject, folder_prefix};
use crate::local::folder::Folder;
use crate::location::relative::RelativePath;
use crate::location::url;
use crate::transfer::copy::{self, CopyEnds, CopySearch};
use crate::transfer::download::{self, DownloadSearch};
use crate::transfer::upload::{self, UploadSearch, WaitingUploads};
use crate::{CopyRequest, Error, Location, Op, SyncRequest};

/// The maximum size, in bytes, of an item that reserves memory for its content before it begins.
const SMALL_MAX: u64 = crate::plan::SMALL_UPLOAD_MAX;

pub(super) struct Carrier<'a> {
    direction: CarryDirection<'a>,
    source: Option<Store>,
    unknown: Arc<IncomparableCount>,
}

enum CarryDirection<'a> {
    Up {
        uploads: UploadSearch<'a>,
        to: Store,
        bucket: String,
        prefix: String,
        waiting: WaitingUploads,
    },
    Down {
        downloads: DownloadSearch<'a>,
        from: Store,
        folder: Arc<Folder>,
        group: ItemGroup<download::DownloadItem>,
    },
    Across {
        copies: CopySearch<'a>,
        ends: CopyEnds,
        bucket: String,
        prefix: String,
        group: ItemGroup<copy::CopyItem>,
    },
}

impl<'a> Carrier<'a> {
    /// Returns a carrier that copies from a request's source to its destination.
    ///
    /// # Errors
    /// If a store can't be used.
    pub(super) fn new(
        search: &'a mut Search,
        request: &'a SyncRequest,
        unknown: Arc<IncomparableCount>,
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
                        let ends = CopyEnds::new(from.clone(), to, Arc::clone(&search.request));
                        let copies = CopySearch::new(search, at);
                        CarryDirection::Across { copies, ends, bucket, prefix, group: ItemGroup::new() }
                    }
                    None => {
                        let uploads = UploadSearch { search, to: at };
                        CarryDirection::Up { uploads, to, bucket, prefix, waiting: WaitingUploads::new() }
                    }
                }
            }
            (Location::Local(path), Some(from)) => {
                let folder = Folder::new(path);
                let downloads = DownloadSearch::new(search, Some(Arc::clone(&folder)));
                CarryDirection::Down { downloads, from: from.clone(), folder, group: ItemGroup::new() }
            }
            (destination, _) => return Err(Error::usage(destination.to_string(), "can't be synced to")),
        };
        Ok(Self { direction, source, unknown })
    }

    pub(super) fn source(&self) -> Option<&Store> {
        self.source.as_ref()
    }

    /// Returns the item that reports an entry's outcome if the entry isn't copied.
    pub(super) fn begin(&self, job: &JobState, entry: &SideEntry) -> ActiveItem {
        let (op, destination) = match &self.direction {
            CarryDirection::Up { to, bucket, prefix, .. } => {
                (Op::Upload, url(to.provider(), &key(bucket, prefix, entry)))
            }
            CarryDirection::Across { ends, bucket, prefix, .. } => {
                (Op::Copy, url(ends.to().provider(), &key(bucket, prefix, entry)))
            }
            CarryDirection::Down { folder, .. } => (Op::Download, folder.path_of(&entry.name)),
        };
        let state = match &entry.at {
            EntryPlace::File(_) => job.state_of_file(entry.facts.changed, entry.facts.size),
            EntryPlace::Object(meta) => job.state_of(meta.version.as_ref(), meta.size),
        };
        ActiveItem { state, ..job.begin(op, entry.place(self.source()), Some(destination)) }
    }

    /// Reports that a dry run would copy an entry.
    ///
    /// # Errors
    /// Never fails. The method returns a result only to have the same type as [`copy`](Self::copy).
    pub(super) async fn plan(&self, job: &JobState, entry: SideEntry) -> Result<(), CancelledJob> {
        job.progress.found(1, entry.facts.size);
        job.planned(self.begin(job, &entry), entry.facts.size).await;
        Ok(())
    }

    /// Starts the copy of an entry, or adds it to a group that starts later.
    ///
    /// # Errors
    /// If the job was cancelled.
    pub(super) async fn copy(&mut self, entry: SideEntry) -> Result<(), CancelledJob> {
        let size = entry.facts.size;
        match (&mut self.direction, entry.at) {
            (CarryDirection::Up { uploads, to, bucket, prefix, waiting }, EntryPlace::File(path)) => {
                let id = ObjectId::new(bucket.clone(), format!("{prefix}{}", entry.name));
                uploads
                    .item(to, upload::UploadItem::new(path, (size, entry.facts.changed), id), waiting)
                    .await
            }
            (CarryDirection::Down { downloads, from, group, .. }, EntryPlace::Object(meta)) => {
                let object = listed(entry.name, meta);
                downloads.object(from, "", object, true, group).await
            }
            (CarryDirection::Across { copies, ends, bucket, prefix, group }, EntryPlace::Object(meta)) => {
                let to = ObjectId::new(bucket.clone(), format!("{prefix}{}", entry.name));
                if let Some(item) =
                    copies.admit(ends, copy::CopyItem::new(listed(entry.name, meta), to)).await
                {
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
    pub(super) async fn compare(
        &mut self,
        source: SideEntry,
        there: SideEntry,
        by: ComparisonMethod,
    ) -> Result<(), CancelledJob> {
        let size = source.facts.size;
        let times = (source.facts, there.facts);
        let Some((job, request, units, copying)) = self.one(&source) else { return self.copy(source).await };
        let begun = self.begin(&job, &source);
        let unknown = Arc::clone(&self.unknown);
        let ends = match &self.direction {
            CarryDirection::Up { to, .. } => (None, Some(to.clone())),
            CarryDirection::Down { from, .. } => (Some(from.clone()), None),
            CarryDirection::Across { ends, .. } => (Some(ends.from().clone()), Some(ends.to().clone())),
        };
        let (Some(from), Some(to)) =
            (ContentSource::of(source.at, ends.0), ContentSource::of(there.at, ends.1))
        else {
            return Ok(());
        };
        let run = counted(async move {
            let same = match by {
                ComparisonMethod::Checksum | ComparisonMethod::Content => {
                    is_same(&job, by, &unknown, (from, to), times).await
                }
                ComparisonMethod::Time => is_of_time(&job, from, times.1).await,
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
    fn one(&self, entry: &SideEntry) -> Option<(Arc<JobState>, Arc<CopyRequest>, Units, SingleCopy)> {
        let (search, one) = match (&self.direction, &entry.at) {
            (CarryDirection::Up { uploads, to, bucket, prefix, .. }, EntryPlace::File(path)) => {
                let id = key(bucket, prefix, entry);
                let item = upload::UploadItem::new(path.clone(), (entry.facts.size, entry.facts.changed), id);
                (&*uploads.search, SingleCopy::Up(to.clone(), item))
            }
            (CarryDirection::Down { downloads, from, folder, .. }, EntryPlace::Object(meta)) => {
                let place = folder.place(&RelativePath::new(entry.name.clone()).ok()?);
                let item = download::DownloadItem::listed(meta.clone(), place);
                (&*downloads.search, SingleCopy::Down(from.clone(), item))
            }
            (CarryDirection::Across { copies, ends, bucket, prefix, .. }, EntryPlace::Object(meta)) => {
                let from = listed(entry.name.clone(), meta.clone());
                let item = copy::CopyItem::new(from, key(bucket, prefix, entry));
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
    pub(super) async fn flush(&mut self) -> Result<(), CancelledJob> {
        match &mut self.direction {
            CarryDirection::Up { uploads, to, waiting, .. } => uploads.send_group(to, waiting).await,
            CarryDirection::Down { downloads, from, group, .. } => downloads.send(from, group).await,
            CarryDirection::Across { copies, ends, group, .. } => copies.send(ends, group, None).await,
        }
    }
}

enum SingleCopy {
    Up(Store, upload::UploadItem),
    Down(Store, download::DownloadItem),
    Across(CopyEnds, copy::CopyItem),
}

impl SingleCopy {
    async fn run(self, job: Arc<JobState>, request: Arc<CopyRequest>) {
        match self {
            Self::Up(store, item) => upload::one(job, request, store, item).await,
            Self::Down(store, item) => download::one(job, request, store, item).await,
            Self::Across(ends, item) => copy::one(job, ends, item).await,
        }
    }
}

fn key(bucket: &str, prefix: &str, entry: &SideEntry) -> ObjectId {
    ObjectId::new(bucket, format!("{prefix}{}", entry.name))
}

fn listed(name: String, meta: Box<laneway_store::ObjectMeta>) -> SourceObject {
    SourceObject { id: meta.id.clone(), meta: Some(meta), name, in_tree: true, line: None }
}
