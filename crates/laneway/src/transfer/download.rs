//! Downloads, from a store to this machine.

mod claims;
mod composite;
pub(crate) mod in_order;
mod object;
mod opening;
mod search;
mod slice;
mod sliced;
mod small;
mod verify;

use std::sync::Arc;

use laneway_store::{ObjectId, ObjectMeta, Store, Version};

use crate::content::encoding::ContentEncoding;
use crate::job::CancelFlag;
use crate::job::running::{ActiveItem, JobState, TransferOutcome};
use crate::local::folder::{CommitOptions, FilePlace, StagedFile};
use crate::local::preserve::{PosixAttributes, Preserve};
use crate::location::url;
use crate::transfer::moved;
use crate::{CopyRequest, Error, Op};

pub(crate) use search::{DownloadSearch, is_asked, one};

/// The result of an item's download.
pub(crate) struct DownloadOutcome {
    pub(crate) moved: TransferOutcome,
    pub(crate) version: Option<Version>,
}

/// An object, and the file into which it is downloaded.
#[derive(Debug)]
pub(crate) struct DownloadItem {
    id: ObjectId,
    meta: Option<Box<ObjectMeta>>,
    /// True if a listing found the item. False if the user named it.
    is_listed: bool,
    place: FilePlace,
    /// If a list of names contained the object, the line of the list, as `FILE:LINE`. Errors mention it.
    line: Option<Box<str>>,
}

impl DownloadItem {
    pub(crate) fn listed(meta: Box<ObjectMeta>, place: FilePlace) -> Self {
        Self { id: meta.id.clone(), meta: Some(meta), is_listed: true, place, line: None }
    }

    pub(crate) fn begin(&self, job: &JobState, store: &Store) -> ActiveItem {
        let destination = self.place.path().display().to_string();
        let state = self.meta.as_ref().and_then(|meta| job.state_of(meta.version.as_ref(), meta.size));
        let line = self.line.clone();
        ActiveItem {
            state,
            line,
            ..job.begin(Op::Download, url(store.provider(), &self.id), Some(destination))
        }
    }
}

/// Settings for the move of a downloaded file to its final path.
#[derive(Debug)]
pub(crate) struct FileCommit {
    options: CommitOptions,
    /// The encoding that Laneway decodes before it moves the file.
    decode: Option<ContentEncoding>,
    cancel: CancelFlag,
}

impl FileCommit {
    /// Decodes the file if that was requested, and moves it to its final path. Blocks the thread.
    pub(crate) fn commit(&self, staged: &StagedFile) -> Result<(), Error> {
        match self.decode {
            Some(encoding) => staged.commit_decoded(encoding, self.options, &|| self.cancel.is_set()),
            None => staged.commit(self.options),
        }
    }
}

impl CopyRequest {
    /// Returns whether objects are known only from an inventory, which has no metadata, although the request
    /// needs the metadata.
    fn is_undescribed(&self) -> bool {
        self.inventory.is_some() && (self.decompress || self.preserve)
    }

    /// Returns how to move the downloaded file to its final path, and which attributes to give it. The
    /// attributes come from the first of the `described` objects that has metadata.
    fn placing(&self, job: &JobState, preserve: Preserve, described: [Option<&ObjectMeta>; 2]) -> FileCommit {
        let metadata = described.into_iter().flatten().find_map(|meta| meta.metadata.as_ref());
        let attributes = metadata.map(PosixAttributes::of_object).unwrap_or_default();
        let encoding = described.into_iter().flatten().find_map(|meta| meta.content_encoding.as_deref());
        let decode = encoding.filter(|_| self.decompress).and_then(ContentEncoding::named);
        let options = CommitOptions {
            durable: self.durable,
            only_absent: self.no_clobber,
            attributes: attributes.to_be_set(preserve),
        };
        FileCommit { options, decode, cancel: job.cancel.clone() }
    }
}

/// Downloads one object into a file.
async fn fetch_one(
    job: Arc<JobState>,
    request: Arc<CopyRequest>,
    store: Store,
    item: DownloadItem,
    collect_max: u64,
) {
    let begun = item.begin(&job, &store);
    let (meta, place) = (item.meta.clone(), item.place.clone());
    let result = object::fetch(&job, &request, &store, &item.id, meta, place, collect_max).await;
    finish(&job, &request, &store, item, begun, result).await;
}

/// Reports an item's result. In a move, first removes the source, and reports an error if the removal fails.
async fn finish(
    job: &JobState,
    request: &CopyRequest,
    store: &Store,
    item: DownloadItem,
    begun: ActiveItem,
    result: Result<DownloadOutcome, Error>,
) {
    let size = item.meta.as_ref().map_or(0, |meta| meta.size);
    let result = match result {
        Ok(mut fetched) => {
            fetched.moved.made.source = fetched.version.clone();
            remove_moved(request, store, &item.id, fetched).await
        }
        Err(error) => Err(error),
    };
    match item.is_listed {
        true => job.end_listed(begun, size, result).await,
        false => job.end(begun, size, result).await,
    }
}

async fn remove_moved(
    request: &CopyRequest,
    store: &Store,
    id: &ObjectId,
    fetched: DownloadOutcome,
) -> Result<TransferOutcome, Error> {
    if request.remove_source {
        let is_enough = request.is_enough(fetched.moved.verified);
        moved::remove_object(store, id, fetched.version.as_ref(), is_enough).await?;
    }
    Ok(fetched.moved)
}
